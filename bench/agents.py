# SPDX-License-Identifier: Apache-2.0
"""2,000 agents on one belayd: the cost of each, and 500 notices within one second.

One process simulates the agents, over real TLS connections with a certificate each and with the
messages of base/wire. They run nothing: a job "runs" when its agent reports it. Only the
processor time and memory of belayd are measured.
"""

import asyncio
import json
import os
import random
import resource
import ssl
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

JOINING = 32  # in parallel


def now_ms():
    return int(time.time() * 1000)


class Agent:
    def __init__(self, fleet, n):
        self.fleet = fleet
        self.n = n
        self.seq = 0
        self.rev = 0
        self.attempts = {}  # (job, attempt) -> its report
        self.notice = {}
        self.poke = asyncio.Event()  # set: send a status before the poll ends
        self.streams = []
        self.acknowledged = None

    async def connect(self, with_certificate):
        tls = ssl.create_default_context(cadata=self.fleet.ca)
        if with_certificate:
            tls.load_cert_chain(self.fleet.path(self.n, "crt"), self.fleet.path(self.n, "key"))
        host, port = self.fleet.address
        streams = await asyncio.open_connection(host, port, ssl=tls)
        self.streams.append(streams)
        return streams

    async def call(self, streams, path, body):
        reader, writer = streams
        text = json.dumps(body).encode()
        writer.write(
            b"POST %s HTTP/1.1\r\nHost: belayd\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            % (path.encode(), len(text))
            + text
        )
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length:")[1].split("\r\n")[0])
        reply = json.loads(await reader.readexactly(length))
        if " 200 " not in head.split("\r\n")[0]:
            raise SystemExit("bench: %s: %s" % (path, reply))
        return reply

    async def join(self, token):
        with open(self.fleet.path(self.n, "csr")) as f:
            request = f.read()
        streams = await self.connect(False)
        reply = await self.call(
            streams,
            "/agent/v1/join",
            {
                "token": token,
                "csr_pem": request,
                "host": "n%d" % self.n,
                "version": "bench",
                "cpus": 2,
                "memory_mib": 4096,
            },
        )
        streams[1].close()
        self.streams.remove(streams)
        with open(self.fleet.path(self.n, "crt"), "w") as f:
            f.write(reply["cert_pem"])
        self.poll, self.urgent = await self.connect(True), None

    def status(self, wait_ms):
        self.seq += 1
        return {
            "incarnation": 1,
            "seq": self.seq,
            "have_rev": self.rev,
            "wait_ms": wait_ms,
            "notice": self.notice,
            "attempts": list(self.attempts.values()),
        }

    def adopt(self, desired):
        """Adds new attempts, removes those that are no longer desired."""
        if desired["rev"] < self.rev:
            return
        self.rev = desired["rev"]
        wanted = {(a["job"], a["attempt"]) for a in desired.get("attempts", [])}
        news = False
        for key in wanted - set(self.attempts):
            self.attempts[key] = {
                "job": key[0],
                "attempt": key[1],
                "phase": "running",
                "started_at": now_ms(),
            }
            news = True
        for key in set(self.attempts) - wanted:
            del self.attempts[key]
        return news

    async def run(self):
        """Long polls for ever."""
        wait_ms = 0
        while True:
            news = self.adopt(await self.call(self.poll, "/agent/v1/sync", self.status(wait_ms)))
            wait_ms = 0 if news else 20000

    async def reclaim(self, deadline_ms):
        """Reports the notice, then the save and the end, each at once; measures when belayd has
        acknowledged all.
        """
        began = time.monotonic()
        if not self.urgent:
            self.urgent = await self.connect(True)
        self.notice = {"kind": "reclaim", "deadline": deadline_ms, "seen": now_ms()}
        self.adopt(await self.call(self.urgent, "/agent/v1/sync", self.status(0)))
        for a in self.attempts.values():
            a["checkpoints"] = [
                {
                    "sequence": 1,
                    "bytes": 1000,
                    "stored_bytes": 500,
                    "took_ms": 5,
                    "saved_at": now_ms(),
                    "cause": "notice",
                }
            ]
            a.update(phase="ended", end="reclaimed", exit_code=0, text="bench")
        self.adopt(await self.call(self.urgent, "/agent/v1/sync", self.status(0)))
        self.acknowledged = time.monotonic() - began
        self.left_s = (deadline_ms - now_ms()) / 1000


