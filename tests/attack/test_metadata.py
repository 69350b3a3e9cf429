# SPDX-License-Identifier: Apache-2.0
"""A job asks the metadata service for the credentials of its node's role: on a machine launched by
belay only root can reach it. A real agent on a machine (a network namespace) with a metadata
service at the real addresses in another, and a container with its own network behind the machine.
Nothing outside these namespaces is reached or changed."""

import contextlib
import ctypes
import errno
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import namespaces  # noqa: E402

BUILD = os.path.abspath(os.environ.get("BELAY_BUILD", "build"))
WAIT_S = 60
V4, WIRE, V6 = "169.254.169.254", "168.63.129.16", "fd00:ec2::254"
NOBODY = 65534
CLONE_NEWNET = 0x40000000

# The agent starts with only its configuration.
CONFIG = """\
server: https://127.0.0.1:1
token: none
provider: aws
dir: %s/node
criu: no
ca: |
  -----BEGIN CERTIFICATE-----
"""


def run(*command, check=True):
    return subprocess.run(
        command, check=check, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ).stdout


def attempt(uid, address, port, payload=None):
    """Returns 0, or the errno of a connection (with a payload, of sending a datagram) from here,
    made by that user in a separate process."""
    pid = os.fork()
    if pid == 0:
        code = 255
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            s = socket.socket(family, socket.SOCK_DGRAM if payload else socket.SOCK_STREAM)
            s.settimeout(WAIT_S)
            s.connect((address, port))
            if payload:
                s.send(payload)
            s.recv(1)
            code = 0
        except OSError as e:
            code = e.errno or 254
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Namespace:
    """A process in its own network namespace, and its operations there."""

    def __init__(self, work):
        ready, ready_in = os.pipe()
        self.go_out, self.go = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) == 0:
                    os.write(ready_in, b"u")
                    os.read(self.go_out, 1)
                    work(ready_in)
                    signal.pause()
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        os.close(ready_in)
        self.ready = ready
        self.wait()

    def wait(self):
        if not select.select([self.ready], [], [], WAIT_S)[0] or os.read(self.ready, 1) == b"":
            raise AssertionError("a namespace's process is not ready")

    def ip(self, *words):
        run("nsenter", "-n", "-t", str(self.pid), "ip", *words)

    def start(self):
        os.write(self.go, b"g")
        self.wait()

    def end(self):
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def serve(ready_in):
    """Sends a byte to every client."""
    poll, sockets = select.poll(), {}
    for address, port, kind in (
        (V4, 80, socket.SOCK_STREAM),
        (V4, 53, socket.SOCK_STREAM),
        (V4, 53, socket.SOCK_DGRAM),
        (WIRE, 80, socket.SOCK_STREAM),
        (V6, 80, socket.SOCK_STREAM),
    ):
        s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)
        s.bind((address, port))
        if kind == socket.SOCK_STREAM:
            s.listen(16)
        sockets[s.fileno()] = s
        poll.register(s, select.POLLIN)
    os.write(ready_in, b"s")
    while True:
        for fd, _ in poll.poll():
            s = sockets[fd]
            if s.type == socket.SOCK_DGRAM:
                s.sendto(b"x", s.recvfrom(10)[1])
            else:
                with s.accept()[0] as c, contextlib.suppress(OSError):
                    c.send(b"x")


