# SPDX-License-Identifier: Apache-2.0
"""Several clouds behind one belayd: the same job and, except for one word, the same pool on each;
and a hundred jobs at once on those that reclaim spot instances, while capacity comes and goes."""

import collections
import datetime
import json
import os
import re
import time
import unittest

import lab
from lab import SEAM, Lab, nothing_is_left, undisturbed
from walks import Walk

# The notice that each promises, which is the emulator's default; 0 = none.
NOTICE_S = {"aws": 120, "gcp": 30, "azure": 30, "lambda": 0}
PLACES = (
    "region",
    "zones",
    "types",
    "image",
    "project",
    "resource_group",
    "subnet",
    "ssh_key",
    "request_every",
    "launch_every",
)

# The complete pool configuration.
POOL_FILE = """\
pools:
  burst:
    provider: %s
    max_nodes: 4
    idle_timeout: 1s
    cooldown: 1s
    paid_minimum: 0s
    refusal_backoff: 500ms
"""


def wall_ms(text):
    """Since 1970, as the emulator counts."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000


class Clouds(Lab):
    """The emulator's providers, and belayd's configuration of each."""

    def __init__(self, clouds=None, pools=None, belayd=None):
        super().__init__(belayd=belayd)
        self.sections = {
            name: {**usual[0], **(clouds or {}).get(name, {})} for name, usual in lab.USUAL.items()
        }
        self.pools = pools or {}

    def clouds(self):
        return {"providers": self.sections}

    def provision(self, ports):
        self.providers = {
            name: {
                **{key: usual[1][key] for key in PLACES if key in usual[1]},
                **self.access(name, ports),
            }
            for name, usual in lab.USUAL.items()
        }
        return {"providers": self.providers, "pools": self.pools}


class OneWord(unittest.TestCase):
    STEPS = 200  # of 20 ms

    def test_the_same_job_runs_on_each_with_one_word_changed(self):
        files = {name: POOL_FILE % name for name in NOTICE_S}
        words = [text.split() for text in files.values()]
        self.assertEqual(sum(len(set(at)) > 1 for at in zip(*words)), 1)
        with Clouds(pools={"base": {"kind": "reserved"}}) as l:
            providers = "providers: %s\n" % json.dumps(l.providers)
            script = l.write(
                "train.sh",
                "#!/bin/sh\nexec %s %s/chain.py %d\n" % (lab.PYTHON, lab.JOBS, self.STEPS),
                0o755,
            )
            for name, text in files.items():
                with self.subTest(name):
                    l.belay("pools", "apply", "--yes", l.write("pools.yaml", text + providers))
                    self.survive(l, name, script)

    def survive(self, l, name, script):
        job = int(
            re.search(
                r"batch job (\d+)$",
                l.belay("submit", "--checkpoint", "coop", "--checkpoint-every", "1s", script),
            ).group(1)
        )
        l.wait_event(job, "saved")
        first = l.emulated(l.instance_of(job))
        self.assertEqual(first["provider"], name)
        l.cloud({"reclaim": {"instance": first["instance"]}})
        shown = l.wait_ended(job)

        self.assertEqual(shown["job"]["end"], "succeeded")
        self.assertEqual(len({a["node"] for a in shown["attempts"]}), 2)
        self.assertEqual(shown["job"]["reclaims"], 1)
        saved = next(c for c in shown["checkpoints"] if c["attempt"] == 1)  # newest first
        restored = shown["attempts"][1]["restored"]
        self.assertEqual(restored["attempt"], 1)
        if NOTICE_S[name]:
            self.assertEqual(restored["sequence"], saved["sequence"])
        else:  # one more save may have been complete, which its agent could no longer report
            self.assertIn(restored["sequence"] - saved["sequence"], (0, 1))
        pieces = SEAM.split(l.log(job))
        self.assertEqual(len(pieces), 2)
        whole = undisturbed("chain.py", self.STEPS, 0)
        self.assertTrue(whole.startswith(pieces[0]) and whole.endswith(pieces[1]), pieces)

        l.wait(lambda: not l.get("/instances?state=live")["instances"], "no instance is live")
        state = l.wait_cloud(nothing_is_left, "nothing is left at " + name)
        gone = next(i for i in state["instances"] if i["instance"] == first["instance"])
        if NOTICE_S[name]:
            self.check_announced(l, name, job, shown, gone)
            self.assertEqual("".join(pieces), whole)
        else:
            self.check_unannounced(shown)

    def check_announced(self, l, name, job, shown, gone):
        """The last save is the notice's, and no work is lost."""
        self.assertEqual([a["end"] for a in shown["attempts"]], ["reclaimed", "succeeded"])
        self.assertEqual(
            next(c for c in shown["checkpoints"] if c["attempt"] == 1)["cause"], "notice"
        )
        self.assertEqual(shown["job"]["lost_steps"], 0)
        notice_ms = gone["deadline_ms"] - gone["noticed_ms"]
        self.assertIn(
            notice_ms // 1000, (NOTICE_S[name], NOTICE_S[name] + 1)
        )  # it ends with a whole second
        saved_ms = max(
            wall_ms(e["at"]) for e in l.events(job) if e["kind"] == "saved" and e["attempt"] == 1
        )
        print(
            "%s: %.1f s notice, saved after %.1f s, gone after %.1f s"
            % (
                name,
                notice_ms / 1000,
                (saved_ms - gone["noticed_ms"]) / 1000,
                (gone["gone_ms"] - gone["noticed_ms"]) / 1000,
            )
        )
        self.assertLess(saved_ms, gone["deadline_ms"])

    def check_unannounced(self, shown):
        """Whichever comes first: the machine's silence, or the provider's report."""
        self.assertIn(shown["attempts"][0]["end"], ("node-lost", "reclaimed"))
        self.assertEqual(shown["attempts"][1]["end"], "succeeded")
        self.assertEqual({c["cause"] for c in shown["checkpoints"]}, {"periodic"})


