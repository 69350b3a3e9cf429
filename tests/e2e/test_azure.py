# SPDX-License-Identifier: Apache-2.0
"""A pool on Azure: an evicted machine is released once its job is saved, and no resource is ever
left."""

import unittest

from lab import Lab, check_reclaimed_once, nothing_is_left

STEPS = 200  # of 20 ms
NOTICE_S = 25  # long enough to show that nothing waited for its end


class Azure(unittest.TestCase):
    def test_a_job_survives_an_eviction(self):
        with Lab(provider="azure") as l:
            job = l.submit("chain.py", STEPS, method="coop", every_ms=3600000)
            l.wait_log(job, r"^step 60 ")
            first = l.emulated(l.instance_of(job))["instance"]
            l.cloud({"reclaim": {"instance": first, "notice_s": NOTICE_S}})
            shown = l.wait_ended(job)

            check_reclaimed_once(self, l, job, shown, STEPS)
            state = l.wait_cloud(nothing_is_left, "machines, disks and interfaces are given back")
            evicted = next(i for i in state["instances"] if i["instance"] == first)
            self.assertTrue(evicted["reclaimed"])
            # Approved by the agent or deleted by belayd, whichever was first: not kept until the
            # deadline.
            self.assertLess(evicted["gone_ms"], evicted["deadline_ms"] - 5000)

    def test_what_is_refused_leaves_nothing(self):
        """One zone does not have the size, one reports that only later, the third has capacity."""

        def pool(zone, n):
            return {
                "zone": zone,
                "type": "Standard_D8s_v5",
                "spot": {"capacity": n, "usd_per_hour": 0.07 + n / 100},
                "on_demand": {"capacity": 0, "usd_per_hour": 0.384},
            }

        with Lab(
            provider="azure",
            cloud={"pools": [pool("1", 0), pool("2", 1), pool("3", 2)]},
            pool={"zones": ["1", "2", "3"], "markets": ["spot"]},
        ) as l:
            l.cloud(
                [
                    {
                        "refuse": {
                            "action": "virtualMachines/write/operation",
                            "code": "ZonalAllocationFailed",
                        }
                    },
                    {"throttle": {"action": "virtualMachines/write"}},
                    {"drop_reply": {"action": "networkInterfaces/write"}},
                ]
            )
            jobs = [l.submit("plain.sh", 5, cpus=2) for _ in range(3)]
            for job in jobs:
                self.assertEqual(l.wait_ended(job)["job"]["end"], "succeeded")
            state = l.wait_cloud(nothing_is_left, "machines, disks and interfaces are given back")
            self.assertGreaterEqual(state["counts"]["refusals"], 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
