# SPDX-License-Identifier: Apache-2.0
"""belayd serves its agent only to nodes and to machines that may become nodes."""

import concurrent.futures
import hashlib
import io
import os
import tarfile
import unittest

from belayd import BUILD, Belayd

ARCH = os.uname().machine
WHERE = "/agent/v1/bundle?arch=" + ARCH
HASH = "/agent/v1/bundle/sha256?arch=" + ARCH


class Bundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.d = Belayd()
        cls.d.start()
        with open(os.path.join(BUILD, "bundle", "agent-%s.tar.gz" % ARCH), "rb") as f:
            cls.content = f.read()

    @classmethod
    def tearDownClass(cls):
        cls.d.__exit__(None, None, None)

    def join(self, token):
        key = self.d.keys.key()
        status, body, _ = self.d.join(token, key)
        self.assertEqual(status, 200, body)
        return self.d.keys.save(body["cert_pem"]), key

    def refused(self, reply, status, text):
        self.assertEqual(reply[0], status, reply[1])
        self.assertIn(text, reply[1]["error"]["text"])

    def test_a_join_token_gets_it_as_long_as_it_is_not_used(self):
        token = self.d.token(kind="join", pool="base")
        for _ in range(2):
            status, body, headers = self.d.call("GET", WHERE, token=token)
            self.assertEqual((status, headers["Content-Type"]), (200, "application/gzip"))
            self.assertEqual(body, self.content)
        status, body, _ = self.d.call("GET", HASH, token=token)
        self.assertEqual(
            (status, body.decode()), (200, hashlib.sha256(self.content).hexdigest() + "\n")
        )
        cert = self.join(token)
        self.refused(self.d.call("GET", WHERE, token=token), 401, "already used")
        self.refused(self.d.call("GET", HASH, token=token), 401, "already used")
        self.assertEqual(self.d.call("GET", WHERE, cert=cert)[1], self.content)

    def test_nobody_else_does(self):
        token = self.d.token(kind="join", pool="base")
        shown = max(self.d.call("GET", "/api/v1/tokens")[1]["tokens"], key=lambda t: t["id"])
        self.assertEqual(self.d.call("POST", "/api/v1/tokens/%d/revoke" % shown["id"])[0], 200)
        self.refused(self.d.call("GET", WHERE, token=token), 401, "does not belong to this cluster")
        self.refused(
            self.d.call("GET", WHERE, token=self.d.token(kind="api", user="ann")),
            401,
            "does not belong to this cluster",
        )
        self.refused(self.d.call("GET", WHERE, tls=True), 401, "join token")
        for token in "nonsense", "i1." + 64 * "0", "i99999999999999999999.0", "":
            self.refused(self.d.call("GET", WHERE, token=token), 401, "join token")

    def test_what_makes_no_sense_is_refused(self):
        token = self.d.token(kind="join", pool="base")
        for query in "", "?arch=", "?arch=vax", "?arch=../x86_64":
            self.refused(
                self.d.call("GET", "/agent/v1/bundle" + query, token=token),
                400,
                "x86_64 or aarch64",
            )
        other = {"x86_64": "aarch64", "aarch64": "x86_64"}[ARCH]
        self.refused(
            self.d.call("GET", "/agent/v1/bundle?arch=" + other, token=token),
            404,
            "no agent for " + other,
        )
        self.refused(self.d.call("POST", WHERE, {}, token=token), 405, "takes GET")

    def test_many_get_it_at_once_and_slow_ones_hold_up_nobody(self):
        token = self.d.token(kind="join", pool="base")
        slow = self.d.connect(tls=True)
        slow.request("GET", WHERE, headers={"Authorization": "Bearer " + token})
        reply = slow.getresponse()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            bodies = list(pool.map(lambda _: self.d.call("GET", WHERE, token=token)[1], range(8)))
        self.assertEqual(
            {hashlib.sha256(b).hexdigest() for b in bodies},
            {hashlib.sha256(self.content).hexdigest()},
        )
        self.assertEqual(self.d.call("GET", "/healthz")[0], 200)
        self.assertEqual(reply.read(), self.content)
        slow.close()

    def test_one_who_hangs_up_leaves_nothing_behind(self):
        token = self.d.token(kind="join", pool="base")
        for _ in range(300):  # more than may be sent at a time
            c = self.d.connect(tls=True)
            c.request("GET", WHERE, headers={"Authorization": "Bearer " + token})
            c.getresponse().read(1000)
            c.close()
        while True:
            status, body, _ = self.d.call("GET", WHERE, token=token)
            if status != 503:
                break
        self.assertEqual((status, body), (200, self.content))

    def test_it_holds_what_a_node_needs(self):
        with tarfile.open(fileobj=io.BytesIO(self.content)) as tar:
            members = {m.name: m for m in tar.getmembers()}
        for name in (
            "bin/belay",
            "bin/belay-agent",
            "bin/belay-supervisor",
            "lib/private/ld.so",
            "lib/libbelay.so.0",
            "relocate",
        ):
            self.assertEqual(members[name].mode, 0o755, name)
        self.assertEqual(members["share/belay/belay/__init__.py"].mode, 0o644)
        for m in members.values():
            self.assertEqual((m.uid, m.gid, m.mtime), (0, 0, 0), m.name)
            self.assertTrue(
                m.isfile() or m.isdir() or (m.issym() and m.linkname == "belay"), m.name
            )
        self.assertTrue(members["bin/srun"].issym())


if __name__ == "__main__":
    unittest.main(verbosity=2)
