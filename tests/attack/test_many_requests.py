# SPDX-License-Identifier: Apache-2.0
"""Floods of small requests at what a browser opens first: the sign-in and the stream of events. All
are answered or refused, others sign in and read meanwhile, and belayd's memory stays bounded; and
what the streams of all users cost has a limit that one user alone cannot reach.
"""

import asyncio
import collections
import json
import os
import re
import ssl
import sys
import time
import unittest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.join(TOP, "tests", "scheduler")]
from belayd import CONFIG, WAIT_S, Belayd  # noqa: E402

REQUESTS = 10000
CONNECTIONS = 8  # of the attacker; each sends BATCH requests before it reads the answers
BATCH = 50
STREAMS_MAX, OF_USER_MAX = 500, 16  # STREAMS_MAX, STREAMS_PER_USER_MAX
LOGINS_A_S, LOGINS_BURST = 2, 60  # LOGINS_PER_S, LOGINS_BURST
ATTACKER, OTHER = "127.0.0.1", "127.0.0.2"
MEMORY_MIB = 64  # more than before
# AddressSanitizer keeps so much of what was freed from being used again, by default 256 MiB.
ASAN = "quarantine_size_mb=8"


class Connection:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    def send(self, requests):
        self.writer.write(requests)

    async def head(self):
        """Status and head of the next answer."""
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), WAIT_S)
        return int(head.split()[1]), head

    async def answer(self):
        """Status and body of the next answer, which has a length."""
        status, head = await self.head()
        length = int(re.search(rb"(?i)content-length: (\d+)", head).group(1))
        return status, await self.reader.readexactly(length)

    async def event(self, found):
        """Waits until what the stream sends has this."""
        await asyncio.wait_for(self.reader.readuntil(found), WAIT_S)

    def close(self):
        self.writer.transport.abort()


def request(method, path, token=None, body=b"", **headers):
    headers.update({"Host": "x", "Content-Length": len(body)})
    if token:
        headers["Authorization"] = "Bearer " + token
    lines = ["%s: %s\r\n" % header for header in headers.items()]
    return ("%s %s HTTP/1.1\r\n%s\r\n" % (method, path, "".join(lines))).encode() + body


