# SPDX-License-Identifier: Apache-2.0
"""The console's pages of money, plans and administration, in Chromium on a real belayd."""

import os
import sys
import tempfile
import unittest

import browser

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scheduler"))
from belayd import CONFIG, JOB, Belayd, Node  # noqa: E402

PEOPLE = """teams:
  nlp: {users: [ann, bob], leads: [bob], max_running: 10, max_usd_per_hour: 2}
users: {vic: viewer}
budgets:
  nlp: {match: {team: nlp}, usd_per_month: 100, at_limit: park}
calendars:
  holidays: [2030-12-25]
digest: {at: "07:00"}
"""
ATTACK = "<img src=x onerror=xss(1)>"  # in every text that a user can set
FORMULA = "=HYPERLINK(1)"
PAGES = (
    "cost cost?by=label:exp,pool,market&period=30d budgets cron cron/1 shares digest advice"
    " audit-log tokens secrets"
).split()


class Money(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="belay-web.")
        cls.addClassCleanup(cls.directory.cleanup)
        cls.d = Belayd(CONFIG.replace("base: {}", "base: {usd_per_hour: 3600}") + PEOPLE)
        cls.d.__enter__()
        cls.addClassCleanup(cls.d.__exit__, None, None, None)
        cls.fill()
        cls.b = browser.Browser(cls.directory.name, cls.d.url)
        cls.b.__enter__()
        cls.addClassCleanup(cls.b.quit)
        cls.b.allowed.append("401")  # before the sign-in
        cls.sign_in(admin=True)

    @classmethod
    def sign_in(cls, **token):
        """As another than the one who is signed in."""
        cls.b.driver.delete_all_cookies()
        cls.b.open("/console/sign-in")
        cls.b.one("#token").send_keys(cls.d.token(kind="api", **token))
        cls.b.press("Sign in with the token")
        cls.b.wait_text("Overview", "h1")

    @classmethod
    def post(cls, path, body, status=201):
        got, reply, _ = cls.d.call("POST", "/api/v1/" + path, body)
        assert got == status, (got, reply)
        return reply

    @classmethod
    def fill(cls):
        """A cron entry, a job that has cost something, and one that waits."""
        entry = {"name": "nightly", "schedule": "30 2 * * *", "job": {**JOB, "name": ATTACK}}
        cls.post("crons", entry)
        cls.post("crons", {**entry, "name": "again", "schedule": "30 2 * * *"})
        job = cls.d.submit(name=ATTACK, labels={"exp": FORMULA, "note": ATTACK})
        node = Node(cls.d)
        node.begin(job)
        ended = {"phase": "ended", "end": "failed", "exit_code": 1, "text": ATTACK}
        node.attempts = [{"job": job, "attempt": 1, "started_at": 1, **ended}]
        node.sync()
        cls.d.submit(name="held", hold=True)

    def setUp(self):
        self.b.resize(1280)

    def tearDown(self):
        self.b.check()

    def open(self, page):
        self.b.open("/console/" + page)
        self.b.one("h1")
        self.b.wait("!document.querySelector('.loading')", "the data of " + page)

    def choose(self, name, value):
        """Fills a field of the dialog."""
        field = self.b.one("dialog [name=%s]" % name)
        field.clear()
        field.send_keys(value)

    def confirm(self, verb):
        """The button of the dialog, and its end."""
        self.b.click(self.b.one("dialog button[type=submit]"))
        self.b.wait("!document.querySelector('dialog')", "the end of the dialog " + verb)

    def test_markup_in_names_is_text_on_every_page_narrow_and_wide(self):
        for page in PAGES:
            for width in (1280, 360):
                with self.subTest(page, width=width):
                    self.b.resize(width)
                    self.open(page)
                    self.assertEqual(self.b.all(".notice-bad"), [], self.b.text())
                    self.assertEqual(self.b.overflow(), [])
                    self.b.check()

    def test_costs_are_grouped_by_the_url_and_downloaded_without_formulas(self):
        self.open("cost?by=label:note")
        self.b.wait_text(ATTACK, "tbody tr")
        self.open("cost?by=label:exp,pool")
        row = self.b.wait_text(FORMULA, "tbody tr")
        self.assertIn("base", row.text)
        self.b.one("[role=img][aria-label^='Costs by label:exp']")
        self.b.script(
            "const make = URL.createObjectURL; URL.createObjectURL = (blob) => {"
            " blob.text().then((text) => { window.file = text; }); return make.call(URL, blob); }"
        )
        self.b.press("Download CSV")
        lines = self.b.wait("window.file", "the file").split("\r\n")
        self.assertEqual(lines[0].split(",")[:3], ["label:exp", "pool", "usd"])
        mine = [line for line in lines if "HYPERLINK" in line]
        self.assertTrue(mine and all(line.startswith("'=") for line in mine), lines)
        self.b.one("[name=user]").send_keys("nobody-at-all\t")
        self.b.wait_text("Nothing was spent", ".empty")
        self.assertIn("user=nobody-at-all", self.b.driver.current_url)

    def test_a_cron_entry_is_paused_resumed_and_run(self):
        self.open("cron")
        self.b.wait_text("overlaps again", ".night-runs")
        self.b.press("nightly")
        self.b.wait_text("Cron entry nightly", "h1")
        self.b.press("Pause")
        self.b.wait_text("It starts nothing", "dialog")
        self.confirm("Pause")
        self.b.wait_text("paused", ".badge")
        self.assertEqual(self.d.call("GET", "/api/v1/crons/1")[1]["cron"]["state"], "paused")
        self.b.press("Resume")
        self.confirm("Resume")
        self.b.wait_text("active", ".badge")
        self.b.press("Run now")
        self.b.click(self.b.one("dialog button[type=submit]"))
        self.b.wait("location.pathname.startsWith('/console/jobs/')", "the page of the job")
        runs = self.d.call("GET", "/api/v1/crons/1/runs")[1]["runs"]
        self.assertEqual(self.b.path(), "/console/jobs/%d" % runs[0]["job"])
        self.post("jobs/%d/cancel" % runs[0]["job"], {}, 200)
        self.open("cron/1")
        self.b.wait_text("cancelled", "tbody")

    def test_a_calendar_is_added_changed_and_removed(self):
        self.open("cron")
        self.b.press("New calendar")
        self.choose("name", "feasts")
        self.choose("days", "2030-01-26, 2030-12-25..2030-12-26")
        self.confirm("Add")
        self.b.wait_text("2030-01-26, 2030-12-25..2030-12-26", "tbody")
        self.b.press("Change calendar feasts")
        self.choose("days", "2030-01-27")
        self.confirm("Change")
        self.b.wait_text("2030-01-27", "tbody")
        stored = self.d.call("GET", "/api/v1/calendars")[1]["calendars"][-1]
        self.assertEqual((stored["name"], stored["days"]), ("feasts", ["2030-01-27"]))
        self.b.press("Remove calendar feasts")
        self.confirm("Remove")
        self.b.wait("!document.body.innerText.includes('feasts')", "the end of the calendar")

    def test_a_token_is_shown_once_and_revoked(self):
        self.open("tokens")
        self.b.press("New token")
        self.choose("user", "ann")
        self.confirm("Create")
        token = self.b.one(".shown-once").text
        who = self.d.call("GET", "/api/v1/whoami", token=token)
        self.assertEqual((who[0], who[1]["user"]), (200, "ann"))
        self.open("tokens")
        self.assertNotIn(token, self.b.script("return document.documentElement.innerHTML"))
        number = who[1]["token"]
        self.b.press("Revoke token %d" % number)
        self.confirm("Revoke")
        self.b.wait_text("revoked", "tbody")
        self.assertEqual(self.d.call("GET", "/api/v1/whoami", token=token)[0], 401)

    def test_a_secret_is_set_shared_and_removed_and_never_shown(self):
        self.open("secrets")
        self.b.press("New secret")
        self.choose("name", "wandb")
        self.choose("value", "hunter2-hunter2")
        self.confirm("Set")
        self.b.wait_text("wandb", "tbody")
        self.assertNotIn("hunter2", self.b.script("return document.documentElement.innerHTML"))
        self.b.press("Share wandb")
        self.choose("grants", "user:ann team:nlp")
        self.confirm("Share")
        self.b.wait_text("user:ann, team:nlp", "tbody")
        self.b.press("Share wandb")
        self.choose("grants", "team:nlp")
        self.confirm("Share")
        self.b.wait("!document.body.innerText.includes('user:ann')", "the end of the grant")
        secrets = self.d.call("GET", "/api/v1/secrets")[1]["secrets"]
        self.assertEqual([s["grants"] for s in secrets], [["team:nlp"]])
        self.b.press("Remove wandb")
        self.confirm("Remove")
        self.b.wait_text("There are no secrets")

    def test_who_may_not_change_a_thing_has_no_button_for_it(self):
        def shown(page):
            self.open(page)
            names = {e.text for e in self.b.all("main button")}
            return names & {"New calendar", "New token", "New join token", "New secret", "Revoke"}

        self.addCleanup(self.sign_in, admin=True)
        self.sign_in(user="vic")
        self.assertEqual(shown("cron"), set())
        menu = self.b.text("nav")
        self.assertIn("Cron", menu)
        for word in ("Audit log", "Tokens", "Secrets"):
            self.assertNotIn(word, menu)
        self.sign_in(user="ann")
        self.assertEqual(shown("cron"), set())
        self.assertLessEqual({"New token"}, shown("tokens"))
        self.assertNotIn("New join token", shown("tokens"))
        self.assertEqual(shown("secrets"), {"New secret"})
        self.assertNotIn("Audit log", self.b.text("nav"))

    def test_an_entry_is_paused_with_the_keyboard_alone(self):
        self.open("cron/2")
        self.b.tab_to(lambda name: name == "Pause", "the button")
        self.b.keys(browser.Keys.ENTER)
        self.b.wait_text("It starts nothing", "dialog")
        self.b.tab_to(lambda name: name == "Pause", "the button of the dialog")
        self.b.keys(browser.Keys.ENTER)
        self.b.wait_text("paused", ".badge")
        self.b.wait("!document.querySelector('dialog')", "the end of the dialog")
        self.assertEqual(self.d.call("GET", "/api/v1/crons/2")[1]["cron"]["state"], "paused")
        self.post("crons/2/resume", {}, 200)

    def test_the_digest_says_which_host_gets_it(self):
        own = {"url": "https://hooks.lab.example/a-secret", "format": "teams"}
        self.post("digest/subscription", own, 200)
        self.b.open("/console/digest")
        self.b.wait_text("It is sent to a URL at hooks.lab.example (teams).", "main")
        self.assertNotIn("a-secret", self.b.driver.page_source)
        self.post("digest/subscription", {"url": None}, 200)

    def test_an_error_stays_in_the_dialog_and_escape_leaves_it(self):
        self.open("tokens")
        self.b.press("New join token")
        self.choose("pool", "no-such-pool")
        self.b.allowed.append("status of 4")
        self.b.click(self.b.one("dialog button[type=submit]"))
        self.b.wait_text("no-such-pool", "dialog [role=alert]")
        self.b.keys(browser.Keys.ESCAPE)
        self.b.wait("!document.querySelector('dialog')", "the end of the dialog")
        self.assertEqual(self.b.focused(), "New join token")

    def test_the_audit_log_has_the_newest_first_and_is_verified(self):
        self.open("audit-log")
        numbers = [int(e.text) for e in self.b.all("tbody td:first-child")]
        self.assertEqual(numbers, sorted(numbers, reverse=True))
        self.b.press("Verify")
        self.b.wait_text("Complete:", ".notice")
        self.b.one("[name=route]").send_keys("crons\t")
        self.b.wait(
            "[...document.querySelectorAll('tbody tr')].every((r) =>"
            " r.innerText.includes('crons'))",
            "the rows of crons",
        )
        self.assertIn("route=crons", self.b.driver.current_url)

    def test_the_budget_and_the_shares_have_the_figures_of_the_api(self):
        self.open("budgets")
        self.b.wait_text("of $100.00 are spent", ".card")
        self.open("shares")
        self.b.wait_text("no limit", "tbody")


if __name__ == "__main__":
    browser.need()
    unittest.main(verbosity=2)
