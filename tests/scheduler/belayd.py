# SPDX-License-Identifier: Apache-2.0
"""A belayd for a test: a real process, with a state directory of its own, on loopback.

    with Belayd() as d:
        status, body, headers = d.call("POST", "/api/v1/jobs", {"script": "#!/bin/sh\\n", "cwd":
        "/"})

Leaving the block stops it and checks that it exited with 0 and that no sanitizer reported
anything.
"""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import time

BUILD = os.path.abspath(os.environ.get("BELAY_BUILD", "build"))
WAIT_S = 60  # maximum of any single wait, with sanitizers and on a busy machine

CONFIG = "cluster: lab\nlisten: 127.0.0.1:0\npools:\n  base: {}\n  spare: {}\n"
# Of a ledger as fill_ledger() makes it. By day and not from midnight on: a piece for each of 3,000
# days of each of 40,000 stretches, which is minutes.
LONG_READ = "/api/v1/cost?by=day&from=2000-01-01T00:00:01Z"
LONG_LEDGER = """WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
    INSERT INTO ledger (job, attempt, node, instance, kind, from_at, to_at, ms, uusd, on_demand_uusd)
    SELECT 0, 0, 0, 0, 'idle', 1000000000000 + i, 1259200000000, 259200000000, 7, 7 FROM n"""

NOTIFICATION_TRIES = 12  # OUTBOX_TRIES_MAX

JOB = {"name": "job", "script": "#!/bin/sh\ntrue\n", "cwd": "/"}


