# SPDX-License-Identifier: Apache-2.0
"""Jobs of root and of system users, submitted by belayd's administrator and by such a user itself:
a node whose own configuration does not name the user runs none of them, and jobs of other users as
before."""

import glob
import json
import os
import pwd
import stat
import sys
import unittest

import lab

PERSON = pwd.getpwnam("nobody").pw_uid  # not below UID_MIN


class Submitter(lab.Lab):
    def start(self):
        os.chmod(self.dir, 0o711)
        self.open_dir = os.path.join(self.dir, "open")  # for every user
        os.mkdir(self.open_dir)
        os.chmod(self.open_dir, 0o1777)
        self.env["TMPDIR"] = self.dir
        super().start()
        os.chmod(self.home, 0o711)

    def submit_as(self, uid, script, **spec):
        """From a process of that user, which belayd identifies by the socket."""
        out, into = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.chdir(self.home)
                os.seteuid(uid)
                c = lab.Unix("belayd.sock", lab.WAIT_S)
                c.request(
                    "POST",
                    "/api/v1/jobs",
                    json.dumps({"script": script, "cwd": "/", **spec}),
                    {"Content-Type": "application/json"},
                )
                os.write(into, c.getresponse().read())
            finally:
                os._exit(0)
        os.close(into)
        with open(out, "rb") as f:
            said = json.loads(f.read())
        os.waitpid(pid, 0)
        if "id" not in said:
            raise AssertionError("the job was not taken: %s" % said)
        return said["id"]


class DefaultPlace(Submitter):
    names_dir = False

    def places(self):
        """The directory of the emulator, and those of its machines."""
        base = glob.glob(os.path.join(self.dir, "belay-emulator.*"))
        machines = [p for p in glob.glob(os.path.join(base[0], "i-*")) if os.path.isdir(p)]
        assert len(base) == 1 and machines, (base, machines)
        return base + machines


class SystemUser(unittest.TestCase):
    def check(self, l, uid, end):
        proof = os.path.join(l.open_dir, "proof-%d" % uid)
        shown = l.wait_ended(l.submit_as(uid, "#!/bin/sh\nid -u >%s\n" % proof))
        last = shown["attempts"][-1]
        self.assertEqual(last["end"], end, last["text"])
        self.assertEqual(os.path.exists(proof), end == "succeeded")
        return json.dumps(shown)

    def logs(self, l):
        """Of its agents."""
        said = ""
        for root, _, names in os.walk(os.path.join(l.dir, "machines")):
            for name in names:
                if name.endswith((".log", ".console")):
                    with open(os.path.join(root, name), errors="replace") as f:
                        said += f.read()
        return said

    def test_a_node_that_does_not_name_them_runs_nothing_of_them(self):
        with Submitter(agent_prelude="unset BELAY_NODE_SYSTEM_USERS") as l:
            for uid in 0, 1:
                name = pwd.getpwuid(uid).pw_name
                self.assertIn("system_users: [%s]" % name, self.check(l, uid, "failed"))
            self.assertIn("system_users", self.logs(l))
            self.assertNotIn(" error: ", self.logs(l))  # a refusal is no fault of the agent

    def test_a_node_that_names_root_runs_roots_jobs_and_no_other_system_users(self):
        with Submitter() as l:
            self.check(l, 0, "succeeded")
            self.check(l, 1, "failed")
            self.check(l, PERSON, "succeeded")

    def test_other_users_jobs_run_where_the_emulator_keeps_its_machines_by_default(self):
        with DefaultPlace() as l:
            self.check(l, PERSON, "succeeded")
            self.assertEqual(
                {stat.S_IMODE(os.stat(path).st_mode) for path in l.places()}, {0o711}
            )  # others can go through it, and list nothing


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("SKIP: agents that run others' jobs need root")
        sys.exit(77)
    unittest.main(verbosity=2)
