# SPDX-License-Identifier: Apache-2.0
"""A user's job looks for the arguments of another user's job on the same node: it does not even see
the processes, on any node with a root agent, without changes to the node."""

import os
import pwd
import sys
import unittest

from lab import read_bytes
from test_system_user import PERSON, Submitter

OTHER = pwd.getpwnam("daemon").pw_uid
SECRET = "secret-of-another"
HOLDER = (
    "#!/bin/sh\necho up\nsleep 1000\necho over\n"  # the shell keeps running, with its arguments
)
SPY = """#!/bin/sh
with=$(grep -las 's[e]cret-of-another' /proc/[0-9]*/cmdline | wc -l)
others=$(find /proc -maxdepth 1 -name '[0-9]*' ! -user nobody 2>/dev/null | wc -l)
echo "found $with of $others"
"""
PRELUDE = """export BELAY_NODE_SYSTEM_USERS=root,daemon
case $2 in */agent.yaml) grep -q ^hide_processes "$2" || printf '%s\\n' >>"$2" ;; esac
"""


def with_secret():
    """The processes that every user can see outside of jobs."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if SECRET.encode() in read_bytes("/proc/%s/cmdline" % entry):
                found.append(int(entry))
        except OSError:
            pass
    return found


class Processes(unittest.TestCase):
    def spy(self, more):
        """How many processes a user's job sees with the secret in their arguments, and how many of
        other users."""
        with Submitter(pool={"max_nodes": 1}, agent_prelude=PRELUDE % more) as l:
            first = l.post("/jobs", {"script": HOLDER, "cwd": "/"})["id"]
            l.wait_log(first, "^up$")  # now there is a node, and it stays
            for at, dirs, _ in os.walk(l.dir):
                os.chmod(at, 0o755)
                dirs[:] = [
                    d for d in dirs if d not in ("tasks", "kept", "workdirs", "store", "open")
                ]
            job = l.submit_as(OTHER, HOLDER, args=[SECRET])
            l.wait_log(job, "^up$")
            self.assertGreater(len(with_secret()), 0)
            l.post("/jobs/%d/cancel" % first)  # the node may have two processors only
            l.wait_ended(first)
            found = l.wait_log(l.submit_as(PERSON, SPY), r"^found (\d+) of (\d+)$")
            l.post("/jobs/%d/cancel" % job)
            l.wait_ended(job)
            return int(found[1]), int(found[2])

    def test_a_job_sees_no_process_of_another_user(self):
        self.assertEqual(self.spy("#"), (0, 0))

    def test_it_would_where_the_node_shows_them(self):
        found, others = self.spy("hide_processes: no")
        self.assertGreater(found, 0)
        self.assertGreater(others, found)


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("SKIP: an agent that is not root runs jobs of its own user alone")
        sys.exit(77)
    unittest.main(verbosity=2)
