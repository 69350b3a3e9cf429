# SPDX-License-Identifier: Apache-2.0
"""belay on one machine: up, submit, follow, cancel, requeue, down, up again; and the output of
every verb."""

import contextlib
import fcntl
import inspect
import json
import os
import pty
import pwd
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

BUILD = os.path.abspath(os.environ.get("BELAY_BUILD", "build"))
sys.path.insert(0, os.path.join(BUILD, "clients", "python"))
import belay.client  # noqa: E402
from canned import Canned  # noqa: E402

WAIT_S = 90  # upper limit of any single wait, including sanitizers and a busy machine


# A fake podman that records how a command came in. It moves one command elsewhere, as the real one
# does with all.
PODMAN = """#!/bin/sh
[ "$1" = image ] && exit 0
export CAME="$2"
shift 2
while [ $# -gt 0 ]; do
    case $CAME,$1 in
    run,--name=*) name=${1#--name=} ;;
    run,*:/run/belay/bin/belay:ro) PATH=$PATH:${1%/belay:/run/*} ;;
    run,img:1 | exec,belay-*) break ;;
    esac
    shift
done
if [ $CAME = run ]; then
    [ ! -p "$0.hold" ] || read -r _ <"$0.hold"
    echo "$name" >>"$0.names"
else
    grep -qx "$1" "$0.names" || exit 125
fi
shift
case $* in
*"sleep 999"*) trap : HUP; setsid chroot /usr "$@" & wait; wait ;;
*) exec "$@" ;;
esac
"""


def wait_until(is_so, what):
    """Polls for a condition without an event."""
    until = time.monotonic() + WAIT_S
    while not is_so():
        if time.monotonic() > until:
            raise AssertionError("it did not come in %d s: %s" % (WAIT_S, what))
        time.sleep(0.01)


def wait_event(client, job, kind, times=1):
    after, kinds, until = 0, [], time.monotonic() + WAIT_S
    while kinds.count(kind) < times:
        page = client.job_events(int(job), after=after, wait_ms=5000)
        after = page["last"]
        kinds += [e["kind"] for e in page["events"]]
        if kinds.count(kind) < times and time.monotonic() > until:
            raise AssertionError("no event %s in %d s: %s" % (kind, WAIT_S, kinds))


def is_gone(pid):
    """True if the process is gone, including its open files and locks: under sanitizers freeing its
    memory takes a while.
    """
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def blocked_signals(pid):
    with open("/proc/%d/status" % pid) as f:
        mask = int(re.search(r"SigBlk:\s*(\w+)", f.read())[1], 16)
    return {n for n in range(1, 65) if mask >> n - 1 & 1}


class Home:
    """A temporary BELAY_HOME. Leaving it ends all its processes and checks the sanitizers'
    reports."""

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="belay-test.")
        self.home = os.path.join(
            self.dir, 'ho"me 5%'
        )  # must be quoted in YAML, and escaped in a URL
        sanitizer = "log_path=%s/sanitizer" % self.dir
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("BELAY_")}
        self.env.update(
            BELAY_HOME=self.home,
            ASAN_OPTIONS="malloc_context_size=6:" + sanitizer,
            UBSAN_OPTIONS="print_stacktrace=1:" + sanitizer,
        )
        return self

    def __exit__(self, kind, error, trace):
        done = self.belay("down", "--timeout", "20s")
        left = self.processes()
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        said = [
            open(os.path.join(self.dir, n)).read()
            for n in os.listdir(self.dir)
            if n.startswith("sanitizer")
        ]
        reports = [
            text for text in said if "ERROR" in text or "runtime error" in text
        ]  # ignore a thread that ended during leak detection
        problems = (
            ["belay down: " + done.stderr] * (done.returncode != 0)
            + ["left behind: %s" % left] * bool(left)
            + reports
        )
        if error or problems:
            for name in ("belayd.log", "agent.log"):
                with contextlib.suppress(OSError), open(os.path.join(self.home, name)) as f:
                    print("==== %s\n%s" % (name, f.read()[-10000:]), file=sys.stderr)
        shutil.rmtree(self.dir)
        if problems and not error:
            raise AssertionError("; ".join(problems))

    def processes(self):
        mark, found = self.dir.encode(), []
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) != os.getpid():
                with contextlib.suppress(OSError):
                    with open("/proc/%s/cmdline" % entry, "rb") as f, open(
                        "/proc/%s/environ" % entry, "rb"
                    ) as g:
                        if mark in f.read() + g.read():
                            found.append(int(entry))
        return found

    def command_line(self, pid):
        with contextlib.suppress(OSError), open("/proc/%d/cmdline" % pid) as f:
            return f.read()
        return ""

    def start(self, *arguments, env=None, **more):
        return subprocess.Popen(
            [BUILD + "/cli/belay", *arguments],
            cwd=self.dir,
            env={**self.env, **(env or {})},
            text=True,
            **{
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                **more,
            }
        )

    def belay(self, *arguments, env=None, text=None, **more):
        if text is not None:
            more["stdin"] = subprocess.PIPE
        p = self.start(*arguments, env=env, **more)
        out, err = p.communicate(text, timeout=WAIT_S)
        return subprocess.CompletedProcess(arguments, p.returncode, out, err)

    def script(self, text, name="job.sh"):
        path = os.path.join(self.dir, name)
        with open(path, "w") as f:
            f.write("#!/bin/sh\n" + text)
        return path

    def pid(self, file):
        with open(os.path.join(self.home, file)) as f:
            return json.load(f)["pid"]

    def kill(self, file):
        pid = self.pid(file)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: is_gone(pid), "%s ends at SIGKILL" % file)

    def client(self):
        return belay.client.Client(socket=os.path.join(self.home, "belayd.sock"))


