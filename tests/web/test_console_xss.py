# SPDX-License-Identifier: Apache-2.0
"""Markup and code in every text that a user, a job or a node can write is shown by the web console
as text: nothing of it runs, nothing of it becomes an element. Nodes are played by the test, so that
they say what no agent says.
"""

import os
import sys
import unittest
import urllib.parse

import browser
import console
from selenium.webdriver.common.by import By

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "scheduler"))
from belayd import BUILD, Belayd, Node  # noqa: E402

CONFIG = """cluster: lab
listen: 127.0.0.1:0
visibility: all
pools: {base: {}, spare: {}}
users: {ada: admin}
budgets: {all: {usd_per_month: 10}}
"""
# At most 63 bytes each, the longest name of a job. xss() is what browser.py reports.
CORPUS = [
    "<xss-probe></xss-probe><img src=x onerror=xss(1)>",
    "<script>xss(2)</script>",
    "\"><svg onload=xss(3)><xss-probe a='",
    "'><iframe srcdoc='<script>parent.xss(4)</script>'>",
    "</textarea></script></style><xss-probe>",
    "javascript:xss(5)",
    "<a href=javascript:xss(6) id=app>x</a>",
    "{{constructor.constructor('xss(7)')()}}",
    "${xss(8)}",
    "&lt;img src=x onerror=xss(9)&gt;<!--",
    "<base href=//other.example><meta http-equiv=refresh>",
    "<math><mtext><option><xss-probe onclick=xss(10)>",
]
# A terminal's links, titles and colours, whole and cut off, and bytes that are no text.
LOG = (
    "\x1b]8;;javascript:xss(11)\x1b\\link\x1b]8;;\x1b\\\n"
    '\x1b]8;;https://x.example/"onclick=xss(12)\x07link\x1b]8;;\x07\n'
    "\x1b]0;<xss-probe>\x07title\n"
    "\x1b[31m<img src=x onerror=xss(13)>\x1b[0m<xss-probe>in colour</xss-probe>\n"
    "\x1b[38;2;1;2;3;url(javascript:xss(14))mbad\x1b[0m\n"
    "\x1b[1;<script>xss(15)</script>m\n\x1b[\n\x1b]8;;"
).encode() + b"\xff\xfe<xss-probe>\n"
# What no page of the console has by itself.
FOREIGN = (
    "xss-probe, iframe, object, embed, base, math, script:not([src]), meta[http-equiv],"
    " [onerror], [onload], [onclick], [srcdoc], a[href^='javascript' i], a[href^='data' i], form[action]"
)


