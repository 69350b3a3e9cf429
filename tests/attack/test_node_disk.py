# SPDX-License-Identifier: Apache-2.0
"""A user fills the disk of a node, with the output of a job or with files: jobs of other users
there end normally, or wait until there is space. No job loses a retry, and the node is not lost."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "scheduler")]
import small_disk  # noqa: E402
from belayd import BUILD, CONFIG, WAIT_S, Belayd  # noqa: E402

EVE, ANN = "daemon", "nobody"
FLOOD = "#!/bin/sh\nyes aaaa; sleep 60\n"
FILES = """\
#!/bin/sh
dd if=/dev/zero of="$BELAY_CONTROL_DIR/big" bs=64k 2>/dev/null
while [ -e "$BELAY_CONTROL_DIR/big" ]; do sleep 0.05; done
"""
FILLER = """\
#!/bin/sh
dd if=/dev/zero of="$BELAY_CHECKPOINT_DIR/x" bs=64k 2>/dev/null
exec sleep 1000
"""
WAITS = """\
#!/bin/sh
while [ ! -e "$BELAY_CONTROL_DIR/../go" ]; do sleep 0.02; done
exit 7
"""


class Node:
    """A belayd, and a node whose agent has a disk of 16 MiB."""

    def __enter__(self):
        with contextlib.ExitStack() as self.stack:
            self.start()
            self.stack = self.stack.pop_all()
        return self

    def start(self):
        self.d = self.stack.enter_context(Belayd(CONFIG + "log_max_per_job: 64M\n"))
        os.chmod(self.d.dir, 0o711)
        self.dir = os.path.join(self.d.dir, "node")
        self.disk = small_disk.SmallDisk(self.dir, "16m")
        os.chmod(self.dir, 0o711)
        self.stack.callback(self.disk.end)
        with open(os.path.join(self.d.state, "ca.pem")) as f:
            ca = "".join("  " + line for line in f)
        self.log = os.path.join(self.d.dir, "agent.log")
        path = os.path.join(self.d.dir, "agent.yaml")
        with open(path, "w") as f:
            os.fchmod(f.fileno(), 0o600)
            f.write(
                "server: https://127.0.0.1:%d\ntoken: %s\ndir: %s\nsystem_users: [%s, %s]\n"
                "cpus: 16\nca: |\n%s"
                % (self.d.port, self.d.token(kind="join", pool="base"), self.dir, EVE, ANN, ca)
            )
        self.config = path
        self.start_agent()
        self.stack.callback(self.end_agent)
        self.wait(self.node, "the node has joined")

    def start_agent(self):
        with open(self.log, "a") as log:
            self.agent = subprocess.Popen(
                [BUILD + "/agent/belay-agent", "--config", self.config], stdout=log, stderr=log
            )

    def restart_agent(self, signum):
        self.agent.send_signal(signum)
        self.agent.wait(WAIT_S)
        starts = self.said("checkpoints by CRIU")
        self.start_agent()
        self.wait(
            lambda: self.said("checkpoints by CRIU") > starts or self.agent.poll() is not None,
            "the agent has started",
        )

    def said(self, words):
        with open(self.log) as f:
            return f.read().count(words)

    def __exit__(self, kind, error, trace):
        if error:
            with open(self.log) as f:
                print("==== the agent's log\n%s" % f.read()[-8000:], file=sys.stderr)
        return self.stack.__exit__(kind, error, trace)

    def end_agent(self):
        """Ends what still runs, and waits until it is gone from the disk."""
        for job in self.d.call("GET", "/api/v1/jobs?state=active")[1]["jobs"]:
            self.d.call("POST", "/api/v1/jobs/%d/cancel" % job["id"])
        tasks = os.path.join(self.dir, "tasks")
        self.wait(
            lambda: not [n for n in os.listdir(tasks) if not n.startswith(".")], "no task is left"
        )
        self.agent.terminate()
        self.agent.wait(WAIT_S)

    def wait(self, is_there, what):
        end = time.monotonic() + WAIT_S
        while not is_there():
            if time.monotonic() > end:
                raise AssertionError("not within %d s: %s" % (WAIT_S, what))
            time.sleep(0.02)  # there is nothing to wait on

    def node(self):
        return next(iter(self.d.call("GET", "/api/v1/nodes")[1]["nodes"]), None)

    def submit(self, user, script):
        status, body, _ = self.d.call(
            "POST",
            "/api/v1/jobs",
            {"name": "job", "script": script, "cwd": "/", "cpus": 1},
            token=self.d.token(kind="api", user=user),
        )
        if status != 201:
            raise AssertionError(body)
        return body["id"]

    def job(self, job):
        return self.d.call("GET", "/api/v1/jobs/%d" % job)[1]

    def wait_state(self, job, *states):
        self.wait(lambda: self.job(job)["job"]["state"] in states, "job %d is %s" % (job, states))
        return self.job(job)

    def output_bytes(self, job):
        headers = self.d.call("GET", "/api/v1/jobs/%d/logs?offset=-1" % job)[2]
        return int(headers["Belay-Log-Next"])

    def free(self):
        v = os.statvfs(self.dir)
        return v.f_bavail * v.f_frsize


class NodeDisk(unittest.TestCase):
    def check_ended(self, node, job):
        shown = node.wait_state(job, "ended")
        last = shown["attempts"][-1]
        self.assertEqual(last["end"], "succeeded", shown["attempts"])
        self.assertEqual(node.d.call("GET", "/api/v1/jobs/%d/logs" % job)[1], b"mine\n")
        self.assertEqual([k["used"] for k in shown["job"]["retry"].values()], [0] * 6)
        self.assertEqual(shown["job"]["reclaims"], 0)
        return shown

    def test_the_output_of_one_user_takes_nothing_from_the_others(self):
        with Node() as node:
            flood = node.submit(EVE, FLOOD)
            node.wait(lambda: node.output_bytes(flood) > 8 << 20, "the flood has come")
            for _ in range(4):
                shown = self.check_ended(node, node.submit(ANN, "#!/bin/sh\necho mine\n"))
                self.assertEqual(len(shown["attempts"]), 1)
                self.assertGreater(node.free(), 2 << 20)
            self.assertEqual(node.node()["disk"], "ok")
            # belayd has all that it wants: what follows takes no space either
            node.wait(lambda: node.output_bytes(flood) >= 64 << 20, "its output is cut")
            self.check_ended(node, node.submit(ANN, "#!/bin/sh\necho mine\n"))
            self.assertEqual(node.job(flood)["job"]["state"], "running")
            self.assertNotIn("disk is full", node.d.log())

    def test_while_files_fill_it_jobs_wait_and_lose_nothing(self):
        with Node() as node:
            files = node.submit(EVE, FILES)
            node.wait(lambda: node.node()["disk"] == "full", "the node says so")
            job = node.submit(ANN, "#!/bin/sh\necho mine\n")
            why = node.d.call("GET", "/api/v1/jobs/%d/why" % job)[1]["reasons"]
            self.assertEqual(why[0]["code"], "nodes-full", why)
            listed = subprocess.run(
                [BUILD + "/cli/belay", "nodes"],
                env={**os.environ, "BELAY_SOCKET": node.d.socket},
                stdout=subprocess.PIPE,
                check=True,
            ).stdout.decode()
            self.assertIn(" full ", listed)
            self.assertEqual(node.job(job)["job"]["state"], "pending")
            self.assertEqual(node.job(files)["job"]["state"], "running")
            os.unlink(os.path.join(node.dir, "tasks", "%d-1" % files, "control", "big"))
            self.check_ended(node, job)
            self.assertEqual(node.wait_state(files, "ended")["job"]["end"], "succeeded")
            log = node.d.log()
            self.assertEqual(log.count("a node's disk is full"), 1)
            self.assertEqual(log.count("a node's disk has space again"), 1)

    def test_a_full_disk_costs_neither_the_agent_nor_the_end_of_a_job(self):
        with Node() as node:
            ann = node.submit(ANN, WAITS)
            go = os.path.join(node.dir, "tasks", "%d-1" % ann, "go")
            node.wait_state(ann, "running")
            filler = node.submit(EVE, FILLER)
            node.wait(lambda: node.free() == 0, "nothing is free")
            for sig in signal.SIGKILL, signal.SIGTERM:
                node.restart_agent(sig)
                self.assertIsNone(node.agent.poll())
            with open(go, "w"):
                pass
            shown = node.wait_state(ann, "ended")
            self.assertEqual((shown["job"]["exit_code"], len(shown["attempts"])), (7, 1))
            self.assertEqual([k["used"] for k in shown["job"]["retry"].values()], [0] * 6)
            self.assertEqual(node.job(filler)["job"]["state"], "running")
            token = node.d.token(kind="api", user=EVE)
            status = node.d.call("POST", "/api/v1/jobs/%d/cancel" % filler, token=token)[0]
            self.assertEqual(status, 200)
            shown = node.wait_state(filler, "ended")
            self.assertEqual((shown["job"]["end"], len(shown["attempts"])), ("cancelled", 1))
            node.wait(lambda: node.free() > 8 << 20, "its files are removed")
            node.wait(lambda: node.node()["disk"] == "ok", "the node has space again")
            self.check_ended(node, node.submit(ANN, "#!/bin/sh\necho mine\n"))
            self.assertEqual(node.said("the agent cannot start"), 0)
            self.assertEqual(node.said("a task's state could not be written"), 0)


if __name__ == "__main__":
    for user in EVE, ANN:
        try:
            pwd.getpwnam(user)
        except KeyError:
            print("SKIP: this machine has no user %s" % user)
            sys.exit(77)
    if not shutil.which("yes"):
        sys.exit(77)
    small_disk.main()
