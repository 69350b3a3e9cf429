# SPDX-License-Identifier: Apache-2.0
"""kill -9 of belayd at random moments under load: nothing that was acknowledged is lost, no number
is assigned twice.

    test_kill.py [SEED]     the moments are computed from the seed; without one, a new seed is
                            chosen and printed
"""

import collections
import http.client
import json
import os
import random
import sys
import threading
import time
import unittest

from belayd import JOB, WAIT_S, Belayd

SUBMITS = 1000
KILLS = 20
CONNECTIONS = 8
SEED = (
    int(sys.argv.pop(1))
    if len(sys.argv) > 1 and sys.argv[1].isdigit()
    else int.from_bytes(os.urandom(4), "big")
)


class Load:
    """Clients that submit, cancel some of their jobs, and remember the responses."""

    def __init__(self, d):
        self.d = d
        self.changed = threading.Condition()
        self.acknowledged = {}  # number -> name
        self.twice = []
        self.cancelled = set()
        self.unanswered = 0
        self.refused = collections.Counter()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(CONNECTIONS)]

    def ask(self, c, path, body):
        """The reply's JSON, or None if the outcome is unknown."""
        try:
            c.request("POST", path, json.dumps(body) if body else None)
            reply = c.getresponse()
            data = reply.read()
        except (OSError, http.client.HTTPException):
            c.close()
            with self.changed:
                self.unanswered += 1
            return None
        if reply.status // 100 == 2:
            return json.loads(data)
        with self.changed:
            self.refused[reply.status] += 1
        return None

    def run(self, who):
        c, n = self.d.connect(), 0
        while True:
            with self.changed:
                if len(self.acknowledged) >= SUBMITS:
                    break
            n += 1
            name = "w%d-%d" % (who, n)
            reply = self.ask(c, "/api/v1/jobs", {**JOB, "name": name})
            if not reply:
                time.sleep(0.002)  # belayd does not listen while it starts
                continue
            with self.changed:
                if reply["id"] in self.acknowledged:
                    self.twice.append(reply["id"])
                self.acknowledged[reply["id"]] = name
                self.changed.notify_all()
            if n % 10 == 0 and self.ask(c, "/api/v1/jobs/%d/cancel" % reply["id"], None):
                self.cancelled.add(reply["id"])
        c.close()

    def wait(self, n):
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.acknowledged) >= n, WAIT_S):
                raise AssertionError("only %d submits were acknowledged" % len(self.acknowledged))


def all_jobs(d):
    jobs, before = {}, ""
    while True:
        page = d.call("GET", "/api/v1/jobs?state=all&limit=200" + before)[1]
        jobs.update((j["id"], j) for j in page["jobs"])
        if page["next"] is None:
            return jobs
        before = "&before=%d" % page["next"]


class Kill(unittest.TestCase):
    def test_the_port_is_kept_and_taken_by_no_connection_going_out_meanwhile(self):
        with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
            lowest = int(f.read().split()[0])
        with Belayd() as d:
            port = d.port
            self.assertLess(port, lowest)
            d.kill()
            d.start()
            self.assertEqual(d.port, port)

    def test_what_was_acknowledged_survives(self):
        print("seed %d" % SEED)
        chance = random.Random(SEED)
        moments = sorted(chance.sample(range(1, SUBMITS), KILLS))
        with Belayd() as d:
            load = Load(d)
            for t in load.threads:
                t.start()
            for moment in moments:
                load.wait(moment)
                time.sleep(chance.random() * 0.01)  # somewhere within a commit, a reply, a turn
                d.kill()
                d.start()
            for t in load.threads:
                t.join(WAIT_S)
            stored = all_jobs(d)
            lost = [
                i
                for i, name in load.acknowledged.items()
                if i not in stored or stored[i]["name"] != name
            ]
            undone = [i for i in load.cancelled if stored[i]["end"] != "cancelled"]
            names = collections.Counter(j["name"] for j in stored.values())
            doubled = [name for name, n in names.items() if n > 1]
            events = d.call("GET", "/api/v1/events?after=0")[1]["events"]
            print(
                "%d submits acknowledged, %d cancels; %d kills; %d requests unanswered, %d refused while stopping or starting; "
                "%d jobs stored"
                % (
                    len(load.acknowledged),
                    len(load.cancelled),
                    KILLS,
                    load.unanswered,
                    sum(load.refused.values()),
                    len(stored),
                )
            )
            print(
                "acknowledged and lost: %d; numbers given twice: %d; acknowledged cancels undone: %d"
                % (len(lost), len(load.twice), len(undone))
            )
            self.assertEqual((lost, load.twice, undone, doubled), ([], [], [], []))
            self.assertGreaterEqual(len(load.acknowledged), SUBMITS)
            self.assertGreater(load.unanswered, 0)  # otherwise no kill interrupted a request
            ids = [e["id"] for e in events]
            self.assertEqual(ids, sorted(set(ids)))
            newest = d.submit()
            self.assertGreater(newest, max(stored))


if __name__ == "__main__":
    unittest.main(verbosity=2)
