# SPDX-License-Identifier: Apache-2.0
"""scripts/bench --peer slurm: the same loads on Slurm and on belay, one after the other, on this
machine.

Slurm's programs (Debian: slurm-wlm, slurmrestd, munge) run from a separate directory without a
service manager: munged, slurmctld, slurmd and slurmrestd. The one node is configured with as
many CPUs as belay's; other settings follow Slurm's guide for high throughput
(https://slurm.schedmd.com/high_throughput.html). The controller keeps the default way of saving
its state: after a submit was acknowledged. belay's state is durable before.
"""

import contextlib
import http.client
import json
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

import load

PROGRAMS = (
    "munged",
    "slurmctld",
    "slurmd",
    "slurmrestd",
    "sbatch",
    "scancel",
    "sinfo",
    "scontrol",
    "squeue",
)
START_S, JOBS_S = 60, 600
SUBMIT = "/slurm/v0.0.38/job/submit"
SUBMITS, CONNECTIONS, MANY = 3200, 8, 32
JOBS, AT_ONCE = 1000, 64
STARTS = 15
COMMANDS = 40

CONF = """\
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctl_port}
SlurmdPort={d_port}
SlurmUser={user}
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge.sock
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd.log
SlurmctldDebug=error
SlurmdDebug=error
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=defer_batch,batch_sched_delay=1,sched_min_interval=20000,sched_interval=5,max_rpc_cnt=150,bf_interval=5,default_queue_depth=1000
MaxJobCount=200000
MinJobAge=10
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """The missing programs; with any, Slurm cannot be measured."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    return [p for p in PROGRAMS if not shutil.which(p, path=path)]


def free_port():
    with contextlib.closing(socket.socket()) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Slurm:
    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="belay-bench-slurm.")
        self.running = []
        self.env = {
            **os.environ,
            "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin",
            "SLURM_CONF": self.path("slurm.conf"),
        }
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for p in reversed(self.running):
            p.terminate()
            try:
                p.wait(20)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def run(self, *words):
        with open(self.path("log"), "ab") as log:
            self.running.append(
                subprocess.Popen(
                    words,
                    env=self.env,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self.dir,
                )
            )

    def start(self):
        os.chmod(self.dir, 0o755)
        for name in ("state", "spool"):
            os.mkdir(self.path(name))
        with open(self.path("munge.key"), "wb", opener=lambda p, f: os.open(p, f, 0o600)) as f:
            f.write(os.urandom(128))
        with open(self.path("slurm.conf"), "w") as f:
            f.write(
                CONF.format(
                    dir=self.dir,
                    host=socket.gethostname().split(".")[0],
                    user="root",
                    ctl_port=free_port(),
                    d_port=free_port(),
                    cpus=AT_ONCE,
                )
            )
        self.run(
            "munged",
            "--foreground",
            "--force",
            "--socket=" + self.path("munge.sock"),
            "--key-file=" + self.path("munge.key"),
            "--pid-file=" + self.path("munge.pid"),
            "--log-file=" + self.path("munge.log"),
            "--seed-file=" + self.path("munge.seed"),
        )
        self.until("munged", lambda: os.path.exists(self.path("munge.sock")))
        self.run("slurmctld", "-D", "-c")
        self.run("slurmd", "-D", "-c")
        self.until(
            "a node that is up", lambda: self.say("sinfo", "-h", "-o", "%T").strip() == "idle"
        )
        self.socket = self.path("rest.sock")
        # slurmrestd refuses to run as root, because any client of it would be root. Here the socket
        # is private.
        self.env["SLURMRESTD_SECURITY"] = "disable_user_check"
        self.run(
            "slurmrestd", "-a", "rest_auth/local", "-s", "openapi/v0.0.38", "unix:" + self.socket
        )
        self.until("slurmrestd", lambda: self.get("/slurm/v0.0.38/ping"))

    def until(self, what, test):
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            with contextlib.suppress(
                OSError, subprocess.CalledProcessError, http.client.HTTPException, ValueError
            ):
                if test():
                    return
            if any(p.poll() is not None for p in self.running):
                break
            time.sleep(0.1)
        for name in ("log", "slurmctld.log", "slurmd.log", "munge.log"):
            with contextlib.suppress(OSError), open(self.path(name), errors="replace") as f:
                print("---- %s\n%s" % (name, f.read()[-2000:]))
        raise SystemExit("bench: Slurm does not start: no sign of " + what)

    def say(self, *words):
        return subprocess.run(
            words,
            env=self.env,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            universal_newlines=True,
            timeout=60,
        ).stdout

    def get(self, path):
        return self.rest(self.connect(), "GET", path)

    def connect(self):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(60)
        s.connect(self.socket)
        c = http.client.HTTPConnection("localhost")
        c.sock = s
        return c

    @staticmethod
    def rest(c, method, path, body=None):
        c.request(
            method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"}
        )
        reply = c.getresponse()
        text = reply.read()
        if reply.status != 200:
            raise ValueError("%d %s" % (reply.status, text[:300]))
        return json.loads(text)

    def body(self, script):
        return {
            "job": {
                "name": "bench",
                "partition": "all",
                "tasks": 1,
                "cpus_per_task": 1,
                "current_working_directory": self.dir,
                "standard_output": "/dev/null",
                "standard_error": "/dev/null",
                "environment": {"PATH": "/usr/bin:/bin"},
            },
            "script": script,
        }

    def submit(self, c, script):
        """Returns the job's number."""
        return self.rest(c, "POST", SUBMIT, self.body(script))["job_id"]

    def submit_all(self, n, connections, script):
        """Submits n jobs; returns the seconds it took."""
        return load.post_all(
            self.socket, [(SUBMIT, json.dumps(self.body(script)).encode())] * n, connections
        )

    def cpu_s(self):
        """Processor time of the four daemons and of their ended children, in seconds."""
        total = 0
        for p in self.running:
            with open("/proc/%d/stat" % p.pid) as f:
                total += sum(int(word) for word in f.read().rpartition(")")[2].split()[11:15])
        return total / os.sysconf("SC_CLK_TCK")

    def until_empty(self):
        deadline = time.monotonic() + JOBS_S
        while self.say("squeue", "-h", "-o", "%i").strip():
            if time.monotonic() > deadline:
                raise SystemExit("bench: Slurm's jobs have not ended within %d s" % JOBS_S)
            time.sleep(0.05)


