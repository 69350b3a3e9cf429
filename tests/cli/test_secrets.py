# SPDX-License-Identifier: Apache-2.0
"""Secrets of jobs, with a real belayd and agent: who gets one, where its value is, and that it is
nowhere else: not in the database, its log, a backup, output of jobs, logs, or a core dump."""

import contextlib
import glob
import hashlib
import json
import os
import pty
import re
import resource
import secrets
import select
import signal
import sqlite3
import unittest

from test_local import BUILD, Home, is_gone, wait_until

PLANTED = 50
WAIT_S = 90


class Secrets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.h = Home().__enter__()
        done = cls.h.belay("up")
        if done.returncode != 0:
            cls.h.__exit__(AssertionError, AssertionError(), None)
            raise AssertionError(done.stderr)
        cls.client = cls.h.client()
        cls.user = cls.client.version()["user"]

    @classmethod
    def tearDownClass(cls):
        cls.h.__exit__(None, None, None)

    def set(self, name, value):
        done = self.h.belay("secret", "set", name, text=value)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def submit(self, *arguments):
        done = self.h.belay("submit", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return int(done.stdout.split()[-1])

    def end_of(self, job):
        def ended():
            return self.client.show_job(job)["job"]["state"] == "ended"

        wait_until(ended, "job %d ends" % job)
        return self.client.show_job(job)

    def output(self, job):
        self.end_of(job)
        return self.h.belay("logs", str(job)).stdout

    def test_a_job_gets_its_secrets_and_shows_none(self):
        value = secrets.token_hex(20)
        self.set("wandb", value + "\n")
        self.set("key.pem", "line one\nline two " + value)
        script = self.h.script(
            'printf %s "$WANDB" | sha256sum\n'
            'echo "key is $WANDB."\n'
            'printf "${WANDB%??????????}"\n'
            'printf "%s\\n" "${WANDB#??????????????????????????????}"\n'
            'cat "$BELAY_SECRETS_DIR/key.pem"; echo\n'
            'stat -c "%a %U" "$BELAY_SECRETS_DIR/key.pem"\n'
            'stat -f -c %T "$BELAY_SECRETS_DIR"\n'
            'echo "$BELAY_SECRETS_DIR"\n',
            "secret.sh",
        )
        job = self.submit("--secret", "wandb=WANDB", "--secret", "key.pem", script)
        lines = self.output(job).splitlines()
        digest = hashlib.sha256(value.encode()).hexdigest()
        self.assertNotIn(value, "\n".join(lines))
        self.assertIn("key is ***.", lines)
        self.assertIn("***", lines)
        self.assertIn("400 " + self.user, lines)
        self.assertIn("tmpfs", lines)
        self.assertFalse(os.path.exists(lines[-1]), lines[-1])
        self.assertEqual(lines[0].split()[0], digest)
        shown = self.h.belay("secret", "show", "--json", "wandb").stdout
        self.assertNotIn(value, shown)
        self.assertIn('"bytes": 40', shown)

    def test_a_session_with_a_job_shows_none(self):
        value = secrets.token_hex(20)
        self.set("wandb", value + "\n")
        job = str(
            self.submit(
                "--secret", "wandb=WANDB", self.h.script("echo go\nexec sleep 1000\n", "sleep.sh")
            )
        )
        wait_until(lambda: self.h.belay("logs", job).stdout.count("go\n"), "job %s runs" % job)
        says = (
            'echo "key is $WANDB."; echo "error $WANDB" >&2; '
            'printf "${WANDB%??????????}"; printf "%s" "${WANDB#??????????????????????????????}"; '
            'printf "$WANDB" | head -c 20 >&2'
        )
        expected = ("key is ***.\n***", "error ***\n" + value[:20], 0)
        done = self.h.belay("exec", job, "--", "sh", "-c", says)
        self.assertEqual((done.stdout, done.stderr, done.returncode), expected)
        self.h.kill("agent.pid")  # the next agent never had the value
        self.assertEqual(self.h.belay("up").returncode, 0)
        wait_until(
            lambda: self.h.belay("exec", job, "--", "true").returncode == 0, "sessions are possible"
        )
        done = self.h.belay("exec", job, "--", "sh", "-c", says)
        self.assertEqual((done.stdout, done.stderr, done.returncode), expected)
        self.check_terminal(job, value)
        self.h.belay("cancel", job)

    def check_terminal(self, job, value):
        """Also on a terminal, where the beginning of a value is shown after a moment."""
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(
                BUILD + "/cli/belay", ["belay", "exec", "-t", job, "--", "sh"], {**self.h.env}
            )
        seen = ""
        for say, expect in (
            ("stty -echo; echo re''ady\n", r"ready\r\n"),
            ('echo "key is $WANDB."\n', r"key is \*\*\*\.\r\n"),
            ("printf 'begins %.8s' $WANDB\n", "begins " + value[:8]),
            ("exit 5\n", None),
        ):
            os.write(fd, say.encode())
            while expect and not re.search(expect, seen):
                self.assertTrue(select.select([fd], [], [], WAIT_S)[0], seen)
                seen += os.read(fd, 65536).decode()
        with contextlib.suppress(OSError):  # the terminal is gone
            while True:
                piece = os.read(fd, 65536).decode()
                if not piece:
                    break
                seen += piece
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 5)
        os.close(fd)
        self.assertNotIn(value, seen)

    def test_what_is_not_there_is_refused(self):
        script = self.h.script("true\n", "true.sh")
        done = self.h.belay("submit", "--secret", "nosuch", script)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("%s has no secret nosuch" % self.user, done.stderr)
        done = self.h.belay("submit", "--secret", "bob/nosuch", script)
        self.assertIn("granted to this job", done.stderr)
        for bad in ("../x", "", "a=b=c", "a/", "a=1X"):
            self.assertEqual(self.h.belay("submit", "--secret", bad, script).returncode, 2, bad)
        for value, why in (
            ("short", "at least 8"),
            ("x" * 70000, "more than"),
            ("x\n" * 3, "8"),
            ("", "is empty"),
        ):
            done = self.h.belay("secret", "set", "bad", text=value)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(why, done.stderr)
        self.assertIn("is not a secret's name", self.h.belay("secret", "rm", ".x").stderr)

    def test_zero_bytes_at_the_end_belong_to_the_value(self):
        self.set("zeros", "key that ends\0\0\n")
        kept = json.loads(self.h.belay("secret", "list", "--json").stdout)["secrets"]
        self.assertEqual([s["bytes"] for s in kept if s["name"] == "zeros"], [15])

    def test_a_removed_secret_ends_a_job_that_waits(self):
        self.set("gone", secrets.token_hex(20))
        script = self.h.script("true\n", "true.sh")
        job = self.submit("--hold", "--secret", "gone", script)
        self.assertEqual(self.h.belay("secret", "rm", "gone").returncode, 0)
        self.assertEqual(self.h.belay("release", str(job)).returncode, 0)
        shown = self.end_of(job)
        self.assertEqual(shown["job"]["end"], "failed")
        text = shown["attempts"][-1]["text"]
        self.assertIn("has no secret gone", text)

    def test_grants_are_kept_and_taken_back(self):
        self.set("shared", secrets.token_hex(20))
        ok = self.h.belay("secret", "grant", "shared", "--user", "bob", "--pool", "local")
        self.assertEqual((ok.returncode, ok.stderr), (0, ""))
        self.set("shared", secrets.token_hex(20))  # a new value keeps them

        def grants():
            all_ = self.client.list_secrets()["secrets"]
            return [s["grants"] for s in all_ if s["name"] == "shared"][0]

        self.assertEqual(grants(), ["user:bob", "pool:local"])
        self.h.belay("secret", "grant", "shared", "--user", "bob", "--revoke")
        self.assertEqual(grants(), ["pool:local"])
        done = self.h.belay("secret", "grant", "shared", "--user", "bob", "--revoke")
        self.assertIn("is not granted to user:bob", done.stderr)

    def test_a_grant_names_a_team_and_a_pool_that_exist(self):
        self.set("named", secrets.token_hex(20))
        for words, why in (
            (("--pool", "locl"), 'there is no pool "locl"; did you mean "local"?'),
            (("--pool", "x"), 'there is no pool "x" (belay pools lists them)'),
            (("--user", "bob", "--pool", "x"), 'there is no pool "x"'),
        ):
            done = self.h.belay("secret", "grant", "named", *words)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(why, done.stderr)
        kept = self.client.list_secrets()["secrets"]
        self.assertEqual([s["grants"] for s in kept if s["name"] == "named"], [[]])
        # one to a pool or team that is gone can be taken back: it is only not granted
        done = self.h.belay("secret", "grant", "named", "--pool", "gone", "--revoke")
        self.assertIn("is not granted to pool:gone", done.stderr)