class Fleet:
    def __init__(self, directory, url, ca):
        self.directory, self.ca = directory, ca
        host, port = url.split("//")[1].rsplit(":", 1)
        self.address = host, int(port)

    def path(self, n, what):
        return os.path.join(self.directory, "agent%d.%s" % (n, what))

    def make_keys(self, n):
        def one(k):
            subprocess.run(
                [
                    "openssl",
                    "req",
                    "-new",
                    "-newkey",
                    "ec",
                    "-pkeyopt",
                    "ec_paramgen_curve:P-256",
                    "-nodes",
                    "-keyout",
                    self.path(k, "key"),
                    "-subj",
                    "/CN=node",
                    "-out",
                    self.path(k, "csr"),
                ],
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(one, range(n)))

    async def join_all(self, tokens):
        agents = [Agent(self, n) for n in range(len(tokens))]
        slots = asyncio.Semaphore(JOINING)

        async def one(agent, token):
            async with slots:
                await agent.join(token)

        await asyncio.gather(*(one(a, t) for a, t in zip(agents, tokens)))
        return agents


def processor_s(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def wait_until(true, what, seconds=120):
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise SystemExit("bench: timeout after %d s: %s" % (seconds, what))
        await asyncio.sleep(0.2)


def bench(l, say, resident, n=2000, notices=500, watch_s=30):
    """l: a bench.Local without an agent."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with open(os.path.join(l.home, "belayd.json")) as f:
        info = json.load(f)
    with open(os.path.join(l.home, "ca.pem")) as f:
        fleet = Fleet(l.home, info["url"], f.read())
    empty = resident(l.pid())
    fleet.make_keys(n)
    tokens = [
        l.post("/tokens", {"kind": "join", "pool": "local", "ttl_ms": 3600000})["token"]
        for _ in range(n)
    ]

    async def play():
        began = time.monotonic()
        agents = await fleet.join_all(tokens)
        say("%d agents joined over TLS" % n, "%.0f /s" % (n / (time.monotonic() - began)))
        polls = [asyncio.ensure_future(a.run()) for a in agents]
        await wait_until(lambda: all(a.rev for a in agents), "a response to each agent")
        used, began = processor_s(l.pid()), time.monotonic()
        await asyncio.sleep(watch_s)
        share = (processor_s(l.pid()) - used) / (time.monotonic() - began)
        polled = sum(a.seq for a in agents) / (time.monotonic() - began)
        say(
            "heartbeats: belayd's share of a core",
            "%.2f %%" % (100 * share),
            "about %.0f polls/s" % polled,
            "%.1f us a poll" % (1e6 * share / polled),
        )
        say("belayd's memory per agent", "%.0f KiB" % ((resident(l.pid()) - empty) / n))

        for _ in range(n):
            l.post(
                "/jobs",
                {
                    "script": "#!/bin/sh\n",
                    "cwd": "/",
                    "cpus": 1,
                    "checkpoint": {"method": "coop", "every_ms": 3600000},
                },
            )
        await wait_until(lambda: sum(len(a.attempts) for a in agents) == n, "every job runs")
        await asyncio.sleep(2)  # until each agent has reported its job as running
        hit = [a for a in agents if a.attempts][:notices]
        hurt = sum(len(a.attempts) for a in hit)
        chance = random.Random(1)
        began = time.monotonic()
        used = processor_s(l.pid())
        await asyncio.gather(*(a.reclaim(now_ms() + chance.randrange(10000, 120000)) for a in hit))
        took = time.monotonic() - began
        await wait_until(
            lambda: sum(len(a.attempts) for a in agents if a not in hit) >= n,
            "the jobs run elsewhere",
        )
        again = time.monotonic() - began
        slowest = max(a.acknowledged for a in hit)
        say(
            "%d notices at once, %d jobs on them" % (len(hit), hurt),
            "all saved in %.2f s" % took,
            "notices of 10 to 120 s: at least %.1f s left" % min(a.left_s for a in hit),
            "slowest %.2f s; running elsewhere after %.2f s; %.2f s of processor time"
            % (slowest, again, processor_s(l.pid()) - used),
        )
        for poll in polls:
            poll.cancel()
        await asyncio.gather(*polls, return_exceptions=True)

    asyncio.run(play())
