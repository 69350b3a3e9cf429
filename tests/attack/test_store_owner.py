# SPDX-License-Identifier: Apache-2.0
"""A store that was replaced: moved away, emptied, of another cluster, or with checkpoints of other
jobs with the same numbers. No job starts from scratch unless its user asks for it, and none resumes
from a checkpoint of another job."""

import os
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from lab import BUILD, WAIT_S, Lab, all_gone, nothing_is_left  # noqa: E402
from test_s3 import S3Lab  # noqa: E402

STEPS = 3000  # of 20 ms: longer than any wait of a test


def run_belayd(lab, state, config, *options):
    """Starts a second belayd that should end by itself. Returns its exit code and its log."""
    path = lab.write("other.yaml", {**lab.belayd_config, **config})
    done = subprocess.run(
        [BUILD + "/scheduler/belayd", "--config", path, "--state", state, *options],
        env=lab.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        timeout=WAIT_S,
    )
    return done.returncode, done.stdout


class StoreLab(Lab):
    @property
    def store(self):
        return os.path.join(self.home, "store")

    def begin(self):
        """A job that has saved, and then waits for its release, so that nothing uses the store."""
        job = self.submit("chain.py", STEPS, method="coop", every_ms=1000)
        self.wait_event(job, "saved")
        self.post("/jobs/%d/hold" % job)
        self.post("/jobs/%d/requeue" % job)
        self.wait(lambda: self.job(job)["state"] == "pending", "job %d waits" % job)
        return job

    def reasons(self, job):
        return {r["code"]: r["text"] for r in self.get("/jobs/%d/why" % job)["reasons"]}

    def wait_held(self, job):
        self.wait(lambda: self.job(job)["hold"] == "store", "job %d is held for its store" % job)
        return self.reasons(job)["store"]

    def down(self):
        pid = self.belayd_pid()
        os.kill(pid, signal.SIGTERM)
        if not all_gone([pid], WAIT_S):
            raise AssertionError("belayd does not end")

    def lose(self, *names):
        """Replaces the lab's state while belayd is down. Event numbers start again."""
        for name in os.listdir(self.home):
            if name.startswith(names):
                os.remove(os.path.join(self.home, name))
        self.seen = 0

    def end_job(self, job):
        self.post("/jobs/%d/cancel" % job)
        self.wait_ended(job)

    def belayd(self, state, config):
        return run_belayd(self, state, {"store": "file://" + self.store, **config})

    def content_of(self, job):
        """What the store has of it, except messages of its ranks: names and bytes."""
        found = {}
        for folder, _, names in os.walk(self.store_of(job)):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as f:
                    found[os.path.relpath(path, self.store_of(job))] = f.read()
        return found

    def marker(self):
        folder = os.path.join(self.store, self.belayd_config["cluster"], "owner")
        (name,) = os.listdir(folder)
        return os.path.join(folder, name)


