# SPDX-License-Identifier: Apache-2.0
"""Calendars that operators set, with a real belayd and the command: who may set them, what is
refused, that cron entries follow at once and that they survive belayd's death."""

import datetime
import json
import os
import subprocess
import unittest

from belayd import BUILD, CONFIG, JOB, Belayd

PEOPLE = """users: {vic: viewer, ola: operator}
calendars:
  fixed: [2026-12-25, 2026-12-31..2027-01-01]
"""
PATH = "/api/v1/calendars"
ICS = """BEGIN:VCALENDAR\r
VERSION:2.0\r
BEGIN:VEVENT\r
DTSTART;VALUE=DATE:20261225\r
DTEND;VALUE=DATE:20261229\r
SUMMARY:Christmas, and the days\r
  after it\r
END:VEVENT\r
BEGIN:VEVENT\r
DTSTART;VALUE=DATE:20270101\r
%sEND:VEVENT\r
END:VCALENDAR\r
"""
BAD = [
    ({}, "calendar.name"),
    ({"name": "x"}, "calendar.days"),
    ({"name": "x", "days": []}, "calendar.days"),
    ({"name": "x", "days": "2026-12-25"}, "calendar.days"),
    ({"name": "x", "days": [20261225]}, "calendar.days"),
    ({"name": "x", "days": ["2026-12-25,2026-12-26"]}, "calendar.days"),
    ({"name": "x", "days": ["2026-02-30"]}, "expected a day such as 2026-12-25"),
    ({"name": "x", "days": ["2026-12-25..2026-12-24"]}, "expected a day such as 2026-12-25"),
    ({"name": "x", "days": ["2026-12-25"] * 1001}, "calendar.days"),
    ({"name": "x\n", "days": ["2026-12-25"]}, "a calendar's name"),
    ({"name": "", "days": ["2026-12-25"]}, "name"),
    ({"name": "x" * 64, "days": ["2026-12-25"]}, "calendar.name"),
    ({"name": "x", "days": ["2026-12-25"], "zone": "UTC"}, "zone"),
    ([], "calendar"),
]


