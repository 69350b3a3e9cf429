# SPDX-License-Identifier: Apache-2.0
"""The agents' part of the API, used by faulty, late, lying and false agents."""

import contextlib
import functools
import hashlib
import http.client
import json
import os
import shutil
import socket
import ssl
import threading
import time
import unittest

from belayd import CONFIG, JOB, WAIT_S, Belayd, Node

DAY_S = 86400


def stamp(offset_s):
    return time.strftime("%y%m%d%H%M%SZ", time.gmtime(time.time() + offset_s))


class Agents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.d = Belayd()
        cls.d.start()
        cls.keys = cls.d.keys

    @classmethod
    def tearDownClass(cls):
        cls.d.__exit__(None, None, None)

    def check(self, reply, status, kind, *texts):
        self.assertEqual((reply[0], reply[1]["error"]["kind"]), (status, kind), reply[1])
        for text in texts:
            self.assertIn(text, reply[1]["error"]["text"])

    def join(self, token, key, **more):
        return self.d.join(token, key, **more)

    def joined(self, pool="base", **more):
        """A node: its number and its (certificate, key)."""
        node = Node(self.d, pool, **more)
        return node.number, node.cert

    def sync(self, cert, seq=1, **more):
        body = {"incarnation": 1, "seq": seq, "notice": {}, **more}
        return self.d.call("POST", "/agent/v1/sync", body, cert=cert, tls=True)

    # ---- joining ----

    def test_all_nodes_come_in_pages_and_the_live_ones_at_once(self):
        joined = [self.joined()[0] for _ in range(3)]

        def rows(query):
            status, page, _ = self.d.call("GET", "/api/v1/nodes" + query)
            self.assertEqual(status, 200)
            return [n["id"] for n in page["nodes"]], page["next"]

        every, after = rows("?state=all")
        self.assertIsNone(after)
        self.assertEqual(every, sorted(every))
        self.assertLess(set(joined), {*every, 0})
        self.assertEqual(rows(""), (every, None))
        walked, before = [], every[-1] + 1
        while before:
            page, before = rows("?state=all&limit=2&before=%d" % before)
            self.assertLessEqual(len(page), 2)
            walked = page + walked
        self.assertEqual(walked, every)
        self.assertEqual(rows("?state=all&before=1"), ([], None))
        reply = self.d.call("GET", "/api/v1/instances?state=all&limit=2")[1]
        self.assertEqual(reply, {"instances": [], "next": None})
        for route in ("nodes", "instances"):
            for query, says in (
                ("?limit=2", "are of state=all"),
                ("?before=7&state=live", "are of state=all"),
                ("?state=all&limit=0", "limit"),
                ("?state=all&limit=1001", "limit"),
                ("?state=all&before=-1", "before"),
                ("?state=all&before=x", "before"),
            ):
                status, error, _ = self.d.call("GET", "/api/v1/%s%s" % (route, query))
                self.assertEqual(status, 400, query)
                self.assertIn(says, error["error"]["text"])

    def test_join_and_sync(self):
        node, cert = self.joined()
        status, desired, _ = self.sync(cert)
        self.assertEqual(
            (status, desired["lease_ms"], desired.get("attempts", [])), (200, 30000, [])
        )
        shown = [n for n in self.d.call("GET", "/api/v1/nodes")[1]["nodes"] if n["id"] == node][0]
        self.assertEqual(
            (shown["state"], shown["cpus"], shown["pool"], shown["jobs"]), ("up", 2, "base", 0)
        )
        self.assertLess(shown["silent_ms"], 30000)

    def test_a_join_token_serves_one_key_once(self):
        token, key, other = self.d.token(kind="join", pool="base"), self.keys.key(), self.keys.key()
        status, first, _ = self.join(token, key)
        self.assertEqual(status, 200)
        self.check(self.join(token, other), 403, "denied", "already used")
        status, again, _ = self.join(token, key)  # the first reply may have been lost
        self.assertEqual((status, again["node"]), (200, first["node"]))

    def test_join_tokens_of_no_use_are_refused(self):
        key = self.keys.key()
        for token in (
            "",
            "x",
            "j." + "0" * 48,
            "i1." + "0" * 64,
            "i99999999999999999999.0",
            "i.",
            "i1",
            self.d.token(kind="api", user="ann"),
        ):
            with self.subTest(token):
                self.assertIn(self.join(token, key)[0], (400, 403))
        self.check(
            self.join(self.d.token(kind="join", pool="base", ttl_ms=1), key),
            403,
            "denied",
            "expired",
        )
        token = self.d.token(kind="join", pool="base")
        newest = self.d.call("GET", "/api/v1/tokens")[1]["tokens"][-1]["id"]
        self.d.call("POST", "/api/v1/tokens/%d/revoke" % newest)
        self.check(self.join(token, key), 403, "denied")

    def test_join_requests_that_make_no_sense_are_refused(self):
        token, key = self.d.token(kind="join", pool="base"), self.keys.key()
        for more in (
            {"cpus": 0},
            {"cpus": -1},
            {"cpus": "two"},
            {"memory_mib": 0},
            {"gpus": -1},
            {"host": None},
            {"csr_pem": "x"},
            {"csr_pem": self.keys.request(self.keys.key("P-384"))},
            {"csr_pem": "x" * 5000},
            {"host": "h" * 100},
        ):
            with self.subTest(list(more)[0]):
                self.check(self.join(token, key, **more), 400, "invalid")
        for body in (b"", b"{", b"[]", b"<html>"):
            self.check(self.d.call("POST", "/agent/v1/join", body, tls=True), 400, "invalid")
        self.assertEqual(self.join(token, key)[0], 200)  # none of these has used up the token

    def test_names_features_and_resources_that_nothing_can_have_are_refused_and_say_what_to_do(
        self,
    ):
        token, key = self.d.token(kind="join", pool="base"), self.keys.key()
        for text in ("../../etc", "a\nb", "\x1b]0;x\x07", "\x9b2J", "n[1-3]", "a,b", "-x", "", "é"):
            with self.subTest(host=text):
                self.check(
                    self.join(token, key, host=text),
                    400,
                    "invalid",
                    "is not a node's name: expected at most 63 letters",
                    "correct name: in the node's belay-agent.yaml",
                )
        for text in ("1.2\x1b[2J", "1\n2", "\x9b2J", "é"):
            with self.subTest(version=text):
                self.check(
                    self.join(token, key, version=text),
                    400,
                    "invalid",
                    "is not an agent's version: expected ASCII without control characters",
                )
        for text in (",,,", ",", ",a,,b,", ",a b,", ",\x1b[2J,", ",a,a,", "," + "a" * 64 + ","):
            with self.subTest(features=text):
                self.check(
                    self.join(token, key, features=text),
                    400,
                    "invalid",
                    "features: ",
                    "correct features: in the node's belay-agent.yaml",
                )
        for text in ("a:99999999999999999999", "a:0", "a:-1", "a:1,a:2", "\x1b[2J:1", ","):
            with self.subTest(resources=text):
                self.check(
                    self.join(token, key, resources=text),
                    400,
                    "invalid",
                    "resources: ",
                    "correct resources: in the node's belay-agent.yaml",
                )
        status, body, _ = self.join(  # none of these has used up the token
            token, key, host="GPU_4.lab-2", features=",ib,x86_64,", resources="lego:4,shmem"
        )
        self.assertEqual((status, body["name"]), (200, "GPU_4.lab-2"), body)
        shown = [
            n for n in self.d.call("GET", "/api/v1/nodes")[1]["nodes"] if n["id"] == body["node"]
        ][0]
        self.assertEqual(sorted(shown["features"]), ["ib", "x86_64"])
        self.assertEqual(shown["resources"], {"lego": 4, "shmem": 1})
        self.assertEqual(self.d.call("POST", "/api/v1/nodes/%d/delete" % body["node"])[0], 200)

    def test_nobody_joins_over_the_unix_socket(self):
        token, key = self.d.token(kind="join", pool="base"), self.keys.key()
        self.check(self.join(token, key, tls=False), 400, "invalid", "HTTPS")

    # ---- certificates ----

    def test_without_a_certificate_of_ours_nobody_is_an_agent(self):
        key = self.keys.key()
        wrong = (self.keys.self_signed(key, "node-1"), key)
        token = self.d.token(kind="api", user="ann", admin=True)
        for path in ("/agent/v1/sync", "/agent/v1/renew", "/agent/v1/output/1/1?offset=0"):
            with self.subTest(path):
                self.check(self.d.call("POST", path, b"{}", tls=True), 401, "denied", "certificate")
                self.check(self.d.call("POST", path, b"{}", token=token), 401, "denied")
                self.check(self.d.call("POST", path, b"{}"), 401, "denied")
                self.check(
                    self.d.call("POST", path, b"{}", cert=wrong), 401, "denied", "certificate"
                )

    def test_an_expired_certificate_is_refused_with_the_reason(self):
        key = self.keys.key()
        cert = (self.keys.signed(key, "node-1", stamp(-2 * DAY_S), stamp(-DAY_S)), key)
        self.check(self.sync(cert), 401, "denied", "expired")

    def test_a_certificate_of_the_future_is_refused(self):
        key = self.keys.key()
        self.check(
            self.sync((self.keys.signed(key, "node-1", stamp(DAY_S), stamp(2 * DAY_S)), key)),
            401,
            "denied",
        )

    def test_a_certificate_for_another_use_or_name_is_refused(self):
        key = self.keys.key()
        for cn, usage in (
            ("node-1", "serverAuth"),
            ("admin", "clientAuth"),
            ("node-", "clientAuth"),
            ("node-0", "clientAuth"),
            ("node-1x", "clientAuth"),
            ("node--1", "clientAuth"),
        ):
            with self.subTest(cn=cn, usage=usage):
                cert = (self.keys.signed(key, cn, stamp(-60), stamp(DAY_S), usage), key)
                self.check(self.sync(cert), 401, "denied")

    def test_the_certificate_of_a_removed_node_is_refused_with_the_reason(self):
        node, cert = self.joined()
        self.assertEqual(self.d.call("POST", "/api/v1/nodes/%d/delete" % node)[0], 200)
        self.check(self.sync(cert), 404, "not-found", "no longer belongs to this cluster")
        self.check(
            self.d.call(
                "POST", "/agent/v1/renew", {"csr_pem": self.keys.request(cert[1])}, cert=cert
            ),
            404,
            "not-found",
        )

    def test_a_certificate_is_renewed_for_the_same_key_only(self):
        node, cert = self.joined()
        status, body, _ = self.d.call(
            "POST", "/agent/v1/renew", {"csr_pem": self.keys.request(cert[1])}, cert=cert
        )
        self.assertEqual((status, body["node"]), (200, node))
        self.assertEqual(self.sync((self.keys.save(body["cert_pem"]), cert[1]))[0], 200)
        stolen = {"csr_pem": self.keys.request(self.keys.key())}
        self.check(self.d.call("POST", "/agent/v1/renew", stolen, cert=cert), 403, "denied")
        for body in (b"{}", b"[", b'{"csr_pem": "x"}'):
            self.check(self.d.call("POST", "/agent/v1/renew", body, cert=cert), 400, "invalid")

    def test_a_node_is_no_user(self):
        _, cert = self.joined()
        self.check(self.d.call("GET", "/api/v1/jobs", cert=cert), 401, "denied")

    # ---- sync ----

    def test_statuses_that_make_no_sense_are_refused(self):
        _, cert = self.joined()
        attempt = {"job": 1, "attempt": 1, "phase": "running"}
        tail = {"job": 1, "attempt": 1, "offset": 0, "hex": "00"}
        for more in (
            {"seq": 0},
            {"seq": "1"},
            {"incarnation": 0},
            {"wait_ms": 25001},
            {"wait_ms": -1},
            {"attempts": {}},
            {"attempts": [attempt] * 1025},
            {"attempts": [{**attempt, "phase": "flying"}]},
            {"attempts": [{**attempt, "job": 0}]},
            {"attempts": [{**attempt, "exit_code": 256}]},
            {"attempts": [{**attempt, "checkpoints": [{"sequence": 0, "saved_at": 0}]}]},
            {"attempts": [{**attempt, "checkpoints": [{"sequence": 1, "saved_at": 0}] * 17}]},
            {"tails": [{"job": 1, "attempt": 1}]},
            {"tails": [{**tail, "hex": "a"}]},
            {"tails": [{**tail, "hex": "0A"}]},
            {"tails": [{**tail, "offset": -1}]},
            {"tails": [tail] * 17},
            {"tails": [{**tail, "hex": "00" * 65537}]},
        ):
            with self.subTest(more=json.dumps(more)[:60]):
                self.check(self.sync(cert, **more), 400, "invalid")
        for body in (b"", b"{", b"null", b"\xff", b"[" * 100):
            self.check(self.d.call("POST", "/agent/v1/sync", body, cert=cert), 400, "invalid")
        self.check(
            self.d.call("POST", "/agent/v1/sync", b" " * ((9 << 20) + 1), cert=cert), 413, "invalid"
        )

    def test_a_status_that_waits_is_answered_when_there_is_work(self):
        node, cert = self.joined(pool="spare", cpus=64)
        rev = self.sync(cert)[1]["rev"]
        c = self.d.connect(tls=True, cert=cert)
        c.request(
            "POST",
            "/agent/v1/sync",
            json.dumps(
                {"incarnation": 1, "seq": 2, "have_rev": rev, "wait_ms": 20000, "notice": {}}
            ),
        )
        job = self.d.submit(cpus=64, pool="spare")
        desired = json.loads(c.getresponse().read())
        c.close()
        self.assertGreater(desired["rev"], rev)
        self.assertEqual(
            [(a["job"], a["attempt"], a["want"]) for a in desired["attempts"]], [(job, 1, "run")]
        )
        self.check_output(node, cert, job)

    # ---- output ----

    def test_followers_are_notified_when_the_rest_does_not_come(self):
        _, cert = self.joined(pool="spare", cpus=100)
        rev = self.sync(cert)[1]["rev"]
        job = self.d.submit(cpus=100, pool="spare")
        desired = self.sync(cert, 2, have_rev=rev, wait_ms=20000)[1]
        self.assertEqual([a["job"] for a in desired["attempts"]], [job])
        self.sync(
            cert, 3, attempts=[{"job": job, "attempt": 1, "phase": "running", "started_at": 1}]
        )
        self.d.call("POST", "/agent/v1/output/%d/1?offset=0" % job, b"one\n", cert=cert)
        self.sync(
            cert,
            4,
            attempts=[
                {
                    "job": job,
                    "attempt": 1,
                    "phase": "ended",
                    "started_at": 1,
                    "end": "failed",
                    "exit_code": 3,
                    "output_bytes": 1000,
                }
            ],
        )
        begun = (
            time.monotonic()
        )  # the rest is awaited for 10 s, a poll by itself would end after 25
        reply = self.d.call("GET", "/api/v1/jobs/%d/logs?offset=4&wait_ms=25000" % job)
        self.assertEqual((reply[1], reply[2]["Belay-Log-End"]), (b"", "1"))
        self.assertLess(time.monotonic() - begun, 20)

    def test_an_end_may_have_its_last_output_beside_it(self):
        _, cert = self.joined(pool="spare", cpus=128)
        rev = self.sync(cert)[1]["rev"]
        job = self.d.submit(cpus=128, pool="spare")
        desired = self.sync(cert, 2, have_rev=rev, wait_ms=20000)[1]
        self.assertEqual([a["job"] for a in desired["attempts"]], [job])
        self.sync(
            cert, 3, attempts=[{"job": job, "attempt": 1, "phase": "running", "started_at": 1}]
        )
        self.d.call("POST", "/agent/v1/output/%d/1?offset=0" % job, b"one\n", cert=cert)
        ended = {
            "job": job,
            "attempt": 1,
            "phase": "ended",
            "started_at": 1,
            "end": "succeeded",
            "output_bytes": 10,
        }

        def tail(offset, data, **more):
            return {"job": job, "attempt": 1, "offset": offset, "hex": data.hex(), **more}

        _, stranger = self.joined()
        self.sync(stranger, tails=[tail(4, b"lies")])
        for seq, wrong in enumerate(
            (tail(5, b"a gap"), tail(4, b"lies", attempt=2), tail(4, b"lies", job=job + 1)), 4
        ):
            self.sync(cert, seq, attempts=[{**ended, "phase": "ending", "end": ""}], tails=[wrong])
        self.sync(
            cert, 9, attempts=[ended], tails=[tail(2, b"e\ntwo\n\xff\0")]
        )  # belayd has two bytes of it
        reply = self.d.call("GET", "/api/v1/jobs/%d/logs" % job)
        self.assertEqual((reply[1], reply[2]["Belay-Log-End"]), (b"one\ntwo\n\xff\0", "1"))

    def check_output(self, node, cert, job):
        def put(offset, data, attempt=1, who=cert):
            return self.d.call(
                "POST", "/agent/v1/output/%d/%d?offset=%s" % (job, attempt, offset), data, cert=who
            )

        self.sync(
            cert, 3, attempts=[{"job": job, "attempt": 1, "phase": "running", "started_at": 1}]
        )
        self.assertEqual(put(0, b"one\n")[1], {"size": 4})
        self.assertEqual(put(9, b"gap\n")[1], {"size": 4})
        self.assertEqual(put(4, b"two\n")[1], {"size": 8})
        # An agent that wants to drop its copy waits until the data is on disk.
        self.assertEqual(put("8&durable=1", b"")[1], {"size": 8, "durable": True})
        self.assertEqual(put("8&durable=2", b"")[0], 400)
        for offset in ("-1", "x", "", str(1 << 51), str((1 << 63) - 1)):
            with self.subTest(offset):
                self.check(put(offset, b"x"), 400, "invalid", "offset")
        self.check(put(8, b"x" * ((256 << 10) + 1)), 400, "invalid", "at most")
        self.check(put(0, b"x", attempt=2), 403, "denied")
        _, stranger = self.joined()
        self.check(put(0, b"lies", who=stranger), 403, "denied", "does not run on this node")
        reply = self.d.call("GET", "/api/v1/jobs/%d/logs" % job)
        self.assertEqual((reply[1], reply[2]["Belay-Log-Next"]), (b"one\ntwo\n", "8"))
        self.assertNotIn("Belay-Log-End", reply[2])
        ended = {
            "job": job,
            "attempt": 1,
            "phase": "ended",
            "started_at": 1,
            "end": "failed",
            "exit_code": 3,
            "output_bytes": 12,
        }
        self.sync(cert, 4, attempts=[ended])
        self.assertEqual(self.d.call("GET", "/api/v1/jobs/%d" % job)[1]["job"]["exit_code"], 3)
        reply = self.d.call("GET", "/api/v1/jobs/%d/logs?offset=8" % job)
        self.assertNotIn("Belay-Log-End", reply[2])  # its last output is still to come
        self.assertEqual(put(8, b"end\n")[1], {"size": 12})
        reply = self.d.call("GET", "/api/v1/jobs/%d/logs?offset=8" % job)
        self.assertEqual((reply[1], reply[2]["Belay-Log-End"]), (b"end\n", "1"))


