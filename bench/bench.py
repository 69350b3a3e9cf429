# SPDX-License-Identifier: Apache-2.0
"""belay's figures, each next to a reference measured in the same run, so that a slow or busy
machine shows in both.

    scripts/bench            # builds, then runs everything but flood
    scripts/bench policy --product      # bench/policy_product.py
    bench/bench.py NAME...   # only these: submits jobs notice requeue latency startup queue restart
                             # market agents checkpoint commit state_dict gpu lost reclaim fair plan
                             # policy pace telemetry ledger stream console flood (BELAY_BUILD
                             # names the build)

docs/benchmarks.md says what each figure means. Nothing here passes or fails.
"""

import contextlib
import glob
import json
import os
import resource
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(TOP, "tests", "e2e"), os.path.join(TOP, "tests", "web")]
import agents  # noqa: E402
import browsing  # noqa: E402
import checkpoint  # noqa: E402
import commit  # noqa: E402
import flood  # noqa: E402
import lab  # noqa: E402
import load  # noqa: E402
import lost  # noqa: E402
import policy_product  # noqa: E402
import reclaim  # noqa: E402
import slurm  # noqa: E402
import state_dict  # noqa: E402
import stream  # noqa: E402
import suspend  # noqa: E402

# As `belay up` writes it, but without a limit on the jobs of one user.
CONFIG = "cluster: local\nlisten: 127.0.0.1:0\neach_user: {max_submitted: none}\n"
SPEC = {"script": "#!/bin/sh\nexec true\n", "cwd": "/"}


def say(name, value, reference="", ratio=""):
    print("%-46s %-22s %-46s %s" % (name, value, reference, ratio), flush=True)


class Local:
    """`belay up` in its own directory."""

    def __init__(self, *options):
        self.options = options

    def __enter__(self):
        self.home = tempfile.mkdtemp(prefix="belay-bench.", dir=os.environ.get("BELAY_BENCH_DIR"))
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("BELAY_")}
        self.env["BELAY_HOME"] = self.home
        self.socket = os.path.join(self.home, "belayd.sock")
        with open(os.path.join(self.home, "belayd.yaml"), "w") as f:
            f.write(CONFIG)
        self.up()
        return self

    def __exit__(self, *_):
        self.belay("down")
        shutil.rmtree(self.home)

    def belay(self, *words):
        return subprocess.run(
            [lab.BUILD + "/cli/belay", *words],
            env=self.env,
            check=True,
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            universal_newlines=True,
        ).stdout

    def up(self):
        self.belay("up", *self.options)

    def pid(self, file="belayd.json"):
        with open(os.path.join(self.home, file)) as f:
            return json.load(f)["pid"]

    def get(self, path):
        c = lab.Unix(self.socket, 60)
        with contextlib.closing(c):
            c.request("GET", "/api/v1" + path)
            return json.loads(c.getresponse().read())

    def metrics(self):
        c = lab.Unix(self.socket, 60)
        with contextlib.closing(c):
            c.request("GET", "/metrics")
            return c.getresponse().read().decode()

    def post(self, path, body):
        c = lab.Unix(self.socket, 60)
        with contextlib.closing(c):
            c.request(
                "POST", "/api/v1" + path, json.dumps(body), {"Content-Type": "application/json"}
            )
            reply = c.getresponse()
            said = json.loads(reply.read())
            if reply.status >= 300:
                raise SystemExit("bench: %s: %s" % (path, said))
            return said

    def post_all(self, requests, connections):
        """Sends POSTs of (path, body) over this many connections; returns the seconds it took."""
        return load.post_all(
            self.socket, [("/api/v1" + path, body) for path, body in requests], connections
        )

    def programs(self):
        """belayd and the agent with its processes, without the jobs."""
        return [self.pid()] + programs_below(self.pid("agent.pid"))

    def until_empty(self):
        while self.get("/jobs?state=active&limit=1")["jobs"]:
            self.get(
                "/events?after=%d&wait_ms=100" % (1 << 40)
            )  # nothing to wait on: polls ten times a second

    def submit_all(self, n, connections):
        return self.post_all([("/jobs", json.dumps(SPEC).encode())] * n, connections)


