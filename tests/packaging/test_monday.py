# SPDX-License-Identifier: Apache-2.0
"""A platform team's first Monday, on fresh machines of one release: test_monday.py [RELEASE].

Packages, two users and a team, a node over ssh, a pool of the emulator, a nightly entry, an upgrade
under load, a backup, the loss of belayd's machine, and a restore on a new one. Each step is checked
and prints whether it did what it should.

BELAY_PACKAGES may name a folder with packages of the release, BELAY_PREVIOUS_PACKAGES one with
those to upgrade from; without it, the same packages are given a lower version.
"""

import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from machine import RELEASES, Folder, Machine, lacks, link, run
from test_packages import PACKAGES, SOURCE, build, repack

LONG_S = 600  # for all that takes a wait for leases, boots and a minute of the clock
ADDRESSES = {"sched": "10.77.0.1", "node": "10.77.0.2"}
USERS = {"ann": 2001, "bob": 2002}
SERVERS = "openssh-server openssh-client iproute2"
KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
VALUE = "correct-horse-battery-staple"

CONFIGURATION = """\
cluster: lab
listen: 0.0.0.0:7443
server: https://sched:7443
socket: /run/belay/belayd.sock
socket_users: all
store: file:///srv/belay
users: {bob: member}
teams:
  vision: {shares: 2, users: [ann, bob], leads: [bob]}
pools:
  rack:
    provider: static
    hosts: [node]
    user: root
    key: /etc/belay/rack-key
    known_hosts: /etc/belay/rack-known-hosts
    cpus: 8
    memory: 1G
    idle_timeout: 1h
  burst:
    provider: aws
    region: us-east-1
    zones: [us-east-1a]
    types: [m6i.xlarge]
    markets: [spot]
    image: ami-1
    max_nodes: 2
    endpoint: http://127.0.0.1:9200
    credentials: /etc/belay/aws-credentials
    paid_minimum: 0s
"""
EMULATOR = """\
ec2_port: 9200
seed: %d
boot_delay_ms: 300
keys: [{access_key: %s, secret_key: %s}]
pools:
  - {zone: us-east-1a, type: m6i.xlarge, spot: {capacity: 4, usd_per_hour: 0.08}}
"""
# Saves when asked, until the file that it is given appears; says where it began.
JOB = """\
import os, sys, time, belay
state = os.path.join(belay.checkpoint_dir(), "state")
step = int(open(state).read()) if os.path.exists(state) else 0
print("began at", step, "as", os.urandom(4).hex(), flush=True)
while not os.path.exists(sys.argv[1]):
    step += 1
    if belay.should_checkpoint():
        with open(state, "w") as f:
            f.write(str(step))
        belay.commit(step)
        print("saved", step, flush=True)
    time.sleep(0.1)
print("done", flush=True)
"""
# Each job says once that it ran. What belayd answered is in `submitted`.
LOAD = """\
while [ ! -e stop ]; do
    belay submit -p rack --wrap 'echo $BELAY_JOB_ID >>~/ran' >>submitted 2>>refused || :
    sleep 0.5
done
"""


class Failed(Exception):
    pass


def require(fact, *what):
    if not fact:
        raise Failed(" ".join(str(w) for w in what))