class EndingAuthority(unittest.TestCase):
    """The CA of the cluster is about to expire, or has expired."""

    def make_ca(self, d, days):
        os.makedirs(d.state, 0o700)
        key = d.keys.key()
        shutil.copy(key, d.state + "/ca.key")
        now = time.time()
        d.keys.run(
            "req",
            "-new",
            "-x509",
            "-key",
            key,
            "-subj",
            "/CN=belay cluster lab",
            "-days",
            str(days),
            "-sha256",
            "-addext",
            "basicConstraints=critical,CA:TRUE,pathlen:0",
            "-addext",
            "keyUsage=critical,keyCertSign,cRLSign",
            "-out",
            d.state + "/ca.pem",
        )
        return now + days * DAY_S

    def server_cert_ends(self, d):
        c = d.connect(tls=True)
        c.connect()
        with contextlib.closing(c):
            return ssl.cert_time_to_seconds(c.sock.getpeercert()["notAfter"])

    def test_the_host_of_server_is_in_the_certificate(self):
        for host, url in (
            ("belay.lab.example", "belay.lab.example"),
            ("2001:db8::7", "[2001:db8::7]"),
        ):
            with self.subTest(host), Belayd(CONFIG + "server: https://%s:17443\n" % url) as d:
                with open(d.state + "/port") as f:
                    port = int(f.read())
                context = ssl.create_default_context(cafile=d.state + "/ca.pem")
                with socket.create_connection(("127.0.0.1", port), WAIT_S) as plain:
                    # it refuses a certificate that does not name the host
                    with context.wrap_socket(plain, server_hostname=host) as c:
                        self.assertTrue(c.version())

    def test_it_is_logged_and_in_the_metrics_and_nothing_ends_before_it(self):
        for days, warned in ((2, True), (179, True), (182, False)):
            d = Belayd()
            end = self.make_ca(d, days)
            with self.subTest(days), d:
                self.assertAlmostEqual(d.metric("belay_ca_end_timestamp_seconds"), end, delta=60)
                self.assertEqual(
                    self.server_cert_ends(d), d.metric("belay_ca_end_timestamp_seconds")
                )
                self.assertEqual("certificate authority ends soon" in d.log(), warned)
                if warned:
                    self.assertIn("days_left=%d" % (days - 1), d.log())

    def test_a_new_one_lasts_for_years(self):
        with Belayd() as d:
            self.assertGreater(
                d.metric("belay_ca_end_timestamp_seconds"), time.time() + 3640 * DAY_S
            )
            self.assertEqual(self.server_cert_ends(d), d.metric("belay_ca_end_timestamp_seconds"))
            self.assertNotIn("certificate authority", d.log())


