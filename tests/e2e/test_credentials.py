# SPDX-License-Identifier: Apache-2.0
"""Nodes without rights to the store: belayd gives each job credentials for its own part."""

import re
import time
import unittest

import lab
from test_s3 import S3Lab


class JobLab(S3Lab):
    """A lab whose machines have no role: each job gets its own role session, of a few seconds."""

    life_s = 3

    def __init__(self, **belayd):
        super().__init__(
            pool={}, belayd={"lease": "20s", **belayd}, roles=["belay-jobs"], min_session_s=1
        )

    def provision(self, ports):
        return {
            **super().provision(ports),
            "store_sts": ports["ec2"],
            "store_role": "arn:aws:iam::111122223333:role/belay-jobs",
            "store_lifetime": "%ds" % self.life_s,
        }

    def sessions(self):
        return [r for r in self.state()["providers"]["aws"]["resources"] if r["type"] == "session"]

    def metric(self, name):
        found = re.search(
            "^%s (.*)$" % name, self.call("GET", "/metrics", root="")[1].decode(), re.M
        )
        return float(found[1])

    def made(self):
        return self.metric("belay_store_credentials_made_total")

    def wait_agent(self, pattern):
        """Waits until an agent has logged a line like this; belayd need not run."""

        def look():
            return any(
                re.search(pattern, text)
                for path, text in self.texts()
                if path.endswith((".console", "agent.log"))
            )

        end = time.monotonic() + lab.WAIT_S
        while not look():
            self.assert_in_time(end, pattern)
            time.sleep(0.05)  # there is nothing to wait on

    def assert_in_time(self, end, what):
        if time.monotonic() > end:
            raise AssertionError("not in time: %r" % what)


class Credentials(unittest.TestCase):
    def test_a_job_has_credentials_for_its_part_of_the_store_alone(self):
        with JobLab() as l:
            l.cloud({"refuse": {"action": "AssumeRole", "code": "AccessDenied"}})
            job = l.submit("chain.py", 2000, method="coop", every_ms=1000, keep=2)
            told = l.wait_event(job, "no-credentials")
            self.assertIn("sts:AssumeRole on store_role", told["text"])
            other = l.submit("chain.py", 5, method="coop")
            l.wait_ended(other)
            l.wait_event(job, "saved")
            for session in l.sessions():
                prefix = "lab/e2e/jobs/%s/" % re.fullmatch(r"belay-(\d+)\.1@e2e", session["id"])[1]
                objects, names = session["policy"]
                self.assertEqual(objects["Resource"], "arn:aws:s3:::jobs/%s*" % prefix)
                self.assertEqual(names["Condition"], {"StringLike": {"s3:prefix": prefix + "*"}})
            self.assertIn("belay-%d.1@e2e" % job, [s["id"] for s in l.sessions()])
            made = l.made()
            l.wait(lambda: l.made() >= made + 1, "a renewal")  # while it continues to save
            l.wait(
                lambda: all(s["id"] == "belay-%d.1@e2e" % job for s in l.sessions()),
                "none for what has ended",
            )

            l.kill_belayd()  # the job's credentials work until they expire
            # A cleaning may be refused before a save is, and reports no event.
            l.wait_agent(b"a save failed.*with the credentials that belayd gave for this job")
            l.up()
            l.wait_event(job, "save-failed")
            saved = l.wait_event(job, "saved", 1 + l.kinds(job).count("saved"))
            self.assertEqual(saved["attempt"], 1)

            l.kill_belayd()  # a reclaim while belayd is away: the save does not wait for it
            l.cloud(
                {"reclaim": {"instance": l.state()["instances"][-1]["instance"], "notice_s": 3}}
            )
            l.wait_cloud(
                lambda state: state["instances"][-1]["state"] == "terminated", "the machine is gone"
            )
            l.up()
            l.wait_event(job, "started", 2)
            shown = l.show(job)
            self.assertEqual(shown["attempts"][1]["restored"]["attempt"], 1)
            l.wait_event(job, "saved", 1 + l.kinds(job).count("saved"))
            self.assertEqual([path for path, text in l.texts() if b"ASIA" in text], [])
            l.post("/jobs/%d/cancel" % job)
            l.wait_ended(job)


if __name__ == "__main__":
    unittest.main()
