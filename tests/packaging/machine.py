# SPDX-License-Identifier: Apache-2.0
"""Fresh machines with their own systemd as process 1, in namespaces of this machine.

debootstrap makes their file system, of Debian. BELAY_DEBIAN_ROOT may name one that it made before;
for Ubuntu BELAY_UBUNTU_ROOT has to. A machine has the mirror's packages while it does not run. When
it runs it has no network, but what link() gives it to one other machine.

Machines and folders go with the test that has made them, also if that is killed.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time

WAIT_S = 120
MIRROR = "http://deb.debian.org/debian"
RELEASES = ("bookworm", "noble")
ROOTS = {"bookworm": "BELAY_DEBIAN_ROOT", "noble": "BELAY_UBUNTU_ROOT"}
INCLUDE = "systemd,systemd-sysv,ca-certificates,python3-minimal"
NAMESPACES = ["--pid", "--mount", "--ipc", "--uts", "--cgroup", "--net"]

# Becomes systemd. What is mounted goes with the namespaces.
INIT = """\
set -e
echo $$ >%(cgroup)s/cgroup.procs
exec unshare %(namespaces)s --fork --mount-proc --kill-child sh -ec '
ip link set lo up
hostname %(name)s
mount --bind %(root)s %(root)s
%(binds)s
cd %(root)s
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 none sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
for d in null zero full random urandom tty; do
    touch dev/$d
    mount --bind /dev/$d dev/$d
done
ln -s /proc/self/fd dev/fd
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mkdir -p .old
pivot_root . .old
umount -l /.old
rmdir /.old
export container=belay
exec /lib/systemd/systemd --log-target=console --log-level=notice'
"""
# A machine for one test need not survive a power failure.
UNSAFE = {"DPKG_FORCE": "unsafe-io"}
# Removes a folder, and a cgroup whose processes are being killed, when the test has closed its end.
JANITOR = """\
cat
if [ -d "$2" ]; then
    timeout 120 sh -c 'until grep -q "populated 0" "$1/cgroup.events"; do sleep 0.1; done' sh "$2"
    find "$2" -depth -type d -exec rmdir {} +