class Starts(unittest.TestCase):
    """Nodes that cannot start a job report the reason, and the job's user sees it."""

    WHY = "jobs cannot be executed in /srv: its file system is mounted noexec: mount it with exec"

    def agent(self, d):
        agents = Agents()
        agents.d, agents.keys = d, d.keys
        return agents

    def refuse(self, agents, cert, seq, job):
        """Reports that the node cannot make its start; returns the attempt's number."""
        desired = agents.sync(cert, seq, wait_ms=20000)[1]
        attempt = next(a["attempt"] for a in desired["attempts"] if a["job"] == job)
        end = {"phase": "ended", "started_at": 1, "end": "capacity", "text": self.WHY}
        agents.sync(cert, seq + 1, attempts=[{"job": job, "attempt": attempt, **end}])
        return attempt

    def reasons(self, d, job):
        return {
            r["code"]: r["text"] for r in d.call("GET", "/api/v1/jobs/%d/why" % job)[1]["reasons"]
        }

    def test_a_job_that_no_node_could_start_is_held_with_the_reason(self):
        with Belayd() as d:
            agents = self.agent(d)
            _, cert = agents.joined()
            finish = (
                int(time.time() * 1000) + DAY_S * 1000
            )  # a job with a deadline does not wait between attempts
            job = d.submit(finish_by_ms=finish, work_ms=1000)
            for n in range(1, 6):
                self.assertEqual(self.refuse(agents, cert, 2 * n, job), n)
            self.assertEqual(
                self.reasons(d, job)["no-room"],
                "it is held: no node could start it: %s; fix that or ask for less, then belay "
                "release %d" % (self.WHY, job),
            )

    def test_a_job_that_avoids_a_node_says_what_that_node_said(self):
        with Belayd(CONFIG + "each_user: {max_running: 1}\n") as d:
            agents = self.agent(d)
            _, cert = agents.joined()
            job = d.submit(nice=1000)
            agents.joined()  # another node for it
            d.submit()  # the next job, which takes that node
            self.assertEqual(self.refuse(agents, cert, 2, job), 1)
            self.assertEqual(
                self.reasons(d, job)["no-room-away"],
                "for up to 10 minutes it waits for another node than that of attempt 1, which "
                "could not start it: " + self.WHY,
            )


