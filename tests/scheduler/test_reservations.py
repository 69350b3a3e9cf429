# SPDX-License-Identifier: Apache-2.0
"""Reservations for maintenance, with a real belayd: who may make them, what is refused, what is
shown, and that they survive its death."""

import datetime
import time
import unittest

from belayd import CONFIG, JOB, WAIT_S, Belayd, Node

PEOPLE = """users: {vic: viewer, ola: operator}
teams:
  red: {users: [ann]}
"""
PATH = "/api/v1/reservations"
BAD = [
    ({}, "reservation.name"),
    ({"name": "x"}, "reservation.for_ms"),
    ({"name": "x", "for_ms": 59999, "pool": "base"}, "reservation.for_ms"),
    ({"name": "x", "for_ms": 60000}, "one of nodes and pool"),
    ({"name": "x", "for_ms": 60000, "pool": "base", "nodes": "n1"}, "one of nodes and pool"),
    ({"name": "x", "for_ms": 60000, "nodes": "n[1-"}, "reservation.nodes"),
    ({"name": "x", "for_ms": 60000, "nodes": "n[1-99999]"}, "reservation.nodes"),
    ({"name": "x", "for_ms": 60000, "nodes": "n" * 3000}, "reservation.nodes"),
    ({"name": "x\n", "for_ms": 60000, "pool": "base"}, "a reservation's name"),
    ({"name": "x" * 64, "for_ms": 60000, "pool": "base"}, "reservation.name"),
    ({"name": "x", "for_ms": 60000, "pool": "base", "every": "day"}, "reservation.every"),
    ({"name": "x", "for_ms": 60000, "pool": "base", "from": "soon"}, "reservation.from"),
    ({"name": "x", "for_ms": 60000, "pool": "base", "from": "2020-01-01T00:00:00Z"}, "in the past"),
    ({"name": "x", "for_ms": 60000, "pool": "base", "from": "2200-01-01T00:00:00Z"}, "366 days"),
    ({"name": "x", "for_ms": 60000, "pool": "base", "zone": "Mars/Phobos"}, "Mars/Phobos"),
    ({"name": "x", "for_ms": 60000, "pool": "base", "zone": "../etc/passwd"}, "reservation.zone"),
    ({"name": "x", "for_ms": 60000, "pool": "base", "users": ["a b"]}, "reservation.users"),
    ({"name": "x", "for_ms": 60000, "pool": "base", "users": [1]}, "reservation.users"),
    ({"name": "x", "for_ms": 60000, "pool": "base", "users": ["u"] * 17}, "reservation.users"),
    ({"name": "x", "for_ms": 60000, "pool": "base", "teams": ["pink"]}, "no team 'pink'"),
    ({"name": "x", "for_ms": 60000, "pool": "base", "reason": "r" * 128}, "reservation.reason"),
    ({"name": "x", "for_ms": 60000, "pool": "base", "reason": "a\nb"}, "reservation.reason"),
    ({"name": "x", "for_ms": 60000, "pool": "base", "reason": "\u202egnp"}, "reservation.reason"),
    ({"name": "x", "for_ms": 60000, "pool": "base", "colour": 1}, "colour"),
    ({"name": "x", "for_ms": 60000, "pool": "nowhere"}, "no pool 'nowhere'"),
    ([], "reservation"),
]


def at(seconds):
    when = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