class Rotation(unittest.TestCase):
    """A new first key seals all secrets again, and the old one still opens environments."""

    def test_a_new_key_seals_the_secrets_again(self):
        with Home() as h:
            self.rotate(h)

    def sealed(self, h):
        database = sqlite3.connect("file:%s/belay.db?mode=ro" % h.home, uri=True)
        with contextlib.closing(database):
            return dict(database.execute("SELECT name, sealed FROM secrets"))

    def rotate(self, h):
        self.assertEqual(h.belay("up").returncode, 0)
        value = secrets.token_hex(20)
        for i in range(40):  # more than two slices
            done = h.belay("secret", "set", "s%d" % i, text=value + "%d" % i)
            self.assertEqual(done.returncode, 0, done.stderr)
        script = h.script('printf %s "$V" | sha256sum; test "$A" = b\n', "s.sh")
        words = ["submit", "--hold", "--export", "A=b", "--secret", "s7=V", script]
        job = int(h.belay(*words).stdout.split()[-1])
        self.assertEqual(h.belay("down").returncode, 0)
        old = {text.split(".")[1] for text in self.sealed(h).values()}
        self.assertEqual(len(old), 1)
        path = os.path.join(h.home, "secret.keys")
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:
            f.write(text.replace("\nkey ", "\nkey %s\nkey " % secrets.token_hex(32)))
        self.assertEqual(h.belay("up").returncode, 0)
        wait_until(
            lambda: not old & {text.split(".")[1] for text in self.sealed(h).values()},
            "all secrets are sealed with the new key",
        )
        self.assertEqual(len(self.sealed(h)), 40)
        self.assertEqual(h.belay("release", str(job)).returncode, 0)
        client = h.client()
        wait_until(lambda: client.show_job(job)["job"]["state"] == "ended", "the job ends")
        self.assertEqual(client.show_job(job)["job"]["end"], "succeeded")
        digest = hashlib.sha256((value + "7").encode()).hexdigest()
        self.assertIn(digest, h.belay("logs", str(job)).stdout)


