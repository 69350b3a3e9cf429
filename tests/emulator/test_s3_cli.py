# SPDX-License-Identifier: Apache-2.0
"""The emulator's S3 and the stock `aws s3`. Skipped where there is none on the PATH (pip install
awscli)."""

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
    "keys": [
        {"access_key": "AKIDEXAMPLE", "secret_key": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
    ],
    "pools": [{"zone": "us-east-1a", "type": "g6.xlarge", "spot": {"capacity": 1}}],
    "s3": {"buckets": ["jobs"]},
}


class S3Cli(unittest.TestCase):
    emulator = ""  # the program

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="belay-s3-cli.")
        self.addCleanup(shutil.rmtree, self.dir)
        config, ports = self.write("e.yaml", json.dumps(CONFIG).encode()), os.path.join(
            self.dir, "ports.json"
        )
        process = subprocess.Popen(
            [self.emulator, "--config", config, "--port-file", ports], stderr=subprocess.DEVNULL
        )
        self.addCleanup(process.wait, WAIT_S)
        self.addCleanup(process.terminate)
        end = time.monotonic() + WAIT_S
        while not os.path.exists(ports):
            self.assertTrue(
                process.poll() is None and time.monotonic() < end, "the emulator did not start"
            )
            time.sleep(0.02)
        with open(ports) as f:
            self.ports = json.load(f)

    def write(self, name, data):
        path = os.path.join(self.dir, name)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def aws(self, *args, service="s3", at="s3", **keys):
        """keys: further AWS_ variables."""
        env = {
            "PATH": os.environ["PATH"],
            "HOME": self.dir,
            "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": CONFIG["keys"][0]["secret_key"],
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            **keys,
        }
        return subprocess.run(
            ["aws", "--endpoint-url", self.ports[at], service, *args],
            env=env,
            text=True,
            timeout=WAIT_S,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def ok(self, *args, **more):
        done = self.aws(*args, **more)
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
        wrong = self.aws("ls", "s3://jobs/", AWS_SECRET_ACCESS_KEY="wrong")
        self.assertIn("SignatureDoesNotMatch", wrong.stdout)

    def test_a_session_may_what_its_policy_says(self):
        policy = {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Action": ["s3:GetObject", "s3:PutObject"],
                    "Resource": "arn:aws:s3:::jobs/mine/*",
                },
                {
                    "Effect": "Allow",
                    "Action": "s3:ListBucket",
                    "Resource": "arn:aws:s3:::jobs",
                    "Condition": {"StringLike": {"s3:prefix": "mine/*"}},
                },
            ],
        }
        role = [
            "assume-role",
            "--role-arn",
            "arn:aws:iam::111122223333:role/x",
            "--role-session-name",
            "me",
            "--policy",
        ]
        self.assertIn(
            "MalformedPolicyDocument", self.aws(*role, "{}", service="sts", at="ec2").stdout
        )
        keys = json.loads(self.ok(*role, json.dumps(policy), service="sts", at="ec2"))[
            "Credentials"
        ]
        mine = {
            "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
            "AWS_SESSION_TOKEN": keys["SessionToken"],
        }
        name = self.write("x", b"x")
        self.ok("cp", name, "s3://jobs/mine/x", **mine)
        self.assertIn("AccessDenied", self.aws("cp", name, "s3://jobs/other/x", **mine).stdout)
        self.assertIn(
            "InvalidToken",
            self.aws("ls", "s3://jobs/mine/", **{**mine, "AWS_SESSION_TOKEN": "other"}).stdout,
        )


if __name__ == "__main__":
    if not shutil.which("aws"):
        print("there is no `aws` on the PATH")
        sys.exit(77)
    S3Cli.emulator = sys.argv.pop(1)
    unittest.main()
