# SPDX-License-Identifier: Apache-2.0
"""One user sends many requests that take belayd long to answer: another user's request and agents'
syncs are answered in between, and the excess is refused."""

import asyncio
import contextlib
import json
import os
import re
import ssl
import sys
import time
import unittest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.join(TOP, "tests", "scheduler"), os.path.join(TOP, "bench")]
import flood  # noqa: E402
from belayd import CONFIG, JOB, LONG_READ, WAIT_S, Belayd  # noqa: E402

CROWD = 300
CONNECTING_MAX = 16  # at a time: all at once would take the deadline of each handshake
CROWDS_MAX = 5  # tries of a crowd, while this process is slower than belayd
WAITING_MAX = 64  # TURNS_PER_USER_MAX
WAITING_READS_MAX = 8  # READ_POOL_PER_USER_MAX
READ_MAX = 2 + WAITING_READS_MAX  # READERS
WATCHES_MAX = 64  # WATCHES_OF_JOB_MAX
STREAMS_MAX = 16  # STREAMS_PER_USER_MAX
SESSIONS_OF_JOB_MAX = 8  # OF_JOB_MAX
JOBS = 300
# Waiting requests that are answered before another user's: in order of arrival it would be all of
# them.
BETWEEN_MAX = WAITING_MAX * 3 // 4
SLOWEST_S = 10


