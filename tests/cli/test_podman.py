# SPDX-License-Identifier: Apache-2.0
"""Jobs in containers of the real podman: their view, entering, saving, moving and ending them, and
that nothing of them remains. Skipped where podman is not installed, or cannot start anything;
scripts/test --real installs it."""

import ctypes
import json
import os
import shutil
import subprocess
import tempfile
import unittest

from test_local import WAIT_S, Home

IMAGE = "localhost/busybox:1"
APPLETS = "sh cat echo env grep id ls pwd sleep touch true uname".split()
PODMAN = shutil.which("podman")

# Its own storage, and limits that root without CAP_SYS_RESOURCE may set: podman requests higher
# ones than allowed.
WRAPPER = """#!/bin/bash
args=()
for a in "$@"; do
    case $a in --ulimit=host) args+=(%s) ;; *) args+=("$a") ;; esac
done
exec "%s" --root "%s/storage" --runroot "%s/run" "${args[@]}"
"""
LIMITS = ("--ulimit=host", "--ulimit=nofile=1024:1024 --ulimit=nproc=1024:1024")


def pure_cgroups():
    """podman's crun can run without its own cgroups, but not on a machine with both versions:
    provides one version, in private mounts.
    """
    if os.geteuid() != 0 or not os.path.isdir("/sys/fs/cgroup/unified"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    CLONE_NEWNS, MS_REC_PRIVATE, MNT_DETACH = 0x20000, 0x44000, 2
    for done in (
        libc.unshare(CLONE_NEWNS),
        libc.mount(b"none", b"/", None, MS_REC_PRIVATE, None),
        libc.umount2(b"/sys/fs/cgroup", MNT_DETACH),
        libc.mount(b"cgroup2", b"/sys/fs/cgroup", b"cgroup2", 0, None),
    ):
        if done != 0:
            raise unittest.SkipTest("no mounts of our own: " + os.strerror(ctypes.get_errno()))


@unittest.skipUnless(
    PODMAN and os.path.exists("/bin/busybox"), "needs podman, crun and busybox-static"
)
class Podman(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        pure_cgroups()
        cls.dir = tempfile.mkdtemp(prefix="belay-podman.")
        cls.addClassCleanup(cls.remove)
        cls.podman = os.path.join(cls.dir, "podman")
        bin = os.path.join(cls.dir, "image", "bin")
        os.makedirs(bin)
        shutil.copy("/bin/busybox", bin)
        for name in APPLETS:
            os.symlink("busybox", os.path.join(bin, name))
        with open(os.path.join(bin, "..", "in-image"), "w") as f:
            f.write("of the image\n")
        said = ""
        for limits in LIMITS:
            with open(cls.podman, "w") as f:
                f.write(WRAPPER % (limits, PODMAN, cls.dir, cls.dir))
            os.chmod(cls.podman, 0o755)
            tar = subprocess.run(
                ["tar", "-C", os.path.join(cls.dir, "image"), "-c", "."],
                stdout=subprocess.PIPE,
                check=True,
            ).stdout
            cls.run_podman("import", "-", IMAGE, input=tar, check=True)
            done = cls.run_podman(
                "--cgroup-manager=cgroupfs",
                "run",
                "--rm",
                "--cgroups=disabled",
                "--network=host",
                "--ulimit=host",
                IMAGE,
                "true",
            )
            if done.returncode == 0:
                return
            said = done.stderr.decode().strip()
        raise unittest.SkipTest("podman starts nothing here: " + said)

    @classmethod
    def run_podman(cls, *arguments, **more):
        return subprocess.run(
            [cls.podman, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=WAIT_S,
            **more
        )

    @classmethod
    def remove(cls):
        for place in ("storage/overlay", "storage"):  # podman mounts it upon itself
            subprocess.run(
                ["umount", "-l", os.path.join(cls.dir, place)], stderr=subprocess.DEVNULL
            )
        shutil.rmtree(cls.dir)

    def setUp(self):
        self.h = Home().__enter__()
        self.h.env["PATH"] = self.dir + ":" + os.environ["PATH"]
        done = self.h.belay("up")
        self.assertEqual(done.returncode, 0, done.stderr)

    def tearDown(self):
        self.h.__exit__(None, None, None)
        left = self.run_podman("ps", "--all", "--format", "{{.Names}}").stdout.decode()
        self.assertEqual(left, "", "containers that stayed")

    def follow(self, job):
        p = self.h.start("logs", "-f", job)
        return p

    def test_a_script_runs_in_the_image_and_is_entered_there(self):
        self.h.belay(
            "submit",
            "--image",
            IMAGE,
            "--export",
            "GIVEN=a b",
            self.h.script(
                'cat /in-image; pwd; echo "$GIVEN" $BELAY_JOB_ID; ls -d "$BELAY_CONTROL_DIR" >/dev/null && touch /made && echo up\nexec sleep 1000\n'
            ),
        )
        follower = self.follow("1")
        seen = [follower.stdout.readline() for _ in range(4)]
        self.assertEqual(seen, ["of the image\n", self.h.dir + "\n", "a b 1\n", "up\n"])
        done = self.h.belay("exec", "1", "--", "sh", "-c", "ls /made; cat; exit 4", text="in\n")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (4, "/made\nin\n", ""))
        self.assertEqual(self.h.belay("cancel", "1").returncode, 0)
        follower.communicate(timeout=WAIT_S)

    def test_it_is_saved_and_goes_on(self):
        job = self.h.script(
            '[ $BELAY_RESTORED = 1 ] && cat "$BELAY_CHECKPOINT_DIR/i" && exit 0\n'
            "trap 'echo state of 1 >\"$BELAY_CHECKPOINT_DIR/i\"; exit 85' USR1\necho up\nwhile :; do sleep 0.05; done\n"
        )
        self.h.belay("submit", "--image", IMAGE, "--checkpoint", "signal", job)
        follower = self.follow("1")
        self.assertEqual(follower.stdout.readline(), "up\n")
        self.assertEqual(self.h.belay("requeue", "1").returncode, 0)
        self.assertRegex(
            follower.communicate(timeout=WAIT_S)[0], r"resumed from checkpoint 1\.1.*\nstate of 1\n"
        )
        shown = json.loads(self.h.belay("show", "1", "--json").stdout)
        self.assertEqual(shown["job"]["end"], "succeeded")

    def test_who_does_not_listen_is_killed_and_leaves_no_container(self):
        job = self.h.script("trap '' TERM INT HUP USR1\necho up\nwhile :; do sleep 0.05; done\n")
        self.h.belay("submit", "--image", IMAGE, job)
        follower = self.follow("1")
        self.assertEqual(follower.stdout.readline(), "up\n")
        self.assertEqual(self.h.belay("cancel", "1").returncode, 0)
        follower.communicate(timeout=WAIT_S)

    def test_a_missing_image_is_reported(self):
        done = self.h.belay("submit", "--wait", "--image", "none:1", "--wrap", "true")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(
            self.h.belay("logs", "1").stdout, r"belay: the image none:1 is not available: ."
        )

    def test_exit_codes_and_signals_are_the_scripts(self):
        for script, code in (("exit 7", 7), ("kill -TERM $$", 143)):
            self.assertEqual(
                self.h.belay("run", "--image", IMAGE, "sh", "-c", script).returncode, code, script
            )


if __name__ == "__main__":
    unittest.main(verbosity=2)
