# SPDX-License-Identifier: Apache-2.0
"""Run by test_criu.py in an emulated machine: plain programs under CRIU, with the cloud
emulator."""

import os
import random
import subprocess
import time
import unittest

from lab import JOBS, PYTHON, Lab

SEED = int(os.environ.get("BELAY_PROGRAMS_SEED") or random.SystemRandom().randrange(1000000))
RECLAIMS = int(os.environ.get("BELAY_CRIU_RECLAIMS") or 10)
NOTICE_S = 30
RUN_S = 90  # an emulated machine is slow
CWD = "/home/job"
# Resources that programs often hold: unnamed temporary files, memory, sockets between themselves.
# For a user other than root, named sockets and removed files are saved only below TMPDIR.
HOLDS = """#!%s
import mmap, os, select, socket, tempfile, time
temporary = tempfile.TemporaryFile()
temporary.write(b"kept")
temporary.flush()
os.chdir(os.environ["TMPDIR"])
removed = open("removed", "w+")
os.unlink("removed")
memory = mmap.mmap(-1, 4096)
memory[:4] = b"kept"
library = open("%s", "rb")
mapped = mmap.mmap(library.fileno(), 4096, prot=mmap.PROT_READ)
a, b = socket.socketpair()
server, client = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
server.bind(os.path.abspath("server.sock"))
client.connect(os.path.abspath("server.sock"))
os.chdir("%s")
poll = select.epoll()
poll.register(b, select.EPOLLIN)
null = open("/dev/null", "r+")
print("ready", flush=True)
while not os.path.exists("go"):
    time.sleep(0.1)
temporary.seek(0)
a.send(b"kept")
client.send(b"kept")
removed.write("kept")
removed.flush()
print("holds", temporary.read(), memory[:4], poll.poll(10) == [(b.fileno(), select.EPOLLIN)],
      b.recv(4), server.recv(4), mapped[1:4], flush=True)
""" % (
    PYTHON,
    PYTHON,
    CWD,
)
SLOW = {"lease": "20s", "kill_wait": "5s", "settle": "10s", "encryption": "client"}


def undisturbed(*args):
    path = os.path.join(CWD, "alone")
    done = subprocess.run(
        [PYTHON, os.path.join(JOBS, "plain.py"), str(args[0]), path, *map(str, args[1:])],
        stdout=subprocess.PIPE,
        text=True,
    )
    with open(path) as f:
        return done.returncode, done.stdout, f.read()


def said(l, job):
    """The job's output without belay's own lines between the attempts."""
    return "".join(
        line for line in l.log(job).splitlines(True) if not line.startswith("---- belay: ")
    )


def as_user(submit):
    """Returns the job's number."""
    answer, to = os.pipe()
    if os.fork() == 0:
        os.setgid(1000)
        os.setuid(1000)
        os.write(to, b"%d" % submit())
        os._exit(0)
    os.close(to)
    job = int(os.read(answer, 20))
    os.close(answer)
    os.wait()
    return job


