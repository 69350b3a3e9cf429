# SPDX-License-Identifier: Apache-2.0
"""Untrusted texts are printed without terminal escape sequences: node names from before joins were
checked, and whatever belayd answers, here through a proxy that inserts such sequences into each
text.
"""

import contextlib
import http.server
import json
import os
import socketserver
import sqlite3
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scheduler"))

from belayd import BUILD, WAIT_S, Belayd, Node, Unix

CONFIG = """\
cluster: lab
listen: 127.0.0.1:0
licences: {matlab: 2}
teams:
  vision: {shares: 30, users: [root], max_cpus: 100}
budgets:
  all: {usd_per_month: 500, match: {team: vision}}
  labelled: {usd_per_month: 500, match: {labels: {project: x}}}
node_types:
  box: {watts: {idle: 10, full: 100}}
racks:
  r1: {max_kw: 40, nodes: {box: n1}}
pools:
  base: {}
  spare: {usd_per_hour: 2}
"""
HAS = {"features": ",ib,", "resources": "lego:4"}
# A window title ending in BEL, CSI as one character, a forged line, and reversed letter order.
EVIL = "\x1b]0;owned\x07\x9b2J\nroot: \u202e"
# Words that verbs compare: with these left as they are, more of a verb's lines are printed.
# Objects with names of others, which get EVIL too, and how one of each is shown.
NAMED = {"labels": "label project?", "resources": "lego?", "licences": "matlab?", "settings": None}
WORDS = (
    "state end hold method kind code market change at catch_up outcome ref period at_limit gap "
    "user pool on_loss script_on version sort"
).split()
HARMFUL = [chr(c) for c in range(32) if chr(c) not in "\n\t"] + ["\x7f", "\u202e"]
HARMFUL += [chr(c) for c in range(0x80, 0xA0)]
VERBS = """
list|list --all --why|show 1|show 2|show 3|show --events 1|why 1|why 2|diagnose 3|nodes|nodes --racks|nodes --all
nodes drain 1|nodes undrain 1|nodes drain n1|shares|quotas|budget|budget show all|budget show labelled|pools|pools show
pools show spare|offers|cron list|cron list 1|cron history 1|cost|cost --by user,pool|cost --by job
cost --by user --csv|cost --weekly-report|advise|advise --forgotten|audit|token list|version
top --once|drill --list|hold 1|release 1|update 1 name=other|submit --test-only SCRIPT
slurm squeue|slurm squeue -l|slurm squeue --start|slurm sinfo|slurm sinfo -N -l|slurm sinfo -R
slurm scontrol show job 1|slurm scontrol show node|slurm scontrol show partition|slurm sacct -a
slurm scontrol show job 3|slurm squeue -o %all|pools apply POOLS --dry-run|logs 2|cron pause 1
cron resume 1|requeue 2|hold 99
"""


def marked(value, keep, key=None):
    if isinstance(value, dict):
        more = EVIL if key in NAMED else ""
        return {k + more: marked(v, keep, k) for k, v in value.items()}
    if isinstance(value, list):
        return [marked(v, keep, key) for v in value]
    return value + EVIL if isinstance(value, str) and key not in keep else value


