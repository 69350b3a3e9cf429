# SPDX-License-Identifier: Apache-2.0
"""The morning digest from a real belayd: composed from what happened, sent once to a webhook and by
mail to a user who subscribed, also over restarts; nothing is sent for an empty night."""

import contextlib
import datetime
import json
import os
import signal
import sqlite3
import time
import unittest

from belayd import CONFIG, JOB, Belayd
from chat_receivers import Chat, slack
from receivers import Receivers

WAIT_S = 120
HOUR_MS = 3600000


def config(chat, mail, more=""):
    """A digest at a time that was five minutes ago, so the next one is due tomorrow."""
    at = datetime.datetime.utcnow() - datetime.timedelta(minutes=5)
    return CONFIG + (
        "digest: {at: '%s', mail: [ops@lab.example]%s}\n"
        "webhooks:\n  slack: {format: slack, url: '%s/slack', events: [digest]}\n"
        "mail: {smtp: 'smtp://127.0.0.1:%d', from: belay@lab.example}\n"
        % (at.strftime("%H:%M"), more, chat.url, mail.smtp.server_address[1])
    )


def sql(d, text, *values):
    with contextlib.closing(sqlite3.connect(os.path.join(d.state, "belay.db"))) as db:
        rows = db.execute(text, values).fetchall()
        db.commit()
        return rows


def told_until(d):
    return sql(d, "SELECT told_until FROM digests WHERE user = ''")[0][0]


def make_due(d):
    """While belayd is stopped: the last digest was 12 hours ago."""
    sql(d, "UPDATE digests SET told_until = told_until - ? WHERE user = ''", 12 * HOUR_MS)


def subscription(mail=None, url_host=None, format=None):
    return {"mail": mail, "url_host": url_host, "format": format}


