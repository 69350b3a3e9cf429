# SPDX-License-Identifier: Apache-2.0
"""Hundreds of hostile connections to belayd's HTTPS listener, from the same address as all clients:
agents' syncs and users' submits continue, machines join, and the listener still accepts afterwards.
The time limits suit a sanitizer build on a busy machine; scripts/bench flood measures the times."""

import asyncio
import contextlib
import http.client
import os
import resource
import socket
import ssl
import sys
import time
import unittest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.join(TOP, "tests", "scheduler"), os.path.join(TOP, "bench")]
import flood  # noqa: E402
from belayd import Belayd, Node  # noqa: E402

CROWD, SECONDS = 500, 10
SLOWEST_S = 10
STRANGERS = 2048  # the listener's limit
OPEN_FILES = 2 * STRANGERS


class Flood(unittest.TestCase):
    def setUp(self):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if most < OPEN_FILES:
            print("skipped: %d open files are allowed, %d are needed" % (most, OPEN_FILES))
            sys.exit(77)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self.d = Belayd()
        self.d.start()
        self.addCleanup(self.d.__exit__, None, None, None)

    def address(self):
        return "127.0.0.1", self.d.port

    def ca(self):
        with open(os.path.join(self.d.state, "ca.pem")) as f:
            return f.read()

    async def fleet(self, n):
        tokens = [self.d.token(kind="join", pool="base") for _ in range(n)]
        return await flood.join_fleet(self.d.dir, self.d.url, self.ca(), tokens)

    def test_agents_and_users_go_on(self):
        users = [self.d.token(kind="api", user=name) for name in ("ann", "bob")]
        hostile = self.d.token(kind="api", user="mallory")

        async def play():
            fleet, joined = await self.fleet(2)
            watch = flood.Watch(fleet, joined, users)
            with flood.crowd(self.address(), hostile, CROWD, SECONDS + 60):
                await self.until_connected(CROWD // 2)
                await watch.run(SECONDS, 0.5)
                await self.join_during_the_flood()
            watch.close()
            return watch

        watch = asyncio.run(play())
        self.assertEqual(watch.failures, [])
        for what, took in watch.took.items():
            self.assertGreater(len(took), 2, what)
            self.assertLess(max(took), SLOWEST_S, what)
        nodes = self.d.call("GET", "/api/v1/nodes")[1]["nodes"]
        self.assertEqual([n["state"] for n in nodes], ["up"] * 3)

    async def until_connected(self, n):
        end = time.monotonic() + 60
        while sum(self.connections()) < n:
            self.assertLess(time.monotonic(), end, "connections: %s" % self.connections())
            await asyncio.sleep(0.2)  # there is no event for it

    def connections(self):
        return [
            self.d.metric("belay_http_%s_connections" % c) for c in ("stranger", "user", "node")
        ]

    async def join_during_the_flood(self):
        began = time.monotonic()
        Node(self.d, host="late", memory_mib=1000)
        self.assertLess(time.monotonic() - began, SLOWEST_S)

    def test_refused_joins_do_not_fill_the_log(self):
        key = self.d.keys.key()
        for _ in range(60):
            self.assertEqual(self.d.join("made-up", key)[0], 403)
        n = self.d.log().count("a join was refused")
        self.assertGreater(n, 0)
        self.assertLessEqual(n, 20, "a line for each of 60 joins")  # ten a minute

    def test_held_bodies_are_cut_off(self):
        """Bodies that never end, of unauthenticated clients and of one user, up to their limits:
        another user's large submit and a join are accepted, and belayd drops slow bodies."""
        hostile, other = (self.d.token(kind="api", user=name) for name in ("mallory", "ann"))
        tls = ssl.create_default_context(cadata=self.ca())
        held = []
        with contextlib.ExitStack() as stack:
            for token, path, n, body in (
                (hostile, "/api/v1/jobs", 4, 8 << 20),
                (None, "/agent/v1/join", 150, 60 << 10),
            ):
                for _ in range(n):
                    tcp = socket.create_connection(self.address())
                    s = stack.enter_context(tls.wrap_socket(tcp, server_hostname="127.0.0.1"))
                    s.settimeout(30)
                    head = "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n" % (
                        path,
                        body,
                        "Authorization: Bearer %s\r\n" % token if token else "",
                    )
                    with contextlib.suppress(OSError):
                        s.sendall(head.encode() + b"x" * (body - 1))
                    held.append(s)
            script = "#!/bin/sh\n" + "#" * 1000000 + "\n"
            job = {"script": script, "cwd": "/", "hold": True}
            status, body, _ = self.d.call("POST", "/api/v1/jobs", job, token=other)
            self.assertEqual(status, 201, body)
            asyncio.run(self.join_during_the_flood())
            answers = []
            for s in held:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    reply = http.client.HTTPResponse(s)
                    reply.begin()
                    answers.append(reply.status)
        self.assertIn(408, answers)  # too slow
        self.assertIn(429, answers)  # the user's own share
        self.assertIn(503, answers)  # gave way to a newer one
        self.assertLessEqual(set(answers), {408, 429, 503})

    def test_the_listener_is_not_left_deaf(self):
        """More connections than allowed, then none: the next one is served at once. Repeated,
        because whether a listener that paused at its limit resumes depends on timing.
        """
        for _ in range(20):
            crowd = []
            for _ in range(STRANGERS + 200):
                s = socket.socket()
                s.setblocking(False)
                s.connect_ex(self.address())
                crowd.append(s)
            self.assert_served()  # while they are there
            for s in crowd:
                s.close()
            self.assert_served()

    def assert_served(self):
        began = time.monotonic()
        self.assertEqual(self.d.call("GET", "/healthz", tls=True)[0], 200)
        self.assertLess(time.monotonic() - began, SLOWEST_S)


if __name__ == "__main__":
    unittest.main()