class Hostile(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """A hostile belayd: EVIL is in each text of its answers except in the keys to keep."""

    daemon_threads = True

    def __init__(self, path, real):
        self.real, self.keep = real, ()
        super().__init__(path, Answer)


class Answer(http.server.BaseHTTPRequestHandler):
    def address_string(self):
        return "belay"

    def log_message(self, *_):
        pass

    def answer(self):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.pass_on()

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        c = Unix(self.server.real, WAIT_S)
        c.request(self.command, self.path, body or None)
        reply = c.getresponse()
        data = reply.read()
        c.close()
        if reply.getheader("Content-Type") == "application/json":
            data = json.dumps(marked(json.loads(data), self.server.keep)).encode()
        self.send_response(reply.status)
        for name, value in reply.getheaders():
            if name.lower() not in ("content-length", "connection", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = do_PUT = answer


class Terminal(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.d = Belayd(CONFIG)
        cls.d.start()
        node = Node(cls.d, host="n1", **HAS)
        node.sync(**HAS)
        cls.d.submit(cpus=64, labels={"team": "vision"}, url="https://h.example/")
        cls.d.submit(cpus=64, constraint="ib", licences={"matlab": 1}, hold=True)
        cls.d.submit(cpus=1)
        node.sync(**HAS)
        job = {"name": "job", "script": "#!/bin/sh\ntrue\n", "cwd": "/"}
        cron = {"name": "c", "schedule": "0 0 1 1 *", "zone": "UTC", "job": job}
        status, body, _ = cls.d.call("POST", "/api/v1/crons", cron)
        if status != 201:
            raise AssertionError(body)

    @classmethod
    def tearDownClass(cls):
        cls.d.__exit__(None, None, None)

    def belay(self, *words, socket=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith("BELAY_")}
        env["BELAY_SOCKET"] = socket or self.d.socket
        done = subprocess.run(
            [BUILD + "/cli/belay", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=env,
            timeout=WAIT_S,
        )
        return (done.stdout + done.stderr).decode()

    def check(self, said, words):
        found = [c for c in HARMFUL if c in said]
        self.assertFalse(found, "%s: %r" % (" ".join(words), said))
        self.assertNotIn("\nroot: ", said, words)

    def test_a_stored_node_of_a_malformed_name_is_loaded_and_shown_without_its_escapes(self):
        name = "a\nb\x1b[2J,n[1-3]"
        rename = "UPDATE nodes SET name = ? WHERE id = 1"
        for old, new in (("n1", name), (name, "n1")):
            self.d.stop()
            with contextlib.closing(
                sqlite3.connect(os.path.join(self.d.state, "belay.db"))
            ) as database:
                database.execute(rename, (new,))
                database.commit()
            self.d.start()
            names = [n["name"] for n in self.d.call("GET", "/api/v1/nodes")[1]["nodes"]]
            self.assertEqual(names, [new])
            if new != name:
                continue
            for words, expected in (
                (("nodes", "drain", "1"), "node 1 (a?b?[2J,n[1-3]): takes no more work"),
                (("nodes", "undrain", "1"), "node 1 (a?b?[2J,n[1-3]): "),
                (("nodes",), "a?b?[2J,n[1-3]"),
                (("slurm", "scontrol", "show", "node"), "NodeName=a?b?[2J,n[1-3] "),
            ):
                said = self.belay(*words)
                self.check(said, words)
                self.assertIn(expected, said)

    def test_no_text_of_belayds_answers_reaches_the_terminal_as_it_is(self):
        script, pools = os.path.join(self.d.dir, "script"), os.path.join(self.d.dir, "pools")
        with open(script, "w") as f:
            f.write("#!/bin/sh\n#BELAY -c 64\n")
        with open(pools, "w") as f:
            f.write("pools:\n  base: {usd_per_hour: 1}\n  other: {}\n")
        path = os.path.join(self.d.dir, "hostile")
        with Hostile(path, self.d.socket) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                for server.keep in ((), WORDS, WORDS + ["name"]):
                    n, all_said = 0, ""
                    for line in VERBS.strip().replace("\n", "|").split("|"):
                        words = line.replace("SCRIPT", script).replace("POOLS", pools).split()
                        said = self.belay(*words, socket=path)
                        with self.subTest(line, keep=len(server.keep)):
                            self.assertNotIn("--help", said)  # the verb accepts the line
                            self.check(said, words)
                        n += "owned" in said
                        all_said += said
                    self.assertGreater(n, 20)
                for shown in filter(None, NAMED.values()):
                    self.assertIn(shown, all_said)
            finally:
                server.shutdown()
                thread.join()

    def test_json_is_ascii_on_a_terminal_and_unchanged_elsewhere(self):
        path = os.path.join(self.d.dir, "hostile-json")
        with Hostile(path, self.d.socket) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            ours, theirs = os.openpty()
            try:
                env = {**os.environ, "BELAY_SOCKET": path}
                words = [BUILD + "/cli/belay", "budget", "--json"]
                subprocess.run(words, stdout=theirs, env=env, timeout=WAIT_S, check=True)
                shown = os.read(ours, 65536).decode("latin-1")
                said = self.belay("budget", "--json", socket=path)
            finally:
                os.close(ours)
                os.close(theirs)
                server.shutdown()
                thread.join()
        self.assertEqual([c for c in HARMFUL if c in shown.replace("\r\n", "\n")], [], shown)
        self.assertEqual(json.loads(shown), json.loads(said))
        self.assertEqual(json.loads(said)["budgets"][0]["name"], "all" + EVIL)


if __name__ == "__main__":
    unittest.main()
