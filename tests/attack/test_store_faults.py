# SPDX-License-Identifier: Apache-2.0
"""A store that answers badly: it refuses at a restore, has no bucket any more, tears its replies, is full, or only reads.
No job ends for it, nothing that is good is set aside, nothing is said thirty times, and no rented machine waits for ever."""

import re
import unittest

import lab
from test_credentials import JobLab
from test_s3 import S3Lab

STEPS = 400  # of 20 ms
ACTIONS = ("PutObject", "GetObject", "HeadObject", "ListObjectsV2")
STATE_BYTES = 1 << 20  # of a checkpoint, new each time
COMMITS = 30

# Commits at its every step, whatever becomes of it, when it may.
COMMITTER = """\
#!/bin/sh
cd "$BELAY_CONTROL_DIR"
k=1
while [ $k -le %d ]; do
  head -c 1000 /dev/urandom >"$BELAY_CHECKPOINT_DIR/state"
  echo '{}' >c; mv c commit.$k
  while [ ! -e result.$k ]; do sleep 0.02; done
  cat result.$k; echo
  k=$((k+1))
done
echo all $k
sleep 1000
""" % COMMITS


class Faulty(S3Lab):
    def __init__(self, **more):
        super().__init__(belayd={"store_wait": "5s"}, **more)

    def refuse(self, code, actions=ACTIONS):
        self.cloud([{"refuse": {"action": a, "code": code, "count": 100000}} for a in actions])

    def reasons(self, job):
        return {r["code"]: r["text"] for r in self.get("/jobs/%d/why" % job)["reasons"]}


class StoreFaults(unittest.TestCase):
    def check_given_back(self, l):
        l.wait_cloud(lab.nothing_is_left, "the machine of a job that is held is given back")

    def test_a_store_that_refuses_at_a_restore_holds_the_job_and_gives_the_machine_back(self):
        with Faulty() as l:
            job = l.submit("chain.py", STEPS, method="coop", every_ms=1000)
            l.wait_event(job, "saved", 2)
            l.refuse("NoSuchBucket")
            l.cloud({"reclaim": {"instance": l.instance_of(job), "without_notice": True}})

            # A bucket that is gone: another node would not find it either.
            told = l.wait_event(job, "store-refused")
            self.assertIn("there is no bucket jobs", told["text"])
            l.wait_event(job, "held")
            shown = l.show(job)
            self.assertEqual((shown["job"]["state"], shown["job"]["hold"]), ("pending", "store"))
            self.assertEqual(shown["attempts"][-1]["end"], "store")
            reason = self.reason_of(l, job, "store")
            self.assertIn("there is no bucket jobs", reason)
            self.assertIn("belay release %d" % job, reason)
            self.check_given_back(l)

            # The rights are gone: it may be this node's alone.
            l.cloud({"clear": {}})
            l.refuse("AccessDenied")
            l.post("/jobs/%d/release" % job)
            l.wait(lambda: "store-refused" in l.reasons(job), "belay why says that the store refuses")
            self.assertIn("403", l.reasons(job).get("store-refused", "403"))
            l.wait(lambda: l.show(job)["attempts"][-1]["end"] == "store-away", "the attempt ends for its store")
            shown = l.show(job)
            self.assertEqual((shown["job"]["state"], shown["job"]["hold"]), ("pending", "none"))
            self.assertIn("AccessDenied", shown["attempts"][-1]["text"])

            # It answers again, with a list and a manifest that were damaged on their way.
            l.cloud([{"clear": {}},
                     {"drop_reply": {"action": "ListObjectsV2", "how": "garbage", "count": 2}},
                     {"drop_reply": {"action": "GetObject", "how": "garbage", "count": 3}}])
            shown = l.wait_ended(job)
            self.assertEqual((shown["job"]["end"], shown["job"]["exit_code"]), ("succeeded", 0))
            last = shown["attempts"][-1]
            self.assertEqual(last["restored"]["attempt"], 1)
            self.assertGreater(last["restored_progress"], 0)
            self.assertNotIn("damaged", l.kinds(job))
            self.assertEqual([k for k in l.objects() if "/damaged/" in k], [])

    def reason_of(self, l, job, code):
        reasons = l.reasons(job)
        self.assertIn(code, reasons)
        return reasons[code]

    def test_a_full_store_and_one_that_only_reads(self):
        with Faulty(s3={"buckets": ["jobs"], "quota_bytes": int(3.6 * STATE_BYTES)}) as l:
            job = l.submit("chain.py", 10 * STEPS, "0.02", STATE_BYTES, method="coop", every_ms=1000, keep=3)
            l.wait_event(job, "saved", 6)
            self.assertNotIn("save-failed", l.kinds(job))
            l.post("/jobs/%d/cancel" % job)
            l.wait_ended(job)
            l.refuse("AccessDenied", ("PutObject",))
            job = l.submit(l.write("commits.sh", COMMITTER, 0o755), method="coop", every_ms=3600000)
            l.wait_event(job, "store-refused")  # its fence
            l.cloud({"clear": {}})
            l.wait_log(job, '"ok":true')
            l.refuse("AccessDenied", ("PutObject",))
            l.wait_log(job, "^all ")
            refused = len(re.findall('"ok":false', l.log(job)))
            self.assertGreater(refused, 5)
            self.assertEqual(l.kinds(job).count("save-failed"), 1)
            l.post("/jobs/%d/cancel" % job)

    def test_a_job_that_belayd_can_make_no_credentials_for_gives_its_machine_back(self):
        """Its agent never hears of the attempt: nobody but belayd can end it."""
        with JobLab(store_wait="30s") as l:  # a fifth of it, for it is refused
            refuse = {"refuse": {"action": "AssumeRole", "code": "AccessDenied", "count": 100000}}
            l.cloud(refuse)
            job = l.submit("chain.py", 5, method="coop")
            cure = "needs sts:AssumeRole on store_role"
            self.assertIn(cure, l.wait_event(job, "store-refused")["text"])
            reasons = {r["code"]: r["text"] for r in l.get("/jobs/%d/why" % job)["reasons"]}
            self.assertIn(cure, reasons["store-refused"])
            l.kill_belayd()  # it is not forgotten
            l.up()
            l.wait_event(job, "held")
            shown = l.show(job)
            self.assertEqual((shown["job"]["state"], shown["job"]["hold"]), ("pending", "store"))
            self.assertEqual([a["end"] for a in shown["attempts"]], ["store-away", "store-away", "store"])
            self.assertIn(cure, shown["attempts"][-1]["text"])
            why = [r["text"] for r in l.get("/jobs/%d/why" % job)["reasons"] if r["code"] == "store"]
            self.assertIn("belay release %d" % job, why[0])
            self.check_given_back(l)
            l.cloud({"clear": {}})
            l.post("/jobs/%d/release" % job)
            self.assertEqual(l.wait_ended(job)["job"]["end"], "succeeded")

    def test_a_job_that_waits_for_its_credentials_is_cancelled_at_once(self):
        with JobLab() as l:
            l.cloud({"refuse": {"action": "AssumeRole", "code": "AccessDenied", "count": 100000}})
            job = l.submit("chain.py", 5, method="coop")
            l.wait_event(job, "no-credentials")
            l.post("/jobs/%d/cancel" % job)
            self.assertEqual(l.wait_ended(job)["job"]["end"], "user")


if __name__ == "__main__":
    unittest.main(verbosity=2)
