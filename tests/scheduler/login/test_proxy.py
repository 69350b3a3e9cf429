# SPDX-License-Identifier: Apache-2.0
"""The proxy of docs/how-to/console.md: nginx, with that page's lines, in front of a belayd. Skipped
where there is no nginx.
"""

import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from belayd import JOB, WAIT_S, Belayd  # noqa: E402

NGINX = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
if not NGINX:
    print("there is no nginx")
    sys.exit(77)
PAGE = os.path.join(HERE, "..", "..", "..", "docs", "how-to", "console.md")
NAME = "belay.lab.example"
CONFIG = """cluster: lab
listen: 127.0.0.1:0
names: [belayd.lab.example]
pools: {base: {}}
users: {ola: operator}
"""
# The rest of nginx's configuration; all it writes is in its own directory.
MAIN = """daemon off;
worker_processes 1;
pid %(dir)s/pid;
error_log %(dir)s/error.log;
events {}
http {
access_log off;
client_body_temp_path %(dir)s/body;
proxy_temp_path %(dir)s/proxy;
fastcgi_temp_path %(dir)s/fastcgi;
uwsgi_temp_path %(dir)s/uwsgi;
scgi_temp_path %(dir)s/scgi;
%(server)s
}
"""


class Proxy(unittest.TestCase):
    def setUp(self):
        self.d = Belayd(CONFIG)
        self.d.__enter__()
        self.addCleanup(self.d.__exit__, None, None, None)
        self.socket = os.path.join(self.d.dir, "nginx.sock")
        cert, key = self.d.dir + "/cert.pem", self.d.dir + "/key.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
            + ["-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=" + NAME],
            check=True,
            capture_output=True,
        )
        with open(PAGE) as f:
            server = re.search(r"```nginx\n(.*?)```", f.read(), re.S).group(1)
        for theirs, ours in (
            ("listen 443 ssl", "listen unix:%s ssl" % self.socket),
            ("/etc/ssl/belay.pem", cert),
            ("/etc/ssl/belay.key", key),
            ("/etc/belay/ca.pem", self.d.state + "/ca.pem"),
            ("https://belayd.lab.example:7443", "https://127.0.0.1:%d" % self.d.port),
        ):
            self.assertIn(theirs, server)
            server = server.replace(theirs, ours)
        path = os.path.join(self.d.dir, "nginx.conf")
        with open(path, "w") as f:
            f.write(MAIN % {"dir": self.d.dir, "server": server})
        self.nginx = subprocess.Popen(
            [NGINX, "-c", path, "-p", self.d.dir, "-e", self.d.dir + "/error.log"]
        )
        self.addCleanup(self.stop)
        end = time.monotonic() + WAIT_S
        while not os.path.exists(self.socket):
            self.assertIsNone(self.nginx.poll(), "nginx did not start")
            self.assertLess(time.monotonic(), end, "nginx does not listen")
            time.sleep(0.01)  # no event to wait for

    def stop(self):
        self.nginx.terminate()
        self.nginx.wait(WAIT_S)

    def call(self, method, path, body=None, **headers):
        """What a browser at https://belay.lab.example/ sends."""
        c = http.client.HTTPConnection(NAME)
        c.sock = socket.socket(socket.AF_UNIX)
        c.sock.settimeout(WAIT_S)
        c.sock.connect(self.socket)
        context = ssl.create_default_context(cafile=self.d.dir + "/cert.pem")
        c.sock = context.wrap_socket(c.sock, server_hostname=NAME)
        c.request(method, path, json.dumps(body) if body is not None else None, headers)
        reply = c.getresponse()
        text = reply.read().decode()
        c.close()
        return reply.status, text, reply.headers

    def test_a_browser_signs_in_and_submits_through_the_proxy(self):
        token = self.d.token(kind="api", user="ola")
        own = {"Origin": "https://" + NAME}
        status, text, headers = self.call("POST", "/login/session", {"token": token}, **own)
        self.assertEqual(status, 201, text)
        own["Cookie"] = headers["Set-Cookie"].split(";")[0]
        own["X-CSRF-Token"] = json.loads(text)["csrf"]
        status, text, _ = self.call("GET", "/api/v1/whoami", **own)
        self.assertEqual((status, json.loads(text)["user"]), (200, "ola"), text)
        self.assertEqual(self.call("POST", "/api/v1/jobs", JOB, **own)[0], 201)
        own["Origin"] = "https://evil.example"
        self.assertEqual(self.call("POST", "/api/v1/jobs", JOB, **own)[0], 403)


if __name__ == "__main__":
    unittest.main(verbosity=2)