class Bulk(unittest.TestCase):
    def setUp(self):
        # by their number and turns alone: not by the rate of a user, which others have to share.
        # What fill_ledger() makes is old: the retention would delete it, and the reads of it end
        self.d = Belayd(
            CONFIG + "visibility: all\nrequests_per_second: none\nretention: {jobs: forever}\n"
        )
        self.d.start()
        self.addCleanup(self.d.__exit__, None, None, None)
        self.tls = ssl.create_default_context(cadata=self.ca())
        self.semaphores = {}
        self.answers = []  # statuses in order of arrival
        self.came = asyncio.Semaphore(0)

    def ca(self):
        with open(os.path.join(self.d.state, "ca.pem")) as f:
            return f.read()

    def connecting(self):
        """The semaphore of this loop."""
        loop = asyncio.get_running_loop()
        if loop not in self.semaphores:
            self.semaphores[loop] = asyncio.Semaphore(CONNECTING_MAX)
        return self.semaphores[loop]

    async def connect(self):
        """A first request is answered, so that another may follow much later: the first has to come
        within 20 s of the connection."""
        async with self.connecting():
            reader, writer = await asyncio.open_connection("127.0.0.1", self.d.port, ssl=self.tls)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WAIT_S)
            self.assertTrue(head.startswith(b"HTTP/1.1 200 "), head)
            await reader.readexactly(int(re.search(rb"(?i)content-length: (\d+)", head).group(1)))
        return reader, writer

    async def ask(self, path, token, ready=None, go=None, method="GET", body=b""):
        """Returns the status. With go: connects, reports ready, and sends the request on a
        signal."""
        reader, writer = await self.connect()
        try:
            if go:
                ready.release()
                await go.wait()
            request = (
                "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: close\r\n"
                "Content-Length: %d\r\n\r\n"
            )
            writer.write((request % (method, path, token, len(body))).encode() + body)
            reply = await asyncio.wait_for(reader.read(), 60)
            self.assertTrue(reply, "closed without an answer")
            return int(reply.split()[1])
        finally:
            writer.transport.abort()

    async def crowd_asks(self, path, token, ready, go, **more):
        self.answers.append(await self.ask(path, token, ready, go, **more))
        self.came.release()

    async def ask_at_once(self, n, path, token, **more):
        """All connect first."""
        ready, go = asyncio.Semaphore(0), asyncio.Event()
        crowd = [
            asyncio.create_task(self.crowd_asks(path, token, ready, go, **more)) for _ in range(n)
        ]
        for _ in crowd:
            await ready.acquire()
        go.set()
        return asyncio.gather(*crowd)

    async def answers_of_the_crowd_before(self, answer, go):
        """Answers that come between another user's request, sent over an open connection, and its
        answer."""
        before = self.answers.count(200)
        go.set()
        self.assertEqual(await answer, 200)
        return self.answers.count(200) - before

    def test_questions_of_one_user_do_not_hold_up_others(self):
        d = self.d
        # of different demands, so that an answer takes belayd longer than this process to read one
        last = [d.submit(time_limit_ms=3600000, memory_mib=1 + i) for i in range(JOBS)][-1]
        hostile, other = (d.token(kind="api", user=name) for name in ("mallory", "bob"))
        path = "/api/v1/jobs/%d/why" % last

        async def play():
            tokens = [d.token(kind="join", pool="base")]
            fleet, joined = await flood.join_fleet(d.dir, d.url, self.ca(), tokens)
            watch = flood.Watch(fleet, joined, [])
            ready, go = asyncio.Semaphore(0), asyncio.Event()
            answer = asyncio.create_task(self.ask(path, other, ready, go))
            await ready.acquire()
            for _ in range(CROWDS_MAX):
                self.answers.clear()
                crowd = await self.ask_at_once(CROWD, path, hostile)
                while len(self.answers) < CROWD - WAITING_MAX:  # the refused ones are answered
                    await asyncio.sleep(0)
                left = CROWD - len(self.answers)
                if left > BETWEEN_MAX:
                    break
                await crowd  # this process was held up: belayd has answered too many meanwhile
            self.assertGreater(left, BETWEEN_MAX)
            began = time.monotonic()
            between = await self.answers_of_the_crowd_before(answer, go)
            took = time.monotonic() - began
            print("%d of %d that waited were answered between, %.2f s" % (between, left, took))
            await watch.timed("sync, new connection", watch.sync_anew(joined[0]))
            done = len(self.answers)
            await crowd
            print(
                "of %d: %d refused; when the agent had its answer %d were done"
                % (CROWD, self.answers.count(429), done)
            )
            watch.close()
            return between, watch

        between, watch = asyncio.run(play())
        self.assertEqual(watch.failures, [])
        self.assertLess(watch.took["sync, new connection"][0], SLOWEST_S)
        self.assertLessEqual(between, BETWEEN_MAX)
        self.assertEqual(set(self.answers), {200, 429})
        self.assertGreaterEqual(self.answers.count(200), WAITING_MAX)

    def refused_of_many(self, path, **more):
        """Of CROWD concurrent requests by one user, none fails in another way."""
        token = self.d.token(kind="api", user="mallory")

        async def play():
            await (await self.ask_at_once(CROWD, path, token, **more))

        self.answers = []
        asyncio.run(play())
        self.assertEqual(set(self.answers), {200, 429})
        return self.answers.count(429)

    def test_questions_to_the_database_are_limited(self):
        """Accepted requests take minutes, so the number of refused ones does not depend on the
        machine."""
        self.d.fill_ledger()
        token = self.d.token(kind="api", user="mallory", admin=True)

        async def play():
            crowd = await self.ask_at_once(CROWD, LONG_READ, token)
            for _ in range(CROWD - READ_MAX):
                await asyncio.wait_for(self.came.acquire(), WAIT_S)
            crowd.cancel()
            await asyncio.gather(crowd, return_exceptions=True)

        asyncio.run(play())
        self.assertEqual(self.answers, [429] * (CROWD - READ_MAX))

    def test_long_questions_of_one_user_leave_a_reader_to_others(self):
        self.d.fill_ledger()
        hostile, bob = (self.d.token(kind="api", user=name) for name in ("mallory", "bob"))

        async def play():
            crowd = await self.ask_at_once(READ_MAX - 1, LONG_READ, hostile)
            began = time.monotonic()
            self.assertEqual(await self.ask("/api/v1/cost?by=team", bob), 200)
            took = time.monotonic() - began
            self.assertEqual(self.answers, [])  # those take minutes
            crowd.cancel()
            await asyncio.gather(crowd, return_exceptions=True)
            return took

        self.assertLess(asyncio.run(play()), SLOWEST_S)

    def test_questions_count_for_who_asks_and_not_for_whom_they_name(self):
        """One user's questions about jobs of bob and others that are no longer in memory do not use
        up bob's own share, or theirs.
        """
        self.d.fill_ledger()
        busy, hostile, bob = (
            self.d.token(kind="api", user=name, admin=name == "ann")
            for name in ("ann", "mallory", "bob")
        )
        named = ["bob"] * 20 + ["nobody%d" % i for i in range(40)]

        async def refused(tasks, n):
            """The statuses of the first n answers."""
            statuses = []
            with contextlib.suppress(asyncio.TimeoutError):
                for answer in asyncio.as_completed(tasks, timeout=WAIT_S):
                    statuses.append(await answer)
                    if len(statuses) == n:
                        break
            return statuses

        async def play():
            reads = [asyncio.create_task(self.ask(LONG_READ, busy)) for _ in range(READ_MAX + 1)]
            self.assertEqual(await refused(reads, 1), [429])  # the others take minutes
            crowd = [
                asyncio.create_task(self.ask("/api/v1/forgotten?user=" + name, hostile))
                for name in named
            ]
            n = len(named) - WAITING_READS_MAX
            self.assertEqual(await refused(crowd, n), [429] * n)
            answer = asyncio.create_task(self.ask("/api/v1/cost?by=team", bob))
            for task in [*reads, *crowd]:
                task.cancel()
            await asyncio.gather(*reads, *crowd, return_exceptions=True)
            return await answer

        self.assertEqual(asyncio.run(play()), 200)

    def test_requests_that_wait_for_a_job_are_limited(self):
        """An event is looked up for all waiting requests at once, so one request could otherwise
        cost belayd as much as hundreds.
        """
        d = self.d
        hostile, bob = (d.token(kind="api", user=name) for name in ("mallory", "bob"))
        job = d.call("POST", "/api/v1/jobs", {**JOB, "hold": True}, token=hostile)[1]["id"]
        far = "after=%d&wait_ms=25000" % (1 << 40)

        async def play(path):
            self.answers, self.came = [], asyncio.Semaphore(0)
            crowd = await self.ask_at_once(CROWD, path + far, hostile)
            for _ in range(CROWD - WATCHES_MAX):
                await asyncio.wait_for(self.came.acquire(), WAIT_S)
            self.assertEqual(self.answers, [429] * (CROWD - WATCHES_MAX))
            last = d.call("GET", "/api/v1/events?after=0")[1]["last"]
            ready, go = asyncio.Semaphore(0), asyncio.Event()
            waits = "%safter=%d&wait_ms=25000" % (path, last)
            answer = asyncio.create_task(self.ask(waits, bob, ready, go))
            await ready.acquire()
            go.set()
            status, said, _ = await asyncio.to_thread(
                d.call, "POST", "/api/v1/jobs/%d/update" % job, {"nice": last}, token=hostile
            )
            self.assertEqual(status, 200, said)
            self.assertEqual(await answer, 200)  # others may wait
            crowd.cancel()
            await asyncio.gather(crowd, return_exceptions=True)

        asyncio.run(play("/api/v1/events?"))
        asyncio.run(play("/api/v1/jobs/%d/events?" % job))

    def test_streams_of_one_user_are_limited_and_leave_others_theirs(self):
        d = self.d
        hostile, bob = (d.token(kind="api", user=name) for name in ("mallory", "bob"))

        async def play():
            crowd = await self.ask_at_once(CROWD, "/api/v1/stream?for_ms=3600000", hostile)
            for _ in range(CROWD - STREAMS_MAX):
                await asyncio.wait_for(self.came.acquire(), WAIT_S)
            self.assertEqual(self.answers, [429] * (CROWD - STREAMS_MAX))
            self.assertEqual(await self.ask("/api/v1/stream?for_ms=1", bob), 200)
            crowd.cancel()
            await asyncio.gather(crowd, return_exceptions=True)

        asyncio.run(play())

    def test_bodies_of_many_values_are_not_parsed(self):
        """Two megabytes of small values would take belayd a third of a second and 90 MiB."""
        token = self.d.token(kind="api", user="mallory")
        before = self.d.peak_mib()
        for value in (
            b"[" + b"[]," * 600000 + b"1]",
            b"{" + b",".join(b'"%d":1' % i for i in range(150000)) + b"}",
        ):
            for path in ("/api/v1/jobs", "/api/v1/jobs/estimate", "/api/v1/crons"):
                status, said, _ = self.d.call("POST", path, value, token=token)
                self.assertEqual(status, 400)
                self.assertIn("more than 16384 values", said["error"]["text"])
        self.assertLess(self.d.peak_mib() - before, 64)

    def test_sessions_that_begin_at_once_are_limited(self):
        """Each session may use two megabytes of belayd's memory, so the limit also applies to many
        that are opened at once.
        """
        token = self.d.token(kind="api", user="mallory")
        joins = [self.d.token(kind="join", pool="base")]
        body = json.dumps({"script": "#!/bin/sh\n", "cwd": "/"}).encode()

        async def play():
            self.assertEqual(await self.ask("/api/v1/jobs", token, method="POST", body=body), 201)
            _, (agent,) = await flood.join_fleet(self.d.dir, self.d.url, self.ca(), joins)

            async def sync():
                agent.adopt(await agent.call(agent.poll, "/agent/v1/sync", agent.status(0)))

            while not agent.attempts:
                await asyncio.wait_for(sync(), WAIT_S)
            await sync()  # it runs
            ((job, _),) = agent.attempts
            command = json.dumps({"command": ["cat"]}).encode()
            path = "/api/v1/jobs/%d/exec" % job
            await (await self.ask_at_once(CROWD, path, token, method="POST", body=command))
            for _, writer in agent.streams:
                writer.transport.abort()

        asyncio.run(play())
        self.assertEqual(set(self.answers), {201, 409})
        self.assertEqual(self.answers.count(201), SESSIONS_OF_JOB_MAX)

    def test_requests_that_cancel_many_jobs_are_limited(self):
        self.d.submit()
        body = b'{"jobs": ["1-10000"]}'
        self.assertGreater(self.refused_of_many("/api/v1/jobs/cancel", method="POST", body=body), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
