# SPDX-License-Identifier: Apache-2.0
"""The HTML reports in Chromium: nothing runs off the page, on screens and on paper; without
JavaScript their figures are there; with it each plot is drawn."""

import base64
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import browser

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "cli"))
from canned import Canned  # noqa: E402

BELAY = os.path.join(os.path.abspath(os.environ.get("BELAY_BUILD", "build")), "cli", "belay")
PAGES = ("simulate", "breakeven", "job", "running", "weekly", "mail")
PLOTTED = ("simulate", "breakeven")  # by a script; the others have drawings that need none
WIDTHS = (420, 768, 1280)
# Tables that are wider than their box scroll in it: on these pages none has to.
TOO_WIDE = """return [...document.querySelectorAll('.table-box')]
    .filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1)
    .map((e) => e.querySelector('caption').textContent + ' ' + e.scrollWidth)"""

LONG = "a name without any place to break it " + 60 * "x"
AT = "2026-01-02T03:%02d:00.000Z"
JOB = {
    "id": 1, "ref": "1", "name": LONG, "user": "ann", "state": "ended", "end": "succeeded",
    "exit_code": 0, "cpus": 4, "nodes": 1, "gpus": 1, "market": "spot", "attempts": 2,
    "reclaims": 1, "lost_ms": 600000, "cost_uusd": 4000000, "on_demand_uusd": 16000000,
    "submitted_at": AT % 0, "started_at": AT % 12, "ended_at": AT % 59, "team": "nlp",
    "progress": 3000, "progress_total": 3000, "finish_by": "2026-01-02T04:30:00.000Z",
}  # fmt: skip
ATTEMPT = {"rank": 0, "node": 1, "state": "ended", "checkpoints": 1, "restart": None}
DETAIL = {
    "job": JOB,
    "attempts": [
        {**ATTEMPT, "attempt": 1, "assigned_at": AT % 8, "started_at": AT % 12,
         "ended_at": AT % 32, "end": "reclaimed", "text": LONG},
        {**ATTEMPT, "attempt": 2, "assigned_at": AT % 44, "started_at": AT % 48,
         "ended_at": AT % 59, "end": "succeeded", "restart": {"boot_ms": 300000, "lost_ms": 9000}},
    ],
    "checkpoints": [{"attempt": 1, "sequence": 1, "saved_at": AT % 22, "bytes": 5 << 30,
                     "progress": 800}],
    "ledger": [{"attempt": 1, "kind": k, "ms": 600000, "uusd": 2000000} for k in ("useful", "lost")],
}  # fmt: skip
RUNNING = {
    **DETAIL,
    "job": {**JOB, "state": "running", "end": None, "ended_at": None, "progress": 1200},
    "expects": {"why": LONG, "done_at": "2036-01-02T03:00:00.000Z",
                "late_at": "2036-02-02T03:00:00.000Z", "cost_uusd": 7},
}  # fmt: skip
BEGIN_MS = 1767323520000  # AT % 12
SPANS = [BEGIN_MS + k * 60000 for k in [*range(20), *range(32, 47)]]  # a gap between the attempts


