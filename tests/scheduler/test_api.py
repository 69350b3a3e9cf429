# SPDX-License-Identifier: Apache-2.0
"""The API as documented in docs/reference/api.md: access rights, bad input of every kind, and the
results of good input.
"""

import collections
import concurrent.futures
import contextlib
import datetime
import email
import email.policy
import hmac
import http.client
import http.server
import inspect
import json
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import zoneinfo

from belayd import BUILD, CONFIG, JOB, LONG_READ, WAIT_S, Belayd, Node
from receivers import Receivers

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(BUILD, "clients", "python"))
import belay.client  # noqa: E402

NOBODY = 65534

# Run by another user, after belayd.py: makes the calls and prints the answers.
ASK = """
answers = []
for method, path, body in json.loads(sys.argv[2]):
    c = Unix(sys.argv[1], WAIT_S)
    c.request(method, path, json.dumps(body) if body else None)
    reply = c.getresponse()
    answers.append((reply.status, json.loads(reply.read())))
print(json.dumps(answers))
"""


TYPES = {
    "string": str,
    "boolean": bool,
    "object": dict,
    "array": list,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}


def moment(text):
    """Seconds since 1970 of a time as belayd writes it."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Document:
    """The schemas of /api/v1/openapi.json."""

    def __init__(self, doc):
        self.doc = doc

    def find(self, schema):
        if "$ref" in schema:
            where = self.doc
            for name in schema["$ref"][2:].split("/"):
                where = where[name]
            return where
        return schema

    def check(self, value, schema, where="answer"):
        """Raises if the value does not match the schema; a member that is not described is an
        error.
        """
        schema = self.find(schema)
        if "anyOf" in schema:
            fitting = next(
                s for s in schema["anyOf"] if (s.get("type") == "null") == (value is None)
            )
            return self.check(value, fitting, where)
        kinds = schema.get("type", [])
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if kinds and not any(
            isinstance(value, TYPES[k])
            and not (k in ("integer", "number") and isinstance(value, bool))
            for k in kinds
        ):
            raise AssertionError("%s: %r is no %s" % (where, value, " or ".join(kinds)))
        if "enum" in schema and value not in schema["enum"]:
            raise AssertionError("%s: %r is none of %s" % (where, value, schema["enum"]))
        if isinstance(value, dict) and "properties" in schema:
            missing, more = set(schema["required"]) - set(value), set(value) - set(
                schema["properties"]
            )
            if missing or (more and schema["additionalProperties"] is False):
                raise AssertionError(
                    "%s: not there: %s; not described in scheduler/api/openapi.json: %s"
                    % (where, sorted(missing), sorted(more))
                )
            for name in set(value) & set(schema["properties"]):
                self.check(value[name], schema["properties"][name], where + "." + name)
        for i, item in enumerate(value if isinstance(value, list) else []):
            self.check(item, schema["items"], "%s[%d]" % (where, i))

    def operations(self):
        for path, item in self.doc["paths"].items():
            for method, operation in item.items():
                yield method.upper(), path, operation

    def sample(self, schema):
        """A value that the schema allows."""
        schema = self.find(schema)
        if "examples" in schema:
            return schema["examples"][0]
        if "enum" in schema:
            return schema["enum"][0]
        if schema["type"] == "object":
            return {name: self.sample(s) for name, s in schema.get("properties", {}).items()}
        if schema["type"] == "array":
            return [self.sample(schema["items"])]
        return {"string": "", "boolean": True, "integer": schema.get("minimum", 0)}[schema["type"]]


class Recorder(belay.client.Client):
    """A client that records its calls instead of sending them."""

    def __init__(self):
        super().__init__(socket="/nowhere")

    def _follow(self, path, query, last, restart_s):
        self._raw("GET", path, None, query)
        return iter(())

    def _raw(self, method, path, ids=None, query=None, body=None):
        self.called = (
            method,
            path,
            set(ids or {}),
            set(query or {}),
            set(body or {}) if body != "x" else set(),
        )
        return {"Belay-Log-Next": "0", "Belay-Log-End": "1"}, b"{}"


class Notices(unittest.TestCase):
    def setUp(self):
        self.r = Receivers()
        self.addCleanup(self.r.close)

    def belayd(self, more="notify_allow: [127.0.0.0/8]\n", config=CONFIG):
        folder = tempfile.mkdtemp(prefix="belay-test.")
        self.addCleanup(shutil.rmtree, folder)
        with open(
            os.open(os.path.join(folder, "secret"), os.O_WRONLY | os.O_CREAT, 0o600), "w"
        ) as f:
            f.write("s3cret\n")
        return Belayd(
            config
            + more
            + "webhooks:\n  all: {url: '%s/all/t0ken', secret_file: %s/secret}\n"
            % (self.r.url, folder)
            + "mail: {smtp: 'smtp://127.0.0.1:%d', from: belay@lab.example}\n"
            % self.r.smtp.server_address[1]
        )

    def end_a_job(self, d, **more):
        job = d.submit(**{**JOB, **more})
        d.call("POST", "/api/v1/jobs/%d/cancel" % job)
        return job

    def events(self, d, job):
        return d.call("GET", "/api/v1/jobs/%d/events" % job)[1]["events"]

    def test_subscribers_are_notified(self):
        with self.belayd() as d:
            job = self.end_a_job(
                d,
                notify={
                    "mail_types": ["end"],
                    "mail_user": "ann@example.com",
                    "urls": [self.r.url + "/mine/t0ken"],
                },
            )
            posts = dict(
                (path, (headers, body))
                for path, headers, body in (self.r.posts.get(timeout=WAIT_S) for _ in range(2))
            )
            self.assertEqual(set(posts), {"/all/t0ken", "/mine/t0ken"})
            headers, body = posts["/all/t0ken"]
            self.assertEqual(
                headers["X-Belay-Signature"],
                "sha256=" + hmac.new(b"s3cret", body, "sha256").hexdigest(),
            )
            told = json.loads(body)
            self.assertEqual(
                (told["event"], told["job"], told["end"], told["id"]),
                ("end", job, "cancelled", headers["X-Belay-Id"]),
            )
            self.assertIsNone(posts["/mine/t0ken"][0]["X-Belay-Signature"])
            self.assertEqual(json.loads(posts["/mine/t0ken"][1])["id"], told["id"])
            said, text = self.r.mails.get(timeout=WAIT_S)
            self.assertIn("RCPT TO:<ann@example.com>", said)
            self.assertIn(b'\r\nSubject: [belay lab] job %d "job"' % job, text)
            # neither shown nor stored in clear
            shown = d.call("GET", "/api/v1/jobs/%d" % job)[1]
            self.assertEqual(shown["spec"]["notify"]["hosts"], ["127.0.0.1"])
            self.assertNotIn("t0ken", json.dumps(shown))
            with open(os.path.join(d.state, "belay.db"), "rb") as f, open(
                os.path.join(d.state, "belay.db-wal"), "rb"
            ) as g:
                self.assertNotIn(b"mine/t0ken", f.read() + g.read())
            self.assertNotIn("t0ken", d.log())

    def test_a_report_goes_where_notices_do(self):
        report = {
            "subject": "what team \u00fcber spent\r\nBcc: eve@example.com",
            "text": "spent $1\n.\n" + "x" * 2000 + "\u00fc\n",
            "html": "<p>$1</p>" * 100,
        }
        with self.belayd() as d:
            self.assertEqual(
                d.call("POST", "/api/v1/cost/report", {**report, "mail": "lead@example.com"})[:2],
                (200, {"told": "lead@example.com"}),
            )
            said, text = self.r.mails.get(timeout=WAIT_S)
            self.assertEqual(
                [s for s in said if s.startswith("RCPT")], ["RCPT TO:<lead@example.com>"]
            )
            self.assertLess(max(map(len, text.split(b"\r\n"))), 100)
            mail = email.message_from_bytes(text, policy=email.policy.default)
            self.assertEqual(
                (mail["From"], mail["To"], mail["Bcc"]),
                ("belay@lab.example", "lead@example.com", None),
            )
            self.assertEqual(
                mail["Subject"], "[belay lab] what team \u00fcber spent??Bcc: eve@example.com"
            )
            self.assertEqual(
                [(p.get_content_type(), p.get_content()) for p in mail.iter_parts()],
                [("text/plain", report["text"]), ("text/html", report["html"])],
            )
            self.assertEqual(
                d.call(
                    "POST", "/api/v1/cost/report", {**report, "url": self.r.url + "/chat/t0ken"}
                )[:2],
                (200, {"told": "127.0.0.1"}),
            )
            path, headers, body = self.r.posts.get(timeout=WAIT_S)
            told = json.loads(body)
            self.assertEqual(
                (path, headers["X-Belay-Event"], headers["X-Belay-Signature"]),
                ("/chat/t0ken", "report", None),
            )
            self.assertEqual(
                (told["event"], told["cluster"], told["subject"], told["text"]),
                ("report", "lab", report["subject"], report["text"]),
            )
            self.r.answers["/chat/t0ken"] = [500]
            code, said, _ = d.call(
                "POST", "/api/v1/cost/report", {**report, "url": self.r.url + "/chat/t0ken"}
            )
            self.assertEqual((code, said["error"]["kind"]), (503, "unavailable"))
            self.assertEqual(self.r.posts.get(timeout=WAIT_S)[0], "/chat/t0ken")
            for wrong in (
                {},
                {"mail": "a", "url": self.r.url},
                {"mail": "-x"},
                {"mail": "a b"},
                {"mail": "a@b\r\nBcc: c"},
                {"url": "ftp://x/"},
                {"url": "http://u:p@x/"},
                {"mail": "a", "text": None},
                {"mail": "a", "text": 1},
                {"mail": "a", "subject": "x" * 201},
                {"mail": "a", "text": "x" * 262145},
                {"mail": "a", "more": 1},
            ):
                code, said, _ = d.call("POST", "/api/v1/cost/report", {**report, **wrong})
                self.assertEqual((code, said["error"]["kind"]), (400, "invalid"), wrong)
            env = {**os.environ, "BELAY_SOCKET": d.socket}
            cost = [
                os.path.join(BUILD, "cli/belay"),
                "cost",
                "--weekly-report",
                "--team",
                "nlp",
                "--mail",
                "lead@example.com",
                "--post",
                self.r.url + "/week/t0ken",
            ]
            done = subprocess.run(
                cost,
                capture_output=True,
                text=True,
                timeout=WAIT_S,
                stdin=subprocess.DEVNULL,
                env=env,
            )
            self.assertEqual(
                (done.returncode, done.stdout, done.stderr),
                (0, "sent to lead@example.com\nsent to 127.0.0.1\n", ""),
            )
            mail = email.message_from_bytes(
                self.r.mails.get(timeout=WAIT_S)[1], policy=email.policy.default
            )
            text, page = (p.get_content() for p in mail.iter_parts())
            self.assertRegex(text, r"^belay: what team nlp spent from 20\d\d-\d\d-\d\d to ")
            self.assertIn("</html>", page)
            self.assertEqual(json.loads(self.r.posts.get(timeout=WAIT_S)[2])["text"], text)
            self.assertNotIn("t0ken", d.log())
            token = d.token(kind="api", user="ann")
            self.assertEqual(
                d.call("POST", "/api/v1/cost/report", {**report, "mail": "a"}, token=token)[0], 403
            )
        with self.belayd(more="") as d:
            code, said, _ = d.call(
                "POST", "/api/v1/cost/report", {**report, "url": self.r.url + "/chat/t0ken"}
            )
            self.assertEqual((code, said["error"]["kind"]), (403, "denied"))
            self.assertIn("notify_allow", said["error"]["text"])

    def test_a_report_that_is_under_way_ends_with_belayd(self):
        with socket.create_server(
            ("127.0.0.1", 0)
        ) as silent, self.belayd() as d, concurrent.futures.ThreadPoolExecutor() as pool:
            silent.settimeout(WAIT_S)
            report = {
                "subject": "s",
                "text": "t",
                "url": "http://127.0.0.1:%d/" % silent.getsockname()[1],
            }
            calls = [pool.submit(d.call, "POST", "/api/v1/cost/report", report) for _ in range(2)]
            taken = [silent.accept()[0] for _ in calls]
            code, said, _ = d.call("POST", "/api/v1/cost/report", report)
            self.assertEqual((code, said["error"]["kind"]), (503, "unavailable"))
            self.assertIn("2 reports are being sent", said["error"]["text"])
            self.assertEqual(d.end(), [])
            for call in calls:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    self.assertEqual(call.result(timeout=WAIT_S)[0], 503)
            for one in taken:
                one.close()

    def test_a_mail_that_is_with_the_server_when_belayd_ends_harms_nothing(self):
        with socket.create_server(
            ("127.0.0.1", 0)
        ) as silent, concurrent.futures.ThreadPoolExecutor() as pool, Belayd(
            CONFIG + "mail: {smtp: 'smtp://127.0.0.1:%d'}\n" % silent.getsockname()[1]
        ) as d:
            silent.settimeout(WAIT_S)
            call = pool.submit(
                d.call, "POST", "/api/v1/cost/report", {"subject": "s", "text": "t", "mail": "ann"}
            )
            server = silent.accept()[0]
            ended = pool.submit(d.end)
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.assertEqual(call.result(timeout=WAIT_S)[0], 503)
            server.close()  # of the delivery, only the waiting thread is left in belayd
            self.assertEqual(ended.result(timeout=2 * WAIT_S), [])

    def test_what_was_not_delivered_is_delivered_after_a_crash(self):
        self.r.answers["/all/t0ken"] = [503]
        with self.belayd() as d:
            self.end_a_job(d)
            first = self.r.posts.get(timeout=WAIT_S)[1]["X-Belay-Id"]
            d.kill()
            self.r.answers["/all/t0ken"] = [200]
            d.start()
            self.assertEqual(self.r.posts.get(timeout=WAIT_S)[1]["X-Belay-Id"], first)

    def test_thresholds_of_a_budget_are_notified_once_over_a_restart(self):
        more = "notify_allow: [127.0.0.0/8]\nbudgets:\n  all: {usd_per_month: 1000, mail: [finance@example.com]}\n"
        with self.belayd(
            more, config=CONFIG.replace("base: {}", "base: {usd_per_hour: 3600000}")
        ) as d:
            Node(d)
            d.submit(**JOB)  # at $1000 a second
            got = [self.r.posts.get(timeout=WAIT_S) for _ in range(3)]
            posts = [json.loads(post[2]) for post in got]
            self.assertEqual(
                [(p["event"], p["budget"], p["percent"], p["cap_uusd"]) for p in posts],
                [("budget", "all", pct, 1000000000) for pct in (50, 80, 100)],
            )
            self.assertGreaterEqual(posts[2]["spent_uusd"], 1000000000)
            for pct in (50, 80, 100):
                said, text = self.r.mails.get(timeout=WAIT_S)
                self.assertIn("RCPT TO:<finance@example.com>", said)
            self.assertIn(b"budget all: 100 % of $1000.00 are spent", text)
            self.assertIn(b"belay budget show all has more", text)
            d.kill()
            d.start()
            budget = d.call("GET", "/api/v1/budgets")[1]["budgets"][0]
            self.assertEqual((budget["told_percent"], budget["jobs"]), (100, 1))
            self.assertGreater(budget["spent_uusd"], 1000000000)
            self.end_a_job(d, cpus=2)
            told = {post[1]["X-Belay-Id"] for post in got}
            post = self.r.posts.get(timeout=WAIT_S)
            while (
                post[1]["X-Belay-Id"] in told
            ):  # belayd was killed before it recorded the delivery
                post = self.r.posts.get(timeout=WAIT_S)
            self.assertEqual(json.loads(post[2])["event"], "end")  # and nothing new before it

    def test_forbidden_urls_are_refused_and_reported(self):
        with self.belayd(more="") as d:
            job = self.end_a_job(d, notify={"urls": [self.r.url + "/mine/t0ken"]})
            self.assertEqual(
                self.r.posts.get(timeout=WAIT_S)[0], "/all/t0ken"
            )  # the operator's may
            d.wait_tried([job])
            d.try_notifications_last()
            deadline = time.monotonic() + WAIT_S
            while (
                not (told := [e for e in self.events(d, job) if e["kind"] == "not-told"])
                and time.monotonic() < deadline
            ):
                d.call(
                    "GET",
                    "/api/v1/jobs/%d/events?after=%d&wait_ms=5000"
                    % (job, self.events(d, job)[-1]["id"]),
                )
            self.assertIn(
                "127.0.0.1 was not notified: it did not accept the request, or is not allowed (notify_allow)",
                told[0]["text"],
            )
            self.assertTrue(self.r.posts.empty())


class Api(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.d = Belayd(
            CONFIG
            + "budgets:\n  nlp: {match: {team: nlp, labels: {project: x}}, usd_per_month: 20000, at_limit: park}\n"
        )
        cls.d.start()

    @classmethod
    def tearDownClass(cls):
        cls.d.__exit__(None, None, None)

    def check_error(self, reply, status, kind, *texts):
        self.assertEqual((reply[0], reply[1]["error"]["kind"]), (status, kind), reply[1])
        for text in texts:
            self.assertIn(text, reply[1]["error"]["text"])

    def refuse(self, status, kind, method, path, body=None, *texts, **more):
        self.check_error(self.d.call(method, path, body, **more), status, kind, *texts)

    # ---- bodies ----

    def test_bodies_that_are_no_json_are_refused(self):
        script = json.dumps(JOB).encode()
        for body, text in (
            (b"", ""),
            (b"{", ""),
            (b"nonsense", ""),
            (script[:-1], ""),
            (script + b"x", ""),
            (b"[" * 40 + b"]" * 40, ""),
            (b'{"script":"#!","script":"#!"}', "duplicate"),
            (b'{"script": "\xff"}', ""),
            (b'{"script": "a\\u0000b"}', ""),
            (b'{"cpus": 1e999}', ""),
            (b'{"cpus": 99999999999999999999}', ""),
            (b"null", "spec"),
            (b"[]", "spec"),
            (b'"x"', ""),
        ):
            with self.subTest(body[:40]):
                self.refuse(400, "invalid", "POST", "/api/v1/jobs", body, text)
        self.refuse(400, "invalid", "POST", "/api/v1/tokens", b"{", "body")

    def test_specifications_are_refused_with_their_path(self):
        self.refuse(
            400,
            "invalid",
            "POST",
            "/api/v1/jobs",
            {**JOB, "cpus": "four"},
            'spec.cpus: expected an integer in 1 .. 4096, found "four"',
        )
        self.refuse(
            400, "invalid", "POST", "/api/v1/jobs", {**JOB, "cpu": 1}, 'did you mean "cpus"'
        )
        for pools, text in (
            ("nowhere", 'there is no pool "nowhere"'),
            ("base,nowhere", 'there is no pool "nowhere"'),
            ("base,", "has an empty item"),
            ("base,,spare", "has an empty item"),
            ("base, spare", "is not a pool's name"),
            ("base,base", "named twice"),
            (["base"], "spec.pool"),
            (",".join("p%02d" % i for i in range(17)), "63"),
        ):
            self.refuse(400, "invalid", "POST", "/api/v1/jobs", {**JOB, "pool": pools}, text)
        self.refuse(
            400,
            "invalid",
            "POST",
            "/api/v1/jobs",
            {**JOB, "window": "lunch"},
            'spec.window: there is no window "lunch"',
        )

        self.refuse(
            400,
            "invalid",
            "POST",
            "/api/v1/jobs",
            {**JOB, "drill": True},
            "spec.drill",
            "nothing is saved",
        )

    def test_criu_needs_encrypted_checkpoints(self):
        job = {**JOB, "checkpoint": {"method": "criu"}}
        text = '"criu" restores as root what the store holds, so it needs encrypted checkpoints'
        self.refuse(400, "invalid", "POST", "/api/v1/jobs", job, text)
        cron = {"name": "nightly", "schedule": "0 1 * * *", "job": job}
        self.refuse(400, "invalid", "POST", "/api/v1/crons", cron, text)
        with Belayd(CONFIG + "encryption: client\n") as d:
            self.assertNotIn("encrypted", str(d.call("POST", "/api/v1/jobs", job)[1]))

    def test_bodies_that_are_too_large_are_refused(self):
        for n in ((2 << 20) + 1, (9 << 20) + 1):
            self.refuse(413, "invalid", "POST", "/api/v1/jobs", b" " * n)
        self.refuse(413, "invalid", "POST", "/api/v1/tokens", b" " * 5000)
        answer = self.d.raw(
            b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000000\r\n\r\n"
        )
        self.assertIn(b" 413 ", answer.split(b"\r\n")[0])

    def test_strangers_can_send_little(self):
        token, brief = self.d.token(kind="api", user="ann"), self.d.token(
            kind="api", user="ann", ttl_ms=1
        )
        script = {**JOB, "script": "#!/bin/sh\n" + "x" * (64 << 10)}
        for more in ({}, {"token": "x"}, {"token": brief}):
            with self.subTest(more):
                self.refuse(
                    413, "invalid", "POST", "/api/v1/jobs", script, "65536 bytes", tls=True, **more
                )
                self.refuse(
                    413,
                    "invalid",
                    "POST",
                    "/agent/v1/join",
                    script,
                    "65536 bytes",
                    tls=True,
                    **more,
                )
        self.refuse(401, "denied", "POST", "/api/v1/jobs", b" " * (64 << 10), tls=True)
        self.assertEqual(self.d.call("POST", "/api/v1/jobs", script, token=token)[0], 201)
        # Refused at the headers, without waiting for the body.
        answer = self.d.raw(
            b"POST /agent/v1/join HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n", tls=True
        )
        self.assertIn(b" 413 ", answer.split(b"\r\n")[0])

    def test_a_body_of_the_greatest_size_is_taken(self):
        script = "#!/bin/sh\n" + "x" * ((1 << 20) - 10)
        job = self.d.submit(script=script)
        self.assertEqual(self.d.call("GET", "/api/v1/jobs/%d" % job)[1]["spec"]["script"], script)
        self.refuse(
            400, "invalid", "POST", "/api/v1/jobs", {**JOB, "script": script + "x"}, "spec.script"
        )

    def test_what_is_not_http_is_survived(self):
        for data in (
            b"",
            b"\x00" * 100,
            b"GET\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"\x16\x03\x01\x02\x00",
            b"GET /api/v1/jobs HTTP/1.1\r\n" + b"X: y\r\n" * 10000,
            b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
            b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
            b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        ):
            self.d.raw(data, hear=False)
            self.d.raw(data, tls=True, hear=False)
            self.assertEqual(self.d.call("GET", "/healthz")[1], b"ok\n")
        with socket.create_connection(("127.0.0.1", self.d.port)) as s:  # plain HTTP on a TLS port
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            s.settimeout(WAIT_S)
            try:
                self.assertNotIn(b"HTTP/1.1 200", s.recv(1000))
            except OSError:
                pass
        self.assertEqual(self.d.call("GET", "/healthz")[1], b"ok\n")

    # ---- paths and queries ----

    def test_wrong_methods_are_refused(self):
        for method, path, allowed in (
            ("DELETE", "/api/v1/jobs/1", "GET"),
            ("PUT", "/api/v1/tokens", "POST, GET"),
            ("GET", "/api/v1/jobs/1/cancel", "POST"),
            ("POST", "/metrics", "GET"),
        ):
            reply = self.d.call(method, path)
            self.check_error(
                reply, 405, "invalid", "%s is not for %s, which takes %s;" % (method, path, allowed)
            )
            self.assertEqual(reply[2]["Allow"], allowed)

    def test_unknown_paths_are_refused(self):
        for path in (
            "/api",
            "/api/v1",
            "/api/v1/job",
            "/api/v1/jobs/",
            "/api/v1/jobs/x",
            "/api/v1/jobs/0",
            "/api/v1/jobs/-1",
            "/api/v1/jobs/1/",
            "/api/v1/jobs/1/why/not",
            "/api/v1/jobs/99999999999999999999",
            "/api/v2/jobs",
            "/../etc/passwd",
            "/api/v1/../v1/jobs",
            "//api/v1/jobs",
        ):
            with self.subTest(path):
                self.refuse(404, "not-found", "GET", path)
        for path in ("/api/v1/jobs%00", "/api/v1/jobs/%zz", "/api/v1/jobs%"):
            with self.subTest(path):
                self.assertIn(self.d.call("GET", path)[0], (400, 404))

    def test_queries_out_of_range_are_refused(self):
        for query in (
            "limit=0",
            "limit=201",
            "limit=x",
            "limit=",
            "before=0",
            "before=-1",
            "before=1e3",
            "state=some",
            "state=",
            "limit=1%00",
        ):
            with self.subTest(query):
                self.refuse(400, "invalid", "GET", "/api/v1/jobs?" + query)
        job = self.d.submit()
        for path in (
            "events?after=-1",
            "events?wait_ms=25001",
            "events?wait_ms=x",
            "logs?offset=x",
            "logs?max=0",
            "logs?tail=0",
            "logs?tail=1000001",
            "logs?since=soon",
            "logs?attempt=0",
            "logs?attempt=x",
            "logs?max=999999999",
            "logs?wait_ms=-1",
        ):
            with self.subTest(path):
                self.refuse(400, "invalid", "GET", "/api/v1/jobs/%d/%s" % (job, path))
        for path in (
            "/api/v1/drills?limit=0",
            "/api/v1/drills?limit=x",
            "/api/v1/nodes?state=up",
            "/api/v1/instances?state=x",
            "/api/v1/cost?by=weather",
            "/api/v1/jobs/1/diagnose?over_ms=1",
            "/api/v1/jobs/1/diagnose?over_ms=x",
            "/api/v1/jobs/1/load?rank=-1",
            "/api/v1/jobs/1/load?rank=256",
            "/api/v1/use?from=x",
            "/api/v1/use?step_ms=1",
            "/api/v1/use?from=2026-01-01T00:00:00Z&to=2025-01-01T00:00:00Z",
            "/api/v1/use?from=2020-01-01T00:00:00Z&step_ms=60000",
            "/api/v1/cost?from=yesterday",
            "/api/v1/cost?by=team,",
            "/api/v1/cost/jobs?limit=0",
            "/api/v1/cost/jobs?limit=1001",
            "/api/v1/cost/jobs?from=x",
            "/api/v1/cost?by=job,team",
            "/api/v1/cost?by=label:a%22b",
            "/api/v1/cost?by=job&pool=base",
            "/api/v1/cost?by=user,team,pool,day,month",
            "/api/v1/cost?by=" + "label:x," * 100,
            "/api/v1/events?after=x",
        ):
            with self.subTest(path):
                self.refuse(400, "invalid", "GET", path)

    def test_unknown_objects_are_refused(self):
        for path in ("", "/why", "/diagnose", "/load", "/events", "/logs"):
            self.refuse(404, "not-found", "GET", "/api/v1/jobs/4711" + path, None, "4711")
        for path in (
            "/jobs/4711/cancel",
            "/jobs/4711/requeue",
            "/jobs/4711/drill",
            "/jobs/4711/compared",
            "/jobs/4711/save",
            "/nodes/4711/drain",
            "/nodes/4711/undrain",
            "/nodes/4711/delete",
            "/tokens/4711/revoke",
        ):
            self.refuse(404, "not-found", "POST", "/api/v1" + path, None, "4711")

    # ---- callers ----

    def test_https_needs_a_token_that_is_known(self):
        join = self.d.token(kind="join", pool="base")
        for token in (None, "", "x", "b." + "0" * 48, join, "b.\xff"):
            with self.subTest(token):
                headers = (
                    {"Authorization": ("Bearer " + token).encode("latin-1")}
                    if token is not None
                    else {}
                )
                reply = self.d.call("GET", "/api/v1/jobs", tls=True, headers=headers)
                self.check_error(reply, 401, "denied", "token")
                self.assertEqual(reply[2]["WWW-Authenticate"], "Bearer")
        self.check_error(
            self.d.call("GET", "/api/v1/jobs", tls=True, headers={"Authorization": "Basic eDp5"}),
            401,
            "denied",
        )
        self.assertEqual(self.d.call("GET", "/healthz", tls=True)[0], 200)
        self.assertEqual(self.d.call("GET", "/metrics", tls=True)[0], 401)

    def test_a_token_is_good_until_it_is_revoked_or_its_time_is_over(self):
        token = self.d.token(kind="api", user="ann")
        self.assertEqual(self.d.call("GET", "/api/v1/jobs", token=token)[0], 200)
        mine = [t for t in self.d.call("GET", "/api/v1/tokens")[1]["tokens"] if t["user"] == "ann"][
            -1
        ]
        self.assertFalse(mine["revoked"])
        self.assertEqual(
            self.d.call("POST", "/api/v1/tokens/%d/revoke" % mine["id"])[1], {"id": mine["id"]}
        )
        self.assertEqual(self.d.call("GET", "/api/v1/jobs", token=token)[0], 401)
        brief = self.d.token(kind="api", user="ann", ttl_ms=1)
        self.assertEqual(self.d.call("GET", "/api/v1/jobs", token=brief)[0], 401)

    def listed_token(self, id_, d=None):
        return [
            t for t in (d or self.d).call("GET", "/api/v1/tokens")[1]["tokens"] if t["id"] == id_
        ][0]

    def test_api_tokens_expire_unless_it_was_asked_for_otherwise(self):
        def life_s(**request):
            status, body, _ = self.d.call(
                "POST", "/api/v1/tokens", {"kind": "api", "user": "ann", **request}
            )
            self.assertEqual(status, 201, body)
            shown = self.listed_token(body["id"])
            self.assertEqual(shown["expires_at"], body["expires_at"])
            return body["expires_at"] and moment(body["expires_at"]) - time.time()

        self.assertAlmostEqual(life_s(), 90 * 86400, delta=60)
        self.assertAlmostEqual(life_s(ttl_ms=5000000), 5000, delta=60)
        self.assertIsNone(life_s(ttl_ms=0))
        with Belayd(CONFIG + "api_token_lifetime: 2h\n") as d:
            body = d.call("POST", "/api/v1/tokens", {"kind": "api", "user": "ann"})[1]
            self.assertAlmostEqual(moment(body["expires_at"]) - time.time(), 7200, delta=60)

    def test_the_last_use_of_a_token_is_shown_at_once_and_stored_without_a_commit_for_each(self):
        with Belayd() as d:
            # The second commit, five seconds after the start, deletes what is older than the
            # retention; the next of its kind follows ten minutes later.
            end = time.monotonic() + 60
            while d.metric("belay_commits_total") < 2 and time.monotonic() < end:
                time.sleep(0.1)
            tokens = [
                d.call("POST", "/api/v1/tokens", {"kind": "api", "user": "ann"})[1]
                for _ in range(3)
            ]
            self.assertIsNone(self.listed_token(tokens[0]["id"], d)["used_at"])
            before = d.metric("belay_commits_total")
            for _ in range(20):
                for t in tokens[:2]:
                    self.assertEqual(d.call("GET", "/api/v1/jobs", token=t["token"])[0], 200)
            used = self.listed_token(tokens[0]["id"], d)["used_at"]
            self.assertAlmostEqual(moment(used), time.time(), delta=20)
            self.assertIsNone(self.listed_token(tokens[2]["id"], d)["used_at"])
            d.call(
                "POST", "/api/v1/tokens/%d/revoke" % tokens[1]["id"]
            )  # which recording its use must not change
            end = time.monotonic() + 60
            while d.metric("belay_commits_total") < before + 2 and time.monotonic() < end:
                time.sleep(0.1)  # a commit without a notification
            self.assertEqual(d.metric("belay_commits_total"), before + 2)
            d.kill()
            d.start()
            self.assertEqual(self.listed_token(tokens[0]["id"], d)["used_at"], used)
            stored = self.listed_token(tokens[1]["id"], d)
            self.assertEqual((stored["revoked"], bool(stored["used_at"])), (True, True))
            self.assertEqual(d.call("GET", "/api/v1/jobs", token=tokens[1]["token"])[0], 401)

    def test_token_requests_that_make_no_sense_are_refused(self):
        for request, text in (
            ({}, "kind"),
            ({"kind": "admin"}, "kind"),
            ({"kind": "join"}, "say which reserved pool it joins with --pool: base, "),
            ({"kind": "join", "pool": "x"}, 'no reserved pool "x"'),
            ({"kind": "api", "user": ""}, "user"),
            ({"kind": "api", "user": "a\nb"}, "user"),
            ({"kind": "api", "ttl_ms": -1}, "ttl_ms"),
            ({"kind": "api", "pool": "base"}, "join"),
            ({"kind": "api", "pool": ""}, "join"),
            ({"kind": "join", "pool": "base", "admin": True}, "machine"),
            ({"kind": "join", "pool": "base", "user": "ann"}, "machine"),
            ({"kind": "api", "admin": "yes"}, "admin"),
            ({"kind": "api", "usr": "x"}, "usr"),
        ):
            with self.subTest(request):
                self.refuse(400, "invalid", "POST", "/api/v1/tokens", request, text)

    def test_tokens_are_shown_once_and_kept_nowhere(self):
        token = self.d.token(kind="api", user="bob")
        self.assertNotIn(token, json.dumps(self.d.call("GET", "/api/v1/tokens")[1]))
        self.assertNotIn("hash", json.dumps(self.d.call("GET", "/api/v1/tokens")[1]))
        for name in os.listdir(self.d.state):
            path = os.path.join(self.d.state, name)
            if os.path.isfile(path):
                with open(path, "rb") as f:
                    self.assertNotIn(token.encode(), f.read(), name)
        self.assertNotIn(token, self.d.log())

    def test_a_user_reads_and_changes_their_own_jobs(self):
        ann, bob = (self.d.token(kind="api", user=u) for u in ("ann", "bob"))
        boss = self.d.token(kind="api", user="boss", admin=True)
        status, reply, _ = self.d.call(
            "POST", "/api/v1/jobs", {**JOB, "env": {"SECRET": "s"}}, token=ann
        )
        self.assertEqual(status, 201)
        path = "/api/v1/jobs/%d" % reply["id"]
        self.assertEqual(self.d.call("GET", path, token=ann)[1]["spec"]["env"], {"SECRET": "s"})
        self.check_error(self.d.call("GET", path, token=bob), 403, "denied", "ann")
        self.assertEqual(self.d.call("GET", path, token=boss)[1]["spec"]["env"], {"SECRET": "s"})
        self.check_error(
            self.d.call("POST", path + "/exec", {"command": ["sh"]}, token=bob),
            403,
            "denied",
            "ann",
        )
        for body in ({"command": ["sh"]}, {"signal": 10}):
            self.check_error(
                self.d.call("POST", path + "/exec", body, token=ann),
                409,
                "conflict",
                "is not running",
            )
        for body, text in (
            ({}, "command"),
            ({"command": []}, "expected a command"),
            ({"command": "sh"}, "command"),
            ({"command": [1]}, "command"),
            ({"command": ["a\0b"]}, ""),
            ({"command": ["x" * 65537]}, "longer"),
            ({"command": ["x"] * 257}, "command"),
            ({"command": ["sh"], "rank": 256}, "rank"),
            ({"command": ["sh"], "term": "a/b"}, "term"),
            ({"command": ["sh"], "rows": -1}, "rows"),
            ({"signal": 0}, "signal"),
            ({"signal": 65}, "signal"),
            ({"signal": "USR1"}, "signal"),
            ({"signal": 10, "to": "nobody"}, "to"),
            ({"signal": 10, "command": ["sh"]}, "command"),
            ({"command": ["sh"], "to": "all"}, "to"),
            ({"signal": 10, "rank": 256}, "rank"),
            ({"signal": 10, "tty": True}, "tty"),
            ({"command": ["sh"], "user": "root"}, "user"),
        ):
            self.check_error(
                self.d.call("POST", path + "/exec", body, token=ann), 400, "invalid", text
            )
        for method, call in (("GET", "output"), ("POST", "input"), ("POST", "close")):
            self.check_error(
                self.d.call(method, "/api/v1/channels/4711/" + call, token=ann),
                404,
                "not-found",
                "session 4711",
            )
        for call in ("claim", "output", "input"):
            self.check_error(
                self.d.call("POST", "/agent/v1/channels/4711/" + call, token=ann),
                401,
                "denied",
                "certificate",
            )
        for what in ("cancel", "requeue", "drill", "compared", "save"):
            self.check_error(
                self.d.call("POST", path + "/" + what, token=bob), 403, "denied", "ann"
            )
        self.check_error(
            self.d.call("POST", path + "/drill", token=ann), 409, "conflict", "takes no checkpoints"
        )
        for body in (b"{", b"[]", {"without_notice": "yes"}, {"notice": False}):
            self.check_error(
                self.d.call("POST", path + "/drill", body, token=ann), 400, "invalid", "body"
            )
        verdict = {"number": 1, "with": 1, "equal": True}
        for body in (
            b"{",
            b"[]",
            {},
            {**verdict, "number": 0},
            {**verdict, "with": "1"},
            {**verdict, "equal": 1},
            {**verdict, "text": "x" * 256},
            {**verdict, "by": "eve"},
        ):
            self.check_error(
                self.d.call("POST", path + "/compared", body, token=ann), 400, "invalid", "body"
            )
        self.check_error(
            self.d.call("POST", path + "/compared", verdict, token=ann),
            409,
            "conflict",
            "has not succeeded",
        )
        self.assertEqual(self.d.call("POST", path + "/cancel", token=boss)[0], 200)
        self.check_error(
            self.d.call("POST", path + "/cancel", token=ann), 409, "conflict", "has ended"
        )

    def test_administration_is_for_administrators(self):
        ann = self.d.token(kind="api", user="ann")
        bobs = self.d.call("POST", "/api/v1/tokens", {"kind": "api", "user": "bob"})[1]["id"]
        for path, body in (
            ("tokens", {"kind": "api", "admin": True}),
            ("tokens", {"kind": "api", "user": "bob"}),
            ("tokens", {"kind": "join", "pool": "base"}),
            ("tokens/%d/revoke" % bobs, None),
            ("nodes/1/drain", None),
            ("nodes/1/undrain", None),
            ("nodes/1/delete", None),
            ("pools", {"text": "pools: {}"}),
            ("audit", None),
        ):
            self.check_error(
                self.d.call("POST", "/api/v1/" + path, body, token=ann),
                403,
                "denied",
                "administrator",
            )

    def test_over_the_unix_socket_the_peers_credentials_count(self):
        me = subprocess.run(["id", "-un"], stdout=subprocess.PIPE).stdout.decode().strip()
        told = self.d.call("GET", "/api/v1/version")[1]
        self.assertEqual((told["user"], told["admin"], told["cluster"]), (me, True, "lab"))
        told = self.d.call(
            "GET", "/api/v1/version", headers={"Authorization": "Bearer x", "X-User": "eve"}
        )[1]
        self.assertEqual(told["user"], me)

    def test_another_local_user_is_no_administrator(self):
        if os.geteuid() != 0:
            print("SKIP: to be another user needs root")
            return
        with tempfile.TemporaryDirectory(prefix="belay-test.") as place:
            os.chmod(place, 0o755)
            path = os.path.join(place, "socket")
            with Belayd(config=CONFIG + "socket: %s\n" % path, socket=path) as d:
                mine = d.submit()
                calls = [
                    ("GET", "/api/v1/version", None),
                    ("POST", "/api/v1/jobs", JOB),
                    ("POST", "/api/v1/jobs/%d/cancel" % mine, None),
                    ("GET", "/api/v1/tokens", None),
                ]
                with open(os.path.join(HERE, "belayd.py")) as f:
                    ask = f.read() + ASK
                done = subprocess.run(
                    [shutil.which("python3", path="/usr/bin:/bin"), "-", path, json.dumps(calls)],
                    input=ask.encode(),
                    cwd="/",
                    stdout=subprocess.PIPE,
                    preexec_fn=lambda: os.setuid(NOBODY),
                )
                told, submitted, cancelled, tokens = json.loads(done.stdout)
                self.assertEqual((told[1]["user"], told[1]["admin"]), ("nobody", False))
                self.assertEqual(submitted[0], 201)
                self.assertEqual(cancelled[0], 403)
                self.assertEqual(tokens, [200, {"tokens": []}])

    # ---- valid input ----

    def test_lists_go_by_pages_newest_first(self):
        jobs = [self.d.submit(name="page%d" % i) for i in range(5)]
        seen, before = [], ""
        while len(seen) < 5:
            page = self.d.call("GET", "/api/v1/jobs?state=active&limit=2" + before)[1]
            seen += [j["id"] for j in page["jobs"]]
            before = "&before=%d" % page["next"]
        self.assertEqual(seen[:5], jobs[::-1])

    def test_lists_are_filtered_by_what_is_asked(self):
        jobs = {
            name: self.d.submit(name="flt-" + name, **more)
            for name, more in (
                ("a", {"labels": {"flt": "1", "x": "y"}}),
                ("b", {"labels": {"flt": "2"}, "pool": "spare"}),
                ("c", {"hold": True}),
                ("d", {}),
                ("e,f", {"array": "0-3", "labels": {"flt": "1"}}),
            )
        }
        self.assertEqual(self.d.call("POST", "/api/v1/jobs/%d/cancel" % jobs["d"])[0], 200)
        ended = self.d.call("GET", "/api/v1/jobs/%d" % jobs["d"])[1]["job"]["ended_at"]

        def names(query):
            status, page, _ = self.d.call("GET", "/api/v1/jobs?limit=200&" + query)
            self.assertEqual(status, 200, page)
            return [j["name"][4:] for j in page["jobs"] if j["name"].startswith("flt-")]

        for query, expected in (
            ("state=all", ["e,f", "d", "c", "b", "a"]),
            ("", ["e,f", "c", "b", "a"]),
            ("state=ended", ["d"]),
            ("state=cancelled,running", ["d"]),
            ("sort=ended", ["d"]),
            ("sort=ended&state=failed", []),
            ("sort=oldest&name=flt-*", ["a", "b", "c", "e,f"]),
            ("name=flt-a&name=flt-e%2Cf", ["e,f", "a"]),
            ("name=*-b", ["b"]),
            ("label=flt", ["e,f", "b", "a"]),
            ("label=flt=1&label=x=y", ["a"]),
            ("label=flt=", []),
            ("pool=spare", ["e,f", "c", "b", "a"]),
            ("pool=base", ["e,f", "c", "a"]),
            ("pool=base,spare&name=flt-b", ["b"]),
            ("team=none", []),
            ("user=nobody", []),
            ("state=all&since=" + ended, ["e,f", "d", "c", "b", "a"]),
            ("state=all&since=2100-01-01T00:00:00Z", ["e,f", "c", "b", "a"]),
            ("until=1970-01-02T00:00:00Z", []),
            ("state=all&until=2100-01-01T00:00:00Z&name=flt-d", ["d"]),
        ):
            with self.subTest(query):
                self.assertEqual(names(query), expected)
        why = {
            j["name"]: j["why"]
            for j in self.d.call("GET", "/api/v1/jobs?why=1&name=flt-*&limit=200")[1]["jobs"]
        }
        self.assertEqual(why["flt-c"]["code"], "held")
        self.assertEqual(
            why["flt-a"], self.d.call("GET", "/api/v1/jobs/%d/why" % jobs["a"])[1]["reasons"][0]
        )
        self.assertEqual(self.d.call("GET", "/api/v1/jobs?name=flt-a")[1]["jobs"][0]["why"], None)

    def test_filters_that_make_no_sense_are_named(self):
        for query, text in (
            ("state=pendng", "state: expected"),
            ("state=pending,", "state: expected"),
            ("stat=pending", '"stat"'),
            ("user=", "user: expected a name"),
            ("user=a,,b", "user:"),
            ("team=" + "x" * 64, "team: expected a name"),
            ("pool=" + ",".join("abcdefghijklmnopq"), "pool: at most 16"),
            ("name=*a*b*", "name: at most 2"),
            ("name=", "name:"),
            ("label==1", "label: expected NAME=VALUE"),
            ("label=a%20b=1", "label:"),
            ("label=a=" + "x" * 1025, "label:"),
            ("&".join(["label=a"] * 9), "label: at most 8"),
            ("since=yesterday", "since"),
            ("until=2026-13-01T00:00:00Z", "until"),
            ("sort=cost", "sort: expected"),
            ("sort=ended&state=all", "sort: only ended jobs can be sorted by their end"),
            ("sort=ended&before=999999", "before: job 999999"),
            ("limit=5&limit=6", "limit: may be given once"),
            ("index=1", "index: is of an array"),
            ("array=1&sort=oldest", "sort:"),
            ("why=2", "why"),
            ("why=1&why=1", "why: may be given once"),
        ):
            with self.subTest(query):
                self.refuse(400, "invalid", "GET", "/api/v1/jobs?" + query, None, text)

    def test_a_submit_says_why_it_waits_if_it_is_asked(self):
        status, told, _ = self.d.call("POST", "/api/v1/jobs?why=1", {**JOB, "hold": True})
        self.assertEqual(
            (status, set(told), told["why"]["reasons"][0]["code"]), (201, {"id", "why"}, "held")
        )
        asked = self.d.call("GET", "/api/v1/jobs/%d/why?brief=1" % told["id"])[1]
        self.assertEqual(told["why"], {name: asked[name] for name in ("reasons", "warnings")})
        bare = self.d.call("POST", "/api/v1/jobs?why=0", {**JOB, "hold": True})[1]
        self.assertEqual(set(bare), {"id"})
        for job in (told["id"], bare["id"]):
            self.assertEqual(self.d.call("POST", "/api/v1/jobs/%d/cancel" % job, {})[0], 200)
        self.refuse(400, "invalid", "POST", "/api/v1/jobs?why=2", {**JOB, "name": "never"}, "why")
        self.refuse(400, "invalid", "POST", "/api/v1/jobs?why=1", {**JOB, "cpu": 1}, "cpus")

    def test_a_job_is_shown_with_everything(self):
        job = self.d.submit(
            name="all",
            args=["a", ""],
            env={"K": "v"},
            cpus=2,
            memory_mib=5,
            gpus=1,
            pool="spare",
            market="spot",
            time_limit_ms=60000,
            checkpoint={
                "method": "coop",
                "every_ms": 5000,
                "at": "18:30,06:00",
                "keep": 2,
                "signal": 12,
            },
            retries=1,
            labels={"team": "nlp"},
        )
        shown = self.d.call("GET", "/api/v1/jobs/%d" % job)[1]
        self.assertEqual(
            sorted(shown),
            [
                "array",
                "attempts",
                "certificate",
                "checkpoints",
                "depends",
                "drills",
                "expects",
                "failed_save",
                "job",
                "ledger",
                "leftover",
                "spec",
            ],
        )
        row = shown["job"]
        self.assertEqual(
            (row["state"], row["end"], row["exit_code"], row["node"], row["started_at"]),
            ("pending", None, None, None, None),
        )
        self.assertEqual(
            (
                row["cpus"],
                row["memory_mib"],
                row["gpus"],
                row["pool"],
                row["market"],
                row["time_limit_ms"],
            ),
            (2, 5, 1, "spare", "spot", 60000),
        )
        self.assertEqual(
            row["checkpoint"],
            {
                "method": "coop",
                "every_ms": 5000,
                "at": "06:00,18:30",
                "keep": 2,
                "keep_every": 0,
                "after": "auto",
            },
        )
        self.check_error(
            self.d.call("POST", "/api/v1/jobs/%d/save" % job, {}),
            409,
            "conflict",
            "is not running",
        )
        self.assertEqual(
            (row["save_ms"], row["save_interval_ms"], row["reclaims_per_hour"]), (None, None, None)
        )
        self.assertEqual(
            shown["spec"],
            {
                "script": JOB["script"],
                "args": ["a", ""],
                "env": {"K": "v"},
                "cwd": "/",
                "labels": {"team": "nlp"},
                "launch": {},
                "notify": None,
            },
        )
        why = self.d.call("GET", "/api/v1/jobs/%d/why" % job)[1]
        self.assertEqual((why["id"], why["state"]), (job, "pending"))
        self.assertTrue(all(r["code"] and r["text"] for r in why["reasons"]) and why["reasons"])
        self.assertEqual((why["ahead"]["exact"], why["changes"]), (True, []))
        self.assertEqual((why["estimate"]["now"], why["estimate"]["median"]), (False, None))
        self.assertIn("fits", why["estimate"]["unknown"])
        behind = self.d.submit(cpus=2, gpus=1, pool="spare", market="spot")
        ahead = self.d.call("GET", "/api/v1/jobs/%d/why" % behind)[1]["ahead"]
        self.assertEqual(ahead["count"], why["ahead"]["count"] + 1)
        self.assertTrue(
            all(j["why"] == "has waited for longer" and j["id"] < behind for j in ahead["first"])
        )

    def test_an_estimate_stores_nothing_and_is_refused_as_a_submit_is(self):
        before = self.d.submit()
        status, said, _ = self.d.call(
            "POST",
            "/api/v1/jobs/estimate",
            {**JOB, "cpus": 4, "time_limit_ms": 3600000, "array": "0-9"},
        )
        self.assertEqual(status, 200, said)
        doc = self.document()
        of = next(o for m, p, o in doc.operations() if p == "/api/v1/jobs/estimate")
        doc.check(said, of["responses"]["200"]["content"]["application/json"]["schema"])
        self.assertEqual(
            (said["id"], said["nodes"], said["tasks"], said["runs"]["most_ms"]),
            (before + 1, 1, 10, 3600000),
        )
        self.assertEqual(
            (said["estimate"]["now"], said["estimate"]["median"], said["cost"]["expected_uusd"]),
            (False, None, None),
        )
        self.assertTrue(said["reasons"])
        held = self.d.call("POST", "/api/v1/jobs/estimate", {**JOB, "hold": True})[1]
        self.assertEqual(held["estimate"]["unknown"], "it would be held")
        for spec in (
            {"cpus": 0},
            {"pool": "nowhere"},
            {"window": "nowhere"},
            {"constraint": "a&"},
            {"licences": "none:1"},
            {"depends": [{"kind": "afterok", "job": 4711}]},
            {"nonsense": 1},
        ):
            with self.subTest(spec):
                refused = self.d.call("POST", "/api/v1/jobs", {**JOB, **spec})
                asked = self.d.call("POST", "/api/v1/jobs/estimate", {**JOB, **spec})
                self.assertGreaterEqual(refused[0], 400)
                self.assertEqual(asked[:2], refused[:2])
        self.assertEqual(self.d.submit(), before + 1)

    def test_what_a_job_reads_is_kept_with_it(self):
        reads = {"bytes": 140 << 30, "place": "gcp/us-central1"}
        job = self.d.submit(hold=True, input=reads)
        self.assertEqual(self.d.call("GET", "/api/v1/jobs/%d" % job)[1]["job"]["input"], reads)
        job = self.d.submit(hold=True, input={"bytes": 5})
        self.assertEqual(
            self.d.call("GET", "/api/v1/jobs/%d" % job)[1]["job"]["input"],
            {"bytes": 5, "place": "store"},
        )

    def test_a_poll_waits_for_the_next_event(self):
        job = self.d.submit()
        path = "/api/v1/jobs/%d/events" % job
        page = self.d.call("GET", path)[1]
        self.assertEqual([e["kind"] for e in page["events"]], ["submitted"])
        self.d.call("POST", "/api/v1/jobs/%d/hold" % job)
        both = self.d.call("GET", path)[1]
        self.assertEqual([e["kind"] for e in both["events"]], ["submitted", "held"])
        page = self.d.call("GET", path + "?tail=1")[1]
        self.assertEqual(page, {**both, "events": both["events"][1:]})
        self.assertEqual(self.d.call("GET", path + "?tail=500")[1], both)
        self.assertEqual(self.d.call("GET", path + "?tail=0")[0], 400)
        self.assertEqual(self.d.call("GET", path + "?tail=501")[0], 400)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waiting = pool.submit(
                self.d.call, "GET", path + "?after=%d&wait_ms=25000" % page["last"]
            )
            log = pool.submit(self.d.call, "GET", "/api/v1/jobs/%d/logs?wait_ms=25000" % job)
            self.d.call("POST", "/api/v1/jobs/%d/cancel" % job)
            told = waiting.result(WAIT_S)[1]
            self.assertIn(told["events"][0]["kind"], ("cancel", "ended"))
            ended = log.result(WAIT_S)
        self.assertEqual(
            (ended[1], ended[2]["Belay-Log-End"], ended[2]["Belay-Log-Next"]), (b"", "1", "0")
        )
        page = self.d.call("GET", path + "?after=999999999&wait_ms=25000")[1]
        self.assertEqual((page["events"], page["state"]), ([], "ended"))

    def test_the_newest_events_are_read_backwards_and_by_kind(self):
        job = self.d.submit()
        self.d.call("POST", "/api/v1/jobs/%d/hold" % job)
        get = lambda query: self.d.call("GET", "/api/v1/events?" + query)[1]
        page = get("tail=1")
        held = page["events"][0]
        self.assertEqual((held["kind"], held["job"]), ("held", job))
        self.assertEqual((page["last"], page["next"]), (held["id"], held["id"]))
        before = get("tail=1&before=%d" % page["next"])["events"]
        self.assertEqual((before[0]["kind"], before[0]["job"]), ("submitted", job))
        some = get("kind=held,released&tail=500")["events"]
        self.assertEqual({e["kind"] for e in some}, {"held"})
        self.assertEqual(some[-1], held)
        self.assertEqual(get("node=99999"), {"events": [], "last": 0, "next": None})
        self.assertEqual(get("instance=99999")["events"], [])
        for query in (
            "tail=0",
            "tail=501",
            "before=0",
            "before=x",
            "node=-1",
            "instance=x",
            "kind=",
            "kind=held,",
            "kind=some",
            "kind='%20OR%201",
            "tail=1&after=1",
            "kind=held&wait_ms=1",
        ):
            with self.subTest(query):
                self.refuse(400, "invalid", "GET", "/api/v1/events?" + query)

    def test_the_history_of_offers_takes_a_pool_and_days(self):
        status, reply, _ = self.d.call("GET", "/api/v1/offers/history?pool=another&days=45")
        self.assertEqual((status, reply["offers"], reply["more"]), (200, [], False))
        for query in (
            "days=0",
            "days=46",
            "days=x",
            "pool=",
            "pool='",
            "pool=a%00",
            "pool=" + "a" * 64,
        ):
            with self.subTest(query):
                self.refuse(400, "invalid", "GET", "/api/v1/offers/history?" + query)

    def test_the_list_has_the_jobs_of_a_node(self):
        self.d.submit()
        self.assertEqual(
            self.d.call("GET", "/api/v1/jobs?node=99999")[1], {"jobs": [], "next": None}
        )
        for query in ("node=0", "node=x", "node="):
            with self.subTest(query):
                self.refuse(400, "invalid", "GET", "/api/v1/jobs?" + query)

    def test_a_poll_ends_by_itself(self):
        job = self.d.submit()
        page = self.d.call("GET", "/api/v1/jobs/%d/events?after=999999999&wait_ms=50" % job)[1]
        self.assertEqual((page["events"], page["state"]), ([], "pending"))
        reply = self.d.call("GET", "/api/v1/jobs/%d/logs?wait_ms=50" % job)
        self.assertEqual((reply[0], reply[1]), (200, b""))
        self.assertNotIn("Belay-Log-End", reply[2])

    def test_metrics_are_prometheus_text(self):
        text = self.d.call("GET", "/metrics")[1].decode()
        for line in text.splitlines():
            self.assertRegex(
                line, r'^(# (HELP|TYPE) \w+ .+|\w+(\{(\w+="[^"\\]*",?)+\})? [-+.e0-9]+)$'
            )
        before = self.d.metric("belay_events_total")
        self.d.submit()
        self.assertGreater(self.d.metric("belay_events_total"), before)

    # ---- the document and the client ----

    def change(self, job, **changes):
        return self.d.call("POST", "/api/v1/jobs/%d/update" % job, changes)

    def test_a_job_that_waits_is_changed_as_a_submit_would_have_made_it(self):
        first, job = self.d.submit(hold=True), self.d.submit(hold=True, gpus=1, pool="spare")
        status, said, _ = self.change(
            job,
            name="other",
            time_limit_ms=60000,
            pool="base",
            gpus=0,
            cpus=3,
            memory_mib=70,
            nice=5,
            nodes=4,
            nodes_min=2,
            on_loss="wait",
            market="spot",
            begin_at_ms=4102444800000,
            requeue=False,
            depends=[{"kind": "afterok", "job": first}],
            exclusive=True,
        )
        self.assertEqual((status, said), (200, {"id": job}))

        def check():
            shown = self.d.call("GET", "/api/v1/jobs/%d" % job)[1]
            row = shown["job"]
            self.assertEqual(
                (
                    row["name"],
                    row["time_limit_ms"],
                    row["pool"],
                    row["gpus"],
                    row["cpus"],
                    row["memory_mib"],
                    row["nice"],
                    row["nodes"],
                    row["nodes_min"],
                    row["on_loss"],
                    row["market"],
                    row["begin_at"],
                    row["requeue"],
                    row["exclusive"],
                    row["hold"],
                ),
                (
                    "other",
                    60000,
                    "base",
                    0,
                    3,
                    70,
                    5,
                    4,
                    2,
                    "wait",
                    "spot",
                    "2100-01-01T00:00:00Z",
                    False,
                    True,
                    "user",
                ),
            )
            self.assertEqual(
                [(d["kind"], d["job"], d["state"]) for d in shown["depends"]],
                [("afterok", first, "waits")],
            )
            events = self.d.call("GET", "/api/v1/jobs/%d/events" % job)[1]["events"]
            self.assertEqual([e["kind"] for e in events], ["submitted", "updated"])
            self.assertIn("time_limit_ms 1m", events[1]["text"])

        check()
        with self.subTest("after a kill -9"):
            self.d.kill()
            self.d.start()
            check()
        self.assertEqual(
            self.change(job, depends=[], begin_at_ms=0, exclusive=False, nodes=1)[0], 200
        )
        shown = self.d.call("GET", "/api/v1/jobs/%d" % job)[1]
        self.assertEqual([d["state"] for d in shown["depends"]], ["dropped"])
        self.assertEqual(
            (shown["job"]["begin_at"], shown["job"]["exclusive"], shown["job"]["nodes_min"]),
            (None, False, 1),
        )

    def test_what_cannot_be_changed_is_named_and_nothing_is(self):
        job = self.d.submit(hold=True, cpus=2, launch={"tasks": 2, "cpus_per_task": 1}, nodes=1)
        ended = self.d.submit(hold=True)
        self.d.call("POST", "/api/v1/jobs/%d/cancel" % ended)
        array = self.d.submit(hold=True, array="0-3%2")
        path = "/api/v1/jobs/%d/update" % job
        for status, kind, body, text in (
            (400, "invalid", {}, "nothing is to be changed"),
            (400, "invalid", {"tasks": "1"}, "nothing is to be changed"),
            (400, "invalid", {"cpus": 0}, "spec.cpus"),
            (400, "invalid", {"cpus": 1}, "spec.launch.tasks"),
            (400, "invalid", {"name": ""}, "spec.name"),
            (400, "invalid", {"pool": "nowhere"}, "changes.pool"),
            (400, "invalid", {"pool": "base,nowhere"}, "changes.pool"),
            (400, "invalid", {"pool": "base,"}, "pool"),
            (400, "invalid", {"window": "nowhere"}, "spec.window"),
            (400, "invalid", {"nodes_min": 2}, "spec.nodes_min"),
            (400, "invalid", {"cpu": 3}, "did you mean cpus"),
            (400, "invalid", {"script": "#!/bin/sh"}, "changes.script"),
            (400, "invalid", {"array": "0-9"}, "at_once"),
            (400, "invalid", {"at_once": -1}, "changes.at_once"),
            (400, "invalid", {"name": "x", "tasks": "a"}, "changes.tasks"),
            (409, "conflict", {"name": "x", "at_once": 3}, "no array"),
            (409, "conflict", {"name": "x", "tasks": "1"}, "not an array"),
            (
                400,
                "invalid",
                {"name": "x", "depends": [{"kind": "afterok", "job": array}]},
                "submitted before it",
            ),
            (400, "invalid", {"name": "x", "constraint": "never"}, "never"),
            (400, "invalid", {"name": "x", "licences": {"none": 1}}, "licence"),
            (400, "invalid", {"name": "x", "depends_any": 1}, "changes.depends_any"),
        ):
            with self.subTest(body):
                self.refuse(status, kind, "POST", path, body, text)
        row = self.d.call("GET", "/api/v1/jobs/%d" % job)[1]["job"]
        self.assertEqual((row["name"], row["cpus"]), ("job", 2))
        self.check_error(self.change(ended, name="x"), 409, "conflict", "has ended")
        self.check_error(self.change(job + 4711, name="x"), 404, "not-found", "")
        self.check_error(self.change(array, tasks="1", name="x"), 409, "conflict", "has not begun")
        self.check_error(self.change(array, tasks="9", name="x"), 404, "not-found", "no task 9")
        self.assertEqual(self.change(array, at_once=3)[0], 200)
        self.assertEqual(self.d.call("GET", "/api/v1/jobs/%d" % array)[1]["array"]["at_once"], 3)

    def test_many_are_cancelled_at_once(self):
        jobs = [self.d.submit(hold=True) for _ in range(5)]
        self.d.call("POST", "/api/v1/jobs/%d/cancel" % jobs[1])
        status, value, _ = self.d.call(
            "POST",
            "/api/v1/jobs/cancel",
            {"jobs": ["%d-%d" % (jobs[0], jobs[3]), str(jobs[4]), "4711"]},
        )
        self.assertEqual((status, value), (200, {"cancelled": 4, "ended": 2, "denied": 0}))
        for job in jobs:
            self.assertEqual(
                self.d.call("GET", "/api/v1/jobs/%d" % job)[1]["job"]["end"], "cancelled"
            )
        for body, text in (
            ({}, "jobs"),
            ({"jobs": "1"}, "jobs"),
            ({"jobs": [1]}, "jobs[0]"),
            ({"jobs": ["1", "x"]}, "jobs[1]"),
            ({"jobs": ["3-2"]}, "the last"),
            ({"jobs": ["1-"]}, "the last"),
            ({"jobs": ["0"]}, "number"),
            ({"jobs": ["-1"]}, "number"),
            ({"jobs": ["1-2-3"]}, "the last"),
            ({"jobs": ["1-1000001"]}, "more than"),
            ({"jobs": ["1-900000", "1-900000"]}, "more than"),
            ({"jobs": ["1-%d" % ((1 << 63) - 1)]}, ""),
            ({"jobs": [], "user": "me"}, "user"),
        ):
            with self.subTest(body):
                self.refuse(400, "invalid", "POST", "/api/v1/jobs/cancel", body, text)

    def document(self):
        return Document(self.d.call("GET", "/api/v1/openapi.json")[1])

    def test_answers_are_what_the_document_says(self):
        doc = self.document()
        job = self.d.submit(
            checkpoint={"method": "coop"}, labels={"a": "b"}, depends=[{"kind": "singleton"}]
        )
        array = self.d.submit(array="0-9%2", hold=True)
        ended = self.d.submit()
        self.d.call("POST", "/api/v1/jobs/%d/cancel" % ended)
        cron = self.d.call("POST", "/api/v1/crons", {**self.CRON, "name": "described"})[1]["id"]
        self.d.call("POST", "/api/v1/crons/%d/run" % cron)
        asked = 0
        for method, path, operation in doc.operations():
            answer = (
                operation["responses"]
                .get("200", {})
                .get("content", {})
                .get("application/json", {})
                .get("schema")
            )
            if method != "GET" or not answer or path.startswith("/agent"):
                continue
            for number in (job, array, ended) if "jobs/{id}" in path else (cron,):
                status, value, _ = self.d.call(
                    "GET",
                    path.format(id=number) + ("?state=all&why=1" if path.endswith("/jobs") else ""),
                )
                self.assertEqual(status, 200, path)
                doc.check(value, answer, operation["operationId"])
                asked += 1
        self.assertGreater(asked, 20)
        status, value, _ = self.d.call("GET", "/api/v1/jobs/4711")
        doc.check(
            value, doc.find(operation["responses"]["503"])["content"]["application/json"]["schema"]
        )

    def test_what_is_expected_of_a_job_that_is_to_be_done_by_some_moment(self):
        job = self.d.submit(finish_by_ms=int(time.time() * 1000) + 36000000, work_ms=3600000)
        shown = self.d.call("GET", "/api/v1/jobs/%d" % job)[1]
        self.assertEqual(
            shown["expects"],
            {
                "why": "no usable offer is always available, so it uses any market",
                "done_at": None,
                "late_at": None,
                "cost_uusd": None,
            },
        )
        self.document().check(
            shown, self.document().doc["components"]["schemas"]["JobDetail"], "job"
        )
        client = belay.client.Client(socket=self.d.socket)
        found = client.expects(job)
        self.assertEqual(
            {k: v for k, v in found.items() if k != "finish_by"},
            {**shown["expects"], "makes_it": None},
        )
        self.assertAlmostEqual(found["finish_by"].timestamp(), time.time() + 36000, delta=600)
        reasons = {
            r["code"]: r["text"]
            for r in self.d.call("GET", "/api/v1/jobs/%d/why" % job)[1]["reasons"]
        }
        self.assertRegex(
            reasons["finish-by"], "^its finish time is in (10h00m|9h59m); no usable offer"
        )
        path = "/api/v1/jobs/%d/update" % job
        self.refuse(
            400, "invalid", "POST", path, {"work_ms": None}, "add --work (such as 6h) or --time"
        )
        self.refuse(400, "invalid", "POST", path, {"finish_by_ms": 1000}, "has passed")
        self.refuse(400, "invalid", "POST", path, {"market": "spot"}, "remove --market")
        self.refuse(
            400,
            "invalid",
            "POST",
            path,
            {"finish_by_ms": 4102444800000, "finish_in_ms": 3600000},
            "give one of them",
        )
        self.refuse(400, "invalid", "POST", path, {"finish_in_ms": 0}, "spec.finish_in_ms")
        self.assertEqual(self.change(job, finish_in_ms=7200000)[0], 200)
        reasons = {
            r["code"]: r["text"]
            for r in self.d.call("GET", "/api/v1/jobs/%d/why" % job)[1]["reasons"]
        }
        self.assertRegex(reasons["finish-by"], "^its finish time is in (2h00m|1h59m);")
        for changes, shown_as in (
            (
                {"finish_by_ms": 4102444800000, "work_ms": 7200000},
                ("2100-01-01T00:00:00Z", 7200000, "free"),
            ),
            ({"finish_by_ms": None}, (None, 7200000, None)),
            ({"finish_by_ms": 4102444800000}, ("2100-01-01T00:00:00Z", 7200000, "free")),
        ):
            self.assertEqual(self.change(job, **changes)[0], 200)
            row = self.d.call("GET", "/api/v1/jobs/%d" % job)[1]["job"]
            self.assertEqual((row["finish_by"], row["work_ms"]), shown_as[:2])
            self.assertIn(
                row["pace"], (shown_as[2], "wait" if shown_as[2] else None)
            )  # until it is decided
        self.d.call("POST", "/api/v1/jobs/%d/cancel" % job)
        self.assertIsNone(self.d.call("GET", "/api/v1/jobs/%d" % job)[1]["expects"])
        self.assertIsNone(self.d.call("GET", "/api/v1/jobs/%d" % self.d.submit())[1]["expects"])
        self.assertIsNone(client.expects(job))

    def test_the_client_says_whether_a_job_is_done_in_time(self):
        class Shown(belay.client.Client):
            def show_job(self, id):
                return {
                    "job": {"finish_by": "2026-08-01T07:00:00Z"},
                    "expects": {
                        "why": "",
                        "done_at": "2026-08-01T05:40:00Z",
                        "late_at": "2026-08-01T0%d:00:00Z" % id,
                        "cost_uusd": 2140000,
                    },
                }

        client = Shown(socket="/nowhere")
        self.assertEqual(
            [client.expects(late)["makes_it"] for late in (6, 7, 8)], [True, True, False]
        )
        self.assertEqual(
            (client.expects(6)["late_at"] - client.expects(6)["done_at"]).total_seconds(), 1200
        )

    def test_each_job_of_a_cron_entry_is_to_be_done_so_long_after_its_submit(self):
        entry = {**self.CRON, "name": "in-time"}
        for job, text in (
            (
                {"finish_by_ms": 4102444800000, "work_ms": 3600000},
                "--finish-by +8h or 07:00; finish_in_ms, finish_at",
            ),
            ({"finish_in_ms": 3600000}, "add --work (such as 6h) or --time"),
            ({"finish_at": "07:00"}, "add --work (such as 6h) or --time"),
            (
                {"finish_at": "7:00", "work_ms": 60000},
                'spec.finish_at: expected a time of the day as 07:00, found "7:00"',
            ),
            ({"finish_at": "24:00", "work_ms": 60000}, "a time of the day"),
            ({"finish_at": "07:00", "finish_in_ms": 3600000}, "says the same as finish_in_ms"),
            (
                {"finish_at": "07:00", "finish_by_ms": 4102444800000},
                "says the same as finish_by_ms",
            ),
            ({"finish_at": 7}, "spec.finish_at"),
            ({"finish_in_ms": 3600000, "work_ms": 60000, "market": "spot"}, "remove --market"),
        ):
            with self.subTest(job):
                self.refuse(
                    400, "invalid", "POST", "/api/v1/crons", {**entry, "job": {**JOB, **job}}, text
                )
        cron = self.d.call(
            "POST",
            "/api/v1/crons",
            {**entry, "job": {**JOB, "finish_in_ms": 7200000, "work_ms": 3600000}},
        )[1]["id"]
        for _ in range(2):  # and after a restart
            job = self.d.call("POST", "/api/v1/crons/%d/run" % cron)[1]["id"]
            row = self.d.call("GET", "/api/v1/jobs/%d" % job)[1]["job"]
            times = [
                datetime.datetime.fromisoformat(row[key].replace("Z", "+00:00"))
                for key in ("submitted_at", "finish_by")
            ]
            self.assertEqual(round((times[1] - times[0]).total_seconds()), 7200)
            self.d.call("POST", "/api/v1/jobs/%d/cancel" % job)
            self.d.kill()
            self.d.start()

    def test_each_job_of_a_cron_entry_is_to_be_done_by_a_time_of_the_day_in_its_zone(self):
        berlin = zoneinfo.ZoneInfo("Europe/Berlin")
        entry = {
            **self.CRON,
            "name": "by-seven",
            "zone": "Europe/Berlin",
            "job": {**JOB, "finish_at": "07:00", "work_ms": 3600000},
        }
        cron = self.d.call("POST", "/api/v1/crons", entry)[1]["id"]
        for _ in range(2):  # and after a restart
            job = self.d.call("POST", "/api/v1/crons/%d/run" % cron)[1]["id"]
            row = self.d.call("GET", "/api/v1/jobs/%d" % job)[1]["job"]
            submitted, finish = (
                datetime.datetime.fromisoformat(row[key].replace("Z", "+00:00"))
                for key in ("submitted_at", "finish_by")
            )
            self.assertEqual(finish.astimezone(berlin).strftime("%H:%M:%S"), "07:00:00")
            self.assertTrue(
                datetime.timedelta(0) < finish - submitted <= datetime.timedelta(hours=25),
                (submitted, finish),
            )
            self.d.call("POST", "/api/v1/jobs/%d/cancel" % job)
            self.d.kill()
            self.d.start()
        job = self.d.submit(finish_at="07:00", work_ms=3600000)  # without a zone: in UTC
        self.assertRegex(
            self.d.call("GET", "/api/v1/jobs/%d" % job)[1]["job"]["finish_by"], "T07:00:00(.000)?Z$"
        )

    def test_every_member_of_a_specification_that_is_described_is_taken(self):
        doc = self.document()
        schema = doc.doc["components"]["schemas"]["JobSpec"]
        for name, of in schema["properties"].items():
            with self.subTest(name):
                spec = {**JOB, name: doc.sample(of)}
                if name in ("nodes_min", "on_loss"):  # of jobs whose number of nodes is a range
                    spec.update(nodes=2, nodes_min=1)
                if name in (
                    "finish_by_ms",
                    "finish_in_ms",
                    "finish_at",
                ):  # the remaining work
                    spec.update(work_ms=3600000)
                if name == "launch":  # the number of tasks on all nodes
                    spec.update(
                        nodes=2,
                        script_on="first",
                        launch={
                            k: v for k, v in spec["launch"].items() if k not in ("image", "secrets")
                        },
                    )
                job = self.d.submit(**spec)
                self.d.call("POST", "/api/v1/jobs/%d/cancel" % job)
        # and those of the source are described
        with open(os.path.join(HERE, "..", "..", "scheduler", "api", "jobspec.c")) as f:
            taken = set(
                re.findall(
                    r"(?:json_(?:opt|req)_\w+|read_texts|check_file)\([^,()]+,\s*\"(\w+)\"",
                    f.read(),
                )
            )
        self.assertEqual(
            taken - {name for name in re.findall(r'"(\w+)":', json.dumps(schema))}, set()
        )

    def test_the_client_has_every_call_with_its_parameters(self):
        doc, client = self.document(), Recorder()
        for method, path, operation in doc.operations():
            name = operation["operationId"]
            # people sign in, with belay or a browser, and the console is for browsers
            if path == "/" or path.startswith(("/agent", "/login", "/console")):
                continue
            with self.subTest(name):
                ids, query = (
                    {p["name"] for p in operation.get("parameters", []) if p["in"] == where}
                    for where in ("path", "query")
                )
                content = operation.get("requestBody", {}).get("content", {})
                body = (
                    set(doc.find(content["application/json"]["schema"])["properties"])
                    if "application/json" in content
                    else set()
                )
                function = getattr(client, name)
                given = {
                    p for p in inspect.signature(function).parameters if p != "data"
                }  # bytes as they are
                if name == "stream":  # it connects again by itself
                    given -= {"last_event_id", "restart_s"}
                self.assertEqual({p.rstrip("_") for p in given}, ids | query | body)
                of_jobs = ("id", "with_", "job" if name == "stream" else "")
                function(
                    **{
                        p: 1 if p in of_jobs else "x"
                        for p in inspect.signature(function).parameters
                    }
                )
                self.assertEqual(client.called, (method, path, ids, query, body))

    def test_the_client_works_over_https_and_the_socket(self):
        token = self.d.token(kind="api", user="ann")
        local = belay.client.Client(socket=self.d.socket)
        ann = belay.client.Client(
            server=self.d.url, token=token, ca_file=os.path.join(self.d.state, "ca.pem")
        )
        self.assertEqual((ann.version()["user"], ann.health()), ("ann", "ok\n"))
        jobs = [
            ann.submit(name="client-%d" % i, **{k: v for k, v in JOB.items() if k != "name"})["id"]
            for i in range(3)
        ]
        self.assertEqual(
            [
                j["id"]
                for j in ann.jobs(name=["client-0", "client-2"], user=["ann", "bob"], limit=1)
            ],
            [jobs[2], jobs[0]],
        )
        self.assertEqual(
            next(local.jobs(name="client-1", why=True))["why"]["code"],
            local.why(jobs[1])["reasons"][0]["code"],
        )
        with self.assertRaises(TimeoutError):
            ann.wait(jobs[0], timeout_s=0)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waiting = pool.submit(local.wait, jobs[0], WAIT_S)
            self.assertEqual(ann.cancel(jobs[0]), {"id": jobs[0]})
            self.assertEqual(waiting.result(WAIT_S)["end"], "cancelled")
        self.assertEqual((ann.read_log(jobs[0]), list(ann.follow_log(jobs[0], tail=3))), (b"", []))
        self.assertIn("belay_jobs{", ann.metrics())
        with self.assertRaises(belay.client.Error) as refused:
            ann.cancel(jobs[0])
        self.assertEqual((refused.exception.status, refused.exception.kind), (409, "conflict"))
        with self.assertRaises(belay.client.Error) as refused:
            ann.list_jobs(state="some")
        self.assertIn("state: expected", refused.exception.text)
        with tempfile.TemporaryDirectory() as sent:
            os.makedirs(os.path.join(sent, "src", ".git"))
            with open(os.path.join(sent, "src", "large"), "wb") as f:
                f.write(os.urandom(belay.client.WORKDIR_PIECE_BYTES + 5))
            os.symlink("src/large", os.path.join(sent, "link"))
            workdir = ann.send_workdir(sent)
            self.assertEqual(ann.send_workdir(sent), workdir)
            job = ann.submit(launch={"workdir": workdir}, hold=True, **JOB)["id"]
            self.assertEqual(ann.show_job(job)["spec"]["launch"], {"workdir": workdir})
        with self.assertRaises(belay.client.Unavailable):
            belay.client.Client(socket="/no/such/socket").version()
        with self.assertRaises(belay.client.Error) as refused:
            belay.client.Client(
                server=self.d.url, token="x", ca_file=os.path.join(self.d.state, "ca.pem")
            ).version()
        self.assertEqual(refused.exception.status, 401)

    # ---- cron entries ----

    CRON = {"name": "nightly", "schedule": "30 2 * * *", "zone": "Australia/Sydney", "job": JOB}

    def test_a_cron_entry_is_kept_changed_and_run(self):
        status, reply = self.d.call("POST", "/api/v1/crons", {**self.CRON, "name": "kept"})[:2]
        self.assertEqual(status, 201, reply)
        path = f"/api/v1/crons/{reply['id']}"
        cron = self.d.call("GET", path)[1]["cron"]
        self.assertEqual(
            {
                k: cron[k]
                for k in (
                    "name",
                    "state",
                    "zone",
                    "schedule",
                    "overlap",
                    "catch_up",
                    "gap",
                    "twice",
                )
            },
            {
                "name": "kept",
                "state": "active",
                "zone": "Australia/Sydney",
                "schedule": "30 2 * * *",
                "overlap": "skip",
                "catch_up": "last",
                "gap": "run",
                "twice": "auto",
            },
        )
        self.assertEqual(len(cron["upcoming"]), 5)
        for at in cron["upcoming"]:
            self.assertRegex(at, r"^20\d\d-\d\d-\d\dT0[23]:[30]0:00\+1[01]:00$")
        self.assertEqual(self.d.call("POST", path + "/pause")[0], 200)
        status, run = self.d.call("POST", path + "/run")[:2]
        self.assertEqual(status, 201, run)
        self.assertEqual(
            self.d.call("GET", f"/api/v1/jobs/{run['id']}")[1]["job"]["cron"], reply["id"]
        )
        self.refuse(409, "conflict", "POST", path + "/run", None, "has not ended")
        self.assertEqual(
            [
                (r["job"], r["by_hand"], r["outcome"])
                for r in self.d.call("GET", path + "/runs")[1]["runs"]
            ],
            [(run["id"], True, "started")],
        )
        change = {
            "schedule": "TZ=Europe/Berlin @daily",
            "overlap": "replace",
            "catch_up": "all",
            "catch_up_max": 3,
        }
        self.assertEqual(self.d.call("POST", path, change)[0], 200)
        # A restart changes nothing.
        self.d.kill()
        self.d.start()
        shown = self.d.call("GET", path)[1]
        self.assertEqual(shown["job"]["script"], JOB["script"])
        cron = shown["cron"]
        self.assertEqual(
            (
                cron["state"],
                cron["zone"],
                cron["schedule"],
                cron["overlap"],
                cron["catch_up_max"],
                cron["next_at"],
            ),
            ("paused", "Europe/Berlin", "@daily", "replace", 3, None),
        )
        self.refuse(409, "conflict", "POST", path + "/run", None, "has not ended")
        self.assertEqual(self.d.call("POST", path + "/resume")[0], 200)
        self.assertRegex(
            self.d.call("GET", path)[1]["cron"]["upcoming"][0], r"T00:00:00\+0[12]:00$"
        )
        self.assertEqual(self.d.call("POST", path + "/remove")[0], 200)
        self.refuse(404, "not-found", "POST", path + "/run", None, "removed")
        self.assertNotIn(
            "kept", [c["name"] for c in self.d.call("GET", "/api/v1/crons")[1]["crons"]]
        )

    def test_cron_entries_are_refused_with_what_is_wrong(self):
        for more, text in (
            ({"schedule": "99 * * * *"}, "cron.schedule: minute"),
            ({"schedule": ""}, "cron.schedule"),
            ({"zone": "Mars/Phobos"}, "cron.zone"),
            ({"zone": "../x"}, "cron.zone"),
            ({"name": "a b"}, "cron.name"),
            ({"schedule": "TZ=Europe/Berlin @daily"}, "cron.zone"),
            ({"overlap": "both"}, "cron.overlap"),
            ({"catch_up_max": 0}, "cron.catch_up_max"),
            ({"shedule": "@daily"}, 'did you mean "schedule"'),
            ({"job": {**JOB, "cpus": 0}}, "spec.cpus"),
            ({"job": {**JOB, "pool": "nowhere"}}, "no pool"),
            ({"job": {**JOB, "begin_at_ms": 1}}, "time to begin"),
            ({"job": {**JOB, "env": {"BELAY_CRON_TIME": "x"}}}, "BELAY_CRON_TIME"),
            ({"job": None}, "cron.job"),
        ):
            with self.subTest(text):
                self.refuse(400, "invalid", "POST", "/api/v1/crons", {**self.CRON, **more}, text)
        self.refuse(
            400,
            "invalid",
            "POST",
            "/api/v1/crons",
            {k: v for k, v in self.CRON.items() if k != "job"},
            "cron.job: missing",
        )
        self.refuse(404, "not-found", "POST", "/api/v1/crons/999", {"overlap": "skip"})
        self.assertEqual(
            self.d.call("POST", "/api/v1/crons", {**self.CRON, "name": "twice"})[0], 201
        )
        self.refuse(
            409, "conflict", "POST", "/api/v1/crons", {**self.CRON, "name": "twice"}, "already"
        )

    def test_many_at_once_are_all_answered(self):
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            jobs = list(pool.map(lambda i: self.d.submit(name="many"), range(200)))
        self.assertEqual(len(set(jobs)), 200)


class LongReads(unittest.TestCase):
    """Long reads of the ledger do not delay other requests."""

    def setUp(self):
        self.d = Belayd()
        self.d.start()
        self.d.fill_ledger()
        self.asked = []

    def tearDown(self):
        for c in self.asked:
            c.close()
        self.d.__exit__(None, None, None)

    def ask(self, path, token=None):
        c = self.d.connect(tls=token is not None)
        c.request("GET", path, headers={"Authorization": "Bearer " + token} if token else {})
        self.asked.append(c)
        return c

    def answered(self):
        return select.select([c.sock for c in self.asked], [], [], 0)[0]

    def test_others_are_answered_meanwhile_and_who_has_gone_is_not_read_for(self):
        began = time.monotonic()
        first, _ = self.ask(LONG_READ), self.ask(LONG_READ)
        third = self.ask("/api/v1/cost?by=team")  # after those two
        for i in range(50):
            self.assertEqual(self.d.call("GET", "/healthz")[0], 200)
            self.assertEqual(self.d.call("GET", "/api/v1/jobs")[0], 200)
        job = self.d.submit()
        self.assertEqual(self.d.call("GET", "/api/v1/jobs/%d" % job)[0], 200)
        self.assertEqual(self.answered(), [])
        first.close()
        self.asked.remove(first)
        reply = third.getresponse()
        self.assertEqual((reply.status, json.loads(reply.read())["lines"]), (200, []))
        self.assertLess(
            time.monotonic() - began, 45
        )  # they would have got a timeout error after 60 s
        self.asked.remove(third)
        self.assertEqual(self.answered(), [])

    def test_more_than_may_wait_are_refused(self):
        tokens = [self.d.token(kind="api", user="u%d" % i, admin=True) for i in range(4)]
        many = [self.ask(LONG_READ) for i in range(2)]  # these are read
        many += [self.ask(LONG_READ, token) for token in tokens for i in range(8)]
        code, said, _ = self.d.call("GET", "/api/v1/use")
        self.assertEqual((code, said["error"]["kind"]), (503, "unavailable"), said)
        self.assertIn("32 such queries are already waiting", said["error"]["text"])
        self.assertEqual(self.answered(), [])
        self.assertEqual(self.d.stop(), 0)  # all of them are answered
        self.assertEqual({c.getresponse().status for c in many}, {503})


class Stop(unittest.TestCase):
    """belayd is stopped while responses wait for their turn: their data is gone by then."""

    def test_answers_that_wait_for_their_turn_are_dropped(self):
        with Belayd() as d, contextlib.ExitStack() as all_of_it:
            job, ended = d.submit(), d.submit()
            self.assertEqual(d.call("POST", "/api/v1/jobs/%d/cancel" % ended)[0], 200)
            # each looks for that job in the database a thousand times
            estimate = (
                "POST",
                "/api/v1/jobs/estimate",
                json.dumps({**JOB, "depends": [{"kind": "afterany", "job": ended}] * 1024}),
            )
            others = [
                ("GET", "/api/v1/jobs/%d/why" % job, None),
                ("GET", "/api/v1/jobs/%d/logs?tail=1" % job, None),
            ] * 4
            asked = []
            for what in [estimate] * 40 + others:
                c = d.connect()
                all_of_it.callback(c.close)
                c.request(*what)
                asked.append(c)
            self.assertEqual(asked[0].getresponse().status, 200)
            self.assertEqual(d.end(), [])
            told = collections.Counter(c.getresponse().status for c in asked[1:])
            self.assertGreater(told[503], 10, told)  # they were waiting


if __name__ == "__main__":
    unittest.main(verbosity=2)