class StoreOwner(unittest.TestCase):
    def check_away(self, lab):
        """It is tried on three nodes and then held, no agent creates anything, and it resumes when
        the store is back."""
        job = lab.begin()
        saved = lab.job(job)["last_checkpoint"]
        os.rename(lab.store, lab.store + ".away")
        lab.post("/jobs/%d/release" % job)
        why = lab.wait_held(job)
        self.assertIn("no such directory", why)
        self.assertIn("belay release %d" % job, why)
        self.assertFalse(os.path.exists(lab.store))
        ends = [a["end"] for a in lab.show(job)["attempts"][1:]]
        self.assertEqual(ends, ["store-away", "store-away", "store"])
        os.rename(lab.store + ".away", lab.store)
        lab.post("/jobs/%d/release" % job)
        lab.wait_event(job, "started", 2)
        newest = lab.show(job)["attempts"][-1]
        self.assertEqual(newest["restored"], {k: saved[k] for k in ("attempt", "sequence")})
        return job

    def check_another_directory(self, lab, job):
        """An unmounted path is a directory of the local disk: a running job saves nothing there."""
        os.rename(lab.store, lab.store + ".away")
        os.mkdir(lab.store, 0o700)
        self.assertIn("no marker", lab.wait_event(job, "save-failed")["text"])
        self.assertEqual(os.listdir(lab.store), [])
        os.rmdir(lab.store)
        os.rename(lab.store + ".away", lab.store)
        lab.wait_event(job, "saved", 1 + lab.kinds(job).count("saved"))
        lab.end_job(job)

    def check_emptied(self, lab):
        """It starts from scratch only on request."""
        job = lab.begin()
        shutil.rmtree(lab.store_of(job))
        lab.post("/jobs/%d/release" % job)
        why = lab.wait_held(job)
        self.assertIn("is not in the store", why)
        self.assertIn("--from-scratch", why)
        self.assertEqual(lab.kinds(job).count("started"), 1)
        said = lab.belay("release", "--from-scratch", str(job))
        self.assertIn("starts again from the beginning", said)
        self.assertEqual(lab.wait_event(job, "started", 2)["text"], "started from the beginning")
        lab.wait_event(job, "saved", 1 + lab.kinds(job).count("saved"))
        lab.post("/jobs/%d/requeue" % job)
        self.assertIn("resumed at step", lab.wait_event(job, "started", 3)["text"])
        # A discarded checkpoint is not resumed from, although it exists.
        lab.belay("requeue", "--from-scratch", str(job))
        self.assertEqual(lab.wait_event(job, "started", 4)["text"], "started from the beginning")
        lab.end_job(job)

    def test_a_node_that_lacks_the_store_is_not_the_next_that_the_job_is_tried_on(self):
        with StoreLab() as lab:
            job = lab.begin()
            os.rename(lab.store, lab.store + ".away")
            lab.post("/jobs/%d/release" % job)
            lab.wait(
                lambda: lab.show(job)["attempts"][-1]["end"] == "store-away",
                "the attempt ends for its store",
            )
            self.assertEqual(lab.job(job)["hold"], "none")
            os.rename(lab.store + ".away", lab.store)
            lab.wait_event(job, "started", 2)
            first, away, last = lab.show(job)["attempts"]
            self.assertNotEqual(last["node"], away["node"])
            self.assertEqual(last["restored"]["attempt"], first["attempt"])
            self.assertNotIn("store", [e["end"] for e in (first, away, last)])
            lab.end_job(job)

    def test_no_work_is_begun_again_without_a_word(self):
        with StoreLab(belayd={"store_wait": "1s"}) as lab:
            job = self.check_away(lab)
            self.check_another_directory(lab, job)
            self.check_emptied(lab)

    def test_attempts_do_not_wait_for_ever_for_a_store_that_was_away_when_belayd_started(self):
        with StoreLab(belayd={"store_wait": "2s"}) as lab:
            job = lab.begin()
            saved = lab.job(job)["last_checkpoint"]
            lab.down()
            os.rename(lab.store, lab.store + ".away")
            lab.up()
            lab.post("/jobs/%d/release" % job)
            self.assertIn(lab.store, lab.wait_event(job, "store-refused")["text"])
            self.assertIn("belay release %d" % job, lab.wait_held(job))
            self.assertEqual(
                [a["end"] for a in lab.show(job)["attempts"][1:]],
                ["store-away", "store-away", "store"],
            )
            self.assertFalse(os.path.exists(lab.store))
            lab.wait_cloud(nothing_is_left, "its machines are given back")
            lab.down()
            os.rename(lab.store + ".away", lab.store)
            lab.up()
            lab.post("/jobs/%d/release" % job)
            lab.wait_event(job, "started", 2)
            newest = lab.show(job)["attempts"][-1]
            self.assertEqual(newest["restored"], {k: saved[k] for k in ("attempt", "sequence")})
            lab.end_job(job)

    def test_another_clusters_store_is_refused_until_it_is_adopted(self):
        with StoreLab() as lab:
            old = lab.begin()
            lab.end_job(old)
            code, said = lab.belayd(
                os.path.join(lab.dir, "other"), {}
            )  # of the same name, on the same store
            self.assertEqual(code, 1, said)
            self.assertIn("give this cluster another name", said)
            lab.wait_cloud(lambda s: s["alive"] == 0, "its machines are given back")
            lab.down()
            lab.lose("belay.db", "store.places")
            code, said = lab.belayd(lab.home, {})
            self.assertEqual(code, 1, said)
            self.assertIn("another cluster (uid ", said)
            self.assertIn("belay checkpoint adopt", said)
            place = ["--store", "file://" + lab.store, "--cluster", lab.belayd_config["cluster"]]
            refused = subprocess.run(
                [BUILD + "/cli/belay", "checkpoint", "adopt", *place],
                env=lab.env,
                cwd=lab.dir,
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                universal_newlines=True,
            )
            self.assertEqual(refused.returncode, 1, refused.stderr)
            self.assertIn("nothing was changed", refused.stderr)
            self.assertIn("Its agents can no longer save there.", refused.stderr)
            lab.belay("checkpoint", "adopt", "--yes", *place)
            lab.up()
            job = lab.submit("chain.py", STEPS, method="coop", every_ms=1000)
            self.assertGreater(job, old)
            self.assertEqual(lab.wait_event(job, "started")["text"], "started from the beginning")
            lab.end_job(job)

    def test_a_torn_marker_is_claimed_by_no_belayd(self):
        with StoreLab() as lab:
            lab.down()
            with open(lab.marker(), "rb") as f:
                whole = f.read()
            for torn in (whole[: len(whole) // 2], b"", b"\x00\xff garbage", b"{" * (1 << 20)):
                path = lab.marker()
                with open(path, "wb") as f:
                    f.write(torn)
                for state in (lab.home, os.path.join(lab.dir, "other")):
                    code, said = lab.belayd(state, {})
                    self.assertEqual(code, 1, said)
                    self.assertIn("cannot be claimed", said)
                    self.assertIn("Nothing was changed", said)
                    self.assertIn("belay checkpoint adopt", said)
                self.assertEqual(lab.marker(), path)
                with open(path, "rb") as f:
                    self.assertEqual(f.read(), torn)
            lab.belay(
                "checkpoint",
                "adopt",
                "--yes",
                "--store",
                "file://" + lab.store,
                "--cluster",
                lab.belayd_config["cluster"],
            )
            lab.up()
            job = lab.submit("chain.py", STEPS, method="coop", every_ms=1000)
            lab.wait_event(job, "saved")
            lab.end_job(job)

    def test_two_belayds_of_one_name_on_one_bucket_are_kept_apart(self):
        with S3Lab() as lab:
            lab.wait(
                lambda: any("/owner/" in key for key in lab.list_keys()), "the bucket is marked"
            )
            before = lab.objects()
            store = {"store": "s3://jobs/lab?endpoint=" + lab.s3}
            state = os.path.join(lab.dir, "other")
            code, said = run_belayd(lab, state, store)
            self.assertEqual(code, 1, said)
            self.assertIn("another cluster (uid ", said)
            self.assertIn("give this cluster another name", said)
            self.assertIn("belay checkpoint adopt", said)
            self.assertEqual(run_belayd(lab, state, store, "--check")[0], 2)
            code, said = run_belayd(lab, state, {**store, "cluster": "another"}, "--check")
            self.assertEqual(code, 0, said)
            self.assertEqual(lab.objects(), before)
            said = subprocess.run(
                [
                    BUILD + "/cli/belay",
                    "checkpoint",
                    "adopt",
                    "--store",
                    store["store"],
                    "--cluster",
                    lab.belayd_config["cluster"],
                ],
                env={**lab.env, "BELAY_HOME": lab.dir + "/none"},
                cwd=lab.dir,
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                universal_newlines=True,
            ).stderr
            self.assertIn("those that still run keep saving, so end its jobs first", said)
            self.assertEqual(lab.objects(), before)

    def test_a_number_that_was_given_twice_takes_nothing_of_the_first(self):
        """As after restoring a backup of the database: the store has jobs that it does not know.
        The second job of a number does not resume from the first one's checkpoints, and when it is
        cancelled and its retention is over, none of them is removed.
        """
        with StoreLab(belayd={"retention": "1s"}) as lab:
            backup = os.path.join(lab.dir, "backup.db")
            subprocess.run(
                [
                    sys.executable,
                    "-c",
                    "import sqlite3, sys; sqlite3.connect(sys.argv[1]).backup("
                    "sqlite3.connect(sys.argv[2]))",
                    os.path.join(lab.home, "belay.db"),
                    backup,
                ],
                check=True,
            )
            first = lab.begin()
            lab.wait_cloud(lambda s: s["alive"] == 0, "its machine is given back")
            lab.down()
            lab.lose("belay.db")
            shutil.copy(backup, os.path.join(lab.home, "belay.db"))
            before = lab.content_of(first)
            self.assertGreater(len(lab.manifests(first)), 1)
            lab.up()
            job = lab.submit("chain.py", STEPS, method="coop", every_ms=1000)
            self.assertEqual(job, first)
            self.assertIn("checkpoints of a different job", lab.wait_held(job))
            self.assertEqual(lab.kinds(job).count("started"), 0)
            lab.end_job(job)
            lab.wait(
                lambda: lab.show(job)["leftover"]["state"] == "done", "job %d is cleaned" % job
            )
            self.assertEqual(lab.content_of(first), before)
            self.assertIn(
                "checkpoints of a different job", lab.wait_event(job, "clean-failed")["text"]
            )
            self.assertEqual(lab.kinds(job).count("cleaned"), 0)
            with open(os.path.join(lab.dir, "home", "belayd.log")) as f:
                self.assertEqual(f.read().count("nothing was removed"), 1)


if __name__ == "__main__":
    unittest.main()
