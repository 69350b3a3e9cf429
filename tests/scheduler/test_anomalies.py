# SPDX-License-Identifier: Apache-2.0
"""Unusual spending from a real belayd: found in the sums of the ledger, notified once to a webhook
and by mail, also over restarts, and shown by the digest and belay advise."""

import contextlib
import json
import os
import queue
import sqlite3
import subprocess
import time
import unittest

from belayd import BUILD, CONFIG, Belayd
from receivers import Receivers

WAIT_S = 120
USD = 1000000


def config(receivers, more=""):
    """With a digest whose time of the day is not near, so that today's covers the last hours."""
    zone = "UTC" if time.gmtime().tm_hour < 12 else "Etc/GMT+12"
    return CONFIG + (
        "teams: {nlp: {users: [ann, lea], leads: [lea]}}\n"
        "digest: {at: '23:59', tz: %s}\n"
        "spend_anomalies: {mail: [ops@lab.example]%s}\n"
        "webhooks:\n  hook: {url: '%s/hook', events: [spend]}\n"
        "mail: {smtp: 'smtp://127.0.0.1:%d', from: belay@lab.example}\n"
        % (zone, more, receivers.url, receivers.smtp.server_address[1])
    )


def spend(d, today, weeks, user="ann", team="nlp", pool="burst"):
    """While belayd is stopped: what was spent today, and 1, 2, ... weeks before."""
    day = int(time.time()) // 86400
    path = os.path.join(d.state, "belay.db")
    with contextlib.closing(sqlite3.connect(path, timeout=WAIT_S)) as db:
        for k, usd in enumerate([today, *weeks]):
            db.execute(
                "INSERT INTO cost_sums VALUES (1, 3, ?, 0, ?, ?, ?, '', 'spot', 'useful', 1, 1, ?, 0,"
                " 0, 0)",
                (day - 7 * k, team, user, pool, int(usd * USD)),
            )
        db.commit()


