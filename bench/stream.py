# SPDX-License-Identifier: Apache-2.0
"""200 streams of events on a belayd with 1,000 nodes and 100,000 jobs: its processor time, its
memory and its ticks, with the streams and without them in turn.

The nodes are simulated agents (agents.py), whose jobs run. Meanwhile a client submits jobs and
cancels them, at a fixed rate. Only belayd is measured.
"""

import asyncio
import contextlib
import json
import os
import re
import resource
import ssl
import statistics
import time

import agents

STREAMS = int(os.environ.get("BELAY_BENCH_STREAMS", "200"))
NODES = int(os.environ.get("BELAY_BENCH_NODES", "1000"))
QUEUED = int(os.environ.get("BELAY_BENCH_QUEUED", "100000"))
ROUNDS = 3
WINDOW_S = 20
CHANGES_A_S = 10  # submits, and as many cancels
PER_USER = 16  # STREAMS_PER_USER_MAX
HELD = {"script": "#!/bin/sh\n", "cwd": "/", "hold": True}


class Crowd:
    """Clients that read streams, and count events and bytes."""

    def __init__(self, address, ca, tokens):
        self.address, self.tokens = address, tokens
        self.tls = ssl.create_default_context(cadata=ca)
        self.n_ready, self.n_events, self.n_bytes, self.tasks = 0, 0, 0, []

    async def read(self, token):
        host, port = self.address
        reader, writer = await asyncio.open_connection(host, port, ssl=self.tls)
        request = "GET /api/v1/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n"
        with contextlib.closing(writer):
            writer.write((request % token).encode())
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200 "):
                raise SystemExit("bench: a stream was refused: %s" % head.decode())
            self.n_ready += 1
            while piece := await reader.read(65536):
                self.n_bytes += len(piece)
                self.n_events += piece.count(b"event: ")

    async def open(self):
        slots = asyncio.Semaphore(agents.JOINING)

        async def one(token):
            async with slots:
                self.tasks.append(asyncio.ensure_future(self.read(token)))
                n = len(self.tasks)
                await agents.wait_until(lambda: self.n_ready >= n - agents.JOINING, "a stream")

        await asyncio.gather(*(one(t) for t in self.tokens))
        await agents.wait_until(lambda: self.n_ready == len(self.tokens), "all streams")

    async def close(self):
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.tasks, self.n_ready = [], 0


async def make_changes(l, end):
    """Submits held jobs and cancels them."""
    due = time.monotonic()
    while time.monotonic() < end:
        job = (await asyncio.to_thread(l.post, "/jobs", HELD))["id"]
        await asyncio.to_thread(l.post, "/jobs/%d/cancel" % job, {})
        due += 1 / CHANGES_A_S
        await asyncio.sleep(max(0.0, due - time.monotonic()))


def ticks(l):
    """Number and seconds of all ticks so far."""
    text = l.metrics()
    return [
        float(re.search(r"^belay_tick_seconds_%s (\S+)$" % part, text, re.M).group(1))
        for part in ("count", "sum")
    ]


async def window(l):
    """One core's share, and the mean tick in milliseconds."""
    used, began, before = agents.processor_s(l.pid()), time.monotonic(), ticks(l)
    await make_changes(l, began + WINDOW_S)
    n, seconds = (a - b for a, b in zip(ticks(l), before))
    share = (agents.processor_s(l.pid()) - used) / (time.monotonic() - began)
    return share, 1000 * seconds / n


async def measure(l, say, resident, crowd):
    without, streaming, kib = [], [], []
    for _ in range(ROUNDS):
        without.append(await window(l))
        before = resident(l.pid())
        await crowd.open()
        events = crowd.n_events
        streaming.append(await window(l))
        kib.append((resident(l.pid()) - before) / STREAMS)
        events = crowd.n_events - events
        await crowd.close()
    more = [s[0] - w[0] for s, w in zip(streaming, without)]
    say(
        "%d streams: belayd's share of a core" % STREAMS,
        "%.2f %% more (%.2f to %.2f)"
        % tuple(100 * x for x in (statistics.median(more), min(more), max(more))),
        "without: %.2f %%" % (100 * statistics.median(w[0] for w in without)),
        "%.0f events/s to all" % (events / WINDOW_S),
    )
    say("memory of a stream, first round", "%.0f KiB" % kib[0])
    say(
        "mean tick",
        "%.2f ms" % statistics.median(s[1] for s in streaming),
        "without: %.2f ms" % statistics.median(w[1] for w in without),
    )


def raise_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


def with_nodes(l, use):
    """Runs `await use(fleet)` while NODES simulated agents, which join before, each run a job."""
    with open(os.path.join(l.home, "belayd.json")) as f:
        info = json.load(f)
    with open(os.path.join(l.home, "ca.pem")) as f:
        fleet = agents.Fleet(l.home, info["url"], f.read())
    fleet.make_keys(NODES)
    joins = [
        l.post("/tokens", {"kind": "join", "pool": "local", "ttl_ms": 3600000})["token"]
        for _ in range(NODES)
    ]

    async def play():
        joined, polls = [agents.Agent(fleet, n) for n in range(NODES)], []
        slots = asyncio.Semaphore(agents.JOINING)

        async def enter(agent, token):
            async with slots:
                await agent.join(token)
                polls.append(asyncio.ensure_future(agent.run()))  # at once: it may not be idle

        await asyncio.gather(*(enter(a, t) for a, t in zip(joined, joins)))
        await agents.wait_until(lambda: all(a.attempts for a in joined), "a job on each node", 600)
        await asyncio.sleep(2)  # until each agent has reported its job as running
        await use(fleet)
        for poll in polls:
            poll.cancel()
        await asyncio.gather(*polls, return_exceptions=True)

    asyncio.run(play())


def bench(l, say, resident):
    """l: a bench.Local without an agent."""
    raise_files()
    users = ["viewer-%d" % i for i in range(-(-STREAMS // PER_USER))]
    tokens = [l.post("/tokens", {"kind": "api", "user": u, "admin": True})["token"] for u in users]
    tokens = (tokens * PER_USER)[:STREAMS]
    l.submit_all(QUEUED, 32)

    async def use(fleet):
        await measure(l, say, resident, Crowd(fleet.address, fleet.ca, tokens))

    with_nodes(l, use)
