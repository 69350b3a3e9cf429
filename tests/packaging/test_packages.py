# SPDX-License-Identifier: Apache-2.0
"""The life of the packages: built by scripts/package, installed in a fresh Debian under systemd,
used by two users, upgraded under a running job, and purged without a trace.

BELAY_PACKAGES may name a folder that scripts/package has filled.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

from machine import Folder, Machine, lacks, run

SOURCE = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PACKAGES = {
    "belay",
    "belay-agent",
    "belay-emulator",
    "belayd",
    "libbelay-dev",
    "libbelay0",
    "python3-belay",
}
# Where a package manager and systemd write, whatever is installed.
THEIRS = {
    "/dev",
    "/home",
    "/proc",
    "/root",
    "/run",
    "/sys",
    "/tmp",
    "/packages",
    "/upgrade",
    "/var/cache",
    "/var/lib/apt",
    "/var/lib/dpkg",
    "/var/lib/systemd",
    "/var/log",
    "/var/tmp",
}
OWNERS = """\
/etc/belay/belayd.yaml root:belay 640
/run/belay belay:belay 755
/run/belay/belayd.sock belay:belay 666
/var/lib/belay belay:belay 700
/var/lib/belay/belay.db belay:belay 600
"""
INSTALLED = """\
/usr/bin/belay
/usr/bin/belay-agent
/usr/bin/belay-emulator
/usr/bin/sbatch
/usr/include/belay.h
/usr/lib/python3/dist-packages/belay/client.py
/usr/lib/python3/dist-packages/belay/py.typed
/usr/lib/sysusers.d/belayd.conf
/usr/sbin/belayd
/usr/share/bash-completion/completions/belay
/usr/share/belay/belay/client.py
/usr/share/belay/bundle/agent-x86_64.tar.gz
/usr/share/fish/vendor_completions.d/belay.fish
/usr/share/man/man1/belay.1.gz
/usr/share/man/man8/belayd.8.gz
/usr/share/zsh/vendor-completions/_belay
"""
# Saves whenever it is asked to, until the file that it is given appears.
JOB = """\
import os, sys, time, belay
step, name = 0, os.urandom(4).hex()
print("started", name, flush=True)
while not os.path.exists(sys.argv[1]):
    step += 1
    if belay.should_checkpoint():
        with open(os.path.join(belay.checkpoint_dir(), "state"), "w") as f:
            f.write(str(step))
        belay.commit(step)
        print("saved", flush=True)
    time.sleep(0.02)