def bare_commits(directory, n):
    """Durable transactions per second in the same directory, each with one row of a job's size."""
    db = sqlite3.connect(os.path.join(directory, "bare.db"), isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)")
    row = "x" * 500
    began = time.monotonic()
    for _ in range(n):
        db.execute("INSERT INTO t (x) VALUES (?)", (row,))
    rate = n / (time.monotonic() - began)
    db.close()
    return rate


CANCELLED = 10000


def bench_submits():
    with Local("--no-agent") as l:
        bare = bare_commits(l.home, 2000)
        for connections, n in ((1, 2000), (8, 8000)):
            rate = n / l.submit_all(n, connections)
            say(
                "durable submits, %d connection%s" % (connections, "s" if connections > 1 else ""),
                "%.0f /s" % rate,
                "SQLite commits of one row: %.0f /s" % bare,
                "%.2f x" % (rate / bare),
            )
        body = json.dumps({**SPEC, "array": "0-999"}).encode()
        took = l.post_all([("/jobs", body)] * 200, 1) / 200
        say(
            "an array of 1000 tasks, 1 connection",
            "%.2f ms" % (1000 * took),
            "an SQLite commit: %.2f ms" % (1000 / bare),
            "%.1f x" % (took * bare),
        )
        first = l.post("/jobs", SPEC)["id"]
        l.submit_all(CANCELLED - 1, 32)
        body = json.dumps({"jobs": ["%d-%d" % (first, first + CANCELLED - 1)]}).encode()
        took = l.post_all([("/jobs/cancel", body)], 1)
        say(
            "%d queued jobs cancelled by one call" % CANCELLED,
            "%.0f ms" % (1000 * took),
            "as many SQLite commits: %.0f ms" % (1000 * CANCELLED / bare),
            "%.3f x" % (took * bare / CANCELLED),
        )


TRUE_JOBS, TRUE_AT_ONCE = int(os.environ.get("BELAY_BENCH_JOBS", "10000")), 64


def cpu_seconds(pids):
    """Seconds of processor time of these processes and of their children that have ended."""
    total = 0
    for pid in pids:
        with open("/proc/%d/stat" % pid) as f:
            total += sum(int(word) for word in f.read().rpartition(")")[2].split()[11:15])
    return total / os.sysconf("SC_CLK_TCK")


def programs_below(pid):
    """The process, its children that fork supervisors, and their children that wait for a task. The
    time of ended processes is in that of their parents.
    """
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError), open("/proc/%d/task/%d/children" % (one, one)) as f:
            found += [int(word) for word in f.read().split()]
    return found


def xargs(n):
    """n scripts of `true` by xargs, TRUE_AT_ONCE in parallel: elapsed and processor seconds."""
    with tempfile.TemporaryDirectory() as d:
        script = os.path.join(d, "true.sh")
        with open(script, "w") as f:
            f.write(SPEC["script"])
        os.chmod(script, 0o755)
        began, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            ["xargs", "-P%d" % TRUE_AT_ONCE, "-I{}", script],
            input="x\n" * n,
            check=True,
            universal_newlines=True,
        )
        took, now = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime


def floor(n):
    """The same with a directory, files, a cgroup and a synced row for each, by bench_floor:
    seconds, seconds of processor time.
    """
    with tempfile.TemporaryDirectory(dir=os.environ.get("BELAY_BENCH_DIR")) as d:
        said = subprocess.run(
            [lab.BUILD + "/bench/bench_floor", d, str(n), str(TRUE_AT_ONCE), SPEC["script"]],
            check=True,
            stdout=subprocess.PIPE,
            universal_newlines=True,
        ).stdout
    took, cpu = said.split()
    return float(took), float(cpu)


