# SPDX-License-Identifier: Apache-2.0
"""Nodes that are broken, with real processes: belay drains them by itself, administrators are
notified, the jobs end well on another node, and no job pays for it."""

import http.server
import json
import os
import queue
import re
import subprocess
import sys
import threading
import unittest

from lab import WAIT_S, Lab

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scheduler"))
from chat_receivers import Chat  # noqa: E402

KEY = "0123456789abcdef0123456789ABCDEF"
AGENT = """\
server: %(server)s
ca: %(ca)s
token: %(token)s
dir: %(dir)s/%(name)s
name: %(name)s
cpus: 4
memory: 4G
"""
SENDMAIL = "#!/bin/sh\ncat >>%(dir)s/mail.txt && mkdir %(dir)s/mailed\n"
# It fails at once on node1: a broken library.
BROKEN = '#!/bin/sh\ncase "$BELAY_CHECKPOINT_DIR" in */node1/*) exit 7 ;; esac\necho well\n'
GPU = "gpu uuid=GPU-%d busy=97 memory=20 total=24 ecc_uncorrected=%d\n"


class Receiver:
    """Takes webhooks in belay's own format."""

    def __init__(self):
        self.bodies = bodies = queue.Queue()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                bodies.put((self.headers["X-Belay-Event"], json.loads(body)))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d/" % self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Pair(Lab):
    """belayd with a reserved pool, and agents named node1 and node2 that a test starts."""

    def __init__(self, test, **more):
        super().__init__(**more)
        self.chat, self.receiver = Chat(), Receiver()
        test.addCleanup(self.chat.close)
        test.addCleanup(self.receiver.close)
        self.nodes = {}

    def start(self):
        self.write_agent()
        self.write("pagerduty", KEY + "\n")
        hooks = {
            "own": {"url": self.receiver.url},
            "slack": {"format": "slack", "url": self.chat.url + "/slack"},
            "teams": {"format": "teams", "url": self.chat.url + "/teams"},
            "pager": {
                "format": "pagerduty",
                "url": self.chat.url + "/pagerduty",
                "routing_key_file": self.dir + "/pagerduty",
            },
            "ops": {"mail_to": "ops@lab.example"},
        }
        for hook in hooks.values():
            hook["events"] = ["node-drained"]
        self.config = self.write(
            "belayd.yaml",
            {
                **self.belayd_config,
                "lease": "10s",
                "pools": {"base": {}},
                "webhooks": hooks,
                "mail": {
                    "sendmail": self.write("sendmail", SENDMAIL % {"dir": self.dir}, 0o700),
                    "from": "belay@lab.example",
                },
                "failing_nodes": {"jobs": 3, "users": 1, "within": "1h", "quick": "1h"},
            },
        )
        self.up()

    def start_node(self, name, more=""):
        with open(os.path.join(self.home, "ca.pem")) as f:
            ca = "|\n" + "".join("  " + line for line in f)
        with open(os.path.join(self.home, "belayd.json")) as f:
            server = json.load(f)["url"]
        values = {
            "server": server,
            "ca": ca,
            "token": self.belay("token", "create", "--join", "--pool", "base").strip(),
            "dir": self.dir,
            "name": name,
        }
        config = self.write(name + ".yaml", AGENT % values + more)
        with open(os.path.join(self.dir, name + ".log"), "a") as log:
            self.nodes[name] = subprocess.Popen(
                [self.dir + "/bin/belay-agent", "--config", config],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.env,
            )
        self.wait(lambda: self.node(name), name + " has joined")

    def node(self, name):
        found = [n for n in self.get("/nodes")["nodes"] if n["name"] == name]
        return found[0] if found else None

    def wait_drained(self, name):
        return self.wait(
            lambda: (lambda n: n if n["state"] == "draining" else None)(self.node(name)),
            name + " is drained",
        )

    def node_of(self, attempt):
        return next(n["name"] for n in self.get("/nodes")["nodes"] if n["id"] == attempt["node"])

    def metric(self, name):
        text = self.call("GET", "/metrics", root="")[1].decode()
        return next(float(t.split()[-1]) for t in text.split("\n") if t.startswith(name + " "))

    def wait_for_no_instances(self):
        return []  # none

    def end(self):
        problems = []
        for p in self.nodes.values():
            p.terminate()
        for name, p in self.nodes.items():
            if p.wait(WAIT_S) != 0:
                problems.append("the agent of %s ended with %d" % (name, p.returncode))
        return problems + super().end()


