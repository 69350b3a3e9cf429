# SPDX-License-Identifier: Apache-2.0
"""The units of systemd: how belayd's is confined, and what keeps jobs when an agent restarts."""

import configparser
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ["BELAY_BUILD"])
EXPOSURE_MAX = 2.5


class Unit(configparser.RawConfigParser):
    def __init__(self, path):
        super().__init__(strict=False)
        self.optionxform = str
        self.read(path)


class Units(unittest.TestCase):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not installed")
    def test_belayd_is_confined(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "belayd.service"
            text = (BUILD / "packaging/belayd.service").read_text()
            # The program has to exist for the analysis, and is not installed here.
            path.write_text(re.sub("(?m)^ExecStart=\\S+", "ExecStart=/bin/true", text))
            done = subprocess.run(
                ["systemd-analyze", "security", "--offline=true", "--no-pager", str(path)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=60,
            )
        level = re.search(r"exposure level for belayd\.service: ([\d.]+)", done.stdout)
        self.assertIsNotNone(level, done.stdout)
        self.assertLess(float(level[1]), EXPOSURE_MAX, done.stdout)

    def test_belayd_reports_and_is_watched(self):
        service = Unit(BUILD / "packaging/belayd.service")["Service"]
        self.assertEqual(service["Type"], "notify")
        self.assertIn("WatchdogSec", service)
        self.assertEqual(service["User"], "belay")
        self.assertRegex(
            service["ExecStart"], r"^/\S+/sbin/belayd --config /etc/belay/belayd.yaml$"
        )

    def test_jobs_outlive_their_agent(self):
        service = Unit(BUILD / "agent/belay-agent.service")["Service"]
        self.assertEqual(service["KillMode"], "process")
        self.assertEqual(service["Delegate"], "yes")


if __name__ == "__main__":
    unittest.main()