def bench_jobs():
    n = TRUE_JOBS
    bare, bare_cpu = xargs(n)
    least, least_cpu = floor(n)
    with Local("--cpus", str(TRUE_AT_ONCE)) as l:
        used = cpu_seconds(l.programs())
        began = time.monotonic()
        l.submit_all(n, 8)
        l.until_empty()
        took = time.monotonic() - began
        used = cpu_seconds(l.programs()) - used
    say(
        "%d jobs of true, submit to end, one node" % n,
        "%.0f /s" % (n / took),
        "xargs -P%d with the same script: %.0f /s" % (TRUE_AT_ONCE, n / bare),
        "%.2f x" % (bare / took),
    )
    say(
        "  processor time, belay's and the job's",
        "%.2f ms a job" % (1000 * used / n),
        "the job's own: %.2f ms" % (1000 * bare_cpu / n),
        "belay's: %.2f ms" % (1000 * (used - bare_cpu) / n),
    )
    say(
        "  bench_floor: only files, cgroup, fork and row",
        "%.0f /s, %.2f ms a job" % (n / least, 1000 * least_cpu / n),
        "xargs -P%d with the same script: %.0f /s" % (TRUE_AT_ONCE, n / bare),
        "%.2f x; %.2f ms" % (bare / least, 1000 * (least_cpu - bare_cpu) / n),
    )


# Writes the time of the signal, then saves and ends as a program of the signal method
# does.
TRAP = """\
import os, signal, sys, time
def save(*_):
    with open(sys.argv[1], "w") as f:
        f.write(repr(time.time()))
    sys.exit(85)
signal.signal(signal.SIGUSR1, save)
print("ready", flush=True)
while True:
    signal.pause()
"""


def bench_notice():
    took = []
    with lab.Lab() as l:
        program = l.write("trap.py", TRAP)
        for i in range(8):
            said = os.path.join(l.dir, "signal.%d" % i)
            job = l.post(
                "/jobs",
                {
                    "name": "trap",
                    "cwd": "/",
                    "market": "spot",
                    "script": "#!/bin/sh\nexec %s %s %s\n" % (lab.PYTHON, program, said),
                    "checkpoint": {"method": "signal", "every_ms": 3600000},
                },
            )["id"]
            l.wait_log(job, "^ready")
            visible = time.time()
            l.cloud({"reclaim": {"instance": l.instance_of(job), "notice_s": 10}})
            l.wait_event(job, "requeued")
            with open(said) as f:
                took.append(float(f.read()) - visible)
            l.post("/jobs/%d/cancel" % job)
            l.wait_ended(job)
    took.sort()
    say(
        "notice at the endpoint -> signal in the program",
        "median %.0f ms" % (1000 * statistics.median(took)),
        "polled every 1000 ms: 500 ms on average",
        "%.2f x; slowest %.0f ms" % (statistics.median(took) / 0.5, 1000 * took[-1]),
    )


def bench_requeue():
    took = []
    with Local() as l:
        script = os.path.join(l.home, "wait.sh")
        with open(script, "w") as f:
            f.write("#!/bin/sh\nexec sleep 600\n")
        job = int(l.belay("submit", script).split()[-1])
        for n in range(1, 9):
            wait_for(l, job, "started", n)
            l.belay("requeue", str(job))
            wait_for(l, job, "started", n + 1)
            at = {e["kind"]: e["at"] for e in l.get("/jobs/%d/events" % job)["events"]}
            took.append(stamp(at["started"]) - stamp(at["requeued"]))
        l.belay("cancel", str(job))
    began = time.monotonic()
    for _ in range(50):
        subprocess.run(["/bin/true"], check=True)
    spawn = (time.monotonic() - began) / 50
    say(
        "requeued -> running on a warm node",
        "median %.0f ms" % (1000 * statistics.median(took)),
        "starting a process from Python: %.1f ms" % (1000 * spawn),
        "%.0f x" % (statistics.median(took) / spawn),
    )


