# SPDX-License-Identifier: Apache-2.0
"""A virtual machine with Debian's kernel, under qemu without hardware support, for features that
this host's kernel lacks. It is built from what is installed here: programs with their libraries,
Python, belay's build and its tests, all in one initramfs.

    lacks()                       what is not installed here; "" if nothing is missing
    run("criu_inside.py", 900)    boots, runs that file of this directory there, returns (exit
                                  code, console); the limit is in seconds

BELAY_MACHINE_FROM names directories, separated by colons, with unpacked packages that are used
in place of installed ones.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

from lab import BUILD, HERE

ROOTS = [r for r in os.environ.get("BELAY_MACHINE_FROM", "").split(":") if r] + [""]
MEMORY_MIB = 3072
DONE = re.compile(r"^BELAY-INSIDE-ENDED (\d+)\r?$", re.M)
# In order of their dependencies.
MODULES = (
    "unix_diag",
    "netlink_diag",
    "af_packet_diag",
    "inet_diag",
    "tcp_diag",
    "udp_diag",
    "raw_diag",
    "libcrc32c",
    "nfnetlink",
    "nf_tables",
    "veth",
    "tun",
)
INIT = """#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
for d in /dev/shm /tmp /run /var/lib /home; do mount -t tmpfs tmp $d; done
chmod 1777 /tmp
chmod 755 /run /var/lib /home
ip link set lo up
hostname machine
for m in %(modules)s; do insmod /modules/$m.ko || echo "no module $m"; done
mkdir /home/job
export BELAY_BUILD=%(build)s BELAY_INSIDE=1 %(env)s
cd %(here)s
python3 -B %(test)s $BELAY_INSIDE_TESTS
echo "BELAY-INSIDE-ENDED $?"
poweroff -f
"""


def find(*patterns):
    """The newest by name, of the first pattern and place with a match."""
    for pattern in patterns:
        for root in ROOTS:
            found = sorted(glob.glob(root + pattern))
            if found:
                return found[-1]
    return ""


def kernel():
    return find("/boot/vmlinuz-*-cloud-amd64", "/boot/vmlinuz-*-amd64")


def modules():
    version = os.path.basename(kernel())[len("vmlinuz-") :]
    return find("/lib/modules/" + version, "/usr/lib/modules/" + version)


def criu():
    return find("/usr/sbin/criu", "/usr/bin/criu")


def lacks():
    if not shutil.which("qemu-system-x86_64"):
        return "qemu-system-x86_64"
    if os.uname().machine != "x86_64":
        return "an x86-64 machine"
    for what, there in (
        ("a Debian kernel", kernel() and modules()),
        ("criu", criu()),
        ("cpio", shutil.which("cpio")),
        ("busybox", os.path.exists("/bin/busybox")),
    ):
        if not there:
            return what
    return ""


class Tree:
    def __init__(self, path):
        self.path = path
        self.have = set()

    def put(self, source, target=None):
        to = self.path + (target or source)
        if to in self.have:
            return
        self.have.add(to)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy2(os.path.realpath(source), to)

    def program(self, source, target=None):
        """With its libraries, wherever they are installed."""
        self.put(source, target)
        paths = [
            root + d
            for root in ROOTS
            if root
            for d in ("/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu")
        ]
        env = {**os.environ, "LD_LIBRARY_PATH": ":".join(paths)}
        listed = subprocess.run(
            ["ldd", source], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ).stdout
        for line in listed.splitlines():
            found = re.search(r"(/\S+) \(0x", line)
            if found:
                path = found.group(1)
                for root in ROOTS:
                    if root and path.startswith(root):
                        path = path[len(root) :]
                self.put(found.group(1), re.sub(r"^/lib/", "/usr/lib/", path))

    def text(self, path, text, mode=0o644):
        with open(self.path + path, "w") as f:
            f.write(text)
        os.chmod(self.path + path, mode)


def fill(tree, test, env):
    for d in (
        "bin",
        "sbin",
        "usr/bin",
        "usr/sbin",
        "usr/lib",
        "lib64",
        "proc",
        "sys",
        "dev",
        "run",
        "tmp",
        "etc",
        "root",
        "var/lib",
        "home",
        "modules",
    ):
        os.makedirs(os.path.join(tree.path, d))
    os.symlink("usr/lib", tree.path + "/lib")
    tree.put("/bin/busybox")
    for name in subprocess.run(
        ["/bin/busybox", "--list"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.split():
        if name != "busybox":
            os.symlink("/bin/busybox", tree.path + "/bin/" + name)
    for name in ("env", "sh"):
        os.symlink("/bin/busybox", tree.path + "/usr/bin/" + name)
    tree.program(criu(), "/usr/sbin/criu")
    python = os.path.realpath("/usr/bin/python3")
    library = "/usr/lib/" + os.path.basename(python)
    tree.program(python, "/usr/bin/python3")
    skip = shutil.ignore_patterns(
        "test",
        "idlelib",
        "lib2to3",
        "__pycache__",
        "config-*",
        "*.a",
        "site-packages",
        "dist-packages",
        "ensurepip",
        "distutils",
        "tkinter",
        "pydoc_data",
        "sitecustomize.py",
    )
    shutil.copytree(library, tree.path + library, ignore=skip, ignore_dangling_symlinks=True)
    for extension in glob.glob(library + "/lib-dynload/*.so"):
        tree.program(extension)
    for name in MODULES:
        found = glob.glob(modules() + "/kernel/**/%s.ko" % name, recursive=True)
        if found:
            shutil.copy(found[0], tree.path + "/modules")
    for name in (
        "scheduler/belayd",
        "cli/belay",
        "agent/belay-agent",
        "agent/belay-supervisor",
        "emulator/belay-emulator",
    ):
        tree.program(os.path.join(BUILD, name))
    for name in glob.glob(os.path.join(BUILD, "clients/python/belay/*.py")) + glob.glob(
        os.path.join(HERE, "*.py")
    ):
        tree.put(name)
    for name in glob.glob(os.path.join(HERE, "jobs", "*")):
        tree.put(name)
    for name in ("/etc/ssl/openssl.cnf", "/usr/lib/ssl/openssl.cnf"):
        if os.path.exists(name):
            tree.put(name)
    tree.text(
        "/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000:Ann:/home/job:/bin/sh\n"
    )
    tree.text("/etc/group", "root:x:0:\nann:x:1000:\n")
    tree.text("/etc/hosts", "127.0.0.1 localhost machine\n")
    tree.text(
        "/init",
        INIT
        % {
            "modules": " ".join(MODULES),
            "build": BUILD,
            "here": HERE,
            "test": test,
            "env": " ".join("%s='%s'" % pair for pair in env.items()),
        },
        0o755,
    )


def run(test, timeout_s, env=None):
    with tempfile.TemporaryDirectory(prefix="belay-machine.") as d:
        tree, image = os.path.join(d, "tree"), os.path.join(d, "initramfs")
        os.mkdir(tree)
        fill(Tree(tree), test, env or {})
        subprocess.run(
            "find . | cpio --quiet -o -H newc >'%s'" % image, shell=True, cwd=tree, check=True
        )
        shutil.rmtree(tree)
        return boot(image, timeout_s)


def boot(image, timeout_s):
    """The console is copied to standard output."""
    command = [
        "qemu-system-x86_64",
        "-accel",
        "tcg",
        "-cpu",
        "max",
        "-smp",
        "2",
        "-m",
        str(MEMORY_MIB),
        "-nographic",
        "-no-reboot",
        "-nic",
        "none",
        "-kernel",
        kernel(),
        "-initrd",
        image,
        "-append",
        "console=ttyS0 panic=-1 quiet",
    ]
    console = []
    with subprocess.Popen(
        ["timeout", "-k", "10", str(timeout_s), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as machine:
        for line in machine.stdout:
            console.append(line)
            sys.stdout.write(line)
            sys.stdout.flush()
    text = "".join(console)
    ended = DONE.search(text)
    return int(ended.group(1)) if ended else -1, text