class Reservations(unittest.TestCase):
    def test_operators_make_and_remove_them_and_all_read_them(self):
        with Belayd(CONFIG + PEOPLE) as d:
            ann, vic, ola = (d.token(kind="api", user=u) for u in ("ann", "vic", "ola"))
            scoped = d.token(kind="api", user="ola", scope="pool=spare")
            name = [n for n in d.call("GET", "/api/v1/nodes")[1]["nodes"] if n["id"]]
            self.assertEqual(name, [])
            node = Node(d)
            name = d.call("GET", "/api/v1/nodes")[1]["nodes"][0]["name"]
            wanted = {
                "name": "disks",
                "nodes": name,
                "from": at(3600),
                "for_ms": 7200000,
                "reason": "new disks",
                "users": ["ola"],
                "teams": ["red"],
            }
            for token in (ann, vic, scoped):
                self.assertEqual(d.call("POST", PATH, wanted, token=token)[0], 403)
            status, made, _ = d.call("POST", PATH, wanted, token=ola)
            self.assertEqual(status, 201, made)
            self.assertEqual(
                (made["state"], made["by"], made["n_nodes"], made["users"], made["teams"]),
                ("planned", "ola", 1, ["ola"], ["red"]),
            )
            self.assertEqual(d.call("POST", PATH, wanted, token=ola)[0], 409)
            for token in (ann, vic, ola):
                self.assertEqual(d.call("GET", PATH, token=token)[1]["reservations"], [made])
            shown = d.call("GET", "/api/v1/nodes", token=vic)[1]["nodes"][0]
            self.assertEqual(shown["id"], node.number)
            self.assertEqual(shown["reservation"], "disks")
            self.assertRegex(shown["reservation_text"], r" to .* \(UTC\): new disks$")
            self.assertRegex(d.belay("nodes").stdout, r"disks: .* to .* \(UTC\): new disks ")
            d.kill()
            d.start()
            self.assertEqual(d.call("GET", PATH)[1]["reservations"], [made])
            remove = PATH + "/%d/remove" % made["id"]
            for token in (ann, vic):
                self.assertEqual(d.call("POST", remove, token=token)[0], 403)
            self.assertEqual(d.call("POST", remove, token=ola)[0], 200)
            self.assertEqual(d.call("POST", remove, token=ola)[0], 404)
            self.assertEqual(d.call("GET", PATH)[1]["reservations"], [])
            again = d.call("POST", PATH, wanted, token=ola)[1]
            self.assertGreater(again["id"], made["id"])
            rows = d.call("GET", "/api/v1/admin/audit-log")[1]["rows"]
            made_rows = [r for r in rows if r["route"] == "POST " + PATH and r["result"] == "ok"]
            self.assertEqual(
                [(r["user"], r["object"]) for r in made_rows],
                [("ola", str(made["id"])), ("ola", str(again["id"]))],
            )

    def test_malformed_ones_are_refused_and_change_nothing(self):
        with Belayd(CONFIG + PEOPLE) as d:
            for body, text in BAD:
                with self.subTest(body=str(body)[:100]):
                    status, reply, _ = d.call("POST", PATH, body)
                    self.assertIn(status, (400, 404), reply)
                    self.assertIn(text, reply["error"]["text"])
            self.assertEqual(d.call("GET", PATH)[1]["reservations"], [])

    def test_the_command_says_what_is_wrong_in_its_own_words(self):
        with Belayd(CONFIG + PEOPLE) as d:
            for words, text in (
                ("--pool base", "--for 2h"),
                ("--for 2h", "--nodes or --pool"),
                ("--for 2h --pool base --nodes n1", "not of both"),
                ("--for 30s --pool base", '1m to 366d, found "30s"'),
                ("--for 367d --pool base", '1m to 366d, found "367d"'),
                ("--for 2h --pool base --every day", 'expected week, found "day"'),
            ):
                with self.subTest(words):
                    done = d.belay("reservation", "add", "x", *words.split())
                    self.assertEqual(done.returncode, 2, done)
                    self.assertIn(text, done.stderr)
            self.assertEqual(d.call("GET", PATH)[1]["reservations"], [])

    def test_a_job_says_what_it_waits_for(self):
        with Belayd(CONFIG + PEOPLE) as d:
            Node(d)
            body = {"name": "patches", "pool": "base", "from": at(600), "for_ms": 60000}
            self.assertEqual(d.call("POST", PATH, {**body, "every": "week"})[0], 201)
            job = {**JOB, "checkpoint": {"method": "none"}}
            reasons = d.call("POST", "/api/v1/jobs?why=1", job)[1]["why"]["reasons"]
            self.assertEqual(reasons[0]["code"], "maintenance-always")
            self.assertIn("is reserved for maintenance (patches) from ", reasons[0]["text"])

    def test_jobs_in_the_way_have_the_names_that_users_know(self):
        with Belayd(CONFIG + PEOPLE) as d:
            node = Node(d)
            more = {"checkpoint": {"method": "none"}}
            array = d.submit(array="7", **more)
            desired, end = node.sync(), time.monotonic() + WAIT_S
            while not desired.get("attempts") and time.monotonic() < end:
                desired = node.sync(have_rev=desired["rev"], wait_ms=10000)
            task = desired["attempts"][0]["job"]
            self.assertNotEqual(task, array)
            node.begin(task)
            job = d.submit(**more)
            node.begin(job)
            body = {"name": "disks", "pool": "base", "from": at(3600), "for_ms": 60000}
            made = d.call("POST", PATH, body)[1]
            self.assertEqual(sorted(made["in_the_way"]), sorted(["%d_7" % array, str(job)]))
            self.assertEqual(d.call("GET", PATH)[1]["reservations"], [made])


if __name__ == "__main__":
    unittest.main()
