# SPDX-License-Identifier: Apache-2.0
"""belay show prints each option that its job has, by walking the table of options: an option that
belayd shows as null by default is printed when it has a value, and not before."""

import json
import os
import re
import subprocess
import tempfile
import unittest

from canned import Canned

BUILD = os.path.abspath(os.environ.get("BELAY_BUILD", "build"))

TABLE = json.loads(subprocess.check_output([BUILD + "/job/print_attributes"]))
NULL_BY_DEFAULT = {"in-document", "shown-or-null", "shown-as-time"}
JOB = {"id": 1, "name": "some", "user": "ann", "state": "pending", "cpus": 1, "nodes": 1}


def shown_rows():
    """Of the table: the name in replies, and a value."""
    for row in TABLE:
        if "alias" in row["masks"] or not NULL_BY_DEFAULT & set(row["masks"]):
            continue
        if "shown-as-time" in row["masks"]:
            yield row, row["name"][: -len("_ms")], "2026-01-02T03:04:05Z", "2026-01-02 03:04:05"
        elif row.get("unit") == "ms":
            yield row, row["name"], 7200000, "2h00m"
        elif row.get("unit") == "uusd":
            yield row, row["name"], 2500000, "$2.50"
        elif row["type"] == "integer":
            yield row, row["name"], 7, "7"
        elif row["type"] in ("bool", "true"):
            yield row, row["name"], True, "yes"
        else:
            yield row, row["name"], "some-text", "some-text"


class Show(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="belay-show.")
        self.addCleanup(folder.cleanup)
        self.socket = os.path.join(folder.name, "s")
        self.canned = self.enterContext(Canned(self.socket, Canned.Answer))

    def show(self, more=None, **options):
        self.canned.replies = {
            "/api/v1/jobs/1": {
                "job": {**JOB, **options},
                **{"attempts": [], "checkpoints": [], **(more or {})},
            },
            "/api/v1/jobs/1/events": {"events": [], "last": 0, "state": "pending"},
        }
        done = subprocess.run(
            [BUILD + "/cli/belay", "show", "--utc", "1"],
            env={**os.environ, "BELAY_SOCKET": self.socket},
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_every_option_that_has_a_value_is_printed(self):
        rows = list(shown_rows())
        self.assertGreater(len(rows), 8)
        plain = self.show(**{member: None for _, member, _, _ in rows})
        for row, member, value, text in rows:
            with self.subTest(member):
                self.assertNotIn(text, plain)
                self.assertIn(text, self.show(**{member: value}))
                if row["flag"] in ("team", "qos", "window", "work"):
                    self.assertRegex(self.show(**{member: value}), r"(?m)^%-13s " % row["flag"])

    def test_the_timeline_draws_each_attempt(self):
        attempt = {"rank": 0, "node": 1, "state": "ended", "checkpoints": 1, "restart": None}
        at = "2026-01-02T03:%02d:00.000Z"
        attempts = [
            {
                **attempt,
                "attempt": 1,
                "assigned_at": at % 8,
                "started_at": at % 12,
                "ended_at": at % 32,
                "end": "reclaimed",
            },
            {
                **attempt,
                "attempt": 2,
                "assigned_at": at % 44,
                "started_at": at % 48,
                "ended_at": "2026-01-02T04:04:00.000Z",
                "end": "succeeded",
                "restart": {"launch_ms": 60000, "boot_ms": 300000},
            },
        ]
        job = {
            "state": "ended",
            "end": "succeeded",
            "submitted_at": at % 0,
            "ended_at": "2026-01-02T04:04:00.000Z",
        }
        saved = [{"attempt": 1, "sequence": 1, "saved_at": at % 22}]
        out = self.show({"attempts": attempts, "checkpoints": saved}, **job)
        self.assertIn("2026-01-02 03:00:00 to 2026-01-02 04:04:00, a character is 1m00s", out)
        rows = dict(re.findall(r"(?m)^ +(\d)          ([ .br=sx*!]+)$", out))
        self.assertEqual(rows["1"].rstrip(), "." * 8 + "r" * 4 + "=" * 10 + "s" + "=" * 9 + "x")
        self.assertEqual(rows["2"].strip(), "." * 6 + "b" * 6 + "r" * 4 + "=" * 15 + "*")
        self.assertEqual(len(rows["2"]), 64)


if __name__ == "__main__":
    unittest.main()
