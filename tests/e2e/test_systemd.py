# SPDX-License-Identifier: Apache-2.0
"""The agent's unit under a real systemd, restarted and switched off under a running job.

systemd is process 1 of its own namespaces and cgroup, and shares network and file systems with the
test's machine. Its only units are the agent's, a fake network unit, and its own for a shutdown.
"""

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import unittest

from lab import BUILD, Lab, WAIT_S, undisturbed

SYSTEMD = "/lib/systemd/systemd"
UNITS = "/lib/systemd/system"
TAKEN = [
    "shutdown.target",
    "umount.target",
    "final.target",
    "poweroff.target",
    "systemd-poweroff.service",
    "network.target",
    "network-online.target",
    "remote-fs.target",
    "nss-lookup.target",
    "nss-user-lookup.target",
]
STEPS, STEP_S = 12, 0.5

NETWORK = """\
[Unit]
Before=network.target
Wants=network.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/true
ExecStop=/bin/sh -c 'pidof belay-agent >%(dir)s/agent-at-network-stop; true'
"""
BOOT = """\
[Unit]
Wants=belay-agent.service network.service
AllowIsolate=yes
"""
INIT = """\
echo $$ >%(cgroup)s/cgroup.procs || exit 1
exec unshare --pid --mount --ipc --uts --cgroup --fork --mount-proc --kill-child sh -c '
mount -t tmpfs tmpfs /run &&
mount -t cgroup2 none /sys/fs/cgroup &&
mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys &&
export container=belay SYSTEMD_UNIT_PATH=%(units)s &&
exec %(systemd)s --system --unit=boot.target --log-target=console --log-level=info'
"""


def lacks():
    """Why the test cannot run here; "" if it can."""
    if os.geteuid() != 0:
        return "it takes root"
    for path in [SYSTEMD] + [os.path.join(UNITS, name) for name in TAKEN]:
        if not os.path.exists(path):
            return "there is no %s" % path
    for program in "nsenter", "pidof", "unshare":
        if not shutil.which(program):
            return "there is no %s" % program
    if not cgroups():
        return "there are no cgroups of version 2"
    try:
        os.rmdir(make_cgroup("belay-systemd-probe-%d" % os.getpid()))
    except OSError as error:
        return "a cgroup cannot be made: %s" % error
    done = subprocess.run(
        [
            "unshare",
            "--pid",
            "--mount",
            "--cgroup",
            "--fork",
            "--mount-proc",
            "mount",
            "-t",
            "cgroup2",
            "none",
            "/sys/fs/cgroup",
        ],
        stderr=subprocess.PIPE,
        universal_newlines=True,
    )
    return "" if done.returncode == 0 else done.stderr.strip()


def cgroups():
    """The mount point of cgroup v2; "" if none."""
    with open("/proc/mounts") as f:
        found = [line.split() for line in f]
    return next((fields[1] for fields in found if fields[2] == "cgroup2"), "")


def make_cgroup(name):
    path = os.path.join(cgroups(), name)
    os.mkdir(path)
    return path


