# SPDX-License-Identifier: Apache-2.0
"""Snakemake, unchanged, with its stock support of Slurm: 200 jobs through sbatch, sacct, sinfo,
scancel and srun."""

import collections
import contextlib
import getpass
import os
import re
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import test_local  # noqa: E402  (Home: a belayd of its own)

BUILD = test_local.BUILD
SNAKEMAKE = next(
    (p for p in ("/usr/bin/snakemake", shutil.which("snakemake")) if p and os.path.exists(p)), None
)
JOBS = 200
LONG_S = 3000

WORKFLOW = """
N = int(config["n"])
rule all:
    input: "total.txt", "never.txt", "cancelled.txt"
rule one:
    output: "out/{i}.txt"
    resources: mem_mb=200, runtime=30
    shell: "echo {wildcards.i} > {output}"
rule total:
    input: expand("out/{i}.txt", i=range(N))
    output: "total.txt"
    resources: mem_mb=200, runtime=30
    shell: "cat {input} | wc -l > {output}"
rule fails:
    output: "never.txt"
    resources: mem_mb=200, runtime=30
    shell: "echo it goes wrong >&2; exit 7"
rule waits:
    output: "cancelled.txt"
    resources: mem_mb=200, runtime=30
    shell: "touch waits.runs; sleep 100000; touch {output}"
"""

STATUS = """#!/usr/bin/env python3
import subprocess, sys
state = subprocess.check_output(["sacct", "-j", sys.argv[1], "-X", "-n", "-P", "-o", "State"], text=True).split()
state = state[0] if state else ""
print("success" if state == "COMPLETED" else
      "running" if state in ("", "PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED") else "failed")
"""


class Snakemake(unittest.TestCase):
    def setUp(self):
        self.h = test_local.Home().__enter__()
        self.addCleanup(lambda: self.h.__exit__(None, None, None))
        self.dir = os.path.join(self.h.dir, "flow")
        programs = os.path.join(self.h.dir, "bin")
        os.makedirs(self.dir)
        os.makedirs(programs)
        for name in ("sbatch", "squeue", "scancel", "sinfo", "sacct", "scontrol", "srun", "belay"):
            os.symlink(BUILD + "/cli/belay", os.path.join(programs, name))
        self.env = {
            **self.h.env,
            "PATH": programs + ":" + os.environ["PATH"],
            "HOME": self.h.dir,
            "USER": getpass.getuser(),
        }
        self.h.env = self.env
        done = self.h.belay("up")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name, text in (("Snakefile", WORKFLOW), ("status.py", STATUS)):
            with open(os.path.join(self.dir, name), "w") as f:
                f.write(text)
        os.chmod(os.path.join(self.dir, "status.py"), 0o755)

    def ask(self, *words):
        return subprocess.run(
            words,
            cwd=self.dir,
            env=self.env,
            text=True,
            capture_output=True,
            timeout=60,
            check=True,
        ).stdout

    def flow(self, n, *arguments):
        """Runs the workflow, cancels the job of rule waits once it runs; returns snakemake's
        output."""
        log = os.path.join(self.h.dir, "snakemake.log")
        with open(log, "w") as f:
            p = subprocess.Popen(
                [
                    SNAKEMAKE,
                    "--keep-going",
                    "--latency-wait",
                    "60",
                    "--config",
                    "n=%d" % n,
                    *arguments,
                ],
                cwd=self.dir,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=f,
                stderr=f,
            )
        until = time.monotonic() + LONG_S
        while p.poll() is None and not os.path.exists(self.dir + "/waits.runs"):
            self.assertLess(time.monotonic(), until)
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.wait(1)
        waits = [
            line.split("|")[0]
            for line in self.ask("squeue", "-h", "-o", "%i|%j").splitlines()
            if "waits" in line
        ]
        self.assertEqual(len(waits), 1)
        self.ask("scancel", waits[0])
        p.wait(LONG_S)
        with open(log) as f:
            said = f.read()
        self.assertNotEqual(p.returncode, 0, said[-3000:])  # two of its jobs failed
        with open(os.path.join(self.dir, "total.txt")) as f:
            self.assertEqual(f.read().strip(), str(n))
        self.assertFalse(
            os.path.exists(self.dir + "/never.txt") or os.path.exists(self.dir + "/cancelled.txt")
        )
        states = collections.Counter(self.ask("sacct", "-X", "-n", "-P", "-o", "State").split())
        self.assertEqual(states, {"COMPLETED": n + 1, "FAILED": 1, "CANCELLED": 1})
        return said

    def test_two_hundred_jobs_through_its_slurm_executor(self):
        said = self.flow(
            JOBS - 3, "--slurm", "-j", "20", "--max-status-checks-per-second", "1"
        )  # snakemake turns values above 1 into 0.03
        self.assertEqual(len(re.findall(r"has been submitted with SLURM jobid \d+", said)), JOBS)
        self.assertRegex(said, r"SLURM-job '\d+' failed, SLURM status is: 'FAILED'")
        self.assertRegex(said, r"SLURM-job '\d+' failed, SLURM status is: 'CANCELLED'")

    def test_its_generic_cluster_support(self):
        said = self.flow(
            7,
            "-j",
            "8",
            "--max-status-checks-per-second",
            "10",
            "--cluster",
            "sbatch --parsable -o %x-%j.log -t {resources.runtime} --mem {resources.mem_mb}",
            "--cluster-status",
            "./status.py",
            "--cluster-cancel",
            "scancel",
        )
        self.assertRegex(said, r"Error in rule fails")
        self.assertRegex(said, r"Error in rule waits")


if __name__ == "__main__":
    if not SNAKEMAKE:
        print("skipped: snakemake is not installed (scripts/setup real)")
        sys.exit(77)
    unittest.main(verbosity=2)
