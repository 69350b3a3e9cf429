# SPDX-License-Identifier: Apache-2.0
"""scripts/setup installs packages without starting, stopping or enabling their services.

Runs the real script and deb-systemd-helper in a mount namespace that cannot change the machine's
files. Fakes replace dpkg-query; apt-get, which does what the maintainer scripts of a package
with a service do; and invoke-rc.d (the real one starts nothing on a machine without an init
system).
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import namespaces  # noqa: E402

SOURCE = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
POLICY = "/usr/sbin/policy-rc.d"
COVERED = ["/etc", "/usr/sbin", "/usr/lib/systemd", "/var/lib/systemd"]
LINK = "/etc/systemd/system/multi-user.target.wants/%s.service"

UNIT = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"
INIT = """#!/bin/sh
case $1 in start) : >%(dir)s/%(name)s.runs ;; stop) rm -f %(dir)s/%(name)s.runs ;; esac
"""
# It installs a new service, and upgrades one that the machine has, which asks for a restart.
APT_GET = """#!/bin/sh
case " $* " in *" install "*) ;; *) exit 0 ;; esac
if [ -e %(dir)s/fails ]; then rm %(dir)s/fails; kill -KILL $PPID; exit 1; fi
DPKG_MAINTSCRIPT_PACKAGE=new-package deb-systemd-helper enable new-probe.service
invoke-rc.d new-probe start
invoke-rc.d old-probe stop
invoke-rc.d old-probe start
: >%(dir)s/installed
"""
INVOKE = """#!/bin/sh
policy=0
[ ! -x /usr/sbin/policy-rc.d ] || /usr/sbin/policy-rc.d "$1" "$2" || policy=$?
case $policy in 0 | 104) /etc/init.d/"$1" "$2" ;; esac
"""
DPKG_QUERY = """#!/bin/sh
case $1 in
-L) [ "$2" = new-package ] && echo /lib/systemd/system/new-probe.service; exit 0 ;;
esac
case $# in
3) printf 'old-package installed\\n'; [ ! -e %(dir)s/installed ] || printf 'new-package installed\\n' ;;
4) [ ! -e %(dir)s/installed ] || printf installed ;;
esac
"""


class Setup(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="belay-setup.")
        self.addCleanup(shutil.rmtree, self.dir)
        self.run_command("mount", "-t", "tmpfs", "tmpfs", self.dir)
        self.addCleanup(self.run_command, "umount", "-l", self.dir)
        for n, path in enumerate(COVERED):
            upper, work = self.path("upper%d" % n), self.path("work%d" % n)
            os.makedirs(path, exist_ok=True)
            os.mkdir(upper), os.mkdir(work)
            self.run_command(
                "mount",
                "-t",
                "overlay",
                "overlay",
                "-o",
                "lowerdir=%s,upperdir=%s,workdir=%s" % (path, upper, work),
                path,
            )
            self.addCleanup(self.run_command, "umount", "-l", path)
        os.mkdir(self.path("bin"))
        self.put(self.path("bin/apt-get"), APT_GET)
        self.put(self.path("bin/dpkg-query"), DPKG_QUERY)
        self.put(self.path("bin/invoke-rc.d"), INVOKE)
        for name in "new-probe", "old-probe":
            self.put("/etc/init.d/" + name, INIT)
            self.put("/usr/lib/systemd/system/%s.service" % name, UNIT)
        if os.path.exists(POLICY):
            os.unlink(POLICY)
        self.run_command(
            "env",
            "DPKG_MAINTSCRIPT_PACKAGE=old-package",
            "deb-systemd-helper",
            "enable",
            "old-probe.service",
        )
        self.run_command("invoke-rc.d", "old-probe", "start")
        self.assertTrue(self.runs("old-probe") and self.is_enabled("old-probe"))

    def path(self, name):
        return os.path.join(self.dir, name)

    def put(self, path, text):
        values = {"%(dir)s": self.dir, "%(name)s": os.path.basename(path)}
        for name, value in values.items():
            text = text.replace(name, value)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o755)

    def run_command(self, *command, check=True):
        env = {**os.environ, "PATH": self.path("bin") + ":/usr/sbin:/usr/bin:/sbin:/bin"}
        return subprocess.run(
            command,
            env=env,
            check=check,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def setup(self, check=True):
        return self.run_command(os.path.join(SOURCE, "scripts", "setup"), "build", check=check)

    def runs(self, name):
        return os.path.exists(self.path(name + ".runs"))

    def is_enabled(self, name):
        return os.path.lexists(LINK % name)

    def check_services(self):
        self.assertFalse(self.runs("new-probe"), "an installed service was started")
        self.assertFalse(self.is_enabled("new-probe"), "an installed service was enabled")
        self.assertTrue(self.runs("old-probe"), "the machine's own service was stopped")
        self.assertTrue(self.is_enabled("old-probe"), "the machine's own service was disabled")

    def test_an_installed_service_is_neither_started_nor_enabled(self):
        self.setup()
        self.assertTrue(os.path.exists(self.path("installed")))
        self.check_services()
        self.assertFalse(os.path.exists(POLICY))
        self.setup()
        self.check_services()

    def test_the_machines_own_policy_is_there_again(self):
        own = "#!/bin/sh\nexit 104\n"
        self.put(POLICY, own)
        self.setup()
        self.check_services()
        with open(POLICY) as f:
            self.assertEqual(f.read(), own)

    def test_a_run_that_was_killed_is_made_good_by_the_next(self):
        own = "#!/bin/sh\nexit 104\n"
        self.put(POLICY, own)
        self.put(self.path("fails"), "")
        self.assertNotEqual(self.setup(check=False).returncode, 0)
        self.setup()
        self.check_services()
        with open(POLICY) as f:
            self.assertEqual(f.read(), own)
        self.assertFalse(os.path.exists(POLICY + ".kept"))


if __name__ == "__main__":
    namespaces.main(
        "-m",
        probe="d=$(mktemp -d) && mount -t tmpfs t $d && mkdir $d/a $d/b && "
        "mount -t overlay o -o lowerdir=/etc,upperdir=$d/a,workdir=$d/b /etc",
        programs=["deb-systemd-helper"],
    )
