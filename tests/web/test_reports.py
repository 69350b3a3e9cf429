# SPDX-License-Identifier: Apache-2.0
"""The HTML reports in Chromium: nothing runs off the page, on screens and on paper; without
JavaScript their figures are there; with it each plot is drawn."""

import base64
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
    "submitted_at": AT % 0, "ended_at": AT % 59, "team": "nlp",
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
    "checkpoints": [{"attempt": 1, "sequence": 1, "saved_at": AT % 22, "bytes": 5 << 30}],
    "ledger": [{"attempt": 1, "kind": k, "ms": 600000, "uusd": 2000000} for k in ("useful", "lost")],
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


def make(folder):
    """The pages, by name."""
    pages = {
        name: os.path.join(folder, name + ".html") for name in ("simulate", "breakeven", "job")
    }
    words = ["--jobs=jobs.csv", "--days=10", "--trace=traces"]
    words += ["--pools=pools.yaml", "--pools=on-demand.yaml"]
    words += ["--owned=base=2,cpus=4,memory=16G,gpus=1", "--html=" + pages["simulate"]]
    run("simulate", *words, cwd="simulate")
    run("breakeven", "h100.yaml", "--html=" + pages["breakeven"], cwd="breakeven")
    with Canned(os.path.join(folder, "s"), Canned.Answer) as canned:
        canned.replies = {
            "/api/v1/jobs/1": DETAIL,
            "/api/v1/jobs/1/events?after=0": {"events": EVENTS, "last": 30, "state": "ended"},
            "/api/v1/jobs/1/events": {"events": [], "last": 30, "state": "ended"},
        }
        run("show", "--html=" + pages["job"], "1", BELAY_SOCKET=os.path.join(folder, "s"))
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
            self.assertEqual(len(titles) > 0, name != "job")

        self.each(check)

    def test_without_javascript_all_figures_are_there(self):
        expected = {
            "simulate": "on-demand.yaml",
            "breakeven": "Hardware and power alone",
            "job": "lost: done again",
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

    def test_a_job_prints_on_two_pages(self):
        self.b.open("file://" + self.pages["job"])
        pdf = base64.b64decode(
            self.b.command("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"]
        )
        self.assertIn(len(re.findall(rb"/Type\s*/Page\b", pdf)), (1, 2))


if __name__ == "__main__":
    browser.need()
    unittest.main()
