# SPDX-License-Identifier: Apache-2.0
"""The first hour with belay: runs first_hour/tasks.txt and compares what a newcomer sees with
first_hour/transcript.txt. With --write it renews that file: read it then as a newcomer would.
"""

import difflib
import json
import os
import pwd
import re
import select
import signal
import socket
import subprocess
import sys
import time
import unittest

from test_local import BUILD, WAIT_S, Home, wait_until

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "first_hour")
SLURM = ("sbatch", "squeue", "sacct", "scancel", "seff")

# What differs from one run or machine to another, in this order.
DIFFERS = (
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?", "2026-11-27 10:42:03"),
    (r"\b\d{4}-\d\d-\d\d \d\d:\d\d(?!:)", "2026-11-27 10:42"),
    (r"\b00:\d\d:\d\d\b", "00:00:03"),
    (r"(?<![\w-])\d+(\.\d+)?(ms|s)\b", "3s"),
    (r"\b\d+m\d\ds\b", "3s"),
    (r"at most \d+(\.\d+)? [KMG]iB|\b\d+(\.\d+)? GiB\b", "4 GiB"),
    (r"\$0\.00\d*", "$0.00"),
    (r"\bsaved -?\d+ %|\b\d+ % more", "saved 12 %"),
    (r"(?m)-?\b\d+(\.\d+)? ?%(?=[ :]|$)", "12 %"),
    (r"(?m)^   1          [.a-z=*!]+$", "   1          ....rrrr====*"),
)


class Hour:
    """Runs the lines of tasks.txt; `lines` is the transcript."""

    def __init__(self, home):
        self.h, self.lines, self.tasks = home, [], 0
        self.env = {**home.env, "PATH": home.dir + "/bin:" + os.environ["PATH"], "TZ": "UTC0"}
        self.env.pop("PYTHONPATH", None)
        self.work = os.path.join(home.dir, "work")
        self.bob = None
        os.makedirs(home.dir + "/bin")
        os.makedirs(self.work)
        for name in ("belay",) + SLURM:
            os.symlink(BUILD + "/cli/belay", home.dir + "/bin/" + name)

    def plain(self, text):
        host, me = socket.gethostname(), pwd.getpwuid(os.getuid()).pw_name
        text = text.replace(self.work, "~").replace(self.h.home, "~/.local/share/belay")
        text = text.replace(self.h.dir, "~").replace("\r", "")
        text = re.sub(r"\b%s\b" % re.escape(host), "laptop", text)
        text = re.sub(r"\b%s\b" % re.escape(me), "ann", text)
        for pattern, instead in DIFFERS:
            text = re.sub(pattern, instead, text)
        return text

    def add(self, text):
        self.lines += [line.rstrip() for line in self.plain(text).rstrip("\n").split("\n")]

    def start(self, command, env):
        return subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.work,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def interrupted(self, p, text):
        """The output of a process that is interrupted once it has printed the text."""
        seen, until = b"", time.monotonic() + WAIT_S
        while text.encode() not in seen:
            if not select.select([p.stdout], [], [], max(0, until - time.monotonic()))[0]:
                raise AssertionError("%s was not printed: %s" % (text, seen))
            piece = os.read(p.stdout.fileno(), 65536)
            if not piece:
                raise AssertionError("%s was not printed: %s" % (text, seen))
            seen += piece
        os.killpg(p.pid, signal.SIGINT)
        return seen + b"^C" + p.communicate(timeout=WAIT_S)[0]

    def output(self, p):
        """Of a process that ends by itself; else it is ended, and what it printed is shown."""
        try:
            return p.communicate(timeout=WAIT_S)[0]
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            raise AssertionError("no end in %d s: %s" % (WAIT_S, p.communicate()[0])) from None

    def command(self, prompt, line, env):
        command, _, text = line.partition(" ^C ")
        p = self.start(command, env)
        out = self.interrupted(p, text) if text else self.output(p)
        self.lines.append(prompt + command)
        if out:
            self.add(out.decode())
        if p.returncode:
            self.lines.append("[exit code %d]" % p.returncode)

    def bobs(self):
        """The environment of a second user."""
        if not self.bob:
            token = os.path.join(self.h.dir, "bob.token")
            with open(token, "w", opener=lambda p, f: os.open(p, f, 0o600)) as f:
                f.write(self.h.belay("token", "create", "--user", "bob").stdout)
            with open(os.path.join(self.h.home, "belayd.json")) as f:
                url = json.load(f)["url"]
            ca = os.path.join(self.h.home, "ca.pem")
            self.bob = {"BELAY_SERVER": url, "BELAY_TOKEN_FILE": token, "BELAY_CA_FILE": ca}
        return {**self.env, **self.bob}

    def wait(self, job, kind):
        client, after, kinds, until = self.h.client(), 0, [], time.monotonic() + WAIT_S
        while kind not in kinds:
            if time.monotonic() > until:
                raise AssertionError("job %s: no event %s in %d s: %s" % (job, kind, WAIT_S, kinds))
            page = client.job_events(int(job), after=after, wait_ms=5000)
            after = page["last"]
            kinds += [e["kind"] for e in page["events"]]

    def wait_all(self, array):
        """Until all tasks of an array have ended."""
        client = self.h.client()
        wait_until(lambda: client.show_job(int(array))["job"]["state"] == "ended", "all tasks end")
        for job in client.list_jobs(array=int(array), state="all")["jobs"]:
            self.wait(job["id"], "ended")

    def run(self, lines):
        lines = iter(lines)
        for line in lines:
            waiting = re.fullmatch(r"\(wait (\d+) (\S+)\)", line)
            if line.startswith("## "):
                self.tasks += 1
                self.lines += ["", "## %d. %s" % (self.tasks, line[3:])]
            elif line.startswith("#"):
                continue
            elif line.startswith("$ "):
                self.command("$ ", line[2:], self.env)
            elif line.startswith("bob$ "):
                self.command("bob$ ", line[5:], self.bobs())
            elif line.startswith("<"):
                with open(os.path.join(self.work, line[1:]), "w") as f:
                    self.lines.append("$ cat " + line[1:])
                    for text in iter(lambda: next(lines), "."):
                        f.write(text + "\n")
                        self.lines.append(text)
            elif line.startswith("(wait-all "):
                self.wait_all(line[10:-1])
            elif waiting:
                self.wait(*waiting.groups())
            elif line:
                raise AssertionError("tasks.txt: this line has no known form: " + line)
        while self.lines and not self.lines[0]:
            self.lines.pop(0)


def transcript():
    with Home() as h, open(os.path.join(HERE, "tasks.txt")) as f:
        hour = Hour(h)
        try:
            hour.run(f.read().splitlines())
        except BaseException:
            print("\n".join(hour.lines), file=sys.stderr)
            raise
        return hour


def squeezed(lines):
    """Without the widths of columns, which follow what was replaced."""
    return [re.sub(" +", " ", line) for line in lines]


class FirstHour(unittest.TestCase):
    def test_what_a_newcomer_sees_is_what_was_read(self):
        hour = transcript()
        self.assertGreaterEqual(hour.tasks, 25)
        with open(os.path.join(HERE, "transcript.txt")) as f:
            expected = f.read().splitlines()
        diff = list(difflib.unified_diff(squeezed(expected), squeezed(hour.lines), "read", "seen"))
        self.assertEqual(diff, [], "\n" + "\n".join(diff))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        text = "\n".join(transcript().lines) + "\n"
        with open(os.path.join(HERE, "transcript.txt"), "w") as file:
            file.write(text)
    else:
        unittest.main()
