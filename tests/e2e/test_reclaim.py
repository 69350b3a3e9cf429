# SPDX-License-Identifier: Apache-2.0
"""A spot machine with a reclaim notice: the job is saved within the notice and continues
elsewhere."""

import datetime
import re
import subprocess
import unittest

import lab
from lab import Lab, undisturbed

STEPS = 250  # of 20 ms


def wall_ms(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000


class Reclaim(unittest.TestCase):
    def test_spot_job_survives_reclaim(self):
        with Lab() as l:
            job = int(
                re.search(
                    r"batch job (\d+)$",
                    l.belay(
                        "submit",
                        "--checkpoint",
                        "coop",
                        "--checkpoint-every",
                        "1h",
                        "--market",
                        "spot",
                        self.script(l),
                        str(STEPS),
                    ),
                ).group(1)
            )
            follower = l.start_belay("logs", "-f", str(job))
            l.wait_log(job, r"^step 60 ")
            first = l.instance_of(job)
            l.cloud({"reclaim": {"instance": first, "notice_s": 5}})
            shown = l.wait_ended(job)
            followed = follower.communicate(timeout=lab.WAIT_S)[0]
            self.assertEqual(follower.returncode, 0)

            self.check_attempts(shown, job)
            self.assertRegex(
                l.belay("show", str(job)),
                "RESTART +LOST +WAIT +LAUNCH +BOOT +AGENT +PLACE +PREPARE +RESTORE +DOWN +WARM-UP *\n"
                r" +2( +[\d.]+m?s){10} *\n",
            )
            self.check_log(l.log(job), shown)
            self.assertEqual(followed, l.log(job))
            self.check_history(l, job)
            self.check_money(l, shown, job)
            l.wait_cloud(lambda s: s["alive"] == 0, "the machines are given back")
            reclaimed = [i for i in l.state()["instances"] if i["instance"] == first][0]
            self.assertTrue(reclaimed["reclaimed"])
            self.check_offers(l)

    def check_offers(self, l):
        """The history of offers has both machines: one was taken back."""

        def ended():
            found = l.get("/instances?state=all")["instances"]
            return found if all(i["ended_at"] for i in found) else None

        machines = l.wait(ended, "the end of all machines, as belayd knows it")
        offers = l.get("/offers/history?pool=%s" % machines[0]["pool"])["offers"]
        launched = sorted(i["launched_at"] for i in machines)
        self.assertEqual(sorted(t for o in offers for t in o["launched"]), launched)
        taken = [i["ended_at"] for i in machines if i["reclaimed"]]
        self.assertEqual([t for o in offers for t in o["reclaimed"]], taken)
        for o in offers:
            prices = {i["price_uusd_h"] for i in machines if i["zone"] == o["zone"]}
            self.assertEqual({p["uusd_h"] for p in o["prices"]}, prices)
            self.assertEqual(o["refused"], [])
        self.assertEqual(l.get("/offers/history?pool=another&days=45")["offers"], [])

    def test_with_a_reserve_the_job_works_on_while_another_machine_boots(self):
        """The other machine waits for it, although it is idle for longer than idle_timeout."""
        with Lab(pool={"notice_reserve": "2s"}) as l:
            job = l.submit("chain.py", 1000000, method="coop", every_ms=2000, market="spot")
            l.wait_event(job, "saved")
            l.cloud({"reclaim": {"instance": l.instance_of(job), "notice_s": 15}})
            l.wait_event(job, "started", 2)
            l.post("/jobs/%d/cancel" % job)
            shown = l.wait_ended(job)
            attempts, restart = shown["attempts"], shown["attempts"][1]["restart"]
            self.assertEqual([a["end"] for a in attempts], ["reclaimed", "cancelled"])
            self.assertEqual(
                [restart[part + "_ms"] for part in ("lost", "wait", "launch", "boot", "agent")],
                [0] * 5,
                "the other machine was up before the job stopped",
            )
            noticed = [e for e in l.events(job) if e["kind"] == "notice"][0]
            worked_ms = wall_ms(attempts[0]["ended_at"]) - wall_ms(noticed["at"])
            self.assertGreater(worked_ms, 8000)
            self.assertEqual(l.state()["counts"]["launches"], 2)

    def test_output_of_the_last_moment_is_kept(self):
        """Several MB of output, with another machine that is idle and takes over the job at
        once."""
        lines = 40000
        with Lab(pool={"idle_timeout": "10s", "cooldown": "10s"}) as l:
            spare = l.submit("plain.sh", 50, cpus=2)
            job = l.submit("talker.py", lines, method="coop", every_ms=3600000)
            l.wait_log(job, "^waiting$")
            l.wait_ended(spare)
            follower = l.start_belay("logs", "-f", str(job))
            l.cloud({"reclaim": {"instance": l.instance_of(job), "notice_s": 5}})
            l.wait_ended(job)
            said = l.said(job)
            expected = "waiting\n" + "".join(
                "line %07d %s\n" % (n, "x" * 80) for n in range(2 * lines)
            )
            self.assertEqual((len(said), said == expected), (len(expected), True))
            self.assertEqual(follower.communicate(timeout=lab.WAIT_S)[0], l.log(job))
            self.assertEqual(l.state()["counts"]["launches"], 2)

    def test_a_session_in_a_job_shows_its_end(self):
        with Lab() as l:
            p = l.start_belay(
                "run",
                "--interactive",
                "--market",
                "spot",
                "sh",
                "-c",
                "echo here; exec sleep 1000",
                stderr=subprocess.PIPE,
            )
            self.assertEqual(p.stdout.readline(), "here\n")
            job = l.get("/jobs")["jobs"][0]["id"]
            l.cloud({"reclaim": {"instance": l.instance_of(job), "notice_s": 6}})
            out, err = p.communicate(timeout=lab.WAIT_S)
            self.assertEqual((p.returncode, out), (143, ""), err)
            self.assertRegex(
                err,
                r"\nbelay: the provider reclaims this node in \d+ seconds \(reclaim\); everything running here will end\n"
                r"belay: job \d+ ended: reclaimed.*\nbelay: the job was interactive, so it is not queued again; with --requeue",
            )
            self.assertEqual([a["end"] for a in l.show(job)["attempts"]], ["reclaimed"])

    def script(self, l):
        return l.write(
            "train.sh", '#!/bin/sh\nexec %s %s/chain.py "$@"\n' % (lab.PYTHON, lab.JOBS), 0o755
        )

    def check_attempts(self, shown, job):
        attempts = shown["attempts"]
        self.assertEqual(shown["job"]["end"], "succeeded")
        self.assertEqual([a["end"] for a in attempts], ["reclaimed", "succeeded"])
        self.assertEqual(shown["job"]["reclaims"], 1)
        saved = next(c for c in shown["checkpoints"] if c["attempt"] == 1)  # newest first
        self.assertEqual(saved["cause"], "notice")
        self.assertGreaterEqual(saved["progress"], 60)
        self.assertEqual(attempts[1]["restored"], {"attempt": 1, "sequence": saved["sequence"]})
        self.assertEqual(attempts[1]["restored_progress"], saved["progress"])
        self.assertIsNone(attempts[0]["restored_bytes"])
        self.assertEqual(
            (attempts[1]["restored_bytes"], attempts[1]["fetched_bytes"]), (saved["bytes"],) * 2
        )  # another node
        self.assertEqual(shown["job"]["lost_steps"], 0)
        self.assertIsNone(attempts[0]["restart"])
        self.check_restart(attempts)

    def check_restart(self, attempts):
        """The machine was launched in the notice, while the first attempt ran: its boot is in no
        part, or only the rest of it. Everything else is, without gaps."""
        restart = attempts[1]["restart"]
        parts = "wait launch boot agent place prepare restore".split()
        self.assertEqual(restart["stopped_at"], attempts[0]["ended_at"])
        self.assertAlmostEqual(
            sum(restart[part + "_ms"] for part in parts),
            wall_ms(attempts[1]["started_at"]) - wall_ms(attempts[0]["ended_at"]),
            delta=2,
        )
        self.assertEqual(restart["restore_ms"], attempts[1]["restore_ms"])
        self.assertEqual(restart["lost_ms"], 0)
        self.assertGreater(restart["warm_up_ms"], 0)

    def check_log(self, log, shown):
        """The log has every step once, in order, as if undisturbed, with one seam."""
        seams = re.findall(r"^---- belay: .* ----$", log, re.M)
        self.assertEqual(len(seams), 1, log)
        self.assertIn("attempt 2", seams[0])
        self.assertIn("(step %d)" % shown["attempts"][1]["restored_progress"], seams[0])
        self.assertEqual(log.replace(seams[0] + "\n", ""), undisturbed("chain.py", STEPS, 0))

    def check_history(self, l, job):
        kinds = [k for k in l.kinds(job) if k not in ("submitted",)]
        self.assertEqual(
            kinds,
            [
                "placed",
                "started",
                "notice",
                "saved",
                "ended",
                "requeued",
                "placed",
                "restored",
                "started",
                "ended",
            ],
        )

    def check_money(self, l, shown, job):
        j = shown["job"]
        self.assertGreater(j["cost_uusd"], 0)
        self.assertGreater(j["on_demand_uusd"], j["cost_uusd"])
        self.assertEqual(sum(x["uusd"] for x in shown["ledger"]), j["cost_uusd"])
        self.assertIn("cost", l.belay("show", str(job)))
        by_job = l.get("/cost?by=job")["lines"]
        self.assertEqual([x["uusd"] for x in by_job if x["key"] == str(job)], [j["cost_uusd"]])


class Fleet(unittest.TestCase):
    """EC2 chooses among types and zones, and reclaims the machine, twice."""

    STEPS = 350
    A_G6, B_G6, A_G5, B_G5 = PLACES = [
        ("us-east-1a", "g6.xlarge"),
        ("us-east-1b", "g6.xlarge"),
        ("us-east-1a", "g5.xlarge"),
        ("us-east-1b", "g5.xlarge"),
    ]

    def test_a_job_of_a_fleet_goes_on_wherever_there_is_capacity(self):
        pools = [
            {"zone": zone, "type": type, "spot": {"capacity": 2, "usd_per_hour": "0.4%d" % n}}
            for n, (zone, type) in enumerate(self.PLACES)
        ]
        pool = {"allocation": "fleet", "markets": ["spot"], "types": ["g6.xlarge", "g5.xlarge"]}
        with Lab(cloud={"pools": pools, "notice_s": 10}, pool=pool) as l:
            job = l.submit("chain.py", self.STEPS, method="coop", every_ms=3600000)
            for n, place in enumerate([self.A_G6, self.B_G6]):
                l.wait_log(job, r"^step %d " % (60 + 80 * n))
                self.assertEqual(self.place_of(l, job), place)  # the cheapest one with capacity
                l.cloud(
                    {"capacity": {"zone": place[0], "type": place[1], "market": "spot", "n": 0}}
                )
                l.wait_event(job, "started", n + 2)
            self.assertEqual(self.place_of(l, job), self.A_G5)
            shown = l.wait_ended(job)
            self.check(l, job, shown)
            state = l.wait_cloud(lab.nothing_is_left, "neither machine nor launch template is left")
            self.assertEqual(
                [(i["zone"], i["type"]) for i in state["instances"]],
                [self.A_G6, self.B_G6, self.A_G5],
            )
            self.assertEqual([i["reclaimed"] for i in state["instances"]], [True, True, False])
            calls = {
                e.get("action")
                for e in l.ask_cloud("/events?after=0&max=1000")["events"]
                if e["what"] == "call"
            }
            self.assertIn("CreateFleet", calls)
            self.assertNotIn("RunInstances", calls)
            self.assertEqual(l.post("/audit")["differences"], [])

    def place_of(self, l, job):
        """The place of its machine, according to belayd and to EC2, which must agree."""
        machine = l.emulated(l.instance_of(job))
        row = next(
            i for i in l.get("/instances")["instances"] if i["provider_id"] == machine["instance"]
        )
        self.assertEqual((row["zone"], row["type"]), (machine["zone"], machine["type"]))
        return machine["zone"], machine["type"]

    def check(self, l, job, shown):
        self.assertEqual(shown["job"]["end"], "succeeded")
        self.assertEqual(
            [a["end"] for a in shown["attempts"]], ["reclaimed", "reclaimed", "succeeded"]
        )
        self.assertEqual(shown["job"]["lost_steps"], 0)
        log = l.log(job)
        seams = re.findall(r"^---- belay: .* ----$", log, re.M)
        self.assertEqual(len(seams), 2, log)
        for seam in seams:
            log = log.replace(seam + "\n", "")
        self.assertEqual(log, undisturbed("chain.py", self.STEPS, 0))


if __name__ == "__main__":
    unittest.main(verbosity=2)
