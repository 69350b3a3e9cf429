# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in Google's and Azure's stores, simulated here with their token services: agent,
belayd and `belay checkpoint` use their own tokens, which are renewed before they expire; then nodes
without rights, where belayd gives each job a token for its part of the store."""

import base64
import concurrent.futures
import hashlib
import hmac
import http.server
import json
import os
import re
import sys
import threading
import time
import unittest
import urllib.parse

import lab
from lab import Lab

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ckpt"))
import test_store_clouds

SECRET = "s3cret-of-the-identity"
KEY = hashlib.sha256(b"a key of the test's own").digest()
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
NOTHING = {"GET": "r", "HEAD": "r", "PUT": "w", "DELETE": "d"}


class Store(test_store_clouds.Handler):
    """The store, the metadata service and the token service of Google; the login and the Blob
    service of Azure."""

    token_s, narrow_s = 4, 60

    def setup(self):
        super().setup()
        self.book, self.objects, self.blocks = self.server.book, self.server.book.objects, {}

    def tell(self, value, status=200, **headers):
        self.how = None
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.reply(status, body, **headers)
        return True

    def mint(self, prefix, life_s):
        with self.book.lock:
            token = "tok-%d-%s" % (len(self.book.tokens), os.urandom(9).hex())
            self.book.tokens[token] = (prefix, time.time() + life_s)
        return {"access_token": token, "expires_in": life_s, "token_type": "Bearer"}

    def prefix_of(self, token):
        """The scope of a token, or None."""
        with self.book.lock:
            prefix, end = self.book.tokens.get(token, (None, 0))
        return prefix if time.time() < end else None

    def serve(self, target, body):
        form = (
            {k: v[0] for k, v in urllib.parse.parse_qs(body.decode("latin-1")).items()}
            if self.command == "POST"
            else {}
        )
        if target.path == "/computeMetadata/v1/instance/service-accounts/default/token":
            return self.tell(self.mint("/", self.token_s), Metadata_Flavor="Google")
        if target.path.endswith("/oauth2/v2.0/token"):
            known = (
                form.get("client_secret") == SECRET
                and form["scope"] == "https://storage.azure.com/.default"
            )
            return (
                self.tell(self.mint("/", self.token_s))
                if known
                else self.tell({"error": "invalid_client"}, 401)
            )
        if target.path == "/v1/token":
            return self.exchange(form)
        if target.path == "/lab1/" and "userdelegationkey" in target.query:
            return self.delegate(body.decode())
        return False

    def exchange(self, form):
        if form["grant_type"] != EXCHANGE or self.prefix_of(form["subject_token"]) != "/":
            return self.tell({"error": "invalid_grant"}, 400)
        (rule,) = json.loads(form["options"])["accessBoundary"]["accessBoundaryRules"]
        found = re.fullmatch(
            r"resource\.name\.startsWith\('projects/_/buckets/jobs/objects/(.*)'\) \|\| api\.getAttribute\("
            r"'storage\.googleapis\.com/objectListPrefix', ''\)\.startsWith\('(.*)'\)",
            rule["availabilityCondition"]["expression"],
        )
        if (
            found[1] != found[2]
            or rule["availableResource"] != "//storage.googleapis.com/projects/_/buckets/jobs"
        ):
            return self.tell({"error": "invalid_request"}, 400)
        return self.tell(self.mint("/jobs/" + found[1], self.narrow_s))

    def delegate(self, body):
        self.azure = True
        if self.prefix_of((self.headers.get("Authorization") or "")[7:]) != "/":
            self.how = None
            self.refuse(403, "AuthorizationPermissionMismatch")
            return True
        start, expiry = re.search("<Start>(.*)</Start><Expiry>(.*)</Expiry>", body).groups()
        parts = {
            "SignedOid": "o-1",
            "SignedTid": "t-1",
            "SignedStart": start,
            "SignedExpiry": expiry,
            "SignedService": "b",
            "SignedVersion": "2021-12-02",
            "Value": base64.b64encode(KEY).decode(),
        }
        text = "".join("<%s>%s</%s>" % (k, v, k) for k, v in parts.items())
        return self.tell(("<UserDelegationKey>%s</UserDelegationKey>" % text).encode())

    def is_signed(self):
        """Signed with the delegation key, for this container and operation, and not expired."""
        q = {k: v[0] for k, v in self.query.items()}
        if not q.get("sig") or q["se"] < time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()):
            return False
        text = "\n".join(
            [
                q["sp"],
                "",
                q["se"],
                "/blob/lab1/jobs",
                q["skoid"],
                q["sktid"],
                q["skt"],
                q["ske"],
                q["sks"],
                q["skv"],
                "",
                "",
                "",
                "",
                q["spr"],
                q["sv"],
                q["sr"],
                "",
                "",
                "",
                "",
                "",
                "",
                "",
            ]
        )
        mac = base64.b64encode(hmac.new(KEY, text.encode(), hashlib.sha256).digest()).decode()
        need = "l" if q.get("comp") == "list" else NOTHING[self.command]
        return q["sr"] == "c" and mac == q["sig"] and need in q["sp"]

    def may(self, path):
        prefix = self.prefix_of((self.headers.get("Authorization") or "")[7:])
        name = path if path.rstrip("/") != "/jobs" else "/jobs/" + self.query.get("prefix", [""])[0]
        may = (
            self.is_signed()
            if self.azure and "sig" in self.query
            else prefix is not None and name.startswith(prefix)
        )
        with self.book.lock:
            self.book.asked.append((may, self.azure and "sig" in self.query, prefix, name))
        return may


class Book:
    def __init__(self):
        self.lock, self.tokens, self.asked, self.objects = threading.Lock(), {}, [], {}


class TokenLab(Lab):
    def __init__(self, kind, of_jobs):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
        self.server.daemon_threads = True
        self.book = self.server.book = Book()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.kind, self.of_jobs = kind, of_jobs
        self.root = "http://127.0.0.1:%d" % self.server.server_port
        self.keys = (
            {"GCE_METADATA_HOST": self.root[len("http://") :]}
            if kind == "gs"
            else {
                "AZURE_AUTHORITY_HOST": self.root,
                "AZURE_TENANT_ID": "t-1",
                "AZURE_CLIENT_ID": "c-1",
                "AZURE_CLIENT_SECRET": SECRET,
            }
        )
        of_nodes = (
            {"GCE_METADATA_HOST": "127.0.0.1:1", "AZURE_AUTHORITY_HOST": "http://127.0.0.1:1"}
            if of_jobs
            else self.keys
        )
        super().__init__(
            agent_prelude="".join("export %s=%s\n" % item for item in of_nodes.items()),
            belayd={"retention": "0s"},
        )

    def provision(self, ports):
        self.env.update(self.keys)
        url = (
            "gs://jobs/lab?kms_key=%s&" % test_store_clouds.KMS_KEY
            if self.kind == "gs"
            else "az://lab1/jobs/lab?"
        )
        more = {"store_credentials": "job" if self.of_jobs else "node"}
        if self.of_jobs and self.kind == "gs":
            more["store_sts"] = self.root
        elif self.of_jobs:
            more["store_lifetime"] = "10s"
        return {**super().provision(ports), "store": "%sendpoint=%s" % (url, self.root), **more}

    def end(self):
        problems = super().end()
        self.server.shutdown()
        self.server.server_close()
        return problems

    def asked(self):
        with self.book.lock:
            return list(self.book.asked)

    def run(self):
        """A job that saves, is requeued and resumes; then its checkpoints are listed, read and
        cleaned."""
        job = self.submit("chain.py", 2000, method="coop", every_ms=1000)
        self.wait_event(job, "saved", 2)
        self.post("/jobs/%d/requeue" % job)
        started = self.wait_event(job, "started", 2)
        self.wait_event(job, "saved", 1 + self.kinds(job).count("saved"))
        restored = self.show(job)["attempts"][1]["restored"]
        assert started["attempt"] == 2 and restored["attempt"] == 1, restored
        self.belay("checkpoint", "verify", str(job))
        assert json.loads(self.belay("checkpoint", "--json", "list", str(job)))["checkpoints"]
        self.post("/jobs/%d/cancel" % job)
        self.wait_ended(job)
        self.wait(lambda: self.show(job)["leftover"]["state"] == "done", "belayd has cleaned")
        return job

    def leaks(self, *words):
        """Files that contain one of these."""
        found = []
        for folder, _, names in os.walk(self.dir):
            for path in (os.path.join(folder, name) for name in names):
                if os.path.isfile(path) and not path.endswith("/bin/belay-agent"):
                    text = lab.read_bytes(path)
                    found += [path for word in words if word in text]
        return found


class Tokens(unittest.TestCase):
    def check_own(self, kind):
        with TokenLab(kind, False) as l:
            l.run()
            self.assertEqual(
                [a for a in l.asked() if not a[0]], []
            )  # all were renewed before they expired
            self.assertGreater(len(l.book.tokens), 4)
            self.assertEqual(l.leaks(b"tok-", SECRET.encode()), [])

    def check_jobs(self, kind):
        with TokenLab(kind, True) as l:
            job = l.run()
            asked = l.asked()
            self.assertEqual([a for a in asked if not a[0]], [])
            if kind == "gs":
                self.assertEqual({a[2] for a in asked}, {"/", "/jobs/lab/e2e/jobs/%d/" % job})
            self.assertGreater(
                sum(a[1] for a in asked) if kind == "az" else sum(a[2] != "/" for a in asked), 5
            )
            self.assertEqual(l.leaks(b"tok-", b"&sig=", SECRET.encode()), [])

    def both(self, check):
        """Two labs in parallel, because they mostly wait."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(check, ("gs", "az")))

    def test_tokens_of_ones_own_are_renewed_before_they_end(self):
        self.both(self.check_own)

    def test_jobs_get_what_reaches_their_part(self):
        self.both(self.check_jobs)


if __name__ == "__main__":
    unittest.main()
