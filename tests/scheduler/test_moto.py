# SPDX-License-Identifier: Apache-2.0
"""belay's aws driver against moto, a third-party simulation of EC2. Skipped where moto_server is
not on the PATH (pip install 'moto[server,ec2]').
"""

import contextlib
import os
import shutil
import socket
import subprocess
import time
import unittest
import urllib.parse
import urllib.request
import xml.etree.ElementTree

from belayd import JOB, WAIT_S, Belayd

CONFIG = """\
cluster: lab
listen: 127.0.0.1:0
pools:
  burst:
    provider: aws
    region: us-east-1
    zones: [us-east-1a, us-east-1b]
    types: [m6i.xlarge, m5.2xlarge]
    markets: [%s]
    allocation: %s
    image: ami-12c6146b
    disk_gib: 20
    endpoint: http://127.0.0.1:%d
    credentials: %s
    max_nodes: 1
    boot_timeout: 3s
    refusal_backoff: 1h
"""
EC2 = "{http://ec2.amazonaws.com/doc/2016-11-15}"
# moto looks at the name of the service and at nothing else.
AUTHORIZATION = "AWS4-HMAC-SHA256 Credential=A/20260822/us-east-1/ec2/aws4_request, SignedHeaders=host, Signature=0"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(what, said):
    end = time.monotonic() + WAIT_S
    while True:
        value = what()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("waited in vain for " + said)
        time.sleep(0.1)  # moto gives no event


@unittest.skipUnless(shutil.which("moto_server"), "there is no moto_server on the PATH")
class Moto(unittest.TestCase):
    def setUp(self):
        self.port = free_port()
        self.moto = subprocess.Popen(
            ["moto_server", "-H", "127.0.0.1", "-p", str(self.port)],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(self.end_moto)
        until(self.answers, "moto_server")

    def end_moto(self):
        os.killpg(self.moto.pid, 9)
        self.moto.wait(WAIT_S)

    def answers(self):
        self.assertIsNone(self.moto.poll(), "moto_server ended")
        with contextlib.suppress(OSError):
            return self.ask("DescribeInstances") is not None

    def ask(self, action):
        data = urllib.parse.urlencode({"Action": action, "Version": "2016-11-15"}).encode()
        asked = urllib.request.Request(
            "http://127.0.0.1:%d/" % self.port, data, {"Authorization": AUTHORIZATION}
        )
        with urllib.request.urlopen(asked, timeout=WAIT_S) as r:
            return r.read().decode()

    def instances(self):
        """State and tags of each instance."""
        root = xml.etree.ElementTree.fromstring(self.ask("DescribeInstances"))
        return [
            (
                i.findtext(EC2 + "instanceState/" + EC2 + "name"),
                {
                    t.findtext(EC2 + "key"): t.findtext(EC2 + "value")
                    for t in i.iterfind(EC2 + "tagSet/" + EC2 + "item")
                },
            )
            for i in root.iterfind(".//" + EC2 + "instancesSet/" + EC2 + "item")
        ]

    def live_and_end(self, market, allocation):
        with Belayd() as d:
            d.stop()
            keys = os.path.join(d.dir, "credentials")
            with open(keys, "w") as f:
                f.write("[default]\naws_access_key_id = A\naws_secret_access_key = B\n")
            os.chmod(keys, 0o600)
            d.config = CONFIG % (market, allocation, self.port, keys)
            d.start()
            self.assertEqual(
                d.call("POST", "/api/v1/jobs", dict(JOB, pool="burst"))[0], 201, d.log()
            )
            state, tags = until(self.instances, "an instance")[0]
            self.assertIn(state, ("pending", "running"))
            self.assertRegex(tags["belay:instance"], "^belay-[0-9a-f]+-1$")
            self.assertEqual(tags["belay:instance"].split("-")[1], tags["belay:cluster"])
            # No agent joins: belay ends the machine, and sees in the listing that it is gone.
            until(lambda: {s for s, _ in self.instances()} == {"terminated"}, "its end")
            until(
                lambda: not d.call("GET", "/api/v1/pools/detail?name=burst")[1]["pools"][0][
                    "instances"
                ],
                "no instance",
            )
            for word in ("could not", "no definite answer", "refused"):
                self.assertNotIn(word, d.log())

    def test_a_spot_instance_is_launched_listed_and_terminated(self):
        self.live_and_end("spot", "single")

    def test_a_fleet_is_launched_and_its_template_deleted(self):
        self.live_and_end("on-demand", "fleet")
        self.assertNotIn("launchTemplateName", self.ask("DescribeLaunchTemplates"))


if __name__ == "__main__":
    unittest.main()