def tree(**files):
    """The list of a directory with these files, and its content by hash."""
    pieces = {hashlib.sha256(data).hexdigest(): data for data in files.values() if data}
    lines = [
        "f 644 %d %s %s\n"
        % (len(files[name]), hashlib.sha256(files[name]).hexdigest() if files[name] else "-", name)
        for name in sorted(files)
    ]
    return "".join(["belay-workdir 1\n", *lines]).encode(), pieces


def pack(pieces):
    return b"".join(b"%s %d\n%s" % (h.encode(), len(data), data) for h, data in pieces.items())


class Workdirs(unittest.TestCase):
    """Working directories that are sent with jobs."""

    def put(self, d, text, **more):
        status, body, _ = d.call("POST", "/api/v1/workdirs", text, **more)
        self.assertEqual(status, 200, body)
        return body

    def add(self, d, pieces, **more):
        self.assertEqual(d.call("POST", "/api/v1/workdirs/pieces", pack(pieces), **more)[0], 200)

    def send(self, d, **files):
        text, pieces = tree(**files)
        self.add(d, pieces)
        answer = self.put(d, text)
        self.assertEqual(answer["missing"], [])
        return answer["workdir"]

    def settle(self, d):
        """Waits for the cleanup that a start begins: it is done in order, and its second half is
        requested by the first.
        """
        for _ in range(2):
            self.put(d, b"belay-workdir 1\n")

    def stored(self, d):
        return {
            name for _, _, names in os.walk(os.path.join(d.state, "workdirs")) for name in names
        }

    def age(self, d, days):
        for at, _, names in os.walk(os.path.join(d.state, "workdirs")):
            for name in names:
                os.utime(os.path.join(at, name), (time.time() - days * DAY_S,) * 2)

    def test_only_what_is_missing_is_asked_for(self):
        with Belayd() as d:
            text, pieces = tree(a=b"one", b=b"two", again=b"one", none=b"")
            answer = self.put(d, text)
            self.assertEqual(
                (answer["workdir"], sorted(answer["missing"])),
                (hashlib.sha256(text).hexdigest(), sorted(pieces)),
            )
            one = hashlib.sha256(b"one").hexdigest()
            self.add(d, {one: b"one"})
            self.assertEqual(self.put(d, text)["missing"], [hashlib.sha256(b"two").hexdigest()])
            status, body, _ = d.call(
                "POST", "/api/v1/jobs", {**JOB, "launch": {"workdir": answer["workdir"]}}
            )
            self.assertEqual(
                (status, body["error"]["kind"]), (400, "invalid")
            )  # the content is incomplete
            self.add(d, pieces)
            self.assertEqual(self.put(d, text)["missing"], [])
            self.assertGreater(d.submit(launch={"workdir": answer["workdir"]}), 0)
            # Of no other user's: not even its existence is revealed.
            ann = d.token(kind="api", user="ann")
            self.assertEqual(sorted(self.put(d, text, token=ann)["missing"]), sorted(pieces))
            status, body, _ = d.call(
                "POST", "/api/v1/jobs", {**JOB, "launch": {"workdir": answer["workdir"]}}, token=ann
            )
            self.assertEqual((status, body["error"]["kind"]), (400, "invalid"))

    def test_malformed_ones_are_refused(self):
        with Belayd() as d:
            for text in (
                b"",
                b"x",
                b"belay-workdir 1\nf 644 0 - ../x\n",
                b"belay-workdir 1\nl a\t/etc\nf 644 0 - a/passwd\n",
                b"belay-workdir 1\nd 755 b\nd 755 a\n",
                b"belay-workdir 1\nf 644 5 - a\n",
                b"belay-workdir 1\n\xff\n",
                b"belay-workdir 1\n" + b"d 755 a" * (1 << 20),
            ):
                status, body, _ = d.call("POST", "/api/v1/workdirs", text)
                self.assertEqual((status, body["error"]["kind"]), (400, "invalid"), text[:50])
            one = hashlib.sha256(b"one").hexdigest()
            for text, status in (
                (b"x", 400),
                (("%s 3\n" % one).encode() + b"two", 500),
                (("%s 4\n" % one).encode() + b"one", 400),
                (b"../../../../%s 3\none" % one.encode(), 400),
                (b"x" * (6 << 20), 400),
            ):
                self.assertEqual(
                    d.call("POST", "/api/v1/workdirs/pieces", text)[0], status, text[:50]
                )
            for hash_, method in (
                ("x", "none"),
                ("../" + "a" * 61, "none"),
                ("A" * 64, "none"),
                ("a" * 64, "criu"),
            ):
                status, body, _ = d.call(
                    "POST",
                    "/api/v1/jobs",
                    {**JOB, "launch": {"workdir": hash_}, "checkpoint": {"method": method}},
                )
                self.assertEqual((status, body["error"]["kind"]), (400, "invalid"), hash_)
            self.assertEqual(self.stored(d), set())

    def test_what_was_answered_outlives_a_kill_and_nothing_else_does(self):
        with Belayd() as d:
            kept = self.send(d, a=b"kept")
            text, pieces = tree(a=b"half", b=b"done")
            self.add(d, dict(list(pieces.items())[:1]))
            d.kill()
            for path in (
                "trees/%s.123456" % kept,
                "pieces/aa/%s.new" % ("a" * 64),
            ):  # as a kill leaves them
                path = os.path.join(
                    d.state, "workdirs", os.listdir(os.path.join(d.state, "workdirs"))[0], path
                )
                os.makedirs(os.path.dirname(path), exist_ok=True)
                open(path, "w").close()
            d.start()
            self.settle(d)
            self.assertEqual(
                self.stored(d) - {hashlib.sha256(b"belay-workdir 1\n").hexdigest()},
                {kept, hashlib.sha256(b"kept").hexdigest()},
            )
            self.assertGreater(d.submit(launch={"workdir": kept}), 0)
            self.assertEqual(sorted(self.put(d, text)["missing"]), sorted(pieces))

    def test_pieces_stay_while_a_tree_cannot_be_read(self):
        with Belayd() as d:
            kept = self.send(d, a=b"kept")
            d.kill()
            user = os.listdir(os.path.join(d.state, "workdirs"))[0]
            path = os.path.join(d.state, "workdirs", user, "trees", kept)
            os.rename(path, os.path.join(d.state, "away"))
            os.mkdir(path)  # reading it fails with EISDIR
            d.start()
            self.settle(d)
            self.assertIn(hashlib.sha256(b"kept").hexdigest(), self.stored(d))
            os.rmdir(path)
            os.rename(os.path.join(d.state, "away"), path)
            self.assertGreater(d.submit(launch={"workdir": kept}), 0)

    def check_whole(self, d):
        """Each stored directory has all of its content, which matches its hashes."""
        for at, _, names in os.walk(os.path.join(d.state, "workdirs")):
            for name in names if at.endswith("/trees") else ():
                self.assertRegex(name, "^[0-9a-f]{64}$")
                with open(os.path.join(at, name), "rb") as f:
                    text = f.read()
                self.assertEqual(hashlib.sha256(text).hexdigest(), name)
                for line in text.decode().splitlines()[1:]:
                    piece = line.split(" ")[3]
                    with open(os.path.join(at, "..", "pieces", piece[:2], piece), "rb") as f:
                        self.assertEqual(hashlib.sha256(f.read()).hexdigest(), piece)

    def test_a_kill_at_any_step_leaves_whole_ones_and_the_next_try_ends(self):
        with Belayd() as d:
            jobs = []
            for n in range(6):
                text, pieces = tree(**{"f%d" % i: b"%d of %d" % (i, n) for i in range(40)})
                packs = [dict(list(pieces.items())[i : i + 10]) for i in range(0, 40, 10)]
                workdir = hashlib.sha256(text).hexdigest()
                steps = [functools.partial(self.add, d, p) for p in packs] + [
                    functools.partial(self.put, d, text)
                ]
                steps.append(lambda: jobs.append(d.submit(hold=True, launch={"workdir": workdir})))
                for step in steps[:n]:
                    step()

                def last(step=steps[n]):
                    with contextlib.suppress(OSError, http.client.HTTPException):
                        step()

                under_way = threading.Thread(target=last)
                under_way.start()
                d.kill()
                under_way.join()
                d.start()
                self.settle(d)
                self.check_whole(d)
                for step in steps:
                    step()
                self.check_whole(d)
            self.age(d, 2)
            d.kill()
            d.start()
            self.settle(d)
            self.check_whole(d)
            for job in jobs:
                workdir = d.call("GET", "/api/v1/jobs/%d" % job)[1]["spec"]["launch"]["workdir"]
                self.assertIn(workdir, self.stored(d))

    def test_they_go_a_day_after_the_last_job_that_has_them(self):
        with Belayd() as d:
            files = {
                name: name.encode()
                for name in ("queued", "array", "cron", "ended", "unused", "young")
            }
            sent = {name: self.send(d, a=data) for name, data in files.items()}
            jobs = {
                name: d.submit(
                    hold=name != "array",
                    launch={"workdir": sent[name]},
                    **({"array": "0-2"} if name == "array" else {})
                )
                for name in ("queued", "array", "ended")
            }
            self.assertEqual(d.call("POST", "/api/v1/jobs/%d/cancel" % jobs["ended"])[0], 200)
            status, cron, _ = d.call(
                "POST",
                "/api/v1/crons",
                {
                    "name": "n",
                    "schedule": "@daily",
                    "job": {**JOB, "launch": {"workdir": sent["cron"]}},
                },
            )
            self.assertEqual(status, 201, cron)
            self.age(d, 2)
            self.send(d, a=files["young"])
            for gone in ({"ended", "unused"}, {"cron", "queued"}, set()):
                d.kill()
                d.start()
                self.settle(d)
                for name in gone:
                    del files[name]
                wanted = {sent[n] for n in files} | {
                    hashlib.sha256(data).hexdigest() for data in files.values()
                }
                self.assertEqual(
                    self.stored(d) - {hashlib.sha256(b"belay-workdir 1\n").hexdigest()}, wanted
                )
                if "ended" in gone:
                    self.assertEqual(d.call("POST", "/api/v1/crons/%d/remove" % cron["id"])[0], 200)
                    self.assertEqual(
                        d.call("POST", "/api/v1/jobs/%d/cancel" % jobs["queued"])[0], 200
                    )

    def test_an_agent_gets_those_of_its_attempts(self):
        with Belayd() as d:
            agents = Agents()
            agents.d, agents.keys = d, d.keys
            (_, mine), (_, other) = agents.joined(pool="spare"), agents.joined(pool="base")
            agents.sync(mine)
            text, pieces = tree(a=b"one", b=b"two")
            job = d.submit(pool="spare", launch={"workdir": self.send(d, a=b"one", b=b"two")})
            plain = d.submit(pool="spare")
            desired = {a["job"]: a for a in agents.sync(mine, seq=2)[1]["attempts"]}
            self.assertEqual(
                (desired[job]["workdir"], desired[plain].get("workdir", "")),
                (hashlib.sha256(text).hexdigest(), ""),
            )
            path = "/agent/v1/workdir/%d/1" % job
            self.assertEqual(d.call("POST", path, b"", cert=mine)[:2], (200, text))
            ask = "".join("%s\n" % h for h in pieces).encode()
            self.assertEqual(
                d.call("POST", path + "/pieces", ask, cert=mine)[:2], (200, pack(pieces))
            )
            agents.check(
                d.call("POST", path, b"", cert=other), 404, "not-found", "does not run on this node"
            )
            agents.check(d.call("POST", path + "/pieces", ask, cert=other), 404, "not-found")
            agents.check(
                d.call("POST", "/agent/v1/workdir/%d/1" % plain, b"", cert=mine),
                404,
                "not-found",
                "without a working directory",
            )
            agents.check(
                d.call("POST", "/agent/v1/workdir/%d/2" % job, b"", cert=mine), 404, "not-found"
            )
            agents.check(
                d.call("POST", path + "/pieces", b"a" * 64 + b"\n", cert=mine), 404, "not-found"
            )
            for body in (b"", b"x", b"../" * 21 + b"ab\n", ask[:-1], (b"a" * 64 + b"\n") * 1025):
                agents.check(d.call("POST", path + "/pieces", body, cert=mine), 400, "invalid")


if __name__ == "__main__":
    unittest.main(verbosity=2)
