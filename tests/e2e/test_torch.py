# SPDX-License-Identifier: Apache-2.0
"""examples/pytorch on several nodes: a machine is reclaimed, the gang continues from its
checkpoint, and the weights equal those of an undisturbed run, bit for bit. Skipped where PyTorch or
the data set is not installed; scripts/test --real installs both. Sharded state, saved in the
background and resumed on other numbers of nodes, needs PyTorch 2.6 (Debian 13)."""

import os
import re
import shutil
import subprocess
import unittest

from lab import BUILD, JOBS, PYTHON, Lab

EXAMPLE = os.path.abspath(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "pytorch")
)
DATA = "/usr/share/datasets/fashion-mnist"
HAS_TORCH = (
    subprocess.run([PYTHON, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0
)
HAS_DCP = (
    subprocess.run(
        [PYTHON, "-c", "import torch.distributed.tensor, torch.distributed.checkpoint.state_dict"],
        stderr=subprocess.DEVNULL,
    ).returncode
    == 0
)
STEPS = ["--steps", "120", "--batch", "16"]
RANKS = 4
RUN_S = 300
WEIGHTS = r"^weights sha256 ([0-9a-f]{64})$"


@unittest.skipUnless(
    HAS_TORCH and os.path.isdir(DATA), "needs python3-torch and dataset-fashion-mnist"
)
class Torch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        env = {**os.environ, "PYTHONPATH": os.path.join(BUILD, "clients", "python")}
        done = subprocess.run(
            [
                PYTHON,
                "-m",
                "torch.distributed.run",
                "--standalone",
                "--redirects",
                "2",
                "--tee",
                "2",
                "--nproc_per_node",
                str(RANKS),
                os.path.join(EXAMPLE, "train.py"),
                *STEPS,
            ],
            env=env,
            stdout=subprocess.PIPE,
            universal_newlines=True,
            check=True,
            timeout=RUN_S,
        )
        cls.expected = re.findall(WEIGHTS, done.stdout, re.M)

    def submit(self, l, script, *flags, arguments=STEPS):
        for name in (script, "train.py"):
            shutil.copy(os.path.join(EXAMPLE, name), l.dir)
        said = l.belay("submit", *flags, script, *arguments)
        return int(re.search(r"[0-9]+", said).group())

    def take_away(self, l, job, rank, **how):
        """Takes away the machine of a running rank."""
        node = [a["node"] for a in l.show(job)["attempts"] if a["rank"] == rank][-1]
        machine = l.wait(
            lambda: [
                i["provider_id"]
                for i in l.get("/instances?state=all")["instances"]
                if i["node"] == node and i["provider_id"]
            ],
            "the machine of node %d" % node,
        )[0]
        l.cloud({"reclaim": {"instance": machine, **how}})

    def check(self, l, job):
        shown = l.wait_ended(job, timeout_s=RUN_S)
        log = l.log(job)
        self.assertEqual(shown["job"]["end"], "succeeded", log)
        self.assertEqual(max(a["attempt"] for a in shown["attempts"]), 2, log)
        self.assertEqual(shown["job"]["reclaims"], 1)
        self.assertRegex(log, "(?m)^resumed at step [1-9]")
        self.assertEqual(re.findall(WEIGHTS, log, re.M), self.expected)
        return shown

    def test_four_nodes_of_which_one_is_reclaimed(self):
        with Lab() as l:
            job = self.submit(l, "nodes.sh")
            l.wait_log(job, "^step 40 loss", timeout_s=RUN_S)
            self.take_away(l, job, 2, notice_s=30)
            shown = self.check(l, job)
            self.assertEqual(shown["job"]["lost_steps"], 0)
            self.assertEqual(
                [a["end"] for a in shown["attempts"][:RANKS]], ["gang", "gang", "reclaimed", "gang"]
            )

    def test_four_nodes_of_which_one_vanishes(self):
        """The programs of the other ranks fail at once, because their connection broke. This does
        not count as their failure.
        """
        with Lab() as l:
            job = self.submit(l, "nodes.sh", "--checkpoint-every", "2s")
            l.wait_event(job, "saved", timeout_s=RUN_S)
            self.take_away(l, job, 1, without_notice=True)
            self.assertEqual(self.check(l, job)["job"]["end"], "succeeded")

    def test_two_to_four_nodes_go_on_at_three(self):
        with Lab() as l:
            job = self.submit(
                l,
                "nodes.sh",
                "--nodes",
                "2-4",
                arguments=["--steps", "240", "--global-batch", "48"],
            )
            l.wait_log(job, "^step 40 loss", timeout_s=RUN_S)
            self.take_away(l, job, 1, notice_s=30)
            l.wait_event(job, "started", 2, timeout_s=RUN_S)
            self.assertEqual(l.job(job)["ranks"], 3)
            l.wait_log(job, "(?s)resumed at step.*^step [0-9]+ loss", timeout_s=RUN_S)
            l.belay("requeue", str(job))
            shown = l.wait_ended(job, timeout_s=RUN_S)
            log = l.log(job)
            self.assertEqual(
                (shown["job"]["end"], shown["job"]["ranks"], shown["job"]["lost_steps"]),
                ("succeeded", 4, 0),
                log,
            )
            sizes = [len([a for a in shown["attempts"] if a["attempt"] == n]) for n in (1, 2, 3)]
            self.assertEqual(sizes, [4, 3, 4])
            self.assertEqual(len(re.findall("^resumed at step [1-9]", log, re.M)), 2)
            self.assertLess(float(re.findall("^step 240 loss ([0-9.]+)$", log, re.M)[0]), 1.2)

    def test_torchrun_on_two_nodes(self):
        with Lab() as l:
            job = self.submit(l, "torchrun-nodes.sh")
            l.wait_log(job, "^step 40 loss", timeout_s=RUN_S)
            self.take_away(l, job, 0, notice_s=30)
            self.assertEqual(self.check(l, job)["job"]["lost_steps"], 0)


@unittest.skipUnless(HAS_DCP, "needs PyTorch 2.6 or later")
class Sharded(unittest.TestCase):
    """belay.dcp: each rank has a part of the state."""

    STEPS, STEP_S = 400, 0.05

    def program(self, directory):
        return ["sharded.py", directory, self.STEPS, self.STEP_S]

    def expected(self, directory):
        """The state of an undisturbed run of one rank."""
        program, *arguments = map(str, self.program(directory))
        done = subprocess.run(
            [PYTHON, os.path.join(JOBS, program), *arguments[:-1], "0"],
            env={**os.environ, "PYTHONPATH": os.path.join(BUILD, "clients", "python")},
            stdout=subprocess.PIPE,
            universal_newlines=True,
            check=True,
            timeout=RUN_S,
        )
        return re.findall(r"^state ([0-9a-f]{64})$", done.stdout, re.M)

    def submit(self, l, **spec):
        program, *arguments = self.program(l.dir)
        return l.submit(program, *arguments, method="coop", every_ms=2000, **spec)

    def check(self, l, job, ranks):
        shown = l.wait_ended(job, timeout_s=RUN_S)
        log = l.log(job)
        self.assertEqual(shown["job"]["end"], "succeeded", log)
        attempts = [a["attempt"] for a in shown["attempts"]]
        self.assertEqual([attempts.count(n) for n in range(1, max(attempts) + 1)], ranks, log)
        resumed = re.findall("^resumed at step [1-9]", log, re.M)
        self.assertEqual(len(resumed), len(ranks) - 1, log)
        self.assertEqual(re.findall(r"^state ([0-9a-f]{64})$", log, re.M), self.expected(l.dir))
        return shown, log

    def take_away(self, l, job, rank, **how):
        node = [a["node"] for a in l.show(job)["attempts"] if a["rank"] == rank][-1]
        machine = l.wait(
            lambda: [
                i["provider_id"]
                for i in l.get("/instances?state=all")["instances"]
                if i["node"] == node and i["provider_id"]
            ],
            "the machine of node %d" % node,
        )[0]
        l.cloud({"reclaim": {"instance": machine, **how}})

    def test_three_nodes_two_and_three_again(self):
        with Lab() as l:
            job = self.submit(l, nodes=3, nodes_min=2)
            l.wait_event(job, "saved", timeout_s=RUN_S)
            self.take_away(l, job, 1, notice_s=60)
            l.wait_log(job, "(?s)resumed at step.*^step [0-9]+", timeout_s=RUN_S)
            self.assertEqual(l.job(job)["ranks"], 2)
            l.belay("requeue", str(job))
            shown, _ = self.check(l, job, [3, 2, 3])
            self.assertEqual(shown["job"]["lost_steps"], 0)

    def test_a_node_that_vanishes_costs_what_was_not_saved(self):
        with Lab() as l:
            job = self.submit(l, nodes=3, nodes_min=2)
            l.wait_event(job, "saved", 2, timeout_s=RUN_S)
            self.take_away(l, job, 2, without_notice=True)
            shown, log = self.check(l, job, [3, 2])
            self.assertEqual(shown["job"]["reclaims"], 1, log)


if __name__ == "__main__":
    unittest.main(verbosity=2)
