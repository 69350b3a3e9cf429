# SPDX-License-Identifier: Apache-2.0
"""A user searches for data of another user: script, arguments, environment, output, the command run
inside a job, and an agent's reports about the job's programs and files. Every GET route is
called by every kind of caller: the owner and administrators see the data, others see none of it,
and the output is refused with a reason.
"""

import contextlib
import hashlib
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "scheduler"))
from belayd import BUILD, CONFIG, WAIT_S, Belayd, Node  # noqa: E402

sys.path.insert(0, os.path.join(BUILD, "clients", "python"))
import belay.client  # noqa: E402

NOBODY = pwd.getpwnam("nobody")
SECRET = "xyzzy"  # in everything that is its owner's alone
SPEC = {
    "name": "train",
    "script": "#!/%s/sh\n" % SECRET,
    "args": [SECRET],
    "env": {"KEY": SECRET},
    "labels": {"project": SECRET},
    "cwd": "/" + SECRET,
    "cpus": 1,
    "pool": "spare",
}
# with which a guess at the script could be confirmed
KEY = hashlib.sha256(b"ann\ncoop\n" + SPEC["script"].encode()).hexdigest()
CRON = {"name": "nightly", "schedule": "30 2 * * *", "job": {**SPEC, "name": "nightly"}}

# The GET routes that show it to the owner; no other route shows it to anyone.
SHOWS = {
    "jobs/#",
    "jobs/#/why",
    "jobs/#/events",
    "jobs/#/logs",
    "events",
    "crons/#",
    "channels/#/output",
    "drills",
}
OUTPUT = ("jobs/#/logs", "channels/#/output")  # and what is refused as a whole

# In a process of another user: makes the calls and prints what came.
ASK = """
import http.client, json, socket, sys

class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(sys.argv[1])

for method, path, body in json.load(sys.stdin):
    c = Unix("belayd")
    c.request(method, path, json.dumps(body) if body else None)
    reply = c.getresponse()
    print(json.dumps([reply.status, reply.read().decode("latin-1")]))
"""


class Agent(Node):
    """A node that reports what the test tells it to."""

    def __init__(self, d):
        super().__init__(d, "spare", cpus=16)
        self.desired = self.sync()

    def await_jobs(self, n):
        """Waits until it is to run n jobs; returns their numbers."""
        jobs = set()
        while len(jobs) < n:
            self.desired = self.sync(have_rev=self.desired["rev"], wait_ms=20000)
            jobs = {a["job"] for a in self.desired.get("attempts", [])}
        return jobs

    def put(self, job, data):
        self.call("output/%d/1?offset=0" % job, data)


