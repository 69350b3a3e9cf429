# SPDX-License-Identifier: Apache-2.0
"""The emulator's S3 and the stock `aws s3`. Skipped where there is none on the PATH (pip install awscli)."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

WAIT_S = 60
CONFIG = {
    "keys": [{"access_key": "AKIDEXAMPLE", "secret_key": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}],
    "pools": [{"zone": "us-east-1a", "type": "g6.xlarge", "spot": {"capacity": 1}}],
    "s3": {"buckets": ["jobs"]},
}


class S3Cli(unittest.TestCase):
    emulator = ""  # the program

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="belay-s3-cli.")
        self.addCleanup(shutil.rmtree, self.dir)
        config, ports = self.write("e.yaml", json.dumps(CONFIG).encode()), os.path.join(self.dir, "ports.json")
        process = subprocess.Popen([self.emulator, "--config", config, "--port-file", ports], stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait, WAIT_S)
        self.addCleanup(process.terminate)
        end = time.monotonic() + WAIT_S
        while not os.path.exists(ports):
            self.assertTrue(process.poll() is None and time.monotonic() < end, "the emulator did not start")
            time.sleep(0.02)
        with open(ports) as f:
            self.url = json.load(f)["s3"]

    def write(self, name, data):
        path = os.path.join(self.dir, name)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def aws(self, *args, secret=CONFIG["keys"][0]["secret_key"]):
        env = {"PATH": os.environ["PATH"], "HOME": self.dir, "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
               "AWS_SECRET_ACCESS_KEY": secret, "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}
        return subprocess.run(["aws", "--endpoint-url", self.url, "s3", *args], env=env, text=True, timeout=WAIT_S,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def ok(self, *args):
        done = self.aws(*args)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_files_go_and_come(self):
        content = os.urandom(9 << 20)  # in parts
        self.ok("cp", "--no-progress", self.write("large", content), "s3://jobs/x/large")
        self.assertRegex(self.ok("ls", "s3://jobs/x/"), r" %d large\n$" % len(content))
        back = os.path.join(self.dir, "back")
        self.ok("cp", "--no-progress", "s3://jobs/x/large", back)
        with open(back, "rb") as f:
            self.assertTrue(f.read() == content)
        self.ok("rm", "--recursive", "s3://jobs/")
        wrong = self.aws("ls", "s3://jobs/", secret="wrong")
        self.assertIn("SignatureDoesNotMatch", wrong.stdout)


if __name__ == "__main__":
    if not shutil.which("aws"):
        print("there is no `aws` on the PATH")
        sys.exit(77)
    S3Cli.emulator = sys.argv.pop(1)
    unittest.main()