class Local(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.h = Home().__enter__()
        done = cls.h.belay("up")
        if done.returncode != 0:
            cls.h.__exit__(AssertionError, AssertionError(), None)
            raise AssertionError(done.stderr)

    @classmethod
    def tearDownClass(cls):
        cls.h.__exit__(None, None, None)

    def ok(self, *arguments, **more):
        done = self.h.belay(*arguments, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.ok(arguments[0], "--json", *arguments[1:]))

    def submit(self, *arguments, **more):
        return int(
            re.fullmatch(
                r"Submitted batch job (\d+)\n", self.ok("submit", *arguments, **more)
            ).group(1)
        )

    def wait_log(self, job, pattern):
        """Follows the log until the pattern appears."""
        follower = self.h.start("logs", "-f", str(job))
        seen = ""
        with follower:
            while not re.search(pattern, seen, re.M):
                self.assertTrue(select.select([follower.stdout], [], [], WAIT_S)[0], seen)
                piece = os.read(follower.stdout.fileno(), 65536).decode()
                self.assertTrue(piece, "the log ended: " + seen)
                seen += piece
            follower.kill()
        return seen

    # ---- jobs ----

    def test_a_command_runs_with_its_output_and_exit_code(self):
        done = self.h.belay("run", "sh", "-c", "echo out; echo 'a  b'; exit 3")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (3, "out\na  b\n", ""))
        for i in range(10):  # the end never comes before the last output
            self.assertEqual(self.ok("run", "echo", "last words", str(i)), "last words %d\n" % i)

    def test_the_keys_of_update_are_flags_of_submit(self):
        job = self.submit("--hold", "--name", "one", "--cpus", "2", "--wrap", "true")
        shown = lambda: [self.json("show", str(job))["job"][key] for key in ("name", "cpus")]
        self.assertEqual(shown(), ["one", 2])
        self.ok("update", str(job), "name=two", "cpus=1")
        self.assertEqual(shown(), ["two", 1])
        self.ok("cancel", str(job))
        words = self.ok("update", "--help").split("\nKeys, ")[1]
        self.assertRegex(words, r"(?m)^  pool=POOL,\.\.\. +alias of partition$")
        keys = re.findall(r"(?m)^  ([a-z-]+)=", words)
        flags = re.findall(r"--([a-z-]+)", self.ok("submit", "--help"))
        own = {"at-once"}  # of an array, part of its --array
        self.assertEqual(set(keys) - set(flags) - own, set())
        # That of a schedule is the entry's.
        self.assertEqual(len(re.findall(r"(?m)--name=", self.ok("cron", "--help"))), 1)
        # sbatch has the flags that Slurm has.
        done = subprocess.run(
            ["sbatch", "--cpus=2", "--wrap", "true"],
            executable=BUILD + "/cli/belay",
            env=self.h.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("--cpus", done.stderr)

    def test_a_working_directory_is_sent_with_the_job(self):
        sent = os.path.join(self.h.dir, "sent")
        os.makedirs(os.path.join(sent, "src", "empty"))
        for name, text, mode in (
            ("src/run.sh", "#!/bin/sh\ncat src/data link; exit ${1:-0}\n", 0o755),
            ("src/data", "data\n", 0o640),
            ("left.tmp", "", 0o644),
            (".belayignore", "*.tmp\n", 0o644),
        ):
            with open(os.path.join(sent, name), "w") as f:
                f.write(text)
            os.chmod(os.path.join(sent, name), mode)
        os.symlink("src/data", os.path.join(sent, "link"))
        show = "src/run.sh; stat -c '%n %a' src/run.sh src/data src/empty; ls -A; readlink link; echo out >src/new; pwd; sleep ${NAP:-0}"
        job = self.submit(
            "--workdir", "upload", "--chdir", "sent", "--wait", "-o", "out.txt", "--wrap", show
        )
        text = "data\ndata\nsrc/run.sh 755\nsrc/data 640\nsrc/empty 755\n.belayignore\nlink\nout.txt\nsrc\nsrc/data\n%s/agent/tasks/%d-1/workdir\n"
        self.assertEqual(self.ok("logs", str(job)), text % (self.h.home, job))
        self.assertFalse(
            os.path.exists(os.path.join(sent, "src", "new"))
        )  # the job worked on its own copy
        self.assertRegex(self.ok("show", str(job)), r"(?m)^workdir +uploaded, [0-9a-f]{12}$")
        # A damaged part of a node's cache is fetched again.
        cache = os.path.join(self.h.home, "agent", "workdirs")
        for name in os.listdir(cache):
            with open(os.path.join(cache, name), "r+b") as f:
                f.write(b"~")
        job = self.submit(
            "--workdir", "upload", "--chdir", "sent", "--wait", "--wrap", "cat link src/run.sh"
        )
        self.assertRegex(self.ok("logs", str(job)), r"^data\n#!/bin/sh\ncat src/data link; exit")
        # Every attempt and task gets the files as of the submit; a node that has them does not
        # fetch them.
        array = self.submit(
            "--workdir",
            "upload",
            "--chdir",
            "sent",
            "--hold",
            "-a",
            "0-1",
            "--retries",
            "1",
            "--wrap",
            "test $BELAY_ATTEMPT = 2 && exec src/run.sh; exit 1",
        )
        os.rename(os.path.join(sent, "src"), os.path.join(sent, "gone"))
        self.ok("release", str(array))
        done = self.h.belay("logs", str(array))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(
            done.stderr,
            "is an array of the tasks [0-9,-]+, each with .* belay logs %d_[0-9]+ shows" % array,
        )
        for task in ("0", "1"):
            self.assertIn("data\ndata\n", self.ok("logs", "-f", "%d_%s" % (array, task)))
            self.assertEqual(
                [
                    j["end"]
                    for j in self.json("list", "--ended")["jobs"]
                    if j["ref"] == "%d_%s" % (array, task)
                ],
                ["succeeded"],
            )
        # Commands that users run in a job use its working directory.
        script = self.h.script(
            "#BELAY --workdir upload\necho up; exec sleep 1000\n", os.path.join("sent", "job.sh")
        )
        job = self.submit("--chdir", "sent", script)
        self.wait_log(job, "^up$")
        self.assertIn("job.sh", self.ok("exec", str(job), "--", "ls"))
        self.ok("cancel", str(job))
        # A directory that cannot be sent is refused before anything is submitted.
        with open(os.path.join(sent, "large"), "w") as f:
            f.truncate(3 << 30)
        done = self.h.belay("submit", "--workdir", "upload", "--chdir", "sent", "--wrap", "true")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(
            done.stderr,
            r'--workdir upload: 3\.0 GiB in .*The largest: "large" 3\.0 GiB in 1, .*\.belayignore',
        )
        done = self.h.belay("submit", "--workdir", "copy", "--wrap", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected one of shared, upload", done.stderr)
        os.unlink(os.path.join(sent, "large"))

    def test_wait_gives_the_jobs_exit_code(self):
        for code in (0, 1, 7, 255):
            self.assertEqual(
                self.h.belay("submit", "--wait", self.h.script("exit %d\n" % code)).returncode, code
            )
        done = self.h.belay("submit", "--wait", self.h.script("kill -9 $$\n"))
        self.assertEqual(done.returncode, 137)
        done = self.h.belay("submit", "--wait", "-t", "1s", self.h.script("exec sleep 1000\n"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("timeout", done.stderr)

    def test_a_script_gets_its_arguments_directives_and_environment(self):
        script = self.h.script(
            "#SBATCH -J from-sbatch\n#BELAY --export GREETING=hello,HERE --chdir /\n"
            'echo $GREETING $HERE $1 "$2" $BELAY_JOB_NAME $SLURM_JOB_ID; pwd\n'
            "echo $SLURM_JOB_PARTITION $SLURM_CLUSTER_NAME $SLURM_SUBMIT_HOST\n"
        )
        job = self.submit("--wait", script, "one", "two  words", env={"HERE": "there"})
        shown = "hello there one two  words from-sbatch %d\n/\n%s %s %s\n"
        pool = self.json("nodes")["nodes"][0]["pool"]
        self.assertEqual(
            self.ok("logs", str(job)), shown % (job, pool, "local", socket.gethostname())
        )
        job = self.submit("--wait", "-J", "from-flag", script, env={"HERE": "there"})
        self.assertEqual(self.json("show", str(job))["job"]["name"], "from-flag")

    def test_parsable_prints_the_number_alone(self):
        self.assertRegex(self.ok("submit", "--parsable", self.h.script("true\n")), r"\A\d+\n\Z")

    def test_only_says_where_it_would_start_and_submits_nothing(self):
        script, node = self.h.script("true\n"), self.json("nodes")["nodes"][0]
        said = self.ok("submit", "--test-only", "-t", "10", script)
        self.assertTrue(
            said.startswith("nothing was submitted\nit would start now on %s\n" % node["name"]),
            said,
        )
        self.assertRegex(said, r"it would run for about .* to 10m.*\nit would cost about \$")
        number = self.json("submit", "--test-only", script)["id"]
        far = "s3://lab/imagenet,size=140G,place=gcp/us-central1"
        self.assertEqual(
            self.json("submit", "--test-only", "-t", "10", "--input", far, script)["cost"][
                "input_uusd"
            ],
            0,
        )  # the machine is here
        done = self.h.belay("slurm", "sbatch", "--test-only", "-c", "1", script)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertRegex(
            done.stderr,
            r"\Asbatch: Job %d to start at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d using 1 processors on nodes %s in "
            r"partition %s\n\Z" % (number, node["name"], node["pool"]),
        )
        done = self.h.belay("slurm", "srun", "--test-only", "true")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("srun: Job %d to start at " % number, done.stderr)
        self.assertEqual(self.submit(script), number)
        many = self.submit("-c", "999", "--hold", script)
        done = self.h.belay("slurm", "squeue", "--start", "-h", "-j", str(many), "-o", "%i %S")
        self.assertEqual((done.returncode, done.stdout), (0, "%d N/A\n" % many), done.stderr)

    def test_a_script_comes_on_standard_input(self):
        job = self.submit("--wait", text="#!/bin/sh\necho stdin\n")
        self.assertEqual(self.ok("logs", str(job)), "stdin\n")

    def test_follow_shows_the_whole_log_over_a_requeue(self):
        # Prints its attempt and waits for a signal to continue; a requeue comes in between.
        script = self.h.script(
            "echo attempt $BELAY_ATTEMPT\n[ $BELAY_ATTEMPT = 1 ] && exec sleep 1000\nexit 0\n"
        )
        job = self.submit(script)
        follower = self.h.start("logs", "-f", str(job))
        self.wait_log(job, "^attempt 1$")
        self.assertEqual(
            self.ok("requeue", str(job)), "job %d is being saved and queued again\n" % job
        )
        out, err = follower.communicate(timeout=WAIT_S)
        self.assertEqual((follower.returncode, err), (0, ""))
        self.assertRegex(
            out,
            r"\Aattempt 1\n---- belay: attempt 2 on node \d+, from the beginning ----\nattempt 2\n\Z",
        )
        self.assertEqual(self.ok("logs", str(job)), out)
        self.assertRegex(self.ok("show", str(job)), r"(?m)^ +1 .* requeued ")
        self.assertEqual(self.ok("logs", "--tail-bytes", "10", str(job)), "attempt 2\n")

    def test_an_error_of_belayd_names_a_flag_as_it_was_written(self):
        wrong = self.h.script("#SBATCH -p nowhere\ntrue\n", "wrong.sh")
        plain = self.h.script("true\n", "plain.sh")
        no_pool = r'there is no pool "nowhere"'
        for words, said in (
            ((wrong,), r"\Abelay: \S*wrong\.sh:2: -p: " + no_pool),
            (("--partition", "nowhere", plain), r"\Abelay: --partition: " + no_pool),
            (("--pool", "nowhere", wrong), r"\Abelay: --pool: " + no_pool),
            (("--window", "never", plain), r"\Abelay: --window: there is no window"),
        ):
            done = self.h.belay("submit", *words)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, said)

    def check_its_name(self, task, name):
        """Users see a task as 42_7, and never its own number: in texts and answers."""
        self.assertIn("belay logs %s\n" % name, self.ok("why", name))
        events = self.client().job_events(task["id"])["events"]
        self.assertEqual({e["ref"] for e in events}, {name})
        everywhere = self.client().events(after=events[0]["id"] - 1)["events"]
        self.assertEqual(everywhere[0]["ref"], name)
        keys = {line["key"] for line in self.json("cost", "--by", "job")["lines"]}
        self.assertIn(name, keys)
        self.assertNotIn(str(task["id"]), keys)
        costly = self.client().cost_jobs(limit=1000)["jobs"]
        self.assertEqual([j["ref"] for j in costly if j["id"] == task["id"]], [name])
        refused = self.h.belay("requeue", name)
        self.assertIn("job %s has ended" % name, refused.stderr)
        self.assertIn("job %s" % name, self.h.belay("diagnose", name).stdout)

    def test_an_array_is_one_job_of_tasks(self):
        out = os.path.join(self.h.dir, "%A-%a.out")
        script = self.h.script(
            "echo $BELAY_ARRAY_ID $BELAY_ARRAY_INDEX $SLURM_ARRAY_TASK_COUNT-$SLURM_ARRAY_TASK_MAX\n"
            "[ $BELAY_ARRAY_INDEX != 6 ]\n#SBATCH\n",
            "array.sh",
        )
        job = self.submit("-a", "2-6:2,9%2", "-o", out, script)
        after = self.submit("-d", "afternotok:%d" % job, "--wrap", "true")
        self.h.belay("logs", "-f", str(after))
        shown = self.json("show", str(job))
        self.assertEqual(
            shown["array"],
            {"tasks": "2-6:2,9", "left": None, "at_once": 2, "succeeded": 3, "other": 1},
        )
        self.assertEqual((shown["job"]["end"], shown["job"]["exit_code"]), ("failed", 1))
        self.assertEqual(self.ok("logs", "%d_4" % job), "%d 4 4-9\n" % job)
        task = self.json("show", "%d_9" % job)["job"]
        self.assertEqual(
            (task["ref"], task["array_id"], task["array_index"]), ("%d_9" % job, job, 9)
        )
        self.check_its_name(task, "%d_9" % job)
        with open(os.path.join(self.h.dir, "%d-2.out" % job)) as f:
            self.assertEqual(f.read(), "%d 2 4-9\n" % job)

        last = self.submit(
            "-a", "2,4,6", "-d", "aftercorr:%d" % job, "--wrap", "echo $BELAY_ARRAY_INDEX"
        )
        self.assertEqual(self.ok("logs", "-f", "%d_4" % last), "4\n")
        never = self.json("show", "%d_6" % last)["job"]
        self.assertEqual(never["end"], "dependency")
        self.assertIn(
            "dependency: aftercorr:%d_6 can never be satisfied" % job,
            [e["text"] for e in self.client().job_events(never["id"])["events"]],
        )
        wide = self.h.belay("submit", "-a", "2-9", "-d", "aftercorr:%d" % job, "--wrap", "true")
        self.assertIn(
            "has no task 3, so task 3 of this array could never begin (4 tasks of this array in all)",
            wide.stderr,
        )

        held = self.submit("--hold", "--array", "0-9", "--wrap", "true")
        self.assertIn("%d_[0-9]" % held, self.ok("list"))
        self.assertIn("has not started", self.h.belay("show", "%d_3" % held).stderr)
        self.ok("cancel", "%d_[2-8]" % held, "%d_0" % held)
        self.assertEqual(self.json("show", str(held))["job"]["ref"], "%d_[1,9]" % held)
        verbs = ("cancel", "show", "why", "logs", "requeue", "hold", "release", "checkpoint save")
        for verb in verbs:
            done = self.h.belay(*verb.split(), "%d_10" % held)
            said = "belay: array %d has no task 10: its tasks are 0-9\n" % held
            self.assertEqual((done.returncode, done.stderr), (1, said), verb)
            done = self.h.belay(*verb.split(), "%d_0" % held)
            self.assertEqual(done.returncode, 1, verb)
            self.assertRegex(done.stderr, "array %d (ended|have ended)" % held, verb)
        self.ok("cancel", str(held))
        self.assertEqual(self.json("show", str(held))["job"]["end"], "cancelled")
        for what, word in (
            ("5-1", "expected numbers"),
            ("1-3%0", "after %"),
            ("", "expected"),
            ("1000000", "expected numbers"),
        ):
            done = self.h.belay("submit", "-a", what, "--wrap", "true")
            self.assertEqual(done.returncode, 2, what)
            self.assertIn(word, done.stderr)
        self.assertEqual(self.h.belay("cancel", "%d_1" % after).returncode, 1)

    def refused(self, call, *args, **more):
        with self.assertRaises(belay.Error) as found:
            call(*args, **more)
        return found.exception

    def test_the_client_takes_the_names_of_tasks(self):
        client, script = self.client(), self.h.script("echo $BELAY_ARRAY_INDEX\n", "named.sh")
        array = self.submit("-a", "0-8:4", script)
        client.wait(array, timeout_s=60)
        name = "%d_8" % array
        self.assertEqual(client.wait(name, timeout_s=60)["ref"], name)
        number = client.job_number(name)
        self.assertEqual(client.show_job(name), client.show_job(str(number)))
        self.assertEqual((client.read_log(name), *client.follow_log(name)), (b"8\n", b"8\n"))
        self.assertEqual(client.job_events(name), client.job_events(number))
        after = client.submit(
            script="#!/bin/sh\n", cwd="/", depends=[{"kind": "afterok", "job": name}], hold=True
        )["id"]
        self.assertEqual(
            [(d["job"], d["task"]) for d in client.show_job(after)["depends"]], [(array, 8)]
        )
        client.update(after, depends=[{"kind": "afterany", "job": str(array)}])
        self.assertEqual(
            [(d["job"], d["task"]) for d in client.show_job(after)["depends"]],
            [(array, None), (array, 8)],  # the former one is dropped
        )
        client.cancel(str(after))
        held = self.submit("--hold", "--array", "0-9", "--wrap", "true")
        client.cancel("%d_[2-7]" % held)
        client.cancel("%d_0" % held)
        self.assertEqual(client.show_job(held)["job"]["ref"], "%d_[1,8-9]" % held)
        self.assertIn("twice", self.refused(client.cancel, "%d_1" % held, tasks="1").text)
        one = {"command": ["true"], "number": 1, "with_": 1, "equal": True, "nice": 1}
        one.update(attempt=1, sequence=1)
        names = ("%d_10" % held, "%d_1" % held, "%d_0" % held, "%d_0" % after, "x", "42_x", "0")
        for path, operations in client.openapi()["paths"].items():
            for operation in operations.values():
                method = getattr(client, operation["operationId"], None)
                if not path.startswith("/api/v1/jobs/{id}"):
                    continue
                needed = set(one) & set(inspect.signature(method).parameters)
                if operation["operationId"] == "update":
                    needed = {"nice"}
                for job in names:
                    with self.subTest(operation["operationId"], job=job):
                        verb = "cancel" if method == client.cancel else "show"
                        if (verb, job) == ("cancel", names[1]):
                            continue  # it can be cancelled before it starts
                        said = self.h.belay(verb, job).stderr
                        if method == client.update and "_" in job:
                            said = self.h.belay("update", job, "nice=1").stderr
                        found = self.refused(method, job, **{k: one[k] for k in needed})
                        self.assertEqual("belay: %s\n" % found.text, said)
        self.assertEqual(client.cancel_many([held, name])["cancelled"], 1)
        self.assertIn("has no task 1", self.refused(client.cancel_many, ["%d_1" % array]).text)

    def test_jobs_wait_for_others_and_for_their_release(self):
        first = self.submit("--hold", self.h.script("exit 3\n", "first.sh"))
        after = self.submit(
            "-d", "afternotok:%d" % first, self.h.script("echo after\n", "after.sh")
        )
        never = self.submit(
            "--dependency", "afterok:%d" % first, self.h.script("true\n", "never.sh")
        )
        self.assertIn("it is held: belay release %d" % first, self.ok("why", str(first)))
        self.assertIn(
            "afternotok:%d: job %d 'first.sh' has not run yet" % (first, first),
            self.ok("why", str(after)),
        )
        later = self.submit("--begin", "now+1hour", self.h.script("true\n", "later.sh"))
        self.assertRegex(self.ok("show", str(later)), r"begins +not before 20")
        self.assertIn("its begin time is in", self.ok("why", str(later)))
        day = "2031-05-06T"
        times = ("--begin", day + "07:08:09", "--deadline", day + "18:00", "--finish-by")
        timed = self.submit(
            "--hold", *times, day + "12:00", "--work", "1h", self.h.script("true\n", "timed.sh")
        )
        shown = self.ok("show", str(timed))  # by this machine's clock, as they were given
        self.assertRegex(shown, r"(?m)^begins +not before 2031-05-06 07:08:09$")
        self.assertRegex(shown, r"(?m)^finish by +2031-05-06 12:00:00, now any market$")
        self.assertRegex(shown, r"(?m)^deadline +2031-05-06 18:00:00$")
        self.ok("cancel", str(timed))
        short = ("submit", "--hold", "--finish-by", "+8h", "--work", "1h", "--time", "30m")
        done = self.h.belay(*short, self.h.script("true\n", "short.sh"))
        self.assertIn("it is ended after 30m00s (--time), before its work of 1h00m", done.stderr)
        self.ok("cancel", done.stdout.split()[-1])
        self.assertEqual(self.ok("release", str(first)), "job %d is released\n" % first)
        self.assertRegex(self.ok("logs", "-f", str(after)), r"after\n\Z")
        done = self.h.belay("logs", "-f", str(never))  # until it has ended
        self.assertEqual(
            (done.returncode, self.json("show", str(never))["job"]["end"]), (0, "dependency")
        )
        shown = self.json("show", str(after))
        self.assertEqual(
            shown["depends"],
            [{"kind": "afternotok", "job": first, "task": None, "delay_ms": 0, "state": "met"}],
        )
        for what, code, word in (
            ("afterok:%d" % first, 1, "can never be satisfied: job %d has ended, failed" % first),
            ("afterok:999999", 1, "there is no job 999999"),
            ("afterok", 2, "expected a job: afterok:JOB"),
            ("afterburst:1", 2, "expected after, afterany"),
            ("afterok:1,afterany:2?3", 2, "expected either ','"),
            ("afterok:1+5", 2, "after:JOB+MINUTES"),
            ("singleton:3", 2, "singleton takes no job"),
            ("afterok:%d_2" % first, 1, "there is no task 2 of job %d" % first),
            ("afterok:1_x", 2, "index of a task"),
            ("aftercorr:1_2", 2, "aftercorr is for all tasks"),
            ("aftercorr:1+2", 2, "after:JOB+MINUTES"),
            ("aftercorr:%d" % first, 2, "is for arrays"),
            ("afterok:0", 2, "number of a job"),
            ("after:1+x", 2, "minutes"),
        ):
            done = self.h.belay("submit", "-d", what, "--wrap", "true")
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(word, done.stderr)

    def test_jobs_are_changed_while_they_wait_and_while_they_run(self):
        first, job = self.submit("--hold", "--wrap", "true"), self.submit(
            "--hold", "-c", "900", "-a", "0-1", "--wrap", "echo here"
        )
        said = self.ok(
            "update",
            str(job),
            "name=other",
            "cpus=1",
            "mem=64M",
            "time=90",
            "nice=3",
            "at-once=1",
            "exclusive=yes",
            "requeue=no",
            "dependency=afterok:%d" % first,
            "begin=now+1hour",
            "constraint=none",
        )
        self.assertEqual(said, "job %d is changed\n" % job)
        shown = self.json("show", str(job))
        row = shown["job"]
        self.assertEqual(
            (
                row["name"],
                row["cpus"],
                row["memory_mib"],
                row["time_limit_ms"],
                row["nice"],
                row["exclusive"],
                row["requeue"],
                shown["array"]["at_once"],
                shown["depends"][0]["job"],
            ),
            ("other", 1, 64, 5400000, 3, True, False, 1, first),
        )
        for words, code, text in (
            ((), 2, "expected a job"),
            (("x", "time=1h"), 2, "expected a job's number"),
            ((str(job),), 2, "nothing to change"),
            ((str(job), "time"), 2, "expected KEY=VALUE"),
            ((str(job), "tim=2h"), 2, 'did you mean "time"'),
            ((str(job), "time=x"), 2, "--time"),
            ((str(job), "requeue=perhaps"), 2, "yes or no"),
            ((str(job), "cpus="), 2, "expected a value"),
            ((str(job), "zone=none"), 2, "zone: expected a value"),
            ((str(job), "zone=a&b"), 2, "names with commas"),
            ((str(job), "input=data.txt"), 2, "standard input cannot be changed"),
            ((str(job), "input=s3://lab/data"), 2, "the size must be given"),
            ((str(job), "input=s3://lab/data,size=1G,place=aws"), 2, "input"),
            ((str(job), "pool=nowhere"), 2, "no pool"),
            (("999999", "time=2h"), 1, "999999"),
            ((str(job) + "_1", "time=2h"), 1, "has not begun"),
            ((str(first), "at-once=2"), 1, "no array"),
        ):
            with self.subTest(words):
                done = self.h.belay("update", *words)
                self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
                self.assertIn(text, done.stderr)
        said = self.h.belay("update", str(job), "input=s3://lab/data,size=2G,place=aws/us-east-1")
        self.assertEqual(
            (said.returncode, self.json("show", str(job))["job"]["input"]),
            (0, {"place": "aws/us-east-1", "bytes": 2 << 30}),
            said.stderr,
        )
        self.assertIn("BELAY_INPUT of the job stays", said.stderr)
        self.ok("update", str(job), "input=none")
        self.assertIsNone(self.json("show", str(job))["job"]["input"])
        self.assertEqual(
            self.ok(
                "update",
                str(job),
                "begin=none",
                "dependency=none",
                "time=none",
                "exclusive=no",
                "at-once=none",
            ),
            "job %d is changed\n" % job,
        )
        self.ok("release", str(job))
        self.assertRegex(self.ok("logs", "-f", str(job + 1)), r"here\n\Z")
        runs = self.submit(
            "--time", "1h", self.h.script("echo running\nexec sleep 1000\n", "runs.sh")
        )
        self.wait_log(runs, "^running$")
        self.assertIn(
            "runs, and this can be changed only while it is pending",
            self.h.belay("update", str(runs), "cpus=2").stderr,
        )
        self.assertEqual(self.json("update", str(runs), "time=0:00:01"), {"id": runs})
        self.ok("logs", "-f", str(runs))
        here, held = os.uname().machine, self.submit("--hold", "--wrap", "true")
        self.ok(
            "update", str(held), "region=%s,elsewhere" % here, "zone=" + here, "constraint=" + here
        )
        self.assertEqual(
            self.json("show", str(held))["job"]["constraint"],
            "({0}|elsewhere)&{0}&{0}".format(here),
        )
        shown = self.json("show", str(runs))
        self.assertEqual((shown["job"]["end"], shown["attempts"][0]["behind_ms"]), ("timeout", 0))
        self.ok("cancel", str(first), str(held))

    def test_a_cron_entry_runs_its_job(self):
        script = self.h.script('echo "$1 of $BELAY_CRON_TIME"\n', "nightly.sh")
        added = self.ok(
            "cron",
            "add",
            "--tz",
            "Australia/Lord_Howe",
            "--overlap",
            "queue",
            "30 2 * * *",
            script,
            "the run",
        )
        self.assertRegex(
            added,
            r"^cron \d+ \(nightly.sh\) added: next at 20\d\d-\d\d-\d\dT02:30:00\+1[01]:[03]0\n$",
        )
        self.assertRegex(
            self.ok("cron"), r"nightly.sh +\w+ +active +30 2 \* \* \* +Australia/Lord_Howe"
        )
        job = int(self.ok("cron", "run", "nightly.sh").split()[-1])
        self.assertRegex(
            self.ok("logs", "-f", str(job)),
            r"^the run of 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\n$",
        )
        self.assertIn("cron          entry 1, for no time: by hand", self.ok("show", str(job)))
        self.assertRegex(self.ok("cron", "history", "nightly.sh"), r"started +%d +by hand" % job)
        self.assertIn(
            "changed: next at",
            self.ok("cron", "edit", "nightly.sh", "--schedule", "@hourly", "--catch-up", "all:7"),
        )
        self.assertEqual(self.ok("cron", "pause", "nightly.sh").split()[-1], "paused")
        shown = self.json("cron", "list", "nightly.sh")
        self.assertEqual((shown["cron"]["catch_up_max"], shown["job"]["args"]), (7, ["the run"]))
        self.assertIn("all, at most 7", self.ok("cron", "list", "nightly.sh"))
        self.ok(
            "cron",
            "add",
            "--name",
            "by-seven",
            "--tz",
            "Australia/Lord_Howe",
            "--finish-by",
            "07:00",
            "--work",
            "1h",
            "@daily",
            script,
        )
        job = self.json("cron", "list", "by-seven")["job"]
        self.assertEqual(
            (job["finish_at"], job["work_ms"], "finish_by_ms" in job), ("07:00", 3600000, False)
        )
        job = self.ok("cron", "run", "by-seven").split()[-1]
        self.assertRegex(
            self.json("show", job)["job"]["finish_by"], r"T20:[03]0:00(\.000)?Z$"
        )  # 07:00 at UTC+10:30 or +11:00
        self.ok("logs", "-f", job)  # to its end
        self.ok("cron", "remove", "by-seven")
        report = self.h.script("echo $BELAY_CRON_DATE\n", "report.sh")
        self.assertRegex(
            self.ok("cron", "add", "--after", "nightly.sh:any", report),
            r"^cron \d+ \(report.sh\) added: next after the run of nightly.sh:any for ",
        )
        self.ok("cron", "resume", "nightly.sh")
        self.assertRegex(self.ok("cron"), r"report.sh +\w+ +active +after nightly.sh:any +Austr")
        self.assertRegex(
            self.ok("cron", "show", "report.sh"), r"after +nightly.sh:any, at its times, in Aus.*"
        )
        self.assertEqual(len(self.json("cron", "show", "report.sh")["cron"]["upcoming"]), 5)
        job = self.ok("cron", "run", "report.sh").split()[-1]
        self.assertRegex(self.ok("logs", "-f", job), r"^20\d\d-\d\d-\d\d\n$")
        for arguments, code, text in (
            (("add", "--after", "nightly.sh", "@daily", script), 2, "has no schedule"),
            (("add", "--after", "nobody", script), 1, "no cron entry"),
            (("add", "--after", "nightly.sh"), 2, "which script?"),
            (("edit", "nightly.sh", "--after", "report.sh"), 2, "runs after 'nightly.sh' already"),
            (("edit", "report.sh", "--after", "nightly.sh", "--schedule", "@daily"), 2, "leave"),
            (("edit", "report.sh", "--skip-on", "nsw"), 2, "no calendar nsw"),
            (("remove", "nightly.sh"), 1, "'report.sh' runs after 'nightly.sh'"),
            (("edit", "report.sh", "--done-by", "7am"), 2, "a time of the day"),
            (("show",), 2, "expected an entry"),
        ):
            with self.subTest(arguments):
                done = self.h.belay("cron", *arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(text, done.stderr)
        self.ok("cron", "edit", "report.sh", "--done-by", "07:00")
        self.assertIn("done by     07:00", self.ok("cron", "show", "report.sh"))
        self.assertIn(
            "changed: next at", self.ok("cron", "edit", "report.sh", "--schedule", "@daily")
        )
        self.ok("cron", "edit", "report.sh", "--done-by", "")
        self.assertIsNone(self.json("cron", "show", "report.sh")["cron"]["done_by"])
        self.ok("cron", "remove", "report.sh")
        self.check_dates()
        for arguments, code, text in (
            (("add", "61 * * * *", script), 2, "the schedule: minute"),
            (("add",), 2, "expected a schedule"),
            (("add", "@daily"), 2, "which script?"),
            (("add", "--tz", "Nowhere", "@daily", script), 2, "--tz: there is no time zone"),
            (("edit", "nightly.sh"), 2, "nothing to change"),
            (("edit",), 2, "expected an entry"),
            (("edit", "nightly.sh", "--mem", "1G"), 2, "need the job"),
            (("pause",), 2, "expected an entry"),
            (("remove", "nobody"), 1, "no cron entry"),
            (("paint",), 2, "expected add"),
            (("list", "--tz", "UTC"), 2, "takes no flags"),
            (
                ("add", "--name", "x", "--finish-by", "tomorrow", "--work", "1h", "@daily", script),
                2,
                "--finish-by +8h or 07:00",
            ),
            (("add", "--catch-up", "some:1", "@daily", script), 2, "--catch-up"),
            (("add", "@daily", script), 1, "already"),
        ):
            with self.subTest(arguments):
                done = self.h.belay("cron", *arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(text, done.stderr)
        self.assertEqual(self.ok("cron", "remove", "nightly.sh").split()[-1], "removed")
        self.assertEqual(self.json("cron", "list")["crons"], [])

    def check_dates(self):
        self.ok(
            "cron",
            "add",
            "--name",
            "dated",
            "0 1 * * *",
            self.h.script("echo $BELAY_CRON_DATE\n", "dated.sh"),
        )
        days = ("cron", "run", "dated", "--date", "2024-02-28..2024-03-01")
        self.assertEqual(self.ok(*days, "--dry-run").count("would start"), 3)
        runs = self.json(*days, "--max-parallel", "2")["runs"]
        jobs = [run["job"] for run in runs]
        self.assertEqual(
            [run["at"] for run in runs],
            ["2024-02-%dT01:00:00Z" % day for day in (28, 29)] + ["2024-03-01T01:00:00Z"],
        )
        for run in runs:
            self.assertEqual(self.ok("logs", "-f", str(run["job"])), run["date"] + "\n")
        self.assertRegex(self.ok("show", str(jobs[0])), r"entry \d+, for 2024-02-2[789] ")
        self.assertEqual(self.ok(*days).count("it has run as job "), 3)
        again = self.json("cron", "run", "dated", "--date", "2024-02-29", "--again")["runs"]
        self.assertGreater(again[0]["job"], max(jobs))
        self.assertEqual(self.ok("cron", "history", "dated").count("by hand"), 4)
        for arguments, code, text in (
            (
                ("run", "dated", "--date", "2024-02-30"),
                1,
                'expected a day such as 2026-11-01, found "2024-02-30"',
            ),
            (
                ("run", "dated", "--date", "2024-03-02..2024-03-01"),
                1,
                "the last day is before the first",
            ),
            (("run", "dated", "--date", "2024-01-01..2025-12-31"), 1, "fewer days"),
            (("run", "dated", "--max-parallel", "2"), 2, "--date FIRST"),
            (("run", "dated", "--date", "2024-02-28", "--max-parallel", "0"), 2, "--max-parallel"),
            (("list", "--again"), 2, "takes no flags"),
        ):
            with self.subTest(arguments):
                done = self.h.belay("cron", *arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(text, done.stderr)
        tomorrow = self.ok("cron", "run", "dated", "--date", "2198-01-01")
        self.assertIn("it is still to come", tomorrow)
        self.ok("cron", "remove", "dated")

    def test_a_job_costs_no_more_than_its_cap(self):
        def limits(job):
            return job["max_uusd"], job["max_uusd_per_hour"]

        script = self.h.script("#BELAY --max-usd 7\nexec true\n", "dear.sh")
        job = self.submit("--hold", "--max-usd", "2.5", "--max-usd-per-hour", "0.000001", script)
        self.assertEqual(limits(self.json("show", str(job))["job"]), (2500000, 1))
        self.assertRegex(self.ok("show", str(job)), r"max usd +\$2\.50 in all\n")
        self.ok("update", str(job), "max-usd=3", "max-usd-per-hour=none")
        self.assertEqual(limits(self.json("show", str(job))["job"]), (3000000, None))
        self.ok("update", str(job), "max-usd=none")
        self.assertEqual(limits(self.json("show", str(job))["job"]), (None, None))
        self.ok("cancel", str(job))
        array = self.submit("--hold", "--array", "0-3", "--max-usd", "1000000000", script)
        self.assertEqual(limits(self.json("show", str(array))["job"]), (10**15, None))
        self.ok("cancel", str(array))
        for flag in ("--max-usd", "--max-usd-per-hour"):
            for value in (
                "0",
                "-1",
                "x",
                "",
                "$5",
                "1e3",
                "nan",
                "1000000001",
                "0.0000001",
                "1,5",
                "9" * 40,
            ):
                for words in (("submit", "--hold"), ("cron", "add", "@daily"), ("run",)):
                    with self.subTest((flag, value, words)):
                        done = self.h.belay(*words, flag + "=" + value, script)
                        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                        self.assertIn(flag, done.stderr)
        done = self.h.belay("update", str(job), "max-usd=-1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--max-usd", done.stderr)

    def test_a_job_shows_the_page_of_its_experiment(self):
        def url(job):
            return self.json("show", str(job))["job"]["url"]

        page, other = "https://mlflow.example.org/#/experiments/3/runs/7", "http://board:6006/?a=1"
        script = self.h.script(
            '#BELAY --url %s\nexec "%s/cli/belay" update url=https://wandb.example.org/a\n'
            % (page, BUILD),
            "tracked.sh",
        )
        job = self.submit("--hold", "--export", "BELAY_HOME", script)
        self.assertEqual(url(job), page)
        self.assertRegex(self.ok("show", str(job)), r"(?m)^url +%s$" % re.escape(page))
        self.ok("update", str(job), "url=none")
        self.assertIsNone(url(job))
        self.ok("update", str(job), "url=" + other, "nice=3")
        self.assertEqual([j["url"] for j in self.json("list")["jobs"] if j["id"] == job], [other])
        self.h.client().update(job, url=page)
        self.assertEqual(self.h.client().show_job(job)["job"]["url"], page)
        self.ok("release", str(job))
        self.ok("logs", "-f", str(job))
        self.assertEqual(url(job), "https://wandb.example.org/a")
        done = [e["text"] for e in self.h.client().job_events(job)["events"]]
        self.assertTrue(any("url https://wandb.example.org/a" in text for text in done), done)
        array = self.submit("--hold", "--array", "0-3", "--url", other, script)
        self.assertEqual(url(array), other)
        self.ok("cancel", str(array))
        longest = "https://" + "x" * 1992
        for value in ("ftp://x/", "https://", "x", "", "http://a b", longest + "x"):
            with self.subTest(value):
                done = self.h.belay("submit", "--hold", "--url=" + value, script)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertIn("--url", done.stderr)
        with self.assertRaisesRegex(belay.client.Error, "spec.url"):
            self.h.client().submit(script="#!/bin/sh\n", cwd="/", url="ftp://x/")
        with self.assertRaisesRegex(belay.client.Error, "spec.url"):
            self.h.client().submit(script="#!/bin/sh\n", cwd="/", url=longest + "x")
        self.ok("cron", "add", "--url", longest, "--export", "BELAY_HOME", "@yearly", script)
        run = int(self.ok("cron", "run", "tracked.sh").split()[-1])
        events = self.ok("logs", "-f", str(run))
        self.assertEqual(url(run), "https://wandb.example.org/a", events)
        self.ok("cron", "remove", "tracked.sh")
        self.assertIn("--url", self.ok("completion", "bash"))
        self.assertIn(" url=", self.ok("completion", "bash"))

    def test_what_an_entry_of_cron_starts_may_cost_no_more_either(self):
        script = self.h.script("#BELAY --max-usd 7\nexec true\n", "dear-nightly.sh")
        self.ok("cron", "add", "--max-usd-per-hour", "40", "@yearly", script)
        job = self.json("cron", "list", "dear-nightly.sh")["job"]
        self.assertEqual((job["max_uusd"], job["max_uusd_per_hour"]), (7000000, 40000000))
        run = int(self.ok("cron", "run", "dear-nightly.sh").split()[-1])
        self.ok("logs", "-f", str(run))
        job = self.json("show", str(run))["job"]
        self.assertEqual(
            (job["end"], job["max_uusd"], job["max_uusd_per_hour"]),
            ("succeeded", 7000000, 40000000),
        )
        self.ok("cron", "edit", "dear-nightly.sh", "--max-usd", "9", script)
        job = self.json("cron", "list", "dear-nightly.sh")["job"]
        self.assertEqual((job["max_uusd"], job.get("max_uusd_per_hour")), (9000000, None))
        self.ok("cron", "remove", "dear-nightly.sh")

    def test_cancel_selects_jobs(self):
        script = self.h.script("true\n")
        jobs = [self.submit("--hold", "--name", "pick-%d" % i, script) for i in range(5)]
        first, last = jobs[0], jobs[-1]
        left = lambda: [j["id"] for j in self.json("list", "--name", "pick-*")["jobs"]][::-1]
        of_these = "%d-%d" % (jobs[1], jobs[2])

        dry = self.ok("cancel", "--dry-run", of_these)
        self.assertIn("2 jobs would be cancelled", dry)
        self.assertIn(" pick-1 ", dry)
        self.assertEqual(
            [j["id"] for j in self.json("cancel", "-n", "--name", "pick-*")["jobs"]], jobs[::-1]
        )
        self.assertEqual(left(), jobs)
        none = self.ok("cancel", "--name", "pick-*", "--user", "another-user")
        self.assertEqual(none, "0 jobs are being cancelled\n")

        self.assertEqual(self.ok("cancel", of_these), "2 jobs are being cancelled\n")
        self.assertEqual(left(), [first, jobs[3], last])
        both = self.ok("cancel", "--name", "pick-*", "%d-%d" % (first, jobs[2]))
        self.assertEqual(both, "1 job is being cancelled\n")
        self.assertEqual(left(), [jobs[3], last])
        counts = self.json("cancel", "--name", "pick-*", "--state", "pending")
        self.assertEqual(counts, {"cancelled": 2, "ended": 0, "denied": 0})
        self.assertEqual(left(), [])
        for words in ([], ["--dry-run"], ["--dry-run", "42_7"], ["-n", "9-3"], ["--name"]):
            with self.subTest(words):
                self.assertEqual(self.h.belay("cancel", *words).returncode, 2)

    def test_lists_are_printed_in_other_forms(self):
        job = self.submit("--hold", "--name", "forms", self.h.script("true\n"))
        of_it = ("list", "--name", "forms", "-o")
        self.assertEqual(self.ok(*of_it, "name"), "%d\n" % job)
        self.assertEqual(
            [row.split() for row in self.ok(*of_it, "id,state,array_id").splitlines()],
            [["id", "state", "array_id"], [str(job), "pending", "-"]],
        )
        self.assertIn("\n  name: forms\n", self.ok(*of_it, "yaml"))
        self.assertEqual(json.loads(self.ok(*of_it, "json"))["jobs"][0]["id"], job)
        self.assertIn("TEAM", self.ok(*of_it, "wide").splitlines()[0])
        self.assertNotIn("TEAM", self.ok("list").splitlines()[0])
        node = self.json("nodes")["nodes"][0]["name"]
        self.assertEqual(self.ok("nodes", "-o", "name"), node + "\n")
        wrong = self.h.belay(*of_it, "id,nonsense")
        self.assertEqual(wrong.returncode, 2)
        self.assertRegex(wrong.stderr, 'found "nonsense". Its keys: id, name, ')
        self.ok("cancel", str(job))

    def test_an_interrupt_of_a_wait_says_how_to_go_on(self):
        waiter = self.h.start("submit", "--wait", self.h.script("exec sleep 1000\n"))
        job = re.search(r"(\d+)$", waiter.stdout.readline()).group(1)
        waiter.send_signal(signal.SIGINT)
        _, err = waiter.communicate(timeout=WAIT_S)
        self.assertEqual(waiter.returncode, 130)
        self.assertIn("job %s goes on. belay logs -f %s" % (job, job), err)
        self.assertIsNone(self.json("show", job)["job"]["end"])
        self.ok("cancel", job)

    def test_a_forgotten_value_or_script_is_named(self):
        script = self.h.script("true\n", "train.sh")
        for words, text in (
            (("--name", "--mem", "1G", script), "the option before --mem needs a value"),
            (("--name", script), "train.sh was read as the value of --name"),
            (("--nmae", "x", script), "did you mean --name?"),
        ):
            with self.subTest(words):
                done = self.h.belay("submit", *words)
                self.assertEqual(done.returncode, 2)
                self.assertIn(text, done.stderr)

    def test_cancel_ends_a_job_and_its_processes(self):
        mark = os.path.join(self.h.dir, "sleeper")
        os.symlink("/bin/sleep", mark)
        job = self.submit(
            self.h.script("%s 1000 &\n%s 1001 &\necho started\nwait\n" % (mark, mark))
        )
        self.wait_log(job, "^started$")
        waiter = self.h.start("submit", "--wait", self.h.script("exec sleep 1000\n", "second.sh"))
        second = int(re.search(r"(\d+)$", waiter.stdout.readline()).group(1))
        self.assertEqual(self.ok("cancel", str(job), str(second)).count("is being cancelled"), 2)
        err = waiter.communicate(timeout=WAIT_S)[1]
        self.assertNotEqual(waiter.returncode, 0)
        self.assertIn("job %d ended: cancelled" % second, err)
        self.ok("logs", "-f", str(job))
        self.assertEqual(self.json("show", str(job))["job"]["end"], "cancelled")
        self.assertEqual([p for p in self.h.processes() if mark in self.h.command_line(p)], [])
        done = self.h.belay("cancel", str(job), "999999", "x")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stderr.splitlines()), 3)

    def test_a_cancel_at_any_moment_of_a_start_ends_the_job_at_once(self):
        script = self.h.script("exec sleep 1000\n")
        begun = time.monotonic()
        for i in range(20):
            waiter = self.h.start("submit", "--wait", script)
            job = re.search(r"(\d+)$", waiter.stdout.readline()).group(1)
            time.sleep(0.004 * i)  # between nothing and a running program
            self.ok("cancel", job)
            waiter.communicate(timeout=WAIT_S)
            self.assertNotEqual(waiter.returncode, 0)
        self.assertLess(time.monotonic() - begun, 25)  # none had to be killed, which is after 30 s

    def test_a_command_is_wrapped_in_a_script(self):
        done = self.h.belay("submit", "--wait", "--wrap", 'echo "a  b" | tr a-z A-Z; exit 7')
        job = int(re.fullmatch(r"Submitted batch job (\d+)\n", done.stdout).group(1))
        self.assertEqual((done.returncode, done.stderr), (7, ""))
        self.assertEqual(self.ok("logs", str(job)), "A  B\n")
        shown = self.json("show", str(job))
        self.assertEqual(
            (shown["job"]["name"], shown["spec"]["script"]),
            ("wrap", '#!/bin/sh\necho "a  b" | tr a-z A-Z; exit 7\n'),
        )
        job = self.submit("-J", "mine", "-c", "1", "--wrap=true", "--wait")
        self.assertEqual(self.json("show", str(job))["job"]["name"], "mine")

    def test_a_job_that_nothing_can_run_is_warned_of(self):
        done = self.h.belay("submit", "-c", "4096", "--nice", "30", self.h.script("true\n"))
        self.assertEqual(done.returncode, 0)
        self.assertIn("warning: job", done.stderr)
        job = re.search(r"(\d+)$", done.stdout).group(1)
        self.assertIn("4096 cpus", self.ok("why", job))
        self.assertRegex(
            self.ok("show", job),
            "priority      like that of a job that waited .*: its waiting .*, nice -30m00s",
        )
        share = self.json("shares")["shares"][0]
        self.assertEqual((share["team"], share["pending"], share["share"]), (share["user"], 1, 1.0))
        self.assertRegex(self.ok("shares"), r"TEAM +SHARE +USED +USER")
        quotas = self.json("quotas")["quotas"]
        self.assertEqual(
            [(q["team"], q["user"], q["submitted"], q["max_gpus"]) for q in quotas],
            [(share["team"], user, 1, None) for user in (None, share["user"])],
        )
        self.assertRegex(
            self.ok("quotas"),
            r"TEAM +USER +RUNNING +SUBMITTED +GPUS +USD/H +CPUS +QUOTA\n.* 0/- +1/- +0/- +0/- +0/- +-",
        )
        self.assertEqual(self.json("why", job)["reasons"][0]["code"], "too-large")
        self.ok("cancel", job)

    def test_submit_warns_of_more_nodes_than_there_can_be(self):
        for words, needs in ((("--nodes", "3"), 3), (("-N", "2-4"), 2)):
            done = self.h.belay("submit", *words, "--wrap", "true")
            job = re.search(r"job (\d+)", done.stdout).group(1)
            self.assertEqual(
                (done.returncode, done.stderr),
                (
                    0,
                    "belay: warning: job %s waits until this changes: it needs %d nodes of one "
                    "pool at once; the largest pool can have 1\n" % (job, needs),
                ),
            )
            self.ok("cancel", job)
        self.submit("--wait", "--nodes", "1-3", "--wrap", "true")  # as many as available

    def test_why_names_the_jobs_ahead(self):
        cpus = str(self.json("nodes")["nodes"][0]["cpus"])
        wanted = ("-c", cpus, "--wrap")
        filler = self.submit(*wanted, "echo up; exec sleep 1000")
        self.wait_log(filler, "^up$")
        before = [self.submit("-J", "ahead-%d" % n, *wanted, "true") for n in range(5)]
        last = self.submit(*wanted, "true")
        user = self.json("show", str(last))["job"]["user"]
        lines = [
            "  < job %d 'ahead-%d' of %s is ahead: has waited for longer" % (job, n, user)
            for n, job in enumerate(before)
        ]
        for job, expected in (
            (before[0], []),
            (before[2], lines[:2]),
            (last, lines[:3] + ["  < and 2 more"]),
        ):
            said = self.ok("why", str(job)).splitlines()
            self.assertEqual([line for line in said if line.startswith("  < ")], expected, said)
            self.assertNotRegex("".join(said), "waits? before it")  # the same once more
        self.ok("cancel", *map(str, [last, *before, filler]))

    # ---- output ----

    def test_every_verb_speaks_json(self):
        job = self.submit("--wait", self.h.script("echo hi\n"))
        token = self.json("token", "create")["id"]
        for arguments, keys in (
            (("list",), ["jobs", "next"]),
            (("list", "-a", "-n", "3", "-u", "nobody"), ["jobs", "next"]),
            (
                ("show", str(job)),
                [
                    "array",
                    "attempts",
                    "certificate",
                    "checkpoints",
                    "depends",
                    "drills",
                    "expects",
                    "failed_save",
                    "job",
                    "ledger",
                    "leftover",
                    "spec",
                ],
            ),
            (
                ("why", str(job)),
                ["ahead", "changes", "estimate", "id", "reasons", "state", "warnings"],
            ),
            (("logs", str(job)), ["id", "log"]),
            (("nodes",), ["next", "nodes"]),
            (("nodes", "-a"), ["next", "nodes"]),
            (
                ("top", "-1"),
                [
                    "cluster",
                    "coming",
                    "cpus",
                    "gpus",
                    "jobs",
                    "memory_mib",
                    "nodes",
                    "on_demand_uusd_h",
                    "pools",
                    "running",
                    "usage",
                    "uusd_h",
                ],
            ),
            (("shares",), ["shares"]),
            (("quotas",), ["quotas"]),
            (("pools",), ["pools"]),
            (("offers",), ["offers"]),
            (("cron",), ["crons"]),
            (("cost",), ["lines", "total"]),
            (("cost", "--by", "kind"), ["lines", "total"]),
            (("token", "list"), ["tokens"]),
            (("token", "revoke", str(token)), ["id"]),
            (("version",), ["belay", "belayd"]),
            (("up",), ["home", "node"]),
            (("run", "true"), ["id"]),
            (("submit", self.h.script("true\n")), ["id"]),
        ):
            with self.subTest(arguments):
                self.assertEqual(sorted(self.json(*arguments)), keys)
        self.assertEqual(self.json("logs", str(job))["log"], "hi\n")
        job = self.submit(self.h.script("exec sleep 1000\n"))
        for verb in ("requeue", "cancel"):
            self.assertEqual(self.json(verb, str(job)), {"id": job})
        node = self.json("nodes")["nodes"][0]["id"]
        for action in ("drain", "undrain"):
            self.assertEqual(json.loads(self.ok("nodes", "--json", action, str(node)))["id"], node)

    def test_remove_rm_and_delete_are_one_word(self):
        script = self.h.script("true\n", "true.sh")
        for word in ("remove", "rm", "delete"):
            self.ok("calendar", "set", "days", "2099-12-25")
            self.assertEqual(self.ok("calendar", word, "days"), "calendar days removed\n")
            self.assertEqual(self.h.belay("secret", "set", "k", text="0123456789").returncode, 0)
            self.ok("secret", word, "k")
            self.ok("reservation", "add", "r", "--pool", "local", "--for", "1h")
            self.assertEqual(self.ok("reservation", word, "r"), "reservation r removed\n")
            self.ok("cron", "add", "--name", "n", "0 1 * * *", script)
            self.assertIn("removed", self.ok("cron", word, "n"))
            for words in (("nodes", word, "vm-7"), ("checkpoint", word, "4711@1.1")):
                done = self.h.belay(
                    *words
                )  # the action is known, and what it is about is not there
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertNotIn("expected", done.stderr)

    def test_a_drain_has_a_reason(self):
        node = str(self.json("nodes")["nodes"][0]["id"])
        self.addCleanup(self.h.belay, "nodes", "undrain", node)
        self.ok("nodes", "drain", "--reason", "disk is swapped", node)
        self.assertEqual(self.json("nodes")["nodes"][0]["drain_text"], "disk is swapped")
        self.assertIn("disk is swapped", self.ok("nodes"))
        events = self.client().events()["events"]
        self.assertTrue(any("being emptied: disk is swapped" in e["text"] for e in events), events)
        self.assertIn(node + ": disk is swapped", self.ok("admin", "audit-log"))
        job = str(self.submit(self.h.script("true\n")))
        self.assertIn("disk is swapped", self.ok("why", job))
        self.ok("cancel", job)
        self.ok("nodes", "undrain", node)
        self.assertIsNone(self.json("nodes")["nodes"][0]["drain_text"])
        done = self.h.belay("nodes", "undrain", "--reason", "x", node)
        self.assertEqual(
            (done.returncode, done.stderr), (2, "belay: --reason is for belay nodes drain\n")
        )
        for bad in ("two\nlines", "x" * 200):
            self.assertNotEqual(self.h.belay("nodes", "drain", "--reason", bad, node).returncode, 0)

    def test_an_empty_item_of_a_list_is_refused(self):
        script = self.h.script("true\n", "true.sh")
        for words, why in (
            (("submit", "--nodelist", "vm,", script), 'found an empty one in "vm,"'),
            (("submit", "--exclude", "a,,b", script), 'found an empty one in "a,,b"'),
            (("submit", "-p", "local,", script), '"local," has an empty item'),
            (
                ("reservation", "add", "r", "--nodes", ",vm", "--from", "now", "--for", "1h"),
                "empty",
            ),
            (("list", "-o", "id,,name"), 'found an empty one in "id,,name"'),
            (("nodes", "vm,"), 'found "vm,"'),
            (("nodes", "drain", "vm,"), 'separated by spaces, found "vm,"'),
            (("nodes", "drain", ""), "separated by spaces"),
        ):
            done = self.h.belay(*words)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn(why, done.stderr)

    def test_lists_are_filtered_and_sorted(self):
        done = self.submit("--wait", "-J", "sieve-b", "--label", "sieve=1", self.h.script("true\n"))
        held = [
            self.submit("-H", "-J", "sieve-" + name, self.h.script("true\n")) for name in ("c", "a")
        ]
        for arguments, expected in (
            (("--name", "sieve-*"), held[::-1]),
            (("-a", "--name", "sieve-*", "--sort", "name"), [held[1], done, held[0]]),
            (("-e", "-l", "sieve"), [done]),
            (("-s", "succeeded,failed", "--label", "sieve=1", "--since", "1h"), [done]),
            (("-s", "pending", "--name", "sieve-a", "--name", "sieve-b"), held[1:]),
            (("-a", "--name", "sieve-*", "--sort", "oldest", "-n", "2"), [done, held[0]]),
            (("-a", "--name", "sieve-*", "--until", "2026-01-01"), []),
        ):
            with self.subTest(arguments):
                self.assertEqual([j["id"] for j in self.json("list", *arguments)["jobs"]], expected)
        self.assertIn("it is held", self.ok("list", "--why", "--name", "sieve-a"))
        self.ok("cancel", *map(str, held))

    def test_parts_of_a_log_are_shown(self):
        job = str(self.submit("--wait", self.h.script("seq 5\n")))
        for arguments, expected in (
            (("--tail", "2"), "4\n5\n"),
            (("-f", "-n", "1"), "5\n"),
            (("--since", "1h"), "1\n2\n3\n4\n5\n"),
            (("--since", "1h", "--tail-bytes", "3"), "\n5\n"),
            (("--since", "2100-01-01", "-f"), ""),
            (("--attempt", "1", "-f", "--rank", "0", "-n", "1"), "5\n"),
        ):
            with self.subTest(arguments):
                self.assertEqual(self.ok("logs", *arguments, job), expected)
        self.assertEqual(json.loads(self.ok("logs", "--json", "-n", "3", job))["log"], "3\n4\n5\n")
        done = self.h.belay("logs", "--attempt", "2", job)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("has had no attempt 2", done.stderr)

    def test_a_command_runs_inside_a_running_job(self):
        job = str(
            self.submit(
                "-J",
                "entered",
                "--export",
                "SEEN=inside",
                self.h.script("echo go; exec sleep 1000\n"),
            )
        )
        self.wait_log(job, "^go$")
        self.wait_started(job)
        done = self.h.belay(
            "exec",
            job,
            "--",
            "sh",
            "-c",
            "echo $SEEN $BELAY_JOB_ID; pwd; echo oops >&2; cat; exit 7",
            text="in\n",
        )
        self.assertEqual(
            (done.returncode, done.stdout, done.stderr),
            (7, "inside %s\n%s\nin\n" % (job, self.h.dir), "oops\n"),
        )
        much = "x" * 99 + "\n"
        done = self.h.belay("exec", job, "cat", text=much * 20000)  # more than any buffer holds
        self.assertEqual((done.returncode, len(done.stdout), done.stderr), (0, 2000000, ""))
        self.assertEqual(self.h.belay("exec", job, "--", "sh", "-c", "kill -9 $$").returncode, 137)
        for arguments, code, text in (
            ((job, "--", "/no/such"), 1, "cannot be executed"),
            (("--rank", "1", job, "true"), 1, "ranks count from 0"),
            ((job,), 2, "expected a job and a command"),
            ((job, "--"), 2, "expected a command"),
            (("-t", job, "sh"), 2, "not a terminal"),
        ):
            done = self.h.belay("exec", *arguments)
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertIn(text, done.stderr)
        client = self.client()
        self.assertIn("enter", [e["kind"] for e in client.job_events(int(job))["events"]])
        self.assertEqual(
            client.run_in(int(job), ["sh", "-c", "cat; echo 2 >&2; exit 3"], input=b"y" * 100000),
            (3, b"y" * 100000, b"2\n"),
        )
        # It is in the task's group, so it ends with the job.
        inside = self.h.start("exec", job, "--", "sh", "-c", "echo here; exec sleep 1000")
        self.assertEqual(inside.stdout.readline(), "here\n")
        self.ok("cancel", job)
        out, err = inside.communicate(timeout=WAIT_S)
        self.assertIn(inside.returncode, (1, 137, 143), err)
        self.wait_event(job, "ended")  # the session may end before the job has
        done = self.h.belay("exec", job, "true")
        self.assertEqual(done.returncode, 1)
        self.assertIn("has ended", done.stderr)

    def test_what_is_typed_goes_to_a_job_that_is_attached_to(self):
        job = str(
            self.submit(
                "--stdin",
                self.h.script("echo name?; read name; echo hello $name; read code; exit $code\n"),
            )
        )
        self.wait_log(job, r"^name\?$")
        self.wait_started(job)
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(BUILD + "/cli/belay", ["belay", "attach", job], self.h.env)
        seen = ""
        for say, expect in (
            ("", r"name\?"),
            ("ann\n", r"hello ann"),
            ("\x10\x11", "detached from job"),
        ):
            os.write(fd, say.encode())
            while not re.search(expect, seen):
                self.assertTrue(select.select([fd], [], [], WAIT_S)[0], seen)
                seen += os.read(fd, 65536).decode()
        self.read_to_end(fd)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        os.close(fd)
        done = self.h.belay(
            "attach", "-n", "1", job, text="6\n"
        )  # once more; it ends with the job's code
        self.assertEqual((done.returncode, done.stdout), (6, "hello ann\n"), done.stderr)
        done = self.h.belay("attach", job)
        self.assertEqual((done.returncode, done.stdout), (6, "name?\nhello ann\n"))

    def test_another_users_job_cannot_be_attached_to(self):
        """It ends at once, although the job runs on."""
        job = str(self.submit(self.h.script("echo go; exec sleep 1000\n")))
        self.wait_log(job, "^go$")
        token = os.path.join(self.h.dir, "token")
        with open(token, "w") as f:
            f.write(self.ok("token", "create", "--user", "nobody"))
        os.chmod(token, 0o600)
        with open(os.path.join(self.h.home, "belayd.json")) as f:
            url = json.load(f)["url"]
        done = self.h.belay(
            "attach",
            job,
            env={
                "BELAY_SERVER": url,
                "BELAY_TOKEN_FILE": token,
                "BELAY_CA_FILE": os.path.join(self.h.home, "ca.pem"),
            },
        )
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("root", done.stderr)
        self.assertEqual(self.json("show", job)["job"]["state"], "running")
        self.ok("cancel", job)

    def test_a_job_reads_the_end_of_its_input(self):
        job = str(
            self.submit(
                "--stdin", self.h.script("echo go; cat | wc -c; read more; echo end of $?\n")
            )
        )
        self.wait_log(job, "^go$")
        self.wait_started(job)
        beside = self.h.start(
            "exec", job, "--", "sh", "-c", "echo here; exec sleep 1000"
        )  # the background process has no open files
        self.assertEqual(beside.stdout.readline(), "here\n")
        done = self.h.belay(
            "attach", job, text="x" * 99 + "\n" + "y" * 300000
        )  # more than any buffer holds
        self.assertEqual(
            (done.returncode, done.stdout, done.stderr), (0, "go\n300100\nend of 1\n", "")
        )
        beside.communicate(timeout=WAIT_S)

    def attached(self, *arguments, text, sees, **more):
        p = self.h.start("attach", *arguments, **more)
        if text is not None:
            p.stdin.write(text)
            p.stdin.flush()
        self.assertEqual("".join(p.stdout.readline() for _ in sees), "".join(sees))
        return p

    def test_a_jobs_input_ends_only_when_somebody_says_so(self):
        job = str(
            self.submit("--stdin", self.h.script("echo go; cat; echo ended; exec sleep 1000\n"))
        )
        self.wait_log(job, "^go$")
        self.wait_started(job)
        p = self.attached(
            "--keep-open", job, text="one\n", sees=["go\n", "one\n"], stdin=subprocess.PIPE
        )
        p.stdin.close()
        p.stdin = None
        q = self.attached(job, text=None, sees=["go\n", "one\n"])  # of /dev/null
        for one in (p, q):
            one.send_signal(signal.SIGINT)
            self.assertIn("detached from job", one.communicate(timeout=WAIT_S)[1])
        p = self.attached(job, text="two\n", sees=["go\n", "one\n", "two\n"], stdin=subprocess.PIPE)
        self.h.kill("agent.pid")  # ends only the session
        self.ok("up")
        p.kill()
        p.communicate()
        p, other, terminal = self.start_on_terminal("attach", job)
        self.talk(other, "", "two\r\n")
        self.talk(other, "thr\x04ee\n\x04", "three\r\n(.*\n)*ended\r\n")
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(WAIT_S), 0)
        self.assertEqual(self.ok("logs", job), "go\none\ntwo\nthree\nended\n")
        p = self.h.start("attach", job, stdin=subprocess.PIPE)
        self.assertIn("is already closed", p.stderr.readline())
        self.ok("cancel", job)
        p.communicate(timeout=WAIT_S)

    def test_what_runs_in_a_container_is_entered_there(self):
        with Home() as h:
            podman = os.path.join(h.dir, "podman")
            with open(podman, "w") as f:
                f.write(PODMAN)
            os.chmod(podman, 0o755)
            h.env["PATH"] = h.dir + ":" + os.environ["PATH"]
            self.assertEqual(h.belay("up").returncode, 0)
            h.belay("submit", "--image", "img:1", h.script("echo by $CAME; exec sleep 1000\n"))
            follower = h.start("logs", "-f", "1")
            self.assertEqual(follower.stdout.readline(), "by run\n")
            wait_event(h.client(), 1, "started")
            done = h.belay(
                "exec",
                "1",
                "--",
                "sh",
                "-c",
                "echo by $CAME $BELAY_JOB_ID; cat; exit 4",
                text="in\n",
            )
            self.assertEqual(
                (done.returncode, done.stdout, done.stderr), (4, "by exec 1\nin\n", "")
            )
            self.assertEqual(
                h.belay(
                    "slurm", "srun", "--jobid=1", "-n", "2", "sh", "-c", "echo by $CAME"
                ).stdout,
                "by exec\nby exec\n",
            )
            done = h.belay(
                "run", "-I", "--image", "img:1", "sh", "-c", "echo by $CAME; cat", text="in\n"
            )
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "by exec\nin\n", ""))
            if (
                os.geteuid() == 0
            ):  # the command inside is not a child of podman exec, and ends with the session all the same
                p = h.start("exec", "1", "--", "sh", "-c", "echo $$; exec sleep 999")
                pid = int(p.stdout.readline())
                p.terminate()
                p.communicate(timeout=WAIT_S)
                wait_until(lambda: is_gone(pid), "what ran inside ends with its session")
            h.belay("cancel", "1")
            follower.communicate(timeout=WAIT_S)

    def test_a_container_that_does_not_run_yet_is_waited_for(self):
        with Home() as h:
            podman = os.path.join(h.dir, "podman")
            with open(podman, "w") as f:
                f.write(PODMAN)
            os.chmod(podman, 0o755)
            os.mkfifo(podman + ".hold")  # as while an image is fetched
            h.env["PATH"] = h.dir + ":" + os.environ["PATH"]
            self.assertEqual(h.belay("up").returncode, 0)
            h.belay("submit", "--image", "img:1", h.script("exec sleep 1000\n"))
            client = h.client()
            wait_event(client, 1, "started")
            session = client.exec(1, command=["sh", "-c", "echo by $CAME"])["id"]
            self.assertEqual(client.channel_output(session, wait_ms=1000), (b"", False))
            guest = h.start("run", "-I", "--image", "img:1", "sh", "-c", "echo by $CAME")
            wait_until(lambda: len(list(client.jobs())) == 2, "the guest's job is submitted")
            wait_event(client, 2, "enter")
            with open(podman + ".hold", "w"):  # both read EOF, or find that the FIFO is gone
                os.unlink(podman + ".hold")
            heard, ends, until = b"", False, time.monotonic() + WAIT_S
            while not ends and time.monotonic() < until:
                piece, ends = client.channel_output(session, offset=len(heard), wait_ms=10000)
                heard += piece
            self.assertEqual(heard, b"\1\0\0\0\x08by exec\n\3\0\0\0\1\0")
            self.assertEqual(
                (*guest.communicate(timeout=WAIT_S), guest.returncode), ("by exec\n", "", 0)
            )
            h.belay("cancel", "1")

    def test_a_terminal_inside_a_job(self):
        job = str(self.submit(self.h.script("echo go; exec sleep 1000\n")))
        self.wait_log(job, "^go$")
        self.wait_started(job)
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(self.h.dir)
            os.execve(
                BUILD + "/cli/belay",
                ["belay", "exec", "-t", job, "--", "sh"],
                {**self.h.env, "TERM": "vt100", "PS1": "> "},
            )
        seen = ""
        for say, expect in (
            ("tty; echo $TERM\n", r"/dev/pts/\d+\r\nvt100\r\n"),
            ("sh -c 'echo in f''ront; exec sleep 1000'\n", r"in front\r\n"),
            ("\x03", r"\^C"),
            ("exit 5\n", None),
        ):
            os.write(fd, say.encode())
            while expect and not re.search(expect, seen):
                self.assertTrue(select.select([fd], [], [], WAIT_S)[0], seen)
                seen += os.read(fd, 65536).decode()
        self.read_to_end(fd)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 5)
        os.close(fd)
        self.ok("cancel", job)

    def start_on_terminal(self, *arguments, env=None):
        """Starts a verb on a new terminal. Returns the process, the terminal's master and the
        terminal.
        """
        other, terminal = pty.openpty()
        p = subprocess.Popen(
            [BUILD + "/cli/belay", *arguments],
            cwd=self.h.dir,
            env={**self.h.env, "TERM": "vt100", **(env or {})},
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self.addCleanup(os.close, other)
        self.addCleanup(os.close, terminal)
        return p, other, terminal

    def talk(self, fd, say, expect):
        os.write(fd, say.encode())
        seen = ""
        while not re.search(expect, seen):
            self.assertTrue(select.select([fd], [], [], WAIT_S)[0], seen)
            seen += os.read(fd, 65536).decode()
        return seen

    def test_a_terminal_is_as_it_was_after_a_signal(self):
        job = str(self.submit("--stdin", self.h.script("echo go; exec sleep 1000\n")))
        self.wait_log(job, "^go$")
        self.wait_started(job)
        command = ("sh", "-c", "echo pid $$; exec sleep 1000")
        for signum in (signal.SIGTERM, signal.SIGHUP):
            p, other, terminal = self.start_on_terminal("exec", "-t", job, "--", *command)
            pid = int(re.search(r"pid (\d+)", self.talk(other, "", r"pid \d+\r\n")).group(1))
            self.assertFalse(
                termios.tcgetattr(terminal)[3] & (termios.ECHO | termios.ICANON | termios.ISIG)
            )
            p.send_signal(signum)
            self.assertEqual(p.wait(WAIT_S), -signum)
            self.assertTrue(termios.tcgetattr(terminal)[3] & termios.ECHO)
            self.assertEqual(termios.tcgetattr(terminal), self.usual_terminal())
            while os.path.exists("/proc/%d" % pid):  # the program has ended, too
                time.sleep(0.01)
            p, other, terminal = self.start_on_terminal("attach", job)
            self.talk(other, "", "go\r\n")
            self.assertFalse(termios.tcgetattr(terminal)[3] & termios.ICANON)
            p.send_signal(signum)
            self.assertEqual(p.wait(WAIT_S), 128 + signum)
            self.assertEqual(termios.tcgetattr(terminal), self.usual_terminal())
        self.ok("cancel", job)

    def last_job(self):
        return json.loads(self.ok("list", "--json", "--state", "all"))["jobs"][0]["id"]

    def test_a_job_has_this_terminal(self):
        p, other, terminal = self.start_on_terminal("run", "--tty", "-J", "shell", "sh")
        self.talk(other, "tty; echo $TERM $BELAY_JOB_NAME\n", r"/dev/pts/\d+\r\nvt100 shell\r\n")
        self.talk(other, "sh -c 'echo in f''ront; exec sleep 1000'\n", r"in front\r\n")
        self.talk(other, "\x03", r"\^C")
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
        self.talk(
            other, "until test \"$(stty size)\" = '33 77'; do :; done; echo re''sized\n", "resized"
        )
        os.write(other, b"exit 5\n")
        self.assertEqual(p.wait(WAIT_S), 5)
        self.assertEqual(termios.tcgetattr(terminal)[3], self.usual_terminal()[3])
        job = self.json("show", str(self.last_job()))["job"]
        self.assertEqual(
            (job["name"], job["state"], job["end"], job["exit_code"]),
            ("shell", "ended", "failed", 5),
        )
        for arguments, text in (
            (("--tty", "sh"), "not a terminal"),
            (("-I",), "expected a command"),
            (("-I", "-a", "1-3", "sh"), "an array cannot be interactive"),
            (("-I", "--stdin", "sh"), "leave --input and --stdin out"),
            (("-I", "--json", "sh"), "leave --json out"),
            (
                ("-I", "--checkpoint", "criu", "sh"),
                "a job that is checkpointed by CRIU cannot be interactive",
            ),
        ):
            done = self.h.belay("run", *arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(text, done.stderr)

    def test_a_job_has_this_input(self):
        done = self.h.belay(
            "run",
            "--interactive",
            "sh",
            "-c",
            "cat; echo err >&2; exit 7",
            text="x" * 99 + "\n" + "y\n",
        )
        self.assertEqual(
            (done.returncode, done.stdout, done.stderr), (7, "x" * 99 + "\ny\n", "err\n")
        )
        for i in range(10):  # the end never comes before the last output
            done = self.h.belay("run", "-I", "sh", "-c", "echo last words %d; exit %d" % (i, i))
            self.assertEqual(
                (done.returncode, done.stdout, done.stderr), (i, "last words %d\n" % i, "")
            )
        done = self.h.belay("run", "-I", "/no/such")
        self.assertEqual((done.returncode, done.stdout), (127, ""))
        self.assertIn("/no/such cannot be executed: No such file", done.stderr)
        done = self.h.belay("run", "-I", "sh", "-c", "kill -9 $$")
        self.assertEqual(done.returncode, 137)
        p = self.h.start(
            "run",
            "-I",
            "sh",
            "-c",
            "trap 'echo caught; exit 3' INT; echo here; while :; do sleep 0.05; done",
        )
        self.assertEqual(p.stdout.readline(), "here\n")
        p.send_signal(signal.SIGINT)
        self.assertEqual((p.communicate(timeout=WAIT_S)[0], p.returncode), ("caught\n", 3))

    def test_a_job_that_somebody_is_in_ends_with_him(self):
        usual = self.usual_terminal()
        for signum in (signal.SIGTERM, signal.SIGHUP):
            p, other, terminal = self.start_on_terminal(
                "run", "-T", "sh", "-c", "echo pid $$; exec sleep 1000"
            )
            pid = int(re.search(r"pid (\d+)", self.talk(other, "", r"pid \d+\r\n")).group(1))
            job = str(self.last_job())
            p.send_signal(signum)
            self.assertEqual(p.wait(WAIT_S), -signum)
            self.assertEqual(termios.tcgetattr(terminal), usual)
            self.ok("logs", "-f", job)
            ended = self.json("show", job)["job"]
            self.assertEqual((ended["end"], ended["exit_code"]), ("failed", 128 + signal.SIGHUP))
            self.assertFalse(os.path.exists("/proc/%d" % pid))
        # The reason for the job's end is printed, and it is not queued again.
        p, other, terminal = self.start_on_terminal(
            "run", "-T", "sh", "-c", "echo here; exec sleep 1000"
        )
        self.talk(other, "", "here\r\n")
        self.ok("cancel", str(self.last_job()))
        self.talk(other, "", "ended: cancelled")
        self.assertNotEqual(p.wait(WAIT_S), 0)
        self.assertEqual(termios.tcgetattr(terminal), usual)

    def test_a_job_that_is_to_be_queued_again_is_waited_for(self):
        p = self.h.start(
            "run",
            "-I",
            "--requeue",
            "sh",
            "-c",
            "echo attempt $BELAY_ATTEMPT; test $BELAY_ATTEMPT = 2 || exec sleep 1000",
        )
        self.assertEqual(p.stdout.readline(), "attempt 1\n")
        self.ok("requeue", str(self.last_job()))
        out, err = p.communicate(timeout=WAIT_S)
        self.assertEqual((p.returncode, out), (0, "attempt 2\n"), err)
        p = self.h.start("run", "-I", "sh", "-c", "echo here; exec sleep 1000")
        self.assertEqual(p.stdout.readline(), "here\n")
        done = self.h.belay("requeue", str(self.last_job()))
        self.assertIn("never requeued", done.stderr)
        p.terminate()
        p.communicate(timeout=WAIT_S)
        self.wait_event(self.last_job(), "ended")  # because other tests count the existing jobs

    def test_waiting_for_a_terminal_shows_the_reason(self):
        p, other, terminal = self.start_on_terminal("run", "-T", "-c", "4000", "sh")
        self.talk(other, "", r"belay: job \d+ waits: ")
        os.write(other, b"\x03")
        self.assertEqual(p.wait(WAIT_S), 130)
        self.assertEqual(self.json("show", str(self.last_job()))["job"]["end"], "cancelled")

    def usual_terminal(self):
        other, terminal = pty.openpty()
        usual = termios.tcgetattr(terminal)
        os.close(other)
        os.close(terminal)
        return usual

    def read_to_end(self, fd):
        """Reads a terminal, on which an error means EOF."""
        with contextlib.suppress(OSError):
            while True:
                self.assertTrue(
                    select.select([fd], [], [], WAIT_S)[0], "the terminal is not let go of"
                )
                if not os.read(fd, 65536):
                    break

    def client(self):
        return self.h.client()

    def wait_started(self, job):
        """Waits for the start: a job's output may arrive before belayd has recorded it."""
        self.wait_event(job, "started")

    def wait_event(self, job, kind):
        wait_event(self.client(), job, kind)

    def test_top_shows_what_runs(self):
        job = self.submit("-J", "busy", self.h.script("echo go; exec sleep 1000\n"))
        self.wait_log(job, "^go$")
        shown = self.ok("top")
        self.assertRegex(shown, r"jobs +[1-9]\d* running, \d+ pending")
        self.assertRegex(shown, r"(?m)^local +1 +0 +[1-9]\d* +\d+/\d+")
        self.assertRegex(shown, r"(?m)^ *%d busy " % job)
        self.assertNotIn("busy", self.ok("top", "-1", "-u", "nobody"))
        self.ok("cancel", str(job))

    def test_top_has_keys(self):
        job = self.submit("-J", "busy", self.h.script("echo go; exec sleep 1000\n"))
        self.wait_log(job, "^go$")
        size = struct.pack("HHHH", 24, 80, 0, 0)
        p, other, terminal = self.start_on_terminal("top", "-d", "3600")
        self.talk(other, "", "h help")
        self.assertFalse(termios.tcgetattr(terminal)[3] & (termios.ECHO | termios.ICANON))
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)  # its signal draws again
        seen = self.talk(other, "", r"(?s)\x1b\[H.*h help")
        shown = seen[seen.rindex("\x1b[H") :].replace("\x1b[H\x1b[J", "")
        self.assertLessEqual(max(map(len, shown.splitlines())), 80, shown)
        self.assertIn("busy", shown)
        for key, text in (
            ("m", "sorted by memory"),
            ("r", "sorted by memory reversed"),
            ("c", "sorted by cpu reversed"),
            ("?", "Keys of belay top"),
            ("x", "sorted by cpu"),
            ("/busy ", "/busy "),
            ("\x7f\r", "only busy "),
            ("/none\r", "only none"),
            ("\x1b", r"busy(?s:.*)reversed   q quit"),
        ):
            with self.subTest(key):
                self.talk(other, key, text)
        p.send_signal(signal.SIGTSTP)
        self.assertTrue(os.WIFSTOPPED(os.waitpid(p.pid, os.WUNTRACED)[1]))
        self.assertEqual(termios.tcgetattr(terminal), self.usual_terminal())
        p.send_signal(signal.SIGCONT)
        self.talk(other, "", "q quit")
        self.assertFalse(termios.tcgetattr(terminal)[3] & termios.ICANON)
        os.write(other, b"q")
        self.assertEqual(p.wait(WAIT_S), 0)
        self.assertEqual(termios.tcgetattr(terminal), self.usual_terminal())
        for signum in (signal.SIGINT, signal.SIGTERM):
            p, other, terminal = self.start_on_terminal("top")
            self.talk(other, "", "h help")
            if signum == signal.SIGINT:
                os.write(other, b"\x03")
            else:
                p.send_signal(signum)
            self.assertEqual(p.wait(WAIT_S), -signum)
            self.assertEqual(termios.tcgetattr(terminal), self.usual_terminal())
        wrong = self.h.belay("top", "--sort", "size")
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn("expected id, cpu, memory, time, cost or name", wrong.stderr)
        self.ok("cancel", str(job))

    def test_what_a_job_uses_is_shown_while_it_runs_and_afterwards(self):
        job = self.submit(
            "-J",
            "burner",
            "--mem",
            "256M",
            self.h.script("echo go; while [ ! -e stop ]; do :; done\n"),
        )
        self.wait_log(job, "^go$")
        client, usage, until = self.client(), None, time.monotonic() + 30
        while not (usage and usage["cpu_milli"]) and time.monotonic() < until:
            self.wait_event(
                self.submit(self.h.script("true\n")), "ended"
            )  # the agent reports its end, and everything else
            usage = client.show_job(job)["job"]["usage"]
        self.assertGreater(usage["cpu_milli"], 100)
        self.assertGreaterEqual(usage["memory_peak_bytes"], usage["memory_bytes"])
        shown = self.ok("top")
        self.assertRegex(shown, r"(?m)^in use +\d+\.\d cpus, \d+ GiB of memory")
        self.assertRegex(shown, r"(?m)^ *%d burner .* [1-9]\d* %% " % job)
        if usage["memory_bytes"]:
            self.assertRegex(shown, r"(?m)^ *%d burner .*/256(\.0)? MiB " % job)
        self.assertRegex(
            self.ok("nodes"), r"(?m)^.*CPUS USED +MEMORY USED.*\n.* [0-9.]+/\d+ +[0-9.]+/\d+ GiB "
        )
        self.assertGreater(sum(n["usage"]["cpu_milli"] for n in client.list_nodes()["nodes"]), 100)
        self.ok("cancel", str(job))
        self.wait_event(job, "ended")
        self.assertRegex(
            self.ok("show", str(job)), r"(?m)^cpu used +\S+ of \S+ on 1 cpu: [1-9]\d* %"
        )
        node = client.list_nodes()["nodes"][0]["name"]
        told = self.ok(
            "slurm",
            "sacct",
            "-j",
            str(job),
            "-n",
            "-P",
            "-o",
            "totalcpu,usercpu,systemcpu,maxrss,maxrssnode,maxrsstask",
        )
        cpu, user, system, rss, rss_node, rss_task = told.strip().split("|")
        self.assertRegex(cpu, r"^\d\d:\d\d\.\d\d\d$")
        self.assertNotEqual(cpu, "00:00.000")
        self.assertRegex(rss, r"^(\d+K)?$")
        self.assertEqual((rss_node, rss_task), (node, "0") if rss else ("", ""))
        minutes, seconds = zip(
            *(
                re.fullmatch(r"(\d\d):(\d\d\.\d\d\d)", part or "00:00.000").groups()
                for part in (cpu, user, system)
            )
        )
        total, in_user, in_kernel = (60 * int(m) + float(s) for m, s in zip(minutes, seconds))
        if user:
            self.assertAlmostEqual(total, in_user + in_kernel, places=2)
            self.assertGreater(in_user, 0)

    def test_the_example_for_python_runs(self):
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        with open(os.path.join(root, "docs", "reference", "api.md")) as f:
            example = re.search(r"^```python\n(.*?)^```", f.read(), re.S | re.M).group(1)
        env = {
            **self.h.env,
            "PYTHONPATH": os.path.join(BUILD, "clients", "python"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            [sys.executable, "-c", example],
            env=env,
            cwd=self.h.dir,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=WAIT_S,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(
            done.stdout, r"\Asucceeded 0 hello\n(.*\n)*\d+ waits pending\n(.*\n)*conflict\n\Z"
        )

    def test_a_cost_total_counts_a_job_once(self):
        self.submit("--wait", self.h.script("true\n"))
        counts = {
            re.search(r"(?m)^total +(\S+)", self.ok("cost", "--by", by)).group(1)
            for by in ("job", "user", "team", "pool", "kind", "day", "market,month")
        }
        self.assertEqual(len(counts), 1)
        self.assertGreater(int(counts.pop()), 0)

    def test_as_many_checkpoints_stay_as_were_asked_for(self):
        """Also after the last ones, which are stored when the program has exited or is stopped."""
        ends = self.h.script(
            'for i in 1 2 3 4 5; do echo $i >"$BELAY_CHECKPOINT_DIR/i"\n'
            '"%s/cli/belay" checkpoint commit --progress $i; done\nexit $1\n' % BUILD,
            "ends.sh",
        )
        stopped = self.h.script(
            'save() { cd "$BELAY_CHECKPOINT_DIR"; echo $1 >i; touch .done; }\n'
            "trap 'save last; exit 0' TERM\ntrap 'save more' USR1\n"
            "while :; do sleep 0.05; done\n",
            "stopped.sh",
        )
        options = ("--keep", "2", "--checkpoints-after", "all", "--checkpoint")
        jobs = [self.submit("-W", *options, "coop", ends, "0")]
        done = self.h.belay("submit", "-W", *options, "coop", ends, "3")
        jobs.append(int(done.stdout.split()[-1]))
        jobs.append(self.submit(*options, "signal", "--checkpoint-every", "1s", stopped))

        def saves():
            return [e for e in self.client().job_events(jobs[2])["events"] if e["kind"] == "saved"]

        wait_until(lambda: len(saves()) >= 3, "three saves")
        self.ok("cancel", str(jobs[2]))
        self.h.belay("logs", "-f", str(jobs[2]))
        for job in jobs:
            kept = self.json("checkpoint", "list", str(job))["checkpoints"]
            self.assertEqual(len(kept), 2, job)

    def test_tables_are_plain_on_a_pipe(self):
        self.submit("--wait", "-J", "n" * 60, self.h.script("true\n"))
        for arguments in (
            ("list", "-a"),
            ("nodes",),
            ("pools",),
            ("offers",),
            ("cost",),
            ("token", "list"),
            ("version",),
        ):
            out = self.ok(*arguments)
            self.assertNotRegex(out, r"[\x00-\x09\x0b-\x1f\x7f]")
        self.assertIn("n" * 60, self.ok("list", "-a", env={"COLUMNS": "40"}))

    def on_terminal(self, *arguments):
        """Returns a verb's output on a terminal, and its stderr."""
        main, end = pty.openpty()
        with os.fdopen(main, "rb", buffering=0) as terminal:
            p = self.h.start(*arguments, stdout=end)
            os.close(end)
            seen = b""
            with contextlib.suppress(OSError):
                while True:
                    piece = terminal.read(4096)
                    if not piece:
                        break
                    seen += piece
            err = p.stderr.read()
            self.assertEqual(p.wait(WAIT_S), 0)
            p.stderr.close()
        return seen.decode(), err

    def test_tables_on_a_terminal_have_the_same_words(self):
        out, err = self.on_terminal("pools")
        self.assertEqual((out.split(), err), (self.ok("pools").split(), ""))

    def test_an_empty_list_says_so_on_a_terminal_only(self):
        for arguments, words in (
            (("offers",), "no offers\n"),
            (("list", "-a", "-u", "nobody"), "no such jobs\n"),
            (
                ("list", "-u", "nobody"),
                "no such active jobs (belay list -a includes ended ones)\n",
            ),
        ):
            with self.subTest(arguments):
                self.assertEqual(self.on_terminal(*arguments), ("", words))
                self.assertEqual(self.ok(*arguments), "")

    def test_show_and_why_say_what_there_is_and_no_more(self):
        job = self.submit("--wait", self.h.script("true\n"))
        shown = self.ok("show", str(job))
        self.assertRegex(shown, r"(?m)^checkpoints   none$")
        self.assertIn(" 1 cpu, no memory limit, 0 gpus, ", shown)
        self.assertNotIn("-0 %", shown)
        self.assertIn(
            "job %d has ended\n  - the job has ended: succeeded\n  - its output: belay logs %d\n"
            % (job, job),
            self.ok("why", str(job)),
        )
        done = self.h.belay("submit", "--wait", self.h.script("exit 3\n"))
        job = re.search(r"job (\d+)", done.stdout).group(1)
        self.assertIn("the job has ended: failed, exit code 3\n", self.ok("why", job))
        self.assertRegex(self.ok("show", "--events", job), r"(?m) failed with exit code 3$")
        done = self.h.belay("submit", "--wait", self.h.script("exit 85\n"))
        job = re.search(r"job (\d+)", done.stdout).group(1)
        self.assertIn(
            "the job has ended: failed, exit code 85 asks to be continued", self.ok("why", job)
        )
        self.assertIn(
            "--checkpoint none: submit it with --checkpoint signal or coop", self.ok("show", job)
        )
        self.assertEqual(
            self.h.belay("show").stderr,
            "belay: expected one job's number (belay list shows them)\n",
        )

    def test_what_a_job_leaves_in_the_store_is_what_was_asked_for(self):
        """Two saves, then the job's end and belayd's own cleanup."""
        save = (
            'for step in 1 2; do echo $step >"$BELAY_CHECKPOINT_DIR/step"\n'
            '"%s/cli/belay" checkpoint commit --progress $step || exit 1; done\n' % BUILD
        )
        for after, code, stays, words in (
            ("delete", 0, 0, "none"),
            ("delete", 3, 1, "the last checkpoint"),
            ("last", 0, 1, "the last checkpoint"),
            ("all", 0, 2, "all checkpoints"),
            ("auto", 0, 2, None),
        ):
            done = self.h.belay(
                "submit",
                "--wait",
                "--checkpoint",
                "coop",
                "--checkpoints-after",
                after,
                self.h.script(save + "exit %d\n" % code),
            )
            job = re.search(r"job (\d+)", done.stdout).group(1)
            pattern = r"(?m)^kept          " + (
                words + "$" if words else r"all checkpoints until 20.*, then none$"
            )
            deadline = time.monotonic() + WAIT_S
            while not re.search(pattern, self.ok("show", job)):
                self.assertLess(time.monotonic(), deadline, self.ok("show", job))
                time.sleep(0.05)
            at = os.path.join(self.h.home, "store", "local", "jobs", job)
            self.assertEqual(os.listdir(at + "/fences"), ["9999999999"])
            manifests = os.listdir(at + "/manifests") if os.path.exists(at + "/manifests") else []
            self.assertEqual(
                sorted(manifests), ["0000000001-000000000%d.json" % n for n in (1, 2)][2 - stays :]
            )
            listed = self.json("checkpoint", "list", job)["checkpoints"]  # belayd knows the store
            self.assertEqual([c["sequence"] for c in listed], [2, 1][:stays])
        self.ok("checkpoint", "delete", job + "@1.2")  # the newest, but the job has ended

    def test_what_is_kept_is_what_there_was_to_keep(self):
        """For the moments of cleaning, which are too short to observe: answers with another
        `leftover`.
        """
        done = self.h.belay("submit", "--wait", "--checkpoint", "coop", "--wrap", "true")
        job = re.search(r"job (\d+)", done.stdout).group(1)
        shown = self.json("show", job)
        self.assertEqual(shown["checkpoints"], [])
        self.assertNotIn("\nkept  ", self.ok("show", job))
        path = os.path.join(self.h.dir, "canned.sock")
        with Canned(path, Canned.Answer) as canned:
            for state, keep, tries, n, kept in (
                ("cleaning", "all", 0, 0, None),
                ("cleaning", "none", 0, 0, None),
                ("waiting", "none", 3, 0, "nothing was saved\n +cleaning has failed 3 times: see"),
                ("cleaning", "all", 0, 1, "all checkpoints$"),
                ("waiting", "all", 1, 1, "all checkpoints\n +cleaning has failed 1 times: see its"),
                ("cleaning", "last", 0, 1, "the last checkpoint; the rest is being removed$"),
                ("waiting", "none", 0, 1, "all checkpoints until 2026-01-01 00:00:00, then none$"),
                ("done", "last", 0, 1, "the last checkpoint$"),
            ):
                canned.replies = {
                    "/api/v1/jobs/"
                    + job: {
                        **shown,
                        "checkpoints": [{}] * n,
                        "leftover": {
                            "state": state,
                            "keep": keep,
                            "due_at": "2026-01-01T00:00:00Z",
                            "tries": tries,
                        },
                    },
                    "/api/v1/jobs/%s/events" % job: {"events": [], "last": 0, "state": "ended"},
                }
                with self.subTest((state, keep, tries, n)):
                    done = self.h.belay("show", "--utc", job, env={"BELAY_SOCKET": path})
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    if kept:
                        self.assertRegex(done.stdout, "(?m)^kept          " + kept)
                    else:
                        self.assertNotIn("\nkept  ", done.stdout)

    def test_output_is_written_to_the_files_that_were_named_and_kept_as_well(self):
        script = self.h.script(
            "#SBATCH --error=e-%j\ncat; echo $SLURM_NTASKS $SLURM_CPUS_PER_TASK; echo bad >&2\n"
        )
        with open(os.path.join(self.h.dir, "in.txt"), "w") as f:
            f.write("from the input\n")
        self.assertEqual(
            self.h.belay(
                "submit", "--wait", "-o", "here-%x.txt", "-i", "in.txt", script
            ).returncode,
            0,
        )
        job = self.json("list", "-a", "-n", "1")["jobs"][0]["id"]
        for name, text in (("here-job.sh.txt", "from the input\n1 1\n"), ("e-%d" % job, "bad\n")):
            with open(os.path.join(self.h.dir, name)) as f:
                self.assertEqual(f.read(), text)
        self.assertEqual(
            sorted(self.ok("logs", str(job)).splitlines()), ["1 1", "bad", "from the input"]
        )
        done = self.h.belay("submit", "--wait", "-o", "no/such/%j", script)
        self.assertEqual(done.returncode, 126)
        self.assertIn("cannot be written to no/such/%d: No such file" % (job + 1), done.stderr)

    def test_the_only_reserved_pool_is_the_one_that_is_joined(self):
        self.assertRegex(self.ok("token", "create", "--join"), r"\A\S+\n\Z")

    def test_words_and_flags_that_belong_nowhere_are_refused(self):
        script = self.h.script("true\n")
        for arguments, text in (
            (("lst",), 'did you mean "list"'),
            (("list", "1"), 'unexpected word "1"'),
            (("show",), "job"),
            (("show", "1", "2"), "job"),
            (("show", "x"), "x"),
            (("logs", "-f", "--json", "1"), "--json"),
            (("logs", "--since", "soon", "1"), "--since: expected a time"),
            (("logs", "--tail", "0", "1"), "--tail"),
            (("logs", "--attempt", "0", "1"), "--attempt"),
            (("list", "--limit", "0"), "--limit"),
            (("top", "-d", "0"), "--every"),
            (("list", "--al"), "--al"),
            (("list", "-a", "-s", "failed"), "exclude each other"),
            (("list", "-s", "pendng"), "nearest: pending"),
            (("list", "--since", "soon"), "--since: expected a time"),
            (("list", "--sort", "size"), "--sort: expected"),
            (("list", "-e", "--sort", "newest"), "one order"),
            (("list", "-l", "=x"), "label: expected NAME=VALUE"),
            (("submit", "--cpu", "2", script), "--cpu"),
            (("submit", "-c", "0", script), "--cpus-per-task"),
            (("submit", "/no/such/script"), "/no/such/script"),
            (("submit", self.h.dir), self.h.dir),
            (("submit", "-n", "0", script), "--ntasks"),
            (("submit", "--wrap", "true", script), "--wrap"),
            (("submit", "--wrap", " \n"), "expected a command"),
            (("submit", "--wrap"), "--wrap"),
            (("run",), "expected a command"),
            (("cost", "--by", "weather"), "--by"),
            (("cost", "--by", "team,,month"), "--by"),
            (("cost", "--month", "2026"), "--month"),
            (("cost", "--week", "2026-11"), "--week"),
            (("cost", "--day", "2026-02-30"), "--day"),
            (("cost", "--month", "2026-11", "--day", "2026-11-01"), "one period"),
            (("cost", "--from", "now"), "--from"),
            (("nodes", "drain"), "NODE"),
            (("nodes", "paint", "1"), "NODE"),
            (("token",), "token create"),
            (("token", "create", "--ttl", "x"), "--ttl"),
            (("token", "create", "--pool", "base"), "add --join"),
            (("token", "create", "--join", "--admin"), "leave out --join"),
            (("down", "--timeout", "x"), "--timeout"),
            (("up", "--config", "/no/such/file"), "/no/such/file"),
            (("completion", "csh"), "completion"),
        ):
            with self.subTest(arguments):
                done = self.h.belay(*arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertIn(text, done.stderr)
                self.assertTrue(done.stderr.startswith("belay: "))

    def test_scripts_that_are_none_are_refused(self):
        for name, content, text in (
            ("a", "echo\n", "a:1: a job script begins with #!"),
            ("b", "", "#!"),
            ("c", "#!/bin/sh\n\0", "UTF-8 text"),
            ("d", "#!/bin/sh\n\xff", "UTF-8 text"),
            (
                "e",
                "#!/bin/sh\n#BELAY --tme 2h\n",
                'e:2: "--tme" is not known; did you mean --time?',
            ),
            ("g", "#!/bin/sh\r\necho\r\n", "g:1: the script has DOS line ends"),
            ("f", "#!/bin/sh\n#" + "x" * (1 << 20), ""),
        ):
            path = os.path.join(self.h.dir, name)
            with open(path, "w", encoding="latin-1") as f:
                f.write(content)
            done = self.h.belay("submit", path)
            self.assertEqual((done.returncode, done.stdout), (2, ""), name)
            self.assertIn(text, done.stderr)

    def test_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w") as full:
            done = self.h.belay("pools", stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn("could not be written", done.stderr)

    def test_help_and_completions(self):
        verbs = re.findall(r"^  (\w+) ", self.ok("--help"), re.M)
        for verb in verbs:
            self.assertIn("--json", self.ok(verb, "--help"))
        for shell in ("bash", "zsh", "fish"):
            text = self.ok("completion", shell)
            self.assertTrue(all(v in text for v in verbs))
            if shutil.which(shell):
                self.assertEqual(subprocess.run([shell, "-n"], input=text, text=True).returncode, 0)
        self.assertEqual(self.h.belay().returncode, 2)

    # ---- over HTTPS ----

    def test_a_server_elsewhere_needs_its_files(self):
        server = self.json("version")["belayd"]["listen"]
        token, ca = os.path.join(self.h.dir, "token"), os.path.join(self.h.home, "ca.pem")
        with self.assertRaises(KeyError):
            pwd.getpwnam("ann")
        done = self.h.belay("token", "create", "-u", "ann")
        self.assertEqual(
            (done.returncode, done.stderr),
            (
                0,
                'belay: warning: this machine has no user "ann": jobs submitted with this token run '
                "only on nodes that have one\n",
            ),
        )
        self.ok("token", "create", "-u", pwd.getpwuid(0).pw_name)
        with open(token, "w") as f:
            f.write(done.stdout)
        os.chmod(token, 0o600)
        words = os.path.join(self.h.dir, "words")
        shutil.copyfile(ca, words)
        os.chmod(words, 0o600)
        env = {"BELAY_SERVER": server + "/", "BELAY_CA_FILE": ca, "BELAY_TOKEN_FILE": token}
        for mode in (0o644, 0o640, 0o620):
            os.chmod(token, mode)
            done = self.h.belay("list", env=env)
            self.assertEqual(
                (done.returncode, done.stdout, done.stderr),
                (
                    1,
                    "",
                    "belay: BELAY_TOKEN_FILE: %s holds a secret but others may read it (mode %03o): "
                    "chmod 600 it\n" % (token, mode),
                ),
            )
        os.chmod(token, 0o600)
        told = json.loads(self.ok("version", "--json", env=env))["belayd"]
        self.assertEqual((told["user"], told["admin"]), ("ann", False))
        for change, text in (
            ({"BELAY_TOKEN_FILE": "/no/such"}, "/no/such"),
            ({"BELAY_CA_FILE": token}, ""),
            ({"BELAY_SERVER": "http://127.0.0.1"}, "https://"),
            ({"BELAY_TOKEN_FILE": words}, "words does not hold a token"),
        ):
            with self.subTest(change):
                done = self.h.belay("list", env={**env, **change})
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(text, done.stderr)
                with open(token) as f:
                    self.assertNotIn(f.read().strip(), done.stderr)
        for verb in ("up", "down"):
            self.assertEqual(self.h.belay(verb, env=env).returncode, 2)


class Nobody(unittest.TestCase):
    def test_without_a_belayd_every_verb_says_so_at_once(self):
        with Home() as h:
            script = h.script("true\n")
            for arguments in (
                ("list",),
                ("show", "1"),
                ("why", "1"),
                ("logs", "1"),
                ("logs", "-f", "1"),
                ("logs", "--json", "1"),
                ("cancel", "1"),
                ("requeue", "1"),
                ("nodes",),
                ("pools",),
                ("offers",),
                ("cron",),
                ("cost",),
                ("token", "list"),
                ("submit", script),
                ("submit", "--wait", script),
                ("run", "true"),
            ):
                with self.subTest(arguments):
                    done = h.belay(*arguments)
                    self.assertEqual((done.returncode, done.stdout), (1, ""))
                    self.assertRegex(
                        done.stderr,
                        r"\Abelay: no belayd answers at .*belayd.sock: start one with \"belay up\"",
                    )
            done = h.belay("version", "--json")
            self.assertEqual((done.returncode, json.loads(done.stdout)["belayd"]), (0, None))
            done = h.belay("list", env={"BELAY_SOCKET": os.path.join(h.dir, "elsewhere")})
            self.assertIn("elsewhere", done.stderr)

    def test_up_says_why_it_cannot(self):
        with Home() as h:
            config = os.path.join(h.dir, "bad.yaml")
            with open(config, "w") as f:
                f.write("clustr: x\n")
            done = h.belay("up", "--config", config)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(
                done.stderr,
                r"belayd did not start: it ended at once\. Its output, also in .*belayd\.log:\n"
                r"  belayd: .*bad.yaml:1: unknown key \"clustr\"",
            )
            port, other = socket.create_server(("127.0.0.1", 0)), os.path.join(h.dir, "taken.yaml")
            with contextlib.closing(port), open(other, "w") as f:
                f.write("listen: 127.0.0.1:%d\nstore: file:///dev/null/x\n" % port.getsockname()[1])
                f.flush()
                done = h.belay("up", "--config", other)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertNotIn("clustr", done.stderr)  # of the start before
            self.assertRegex(done.stderr, r"\n  .*belayd cannot start.*Address already in use\"\n")
            with open(other, "w") as f:
                json.dump({"socket": config, "store": "file:///dev/null/x"}, f)
            done = h.belay("up", "--config", other)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(
                done.stderr,
                r"(?s)\n  .*store of checkpoints cannot be used.*\n  .*belayd cannot start.*\n",
            )
            done = h.belay("up", env={"BELAY_HOME": os.path.join(h.dir, "x" * 96)})
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("bytes and may have 96: set a shorter one with socket:", done.stderr)


class DownAndUp(unittest.TestCase):
    def test_a_socket_elsewhere_is_found(self):
        with Home() as h:
            for n, name in enumerate(("one.sock", "two.sock"), 1):
                config, path = os.path.join(h.dir, "belayd.yaml"), os.path.join(h.dir, name)
                with open(config, "w") as f:
                    f.write("cluster: elsewhere\nlisten: 127.0.0.1:0\nsocket: %s\n" % path)
                for _ in range(2):
                    done = h.belay("up", "--config", config)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertTrue(
                    os.path.exists(path) and not os.path.exists(os.path.join(h.home, "belayd.sock"))
                )
                self.assertEqual(h.belay("run", "echo", "hello").stdout, "hello\n")
                self.assertEqual(len(json.loads(h.belay("list", "-a", "--json").stdout)["jobs"]), n)
                done = h.belay("down")
                self.assertEqual((done.returncode, done.stderr, h.processes()), (0, "", []))
                self.assertIn("no belayd answers at " + path, h.belay("list").stderr)
            self.assertEqual(h.belay("up").returncode, 0)  # without FILE it uses its home again
            self.assertTrue(os.path.exists(os.path.join(h.home, "belayd.sock")))

    def test_programs_are_found_where_they_are_installed(self):
        with Home() as h:  # belayd is in sbin, which is not on the PATH of Debian's users
            for place in (
                "cli/belay:bin",
                "agent/belay-agent:bin",
                "agent/belay-supervisor:bin",
                "scheduler/belayd:sbin",
            ):
                program, folder = place.split(":")
                os.makedirs(os.path.join(h.dir, folder), exist_ok=True)
                shutil.copy(os.path.join(BUILD, program), os.path.join(h.dir, folder))
            done = subprocess.run(
                [os.path.join(h.dir, "bin/belay"), "up"],
                env={**h.env, "PATH": "/usr/bin:/bin"},
                text=True,
                capture_output=True,
                timeout=WAIT_S,
            )
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(h.belay("run", "echo", "installed").stdout, "installed\n")

    def test_down_shows_what_it_waits_for(self):
        with Home() as h:
            self.assertEqual(h.belay("up").returncode, 0)
            job = h.script(
                "trap 'touch %s/asked; while [ ! -e %s/go ]; do sleep 0.05; done; exit 85' USR1\n"
                "echo working\nwhile :; do sleep 0.05; done\n" % (h.dir, h.dir)
            )
            h.belay("submit", "--checkpoint", "signal", "-J", "slow", job)
            follower = h.start("logs", "-f", "1")
            self.assertEqual(follower.stdout.readline(), "working\n")
            down = h.start("down", "--timeout", "90s")
            said = down.stderr.readline()  # after some seconds; the job saves for as long as it may
            self.assertRegex(
                said,
                r"^belay: waiting up to \d+ s for 1 job that is being saved: 1 \(slow\)\n$",
            )
            open(os.path.join(h.dir, "go"), "w").close()
            down.communicate(timeout=WAIT_S)
            self.assertEqual(down.returncode, 0)
            follower.kill()
            follower.communicate(timeout=WAIT_S)

    def test_a_job_survives_down_and_up_and_numbers_go_on(self):
        with Home() as h:
            self.assertEqual(h.belay("up").returncode, 0)
            self.assertEqual(h.belay("up").returncode, 0)  # safe to run twice
            job = h.script(
                "[ $BELAY_RESTORED = 1 ] && read -r i <$BELAY_CHECKPOINT_DIR/i\n"
                "trap 'echo $i >$BELAY_CHECKPOINT_DIR/i; echo saved; exit 85' USR1\n"
                "while [ ! -e %s/go ]; do i=$((${i:-0} + 1)); [ $i = 3 ] && echo working; sleep 0.05; done\n"
                "[ $i -gt 3 ] && echo finished\n" % h.dir
            )
            self.assertEqual(
                h.belay("submit", "--checkpoint", "signal", job).stdout, "Submitted batch job 1\n"
            )
            many = [
                h.belay("submit", "-c", "4096", job).returncode for _ in range(3)
            ]  # a queue behind it
            self.assertEqual(many, [0, 0, 0])
            follower = h.start("logs", "-f", "1")
            self.assertEqual(follower.stdout.readline(), "working\n")
            done = h.belay("down")  # a slow one says what it waits for
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(h.processes(), [follower.pid])
            self.assertEqual(h.belay("down").returncode, 0)  # also safe to run twice
            open(os.path.join(h.dir, "go"), "w").close()
            self.assertEqual(h.belay("up").returncode, 0)
            out, err = follower.communicate(timeout=WAIT_S)  # the follower has outlived belayd
            self.assertEqual((follower.returncode, err), (0, ""))
            self.assertRegex(
                out,
                r"\Asaved\n---- belay: attempt 2 on node 1, resumed from checkpoint 1\.1.* ----\nfinished\n\Z",
            )
            shown = json.loads(h.belay("show", "1", "--json").stdout)
            self.assertEqual((shown["job"]["end"], shown["job"]["attempts"]), ("succeeded", 2))
            self.assertEqual([a["end"] for a in shown["attempts"]], ["drained", "succeeded"])
            self.assertEqual(h.belay("submit", job).stdout, "Submitted batch job 5\n")
            nodes = json.loads(h.belay("nodes", "--json").stdout)["nodes"]
            self.assertEqual([(n["id"], n["state"]) for n in nodes], [(1, "up")])

    def test_a_job_survives_kills_of_belayd_and_of_the_agent(self):
        with Home() as h:
            self.assertEqual(h.belay("up").returncode, 0)
            waiter = h.start(
                "submit",
                "--wait",
                h.script("while [ ! -e %s/go ]; do sleep 0.05; done\nexit 9\n" % h.dir),
            )
            self.assertEqual(waiter.stdout.readline(), "Submitted batch job 1\n")
            wait_event(h.client(), 1, "started")
            inside = h.start("exec", "1", "--", "sh", "-c", "echo here $$; exec sleep 1000")
            pid = int(inside.stdout.readline().split()[1])
            for file in ("belayd.json", "agent.pid"):
                h.kill(file)
                self.assertEqual(h.belay("up").returncode, 0)
            self.assertIn("belayd went away", inside.communicate(timeout=WAIT_S)[1])
            self.assertEqual(inside.returncode, 1)
            wait_until(lambda: is_gone(pid), "what nobody wants any more ends")
            open(os.path.join(h.dir, "go"), "w").close()
            err = waiter.communicate(timeout=WAIT_S)[1]
            self.assertEqual((waiter.returncode, err), (9, ""))
            self.assertEqual(
                json.loads(h.belay("show", "1", "--json").stdout)["job"]["attempts"], 1
            )

    def test_a_time_limit_survives_kills_of_belayd_and_of_the_agent(self):
        with Home() as h:
            self.assertEqual(h.belay("up").returncode, 0)
            job = h.start(
                "submit", "--wait", "--time", "1h", h.script("echo working\nexec sleep 1000\n")
            )
            self.assertEqual(job.stdout.readline(), "Submitted batch job 1\n")
            follower = h.start("logs", "-f", "1")
            self.assertEqual(follower.stdout.readline(), "working\n")
            h.kill("agent.pid")
            self.assertEqual(
                h.belay("update", "1", "time=0:00:02").stdout, "job 1 is changed\n"
            )  # no session to report to
            h.kill("belayd.json")
            self.assertEqual(h.belay("up").returncode, 0)
            err = job.communicate(timeout=WAIT_S)[1]
            self.assertIn("timeout", err)
            self.assertIn("longer than its time limit", err)
            follower.communicate(timeout=WAIT_S)

    def test_a_job_that_somebody_is_in_ends_with_belayd_and_says_so(self):
        with Home() as h:
            self.assertEqual(h.belay("up").returncode, 0)
            p = h.start("run", "--interactive", "sh", "-c", "echo here; exec sleep 1000")
            self.assertEqual(p.stdout.readline(), "here\n")
            h.kill("belayd.json")
            self.assertEqual(h.belay("up").returncode, 0)
            err = p.communicate(timeout=WAIT_S)[1]
            self.assertIn("the session ended because belayd went away", err)
            self.assertEqual(p.returncode, 128 + signal.SIGHUP, err)
            shown = json.loads(h.belay("show", "1", "--json").stdout)["job"]
            self.assertEqual(
                (shown["end"], shown["exit_code"], shown["attempts"]),
                ("failed", 128 + signal.SIGHUP, 1),
            )

    def test_down_does_not_leave_a_running_job_behind_in_silence(self):
        with Home() as h:
            self.assertEqual(h.belay("up").returncode, 0)
            job = h.script("echo working\nexec sleep 1000\n")
            self.assertEqual(h.belay("submit", job).stdout, "Submitted batch job 1\n")
            follower = h.start("logs", "-f", "1")
            self.assertEqual(follower.stdout.readline(), "working\n")
            follower.kill()
            follower.communicate()
            h.kill("belayd.json")
            done = h.belay("down")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("run belay up, then belay down", done.stderr)
            self.assertEqual(h.belay("up").returncode, 0)
            self.assertEqual(h.belay("down").returncode, 0)
            self.assertEqual(h.processes(), [])

    def test_the_configuration_that_up_writes_names_the_state(self):
        with Home() as h:
            self.assertEqual(h.belay("up", "--no-agent").returncode, 0)
            with open(os.path.join(h.home, "ca.pem")) as f:
                authority = f.read()
            h.kill("belayd.json")
            by_hand = subprocess.Popen(
                [BUILD + "/scheduler/belayd", "--config", os.path.join(h.home, "belayd.yaml")],
                env=h.env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            self.addCleanup(by_hand.kill)
            said = ""
            while "belayd is ready" not in said:
                line = by_hand.stderr.readline()
                self.assertTrue(line, said)
                said += line
            self.assertEqual(h.pid("belayd.json"), by_hand.pid, said)
            self.assertEqual(h.belay("down").returncode, 0)
            by_hand.communicate(timeout=WAIT_S)
            with open(os.path.join(h.home, "ca.pem")) as f:
                self.assertEqual(f.read(), authority)

    def test_a_requeue_whose_save_fails_costs_nothing(self):
        with Home() as h:
            self.assertEqual(h.belay("up").returncode, 0)
            job = h.script(
                "trap 'echo x >$BELAY_CHECKPOINT_DIR/x; : >$BELAY_CHECKPOINT_DIR/.done' USR1\n"
                "echo attempt $BELAY_ATTEMPT\nwhile [ ! -e %s/go ]; do sleep 0.05; done\n" % h.dir
            )
            self.assertEqual(
                h.belay("submit", "--checkpoint", "signal", job).stdout, "Submitted batch job 1\n"
            )
            follower = h.start("logs", "-f", "1")
            self.assertEqual(follower.stdout.readline(), "attempt 1\n")
            pipe = os.path.join(h.home, "agent", "tasks", "1-1", "checkpoint", "pipe")
            os.mkfifo(pipe)  # saves do not support FIFOs
            show = lambda: json.loads(h.belay("show", "1", "--json").stdout)
            done = h.belay("requeue", "1")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("If the save fails it keeps running", done.stdout)
            wait_event(h.client(), 1, "requeue-dropped")
            self.assertEqual(
                (
                    show()["job"]["state"],
                    show()["job"]["attempts"],
                    show()["job"]["requeue_asked_at"],
                ),
                ("running", 1, None),
            )
            done = h.belay("requeue", "1")  # repeated: reported again
            wait_event(h.client(), 1, "requeue-dropped", times=2)
            os.unlink(pipe)
            self.assertEqual(h.belay("requeue", "1").returncode, 0)
            self.assertIn("attempt 2", follower.stdout.readline() + follower.stdout.readline())
            self.assertEqual(show()["attempts"][0]["end"], "cancelled")
            self.assertEqual(show()["job"]["last_checkpoint"]["attempt"], 1)
            open(os.path.join(h.dir, "go"), "w").close()
            follower.communicate(timeout=WAIT_S)

    def test_a_fifo_without_a_program_at_its_other_end_ends_the_job(self):
        """The limit of half a minute applies to all of them together. A program that opens its end
        meanwhile is found.
        """
        with Home() as h:
            self.assertEqual(h.belay("up", "--cpus", "4").returncode, 0)
            for name in ("1.out", "2.in", "3.err", "4.in"):
                os.mkfifo(os.path.join(h.dir, name))
            for option, value in (("-o", "1.out"), ("-i", "2.in"), ("-e", "3.err"), ("-i", "4.in")):
                done = h.belay("submit", option, value, "--wrap", "cat")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
            follower = h.start("logs", "-f", "4")
            subprocess.run(["sh", "-c", "echo late >4.in"], cwd=h.dir, timeout=WAIT_S, check=True)
            self.assertEqual(follower.communicate(timeout=WAIT_S)[0], "late\n")
            why = "its %s could not be opened in 30 s: if it is a FIFO, no program %s"
            for job, words in (
                ("1", why % ("output 1.out", "reads it")),
                ("2", why % ("input 2.in", "writes to it")),
                ("3", why % ("output 3.err", "reads it")),
                ("4", ""),
            ):
                wait_event(h.client(), job, "ended")
                shown = json.loads(h.belay("show", job, "--json").stdout)
                self.assertEqual(shown["job"]["exit_code"], 126 if words else 0, shown["attempts"])
                self.assertIn(words, shown["attempts"][0]["text"] or "")

    def test_show_reports_a_failed_save_and_the_last_events(self):
        with Home() as h:
            self.assertEqual(h.belay("up").returncode, 0)
            job = h.script(
                "trap 'echo x >$BELAY_CHECKPOINT_DIR/x; : >$BELAY_CHECKPOINT_DIR/.done' USR1\n"
                "echo attempt $BELAY_ATTEMPT\nwhile [ ! -e %s/go ]; do sleep 0.05; done\n" % h.dir
            )
            done = h.belay("submit", "-J", "train", "--checkpoint", "signal", job)
            self.assertEqual(done.stdout, "Submitted batch job 1\n")
            follower = h.start("logs", "-f", "1")
            self.assertEqual(follower.stdout.readline(), "attempt 1\n")
            store, away = (os.path.join(h.home, name) for name in ("store", "away"))
            risk = r"\n              \S+ of work would be lost if it were stopped now\n"
            failed = lambda: json.loads(h.belay("show", "1", "--json").stdout)["failed_save"]
            shown = h.belay("show", "1").stdout
            self.assertRegex(
                shown,
                r"\n\nWHEN +ATTEMPT EVENT +WHAT\n20[-0-9]{8} [0-9:]{8} +- submitted +'train' submitted by ",
            )
            self.assertRegex(
                shown, r"(?m)^20[-0-9]{8} [0-9:]{8} +1 started +started from the beginning$"
            )
            self.assertNotIn("save failed", shown)
            self.assertIsNone(failed())

            os.rename(store, away)
            done = h.belay("requeue", "1")
            self.assertIn(
                "If the save fails it keeps running: belay show 1 has the reason", done.stdout
            )
            wait_event(h.client(), 1, "requeue-dropped")
            shown = h.belay("show", "1").stdout
            self.assertRegex(
                shown,
                r"\nsave failed   no save since it started at [0-9:]{5}: .*%s.*%s"
                % (re.escape(store), risk),
            )
            self.assertRegex(shown, r"(?m) 1 save failed +.*%s" % re.escape(store))
            self.assertRegex(shown, r"(?m) 1 requeue dropped +the requeue was dropped")
            self.assertIn("\n(all events: belay show --events 1)\n", shown)
            self.assertNotIn("'train' submitted by", shown)
            self.assertEqual((failed()["kind"], failed()["attempt"]), ("save-failed", 1))

            events = h.belay("show", "--events", "1").stdout.splitlines()
            self.assertEqual(
                [line[28:48].strip() for line in events],
                "EVENT,submitted,placed,started,requeue requested,save failed,requeue dropped".split(
                    ","
                ),
            )
            done = json.loads(h.belay("show", "--events", "--json", "1").stdout)
            self.assertEqual(
                [e["kind"] for e in done["events"]],
                "submitted placed started requeue save-failed requeue-dropped".split(),
            )

            os.rename(away, store)
            self.assertEqual(h.belay("checkpoint", "save", "1").returncode, 0)
            wait_event(h.client(), 1, "saved")
            self.assertNotIn("no save since", h.belay("show", "1").stdout)
            self.assertIsNone(failed())
            os.rename(store, away)
            self.assertEqual(h.belay("checkpoint", "save", "1").returncode, 0)
            wait_event(h.client(), 1, "save-failed", times=2)
            self.assertRegex(
                h.belay("show", "1").stdout,
                r"\nsave failed   no save since [0-9:]{5}: .*%s.*%s" % (re.escape(store), risk),
            )
            os.rename(away, store)
            open(os.path.join(h.dir, "go"), "w").close()
            follower.communicate(timeout=WAIT_S)
            self.assertNotIn("no save since", h.belay("show", "1").stdout)

    def test_down_that_does_not_stop_undrains(self):
        with Home() as h:
            self.assertEqual(h.belay("up").returncode, 0)
            job = h.script(
                "trap '' USR1 TERM\necho working\nwhile [ ! -e %s/go ]; do sleep 0.05; done\n"
                % h.dir
            )
            self.assertEqual(
                h.belay("submit", "--checkpoint", "signal", job).stdout, "Submitted batch job 1\n"
            )
            follower = h.start("logs", "-f", "1")
            self.assertEqual(follower.stdout.readline(), "working\n")
            state = lambda: json.loads(h.belay("nodes", "--json").stdout)["nodes"][0]["state"]
            done = h.belay("down", "--timeout", "1s")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("still being saved after 1 s; nothing was stopped", done.stderr)
            self.assertIn("The node takes jobs again (undrained)", done.stderr)
            self.assertEqual(state(), "up")
            down = h.start("down")  # interrupted
            wait_until(lambda: state() == "draining", "down drains the node")
            down.send_signal(signal.SIGINT)
            err = down.communicate(timeout=WAIT_S)[1]
            self.assertEqual(down.returncode, 1)
            self.assertRegex(err, r"interrupted while 1 job is being saved.*\(undrained\)")
            self.assertEqual(state(), "up")
            self.assertEqual(
                h.belay("nodes", "drain", "1").returncode, 0
            )  # an operator's drain stays
            self.assertNotIn("undrained", h.belay("down", "--timeout", "1s").stderr)
            self.assertEqual(state(), "draining")
            open(os.path.join(h.dir, "go"), "w").close()
            follower.communicate(timeout=WAIT_S)

    def test_down_that_is_interrupted_when_nothing_runs_undrains(self):
        with Home() as h:
            self.assertEqual(h.belay("up").returncode, 0)
            belayd = h.pid("belayd.json")
            os.kill(belayd, signal.SIGSTOP)  # down waits for this answer only
            try:
                down = h.start("down")
                wait_until(
                    lambda: signal.SIGINT in blocked_signals(down.pid), "down looks for interrupts"
                )
                down.send_signal(signal.SIGINT)
            finally:
                os.kill(belayd, signal.SIGCONT)
            err = down.communicate(timeout=WAIT_S)[1]
            self.assertEqual(down.returncode, 1, err)
            self.assertRegex(err, r"interrupted; nothing was stopped\. .*\(undrained\)")
            self.assertEqual(
                [n["state"] for n in json.loads(h.belay("nodes", "--json").stdout)["nodes"]], ["up"]
            )

    def test_a_lost_database_is_begun_anew_once_the_store_is_given_up(self):
        with Home() as h:
            self.assertEqual(h.belay("up").returncode, 0)
            self.assertEqual(h.belay("down").returncode, 0)
            for name in os.listdir(h.home):
                if name.startswith("belay.db"):
                    os.unlink(os.path.join(h.home, name))
            done = h.belay("up")
            self.assertEqual(done.returncode, 1)
            self.assertIn("belay checkpoint adopt", done.stderr)
            done = h.belay("checkpoint", "adopt", "--yes")
            self.assertEqual(done.returncode, 0, done.stderr)
            done = h.belay("up")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(h.belay("run", "echo", "again").stdout, "again\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
