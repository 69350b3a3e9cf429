# SPDX-License-Identifier: Apache-2.0
"""A job has a token of its attempt: on a node where its user has no credentials, it can change the
job's url. Whoever steals the token can do nothing else: no other option, no other job, no other
call, and nothing at all once the attempt has ended.
"""

import contextlib
import http.client
import json
import os
import ssl
import subprocess
import tempfile
import unittest
import urllib.parse

import lab
from lab import BUILD, Lab

SCRIPT = """\
#!/bin/sh
export BELAY_HOME=/nonexistent
unset BELAY_SERVER BELAY_SOCKET
PROGRAM='import belay.client, os
client, job = belay.client.Client.inside(), int(os.environ["BELAY_JOB_ID"])
before = os.environ["BELAY_ATTEMPT"]
client.update(job, url="https://python.example.org/" + before)
client.update(job, url="https://run.example.org/" + before)
try:
    client.show_job(job)
except belay.client.Error as e:
    raise SystemExit(e.kind != "denied")'
belay update "url=https://run.example.org/$BELAY_ATTEMPT"; echo "own $?"
belay update "$BELAY_JOB_ID" url=none "url=https://run.example.org/$BELAY_ATTEMPT"; echo "named $?"
belay update nice=3 2>&1; echo "nice $?"
PYTHONPATH=%(client)s python3 -B -c "$PROGRAM"; echo "python $?"
belay update %(other)d url=https://other.example.org/ 2>&1; echo "other $?"
cp "$BELAY_JOB_FILE" "%(dir)s/$BELAY_ATTEMPT"; stat -c 'mode %%a' "$BELAY_JOB_FILE"
echo "up $BELAY_ATTEMPT"
while ! [ -e "%(dir)s/go" ]; do sleep 0.05; done
"""

# Paths that need no credentials.
OPEN = {"/healthz", "/api/v1/openapi.json", "/login/methods", "/login/done", "/", "/console/x"}
# A job's own sessions, with which its script starts steps on other nodes; here there are none.
SESSIONS = "/api/v1/channels/"
LOGIN = "/login"  # for all, and this belayd has no identity provider
CLIENT = os.path.join(BUILD, "clients/python")
CSR = ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
CSR += ["-keyout", "/dev/null", "-subj", "/CN=node"]
JOIN = {"host": "n", "version": "1", "cpus": 2, "memory_mib": 100}


class Thief:
    """An attacker who has everything that the agent gave to the job."""

    def __init__(self, path):
        with open(path) as f:
            given = json.load(f)
        self.token = given["token"]
        self.server = urllib.parse.urlsplit(given["server"])
        self.tls = ssl.create_default_context(cadata=given["ca"])

    def call(self, method, path, body=None, token=None):
        """Status and answer."""
        c = http.client.HTTPSConnection(
            self.server.hostname, self.server.port, timeout=lab.WAIT_S, context=self.tls
        )
        with contextlib.closing(c):
            headers = {"Authorization": "Bearer " + (token or self.token)}
            c.request(method, path, json.dumps(body) if body is not None else None, headers)
            reply = c.getresponse()
            return reply.status, reply.read().decode(errors="replace")


