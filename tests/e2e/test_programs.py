# SPDX-License-Identifier: Apache-2.0
"""Real programs, each reclaimed at ten random moments: the result is that of an undisturbed run.
scripts/test --real runs this and installs the programs; what is not installed is skipped.
BELAY_PROGRAMS_SEED repeats a run's choices."""

import os
import random
import re
import shutil
import subprocess
import tempfile
import unittest

from lab import BUILD, PYTHON, Lab

EXAMPLES = os.path.abspath(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
)
DATA = "/usr/share/datasets/fashion-mnist"
RECLAIMS = 10
NOTICE_S = 20
SEED = int(os.environ.get("BELAY_PROGRAMS_SEED") or random.SystemRandom().randrange(1000000))
RUN_S = 600


def has_torch():
    return subprocess.run([PYTHON, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0


class Programs(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="belay-programs.")
        self.addCleanup(shutil.rmtree, self.dir)
        self.random = random.Random("%d %s" % (SEED, self.id()))

    def copy(self, *names):
        for name in names:
            shutil.copy(os.path.join(EXAMPLES, name), self.dir)

    def undisturbed(self, script, *args):
        """The script's output without belay, and without an interruption, with its own checkpoint
        directory."""
        scratch = os.path.join(self.dir, "undisturbed")
        os.makedirs(os.path.join(scratch, "control"))
        env = {
            **os.environ,
            "BELAY_RESTORED": "0",
            "BELAY_CHECKPOINT_DIR": scratch,
            "BELAY_JOB_ID": "0",
            "BELAY_CONTROL_DIR": os.path.join(scratch, "control"),
            "PYTHONPATH": os.path.join(BUILD, "clients", "python"),
        }
        done = subprocess.run(
            ["/bin/sh", script, *args],
            cwd=self.dir,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            universal_newlines=True,
            timeout=RUN_S,
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def reclaimed(self, script, *args, moment, method):
        """Runs the script as a job and takes its machine away ten times. moment(lab, job, fraction
        from 0 to 1) waits for a moment in the job. Returns its output.
        """
        with Lab(pool={"idle_timeout": "1s"}) as l:
            with open(os.path.join(self.dir, script)) as f:
                text = f.read()
            job = l.post(
                "/jobs",
                {
                    "name": script,
                    "script": text,
                    "args": list(args),
                    "cwd": self.dir,
                    "checkpoint": {"method": method, "every_ms": 3600000, "keep": 2},
                },
            )["id"]
            for n, far in enumerate(sorted(self.random.random() for _ in range(RECLAIMS)), 1):
                l.wait_event(job, "started", n, timeout_s=RUN_S)
                moment(l, job, 0.9 * far)
                if l.job(job)["state"] == "ended":
                    self.fail("the job ended before its reclaim %d of %d" % (n, RECLAIMS))
                l.cloud({"reclaim": {"instance": l.instance_of(job), "notice_s": NOTICE_S}})
                l.wait_event(job, "requeued", n, timeout_s=RUN_S)
            shown = l.wait_ended(job, timeout_s=RUN_S)
            self.assertEqual(shown["job"]["end"], "succeeded", l.log(job))
            self.assertEqual(
                [a["end"] for a in shown["attempts"]], ["reclaimed"] * RECLAIMS + ["succeeded"]
            )
            self.assertEqual(shown["job"]["lost_steps"], 0)
            return l.log(job)

    def check(self, script, *args, moment, method="coop", result=r"\b[0-9a-f]{64}\b"):
        print("seed %d" % SEED, flush=True)
        expected = re.findall(result, self.undisturbed(script, *args))
        self.assertTrue(expected)
        log = self.reclaimed(script, *args, moment=moment, method=method)
        self.assertEqual(re.findall(result, log)[-1:], expected[-1:])

    @staticmethod
    def by_line(pattern, steps, every):
        """Moments at which the log reaches a step; a line is printed every `every` steps."""

        def moment(l, job, far):
            step = max(every, int(far * steps) // every * every)
            done = l.job(job)["progress"] or 0
            if step > done:
                l.wait_log(job, pattern % step, timeout_s=RUN_S)

        return moment

    @unittest.skipUnless(
        has_torch() and os.path.isdir(DATA), "needs python3-torch and dataset-fashion-mnist"
    )
    def test_pytorch(self):
        self.copy("pytorch/train.py", "pytorch/train.sh")
        self.check("train.sh", "--steps", "1000", moment=self.by_line(r"^step %d loss", 1000, 20))

    @unittest.skipUnless(os.path.isdir(DATA), "needs dataset-fashion-mnist")
    def test_numpy(self):
        self.copy("fashion-mnist/train.py", "fashion-mnist/train.sh")
        self.check("train.sh", "--steps", "2000", moment=self.by_line(r"^step %d loss", 2000, 20))

    @unittest.skipUnless(shutil.which("lmp"), "needs lammps")
    def test_lammps(self):
        self.copy("lammps/in.melt", "lammps/new.melt", "lammps/commit.sh", "lammps/run.sh")
        self.check(
            "run.sh", "-var", "steps", "20000", moment=self.by_line(r"^ *%d +[0-9.]+ ", 20000, 50)
        )

    @unittest.skipUnless(shutil.which("gmx"), "needs gromacs")
    def test_gromacs(self):
        self.copy("gromacs/run.sh", "gromacs/make.sh")
        subprocess.run(
            ["/bin/sh", "make.sh", "30000"],
            cwd=self.dir,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=RUN_S,
        )
        self.check(
            "run.sh",
            "md.tpr",
            "-v",
            "-stepout",
            "100",
            method="signal",
            moment=self.by_line(r"\bstep %d\b", 30000, 100),
        )


if __name__ == "__main__":
    unittest.main(verbosity=2)
