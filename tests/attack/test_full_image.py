# SPDX-License-Identifier: Apache-2.0
"""A pool whose image leaves no space on the disk: each machine is paid for, joins, and can run
nothing. The number of launches is bounded, also across a kill of belayd; belayd reports it, and the
waiting job loses nothing. After a fix the pool works again."""

import json
import os
import re
import sys
import unittest
from datetime import datetime

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "e2e")]
import small_disk  # noqa: E402
from lab import Lab  # noqa: E402

# Of a disk an agent keeps an eighth for its records. What is left is enough to join, and not for
# the script of the job.
DISK, LEFT, SCRIPT = 16 << 20, 512 << 10, 600 << 10
WHY = "its disk was full before its first job"
FULL = 5  # machines, until the image is mended
WAITS_S = (6, 12)  # six times refusal_backoff, then twice that
# Machines have their agent's directory there while the image is as it was.
PRELUDE = """\
lab=$(dirname "$0")/..
[ ! -e "$lab/image" ] || export BELAY_NODE_DIR="$lab/disk/$(basename "$HOME")"
"""


class FullImage(Lab):
    def __init__(self):
        pool = {"refusal_backoff": "1s", "max_nodes": 1}
        super().__init__(pool=pool, agent_prelude=PRELUDE)

    def start(self):
        self.disk = small_disk.SmallDisk(os.path.join(self.dir, "disk"), str(DISK))
        self.disk.fill()
        os.truncate(self.disk.ballast, os.path.getsize(self.disk.ballast) - LEFT)
        self.image = self.write("image", "")
        super().start()

    def end(self):
        problems = super().end()
        self.disk.end()
        return problems

    def mend(self):
        os.unlink(self.image)

    def boots(self):
        return self.get("/pools/detail?name=cloud")["pools"][0]["boots"] or {"failed": 0}

    def launches(self):
        return sum(o["launches"] for o in self.get("/offers")["offers"])

    def reasons(self, job):
        return {r["code"]: r["text"] for r in self.get("/jobs/%d/why" % job)["reasons"]}

    def metric(self, name):
        text = self.call("GET", "/metrics", root="")[1].decode()
        return int(re.search(r'^%s{pool="cloud"} (\d+)$' % name, text, re.M).group(1))

    def logged(self, text):
        """The log's lines with this text."""
        with open(os.path.join(self.home, "belayd.log")) as f:
            return [line for line in f if text in line]

    def moments(self, kind):
        """When events of this kind happened, in seconds."""
        found, after = [], 0
        while True:
            page = self.get("/events?after=%d" % after)
            found += [e["at"] for e in page["events"] if e["kind"] == kind]
            if not page["events"]:
                break
            after = page["last"]
        return [datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp() for at in found]

    def submit_all(self):
        """One job for each machine, since one that found no space is tried again later. Returns the
        last."""
        return [self.submit_large() for _ in range(FULL + 1)][-1]

    def submit_large(self):
        script = "#!/bin/sh\ntrue\n" + ("#" * 99 + "\n") * (SCRIPT // 100)
        return self.post("/jobs", {"script": script, "cwd": "/", "exclusive": True})["id"]

    def wait_failed(self, n):
        self.wait(lambda: self.boots()["failed"] >= n, "%d machines with full disks" % n)


class Test(unittest.TestCase):
    def test_every_channel_says_so(self):
        with FullImage() as lab:
            job = lab.submit_all()
            lab.wait_failed(3)
            boots = lab.boots()
            self.assertTrue(boots["one_at_a_time"])
            self.assertIn(WHY, boots["text"])
            lab.wait(lambda: "boots-fail" in lab.reasons(job), "the reason of the job")
            text = lab.reasons(job)["boots-fail"]
            self.assertIn("had no space on their disks", text)
            self.assertIn(WHY, text)
            self.assertIsNone(lab.get("/jobs/%d/why" % job)["estimate"]["median"])
            self.assertGreaterEqual(lab.metric("belay_pool_failed_boots"), 3)
            self.assertEqual(lab.metric("belay_pool_boots_fail"), 1)
            for offer in lab.get("/offers")["offers"]:  # all of them, also those never launched
                self.assertGreaterEqual(offer["failed_boots_of_pool"], 3)
            self.assertRegex(lab.belay("offers"), r"FAILED BOOTS")
            shown = lab.belay("pools", "show", "cloud")
            self.assertIn("had full disks", shown)
            self.assertIn(WHY, shown)
            lines = lab.logged("launched machines of the pool never join, or have full disks")
            self.assertRegex(
                lines[0], r" error: .*pool=cloud failed=3 .*why=.*%s.*next_launch=" % WHY
            )

    def test_launches_are_bounded_until_it_is_mended(self):
        with FullImage() as lab:
            job = lab.submit_all()
            lab.wait_failed(FULL)
            count = (lab.boots()["failed"], lab.launches())
            self.assertEqual(count, (FULL, FULL))  # each counts once
            failed = lab.moments("boot-failed")
            for k, wait_s in enumerate(WAITS_S):
                self.assertGreaterEqual(failed[k + 1] - failed[k], wait_s)
            lab.kill_belayd()
            lab.up()
            self.assertEqual((lab.boots()["failed"], lab.launches()), count)
            self.assertTrue(lab.boots()["one_at_a_time"])  # its wait continues
            lab.mend()
            with open(os.path.join(lab.dir, "belayd.yaml")) as f:
                pools = json.load(f)["pools"]
            lab.belay("pools", "apply", "--yes", lab.write("pools.yaml", {"pools": pools}))
            shown = lab.wait_ended(job)
            for tried in range(1, job + 1):
                used = [k["used"] for k in lab.job(tried)["retry"].values()]
                self.assertEqual(used, [0] * 6, tried)
            self.assertEqual(shown["job"]["end"], "succeeded")
            self.assertEqual((lab.boots()["failed"], lab.launches()), (0, FULL + 1))
            self.assertEqual(lab.metric("belay_pool_boots_fail"), 0)


if __name__ == "__main__":
    small_disk.main()
