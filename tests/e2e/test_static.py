# SPDX-License-Identifier: Apache-2.0
"""A static pool: its hosts are real sshd processes, each with its own directory. A job runs there
through belay-agent; whatever happens to belayd or the connection to a host, a launch starts one
agent, and nothing is left at the end."""

import contextlib
import getpass
import glob
import json
import os
import shutil
import socket
import subprocess
import threading
import unittest

from lab import END_S, Lab, Refused

SSHD = "/usr/sbin/sshd"

SSHD_CONFIG = """\
HostKey %(dir)s/host-key
AuthorizedKeysFile %(dir)s/authorized-keys
ForceCommand %(dir)s/bin/host%(n)d
# A host's last request continues after its client has gone: the lab finds its processes by this.
SetEnv BELAY_TEST_LAB=%(dir)s
StrictModes no
UsePAM no
PidFile none
# The usual exchange takes a tenth of a second of a processor, for each of hundreds of connections.
KexAlgorithms curve25519-sha256
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
LogLevel ERROR
"""

# The forced command of an account's key. With a gate, a claim reports its arrival and waits.
HOST = """\
#!/bin/sh
request=$(cat)
case $request in
*'"do":"claim"'*)
    if [ -p %(dir)s/gate ]; then
        echo %(n)d >>%(dir)s/arrived
        read -r _ <%(dir)s/gate
    fi
    echo %(n)d >>%(dir)s/claims
    ;;
esac
printf %%s "$request" | %(dir)s/bin/belay-agent host --dir %(dir)s/host%(n)d
"""


class Host:
    """A local port on which an sshd answers each connection, or nothing does."""

    def __init__(self, l, n):
        self.l, self.n, self.is_down = l, n, False
        self.dir = os.path.join(l.dir, "host%d" % n)
        self.config = l.write("sshd%d" % n, SSHD_CONFIG % {"dir": l.dir, "n": n})
        l.write("bin/host%d" % n, HOST % {"dir": l.dir, "n": n}, 0o755)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.log = open(os.path.join(l.dir, "sshd%d.log" % n), "w")
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        children = []
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                break
            with connection:
                if not self.is_down:
                    children.append(
                        subprocess.Popen(
                            [SSHD, "-i", "-e", "-f", self.config],
                            stdin=connection,
                            stdout=connection,
                            stderr=self.log,
                            env=self.l.env,
                        )
                    )
            children = [c for c in children if c.poll() is None]
        for c in children:
            c.wait()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        self.log.close()

    def claim(self):
        """The claim recorded on it, or None."""
        with contextlib.suppress(FileNotFoundError):
            with open(os.path.join(self.dir, "claim.json")) as f:
                return json.load(f)
        return None


class Rack(Lab):
    n_hosts = 2

    def start(self):
        self.write_agent()
        for key in ("key", "host-key"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(self.dir, key)],
                check=True,
                stdin=subprocess.DEVNULL,
            )
        shutil.copy(os.path.join(self.dir, "key.pub"), os.path.join(self.dir, "authorized-keys"))
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", 0o755, exist_ok=True)  # required by an sshd started as root
        self.hosts = [Host(self, n + 1) for n in range(self.n_hosts)]
        with open(os.path.join(self.dir, "host-key.pub")) as f:
            host_key = " ".join(f.read().split()[:2])
        known = "".join("[127.0.0.1]:%d %s\n" % (h.port, host_key) for h in self.hosts)
        self.pool = {
            "provider": "static",
            "hosts": ["127.0.0.1:%d" % h.port for h in self.hosts],
            "user": getpass.getuser(),
            "key": os.path.join(self.dir, "key"),
            "known_hosts": self.write("known-hosts", known),
            "cpus": 1,
            "memory": "256M",
            "usd_per_hour": "3.60",
            "idle_timeout": "1s",
            "cooldown": "1s",
            "refusal_backoff": "500ms",
        }
        self.config = self.write(
            "belayd.yaml", {**self.belayd_config, "pools": {"rack": self.pool}}
        )
        self.up()

    def end(self):
        problems = super().end()
        for h in self.hosts:
            h.close()
        return problems

    def wait_for_no_instances(self):
        try:
            for job in self.get("/jobs?state=active&limit=200")["jobs"]:
                with contextlib.suppress(Refused):
                    self.post("/jobs/%d/cancel" % job["id"])
            self.wait(lambda: not self.claims(), "no host is claimed", END_S)
            self.wait(
                lambda: not self.get("/instances")["instances"], "belayd has no instance", END_S
            )
        except (AssertionError, Refused, OSError) as error:
            return [str(error)]
        return []

    def claims(self):
        return [h.claim() for h in self.hosts if h.claim()]

    def lines(self, name):
        with contextlib.suppress(FileNotFoundError):
            with open(os.path.join(self.dir, name)) as f:
                return f.read().split()
        return []

    def instances(self, state="all"):
        return self.get("/instances?state=%s" % state)["instances"]


