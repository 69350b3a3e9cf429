# SPDX-License-Identifier: Apache-2.0
"""Typical Slurm scripts, in tests/e2e/slurm/, run unmodified by the programs with Slurm's names, in
one belayd."""

import fcntl
import getpass
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import test_local  # noqa: E402  (Home: a belayd of its own)
from test_local import belay  # noqa: E402

BUILD, WAIT_S = test_local.BUILD, test_local.WAIT_S
SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "slurm")
PROGRAMS = (
    "sbatch",
    "squeue",
    "scancel",
    "sinfo",
    "sacct",
    "scontrol",
    "srun",
    "salloc",
    "sstat",
    "sshare",
    "seff",
)
HOST = socket.gethostname().split(".")[0]
USER = getpass.getuser()

# bash reports a killed sleep, srun a step that waits
TOLD_SOMETIMES = re.compile(
    r"^Terminated\n|^srun: Job \d+ step creation temporarily disabled.*\n", re.M
)

# script: arguments, exit code, resulting files ({id} = the job's number)
EXPECTED = {
    "asked.sh": (
        (),
        0,
        {"asked-{id}-{id}.out": "2 2 100 vision urgent\n" + socket.gethostname() + " BATCH\n"},
    ),
    "minimal.sh": ((), 0, {"slurm-{id}.out": socket.gethostname() + "\ndone\n"}),
    "outputs.sh": (
        (),
        0,
        {"logs/outputs-{id}.out": "to the output\n", "logs/outputs-{id}.err": "to the errors\n"},
    ),
    "one_log.sh": ((), 0, {USER + "_onelog.NODE.{id:05}.log": "first\nsecond\n"}),
    "no_array.sh": ((), 0, {"{id}_4294967294.0.txt": "array none\n"}),
    "heredoc.sh": (
        (),
        0,
        {"slurm-{id}.out": "[run]\njob = {id}\ncores = 1\nliteral = $SLURM_JOB_ID\n"},
    ),
    "heredoc_python.sh": ((), 0, {"slurm-{id}.out": "threads 2 of job True\n"}),
    "python.py": (("--lr", "0.1"), 0, {"py-{id}.out": "py 256 --lr 0.1\n"}),
    "arguments.sh": (("a", "b  c", "", "$x"), 0, {"arguments.out": "<a>\n<b  c>\n<>\n<$x>\n"}),
    "modules.sh": ((), 0, {"slurm-{id}.out": "no modules here\nmemory 100\n"}),
    "srun_steps.sh": ((), 0, {"steps.out": "step 1\nstep 2\nstep 3\nstep 4\n"}),
    "srun_files.sh": ((), 0, {"srun_files.out": "out 0\nout 1\nerr 0\nerr 1\n"}),
    "srun_stdin.sh": ((), 0, {"srun_stdin.out": "one\ntwo\n3\n"}),
    "srun_programs.sh": (
        (),
        0,
        {
            "srun_programs.out": "0: offset:0 more\n1: task:1 more\n2: offset:1 more\n3: step 0, 100 %t\n"
            "srun: error: silly.conf: there is no program for task 3\ncode 1\ncode 1\ncode 3\n"
        },
    ),
    "srun_hooks.sh": (
        (),
        0,
        {
            "srun_hooks.out": "0: before 0\n0: rank 0\n1: before 1\n1: rank 1\nafter 0 here\nafter 1 here\nbefore 0\nbefore 1\ncode 5\n"
            "its epilog was killed\nsrun: error: --task-prolog needs the absolute path of a program\ncode 1\n"
        },
    ),
    "set_e.sh": ((), 1, {"set_e.out": "before\n"}),
    "exit_code.sh": ((), 3, {"exit_code.out": "", "exit_code.err": ""}),
    "segfault.sh": ((), 139, {}),
    "time_limit.sh": ((), None, {"time_limit.out": "started\nasked to end\n"}),
    "trap.sh": ((), 0, {"trap.out": "data\ncleaned\n"}),
    "submit_dir.sh": ((), 0, {"sub/where-{id}.out": "DIR/sub\nDIR/sub\n"}),
    "export_none.sh": ((), 0, {"export_none.out": "variable: not set\n"}),
    "export_all.sh": ((), 0, {"export_all.out": "variable: here, more\n"}),
    "directives.sh": ((), 0, {"directives.out": "odd\n"}),
    "nodelist.sh": (
        (),
        0,
        {
            "nodelist.out": "1 node, the first is NODE, this is NODE\nJobState=RUNNING\nnodelist.sh RUNNING 1 1\n"
        },
    ),
    "xargs.sh": ((), 0, {"xargs.out": "10\n"}),
    "input.sh": ((), 0, {"input.out": "sum 6\n"}),
}


