# SPDX-License-Identifier: Apache-2.0
"""A pool on Google Cloud: preemptions with the usual notice and the early one, all kinds of failing
launches, machines with attached GPUs."""

import unittest

from lab import Lab, check_reclaimed_once, nothing_is_left

STEPS = 200  # of 20 ms


class GoogleCloud(unittest.TestCase):
    def survive(self, lab, reclaim):
        job = lab.submit("chain.py", STEPS, method="coop", every_ms=3600000)
        lab.wait_log(job, r"^step 60 ")
        first = lab.emulated(lab.instance_of(job))["instance"]
        lab.cloud({"reclaim": {"instance": first, **reclaim}})
        shown = lab.wait_ended(job)

        check_reclaimed_once(self, lab, job, shown, STEPS)
        state = lab.wait_cloud(nothing_is_left, "machines are given back")
        self.assertTrue(next(i for i in state["instances"] if i["instance"] == first)["reclaimed"])

    def test_a_job_survives_a_preemption(self):
        with Lab(provider="gcp") as lab:
            self.survive(lab, {"notice_s": 20})

    def test_a_job_survives_a_preemption_with_early_notice(self):
        with Lab(provider="gcp", pool={"early_notice": 120, "max_run": "7d"}) as lab:
            self.survive(lab, {})

    def test_a_preemption_without_notice_is_known_by_its_operation(self):
        """The machine disappears at once; its agent has no time to report it. Without the
        operation, the lease would show it a minute later.
        """
        with Lab(provider="gcp", belayd={"lease": "60s", "settle": "60s"}) as lab:
            job = lab.submit("chain.py", STEPS, method="coop", every_ms=1000)
            lab.wait_log(job, r"^step 100 ")
            lab.cloud(
                {
                    "reclaim": {
                        "instance": lab.emulated(lab.instance_of(job))["instance"],
                        "notice_s": 0,
                    }
                }
            )
            shown = lab.wait_ended(job)
            self.assertEqual(shown["job"]["end"], "succeeded")
            self.assertEqual(len(shown["attempts"]), 2)
            # reclaimed, if the agent could report it before it was killed
            self.assertIn(shown["attempts"][0]["end"], ("node-lost", "reclaimed"))
            lab.wait_cloud(nothing_is_left, "machines are given back")

    def test_a_job_that_needs_gpus_gets_a_machine_with_them_attached(self):
        """One zone is sold out, the other has machines with GPUs. Jobs without GPUs get none."""

        def pool(zone, n):
            return {
                "zone": zone,
                "type": "n1-standard-8+2xt4",
                "spot": {"capacity": n},
                "on_demand": {"capacity": n},
            }

        with Lab(
            provider="gcp",
            cloud={
                "gpu_quotas": {"NVIDIA_T4_GPUS": 2},
                "pools": [
                    pool("us-central1-a", 0),
                    pool("us-central1-b", 1),
                    {"zone": "us-central1-a", "type": "n2-standard-8", "spot": {"capacity": 1}},
                ],
            },
            pool={"types": ["n2-standard-8", "n1-standard-8+2xt4"], "markets": ["spot"]},
        ) as lab:
            for gpus, machine, zone in (
                (0, "n2-standard-8", "us-central1-a"),
                (2, "n1-standard-8+2xt4", "us-central1-b"),
            ):
                job = lab.submit("plain.sh", 5, gpus=gpus)
                self.assertEqual(lab.wait_ended(job)["job"]["end"], "succeeded")
                found = lab.emulated(lab.instance_of(job))
                self.assertEqual((found["type"], found["zone"]), (machine, zone))
            pair = [lab.submit("gpus.sh", gpus=1) for _ in range(2)]
            seen = [lab.wait_log(job, r"^gpus \[(\d)\] \[\1\]$") for job in pair]
            self.assertEqual(lab.instance_of(pair[0]), lab.instance_of(pair[1]))
            self.assertEqual(sorted(match.group(1) for match in seen), ["0", "1"])
            none = lab.submit("gpus.sh")
            lab.wait_log(none, r"^gpus \[\] \[\]$")
            for job in pair + [none]:
                lab.post("/jobs/%d/cancel" % job)
                lab.wait_ended(job)
            state = lab.wait_cloud(nothing_is_left, "machines are given back")
            self.assertGreaterEqual(state["counts"]["refusals"], 1)

    def test_what_is_refused_leaves_nothing(self):
        """A zone has no capacity, an operation fails, a reply is lost, and a call is throttled."""

        def pool(zone, n):
            return {
                "zone": zone,
                "type": "n2-standard-8",
                "spot": {"capacity": n, "usd_per_hour": 0.17 + n / 100},
                "on_demand": {"capacity": 0, "usd_per_hour": 0.389},
            }

        zones = ["us-central1-a", "us-central1-b", "us-central1-c"]
        with Lab(
            provider="gcp",
            cloud={"pools": [pool(z, n) for n, z in enumerate(zones)]},
            pool={"zones": zones, "markets": ["spot"]},
        ) as lab:
            lab.cloud(
                [
                    {"refuse": {"action": "instances.insert", "code": "RESOURCE_NOT_READY"}},
                    {"throttle": {"action": "instances.insert"}},
                    {"drop_reply": {"action": "instances.insert"}},
                    {"drop_reply": {"action": "instances.delete"}},
                ]
            )
            jobs = [lab.submit("plain.sh", 5, cpus=2) for _ in range(3)]
            for job in jobs:
                self.assertEqual(lab.wait_ended(job)["job"]["end"], "succeeded")
            state = lab.wait_cloud(nothing_is_left, "machines are given back")
            self.assertGreaterEqual(state["counts"]["refusals"], 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