class Unix(http.client.HTTPConnection):
    """A connection to a UNIX socket."""

    def __init__(self, path, timeout):
        super().__init__("belayd", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Belayd:
    def __init__(self, config=CONFIG, state=None, socket=None, prefix=(), asan=""):
        self.config = config
        self.asan = asan  # further options of AddressSanitizer, if belayd has it
        self.prefix = list(prefix)  # a program and its arguments, which becomes belayd
        self.dir = tempfile.mkdtemp(prefix="belay-test.")
        self.state = state or os.path.join(self.dir, "state")
        self.socket = socket or os.path.join(self.state, "belayd.sock")
        self.keys = Keys(self)
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, error, trace):
        problems = self.end()
        if error or problems:
            print("==== belayd's log\n%s" % self.log()[-20000:], file=sys.stderr)
        shutil.rmtree(self.dir)
        if not error and problems:
            raise AssertionError("; ".join(problems))

    # ---- the process ----

    def start(self, wait=True):
        path = os.path.join(self.dir, "belayd.yaml")
        with open(path, "w") as f:
            f.write(self.config)
        sanitizer = "log_path=%s/sanitizer" % self.dir
        env = {k: v for k, v in os.environ.items() if not k.startswith("BELAY_")}
        env.update(
            ASAN_OPTIONS=":".join(("malloc_context_size=6", sanitizer, self.asan)),
            UBSAN_OPTIONS="print_stacktrace=1:" + sanitizer,
        )
        with open(os.path.join(self.dir, "log"), "a") as log:
            self.process = subprocess.Popen(
                self.prefix
                + [BUILD + "/scheduler/belayd", "--state", self.state, "--config", path],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
            )
        if wait:
            self.wait_ready()

    def wait_ready(self):
        end = time.monotonic() + WAIT_S
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.call("GET", "/healthz")[0] == 200:
                    break
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError("belayd did not start: %s" % self.log()[-2000:])
            time.sleep(0.01)  # no event to wait for yet
        with open(os.path.join(self.state, "belayd.json")) as f:
            self.url = json.load(f)["url"]
        self.port = int(self.url.rsplit(":", 1)[1])

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(WAIT_S)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(WAIT_S)

    def fill_ledger(self):
        """Makes LONG_READ of the running belayd take minutes."""
        self.stop()
        with contextlib.closing(sqlite3.connect(os.path.join(self.state, "belay.db"))) as db:
            db.execute(LONG_LEDGER)
            db.commit()
        self.start()

    # ---- notifications to URLs of users, which are retried for an hour ----

    def wait_tried(self, jobs):
        """Waits until no delivery is in progress and those of these jobs have failed once. None may
        have been given up.
        """
        end, jobs = time.monotonic() + WAIT_S, set(jobs)
        while True:
            with contextlib.closing(sqlite3.connect(os.path.join(self.state, "belay.db"))) as db:
                rows = db.execute("SELECT job, target, tries FROM outbox").fetchall()
            left = {job for job, target, _ in rows if target.startswith("url:")}
            if not jobs <= left:
                raise AssertionError("given up at once: jobs %s" % sorted(jobs - left))
            if min(tries for _, _, tries in rows) > 0:
                return
            if time.monotonic() > end:
                raise AssertionError("not tried: %s" % rows)
            time.sleep(0.05)  # the API has no event for a failed try

    def try_notifications_last(self):
        """Restarts belayd with one try left for each notification."""
        self.stop()
        with contextlib.closing(sqlite3.connect(os.path.join(self.state, "belay.db"))) as db:
            db.execute("UPDATE outbox SET tries = %d, due_at = 1" % (NOTIFICATION_TRIES - 1))
            db.commit()
        self.start()

    def end(self):
        problems = []
        if self.process and self.process.poll() is None:
            try:
                code = self.stop()
                if code != 0:
                    problems.append("belayd ended with %d" % code)
            except subprocess.TimeoutExpired:
                self.kill()
                problems.append("belayd did not stop")
        problems += [
            "a sanitizer has reported:\n" + open(os.path.join(self.dir, name)).read()
            for name in os.listdir(self.dir)
            if name.startswith("sanitizer")
        ]
        return problems

    def log(self):
        with contextlib.suppress(OSError):
            with open(os.path.join(self.dir, "log"), errors="replace") as f:
                return f.read()
        return ""

    # ---- calls ----

    def connect(self, tls=False, cert=None, timeout=WAIT_S):
        """cert: (certificate, key) files of a client."""
        if not tls:
            return Unix(self.socket, timeout)
        context = ssl.create_default_context(cafile=os.path.join(self.state, "ca.pem"))
        if cert:
            context.load_cert_chain(*cert)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=context)

    def call(
        self, method, path, body=None, token=None, tls=False, cert=None, headers=None, on=None
    ):
        """One call: status, parsed body, headers. body: raw bytes, or anything else as JSON."""
        c = on or self.connect(tls or token is not None or cert is not None, cert)
        headers = dict(headers or {})
        if token is not None:
            headers["Authorization"] = "Bearer " + token
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        try:
            c.request(method, path, body, headers)
            reply = c.getresponse()
            data = reply.read()
        finally:
            if not on:
                c.close()
        if reply.getheader("Content-Type") == "application/json":
            data = json.loads(data)
        return reply.status, data, reply.headers

    def raw(self, data, tls=False, hear=True):
        """Sends raw bytes; returns the response until belayd closes, unless hear is False."""
        c = self.connect(tls)
        c.connect()
        answer = b""
        with contextlib.closing(c), contextlib.suppress(OSError):
            c.sock.sendall(data)
            while hear:
                piece = c.sock.recv(65536)
                if not piece:
                    break
                answer += piece
        return answer

    def submit(self, **spec):
        status, body, _ = self.call("POST", "/api/v1/jobs", {**JOB, **spec})
        if status != 201:
            raise AssertionError("submit: %d %s" % (status, body))
        return body["id"]

    def token(self, **request):
        status, body, _ = self.call("POST", "/api/v1/tokens", request)
        if status != 201:
            raise AssertionError("token: %d %s" % (status, body))
        return body["token"]

    def join(self, token, key, tls=True, **more):
        """Asks to join as an agent that has the key; more: of the request."""
        body = {
            "token": token,
            "csr_pem": self.keys.request(key),
            "host": "n",
            "version": "1",
            "cpus": 2,
            "memory_mib": 100,
            **more,
        }
        return self.call("POST", "/agent/v1/join", body, tls=tls)

    def belay(self, *arguments):
        """Runs a verb that calls it over its socket."""
        return subprocess.run(
            [BUILD + "/cli/belay", *arguments],
            cwd=self.dir,
            env={**os.environ, "BELAY_HOME": self.state},
            timeout=WAIT_S,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
        )

    def peak_mib(self):
        """The peak of its resident memory, in MiB."""
        with open("/proc/%d/status" % self.process.pid) as f:
            return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1)) / 1024

    def metric(self, name):
        text = self.call("GET", "/metrics")[1].decode()
        return float(re.search(r"^%s (\S+)$" % name, text, re.M).group(1))


