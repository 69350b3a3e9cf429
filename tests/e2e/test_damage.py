# SPDX-License-Identifier: Apache-2.0
"""A checkpoint damaged in the store: the previous one is used, and the damage is reported."""

import json
import os
import unittest

from lab import Lab, undisturbed

STEPS = 250  # of 20 ms


class Damage(unittest.TestCase):
    def run_with_damage(self, l, damage, goes_on=None):
        """Runs a job that saves three times and loses its machine; damages the store before it gets
        another one. goes_on: action that lets it continue. Returns its last attempt.
        """
        job = l.submit("chain.py", STEPS, method="coop", every_ms=1000)
        l.wait_event(job, "saved", 3)
        l.cloud(
            [
                {
                    "refuse": {
                        "action": "RunInstances",
                        "code": "InsufficientInstanceCapacity",
                        "count": 1000,
                    }
                },
                {"reclaim": {"instance": l.instance_of(job), "without_notice": True}},
            ]
        )
        l.wait_event(job, "requeued")
        kept = l.manifests(job)
        self.assertEqual(len(kept), 3)
        damage(l, job, kept)
        l.cloud({"clear": {}})
        if goes_on:
            goes_on(l, job)
        shown = l.wait_ended(job)
        self.assertEqual(shown["job"]["end"], "succeeded")
        self.assertTrue(undisturbed("chain.py", STEPS, 0).endswith(l.log(job).split(" ----\n")[-1]))
        return shown["attempts"][-1], [e for e in l.events(job) if e["kind"] == "damaged"], kept

    def flip(self, path):
        os.chmod(path, 0o600)
        with open(path, "r+b") as f:
            f.seek(os.path.getsize(path) // 2)
            byte = f.read(1)[0]
            f.seek(-1, os.SEEK_CUR)
            f.write(bytes([byte ^ 1]))

    def flip_content(self, l, job, which):
        """Damages one byte of one object of a checkpoint: a pack, or a chunk of its own."""
        store = l.store_of(job)
        with open(os.path.join(store, "manifests", "%010d-%010d.json" % which)) as f:
            manifest = json.load(f)
        chunk = manifest["chunks"][0]
        if "pack" in chunk:
            chunk = manifest["packs"][chunk["pack"] - 1]
        self.flip(os.path.join(store, "chunks", "%010d" % which[0], chunk["sha256"]))

    def flip_manifest(self, l, job, which):
        self.flip(os.path.join(l.store_of(job), "manifests", "%010d-%010d.json" % which))

    def test_damaged_content_falls_back_to_the_one_before(self):
        with Lab() as l:
            attempt, told, kept = self.run_with_damage(
                l, lambda l, job, kept: self.flip_content(l, job, kept[-1])
            )
            self.assertEqual([e["a"] for e in told], [1])
            self.assertEqual(
                (attempt["restored"]["attempt"], attempt["restored"]["sequence"]), kept[-2]
            )

    def test_damaged_manifest_falls_back_to_the_one_before(self):
        with Lab() as l:
            attempt, told, kept = self.run_with_damage(
                l, lambda l, job, kept: self.flip_manifest(l, job, kept[-1])
            )
            self.assertEqual([e["a"] for e in told], [1])
            self.assertEqual(
                (attempt["restored"]["attempt"], attempt["restored"]["sequence"]), kept[-2]
            )

    def test_nothing_whole_left_is_held_until_its_work_is_given_up(self):
        def damage_all(l, job, kept):
            for which in kept:
                self.flip_content(l, job, which)

        def give_up(l, job):
            l.wait(lambda: l.job(job)["hold"] == "store", "job %d is held" % job)
            why = [
                r["text"] for r in l.get("/jobs/%d/why" % job)["reasons"] if r["code"] == "store"
            ]
            self.assertIn("no checkpoint left to resume from", why[0])
            l.belay("release", "--from-scratch", str(job))

        with Lab() as l:
            attempt, _, _ = self.run_with_damage(l, damage_all, give_up)
            self.assertIsNone(attempt["restored"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