def bench_latency():
    """From the first byte of a submit to the program's first action: each writes the time."""
    took = []
    with Local() as l:
        program = os.path.join(l.home, "now.sh")
        with open(program, "w") as f:
            f.write("#!/bin/bash\necho $EPOCHREALTIME >$1.part\nmv $1.part $1\n")
        os.chmod(program, 0o755)
        for n in range(30):
            said = os.path.join(l.home, "said.%d" % n)
            began = time.time()
            l.post("/jobs", {"script": "#!/bin/bash\nexec %s %s\n" % (program, said), "cwd": "/"})
            while l.get("/jobs?state=active&limit=1")["jobs"]:
                l.get("/events?after=%d&wait_ms=5" % (1 << 40))
            with open(said) as f:
                took.append(float(f.read()) - began)
    began = time.monotonic()
    for _ in range(50):
        subprocess.run(["/bin/bash", "-c", ":"], check=True)
    spawn = (time.monotonic() - began) / 50
    say(
        "submit -> the program's first line, idle node",
        "median %.0f ms" % (1000 * statistics.median(took)),
        "starting bash from Python: %.1f ms" % (1000 * spawn),
        "slowest %.0f ms" % (1000 * max(took)),
    )


LATE = "libcurl.so.4 libssl.so.3 libcrypto.so.3 libsqlite3.so.0"  # cli/lazy.h


def processor_ms(fn):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    fn()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def bench_startup():
    """What belay gains by loading libraries on demand: `belay list`, and the same with all of them
    loaded at the start.
    """
    own, linked = [], []
    with Local("--no-agent") as l:
        for _ in range(200):
            own.append(processor_ms(lambda: l.belay("list")))
            l.env["LD_PRELOAD"] = LATE
            linked.append(processor_ms(lambda: l.belay("list")))
            del l.env["LD_PRELOAD"]
    own, linked = statistics.median(own), statistics.median(linked)
    say(
        "belay list, processor time",
        "median %.1f ms" % own,
        "with all libraries loaded first: %.1f ms" % linked,
        "%.2f x" % (own / linked),
    )


def stamp(text):
    whole, _, part = text.rstrip("Z").partition(".")
    return time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float("0." + (part or "0"))


def wait_for(l, job, kind, n):
    while sum(e["kind"] == kind for e in l.get("/jobs/%d/events" % job)["events"]) < n:
        l.get(
            "/jobs/%d/events?after=%d&wait_ms=1000" % (job, l.get("/jobs/%d/events" % job)["last"])
        )


def stopped(l):
    """Kills belayd; returns its database, to be closed by the caller."""
    pid = l.pid()
    os.kill(pid, signal.SIGKILL)
    lab.all_gone([pid], 60)
    return contextlib.closing(sqlite3.connect(os.path.join(l.home, "belay.db")))


def read_jobs(db):
    """The number of jobs, and the seconds in which Python reads them."""
    began = time.monotonic()
    rows = len(db.execute("SELECT * FROM jobs").fetchall())
    return rows, time.monotonic() - began


def seconds_up(l):
    began = time.monotonic()
    l.up()
    return time.monotonic() - began


def bench_queue():
    n = 100000
    with Local("--no-agent") as l:
        empty = resident(l.pid())
        seconds = l.submit_all(n, 32)
        full = resident(l.pid())
        say("100,000 jobs queued, submitted over 32 connections", "%.0f /s" % (n / seconds))
        say(
            "belayd's memory with them",
            "%.0f MiB" % (full / 1024),
            "empty: %.0f MiB" % (empty / 1024),
            "%.0f bytes a job" % ((full - empty) * 1024 / n),
        )
        files = sum(
            os.path.getsize(os.path.join(l.home, f))
            for f in os.listdir(l.home)
            if f.startswith("belay.db")
        )
        with stopped(l) as db:
            rows, bare = read_jobs(db)
        restart = seconds_up(l)
        say(
            "kill -9 -> answering again",
            "%.0f ms" % (1000 * restart),
            "reading the %d rows from Python: %.0f ms" % (rows, 1000 * bare),
            "%.1f x" % (restart / bare),
        )
        say("its files", "%.0f MiB" % (files / 2**20), "", "%.0f bytes a job" % (files / n))


