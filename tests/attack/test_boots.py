# SPDX-License-Identifier: Apache-2.0
"""A cloud whose machines never join, as with a wrong server name, although each is paid for. The
number of launches is bounded, also across a kill of belayd; belayd reports it and shows the end of
the machine's console. After a fix the pool works again."""

import http.server
import json
import os
import queue
import re
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from lab import Lab  # noqa: E402

NOWHERE = "https://127.0.0.1:1"
WORDS = "127.0.0.1"  # in the error of the program that fetches the agent: it cannot connect
BROKEN = {"belayd": {"server": NOWHERE}, "pool": {"refusal_backoff": "500ms", "boot_timeout": "3s"}}
WAITS_S = (3, 6)  # six times refusal_backoff, then twice that


class Taker:
    """A webhook receiver on loopback: records (event from the header, body)."""

    def __init__(self):
        taken = self.taken = queue.Queue()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                taken.put((self.headers["X-Belay-Event"], body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d/boots" % self.server.server_port

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Boots(unittest.TestCase):
    def boots(self, lab):
        return lab.get("/pools/detail?name=cloud")["pools"][0]["boots"] or {
            "failed": 0,
            "console": None,
        }

    def launches(self, lab):
        return sum(o["launches"] for o in lab.get("/offers")["offers"])

    def metric(self, lab, name):
        text = lab.call("GET", "/metrics", root="")[1].decode()
        return int(re.search(r'^%s{pool="cloud"} (\d+)$' % name, text, re.M).group(1))

    def logged(self, lab, text):
        """The log's lines with this text."""
        with open(os.path.join(lab.home, "belayd.log")) as f:
            return [line for line in f if text in line]

    def never_join(self, lab):
        """Waits until three have failed and the console was read; returns the job."""
        job = lab.post("/jobs", {"script": "#!/bin/sh\ntrue\n", "cwd": "/"})["id"]
        lab.wait(
            lambda: self.boots(lab)["failed"] >= 3 and self.boots(lab)["console"],
            "three machines that never joined",
        )
        boots = self.boots(lab)
        self.assertTrue(boots["one_at_a_time"])
        self.assertIn(WORDS, boots["console"])
        why = lab.get("/jobs/%d/why" % job)
        reasons = {r["code"]: r["text"] for r in why["reasons"]}
        self.assertIn("never joined", reasons["boots-fail"])
        self.assertIn(WORDS, reasons["boot-console"])
        self.assertIsNone(why["estimate"]["median"])
        self.assertIn("never joined", lab.belay("pools", "show", "cloud"))
        return job

    def test_every_channel_says_so_and_the_webhook_once(self):
        taker = Taker()
        self.addCleanup(taker.close)
        more = {
            "server": NOWHERE,
            "webhooks": {"chat": {"url": taker.url, "events": ["boots-fail"]}},
        }
        with Lab(**{**BROKEN, "belayd": more}) as lab:
            self.never_join(lab)
            failed = self.boots(lab)["failed"]
            self.assertGreaterEqual(self.metric(lab, "belay_pool_failed_boots"), failed)
            self.assertEqual(self.metric(lab, "belay_pool_boots_fail"), 1)
            offers = lab.get("/offers")["offers"]
            self.assertTrue(offers)
            for offer in offers:  # all of them, also those never launched
                self.assertGreaterEqual(offer["failed_boots_of_pool"], failed)
            self.assertRegex(lab.belay("offers"), r"FAILED BOOTS")
            event, body = taker.taken.get(timeout=60)
            self.assertEqual(
                (event, body["event"], body["pool"], body["cluster"]),
                ("boots-fail", "boots-fail", "cloud", "e2e"),
            )
            self.assertEqual(body["failed_boots"], 3)
            lines = self.logged(lab, "launched machines of the pool never join")
            self.assertRegex(lines[0], r" error: .*pool=cloud failed=3 .*why=.*next_launch=")
            lab.wait(
                lambda: self.boots(lab)["failed"] > failed, "one more that was launched to try"
            )
            self.assertEqual(taker.taken.qsize(), 0, "notified again of the same failure")

    def test_nothing_of_it_is_said_of_a_pool_that_works(self):
        with Lab() as lab:
            lab.wait_ended(lab.post("/jobs", {"script": "#!/bin/sh\ntrue\n", "cwd": "/"})["id"])
            self.assertEqual(self.metric(lab, "belay_pool_failed_boots"), 0)
            self.assertEqual(self.metric(lab, "belay_pool_boots_fail"), 0)
            self.assertEqual({o["failed_boots_of_pool"] for o in lab.get("/offers")["offers"]}, {0})
            self.assertEqual(self.logged(lab, "launched machines of the pool never join"), [])

    def test_launches_are_bounded_until_it_is_mended(self):
        with Lab(**BROKEN) as lab:
            job = self.never_join(lab)
            began = time.monotonic()
            lab.wait(lambda: self.boots(lab)["failed"] >= 5, "two more that were launched to try")
            self.assertGreater(time.monotonic() - began, WAITS_S[0] + WAITS_S[1] - 3)
            self.assertEqual(self.launches(lab), 5)
            lab.kill_belayd()
            with open(os.path.join(lab.dir, "belayd.yaml")) as f:
                config = json.load(f)
            del config["server"]
            config["pools"]["cloud"]["boot_timeout"] = "60s"
            lab.write("belayd.yaml", config)
            lab.up()
            self.assertEqual(
                (self.boots(lab)["failed"], self.launches(lab)), (5, 5)
            )  # its wait continues
            lab.belay(
                "pools", "apply", "--yes", lab.write("pools.yaml", {"pools": config["pools"]})
            )
            lab.wait_ended(job)
            self.assertEqual(self.boots(lab)["failed"], 0)
            self.assertEqual(self.launches(lab), 6)

    def test_the_console_of_a_machine_of_gcp_is_read(self):
        with Lab(provider="gcp", **BROKEN) as lab:
            self.never_join(lab)

    def test_the_console_of_a_machine_of_azure_is_read_and_its_url_shown_nowhere(self):
        with Lab(provider="azure", **BROKEN) as lab:
            job = self.never_join(lab)
            shown = [
                lab.belay("pools", "show", "cloud"),
                json.dumps(lab.get("/jobs/%d/why" % job)),
                json.dumps(lab.get("/events?after=0")),
                *self.logged(lab, ""),
            ]
            self.assertFalse(
                [text for text in shown if "sig=" in text or "bootdiagnostics" in text]
            )


if __name__ == "__main__":
    unittest.main()
