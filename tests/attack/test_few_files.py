# SPDX-License-Identifier: Apache-2.0
"""belayd may open 256 files, and more hostile connections than that come: every call of a user and
every sync of an agent is answered, as the database, its readers and uploads have descriptors of
their own."""

import asyncio
import contextlib
import os
import sys
import threading
import time
import unittest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.join(TOP, "tests", "scheduler"), os.path.join(TOP, "bench")]
import flood  # noqa: E402
from belayd import JOB, WAIT_S, Belayd  # noqa: E402

FILES = 256
CROWD, SECONDS = 400, 10
CALLS = [
    ("GET", "/api/v1/cost", None, 200),
    ("GET", "/api/v1/cost?by=user", None, 200),
    ("GET", "/api/v1/jobs", None, 200),
    ("POST", "/api/v1/jobs", {**JOB, "hold": True}, 201),
]


class User:
    """Makes all CALLS repeatedly; unexpected answers are in `failures`. With a token, over one
    authenticated connection, which a flood of strangers does not affect.
    """

    def __init__(self, d, token):
        self.d, self.token = d, token
        self.answers, self.failures = 0, []
        self.kept = None
        if token:
            self.kept = d.connect(tls=True)
            d.call("GET", "/api/v1/cost", token=token, on=self.kept)

    def start(self, end):
        self.thread = threading.Thread(target=self.run, args=(end,))
        self.thread.start()

    def run(self, end):
        while time.monotonic() < end:
            for method, path, body, wanted in CALLS:
                try:
                    status, said, _ = self.d.call(
                        method, path, body, token=self.token, on=self.kept
                    )
                except Exception as error:
                    status, said = None, repr(error)
                self.answers += status == wanted
                if status != wanted:
                    self.failures.append((method, path, status, said))

    def close(self):
        self.thread.join(WAIT_S)
        if self.kept:
            self.kept.close()


class FewFiles(unittest.TestCase):
    def setUp(self):
        self.d = Belayd(prefix=["sh", "-c", 'ulimit -n %d; exec "$0" "$@"' % FILES])
        self.d.start()
        self.addCleanup(self.d.__exit__, None, None, None)

    def until_full(self):
        end = time.monotonic() + WAIT_S
        while self.d.metric("belay_http_gave_way_total") == 0:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)  # there is no event for it

    def test_a_flood_leaves_every_call_its_answer(self):
        tokens = [self.d.token(kind="join", pool="base") for _ in range(2)]
        ann, hostile = (self.d.token(kind="api", user=name) for name in ("ann", "mallory"))
        with open(os.path.join(self.d.state, "ca.pem")) as f:
            ca = f.read()

        async def sync(agent):
            agent.adopt(await agent.call(agent.poll, "/agent/v1/sync", agent.status(0)))

        async def play():
            fleet, joined = await flood.join_fleet(self.d.dir, self.d.url, ca, tokens)
            await asyncio.gather(*map(sync, joined))
            users = [User(self.d, token) for token in (None, None, None, ann)]
            n_syncs = 0
            with flood.crowd(fleet.address, hostile, CROWD, SECONDS + WAIT_S):
                await asyncio.to_thread(self.until_full)
                end = time.monotonic() + SECONDS
                for user in users:
                    user.start(end)
                while time.monotonic() < end:
                    await asyncio.wait_for(asyncio.gather(*map(sync, joined)), WAIT_S)
                    n_syncs += 1
                    await asyncio.sleep(0.2)
                for user in users:
                    await asyncio.to_thread(user.close)
            for agent in joined:
                for _, writer in agent.streams:
                    writer.transport.abort()
            return users, n_syncs

        users, n_syncs = asyncio.run(play())
        self.assertEqual([f for user in users for f in user.failures][:5], [])
        self.assertGreater(min(user.answers for user in users), len(CALLS))
        self.assertGreater(n_syncs, 2)
        open_files = len(os.listdir("/proc/%d/fd" % self.d.process.pid))
        self.assertLess(open_files, FILES)

    def test_a_newcomer_is_served_when_the_flood_is_over(self):
        hostile = self.d.token(kind="api", user="mallory")
        with flood.crowd(("127.0.0.1", self.d.port), hostile, CROWD, WAIT_S):
            self.until_full()
        end = time.monotonic() + WAIT_S
        status = None
        while status != 200 and time.monotonic() < end:  # what the crowd had begun is still there
            with contextlib.suppress(OSError):
                status = self.d.call("GET", "/healthz", tls=True)[0]
        self.assertEqual(status, 200)


if __name__ == "__main__":
    unittest.main()
