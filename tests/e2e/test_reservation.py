# SPDX-License-Identifier: Apache-2.0
"""Reservations for maintenance: at the start, a job that can be saved is saved and resumes on
another node; a reservation survives a restart of belayd; and a job that cannot be saved waits for
its end."""

import datetime
import json
import unittest

from lab import Lab, Refused, undisturbed

STEPS = 1500  # of 20 ms
SOON_S = 4
POOL = "cloud"


def soon(seconds):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


class Reservation(unittest.TestCase):
    def node_of(self, l, job):
        node = l.show(job)["attempts"][-1]["node"]
        return [n for n in l.get("/nodes?state=all")["nodes"] if n["id"] == node][0]

    def test_a_job_is_saved_and_moves_to_another_node(self):
        with Lab() as l:
            job = l.submit("chain.py", STEPS, method="coop", every_ms=1000)
            l.wait_event(job, "saved")
            node = self.node_of(l, job)
            said = l.belay(
                *("reservation", "add", "disks", "--nodes", node["name"], "--from", soon(SOON_S)),
                *("--for", "1h", "--reason", "new disks", "--tz", "UTC")
            )
            self.assertRegex(said, r"^reservation disks: %s from .* \(UTC\)$" % node["name"])
            l.kill_belayd()
            l.up()
            l.wait_event(job, "reservation")
            l.wait_event(job, "requeued")
            listed = l.get("/reservations")["reservations"]
            self.assertEqual([(r["name"], r["state"]) for r in listed], [("disks", "open")])
            shown = l.wait_ended(job)
            self.assertEqual(shown["job"]["end"], "succeeded")
            first, last = shown["attempts"][0], shown["attempts"][-1]
            self.assertEqual(first["end"], "drained")
            self.assertNotIn(node["id"], [a["node"] for a in shown["attempts"][1:]])
            self.assertEqual(last["restored"]["attempt"], 1)
            self.assertEqual(shown["job"]["lost_steps"], 0)
            self.assertTrue(
                undisturbed("chain.py", STEPS, 0).endswith(l.log(job).split(" ----\n")[-1])
            )

    def test_a_job_that_cannot_be_saved_waits_for_its_end(self):
        with Lab() as l:
            added = json.loads(
                l.belay(
                    *("reservation", "add", "spring", "--pool", POOL, "--from", soon(600)),
                    *("--for", "2h", "--every", "week", "--json")
                )
            )
            self.assertEqual((added["every"], added["for_ms"]), ("week", 7200000))
            with self.assertRaises(Refused) as refused:
                l.post("/reservations", {"name": "spring", "pool": POOL, "for_ms": 60000})
            self.assertEqual(refused.exception.status, 409)
            job = l.submit("chain.py", 5)
            short = l.submit("chain.py", 5, time_limit_ms=120000)
            l.wait_ended(short)  # it ends before the start, so a node is launched for it
            why = l.belay("why", str(job))
            self.assertIn("pool %s is reserved for maintenance (spring) from " % POOL, why)
            self.assertIn("this job has no time limit (--time) and cannot be saved", why)
            self.assertIn("planned", l.belay("reservation", "show", "spring"))
            self.assertEqual(l.job(job)["state"], "pending")
            self.assertEqual(l.belay("reservation", "rm", "spring"), "reservation spring removed\n")
            self.assertEqual(l.wait_ended(job)["job"]["end"], "succeeded")


if __name__ == "__main__":
    unittest.main()
