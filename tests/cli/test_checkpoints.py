# SPDX-License-Identifier: Apache-2.0
"""belay checkpoint list, show, get, verify, pin, unpin, delete and export, without a belayd."""

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import unittest

BELAY, SAVE = sys.argv[1:3]
WORDS = {"get": ("out",), "export": ("out.tar",)}


class Checkpoints(unittest.TestCase):
    """Job 7 of cluster lab with checkpoints 1.1, 1.2 and 2.1; the file "step" identifies each."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="belay-test.")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.store = "file://%s/st%%20ore" % self.dir
        self.tree = os.path.join(self.dir, "tree")
        os.makedirs(self.tree + "/sub/" + "d" * 90)
        for name, text in (
            ("sub/%s/%s" % ("d" * 90, "f" * 90), "far down\n"),
            ("run", "#!/bin/sh\n"),
            ("empty", ""),
        ):
            with open(os.path.join(self.tree, name), "w") as f:
                f.write(text)
        with open(self.tree + "/large", "wb") as f:
            f.write(os.urandom(3 << 20))
        os.chmod(self.tree + "/run", 0o750)
        os.link(self.tree + "/run", self.tree + "/sub/again")
        os.symlink("../run", self.tree + "/sub/link")
        os.utime(self.tree + "/empty", ns=(0, 1234567890123456789))
        for attempt, sequence in ((1, 1), (1, 2), (2, 1)):
            self.save(attempt, sequence)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("BELAY_")}
        self.env.update(
            BELAY_HOME=self.dir + "/nobody",
            BELAY_STORE=self.store,
            BELAY_CLUSTER="lab",
            TMPDIR=self.dir,
        )

    def save(self, attempt, sequence, *key_file):
        with open(self.tree + "/step", "w") as f:
            f.write("%d.%d" % (attempt, sequence))
        subprocess.run(
            [SAVE, self.store, "lab", "7", str(attempt), str(sequence), self.tree, *key_file],
            check=True,
        )

    def key_file(self, name, first):
        path = os.path.join(self.dir, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as f:
            f.write("cluster 0123456789abcdef\nkey %02x%s\n" % (first, "5a" * 31))
        return path

    def belay(self, *arguments, env=None, **more):
        return subprocess.run(
            [BELAY, "checkpoint", *arguments],
            cwd=self.dir,
            env={**self.env, **(env or {})},
            timeout=60,
            **{
                "text": True,
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                **more,
            }
        )

    def ok(self, *arguments, **more):
        done = self.belay(*arguments, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.ok("--json", *arguments))

    def refused(self, code, words, *arguments, **more):
        done = self.belay(*arguments, **more)
        self.assertEqual((done.returncode, done.stdout), (code, ""), arguments)
        self.assertRegex(done.stderr, r"\Abelay: [^\n]*%s[^\n]*\n\Z" % words)

    def ids(self):
        return [
            "%d.%d" % (c["attempt"], c["sequence"]) for c in self.json("list", "7")["checkpoints"]
        ]

    def close(self):
        """Cleans up as belayd does after the job's end."""
        os.makedirs(self.dir + "/st ore/lab/jobs/7/fences", exist_ok=True)
        open(self.dir + "/st ore/lab/jobs/7/fences/9999999999", "w").close()

    def chunks(self):
        return sum(len(files) for _, _, files in os.walk(self.dir + "/st ore/lab/jobs/7/chunks"))

    def read_step(self, name):
        with open(os.path.join(self.dir, name, "step")) as f:
            return f.read()

    def assert_same(self, a, b):
        def look(top):
            found = {}
            for path, dirs, files in os.walk(top):
                for name in dirs + files:
                    full = os.path.join(path, name)
                    st = os.lstat(full)
                    content = None
                    if stat.S_ISLNK(st.st_mode):
                        content = os.readlink(full)
                    elif stat.S_ISREG(st.st_mode):
                        with open(full, "rb") as f:
                            content = f.read()
                    found[os.path.relpath(full, top)] = (st.st_mode, st.st_mtime_ns, content)
            return found

        self.assertEqual(look(a), look(b))

    # ---- list and show ----

    def test_names_of_files_cannot_act_on_the_terminal(self):
        open(self.tree + "/a\u202egpj\x1b[2J", "w").close()
        os.symlink("to\x9b\nforged", self.tree + "/link")
        self.save(3, 1)
        shown = self.ok("show", "7@3.1")
        self.assertRegex(shown, r"(?m) a\?+gpj\?\[2J$")
        self.assertRegex(shown, r"(?m) link -> to\?+forged$")
        paths = [e["path"] for e in self.json("show", "7@3.1")["entries"]]
        self.assertIn("a\u202egpj\x1b[2J", paths)

    def test_list_and_show(self):
        lines = self.ok("list", "7").splitlines()
        self.assertEqual(
            lines[0].split(), ["CHECKPOINT", "SAVED", "SIZE", "FILES", "STEP", "PINNED"]
        )
        self.assertEqual([line.split()[0] for line in lines[1:]], ["2.1", "1.2", "1.1"])
        newest = self.json("list", "7")["checkpoints"][0]
        self.assertEqual(
            (newest["attempt"], newest["sequence"], newest["progress"], newest["pinned"]),
            (2, 1, 100, False),
        )
        self.assertEqual(self.json("list", "8"), {"job": 8, "checkpoints": []})
        shown = self.ok("show", "7@1.2")
        self.assertRegex(shown, r"\Acheckpoint    1\.2 of job 7 of cluster lab\nsaved         20")
        self.assertRegex(shown, r"(?m)^-0750 +10 B run$")
        self.assertRegex(shown, r"(?m)^l0000 +- sub/link -> \.\./run$")
        entries = {e["path"]: e for e in self.json("show", "7")["entries"]}
        self.assertEqual(
            (entries["run"]["type"], entries["run"]["mode"], entries["run"]["size"]),
            ("file", 0o750, 10),
        )
        self.assertEqual((entries["sub"]["type"], entries["sub/link"]["target"]), ("dir", "../run"))
        self.assertEqual(entries["empty"]["mtime_ns"], 1234567890123456789)

    def test_verify_finds_what_is_damaged(self):
        self.assertEqual(
            self.ok("verify", "7@1.1"),
            "checkpoint 1.1 of job 7 is intact: every byte was verified\n",
        )
        self.assertEqual(
            self.json("verify", "7"), {"job": 7, "attempt": 2, "sequence": 1, "whole": True}
        )
        chunk = max(
            (
                os.path.join(p, f)
                for p, _, files in os.walk(self.dir + "/st ore/lab/jobs/7/chunks/0000000002")
                for f in files
            ),
            key=os.path.getsize,
        )
        with open(chunk, "r+b") as f:
            f.seek(1000)
            byte = f.read(1)
            f.seek(1000)
            f.write(bytes([byte[0] ^ 1]))
        others = "belay checkpoint list 7 shows the others"
        self.refused(1, "checkpoint 2.1 of job 7 .*: chunk .*[.] " + others, "verify", "7@2.1")
        self.refused(1, "chunk", "get", "7@2.1", "out")
        self.refused(1, "chunk", "export", "7@2.1", "out.tar")
        self.assertEqual(sorted(os.listdir(self.dir)), ["st ore", "tree"])

    # ---- fetching ----

    def test_get_puts_it_into_a_new_directory_only(self):
        self.assertEqual(
            self.ok("get", "7@1.1", "a/b/"),
            "checkpoint 1.1 of job 7 is in %s/a/b: 5 files\n" % self.dir,
        )
        self.assertEqual(self.read_step("a/b"), "1.1")
        self.ok("get", "7", "newest")
        self.assert_same(self.tree, self.dir + "/newest")
        self.refused(1, "is not empty", "get", "7", "a/b")
        self.assertEqual(self.read_step("a/b"), "1.1")
        os.mkdir(self.dir + "/empty")
        self.assertEqual(self.json("get", "7@1.2", "empty")["path"], self.dir + "/empty")
        self.assertEqual(self.read_step("empty"), "1.2")
        open(self.dir + "/file", "w").close()
        self.refused(1, "is not a directory", "get", "7", "file")
        self.refused(1, "", "get", "7@3.1", "nothing")
        self.assertFalse(os.path.exists(self.dir + "/nothing"))

    def test_an_archive_is_what_tar_makes_of_it(self):
        self.ok("export", "7", "one.tar")
        os.mkdir(self.dir + "/unpacked")
        subprocess.run(
            ["tar", "-C", self.dir + "/unpacked", "-xpf", self.dir + "/one.tar"], check=True
        )
        self.assert_same(self.tree, self.dir + "/unpacked")
        with tarfile.open(self.dir + "/one.tar") as t:
            names = t.getnames()
            self.assertEqual(
                t.extractfile("sub/%s/%s" % ("d" * 90, "f" * 90)).read(), b"far down\n"
            )
        self.assertEqual(names, sorted(names, key=lambda n: n.split("/")))
        self.refused(1, "already exists", "export", "7", "one.tar")
        piped = self.belay("export", "7", "-", text=False)
        self.assertEqual((piped.returncode, piped.stderr), (0, b""))
        with open(self.dir + "/one.tar", "rb") as f:
            self.assertEqual(piped.stdout, f.read())
        self.ok("export", "7@1.1", "plain")
        self.assertEqual(self.read_step("plain"), "1.1")
        with open("/dev/full", "w") as full:
            self.assertEqual(self.belay("export", "7", "-", stdout=full).returncode, 1)
        self.assertEqual(
            sorted(os.listdir(self.dir)), ["one.tar", "plain", "st ore", "tree", "unpacked"]
        )

    def test_an_archive_keeps_hard_links_attributes_and_times_before_1970(self):
        os.utime(self.tree + "/empty", ns=(0, -1500000000))
        with contextlib.suppress(OSError):  # a file system without them
            os.setxattr(self.tree + "/run", "user.origin", b"here\n\0there")
        attributes = os.listxattr(self.tree + "/run")
        self.save(2, 2)
        self.ok("export", "7", "one.tar")
        os.mkdir(self.dir + "/unpacked")
        subprocess.run(
            ["tar", "-C", self.dir + "/unpacked", "--xattrs", "-xpf", self.dir + "/one.tar"],
            check=True,
        )
        self.assert_same(self.tree, self.dir + "/unpacked")
        self.assertTrue(
            os.path.samefile(self.dir + "/unpacked/run", self.dir + "/unpacked/sub/again")
        )
        self.assertEqual(
            {a: os.getxattr(self.dir + "/unpacked/run", a) for a in attributes},
            {a: os.getxattr(self.tree + "/run", a) for a in attributes},
        )

    # ---- keeping and deleting ----

    def test_what_is_pinned_cannot_be_deleted(self):
        self.assertEqual(self.ok("pin", "7@1.1"), "checkpoint 1.1 of job 7 is pinned\n")
        self.ok("pin", "7@1.1")
        self.assertEqual(
            [c["pinned"] for c in self.json("list", "7")["checkpoints"]], [False, False, True]
        )
        self.refused(1, "unpin it first", "delete", "7@1.1")
        self.refused(1, "unpin it first", "delete", "--force", "7@1.1")
        self.ok("unpin", "7@1.1")
        self.ok("unpin", "7@1.1")
        self.assertEqual(self.json("delete", "7@1.1"), {"job": 7, "attempt": 1, "sequence": 1})
        self.assertEqual(self.ids(), ["2.1", "1.2"])
        self.refused(1, "", "pin", "7@1.1")
        self.assertEqual(self.json("pin", "7")["attempt"], 2)

    def test_the_newest_of_a_job_that_may_run_needs_force(self):
        chunks = self.chunks()
        self.refused(1, "--force", "delete", "7@2.1")
        self.ok("delete", "7@1.2")
        self.ok("delete", "--force", "7@2.1")
        self.assertEqual(self.ids(), ["1.1"])
        self.assertEqual(self.chunks(), chunks)  # a save in progress may have found them there
        self.close()
        self.ok("delete", "7@1.1")
        self.assertEqual((self.ids(), self.chunks()), ([], 0))

    # ---- finding the store ----

    def test_the_place_is_named_by_flags_variables_or_a_file(self):
        none = {"BELAY_STORE": "", "BELAY_CLUSTER": ""}
        self.assertIn(
            "2.1", self.ok("--store", self.store, "--cluster", "lab", "list", "7", env=none)
        )
        with open(self.dir + "/lab.yaml", "w") as f:
            f.write("cluster: lab\nstore: %s\npools: {base: {kind: reserved}}\n" % self.store)
        self.assertIn("2.1", self.ok("--config", "lab.yaml", "list", "7", env=none))
        os.mkdir(self.dir + "/home")  # of `belay up`, whose belayd is down
        shutil.copytree(self.dir + "/st ore", self.dir + "/home/store")
        with open(self.dir + "/home/belayd.yaml", "w") as f:
            f.write("cluster: lab\n")
        self.assertIn("2.1", self.ok("list", "7", env={**none, "BELAY_HOME": self.dir + "/home"}))
        self.refused(1, "no store is named: give --store URL", "list", "7", env=none)
        self.refused(1, "not supported", "--store", "ftp://x", "list", "7")
        self.refused(1, "missing", "--config", "missing", "list", "7")
        with open(self.dir + "/bad.yaml", "w") as f:
            f.write("cluster: [\n")
        self.refused(1, "bad.yaml:", "--config", "bad.yaml", "list", "7")
        self.refused(1, "", "--store", "file://%s/elsewhere" % self.dir, "list", "7")
        self.assertFalse(os.path.exists(self.dir + "/elsewhere"))
        self.refused(1, "not a name", "--cluster", "../lab", "list", "7")
        self.refused(2, "--config", "--config", "lab.yaml", "--store", self.store, "list", "7")

    # ---- encrypted ones ----

    def test_encrypted_ones_are_read_with_the_key_file(self):
        keys = self.key_file("lab.keys", 1)
        self.save(3, 1, keys)
        for options, env in ((("--key-file", keys), {}), ((), {"BELAY_KEY_FILE": keys})):
            self.assertIn("is intact", self.ok(*options, "verify", "7", env=env))
            self.assertRegex(self.ok(*options, "show", "7", env=env), "(?m) run$")
            self.assertEqual(len(self.ok(*options, "list", "7", env=env).splitlines()), 5)
            self.ok(*options, "get", "7", "out", env=env)
            self.assert_same(self.tree, self.dir + "/out")
            shutil.rmtree(self.dir + "/out")
            self.ok(*options, "export", "7", "out.tar", env=env)
            os.unlink(self.dir + "/out.tar")
        self.assertIn(
            "is intact", self.ok("--key-file", keys, "verify", "7@1.1")
        )  # earlier ones are not encrypted

    def test_without_the_right_key_file_it_is_said_what_is_missing(self):
        keys, wrong = self.key_file("lab.keys", 1), self.key_file("other.keys", 2)
        self.save(3, 1, keys)
        for action in ("verify", "show", "get", "export"):
            more = WORDS.get(action, ())
            self.refused(
                1, "it is encrypted .*there is no key here.*--key-file", action, "7", *more
            )
            self.refused(
                1, "which is not among the keys here", "--key-file", wrong, action, "7", *more
            )
            self.refused(1, "missing.keys", "--key-file", "missing.keys", action, "7", *more)
        done = self.belay("list", "7")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"(?m)^3\.1 +unreadable +- +- ")
        self.assertIn("it is encrypted", done.stderr)
        os.chmod(keys, 0o644)
        self.refused(1, "lab.keys", "--key-file", keys, "verify", "7")
        with open(wrong, "w") as f:
            f.write("cluster 0123456789abcdef\nkey 00\n")
        self.refused(1, "other.keys, line 2: a key is 64", "--key-file", wrong, "verify", "7")
        self.assertEqual(
            self.ok("--force", "delete", "7@3.1"), "checkpoint 3.1 of job 7 is removed\n"
        )

    def test_the_key_file_is_found_where_belayd_keeps_it(self):
        os.mkdir(self.dir + "/home")
        keys = self.key_file("home/checkpoint.keys", 1)
        self.save(3, 1, keys)
        self.assertIn("is intact", self.ok("verify", "7", env={"BELAY_HOME": self.dir + "/home"}))
        with open(self.dir + "/lab.yaml", "w") as f:
            f.write("cluster: lab\nstore: %s\nstate: %s/home\n" % (self.store, self.dir))
        self.assertIn("is intact", self.ok("--config", "lab.yaml", "verify", "7"))
        with open(self.dir + "/lab.yaml", "w") as f:
            f.write("cluster: lab\nstore: %s\nkey_file: %s\n" % (self.store, keys))
        self.assertIn("is intact", self.ok("--config", "lab.yaml", "verify", "7"))

    # ---- bad input ----

    def test_words_that_are_wrong_are_refused_with_what_is_right(self):
        self.refused(2, "expected commit, save, list, .* or adopt, found nothing")
        self.refused(2, 'or adopt, found "lst"', "lst", "7")
        for action in ("list", "show", "get", "verify", "pin", "unpin", "delete", "export"):
            more = WORDS.get(action, ())
            name = {"delete": "remove"}.get(action, action)
            self.refused(2, "checkpoint " + name, action)
            self.refused(2, "checkpoint " + name, action, "7@1.1", *more, "more")
            for word in (
                "",
                "x",
                "0",
                "-1",
                "7@",
                "7@1",
                "7@1.",
                "7@.1",
                "7@0.1",
                "7@1.0",
                "7@1.1.1",
                "7@9999999999.1",
                "7@1.1x",
                "7 @1.1",
                "99999999999999999999@1.1",
            ):
                self.refused(
                    2, "expected JOB" if not word.startswith("-") else "", action, word, *more
                )
        self.refused(2, "expected JOB,", "list", "7@1.1")
        self.refused(2, "expected JOB@ATTEMPT.SEQUENCE", "delete", "7")
        self.refused(2, "expected JOB@ATTEMPT.SEQUENCE", "unpin", "7")
        self.refused(2, "expected a path", "get", "7", "")
        self.refused(2, "--progress, --total and --wait", "--total", "3", "list", "7")
        self.refused(2, "--progress, --total and --wait", "--wait", "list", "7")
        self.refused(2, "goes to the job's agent", "--force", "commit")
        self.refused(1, "job 8 has no checkpoint", "show", "8")
        self.refused(1, "checkpoint 5.5 is not in the store", "show", "7@5.5")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
