# SPDX-License-Identifier: Apache-2.0
"""The audit log: every route that changes something leaves a row, in the commit of the change; what
was changed, removed or cut off is found."""

import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
import unittest

from belayd import BUILD, JOB, Belayd

# POST, but not in the log (scheduler/api/audit/audit_trail.c says why).
UNRECORDED = {
    "/api/v1/jobs/estimate",
    "/api/v1/audit",
    "/login/device",
    "/api/v1/workdirs/pieces",
    "/api/v1/channels/#/input",
    "/agent/v1/sync",
    "/agent/v1/output/#/#",
    "/agent/v1/workdir/#/#",
    "/agent/v1/workdir/#/#/pieces",
    "/agent/v1/channels/#/claim",
    "/agent/v1/channels/#/output",
    "/agent/v1/channels/#/input",
}
VERIFY = "/api/v1/admin/audit-log/verify"


def rows(d, **query):
    path = "/api/v1/admin/audit-log?" + "&".join("%s=%s" % p for p in query.items())
    status, body, _ = d.call("GET", path)
    assert status == 200, body
    return body["rows"]


class AuditLog(unittest.TestCase):
    def state_of(self, d):
        return os.path.join(d.state, "belay.db")

    def change(self, d, text):
        with contextlib.closing(sqlite3.connect(self.state_of(d))) as db:
            db.execute(text)
            db.commit()

    def copy_database(self, source, to):
        for name in ("belay.db", "belay.db-wal", "belay.db-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(to, name))
        for name in ("belay.db", "belay.db-wal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copy(os.path.join(source, name), to)

    def fault(self, d, head=None):
        status, body, _ = d.call("GET", VERIFY + ("?head=" + head if head else ""))
        self.assertEqual(status, 200, body)
        return body["fault"]

    def test_every_route_that_changes_something_leaves_a_row(self):
        out = subprocess.run([BUILD + "/tests/scheduler/print_routes"], capture_output=True)
        routes = [line.split() for line in out.stdout.decode().splitlines()]
        self.assertGreater(len(routes), 70)
        self.assertLessEqual(UNRECORDED, {path for method, path in routes if method == "POST"})
        with Belayd() as d:
            for i, (method, path) in enumerate(routes):
                if i % 10 == 0:  # a new minute for the limit of refused calls
                    d.stop()
                    d.start()
                with self.subTest(path):
                    last = rows(d)[-1]["seq"] if rows(d) else 0
                    n = path.count("#")
                    target = path.replace("#", "77")
                    if path == "/api/v1/stream":
                        target += "?for_ms=1"  # it has no end otherwise
                    status, _, headers = d.call(method, target, {} if method == "POST" else None)
                    new = rows(d, after=last)
                    signs_in = path == "/login/callback"
                    if (method == "GET" and not signs_in) or path in UNRECORDED:
                        self.assertEqual(new, [])
                        continue
                    self.assertEqual([r["route"] for r in new], ["%s %s" % (method, path)])
                    row = new[0]
                    self.assertEqual(row["request"], headers["X-Request-Id"])
                    self.assertEqual(row["object"].split(" ")[0], ".".join(["77"] * n))
                    self.assertEqual(row["result"] == "ok", status < 300, (row, status))
                    self.assertRegex(
                        row["source"], r"^unix uid=%d pid=%d$" % (os.getuid(), os.getpid())
                    )
            self.assertIsNone(self.fault(d))

    def test_a_row_says_who_and_what_and_is_in_the_commit_of_the_change(self):
        with Belayd() as d:
            self.assertEqual(d.call("POST", "/api/v1/jobs", JOB)[1]["id"], 1)
            d.kill()  # answered: so it is on disk, and so is its row
            d.start()
            row = rows(d)[0]
            self.assertEqual(
                (row["route"], row["object"], row["result"]), ("POST /api/v1/jobs", "1", "ok")
            )
            token = d.call("POST", "/api/v1/tokens", {"kind": "api", "user": "ann"})[1]
            ann = {"Authorization": "Bearer " + token["token"]}
            self.assertEqual(
                d.call("POST", "/api/v1/jobs/1/cancel", {}, tls=True, headers=ann)[0], 403
            )
            row = rows(d)[-1]
            self.assertEqual((row["user"], row["object"], row["result"]), ("ann", "1", "denied"))
            self.assertRegex(row["source"], r"^127\.0\.0\.1:\d+ token=%d$" % token["id"])
            self.assertEqual(
                d.call("GET", "/api/v1/admin/audit-log", tls=True, headers=ann)[0], 403
            )
            bad = {"Authorization": "Bearer nonsense"}
            self.assertEqual(d.call("POST", "/api/v1/jobs", JOB, tls=True, headers=bad)[0], 401)
            row = rows(d)[-1]
            self.assertEqual((row["user"], row["result"]), (None, "denied"))
            self.assertNotIn("nonsense", str(rows(d)))

    def test_the_newest_rows_first_a_page_at_a_time_and_of_one_user(self):
        with Belayd() as d:
            token = d.call("POST", "/api/v1/tokens", {"kind": "api", "user": "ann"})[1]
            ann = {"Authorization": "Bearer " + token["token"]}
            for k in range(4):
                tls = {"tls": True, "headers": ann} if k == 2 else {}
                self.assertEqual(d.call("POST", "/api/v1/jobs", JOB, **tls)[0], 201)
            oldest_first = [r["seq"] for r in rows(d)]
            self.assertEqual(len(oldest_first), 5)
            seen, before = [], 2**53 - 1
            while page := rows(d, before=before, limit=2):
                self.assertLessEqual(len(page), 2)
                seen += [r["seq"] for r in page]
                before = page[-1]["seq"]
            self.assertEqual(seen, oldest_first[::-1])
            of_ann = rows(d, before=2**53 - 1, user="ann")
            self.assertEqual([r["seq"] for r in of_ann], [oldest_first[3]])
            self.assertEqual(rows(d, user="nobody-else"), [])
            both = rows(d, after=oldest_first[0], before=oldest_first[3])
            self.assertEqual([r["seq"] for r in both], oldest_first[2:0:-1])
            for bad in ("before=0", "before=x", "user=" + 64 * "a"):
                self.assertEqual(d.call("GET", "/api/v1/admin/audit-log?" + bad)[0], 400, bad)

    def test_refused_calls_are_bounded_and_counted(self):
        with Belayd() as d:
            for _ in range(50):
                self.assertEqual(d.call("POST", "/api/v1/jobs/9/cancel", {})[0], 404)
            self.assertEqual(len(rows(d)), 20)  # REFUSED_PER_USER
            self.assertEqual(d.call("POST", "/api/v1/jobs", JOB)[0], 201)
            self.assertEqual(
                rows(d)[-1]["result"], "ok"
            )  # what changed something is never left out

    def test_a_changed_removed_or_cut_log_is_found(self):
        with Belayd() as d:
            for _ in range(6):
                d.call("POST", "/api/v1/jobs", JOB)
            body = d.call("GET", VERIFY)[1]
            self.assertEqual((body["rows"], body["fault"]), (6, None))
            head = "%d:%s" % (body["rows"], body["hash"])
            self.assertIsNone(self.fault(d, head))
            self.assertRegex(self.fault(d, "3:" + "0" * 64), "row 3 .* is not the one whose hash")
            self.assertEqual(d.call("GET", VERIFY + "?head=x")[0], 400)
            d.stop()
            good = os.path.join(d.dir, "good")
            os.mkdir(good)
            self.copy_database(d.state, good)
            head_file = os.path.join(d.state, "audit.head")
            with open(head_file) as f:
                good_head = f.read()
            for text, pattern in (
                ("UPDATE audit_log SET user = 'eve' WHERE seq = 3", "row 3 .* was changed"),
                ("UPDATE audit_log SET at = at + 1 WHERE seq = 6", "row 6 .* was changed"),
                ("DELETE FROM audit_log WHERE seq = 2", "row 2 .* is missing"),
                ("DELETE FROM audit_log WHERE seq = 1", "row 1 .* is missing"),
                ("DELETE FROM audit_log WHERE seq > 4", "ends at row 4, but it had row 6"),
                ("DELETE FROM audit_log", "ends at row 0, but it had row 6"),
            ):
                with self.subTest(text):
                    self.copy_database(good, d.state)
                    with open(head_file, "w") as f:
                        f.write(good_head)
                    self.change(d, text)
                    d.start()
                    self.assertRegex(self.fault(d), pattern)
                    for _ in range(8):  # more rows do not hide it, nor does a restart
                        d.call("POST", "/api/v1/jobs", JOB)
                    d.stop()
                    d.start()
                    self.assertIsNotNone(self.fault(d))
                    d.stop()
            # A head cannot be forged without the key, nor taken away.
            self.copy_database(good, d.state)
            with open(head_file, "w") as f:
                f.write(re.sub(r"(?m)^\d+", "4", good_head))
            d.start()
            self.assertRegex(self.fault(d), "audit.head .* no valid head")
            d.call("POST", "/api/v1/jobs", JOB)
            self.assertIsNotNone(self.fault(d))
            d.stop()
            self.assertIn("the end of the audit log was cut off or changed", d.log())

    def test_the_level_of_the_log_and_the_names_of_requests(self):
        with Belayd() as d:
            status, body, headers = d.call("POST", "/api/v1/admin/log-level", {"level": "debug"})
            self.assertEqual((status, body), (200, {"level": "debug"}))
            self.assertRegex(headers["X-Request-Id"], r"^1-[0-9a-f]+$")
            self.assertIn("request=" + headers["X-Request-Id"], d.log())
            status, body, _ = d.call("POST", "/api/v1/admin/log-level", {"level": "loud"})
            self.assertEqual(status, 400)
            self.assertIn("expected debug, info", body["error"]["text"])
            ids = {d.call("GET", "/healthz")[2]["X-Request-Id"] for _ in range(3)}
            self.assertEqual(len(ids), 3)


if __name__ == "__main__":
    unittest.main()
