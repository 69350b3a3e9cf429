# SPDX-License-Identifier: Apache-2.0
"""Sessions of browsers: from a token, from a one-use link over the UNIX socket, and at the listener
on loopback; what a call with the cookie needs, and what ends a session. The browser is this test.
"""

import contextlib
import getpass
import http.client
import os
import re
import sqlite3
import sys
import unittest
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from belayd import CONFIG, JOB, WAIT_S, Belayd  # noqa: E402

PEOPLE = "users: {vic: viewer, ola: operator, ada: admin}\n"
COOKIE = "__Host-belay"
DAY_S = 86400


class Browser:
    """Keeps one cookie, and sends what a page of the origin would."""

    def __init__(self, d, origin=None):
        self.d, self.origin, self.cookie, self.csrf = d, origin or d.url, None, None
        self.line = None  # of the cookie, as it was set

    def request(self, method, path, body=None, headers=None, host=None):
        url = urllib.parse.urlsplit(self.origin)
        sent = {"Host": host or url.netloc}
        if self.cookie:
            sent["Cookie"] = "%s=%s" % (COOKIE, self.cookie)
        if method != "GET":
            sent["Origin"] = self.origin
            if self.csrf:
                sent["X-CSRF-Token"] = self.csrf
        sent.update(headers or {})
        sent = {k: v for k, v in sent.items() if v is not None}
        on = None
        if url.scheme == "http":
            on = http.client.HTTPConnection("127.0.0.1", url.port, timeout=WAIT_S)
        status, reply, got = self.d.call(method, path, body, tls=True, headers=sent, on=on)
        if on:
            on.close()
        for line in got.get_all("Set-Cookie") or []:
            name, value = line.split(";")[0].split("=", 1)
            if name == COOKIE:
                self.cookie, self.line = value or None, line
        return status, reply, got

    def sign_in(self, path, **body):
        """Returns the status and the reply."""
        status, reply, _ = self.request("POST", path, body)
        if status == 201:
            self.csrf = reply["csrf"]
        return status, reply

    def whoami(self):
        return self.request("GET", "/api/v1/whoami")


def error(reply):
    return reply["error"]["text"]


