# SPDX-License-Identifier: Apache-2.0
"""Hostile connections to belayd's HTTPS listener, and their effect on agents and users.

    flood.py HOST PORT CONNECTIONS SECONDS [KIND...]    only the attackers; a user's token on stdin

The attackers are a separate process. It keeps CONNECTIONS open, of the kinds below in turn, and
reopens each one that belayd has closed. Its last line of output is JSON: how often each kind was
opened and closed.
"""

import asyncio
import contextlib
import json
import os
import resource
import ssl
import subprocess
import sys
import time

import agents

AGAIN_S = 0.5  # from the end of a connection to the next
BODY = 8 << 20
JOIN_BODY = 60 << 10
# A handshake record that announces 512 bytes and contains only a few.
HALF_HELLO = bytes.fromhex("1603010200010001fc0303")


class Crowd:
    def __init__(self, host, port, token, end, kinds):
        self.address, self.token, self.end = (host, port), token, end
        self.tls = ssl.create_default_context()
        self.tls.check_hostname = False
        self.tls.verify_mode = ssl.CERT_NONE
        self.kinds = kinds or sorted(self.plays)
        self.counts = {kind: {"opened": 0, "closed": 0, "failed": 0} for kind in self.kinds}

    async def open(self, tls=True):
        more = {"ssl": self.tls, "ssl_handshake_timeout": 30} if tls else {}
        return await asyncio.open_connection(*self.address, **more)

    async def keep_open(self, reader):
        """Reads until belayd closes the connection."""
        while await reader.read(65536):
            pass

    async def silent(self):
        reader, writer = await self.open(tls=False)
        return reader, writer, b"", False

    async def half_open(self):
        reader, writer = await self.open(tls=False)
        return reader, writer, HALF_HELLO, False

    async def dripped(self):
        reader, writer = await self.open()
        return reader, writer, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Drip: ", True

    async def join_body(self):
        reader, writer = await self.open()
        head = b"POST /agent/v1/join HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % JOIN_BODY
        return reader, writer, head + b"x" * (JOIN_BODY - 100), True

    async def user_body(self):
        reader, writer = await self.open()
        head = (
            "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
            "Content-Length: %d\r\n\r\n" % (self.token, BODY)
        )
        return reader, writer, head.encode() + b"x" * (BODY - 1000), True

    async def pipeline(self):
        reader, writer = await self.open()
        one = (
            "GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n"
            "Authorization: Bearer %s\r\n\r\n" % self.token
        )
        return None, writer, one.encode() * 200, False

    plays = {
        "silent": silent,
        "half_open": half_open,
        "dripped": dripped,
        "join_body": join_body,
        "user_body": user_body,
        "pipeline": pipeline,
    }

    async def play(self, kind):
        count = self.counts[kind]
        reader, writer, first, drips = await self.plays[kind](self)
        count["opened"] += 1
        try:
            writer.write(first)
            waiter = asyncio.ensure_future(self.keep_open(reader)) if reader else None
            while (
                time.monotonic() < self.end
                and not writer.is_closing()
                and not (waiter and waiter.done())
            ):
                if waiter:
                    await asyncio.wait([waiter], timeout=1)
                else:
                    await asyncio.sleep(1)
                if drips:
                    writer.write(b"x")
                    await writer.drain()
            if waiter:
                waiter.cancel()
                await asyncio.gather(waiter, return_exceptions=True)
        finally:
            count["closed"] += time.monotonic() < self.end
            writer.transport.abort()

    async def go_on(self, kind):
        while time.monotonic() < self.end:
            try:
                await self.play(kind)
            except (OSError, ssl.SSLError, asyncio.IncompleteReadError):
                self.counts[kind]["failed"] += 1
            await asyncio.sleep(AGAIN_S)

    async def run(self, n):
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        tasks = [
            asyncio.ensure_future(self.go_on(self.kinds[i % len(self.kinds)])) for i in range(n)
        ]
        await asyncio.wait(tasks, timeout=max(0, self.end - time.monotonic()) + 5)
        print(json.dumps(self.counts), flush=True)


