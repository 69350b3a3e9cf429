# SPDX-License-Identifier: Apache-2.0
"""Stored checkpoints through the API: listed, pinned, verified by belayd, plain and encrypted; what
is damaged, or another job's, is told apart from what is whole."""

import json
import os
import unittest

from lab import Lab, Refused


class StoredCheckpoints(unittest.TestCase):
    def listed(self, l, job):
        return l.get("/jobs/%d/checkpoints" % job)["checkpoints"]

    def verify(self, l, job, which):
        l.post("/jobs/%d/checkpoints/verify" % job, which)

        def look():
            v = l.get("/jobs/%d/checkpoints/verify" % job)["verifications"][0]
            return v if v["state"] not in ("waiting", "running") else None

        v = l.wait(look, "the end of the verification")
        self.assertEqual({k: v[k] for k in which}, which)
        return v

    def refused(self, status, fn, *args):
        with self.assertRaises(Refused) as caught:
            fn(*args)
        self.assertEqual(caught.exception.status, status)
        return str(caught.exception)

    def flip_content(self, l, job, which):
        """Damages one byte of one object of a checkpoint: a pack, or a chunk of its own."""
        store = l.store_of(job)
        name = "%010d-%010d.json" % (which["attempt"], which["sequence"])
        with open(os.path.join(store, "manifests", name)) as f:
            manifest = json.load(f)
        chunk = manifest["chunks"][0]
        if "pack" in chunk:
            chunk = manifest["packs"][chunk["pack"] - 1]
        path = os.path.join(store, "chunks", "%010d" % which["attempt"], chunk["sha256"])
        os.chmod(path, 0o600)
        with open(path, "r+b") as f:
            f.seek(os.path.getsize(path) // 2)
            byte = f.read(1)[0]
            f.seek(-1, os.SEEK_CUR)
            f.write(bytes([byte ^ 1]))

    def test_plain(self):
        with Lab() as l:
            job = l.submit("chain.py", 100, method="coop", every_ms=1000, keep=2)
            nothing = l.submit("chain.py", 1)
            l.wait_ended(nothing)
            self.assertEqual(self.listed(l, nothing), [])
            l.wait_event(job, "saved", 2)
            first = self.listed(l, job)[-1]
            which = {"attempt": first["attempt"], "sequence": first["sequence"]}
            self.assertFalse(first["pinned"])
            self.assertEqual(l.post("/jobs/%d/checkpoints/pin" % job, which), {})
            self.assertIn({**which, "pinned": True}, self.listed(l, job))
            l.wait_ended(job)
            self.assertIn({**which, "pinned": True}, self.listed(l, job))
            v = self.verify(l, job, which)
            self.assertEqual(
                (v["state"], v["text"], v["done_bytes"]), ("intact", "", v["total_bytes"])
            )
            self.assertGreater(v["total_bytes"], 0)
            newest = self.listed(l, job)[0]
            del newest["pinned"]
            self.flip_content(l, job, newest)
            v = self.verify(l, job, newest)
            self.assertEqual(v["state"], "damaged", v)
            l.post("/jobs/%d/checkpoints/unpin" % job, which)
            self.assertIn({**which, "pinned": False}, self.listed(l, job))
            self.check_refusals(l, job, which)

    def check_refusals(self, l, job, which):
        pin = "/jobs/%d/checkpoints/pin" % job
        missing = self.refused(404, l.post, pin, {"attempt": 9, "sequence": 9})
        self.assertIn("checkpoint 9.9 is not in the store", missing)
        self.assertNotIn(l.store_of(job), missing)
        for body in (
            {},
            {"attempt": 0, "sequence": 1},
            {**which, "path": "/etc"},
            {"attempt": "1"},
        ):
            self.refused(400, l.post, pin, body)
        v = self.verify(l, job, {"attempt": 9, "sequence": 9})
        self.assertEqual(v["state"], "failed")
        self.assertEqual(v["text"], "checkpoint 9.9 is not in the store")
        with open(os.path.join(l.store_of(job), "identity"), "a") as f:
            f.write("x")
        self.assertIn("different job", self.refused(409, self.listed, l, job))
        self.refused(409, l.post, pin, which)
        v = self.verify(l, job, which)
        self.assertEqual(v["state"], "failed")
        self.assertIn("different job", v["text"])

    def test_encrypted(self):
        with Lab(belayd={"encryption": "client"}) as l:
            job = l.submit("chain.py", 100, method="coop", every_ms=1000)
            l.wait_ended(job)
            which = self.listed(l, job)[0]
            del which["pinned"]
            self.assertEqual(self.verify(l, job, which)["state"], "intact")
            l.post("/jobs/%d/checkpoints/pin" % job, which)
            self.assertTrue(self.listed(l, job)[0]["pinned"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
