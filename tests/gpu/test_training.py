# SPDX-License-Identifier: Apache-2.0
"""Training on a GPU by each library that belay's documents name, on spot machines of the emulator
that are taken away twice: the weights are those of an undisturbed run, bit for bit. A test is
skipped where there is no NVIDIA GPU, or where its library is not installed. BELAY_TEST_PYTHON: the
Python that has them.
"""

import os
import re
import subprocess
import unittest

import gpu
from lab import BUILD, Lab

STEPS, STEP_S = 400, 0.05
RECLAIMED_AT = (60, 200)
NOTICE_S = 60
RUN_S = 400
CLOUD = {"pools": [{"zone": "us-east-1a", "type": "g6e.xlarge", "spot": {"capacity": 4}}]}
POOL = {"zones": ["us-east-1a"], "types": ["g6e.xlarge"], "markets": ["spot"], "max_nodes": 4}
WEIGHTS = r"(?m)^weights ([0-9a-f]{64})$"


def versions(modules):
    """Of the packages, as they are installed."""
    text = "import importlib.metadata as m, sys\nfor n in sys.argv[1:]: print(n, m.version(n))"
    done = subprocess.run(
        [gpu.PYTHON, "-c", text, *modules], stdout=subprocess.PIPE, universal_newlines=True
    )
    return ", ".join(done.stdout.split("\n")[:-1])


class Training(unittest.TestCase):
    def undisturbed(self, program):
        """Starts a run without belay, at full speed."""
        arguments = [os.path.join(gpu.JOBS, program), str(STEPS), "0", gpu.DEVICE]
        env = {k: v for k, v in os.environ.items() if not k.startswith("BELAY_")}
        env["PYTHONPATH"] = os.path.join(BUILD, "clients", "python")
        return subprocess.Popen(
            [gpu.PYTHON, *arguments],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            universal_newlines=True,
        )

    def check(self, program, packages, *modules):
        lacking = gpu.lacks(*modules)
        if lacking:
            self.skipTest(lacking)
        print(versions(packages), flush=True)
        alone = self.undisturbed(program)
        try:
            with Lab(cloud=CLOUD, pool=POOL) as lab:
                log, shown = self.reclaim(lab, program)
            expected, _ = alone.communicate(timeout=RUN_S)
        finally:
            alone.kill()
        self.assertEqual(alone.returncode, 0)
        self.assertEqual(re.findall(WEIGHTS, log), re.findall(WEIGHTS, expected), log)
        self.assertEqual(shown["job"]["lost_steps"], 0)

    def reclaim(self, lab, program):
        job = gpu.submit(
            lab,
            program,
            STEPS,
            STEP_S,
            gpu.DEVICE,
            method="coop",
            gpus=1,
            cpus=2,
            memory_mib=12000,
        )
        for n, step in enumerate(RECLAIMED_AT):
            lab.wait_log(job, "^step %d$" % step, timeout_s=RUN_S)
            instance = lab.instance_of(job)
            lab.cloud({"reclaim": {"instance": instance, "notice_s": NOTICE_S}})
            lab.wait_event(job, "started", n + 2, timeout_s=RUN_S)
        shown = lab.wait_ended(job, timeout_s=RUN_S)
        log = lab.log(job)
        ends = [a["end"] for a in shown["attempts"]]
        self.assertEqual(ends, ["reclaimed"] * len(RECLAIMED_AT) + ["succeeded"], log)
        self.assertEqual(len(re.findall("(?m)^resumed at step [1-9]", log)), len(RECLAIMED_AT), log)
        return log, shown

    def test_pytorch(self):
        self.check("loop_torch.py", ["torch"], "torch")

    def test_distributed_checkpoint(self):
        self.check("loop_dcp.py", ["torch"], "torch.distributed.tensor")

    def test_lightning(self):
        self.check("loop_lightning.py", ["torch", "lightning"], "lightning.pytorch")

    def test_transformers(self):
        self.check("loop_transformers.py", ["torch", "transformers", "accelerate"], "transformers")

    def test_accelerate(self):
        self.check("loop_accelerate.py", ["torch", "accelerate"], "accelerate")

    def test_orbax(self):
        packages = ["jax", "optax", "orbax-checkpoint"]
        self.check("loop_orbax.py", packages, "orbax.checkpoint", "optax")


if __name__ == "__main__":
    gpu.main()
