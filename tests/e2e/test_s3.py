# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in S3, encrypted: the nodes have a role and no shared directory; the job is reclaimed
and resumed although the store fails now and then."""

import contextlib
import datetime
import hashlib
import hmac
import json
import os
import re
import sys
import unittest
import urllib.parse
import urllib.request

import lab
from lab import JOBS, Lab, undisturbed

sys.path.insert(0, JOBS)
import ring  # noqa: E402

STEPS = 250  # of 20 ms
SLOW_STEPS = 450
SLOW_MS = 700  # a write takes
BULK = 9 << 20  # three pieces per checkpoint
RANKS = 3
CALLS = ["PutObject", "GetObject", "ListObjectsV2", "DeleteObjects"]


class S3Lab(Lab):
    """Its store is a bucket of the emulator."""

    def __init__(self, pool={"iam_profile": "belay-node"}, belayd=None, **cloud):
        super().__init__(cloud={"s3": {"buckets": ["jobs"]}, **cloud}, pool=pool, belayd=belayd)

    def provision(self, ports):
        self.env.update(
            AWS_ACCESS_KEY_ID=lab.ACCESS_KEY, AWS_SECRET_ACCESS_KEY=lab.SECRET_KEY
        )  # belayd's own
        self.s3 = ports["s3"]
        return {
            **super().provision(ports),
            "store": "s3://jobs/lab?endpoint=" + ports["s3"],
            "encryption": "required",
        }

    def s3_get(self, path, query=""):
        """A GET to S3, signed with belayd's credentials."""
        day = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        scope, nothing = day[:8] + "/us-east-1/s3/aws4_request", hashlib.sha256().hexdigest()
        host = self.s3.split("//")[1]
        headers = "host:%s\nx-amz-content-sha256:%s\nx-amz-date:%s\n" % (host, nothing, day)
        names = "host;x-amz-content-sha256;x-amz-date"
        canonical = "\n".join(("GET", path, query, headers, names, nothing))
        text = "AWS4-HMAC-SHA256\n%s\n%s\n%s" % (
            day,
            scope,
            hashlib.sha256(canonical.encode()).hexdigest(),
        )
        key = ("AWS4" + lab.SECRET_KEY).encode()
        for part in [*scope.split("/"), text]:
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        request = urllib.request.Request(
            "%s%s?%s" % (self.s3, path, query),
            headers={
                "x-amz-date": day,
                "x-amz-content-sha256": nothing,
                "Authorization": "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s"
                % (lab.ACCESS_KEY, scope, names, key.hex()),
            },
        )
        with urllib.request.urlopen(request, timeout=20) as reply:
            return reply.read()

    def list_keys(self):
        return re.findall("<Key>([^<]*)</Key>", self.s3_get("/jobs", "list-type=2").decode())

    def objects(self):
        """All objects of the bucket, by key. Nothing may be removed meanwhile."""
        return {key: self.s3_get("/jobs/" + urllib.parse.quote(key)) for key in self.list_keys()}

    def keys_of(self, job):
        """The master key, and the job's key derived from it."""
        text = lab.read_bytes(self.home + "/checkpoint.keys").decode()
        cluster, master = re.search("(?m)^cluster (.*)$", text).group(1), re.search(
            "(?m)^key (.*)$", text
        ).group(1)
        derived = hmac.new(
            bytes.fromhex(master), ("belay job %s %d" % (cluster, job)).encode(), hashlib.sha256
        )
        return master, derived.hexdigest()

    def bucket(self):
        return [r for r in self.state()["providers"]["aws"]["resources"] if r["type"] == "bucket"][
            0
        ]

    def texts(self):
        """The output of every process of the lab."""
        for folder, _, names in os.walk(self.dir):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    try:
                        text = lab.read_bytes(path)
                    except FileNotFoundError:  # its machine has ended meanwhile
                        continue
                    yield path, text


