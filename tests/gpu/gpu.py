# SPDX-License-Identifier: Apache-2.0
"""What the tests of this directory share: which GPUs and libraries there are, and belay on this
machine."""

import functools
import glob
import os
import shutil
import subprocess
import sys
import unittest

SKIPPED = 77  # to Meson
TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
from lab import BUILD, Lab  # noqa: E402

JOBS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jobs")
# The Python that has PyTorch and the other libraries: the one that the user's PATH names.
PYTHON = os.environ.get("BELAY_TEST_PYTHON") or shutil.which("python3") or sys.executable
# "cpu" runs the training loops without a GPU, to try the tests themselves.
DEVICE = os.environ.get("BELAY_TEST_DEVICE", "cuda")
# Where the driver's libraries are is not in the loader's cache on every machine.
ENV = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}


def devices():
    return sorted(glob.glob("/dev/nvidia[0-9]*"))


def lacks_gpu():
    """What is missing for a test with GPUs; None: nothing."""
    if not devices():
        return "there is no NVIDIA GPU on this machine (/dev/nvidia0)"
    return None if shutil.which("nvidia-smi") else "nvidia-smi is not in the PATH"


@functools.lru_cache(maxsize=None)
def lacks(*modules):
    """The first of these modules that Python cannot import, and why; None: it has all."""
    for module in modules:
        done = subprocess.run(
            [PYTHON, "-c", "import " + module],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            universal_newlines=True,
        )
        if done.returncode != 0:
            return "%s cannot import %s: %s" % (PYTHON, module, done.stderr.strip()[-300:])
    return None


def lacks_device():
    return lacks_gpu() if DEVICE == "cuda" else None


def main():
    """Runs the tests of the calling program; a machine without GPUs skips them all."""
    if lacks_device():
        print("SKIP: %s" % lacks_device())
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)


def smi(*fields):
    """What nvidia-smi says of each GPU: lists of texts."""
    text = subprocess.check_output(
        ["nvidia-smi", "--query-gpu=" + ",".join(fields), "--format=csv,noheader,nounits"],
        universal_newlines=True,
    )
    return [[word.strip() for word in line.split(",")] for line in text.splitlines()]


def submit(lab, program, *args, **spec):
    """Submits a program of jobs/. Returns the job's number."""
    script = '#!/bin/sh\nexec %s %s "$@"\n' % (PYTHON, os.path.join(JOBS, program))
    path = lab.write(program + ".sh", script, 0o755)
    return lab.submit(path, *args, env=ENV, **spec)


class Up(Lab):
    """`belay up` on this machine: its own agent, with the machine's own GPUs."""

    def __init__(self, belayd=None):
        super().__init__(belayd=belayd)

    def start(self):
        os.mkdir(self.home)
        self.write("home/belayd.yaml", self.belayd_config)
        self.env["BELAY_NODE_TELEMETRY"] = "200ms 1s"
        self.up()

    def up(self):
        self.belay("up")

    def agent_log(self):
        with open(os.path.join(self.home, "agent.log"), errors="replace") as f:
            return f.read()

    def wait_for_no_instances(self):
        """There are none: ends the jobs."""
        for job in self.get("/jobs?state=active&limit=200")["jobs"]:
            self.post("/jobs/%d/cancel" % job["id"])
        return []

    def stop_belayd(self):
        done = subprocess.run(
            [BUILD + "/cli/belay", "down", "--timeout", "30s"],
            env=self.env,
            stdin=subprocess.DEVNULL,
        )
        return [] if done.returncode == 0 else ["belay down: exit code %d" % done.returncode]