NOW = "#!/bin/bash\necho $EPOCHREALTIME >%s.part\nmv %s.part %s\n"


def first_line(submit, directory):
    """Median seconds from a submit to the job's first line, on an idle node."""
    took = []
    for n in range(STARTS):
        said = os.path.join(directory, "said.%d" % n)
        began = time.time()
        submit(NOW % (said, said, said))
        deadline = time.monotonic() + 60
        while not os.path.exists(said):
            if time.monotonic() > deadline:
                raise SystemExit("bench: a job has not started within 60 s")
            time.sleep(0.002)
        with open(said) as f:
            took.append(float(f.read()) - began)
        time.sleep(0.2)  # until the node is idle again
    return statistics.median(took)


def command(words, env):
    """Milliseconds of one submit from the command line."""
    began = time.monotonic()
    subprocess.run(words, env=env, check=True, stdout=subprocess.DEVNULL)
    return 1000 * (time.monotonic() - began)


def commands(slurm, local, belay):
    """Medians of both, measured one after the other."""
    script = slurm.path("true.sh")
    with open(script, "w") as f:
        f.write("#!/bin/sh\nexec true\n")
    took = {"sbatch": [], "belay": []}
    for _ in range(COMMANDS):
        took["sbatch"].append(command(["sbatch", "-o", "/dev/null", script], slurm.env))
        took["belay"].append(
            command([belay, "slurm", "sbatch", "-o", "/dev/null", script], local.env)
        )
    return statistics.median(took["sbatch"]), statistics.median(took["belay"])


def bench(Local, belay, say, cpu_seconds):
    if missing():
        raise SystemExit(
            "bench: %s is not installed; install Slurm (Debian: apt-get install slurm-wlm slurmrestd munge)"
            % ", ".join(missing())
        )
    if os.geteuid() != 0:
        raise SystemExit("bench: Slurm's slurmd runs as root: run this as root")
    true = "#!/bin/sh\nexec true\n"
    with Slurm() as slurm:
        slurm.say("scontrol", "update", "PartitionName=all", "State=DOWN")  # so that the jobs wait
        for connections in (CONNECTIONS, MANY):
            theirs = SUBMITS / slurm.submit_all(SUBMITS, connections, true)
            with Local("--no-agent") as l:
                ours = SUBMITS / l.submit_all(SUBMITS, connections)
            say(
                "durable submits over HTTP, %d connections" % connections,
                "%.0f /s" % ours,
                "Slurm (slurmrestd, not durable): %.0f /s" % theirs,
                "%.1f x" % (ours / theirs),
            )
        slurm.say("scancel", "-u", "root")
        slurm.until_empty()
        slurm.say("scontrol", "update", "PartitionName=all", "State=UP")

        used, began = slurm.cpu_s(), time.monotonic()
        slurm.submit_all(JOBS, CONNECTIONS, true)
        slurm.until_empty()
        theirs, theirs_cpu = JOBS / (time.monotonic() - began), (slurm.cpu_s() - used) / JOBS
        with Local("--cpus", str(AT_ONCE)) as l:
            used, began = cpu_seconds(l.programs()), time.monotonic()
            l.submit_all(JOBS, CONNECTIONS)
            l.until_empty()
            ours, ours_cpu = (
                JOBS / (time.monotonic() - began),
                (cpu_seconds(l.programs()) - used) / JOBS,
            )
            say(
                "%d jobs of true, submit to end, one node" % JOBS,
                "%.0f /s" % ours,
                "Slurm: %.0f /s" % theirs,
                "%.1f x" % (ours / theirs),
            )
            say(
                "  processor time, including the jobs'",
                "%.1f ms a job" % (1000 * ours_cpu),
                "Slurm: %.1f ms" % (1000 * theirs_cpu),
                "%.2f x" % (ours_cpu / theirs_cpu),
            )
            c = slurm.connect()
            theirs = first_line(lambda script: slurm.submit(c, script), slurm.dir)
            ours = first_line(
                lambda script: l.post("/jobs", {"script": script, "cwd": "/"}), l.home
            )
            say(
                "submit -> the program's first line, idle node",
                "median %.0f ms" % (1000 * ours),
                "Slurm: %.0f ms" % (1000 * theirs),
                "%.3f x" % (ours / theirs),
            )
            theirs, ours = commands(slurm, l, belay)
            say(
                "one sbatch from the command line",
                "median %.1f ms" % ours,
                "Slurm's: %.1f ms" % theirs,
                "%.2f x" % (ours / theirs),
            )