print("done", name, flush=True)
"""


def build(enter):
    """Folder of the packages. enter: what keeps a context until the end of the test."""
    made = os.environ.get("BELAY_PACKAGES")
    if made:
        return made
    folder = enter(Folder("belay-packages."))
    env = {**os.environ, "DEB_BUILD_OPTIONS": "noautodbgsym"}
    run([os.path.join(SOURCE, "scripts", "package"), folder], timeout=3000, env=env)
    return folder


def repack(package, folder, version, newer):
    """The same package as of another version."""
    with Folder("belay-repack.") as tree:
        run(["dpkg-deb", "-R", package, tree])
        control = os.path.join(tree, "DEBIAN", "control")
        with open(control) as f:
            text = f.read()
        text = text.replace("Version: " + version, "Version: " + newer)
        with open(control, "w") as f:
            f.write(text.replace(version + ")", newer + ")"))
        run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, folder])


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = build(cls.enterClassContext)
        cls.debs = glob.glob(cls.folder + "/*.deb")

    def test_there_are_all_packages_and_the_wheel(self):
        names = {os.path.basename(path).split("_")[0] for path in self.debs}
        self.assertEqual({name for name in names if not name.endswith("-dbgsym")}, PACKAGES)
        self.assertEqual(len(glob.glob(self.folder + "/belay_scheduler-*.whl")), 1)

    @unittest.skipUnless(shutil.which("lintian"), "lintian is not installed")
    def test_lintian_has_nothing_to_say(self):
        changes = glob.glob(self.folder + "/*.changes")
        self.assertEqual(len(changes), 1)
        done = subprocess.run(
            ["lintian", "--allow-root", "--fail-on", "error,warning", *changes],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
        )
        self.assertEqual(
            (done.returncode, re.findall("(?m)^[EW]: .*", done.stdout)), (0, []), done.stdout
        )

    def test_they_live_and_go(self):
        with Machine() as m:
            self.put_packages(m)
            before = m.files(THEIRS)
            m.boot()
            for user in "ann", "bob":
                m.sh("useradd -m %s" % user)
            before |= m.files(THEIRS)
            for step in (
                self.install,
                self.check,
                self.use_by_two_users,
                self.join,
                self.save_as_root_and_clean_as_belay,
                self.upgrade_under_a_job,
                self.hang,
            ):
                print("==", step.__name__.replace("_", " "), flush=True)
                step(m)
            print("== purge", flush=True)
            self.purge(m, before)

    def put_packages(self, m):
        """The packages, the same in a newer version, and what they depend on."""
        for folder in "/packages", "/upgrade":
            os.mkdir(m.root + folder)
        self.version = run(["dpkg-deb", "-f", self.debs[0], "Version"]).strip()
        for package in self.debs:
            if "-dbgsym_" not in package:
                shutil.copy(package, m.root + "/packages")
                repack(package, m.root + "/upgrade", self.version, self.version + "+1")
        m.before_boot("apt-get", "update", "-q")
        would = m.before_boot("sh", "-c", "apt-get install -s /packages/*.deb")
        needed = set(re.findall(r"(?m)^Inst (\S+)", would)) - PACKAGES
        m.before_boot("apt-get", "install", "-y", "-q", *sorted(needed))

    def install(self, m):
        m.sh("apt-get install -y -q /packages/*.deb", timeout=600)
        self.assertEqual(m.sh("systemctl is-active belayd").strip(), "active")
        self.assertEqual(
            m.sh("for p in Type User NRestarts; do systemctl show -P $p belayd; done").split(),
            ["notify", "belay", "0"],
        )
        self.assertEqual(m.sh("systemctl is-enabled belayd").strip(), "enabled")
        self.assertEqual(m.sh("systemctl is-enabled belay-agent || true").strip(), "disabled")

    def check(self, m):
        for path in INSTALLED.split():
            self.assertTrue(os.path.lexists(m.root + path), path)
        paths = " ".join(line.split()[0] for line in OWNERS.splitlines())
        self.assertEqual(m.sh("stat -c '%%n %%U:%%G %%a' %s" % paths), OWNERS)
        checked = m.sh("runuser -u belay -- belayd --check --config /etc/belay/belayd.yaml")
        self.assertIn("the configuration is fine", checked)
        m.sh("systemd-analyze security --offline=true --threshold=25 --no-pager belayd.service")
        self.assertEqual(
            m.sh("grep CapEff /proc/$(systemctl show -P MainPID belayd)/status").split()[1],
            "0" * 16,
        )
        m.sh("python3 -c 'import belay; help(belay.commit); belay.Client'")

    def use_by_two_users(self, m):
        self.assertEqual(m.sh("belay submit --hold --wrap true", "ann"), "Submitted batch job 1\n")
        self.assertEqual(m.sh("sbatch --hold --wrap true", "bob"), "Submitted batch job 2\n")
        self.assertIn(" ann ", m.sh("squeue", "bob"))
        refused = m.sh("! belay cancel 1 2>&1", "bob")
        self.assertIn("ann", refused)
        m.sh("belay cancel 2", "bob")
        m.sh("belay cancel 1")  # root is an administrator

    def join(self, m):
        m.sh(
            """umask 077
