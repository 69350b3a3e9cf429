# SPDX-License-Identifier: Apache-2.0
"""A user's job replaces a directory by a symbolic link to root's files, inside directories that a
root agent makes for other jobs of that user. It must not get ownership of them: neither with a sent
working directory, nor with a restored checkpoint. The same with 10,000 tries on each path, without
belayd: tests/agent/test_race.c."""

import os
import subprocess
import sys
import unittest

from lab import BUILD, Lab

SKIPPED = 77
NOBODY = 65534
FILES = 400
WORKDIRS = 12
RESTORES = 4

# In whichever of these directories appears, replaces d by a link to root's files as soon as
# possible.
RACER = """#!/usr/bin/env python3
import os, sys
tasks, victim = os.path.dirname(os.path.dirname(os.environ["BELAY_CONTROL_DIR"])), %(victim)r
last = %(last)d
print("begun", flush=True)
mine = int(os.environ["BELAY_JOB_ID"])
subs = ((1, "workdir"), (2, "checkpoint"))
places = ["%%s/%%d-%%d/%%s" %% (tasks, job, attempt, sub)
          for job in range(mine + 1, mine + last + 1) for attempt, sub in subs]
won = set()
while True:
    for place in places:
        if place in won:
            continue
        try:
            os.rename(place + "/d", place + "/aside")
            os.symlink(victim, place + "/d")
            won.add(place)
            print("swapped", place[len(tasks):], flush=True)
        except OSError:
            pass
"""

# Attempt 1 saves a tree and exits to be requeued; attempt 2 gets it restored.
SAVER = (
    """#!/bin/sh
if [ "$BELAY_ATTEMPT" = 1 ]; then
    cd "$BELAY_CHECKPOINT_DIR" && mkdir d && echo mine >d/secret
    n=0
    while [ $n -lt %d ]; do n=$((n + 1)); echo $n >a$n; done
    cd "$BELAY_CONTROL_DIR" && printf '{}' >commit.1.new && ln commit.1.new commit.1
    while [ ! -e result.1 ]; do sleep 0.05; done
    exit 85
fi
exit 0
"""
    % FILES
)


def as_nobody(fn):
    """The result of fn (a number), called in a process of that user."""
    answer, to = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(to, b"%d" % fn())
        finally:
            os._exit(0)
    os.close(to)
    text = os.read(answer, 20)
    os.close(answer)
    os.waitpid(pid, 0)
    return int(text)


class Trees(unittest.TestCase):
    def reach(self, l):
        """Lets the node's user reach the directories of its tasks."""
        for at, dirs, _ in os.walk(l.dir):
            os.chmod(at, 0o755)
            dirs[:] = [d for d in dirs if d not in ("tasks", "kept", "workdirs", "store")]

    def victim(self, l):
        path = os.path.join(l.dir, "roots")
        os.mkdir(path, 0o755)
        for name in ("secret", "other"):
            with open(os.path.join(path, name), "w") as f:
                f.write("of root\n")
            os.chmod(os.path.join(path, name), 0o600)
        return path

    def check(self, path):
        for name in ("secret", "other"):
            st = os.lstat(os.path.join(path, name))
            self.assertEqual(
                (st.st_uid, st.st_gid, st.st_mode & 0o7777),
                (0, 0, 0o600),
                "%s was given away" % name,
            )
        st = os.lstat(path)
        self.assertEqual((st.st_uid, st.st_mode & 0o7777), (0, 0o755))

    def send(self, l):
        """A directory of the user, to be sent with jobs."""
        path = os.path.join(l.dir, "sent")
        os.makedirs(os.path.join(path, "d"))
        names = ["a%03d" % i for i in range(FILES)] + ["d/secret"]
        for name in names:
            with open(os.path.join(path, name), "w") as f:
                f.write("mine\n")
        for at, _, files in os.walk(path):
            os.chown(at, NOBODY, NOBODY)
            for name in files:
                os.chown(os.path.join(at, name), NOBODY, NOBODY)
        return path

    def submit_with_workdir(self, l, sent):
        command = [
            os.path.join(BUILD, "cli", "belay"),
            "submit",
            "--parsable",
            "--workdir",
            "upload",
            "--chdir",
            sent,
            "--wrap",
            "true",
        ]
        done = subprocess.run(
            command,
            env={**l.env, "HOME": sent},
            cwd=sent,
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(done.stdout)

    def test_a_job_is_not_given_what_is_roots(self):
        pool = {"max_nodes": 1}
        with Lab(pool=pool) as l:
            os.chmod(l.dir, 0o755)
            os.chmod(l.home, 0o755)
            victim, sent = self.victim(l), self.send(l)
            spec = {"cwd": "/", "checkpoint": {"method": "none"}}
            script = "#!/bin/sh\necho up; exec sleep 1000\n"
            holder = l.post("/jobs", {"name": "holder", "script": script, **spec})["id"]
            l.wait_log(holder, "^up$")  # now there is a node, and it stays
            self.reach(l)
            script = RACER % {"victim": victim, "last": 2 * (WORKDIRS + RESTORES)}
            spec = {"name": "racer", "script": script, **spec}
            racer = as_nobody(lambda: l.post("/jobs", spec)["id"])
            l.wait_log(racer, "^begun$")
            l.post("/jobs/%d/cancel" % holder)  # the node may have two processors only
            l.wait_ended(holder)
            for _ in range(WORKDIRS):
                job = self.submit_with_workdir(l, sent)
                l.wait_ended(job)
                self.check(victim)
            for _ in range(RESTORES):
                job = as_nobody(
                    lambda: l.post(
                        "/jobs",
                        {
                            "name": "saver",
                            "script": SAVER,
                            "cwd": "/",
                            "checkpoint": {"method": "coop", "every_ms": 3600000},
                        },
                    )["id"]
                )
                ends = [a["end"] for a in l.wait_ended(job)["attempts"]]
                self.assertEqual(ends, ["checkpointed", "succeeded"])
                self.check(victim)
            l.wait_log(racer, "^swapped")  # otherwise it had no chance
            l.post("/jobs/%d/cancel" % racer)
            l.wait_ended(racer)
            self.check(victim)


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("skipped: an agent that is not root runs jobs of its own user alone")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