RESTART_JOBS = 1000000


def multiply(db, table, key, had, n):
    """Copies the rows 1 .. had of a table until there are n, doubling them in each round."""
    columns = [row[1] for row in db.execute("PRAGMA table_info(%s)" % table)]
    values = ["%s + %%d" % key if c == key else c for c in columns]
    while had < n:
        more = min(had, n - had)
        db.execute(
            "INSERT INTO %s (%s) SELECT %s FROM %s WHERE %s <= %d"
            % (table, ", ".join(columns), ", ".join(values) % had, table, key, more)
        )
        had += more


def bench_restart():
    """n queued jobs of ten users with a hundred different demands, written directly into the
    database, because submitting them would take most of the time.
    """
    some = 1000
    with Local("--no-agent") as l:
        l.post_all(
            [("/jobs", json.dumps({**SPEC, "cpus": 1 + n % 100}).encode()) for n in range(some)], 1
        )
        with stopped(l) as db:
            for table, key in (("jobs", "id"), ("job_specs", "job")):
                multiply(db, table, key, some, RESTART_JOBS)
            # Distinct submit times, as from real submits.
            db.execute(
                "UPDATE jobs SET user = 'user' || (id % 10), submitted_at = submitted_at - 1000000 + id"
            )
            db.commit()
            rows, bare = read_jobs(db)
        restart = seconds_up(l)
        say(
            "%d jobs queued, kill -9 -> answering again" % RESTART_JOBS,
            "%.1f s" % restart,
            "reading the %d rows from Python: %.1f s" % (rows, bare),
            "%.2f x" % (restart / bare),
        )
        say(
            "belayd's memory with them",
            "%.0f MiB" % (resident(l.pid()) / 1024),
            "",
            "%.0f bytes a job" % (resident(l.pid()) * 1024 / RESTART_JOBS),
        )
        if len(l.get("/jobs?state=active&limit=1")["jobs"]) != 1:
            raise SystemExit("bench: belayd has not loaded its jobs")


def resident(pid):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def traces_top():
    return os.environ.get("BELAY_TRACES", os.path.join(TOP, "..", "shared", "traces"))


def bench_market():
    """In virtual time, so independent of this machine."""
    top = traces_top()
    folders = sorted(glob.glob(os.path.join(top, "availability", "*", "*")))
    if not folders:
        print(
            "market: no traces in %s; BELAY_TRACES names the directory that holds availability/*/*"
            % top
        )
        return
    sys.stdout.flush()
    subprocess.run([lab.BUILD + "/bench/bench_market", *folders], check=True)


def bench_agents():
    with Local("--no-agent") as l:
        agents.bench(l, say, resident)


def bench_flood():
    with Local("--no-agent") as l:
        flood.bench(l, say, resident)


def bench_stream():
    with Local("--no-agent") as l:
        stream.bench(l, say, resident)


def bench_console():
    why = browsing.missing(lab.BUILD + "/scheduler/belayd")
    if why:
        print("console: skipped: " + why)
        return
    with Local("--no-agent") as l:
        browsing.bench(l, say, SPEC)


def bench_state_dict():
    state_dict.bench(say)


def bench_gpu():
    suspend.bench(say)
    if glob.glob("/dev/nvidia[0-9]*"):
        state_dict.bench(say, "cuda")


