# SPDX-License-Identifier: Apache-2.0
"""A cloud whose machines never join, as with a wrong server name: each is paid for. How many are launched is bounded, over a
kill of belayd too; belayd says so and shows what the machine's console ended with. Mended, the pool works again."""

import json
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from lab import Lab  # noqa: E402

NOWHERE = "https://127.0.0.1:1"
WORDS = "127.0.0.1"  # of the program that fetches the agent: it cannot connect
BROKEN = {"belayd": {"server": NOWHERE}, "pool": {"refusal_backoff": "500ms", "boot_timeout": "3s"}}
WAITS_S = (3, 6)  # six times refusal_backoff, then twice that


class Boots(unittest.TestCase):
    def boots(self, lab):
        return lab.get("/pools/detail?name=cloud")["pools"][0]["boots"] or {"failed": 0, "console": None}

    def launches(self, lab):
        return sum(o["launches"] for o in lab.get("/offers")["offers"])

    def logged(self, lab, text):
        """The log's lines with this text."""
        with open(os.path.join(lab.home, "belayd.log")) as f:
            return [line for line in f if text in line]

    def never_join(self, lab):
        """Until three have failed and the console was read: the job."""
        job = lab.post("/jobs", {"script": "#!/bin/sh\ntrue\n", "cwd": "/"})["id"]
        lab.wait(lambda: self.boots(lab)["failed"] >= 3 and self.boots(lab)["console"], "three machines that never joined")
        boots = self.boots(lab)
        self.assertTrue(boots["one_at_a_time"])
        self.assertIn(WORDS, boots["console"])
        why = lab.get("/jobs/%d/why" % job)
        reasons = {r["code"]: r["text"] for r in why["reasons"]}
        self.assertIn("never joined", reasons["boots-fail"])
        self.assertIn(WORDS, reasons["boot-console"])
        self.assertIsNone(why["estimate"]["median"])
        self.assertIn("never joined", lab.belay("pools", "show", "cloud"))
        return job

    def test_launches_are_bounded_until_it_is_mended(self):
        with Lab(**BROKEN) as lab:
            job = self.never_join(lab)
            began = time.monotonic()
            lab.wait(lambda: self.boots(lab)["failed"] >= 5, "two more that were launched to try")
            self.assertGreater(time.monotonic() - began, WAITS_S[0] + WAITS_S[1] - 3)
            self.assertEqual(self.launches(lab), 5)
            lab.kill_belayd()
            with open(os.path.join(lab.dir, "belayd.yaml")) as f:
                config = json.load(f)
            del config["server"]
            config["pools"]["cloud"]["boot_timeout"] = "60s"
            lab.write("belayd.yaml", config)
            lab.up()
            self.assertEqual((self.boots(lab)["failed"], self.launches(lab)), (5, 5))  # its wait goes on
            lab.belay("pools", "apply", "--yes", lab.write("pools.yaml", {"pools": config["pools"]}))
            lab.wait_ended(job)
            self.assertEqual(self.boots(lab)["failed"], 0)
            self.assertEqual(self.launches(lab), 6)

    def test_the_console_of_a_machine_of_gcp_is_read(self):
        with Lab(provider="gcp", **BROKEN) as lab:
            self.never_join(lab)

    def test_the_console_of_a_machine_of_azure_is_read_and_its_url_shown_nowhere(self):
        with Lab(provider="azure", **BROKEN) as lab:
            job = self.never_join(lab)
            shown = [lab.belay("pools", "show", "cloud"), json.dumps(lab.get("/jobs/%d/why" % job)),
                     json.dumps(lab.get("/events?after=0")), *self.logged(lab, "")]
            self.assertFalse([text for text in shown if "sig=" in text or "bootdiagnostics" in text])


if __name__ == "__main__":
    unittest.main()