class Injected(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.d = Belayd(CONFIG).__enter__()
        cls.addClassCleanup(lambda: cls.d.__exit__(None, None, None))
        cls.token = cls.d.token(kind="api", user="ada")
        cls.fill()
        cls.b = browser.Browser(cls.d.dir, cls.d.url).__enter__()
        cls.addClassCleanup(cls.b.quit)
        console.sign_in(cls.b, cls.token)

    # ---- what is injected ----

    @classmethod
    def post(cls, path, body=None):
        status, answer, _ = cls.d.call("POST", "/api/v1" + path, body or {}, token=cls.token)
        if status >= 300:
            raise AssertionError("POST %s %s: %d %s" % (path, body, status, answer))
        return answer

    @classmethod
    def job(cls, text, **more):
        spec = {
            "name": text,
            "script": "#!/bin/sh\n# %s\n" % text,
            "args": [text],
            "env": {"X": text},
            "cwd": "/" + text,
            "labels": {"exp": text, "project": "x"},
            "url": "https://x.example/" + urllib.parse.quote(text, safe="<>='\"()/;&:"),
            "cpus": 1,
        }
        return cls.post("/jobs", {**spec, **more})["id"]

    @classmethod
    def fill(cls):
        cls.jobs = [cls.job(text, hold=True) for text in CORPUS]
        cls.array = cls.job(CORPUS[0], array="0-2", hold=True)
        for i, text in enumerate(CORPUS):
            job = {"name": text, "script": "#!/bin/sh\n", "cwd": "/", "labels": {"exp": text}}
            entry = {"name": "c%d" % i, "schedule": "0 3 * * *", "job": job}
            cls.cron = cls.post("/crons", entry)["id"]
        text = CORPUS[0]
        node = Node(cls.d, host="n", cpus=8, criu_text=text, gpu_model="<xss-probe>")
        cls.running = [cls.job(text, cpus=1), cls.job(CORPUS[3], cpus=1)]
        for job in cls.running:
            node.begin(job)
            status = node.d.call(
                "POST", "/agent/v1/output/%d/1?offset=0" % job, LOG, cert=node.cert
            )[0]
            if status >= 300:
                raise AssertionError("the log was not taken: %d" % status)
        node.sync(criu_text=CORPUS[2])
        node.attempts[1].update(
            phase="ended", end="failed", exit_code=3, text=text, output_bytes=len(LOG)
        )
        node.sync()
        cls.node = node.number
        node.sync(fault=text)  # drains the node, with this text as the reason

    # ---- what comes of it ----

    def check_nothing_ran(self, where):
        self.b.check()
        found = self.b.script(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.outerHTML.slice(0, 200))",
            FOREIGN,
        )
        self.assertEqual(found, [], where)

    def open_all(self):
        """Opens what is folded, and each tab in turn; calls nothing of the cluster."""
        self.b.script("for (const d of document.querySelectorAll('main details')) d.open = true")
        for i in range(len(self.b.all("main [role=tab]"))):
            self.b.click(self.b.all("main [role=tab]")[i])
            console.settled(self.b)
            yield i

    def test_texts_of_jobs_crons_logs_and_nodes(self):
        numbers = dict.fromkeys(
            {name for names in console.SHOWN.values() for name in names}, self.running[1]
        )
        numbers.update(train=self.running[0], array=self.array, node=self.node, pool="base")
        numbers["nightly-eval"] = self.cron
        seen = ""
        paths = [path for _, path in console.pages(numbers)]
        paths += ["/console/jobs?state=all", "/console/jobs/%d" % self.jobs[2]]
        for path in dict.fromkeys(paths):
            with self.subTest(page=path):
                console.show(self.b, path)
                self.check_nothing_ran(path)
                seen += self.b.text()
                for tab in self.open_all():
                    self.check_nothing_ran("tab %d of %s" % (tab, path))
                    seen += self.b.text()
        for text in CORPUS:
            self.assertIn(text, seen, "nothing shows this text, so its check says nothing")

    def test_texts_of_the_address(self):
        for text in CORPUS:
            quoted = urllib.parse.quote(text, safe="")
            for path in (
                "/console/jobs?state=all&name=%s&user=%s&label=%s&sort=%s" % ((quoted,) * 4),
                "/console/jobs/" + quoted,
                "/console/" + quoted,
                "/console/sign-in?next=%s#link=%s" % (quoted, quoted),
                "/console/jobs#" + quoted,
            ):
                with self.subTest(path=path):
                    self.b.open(path)
                    self.b.wait("document.querySelector('main h1, main [role=alert]')", "a page")
                    self.b.wait("!document.querySelector('.loading')", "its data")
                    self.check_address(path)
        # A sign-in leads to no other server.
        self.assertNotIn("other.example", self.b.driver.current_url)

    def check_address(self, path):
        """Errors that belayd answers with are allowed here, and only they."""
        self.b.allowed += ["Failed to load resource: the server responded with a status of 40"]
        try:
            self.check_nothing_ran(path)
        finally:
            self.b.allowed.pop()

    def test_texts_that_are_typed(self):
        console.show(self.b, "/console/jobs?state=all")
        for text in CORPUS[:4]:
            field = self.b.one("input[name=name]", "the filter by name")
            field.clear()
            field.send_keys(text + "\n")
            self.b.wait("location.search.includes('name=')", "the filter in the address")
            console.settled(self.b)
            self.check_address("the filter %r" % text)
        field = self.b.driver.find_element(By.CSS_SELECTOR, "input[name=what]")
        field.send_keys(CORPUS[0] + "\n")
        self.b.wait("location.search.includes('xss')", "the search")
        console.settled(self.b)
        self.check_address("the search")


if __name__ == "__main__":
    browser.need()
    if not console.has_console(BUILD + "/scheduler/belayd"):
        browser.npm.skip("belayd was built without the web console")
    unittest.main(verbosity=2)