def load_of(value, n=len(SPANS)):
    return [value + value * k // n for k in range(n)]


LOAD = {
    "job": 1, "ref": "1", "rank": 0, "span_ms": 60000, "at_ms": SPANS,
    "cpu_milli": load_of(1700), "memory_bytes": load_of(9 << 30),
    "gpus": [{"gpu": "GPU-%d" % g, "index": g, "at_ms": SPANS, "busy_percent": load_of(40 + g),
              "memory_bytes": load_of(60 << 30)} for g in range(2)],
}  # fmt: skip
SUM = {"uusd": 7000000, "on_demand_uusd": 9000000, "useful_ms": 3, "total_ms": 4, "jobs": 7,
       "succeeded": 5, "spent_uusd": {"lost": 1000000, "restore": 9, "idle": 99}}  # fmt: skip
DAYS = ["2025-%02d-%02d" % (11 + (d > 2), 28 + d if d < 3 else d - 2) for d in range(24)]
COST = {"lines": [{**SUM, "key": LONG}, {**SUM, "key": "b"}], "total": SUM}
WEEK = {
    "/api/v1/cost": COST,
    "/api/v1/cost?by=day": {"lines": [{**SUM, "key": day} for day in DAYS], "total": SUM},
    "/api/v1/cost/jobs": {"jobs": [JOB] * 5},
    "/api/v1/budgets": {"budgets": [{"name": LONG, "period": "month", "spent_uusd": 1000000,
        "aside_uusd": 2, "left_uusd": 3, "cap_uusd": 4, "state": "open"}]},
    "/api/v1/advice": {"items": [{"job": 1, "ref": "1", "user": "ann", "waste_uusd_per_hour": 9,
        "text": LONG, "remedy": LONG}]},
}  # fmt: skip
EVENTS = [{"id": i, "kind": "started", "at": AT % i, "text": LONG} for i in range(30)]


def run(*words, cwd=None, **env):
    subprocess.run(
        [BELAY, *words],
        check=True,
        stdout=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        timeout=120,
        cwd=cwd and os.path.join(ROOT, "examples", cwd),
        env={**os.environ, **env},
    )


class ByPrefix(dict):
    """Replies by the longest path that a request begins with."""

    def __contains__(self, path):
        return any(path.startswith(known) for known in self)

    def __getitem__(self, path):
        return super().__getitem__(max((k for k in self if path.startswith(k)), key=len))


class Mailed(Canned.Answer):
    """Keeps what is to be mailed."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.mailed = body["html"]
        self.server.replies["/api/v1/cost/report"] = {"told": body["mail"]}
        self.do_GET()


def make_weekly(folder, pages):
    socket = os.path.join(folder, "w")
    with Canned(socket, Mailed) as canned:
        canned.replies = ByPrefix(WEEK)
        words = ["cost", "--weekly-report", "--week", "2025-12-15"]
        run(*words, "--html=" + pages["weekly"], BELAY_SOCKET=socket)
        run(*words, "--mail=boss@lab.example", BELAY_SOCKET=socket)
        with open(pages["mail"], "w", encoding="utf-8") as f:
            f.write(canned.mailed)


def make(folder):
    """The pages, by name."""
    pages = {name: os.path.join(folder, name + ".html") for name in PAGES}
    words = ["--jobs=jobs.csv", "--days=10", "--trace=traces"]
    words += ["--pools=pools.yaml", "--pools=on-demand.yaml"]
    words += ["--owned=base=2,cpus=4,memory=16G,gpus=1", "--html=" + pages["simulate"]]
    run("simulate", *words, cwd="simulate")
    run("breakeven", "h100.yaml", "--html=" + pages["breakeven"], cwd="breakeven")
    with Canned(os.path.join(folder, "s"), Canned.Answer) as canned:
        for name, detail in (("job", DETAIL), ("running", RUNNING)):
            canned.replies = {
                "/api/v1/jobs/1": detail,
                "/api/v1/jobs/1/load": LOAD,
                "/api/v1/jobs/1/events?after=0": {"events": EVENTS, "last": 30, "state": "ended"},
                "/api/v1/jobs/1/events": {"events": [], "last": 30, "state": "ended"},
            }
            run("show", "--html=" + pages[name], "1", BELAY_SOCKET=os.path.join(folder, "s"))
    make_weekly(folder, pages)
    return pages


class Reports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="belay-reports.")
        cls.addClassCleanup(cls.directory.cleanup)
        cls.pages = make(cls.directory.name)
        cls.b = browser.Browser(cls.directory.name, "file:///").__enter__()
        cls.addClassCleanup(cls.b.quit)

    def each(self, check):
        for name, path in self.pages.items():
            with self.subTest(name):
                self.b.open("file://" + path)
                check(name)

    def scripts(self, are_off):
        self.b.command("Emulation.setScriptExecutionDisabled", value=are_off)

    def test_nothing_runs_off_the_page(self):
        def check(name):
            for width in WIDTHS:
                self.b.resize(width)
                self.assertEqual(self.b.overflow(), [], (name, width))
                self.assertEqual(self.b.script(TOO_WIDE), [], (name, width))
                self.assertEqual(self.b.problems(), [], (name, width))

        self.each(check)

    def test_each_plot_is_drawn_in_its_place(self):
        def check(name):
            self.b.resize(1280)
            self.b.wait(
                "[...document.querySelectorAll('.plot-place')].every((e) => e.querySelector('canvas'))",
                "the plots of " + name,
            )
            titles = [e.text for e in self.b.all(".dygraph-xlabel, .dygraph-ylabel")]
            self.assertEqual(len(titles), 2 * len(self.b.all(".plot-place")))
            self.assertTrue(all(titles), titles)
            self.assertEqual(len(titles) > 0, name in PLOTTED)
            self.assertEqual(len(self.b.all("script")) > 0, name in PLOTTED)

        self.each(check)

    def test_without_javascript_all_figures_are_there(self):
        expected = {
            "simulate": "on-demand.yaml",
            "breakeven": "Hardware and power alone",
            "job": "Memory of GPU 1",
            "running": "expected end, 95 of 100",
            "weekly": "What is left of each",
            "mail": "What is left of each",
        }

        def check(name):
            self.assertIn(expected[name], self.b.text("main"))
            self.assertGreater(len(self.b.all("main table")), 3)
            self.assertEqual(self.b.all("canvas"), [])

        self.scripts(True)
        self.addCleanup(self.scripts, False)
        self.each(check)

    def test_no_reader_is_left_out(self):
        def check(name):
            for dark in (False, True):
                self.b.theme(dark)
                self.assertEqual(self.b.axe(), [], (name, dark))

        self.addCleanup(self.b.theme, False)
        self.each(check)

    def test_paper_is_wide_enough(self):
        """A4 with margins of a centimetre is 718 CSS pixels wide."""

        def check(name):
            self.b.resize(718)
            self.assertEqual(self.b.overflow(), [], name)
            self.assertEqual(self.b.script(TOO_WIDE), [], name)

        self.b.command("Emulation.setEmulatedMedia", media="print")
        self.addCleanup(self.b.command, "Emulation.setEmulatedMedia", media="")
        self.each(check)

    def test_a_job_is_drawn_with_its_forecast_and_its_use(self):
        def count(name, selector):
            self.b.open("file://" + self.pages[name])
            return len(self.b.all(selector))

        for name, bands in (("job", 0), ("running", 1)):
            self.assertEqual(count(name, "polygon.chart-band"), bands)
            # progress, processors, memory, and use and memory of two GPUs
            self.assertEqual(count(name, ".chart svg"), 7)
            self.assertEqual(count(name, ".chart-limit"), 1)
        box = self.b.script(
            "const r = document.querySelector('polygon').getBoundingClientRect();"
            " return [r.width, r.height]"
        )
        self.assertTrue(all(length > 20 for length in box), box)
        # where nothing was measured the line stops
        paths = [e.get_attribute("d") for e in self.b.all(".charts .chart-line")]
        self.assertEqual({path.count("M") for path in paths}, {2})

    def test_a_job_prints_on_two_pages(self):
        self.b.open("file://" + self.pages["job"])
        pdf = base64.b64decode(
            self.b.command("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"]
        )
        self.assertIn(len(re.findall(rb"/Type\s*/Page\b", pdf)), (1, 2))


if __name__ == "__main__":
    browser.need()
    unittest.main()
