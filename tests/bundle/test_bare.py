# SPDX-License-Identifier: Apache-2.0
"""The bundle runs on a minimal Linux: a shell, /proc and /dev, and no C library."""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

BUILD = os.path.abspath(os.environ.get("BELAY_BUILD", "build"))
BUNDLE = os.path.join(BUILD, "bundle", "agent-%s.tar.gz" % os.uname().machine)
BUSYBOX = "/bin/busybox"

# Mounts belong to this process's namespace and go with it.
INSIDE = """\
mount -t proc proc %(root)s/proc && mount --rbind /dev %(root)s/dev &&
PATH=/usr/sbin:/usr/bin:/sbin:/bin exec chroot %(root)s /bin/busybox env -i PATH=/bin /bin/sh -euc '%(commands)s'
"""


class Bare(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="belay-bare.")
        self.addCleanup(shutil.rmtree, self.root)
        for name in "proc", "dev", "bin", "etc":
            os.mkdir(os.path.join(self.root, name))
        shutil.copy(BUSYBOX, self.path("bin/busybox"))
        for name in "sh", "dd", "printf", "wc", "cat":
            os.symlink("busybox", self.path("bin/" + name))

    def path(self, name):
        return os.path.join(self.root, name)

    def unpack(self, home):
        os.makedirs(self.root + home)
        with tarfile.open(BUNDLE) as tar:
            tar.extractall(self.root + home)

    def run_inside(self, commands):
        text = INSIDE % {"root": self.root, "commands": commands}
        return subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "sh", "-c", text],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            universal_newlines=True,
            timeout=50,
        )

    def version(self):
        text = subprocess.run(
            [BUILD + "/agent/belay-agent", "--version"],
            stdout=subprocess.PIPE,
            check=True,
            universal_newlines=True,
        ).stdout
        return text.split()[1]

    def test_in_its_own_place(self):
        home = "/opt/belay/" + self.version()
        self.unpack(home)
        done = self.run_inside("%s/bin/belay-agent --version && %s/bin/belay --help" % (home, home))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertTrue(
            done.stdout.startswith("belay-agent %s\nbelay: " % self.version()), done.stdout
        )

    def test_in_another_place(self):
        self.unpack("/a/place with spaces")
        done = self.run_inside(
            'cd "/a/place with spaces"; sh relocate "/a/place with spaces"; '
            "./bin/belay-agent --version; ./bin/belay --help"
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertTrue(
            done.stdout.startswith("belay-agent %s\nbelay: " % self.version()), done.stdout
        )

    def test_it_brings_what_belay_loads_by_itself(self):
        self.unpack("/b")
        done = self.run_inside(
            "sh /b/relocate /b; umask 077; printf word >/word; ! BELAY_SERVER=https://127.0.0.1:1 BELAY_TOKEN_FILE=/word "
            "BELAY_CA_FILE=/word /b/bin/belay list"
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("no belayd answers at https://127.0.0.1:1", done.stdout)

    def test_places_that_cannot_be_are_refused(self):
        self.unpack("/b")
        done = self.run_inside("! sh /b/relocate b && ! sh /b/relocate /%s" % ("x" * 600))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("absolute path", done.stdout)
        self.assertIn("too long", done.stdout)

    def test_its_programs_take_nothing_from_the_machine(self):
        self.unpack("/b")
        done = self.run_inside("sh /b/relocate /b; LD_TRACE_LOADED_OBJECTS=1 /b/bin/belay-agent")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("not found", done.stdout)
        for line in done.stdout.splitlines():
            if "=>" in line:
                self.assertIn("=> /b/bin/../lib/private/", line)


def why_not():
    if os.geteuid() != 0:
        return "a root directory of its own needs root"
    if not os.access(BUSYBOX, os.X_OK):
        return "there is no %s (Debian: busybox-static)" % BUSYBOX
    if subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        return "this machine makes no mount namespaces"
    libraries = subprocess.run(
        ["ldd", BUSYBOX], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ).stdout
    if b"=>" in libraries:
        return "%s is not static (Debian: busybox-static)" % BUSYBOX
    return None


if __name__ == "__main__":
    reason = why_not()
    if reason:
        print("SKIP: %s" % reason)
        sys.exit(0)
    unittest.main(verbosity=2)
