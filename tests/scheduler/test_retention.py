# SPDX-License-Identifier: Apache-2.0
"""The retention of a running belayd: old jobs are deleted and say so, and old output goes to the
store and is read from there as before.
"""

import contextlib
import glob
import json
import os
import sqlite3
import subprocess
import tempfile
import time
import unittest

from belayd import BUILD, CONFIG, JOB, WAIT_S, Belayd

DAY_MS = 86400000
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
TEXT = b"".join(b"step %d\n" % n for n in range(100000))


class Retention(unittest.TestCase):
    def ended(self, d, n, **spec):
        """The numbers of n jobs that were cancelled before they began."""
        jobs = [d.submit(**spec) for _ in range(n)]
        for job in jobs:
            self.assertEqual(d.call("POST", "/api/v1/jobs/%d/cancel" % job)[0], 200)
        return jobs

    @contextlib.contextmanager
    def database(self, d):
        """Of a belayd that is stopped meanwhile."""
        d.stop()
        with contextlib.closing(sqlite3.connect(os.path.join(d.state, "belay.db"))) as db:
            yield db
            db.commit()
        d.start()

    def let_age(self, db, job, days):
        at = int(time.time() * 1000) - days * DAY_MS
        db.execute("UPDATE jobs SET ended_at = ?, submitted_at = ? WHERE id = ?", (at, at, job))

    def give_output(self, d, db, job):
        """An attempt that has ended, with output that has been there for some time."""
        columns = {
            name: "" if kind == "TEXT" else 0
            for _, name, kind, needed, *_ in db.execute("PRAGMA table_info(attempts)")
            if needed
        }
        columns.update(
            job=job, attempt=1, state="ended", end_kind="succeeded", stop_reason="none", ended_at=1
        )
        db.execute(
            "INSERT INTO attempts (%s) VALUES (%s)"
            % (", ".join(columns), ", ".join("?" * len(columns))),
            list(columns.values()),
        )
        folder = self.folder(d, job)
        os.makedirs(folder)
        with open(os.path.join(folder, "1.log"), "wb") as f:
            f.write(TEXT)
        old = time.time() - 40 * 86400
        os.utime(folder, (old, old))

    def folder(self, d, job):
        return os.path.join(d.state, "logs", str(job // 1000), str(job))

    def pieces(self, d, job):
        """The folder of its output in the store."""
        (found,) = glob.glob(os.path.join(d.state, "store", "*", "output", str(job)))
        return found

    def wait(self, is_there, what):
        end = time.monotonic() + WAIT_S
        while not is_there():
            if time.monotonic() > end:
                raise AssertionError("in vain: " + what)
            time.sleep(0.05)  # there is nothing to wait on

    def test_an_old_job_is_deleted_and_its_number_says_when(self):
        with Belayd() as d:
            old, young = self.ended(d, 2)
            with self.database(d) as db:
                self.let_age(db, old, 401)
                self.let_age(db, young, 399)
                os.makedirs(self.folder(d, old))
            self.wait(
                lambda: d.call("GET", "/api/v1/jobs/%d" % old)[0] == 404, "the job is deleted"
            )
            status, body, _ = d.call("GET", "/api/v1/jobs/%d" % old)
            self.assertRegex(
                body["error"]["text"],
                r"^job %d was deleted on \d{4}-\d\d-\d\d: jobs are deleted 400 days after" % old,
            )
            self.assertEqual(d.call("GET", "/api/v1/jobs/%d" % young)[0], 200)
            self.wait(lambda: not os.path.exists(self.folder(d, old)), "its output is removed")
            self.assertGreater(d.call("POST", "/api/v1/jobs", JOB)[1]["id"], young)

    def read(self, d, job, query=""):
        return d.call("GET", "/api/v1/jobs/%d/logs%s" % (job, query))

    def test_sizes_let_the_oldest_go_and_show_what_is_in_use(self):
        with Belayd() as d:
            old = self.ended(d, 120, script="#!/bin/sh\n" + "# x\n" * 5000)
            held = d.submit(hold=True)
            waits = d.submit(hold=True, depends=[{"kind": "afterany", "job": old[0]}])
            with self.database(d) as db:
                for n, job in enumerate(old):
                    self.let_age(db, job, 200 - n)
                for job in old[100:103]:
                    self.give_output(d, db, job)
                db.execute("UPDATE jobs SET submitted_at = 1 WHERE id = ?", (held,))
            said = d.call("GET", "/api/v1/admin/retention")[1]
            self.assertEqual(said["database"]["max_bytes"], None)
            self.assertEqual(said["database"]["over_bytes"], 0)
            self.wait(
                lambda: d.call("GET", "/api/v1/admin/retention")[1]["logs_on_disk"], "it is counted"
            )
            d.config += "retention: {database_max: 1M, logs_on_disk: 400d, logs_on_disk_max: 1M}\n"
            self.assertGreater(said["database"]["bytes"], 1 << 20)
            with open(os.path.join(d.dir, "belayd.yaml"), "w") as f:
                f.write(d.config)
            self.assertEqual(d.call("POST", "/api/v1/admin/reload", {})[0], 200)
            self.wait(lambda: self.shown(d)["logs_on_disk"]["bytes"] <= 1 << 20, "output goes")
            self.wait(lambda: self.shown(d)["database"]["over_bytes"] == 0, "jobs go")
            gone = self.shown(d)["database"]["deleted_jobs_by_size"]
            self.assertTrue(50 <= gone < 120, gone)
            left = [j for j in old if d.call("GET", "/api/v1/jobs/%d" % j)[0] == 200]
            self.assertEqual(left, [old[0], *old[gone + 1 :]])  # the oldest; one is needed
            for job in (held, waits):
                self.assertEqual(d.call("GET", "/api/v1/jobs/%d" % job)[0], 200)
            printed = d.belay("admin", "retention")
            self.assertEqual(printed.returncode, 0, printed.stderr)
            self.assertRegex(printed.stdout, r"(?m)^WHAT +IN USE +LIMIT +OVER +GOES FIRST$")
            self.assertRegex(printed.stdout, r"(?m)^database +[\d.]+ \S+ +1.0 MiB ")
            self.assertRegex(printed.stdout, r"(?m)^logs in store +[\d.]+ \S+ +none ")
            self.assertEqual(d.metric('belay_retention_max_bytes{of="database"}'), 1 << 20)
            self.assertGreater(d.metric('belay_retention_bytes{of="logs_in_store"}'), 0)

    def shown(self, d):
        return d.call("GET", "/api/v1/admin/retention")[1]

    def test_old_output_is_read_from_the_store(self):
        with Belayd() as d:
            (job,) = self.ended(d, 1)
            with self.database(d) as db:
                self.let_age(db, job, 31)
                self.give_output(d, db, job)
            folder = self.folder(d, job)
            log, index = os.path.join(folder, "1.log"), os.path.join(folder, "archived")
            self.wait(lambda: os.path.exists(index) and not os.path.exists(log), "it is moved")
            pieces = self.pieces(d, job)
            stored = sum(os.path.getsize(os.path.join(pieces, n)) for n in os.listdir(pieces))
            self.assertLess(stored, len(TEXT) / 3)
            status, body, headers = self.read(d, job, "?tail=2")
            self.assertEqual((status, body), (200, b"step 99998\nstep 99999\n"))
            self.assertEqual(headers["Belay-Log-End"], "1")
            self.assertFalse(os.path.exists(index))
            body = self.read(d, job)[1]
            self.assertTrue(body and TEXT.startswith(body))
            with open(log, "rb") as f:
                self.assertEqual(f.read(), TEXT)

    @contextlib.contextmanager
    def s3(self):
        """A belayd whose store is a bucket of the emulator, and the URL of the bucket's listing."""
        config = {
            "keys": [{"access_key": "AKIDEXAMPLE", "secret_key": SECRET}],
            "pools": [{"zone": "us-east-1a", "type": "g6.xlarge", "spot": {"capacity": 1}}],
            "s3": {"buckets": ["jobs"]},
        }
        with tempfile.TemporaryDirectory() as top:
            path, ports = os.path.join(top, "e.yaml"), os.path.join(top, "ports.json")
            with open(path, "w") as f:
                json.dump(config, f)
            process = subprocess.Popen(
                [BUILD + "/emulator/belay-emulator", "--config", path, "--port-file", ports],
                stderr=subprocess.DEVNULL,
            )
            try:
                self.wait(lambda: os.path.exists(ports), "the emulator starts")
                with open(ports) as f:
                    store = "s3://jobs/old?endpoint=%s" % json.load(f)["s3"]
                keys = ["AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=" + SECRET]
                yield CONFIG + "store: '%s'\n" % store, ["env", *keys], process
            finally:
                process.terminate()
                process.wait(WAIT_S)

    def test_old_output_in_s3_is_read_with_belay_logs(self):
        for encryption in ("none", "client"):
            with self.subTest(encryption), self.s3() as (config, env, emulator), Belayd(
                config + "encryption: %s\n" % encryption, prefix=env
            ) as d:
                (job,) = self.ended(d, 1)
                with self.database(d) as db:
                    self.let_age(db, job, 31)
                    self.give_output(d, db, job)
                folder = self.folder(d, job)
                log, index = os.path.join(folder, "1.log"), os.path.join(folder, "archived")
                self.wait(lambda: os.path.exists(index) and not os.path.exists(log), "it is moved")
                self.assertFalse(os.path.exists(os.path.join(d.state, "store")))
                d.stop()
                d.start()  # and a restart changes nothing
                said = d.belay("logs", str(job))
                self.assertEqual((said.returncode, said.stderr), (0, ""))
                self.assertEqual(said.stdout.encode(), TEXT)
                self.assertFalse(os.path.exists(index))

    def test_old_output_waits_for_a_store_that_is_away(self):
        with self.s3() as (config, env, emulator), Belayd(config, prefix=env) as d:
            (job,) = self.ended(d, 1)
            with self.database(d) as db:
                self.let_age(db, job, 31)
                self.give_output(d, db, job)
            index = os.path.join(self.folder(d, job), "archived")
            self.wait(lambda: os.path.exists(index), "it is moved")
            emulator.terminate()
            emulator.wait(WAIT_S)
            said = d.belay("logs", str(job))
            self.assertNotEqual(said.returncode, 0)
            self.assertIn("store", said.stderr)
            self.assertEqual(said.stdout, "")
            self.assertTrue(os.path.exists(index))  # nothing is lost

    def test_output_that_the_store_has_lost_is_not_shown_as_empty(self):
        with Belayd() as d:
            (job,) = self.ended(d, 1)
            with self.database(d) as db:
                self.let_age(db, job, 31)
                self.give_output(d, db, job)
            folder = self.folder(d, job)
            log = os.path.join(folder, "1.log")
            self.wait(lambda: not os.path.exists(log), "it is moved")
            pieces = self.pieces(d, job)
            for name in os.listdir(pieces):
                os.unlink(os.path.join(pieces, name))
            status, body, _ = self.read(d, job)
            self.assertEqual(status, 404, body)
            self.assertTrue(os.path.exists(os.path.join(folder, "archived")))


if __name__ == "__main__":
    unittest.main()
