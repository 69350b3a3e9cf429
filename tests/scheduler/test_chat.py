# SPDX-License-Identifier: Apache-2.0
"""Webhooks in the formats of Slack, Teams and PagerDuty, from a real belayd to strict receivers;
also that a cron entry that is not done in time is notified."""

import datetime
import os
import shutil
import tempfile
import unittest

from belayd import CONFIG, JOB, Belayd
from chat_receivers import Chat

WAIT_S = 240
KEY = "0123456789abcdef0123456789ABCDEF"
# as long as a name may be, with markup, mentions and a link of each service
NAME = "<!channel> & *b* [x](http://x) \u00e4\u20ac" + "\U0001f600" * 6


class Formats(unittest.TestCase):
    def setUp(self):
        self.chat = Chat()
        self.addCleanup(self.chat.close)
        folder = tempfile.mkdtemp(prefix="belay-test.")
        self.addCleanup(shutil.rmtree, folder)
        hooks = ""
        for name, value in (("slack", self.chat.url + "/slack"), ("pagerduty", KEY)):
            with open(os.open(folder + "/" + name, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
                f.write(value + "\n")
        for name, more in (
            ("slack", "url_file: %s/slack" % folder),
            ("teams", "url: '%s/teams'" % self.chat.url),
            (
                "pagerduty",
                "url: '%s/pagerduty', routing_key_file: %s/pagerduty" % (self.chat.url, folder),
            ),
        ):
            hooks += "  %s: {format: %s, %s, events: [end, fail, late]}\n" % (name, name, more)
        self.d = Belayd(CONFIG + "webhooks:\n" + hooks)
        self.d.__enter__()
        self.addCleanup(self.d.__exit__, None, None, None)

    def take(self, n):
        taken = {}
        for _ in range(n):
            path, body = self.chat.accepted.get(timeout=WAIT_S)
            self.assertNotIn(path, taken)
            taken[path] = body
        self.assertEqual(list(self.chat.refused.queue), [])
        return taken

    def test_each_service_takes_what_it_gets(self):
        first = self.d.submit(**JOB)
        last = self.d.submit(
            **{**JOB, "name": NAME, "depends": [{"kind": "afterok", "job": first}]},
        )
        self.d.call("POST", "/api/v1/jobs/%d/cancel" % first)
        bodies = {}
        while len(bodies) < 5:  # of the first: not to PagerDuty
            path, body = self.chat.accepted.get(timeout=WAIT_S)
            bodies.setdefault((path, "job %d " % first in str(body)), body)
        self.assertEqual(list(self.chat.refused.queue), [])
        slack = bodies["/slack", False]
        self.assertIn("job %d " % last, slack["text"])
        self.assertIn("&lt;!channel&gt; &amp; *b*", slack["text"])
        self.assertEqual([b["type"] for b in slack["blocks"]], ["header", "section"])
        card = bodies["/teams", False]["attachments"][0]["content"]
        self.assertIn(NAME, card["body"][0]["inlines"][0]["text"])
        page = bodies["/pagerduty", False]
        self.assertEqual((page["routing_key"], page["event_action"]), (KEY, "trigger"))
        self.assertRegex(page["dedup_key"], r"^belay-\w+-job-%d$" % last)
        self.assertEqual(page["payload"]["custom_details"]["job"], last)
        self.assertNotIn(("/pagerduty", True), bodies)
        for secret in (KEY, "/slack"):
            self.assertNotIn(secret, self.d.log())

    def test_a_cron_entry_that_is_not_done_is_notified(self):
        by = datetime.datetime.utcnow() + datetime.timedelta(minutes=2)
        cron = self.d.call(
            "POST",
            "/api/v1/crons",
            {
                "name": "nightly",
                "schedule": "* * * * *",
                "done_by": by.strftime("%H:%M"),
                "job": JOB,
            },
        )[1]["id"]
        bodies = self.take(3)
        page = bodies["/pagerduty"]
        self.assertRegex(page["dedup_key"], r"^belay-\w+-cron-%d$" % cron)
        self.assertIn("is not done by " + by.strftime("%H:%M"), page["payload"]["summary"])
        details = page["payload"]["custom_details"]
        self.assertEqual((details["event"], details["cron"]), ("late", cron))
        self.assertRegex(details["text"], r"^job \d+ waits: ")
        self.assertIn(details["text"], bodies["/slack"]["blocks"][1]["text"]["text"])
        texts = [b["inlines"][0]["text"] for b in self.body_of(bodies["/teams"])]
        self.assertIn(details["text"], texts[1])

    @staticmethod
    def body_of(message):
        return message["attachments"][0]["content"]["body"]


if __name__ == "__main__":
    unittest.main(verbosity=2)