class Metadata(unittest.TestCase):
    def forget_rules(self):
        for table in "-4", "-6":
            for line in run("ip", table, "rule", "show").splitlines():
                priority = line.split(":")[0]
                if priority in ("1", "2", "3"):
                    run("ip", table, "rule", "del", "priority", priority)

    def setUp(self):
        self.addCleanup(self.forget_rules)
        self.dir = tempfile.mkdtemp(prefix="belay-metadata.")
        os.chmod(self.dir, 0o755)  # other users run jobs below it
        self.addCleanup(shutil.rmtree, self.dir)
        run("ip", "link", "set", "lo", "up")
        self.cloud = Namespace(serve)
        self.addCleanup(self.cloud.end)
        self.container_end, ready_in = os.pipe()
        self.container = Namespace(lambda ready: os.write(ready, b"c"))
        self.addCleanup(self.container.end)
        for other, name, net in (self.cloud, "cloud", "10.9.0"), (self.container, "box", "10.8.0"):
            run(
                "ip",
                "link",
                "add",
                name,
                "type",
                "veth",
                "peer",
                "name",
                "up0",
                "netns",
                str(other.pid),
            )
            run("ip", "addr", "add", net + ".1/24", "dev", name)
            run("ip", "link", "set", name, "up")
            self.addCleanup(run, "ip", "link", "del", name, check=False)
            other.ip("addr", "add", net + ".2/24", "dev", "up0")
            other.ip("link", "set", "up0", "up")
            other.ip("link", "set", "lo", "up")
            other.ip("route", "add", "default", "via", net + ".1")
        for address in V4 + "/32", WIRE + "/32", V6 + "/128":
            self.cloud.ip(
                "addr", "add", address, "dev", "lo", *(["nodad"] if ":" in address else [])
            )
        self.cloud.ip("addr", "add", "fd09::2/64", "dev", "up0", "nodad")
        run("ip", "addr", "add", "fd09::1/64", "dev", "cloud", "nodad")
        run("ip", "route", "add", V4, "via", "10.9.0.2")
        run("ip", "route", "add", WIRE, "via", "10.9.0.2")
        run("ip", "route", "add", V6, "via", "fd09::2")
        with open("/proc/sys/net/ipv4/ip_forward", "w") as f:
            f.write("1")
        self.cloud.start()

    def start_agent(self, more=""):
        """Waits until it has logged the result of the guard; then it waits for its identity."""
        config = os.path.join(self.dir, "agent.yaml")
        with open(config, "w") as f:
            f.write(more + CONFIG % self.dir)
        os.chmod(config, 0o600)
        env = {k: v for k, v in os.environ.items() if not k.startswith("BELAY_")}
        agent = subprocess.Popen(
            [BUILD + "/agent/belay-agent", "--config", config],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self.addCleanup(agent.stderr.close)
        self.addCleanup(agent.wait)
        self.addCleanup(agent.kill)
        said, end = b"", time.monotonic() + WAIT_S
        while b"checkpoints by CRIU" not in said:
            if not select.select([agent.stderr], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError("the agent does not start: %r" % said)
            piece = os.read(agent.stderr.fileno(), 4096)
            if not piece:
                break
            said += piece
        return agent, said.decode()

    def from_the_container(self, address):
        python = (
            "import socket,sys\ntry: socket.create_connection(('%s',80),10).recv(1)\nexcept OSError as e: sys.exit(1)\n"
            % address
        )
        return subprocess.run(
            ["nsenter", "-n", "-t", str(self.container.pid), sys.executable, "-c", python]
        ).returncode

    def test_only_root_gets_there(self):
        for address in V4, WIRE, V6:
            self.assertEqual(attempt(NOBODY, address, 80), 0, address)
        self.assertEqual(self.from_the_container(V4), 0)
        for again in range(2):  # a restarted agent finds its own rules
            agent, said = self.start_agent()
            self.assertNotIn("still reach", said)
            for address in V4, WIRE, V6:
                self.assertEqual(attempt(0, address, 80), 0, address)
                self.assertEqual(attempt(NOBODY, address, 80), errno.EACCES, address)
            for uid in 0, NOBODY:  # name servers share the address
                self.assertEqual(attempt(uid, V4, 53), 0)
                self.assertEqual(attempt(uid, V4, 53, b"name?"), 0)
            self.assertNotEqual(self.from_the_container(V4), 0)
            agent.kill()
            agent.wait()
            rules = run("ip", "rule", "show")
            self.assertEqual(rules.count("prohibit"), 2, rules)

    def test_a_node_that_cannot_be_guarded_does_not_start_when_that_is_required(self):
        run(
            "ip", "addr", "add", V4 + "/32", "dev", "lo"
        )  # before the kernel's rule 0 nothing comes
        self.addCleanup(run, "ip", "addr", "del", V4 + "/32", "dev", "lo")
        agent, said = self.start_agent("metadata_guard: required\n")
        self.assertEqual(agent.wait(WAIT_S), 1)
        self.assertIn("users other than root still reach it", said)

    def test_a_node_that_cannot_be_guarded_says_so(self):
        run("ip", "addr", "add", V4 + "/32", "dev", "lo")
        self.addCleanup(run, "ip", "addr", "del", V4 + "/32", "dev", "lo")
        agent, said = self.start_agent()
        self.assertIsNone(agent.poll())
        self.assertIn("users other than root still reach it", said)

    def test_it_can_be_left_open(self):
        self.start_agent("metadata_guard: off\n")
        self.assertEqual(attempt(NOBODY, V4, 80), 0)

    def test_others_processes_are_hidden(self):
        self.start_agent()
        seen = (
            "import os,sys\nos.setgid(%d);os.setuid(%d)\nsys.exit(os.path.exists('/proc/1') or os.path.exists('/proc/%d'))"
            % (NOBODY, NOBODY, os.getpid())
        )
        self.assertEqual(subprocess.run([sys.executable, "-c", seen]).returncode, 0)


if __name__ == "__main__":
    namespaces.main(
        "-n",
        "-m",
        setup="umount -l /proc; mount -t proc proc /proc",
        probe="ip link add va0 type veth peer name vb0 && "
        "ip rule add uidrange 0-0 ipproto tcp dport 1 prohibit && ip -6 rule show",
        programs=["nsenter", "ip"],
    )
