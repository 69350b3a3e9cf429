# SPDX-License-Identifier: Apache-2.0
"""The images of packaging/Containerfile: built by the real podman from packages, on a base that
debootstrap makes, and started: belayd is healthy without root, a job runs on the agent.

BELAY_PACKAGES may name a folder with packages, BELAY_DEBIAN_ROOT the file system for the base.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import unittest

from machine import MORTAL, Folder, debootstrap
from test_packages import SOURCE, build

WAIT_S = 180
CONFIGURATION = """\
cluster: lab
listen: 127.0.0.1:%(port)d
server: https://localhost:%(port)d
state: /var/lib/belay
socket: /run/belay/belayd.sock
socket_users: all
pools: {base: {kind: reserved}}
"""
AGENT = """\
server: https://localhost:%d
token_file: /etc/belay/join-token
ca: |
%s"""
USE = """\
umask 077
belay token create --user ann >/tmp/token
export BELAY_SERVER=https://localhost:%d BELAY_TOKEN_FILE=/tmp/token
BELAY_CA_FILE=/var/lib/belay/ca.pem belay run id -un
"""
# Limits that root without CAP_SYS_RESOURCE may set: podman requests higher ones.
RUN = (
    *("run", "-d", "--network=host", "--cgroups=disabled"),
    *("--ulimit=nofile=4096:4096", "--ulimit=nproc=1024:1024"),
)


class Containers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(cls.podman, "rm", "-f", "--all", check=False)
        packages = build(cls.enterClassContext)
        root = cls.dir + "/root"
        debootstrap("bookworm", root)
        shutil.copy("/etc/resolv.conf", root + "/etc/resolv.conf")
        tar = cls.dir + "/base.tar"
        subprocess.run(["tar", "-C", root, "-cf", tar, "."], check=True, timeout=WAIT_S * 3)
        cls.podman("import", "-q", tar, "localhost/base:1")
        for target in "belayd", "agent":
            cls.podman(
                *("build", "-q", "--isolation=chroot", "--network=host", "--format=docker"),
                *("--target", target),
                *("--build-arg", "BASE=localhost/base:1", "-t", "localhost/%s:1" % target),
                *("-f", SOURCE + "/packaging/Containerfile", packages),
                timeout=1500,
            )

    @classmethod
    def podman(cls, *what, check=True, timeout=WAIT_S):
        storage = ["--root", cls.dir + "/storage", "--runroot", cls.dir + "/run"]
        done = subprocess.run(
            ["podman", *storage, "--cgroup-manager=cgroupfs", *what],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
        )
        if check and done.returncode != 0:
            raise AssertionError("podman %s: %s" % (" ".join(what), done.stdout[-3000:]))
        return done.stdout

    def wait_for(self, fact, what):
        end = time.monotonic() + WAIT_S
        while not fact():
            if time.monotonic() > end:
                self.fail(what + ": " + self.podman("logs", "belayd", check=False)[-2000:])
            time.sleep(0.2)

    def test_a_job_runs_in_the_containers(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        with open(self.dir + "/belayd.yaml", "w") as f:
            f.write(CONFIGURATION % {"port": self.port})
        os.chmod(self.dir, 0o755)
        self.podman(
            *(*RUN, "--name", "belayd", "--read-only", "--cap-drop=all"),
            *("-v", self.dir + "/belayd.yaml:/etc/belay/belayd.yaml:ro"),
            *("-v", "state:/var/lib/belay", "--tmpfs", "/run/belay:mode=1777"),
            "localhost/belayd:1",
        )
        enter = ("exec", "belayd")
        self.wait_for(
            lambda: '"base"' in self.podman(*enter, "belay", "pools", "--json", check=False),
            "belayd does not answer",
        )
        self.assertEqual(self.podman(*enter, "id", "-un").strip(), "belay")
        self.assertEqual(self.podman("healthcheck", "run", "belayd").strip(), "")
        user = json.loads(self.podman("inspect", "localhost/belayd:1"))[0]["User"]
        self.assertEqual(user, "belay")
        self.start_agent(enter)
        said = self.podman(*enter, "sh", "-ec", USE % self.port)
        self.assertEqual(said.split()[-1], "ann", said)
        self.assertFalse(os.path.exists(self.dir + "/node/join-token"), "it can be used again")

    def start_agent(self, enter):
        token = self.podman(*enter, "belay", "token", "create", "--join", "--pool", "base")
        ca = self.podman(*enter, "cat", "/var/lib/belay/ca.pem")
        indented = "".join("  %s\n" % line for line in ca.splitlines())
        os.mkdir(self.dir + "/node")
        for name, text in ("join-token", token), ("agent.yaml", AGENT % (self.port, indented)):
            with open("%s/node/%s" % (self.dir, name), "w") as f:
                f.write(text)
            os.chmod("%s/node/%s" % (self.dir, name), 0o600)
        self.podman(
            *(*RUN, "--name", "agent", "--privileged", "--cgroupns=host"),
            *("-v", self.dir + "/node:/etc/belay", "-v", "node:/var/lib/belay-agent"),
            "localhost/agent:1",
        )
        self.podman("exec", "agent", "useradd", "-m", "ann")


if __name__ == "__main__":
    if os.geteuid() != 0 or not shutil.which("podman"):
        print("skipped: it takes root and podman")
        sys.exit(77)
    if sys.argv[1:]:
        Containers.dir = sys.argv.pop()
        unittest.main(verbosity=2)
    # In namespaces, which go with this process, as does what podman starts and mounts in them. crun
    # wants cgroups of one version.
    alone = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec"]
    change = ""
    if os.path.isdir("/sys/fs/cgroup/unified"):
        change = "umount -l /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup\n"
    with Folder("belay-containers.") as made:
        again = [sys.executable, "-B", sys.argv[0], made]
        script = change + '"$@" || exit 1'  # not exec: sh waits for orphans
        sys.exit(subprocess.run([*MORTAL, *alone, script, "sh", *again]).returncode)