class Limited(Rack):
    """Three hosts on a power supply that suffices for jobs on two of them."""

    n_hosts = 3

    def __init__(self):
        super().__init__(
            belayd={
                "node_types": {"box": {"watts": {"idle": 100, "full": 500}}},
                "racks": {"left": {"max_kw": 1.1, "pools": {"rack": {"type": "box", "nodes": 3}}}},
            }
        )


def undo(gate):
    """Opens the gate for all claims, waiting and later ones."""
    fd = os.open(gate, os.O_RDWR)
    os.unlink(gate)
    os.write(fd, b"\n" * 8)
    return fd


@unittest.skipUnless(os.path.exists(SSHD), "there is no sshd (openssh-server)")
class Static(unittest.TestCase):
    def test_a_job_runs_on_a_host_and_nothing_stays(self):
        with Rack() as l:
            job = self.walk(l, 10)
            l.wait_log(job, r"^step 10 ")
            self.assertEqual(len(l.claims()), 1)
            self.assertEqual(len(l.agents()), 1)
            self.assertEqual(l.post("/audit")["differences"], [])
            self.change_hosts(l)
            l.write("gate", "")
            shown = l.wait_ended(job)
            self.assertEqual(shown["job"]["end"], "succeeded")
            self.assertGreater(shown["job"]["cost_uusd"], 0)
            l.wait(lambda: not l.claims(), "the host is given back")
            self.assertEqual(l.agents(), [])
            self.assertEqual(glob.glob(l.dir + "/host*/node"), [])  # with its key and certificate
            again = l.submit("plain.sh", 1)
            self.assertEqual(l.wait_ended(again)["job"]["end"], "succeeded")

    def walk(self, l, steps, **spec):
        """A job that runs until it is released, however long the test takes on a busy machine."""
        return l.submit(
            os.environ["BELAY_WALKER"],
            "coop",
            steps,
            20,
            100,
            os.path.join(l.dir, "gate"),
            method="coop",
            **spec
        )

    def change_hosts(self, l):
        """While one has an instance: it cannot be removed, others can be added and removed."""
        idle, busy = sorted(zip(l.hosts, l.pool["hosts"]), key=lambda h: h[0].claim() is not None)
        self.assertIn("is at %s," % busy[1], self.apply_hosts(l, [idle[1]]))
        self.assertEqual(self.apply_hosts(l, ["127.0.0.1:1", busy[1]]), "")
        self.assertEqual(self.apply_hosts(l, l.pool["hosts"]), "")

    def apply_hosts(self, l, hosts):
        """Applies the list of hosts while an instance exists: its host cannot be removed, others
        can be added and removed.
        """
        try:
            l.post(
                "/pools",
                {
                    "file": "pools.yaml",
                    "text": json.dumps({"pools": {"rack": {**l.pool, "hosts": hosts}}}),
                },
            )
        except Refused as refusal:
            return str(refusal)
        return ""

    def test_a_drained_host_is_not_claimed_again(self):
        """It would be the next one to be launched, so it is kept until an operator says so."""
        script = "#!/bin/sh\nmkdir %s/failed 2>/dev/null && exit 7\necho well\n"
        failing = {"jobs": 1, "users": 1, "within": "1h", "quick": "1h"}
        with Rack(belayd={"failing_nodes": failing}) as l:
            spec = {"name": "j", "script": script % l.dir, "cwd": "/"}
            job = l.post("/jobs", {**spec, "checkpoint": {"method": "none"}})["id"]
            shown = l.wait_ended(job)
            self.assertEqual([a["end"] for a in shown["attempts"]], ["drained", "succeeded"])
            nodes = {n["id"]: n for n in l.get("/nodes")["nodes"]}
            broken = nodes[shown["attempts"][0]["node"]]
            self.assertEqual(
                broken["drain_text"], "1 job of 1 user failed there at once: job %d" % job
            )
            l.wait(lambda: len(l.claims()) == 1, "the other host is given back")
            again = l.wait_ended(l.submit("plain.sh", 1))
            self.assertEqual(again["job"]["end"], "succeeded")
            used = {i["node"]: i["provider_id"].split("#")[0] for i in l.instances()}
            self.assertNotEqual(
                used[again["attempts"][-1]["node"]], used[shown["attempts"][0]["node"]]
            )
            l.wait(lambda: len(l.claims()) == 1, "the other host is given back")
            l.belay("nodes", "delete", broken["name"])
            l.wait(lambda: not l.claims(), "the drained host is given back, too")

    def test_more_jobs_than_hosts_take_turns(self):
        with Rack() as l:
            jobs = [self.walk(l, 1, exclusive=True) for _ in range(4)]
            l.wait(lambda: sum(l.job(j)["state"] == "running" for j in jobs) == 2, "two run")
            l.write("gate", "")
            for job in jobs:
                self.assertEqual(l.wait_ended(job)["job"]["end"], "succeeded")
            self.assertEqual(
                {i["provider_id"].split("#")[0] for i in l.instances()}, set(l.pool["hosts"])
            )

    def test_no_more_run_than_their_rack_has_power_for(self):
        with Limited() as l:
            first = [
                l.submit("plain.sh", 100000, exclusive=True) for _ in range(2)
            ]  # whatever this machine's number of cpus
            l.wait(lambda: all(l.job(j)["state"] == "running" for j in first), "two run")
            rest = [l.submit("plain.sh", 3, exclusive=True) for _ in range(3)]
            said = l.wait(
                lambda: [s for s in l.belay("why", str(rest[0])).splitlines() if "rack left" in s],
                "its rack holds it back",
            )
            self.assertIn(
                "no node of pool rack is launched for lack of power: rack left draws 1.1 kW of at most 1.1 (max_kw), and it would draw 0.4 more there",
                said[0],
            )
            self.assertEqual([l.job(j)["state"] for j in rest], ["pending"] * 3)
            self.assertEqual(len(l.claims()), 2)  # of three hosts
            self.assertEqual(
                l.get("/racks")["racks"],
                [
                    {
                        "name": "left",
                        "max_watts": 1100,
                        "idle_watts": 300,
                        "watts": 1100,
                        "measured_watts": 0,
                        "nodes": 3,
                        "joined": 2,
                        "pue": None,
                    }
                ],
            )
            l.post("/jobs/%d/cancel" % first[0])
            self.assertEqual([l.wait_ended(j)["job"]["end"] for j in rest], ["succeeded"] * 3)
            l.post("/jobs/%d/cancel" % first[1])
            shown = [l.wait_ended(j) for j in first] + [l.show(j) for j in rest]
            moments = sorted(
                (at, n)
                for s in shown
                for a in s["attempts"]
                for at, n in ((a["assigned_at"], 1), (a["ended_at"], -1))
            )
            held = [sum(n for _, n in moments[:k]) for k in range(len(moments) + 1)]
            self.assertEqual(max(held), 2)

    def test_belayd_killed_in_a_launch_makes_one_agent(self):
        for is_early in (True, False):
            with self.subTest(is_early), Rack() as l:
                gate = os.path.join(l.dir, "gate")
                os.mkfifo(gate)
                job = l.submit("chain.py", 60, method="coop")
                self.wait_arrived(l, 1)
                l.kill_belayd()
                if is_early:  # the claim takes effect while belayd is dead
                    fd = undo(gate)
                    l.up()
                else:  # the next belayd claims, and the old claim arrives after it
                    os.rename(gate, gate + ".old")
                    l.up()
                    l.wait_log(job, r"^step 5 ")
                    fd = undo(gate + ".old")
                l.wait_log(job, r"^step 20 ")
                self.assertEqual((len(l.claims()), len(l.agents())), (1, 1))
                self.assertEqual(l.wait_ended(job)["job"]["end"], "succeeded")
                self.assertEqual(len(set(l.lines("claims"))), 1)  # the same host, each time
                self.assertEqual(len(l.instances()), 1)
                os.close(fd)

    def wait_arrived(self, l, n):
        l.wait(lambda: len(l.lines("arrived")) >= n, "a claim is at a host")

    def test_a_host_that_cannot_be_reached_is_not_gone(self):
        with Rack() as l:
            job = self.walk(l, 300)
            l.wait_log(job, r"^step 10 ")
            for h in l.hosts:
                h.is_down = h.claim() is not None
            l.wait_log(job, r"^step 300 ")  # many sweeps and settling times
            self.assertEqual([i["state"] for i in l.instances()], ["running"])
            self.assertEqual({d["kind"] for d in l.post("/audit")["differences"]}, {"not-listed"})
            l.write("gate", "")
            self.assertEqual(l.wait_ended(job)["job"]["end"], "succeeded")
            self.assertEqual(len(l.show(job)["attempts"]), 1)
            l.wait(
                lambda: [i["state"] for i in l.instances()] == ["ending"], "it is to be given back"
            )
            self.assertEqual(len(l.claims()), 1)
            idle = [name for h, name in zip(l.hosts, l.pool["hosts"]) if not h.is_down]
            l.wait(
                lambda: self.apply_hosts(l, idle) == "",
                "who is not heard of either can be left out",
            )
            l.wait(lambda: not l.instances("live"), "what was there counts as gone")
            for h in l.hosts:
                h.is_down = False
            self.assertEqual(self.apply_hosts(l, l.pool["hosts"]), "")
            l.wait(lambda: not l.claims(), "it is given back")

    def test_a_host_with_another_key_is_refused(self):
        with Rack() as l:
            for key in ("host-key", "host-key.pub"):
                os.unlink(os.path.join(l.dir, key))
            subprocess.run(
                [
                    "ssh-keygen",
                    "-q",
                    "-t",
                    "ed25519",
                    "-N",
                    "",
                    "-f",
                    os.path.join(l.dir, "host-key"),
                ],
                check=True,
                stdin=subprocess.DEVNULL,
            )
            job = l.submit("plain.sh", 1)
            l.wait(
                lambda: "Host key verification failed" in l.belay("why", str(job)) + self.log_of(l),
                "the refusal is told",
            )
            self.assertEqual(l.claims(), [])

    def log_of(self, l):
        texts = []
        for path in glob.glob(l.home + "/*.log"):
            with open(path, errors="replace") as f:
                texts.append(f.read())
        return "".join(texts)


if __name__ == "__main__":
    unittest.main()