class Anomalies(unittest.TestCase):
    def setUp(self):
        self.receivers = Receivers()
        self.addCleanup(self.receivers.close)

    def items(self, d, query=""):
        code, said, _ = d.call("GET", "/api/v1/anomalies" + query)
        self.assertEqual(code, 200, said)
        return said["items"]

    def wait_delivered(self, d):
        """Otherwise what was delivered, without a record of that yet, is rightly sent again."""
        end = time.monotonic() + WAIT_S
        path = os.path.join(d.state, "belay.db")
        with contextlib.closing(sqlite3.connect(path, timeout=WAIT_S)) as db:
            while db.execute("SELECT count(*) FROM outbox").fetchone()[0] > 0:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.02)  # the database has no event to wait for

    def posts(self, n):
        """The next n notifications of the webhook, by their subjects."""
        found = {}
        for _ in range(n):
            path, headers, body = self.receivers.posts.get(timeout=WAIT_S)
            said = json.loads(body)
            self.assertEqual((path, headers["X-Belay-Event"]), ("/hook", "spend"))
            found[said["of"], said["subject"]] = said
        self.assertEqual(len(found), n)
        return found

    def mails(self, n):
        """The texts of the next n mails, by their recipients."""
        found = {}
        for _ in range(n):
            said, text = self.receivers.mails.get(timeout=WAIT_S)
            (to,) = [line[len("RCPT TO:<") : -1] for line in said if line.startswith("RCPT TO:")]
            found.setdefault(to, []).append(text)
        return found

    def test_a_day_is_notified_once_over_restarts(self):
        with Belayd(config(self.receivers)) as d:
            self.assertEqual(self.items(d), [])
            self.assertEqual(d.stop(), 0)
            spend(d, 400, [95, 90, 110, 100, 96, 80])
            d.start()
            posts = self.posts(3)
            self.assertEqual(set(posts), {("user", "ann"), ("team", "nlp"), ("pool", "burst")})
            said = posts["pool", "burst"]
            self.assertEqual((said["spent_uusd"], said["weeks"]), (400 * USD, 6))
            self.assertEqual(said["usual_uusd"], 95.5 * USD)
            # The administrators get all, ann her own, and the lead of nlp the team's.
            mails = self.mails(5)
            self.assertEqual(
                {to: len(texts) for to, texts in mails.items()},
                {"ops@lab.example": 3, "ann": 1, "lea": 1},
            )
            for text in sum(mails.values(), []):
                self.assertIn(b" spent $400.00 on ", text)
                self.assertIn(b"usual is $95.50", text)
            self.assertIn(b"user ann spent", mails["ann"][0])
            self.assertIn(b"team nlp spent", mails["lea"][0])
            digest = d.call("GET", "/api/v1/digest")[1]
            self.assertEqual(digest["spend_anomalies"], 3)
            self.assertIn("Far more spent than usual: 3.", digest["text"])
            self.assertIn("user ann spent $400.00", digest["text"])
            of_ann = d.call("GET", "/api/v1/digest?user=ann")[1]
            self.assertEqual(of_ann["spend_anomalies"], 1)
            # The review after a restart finds them again, and something new.
            bob = d.token(kind="api", user="bob")
            own = ("POST", "/api/v1/digest/subscription", {"mail": "bob@lab.example"})
            self.assertEqual(d.call(*own, token=bob)[0], 200)
            self.wait_delivered(d)
            self.assertEqual(d.stop(), 0)
            spend(d, 900, [10, 10, 10, 10], user="bob", team="cv", pool="base")
            d.start()
            new = self.posts(3)
            self.assertEqual(set(new), {("user", "bob"), ("team", "cv"), ("pool", "base")})
            mails = self.mails(4)
            for text in sum(mails.values(), []):
                self.assertIn(b"$900.00", text)
            self.assertEqual(set(mails), {"ops@lab.example", "bob@lab.example"})
            self.wait_delivered(d)
            self.assertEqual(len(self.items(d)), 6)
            for left in (self.receivers.posts, self.receivers.mails):
                with self.assertRaises(queue.Empty):
                    left.get_nowait()

    def test_a_reload_changes_who_is_mailed(self):
        """The mails to the former address could not be delivered before the reload."""
        after = config(self.receivers).replace("ops@lab.example", "new@lab.example")
        port = "127.0.0.1:%d" % self.receivers.smtp.server_address[1]
        with Belayd(config(self.receivers).replace(port, "127.0.0.1:1")) as d:
            self.assertEqual(d.stop(), 0)
            spend(d, 400, [95, 90, 110, 100])
            d.start()
            self.posts(3)
            with open(os.path.join(d.dir, "belayd.yaml"), "w", encoding="utf-8") as f:
                f.write(after)
            code, said, _ = d.call("POST", "/api/v1/admin/reload", {})
            self.assertEqual(code, 200, said)
            self.assertIn("spend_anomalies.mail", [c["key"] for c in said["changes"]])
            mails = self.mails(5)
            self.assertEqual(len(mails["new@lab.example"]), 3)
            self.assertEqual(set(mails), {"new@lab.example", "ann", "lea"})

    def test_few_weeks_little_money_and_one_day_before_say_nothing(self):
        with Belayd(config(self.receivers, ", at_least: 60")) as d:
            self.assertEqual(d.stop(), 0)
            spend(d, 900, [1, 1, 1], user="new", team="new", pool="new")
            spend(d, 69, [10, 10, 10, 10], user="small", team="small", pool="small")
            spend(d, 71, [10, 10, 10, 10], user="ann", team="", pool="burst")
            spend(d, 500, [100, 100, 9000, 110, 90], user="once", team="once", pool="once")
            d.start()
            found = [(i["of"], i["subject"]) for i in self.items(d)]
            self.assertEqual(found[:3], sorted(found[:3], key=lambda f: f[1]))
            self.assertEqual(
                set(found),
                {("user", "ann"), ("pool", "burst")}
                | {(of, "once") for of in ("user", "team", "pool")},
            )

    def test_advise_prints_them(self):
        with Belayd(config(self.receivers)) as d:
            self.assertEqual(d.stop(), 0)
            spend(d, 400, [95, 90, 110, 100])
            d.start()

            def advise(*options):
                return subprocess.run(
                    [os.path.join(BUILD, "cli", "belay"), "advise", *options],
                    env={**os.environ, "BELAY_SOCKET": d.socket, "NO_COLOR": "1"},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    timeout=WAIT_S,
                    check=False,
                )

            done = advise("--anomalies")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"pool +burst +2\S+ +\$400.00 +\$97.50 +\$\S+ +4\n")
            shown = json.loads(advise("--anomalies", "--days", "1", "--json").stdout)
            self.assertEqual(shown["days"], 1)
            for wrong in (
                ("--days", "3"),
                ("--anomalies", "--days", "29"),
                ("--anomalies", "-u", "a"),
            ):
                self.assertEqual(advise(*wrong).returncode, 2, wrong)

    def test_days_that_are_refused(self):
        with Belayd(CONFIG) as d:
            for query in ("days=0", "days=29", "days=two", "days=-1"):
                code, said, _ = d.call("GET", "/api/v1/anomalies?" + query)
                self.assertEqual((code, said["error"]["kind"]), (400, "invalid"), query)


if __name__ == "__main__":
    unittest.main(verbosity=2)
