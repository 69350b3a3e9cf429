# SPDX-License-Identifier: Apache-2.0
"""Every page of the web console, with data of a real cluster: readable for all (axe-core), at the
width of a phone and of a laptop, light and dark, and without an error of the browser; also in a
window of 4K nothing sticks out and no line of text is too long to read.
"""

import json
import os
import subprocess
import unittest

import browser
import console
from cluster import BUILD, Cluster

WIDE, NARROW, HUGE = (1280, 900), (360, 800), (3840, 2160)
EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/simulate")
# Paragraphs with lines of more than 1,000 px: some 130 characters.
LONG_LINES = """return [...document.querySelectorAll('main p')].filter((e) => e.checkVisibility())
    .filter((e) => { const r = document.createRange(); r.selectNodeContents(e);
      return [...r.getClientRects()].some((box) => box.width > 1000); })
    .map((e) => e.className + ': ' + e.textContent.slice(0, 60))"""
COLOURS = ["color-contrast", "link-in-text-block"]  # all that differs in the other theme
# In a narrow window the menu and tables are laid out anew; these have all that there is of it.
LAID_OUT_ANEW = ("sign-in", "overview", "jobs", "jobs-train", "submit", "cron-nightly-eval")


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster().__enter__()
        cls.addClassCleanup(lambda: cls.cluster.__exit__(None, None, None))
        cls.numbers = cls.cluster.story()
        cls.cluster.fill_weeks()
        cls.b = browser.Browser(cls.cluster.dir, cls.cluster.url()).__enter__()
        cls.addClassCleanup(cls.b.quit)

    def check_looks(self, what):
        """Accessible in both themes and at both widths, and nothing sticks out of the window."""
        self.check_axe(what, WIDE, dark=False)
        self.check_axe(what, WIDE, dark=True, rules=COLOURS)
        self.b.theme(False)
        self.b.resize(*HUGE)
        with self.subTest(page=what, width=HUGE[0]):
            self.assertEqual(self.b.overflow(), [])
            self.assertEqual(self.b.script(LONG_LINES), [])
        self.b.resize(*NARROW)
        with self.subTest(page=what, width=NARROW[0]):
            self.assertEqual(self.b.overflow(), [])
        if what in LAID_OUT_ANEW:
            self.check_axe(what, NARROW, dark=False)

    def check_axe(self, what, size, dark, rules=None):
        self.b.resize(*size)
        self.b.theme(dark)
        with self.subTest(page=what, width=size[0], dark=dark):
            self.assertEqual(self.b.overflow(), [])
            self.assertEqual(self.b.axe(rules=rules), [])

    def test_pages(self):
        self.b.open("/")
        self.b.driver.delete_all_cookies()  # of another test's session
        self.b.open("/")
        self.b.one("input[name=token]", "the sign-in, which / shows to strangers")
        self.b.problems()  # of the page whose session ended meanwhile
        self.check_looks("sign-in")
        console.sign_in(self.b, self.cluster.token("ada"))
        for name, path in console.pages(self.numbers):
            with self.subTest(page=name):
                console.show(self.b, path)
                self.assertIn("belay", self.b.driver.title)
                self.check_looks(name)
                self.b.check()
        # A page that there is not, and a job that there is not, say so.
        for path, text in (
            ("/console/nowhere", "no such page"),
            ("/console/jobs/4711", "there is no job 4711"),
        ):
            with self.subTest(page=path):
                self.b.open(path)
                self.b.wait_text(text)
                self.check_looks(path)
                self.b.problems()  # the browser logs the 404

    def offline(self, is_off):
        speed = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self.b.command("Network.enable")
        self.b.command("Network.emulateNetworkConditions", offline=is_off, **speed)

    def test_failures_say_what_helps(self):
        console.sign_in(self.b, self.cluster.token("ada"), "/console/racks")
        # What is not there or is refused is not tried again; the page has its title.
        self.b.open("/console/jobs/4711")
        self.b.wait_text("there is no job 4711", "main [role=alert]")
        self.assertEqual(self.b.text("main h1"), "Job 4711")
        self.assertNotIn("Try again", self.b.text("main"))
        # Without belayd a page says so, and has its data when belayd is back.
        console.show(self.b, "/console/racks")
        self.addCleanup(self.offline, False)
        self.offline(True)
        self.b.script("document.querySelector('a[href=\"/console/cost\"]').click()")
        self.b.wait_text("belayd cannot be reached", "main [role=alert]")
        self.b.wait_text("Try again", "main")
        self.offline(False)
        self.b.wait("!document.querySelector('main [role=alert]')", "that it is read again")
        self.b.wait_text("Lost to reclaims", "main")
        self.b.problems()  # the browser logs the failed calls

    def report(self, name, content=None):
        """Chooses a file on the page of reports; returns its path."""
        path = os.path.join(self.cluster.dir, name)
        if content is not None:
            with open(path, "w") as f:
                f.write(content)
        console.show(self.b, "/console/report")
        self.b.one("input[type=file]").send_keys(path)
        return path

    def belay(self, *words):
        belay = os.path.abspath(BUILD + "/cli/belay")
        out = subprocess.run([belay, *words], cwd=EXAMPLE, check=True, stdout=subprocess.PIPE)
        return out.stdout.decode()

    def test_report_files(self):
        """Those of the command line are drawn; nothing in a file runs, whoever wrote it."""
        console.sign_in(self.b, self.cluster.token("ada"), "/console/report")
        page = os.path.join(self.cluster.dir, "simulate.html")
        words = ["--jobs=jobs.csv", "--days=3", "--pools=on-demand.yaml", "--pools=pools.yaml"]
        words += ["--trace=traces", "--owned=base=2,cpus=4,memory=16G,gpus=1", "--html=" + page]
        self.belay("simulate", *words)
        self.report("simulate.html")
        for text in ("on-demand.yaml", "Pools", "Jobs waiting", "Its useful work on-demand"):
            self.b.wait_text(text, "main")
        self.b.wait("document.querySelectorAll('.chart canvas').length === 6", "its charts")
        self.check_looks("report-simulate")
        words = ["--work=4h", "-c4", "--pools=on-demand.yaml", "--json"]
        self.report("forecast.json", self.belay("cost", "forecast", *words))
        self.b.wait_text("all, as belay chooses", "main")
        self.check_looks("report-forecast")
        evil = "<img src=x onerror=alert(1)></script><script>alert(1)</script>"
        simulation = {"pools_file": evil, "notes": [evil], "pools": [{"pool": evil}]}
        data = json.dumps({"simulations": [simulation]})
        self.report("evil.json", data)
        self.b.wait_text("onerror=alert(1)", "main h2")
        data = data.replace("<", "\\u003c")
        self.report("evil.html", evil + '<script type="application/json" id="data">%s' % data)
        self.b.wait_text("onerror=alert(1)", "main h2")
        self.b.check()
        self.report("other.html", evil)
        self.b.wait_text("no figures of belay simulate", "main [role=alert]")


if __name__ == "__main__":
    browser.need()
    if not console.has_console(BUILD + "/scheduler/belayd"):
        browser.npm.skip("belayd was built without the web console")
    unittest.main(verbosity=2)