class Reserved(unittest.TestCase):
    def check_notified(self, lab, reason, jobs):
        """Every destination gets node, pool, reason, jobs and the command that undoes it."""
        event, body = lab.receiver.bodies.get(timeout=WAIT_S)
        self.assertEqual(event, "node-drained")
        self.assertEqual((body["event"], body["node"], body["pool"]), (event, "node1", "base"))
        self.assertRegex(body["reason"], reason)
        self.assertEqual(body["jobs"], [str(job) for job in jobs])
        self.assertFalse(body["ends"])
        self.assertEqual(body["undo"], "belay nodes undrain node1")
        chats = dict(lab.chat.accepted.get(timeout=WAIT_S) for _ in range(3))
        self.assertEqual(list(lab.chat.refused.queue), [])
        card = chats["/teams"]["attachments"][0]["content"]["body"]
        page = chats["/pagerduty"]
        for title, more in (
            (chats["/slack"]["text"], chats["/slack"]["blocks"][1]["text"]["text"]),
            (card[0]["inlines"][0]["text"], card[1]["inlines"][0]["text"]),
            (page["payload"]["summary"], page["payload"]["custom_details"]["undo"]),
        ):
            self.assertRegex(title, "belay drained node node1 of pool base: " + reason)
            self.assertIn("belay nodes undrain node1", more)
        self.assertRegex(page["dedup_key"], r"^belay-\w+-node-node1$")
        lab.wait(lambda: os.path.exists(lab.dir + "/mailed"), "the mail")
        with open(lab.dir + "/mail.txt") as f:
            mail = f.read()
        self.assertIn("To: ops@lab.example\n", mail)
        self.assertIn("belay drained node node1 of pool base: ", mail)
        for job in jobs:
            self.assertRegex(mail, r"Jobs: .*\b%d\b" % job)
        self.assertIn("After a repair: belay nodes undrain node1\n", mail)

    def check_said(self, lab, reason):
        """The command line names the reason, and the metrics count the drain."""
        self.assertRegex(lab.belay("nodes"), reason)
        self.assertRegex(lab.node("node1")["drain_text"], reason)
        drained = r'^belay_nodes\{.*drained="belay"\} (\d+)$'
        text = lab.call("GET", "/metrics", root="")[1].decode()
        self.assertEqual(re.findall(drained, text, re.M), ["1"])

    def submit(self, lab, script, **spec):
        body = {"name": "j", "script": script, "cwd": "/", "checkpoint": {"method": "none"}, **spec}
        return lab.post("/jobs", body)["id"]

    def test_a_node_on_which_jobs_fail_at_once_is_drained(self):
        with Pair(self) as lab:
            lab.start_node("node1")
            jobs = []
            for _ in range(2):
                jobs.append(self.submit(lab, BROKEN, retry={"failed": 3}))
                lab.wait_event(jobs[-1], "requeued")
                lab.post("/jobs/%d/hold" % jobs[-1])
            lab.kill_belayd()  # the count is stored
            lab.up()
            lab.wait(lambda: lab.node("node1")["state"] == "up", "node1 is back")
            jobs.append(self.submit(lab, BROKEN))
            lab.wait_drained("node1")
            reason = "3 jobs of 1 user failed there at once: jobs %d, %d, %d" % tuple(jobs)
            self.check_said(lab, reason)
            self.assertEqual(lab.metric('belay_node_drains_total{cause="failing-jobs"}'), 1)
            self.assertEqual(lab.metric('belay_node_drains_total{cause="fault"}'), 0)
            self.assertIn(reason, lab.belay("why", str(jobs[2])))
            self.check_notified(lab, reason, jobs)
            for job in jobs[:2]:
                self.assertEqual(lab.job(job)["retry"]["failed"]["used"], 0)
                lab.post("/jobs/%d/release" % job)
            lab.start_node("node2")
            for job in jobs:
                shown = lab.wait_ended(job)
                self.assertEqual(shown["job"]["end"], "succeeded")
                self.assertEqual(lab.node_of(shown["attempts"][-1]), "node2")
                self.assertEqual(lab.job(job)["retry"]["failed"]["used"], 0)
                self.assertEqual(lab.said(job), "well\n")

    def test_a_prolog_that_fails_drains_and_its_job_runs_elsewhere(self):
        with Pair(self) as lab:
            mends = lab.dir + "/mended"
            prolog = lab.write(
                "prolog",
                "#!/bin/sh\n[ -e %s ] && exit 0\necho no mount >&2\nexit 3\n" % mends,
                0o700,
            )
            lab.start_node("node1", "prolog: %s\n" % prolog)
            job = self.submit(lab, "#!/bin/sh\necho well\n")
            lab.wait_drained("node1")
            self.check_said(lab, "the prolog .*no mount")
            self.assertEqual(lab.metric('belay_node_drains_total{cause="fault"}'), 1)
            lab.start_node("node2")
            shown = lab.wait_ended(job)
            self.assertEqual([a["end"] for a in shown["attempts"]], ["capacity", "succeeded"])
            self.assertEqual(lab.node_of(shown["attempts"][-1]), "node2")
            self.assertEqual(sum(k["used"] for k in shown["job"]["retry"].values()), 0)
            event, body = lab.receiver.bodies.get(timeout=WAIT_S)
            self.assertEqual((event, body["node"]), ("node-drained", "node1"))
            self.assertIn("no mount", body["reason"])
            lab.write("mended", "")
            lab.belay("nodes", "undrain", "node1")
            lab.belay("nodes", "drain", "node2")
            shown = lab.wait_ended(self.submit(lab, "#!/bin/sh\necho well\n"))
            self.assertEqual(shown["job"]["end"], "succeeded")
            self.assertEqual(lab.node_of(shown["attempts"][-1]), "node1")
            self.assertIsNone(lab.node("node1")["drain_text"])
            self.assertEqual(lab.metric('belay_node_drains_total{cause="operator"}'), 1)

    def test_an_epilog_that_fails_drains_and_changes_no_end(self):
        with Pair(self) as lab:
            epilog = lab.write("epilog", "#!/bin/sh\necho left over >&2\nexit 1\n", 0o700)
            lab.start_node("node1", "epilog: %s\n" % epilog)
            shown = lab.wait_ended(self.submit(lab, "#!/bin/sh\necho well\n"))
            self.assertEqual(shown["job"]["end"], "succeeded")
            lab.wait_drained("node1")
            self.check_said(lab, "the epilog .*left over")

    def fault(self, lab, before, after, reason):
        """The node of a job that saves becomes faulty: the job goes on elsewhere."""
        lab.write("gpus1", before)
        lab.start_node("node1")
        job = lab.submit("chain.py", 600, method="coop")  # does not end before the fault is known
        lab.wait_log(job, r"^step 3 ")
        os.rename(lab.write("gpus.new", after), lab.dir + "/gpus1")
        lab.wait_drained("node1")
        lab.start_node("node2")
        self.check_said(lab, reason)
        self.check_notified(lab, reason, [job])
        shown = lab.wait_ended(job)
        self.assertEqual([a["end"] for a in shown["attempts"]], ["drained", "succeeded"])
        self.assertEqual(lab.node_of(shown["attempts"][-1]), "node2")
        self.assertEqual(shown["job"]["lost_steps"], 0)

    # the fake library of each node reads a file of its own
    PRELUDE = """\
n=$(sed -n 's/^name: node//p' "$2" 2>/dev/null | head -n 1)
export LD_LIBRARY_PATH=%s BELAY_TEST_NVML="$(dirname "$0")/../gpus$n" BELAY_NODE_TELEMETRY='200ms 1s'
"""

    def test_an_xid_drains_the_node(self):
        with Pair(self, agent_prelude=self.PRELUDE % os.environ["BELAY_STAND_IN"]) as lab:
            gpu = GPU % (1, 0)
            self.fault(
                lab,
                gpu,
                gpu + "xid uuid=GPU-1 number=79 no=1\n",
                "GPU GPU-1: Xid 79, it has fallen off the bus",
            )

    def test_a_memory_error_of_a_gpu_drains_the_node(self):
        with Pair(self, agent_prelude=self.PRELUDE % os.environ["BELAY_STAND_IN"]) as lab:
            self.fault(lab, GPU % (1, 0), GPU % (1, 1), "GPU 0.*memory error")