class Node:
    """A node whose agent the test plays; more: what it reports when it joins."""

    def __init__(self, d, pool="base", **more):
        self.d, self.seq, self.attempts = d, 0, []
        key = d.keys.key()
        status, body, _ = d.join(d.token(kind="join", pool=pool), key, **more)
        if status != 200:
            raise AssertionError("join: %d %s" % (status, body))
        self.number, self.cert = body["node"], (d.keys.save(body["cert_pem"]), key)

    def call(self, path, body):
        return self.d.call("POST", "/agent/v1/" + path, body, cert=self.cert)

    def sync(self, **more):
        """Reports its attempts, and more; returns what it is to have."""
        self.seq += 1
        report = {"incarnation": 1, "seq": self.seq, "notice": {}, "attempts": self.attempts}
        status, desired, _ = self.call("sync", {**report, **more})
        if status != 200:
            raise AssertionError("sync: %d %s" % (status, desired))
        return desired

    def begin(self, job):
        """Waits until it is to run the job, and reports that the job runs."""
        desired, end = self.sync(), time.monotonic() + WAIT_S
        while job not in [a["job"] for a in desired.get("attempts", [])]:
            if time.monotonic() > end:
                raise AssertionError("job %d was not started here: %s" % (job, desired))
            desired = self.sync(have_rev=desired["rev"], wait_ms=10000)
        self.attempts.append({"job": job, "attempt": 1, "phase": "running", "started_at": 1})
        self.sync()


class Keys:
    """Keys, requests and certificates, made with openssl(1)."""

    def __init__(self, d):
        self.d = d
        self.n = 0

    def path(self, name):
        return os.path.join(self.d.dir, name)

    def run(self, *arguments):
        done = subprocess.run(
            ["openssl", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        if done.returncode != 0:
            raise AssertionError("openssl %s: %s" % (" ".join(arguments), done.stderr.decode()))
        return done.stdout.decode()

    def key(self, curve="P-256"):
        self.n += 1
        path = self.path("key%d.pem" % self.n)
        self.run(
            "ecparam",
            "-genkey",
            "-name",
            {"P-256": "prime256v1", "P-384": "secp384r1"}[curve],
            "-noout",
            "-out",
            path,
        )
        return path

    def request(self, key, cn="node"):
        return self.run("req", "-new", "-key", key, "-subj", "/CN=" + cn)

    def self_signed(self, key, cn):
        path = self.path("self%d.pem" % self.n)
        self.run(
            "req", "-new", "-x509", "-key", key, "-subj", "/CN=" + cn, "-days", "1", "-out", path
        )
        return path

    def signed(self, key, cn, start, end, usage="clientAuth"):
        """A certificate of the cluster's own CA, which only belayd can issue. Times as
        YYMMDDHHMMSSZ."""
        self.n += 1
        names = {
            n: self.path("%s%d" % (n, self.n)) for n in ("csr", "cert", "index", "serial", "conf")
        }
        with open(names["csr"], "w") as f:
            f.write(self.request(key, cn))
        open(names["index"], "w").close()
        with open(names["serial"], "w") as f:
            f.write("%02X\n" % (0x10 + self.n))
        with open(names["conf"], "w") as f:
            f.write(
                "[ca]\ndefault_ca = c\n[c]\ndatabase = %s\nserial = %s\nnew_certs_dir = %s\ndefault_md = sha256\n"
                "policy = p\nx509_extensions = x\nunique_subject = no\n[p]\ncommonName = supplied\n"
                "[x]\nbasicConstraints = critical,CA:FALSE\nkeyUsage = critical,digitalSignature\n"
                "extendedKeyUsage = %s\n" % (names["index"], names["serial"], self.d.dir, usage)
            )
        self.run(
            "ca",
            "-batch",
            "-notext",
            "-config",
            names["conf"],
            "-cert",
            self.d.state + "/ca.pem",
            "-keyfile",
            self.d.state + "/ca.key",
            "-startdate",
            start,
            "-enddate",
            end,
            "-in",
            names["csr"],
            "-out",
            names["cert"],
        )
        return names["cert"]

    def save(self, pem):
        self.n += 1
        path = self.path("saved%d.pem" % self.n)
        with open(path, "w") as f:
            f.write(pem)
        return path
