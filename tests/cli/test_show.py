# SPDX-License-Identifier: Apache-2.0
"""belay show prints each option that its job has, by walking the table of options: an option that
belayd shows as null by default is printed when it has a value, and not before."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from canned import Canned

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import report_page  # noqa: E402

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


def two_attempts():
    """A job that lost a machine: more of the reply, and members of the job."""
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
            "restart": {"launch_ms": 60000, "boot_ms": 300000, "lost_ms": 600000},
        },
    ]
    job = {
        "state": "ended",
        "end": "succeeded",
        "submitted_at": at % 0,
        "ended_at": "2026-01-02T04:04:00.000Z",
    }
    saved = [{"attempt": 1, "sequence": 1, "saved_at": at % 22}]
    return {"attempts": attempts, "checkpoints": saved}, job


class Show(unittest.TestCase):
    load = {"job": 1, "ref": "1", "rank": 0, "span_ms": 60000, "at_ms": [], "gpus": []}

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="belay-show.")
        self.addCleanup(folder.cleanup)
        self.socket = os.path.join(folder.name, "s")
        self.canned = self.enterContext(Canned(self.socket, Canned.Answer))

    def show(self, more=None, words=(), events=(), **options):
        self.canned.replies = {
            "/api/v1/jobs/1": {
                "job": {**JOB, **options},
                **{"attempts": [], "checkpoints": [], **(more or {})},
            },
            "/api/v1/jobs/1/load": self.load,
            "/api/v1/jobs/1/events": {"events": [], "last": 1, "state": "pending"},
            "/api/v1/jobs/1/events?after=0": {
                "events": list(events),
                "last": len(events),
                "state": "pending",
            },
        }
        done = self.run_show(*words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def run_show(self, *words):
        return subprocess.run(
            [BUILD + "/cli/belay", "show", "--utc", *words, "1"],
            env={**os.environ, "BELAY_SOCKET": self.socket},
            capture_output=True,
            text=True,
            timeout=60,
        )

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
        more, job = two_attempts()
        out = self.show(more, **job)
        self.assertIn("2026-01-02 03:00:00 to 2026-01-02 04:04:00, a character is 1m00s", out)
        rows = dict(re.findall(r"(?m)^ +(\d)          ([ .br=sx*!]+)$", out))
        self.assertEqual(rows["1"].rstrip(), "." * 8 + "r" * 4 + "=" * 10 + "s" + "=" * 9 + "x")
        self.assertEqual(rows["2"].strip(), "." * 6 + "b" * 6 + "r" * 4 + "=" * 15 + "*")
        self.assertEqual(len(rows["2"]), 64)

    def page(self, more, events, **job):
        """The report that --html writes, and what the command printed."""
        file = os.path.join(os.path.dirname(self.socket), "job.html")
        printed = self.show(more, ["--html", file], events, **job)
        with open(file, encoding="utf-8") as f:
            return f.read(), printed

    def test_the_report_says_where_time_and_money_went(self):
        more, job = two_attempts()
        more["ledger"] = [
            {"attempt": n, "kind": kind, "ms": ms, "node_ms": ms, "uusd": uusd, "on_demand_uusd": 0}
            for n, kind, ms, uusd in (
                (1, "useful", 600000, 1000000),
                (1, "lost", 600000, 1000000),
                (2, "useful", 900000, 2000000),
            )
        ]
        events = [
            {
                "kind": "ended",
                "at": "2026-01-02T04:04:00.000Z",
                "text": "<script>x</script>",
                "id": 1,
            }
        ]
        page, printed = self.page(
            more,
            events,
            cost_uusd=4000000,
            on_demand_uusd=16000000,
            reclaims=1,
            attempts=2,
            name='<img src="x">',
            lost_ms=600000,
            exit_code=0,
            **job
        )
        self.assertEqual(printed, "")
        self.assertTrue(report_page.loads_nothing(page))
        self.assertNotIn("<script", page)
        self.assertNotIn("<img", page)
        text = report_page.text_of(page)
        for part in (
            "$4.00",
            "saved 75 %",
            '<img src="x">',
            "<script>x</script>",
            "belay show --html FILE 1",
        ):
            self.assertIn(part, text)
        self.assertIn(
            "It ended at 2026-01-02 04:04:00, 1h04m after its submit: succeeded, exit code 0.", text
        )
        went = report_page.rows_of(page, "Time of machines and its cost, by what the time was")
        self.assertEqual(went[1], ["useful", "25m00s", "$3.00", "75.0 %"])
        self.assertEqual(went[2], ["lost: done again", "10m00s", "$1.00", "25.0 %"])
        self.assertEqual(went[-1], ["Together", "35m00s", "$4.00", "100.0 %"])
        attempts = report_page.rows_of(page, "Attempts")
        self.assertEqual([row[0] for row in attempts[1:]], ["1", "2"])
        self.assertEqual(attempts[1][3:7], ["20m00s", "1", "10m00s", "reclaimed"])

    def test_the_report_draws_the_spans_of_each_attempt(self):
        more, job = two_attempts()
        page, _ = self.page(more, [], **job)
        lanes = [
            [
                (kind, float(x), float(width))
                for kind, x, width in re.findall(
                    r'<rect class="part-(\w+)" x="([\d.]+)" y="3" width="([\d.]+)"', lane
                )
            ]
            for lane in re.findall(r"<svg.*?</svg>", page, re.S)
        ]
        minute = 1000 / 64
        expected = [
            [("wait", 0, 8), ("restore", 8, 4), ("useful", 12, 10), ("lost", 22, 10)],
            [("wait", 32, 6), ("boot", 38, 6), ("restore", 44, 4), ("useful", 48, 16)],
        ]
        self.assertEqual(
            [[s[0] for s in lane] for lane in lanes], [[s[0] for s in lane] for lane in expected]
        )
        for lane, wanted in zip(lanes, expected):
            for (_, x, width), (_, from_minute, minutes) in zip(lane, wanted):
                self.assertAlmostEqual(x, from_minute * minute, delta=0.06)
                self.assertAlmostEqual(width, minutes * minute, delta=0.11)
        marks = re.findall(r'<rect class="part-(\w+)" x="[\d.]+" y="0"', page)
        self.assertEqual(marks, ["save", "reclaim", "end"])

    def test_the_report_has_the_progress_and_when_it_is_expected_to_end(self):
        at = "2026-01-02T03:%02d:00.000Z"
        more, job = two_attempts()
        more["checkpoints"] = [{**more["checkpoints"][0], "progress": 250}]
        job = {**job, "started_at": at % 12, "progress": 500, "progress_total": 1000}
        job["finish_by"] = "2126-01-02T05:00:00.000Z"
        table = "Progress over time, and as expected"
        page, _ = self.page(more, [], **job)
        self.assertEqual(
            report_page.rows_of(page, table)[1:],
            [
                ["2026-01-02 03:12:00", "started", "0", "0.0 %"],
                ["2026-01-02 03:22:00", "saved", "250", "25.0 %"],
                ["2026-01-02 04:04:00", "ended", "500", "50.0 %"],
                ["2126-01-02 05:00:00", "deadline", "-", "-"],
            ],
        )
        self.assertNotIn("<polygon", page)
        more["expects"] = {
            "why": "<b>it stays on spot</b>",
            "done_at": "2126-01-02T05:10:00.000Z",
            "late_at": "2126-01-02T05:50:00.000Z",
        }
        page, _ = self.page(more, [], **{**job, "state": "running", "ended_at": None})
        self.assertEqual(
            [row[1:] for row in report_page.rows_of(page, table)[3:]],
            [
                ["now", "500", "50.0 %"],
                ["expected end, median", "1000", "100.0 %"],
                ["expected end, 95 of 100", "1000", "100.0 %"],
                ["deadline", "-", "-"],
            ],
        )
        self.assertEqual(page.count("<polygon"), 1)
        text = report_page.text_of(page)
        self.assertIn("10m00s before the expected end.", text)
        self.assertIn("<b>it stays on spot</b>", text)
        for odd in ({"progress_total": 0}, {"progress_total": None}, {"started_at": None}):
            page, _ = self.page(more, [], **{**job, **odd})
            self.assertNotIn(table, page)

    def test_the_report_has_what_the_job_used(self):
        more, job = two_attempts()
        times = [1767323520000 + 60000 * k for k in (0, 1, 2, 30)]
        gpu = {"busy_percent": [0, 50, 100, 50], "memory_bytes": [1 << 30] * 4}
        self.load = {
            **self.load,
            "at_ms": times,
            "cpu_milli": [1000, 2000, 3000, 2000],
            "memory_bytes": [1 << 20] * 3,  # one too few: the last moment is left out
            "gpus": [{"gpu": "<i>", "index": 3, "at_ms": times, **gpu}],
        }
        page, _ = self.page(more, [], **job)
        self.assertEqual(
            report_page.rows_of(page, "What it used, over all its measured time")[1:],
            [
                ["CPUs used", "2.00", "3.00", "2.00"],
                ["Memory", "1.0 MiB", "1.0 MiB", "1.0 MiB"],
                ["Use of GPU 3", "50 %", "100 %", "50 %"],
                ["Memory of GPU 3", "1.0 GiB", "1.0 GiB", "1.0 GiB"],
            ],
        )
        samples = report_page.rows_of(page, "What it used at times")
        self.assertEqual(samples[1][1:], ["1.00", "1.0 MiB", "0 %", "1.0 GiB"])
        self.assertEqual(samples[7][1:], ["-"] * 4)
        lines = re.findall(r'class="chart-line" d="([^"]+)"', page)
        self.assertEqual([line.count("M") for line in lines], [2, 1, 2, 2])
        self.assertEqual(lines[0], "M0.0 66.7L32.3 33.3L64.5 0.0M967.7 33.3")
        self.load = {**self.load, "at_ms": 7, "gpus": {}}
        page, _ = self.page(more, [], **job)
        self.assertIn("Nothing was measured", page)

    def test_a_report_of_a_job_that_waits_has_no_timeline(self):
        page, _ = self.page(None, [])
        self.assertNotIn("<svg", page)
        self.assertIn("It has not started yet.", page)
        self.assertIn("It has not ended: it is pending.", page)

    def test_a_report_is_of_the_whole_job_and_needs_a_file(self):
        self.show()
        for words, part in (
            (["--html", "x.html", "--events"], "exclude each other"),
            (["--html", "/nonexistent/x.html"], "/nonexistent"),
        ):
            with self.subTest(words):
                done = self.run_show(*words)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(part, done.stderr)


if __name__ == "__main__":
    unittest.main()