class Elastic(unittest.TestCase):
    def test_a_drained_machine_is_replaced_and_ended_when_it_is_empty(self):
        """Although an idle machine of the pool would be kept for an hour."""
        script = (
            '#!/bin/sh\ncase "$BELAY_CHECKPOINT_DIR" in "$(cat %s)"*) exit 7 ;; esac\necho well\n'
        )
        with Lab(
            pool={"idle_timeout": "1h", "max_nodes": 2},
            belayd={"failing_nodes": {"jobs": 2, "users": 1, "within": "1h", "quick": "1h"}},
        ) as lab:
            bad = lab.write("bad", "/nowhere")
            first = lab.submit("/bin/sh", "-c", 'echo "at ${BELAY_CHECKPOINT_DIR%/tasks/*}"')
            lab.wait_ended(first)
            lab.write("bad", lab.wait_log(first, r"^at (/.*)$").group(1))
            broken = lab.instance_of(first)
            jobs = [
                lab.post(
                    "/jobs",
                    {
                        "name": "j",
                        "script": script % bad,
                        "cwd": "/",
                        "retry": {"failed": 3},
                        "checkpoint": {"method": "none"},
                    },
                )["id"]
                for _ in range(2)
            ]
            for job in jobs:
                shown = lab.wait_ended(job)
                self.assertEqual(shown["job"]["end"], "succeeded")
                self.assertEqual(lab.said(job), "well\n")
                self.assertNotEqual(lab.instance_of(job), broken)
            lab.wait_cloud(
                lambda s: lab.emulated(broken)["state"] == "terminated",
                "the drained machine is terminated",
            )
            ended = [i for i in lab.get("/instances?state=all")["instances"]]
            texts = [i["text"] for i in ended if i["provider_id"] == broken]
            self.assertEqual(texts, ["belay drained it, and its jobs have left"])
            for node in lab.get("/nodes")["nodes"]:  # not kept for an hour, now
                lab.belay("nodes", "delete", node["name"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