def files_below(*places):
    for place in places:
        for top, _, names in os.walk(place):
            for name in names:
                with contextlib.suppress(OSError):
                    with open(os.path.join(top, name), "rb") as f:
                        yield os.path.join(top, name), f.read()


class Nowhere(unittest.TestCase):
    """Fifty secrets are planted and used. None is found where it should not be."""

    def test_none_of_fifty_is_found(self):
        if os.environ.get("ASAN_OPTIONS") and os.path.basename(BUILD) == "build-test":
            self.skipTest("the sanitizers keep freed memory")
        with Home() as h:
            self.plant(h)

    def plant(self, h):
        core = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (core[1], core[1]))
        self.assertEqual(h.belay("up").returncode, 0)
        values = [secrets.token_hex(16) for _ in range(PLANTED)]
        stored, exported, urls = values[:30], values[30:44], values[44:]
        for i, value in enumerate(stored):
            self.assertEqual(h.belay("secret", "set", "s%d" % i, text=value).returncode, 0)
        client, jobs = h.client(), []
        script = h.script('env; cat "$BELAY_SECRETS_DIR"/* 2>/dev/null\n', "all.sh")
        for at in range(0, 30, 10):
            flags = []
            for i in range(at, at + 10):
                flags += ["--secret", "s%d%s" % (i, "=V%d" % i if i % 2 else "")]
            jobs.append(h.belay("submit", *flags, script))
        quiet = h.script('test -n "$A"\n', "quiet.sh")
        for value in exported:
            jobs.append(h.belay("submit", "--export", "A=" + value, quiet))
        for value in urls:
            url = "https://hooks.example.com/" + value
            jobs.append(h.belay("submit", "--hold", "--notify", url, quiet))
        numbers = []
        for done in jobs:
            self.assertEqual(done.returncode, 0, done.stderr)
            numbers.append(int(done.stdout.split()[-1]))
        for job in numbers[: 3 + len(exported)]:
            wait_until(lambda: client.show_job(job)["job"]["state"] == "ended", "job %d" % job)
            self.assertEqual(client.show_job(job)["job"]["end"], "succeeded")
        log = h.belay("logs", str(numbers[0])).stdout
        self.assertGreaterEqual(log.count("***"), 6)  # adjacent files are one
        shown = client.show_job(numbers[3])["spec"]["env"]
        self.assertEqual(shown, {"A": exported[0]})
        database = sqlite3.connect(os.path.join(h.home, "belay.db"))
        backup = os.path.join(h.home, "backup.db")
        with sqlite3.connect(backup) as copy:
            database.backup(copy)
        database.close()
        copy.close()
        pid = h.pid("belayd.json")
        where = os.readlink("/proc/%d/cwd" % pid)
        os.kill(pid, signal.SIGABRT)
        wait_until(lambda: is_gone(pid), "belayd ends at SIGABRT")
        cores = glob.glob(os.path.join(where, "core*"))
        found, bytes_read = set(), 0
        looked = list(files_below(h.home))
        for path in cores:
            with open(path, "rb") as f:
                looked.append((path, f.read()))
        with open(os.path.join(h.home, "secret.keys")) as f:
            key = f.read().split("\nkey ")[1].strip()
        for path, content in looked:
            bytes_read += len(content)
            for value in values:
                if value.encode() in content or value.encode().hex().encode() in content:
                    found.add((path, "secret" if value in stored else "other"))
            if key.encode() in content and not path.endswith("/secret.keys"):
                found.add((path, "key"))
            if bytes.fromhex(key) in content:
                found.add((path, "key"))
        for path in cores:
            if not path.startswith(h.home):
                os.unlink(path)
        self.assertGreater(bytes_read, 100000)
        with open("/proc/sys/kernel/core_pattern") as f:
            if f.read().strip() == "core":
                self.assertTrue(cores, "SIGABRT of belayd left no core in %s" % where)
        self.assertEqual(sorted(found), [])
        self.assertEqual(h.belay("up").returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
