# SPDX-License-Identifier: Apache-2.0
"""A cloud and a belayd for a test: real processes, in their own directory, on loopback.

    with Lab() as lab:
        job = lab.submit("chain.py", "100", method="coop")
        lab.wait_log(job, r"^step 20 ")
        lab.cloud({"reclaim": {"instance": "all", "notice_s": 5}})
        lab.wait_ended(job)

Waits are for events (long polls of belayd and of the emulator, ends of processes), always with a
deadline. Leaving the block checks that nothing is left: no instance at the emulator, no process, no
sanitizer report.
"""

import contextlib
import glob
import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("BELAY_BUILD") or os.path.join(HERE, "..", "..", "build")
BUILD = os.path.abspath(BUILD)
JOBS = os.path.join(HERE, "jobs")
PYTHON = "/usr/bin/python3"

WAIT_S = 120  # upper limit of each wait, including sanitizers and a busy machine
POLL_MS = (
    1000  # the longest long poll, because the awaited change may not cause an event at that server
)
END_S = 30  # for everything to end after the test

ACCESS_KEY, SECRET_KEY = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

# The shortest times that still work on a loaded machine.
CLOUD = {
    "keys": [{"access_key": ACCESS_KEY, "secret_key": SECRET_KEY}],
    "boot_delay_ms": 300,
    "pools": [
        {
            "zone": ["us-east-1a", "us-east-1b"],
            "type": "m6i.xlarge",
            "spot": {"capacity": 8, "usd_per_hour": 0.0768},
            "on_demand": {"capacity": 8},
        }
    ],
}
POOL = {
    "provider": "aws",
    "region": "us-east-1",
    "zones": ["us-east-1a", "us-east-1b"],
    "types": ["m6i.xlarge"],
    "markets": ["spot", "on-demand"],
    "image": "ami-1",
    "max_nodes": 8,
    "idle_timeout": "1s",
    "cooldown": "1s",
    "paid_minimum": "0s",
    "refusal_backoff": "500ms",
    "launches_per_minute": 6000,
}

# Other providers: a section of the emulator's configuration, and additional lines for their pools.
AZURE = {
    "clients": [{"client_id": "belay", "client_secret": SECRET_KEY}],
    "boot_delay_ms": 300,
    "pools": [
        {
            "zone": ["1", "2"],
            "type": "Standard_D8s_v5",
            "spot": {"capacity": 8, "usd_per_hour": 0.0768},
            "on_demand": {"capacity": 8},
        }
    ],
}
AZURE_POOL = {
    **POOL,
    "provider": "azure",
    "region": "eastus",
    "zones": ["1", "2"],
    "types": ["Standard_D8s_v5"],
    "image": "Debian:debian-12:12-gen2:latest",
    "resource_group": "lab",
    "subnet": "net/nodes",
    "ssh_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA lab",
}
GCP = {
    "service_accounts": [
        {"email": "belay@lab.iam.gserviceaccount.com", "key_file": "gcp-key.json"}
    ],
    "boot_delay_ms": 300,
    "project": "lab-123",
    "pools": [
        {
            "zone": ["us-central1-a", "us-central1-b"],
            "type": "n2-standard-8",
            "spot": {"capacity": 8, "usd_per_hour": 0.184},
            "on_demand": {"capacity": 8},
        }
    ],
}
GCP_POOL = {
    **POOL,
    "provider": "gcp",
    "region": "us-central1",
    "zones": ["us-central1-a", "us-central1-b"],
    "types": ["n2-standard-8"],
    "image": "projects/debian-cloud/global/images/family/debian-12",
    "project": "lab-123",
}
# With intervals between requests that suit a test; the pool's are longer, for a slow machine.
LAMBDA = {
    "api_keys": [SECRET_KEY],
    "boot_delay_ms": 300,
    "request_every_ms": 20,
    "launch_every_ms": 40,
    "pools": [{"zone": "us-west-2", "type": "cpu_4x_general", "on_demand": {"capacity": 8}}],
}
LAMBDA_POOL = {
    **{key: value for key, value in POOL.items() if key not in ("zones", "markets", "image")},
    "provider": "lambda",
    "region": "us-west-2",
    "types": ["cpu_4x_general"],
    "ssh_key": "ops",
    "request_every": "100ms",
    "launch_every": "200ms",
}
USUAL = {
    "aws": (CLOUD, POOL),
    "azure": (AZURE, AZURE_POOL),
    "gcp": (GCP, GCP_POOL),
    "lambda": (LAMBDA, LAMBDA_POOL),
}
BELAYD = {
    "cluster": "e2e",
    "listen": "127.0.0.1:0",
    "lease": "3s",
    "kill_wait": "2s",
    "sweep": "1s",
    "busy_sweep": "300ms",
    "settle": "2s",
}