class Calendars(unittest.TestCase):
    def belay(self, d, *words):
        env = {**os.environ, "BELAY_SOCKET": d.socket, "BELAY_HOME": d.state}
        return subprocess.run(
            [os.path.join(BUILD, "cli", "belay"), "calendar", *words],
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def named(self, d, name, token=None):
        rows = d.call("GET", PATH, token=token)[1]["calendars"]
        return next((row for row in rows if row["name"] == name), None)

    def test_operators_set_and_remove_them_and_all_read_them(self):
        with Belayd(CONFIG + PEOPLE) as d:
            ann, vic, ola = (d.token(kind="api", user=u) for u in ("ann", "vic", "ola"))
            scoped = d.token(kind="api", user="ola", scope="pool=base")
            wanted = {"name": "nsw", "days": ["2027-01-26", "2026-12-26", "2026-12-25"]}
            for token in (ann, vic, scoped):
                self.assertEqual(d.call("POST", PATH, wanted, token=token)[0], 403)
            status, made, _ = d.call("POST", PATH, wanted, token=ola)
            self.assertEqual(status, 200, made)
            self.assertEqual(
                {k: v for k, v in made.items() if k != "set_at"},
                {
                    "name": "nsw",
                    "source": "stored",
                    "hides_stored": False,
                    "days": ["2026-12-25..2026-12-26", "2027-01-26"],
                    "n_days": 3,
                    "crons": 0,
                    "set_by": "ola",
                },
            )
            for token in (ann, vic, ola, scoped):
                self.assertEqual(self.named(d, "nsw", token), made)
            d.kill()
            d.start()
            self.assertEqual(self.named(d, "nsw"), made)
            for token in (ann, vic, scoped):
                refused = d.call("POST", PATH + "/remove", {"name": "nsw"}, token=token)
                self.assertEqual(refused[0], 403)
            gone = d.call("POST", PATH + "/remove", {"name": "nsw"}, token=ola)
            self.assertEqual(gone[:2], (200, {"name": "nsw"}))
            self.assertEqual(d.call("POST", PATH + "/remove", {"name": "nsw"})[0], 404)
            self.assertIsNone(self.named(d, "nsw"))
            rows = d.call("GET", "/api/v1/admin/audit-log")[1]["rows"]
            self.assertEqual(
                [
                    (r["user"], r["route"], r["object"])
                    for r in rows
                    if PATH in r["route"] and r["result"] == "ok"
                ],
                [("ola", "POST " + PATH, "nsw"), ("ola", "POST " + PATH + "/remove", "nsw")],
            )

    def test_malformed_ones_are_refused_and_change_nothing(self):
        with Belayd(CONFIG + PEOPLE) as d:
            before = d.call("GET", PATH)[1]
            for body, text in BAD:
                with self.subTest(body=str(body)[:100]):
                    status, reply, _ = d.call("POST", PATH, body)
                    self.assertEqual(status, 400, reply)
                    self.assertIn(text, reply["error"]["text"])
            for body in ({}, {"name": 1}, {"name": "x" * 64}, {"name": "x", "days": []}, []):
                self.assertEqual(d.call("POST", PATH + "/remove", body)[0], 400, body)
            self.assertEqual(d.call("GET", PATH)[1], before)

    def test_the_configuration_decides(self):
        with Belayd(CONFIG + PEOPLE) as d:
            body = {"name": "fixed", "days": ["2027-05-01"]}
            status, reply, _ = d.call("POST", PATH, body)
            self.assertEqual((status, reply["error"]["kind"]), (409, "conflict"))
            self.assertIn("change it there, or choose another name", reply["error"]["text"])
            status, reply, _ = d.call("POST", PATH + "/remove", {"name": "fixed"})
            self.assertEqual(status, 409)
            self.assertIn("remove it there", reply["error"]["text"])
            self.assertEqual(
                self.named(d, "fixed")["days"], ["2026-12-25", "2026-12-31..2027-01-01"]
            )

    def test_cron_entries_follow_at_once(self):
        with Belayd(CONFIG + PEOPLE) as d:
            today = datetime.datetime.now(datetime.timezone.utc).date()
            days = [(today + datetime.timedelta(days=n)).isoformat() for n in range(1, 6)]
            entry = {"name": "nightly", "schedule": "0 0 * * *", "job": JOB, "skip_on": "nsw"}
            status, reply, _ = d.call("POST", "/api/v1/crons", entry)
            self.assertEqual(status, 400)
            self.assertIn("there is no calendar nsw (belay calendar lists", reply["error"]["text"])
            self.assertEqual(d.call("POST", PATH, {"name": "nsw", "days": [days[0]]})[0], 200)
            status, reply, _ = d.call("POST", "/api/v1/crons", entry)
            self.assertEqual(status, 201, reply)
            path = "/api/v1/crons/%d" % reply["id"]

            def left_out():
                return [day["at"][:10] for day in d.call("GET", path)[1]["cron"]["left_out"]]

            self.assertEqual(left_out(), days[:1])
            made = d.call("POST", PATH, {"name": "nsw", "days": [days[1] + ".." + days[2]]})[1]
            self.assertEqual((left_out(), made["crons"]), (days[1:3], 1))
            d.kill()
            d.start()
            self.assertEqual(left_out(), days[1:3])
            said = self.belay(d, "rm", "nsw")
            self.assertEqual(said.returncode, 1)
            self.assertIn("cron entries name it: nightly; edit them first", said.stderr)
            self.assertEqual(d.call("POST", path, {"skip_on": ""})[0], 200)
            self.assertEqual(self.belay(d, "rm", "nsw").stdout, "calendar nsw removed\n")

    def test_the_command_sets_days_and_files(self):
        with Belayd(CONFIG + PEOPLE) as d:
            path = os.path.join(d.state, "holidays.ics")
            with open(path, "w", newline="") as f:
                f.write(ICS % "")
            said = self.belay(d, "set", "berlin", "--ics", path)
            self.assertEqual(
                (said.stdout, said.stderr),
                ("calendar berlin has 5 days\n  2026-12-25..2026-12-28\n  2027-01-01\n", ""),
            )
            said = self.belay(d, "set", "berlin", "2027-01-02,2027-01-01", "2027-05-01")
            self.assertIn("has 3 days\n  2027-01-01..2027-01-02\n  2027-05-01\n", said.stdout)
            shown = self.belay(d, "show", "berlin").stdout
            self.assertRegex(shown, "has 3 days\n(  .*\n){2}set by \\w+\n$")
            self.assertIn("of belayd's configuration\n", self.belay(d, "show", "fixed").stdout)
            rows = json.loads(self.belay(d, "--json").stdout)["calendars"]
            self.assertEqual([row["name"] for row in rows], ["fixed", "berlin"])
            self.assertRegex(self.belay(d, "list").stdout, "(?m)^berlin +stored +3 +0 ")
            with open(path, "w", newline="") as f:
                f.write(ICS % "RRULE:FREQ=YEARLY\r\n")
            for words, code, text in (
                (("set", "berlin", "--ics", path), 2, "holidays.ics: line 11: the event recurs"),
                (("set", "berlin", "--ics", path + "x"), 2, "holidays.icsx"),
                (("set", "berlin", "--ics", path, "2027-01-01"), 2, "expected days"),
                (("set", "berlin"), 2, "expected days"),
                (("set", "berlin", "tomorrow"), 2, "expected a day such as"),
                (("set", "fixed", "2027-01-01"), 1, "belayd's configuration has one"),
                (("rm", "absent"), 1, "there is no calendar absent"),
                (("show", "absent"), 1, 'there is no calendar "absent"'),
                (("list", "--ics", path), 2, "--ics is for"),
                (("show",), 2, "expected belay calendar set"),
            ):
                with self.subTest(words=words):
                    said = self.belay(d, *words)
                    self.assertEqual((said.returncode, said.stdout), (code, ""), said.stderr)
                    self.assertIn(text, said.stderr)
            self.assertEqual(self.named(d, "berlin")["n_days"], 3)


if __name__ == "__main__":
    unittest.main()