belay token create --join --pool base >/etc/belay/join-token
{ echo server: https://localhost:7443; echo token_file: /etc/belay/join-token; echo "ca: |"
sed 's/^/  /' /var/lib/belay/ca.pem; } >/etc/belay/agent.yaml
belay-agent --check --config /etc/belay/agent.yaml
systemctl enable --now belay-agent"""
        )
        self.assertEqual(m.sh("belay run id -un", "ann").splitlines()[-1], "ann")
        self.assertEqual(m.sh("belay run id -un", "bob").splitlines()[-1], "bob")

    def start_job(self, m):
        """Starts JOB as ann; returns its number and the file that ends it."""
        m.write("/home/ann/job.py", JOB)
        number = m.sh(
            "belay submit --checkpoint coop --checkpoint-every 1s --checkpoints-after delete "
            "-o ~/out --wrap 'exec python3 job.py end-%d' | tr -dc 0-9" % self.jobs,
            "ann",
        )
        end = "/home/ann/end-%d" % self.jobs
        self.jobs += 1
        m.sh("until grep -q saved /home/ann/out 2>/dev/null; do sleep 0.1; done")
        return number, end

    jobs = 0

    def save_as_root_and_clean_as_belay(self, m):
        number, end = self.start_job(m)
        where = "/var/lib/belay/store"
        self.assertNotEqual(m.sh("find %s -path '*/jobs/*' -type f" % where), "")
        # A file that is being written is root's until it is complete: none may remain so.
        m.sh("while find %s ! -user belay | grep -q .; do sleep 0.1; done" % where)
        m.sh("touch %s" % end)
        m.sh("until belay show %s | grep -q succeeded; do sleep 0.1; done" % number)
        m.sh("while find %s -path '*/chunks/*' -type f | grep -q .; do sleep 0.1; done" % where)
        m.sh("rm /home/ann/out")

    def upgrade_under_a_job(self, m):
        number, end = self.start_job(m)
        units = "belayd belay-agent"
        before = [m.sh("systemctl show -P MainPID %s" % unit) for unit in units.split()]
        m.sh("apt-get install -y -q /upgrade/*.deb", timeout=600)
        self.assertIn("+1", m.sh("dpkg-query -W -f '${Version}' belayd"))
        after = [m.sh("systemctl show -P MainPID %s" % unit) for unit in units.split()]
        self.assertEqual(set(before) & set(after), set())
        self.assertEqual(m.sh("systemctl is-active %s" % units).split(), ["active", "active"])
        m.sh("touch %s" % end)
        m.sh("until belay show %s | grep -q succeeded; do sleep 0.1; done" % number)
        # By the process that was there before.
        said = m.sh("grep -v saved /home/ann/out").split()
        self.assertEqual(said, ["started", said[1], "done", said[1]])
        self.assertEqual(m.sh("sacct -j %s -n -o State -X" % number, "ann").split(), ["COMPLETED"])
        self.assertEqual(len(json.loads(m.sh("belay show --json %s" % number))["attempts"]), 1)

    def hang(self, m):
        m.sh(
            """mkdir -p /run/systemd/system/belayd.service.d
printf '[Service]\\nWatchdogSec=3\\n' >/run/systemd/system/belayd.service.d/test.conf
systemctl daemon-reload
systemctl restart belayd
kill -STOP $(systemctl show -P MainPID belayd)
until [ "$(systemctl show -P NRestarts belayd)" -ge 1 ]; do sleep 0.1; done
until systemctl is-active -q belayd; do sleep 0.1; done
belay list
rm -r /run/systemd/system/belayd.service.d
systemctl daemon-reload"""
        )

    def purge(self, m, before):
        names = " ".join(sorted(PACKAGES))
        m.sh("systemctl disable --now belay-agent")
        m.sh("apt-get remove -y -q %s" % names, timeout=600)
        self.assertTrue(os.path.exists(m.root + "/etc/belay/belayd.yaml"))
        self.assertTrue(os.path.exists(m.root + "/var/lib/belay/belay.db"))
        self.assertNotEqual(m.sh("systemctl is-active belayd || true").strip(), "active")
        m.sh("dpkg --purge %s" % names, timeout=600)  # apt knows no package without a repository
        self.assertEqual(sorted(m.files(THEIRS) - before), [])
        self.assertEqual(m.sh("getent passwd belay || getent group belay || true"), "")
        self.assertEqual(
            m.sh("ls -d /run/belay /var/lib/belay* /etc/belay 2>/dev/null || true"), ""
        )
        self.assertEqual(
            m.sh("find /var/lib/systemd /etc/systemd /run/systemd -name '*belay*'"), ""
        )
        left = m.sh("dpkg-query -W -f '${db:Status-Status} ${Package}\\n' '*belay*' || true")
        self.assertEqual(re.findall("(?m)^(?:installed|config-files) .*", left), [])


if __name__ == "__main__":
    missing = lacks()
    if missing:
        print("skipped: " + missing)
        sys.exit(77)
    unittest.main(verbosity=2)
