# SPDX-License-Identifier: Apache-2.0
"""The commands of the tutorial on the emulator, in the order of the page, in one shell, as a user
types them: the job's machine is taken away and the job resumes."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from lab import BUILD, HERE, WAIT_S, all_gone, read_bytes

sys.path.insert(0, os.path.join(HERE, "..", "docs"))
import manual  # noqa: E402

PAGE = "docs/tutorial/emulator.md"
STEPS = 40


class Tutorial(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="belay-test.")
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.addCleanup(self.end_what_is_left)

    def left(self):
        """Processes of the page, found by their home in the environment."""
        found = []
        for entry in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if entry.isdigit() and self.home.encode() in read_bytes("/proc/%s/environ" % entry):
                    found.append(int(entry))
        return found

    def end_what_is_left(self):
        for pid in self.left():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def run_page(self):
        """Runs all commands; returns the output of each block."""
        blocks = [text for _, text in manual.blocks(PAGE, "sh")]
        self.assertGreater(len(blocks), 6)
        mark = "---- block ----"
        script = "set -eu\n" + "".join("echo '%s'\n%s" % (mark, b) for b in blocks)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "BELAY_"))}
        programs = [os.path.join(BUILD, d) for d in ("cli", "scheduler", "agent", "emulator")]
        env.update(HOME=self.home, PATH=":".join([*programs, env["PATH"]]))
        # Job control, as in a shell that a user types into: kill %1.
        done = subprocess.run(
            ["bash", "-m", "-c", script],
            env=env,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            universal_newlines=True,
            timeout=4 * WAIT_S,
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout.split(mark + "\n")[1:], done.stdout

    def test_every_command_works_and_the_job_resumes(self):
        said, whole = self.run_page()
        self.assertIn("the configuration is fine", said[2], whole)
        self.assertRegex(said[2], "(?m)^cloud +", whole)
        self.assertEqual(said[3], "Submitted batch job 1\n")
        self.assertRegex(said[4], "begins at step 0\n(.*\n)*step 10\n", whole)
        self.assertRegex(said[5], '"instances":', whole)
        begins = [int(n) for n in re.findall("(?m)^begins at step ([0-9]+)$", said[6])]
        self.assertEqual((len(begins), begins[0]), (2, 0), whole)
        self.assertGreaterEqual(begins[1], 10, whole)
        steps = re.findall("(?m)^step ([0-9]+)$", said[6])
        self.assertEqual(sorted(set(map(int, steps))), list(range(1, STEPS + 1)), whole)
        self.assertRegex(said[6], "(?m)^ +1 .*reclaimed", whole)
        self.assertIn("succeeded", said[6], whole)
        self.assertRegex(said[7], "useful", whole)
        self.assertTrue(all_gone(self.left(), WAIT_S), whole)
        self.assertEqual(os.listdir(self.home), [])


if __name__ == "__main__":
    unittest.main()
