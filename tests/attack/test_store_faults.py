# SPDX-License-Identifier: Apache-2.0
"""A store with faults: it refuses a restore, its bucket is gone, it truncates replies, is full, or
read-only. No job ends because of it, no intact checkpoint is set aside, no message is repeated
thirty times, and no rented machine waits for ever."""

import contextlib
import ctypes
import os
import re
import socket
import subprocess
import tempfile
import threading
import unittest

import lab
from test_credentials import JobLab
from test_s3 import S3Lab
from test_tokens import TokenLab

STEPS = 400  # of 20 ms
ACTIONS = ("PutObject", "GetObject", "HeadObject", "ListObjectsV2")
STATE_BYTES = 1 << 20  # of a checkpoint, new each time
COMMITS = 30

# Commits at every step when allowed, whatever the result.
COMMITTER = (
    """\
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
"""
    % COMMITS
)


LIBC = ctypes.CDLL(None, use_errno=True)
MS_NOSUID_NODEV, MNT_DETACH = 2 | 4, 2


class Hanging:
    """A mount over a directory whose server does not answer: each access waits until close()."""

    def __init__(self, path):
        self.path = path.encode()
        self.server = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % self.server
        if LIBC.mount(b"hanging", self.path, b"fuse", MS_NOSUID_NODEV, options) != 0:
            error = ctypes.get_errno()
            os.close(self.server)
            raise OSError(error, os.strerror(error))

    def close(self):
        LIBC.umount2(self.path, MNT_DETACH)
        os.close(self.server)  # ends what waits


def why_no_hanging():
    with tempfile.TemporaryDirectory() as d:
        try:
            Hanging(d).close()
        except OSError as error:
            return "no FUSE mount can be made: %s" % error
    return None


WHY_NO_HANGING = why_no_hanging()


class Faulty(S3Lab):
    def __init__(self, **more):
        super().__init__(belayd={"store_wait": "5s"}, **more)

    def refuse(self, code, actions=ACTIONS):
        self.cloud([{"refuse": {"action": a, "code": code, "count": 100000}} for a in actions])


class Listener:
    """Accepts connections, and keeps the first bytes of each."""

    def __init__(self):
        self.heard = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d/token" % self.socket.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                s, _ = self.socket.accept()
            except OSError:  # closed
                return
            with s:
                s.settimeout(5)
                try:
                    self.heard.append(s.recv(4096))
                except OSError:
                    self.heard.append(b"")


