# SPDX-License-Identifier: Apache-2.0
"""Who sees which button in the web console: those whose call belayd allows to them, and no other.
For each button, the test makes its call as the same user, on something where it changes nothing.
"""

import os
import sys
import unittest

import browser
import console

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "scheduler"))
from belayd import BUILD, JOB, Belayd, Node  # noqa: E402

CONFIG = """cluster: lab
listen: 127.0.0.1:0
lease: 1h
visibility: all
pools: {base: {}, spare: {}}
users: {vic: viewer, ola: operator, ada: admin}
teams:
  red: {users: [ann, ben, lea, vic], leads: [lea]}
  blue: {users: [ola, ada]}
"""
USERS = ["vic", "ben", "ann", "lea", "ola", "ada"]  # ann owns the job and the cron entry
ENTRY = {"name": "nightly", "schedule": "0 3 1 1 *", "job": {**JOB, "hold": True}}

# The page, the button, and its call. {running} has the buttons, {ended} the call; ann owns both.
BUTTONS = [
    ("/console/jobs/{running}", "Save now", "POST", "/jobs/{ended}/save"),
    ("/console/jobs/{running}", "Requeue", "POST", "/jobs/{ended}/requeue"),
    ("/console/jobs/{running}", "Hold", "POST", "/jobs/{ended}/hold"),
    ("/console/jobs/{running}", "Save and stop", "POST", "/jobs/{ended}/reclaim"),
    ("/console/jobs/{running}", "Drill", "POST", "/jobs/{ended}/drill"),
    ("/console/jobs/{running}", "Change", "POST", "/jobs/{ended}/update"),
    ("/console/jobs/{running}", "Cancel", "POST", "/jobs/{ended}/cancel"),
    ("/console/jobs", "Submit a job", "POST", "/jobs"),
    ("/console/jobs", "Submit", "POST", "/jobs"),
    ("/console/jobs", "Audit log", "GET", "/admin/audit-log"),
    ("/console/cron/{cron}", "Run now", "POST", "/crons/{paused}/run"),
    ("/console/cron/{cron}", "Pause", "POST", "/crons/{paused}/pause"),
    ("/console/nodes/{node}", "Drain", "POST", "/nodes/4711/drain"),
    ("/console/reservations", "Reserve nodes", "POST", "/reservations"),
    ("/console/tokens", "New token", "POST", "/tokens"),
    ("/console/tokens", "New join token", "POST", "/pools"),  # both are an administrator's
    ("/console/secrets", "New secret", "POST", "/secrets"),
]
NAMES = """return [...document.querySelectorAll('button, a[href]')].filter((e) => e.checkVisibility())
.map((e) => e.innerText.trim())"""


class Roles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.d = Belayd(CONFIG).__enter__()
        cls.addClassCleanup(lambda: cls.d.__exit__(None, None, None))
        cls.tokens = {user: cls.d.token(kind="api", user=user) for user in USERS}
        ids = cls.ids = {}
        spec = {**JOB, "checkpoint": {"method": "coop"}}
        ids["running"] = cls.post("/jobs", spec)
        ids["ended"] = cls.post("/jobs", {**spec, "hold": True})
        cls.d.call("POST", "/api/v1/jobs/%d/cancel" % ids["ended"])
        ids["cron"] = cls.post("/crons", ENTRY)
        ids["paused"] = cls.post("/crons", {**ENTRY, "name": "other"})
        node = Node(cls.d, cpus=4)
        ids["node"] = node.number
        node.begin(ids["running"])
        cls.b = browser.Browser(cls.d.dir, cls.d.url).__enter__()
        cls.addClassCleanup(cls.b.quit)

    @classmethod
    def post(cls, path, body):
        status, answer, _ = cls.d.call("POST", "/api/v1" + path, body, token=cls.tokens["ann"])
        assert status == 201, answer
        return answer["id"]

    def allowed(self, user, method, path):
        status, answer, _ = self.d.call(
            method,
            "/api/v1" + path.format(**self.ids),
            {} if method == "POST" else None,
            token=self.tokens[user],
        )
        self.assertNotIn(status, (401, 429), answer)
        return status != 403

    def test_buttons(self):
        seen = {name: [] for _, name, _, _ in BUTTONS}
        for user in USERS:
            self.b.driver.delete_all_cookies()
            console.sign_in(self.b, self.tokens[user])
            for page in dict.fromkeys(page for page, _, _, _ in BUTTONS):
                self.b.open(page.format(**self.ids))
                self.b.wait("document.querySelector('main h1')", "the page")
                self.b.wait("!document.querySelector('.loading')", "its data")
                shown = self.b.script(NAMES)
                for name, method, path in [b[1:] for b in BUTTONS if b[0] == page]:
                    with self.subTest(user=user, button=name, page=page):
                        self.assertEqual(name in shown, self.allowed(user, method, path))
                    seen[name] += [user] if name in shown else []
                self.b.check()
        for name, users in seen.items():
            self.assertTrue(users, "nobody has the button %r" % name)

    def test_a_page_for_others_says_who_may_see_it(self):
        self.b.driver.delete_all_cookies()
        console.sign_in(self.b, self.tokens["vic"])
        for page in ("tokens", "secrets"):
            console.show(self.b, "/console/" + page)
            self.b.wait_text("member, lead, operator, admin", "main")
            self.b.check()  # no call was refused

    def test_what_a_button_says_is_done_for_who_has_it(self):
        self.b.driver.delete_all_cookies()
        console.sign_in(self.b, self.tokens["lea"])
        console.show(self.b, "/console/jobs/%d" % self.ids["running"])
        self.b.press("Hold")
        self.b.click(self.b.one("dialog[open] button[type=submit]"))
        self.b.button("Release")
        job = self.d.call("GET", "/api/v1/jobs/%d" % self.ids["running"])[1]["job"]
        self.assertNotEqual(job["hold"], "none")
        self.b.check()


if __name__ == "__main__":
    browser.need()
    if not console.has_console(BUILD + "/scheduler/belayd"):
        browser.npm.skip("belayd was built without the web console")
    unittest.main(verbosity=2)