class S3(unittest.TestCase):
    def test_a_reclaimed_job_goes_on_from_its_checkpoint_in_s3(self):
        with S3Lab() as l:
            script = l.write(
                "train.sh",
                '#!/bin/sh\necho "keys: $(env | grep -c AWS_)"\nexec %s %s/chain.py "$@"\n'
                % (lab.PYTHON, lab.JOBS),
                0o755,
            )
            job = l.submit(
                script,
                STEPS,
                checkpoint={"method": "coop", "every_ms": 1000, "keep": 2, "after": "last"},
            )
            l.wait_log(job, r"^step 60 ")
            self.assertGreater(l.bucket()["objects"], 0)
            self.check_keys(l, job)
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
            self.check_keys(l, job)
            self.check_encrypted(l)
            l.wait(lambda: l.show(job)["leftover"]["state"] == "done", "belayd has cleaned")
            left = json.loads(l.belay("checkpoint", "--json", "list", str(job)))["checkpoints"]
            self.assertEqual(len(left), 1)
            l.belay("checkpoint", "verify", str(job))

    def test_a_job_goes_on_while_it_is_stored_and_resumes_from_what_is(self):
        """Writes are slow, so most of the time a checkpoint is accepted but not stored. A machine
        lost without notice loses what was not stored; with a notice nothing is lost."""
        with S3Lab() as l:
            job = l.submit("chain.py", SLOW_STEPS, "0.02", BULK, method="coop", every_ms=1000)
            l.wait_event(job, "saved")
            l.cloud({"slow": {"action": "PutObject", "ms": SLOW_MS, "count": 1000}})
            stored = l.wait(
                lambda: [c for c in l.show(job)["checkpoints"] if c["took_ms"] >= SLOW_MS],
                "a slow one is stored",
            )
            self.assertTrue(all(2 * c["pause_ms"] < c["took_ms"] for c in stored), stored)
            step = int(re.findall("(?m)^step ([0-9]+) ", l.log(job))[-1])
            l.wait_log(
                job, "^step %d " % (step + 60)
            )  # by now the next one is accepted, but not stored
            l.cloud({"reclaim": {"instance": l.instance_of(job), "notice_s": 0}})
            l.wait_event(job, "started", 2)
            first = self.resumed_from_the_newest(l, job, 2, untold=1)
            self.assertLess(first["progress"], step + 60)
            self.assertGreater(l.job(job)["lost_steps"], 0)
            lost = l.job(job)["lost_steps"]
            step = first["progress"] + 60
            self.wait_step(l, job, 2, step)
            l.cloud({"reclaim": {"instance": l.instance_of(job), "notice_s": 30}})
            l.wait_event(job, "started", 3)
            l.cloud({"clear": {}})
            self.assertEqual(self.resumed_from_the_newest(l, job, 3)["cause"], "notice")
            self.assertEqual(l.wait_ended(job)["job"]["end"], "succeeded")
            self.assertEqual(l.job(job)["lost_steps"], lost)
            self.assertEqual(
                l.log(job).splitlines()[-1], undisturbed("chain.py", SLOW_STEPS, 0).splitlines()[-1]
            )

    def test_a_gang_goes_on_while_it_is_stored_and_its_ranks_resume_from_the_same_step(self):
        with S3Lab() as l:
            job = l.submit(
                "ring.py",
                SLOW_STEPS,
                0.02,
                method="coop",
                every_ms=1000,
                nodes=RANKS,
                env={"RING_DIR": l.dir},
            )
            l.wait_event(job, "saved")
            l.cloud({"slow": {"action": "PutObject", "ms": SLOW_MS, "count": 1000}})
            stored = l.wait(
                lambda: [c for c in l.show(job)["checkpoints"] if c["took_ms"] >= SLOW_MS],
                "a slow one is stored",
            )
            self.assertTrue(all(2 * c["pause_ms"] < c["took_ms"] for c in stored), stored)
            step = int(re.findall("(?m)^step ([0-9]+) ", l.log(job))[-1])
            self.take_rank_away(l, job, 1, step + 60, 0)
            l.wait_event(job, "started", 2)
            lost = l.job(job)["lost_steps"]
            self.assertGreater(lost, 0)
            step = l.wait(
                lambda: l.show(job)["attempts"][-1]["restored_progress"],
                "the last rank is restored",
            )
            self.take_rank_away(l, job, 2, step + 60, 30)
            l.wait_event(job, "started", 3)
            l.cloud({"clear": {}})
            shown = l.wait_ended(job)
            self.assertEqual(
                (shown["job"]["end"], shown["job"]["lost_steps"]), ("succeeded", lost), l.log(job)
            )
            for number in 2, 3:
                restored = [a["restored"] for a in shown["attempts"] if a["attempt"] == number]
                self.assertEqual(
                    restored, [{"attempt": number - 1, "sequence": restored[0]["sequence"]}] * RANKS
                )
            for rank, value in enumerate(ring.undisturbed(SLOW_STEPS, RANKS)):
                text = l.belay("logs", "--rank", str(rank), str(job))
                self.assertEqual(re.findall("^ring (.*)$", text, re.M), [value])

    def wait_step(self, l, job, attempt, step):
        """Waits until an attempt is at the step; earlier attempts may not have reached it."""
        seam = "" if attempt == 1 else r"^---- belay: attempt %d (?s:.*?)" % attempt
        l.wait_log(job, seam + "^step %d " % step)

    def take_rank_away(self, l, job, rank, step, notice_s):
        """Waits until the newest attempt is at that step: by then its next checkpoint is accepted
        but not stored."""
        number = l.show(job)["attempts"][-1]["attempt"]
        self.wait_step(l, job, number, step)
        node = [a["node"] for a in l.show(job)["attempts"] if a["rank"] == rank][-1]
        machine = [
            i["provider_id"]
            for i in l.get("/instances?state=all")["instances"]
            if i["node"] == node
        ][0]
        l.cloud({"reclaim": {"instance": machine, "notice_s": notice_s}})

    def resumed_from_the_newest(self, l, job, attempt, untold=0):
        """untold: maximum number of further checkpoints in the store whose writes were not answered
        when the machine was lost.
        """
        shown = l.show(job)
        saved = next(c for c in shown["checkpoints"] if c["attempt"] == attempt - 1)  # newest first
        now = next(a for a in shown["attempts"] if a["attempt"] == attempt)
        self.assertEqual(now["restored"]["attempt"], attempt - 1)
        self.assertIn(
            now["restored"]["sequence"], range(saved["sequence"], saved["sequence"] + untold + 1)
        )
        return {"progress": now["restored_progress"], "cause": saved["cause"]}

    def check_secrets(self, l):
        """The role's keys are in no output, nor in a file of the node."""
        self.assertEqual(
            [path for path, text in l.texts() if b"ASIA" in text and ".db" not in path], []
        )

    def check_keys(self, l, job):
        """The keys of the checkpoints are only in belayd's key file: in no log, database, record,
        environment or argument."""
        for key in l.keys_of(job):
            for form in (key.encode(), bytes.fromhex(key)):
                self.assertEqual(
                    [
                        path
                        for path, text in l.texts()
                        if form in text and not path.endswith("/checkpoint.keys")
                    ],
                    [],
                )
            for pid in l.processes():
                for name in ("environ", "cmdline"):
                    with contextlib.suppress(OSError):  # it may have ended
                        self.assertNotIn(key.encode(), lab.read_bytes("/proc/%d/%s" % (pid, name)))

    def check_encrypted(self, l):
        """The bucket reveals nothing of what the job saved: no state, name or hash."""
        objects = {key: text for key, text in l.objects().items() if text}
        kinds = [key.split("/")[4] for key in objects if "/jobs/" in key]  # not the marker
        self.assertIn("chunks", kinds)
        self.assertIn("manifests", kinds)
        value, states = "start", []
        for step in range(1, STEPS + 1):
            value = hashlib.sha256(("%d %s" % (step, value)).encode()).hexdigest()
            states.append(b"%d %s\n" % (step, value.encode()))
        words = [b'"path"', b'"entries"', b"state"] + [s[:40] for s in states]
        words += [hashlib.sha256(s).hexdigest().encode() for s in states]
        for key, text in objects.items():
            self.assertEqual(
                [word for word in words if word in text or word in key.encode()], [], key
            )


if __name__ == "__main__":
    unittest.main()