class Waves(unittest.TestCase):
    JOBS = 100
    GATED = 70  # jobs held until the last drought: more than the processors of two clouds
    NOTICE_S = {"aws": 12, "gcp": 3, "azure": 3}  # a tenth
    CAPACITY = 2  # of each zone

    def test_a_hundred_jobs_outlive_droughts_in_three_clouds(self):
        clouds = {name: {"notice_s": s} for name, s in self.NOTICE_S.items()}
        for name, cloud in clouds.items():
            pool = dict(
                lab.USUAL[name][0]["pools"][0],
                spot={"capacity": self.CAPACITY, "usd_per_hour": 0.1},
            )
            cloud["pools"] = [pool]
        pool = {
            "markets": ["spot"],
            "max_nodes": 2 * self.CAPACITY,
            "idle_timeout": "2s",
            "cooldown": "2s",
            "paid_minimum": "0s",
            "refusal_backoff": "300ms",
        }
        pools = {name: {"provider": name, **pool} for name in clouds}
        with Clouds(clouds, pools, {"lease": "6s"}) as l:
            self.began = time.monotonic()
            self.faults(l)
            gate = os.path.join(l.dir, "gate")
            jobs = [
                Walk(
                    "coop",
                    60 + n % 40,
                    50,
                    1000,
                    2000,
                    gate if n >= self.JOBS - self.GATED else None,
                )
                for n in range(self.JOBS)
            ]
            for job in jobs:
                job.submit(l)
            for wave, dry in enumerate(
                [["aws"], ["gcp"], ["azure"], ["aws", "gcp", "azure"], ["gcp", "azure"]]
            ):
                self.wave(l, wave, dry)
            l.write("gate", "")
            l.wait(lambda: self.ended(l) == self.JOBS, "the end of every job", 120)
            state = l.wait_cloud(nothing_is_left, "no machine, disk or interface is left")
            l.wait(lambda: not l.get("/instances?state=live")["instances"], "no instance is live")
            self.say("over: %s" % {name: p["counts"] for name, p in state["providers"].items()})
            problems = ["job %d: %s" % (job.id, p) for job in jobs for p in job.check(l)]
            problems += self.check_machines(l, state)
            self.assertEqual(problems, [])

    def say(self, text):
        print("%6.2f s  %s" % (time.monotonic() - self.began, text), flush=True)

    def faults(self, l):
        """Some of the first calls are refused, some throttled, and some replies are lost."""
        for name, launch, code in (
            ("aws", "RunInstances", "InsufficientInstanceCapacity"),
            ("gcp", "instances.insert", "ZONE_RESOURCE_POOL_EXHAUSTED"),
            ("azure", "virtualMachines/write", "SkuNotAvailable"),
        ):
            l.cloud(
                [
                    {"refuse": {"provider": name, "action": launch, "code": code}},
                    {"throttle": {"provider": name, "action": launch}},
                    {"drop_reply": {"provider": name, "action": launch}},
                ]
            )

    def ended(self, l):
        return self.JOBS - len(l.get("/jobs?state=active&limit=200")["jobs"])

    def capacity(self, l, name, n):
        pool = lab.USUAL[name][0]["pools"][0]
        l.cloud(
            [
                {
                    "capacity": {
                        "provider": name,
                        "zone": zone,
                        "type": pool["type"],
                        "market": "spot",
                        "n": n,
                    }
                }
                for zone in pool["zone"]
            ]
        )

    def wave(self, l, wave, dry):
        """Waits until some more jobs have ended, and jobs run in every zone that loses its
        capacity."""

        def busy():
            if self.ended(l) < 7 * wave:
                return False
            running = [
                j["id"]
                for j in l.get("/jobs?state=active&limit=200")["jobs"]
                if j["state"] == "running"
            ]
            nodes = {l.show(job)["attempts"][-1]["node"] for job in running}
            return set(dry) <= {
                i["pool"] for i in l.get("/instances")["instances"] if i["node"] in nodes
            }

        l.wait(busy, "jobs run at %s" % dry)
        for name in dry:
            self.capacity(l, name, 0)
        self.say("wave %d: %s dry, %d jobs ended" % (wave, dry, self.ended(l)))
        l.wait_cloud(
            lambda s: not any(i["provider"] in dry and not i["gone_ms"] for i in s["instances"]),
            "everything at %s is gone" % dry,
        )
        for name in dry:
            self.capacity(l, name, self.CAPACITY)

    def check_machines(self, l, state):
        rows = {
            i["provider_id"].split("/")[-1]
            for i in l.get("/instances?state=all")["instances"]
            if i["provider_id"]
        }
        for i in state["instances"]:
            if not {i["instance"], i["name"]} & rows:
                yield "machine %s of %s has no row" % (i["instance"], i["provider"])
        taken = collections.Counter(i["provider"] for i in state["instances"] if i["noticed_ms"])
        for name in self.NOTICE_S:
            if not taken[name]:
                yield "nothing was taken at %s" % name


if __name__ == "__main__":
    unittest.main(verbosity=2)
