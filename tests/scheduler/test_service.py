# SPDX-License-Identifier: Apache-2.0
"""belayd as a service: what it reports to a service manager, and who may use its socket."""

import contextlib
import json
import os
import pwd
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

from belayd import BUILD, CONFIG, WAIT_S, Belayd

OTHER = "nobody"
ASK = """\
import http.client, json, os, socket, sys
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
c = Unix("belayd")
c.request("POST", "/api/v1/jobs", json.dumps({"script": "#!/bin/sh\\n", "cwd": "/"}))
print(c.getresponse().status)
"""


@contextlib.contextmanager
def service_manager(watchdog_s):
    """A socket for NOTIFY_SOCKET, and the variables that a manager sets."""
    with tempfile.TemporaryDirectory(prefix="belay-test.") as directory:
        path = os.path.join(directory, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.bind(path)
            s.settimeout(WAIT_S)
            variables = ["NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=%d" % (watchdog_s * 1e6)]
            yield s, ["env", *variables]


def drain(s):
    s.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            s.recv(100)


class Service(unittest.TestCase):
    def test_the_manager_hears_of_start_watchdog_and_stop(self):
        with service_manager(0.2) as (s, prefix), Belayd(prefix=prefix) as d:
            self.assertEqual(s.recv(100), b"READY=1")
            self.assertEqual(d.call("GET", "/healthz")[0], 200)  # it answers when it says so
            for _ in range(3):
                self.assertEqual(s.recv(100), b"WATCHDOG=1")
            d.process.send_signal(signal.SIGTERM)
            said = s.recv(100)
            while said == b"WATCHDOG=1":
                said = s.recv(100)
            self.assertEqual(said, b"STOPPING=1")
            self.assertEqual(d.process.wait(WAIT_S), 0)

    def test_a_stopped_process_does_not_feed_the_watchdog(self):
        with service_manager(0.2) as (s, prefix), Belayd(prefix=prefix) as d:
            d.process.send_signal(signal.SIGSTOP)
            os.waitpid(d.process.pid, os.WUNTRACED)
            drain(s)
            s.settimeout(0.5)  # more than twice the time between two reports
            self.assertRaises(socket.timeout, s.recv, 100)
            d.process.send_signal(signal.SIGCONT)
            s.settimeout(WAIT_S)
            self.assertEqual(s.recv(100), b"WATCHDOG=1")

    def test_a_wrong_variable_is_refused(self):
        with tempfile.TemporaryDirectory(prefix="belay-test.") as state:
            done = subprocess.run(
                [BUILD + "/scheduler/belayd", "--state", state],
                env={**os.environ, "NOTIFY_SOCKET": "here"},
                stderr=subprocess.PIPE,
                timeout=WAIT_S,
                text=True,
            )
        self.assertEqual(done.returncode, 1)
        self.assertIn("NOTIFY_SOCKET: expected a path", done.stderr)

    @unittest.skipIf(os.geteuid() != 0, "it takes root to be two users")
    def test_everybody_may_use_the_socket_of_a_belayd_that_is_not_root(self):
        owner = pwd.getpwnam("daemon")
        drop = ["setpriv", "--reuid=daemon", "--regid=%d" % owner.pw_gid, "--clear-groups"]
        for users, expected in (("all", 0o666), ("owner", 0o600)):
            with tempfile.TemporaryDirectory(prefix="belay-test.") as directory:
                os.chown(directory, owner.pw_uid, owner.pw_gid)
                os.chmod(directory, 0o755)
                path = os.path.join(directory, "belayd.sock")
                config = CONFIG + "socket: %s\nsocket_users: %s\n" % (path, users)
                self.as_other(drop, directory, path, config, expected)

    def as_other(self, drop, directory, path, config, expected):
        d = Belayd(config, os.path.join(directory, "state"), path, drop)
        os.chmod(d.dir, 0o777)  # for sanitizers
        with d:
            self.assertEqual(os.stat(path).st_mode & 0o777, expected)
            done = subprocess.run(
                ["setpriv", "--reuid=" + OTHER, "--clear-groups", sys.executable, "-c", ASK, path],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                timeout=WAIT_S,
                text=True,
            )
            if expected == 0o600:
                self.assertIn("PermissionError", done.stderr)
                return
            self.assertEqual((done.stdout, done.stderr), ("201\n", ""))
            jobs = d.call("GET", "/api/v1/jobs")[1]["jobs"]
            self.assertEqual([j["user"] for j in jobs], [OTHER], json.dumps(jobs))


if __name__ == "__main__":
    unittest.main()
