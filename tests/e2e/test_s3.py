# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in S3: the nodes have a role and no directory that they share; the job is reclaimed and resumed though the
store fails now and then."""

import json
import os
import re
import unittest

import lab
from lab import Lab, undisturbed

STEPS = 250  # of 20 ms
CALLS = ["PutObject", "GetObject", "ListObjectsV2", "DeleteObjects"]


class S3Lab(Lab):
    """Its store is a bucket of the emulator's."""

    def __init__(self):
        super().__init__(cloud={"s3": {"buckets": ["jobs"]}}, pool={"iam_profile": "belay-node"})

    def provision(self, ports):
        self.env.update(AWS_ACCESS_KEY_ID=lab.ACCESS_KEY, AWS_SECRET_ACCESS_KEY=lab.SECRET_KEY)  # belayd's own
        return {**super().provision(ports), "store": "s3://jobs/lab?endpoint=" + ports["s3"]}

    def bucket(self):
        return [r for r in self.state()["providers"]["aws"]["resources"] if r["type"] == "bucket"][0]

    def texts(self):
        """What every process here wrote."""
        for folder, _, names in os.walk(self.dir):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and not name.endswith((".db", ".db-wal", ".db-shm")):
                    yield path, lab.read_bytes(path)


class S3(unittest.TestCase):
    def test_a_reclaimed_job_goes_on_from_its_checkpoint_in_s3(self):
        with S3Lab() as l:
            script = l.write("train.sh", "#!/bin/sh\necho \"keys: $(env | grep -c AWS_)\"\nexec %s %s/chain.py \"$@\"\n" % (
                lab.PYTHON, lab.JOBS), 0o755)
            job = l.submit(script, STEPS, checkpoint={"method": "coop", "every_ms": 1000, "keep": 2, "after": "last"})
            l.wait_log(job, r"^step 60 ")
            self.assertGreater(l.bucket()["objects"], 0)
            for call in CALLS:  # of the save, the restore and the cleaning
                l.cloud({"drop_reply": {"action": call}})
                l.cloud({"throttle": {"action": call}})
            l.cloud({"reclaim": {"instance": l.instance_of(job), "notice_s": 8}})
            shown = l.wait_ended(job)
            self.assertEqual(shown["job"]["end"], "succeeded")
            attempts = shown["attempts"]
            self.assertEqual([a["end"] for a in attempts], ["reclaimed", "succeeded"])
            saved = next(c for c in shown["checkpoints"] if c["attempt"] == 1)  # newest first
            self.assertEqual(saved["cause"], "notice")
            self.assertEqual(attempts[1]["restored"], {"attempt": 1, "sequence": saved["sequence"]})
            self.assertEqual(shown["job"]["lost_steps"], 0)
            log = l.log(job)
            steps = re.sub("^(---- belay: .* ----|keys: .*)\n", "", log, flags=re.M)
            self.assertEqual(steps, undisturbed("chain.py", STEPS, 0))
            self.assertEqual(re.findall("^keys: (.*)$", log, re.M), ["0", "0"])
            self.check_secrets(l)
            l.wait(lambda: l.show(job)["leftover"]["state"] == "done", "belayd has cleaned")
            left = json.loads(l.belay("checkpoint", "--json", "list", str(job)))["checkpoints"]
            self.assertEqual(len(left), 1)
            l.belay("checkpoint", "verify", str(job))

    def check_secrets(self, l):
        """The keys of the role are in nobody's words, nor in a file of the node's."""
        self.assertEqual([path for path, text in l.texts() if b"ASIA" in text], [])


if __name__ == "__main__":
    unittest.main()