class ForeignTokens(TokenLab):
    """Nodes take their Google credentials from the file of foreign(), once it exists; belayd has
    its own."""

    def __init__(self):
        super().__init__("gs", False)
        self.belayd_config["store_wait"] = "5s"
        self.agent_prelude += 'key="$(dirname "$0")/../google.json"\n[ ! -e "$key" ] || export GOOGLE_APPLICATION_CREDENTIALS="$key"\n'

    def foreign(self, url):
        pem = subprocess.run(
            ["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ).stdout
        return self.write(
            "google.json",
            {
                "type": "service_account",
                "client_email": "node@lab.iam.gserviceaccount.com",
                "private_key_id": "k1",
                "private_key": pem,
                "token_uri": url,
            },
        )


class StoreFaults(unittest.TestCase):
    def check_given_back(self, l):
        l.wait_cloud(lab.nothing_is_left, "the machine of a job that is held is given back")

    def test_a_store_that_refuses_at_a_restore_holds_the_job_and_gives_the_machine_back(self):
        with Faulty() as l:
            job = l.submit("chain.py", STEPS, method="coop", every_ms=1000)
            l.wait_event(job, "saved", 2)
            l.refuse("NoSuchBucket")
            l.cloud({"reclaim": {"instance": l.instance_of(job), "without_notice": True}})

            # The bucket is gone: another node would not find it either.
            event = l.wait_event(job, "store-refused")
            self.assertIn("there is no bucket jobs", event["text"])
            l.wait_event(job, "held")
            shown = l.show(job)
            self.assertEqual((shown["job"]["state"], shown["job"]["hold"]), ("pending", "store"))
            self.assertEqual(shown["attempts"][-1]["end"], "store")
            reason = self.reason_of(l, job, "store")
            self.assertIn("there is no bucket jobs", reason)
            self.assertIn("belay release %d" % job, reason)
            self.check_given_back(l)

            # The rights are gone: perhaps only this node's, so another one is tried, but not for
            # ever.
            l.cloud({"clear": {}})
            l.refuse("AccessDenied")
            l.post("/jobs/%d/release" % job)
            self.assertRegex(
                self.wait_reason(l, job, "store-refused"),
                r"cannot use the store .*(403|AccessDenied)",
            )
            l.wait(
                lambda: l.show(job)["attempts"][-1]["end"] == "store-away",
                "the attempt ends for its store",
            )
            shown = l.show(job)
            self.assertEqual((shown["job"]["state"], shown["job"]["hold"]), ("pending", "none"))
            self.assertIn("AccessDenied", shown["attempts"][-1]["text"])
            l.wait_event(job, "held", 2)
            shown = l.show(job)
            self.assertEqual((shown["job"]["state"], shown["job"]["hold"]), ("pending", "store"))
            self.assertEqual(
                [a["end"] for a in shown["attempts"][-3:]], ["store-away", "store-away", "store"]
            )
            self.check_given_back(l)

            # It answers again, with a list and a manifest that were damaged in transit.
            l.cloud(
                [
                    {"clear": {}},
                    {"drop_reply": {"action": "ListObjectsV2", "how": "garbage", "count": 2}},
                    {"drop_reply": {"action": "GetObject", "how": "garbage", "count": 3}},
                ]
            )
            l.post("/jobs/%d/release" % job)
            shown = l.wait_ended(job)
            self.assertEqual((shown["job"]["end"], shown["job"]["exit_code"]), ("succeeded", 0))
            last = shown["attempts"][-1]
            self.assertEqual(last["restored"]["attempt"], 1)
            self.assertGreater(last["restored_progress"], 0)
            self.assertNotIn("damaged", l.kinds(job))
            self.assertEqual([k for k in l.list_keys() if "/damaged/" in k], [])

    def test_an_expired_token_at_an_attempt_costs_it_and_no_work(self):
        with Faulty() as l:
            job = l.submit("chain.py", STEPS, method="coop", every_ms=1000)
            l.wait_event(job, "saved", 2)
            l.refuse("ExpiredToken")
            l.cloud({"reclaim": {"instance": l.instance_of(job), "without_notice": True}})
            self.assertIn("ExpiredToken", l.wait_event(job, "store-refused")["text"])
            self.assertIn("ExpiredToken", self.wait_reason(l, job, "store-refused"))
            l.wait(
                lambda: l.show(job)["attempts"][-1]["end"] == "store-away",
                "the attempt ends for its store",
            )
            self.assertIn("ExpiredToken", l.show(job)["attempts"][-1]["text"])
            l.cloud({"clear": {}})
            shown = l.wait_ended(job)
            self.assertEqual((shown["job"]["end"], shown["job"]["exit_code"]), ("succeeded", 0))
            self.assertGreater(shown["attempts"][-1]["restored_progress"], 0)

    def test_credentials_that_name_another_host_hold_the_job_and_go_nowhere(self):
        listener = Listener()
        self.addCleanup(listener.socket.close)
        with ForeignTokens() as l:
            job = l.submit("chain.py", STEPS, method="coop", every_ms=1000)
            l.wait_event(job, "saved", 2)
            l.foreign(listener.url)
            l.cloud({"reclaim": {"instance": l.instance_of(job), "without_notice": True}})
            l.wait(lambda: listener.heard or "held" in l.kinds(job), "the job is held")
            self.assertEqual(listener.heard, [])
            shown = l.show(job)
            self.assertEqual((shown["job"]["state"], shown["job"]["hold"]), ("pending", "store"))
            self.assertIn(
                "sent nowhere else", shown["attempts"][-1]["text"]
            )  # its start may be cut off
            self.assertLessEqual({a["end"] for a in shown["attempts"][1:]}, {"store", "store-away"})
            self.assertIn("sent nowhere else", self.reason_of(l, job, "store"))
            self.check_given_back(l)
            self.assertEqual(listener.heard, [])
            self.assertEqual(l.leaks(b"assertion="), [])

            # After the repair it continues where it was.
            os.unlink(os.path.join(l.dir, "google.json"))
            l.post("/jobs/%d/release" % job)
            shown = l.wait_ended(job)
            self.assertEqual((shown["job"]["end"], shown["job"]["exit_code"]), ("succeeded", 0))
            self.assertGreater(shown["attempts"][-1]["restored_progress"], 0)
            self.assertEqual(listener.heard, [])

    def reasons(self, l, job):
        return {r["code"]: r["text"] for r in l.get("/jobs/%d/why" % job)["reasons"]}

    def wait_reason(self, l, job, code):
        """Waits for the text of `belay why`."""
        return l.wait(lambda: self.reasons(l, job).get(code), "belay why says %s" % code)

    def reason_of(self, l, job, code):
        reasons = self.reasons(l, job)
        self.assertIn(code, reasons)
        return reasons[code]

    def test_a_full_store_and_one_that_only_reads(self):
        with Faulty(s3={"buckets": ["jobs"], "quota_bytes": int(3.6 * STATE_BYTES)}) as l:
            job = l.submit(
                "chain.py", 10 * STEPS, "0.02", STATE_BYTES, method="coop", every_ms=1000, keep=3
            )
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
        """The agent never receives the attempt: only belayd can end it."""
        with JobLab(store_wait="30s") as l:  # a fifth of it, because the store refuses
            refuse = {"refuse": {"action": "AssumeRole", "code": "AccessDenied", "count": 100000}}
            l.cloud(refuse)
            job = l.submit("chain.py", 5, method="coop")
            cure = "needs sts:AssumeRole on store_role"
            self.assertIn(cure, l.wait_event(job, "store-refused")["text"])
            reasons = {r["code"]: r["text"] for r in l.get("/jobs/%d/why" % job)["reasons"]}
            self.assertIn(cure, reasons["store-refused"])
            l.kill_belayd()  # belayd remembers it
            l.up()
            l.wait_event(job, "held")
            shown = l.show(job)
            self.assertEqual((shown["job"]["state"], shown["job"]["hold"]), ("pending", "store"))
            self.assertEqual(
                [a["end"] for a in shown["attempts"]], ["store-away", "store-away", "store"]
            )
            self.assertIn(cure, shown["attempts"][-1]["text"])
            why = [
                r["text"] for r in l.get("/jobs/%d/why" % job)["reasons"] if r["code"] == "store"
            ]
            self.assertIn("belay release %d" % job, why[0])
            self.check_given_back(l)
            l.cloud({"clear": {}})
            l.post("/jobs/%d/release" % job)
            self.assertEqual(l.wait_ended(job)["job"]["end"], "succeeded")

    @unittest.skipIf(WHY_NO_HANGING, WHY_NO_HANGING)
    def test_a_store_that_does_not_answer_costs_no_machine_for_ever(self):
        """A directory on a mount whose server is gone: calls do not fail, they never return."""
        with lab.Lab(belayd={"store_wait": "5s"}) as l:
            job = l.submit("chain.py", STEPS, method="coop", every_ms=1000)
            l.wait_event(job, "saved")
            l.post("/jobs/%d/hold" % job)
            l.post("/jobs/%d/requeue" % job)
            l.wait(lambda: l.job(job)["state"] == "pending", "job %d waits" % job)
            with contextlib.closing(Hanging(os.path.join(l.home, "store"))):
                self.check_silence(l, job)

    @unittest.skipIf(WHY_NO_HANGING, WHY_NO_HANGING)
    def test_a_store_that_does_not_answer_a_save_keeps_no_job_from_its_end(self):
        with lab.Lab(belayd={"store_wait": "5s"}) as l:
            short = l.submit("chain.py", 250, method="coop", every_ms=1000)
            stopped = l.submit("chain.py", 100 * STEPS, method="coop", every_ms=1000)
            for job in short, stopped:
                l.wait_event(job, "saved")
            with contextlib.closing(Hanging(os.path.join(l.home, "store"))):
                for job in short, stopped:
                    self.assertIn("has not answered", l.wait_event(job, "save-failed")["text"])
                self.assertEqual(l.job(stopped)["state"], "running")
                l.post("/jobs/%d/cancel" % stopped)
                self.assertEqual(l.wait_ended(short)["job"]["end"], "succeeded")
                self.assertEqual(l.wait_ended(stopped)["job"]["end"], "cancelled")
                self.check_given_back(l)

    def check_silence(self, l, job):
        l.post("/jobs/%d/release" % job)
        self.assertIn("has not answered", l.wait_event(job, "store-refused")["text"])
        self.assertIn("has not answered", self.wait_reason(l, job, "store-refused"))
        l.wait(
            lambda: l.show(job)["attempts"][-1]["end"] == "store-away",
            "the attempt ends for its store",
        )
        self.assertIn("its server may be away", l.show(job)["attempts"][-1]["text"])

        # A cancel need not wait for the server either.
        l.wait(
            lambda: l.show(job)["attempts"][-1]["state"] == "assigned",
            "the job is tried on another node",
        )
        l.post("/jobs/%d/cancel" % job)
        self.assertEqual(l.wait_ended(job)["job"]["end"], "cancelled")
        self.check_given_back(l)

    def test_a_job_that_waits_for_its_credentials_is_cancelled_at_once(self):
        with JobLab() as l:
            l.cloud({"refuse": {"action": "AssumeRole", "code": "AccessDenied", "count": 100000}})
            job = l.submit("chain.py", 5, method="coop")
            l.wait_event(job, "no-credentials")
            l.post("/jobs/%d/cancel" % job)
            self.assertEqual(l.wait_ended(job)["job"]["end"], "cancelled")


if __name__ == "__main__":
    unittest.main(verbosity=2)