class ManyRequests(unittest.TestCase):
    def setUp(self):
        self.d = Belayd(CONFIG + "visibility: all\nrequests_per_second: none\n", asan=ASAN)
        self.d.start()
        self.addCleanup(self.d.__exit__, None, None, None)
        with open(os.path.join(self.d.state, "ca.pem")) as f:
            self.tls = ssl.create_default_context(cadata=f.read())
        self.open = []
        self.peak = self.d.peak_mib()

    def sign_in(self, token):
        body = json.dumps({"token": token}).encode()
        return request("POST", "/login/session", body=body, Origin=self.d.url)

    async def connect(self, address=ATTACKER):
        streams = await asyncio.open_connection(
            "127.0.0.1", self.d.port, ssl=self.tls, local_addr=(address, 0)
        )
        self.open.append(Connection(*streams))
        return self.open[-1]

    def play(self, coroutine):
        async def whole():
            try:
                return await coroutine
            finally:
                for c in self.open:
                    c.close()

        return asyncio.run(whole())

    async def flood(self, requests, meanwhile):
        """Sends REQUESTS, these in turn; meanwhile() runs again and again until all are answered.
        Returns the number of answers by status."""
        found, left = collections.Counter(), [REQUESTS // BATCH]
        batch = b"".join(requests) * (BATCH // len(requests))

        async def attack():
            c = await self.connect()
            while left[0] > 0:
                left[0] -= 1
                c.send(batch)
                for _ in range(BATCH):
                    found[(await c.answer())[0]] += 1

        attackers = asyncio.gather(*(attack() for _ in range(CONNECTIONS)))
        n = 0
        while not attackers.done():
            await meanwhile()
            n += 1
        await attackers
        print("%s; %d requests of others meanwhile" % (dict(found), n))
        self.assertGreater(n, 0)
        self.assertEqual(sum(found.values()), REQUESTS)
        self.assertLess(self.d.peak_mib() - self.peak, MEMORY_MIB)
        return found

    def test_sign_ins_with_a_wrong_token(self):
        good = self.d.token(kind="api", user="bob")

        async def play():
            bob = await self.connect(OTHER)
            bob.send(self.sign_in(good))
            self.assertEqual((await bob.answer())[0], 201)

            async def works():
                bob.send(request("GET", "/api/v1/whoami", good))
                self.assertEqual((await bob.answer())[0], 200)

            began = time.monotonic()
            found = await self.flood([self.sign_in("x" * 43)], works)
            most = LOGINS_BURST + LOGINS_A_S * (time.monotonic() - began + 1)
            self.assertEqual(set(found), {401, 429})
            self.assertLessEqual(found[401], most)  # so many tokens were tried
            bob.send(self.sign_in(good))
            self.assertEqual((await bob.answer())[0], 201)  # who is elsewhere may sign in

        self.play(play())

    def test_streams_of_one_user_and_of_strangers(self):
        hostile, good = (self.d.token(kind="api", user=u) for u in ("mallory", "bob"))
        stream = request("GET", "/api/v1/stream?types=event", hostile)
        stranger = request("GET", "/api/v1/stream", "x" * 43)

        async def play():
            bob, reads = await self.connect(OTHER), await self.connect(OTHER)
            reads.send(request("GET", "/api/v1/stream?types=event", good))
            self.assertEqual((await reads.head())[0], 200)
            for _ in range(OF_USER_MAX):
                c = await self.connect()
                c.send(stream)
                self.assertEqual((await c.head())[0], 200)

            async def works():
                body = json.dumps({"script": "#!/bin/sh\n", "cwd": "/", "hold": True}).encode()
                bob.send(request("POST", "/api/v1/jobs", good, body))
                status, said = await bob.answer()
                self.assertEqual(status, 201, said)
                await reads.event(b'"job":%d,' % json.loads(said)["id"])

            return await self.flood([stream, stranger], works)

        found = self.play(play())
        self.assertEqual(found, {429: REQUESTS // 2, 401: REQUESTS // 2})
        self.assertEqual(self.d.metric("belay_streams_refused_total"), REQUESTS // 2)

    def test_all_streams(self):
        """The one beyond the limit is told so, the others go on, and its place comes free."""
        users = ["user%d" % i for i in range(-(-STREAMS_MAX // OF_USER_MAX))]
        tokens = [self.d.token(kind="api", user=u) for u in users] * OF_USER_MAX
        late = self.d.token(kind="api", user="late")
        text = request("GET", "/api/v1/stream?types=event", late)

        async def play():
            for token in tokens[:STREAMS_MAX]:
                c = await self.connect()
                c.send(request("GET", "/api/v1/stream?types=event", token))
                self.assertEqual((await c.head())[0], 200)
            readers = list(self.open)
            self.assertEqual(self.d.metric("belay_streams"), STREAMS_MAX)
            c = await self.connect()
            c.send(text)
            status, said = await c.answer()
            self.assertEqual((status, json.loads(said)["error"]["kind"]), (503, "unavailable"))
            self.assertIn("500 streams are open", json.loads(said)["error"]["text"])
            job = await asyncio.to_thread(self.d.submit, hold=True)
            await asyncio.gather(*(r.event(b'"job":%d,' % job) for r in readers))
            readers[0].close()
            end = time.monotonic() + WAIT_S
            while status != 200 and time.monotonic() < end:
                c = await self.connect()
                c.send(text)
                status, _ = await c.head()
                if status != 200:
                    c.close()
            self.assertEqual(status, 200)

        self.play(play())


if __name__ == "__main__":
    unittest.main(verbosity=2)