class Inside(unittest.TestCase):
    def update(self, thief, job, body, **more):
        return thief.call("POST", "/api/v1/jobs/%d/update" % job, body, **more)

    def check_calls(self, l, thief, job):
        """Makes every call of the API except the job's own one."""
        tried, csr = 0, subprocess.check_output(CSR, stderr=subprocess.DEVNULL, text=True)
        for path, methods in l.get("/openapi.json")["paths"].items():
            for method in methods.keys() & {"get", "post", "put", "delete"}:
                at = path.format(**{"id": job, "job": job, "attempt": 1, "path": "x"})
                if at == "/api/v1/jobs/%d/update" % job or at in OPEN:
                    continue
                body = {"token": thief.token, "csr_pem": csr, **JOIN} if "join" in at else {}
                status, text = thief.call(method.upper(), at, body if method == "post" else None)
                expected = (404,) if at.startswith(SESSIONS) else (401, 403)
                if at.startswith(LOGIN):
                    expected = (401, 403, 501)
                with self.subTest((method, path)):
                    self.assertIn(status, expected, text)
                tried += 1
        self.assertGreater(tried, 40)

    def check_options(self, l, thief, job):
        """Every other option, alone and together with the allowed one."""
        options = l.get("/openapi.json")["components"]["schemas"]["JobChange"]["properties"]
        self.assertGreater(len(options), 30)
        for name in options.keys() - {"url"}:
            for body in ({name: None}, {"url": "https://stolen.example.org/", name: 1}):
                status, text = self.update(thief, job, body)
                with self.subTest(body):
                    self.assertEqual(
                        (
                            status,
                            '"%s" is not for the job itself' % name
                            in json.loads(text)["error"]["text"],
                        ),
                        (403, True),
                        text,
                    )
        for body in ({"url": "x"}, {"url": ["x"]}, {"nonsense": 1}, {}, [], None):
            with self.subTest(body):
                self.assertIn(self.update(thief, job, body)[0], (400, 403))

    def check_forged(self, thief, job, other):
        _, attempt, mac = thief.token.split(".")
        body = {"url": "https://stolen.example.org/"}
        for token in (
            "j%d.%s.%s" % (other, attempt, mac),
            "j%d.%d.%s" % (job, int(attempt) + 1, mac),
            "j%d.%s.%s" % (job, attempt, mac[:-1] + ("0" if mac[-1] != "0" else "1")),
            "j%d.%s." % (job, attempt),
            "j%d" % job,
            thief.token + "0",
        ):
            for target in (job, other):
                with self.subTest((token, target)):
                    self.assertEqual(self.update(thief, target, body, token=token)[0], 401)

    def test_the_token_of_a_job_changes_its_url_and_nothing_else(self):
        with tempfile.TemporaryDirectory(prefix="belay-attack.") as dir_, Lab() as l:
            other = l.post(
                "/jobs", {"name": "other", "script": "#!/bin/sh\n", "cwd": "/", "hold": True}
            )["id"]
            before = l.show(other)
            job = l.post(
                "/jobs",
                {
                    "name": "inside",
                    "script": SCRIPT % {"dir": dir_, "other": other, "client": CLIENT},
                    "cwd": "/",
                    "checkpoint": {"method": "none"},
                },
            )["id"]
            l.wait_log(job, "^up 1$")
            said = l.log(job)
            for line in ("own 0", "named 0", "nice 1", "python 0", "other 1", "mode 600"):
                self.assertIn(line + "\n", said)
            self.assertIn("a job can change only its own url", said)
            self.assertEqual(l.job(job)["url"], "https://run.example.org/1")
            changed = [e["text"] for e in l.events(job) if "python.example.org/1" in e["text"]]
            self.assertEqual(len(changed), 1, changed)
            thief = Thief(os.path.join(dir_, "1"))
            self.assertNotIn(thief.token, said)
            shown = l.show(job)["job"]

            self.check_calls(l, thief, job)
            self.check_options(l, thief, job)
            self.check_forged(thief, job, other)
            status, text = self.update(thief, other, {"url": "https://stolen.example.org/"})
            self.assertEqual((status, "is for that job only" in text), (403, True), text)
            self.assertEqual(l.show(other), before)
            now = l.show(job)["job"]
            for name in shown.keys() - {"usage", "run_ms", "cost_uusd", "on_demand_uusd"}:
                with self.subTest(name):
                    self.assertEqual(now[name], shown[name])
            self.assertEqual(self.update(thief, job, {"url": None})[0], 200)
            self.assertIsNone(l.job(job)["url"])

            # The token of an attempt before, while another runs; then of one that has ended.
            l.belay("requeue", "--force", str(job))
            l.wait_log(job, "^up 2$")
            last = Thief(os.path.join(dir_, "2"))
            self.assertEqual(l.job(job)["url"], "https://run.example.org/2")
            self.assertEqual(self.update(thief, job, {"url": "https://late.example.org/"})[0], 401)
            self.assertEqual(self.update(last, job, {"url": "https://b.example.org/"})[0], 200)
            with open(os.path.join(dir_, "go"), "w"):
                pass
            self.assertEqual(l.wait_ended(job)["job"]["end"], "succeeded")
            for who in (thief, last):
                self.assertEqual(
                    self.update(who, job, {"url": "https://late.example.org/"})[0], 401
                )
            self.assertEqual(l.job(job)["url"], "https://b.example.org/")


if __name__ == "__main__":
    unittest.main()
