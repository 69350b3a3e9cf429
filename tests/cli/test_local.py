# SPDX-License-Identifier: Apache-2.0
"""belay up and belay down on this machine: where the home may be, and that down waits for every save."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

BELAY = os.path.join(os.environ["BELAY_BUILD"], "cli", "belay")
SAVES_LATE = """#!/bin/sh
#BELAY --checkpoint signal --checkpoint-every 1h
trap 'sleep 1; echo state > "$BELAY_CHECKPOINT_DIR/state"; exit 85' USR1
echo ready
while :; do sleep 0.05; done
"""


class Local(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="belay-local-")
        self.home = os.path.join(self.dir, "home")

    def tearDown(self):
        self.belay("down")
        shutil.rmtree(self.dir)

    def belay(self, *args, home=None, cwd=None, text=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith("BELAY_")}
        env["BELAY_HOME"] = home or self.home
        return subprocess.run([BELAY, *args], env=env, cwd=cwd or self.dir, input=text, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)

    def ok(self, *args, **more):
        done = self.belay(*args, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_home_may_be_relative(self):
        self.ok("up", home="home")
        self.assertIn("hello", self.ok("run", "echo", "hello"))

    def test_home_too_long_for_a_socket_is_refused_with_what_to_do(self):
        done = self.belay("up", home=os.path.join(self.dir, "x" * 100))
        self.assertEqual(done.returncode, 1)
        self.assertIn("set BELAY_HOME", done.stderr)

    def test_up_tells_why_belayd_did_not_start(self):
        config = os.path.join(self.dir, "belayd.yaml")
        with open(config, "w") as f:
            f.write("clutser: x\n")
        done = self.belay("up", "--config", config)
        self.assertEqual(done.returncode, 1)
        self.assertIn("clutser", done.stderr)

    def test_wait_tells_why_a_job_could_not_start(self):
        self.ok("up")
        done = self.belay("submit", "--wait", "-D", "/no/such/place", text="#!/bin/sh\n")
        self.assertEqual(done.returncode, 126)
        self.assertIn("/no/such/place", done.stderr)

    def test_a_program_that_fails_speaks_for_itself(self):
        self.ok("up")
        done = self.belay("submit", "--wait", text="#!/bin/sh\nexit 3\n")
        self.assertEqual((done.returncode, done.stderr), (3, ""))

    def test_down_waits_for_the_save_however_long_the_queue(self):
        self.ok("up")
        job = self.ok("submit", text=SAVES_LATE).split()[-1]
        for _ in range(2000):
            if "ready" in self.ok("logs", job):
                break
        for _ in range(210):
            self.ok("submit", "-c", "4000", text="#!/bin/sh\n")
        self.ok("down")
        self.ok("up")
        shown = json.loads(self.ok("show", "--json", job))
        self.assertEqual([a["end"] for a in shown["attempts"]][:1], ["drained"])
        self.assertEqual(len(shown["checkpoints"]), 1)


if __name__ == "__main__":
    unittest.main()
