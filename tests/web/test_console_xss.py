# SPDX-License-Identifier: Apache-2.0
"""Markup and code in every text that a user, a job or a node can write is shown by the web console
as text: nothing of it runs, nothing of it becomes an element. Nodes are played by the test, so that
they say what no agent says. writable.py has the strings of the API.
"""

import os
import subprocess
import sys
import unittest
import urllib.parse

import browser
import console
import writable
from selenium.webdriver.common.by import By

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "scheduler"))
from belayd import BUILD, Belayd, Node  # noqa: E402

CONFIG = """cluster: lab
listen: 127.0.0.1:0
visibility: all
pools: {base: {resources: {r: 4}, features: [podman, ssd]}, spare: {}}
users: {ada: admin}
teams: {t: {users: [ada]}}
qos: {q: {}}
licences: {l: 2}
windows: {night: {days: mon-fri, from: "22:00", to: "06:00"}}
calendars: {days: [2026-12-25]}
digest: {at: "07:30", tz: UTC}
budgets:
  all: {usd_per_month: 10}
  some:
    usd_per_month: 10
    match:
      user: "<img src=x onerror=xss(16)>"
      team: "<img src=x onerror=xss(17)>"
      labels: {project: "<img src=x onerror=xss(18)>"}
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
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.d = Belayd(CONFIG).__enter__()
        cls.addClassCleanup(lambda: cls.d.__exit__(None, None, None))
        cls.token = cls.d.token(kind="api", user="ada")
        cls.fill()
        cls.try_all()
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

    # ---- every string that can be written ----

    @classmethod
    def try_all(cls):
        """Writes texts of an attacker to every string of the API. Answers are kept in cls.tried:
        name -> [(text, status, answer)], what was accepted in cls.accepted: name -> texts; and the
        answers to valid requests in cls.valid."""
        document = cls.d.call("GET", "/api/v1/openapi.json", token=cls.token)[1]
        cls.strings = writable.strings(document)
        cls.tried, cls.accepted, cls.valid, cls.marked, n = {}, {}, {}, [], 100
        cls.numbers_for_writing()
        for name, path in cls.strings.items():
            schema, _, place = name.partition(".")
            if name in writable.KEPT_OUT:
                continue
            begins = {"", writable.BEGINS.get(name, "")}
            for form in (begin + form for begin in sorted(begins) for form in writable.FORMS):
                n += 1
                text = form % n
                for body in writable.requests(n, cls.undisturbed).get(schema, ()):
                    changed = writable.replaced(body, place, text)
                    if changed:
                        cls.try_one(name, path, body, changed, text)
                        break

    @classmethod
    def numbers_for_writing(cls):
        """What the paths of operations are about."""
        cls.post("/secrets", {"name": "s", "value": "12345678"})
        cron = {
            "name": "edited",
            "schedule": "0 3 * * *",
            "job": {"script": "#!/bin/sh\n", "cwd": "/"},
        }
        other = Node(cls.d, host="m", cpus=8)
        alive = cls.job("alive", nodelist="m")
        other.begin(alive)
        cls.of_schema = {
            "JobChange": cls.job("changed", hold=True),
            "cancel": cls.job("cancelled", hold=True, array="0-1"),
            "CronChange": cls.post("/crons", cron)["id"],
            "run_cron_dates": cls.cron,
            "drain_node": Node(cls.d, host="o").number,
            "exec": alive,
            "compared": cls.drilled(other),
        }

    @classmethod
    def drilled(cls, node):
        """A job of this node that has passed a drill; cls.undisturbed: one without, of the same
        script."""
        spec = {
            "script": "#!/bin/sh\n",
            "cwd": "/",
            "nodelist": "m",
            "checkpoint": {"method": "coop"},
        }
        ended = {"phase": "ended", "exit_code": 0}
        cls.undisturbed, job = cls.post("/jobs", spec)["id"], cls.post("/jobs", spec)["id"]
        for one in (cls.undisturbed, job):
            node.begin(one)
        *others, quiet, first = node.attempts
        quiet.update(ended, end="succeeded")
        node.sync()
        cls.post("/jobs/%d/drill" % job)
        saved = {"sequence": 1, "bytes": 1, "stored_bytes": 1, "took_ms": 5, "pause_ms": 1}
        saved.update(saved_at=1, progress=5, total=10, cause="drill")
        first["checkpoints"] = [saved]
        node.sync()
        node.sync(attempts=[*others, {**first, **ended, "end": "drilled"}])
        second = {"job": job, "attempt": 2, "phase": "running", "started_at": 1, "done": 6}
        second.update(restored_attempt=1, restored_sequence=1, restored_progress=5)
        node.attempts = [*others, second]
        node.sync()
        node.sync(attempts=[*others, {**second, **ended, "end": "succeeded"}])
        node.attempts = others
        return job

    @classmethod
    def try_one(cls, name, path, body, changed, text):
        schema = name.split(".")[0]
        path = path.replace("{id}", str(cls.of_schema.get(schema)))
        status, answer, _ = cls.d.call("POST", path, changed, token=cls.token)
        if status < 300:
            cls.accepted.setdefault(name, []).append(text)
            if schema == "JobSpec":
                cls.marked.append(answer["id"])
        if name not in cls.valid:
            cls.valid[name] = cls.d.call("POST", path, body, token=cls.token)[:2]
        cls.tried.setdefault(name, []).append((text, status, answer))

    def test_every_writable_string_is_known(self):
        """A new string is tried by a request of writable.py, or kept out for a reason there."""
        self.assertGreater(len(self.strings), 80)
        self.assertEqual(set(self.strings) - set(self.tried) - set(writable.KEPT_OUT), set())
        self.assertEqual(set(writable.KEPT_OUT) - set(self.strings), set())
        self.assertEqual(set(writable.BEGINS) - set(self.strings), set())

    def test_what_is_not_shown_is_refused(self):
        """Refused: for the text, since the same request without it is answered otherwise."""
        self.assertEqual(set(self.accepted), set(writable.ACCEPTED))
        refused = {name: tries for name, tries in self.tried.items() if name not in self.accepted}
        for name, tries in refused.items():
            for text, status, answer in tries:
                with self.subTest(name=name, text=text):
                    self.assertIn(status, (400, 404), answer)
                    self.assertNotEqual((status, answer), self.valid[name])

    def test_names_of_the_configuration_are_refused(self):
        for where, text in writable.NAMES.items():
            for name in ("name", *writable.FORMS):
                with self.subTest(where=where, name=name):
                    path = os.path.join(self.d.dir, "named.yaml")
                    with open(path, "w") as f:
                        f.write(writable.configuration(text, name))
                    state = os.path.join(self.d.dir, "named")
                    checked = subprocess.run(
                        [
                            BUILD + "/scheduler/belayd",
                            "--check",
                            "--state",
                            state,
                            "--config",
                            path,
                        ],
                        capture_output=True,
                        text=True,
                        timeout=60,
                    )
                    if name == "name":
                        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
                    else:
                        self.assertEqual(checked.returncode, 2, checked.stdout)
                        self.assertIn(name, checked.stderr)

    # ---- what comes of it ----

    def check_nothing_ran(self, where):
        self.b.check()
        found = self.b.script(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.outerHTML.slice(0, 200))",
            FOREIGN,
        )
        self.assertEqual(found, [], where)

    def links(self):
        """Their addresses, as they were written."""
        find = "return [...document.querySelectorAll('main a')].map((a) => a.getAttribute('href'))"
        return "\n".join(self.b.script(find))

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
        paths += ["/console/jobs?state=all&label=project%3Dx", "/console/jobs/%d" % self.jobs[2]]
        paths += ["/console/jobs/%d" % job for job in self.marked]
        paths += [
            "/console/jobs/%d" % self.of_schema[name] for name in ("JobChange", "exec", "compared")
        ]
        paths += ["/console/nodes/%d" % self.of_schema["drain_node"]]
        for path in dict.fromkeys(paths):
            with self.subTest(page=path):
                console.show(self.b, path)
                self.check_nothing_ran(path)
                seen += self.b.text() + self.links()
                for tab in self.open_all():
                    self.check_nothing_ran("tab %d of %s" % (tab, path))
                    seen += self.b.text()
        of_budgets = ["<img src=x onerror=xss(%d)>" % n for n in (16, 17, 18)]
        for text in CORPUS + of_budgets:
            self.assertIn(text, seen, "nothing shows this text, so its check says nothing")
        shown = {
            name: any((text.partition("\n")[2] or text) in seen for text in texts)
            for name, texts in self.accepted.items()
        }
        self.assertEqual(shown, writable.ACCEPTED)

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