def bench_checkpoint():
    checkpoint.bench(lab.BUILD, say)


def bench_commit():
    with Local() as l:
        commit.bench(l, say)


def bench_fair():
    subprocess.run([lab.BUILD + "/bench/bench_fair"], check=True)


def bench_policy():
    """Windows a trace: 300, or BELAY_BENCH_OFFSETS. BELAY_BENCH_ONLY: a word of a heading, or a
    folder. BELAY_BENCH_CHOOSE=1 prints, instead, what sets of the cap's constants cost on each
    year. BELAY_BENCH_LAW=LOSSES,INTERRUPTIONS,PART uses other constants. BELAY_BENCH_HINDSIGHT=1
    learns from the judged time itself.
    """
    only, law = os.environ.get("BELAY_BENCH_ONLY"), os.environ.get("BELAY_BENCH_LAW")
    done = subprocess.run(
        [
            lab.BUILD + "/bench/bench_policy",
            "--offsets",
            os.environ.get("BELAY_BENCH_OFFSETS", "300"),
        ]
        + (["--only", only] if only else [])
        + (["--law", law] if law else [])
        + (["--choose"] if os.environ.get("BELAY_BENCH_CHOOSE") else [])
        + (["--hindsight"] if os.environ.get("BELAY_BENCH_HINDSIGHT") else [])
        + [traces_top()]
    )
    if done.returncode not in (0, 77):  # 77: no traces; it has printed so
        raise SystemExit(done.returncode)


def bench_plan():
    subprocess.run([lab.BUILD + "/bench/bench_plan"], check=True)


def bench_cap():
    """Whether the cap on the cost of jobs with a deadline holds: in 10^6 made-up worlds, or
    BELAY_BENCH_WORLDS. Five minutes of processor time, divided among the processors."""
    subprocess.run(
        [lab.BUILD + "/bench/bench_cap", os.environ.get("BELAY_BENCH_WORLDS", "1000000")],
        check=True,
    )


def bench_pace():
    subprocess.run([lab.BUILD + "/bench/bench_pace"], check=True)


def bench_telemetry():
    subprocess.run([lab.BUILD + "/bench/bench_telemetry"], check=True)


LEDGER_ENTRIES = int(os.environ.get("BELAY_BENCH_ENTRIES", "10000000"))

# The sums of `belay cost --by team --month`, computed from the rows of the ledger.
RAW = """SELECT coalesce(t.value, j.team, ''), strftime('%Y-%m', l.to_at / 1000, 'unixepoch'), sum(l.uusd), sum(l.on_demand_uusd), sum(l.ms)
  FROM ledger l LEFT JOIN jobs j ON j.id = l.job LEFT JOIN job_labels t ON t.job = l.job AND t.name = 'team' GROUP BY 1, 2"""


def times_of(n, fn):
    """The seconds that each of n calls takes."""
    took = []
    for _ in range(n):
        began = time.monotonic()
        fn()
        took.append(time.monotonic() - began)
    return took


def parts_of_cost(l):
    """Splits the time of `belay cost --by team --month`: medians, and the processor time of each
    process.
    """
    path = "/cost?by=team,month"
    l.get(path)  # opens belayd's connection to the database
    pid, n = l.pid(), 21
    start, http = (
        statistics.median(times_of(n, fn))
        for fn in (lambda: l.belay("version"), lambda: l.get("/version"))
    )
    used = cpu_seconds([pid])
    asked = statistics.median(times_of(n, lambda: l.get(path)))
    used = (cpu_seconds([pid]) - used) / n
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    whole = statistics.median(times_of(n, lambda: l.belay("cost", "--by", "team", "--month")))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / n
    say("  of which start-up of the command line", "%.1f ms" % (1000 * start), "belay version")
    say("  HTTP round trip", "%.1f ms" % (1000 * http), "GET /api/v1/version")
    say(
        "  SQL and JSON in belayd",
        "%.0f ms" % (1000 * (asked - http)),
        "processor time %.0f ms" % (1000 * used),
    )
    say(
        "  reading the answer, printing the table",
        "%.0f ms" % (1000 * (whole - asked - start)),
        "processor time, with start-up, %.0f ms" % (1000 * own),
    )


