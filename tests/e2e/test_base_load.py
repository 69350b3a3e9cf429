# SPDX-License-Identifier: Apache-2.0
"""Base load by the time of the week, with real processes: a machine that no job asked for comes
with a window and goes when the window has closed; a restart of belayd launches no second one."""

import datetime
import json
import os
import unittest

from lab import Lab

WAIT_S = 300  # a window opens and closes at whole minutes
IDLE = "1s"


def now():
    return datetime.datetime.now(datetime.timezone.utc)


class BaseLoad(unittest.TestCase):
    def base_load(self, lab):
        return lab.get("/pools/detail?name=cloud")["pools"][0]["base_load"]

    def instances(self, lab):
        return lab.get("/instances?state=all")["instances"]

    def apply_window(self, lab):
        """A window from the next minute, for two minutes; returns when it opens and closes."""
        with open(lab.config) as f:
            pool = json.load(f)["pools"]["cloud"]
        opens = now().replace(second=0, microsecond=0) + datetime.timedelta(minutes=1)
        closes = opens + datetime.timedelta(minutes=2)
        window = {"from": opens.strftime("%H:%M"), "to": closes.strftime("%H:%M"), "min_nodes": 1}
        pools = {"cloud": {**pool, "windows": {"shift": {**window, "tz": "UTC"}}}}
        lab.post("/pools", {"file": "pools.yaml", "text": json.dumps({"pools": pools})})
        return opens, closes

    def test_a_machine_comes_with_a_window_and_goes_after_it(self):
        with Lab(pool={"max_nodes": 1, "idle_timeout": IDLE}) as lab:
            self.assertIsNone(self.base_load(lab))
            self.assertEqual(self.instances(lab), [])
            opens, closes = self.apply_window(lab)
            base = self.base_load(lab)
            if now() < opens:
                self.assertEqual((base["min_nodes"], base["next_min_nodes"]), (0, 1))
                self.assertIn("keeps now: at least 0 nodes", lab.belay("pools", "show", "cloud"))
            lab.wait(
                lambda: [n for n in lab.get("/nodes")["nodes"] if n["state"] == "up"],
                "the machine of the window is up",
                WAIT_S,
            )
            lab.kill_belayd()
            lab.up()
            cpus = min(4, len(os.sched_getaffinity(0)))
            runs = lab.submit("plain.sh", 6000, 1, cpus=cpus)
            waits = lab.submit("plain.sh", 6000, 1, cpus=cpus)
            lab.wait_event(runs, "started")
            lab.wait(lambda: self.base_load(lab)["window"], "the window is open", WAIT_S)
            self.assertGreaterEqual(now(), opens)
            why, shown = lab.belay("why", str(waits)), lab.belay("pools", "show", "cloud")
            after = self.base_load(lab)
            if after["window"]:  # it was open all the time
                self.assertIn(
                    "pool cloud keeps at least 1 node, 0 without a job (window shift)", why
                )
                self.assertIn("; from %s" % closes.strftime("%Y-%m-%dT%H:%M"), why)
                self.assertIn(": at least 0 nodes, 0 without a job (outside of windows)", why)
                self.assertIn("keeps now: at least 1 node, 0 without a job (window shift)", shown)
            for job in (waits, runs):
                lab.post("/jobs/%d/cancel" % job)
            lab.wait_cloud(lambda s: s["alive"] == 0, "the machine ends", WAIT_S)
            self.assertGreaterEqual(now(), closes)
            self.assertEqual(len(self.instances(lab)), 1)
            self.assertIsNone(self.base_load(lab)["window"])


if __name__ == "__main__":
    unittest.main()
