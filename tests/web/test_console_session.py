# SPDX-License-Identifier: Apache-2.0
"""A user's session in the web console, on a real belayd with an emulated cloud: sign in, submit,
watch a reclaim as it happens, follow the output over it, cancel; and the same kinds of work with
the keyboard alone.
"""

import os
import re
import unittest

import browser
import console
from cluster import BUILD, Cluster
from lab import JOBS, PYTHON
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

SCRIPT = "#!/bin/sh\nexec %s %s 100000 0.05\n" % (PYTHON, os.path.join(JOBS, "chain.py"))
STAYS = "#!/bin/sh\nexec sleep 100000\n"
LINES = "[...document.querySelectorAll('[role=log] .log-block > *')].map((e) => e.textContent)"
# The form asks belayd while one types, and belayd refuses what is half written.
HALF = "/api/v1/jobs/estimate - Failed to load resource: the server responded with a status of 400"
FOCUS_SHOWS = """const s = getComputedStyle(document.activeElement);
return s.outlineStyle !== 'none' || s.boxShadow !== 'none'"""


class Session(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster().__enter__()
        cls.addClassCleanup(lambda: cls.cluster.__exit__(None, None, None))
        cls.b = browser.Browser(cls.cluster.dir, cls.cluster.url()).__enter__()
        cls.addClassCleanup(cls.b.quit)

    def run(self, result=None):
        super().run(result)
        if result and (result.failures or result.errors):
            self.b.tell()

    def tearDown(self):
        self.b.script("localStorage.clear()")
        self.b.driver.delete_all_cookies()

    def number(self):
        """Of the job whose page this is."""
        self.b.wait("/^.console.jobs.\\d+$/.test(location.pathname)", "the page of the job")
        return int(self.b.path().rsplit("/", 1)[1])

    # ---- with the mouse ----

    def test_from_sign_in_to_cancel(self):
        b = self.b
        b.allowed += [*console.SIGNED_OUT, HALF]
        b.open("/")
        b.one("input[name=token]", "the sign-in").send_keys("not-a-token" + "0" * 40)
        b.press("Sign in with the token")
        b.one("[role=alert]", "the refusal of a wrong token")
        console.sign_in(b, self.cluster.token("ann"))
        b.press("Submit")
        job = self.submit()
        b.script("window.__loaded = 1")  # gone if the page is loaded again
        b.wait_text("running", "main")
        b.wait(LINES + ".some((l) => l.startsWith('step 30 '))", "step 30 in the output")
        self.cluster.cloud({"reclaim": {"instance": self.cluster.instance_of(job), "notice_s": 5}})
        b.wait_text("reclaimed", "main table")
        b.wait(
            "/attempt 2/.test((document.querySelector('[role=log] [role=separator]') || {}).textContent)",
            "the seam between the attempts",
        )
        lines = b.wait(
            "(() => { const lines = %s; const seam = lines.findIndex((l) => /attempt 2/.test(l));"
            " return seam > 0 && lines.length > seam + 20 && lines })()" % LINES,
            "output of the second attempt",
        )
        self.check_output(lines)
        self.assertEqual(b.script("return window.__loaded"), 1, "the page was loaded again")
        b.check()
        self.cancel(job)

    def submit(self):
        b = self.b
        script = b.one("textarea[name=script]", "the script")
        script.clear()
        script.send_keys(SCRIPT)
        name = b.one("input[name=name]")
        name.clear()
        name.send_keys("watched")
        for name, value in (("checkpoint.method", "coop"), ("market", "spot")):
            Select(b.one("select[name='%s']" % name)).select_by_visible_text(value)
        b.one("input[name='checkpoint.every_ms']").send_keys("1h")
        b.wait_text("/h", ".submit-end")  # belayd's estimate
        b.click(b.one("main form button[type=submit]"))
        job = self.number()
        shown = self.cluster.show(job)
        self.assertEqual(
            [shown["job"][k] for k in ("name", "user", "market")], ["watched", "ann", "spot"]
        )
        self.assertEqual(shown["spec"]["script"].strip(), SCRIPT.strip())
        return job

    def check_output(self, lines):
        """No step is missing or done twice, and the end is in sight."""
        steps = [int(m.group(1)) for m in (re.match(r"step (\d+) ", line) for line in lines) if m]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        self.b.wait(
            "(() => { const e = document.querySelector('[role=log]');"
            " return e.scrollHeight - e.scrollTop - e.clientHeight < 40 })()",
            "the end of the output, which is followed",
        )

    def cancel(self, job):
        b = self.b
        b.press("Cancel")
        dialog = b.one("dialog[open]", "the question")
        self.assertIn("job %d" % job, dialog.text)
        self.assertEqual(b.axe(), [])
        b.press("Back")
        b.wait("!document.querySelector('dialog[open]')", "the end of the question")
        self.assertEqual(self.cluster.job(job)["state"], "running")
        b.press("Cancel")
        b.click(b.one("dialog[open] button[type=submit]"))
        b.wait_text("cancelled", "main")
        self.assertEqual(self.cluster.wait_ended(job)["job"]["end"], "cancelled")
        b.check()

    # ---- with the keyboard ----

    def enter(self, name):
        """Goes to what has this name by Tab alone, sees that it is marked, and presses Enter."""
        self.b.tab_to(lambda text: text == name, "%r" % name)
        self.assertTrue(self.b.script(FOCUS_SHOWS), "the focus on %r does not show" % name)
        self.b.keys(Keys.ENTER)

    def test_with_the_keyboard_alone(self):
        b = self.b
        b.allowed += [*console.SIGNED_OUT, HALF]
        b.open("/")
        b.one("input[name=token]", "the sign-in")
        b.tab_to(lambda text: text == "Token", "the field for the token")
        b.keys(self.cluster.token("ann"), Keys.ENTER)
        b.wait_text("Overview", "h1")
        console.settled(b)
        b.keys(Keys.TAB)
        self.assertEqual(b.focused(), "Skip to the page")
        self.enter("Submit")
        b.wait_text("Submit a job", "h1")
        b.one("textarea[name=script]", "the form")
        b.tab_to(lambda text: text == "Script", "the script")
        b.select_all()
        b.keys(STAYS)
        b.tab_to(lambda text: text == "Name", "the name")  # Tab leaves the editor
        b.keys("by-keyboard")
        self.enter("Submit")
        job = self.number()
        console.settled(b)
        self.enter("Hold")
        b.one("dialog[open]", "the question")
        self.assertTrue(b.script("return document.activeElement.closest('dialog') !== null"))
        b.keys(Keys.ESCAPE)
        b.wait("!document.querySelector('dialog[open]')", "the end of the question")
        self.assertEqual(b.focused(), "Hold", "the focus does not return to where it was")
        b.keys(Keys.ENTER)
        b.one("dialog[open]", "the question")
        self.enter("Hold")
        b.button("Release")
        self.assertEqual(self.cluster.job(job)["hold"], "user")
        self.enter("Cancel")
        b.one("dialog[open]", "the question")
        self.enter("Cancel")
        b.wait_text("cancelled", "main")
        self.cluster.wait_ended(job)
        b.check()


if __name__ == "__main__":
    browser.need()
    if not console.has_console(BUILD + "/scheduler/belayd"):
        browser.npm.skip("belayd was built without the web console")
    unittest.main(verbosity=2)
