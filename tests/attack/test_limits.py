# SPDX-License-Identifier: Apache-2.0
"""A job that requested nothing takes all that it can get: processes and memory are limited, set-uid
programs give it no rights if the node forbids them, and the OOM killer prefers the job to its
supervisor."""

import glob
import json
import os
import subprocess
import sys
import unittest

import lab

PIDS = 64
MORE = (
    """\
case $2 in */agent.yaml) grep -q ^task_pids "$2" || printf 'task_pids: %d\\nno_new_privs: yes\\n' >>"$2" ;; esac
"""
    % PIDS
)

# A machine without usable cgroups: they are hidden only from the agent and its tasks.
NO_CGROUPS = """\
if [ -z "$BELAY_TEST_HIDDEN" ]; then
  export BELAY_TEST_HIDDEN=1
  exec unshare -m sh -c 'mount -t tmpfs -o ro none /sys/fs/cgroup && exec "$0" "$@"' "$0" "$@"
fi
"""

# Prints its findings on one line. It keeps its processes until the test has examined its
# supervisor.
JOB = r"""#!/usr/bin/python3
import json, os, re, signal, sys, time
def groups():
    with open("/proc/self/cgroup") as f:
        for line in f:
            _, kinds, path = line.rstrip("\n").split(":", 2)
            yield kinds.split(","), path
def number(v1, v2):
    for kinds, path in groups():
        for place in (("/sys/fs/cgroup/memory", v1) if "memory" in kinds else ("/sys/fs/cgroup", v2),):
            try:
                with open(place[0] + path + "/" + place[1]) as f:
                    text = f.read().strip()
                if text.isdigit():
                    return int(text)
            except OSError:
                pass
def limit():
    return number("memory.limit_in_bytes", "memory.max")
children, refused = [], False
try:
    while len(children) < 1000:
        pid = os.fork()
        if pid == 0:
            signal.pause()
            os._exit(0)
        children.append(pid)
except OSError:
    refused = True
with open("/proc/self/oom_score_adj") as f:
    score = int(f.read())
with open("/proc/self/status") as f:
    privs = re.search(r"NoNewPrivs:\s*(\d)", f.read())[1]
found = {"children": len(children), "refused": refused, "score": score, "privs": privs, "limit": limit(),
         "with_swap": number("memory.memsw.limit_in_bytes", "-"), "swap": number("-", "memory.swap.max")}
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
print("found", json.dumps(found), flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
"""


def read(path):
    with open(path) as f:
        return f.read()


def may_protect():
    """Whether root may do so here (CAP_SYS_RESOURCE)."""
    return (
        subprocess.run(
            ["sh", "-c", "echo -900 >/proc/self/oom_score_adj"], stderr=subprocess.DEVNULL
        ).returncode
        == 0
    )


class Limits(unittest.TestCase):
    def test_a_job_that_asked_for_nothing_has_an_end(self):
        with lab.Lab(agent_prelude=MORE) as l:
            seen = os.path.join(l.dir, "seen")
            job = l.post("/jobs", {"script": JOB, "args": [seen], "cwd": "/"})["id"]
            found = json.loads(l.wait_log(job, "^found (.*)$")[1])
            scores = {
                int(read("/proc/%d/oom_score_adj" % pid)) for pid in l.agents() + l.supervisors()
            }
            other = l.wait_ended(l.submit("plain.sh", 1))  # in parallel with it
            with open(seen, "w"):
                pass
            l.wait_ended(job)
            self.assertEqual([a["end"] for a in other["attempts"]], ["succeeded"])
            self.assertTrue(found["refused"])
            self.assertLess(found["children"], PIDS)
            self.assertEqual(found["privs"], "1")
            self.assertEqual(scores, {-900 if may_protect() else 0})
            self.assertGreaterEqual(found["score"], 0)
            memory = int(read("/proc/meminfo").split()[1]) << 10
            self.assertTrue(found["limit"] and memory / 2 < found["limit"] < memory, found)
            if found["with_swap"] is None and found["swap"] is None:
                print("SKIP: this kernel does not count swap")
            else:
                self.assertTrue(found["with_swap"] == found["limit"] or found["swap"] == 0, found)

    def test_limits_that_cannot_be_set_are_said_once(self):
        with lab.Lab(agent_prelude=NO_CGROUPS, pool={"max_nodes": 1, "idle_timeout": "8s"}) as l:
            for _ in range(3):
                l.wait_ended(l.post("/jobs", {"script": "#!/bin/sh\ntrue\n", "cwd": "/"})["id"])
            (line,) = self.said(l)
            self.assertRegex(line, r" warn: .*Delegate=yes.*not_limited=.*memory \(.*processes \(")

    def test_an_agent_that_can_set_them_says_nothing(self):
        with lab.Lab() as l:
            l.wait_ended(l.submit("plain.sh", 1))
            self.assertEqual(self.said(l), [])

    def said(self, l):
        """Warnings about limits, by all agents."""
        return [
            line
            for path in glob.glob(l.dir + "/machines/*.console")
            for line in read(path).splitlines()
            if "limits of tasks cannot be set" in line
        ]


def why_not():
    if os.geteuid() != 0:
        return "limits of cgroups need root"
    kinds = {line.split()[0]: line.split()[3] for line in read("/proc/cgroups").splitlines()[1:]}
    for kind in "pids", "memory":
        if kinds.get(kind) != "1":
            return "this machine has no controller %s" % kind
    return None


if __name__ == "__main__":
    reason = why_not()
    if reason:
        print("SKIP: %s" % reason)
        sys.exit(77)
    unittest.main(verbosity=2)
