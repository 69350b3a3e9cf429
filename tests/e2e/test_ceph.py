# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in Ceph's S3, a third-party server: a job is reclaimed, resumed and its checkpoints
are removed. Skipped where Ceph is not installed (scripts/setup real)."""

import json
import os
import re
import sys
import unittest

from lab import Lab, undisturbed

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import s3server

STEPS = 200  # of 20 ms
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


class CephLab(Lab):
    """The nodes and belayd have the keys in their environment; belayd uses the same ones for the
    cloud."""

    def __init__(self, server):
        self.server = server
        access, secret = (server.env[k] for k in KEYS)
        super().__init__(
            cloud={"keys": [{"access_key": access, "secret_key": secret}]},
            agent_prelude="".join("export %s=%s\n" % (k, server.env[k]) for k in KEYS),
        )

    def provision(self, ports):
        self.env.update({k: self.server.env[k] for k in KEYS})
        return {**super().provision(ports), "store": self.server.url.replace("?", "/lab?")}


class Ceph(unittest.TestCase):
    def test_a_reclaimed_job_goes_on_from_its_checkpoint_in_ceph(self):
        with s3server.start("ceph") as server, CephLab(server) as l:
            job = l.submit(
                "chain.py",
                STEPS,
                checkpoint={"method": "coop", "every_ms": 1000, "keep": 2, "after": "last"},
            )
            l.wait_log(job, r"^step 60 ")
            l.cloud({"reclaim": {"instance": l.instance_of(job), "notice_s": 8}})
            shown = l.wait_ended(job)
            self.assertEqual(shown["job"]["end"], "succeeded")
            first, second = shown["attempts"]
            self.assertEqual([first["end"], second["end"]], ["reclaimed", "succeeded"])
            saved = next(c for c in shown["checkpoints"] if c["attempt"] == 1)  # newest first
            self.assertEqual(saved["cause"], "notice")
            self.assertEqual(second["restored"], {"attempt": 1, "sequence": saved["sequence"]})
            self.assertEqual(shown["job"]["lost_steps"], 0)
            self.assertEqual(l.said(job), undisturbed("chain.py", STEPS, 0))
            l.wait(lambda: l.show(job)["leftover"]["state"] == "done", "belayd has cleaned")
            left = json.loads(l.belay("checkpoint", "--json", "list", str(job)))["checkpoints"]
            self.assertEqual(len(left), 1)
            l.belay("checkpoint", "verify", str(job))
            listed = s3server.run(
                "aws",
                "--endpoint-url",
                server.endpoint,
                "s3",
                "ls",
                "--recursive",
                "s3://jobs/",
                env={**os.environ, **server.env},
            )
            self.assertEqual(len(re.findall("/manifests/", listed)), 1)
            self.assertEqual(re.findall("/removing/", listed), [])


if __name__ == "__main__":
    try:
        s3server.start("ceph").close()
    except s3server.Missing as e:
        print("skipped: %s" % e)
        sys.exit(s3server.SKIPPED)
    unittest.main()