class Machine:
    def __init__(self, lab):
        self.lab = lab
        self.units = os.path.join(lab.dir, "units")
        os.mkdir(self.units)
        for name in TAKEN:
            shutil.copy(os.path.join(UNITS, name), self.units)
        for name in "sysinit.target", "basic.target":
            lab.write("units/" + name, "[Unit]\n")
        lab.write("units/network.service", NETWORK % {"dir": lab.dir})
        lab.write("units/boot.target", BOOT)
        self.install_agent()
        self.cgroup = make_cgroup("belay-systemd-%d" % os.getpid())
        self.process = None

    def install_agent(self):
        """The unit of the build, for this directory."""
        lab = self.lab
        with open(os.path.join(BUILD, "agent", "belay-agent.service")) as f:
            unit = f.read()
        unit, n = re.subn(
            "^ExecStart=.*$",
            "ExecStart=%s/bin/belay-agent --config %s/agent.yaml" % (lab.dir, lab.dir),
            unit,
            flags=re.M,
        )
        assert n == 1
        lab.write("units/belay-agent.service", unit)
        with open(os.path.join(lab.home, "ca.pem")) as f:
            ca = "".join("  " + line for line in f)
        with open(os.path.join(lab.home, "belayd.log")) as f:
            server = re.search(r"belayd is ready url=(\S+)", f.read()).group(1)
        token = lab.belay("token", "create", "--join", "--pool", "base").strip()
        lab.write(
            "agent.yaml",
            "server: %s\ntoken: %s\ndir: %s/node\nca: |\n%s"
            % (server.replace("127.0.0.1", "localhost"), token, lab.dir, ca),
        )

    def start(self):
        script = self.lab.write(
            "init", INIT % {"cgroup": self.cgroup, "units": self.units, "systemd": SYSTEMD}
        )
        with open(os.path.join(self.lab.dir, "machine.log"), "a") as log:
            self.process = subprocess.Popen(
                ["sh", script],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "LAB": self.lab.dir},
            )

    def init(self):
        with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as f:
            return int(f.read().split()[0])

    def restart_agent(self):
        subprocess.run(
            [
                "nsenter",
                "-t",
                str(self.init()),
                "-p",
                "-m",
                "-C",
                "systemctl",
                "restart",
                "belay-agent",
            ],
            check=True,
            timeout=WAIT_S,
        )

    def power_off(self):
        """Like its power button: systemd shuts down on SIGRTMIN+4."""
        os.kill(self.init(), signal.SIGRTMIN + 4)
        self.process.wait(WAIT_S)

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.kill()  # and with it, by --kill-child, all of its namespace
            self.process.wait(WAIT_S)
        self.wait_until_empty()
        for root, names, _ in os.walk(self.cgroup, topdown=False):
            for name in names:
                os.rmdir(os.path.join(root, name))
        os.rmdir(self.cgroup)

    def wait_until_empty(self):
        """Waits until the killed processes are gone."""
        end = time.monotonic() + WAIT_S
        with open(os.path.join(self.cgroup, "cgroup.events")) as f:
            changes = select.poll()
            changes.register(f, select.POLLPRI)
            while "populated 1" in f.read():
                if time.monotonic() > end:
                    raise AssertionError("processes are left in %s" % self.cgroup)
                changes.poll(1000)
                f.seek(0)


class Own(Lab):
    def provision(self, ports):
        return {"pools": {"base": {}}}

    def wait_for_no_instances(self):
        return []  # none


class Systemd(unittest.TestCase):
    def on_a_machine(self, do):
        with Own() as lab:
            machine = Machine(lab)
            try:
                machine.start()
                job = lab.submit("chain.py", STEPS, STEP_S, method="coop", every_ms=3600000)
                lab.wait_log(job, r"^step 4 ")
                do(lab, machine, job)
            finally:
                machine.end()

    def test_a_machine_that_is_switched_off_and_comes_back(self):
        self.on_a_machine(self.switch_off)

    def test_an_agent_that_is_restarted_leaves_the_job(self):
        self.on_a_machine(self.restart)

    def restart(self, lab, machine, job):
        before = lab.agents()
        machine.restart_agent()
        self.assertEqual(set(lab.agents()) & set(before), set())
        shown = lab.wait_ended(job)
        self.assertEqual([a["end"] for a in shown["attempts"]], ["succeeded"])
        self.assertEqual(shown["checkpoints"], [])
        self.assertEqual(lab.log(job), undisturbed("chain.py", STEPS, 0))

    def switch_off(self, lab, machine, job):
        machine.power_off()
        ended = lab.wait(lambda: [a for a in lab.show(job)["attempts"] if a["end"]], "its end")
        self.assertEqual(ended[0]["end"], "reclaimed")
        saved = lab.show(job)["checkpoints"]
        self.assertEqual([c["cause"] for c in saved], ["notice"])
        with open(os.path.join(lab.dir, "agent-at-network-stop")) as f:
            self.assertEqual(f.read(), "")  # it had ended before the network went
        machine.start()
        shown = lab.wait_ended(job)
        self.assertEqual(shown["job"]["end"], "succeeded")
        self.assertEqual(shown["job"]["lost_steps"], 0)
        self.assertEqual(len({a["node"] for a in shown["attempts"]}), 1)
        said = lab.said(job)
        self.assertEqual(said, undisturbed("chain.py", STEPS, 0))


if __name__ == "__main__":
    missing = lacks()
    if missing:
        print("skipped: " + missing)
        sys.exit(77)
    unittest.main(verbosity=2)