def fill_year(path):
    """Filling it takes a quarter of an hour. BELAY_BENCH_YEAR=FILE keeps the result there."""
    kept = os.environ.get("BELAY_BENCH_YEAR")
    if kept and os.path.exists(kept + ".json"):
        for rest in glob.glob(path + "-*"):  # the write-ahead log of the previous database
            os.unlink(rest)
        shutil.copyfile(kept, path)
        with open(kept + ".json") as f:
            return json.load(f)
    said = subprocess.run(
        [lab.BUILD + "/bench/bench_ledger", path, str(LEDGER_ENTRIES)],
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    if kept:
        shutil.copyfile(path, kept)
        with open(kept + ".json", "wb") as f:
            f.write(said)
    return json.loads(said)


def bench_ledger():
    """A ledger of one year, written through belayd's commits: the time of belay cost from start to
    end, and the size on disk.
    """
    with Local("--no-agent") as l:
        path = os.path.join(l.home, "belay.db")
        with stopped(l):
            pass
        year = fill_year(path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            began = time.monotonic()
            rows = db.execute(RAW).fetchall()
            raw = time.monotonic() - began
        say(
            "a year: %d entries of %d jobs" % (year["entries"], year["jobs"]),
            "%.0f us an entry" % (1e6 * year["seconds"] / year["entries"]),
            "%d sums by day and month" % year["rows"],
        )
        l.up()
        total = json.loads(l.belay("cost", "--by", "team", "--month", "--json"))["total"]["uusd"]
        if total != sum(row[2] for row in rows):
            raise SystemExit(
                "bench: the stored sums are %d, but the ledger's rows add up to %d"
                % (total, sum(row[2] for row in rows))
            )
        for words in (
            ("--by", "team", "--month"),
            ("--by", "user", "--month"),
            ("--by", "pool", "--month"),
            ("--by", "market", "--month"),
            ("--by", "project,month"),
            ("--by", "label:experiment-id"),
            ("--by", "team", "--week"),
            ("--by", "kind", "--from", "2025-02-03T00:00:00Z", "--to", "2025-12-24T00:00:00Z"),
        ):
            took = times_of(9, lambda: l.belay("cost", *words))
            say(
                "belay cost %s" % " ".join(words),
                "median %.0f ms, worst %.0f" % (1000 * statistics.median(took), 1000 * max(took)),
                "by team and month from the rows: %.1f s" % raw,
                "%.4f x" % (statistics.median(took) / raw),
            )
            if words == ("--by", "team", "--month"):
                parts_of_cost(l)
        each = {k: year[k] / year["jobs"] for k in ("ledger", "sums", "job_rows", "labels")}
        say(
            "on disk, bytes a job",
            "%.0f" % sum(each.values()),
            "ledger %(ledger).0f, sums %(sums).0f, jobs %(job_rows).0f, labels %(labels).0f" % each,
            "%.1f entries a job" % (year["entries"] / year["jobs"]),
        )
        entry, sums = year["ledger"] / year["entries"], year["sums"] / year["rows"]
        say(
            "a job that runs all year, reclaimed daily",
            "%.0f KiB" % ((365 * 4 * entry + 2 * (365 + 12) * 4 * sums) / 1024),
            "%.0f bytes an entry, %.0f a sum" % (entry, sums),
            "four kinds of time a day",
        )


def bench_retention():
    """Years of nightly jobs through the database with the default retention: its size at the end of
    each year, against that of year 2, the first one from whose beginning on rows are deleted.
    """
    jobs = os.environ.get("BELAY_BENCH_NIGHT", "2000")
    years = os.environ.get("BELAY_BENCH_YEARS", "10")
    most = os.environ.get("BELAY_BENCH_MOST_MIB")
    lines = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("BELAY_BENCH_DIR")) as top:
        with subprocess.Popen(
            [lab.BUILD + "/bench/bench_retention", os.path.join(top, "belay.db"), jobs, years]
            + ([most] if most else []),
            stdout=subprocess.PIPE,
        ) as p:
            for text in p.stdout:
                lines.append(json.loads(text))
                say_year(jobs, lines)
        if p.returncode:
            raise SystemExit("bench: bench_retention failed")


def say_year(jobs, lines):
    line, first = lines[-1], lines[min(1, len(lines) - 1)]
    say(
        "year %d of %s jobs a night" % (line["year"], jobs),
        "%.0f MiB, %.1f M rows, %d jobs"
        % (line["bytes"] / 2**20, line["rows"] / 1e6, line["jobs"]),
        "free pages %.0f MiB, sums %.1f; longest commit that deletes %d ms, %.0f of the processor"
        % (
            (line["bytes"] - line["used"]) / 2**20,
            line["sums_bytes"] / 2**20,
            line["longest_ms"],
            line["longest_cpu_ms"],
        ),
        "%.3f x" % (line["bytes"] / first["bytes"]),
    )
    say(
        "a night of year %d" % line["year"],
        "%.0f ms to write, %.0f to delete" % (line["write_cpu_ms"], line["prune_cpu_ms"]),
        "year %d: %.0f and %.0f ms of the processor"
        % (first["year"], first["write_cpu_ms"], first["prune_cpu_ms"]),
        "%.2f x"
        % (
            (line["write_cpu_ms"] + line["prune_cpu_ms"])
            / (first["write_cpu_ms"] + first["prune_cpu_ms"])
        ),
    )


def bench_lost():
    lost.bench(lab.BUILD, say)


def bench_reclaim():
    reclaim.bench(say)


def bench_slurm():
    slurm.bench(Local, lab.BUILD + "/cli/belay", say, cpu_seconds)


# In addition to BENCHES: those that need a program which scripts/setup does not install.
PEERS = {"slurm": bench_slurm}
BENCHES = {
    "submits": bench_submits,
    "jobs": bench_jobs,
    "notice": bench_notice,
    "requeue": bench_requeue,
    "latency": bench_latency,
    "startup": bench_startup,
    "queue": bench_queue,
    "restart": bench_restart,
    "market": bench_market,
    "agents": bench_agents,
    "stream": bench_stream,
    "console": bench_console,
    "checkpoint": bench_checkpoint,
    "commit": bench_commit,
    "state_dict": bench_state_dict,
    "gpu": bench_gpu,
    "lost": bench_lost,
    "reclaim": bench_reclaim,
    "fair": bench_fair,
    "plan": bench_plan,
    "policy": bench_policy,
    "pace": bench_pace,
    "telemetry": bench_telemetry,
    "ledger": bench_ledger,
}

# Ten minutes each: only when named.
LONG = {"cap": bench_cap, "flood": bench_flood, "retention": bench_retention}


def main(names):
    if names[:1] == ["--peer"]:
        if len(names) != 2 or names[1] not in PEERS:
            raise SystemExit("bench: --peer needs one of: " + ", ".join(PEERS))
        PEERS[names[1]]()
        return
    if names[:2] == ["policy", "--product"]:
        policy_product.bench(
            lab.BUILD + "/cli/belay",
            lab.BUILD + "/bench/bench_product_best",
            traces_top(),
            names[2:],
        )
        return
    for name in names or BENCHES:
        bench = BENCHES.get(name) or LONG.get(name)
        if not bench:
            raise SystemExit(
                'bench: unknown name "%s"; the names are: %s' % (name, ", ".join([*BENCHES, *LONG]))
            )
        bench()


main(sys.argv[1:])