class Monday:
    def __init__(self, release):
        self.release = release
        self.stack = contextlib.ExitStack()

    # ---- the steps ----

    STEPS = (
        ("fresh machines of the release", "prepare"),
        ("apt install ./*.deb: belayd runs under its unit", "install"),
        ("two users, a team with a lead, a secret", "users"),
        ("a node reached over ssh runs jobs as their users", "static_node"),
        ("a pool of the emulator gives a spot instance", "burst"),
        ("a nightly entry submits its job at its time", "nightly"),
        ("two jobs run that can be resumed", "long_jobs"),
        ("upgrade from the previous packages under load: no job is lost", "upgrade"),
        ("an encrypted backup, verified", "backup"),
        ("belayd's machine is thrown away", "throw_away"),
        ("restore on a new machine", "restore"),
        ("jobs, nightly entry, secret and users are there", "is_all_there"),
        ("the job of the node goes on, that of the lost instance resumes", "jobs_go_on"),
    )

    def walk(self):
        with self.stack:
            try:
                for title, name in self.STEPS:
                    began = time.monotonic()
                    try:
                        getattr(self, name)()
                    except BaseException:
                        self.say("failed", title, began)
                        raise
                    self.say("ok", title, began)
            except (Failed, AssertionError, subprocess.TimeoutExpired) as error:
                print(error, flush=True)
                self.show()
                return 1
        print("%s: all %d steps ok" % (self.release, len(self.STEPS)))
        return 0

    def say(self, verdict, title, began):
        print("%-6s %s (%.0f s)" % (verdict, title, time.monotonic() - began), flush=True)

    def show(self):
        """What the machines say, when a step failed."""
        for name in "sched", "node":
            with contextlib.suppress(AttributeError, AssertionError, IndexError, OSError):
                print("==== %s" % name)
                print(getattr(self, name).sh("journalctl -n 120 --no-pager")[-12000:])
        with contextlib.suppress(AttributeError, AssertionError, IndexError, OSError):
            print(self.sched.sh("belay list; belay nodes; belay pools 2>&1 || :"))

    def prepare(self):
        self.dir = self.stack.enter_context(Folder("belay-monday."))
        self.binds = {"/srv/belay": self.dir + "/srv", "/home": self.dir + "/home"}
        for folder in self.binds.values():
            os.mkdir(folder)
        base = self.stack.enter_context(Machine("base", self.release))
        self.put_packages(base)
        self.base = base.root
        self.sched = self.machine("sched")
        self.node = self.machine("node")
        link(self.sched, self.node, ADDRESSES)

    def put_packages(self, m):
        made = os.environ.get("BELAY_PACKAGES")
        if not made:
            of_this = self.release == "bookworm"
            made = build(self.stack.enter_context) if of_this else self.build_in(m)
        previous = os.environ.get("BELAY_PREVIOUS_PACKAGES")
        for folder in "/packages", "/previous":
            os.mkdir(m.root + folder)
        for package in glob.glob(made + "/*.deb"):
            if "-dbgsym_" in package:
                continue
            shutil.copy(package, m.root + "/packages")
            self.version = run(["dpkg-deb", "-f", package, "Version"]).strip()
            if not previous:
                repack(package, m.root + "/previous", self.version, self.version + "~previous")
        for package in glob.glob(previous + "/*.deb") if previous else ():
            shutil.copy(package, m.root + "/previous")
        m.before_boot("apt-get", "update", "-q")
        would = m.before_boot("sh", "-c", "apt-get install -s /packages/*.deb")
        needed = set(re.findall(r"(?m)^Inst (\S+)", would)) - PACKAGES
        m.before_boot("apt-get", "install", "-y", "-q", *sorted(needed), *SERVERS.split())

    def build_in(self, m):
        """The packages, built in a copy of the fresh machine. Its folder."""
        maker = self.stack.enter_context(Machine("maker", self.release, root=m.root))
        tree = maker.root + "/source"
        os.mkdir(tree)
        listed = ["git", "-C", SOURCE, "ls-files", "--cached", "--others", "--exclude-standard"]
        names = [n for n in run(listed).split("\n") if n and os.path.exists(SOURCE + "/" + n)]
        with tempfile.NamedTemporaryFile("w", suffix=".list") as f:
            f.write("\n".join(names))
            f.flush()
            run(["sh", "-c", "tar -C '%s' -cT '%s' | tar -C '%s' -x" % (SOURCE, f.name, tree)])
        maker.before_boot(
            "sh",
            "-c",
            "apt-get update -q && cd /source && "
            "DEB_BUILD_OPTIONS=noautodbgsym scripts/package /made",
            timeout=5000,
        )
        return maker.root + "/made"

    def machine(self, name):
        m = self.stack.enter_context(Machine(name, self.release, root=self.base, binds=self.binds))
        m.boot()
        return m

    def install(self):
        for m, names in (
            (self.sched, PACKAGES),
            (self.node, ("belay", "belay-agent", "python3-belay")),
        ):
            packages = " ".join("/previous/%s_*.deb" % name for name in sorted(names))
            m.sh("apt-get install -y -q %s" % packages, timeout=LONG_S)
        require(self.sched.sh("systemctl is-active belayd").strip() == "active", "not active")
        self.installed = self.version_of(self.sched)
        require(self.sched.sh("belay list", "nobody") != "", "belayd does not answer")

    def version_of(self, m):
        return m.sh("dpkg-query -W -f '${Version}' belayd").strip()

    def users(self):
        for m in self.sched, self.node:
            for user, number in USERS.items():
                m.sh("useradd -s /bin/sh -M -u %d %s" % (number, user))
        for user, number in USERS.items():
            home = "%s/%s" % (self.binds["/home"], user)
            os.mkdir(home, 0o755)
            with open(home + "/job.py", "w") as f:
                f.write(JOB)
            for path in home, home + "/job.py":
                os.chown(path, number, number)
        self.sched.sh("chown belay:belay /srv/belay && chmod 755 /srv/belay")
        self.configure(self.sched, seed=1)
        self.sched.sh("systemctl restart belayd", timeout=LONG_S)
        self.sched.sh("printf %s | belay secret set site" % VALUE, "ann")
        job = self.submit("ann", "--hold --wrap true")
        self.sched.sh("belay cancel %d" % job, "bob")  # the team's lead may
        other = self.submit("bob", "--hold --wrap true")
        self.sched.sh("! belay cancel %d" % other, "ann")
        require(" ann " in self.sched.sh("squeue -a -t all", "bob"), "bob does not see ann's job")

    def configure(self, m, seed):
        """belayd's configuration and the emulator, as an administrator writes them."""
        if not hasattr(self, "ssh_key"):
            self.make_keys()
        belay = m.sh("id -u belay && id -g belay").split()
        for name, text in (
            ("rack-key", self.ssh_key),
            ("rack-known-hosts", self.known_hosts),
            (
                "aws-credentials",
                "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n" % (KEY, SECRET),
            ),
        ):
            m.write("/etc/belay/" + name, text, 0o600)
            os.chown(m.root + "/etc/belay/" + name, *map(int, belay))
        m.write("/etc/belay/belayd.yaml", CONFIGURATION, 0o640)
        m.sh("chgrp belay /etc/belay/belayd.yaml")
        m.write("/etc/emulator.yaml", EMULATOR % (seed, KEY, SECRET))
        m.sh(
            "systemd-run -q --unit=emulator --service-type=exec -E HOME=/root "
            "belay-emulator --config /etc/emulator.yaml --port-file /run/emulator.json\n"
            "until [ -e /run/emulator.json ]; do sleep 0.1; done"
        )
        m.sh("runuser -u belay -- belayd --check --config /etc/belay/belayd.yaml")

    def make_keys(self):
        path = self.dir + "/rack-key"
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path])
        with open(path) as f, open(path + ".pub") as public:
            self.ssh_key, key = f.read(), public.read()
        os.makedirs(self.node.root + "/root/.ssh", 0o700, exist_ok=True)
        what = 'restrict,command="/usr/bin/belay-agent host" ' + key
        self.node.write("/root/.ssh/authorized_keys", what, 0o600)
        self.node.sh("systemctl enable --now ssh")
        with open(self.node.root + "/etc/ssh/ssh_host_ed25519_key.pub") as f:
            self.known_hosts = "node " + " ".join(f.read().split()[:2]) + "\n"

    def submit(self, user, what):
        said = self.sched.sh("belay submit " + what, user)
        require(re.fullmatch(r"Submitted batch job \d+\n", said), said)
        return int(said.split()[-1])

    def show_job(self, job):
        return json.loads(self.sched.sh("belay show --json %d" % job))["job"]

    def wait_for(self, fact, what):
        end = time.monotonic() + LONG_S
        while not fact():
            require(time.monotonic() < end, "not within %d s: %s" % (LONG_S, what))
            time.sleep(0.2)

    def wait_succeeded(self, job):
        self.wait_for(lambda: self.show_job(job)["state"] == "ended", "job %d ends" % job)
        end = self.show_job(job)["end"]
        require(end == "succeeded", "job %d: %s" % (job, end))

    def static_node(self):
        for user in USERS:
            job = self.submit(user, "-p rack --wrap 'hostname; id -un'")
            self.wait_succeeded(job)
            said = self.sched.sh("belay logs %d" % job, user).split()
            require(said[-2:] == ["node", user], said)

    def burst(self):
        job = self.submit("ann", "-p burst --secret site=SITE --wrap 'id -un; echo ${#SITE}'")
        self.wait_succeeded(job)
        said = self.sched.sh("belay logs %d" % job, "ann").split()
        require(said[-2:] == ["ann", str(len(VALUE))], said)

    def nightly(self):
        """In the next minute but one, so that it is not over before it is added."""
        when = time.gmtime(time.time() + 65)
        self.sched.sh(
            "belay cron add --name nightly -p rack --wrap 'echo night' '%d %d * * *'"
            % (when.tm_min, when.tm_hour),
            "bob",
        )
        self.wait_for(self.night_job, "the entry has a job")
        self.wait_succeeded(self.night_job())

    def night_job(self):
        for job in json.loads(self.sched.sh("belay list --json --all"))["jobs"]:
            if job["cron"] is not None and job["user"] == "bob":
                return job["id"]
        return None

    def long_jobs(self):
        self.jobs = {}
        for pool in "rack", "burst":
            self.jobs[pool] = self.submit(
                "ann",
                "-p %s --checkpoint coop --checkpoint-every 1s --wrap 'exec python3 job.py end'"
                % pool,
            )
        self.held = self.submit("bob", "-p rack --hold --wrap 'echo held'")
        for job in self.jobs.values():
            self.wait_for(lambda: "saved" in self.log(job), "job %d saves" % job)

    def log(self, job):
        return self.sched.sh("belay logs %d 2>&1 || :" % job)

    def upgrade(self):
        began = {pool: self.began(pool) for pool in self.jobs}
        load = threading.Thread(target=lambda: self.sched.sh(LOAD, "ann", timeout=3 * LONG_S))
        load.start()
        home = self.binds["/home"] + "/ann"
        try:
            self.wait_for(lambda: self.lines("submitted") >= 3, "jobs are submitted")
            self.sched.sh("apt-get install -y -q /packages/*.deb", timeout=LONG_S)
            self.node.sh(
                "apt-get install -y -q /packages/belay_*.deb /packages/belay-agent_*.deb "
                "/packages/python3-belay_*.deb",
                timeout=LONG_S,
            )
            answered = self.lines("submitted")
            self.wait_for(lambda: self.lines("submitted") > answered, "jobs are submitted again")
        finally:
            with open(home + "/stop", "w"):
                pass
            load.join()
        require(self.installed != self.version_of(self.sched), "it is still", self.installed)
        require(self.sched.sh("systemctl is-active belayd").strip() == "active", "not active")
        with open(home + "/submitted") as f:
            numbers = [int(n) for n in re.findall(r"Submitted batch job (\d+)", f.read())]
        for job in numbers:
            self.wait_succeeded(job)
        with open(home + "/ran") as f:
            ran = sorted(int(line) for line in f)
        require(ran == sorted(numbers), "submitted", numbers, "ran", ran)
        for pool, lines in began.items():
            require(self.began(pool) == lines, "the job in %s did not go on by itself" % pool)
        self.submitted = numbers
        print("       %d jobs meanwhile, each ran once" % len(numbers))

    def lines(self, name):
        with contextlib.suppress(FileNotFoundError), open(
            "%s/ann/%s" % (self.binds["/home"], name)
        ) as f:
            return len(f.readlines())
        return 0

    def began(self, pool):
        return re.findall(r"(?m)^began at (\d+) as (\w+)", self.log(self.jobs[pool]))

    def backup(self):
        m = self.sched
        m.write("/etc/belay/passphrase", "first monday\n", 0o600)
        m.sh("mkdir -m 700 /backup")
        options = "--passphrase-file /etc/belay/passphrase"
        m.sh("belay admin backup /backup/lab.tar " + options)
        m.sh("belay admin verify /backup/lab.tar " + options)
        shutil.copy(m.root + "/backup/lab.tar", self.dir)
        found = subprocess.run(["grep", "-c", VALUE, self.dir + "/lab.tar"], stdout=subprocess.PIPE)
        require(found.returncode == 1, "the secret is in the backup in clear")
        m.sh("belay admin audit-log verify")
        self.last_job = self.submit("ann", "-p rack --hold --wrap 'echo after the backup'")

    def throw_away(self):
        self.sched.cut_power()
        shutil.rmtree(self.sched.root)

    def restore(self):
        m = self.sched = self.machine("sched")
        link(m, self.node, ADDRESSES)
        for user, number in USERS.items():
            m.sh("useradd -s /bin/sh -M -u %d %s" % (number, user))
        m.sh("apt-get install -y -q /packages/*.deb", timeout=LONG_S)
        # The package has started a belayd of its own, whose state is of no use.
        m.sh("systemctl stop belayd && find /var/lib/belay -mindepth 1 -delete")
        m.write("/etc/belay/passphrase", "first monday\n", 0o600)
        shutil.copy(self.dir + "/lab.tar", m.root + "/var/lib/lab.tar")
        m.sh(
            "chown belay /etc/belay/passphrase /var/lib/lab.tar && runuser -u belay -- "
            "belay admin restore /var/lib/lab.tar --state /var/lib/belay "
            "--passphrase-file /etc/belay/passphrase"
        )
        kept = m.sh("cat /var/lib/belay/belayd.yaml")
        require(kept == CONFIGURATION, "the configuration is not as it was:", kept)
        self.configure(m, seed=2)
        m.sh("systemctl start belayd", timeout=LONG_S)
        require(m.sh("systemctl is-active belayd").strip() == "active", "not active")

    def is_all_there(self):
        m = self.sched
        for job in self.submitted:
            require(self.show_job(job)["end"] == "succeeded", "job %d" % job)
        require(self.show_job(self.held)["hold"] == "user", self.show_job(self.held)["hold"])
        require("nightly" in m.sh("belay cron list", "bob"), "the nightly entry is gone")
        m.sh("belay admin audit-log verify")
        m.sh("! belay show %d" % self.last_job)  # from after the backup
        job = self.submit("ann", "-p rack --secret site=SITE --wrap 'echo ${#SITE}'")
        require(job > self.last_job + 5000, "job %d may be mistaken for a lost one" % job)
        self.wait_succeeded(job)
        require(self.log(job).split()[-1:] == [str(len(VALUE))], self.log(job))
        m.sh("belay release %d" % self.held, "bob")
        self.wait_succeeded(self.held)

    def jobs_go_on(self):
        """What the first attempt printed was on the lost machine: the backup has no output."""
        lost, kept = self.jobs["burst"], self.jobs["rack"]
        self.wait_for(lambda: self.show_job(lost)["attempts"] > 1, "job %d is resumed" % lost)
        self.wait_for(lambda: self.began("burst"), "job %d says where it begins" % lost)
        require(int(self.began("burst")[-1][0]) > 0, "it resumed at 0:", self.began("burst"))
        with open(self.binds["/home"] + "/ann/end", "w"):
            pass
        for job in self.jobs.values():
            self.wait_succeeded(job)
        require(self.show_job(kept)["attempts"] == 1, "job %d began again" % kept)


if __name__ == "__main__":
    missing = lacks()
    if missing:
        print("skipped: " + missing)
        sys.exit(77)
    release = sys.argv[1] if len(sys.argv) > 1 else "bookworm"
    if release not in RELEASES:
        sys.exit("%s: expected one of %s" % (release, ", ".join(RELEASES)))
    sys.exit(Monday(release).walk())