# Six frames per allocation, as in scripts/test, because recording thirty takes longer.
ASAN_OPTIONS = "malloc_context_size=6:log_path=%s/sanitizer"

# An agent with sanitizer reports in files, whatever its stderr; user data finds it in its PATH.
AGENT = """\
#!/bin/sh
export BELAY_NODE_SYSTEM_USERS=root
%(agent_prelude)s
export ASAN_OPTIONS=%(asan_options)s UBSAN_OPTIONS=print_stacktrace=1:log_path=%(dir)s/sanitizer
exec %(build)s/agent/belay-agent "$@"
"""


SEAM = re.compile(r"^---- belay: .* ----\n", re.M)  # where an attempt begins in a job's log


class Unix(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Refused(Exception):
    """belayd answered with an error."""

    def __init__(self, text, status):
        super().__init__(text)
        self.status = status


class Lab:
    told_bytes = 8000  # of each log, after a failure
    names_dir = True  # False: the emulator makes its machines' directory where it does by default

    def __init__(
        self, cloud=None, pool=None, belayd=None, agent_prelude="", provider="aws", bare=False
    ):
        usual_cloud, usual_pool = USUAL[provider]
        self.provider = provider
        self.cloud_config = {**usual_cloud, **(cloud or {})}
        self.belayd_config = {**BELAYD, **(belayd or {})}
        self.pool = {**usual_pool, **(pool or {})}
        self.agent_prelude = agent_prelude  # shell, before an agent starts
        self.bare = bare  # machines have no belay-agent
        self.emulator = None
        self.seen = 0  # the last belayd event read

    # ---- start and end ----

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="belay-e2e.")
        self.home = os.path.join(self.dir, "home")
        sanitizer = "log_path=%s/sanitizer" % self.dir
        self.env = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("AWS_", "BELAY_", "GOOGLE_", "LAMBDA_"))
        }
        self.env.update(
            BELAY_HOME=self.home,
            ASAN_OPTIONS=ASAN_OPTIONS % self.dir,
            UBSAN_OPTIONS="print_stacktrace=1:" + sanitizer,
        )
        try:
            self.start()
        except BaseException:
            self.tell(self.end())
            raise
        return self

    def __exit__(self, kind, error, trace):
        problems = self.end()
        if error or problems:
            self.tell(problems)
        else:
            shutil.rmtree(self.dir)
        if not error and problems:
            raise AssertionError("; ".join(problems))

    def write(self, name, text, mode=0o600):
        path = os.path.join(self.dir, name)
        with open(path, "w") as f:
            f.write(text if isinstance(text, str) else json.dumps(text, indent=1) + "\n")
        os.chmod(path, mode)
        return path

    def write_agent(self):
        """The program that nodes run as belay-agent."""
        values = {
            "dir": self.dir,
            "build": BUILD,
            "agent_prelude": self.agent_prelude,
            "asan_options": ASAN_OPTIONS % self.dir,
        }
        os.mkdir(os.path.join(self.dir, "bin"))
        self.write("bin/belay-agent", AGENT % values, 0o755)

    def start(self):
        if self.bare:
            os.mkdir(os.path.join(self.dir, "bin"))
        else:
            self.write_agent()
        ports = self.start_emulator()
        self.config = self.write("belayd.yaml", {**self.belayd_config, **self.provision(ports)})
        self.up()

    def provision(self, ports):
        """The pools of belayd's configuration."""
        return {"pools": {"cloud": {**self.pool, **self.access(self.provider, ports)}}}

    def access(self, provider, ports):
        """Writes the credentials; returns the lines of a pool that locate its cloud."""
        if provider == "azure":
            url = ports["azure"]
            keys = {"tenant": ports["azure_tenant"], "appId": "belay", "password": SECRET_KEY}
            return {
                "endpoint": url,
                "login": url,
                "prices": url,
                "subscription": ports["azure_subscription"],
                "credentials": self.write("credentials-azure", keys),
            }
        if provider == "gcp":
            return {
                "endpoint": ports["gcp"],
                "credentials": next(iter(ports["gcp_key_files"].values())),
            }
        if provider == "lambda":
            return {
                "endpoint": ports["lambda"],
                "credentials": self.write("credentials-lambda", SECRET_KEY + "\n"),
            }
        keys = "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n" % (
            ACCESS_KEY,
            SECRET_KEY,
        )
        return {"endpoint": ports["ec2"], "credentials": self.write("credentials", keys)}

    def clouds(self):
        """The providers of the emulator's configuration."""
        return (
            self.cloud_config
            if self.provider == "aws"
            else {"providers": {self.provider: self.cloud_config}}
        )

    def start_emulator(self):
        """Starts the emulator; returns the content of its port file."""
        ports = os.path.join(self.dir, "ports.json")
        place = {"dir": os.path.join(self.dir, "machines")} if self.names_dir else {}
        config = self.write(
            "emulator.yaml",
            {**self.clouds(), **place, "agent_path": os.path.join(self.dir, "bin")},
        )
        with open(os.path.join(self.dir, "emulator.log"), "w") as log:
            self.emulator = subprocess.Popen(
                [BUILD + "/emulator/belay-emulator", "--config", config, "--port-file", ports],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.env,
                start_new_session=True,
            )
        end = time.monotonic() + WAIT_S
        while not os.path.exists(ports):
            if self.emulator.poll() is not None or time.monotonic() > end:
                raise AssertionError("the emulator did not start")
            time.sleep(0.02)
        with open(ports) as f:
            said = json.load(f)
        self.control = said["control"]
        return said

    def up(self):
        """Starts belayd if it does not run."""
        self.belay("up", "--no-agent", "--config", self.config)

    def end(self):
        """Ends everything, gracefully first. Returns what was wrong."""
        problems = []
        if os.path.exists(os.path.join(self.home, "belayd.json")) and self.belayd_pid():
            problems += self.wait_for_no_instances()
            problems += self.stop_belayd()
        if self.emulator:
            problems += self.stop_emulator()
        left = self.processes()
        if not all_gone(left, END_S):
            problems.append("processes are left: %s" % [command_line(pid) for pid in left])
        left = self.processes()
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        all_gone(left, END_S)  # before their directory is removed
        reports = [
            name
            for name in os.listdir(self.dir)
            if name.startswith("sanitizer") and self.is_report(name)
        ]
        if reports:
            problems.append("a sanitizer has reported: %s" % ", ".join(reports))
        return problems

    def is_report(self, name):
        """True if the report is more than the leak checker's note about a thread that it could not
        stop.
        """
        text = read_bytes(os.path.join(self.dir, name)).decode(errors="replace")
        return "ERROR: " in text or "runtime error: " in text

    def wait_for_no_instances(self):
        """Cancels jobs left by a failed test; then belayd terminates its machines."""
        try:
            for job in self.get("/jobs?state=active&limit=200")["jobs"]:
                with contextlib.suppress(Refused):
                    self.post("/jobs/%d/cancel" % job["id"])
            self.wait_cloud(nothing_is_left, "nothing is left at the cloud", END_S)
        except (AssertionError, Refused, OSError) as error:
            return [str(error)]
        return []

    def stop_belayd(self):
        pid = self.belayd_pid()
        os.kill(pid, signal.SIGTERM)
        return [] if all_gone([pid], END_S) else ["belayd does not end"]

    def stop_emulator(self):
        if self.emulator.poll() is None:
            self.emulator.terminate()
        try:
            code = self.emulator.wait(END_S)
        except subprocess.TimeoutExpired:
            self.emulator.kill()
            code = self.emulator.wait()
        return ["the emulator's exit code is %d" % code] if code else []

    def tell(self, problems):
        """Prints everything that helps to diagnose a failure; the directory is kept."""
        for problem in problems:
            print("PROBLEM: " + problem, file=sys.stderr)
        for root, _, names in os.walk(self.dir):
            for name in sorted(names):
                if name.endswith((".log", ".console")) or name.startswith("sanitizer"):
                    with open(os.path.join(root, name), errors="replace") as f:
                        print(
                            "==== %s\n%s"
                            % (os.path.join(root, name), f.read()[-self.told_bytes :]),
                            file=sys.stderr,
                        )
        print("everything is in %s" % self.dir, file=sys.stderr)

    # ---- processes ----

    def processes(self):
        """Every process of this lab, found by its directory in their environment or arguments."""
        mark, found = self.dir.encode(), []
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                if mark in read_bytes("/proc/%s/environ" % entry):
                    found.append(int(entry))
        return found

    def agents(self):
        """The agents' pids."""
        return [
            p
            for p in self.processes()
            if re.search(r"belay-agent\0--config\0", command_line(p, "\0"))
        ]

    def supervisors(self):
        return [p for p in self.processes() if is_supervisor(p) and not is_supervisor(parent(p))]

    def belayd_pid(self):
        """0 = not running."""
        with contextlib.suppress(OSError, ValueError):
            with open(os.path.join(self.home, "belayd.json")) as f:
                pid = json.load(f)["pid"]
            if "belayd" in command_line(pid):
                return pid
        return 0

    def kill_belayd(self):
        pid = self.belayd_pid()
        os.kill(pid, signal.SIGKILL)
        if not all_gone([pid], WAIT_S):
            raise AssertionError("belayd survives SIGKILL")

    # ---- belayd ----

    def belay(self, *arguments, check=True, **more):
        """Runs a verb and returns its output."""
        done = subprocess.run(
            [BUILD + "/cli/belay", *arguments],
            cwd=self.dir,
            env=self.env,
            timeout=2 * WAIT_S,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            universal_newlines=True,
            **more
        )
        if check and done.returncode != 0:
            raise AssertionError("belay %s: exit code %d" % (" ".join(arguments), done.returncode))
        return done.stdout

    def start_belay(self, *arguments, **more):
        """Starts a verb in parallel to the test, with its output to read."""
        return subprocess.Popen(
            [BUILD + "/cli/belay", *arguments],
            cwd=self.dir,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            universal_newlines=True,
            **more
        )

    def call(self, method, path, body=None, root="/api/v1", headers={}):
        """One call of the API; returns the response and its body."""
        c = Unix(os.path.join(self.home, "belayd.sock"), WAIT_S)
        with contextlib.closing(c):
            c.request(
                method,
                root + path,
                json.dumps(body) if body is not None else None,
                {"Content-Type": "application/json", **headers},
            )
            reply = c.getresponse()
            data = reply.read()
        if not 200 <= reply.status <= 299:
            raise Refused(
                "%s %s: %d %s" % (method, path, reply.status, data.decode(errors="replace")),
                reply.status,
            )
        return reply, data

    def get(self, path):
        return json.loads(self.call("GET", path)[1])

    def post(self, path, body=None):
        return json.loads(self.call("POST", path, body or {})[1])

    def submit(self, program, *args, method="none", every_ms=0, keep=3, **spec):
        """Submits a job that runs one of the programs in jobs/, or any other by its path. Returns
        its number."""
        path = os.path.join(JOBS, program)
        if program.endswith(".py"):
            script = '#!/bin/sh\nexec %s %s "$@"\n' % (PYTHON, path)
        else:
            script = '#!/bin/sh\nexec %s "$@"\n' % path
        return self.post(
            "/jobs",
            {
                "name": os.path.basename(program),
                "script": script,
                "args": [str(a) for a in args],
                "cwd": "/",
                "checkpoint": {"method": method, "every_ms": every_ms, "keep": keep},
                **spec,
            },
        )["id"]

    def show(self, job):
        return self.get("/jobs/%d" % job)

    def job(self, job):
        return self.show(job)["job"]

    def events(self, job):
        return self.get("/jobs/%d/events" % job)["events"]

    def kinds(self, job):
        return [e["kind"] for e in self.events(job)]

    def instance_of(self, job):
        """The provider's id of the machine that the job's newest attempt is or was on. An agent may
        join, and its job run, before the launch is answered."""
        node = self.show(job)["attempts"][-1]["node"]

        def look():
            return [
                i["provider_id"]
                for i in self.get("/instances?state=all")["instances"]
                if i["node"] == node
            ][0]

        return self.wait(look, "the provider's answer to the launch of job %d's machine" % job)

    def emulated(self, provider_id):
        """The newest instance that the provider knows under this id or name."""
        name = provider_id.split("/")[-1]  # Google's is prefixed with the zone
        return [i for i in self.state()["instances"] if name in (i["instance"], i["name"])][-1]

    def log(self, job):
        return self.belay("logs", str(job))

    def said(self, job):
        """What the job has printed: its log without belay's own lines."""
        return SEAM.sub("", self.log(job))

    # ---- waiting ----

    def wait(self, is_there, what, timeout_s=WAIT_S):
        """Retries after every event of belayd; returns the result of is_there."""
        end = time.monotonic() + timeout_s
        while True:
            answer = is_there()
            if answer:
                return answer
            if time.monotonic() > end:
                raise AssertionError("not within %d s: %s" % (timeout_s, what))
            page = self.get("/events?after=%d&wait_ms=%d" % (self.seen, POLL_MS))
            self.seen = page["last"]

    def wait_event(self, job, kind, n=1, timeout_s=WAIT_S):
        """The nth event of that kind."""

        def look():
            found = [e for e in self.events(job) if e["kind"] == kind]
            return found[n - 1] if len(found) >= n else None

        return self.wait(look, "event %s of job %d (%d.)" % (kind, job, n), timeout_s)

    def wait_ended(self, job, timeout_s=WAIT_S):
        self.wait(lambda: self.job(job)["state"] == "ended", "the end of job %d" % job, timeout_s)
        return self.show(job)

    def wait_log(self, job, pattern, timeout_s=WAIT_S):
        """Waits until the job's output has a line like this; returns the match."""
        text, offset, end = "", 0, time.monotonic() + timeout_s
        while True:
            found = re.search(pattern, text, re.M)
            if found:
                return found
            if time.monotonic() > end:
                raise AssertionError(
                    "not within %d s: a line %r in job %d's log:\n%s"
                    % (timeout_s, pattern, job, text)
                )
            reply, data = self.call(
                "GET", "/jobs/%d/logs?offset=%d&wait_ms=%d" % (job, offset, POLL_MS)
            )
            text, offset = text + data.decode(), int(reply.headers["Belay-Log-Next"])

    def wait_output(self, job, pattern, timeout_s=WAIT_S):
        """As wait_log, for the job's output on its machine: belayd need not run."""
        end = time.monotonic() + timeout_s
        while True:
            paths = glob.glob(
                os.path.join(glob.escape(self.dir), "machines", "**", "%d-*" % job, "output.log"),
                recursive=True,
            )
            for path in paths:
                with contextlib.suppress(OSError):
                    found = re.search(pattern, read_bytes(path).decode(errors="replace"), re.M)
                    if found:
                        return found
            if time.monotonic() > end:
                raise AssertionError(
                    "not within %d s: a line %r in %s" % (timeout_s, pattern, paths)
                )
            time.sleep(0.02)  # there is no event to wait for

    # ---- the cloud ----

    def cloud(self, event):
        """Triggers an event in the cloud."""
        return self.ask_cloud("/events", event)["results"]

    def ask_cloud(self, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        with urllib.request.urlopen(self.control + path, data, timeout=WAIT_S) as reply:
            return json.load(reply)

    def state(self):
        return self.ask_cloud("/state")

    def wait_cloud(self, is_there, what, timeout_s=WAIT_S):
        """Retries after every event of the emulator."""
        end = time.monotonic() + timeout_s
        while True:
            state = self.state()
            if is_there(state):
                return state
            if time.monotonic() > end:
                raise AssertionError("not within %d s: %s" % (timeout_s, what))
            self.ask_cloud("/events?after=%d&wait_s=1" % state["last_seq"])

    # ---- the store ----

    def manifests(self, job):
        """(attempt, sequence) of the checkpoints in the store, oldest first."""
        path = os.path.join(self.store_of(job), "manifests")
        names = os.listdir(path) if os.path.isdir(path) else []
        return sorted(tuple(int(n) for n in name.split(".")[0].split("-")) for name in names)

    def store_of(self, job):
        return os.path.join(self.home, "store", self.belayd_config["cluster"], "jobs", str(job))


def nothing_is_left(state):
    """Whether there are no instances, including stopped ones, and no separate resources: disks,
    interfaces."""
    return (
        state["alive"] == 0
        and not any(i["state"] == "stopped" for i in state["instances"])
        and not any(
            r["type"] != "bucket"
            for p in state["providers"].values()
            for r in p.get("resources") or []
        )
    )


def check_reclaimed_once(test, lab, job, shown, steps):
    """It resumed once, lost no step, and printed what it prints undisturbed."""
    test.assertEqual(shown["job"]["end"], "succeeded")
    test.assertEqual([a["end"] for a in shown["attempts"]], ["reclaimed", "succeeded"])
    test.assertEqual(shown["job"]["lost_steps"], 0)
    test.assertEqual(len(SEAM.findall(lab.log(job))), 1)
    test.assertEqual(lab.said(job), undisturbed("chain.py", steps, 0))


def read_bytes(path):
    with open(path, "rb") as f:
        return f.read()


def command_line(pid, separator=" "):
    with contextlib.suppress(OSError):
        return (
            read_bytes("/proc/%d/cmdline" % pid).decode(errors="replace").replace("\0", separator)
        )
    return ""


def is_supervisor(pid):
    return name(pid) == "belay-task"


def name(pid):
    with contextlib.suppress(OSError):
        return read_bytes("/proc/%d/comm" % pid).decode(errors="replace").strip()
    return ""


def parent(pid):
    with contextlib.suppress(OSError):
        return int(read_bytes("/proc/%d/stat" % pid).rsplit(b")", 1)[1].split()[1])
    return 0


def all_gone(pids, timeout_s):
    """Waits for the end of processes, which need not be our children."""
    end = time.monotonic() + timeout_s
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        gone = poll.poll(max(0, end - time.monotonic()) * 1000)
        os.close(fd)
        if not gone:
            return False
    return True


def undisturbed(program, *args):
    """The program's output without belay."""
    path = os.path.join(JOBS, program)
    command = [PYTHON, path] if program.endswith(".py") else [path]
    env = {k: v for k, v in os.environ.items() if not k.startswith("BELAY_")}
    env["PYTHONPATH"] = BUILD + "/clients/python"
    done = subprocess.run(
        [*command, *(str(a) for a in args)],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        universal_newlines=True,
        check=True,
        timeout=2 * WAIT_S,
    )
    return done.stdout