class Slurm(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.h = test_local.Home().__enter__()
        cls.bin = os.path.join(cls.h.dir, "bin")
        cls.dir = os.path.join(cls.h.dir, "work")
        shutil.copytree(SCRIPTS, cls.dir)
        for name in ("bin", "work/logs", "work/sub"):
            os.makedirs(os.path.join(cls.h.dir, name), exist_ok=True)
        with open(
            os.path.join(cls.dir, "says.sh"), "w", opener=lambda p, f: os.open(p, f, 0o700)
        ) as f:
            f.write("#!/bin/sh\necho export SAID=this\n")
        for name in PROGRAMS + ("belay",):
            os.symlink(BUILD + "/cli/belay", os.path.join(cls.bin, name))
        with open(os.path.join(cls.dir, "numbers.txt"), "w") as f:
            f.write("1\n2\n3\n")
        cls.h.env = {k: v for k, v in cls.h.env.items() if not k.startswith(("SLURM", "SBATCH"))}
        cls.h.env.update(
            PATH=cls.bin + ":" + os.environ["PATH"],
            MY_VARIABLE="here",
            MY_API_KEY="s3cret",
            USER=USER,
        )
        done = cls.h.belay("up")
        if done.returncode != 0:
            cls.h.__exit__(AssertionError, AssertionError(), None)
            raise AssertionError(done.stderr)
        cls.node = json.loads(cls.h.belay("nodes", "--json").stdout)["nodes"][0]["name"]

    @classmethod
    def tearDownClass(cls):
        cls.h.__exit__(None, None, None)

    def start(self, *words, **more):
        return subprocess.Popen(
            words,
            cwd=self.dir,
            env=self.h.env,
            text=True,
            executable=shutil.which(words[0], path=self.h.env["PATH"]),
            **{
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                **more,
            },
        )

    def run_program(self, *words, text=None):
        p = self.start(*words, **({"stdin": subprocess.PIPE} if text is not None else {}))
        out, err = p.communicate(text, timeout=WAIT_S)
        return subprocess.CompletedProcess(words, p.returncode, out, err)

    def ok(self, *words, **more):
        done = self.run_program(*words, **more)
        self.assertEqual(done.returncode, 0, (words, done.stderr))
        return done.stdout

    def read(self, name):
        with open(os.path.join(self.dir, name)) as f:
            return f.read()

    def fill(self, text, job):
        return (
            re.sub(r"\{id(:05)?\}", lambda m: ("%05d" if m.group(1) else "%d") % job, text)
            .replace("NODE", self.node.split(".")[0])
            .replace("DIR", os.path.realpath(self.dir))
        )

    # ---- scripts ----

    def test_scripts_run_as_they_are(self):
        running = {
            name: self.start("sbatch", "--wait", name, *arguments)
            for name, (arguments, _, _) in EXPECTED.items()
        }
        for name, p in running.items():
            with self.subTest(name):
                out, err = p.communicate(timeout=WAIT_S)
                job = int(re.fullmatch(r"Submitted batch job (\d+)\n", out).group(1))
                _, code, files = EXPECTED[name]
                if code is not None:
                    self.assertEqual(p.returncode, code, err)
                for file, text in files.items():
                    self.assertEqual(
                        re.sub(TOLD_SOMETIMES, "", self.read(self.fill(file, job))),
                        self.fill(text, job),
                        file,
                    )
                self.assertNotIn("s3cret", err)

    def test_the_states_of_what_went_wrong_are_slurms(self):
        jobs = {}
        for name in ("exit_code.sh", "segfault.sh", "time_limit.sh", "srun_fails.sh"):
            jobs[name] = self.start("sbatch", "--parsable", "--wait", name)
        jobs = {name: p.communicate(timeout=WAIT_S)[0].strip() for name, p in jobs.items()}
        lines = self.ok(
            "sacct", "-n", "-P", "-X", "-o", "jobid,state,exitcode", "-j", " , ".join(jobs.values())
        )
        self.assertEqual(
            dict(line.split("|", 1) for line in lines.splitlines()),
            {
                jobs["exit_code.sh"]: "FAILED|3:0",
                jobs["segfault.sh"]: "FAILED|0:11",
                jobs["time_limit.sh"]: "TIMEOUT|0:0",
                jobs["srun_fails.sh"]: "FAILED|7:0",
            },
        )
        self.assertRegex(
            self.read("srun_fails.out"),
            r"(?s)task 0: Exited with exit code 7\nthe step ended with 7\n"
            r".*no-such-program: No such file.*and the next with 2\n",
        )

    def test_who_used_all_memory_is_out_of_memory_also_below_a_shell(self):
        for words in (
            "exec python3 -c 'bytearray(200 << 20)'",
            "python3 -c 'bytearray(200 << 20)'; exit $?",
        ):
            done = self.run_program("sbatch", "--parsable", "--wait", "--mem=20MB", "--wrap", words)
            if done.returncode == 0:
                self.skipTest("nothing limits a job's memory here")
            self.assertEqual(
                self.ok("sacct", "-nXPo", "state", "-j", done.stdout.strip()),
                "OUT_OF_MEMORY\n",
                words,
            )

    def test_tasks_of_a_step_know_their_ranks(self):
        self.ok("sbatch", "--wait", "srun_tasks.sh")
        lines = self.read("tasks.out").splitlines()
        self.assertEqual(lines[0], "2 tasks on 1 node, 2 a node")
        self.assertEqual(
            sorted(lines[1:3]), ["%d: rank %d of 2, local %d" % (i, i, i) for i in (0, 1)]
        )
        self.assertEqual(lines[3:], [socket.gethostname()])

    def test_a_file_that_is_appended_to_grows(self):
        for run in ("one", "two"):
            self.ok("sbatch", "--wait", "append.sh", run)
        self.assertEqual(self.read("journal.txt"), "run one\nrun two\n")

    def test_a_job_may_submit_the_next(self):
        self.ok("sbatch", "resubmit.sh")
        while self.ok("squeue", "-h", "-n", "resubmit"):  # each submits the next before it ends
            pass
        self.assertEqual(self.read("rounds.txt"), "round 1\nround 2\nround 3\n")

    def test_a_running_job_is_cancelled(self):
        p = self.start("sbatch", "--wait", "cancelled.sh")
        job = re.search(r"\d+", p.stdout.readline()).group()
        follower = self.h.start("logs", "-f", job)
        while self.ok("squeue", "-h", "-j", job, "-o", "%t").strip() != "R" or not os.path.exists(
            self.dir + "/cancelled.started"
        ):
            pass
        self.ok("scancel", "--name", "to-be-cancelled", "-u", USER)
        p.communicate(timeout=WAIT_S)
        self.assertNotEqual(p.returncode, 0)
        self.assertTrue(follower.communicate(timeout=WAIT_S)[0].endswith("got SIGTERM\n"))
        self.assertTrue(self.read("cancelled.out").endswith("got SIGTERM\n"))
        self.assertEqual(self.ok("sacct", "-nPo", "state", "-j", job), "CANCELLED\n")
        self.assertEqual(
            self.run_program("scancel", job).returncode, 0
        )  # it has ended, as intended

    def test_a_job_that_asks_for_what_is_not_there_waits(self):
        done = self.run_program("sbatch", "--parsable", "gres.sh")
        job = done.stdout.strip()
        self.assertRegex(job, r"^\d+$")
        self.assertIn("sbatch: warning: job %s waits until this changes" % job, done.stderr)
        self.assertEqual(
            self.ok("squeue", "-h", "-j", job, "-o", "%i|%t|%b|%P"), job + "|PD|gres:gpu:1|local\n"
        )
        self.assertEqual(
            self.ok("squeue", "-h", "-t", "PD", "-n", "gres.sh", "-o", "%A"), job + "\n"
        )
        self.ok("scancel", job)

    def test_arrays(self):
        job = re.search(r"\d+", self.ok("sbatch", "--wait", "array.sh")).group()
        for i in range(6):
            self.assertEqual(
                self.read("array-%s_%d.out" % (job, i)), "task %d of 6 (0 to 5) of %s\n" % (i, job)
            )
        self.assertEqual(
            self.ok("sacct", "-nXPo", "jobid,state", "-j", job).splitlines(),
            ["%s_%d|COMPLETED" % (job, i) for i in range(6)],
        )
        done = self.run_program("sbatch", "--wait", "array_fails.sh")
        job = re.search(r"\d+", done.stdout).group()
        self.assertEqual(done.returncode, 9)
        self.assertEqual(
            self.ok("sacct", "-nXPo", "jobid,state,exitcode", "-j", job + "_2"),
            job + "_2|FAILED|9:0\n",
        )
        job = re.search(r"\d+", self.ok("sbatch", "--wait", "array_lines.sh")).group()
        self.assertEqual(
            [self.read("slurm-%s_%d.out" % (job, i)) for i in (1, 3)],
            ["line 1 is 1\n", "line 3 is 3\n"],
        )
        job = self.ok("sbatch", "--parsable", "-H", "array_waits.sh").strip()
        self.assertEqual(
            self.ok("squeue", "-h", "-j", job, "-o", "%i %F %K %t"),
            "%s_[1-10%%1] %s 1-10%%1 PD\n" % (job, job),
        )
        self.ok("scancel", job + "_[2-4,6]," + job + "_9")
        self.assertEqual(self.ok("squeue", "-h", "-j", job, "-o", "%i"), job + "_[1,5,7-8,10%1]\n")
        self.assertEqual(
            self.ok("squeue", "-hr", "-j", job, "-o", "%i %F %K %t %r"),
            "".join("%s_%d %s %d PD JobHeldUser\n" % (job, i, job, i) for i in (1, 5, 7, 8, 10)),
        )
        self.assertIn(
            "ArrayJobId=%s ArrayTaskId=1,5,7-8,10 ArrayTaskThrottle=1 JobName=waits" % job,
            self.ok("scontrol", "show", "job", job + "_5"),
        )
        self.ok("scancel", "--clusters=all", job)
        self.assertEqual(self.ok("squeue", "-h", "-n", "waits"), "")

    def test_an_array_of_which_all_has_begun_is_its_tasks(self):
        job = self.ok(
            "sbatch",
            "--parsable",
            "-J",
            "begun",
            "-a",
            "1-2",
            "--wrap",
            "until [ -e begun.go ]; do sleep 0.1; done",
        ).strip()
        tasks = ["%s_%d" % (job, i) for i in (1, 2)]
        while self.ok("squeue", "-h", "-n", "begun", "-t", "R", "-o", "%i").split() != tasks:
            pass
        self.assertEqual(self.ok("squeue", "-h", "-n", "begun", "-o", "%i").split(), tasks)
        self.assertIn(
            "ArrayJobId=%s ArrayTaskId=2 JobName=begun" % job,
            self.ok("scontrol", "show", "job", tasks[1]),
        )
        open(os.path.join(self.dir, "begun.go"), "w").close()
        while self.ok("squeue", "-h", "-n", "begun"):
            pass
        # as tools ask: the commands of snakemake and submitit
        listed = self.ok(
            "sacct",
            "-X",
            "--parsable2",
            "--clusters",
            "all",
            "--noheader",
            "--format=JobIdRaw,JobId,State",
            "--name",
            "begun",
            "--starttime",
            "today",
            "--endtime",
            "now",
        )
        self.assertEqual(
            [x.split("|")[1:] for x in listed.splitlines()], [[t, "COMPLETED"] for t in tasks]
        )
        self.assertEqual(
            self.ok(
                "squeue", "--noheader", "-o", "%i %t", "-t", "all", "-n", "begun", "-M", "all"
            ).split(),
            [x for t in tasks for x in (t, "CD")],
        )
        self.assertEqual(
            self.ok(
                "sacct", "-n", "-o", "JobID,State", "--parsable2", "-j", tasks[0], "-j", tasks[1]
            ).splitlines(),
            [t + "|COMPLETED" for t in tasks],
        )
        done = self.run_program("sacct", "--clusters", "other")
        self.assertEqual(
            (done.returncode, done.stderr), (1, "sacct: error: other is not supported\n")
        )

    def test_jobs_wait_for_each_other(self):
        done = self.run_program("bash", "launcher.sh")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            done.stdout.splitlines(),
            [
                "PD JobHeldUser",
                "COMPLETED",
                "COMPLETED",
                "FAILED",
                "COMPLETED",
                "CANCELLED",
                "COMPLETED",
            ],
        )
        self.assertEqual(self.read("dep.out"), "first\nsecond\nrescue\nheld\nlast\n")

    # ---- programs ----

    def test_a_script_comes_from_standard_input_or_the_command_line(self):
        done = self.run_program(
            "sbatch", "-W", "-J", "piped", "-o", "piped.out", text="#!/bin/sh\necho from a pipe\n"
        )
        self.assertRegex(done.stdout, r"^Submitted batch job \d+\n$")
        self.assertEqual(self.read("piped.out"), "from a pipe\n")
        self.ok("sbatch", "--wait", "--quiet", "-o", "wrapped.out", "--wrap", "echo a | tr a b")
        self.assertEqual(self.read("wrapped.out"), "b\n")
        self.ok(
            "sbatch",
            "--wait",
            "--exclusive",
            "-o",
            "alone.out",
            "--wrap",
            "echo $SLURM_CPUS_ON_NODE",
        )
        self.assertEqual(self.read("alone.out"), self.ok("sinfo", "-h", "-o", "%c"))

    def test_what_is_not_there_is_refused_by_name(self):
        for flag in ("--reservation=x", "-M=other"):
            done = self.run_program("sbatch", flag, "minimal.sh")
            self.assertEqual((done.returncode, done.stdout), (1, ""), flag)
            self.assertIn(
                "is not supported: leave it out if the job is right without it", done.stderr
            )
        job = self.ok("sbatch", "--parsable", "-H", "--nice", "minimal.sh").strip()
        self.assertEqual(self.ok("squeue", "-h", "-j", job, "-O", "nice"), "100".ljust(20) + "\n")
        self.ok("scancel", job)
        done = self.run_program("sbatch", "--no-such-flag", "minimal.sh")
        self.assertEqual(done.returncode, 1)
        self.assertIn("unrecognized option '--no-such-flag'", done.stderr)
        self.assertEqual(self.run_program("sbatch", "no-such-script").returncode, 1)
        for words, text in (
            (("squeue", "-o", "%Y"), "Invalid job format"),
            (("squeue", "-t", "gone"), "Invalid job state"),
            (("squeue", "-j", "999999"), "Invalid job id specified"),
            (("scancel", "x"), "Invalid job id specified"),
            (("scancel",), "No job identification provided"),
            (("sacct", "-o", "nonsense"), "Invalid field requested"),
            (("sacct", "-S", "soon"), "Invalid time"),
            (("scontrol", "show", "job", "999999"), "Invalid job id"),
            (("scontrol", "suspend", "1"), "not supported"),
            (("scontrol", "show", "node", "x"), "Node x not found"),
            (("srun",), "No command given"),
            (("seff",), "expected one job"),
            (("seff", "999999"), "Job not found"),
            (("sstat",), "expected jobs"),
            (("sstat", "-j", "999999"), "no running job"),
            (("sstat", "-o", "nonsense", "-j", "1"), "Invalid field requested"),
            (("sshare", "-M", "other"), "other is not supported"),
            (("sshare", "word"), "unexpected word: word"),
        ):
            done = self.run_program(*words)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn(text, done.stderr)
        self.assertEqual(self.ok("sacct", "-n", "-j", "999999"), "")

    def test_use_and_shares_are_shown(self):
        job = self.ok("sbatch", "--parsable", "-c", "1", "--wrap", "exec sleep 1000").strip()
        while "RUNNING" not in self.ok("squeue", "-h", "-j", job, "-o", "%T"):
            pass
        self.assertEqual(
            self.ok("sstat", "-nPj", job + ".batch", "-o", "jobid,ntasks"), job + "|1\n"
        )
        self.assertRegex(self.ok("sstat", "-j", job), r"(?s)^JobID +MaxRSS .*-----.*\n%s " % job)
        self.assertRegex(self.ok("seff", job), "State: RUNNING.*(?s:.*)WARNING: Efficiency")
        user = self.ok("squeue", "-h", "-j", job, "-o", "%u").strip()
        lines = [x.split("|") for x in self.ok("sshare", "-anP").splitlines()]
        self.assertIn(user, [x[1] for x in lines])
        self.assertEqual(lines[0][1], "")  # the team comes first
        self.assertEqual([len(x) for x in lines], [7] * len(lines))
        self.assertEqual(self.ok("sshare", "-nPU", "-u", "nobody-here"), "")
        self.ok("scancel", job)
        while self.ok("squeue", "-h", "-j", job):
            pass
        shown = self.ok("seff", job)
        self.assertRegex(
            shown, r"\AJob ID: %s\nCluster: belay\nUser: %s\nState: CANCELLED" % (job, user)
        )
        done = self.run_program("sstat", "-j", job)
        self.assertEqual((done.returncode, done.stderr.count("no running job")), (1, 1))

    def test_a_variable_counts_more_than_the_script_and_less_than_a_flag(self):
        self.h.env["SBATCH_JOB_NAME"] = "variable"
        try:
            self.ok("sbatch", "--wait", "-o", "%x.out", "directives.sh")
            self.ok("sbatch", "--wait", "-o", "%x.out", "-J", "flag", "directives.sh")
        finally:
            del self.h.env["SBATCH_JOB_NAME"]
        self.assertEqual(
            (self.read("variable.out"), self.read("flag.out")), ("variable\n", "flag\n")
        )

    def with_variables(self, env, *words):
        before = dict(self.h.env)
        self.h.env.update(env)
        try:
            return self.run_program(*words)
        finally:
            self.h.env.clear()
            self.h.env.update(before)

    def test_variables_stand_for_flags_or_are_refused_by_name(self):
        job = self.ok("sbatch", "--parsable", "-H", "-J", "variables", "directives.sh").strip()
        for env, words, told in (
            (
                {"SQUEUE_NAMES": "variables", "SQUEUE_FORMAT2": "jobid:|"},
                ("squeue", "-h"),
                job + "|\n",
            ),
            ({"SQUEUE_NAMES": "nobody"}, ("squeue", "-h", "-o", "%i"), ""),
            (
                {"SQUEUE_NAMES": "nobody"},
                ("squeue", "-h", "-o", "%i", "-n", "variables"),
                job + "\n",
            ),
            (
                {"SBATCH_WAIT": "0", "SALLOC_ACCOUNT": "of another program"},
                ("sbatch", "--test-only", "directives.sh"),
                "",
            ),
        ):
            done = self.with_variables(env, *words)
            self.assertEqual((done.returncode, done.stdout), (0, told), (env, done.stderr))
        for env, words in (
            ({"SBATCH_RESERVATION": "r"}, ("sbatch", "directives.sh")),
            ({"SLURM_CLUSTERS": "c"}, ("sbatch", "directives.sh")),
            ({"SLURM_CLUSTERS": "c"}, ("squeue",)),
            ({"SCANCEL_INTERACTIVE": "1"}, ("scancel", job)),
            ({"SCANCEL_QOS": "q"}, ("scancel", job)),
            ({"SLURM_TIME_FORMAT": "%s"}, ("sacct",)),
            ({"SBATCH_TIMELIMIT": "soon"}, ("sbatch", "directives.sh")),
        ):
            done = self.with_variables(env, *words)
            self.assertEqual((done.returncode, done.stdout), (1, ""), (env, done.stderr))
            self.assertIn(next(iter(env)), done.stderr)
        self.assertEqual(
            self.with_variables({"SCANCEL_NAME": "nobody"}, "scancel", job).returncode, 0
        )
        self.assertEqual(self.ok("squeue", "-h", "-j", job, "-o", "%t"), "PD\n")
        self.assertEqual(
            self.with_variables({"SCANCEL_NAME": "variables"}, "scancel").returncode, 0
        )
        self.assertEqual(self.ok("squeue", "-h", "-n", "variables", "-o", "%i"), "")

    def test_srun_outside_of_a_job_is_a_job(self):
        done = self.run_program("srun", "sh", "-c", "echo out; exit 5")
        self.assertEqual((done.returncode, done.stdout), (5, "out\n"))
        self.assertEqual(
            sorted(
                self.ok("srun", "-n", "2", "-l", "sh", "-c", "echo of $SLURM_NTASKS").splitlines()
            ),
            ["0: of 2", "1: of 2"],
        )
        self.ok(
            "srun",
            "--mail-type=NONE",
            "--profile=none",
            "--wckey=x",
            "--ntasks-per-socket=1",
            "--nice",
            "-t",
            "2",
            "--signal=USR1@30",
            "--epilog=none",
            "true",
        )
        with open(os.path.join(self.dir, "outside.conf"), "w") as f:
            f.write("0 echo leader\n* echo worker %t\n")
        self.assertEqual(
            sorted(self.ok("srun", "-n", "2", "--multi-prog", "outside.conf", "more").splitlines()),
            ["leader more", "worker 1 more"],
        )
        self.assertEqual(
            self.ok(
                "srun",
                "--task-prolog=" + os.path.join(self.dir, "says.sh"),
                "sh",
                "-c",
                "echo $SAID",
            ),
            "this\n",
        )
        for words, text in (
            (("--bcast=/tmp/x",), "--bcast is not supported: belay copies no programs"),
            (("--signal=NO@5",), "expected a signal"),
            (("--signal=USR1@70000",), "the seconds after @"),
            (("--prolog=/bin/true",), "--prolog is not supported: run it before srun"),
            (("--multi-prog", "--pty"), "--pty of a new job takes no --multi-prog"),
            (("-C", "[a|b]", "-N2"), "for jobs on one node"),
        ):
            done = self.run_program("srun", *words, "true")
            self.assertEqual((done.returncode, done.stdout), (1, ""), words)
            self.assertIn(text, done.stderr)
        done = self.run_program("salloc", "--multi-prog", "true")
        self.assertIn("--multi-prog is not for salloc", done.stderr)
        self.assertIn(
            "it is sent at the start",
            self.run_program("srun", "-t", "1", "--signal=USR1@600", "true").stderr,
        )

    def test_srun_runs_a_step_in_a_job_from_outside_of_it(self):
        job = self.ok(
            "sbatch",
            "--parsable",
            "-n",
            "2",
            "--export=SEEN=inside",
            "-o",
            "held.out",
            "--wrap",
            "echo go; exec sleep 1000",
        ).strip()
        self.wait_running(job)
        done = self.run_program(
            "srun",
            "--jobid=" + job,
            "-n",
            "2",
            "-l",
            "-D",
            "sub",
            "sh",
            "-c",
            "echo $SLURM_JOB_ID $SLURM_NTASKS $SLURM_STEP_ID $SEEN $(basename $PWD); exit $((SLURM_PROCID * 4))",
        )
        self.assertEqual(
            (done.returncode, sorted(done.stdout.splitlines())),
            (4, ["%d: %s 2 0 inside sub" % (i, job) for i in range(2)]),
        )
        self.assertIn("task 1: Exited with exit code 4", done.stderr)
        done = self.run_program(
            "srun",
            "--jobid",
            job,
            "-n1",
            "-o",
            "step_%s.out",
            "sh",
            "-c",
            "cat; echo $SLURM_STEP_ID",
            text="in\n",
        )
        self.assertEqual(
            (done.returncode, done.stdout, self.read("step_1.out")), (0, "", "in\n1\n")
        )
        # It has CPUs of the job exclusively, unless it shares them.
        first = self.start("srun", "--jobid=" + job, "sh", "-c", "echo here; exec sleep 1000")
        self.assertEqual(first.stdout.readline() + first.stdout.readline(), "here\nhere\n")
        self.assertEqual(
            self.ok("srun", "--jobid=" + job, "-n1", "--overlap", "echo", "beside"), "beside\n"
        )
        second = self.start("srun", "--jobid=" + job, "-n1", "echo", "after")
        self.assertIn("step creation temporarily disabled", second.stderr.readline())
        first.send_signal(signal.SIGINT)
        self.assertEqual(first.wait(WAIT_S), 130)
        self.assertEqual((second.communicate(timeout=WAIT_S)[0], second.returncode), ("after\n", 0))
        first.communicate()
        self.ok("scancel", job)
        self.ok("belay", "logs", "-f", job)  # until it has ended
        for words, text in (
            ((job, "true"), "has ended"),
            (("999999", "true"), "no job 999999"),
            (("x", "true"), "expected the number of a job"),
            ((job,), "No command given"),
            ((job, "--hold", "true"), "--hold is not supported for a step of a job"),
        ):
            done = self.run_program("srun", "--jobid", *words)
            self.assertEqual((done.returncode, done.stdout), (1, ""), words)
            self.assertRegex(done.stderr, "^srun: error: .*" + text)

    def on_terminal(self, *words):
        other, terminal = pty.openpty()
        p = subprocess.Popen(
            words,
            cwd=self.dir,
            env={**self.h.env, "TERM": "vt100"},
            executable=shutil.which(words[0], path=self.h.env["PATH"]),
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(terminal)
        self.addCleanup(os.close, other)
        return p, other

    def talk(self, fd, say, expect):
        os.write(fd, say.encode())
        seen = ""
        while not re.search(expect, seen):
            self.assertTrue(select.select([fd], [], [], WAIT_S)[0], seen)
            seen += os.read(fd, 65536).decode()
        return seen

    def test_srun_gives_a_terminal(self):
        # As a separate job, whose state it reports while it waits. Steps in it work as in any
        # other.
        holder = self.ok("sbatch", "--parsable", "--exclusive", "--wrap", "exec sleep 1000").strip()
        self.wait_running(holder)
        p, fd = self.on_terminal("srun", "-J", "shell", "-n", "2", "--pty", "bash", "--norc")
        told = self.talk(fd, "", "queued and waiting for resources")
        self.ok("scancel", holder)
        self.talk(fd, "", r"srun: job \d+ has been allocated resources")
        self.talk(
            fd,
            "tty; echo $SLURM_JOB_NAME $SLURM_NTASKS $SLURM_STEP_ID.\n",
            r"/dev/pts/\d+\r\n.*\n?shell 2 \.",
        )
        self.talk(fd, "srun -l echo a step | sort\n", r"0: a step\r\n1: a step\r\n")
        self.talk(fd, "srun --pty tty; echo $((2 * 21))\n", r"/dev/pts/\d+\r\n(.*\n)?42")
        os.write(fd, b"exit 6\n")
        self.assertEqual(p.wait(WAIT_S), 6, told)
        self.assertEqual(
            self.ok("sacct", "-nXPo", "state,exitcode", "--name", "shell"), "FAILED|6:0\n"
        )
        # In a job, and from outside.
        job = self.ok(
            "sbatch", "--parsable", "-o", "pty.out", "--wrap", "srun --pty tty; exec sleep 1000"
        ).strip()
        self.wait_running(job)
        p, fd = self.on_terminal("srun", "--jobid=" + job, "--overlap", "--pty", "bash", "--norc")
        self.talk(
            fd,
            "tty; echo $SLURM_JOB_ID $SLURM_NTASKS $((6 * 7))\n",
            r"/dev/pts/\d+\r\n(.*\n)?%s 1 42" % job,
        )
        os.write(fd, b"exit 4\n")
        self.assertEqual(p.wait(WAIT_S), 4)
        self.assertIn("srun: warning: --pty: standard input is no terminal", self.read("pty.out"))
        self.assertEqual(
            self.ok(
                "srun", "-Q", "--pty", "sh", "-c", "read x; echo got $x", text="a line\n"
            ).splitlines()[-1],
            "got a line",
        )

    def test_salloc_is_a_shell_in_a_job(self):
        p, fd = self.on_terminal("salloc", "-n", "2", "--export=SEEN=inside")
        self.talk(fd, "", r"salloc: Granted job allocation \d+\r\n")
        self.talk(
            fd,
            "echo $SLURM_JOB_NAME $SLURM_NTASKS $SEEN $((6 * 7)).\n",
            r"interactive 2 inside 42\.",
        )
        os.write(fd, b"exit 3\n")
        self.assertIn(
            "salloc: Relinquishing job allocation",
            self.talk(fd, "", "Relinquishing job allocation"),
        )
        self.assertEqual(p.wait(WAIT_S), 3)
        done = self.run_program(
            "salloc", "sh", "-c", "echo $SLURM_JOB_NAME; cat; exit 4", text="in\n"
        )
        self.assertEqual(
            (done.returncode, done.stdout),
            (4, "sh\nin\n".replace("sh", "interactive")),
            done.stderr,
        )
        done = self.run_program("salloc", "--reservation=x")
        self.assertEqual(
            (done.returncode, done.stderr),
            (1, "salloc: error: --reservation is not supported: belay has no reservations\n"),
        )

    def test_srun_enters_a_job_that_is_not_of_slurms_kind(self):
        job = re.search(r"\d+", self.ok("belay", "submit", "--wrap", "exec sleep 1000")).group()
        self.wait_running(job)
        self.assertEqual(
            self.ok(
                "srun",
                "--jobid=" + job,
                "-n",
                "2",
                "sh",
                "-c",
                "echo $SLURM_JOB_ID of $SLURM_NTASKS",
            ),
            (job + " of 2\n") * 2,
        )
        self.ok("scancel", job)

    def wait_running(self, job):
        self.addCleanup(self.run_program, "scancel", job)
        while [
            a["state"] for a in json.loads(self.ok("belay", "show", "--json", job))["attempts"]
        ] != ["running"]:
            pass

    def test_a_signal_is_sent_to_whom_it_is_for(self):
        program = (
            "import signal, sys\n"
            "signal.signal(signal.SIGUSR1, lambda *_: (print('program', flush=True), open('heard', 'a').write('program\\n')))\n"
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
            "open('up', 'w').close()\n"
            "while True:\n    signal.pause()\n"
        )
        with open(os.path.join(self.dir, "hears.py"), "w") as f:
            f.write(program)
        with open(os.path.join(self.dir, "hears.sh"), "w") as f:
            f.write(
                "#!/bin/bash\ntrap 'echo script >>heard' USR1\npython3 hears.py &\npid=$!\n"
                "until wait $pid; code=$?; [ $code -le 128 ]; do :; done\nexit $code\n"
            )
        job = self.ok("sbatch", "--parsable", "hears.sh").strip()
        self.addCleanup(self.run_program, "scancel", job)
        while not os.path.exists(os.path.join(self.dir, "up")):
            pass

        def heard(*flags):
            with open(os.path.join(self.dir, "heard"), "w"):
                pass
            self.ok("scancel", *flags, job)
            while not (text := self.read("heard")) or (len(text) < 15 and "-f" in flags):
                pass
            return set(text.split())

        self.assertEqual(heard("-s", "USR1"), {"program"})
        self.assertEqual(heard("--signal=SIGUSR1", "--batch"), {"script"})
        self.assertEqual(heard("-f", "-s", "10"), {"program", "script"})
        events = belay.client.Client(socket=os.path.join(self.h.home, "belayd.sock")).job_events(
            int(job)
        )["events"]
        self.assertEqual(
            [e["text"].split(": ")[1] for e in events if e["kind"] == "enter"],
            ["signal 10 to programs", "signal 10 to script", "signal 10 to all"],
        )
        self.ok("scancel", "-s", "USR2", job)  # no process catches it, and none is ended by it
        self.assertEqual(self.ok("squeue", "-h", "-j", job, "-o", "%T"), "RUNNING\n")
        self.ok("scancel", "--me", "-n", "hears.sh", "-s", "TERM")
        self.ok("belay", "logs", "-f", job)
        while self.ok("sacct", "-nXPj", job, "-o", "State,ExitCode") != "FAILED|7:0\n":
            pass
        held = self.ok("sbatch", "--parsable", "-H", "--wrap", "true").strip()
        for which, why in (
            (job, "the job is ended"),
            (held, "the job is pending"),
            ("999999", "Invalid job id"),
        ):
            refused = self.run_program("scancel", "-s", "USR1", which)
            self.assertEqual(refused.returncode, 1)
            self.assertIn(why, refused.stderr)
        self.assertEqual(self.run_program("scancel", "999999").stderr, "")
        self.assertIn("Invalid job id", self.run_program("scancel", "-v", "999999").stderr)
        self.ok("scancel", "999999")
        self.assertIn(
            "Unknown job signal: NO", self.run_program("scancel", "-s", "NO", held).stderr
        )
        self.ok("scancel", held)

    def test_an_interrupt_of_srun_cancels_its_job(self):
        p = self.start("srun", "-J", "interrupted", "sh", "-c", "echo ready; exec sleep 1000")
        self.assertEqual(p.stdout.readline(), "ready\n")
        p.terminate()
        p.communicate(timeout=WAIT_S)
        self.assertNotEqual(p.returncode, 0)
        self.assertEqual(self.ok("sacct", "-nPo", "state", "--name", "interrupted"), "CANCELLED\n")

    def test_the_cluster_is_shown_as_partitions_and_nodes(self):
        self.assertEqual(
            self.ok("sinfo", "-h", "-o", "%P %a %l %D %N"), "local* up infinite 1 %s\n" % self.node
        )
        self.assertEqual(
            self.ok("sinfo", "-hN", "-o", "%N %c"), "%s %d\n" % (self.node, os.cpu_count())
        )
        self.assertIn("NodeName=%s " % self.node, self.ok("scontrol", "show", "node", self.node))
        held = self.ok("sbatch", "--parsable", "-H", "--wrap", "true").strip()
        self.assertEqual(
            self.ok("squeue", "-h", "-p", "other,local", "-j", held, "-o", "%P"), "local\n"
        )
        self.assertEqual(self.ok("squeue", "-h", "-p", "other", "-j", held, "-o", "%P"), "")
        self.assertIn(" Partition=local ", self.ok("scontrol", "-o", "show", "job", held))
        for args in (
            ("sbatch", "-p", "local,nowhere", "--wrap", "true"),
            ("scontrol", "update", "jobid=" + held, "partition=local,nowhere"),
        ):
            refused = self.run_program(*args)
            self.assertIn('there is no pool "nowhere"', refused.stderr)
            self.assertEqual(refused.returncode, 1)
        self.ok("scancel", held)
        self.assertIn("PartitionName=local Allow", self.ok("scontrol", "-o", "show", "partition"))
        job = self.ok(
            "sbatch",
            "--parsable",
            "--exclusive",
            "--wrap",
            "until [ -e shown.go ]; do sleep 0.1; done",
        ).strip()
        while self.ok("squeue", "-h", "-j", job, "-o", "%t") != "R\n":
            pass
        cpus = os.cpu_count()
        self.assertEqual(
            self.ok("sinfo", "-h", "-o", "%C %T"), "%d/0/0/%d allocated\n" % (cpus, cpus)
        )
        self.assertIn(
            "CPUAlloc=%d CPUEfctv=%d CPUTot=%d " % (cpus, cpus, cpus),
            self.ok("scontrol", "-o", "show", "node", self.node),
        )
        self.assertIn(" State=ALLOCATED ", self.ok("scontrol", "-o", "show", "node", self.node))
        open(os.path.join(self.dir, "shown.go"), "w").close()
        self.assertEqual(self.ok("scontrol", "show", "hostnames", "n[1-3,7]"), "n1\nn2\nn3\nn7\n")
        self.assertEqual(json.loads(self.ok("sinfo", "--json"))["nodes"][0]["name"], self.node)
        self.assertRegex(
            self.ok("squeue").splitlines()[0],
            r"^ +JOBID PARTITION +NAME +USER ST +TIME +NODES NODELIST\(REASON\)$",
        )

    def test_scontrol_changes_jobs_and_nodes(self):
        first = self.ok("sbatch", "--parsable", "-H", "--wrap", "true").strip()
        job = self.ok("sbatch", "--parsable", "-H", "-c", "2", "--wrap", "true").strip()
        self.ok(
            "scontrol",
            "update",
            "jobid=" + job,
            "timelimit=1:00:00",
            "JobName=other",
            "NumCPUs=1",
            "MinMemoryNode=64",
            "Nice=3",
            "Dependency=afterok:" + first,
            "Requeue=0",
            "StartTime=now+1hour",
        )
        shown = self.ok("scontrol", "show", "job", job)
        for part in (
            "JobName=other\n",
            "TimeLimit=01:00:00",
            "NumCPUs=1 ",
            "Nice=3 ",
            "Requeue=0 ",
            "Dependency=afterok:%s" % first,
        ):
            self.assertIn(part, shown)
        self.ok(
            "scontrol",
            "update",
            "JobId=" + job,
            "TimeLimit=+30",
            "Dependency=",
            "StartTime=",
            "Comment=mine",
        )
        self.assertIn("TimeLimit=01:30:00", self.ok("scontrol", "show", "job", job))
        for words, text in (
            (("JobId=" + job, "TimeLimit=5", "Priority=7"), "Priority cannot be changed"),
            (("JobId=" + job, "TimeLimit=5", "Nonsense=1"), "not supported: Nonsense"),
            (("JobId=999999", "TimeLimit=5"), "Invalid job id"),
            (("JobId=x", "TimeLimit=5"), "Invalid job id"),
            (("JobId=" + job,), "No changes"),
            (("TimeLimit=5",), "JobId=JOB or NodeName=NODE"),
            (("JobId=" + job, "Partition=nowhere"), "no pool"),
            (("NodeName=nowhere", "State=DRAIN"), "Invalid node name"),
            (("NodeName=" + self.node, "State=DOWN"), "State=DOWN of a node is not supported"),
            (("NodeName=" + self.node, "Weight=3", "State=DRAIN"), "Weight=3"),
            (("PartitionName=local", "State=DOWN"), "pools"),
        ):
            with self.subTest(words):
                done = self.run_program("scontrol", "update", *words)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(text, done.stderr)
        self.assertIn("TimeLimit=01:30:00", self.ok("scontrol", "show", "job", job))
        array = self.ok(
            "sbatch", "--parsable", "-a", "0-2%1", "-t", "60", "--wrap", "exec sleep 1000"
        ).strip()
        self.addCleanup(self.run_program, "scancel", array)
        while "RUNNING" not in self.ok("squeue", "-h", "-o", "%T", "-j", array):
            pass
        self.ok("scontrol", "update", "JobId=" + array, "ArrayTaskThrottle=2", "TimeLimit=120")
        while self.ok("squeue", "-h", "-o", "%T", "-j", array).count("RUNNING") < 2:
            pass
        self.assertEqual(set(self.ok("squeue", "-h", "-o", "%l", "-j", array).split()), {"2:00:00"})
        self.ok("scontrol", "update", "JobId=%s_[0-1]" % array, "TimeLimit=0:01")
        while "TIMEOUT" not in self.ok("sacct", "-nXPo", "state", "-j", array + "_0"):
            pass
        self.ok("scancel", array, first, job)
        job = self.ok("sbatch", "--parsable", "-t", "10", "--wrap", "sleep 600").strip()
        while self.ok("squeue", "-h", "-j", job, "-o", "%t") != "R\n":
            pass
        started = self.ok("squeue", "--json", "-j", job)
        while int(time.time()) == json.loads(started)["jobs"][0]["start_time"]:
            pass  # its next second
        self.ok("scontrol", "requeue", job)
        while self.ok(
            "squeue", "-h", "-j", job, "-o", "%t %r"
        ) != "R None\n" or "Restarts=1" not in self.ok("scontrol", "show", "job", job):
            pass
        self.assertGreater(
            *(
                json.loads(x)["jobs"][0]["start_time"]
                for x in (self.ok("squeue", "--json", "-j", job), started)
            )
        )
        self.ok("scancel", job)
        self.ok("scontrol", "update", "NodeName=" + self.node, "State=drain", "Reason=cleaning")
        self.assertIn("DRAIN", self.ok("scontrol", "show", "node", self.node))
        self.ok("scontrol", "update", "NodeName=" + self.node, "State=resume")
        self.assertNotIn("DRAIN", self.ok("scontrol", "show", "node", self.node))

    def test_json_and_the_long_forms_have_the_job(self):
        job = self.ok("sbatch", "--parsable", "--wait", "-t", "10", "minimal.sh").strip()
        for words in (
            ("squeue", "-t", "all", "--json", "-j", job),
            ("sacct", "--json", "-j", job),
            ("scontrol", "--json", "show", "job", job),
        ):
            j = json.loads(self.ok(*words))["jobs"][0]
            self.assertEqual(
                (j["job_id"], j["job_state"], j["time_limit"], j["standard_output"]),
                (int(job), "COMPLETED", 10, os.path.realpath(self.dir) + "/slurm-%s.out" % job),
            )
        shown = self.ok("scontrol", "show", "job", job)
        for part in (
            "JobId=%s JobName=minimal.sh\n" % job,
            "JobState=COMPLETED Reason=None",
            "TimeLimit=00:10:00",
            "ExitCode=0:0",
        ):
            self.assertIn(part, shown)
        self.assertRegex(
            self.ok("sacct", "-j", job),
            r"JobID +JobName +Partition +Account +AllocCPUS +State ExitCode \n(-+ ){7}\n%s "
            r"+minimal.sh +local +%s +1 +COMPLETED +0:0 \n" % (job, USER),
        )
        self.ok("scontrol", "write", "batch_script", job, "copy.sh")
        self.assertEqual(self.read("copy.sh"), self.read("minimal.sh"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