@contextlib.contextmanager
def crowd(address, token, n, seconds, kinds=()):
    """The attackers as a process, which ends with the block at the latest."""
    words = [address[0], str(address[1]), str(n), str(seconds), *kinds]
    p = subprocess.Popen(
        [sys.executable, os.path.abspath(__file__), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        p.stdin.write(token + "\n")
        p.stdin.close()
        yield p
    finally:
        p.kill()
        p.wait()


# ---- effect on agents and users ----


class Watch:
    """Agents that sync, over one open connection and over new ones, and users that submit over new
    ones.
    """

    def __init__(self, fleet, joined, tokens):
        self.fleet, self.agents, self.tokens = fleet, joined, tokens
        self.took = {"sync": [], "sync, new connection": [], "submit": []}
        self.failures = []

    async def timed(self, what, call):
        began = time.monotonic()
        try:
            await asyncio.wait_for(call, 60)
        except (
            OSError,
            ssl.SSLError,
            asyncio.IncompleteReadError,
            asyncio.TimeoutError,
            SystemExit,
        ) as error:
            took_s = time.monotonic() - began
            self.failures.append(
                "%s after %.1f s: %s" % (what, took_s, error or type(error).__name__)
            )
        else:
            self.took[what].append(time.monotonic() - began)

    async def sync(self, agent, streams):
        agent.adopt(await agent.call(streams, "/agent/v1/sync", agent.status(0)))

    async def sync_anew(self, agent):
        streams = await agent.connect(True)
        try:
            await self.sync(agent, streams)
        finally:
            streams[1].transport.abort()
            agent.streams.remove(streams)

    async def submit(self, token):
        tls = ssl.create_default_context(cadata=self.fleet.ca)
        reader, writer = await asyncio.open_connection(*self.fleet.address, ssl=tls)
        try:
            body = json.dumps({"script": "#!/bin/sh\n", "cwd": "/", "hold": True}).encode()
            writer.write(
                (
                    "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
                    "Connection: close\r\nContent-Length: %d\r\n\r\n" % (token, len(body))
                ).encode()
                + body
            )
            reply = await reader.read()
            if b" 201 " not in reply[:20]:
                raise SystemExit("submit: %s" % reply[-300:].decode(errors="replace"))
        finally:
            writer.transport.abort()

    def close(self):
        for agent in self.agents:
            for streams in agent.streams:
                streams[1].transport.abort()

    async def run(self, seconds, every_s=0.25):
        """Each agent and user acts once in every_s seconds, spread evenly."""
        self.took = {what: [] for what in self.took}
        self.failures = []
        end = time.monotonic() + seconds

        async def agent_lives(agent, late_s):
            await asyncio.sleep(late_s)
            while time.monotonic() < end:
                if agent.poll[1].is_closing() or agent.poll[0].at_eof():
                    agent.poll = await agent.connect(True)
                await self.timed("sync", self.sync(agent, agent.poll))
                await self.timed("sync, new connection", self.sync_anew(agent))
                await asyncio.sleep(every_s)

        async def user_works(token, late_s):
            await asyncio.sleep(late_s)
            while time.monotonic() < end:
                await self.timed("submit", self.submit(token))
                await asyncio.sleep(every_s)

        n = len(self.agents) + len(self.tokens)
        lives = [agent_lives(a, every_s * i / n) for i, a in enumerate(self.agents)]
        works = [user_works(t, every_s * (i + len(lives)) / n) for i, t in enumerate(self.tokens)]
        await asyncio.gather(*lives, *works)

    def worst(self, what):
        return max(self.took[what], default=0)

    def p99(self, what):
        took = sorted(self.took[what])
        return took[len(took) * 99 // 100] if took else 0


def open_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


async def join_fleet(directory, url, ca, tokens):
    fleet = agents.Fleet(directory, url, ca)
    fleet.make_keys(len(tokens))
    return fleet, await fleet.join_all(tokens)


class Memory:
    """The maximum resident memory of a process while the block runs."""

    def __init__(self, resident):
        self.resident, self.most = resident, 0

    async def watch(self):
        while True:
            self.most = max(self.most, self.resident())
            await asyncio.sleep(0.5)


N_AGENTS, N_USERS, QUIET_S = 8, 4, 20


def bench(l, say, resident):
    """l: a bench.Local without an agent."""
    n = int(os.environ.get("BELAY_BENCH_CROWD", "2000"))
    seconds = float(os.environ.get("BELAY_BENCH_FLOOD_S", "600"))
    open_files()
    with open(os.path.join(l.home, "belayd.json")) as f:
        info = json.load(f)
    with open(os.path.join(l.home, "ca.pem")) as f:
        ca = f.read()

    def token(**request):
        return l.post("/tokens", request)["token"]

    joins = [token(kind="join", pool="local", ttl_ms=3600000) for _ in range(N_AGENTS)]
    users = [token(kind="api", user="user%d" % i) for i in range(N_USERS)]
    hostile = token(kind="api", user="hostile")

    async def play():
        fleet, joined = await join_fleet(l.home, info["url"], ca, joins)
        watch = Watch(fleet, joined, users)
        await watch.run(QUIET_S)
        if watch.failures:
            raise SystemExit("bench: without attackers: %s" % watch.failures[:3])
        quiet = {what: (watch.p99(what), watch.worst(what)) for what in watch.took}
        own = resident(l.pid())
        memory = Memory(lambda: resident(l.pid()))
        looking = asyncio.ensure_future(memory.watch())
        with crowd(fleet.address, hostile, n, seconds) as p:
            await watch.run(seconds)
            counts = json.loads((await asyncio.to_thread(p.stdout.readline)) or "{}")
        looking.cancel()
        for what in watch.took:
            p99, worst = quiet[what]
            say(
                "%s, %d hostile, %.0f s" % (what, n, seconds),
                "p99 %.0f ms, worst %.0f" % (1000 * watch.p99(what), 1000 * watch.worst(what)),
                "without them: p99 %.0f ms, worst %.0f" % (1000 * p99, 1000 * worst),
                "%.1f x, %.1f x" % (watch.p99(what) / p99, watch.worst(what) / worst),
            )
        n_failed, n_done = len(watch.failures), sum(map(len, watch.took.values()))
        say(
            "  of these without an answer",
            "%d of %d" % (n_failed, n_done + n_failed),
            "; ".join(watch.failures[:2]),
        )
        say(
            "belayd's peak memory",
            "%.0f MiB" % (memory.most / 1024),
            "without them: %.0f MiB" % (own / 1024),
            "%.0f MiB more" % ((memory.most - own) / 1024),
        )
        say(
            "  hostile connections opened",
            "%d" % sum(c["opened"] for c in counts.values()),
            ", ".join("%s %d" % (kind, c["opened"]) for kind, c in counts.items()),
        )

    asyncio.run(play())


def main():
    host, port, n, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    open_files()
    token = sys.stdin.readline().strip()
    asyncio.run(Crowd(host, port, token, time.monotonic() + seconds, sys.argv[5:]).run(n))


if __name__ == "__main__":
    main()
