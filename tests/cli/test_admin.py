# SPDX-License-Identifier: Apache-2.0
"""belay admin: a backup of a belayd that runs, its verification, and a restore that fences the
belayd of before."""

import contextlib
import hashlib
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "scheduler"))
from belayd import BUILD, CONFIG, JOB, WAIT_S, Belayd  # noqa: E402

SKIP = 10000  # BACKUP_SKIP
PASSPHRASE = "correct horse battery"


def run(*arguments, env=None):
    return subprocess.run(
        [BUILD + "/cli/belay", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=3 * WAIT_S,  # a passphrase is slow by intention
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith("BELAY_")},
            "BELAY_HOME": "/nonexistent",
            **(env or {}),
        },
    )


class Admin(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="belay-test.")
        self.addCleanup(shutil.rmtree, self.dir)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def write(self, name, text, mode=0o600):
        with open(self.path(name), "w") as f:
            f.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def ok(self, *arguments):
        done = run("admin", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout

    def refused(self, pattern, *arguments, status=1):
        done = run("admin", *arguments)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertRegex(done.stderr, pattern)

    def backup(self, d, *more, name="one.tar"):
        self.ok("backup", self.path(name), "--state", d.state, "--config", self.config(d), *more)
        return self.path(name)

    def config(self, d):
        return os.path.join(d.dir, "belayd.yaml")

    def rows(self, state, text):
        with contextlib.closing(sqlite3.connect(os.path.join(state, "belay.db"))) as db:
            return db.execute(text).fetchall()

    # ---- backups ----

    def test_a_backup_of_a_running_belayd_has_one_commit_and_all_that_a_start_needs(self):
        with Belayd() as d:
            stop = threading.Event()
            n = [0]

            def submit():  # commits while the copy is made
                while not stop.is_set():
                    self.assertEqual(d.call("POST", "/api/v1/jobs", JOB)[0], 201)
                    n[0] += 1

            writer = threading.Thread(target=submit)
            writer.start()
            try:
                files = [self.backup(d, name="%d.tar" % i) for i in range(3)]
            finally:
                stop.set()
                writer.join()
            self.assertGreater(n[0], 3)  # the writer was not blocked
            for file in files:
                self.assertEqual(os.stat(file).st_mode & 0o777, 0o600)
                self.assertRegex(self.ok("verify", file), "files, .* of cluster [0-9a-f]{16}, made")
                with tarfile.open(file) as tar:
                    names = tar.getnames()
                    manifest = json.load(tar.extractfile("manifest.json"))
                self.assertEqual(names[-1], "manifest.json")
                for name in (
                    "ca.pem",
                    "ca.key",
                    "secret.keys",
                    "store.places",
                    "belayd.yaml",
                    "belay.db.00000",
                ):
                    self.assertIn(name, names)
                self.assertEqual(manifest["config"], self.config(d))
                self.assertFalse([name for name in names if "lock" in name or "wal" in name])
            left = sorted(os.listdir(self.dir))
            self.assertEqual(left, ["0.tar", "1.tar", "2.tar"])  # no part of one is left
            self.refused("exists already", "backup", files[0], "--state", d.state)
            out = json.loads(
                self.ok("backup", self.dir, "-s", d.state, "-c", self.config(d), "--json")
            )
            self.assertRegex(out["file"], r"/belay-\d{8}T\d{6}Z\.tar$")

    def test_a_damaged_or_incomplete_backup_is_refused(self):
        with Belayd() as d:
            file = self.backup(d)
        with open(file, "rb") as f:
            good = f.read()
        with tarfile.open(file) as tar:
            entries = [(m.name, tar.extractfile(m).read()) for m in tar.getmembers()]
            offset = tar.getmember("belay.db.00000").offset_data

        def made_of(entries, **more):
            out = io.BytesIO()
            with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
                for name, data in entries:
                    info = tarfile.TarInfo(name)
                    info.size = len(data)
                    for key, value in more.items():
                        setattr(info, key, value)
                    tar.addfile(info, io.BytesIO(data))
            return out.getvalue()

        self.write("good", "")
        manifest = json.loads(entries[-1][1])
        other = {**manifest, "cluster_uid": "0" * 16}
        cases = {
            "hash is not": good[: offset + 4000] + b"\xff" + good[offset + 4001 :],
            "ends early": good[: len(good) // 2],
            "no manifest": made_of(entries[:-1]),
            "is missing": made_of([e for e in entries if e[0] != "ca.key"]),
            "twice": made_of(entries[1:2] + entries),
            "does not know": made_of([("more", b"")] + entries),
            "no tar archive": b"x" * 2048,
            "link, a directory, or a name": made_of([("../ca.key", b"x")] + entries),
            "after the manifest": made_of(entries + [("more", b"")]),
            "where .* was expected": made_of([("belay.db.00001", b"x")] + entries[1:]),
            "database is of cluster": made_of(
                entries[:-1] + [("manifest.json", json.dumps(other).encode())]
            ),
            "newer belay": made_of([("manifest.json", b'{"format": 2}')]),
        }
        for pattern, data in cases.items():
            with open(self.path("bad.tar"), "wb") as f:
                f.write(data)
            with self.subTest(pattern):
                self.refused(pattern, "verify", self.path("bad.tar"))
                self.refused(pattern, "restore", self.path("bad.tar"), "--state", self.path("new"))
                self.assertEqual(os.listdir(self.path("new")), ["belay.db.lock"])
        # A hash that fits a database that is damaged.
        page = bytearray(entries[0][1])
        page[4096 * 3 : 4096 * 4] = b"\xa5" * 4096
        for f in manifest["files"]:
            if f["name"] == "belay.db":
                f["sha256"] = hashlib.sha256(page).hexdigest()
        bad = [(entries[0][0], bytes(page))] + entries[1:-1]
        with open(self.path("bad.tar"), "wb") as f:
            f.write(made_of(bad + [("manifest.json", json.dumps(manifest).encode())]))
        self.refused("database", "verify", self.path("bad.tar"))

    def test_encryption_by_passphrase_and_to_a_certificate(self):
        secret = self.write("passphrase", PASSPHRASE + "\n")
        wrong = self.write("wrong", "another passphrase\n")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
            + ["-nodes", "-subj", "/CN=backup", "-keyout", self.path("k"), "-out", self.path("c")],
            check=True,
            capture_output=True,
        )
        with Belayd() as d:
            with open(os.path.join(d.state, "ca.key"), "rb") as f:
                key = f.read()
            plain = self.backup(d)
            one = self.backup(d, "--passphrase-file", secret, name="one.sealed")
            two = self.backup(d, "--encrypt-to", self.path("c"), name="two.sealed")
            for text, mode, pattern in (
                ("short\n", 0o600, "characters"),
                ("x" * 20, 0o644, "read"),
            ):
                bad = self.write("bad", text, mode)
                self.refused(pattern, "backup", self.path("x"), "--passphrase-file", bad)
        with open(plain, "rb") as f:
            self.assertIn(key, f.read())
        for file in (one, two):
            with open(file, "rb") as f:
                text = f.read()
            self.assertNotIn(key, text)
            self.assertNotIn(b"SQLite format", text)
            self.refused("it is encrypted: give --passphrase-file", "verify", file)
        self.ok("verify", one, "--passphrase-file", secret)
        self.ok("verify", two, "--key-file", self.path("k"))
        self.refused("another passphrase", "verify", one, "--passphrase-file", wrong)
        self.refused("another passphrase", "verify", two, "--passphrase-file", secret)
        self.refused("not encrypted: leave out", "verify", plain, "--passphrase-file", secret)
        # Without belay.
        with tarfile.open(one) as tar:
            tar.extract("ca.key.cms", self.dir)
        out = subprocess.run(
            ["openssl", "cms", "-decrypt", "-inform", "DER", "-in", self.path("ca.key.cms")]
            + ["-pwri_password", PASSPHRASE, "-binary"],
            check=True,
            capture_output=True,
        )
        self.assertEqual(out.stdout, key)

    # ---- restores ----

    def test_a_restored_cluster_goes_on_and_the_one_of_before_stops(self):
        with Belayd(CONFIG + "store: file://%s\n" % self.path("store")) as old:
            self.assertEqual(old.call("POST", "/api/v1/jobs", JOB)[0], 201)
            file = self.backup(old)
            self.assertEqual(old.call("POST", "/api/v1/jobs", JOB)[1]["id"], 2)
            state = os.path.join(old.dir, "restored")
            self.refused("a belayd runs with", "restore", file, "--state", old.state)
            self.assertIsNone(old.process.poll())
            out = self.ok("restore", file, "--state", state)
            self.assertRegex(out, "an earlier belayd of it stops")
            self.assertRegex(out, "What happened later is unknown")
            # The marker has been written: the old one finds it and stops by itself.
            self.assertEqual(old.process.wait(WAIT_S), 0)
            self.assertIn("was restored from a backup at", old.log())
            old.start(wait=False)
            self.assertNotEqual(old.process.wait(WAIT_S), 0)
            self.assertRegex(old.log(), "belayd cannot start.*was restored from a backup")
            self.refused("has a database", "restore", file, "--state", state)

            with Belayd(CONFIG + "store: file://%s\n" % self.path("store"), state=state) as new:
                jobs = new.call("GET", "/api/v1/jobs")[1]["jobs"]
                self.assertEqual([j["id"] for j in jobs], [1])
                # Number 2 was given out after the copy, so it is not given out again.
                self.assertEqual(new.call("POST", "/api/v1/jobs", JOB)[1]["id"], 2 + SKIP)
                again = self.backup(new, name="two.tar")
            self.assertEqual(self.rows(state, "SELECT epoch FROM meta"), [(1,)])
            # A second restore, of the older backup too, is a later epoch than all before.
            for n, copy in ((2, again), (3, file)):
                self.ok("restore", copy, "--state", self.path(str(n)))
                self.assertEqual(self.rows(self.path(str(n)), "SELECT epoch FROM meta"), [(n,)])
            old.start(wait=False)
            self.assertNotEqual(old.process.wait(WAIT_S), 0)

    def test_a_restore_needs_the_store_unless_it_is_gone_with_the_machine(self):
        store = self.path("store")
        with Belayd(CONFIG + "store: file://%s\n" % store) as d:
            file = self.backup(d)
        os.rename(store, store + ".gone")
        out = self.ok("restore", file, "--state", self.path("a"))
        self.assertIn("was not fenced", out)
        with open(store, "w"):  # it is there, and cannot be read
            pass
        self.refused("fence the earlier belayd", "restore", file, "--state", self.path("b"))
        self.assertIn(
            "was not fenced", self.ok("restore", file, "--state", self.path("b"), "--no-fence")
        )

    def test_a_store_that_is_gone_is_begun_anew_as_the_guide_says(self):
        store = self.path("store")
        with Belayd(CONFIG + "store: file://%s\n" % store) as d:
            file = self.backup(d)
        shutil.rmtree(store)
        state = self.path("state")
        self.ok("restore", file, "--state", state)
        config = self.write(
            "belayd.yaml", CONFIG + "state: %s\nstore: file://%s\n" % (state, store)
        )
        with Belayd(CONFIG + "store: file://%s\n" % store, state=state) as d:
            self.assertRegex(d.log(), "no such directory here: mount it, or create it")
        os.mkdir(store)
        with Belayd(CONFIG + "store: file://%s\n" % store, state=state) as d:
            self.assertRegex(d.log(), "stop belayd, run belay checkpoint adopt --config FILE, and")
        done = run("checkpoint", "adopt", "--yes", "--config", config)
        self.assertEqual(done.returncode, 0, done.stderr)
        with Belayd(CONFIG + "store: file://%s\n" % store, state=state) as d:
            self.assertIn("is marked as this cluster's", d.log())

    # ---- the audit log ----

    def test_the_audit_log_is_listed_exported_and_verified(self):
        with Belayd() as d:
            env = {"BELAY_HOME": d.state}
            out = run("admin", "audit-log", env=env)
            self.assertEqual((out.returncode, out.stdout), (0, ""))
            for _ in range(3):
                d.submit()
            out = run("admin", "audit-log", "--since", "1h", env=env).stdout
            self.assertRegex(out, r"(?m)^ *3 .* POST /api/v1/jobs +3 +ok +1-")
            lines = run("admin", "audit-log", "--json", env=env).stdout.splitlines()
            self.assertEqual([json.loads(line)["seq"] for line in lines], [1, 2, 3])
            out = run("admin", "audit-log", "verify", env=env)
            self.assertEqual(out.returncode, 0, out.stderr)
            head = out.stdout.split()[-1]
            self.assertRegex(head, r"^3:[0-9a-f]{64}$")
            out = run("admin", "audit-log", "verify", "--head", "3:" + "0" * 64, env=env)
            self.assertEqual((out.returncode, out.stdout), (1, ""))
            self.assertIn("is not the one whose hash was kept", out.stderr)
            out = run("admin", "log-level", "debug", env=env)
            self.assertEqual(out.stdout, "belayd logs at level debug until it ends\n")
            self.ok("backup", self.path("log.tar"), "-s", d.state, "-c", self.config(d))
            self.ok("verify", self.path("log.tar"))
            d.stop()
            with contextlib.closing(sqlite3.connect(os.path.join(d.state, "belay.db"))) as db:
                db.execute("UPDATE audit_log SET user = 'eve' WHERE seq = 2")
                db.commit()
            self.ok("backup", self.path("bad.tar"), "-s", d.state, "-c", self.config(d))
            self.refused("row 2 of the audit log was changed", "verify", self.path("bad.tar"))

    def test_the_doctor_names_a_cure_for_each_fault(self):
        with Belayd() as d:
            env = {"BELAY_HOME": d.state}

            def checks(**more):
                done = run("admin", "doctor", "--json", env={**env, **more})
                found = json.loads(done.stdout)
                self.assertEqual(done.returncode, 1 if found["faults"] else 0)
                for c in found["checks"]:
                    self.assertTrue(c["result"] != "fault" or c["cure"], c)
                return {c["check"]: c for c in found["checks"]}

            found = checks()
            names = [
                "belayd",
                "clock",
                "rights",
                "disk",
                "DNS",
                "TLS",
                "store",
                "pools",
                "audit log",
            ]
            self.assertEqual(list(found), names)
            found.pop("clock")  # of this machine
            self.assertEqual({c["result"] for c in found.values()}, {"ok"}, found)
            os.chmod(os.path.join(d.state, "ca.key"), 0o644)
            os.rename(os.path.join(d.state, "store"), os.path.join(d.dir, "away"))
            found = checks()
            self.assertEqual(found["rights"]["cure"], "chmod 600")
            self.assertEqual(found["store"]["result"], "fault")
            os.chmod(os.path.join(d.state, "ca.key"), 0o600)
            os.rename(os.path.join(d.dir, "away"), os.path.join(d.state, "store"))
            out = run("admin", "doctor", env=env).stdout
            self.assertRegex(out, r"(?m)^belayd +ok +version")
            d.stop()
            found = checks()
            self.assertEqual(found["belayd"]["result"], "fault")
            self.assertIn("start it", found["belayd"]["cure"])
            self.assertEqual(list(found), ["belayd", "clock", "rights", "disk"])

    def test_words_and_options(self):
        for words, pattern in (
            ([], "expected backup, verify"),
            (["back"], 'or doctor, found "back"'),
            (["backup"], "expected belay admin backup FILE or DIR"),
            (["verify", "a", "b"], "expected belay admin verify FILE"),
            (["verify", "a", "--no-fence"], "--no-fence is not for belay admin verify"),
            (["restore", "a"], "name the state directory"),
            (["audit-log", "x"], "or belay admin audit-log verify"),
            (["audit-log", "--since", "never"], "--since: expected a time"),
            (["log-level"], "expected belay admin log-level LEVEL"),
            (["doctor", "x"], "expected belay admin doctor"),
            (["backup", "a", "--passphrase-file", "x", "--encrypt-to", "y"], "exclude each other"),
        ):
            with self.subTest(words):
                self.refused(pattern, *words, status=2)
        self.refused("read the database", "backup", self.path("x"), "--state", self.path("none"))
        self.refused("open it", "verify", self.path("none"))


if __name__ == "__main__":
    unittest.main()