class Session(unittest.TestCase):
    def setUp(self):
        self.d = Belayd(CONFIG + PEOPLE)
        self.d.__enter__()
        self.addCleanup(self.d.__exit__, None, None, None)
        self.me = getpass.getuser()

    def token(self, **more):
        return self.d.token(kind="api", **more)

    def link(self, **call):
        status, reply, _ = self.d.call("POST", "/api/v1/console/link", {}, **call)
        self.assertEqual(status, 201, reply)
        return reply

    def secret(self, url):
        page, secret = url.split("#link=")
        self.assertTrue(page.endswith("/console/sign-in"), url)
        self.assertRegex(secret, "^[0-9a-f]{64}$")
        return secret

    def signed_in(self, **more):
        b = Browser(self.d)
        status, reply = b.sign_in("/login/session", token=self.token(**more))
        self.assertEqual(status, 201, reply)
        return b

    def on_loopback(self, link=None):
        link = link or self.link()
        b = Browser(self.d, link["url"].split("/console/")[0])
        status, reply = b.sign_in("/login/link", link=self.secret(link["url"]))
        self.assertEqual(status, 201, reply)
        return b

    def rows(self, kind="session"):
        tokens = self.d.call("GET", "/api/v1/tokens")[1]["tokens"]
        return [t for t in tokens if t["kind"] == kind]

    # ---- from a token ----

    def test_a_token_becomes_a_session_with_a_token_of_its_own(self):
        token = self.token(user="ola")
        b = Browser(self.d)
        status, reply = b.sign_in("/login/session", token=token)
        self.assertEqual((status, reply["user"]), (201, "ola"))
        self.assertNotEqual(b.cookie, token)
        flags = b.line.split("; ")[1:]
        for flag in ("Path=/", "Secure", "HttpOnly", "SameSite=Strict"):
            self.assertIn(flag, flags)
        max_age = int(re.search(r"Max-Age=(\d+)", b.line).group(1))
        self.assertTrue(0 < max_age <= 3 * DAY_S, max_age)
        status, me, _ = b.whoami()
        self.assertEqual(
            (status, me["user"], me["role"], me["by"]), (200, "ola", "operator", "session")
        )
        self.assertEqual(me["csrf"], reply["csrf"])
        # the database has neither
        with open(os.path.join(self.d.state, "belay.db"), "rb") as f:
            text = f.read()
        with open(os.path.join(self.d.state, "belay.db-wal"), "rb") as f:
            text += f.read()
        for secret in (token, b.cookie, b.cookie[2:], reply["csrf"]):
            self.assertNotIn(secret.encode(), text)
            self.assertNotIn(secret, self.d.log())

    def test_the_list_and_the_audit_log_name_sessions(self):
        b = self.signed_in(user="vic")
        (row,) = self.rows()
        (parent,) = self.rows("api")
        self.assertEqual((row["user"], row["parent"], row["revoked"]), ("vic", parent["id"], False))
        self.assertEqual(b.whoami()[1]["token"], row["id"])
        self.assertEqual(Browser(self.d).sign_in("/login/session", token="b.wrong")[0], 401)
        self.assertEqual(b.request("POST", "/api/v1/logout")[0], 200)
        audited = [
            (r["route"], r["user"], r["result"])
            for r in self.d.call("GET", "/api/v1/admin/audit-log")[1]["rows"]
        ]
        self.assertIn(("POST /login/session", "vic", "ok"), audited)
        self.assertIn(("POST /login/session", None, "denied"), audited)
        self.assertIn(("POST /api/v1/logout", "vic", "ok"), audited)

    def test_a_session_has_the_limits_of_its_token(self):
        b = self.signed_in(user="ada", scope="read-only", ttl_ms=60000)
        self.assertLessEqual(int(re.search(r"Max-Age=(\d+)", b.line).group(1)), 60)
        self.assertEqual(b.whoami()[1]["scope"], "read-only")
        self.assertEqual(b.request("GET", "/api/v1/jobs")[0], 200)
        self.assertEqual(b.request("POST", "/api/v1/jobs", JOB)[0], 403)
        b = self.signed_in(user="ola", role="viewer")
        self.assertEqual([b.whoami()[1][k] for k in ("role", "scope")], ["viewer", None])
        self.assertEqual(b.request("POST", "/api/v1/jobs", JOB)[0], 403)

    def test_only_a_valid_token_of_the_api_begins_a_session(self):
        revoked = self.token(user="ola")
        self.d.call("POST", "/api/v1/tokens/%d/revoke" % self.rows("api")[0]["id"])
        session = self.signed_in(user="ola").cookie
        for wrong in (
            revoked,
            session,
            "",
            "b.",
            "x" * 255,
            self.d.token(kind="join", pool="base"),
        ):
            b = Browser(self.d)
            status, reply = b.sign_in("/login/session", token=wrong)
            self.assertEqual(status, 401, (wrong, reply))
            self.assertIsNone(b.cookie)
        self.assertEqual(len(self.rows()), 1)

    def test_malformed_bodies_are_refused(self):
        b = Browser(self.d)
        for path, key in (("/login/session", "token"), ("/login/link", "link")):
            for body in ({}, {key: 1}, {key: None}, {key: "x" * 300}, {key: "x", "more": 1}, []):
                status, reply, _ = b.request("POST", path, body)
                self.assertEqual((status, reply["error"]["kind"]), (400, "invalid"), (path, body))
            self.assertEqual(b.request("POST", path, b"{")[0], 400)
            self.assertEqual(b.request("POST", path, b" " * 5000)[0], 413)
            self.assertEqual(b.request("GET", path)[0], 405)

    def test_a_sign_in_by_another_site_is_refused(self):
        token = self.token(user="ola")
        link = self.secret(self.link()["remote_url"])
        for path, body in (("/login/session", {"token": token}), ("/login/link", {"link": link})):
            for origin in (None, "null", "https://evil.example", "http://" + self.d.url[8:]):
                b = Browser(self.d)
                status, reply, _ = b.request("POST", path, body, headers={"Origin": origin})
                self.assertEqual(status, 403, (path, origin))
                self.assertIn("Origin", error(reply))
                self.assertIsNone(b.cookie)
        self.assertEqual(self.rows(), [])

    # ---- calls with the cookie ----

    def test_a_call_that_changes_something_needs_origin_and_csrf(self):
        b, other = self.signed_in(user="ola"), self.signed_in(user="ola")
        self.assertNotEqual(b.csrf, other.csrf)
        for headers, text in (
            ({"Origin": None}, "Origin"),
            ({"Origin": "null"}, "Origin"),
            ({"Origin": "https://evil.example"}, "Origin"),
            ({"Origin": self.d.url + ".evil.example"}, "Origin"),
            ({"X-CSRF-Token": None}, "X-CSRF-Token"),
            ({"X-CSRF-Token": ""}, "X-CSRF-Token"),
            ({"X-CSRF-Token": other.csrf}, "X-CSRF-Token"),
            ({"X-CSRF-Token": b.csrf[:-1]}, "X-CSRF-Token"),
            ({"X-CSRF-Token": b.cookie}, "X-CSRF-Token"),
        ):
            for path, body in (("/api/v1/jobs", JOB), ("/api/v1/logout", None)):
                status, reply, _ = b.request("POST", path, body, headers=headers)
                self.assertEqual(status, 403, (headers, reply))
                self.assertIn(text, error(reply))
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
            self.assertIn(
                b.request(method, "/api/v1/jobs", headers={"Origin": None})[0], (405, 501)
            )
        self.assertEqual(self.d.call("GET", "/api/v1/jobs?state=all")[1]["jobs"], [])
        self.assertEqual(b.request("POST", "/api/v1/jobs", JOB)[0], 201)
        # a GET needs neither, and a call with the header Authorization has no such need
        self.assertEqual(b.request("GET", "/api/v1/jobs", headers={"X-CSRF-Token": None})[0], 200)
        self.assertEqual(
            self.d.call("POST", "/api/v1/jobs", JOB, token=self.token(user="ola"))[0], 201
        )

    def stored(self):
        """All rows of the database, but for when tokens were used."""
        path = "file:%s/belay.db?mode=ro" % self.d.state
        with contextlib.closing(sqlite3.connect(path, uri=True)) as db:
            db.row_factory = sqlite3.Row
            names = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            rows = {n: [dict(r) for r in db.execute("SELECT * FROM " + n)] for (n,) in names}
        for token in rows["tokens"]:
            del token["used_at"]
        return rows

    def test_a_get_changes_nothing(self):
        # nothing but SameSite keeps another site from making a browser send one
        job = self.d.submit(hold=True)
        cron = {"name": "nightly", "schedule": "0 3 * * *", "job": JOB}
        status, reply, _ = self.d.call("POST", "/api/v1/crons", cron)
        self.assertEqual(status, 201, reply)
        b = self.signed_in(user="ada")
        paths = self.d.call("GET", "/api/v1/openapi.json")[1]["paths"]
        # the callback has a cookie and a state of its own; a stream has no end
        apart = ("/login/callback", "/api/v1/stream")
        gets = [p for p, item in paths.items() if "get" in item and p not in apart]
        self.assertGreater(len(gets), 40)
        before = self.stored()
        for path in gets:
            status, reply, _ = b.request("GET", re.sub(r"\{\w+\}", str(job), path))
            self.assertLess(status, 502, (path, reply))
        after = self.stored()
        for name, rows in before.items():
            self.assertEqual(rows, after[name], name)

    def test_csrf_is_given_to_browsers_alone(self):
        token = self.token(user="ola")
        for me in (
            self.d.call("GET", "/api/v1/whoami")[1],
            self.d.call("GET", "/api/v1/whoami", token=token)[1],
        ):
            self.assertIsNone(me["csrf"])

    def test_a_proxy_may_pass_on_the_host_or_be_the_server(self):
        token = self.token(user="ola")
        server = "https://belay.lab.example:%d" % self.d.port  # kept at a restart
        self.d.stop()
        self.d.config += "server: %s\n" % server
        self.d.start()
        for host, origin, status in (
            ("belay.lab.example", server, 201),
            ("10.0.0.7:7443", server, 201),
            ("other.example", "https://other.example", 201),
            ("10.0.0.7:7443", "https://other.example", 403),
            ("belay.lab.example", "http://belay.lab.example", 403),
        ):
            b = Browser(self.d)
            body, sent = {"token": token}, {"Origin": origin, "Host": host}
            self.assertEqual(b.request("POST", "/login/session", body, sent)[0], status, sent)

    # ---- the end ----

    def test_a_browser_that_signs_in_again_has_one_session(self):
        token = self.token(user="ola")
        b = Browser(self.d)
        self.assertEqual(b.sign_in("/login/session", token=token)[0], 201)
        first, csrf = b.cookie, b.csrf
        # the same again: its other pages go on
        self.assertEqual(b.sign_in("/login/session", token=token)[0], 201)
        self.assertEqual((b.cookie, b.csrf, len(self.rows())), (first, csrf, 1))
        # with other limits
        limited = self.token(user="ola", scope="read-only")
        self.assertEqual(b.sign_in("/login/session", token=limited)[0], 201)
        self.assertEqual([t["revoked"] for t in self.rows()], [True, False])
        self.assertEqual(b.request("POST", "/api/v1/jobs", JOB)[0], 403)
        b.cookie = first
        self.assertEqual(b.whoami()[0], 401)
        # links
        b = self.on_loopback()
        again = self.secret(self.link()["url"])
        self.assertEqual(b.sign_in("/login/link", link=again)[0], 201)
        self.assertEqual(len([t for t in self.rows() if not t["revoked"]]), 2)
        status, _ = Browser(self.d, b.origin).sign_in("/login/link", link=again)
        self.assertEqual(status, 401)

    def test_a_session_ends_with_logout_and_with_its_token(self):
        b, other = self.signed_in(user="ola"), self.signed_in(user="ola")
        cookie = b.cookie
        self.assertEqual(b.request("POST", "/api/v1/logout")[0], 200)
        self.assertIsNone(b.cookie)
        self.assertIn("Max-Age=0", b.line)
        b.cookie = cookie
        self.assertEqual(b.whoami()[0], 401)
        self.assertEqual(other.whoami()[0], 200)
        parent = next(t["parent"] for t in self.rows() if not t["revoked"])
        self.assertEqual(self.d.call("POST", "/api/v1/tokens/%d/revoke" % parent)[0], 200)
        self.assertEqual(other.whoami()[0], 401)
        self.assertTrue(all(t["revoked"] for t in self.rows()))

    def test_a_session_can_be_revoked_alone_and_survives_a_restart(self):
        b = self.signed_in(user="ola")
        self.d.stop()
        self.d.start()
        b.origin = self.d.url
        self.assertEqual(b.whoami()[0], 200)
        (row,) = self.rows()
        self.assertEqual(self.d.call("POST", "/api/v1/tokens/%d/revoke" % row["id"])[0], 200)
        self.assertEqual(b.whoami()[0], 401)
        self.assertFalse(self.rows("api")[0]["revoked"])

    # ---- links ----

    def test_a_link_signs_in_once(self):
        link = self.link()
        self.assertEqual(link["user"], self.me)
        secret = self.secret(link["url"])
        self.assertEqual(secret, self.secret(link["remote_url"]))
        self.assertTrue(link["remote_url"].startswith(self.d.url + "/console/sign-in#"))
        self.assertNotIn(secret, self.d.log())
        b = self.on_loopback(link)
        me = b.whoami()[1]
        self.assertEqual((me["user"], me["admin"], me["by"]), (self.me, True, "session"))
        for origin in (b.origin, self.d.url):
            thief = Browser(self.d, origin)
            status, reply = thief.sign_in("/login/link", link=secret)
            self.assertEqual((status, thief.cookie), (401, None))
            self.assertIn("belay console again", error(reply))
        self.assertEqual(len(self.rows()), 1)

    def test_a_link_works_at_the_https_listener(self):
        b = Browser(self.d)
        status, _ = b.sign_in("/login/link", link=self.secret(self.link()["remote_url"]))
        self.assertEqual((status, b.whoami()[1]["user"]), (201, self.me))
        self.assertEqual(b.request("POST", "/api/v1/jobs", JOB)[0], 201)

    def test_a_get_of_the_link_does_not_use_it_up(self):
        link = self.link()
        b = Browser(self.d, link["url"].split("/console/")[0])
        for path in ("/console/sign-in", "/login/link", "/login/link?link=x"):
            b.request("GET", path)
        self.on_loopback(link)

    def test_a_link_made_with_a_token_has_its_limits_and_its_end(self):
        token = self.token(user="ola", scope="read-only")
        link = self.link(token=token)
        self.assertIsNone(link["remote_url"])
        self.assertTrue(link["url"].startswith(self.d.url))
        b = Browser(self.d)
        self.assertEqual(b.sign_in("/login/link", link=self.secret(link["url"]))[0], 201)
        self.assertEqual(b.request("POST", "/api/v1/jobs", JOB)[0], 403)
        unused = self.secret(self.link(token=token)["url"])
        (parent,) = self.rows("api")
        self.d.call("POST", "/api/v1/tokens/%d/revoke" % parent["id"])
        self.assertEqual(b.whoami()[0], 401)
        status, reply = Browser(self.d).sign_in("/login/link", link=unused)
        self.assertEqual(status, 403, reply)

    def test_a_link_of_one_user_does_not_replace_the_session_of_another(self):
        b = self.signed_in(user="ola")
        secret = self.secret(self.link()["remote_url"])
        status, reply = b.sign_in("/login/link", link=secret)
        self.assertEqual(status, 409, reply)
        self.assertIn("signed in as ola", error(reply))
        self.assertEqual(b.whoami()[1]["user"], "ola")
        # and was not used up
        self.assertEqual(Browser(self.d).sign_in("/login/link", link=secret)[0], 201)

    def test_a_session_makes_no_links(self):
        b = self.signed_in(user="ola")
        self.assertEqual(b.request("POST", "/api/v1/console/link", {})[0], 400)

    def test_a_user_has_a_few_links_at_a_time(self):
        links = [self.secret(self.link()["remote_url"]) for _ in range(9)]
        of_other = self.secret(self.link(token=self.token(user="ola"))["url"])
        status = [Browser(self.d).sign_in("/login/link", link=s)[0] for s in links]
        self.assertEqual(status, [401] + [201] * 8)
        self.assertEqual(Browser(self.d).sign_in("/login/link", link=of_other)[0], 201)

    def test_guesses_are_paced_and_do_not_keep_a_good_link_out(self):
        link = self.link()
        b = Browser(self.d, link["url"].split("/console/")[0])
        seen = set()
        for i in range(400):
            seen.add(b.sign_in("/login/link", link="%064x" % i)[0])
            if 429 in seen:
                break
        self.assertEqual(seen, {401, 429})
        self.assertEqual(b.sign_in("/login/session", token="b.guess")[0], 429)
        self.assertGreaterEqual(self.d.metric('belay_api_rate_limited_total{of="sign-in"}'), 2)
        self.on_loopback(link)

    # ---- the listener on loopback ----

    def test_no_port_is_open_before_the_first_link(self):
        self.assertNotIn("browsers of this machine", self.d.log())
        port = urllib.parse.urlsplit(self.link()["url"]).port
        self.assertEqual(urllib.parse.urlsplit(self.link()["url"]).port, port)
        self.assertEqual(self.d.log().count("browsers of this machine"), 1)

    def test_loopback_gives_strangers_nothing(self):
        b = self.on_loopback()
        port = urllib.parse.urlsplit(b.origin).port
        stranger = Browser(self.d, b.origin)
        for path in ("/api/v1/jobs", "/api/v1/whoami", "/metrics", "/api/v1/version"):
            self.assertEqual(stranger.request("GET", path)[0], 401, path)
        for path in ("/agent/v1/join", "/agent/v1/sync", "/agent/v1/renew"):
            self.assertEqual(stranger.request("POST", path, {})[0], 404, path)
        self.assertEqual(stranger.request("GET", "/login/methods")[1], {"oidc": False})
        # a page whose name resolves to 127.0.0.1, and other names of this machine
        for host in ("evil.example", "127.0.0.1", "localhost", "x.localhost", "belay.localhost"):
            for named in (host, "%s:%d" % (host, port)):
                status, reply, _ = b.request("GET", "/api/v1/whoami", host=named)
                self.assertEqual(status, 403, named)
                self.assertIn(b"belay console", reply)

    def test_each_user_has_a_name_that_no_other_learns(self):
        b = self.on_loopback()
        origins = set()
        for user in ("ola", "vic", "ola"):
            token = {"Authorization": "Bearer " + self.token(user=user)}
            status, link, _ = Browser(self.d, b.origin).request(
                "POST", "/api/v1/console/link", {}, headers=token
            )
            self.assertEqual((status, link["user"]), (201, user), link)
            origins.add(link["url"].split("/console/")[0])
        self.assertEqual(len(origins - {b.origin}), 2)
        self.assertEqual(self.link()["url"].split("/console/")[0], b.origin)

    def test_a_session_of_loopback_ends_with_belayd(self):
        b = self.on_loopback()
        self.assertEqual(b.request("POST", "/api/v1/jobs", JOB)[0], 201)
        self.d.stop()
        self.d.start()
        again = self.on_loopback()
        self.assertNotEqual(again.origin.split(":")[1], b.origin.split(":")[1])
        again.cookie = b.cookie
        self.assertEqual(again.whoami()[0], 401)
        # nor is its token of any use elsewhere
        self.assertEqual(self.d.call("GET", "/api/v1/whoami", token=b.cookie)[0], 401)

    def test_a_call_at_loopback_needs_its_own_origin(self):
        b = self.on_loopback()
        port = urllib.parse.urlsplit(b.origin).port
        for origin in (None, "http://127.0.0.1:%d" % port, "http://localhost:%d" % port, "null"):
            status, reply, _ = b.request("POST", "/api/v1/jobs", JOB, headers={"Origin": origin})
            self.assertEqual(status, 403, origin)
            self.assertIn("Origin", error(reply))


if __name__ == "__main__":
    unittest.main(verbosity=2)