class Criu(unittest.TestCase):
    def setUp(self):
        self.random = random.Random("%d %s" % (SEED, self.id()))
        self.began = time.monotonic()
        print("seed %d" % SEED, flush=True)
        self.addCleanup(lambda: print("took %d s" % (time.monotonic() - self.began), flush=True))

    def submit(self, l, *args, every_ms=3600000, **spec):
        return l.submit("plain.py", *args, method="criu", every_ms=every_ms, **{"cwd": CWD, **spec})

    def check(self, l, job, path, expected, ends):
        shown = l.wait_ended(job, timeout_s=RUN_S)
        code, output, content = expected
        self.assertEqual([a["end"] for a in shown["attempts"]], ends + ["failed"])
        self.assertEqual(shown["job"]["exit_code"], code)
        self.assertEqual(said(l, job), output)
        with open(path) as f:
            self.assertEqual(f.read(), content)
        return shown

    def test_a_plain_script_with_a_child_a_pipe_and_open_files(self):
        steps, path = 100 * RECLAIMS + 200, os.path.join(CWD, "out")
        expected = undisturbed(steps)
        self.assertEqual(expected[0], 7)
        with Lab(belayd=SLOW) as l:
            job = self.submit(l, steps, path)
            for n, far in enumerate(sorted(self.random.random() for _ in range(RECLAIMS)), 1):
                l.wait_event(job, "started", n, timeout_s=RUN_S)
                l.wait_log(
                    job, "^step %d " % max(10, int(0.8 * far * steps) // 10 * 10), timeout_s=RUN_S
                )
                time.sleep(self.random.random() * 0.2)
                l.cloud({"reclaim": {"instance": l.instance_of(job), "notice_s": NOTICE_S}})
                l.wait_event(job, "requeued", n, timeout_s=RUN_S)
                if n % 2:  # as on a machine without it
                    os.rename(path, path + ".gone")
                print("reclaim %d after %d s" % (n, time.monotonic() - self.began), flush=True)
            shown = self.check(l, job, path, expected, ["reclaimed"] * RECLAIMS)
            self.assertEqual(
                [a["restored"] is not None for a in shown["attempts"]], [False] + [True] * RECLAIMS
            )

    def reclaim(self, l, job, n=1):
        l.cloud({"reclaim": {"instance": l.instance_of(job), "notice_s": NOTICE_S}})
        l.wait_event(job, "requeued", n, timeout_s=RUN_S)

    def test_a_node_that_vanishes_costs_what_was_done_since_the_last_save(self):
        steps, path = 200, os.path.join(CWD, "vanishes")
        expected = undisturbed(steps)
        with Lab(belayd=SLOW) as l:
            job = self.submit(l, steps, path, every_ms=1000)
            l.wait_event(job, "saved", 2, timeout_s=RUN_S)
            l.cloud({"reclaim": {"instance": l.instance_of(job), "without_notice": True}})
            shown = l.wait_ended(job, timeout_s=RUN_S)
            self.assertEqual(len(shown["attempts"]), 2)
            self.assertIsNotNone(shown["attempts"][1]["restored"])
            with open(path) as f:  # output after the save was undone
                self.assertEqual(f.read(), expected[2])
            self.assertEqual(said(l, job).splitlines()[-1], expected[1].splitlines()[-1])

    def test_of_much_memory_most_is_dumped_before_the_freeze(self):
        steps, path = 300, os.path.join(CWD, "large")
        expected = undisturbed(steps, 80)
        with Lab(belayd=SLOW) as l:
            job = self.submit(l, steps, path, 80)
            l.wait_log(job, "^step 20 ", timeout_s=RUN_S)
            l.post(
                "/jobs/%d/requeue" % job
            )  # without a deadline, because an emulated machine stores slowly
            shown = self.check(l, job, path, expected, ["user"])
            self.assertGreater(shown["checkpoints"][-1]["bytes"], 80 << 20)

    def test_what_cannot_be_resumed_there_is_held_and_what_cannot_be_saved_says_why(self):
        theirs = "/home/theirs"  # not below the job's directory
        os.makedirs(theirs, exist_ok=True)
        reads = os.path.join(theirs, "input")
        with open(reads, "w") as f:
            f.write("something\n")
        script = "#!/bin/sh\nexec 5<%s\nread -r text <&5\necho begin $text\nn=0\nwhile [ $n -lt 60 ]; do n=$((n + 1)); %s; done\necho end\n"
        pause = PYTHON + " -c 'import time; time.sleep(0.3)'"
        with Lab(belayd=SLOW) as l:
            job = l.post(
                "/jobs",
                {
                    "name": "reads",
                    "script": script % (reads, pause),
                    "cwd": CWD,
                    "checkpoint": {"method": "criu", "every_ms": 3600000},
                },
            )["id"]
            l.wait_log(job, "^begin something$", timeout_s=RUN_S)
            self.reclaim(l, job)
            with open(reads, "w") as f:
                f.write("something else\n")
            text = l.wait_event(job, "restore-failed", timeout_s=RUN_S)["text"]
            self.assertRegex(
                text,
                "^checkpoint 1.1 cannot be resumed here: .*theirs/input has bad size 15 .expect 10.",
            )
            l.wait_event(job, "held", timeout_s=RUN_S)
            self.assertIsNone(l.show(job)["attempts"][1]["restored"])
            l.post("/jobs/%d/release" % job, {"from_scratch": True})
            l.wait_log(job, "^begin something else$", timeout_s=RUN_S)
            l.post("/jobs/%d/cancel" % job)
            daemon = "#!/bin/sh\n%s -c 'import os, time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0: time.sleep(600)\n'\n%s\n"
            job = l.post(
                "/jobs",
                {
                    "name": "daemon",
                    "script": daemon % (PYTHON, PYTHON + " -c 'import time; time.sleep(600)'"),
                    "cwd": CWD,
                    "checkpoint": {"method": "criu", "every_ms": 1000},
                },
            )["id"]
            text = l.wait_event(job, "save-failed", timeout_s=RUN_S)["text"]
            self.assertRegex(
                text,
                "^criu dump failed with exit code 1: process [0-9]+ .* has left the job's tree of processes",
            )
            self.assertEqual(l.job(job)["state"], "running")

    def test_a_user_who_is_not_root_has_their_own_again(self):
        steps, path = 200, os.path.join(CWD, "user")
        os.chown(CWD, 1000, 1000)
        self.addCleanup(os.chown, CWD, 0, 0)
        with Lab(belayd=SLOW) as l:
            os.chmod(l.dir, 0o755)
            os.chmod(l.home, 0o755)
            job = as_user(lambda: self.submit(l, steps, path))
            l.wait_log(job, "^step 20 ", timeout_s=RUN_S)
            self.reclaim(l, job)
            os.unlink(path)
            l.wait_event(job, "started", 2, timeout_s=RUN_S)
            shown = l.wait_ended(job, timeout_s=RUN_S)
            self.assertEqual([a["end"] for a in shown["attempts"]], ["reclaimed", "failed"])
            self.assertIsNotNone(shown["attempts"][1]["restored"])
            self.assertEqual(os.stat(path).st_uid, 1000)
            with open(path) as f:
                self.assertEqual(len(f.readlines()), steps)

    def test_what_a_users_program_often_holds_comes_back(self):
        os.chown(CWD, 1000, 1000)
        self.addCleanup(os.chown, CWD, 0, 0)
        with Lab(belayd=SLOW) as l:
            os.chmod(l.dir, 0o755)
            os.chmod(l.home, 0o755)
            job = as_user(
                lambda: l.post(
                    "/jobs",
                    {
                        "name": "holds",
                        "script": HOLDS,
                        "cwd": CWD,
                        "checkpoint": {"method": "criu", "every_ms": 3600000},
                    },
                )["id"]
            )
            l.wait_log(job, "^ready$", timeout_s=RUN_S)
            self.reclaim(l, job)
            l.wait_event(job, "started", 2, timeout_s=RUN_S)
            with open(os.path.join(CWD, "go"), "w"):
                pass
            shown = l.wait_ended(job, timeout_s=RUN_S)
            self.assertIsNotNone(shown["attempts"][1]["restored"])
            self.assertIn("holds b'kept' b'kept' True b'kept' b'kept' b'ELF'\n", l.log(job))

    def test_a_removed_file_where_the_user_can_write_is_not_saved(self):
        os.chown(CWD, 1000, 1000)
        self.addCleanup(os.chown, CWD, 0, 0)
        script = "#!/bin/sh\nexec 5>removed\nrm removed\necho ready\n" "while :; do sleep 1; done\n"
        with Lab(belayd=SLOW) as l:
            os.chmod(l.dir, 0o755)
            os.chmod(l.home, 0o755)
            job = as_user(
                lambda: l.post(
                    "/jobs",
                    {
                        "name": "removed",
                        "script": script,
                        "cwd": CWD,
                        "checkpoint": {"method": "criu", "every_ms": 1000},
                    },
                )["id"]
            )
            text = l.wait_event(job, "save-failed", timeout_s=RUN_S)["text"]
            self.assertRegex(text, "%s/removed was removed while open: CRIU restores such" % CWD)
            self.assertEqual(l.job(job)["state"], "running")

    def test_a_file_of_root_in_the_place_of_the_users_own_is_refused(self):
        theirs, secret = "/home/ann", "/root/secret"
        os.makedirs(theirs, exist_ok=True)
        for path, owner in ((os.path.join(theirs, "input"), 1000), (secret, 0)):
            with open(path, "w") as f:
                f.write("something\n")
            os.chmod(path, 0o600)
            os.chown(path, owner, owner)
        os.chown(theirs, 1000, 1000)
        os.chown(CWD, 1000, 1000)
        self.addCleanup(os.chown, CWD, 0, 0)
        script = (
            "#!/bin/sh\nexec 5<%s/input\nread -r text <&5\necho begin $text\n"
            "n=0\nwhile [ $n -lt 200 ]; do n=$((n + 1)); sleep 1; done\n" % theirs
        )
        with Lab(belayd=SLOW) as l:
            os.chmod(l.dir, 0o755)
            os.chmod(l.home, 0o755)
            job = as_user(
                lambda: l.post(
                    "/jobs",
                    {
                        "name": "reads",
                        "script": script,
                        "cwd": CWD,
                        "checkpoint": {"method": "criu", "every_ms": 3600000},
                    },
                )["id"]
            )
            l.wait_log(job, "^begin something$", timeout_s=RUN_S)
            self.reclaim(l, job)
            os.unlink(os.path.join(theirs, "input"))
            os.symlink(secret, os.path.join(theirs, "input"))
            text = l.wait_event(job, "restore-failed", timeout_s=RUN_S)["text"]
            self.assertRegex(
                text,
                "^checkpoint 1.1 cannot be resumed here: .*/root/secret is open for "
                "reading in process 1000, and ann has no right to that",
            )
            self.assertIsNone(l.show(job)["attempts"][1]["restored"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
