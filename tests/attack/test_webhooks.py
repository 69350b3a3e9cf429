# SPDX-License-Identifier: Apache-2.0
"""A user registers webhooks to internal addresses: belayd's own, private ones, the metadata
service, in every notation and by name. belayd connects to none of them; neither the job's events
nor the number of tries reveal whether anything is there, or which names are known to belayd's
resolver. Runs in its own network namespace, where these addresses belong to the loopback interface,
with names of its own."""

import json
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scheduler"))
from belayd import CONFIG, JOB, WAIT_S, Belayd  # noqa: E402

INSIDE = "BELAY_TEST_INSIDE"
OWN, PRIVATE, METADATA, CARRIER = "198.51.100.7", "10.1.2.3", "169.254.169.254", "100.64.0.1"
KNOWN = {"wiki.lab.example": PRIVATE, "belayd.lab.example": OWN, "meta.lab.example": METADATA}
UNKNOWN = "nowhere.lab.example"


class Taker:
    """Listens on every address of the namespace; records which ones got a connection. Answers
    404."""

    def __init__(self):
        self.taken = queue.Queue()
        self.socket = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            s, _ = self.socket.accept()
            self.taken.put(s.getsockname()[0])
            s.settimeout(5)
            try:
                s.recv(65536)
                s.sendall(
                    b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                )
            except OSError:
                pass
            s.close()


def closed_port():
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as s:
        return s.getsockname()[1]


class Webhooks(unittest.TestCase):
    def end_a_job(self, d, url):
        job = d.submit(**{**JOB, "notify": {"urls": [url]}})
        d.call("POST", "/api/v1/jobs/%d/cancel" % job)
        return job

    def failure(self, d, job):
        """The event of the job that says that the URL was given up."""
        deadline, last = time.monotonic() + WAIT_S, 0
        while time.monotonic() < deadline:
            for e in d.call("GET", "/api/v1/jobs/%d/events?after=%d&wait_ms=5000" % (job, last))[1][
                "events"
            ]:
                last = max(last, e["id"])
                if e["kind"] == "not-told":
                    return e["text"]
        self.fail("job %d: no event says that its URL was given up" % job)

    def test_no_user_gets_inside(self):
        taker, closed = Taker(), closed_port()
        hosts = [
            OWN,
            PRIVATE,
            METADATA,
            CARRIER,
            "127.0.0.1",
            "localhost",
            "[::1]",
            "0.0.0.0",
            "[::]",
            "[::ffff:%s]" % OWN,
            "[::ffff:10.1.2.3]",
            "[64:ff9b::%s]" % PRIVATE,
            "[fd00::1]",
            "[2001:db8::7]",
            "10.66051",
            "0x0a010203",
            "167838211",
            *KNOWN,
            UNKNOWN,
        ]
        with Belayd(CONFIG) as d:
            jobs = {
                (host, port): self.end_a_job(d, "http://%s:%d/x" % (host, port))
                for host in hosts
                for port in (taker.port, closed)
            }
            d.wait_tried(jobs.values())
            self.assertIn("has an address that users' notifications are not sent to", d.log())
            d.try_notifications_last()
            texts = {
                self.failure(d, job).replace(host.strip("[]"), "HOST")
                for (host, _), job in jobs.items()
            }
            # reveals neither an address, nor whether something listens
            self.assertEqual(len(texts), 1, texts)
            self.assertNotIn("404", texts.pop())
            self.assertEqual(taker.taken.qsize(), 0, list(taker.taken.queue))

    def test_an_allowed_address_is_reached_and_its_answer_is_not_shown(self):
        taker = Taker()
        with Belayd(CONFIG + "notify_allow: [10.1.2.3, 169.254.0.0/16]\n") as d:
            job = self.end_a_job(d, "http://%s:%d/x" % (PRIVATE, taker.port))
            self.assertIn(PRIVATE, taker.taken.get(timeout=WAIT_S))
            refused = self.end_a_job(d, "http://%s:%d/x" % (METADATA, taker.port))
            d.wait_tried([refused])
            d.try_notifications_last()
            self.assertIn("was not notified", self.failure(d, refused))
            self.assertIn("was not notified", self.failure(d, job))
            self.assertEqual([a for a in taker.taken.queue if PRIVATE not in a], [])
            self.assertNotIn("404", json.dumps(d.call("GET", "/api/v1/jobs/%d/events" % job)[1]))


def main():
    if os.environ.get(INSIDE):
        unittest.main()
    if (
        os.geteuid() != 0
        or subprocess.run(["unshare", "-n", "-m", "true"], capture_output=True).returncode != 0
    ):
        print("skipped: namespaces need root")
        sys.exit(77)
    v4, v6 = (OWN, PRIVATE, METADATA, CARRIER), ("fd00::1", "2001:db8::7")
    setup = (
        ["ip link set lo up"]
        + ["ip addr add %s/32 dev lo" % a for a in v4]
        + ["ip -6 addr add %s/128 dev lo" % a for a in v6]
    )
    os.environ[INSIDE] = "1"
    with tempfile.TemporaryDirectory() as files:
        for name, text in (
            (
                "hosts",
                "".join("%s %s\n" % (a, n) for n, a in {"localhost": "127.0.0.1", **KNOWN}.items()),
            ),
            ("nsswitch.conf", "hosts: files\n"),
        ):
            with open(os.path.join(files, name), "w") as f:
                f.write(text)
            setup.append("mount --bind %s/%s /etc/%s" % (files, name, name))
        script = "\n".join(setup) + '\nexec "$0" "$@"'
        sys.exit(
            subprocess.call(["unshare", "-n", "-m", "sh", "-ec", script, sys.executable] + sys.argv)
        )


if __name__ == "__main__":
    main()