fi
rm -rf --one-file-system "$1"
"""
# The kernel kills what a killed test leaves.
MORTAL = ["setpriv", "--pdeathsig", "KILL", "--"]
PROBE = "mount -t cgroup2 none /sys/fs/cgroup && mount --bind / /mnt"


def cgroups():
    """The mount point of cgroup v2; "" if none."""
    with open("/proc/mounts") as f:
        found = [line.split() for line in f]
    return next((fields[1] for fields in found if fields[2] == "cgroup2"), "")


def lacks():
    """Why there can be no machine here; "" if there can."""
    if os.geteuid() != 0:
        return "it takes root"
    for program in "debootstrap", "nsenter", "setpriv", "unshare", "ip", "pivot_root":
        if not shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin"):
            return "there is no %s" % program
    if not cgroups():
        return "there are no cgroups of version 2"
    done = subprocess.run(
        ["unshare", *NAMESPACES, "--fork", "--mount-proc", "sh", "-ec", PROBE],
        stderr=subprocess.PIPE,
        text=True,
    )
    return "" if done.returncode == 0 else done.stderr.strip()


def run(command, timeout=WAIT_S, **more):
    done = subprocess.run(
        [*MORTAL, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        **more,
    )
    if done.returncode != 0:
        raise AssertionError("%s: exit code %d\n%s" % (command, done.returncode, done.stdout))
    return done.stdout


class Folder:
    """A new folder, which a process of its own removes at the end of the test, however it ends."""

    def __init__(self, prefix, in_cgroup=None):
        self.path = tempfile.mkdtemp(prefix=prefix)
        self.cgroup = os.path.join(in_cgroup, os.path.basename(self.path)) if in_cgroup else ""
        self.janitor = subprocess.Popen(
            ["sh", "-ec", JANITOR, "sh", self.path, self.cgroup],
            stdin=subprocess.PIPE,
            start_new_session=True,  # no signal of a terminal
        )

    def __enter__(self):
        return self.path

    def __exit__(self, *error):
        self.janitor.stdin.close()
        if self.janitor.wait(600) != 0:
            raise AssertionError("something is left in %s %s" % (self.path, self.cgroup))


def debootstrap(release, root):
    """Makes the file system of a fresh machine, or copies one that was made before."""
    made = os.environ.get(ROOTS[release])
    if made:
        run(["cp", "-a", "--reflink=auto", made, root], timeout=600)
        return
    if release != "bookworm":
        raise AssertionError("%s names no file system of %s" % (ROOTS[release], release))
    what = ["--variant=minbase", "--include=" + INCLUDE, release, root, MIRROR]
    run(["debootstrap", *what], timeout=1500, env={**os.environ, **UNSAFE})


def link(a, b, names):
    """A cable between two running machines: names has the host name and the address of each."""
    ends = []
    for n, m in enumerate((a, b)):
        ends += ["name", "cable%d" % n, "netns", str(m.init())]
        ends += ["type", "veth", "peer"] if n == 0 else []
    run(["ip", "link", "add", *ends])
    for n, m in enumerate((a, b)):
        address = names[m.name]
        m.sh("ip addr add %s/24 dev cable%d && ip link set cable%d up" % (address, n, n))
        m.write(
            "/etc/hosts",
            "127.0.0.1 localhost\n"
            + "".join("%s %s\n" % (address, name) for name, address in names.items()),
        )


class Machine:
    """root: a file system to copy; without one: a fresh one of the release. binds: folders of this
    machine by where they are in it, as a mounted file system would be."""

    def __init__(self, name="machine", release="bookworm", root=None, binds=None):
        self.name, self.release, self.from_root, self.binds = name, release, root, binds or {}
        self.folder = Folder("belay-packaging.", cgroups())
        self.root = os.path.join(self.folder.path, "root")
        self.console = os.path.join(self.folder.path, "console")
        self.cgroup = self.folder.cgroup
        self.process = None

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.folder.__exit__()
            raise
        return self

    def make(self):
        if self.from_root:
            run(["cp", "-a", "--reflink=auto", self.from_root, self.root], timeout=600)
        else:
            debootstrap(self.release, self.root)
        self.write("/etc/hostname", self.name + "\n")
        self.write("/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 %s\n" % self.name)
        self.write("/etc/apt/apt.conf.d/90test", 'APT::Install-Recommends "false";\n')

    def __exit__(self, kind, error, trace):
        if isinstance(error, Exception):
            with contextlib.suppress(OSError), open(self.console) as f:
                print("==== console\n%s" % f.read()[-8000:])
            with contextlib.suppress(AssertionError, IndexError, OSError, AttributeError):
                print("==== journal\n%s" % self.sh("journalctl -n 150 --no-pager"))
        self.cut_power()
        self.folder.__exit__()

    def cut_power(self):
        if self.process and self.process.poll() is None:
            self.process.kill()  # and with it, by --kill-child, all of its namespace
            self.process.wait(WAIT_S)

    def write(self, path, text, mode=0o644):
        os.makedirs(os.path.dirname(self.root + path), exist_ok=True)
        with open(self.root + path, "w") as f:
            f.write(text)
        os.chmod(self.root + path, mode)

    def before_boot(self, *command, timeout=900):
        """Runs a command in its file system, with this machine's network."""
        shutil.copy("/etc/resolv.conf", self.root + "/etc/resolv.conf")
        mounts = "mount -t proc proc %s/proc && chroot %s" % (self.root, self.root)
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"}
        env.update(UNSAFE)
        alone = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        script = [*alone, "sh", "-c", mounts + ' "$@"', "sh", *command]
        return run(script, timeout=timeout, env=env)

    def boot(self):
        os.mkdir(self.cgroup)
        binds = ["mkdir -p %s%s" % (self.root, at) for at in self.binds]
        binds += ["mount --bind %s %s%s" % (self.binds[at], self.root, at) for at in self.binds]
        values = {
            "binds": "\n".join(binds),
            "cgroup": self.cgroup,
            "name": self.name,
            "namespaces": " ".join(NAMESPACES),
            "root": self.root,
        }
        with open(self.console, "a") as log:
            self.process = subprocess.Popen(
                [*MORTAL, "sh", "-c", INIT % values],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        end = time.monotonic() + WAIT_S
        while True:
            with contextlib.suppress(AssertionError, IndexError, OSError):
                # degraded: a unit that a container cannot have is no fault of ours
                self.sh("systemctl is-system-running --wait | grep -E '^(running|degraded)$'")
                return
            if time.monotonic() > end or self.process.poll() is not None:
                raise AssertionError("the machine did not start")
            time.sleep(0.1)  # there is nobody yet to ask for an event

    def init(self):
        with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as f:
            return int(f.read().split()[0])

    def sh(self, script, user=None, timeout=WAIT_S):
        """Runs a shell script in it, as a user who logs in or as root; returns what it printed."""
        command = ["sh", "-ec", script]
        if user:
            command = ["runuser", "-l", user, "-s", "/bin/sh", "-c", "set -e\n" + script]
        inside = ["nsenter", "-t", str(self.init()), "-p", "-m", "-C", "-n", "-i", "-u", "--"]
        env = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "DEBIAN_FRONTEND": "noninteractive",
            "LC_ALL": "C.UTF-8",
            **UNSAFE,
        }
        return run([*inside, *command], timeout=timeout, env=env, cwd="/")

    def files(self, without):
        """Paths of everything in its file system, except below the folders `without`."""
        found = set()
        for folder, folders, names in os.walk(self.root):
            at = folder[len(self.root) :] + "/"
            folders[:] = [name for name in folders if at + name not in without]
            found.update(at + name for name in folders + names)
        return found
