# SPDX-License-Identifier: Apache-2.0
"""Two attempts of one job alive at once: the first one's node is cut off from the network, but not
from its store, and continues to save. Only the newer attempt commits; it has everything that was
acknowledged to the older one. A hundred jobs."""

import glob
import os
import re
import subprocess
import sys
import unittest

from lab import WAIT_S, Lab, read_bytes

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import namespaces  # noqa: E402

ROUNDS, JOBS = 2, 50
STEPS = 100  # of 100 ms; then it continues to save until the gate opens
NODE = (
    "read -r _ && ip link set lo up && ip address add 10.9.%(n)d.2/30 dev eth0 && ip link set eth0 up && "
    "exec %(dir)s/bin/belay-agent --config %(config)s"
)
AGENT = """\
server: https://10.9.%(n)d.1:7443
ca: %(ca)s
token: %(token)s
dir: %(dir)s/node%(n)d
name: node%(n)d
cpus: 64
memory: 64G
"""


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


class Pair(Lab):
    """belayd and two nodes, each in its own network namespace."""

    def start(self):
        self.write_agent()
        self.config = self.write(
            "belayd.yaml",
            {
                **self.belayd_config,
                "listen": "0.0.0.0:7443",
                "server": "https://10.9.1.1:7443",
                "names": ["10.9.1.1", "10.9.2.1"],
                "pools": {"base": {}},
            },
        )
        self.up()
        self.nodes = {}
        for n in (1, 2):
            self.start_node(n)

    def start_node(self, n):
        with open(os.path.join(self.home, "ca.pem")) as f:
            ca = "|\n" + "".join("  " + line for line in f)
        token = self.belay("token", "create", "--join", "--pool", "base").strip()
        config = self.write(
            "node%d.yaml" % n, AGENT % {"n": n, "ca": ca, "token": token, "dir": self.dir}
        )
        with open(os.path.join(self.dir, "node%d.log" % n), "w") as log:
            p = subprocess.Popen(
                ["unshare", "-n", "sh", "-c", NODE % {"n": n, "dir": self.dir, "config": config}],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=self.env,
            )
        self.nodes[n] = p
        # Its shell waits until it is in the namespace: unshare(1) has run when its namespace link
        # differs.
        own = os.readlink("/proc/self/ns/net")
        while os.readlink("/proc/%d/ns/net" % p.pid) == own:
            os.sched_yield()
        ip(
            "link",
            "add",
            "name",
            "node%d" % n,
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            str(p.pid),
        )
        ip("address", "add", "10.9.%d.1/30" % n, "dev", "node%d" % n)
        ip("link", "set", "node%d" % n, "up")
        p.stdin.write(b"\n")
        p.stdin.close()
        self.wait(lambda: self.node(n), "node %d has joined" % n)

    def node(self, n):
        found = [
            x
            for x in self.get("/nodes")["nodes"]
            if x["name"] == "node%d" % n and x["state"] != "gone"
        ]
        return found[0]["id"] if found else None

    def wait_for_no_instances(self):
        return []  # none

    def end(self):
        problems = []
        for p in self.nodes.values():
            p.terminate()
        for p in self.nodes.values():
            if p.wait(WAIT_S) != 0:
                problems.append("an agent ended with %d" % p.returncode)
        return problems + super().end()

    def output(self, n, job):
        """The first attempt's output on its node, shipped or not."""
        paths = glob.glob(
            os.path.join(glob.escape(self.dir), "node%d" % n, "**", "%d-1" % job, "output.log"),
            recursive=True,
        )
        return read_bytes(paths[0]).decode()

    def wait_fenced(self, n, jobs):
        """Waits until the store has refused every one of them."""
        path = os.path.join(self.dir, "node%d.log" % n)

        def look():
            refused = {
                int(j)
                for j in re.findall(r"a save failed job=(\d+) .*fenced", read_bytes(path).decode())
            }
            return refused >= set(jobs)

        self.wait(look, "node %d's saves are refused" % n)


class Cut(unittest.TestCase):
    def test_only_the_newer_attempt_commits(self):
        end = re.search("^end .*", self.undisturbed(), re.M).group(0)
        with Pair(belayd={"lease": "8s"}) as l:
            for n in range(ROUNDS):
                self.cut(l, 1 + n % 2, 2 - n % 2, end)

    def undisturbed(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("BELAY_")}
        return subprocess.run(
            [os.environ["BELAY_WALKER"], "coop", str(STEPS), "0", "1000"],
            env=env,
            check=True,
            stdout=subprocess.PIPE,
            universal_newlines=True,
        ).stdout

    def cut(self, l, old, new, end):
        l.post("/nodes/%d/drain" % l.node(new))
        gate = "gate%d" % old
        jobs = [
            l.submit(
                os.environ["BELAY_WALKER"],
                "coop",
                STEPS,
                100,
                1000,
                os.path.join(l.dir, gate),
                method="coop",
                every_ms=1000,
                memory_mib=10,
            )
            for _ in range(JOBS)
        ]
        for job in jobs:
            l.wait_event(job, "saved")
        l.post("/nodes/%d/undrain" % l.node(new))
        ip("link", "set", "node%d" % old, "down")
        for job in jobs:
            l.wait_event(job, "started", 2)
        l.wait_fenced(old, jobs)
        told = {job: l.output(old, job) for job in jobs}
        l.wait(
            lambda: all(max(l.manifests(job))[0] == 2 for job in jobs),
            "the newer attempts have saved",
        )
        ip("link", "set", "node%d" % old, "up")
        l.write(gate, "")
        for job in jobs:
            self.check(l, job, told[job], end)

    def check(self, l, job, told, end):
        shown = l.wait_ended(job)
        first, second = shown["attempts"]
        self.assertEqual(
            (first["end"], second["end"], shown["job"]["end"]),
            ("node-lost", "succeeded", "succeeded"),
        )
        committed = [int(step) for step in re.findall(r"^committed (\d+)$", told, re.M)]
        self.assertTrue(committed)
        # The successor started with the last checkpoint acknowledged to the cut-off program. (There
        # may be one more, committed but not acknowledged when the fence came.)
        self.assertGreaterEqual(second["restored_progress"], committed[-1])
        self.assertEqual(second["restored"]["attempt"], 1)
        self.assertEqual(re.findall("^end .*", l.log(job), re.M), [end])
        self.assertEqual(max(l.manifests(job))[0], 2)


if __name__ == "__main__":
    namespaces.main(
        "-n",
        setup="ip link set lo up",
        probe="ip link add name v0 type veth peer name v1",
        programs=["ip"],
    )
