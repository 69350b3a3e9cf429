# SPDX-License-Identifier: Apache-2.0
"""A job that asked for nothing takes all it can get: processes and memory have an end, set-uid programs give it nothing where the node
says so, and the kernel would rather kill the job than what watches over it."""

import json
import os
import subprocess
import sys
import unittest

import lab

PIDS = 64
MORE = """\
case $2 in */agent.yaml) grep -q ^task_pids "$2" || printf 'task_pids: %d\\nno_new_privs: yes\\n' >>"$2" ;; esac
""" % PIDS

# What it finds, on one line. It holds what it could start until the test has looked at its supervisor.
JOB = r"""#!/usr/bin/python3
import json, os, re, signal, sys, time
def groups():
    with open("/proc/self/cgroup") as f:
        for line in f:
            _, kinds, path = line.rstrip("\n").split(":", 2)
            yield kinds.split(","), path
def limit():
    for kinds, path in groups():
        for place in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes") if "memory" in kinds else ("/sys/fs/cgroup", "memory.max"),):
            try:
                with open(place[0] + path + "/" + place[1]) as f:
                    text = f.read().strip()
                if text.isdigit():
                    return int(text)
            except OSError:
                pass
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
found = {"children": len(children), "refused": refused, "score": score, "privs": privs, "limit": limit()}
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
    return subprocess.run(["sh", "-c", "echo -900 >/proc/self/oom_score_adj"], stderr=subprocess.DEVNULL).returncode == 0


class Limits(unittest.TestCase):
    def test_a_job_that_asked_for_nothing_has_an_end(self):
        with lab.Lab(agent_prelude=MORE) as l:
            seen = os.path.join(l.dir, "seen")
            job = l.post("/jobs", {"script": JOB, "args": [seen], "cwd": "/"})["id"]
            found = json.loads(l.wait_log(job, "^found (.*)$")[1])
            scores = {int(read("/proc/%d/oom_score_adj" % pid)) for pid in l.agents() + l.supervisors()}
            other = l.wait_ended(l.submit("plain.sh", 1))  # beside it
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
