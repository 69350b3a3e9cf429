# SPDX-License-Identifier: Apache-2.0
"""belayd reads its configuration again: by command and by signal, all of a file or nothing."""

import os
import re
import signal
import socket
import tempfile
import threading
import time
import unittest

from belayd import CONFIG, JOB, WAIT_S, Belayd

RELOAD = "/api/v1/admin/reload"
TEAMS = """\
teams:
  vision: {users: [ann], shares: 2}
  audio: {users: [bob]}
each_user: {max_submitted: 3}
retention: {jobs: 400d}
"""


class Reload(unittest.TestCase):
    def setUp(self):
        self.d = Belayd(CONFIG + TEAMS)
        self.d.start()
        self.addCleanup(self.d.__exit__, None, None, None)

    def write(self, text):
        with open(os.path.join(self.d.dir, "belayd.yaml"), "w") as f:
            f.write(text)
        self.d.config = text  # of the next start

    def reload(self, text, **body):
        self.write(text)
        return self.d.call("POST", RELOAD, body)[:2]

    def changes(self, text, **body):
        status, said = self.reload(text, **body)
        self.assertEqual(status, 200, said)
        return [(c["key"], c["old"], c["new"]) for c in said["changes"]]

    def refusal(self, text, status):
        got, said = self.reload(text)
        self.assertEqual(got, status, said)
        return said["error"]["text"]

    def submit(self, user, team=None):
        token = self.d.token(kind="api", user=user)
        body = {**JOB, "hold": True, **({"team": team} if team else {})}
        return self.d.call("POST", "/api/v1/jobs", body, token=token)[:2]

    def test_other_teams_and_limits_apply_at_once_and_after_a_restart(self):
        running = self.d.submit(hold=True)
        self.assertEqual(self.submit("cho", "vision")[0], 403)
        new = TEAMS.replace("users: [ann], shares", "users: [ann, cho], shares")
        new = new.replace("max_submitted: 3", "max_submitted: 1")
        expected = [
            ("teams.vision.users", "[ann]", "[ann, cho]"),
            ("each_user.max_submitted", "3", "1"),
        ]
        self.assertEqual(self.changes(CONFIG + new, dry_run=True), expected)
        self.assertEqual(self.submit("cho", "vision")[0], 403)
        self.assertEqual(self.changes(CONFIG + new), expected)
        self.assertEqual(self.changes(CONFIG + new), [])
        for restarts in range(2):
            if restarts:
                self.d.stop()
                self.d.start()
            self.assertEqual(self.submit("cho", "vision")[0], 409 if restarts else 201)
            status, said = self.submit("cho", "vision")
            self.assertEqual(status, 409, said)
            self.assertIn("cho may have 1 jobs", said["error"]["text"])
        self.assertEqual(self.changes(CONFIG + TEAMS), [(k, b, a) for k, a, b in expected])
        self.assertEqual(self.submit("cho", "vision")[0], 403)
        self.assertEqual(self.d.call("GET", "/api/v1/jobs/%d" % running)[0], 200)

    def test_roles_and_rates_apply_to_the_next_request(self):
        token = self.d.token(kind="api", user="eve")
        drain = ("POST", "/api/v1/nodes/1/drain", {})
        self.assertEqual(self.d.call(*drain, token=token)[0], 403)
        self.changes(CONFIG + TEAMS + "users: {eve: operator}\n")
        self.assertEqual(self.d.call(*drain, token=token)[0], 404)  # there is no such node
        self.changes(CONFIG + TEAMS + "requests_per_second: 1\nrequests_burst: 1\n")
        self.assertEqual(self.d.call(*drain, token=token)[0], 403)
        self.assertIn(429, [self.d.call(*drain, token=token)[0] for _ in range(5)])

    def test_a_change_that_needs_a_restart_is_refused_with_all_others(self):
        other = CONFIG.replace("cluster: lab", "cluster: other").replace("spare: {}", "spot: {}")
        text = self.refusal(other + TEAMS.replace("shares: 2", "shares: 3"), 409)
        self.assertIn("only a restart of belayd can change cluster (lab, now other), pools.", text)
        self.assertIn("belay pools apply changes pools", text)
        self.assertEqual(self.changes(CONFIG + TEAMS), [])  # nothing was changed

    def test_a_secret_is_not_shown(self):
        hook = "webhooks: {ops: {url: 'https://hooks.example/%s', events: [end]}}\n"
        change = ("webhooks.ops.url", None, "(not shown)")
        self.assertIn(change, self.changes(CONFIG + TEAMS + hook % "s3cret"))
        text = self.refusal(CONFIG + TEAMS + hook % "s3cret2" + "server: https://x\n", 409)
        self.assertIn("server (absent, now https://x)", text)
        shown = str(self.changes(CONFIG + TEAMS + hook % "s3cret3", dry_run=True))
        self.assertNotIn("s3cret", text + shown + self.d.log())

    def test_a_file_that_does_not_parse_leaves_the_old_one_in_force(self):
        lines = (CONFIG + TEAMS).count("\n")
        text = self.refusal(CONFIG + TEAMS + "vizibility: all\n", 400)
        self.assertIn("belayd.yaml:%d: " % (lines + 1), text)
        self.assertIn("visibility", text)
        self.assertEqual(self.refusal(CONFIG + TEAMS + "users: [", 400).count("belayd.yaml:"), 1)
        os.unlink(os.path.join(self.d.dir, "belayd.yaml"))
        self.assertEqual(self.d.call("POST", RELOAD, {})[0], 404)
        self.assertEqual(self.changes(CONFIG + TEAMS), [])

    def test_an_empty_file_is_all_defaults(self):
        self.assertIn("cluster (lab, now absent)", self.refusal("", 409))

    def test_only_administrators_may(self):
        token = self.d.token(kind="api", user="ann")
        self.assertEqual(self.d.call("POST", RELOAD, {}, token=token)[0], 403)

    def wait_log(self, pattern, n=1):
        end = time.monotonic() + WAIT_S
        while len(re.findall(pattern, self.d.log())) < n:
            self.assertLess(time.monotonic(), end, self.d.log()[-2000:])
            time.sleep(0.01)  # the log has no event

    def test_a_signal_does_the_same_and_both_are_in_the_audit_log(self):
        self.write(CONFIG + TEAMS + "visibility: all\n")
        self.d.process.send_signal(signal.SIGHUP)
        self.wait_log("the configuration was read again.*changes=1")
        self.write(CONFIG + TEAMS + "vizibility: all\n")
        self.d.process.send_signal(signal.SIGHUP)
        self.wait_log("was not read again and stays as it was.*belayd.yaml:")
        self.assertEqual(self.changes(CONFIG + TEAMS), [("visibility", "all", None)])
        self.refusal(CONFIG + TEAMS + "server: https://x\n", 409)
        rows = self.d.call("GET", "/api/v1/admin/audit-log?after=0&limit=100")[1]["rows"]
        self.assertEqual(
            [
                (r["route"], r["result"])
                for r in rows
                if "reload" in r["route"] or "HUP" in r["route"]
            ],
            [
                ("SIGHUP", "ok"),
                ("SIGHUP", "invalid"),
                ("POST " + RELOAD, "ok"),
                ("POST " + RELOAD, "conflict"),
            ],
        )

    def test_limits_of_the_command_are_not_overridden(self):
        self.assertEqual(
            self.changes(CONFIG + TEAMS + "limits: {max_nodes: 3}\n"),
            [("limits.max_nodes", None, "3")],
        )
        shown = self.d.call("GET", "/api/v1/pools/detail")[1]
        self.assertEqual(shown["limits"]["nodes"]["max"], 3)
        pools = {"text": "pools: {base: {kind: reserved}}\nlimits: {max_nodes: 5}\n"}
        self.assertEqual(self.d.call("POST", "/api/v1/pools", pools)[0], 200)
        self.assertIn("belay pools apply", self.refusal(CONFIG + TEAMS, 409))

    def test_the_service_manager_is_told(self):
        with tempfile.TemporaryDirectory() as dir, socket.socket(
            socket.AF_UNIX, socket.SOCK_DGRAM
        ) as manager:
            manager.bind(os.path.join(dir, "notify"))
            manager.settimeout(WAIT_S)
            with Belayd(CONFIG, prefix=["env", "NOTIFY_SOCKET=" + dir + "/notify"]) as d:
                self.assertEqual(manager.recv(1000), b"READY=1")
                d.process.send_signal(signal.SIGHUP)
                self.assertRegex(manager.recv(1000), rb"^RELOADING=1\nMONOTONIC_USEC=\d+$")
                self.assertEqual(manager.recv(1000), b"READY=1")

    def test_reloads_beside_requests(self):
        stop, problems = threading.Event(), []

        def ask():
            while not stop.is_set():
                status, said, _ = self.d.call("GET", "/api/v1/shares")
                if status != 200:
                    problems.append(said)

        asks = threading.Thread(target=ask)
        asks.start()
        try:
            for i in range(20):
                self.assertEqual(
                    len(self.changes(CONFIG + TEAMS + "visibility: all\n" * (1 - i % 2))), 1
                )
        finally:
            stop.set()
            asks.join()
        self.assertEqual(problems, [])


if __name__ == "__main__":
    unittest.main()