class OtherUsers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        place = cls.stack.enter_context(tempfile.TemporaryDirectory(prefix="belay-test."))
        os.chmod(place, 0o755)
        path = os.path.join(place, "socket")
        cls.d = cls.stack.enter_context(
            Belayd(CONFIG + "lease: 1h\nsocket: %s\n" % path, socket=path)
        )
        cls.tokens = {u: cls.d.token(kind="api", user=u) for u in ("ann", "bob")}
        cls.tokens["boss"] = cls.d.token(kind="api", user="boss", admin=True)
        cls.agent = Agent(cls.d)
        cls.make_jobs(cls.agent)
        with open(os.path.join(HERE, "..", "..", "scheduler", "api", "api.c")) as f:
            cls.routes = re.findall(r'\{"GET",\s*"/api/v1/([^"]+)"', f.read())

    @classmethod
    def tearDownClass(cls):
        cls.stack.close()

    @classmethod
    def submit(cls, path="jobs", body=SPEC, **more):
        reply = cls.d.call("POST", "/api/v1/" + path, {**body, **more}, token=cls.tokens["ann"])
        if reply[0] != 201:
            raise AssertionError(reply)
        return reply[1]["id"]

    @classmethod
    def make_jobs(cls, agent):
        """Jobs of ann: one that cannot be executed, one that runs and cannot save, an array with a
        running task, and a cron entry.
        """
        cls.failed = cls.submit()
        cls.runs = cls.submit(checkpoint={"method": "coop"})
        cls.array = cls.submit(array="7")
        jobs = agent.await_jobs(3)
        cls.task = (jobs - {cls.failed, cls.runs}).pop()
        running = {"attempt": 1, "phase": "running", "started_at": 1}
        agent.sync(attempts=[{"job": job, **running} for job in jobs])
        cls.written = (cls.failed, cls.runs, cls.task)
        for job in cls.written:
            agent.put(job, SECRET.encode() + b"\n")
        end = {
            "phase": "ended",
            "end": "failed",
            "exit_code": 126,
            "text": 'the script cannot be executed: no such file; its first line is "%s"'
            % SPEC["script"].strip(),
            "output_bytes": len(SECRET) + 1,
        }
        failure = {"failed_saves": 1, "save_error": "/%s/model cannot be read" % SECRET}
        agent.sync(
            attempts=[
                {"job": cls.failed, **running, **end},
                {"job": cls.runs, **running, **failure},
                {"job": cls.task, **running},
            ]
        )
        cls.cron = cls.submit("crons", CRON)
        cls.session = cls.submit("jobs/%d/exec" % cls.runs, {"command": ["echo", SECRET]})
        agent.call("channels/%d/claim" % cls.session, b"")
        agent.call("channels/%d/output?offset=0" % cls.session, SECRET.encode())
        cls.make_drill(agent, running, failure)

    @classmethod
    def make_drill(cls, agent, running, failure):
        """A drill of the running job, which fails because the job ends during it."""
        progress = {"job": cls.task, **running}
        cls.drilled = cls.submit(checkpoint={"method": "coop"})
        while cls.drilled not in agent.await_jobs(3):
            pass
        mine = {"job": cls.drilled, **running, "done": 5, "total": 9, "first_done": 5}
        others = [{"job": cls.runs, **running, **failure}, progress]
        agent.sync(attempts=[*others, mine])
        reply = cls.d.call("POST", "/api/v1/jobs/%d/drill" % cls.drilled, token=cls.tokens["ann"])
        if reply[0] != 200:
            raise AssertionError(reply)
        end = {"phase": "ended", "end": "failed", "exit_code": 1, "text": SECRET}
        agent.sync(attempts=[*others, {**mine, **end}])

    # ---- asking ----

    def paths(self):
        """(route, path) of every GET request about ann's jobs."""
        for route in self.routes:
            number = {"crons": [self.cron], "channels": [self.session]}
            jobs = [self.failed, self.runs, self.array, self.task, self.drilled]
            for n in number.get(route.split("/")[0], jobs) if "#" in route else [0]:
                path = "/api/v1/" + route.replace("#", str(n))
                for query in {
                    "jobs": ["?state=all", "?why=1"],
                    "jobs/#/why": ["", "?brief=1"],
                    "jobs/#/logs": ["", "?wait_ms=200", "?tail=5", "?attempt=1", "?offset=-6"],
                    "events": ["", "?wait_ms=200"],
                    "instances": ["?state=all"],
                    "stream": ["?for_ms=1"],
                    "pools/detail": ["?name=spare"],
                }.get(route, [""]):
                    yield route, path + query

    def over_https(self, user, path, method="GET", body=None):
        headers = {"Last-Event-ID": "0-0"}  # a stream begins with all events
        reply = self.d.call(method, path, body, token=self.tokens[user], headers=headers)
        data = reply[1] if isinstance(reply[1], bytes) else json.dumps(reply[1]).encode()
        return reply[0], data.decode("latin-1")

    def over_socket(self, calls, uid):
        done = subprocess.run(
            [shutil.which("python3", path="/usr/bin:/bin"), "-I", "-c", ASK, self.d.socket],
            input=json.dumps(calls).encode(),
            cwd="/",
            stdout=subprocess.PIPE,
            check=True,
            timeout=4 * WAIT_S,
            preexec_fn=lambda: os.setuid(uid),
        )
        return [tuple(json.loads(line)) for line in done.stdout.splitlines()]

    def check_refused(self, route, status, text):
        if route not in OUTPUT:
            return
        self.assertEqual(status, 403, text)
        error = json.loads(text)["error"]
        self.assertEqual(error["kind"], "denied")
        self.assertIn("is ann's", error["text"])
        if route == "jobs/#/logs":
            self.assertIn("ask ann or an administrator", error["text"])

    def check_none(self, replies):
        for route, path, status, text in replies:
            with self.subTest(path):
                self.assertNotIn(SECRET, text)
                self.assertNotIn(KEY, text)
                self.check_refused(route, status, text)

    # ---- the tests ----

    def test_the_owner_and_administrators_see_it(self):
        for user in ("ann", "boss"):
            with self.subTest(user):
                shows = set()
                for route, path in self.paths():
                    status, text = self.over_https(user, path)
                    shows |= {route} if SECRET in text or KEY in text else set()
                    if re.match("/api/v1/jobs/(%d|%d|%d)/logs" % self.written, path):
                        self.assertEqual((status, SECRET in text), (200, True), path)
                self.assertEqual(shows, SHOWS)

    def test_other_users_do_not_see_it_over_https(self):
        self.assertGreaterEqual(len(self.routes), 30)
        self.check_none((r, p, *self.over_https("bob", p)) for r, p in self.paths())

    @unittest.skipIf(os.geteuid() != 0, "to be another user needs root")
    def test_other_users_do_not_see_it_over_the_socket(self):
        asked = list(self.paths())
        replies = self.over_socket([("GET", p, None) for _, p in asked], NOBODY.pw_uid)
        self.assertEqual(len(replies), len(asked))
        self.check_none((r, p, *reply) for (r, p), reply in zip(asked, replies))
        own = self.over_socket([("POST", "/api/v1/jobs", SPEC)], NOBODY.pw_uid)
        path = "/api/v1/jobs/%d/logs" % json.loads(own[0][1])["id"]
        root = self.over_socket([("GET", path, None)], 0)
        self.assertEqual((own[0][0], root[0][0]), (201, 200))
        self.assertEqual(self.over_socket([("GET", path, None)], NOBODY.pw_uid)[0][0], 200)
        self.assertEqual(self.over_https("bob", path)[0], 403)

    def test_every_credential_for_the_output(self):
        d, path = self.d, "/api/v1/jobs/%d/logs" % self.runs
        stale = [d.token(kind="api", user="ann", ttl_ms=1), d.token(kind="api", user="ann")]
        newest = max(t["id"] for t in d.call("GET", "/api/v1/tokens")[1]["tokens"])
        d.call("POST", "/api/v1/tokens/%d/revoke" % newest)
        inside = [a for a in self.agent.sync()["attempts"] if a["job"] == self.runs][0]
        for what, status, credential in (
            ("none", 401, {"tls": True}),
            ("unknown", 401, {"token": "x"}),
            ("expired, of the owner", 401, {"token": stale[0]}),
            ("revoked, of the owner", 401, {"token": stale[1]}),
            ("a machine that joins", 401, {"token": d.token(kind="join", pool="spare")}),
            ("the node that it runs on", 401, {"cert": self.agent.cert}),
            ("the attempt itself", 401, {"token": inside["job_token"]}),
            ("another user", 403, {"token": self.tokens["bob"]}),
            ("the owner", 200, {"token": self.tokens["ann"]}),
            ("an administrator", 200, {"token": self.tokens["boss"]}),
        ):
            with self.subTest(what):
                reply = d.call("GET", path, **credential)
                self.assertEqual((reply[0], SECRET in str(reply[1])), (status, status == 200))

    def test_the_events_of_others_have_a_kind_alone(self):
        for part in ("", "/events", "/why"):
            reply = self.over_https("bob", "/api/v1/jobs/%d%s" % (self.failed, part))
            self.assertEqual(reply[0], 403, part)
        events = json.loads(self.over_https("bob", "/api/v1/events?after=0")[1])["events"]
        ended = [e for e in events if e["job"] == self.failed and e["kind"] == "ended"]
        self.assertEqual([e["text"] for e in ended], ["not shown: the job is another user's"])

    def test_the_drills_of_others_are_not_listed(self):
        of = {u: json.loads(self.over_https(u, "/api/v1/drills")[1]) for u in ("ann", "bob")}
        self.assertIn("it did not save on request", of["ann"]["drills"][0]["text"])
        self.assertEqual(of["bob"]["drills"], [])
        self.assertEqual(self.over_https("bob", "/api/v1/jobs/%d" % self.drilled)[0], 403)

    def test_an_unknown_job_number_is_not_found(self):
        self.assertEqual(self.over_https("bob", "/api/v1/jobs/4711/logs")[0], 404)

    def test_programs_of_others_are_refused_with_the_reason(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("BELAY_")}
        token = os.path.join(self.d.dir, "bob")
        with open(token, "w") as f:
            f.write(self.tokens["bob"])
        os.chmod(token, 0o600)
        ca = os.path.join(self.d.state, "ca.pem")
        env.update(BELAY_SERVER=self.d.url, BELAY_TOKEN_FILE=token, BELAY_CA_FILE=ca)
        words = "job %s is ann's, and not shown to bob"
        task = "%d_7" % self.array
        for job, arguments in (
            (self.runs, ["-f", str(self.runs)]),
            (self.failed, ["--json", str(self.failed)]),
            (task, [task]),
        ):
            done = subprocess.run(
                [BUILD + "/cli/belay", "logs", *arguments],
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                timeout=WAIT_S,
            )
            self.assertEqual((done.returncode, done.stdout), (1, b""), done)
            self.assertIn(words % job, done.stderr.decode())
        bob = belay.client.Client(server=self.d.url, token=self.tokens["bob"], ca_file=ca)
        for read in (bob.read_log, lambda job: list(bob.follow_log(job))):
            with self.assertRaises(belay.client.Error) as refused:
                read(self.runs)
            self.assertEqual((refused.exception.status, refused.exception.kind), (403, "denied"))
            self.assertIn(words % self.runs, refused.exception.text)


if __name__ == "__main__":
    unittest.main()