class Digest(unittest.TestCase):
    def setUp(self):
        self.chat, self.mail = Chat(), Receivers()
        self.addCleanup(self.chat.close)
        self.addCleanup(self.mail.close)

    def wait_delivered(self, d, before=0):
        end = time.monotonic() + WAIT_S
        while told_until(d) <= before or sql(d, "SELECT count(*) FROM outbox")[0][0] > 0:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)  # the database has no event to wait for

    def test_a_morning_has_one_digest_over_restarts(self):
        with Belayd(config(self.chat, self.mail)) as d:
            ok = d.call("POST", "/api/v1/digest/subscription", {"mail": "ann@lab.example"})
            self.assertEqual(ok[:2], (200, subscription(mail="ann@lab.example")))
            job = d.submit(**{**JOB, "name": "waits"})
            gone = d.submit(**{**JOB, "name": "gone"})
            self.assertEqual(d.call("POST", "/api/v1/jobs/%d/cancel" % gone)[0], 200)
            shown = d.call("GET", "/api/v1/digest")[1]
            self.assertEqual((shown["empty"], shown["user"]), (False, None))
            self.assertEqual(shown["jobs"]["pending"], 1)
            printed = d.belay("digest").stdout
            self.assertEqual(printed, shown["title"] + "\n\n" + shown["text"])
            self.assertGreater(len(printed.splitlines()), 5)
            self.assertEqual(d.stop(), 0)
            make_due(d)
            d.start()
            path, body = self.chat.accepted.get(timeout=WAIT_S)
            self.assertEqual(path, "/slack")
            self.assertIn("jobs ended well", body["text"])
            text = body["blocks"][1]["text"]["text"]
            self.assertIn('job %d "waits"' % job, text)
            self.assertIn("1 wait", text)
            mails = [self.mail.mails.get(timeout=WAIT_S) for _ in range(2)]
            self.assertEqual(
                {line for said, _ in mails for line in said if line.startswith("RCPT")},
                {"RCPT TO:<ops@lab.example>", "RCPT TO:<ann@lab.example>"},
            )
            for _, text in mails:
                self.assertIn(b'"waits"', text)
                self.assertIn(b" waits: ", text)
            self.wait_delivered(d)
            self.assertEqual(d.log().count("the rows of a night were read"), 1)  # for all three
            told = told_until(d)
            for _ in range(2):
                self.assertEqual(d.stop(), 0)
                d.start()
                d.submit(**JOB)  # its commit comes after that of a digest that is due at the start
            self.assertEqual(told_until(d), told)
            self.assertEqual(sql(d, "SELECT count(*) FROM outbox")[0][0], 0)
            self.assertTrue(self.chat.accepted.empty())
            self.assertTrue(self.mail.mails.empty())

    def test_a_url_of_a_user(self):
        """In the form that they name, sealed, and only where users may send."""
        url, host = self.mail.url + "/secret-of-ann", "127.0.0.1"
        for allowed in (False, True):
            settings = config(self.chat, self.mail).replace("events: [digest]", "events: [fail]")
            if allowed:
                settings += "notify_allow: [%s/32]\n" % host
            with self.subTest(allowed=allowed), Belayd(settings) as d:
                done = d.belay("digest", "subscribe", "--url", url, "--format", "slack")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn("is sent to a URL at %s (slack)" % host, done.stdout)
                ok = d.call("POST", "/api/v1/digest/subscription", {"mail": "ann@lab.example"})
                expected = subscription("ann@lab.example", host, "slack")
                self.assertEqual(ok[:2], (200, expected))
                d.submit(**{**JOB, "name": "waits"})
                self.assertEqual(d.stop(), 0)
                make_due(d)
                d.start()
                if allowed:
                    path, headers, body = self.mail.posts.get(timeout=WAIT_S)
                    self.assertEqual(path, "/secret-of-ann")
                    self.assertEqual(headers["X-Belay-Event"], "digest")
                    body = json.loads(body)
                    slack(body)
                    self.assertIn('"waits"', body["blocks"][1]["text"]["text"])
                    self.wait_delivered(d)
                else:
                    self.wait_tried(d)
                    self.assertTrue(self.mail.posts.empty())
                self.assertEqual({self.recipient() for _ in range(2)}, {"ops", "ann"})
                self.assertEqual(d.belay("digest", "unsubscribe").returncode, 0)
                self.assertEqual(d.call("GET", "/api/v1/digest/subscription")[1], subscription())
                self.assertEqual(d.stop(), 0)
                for name in os.listdir(d.state):
                    if name.startswith("belay.db"):
                        with open(os.path.join(d.state, name), "rb") as f:
                            self.assertNotIn(b"secret-of-ann", f.read(), name)
                self.assertNotIn("secret-of-ann", d.log())

    def recipient(self):
        """The local part of the address of the next mail."""
        said, _ = self.mail.mails.get(timeout=WAIT_S)
        (to,) = [line for line in said if line.startswith("RCPT TO:<")]
        return to[len("RCPT TO:<") :].split("@")[0]

    def wait_tried(self, d):
        """Until the URL was tried, and all else is delivered."""
        end = time.monotonic() + WAIT_S
        while [("url:0",)] != sql(d, "SELECT target FROM outbox WHERE tries > 0"):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)  # the database has no event to wait for

    def test_an_empty_night_is_silent_unless_asked(self):
        for more, is_sent in (("", False), (", when_empty: true", True)):
            with self.subTest(more=more), Belayd(config(self.chat, self.mail, more)) as d:
                self.assertTrue(d.call("GET", "/api/v1/digest")[1]["empty"])
                self.assertEqual(d.stop(), 0)
                make_due(d)
                before = told_until(d)
                d.start()
                if is_sent:
                    self.chat.accepted.get(timeout=WAIT_S)
                    self.mail.mails.get(timeout=WAIT_S)
                self.wait_delivered(d, before)
                self.assertTrue(self.chat.accepted.empty())
                self.assertTrue(self.mail.mails.empty())

    def test_a_reload_changes_times_and_addresses(self):
        minute = datetime.datetime.utcnow() - datetime.timedelta(minutes=10)

        def section(after, address):
            at = (minute + datetime.timedelta(minutes=after)).strftime("%H:%M")
            return CONFIG + (
                "digest: {at: '%s', tz: UTC, mail: [%s], when_empty: true}\n"
                "mail: {smtp: 'smtp://127.0.0.1:%d', from: belay@lab.example}\n"
                % (at, address, self.mail.smtp.server_address[1])
            )

        def recipient():
            said, _ = self.mail.mails.get(timeout=WAIT_S)
            return [line for line in said if line.startswith("RCPT")]

        with Belayd(section(0, "ann@lab.example")) as d:
            d.submit(**JOB)  # its commit comes after that of the first digest, which only begins
            self.assertEqual(d.stop(), 0)
            make_due(d)
            begun, d.config = told_until(d), CONFIG
            d.start()
            d.submit(**JOB)
            self.assertEqual(told_until(d), begun)
            subscribe = ("POST", "/api/v1/digest/subscription", {"mail": "cho@lab.example"})
            self.assertEqual(d.call(*subscribe)[0], 409)

            def write(text):
                with open(os.path.join(d.dir, "belayd.yaml"), "w") as f:
                    f.write(text)

            write(section(1, "ann@lab.example").replace("tz: UTC", "tz: Mars/Base"))
            code, said, _ = d.call("POST", "/api/v1/admin/reload", {})
            self.assertEqual((code, "digest.tz" in said["error"]["text"]), (404, True), said)
            write(section(1, "ann@lab.example"))
            self.assertEqual(d.call("POST", "/api/v1/admin/reload", {})[0], 200)
            self.assertEqual(recipient(), ["RCPT TO:<ann@lab.example>"])
            self.assertEqual(d.call(*subscribe)[0], 200)
            write(section(2, "bob@lab.example"))
            d.process.send_signal(signal.SIGHUP)
            self.assertEqual(
                sorted(recipient() + recipient()),
                ["RCPT TO:<bob@lab.example>", "RCPT TO:<cho@lab.example>"],
            )
            self.wait_delivered(d)
            write(CONFIG)
            self.assertEqual(d.call("POST", "/api/v1/admin/reload", {})[0], 200)
            self.assertEqual(d.call(*subscribe)[0], 409)
            self.assertTrue(self.mail.mails.empty())

    def test_days_and_subscriptions_that_are_refused(self):
        with Belayd(CONFIG) as d:
            for query in (
                "date=2026-13-01",
                "date=tomorrow",
                "date=2999-01-01",
                "date=2026-01-01..2026-01-02",
            ):
                code, said, _ = d.call("GET", "/api/v1/digest?" + query)
                self.assertEqual((code, said["error"]["kind"]), (400, "invalid"), query)
            self.assertIn("today at the latest", said["error"]["text"])
            code, said, _ = d.call("POST", "/api/v1/digest/subscription", {"mail": "ann"})
            self.assertEqual(code, 409)
            for body in (
                {"url": "ftp://h/"},
                {"url": "https://user:word@h/"},
                {"url": "https://h/" + 2048 * "x"},
                {"url": "https://h/", "format": "pagerduty"},
                {"format": "slack"},
                {"url": None, "format": "slack"},
            ):
                code, said, _ = d.call("POST", "/api/v1/digest/subscription", body)
                self.assertEqual((code, said["error"]["kind"]), (400, "invalid"), body)
            for body in ({"mail": "-x"}, {"mail": "a b"}, {"mail": 1}, {"male": "ann"}, []):
                code, said, _ = d.call("POST", "/api/v1/digest/subscription", body)
                self.assertEqual((code, said["error"]["kind"]), (400, "invalid"), body)
            self.assertEqual(d.call("GET", "/api/v1/digest/subscription")[1], subscription())


if __name__ == "__main__":
    unittest.main(verbosity=2)
