# SPDX-License-Identifier: Apache-2.0
"""Losses without notice: machines, agents, supervisors, belayd, and the cloud's replies."""

import os
import re
import signal
import unittest

from lab import SEAM, WAIT_S, Lab, all_gone, command_line, undisturbed

STEPS = 200  # of 20 ms


def start(l, steps=STEPS, every_ms=1000, **spec):
    return l.submit("chain.py", steps, method="coop", every_ms=every_ms, **spec)


class Loss(unittest.TestCase):
    def check_result(self, l, job, steps=STEPS):
        """The last lines are those of an undisturbed run: every step that counts was done once, on
        the right state."""
        shown = l.show(job)
        self.assertEqual(
            (shown["job"]["state"], shown["job"]["end"], shown["job"]["exit_code"]),
            ("ended", "succeeded", 0),
        )
        log = re.sub(
            r"^belay: not saved, continuing: the belay agent was restarted .*\n",
            "",
            l.log(job),
            flags=re.M,
        )
        pieces = SEAM.split(log)
        expected = undisturbed("chain.py", steps, 0)
        self.assertTrue(expected.endswith(pieces[-1]), pieces[-1])
        if len(shown["attempts"]) == 1:
            self.assertEqual(pieces, [expected])
        return shown

    def check_resumed(self, shown, attempt):
        """The attempt resumed from the newest checkpoint of the previous one."""
        newest = next(
            c for c in shown["checkpoints"] if c["attempt"] == attempt - 1
        )  # newest first
        found = shown["attempts"][attempt - 1]
        self.assertEqual(
            found["restored"], {"attempt": attempt - 1, "sequence": newest["sequence"]}
        )
        self.assertEqual(found["restored_progress"], newest["progress"])

    # ---- machines ----

    def test_machine_that_vanishes_costs_what_was_not_saved(self):
        with Lab() as l:
            job = start(l)
            l.wait_event(job, "saved", 2)
            l.cloud({"reclaim": {"instance": l.instance_of(job), "without_notice": True}})
            l.wait_ended(job)
            shown = self.check_result(l, job)
            self.assertEqual(len(shown["attempts"]), 2)
            self.assertIn(shown["attempts"][0]["end"], ("node-lost", "reclaimed"))
            self.check_resumed(shown, 2)
            self.assertEqual({c["cause"] for c in shown["checkpoints"]}, {"periodic"})
            self.assertEqual(shown["job"]["reclaims"], 1)

    def test_working_directory_that_was_sent_is_on_the_next_machine(self):
        with Lab() as l:
            sent = os.path.join(l.dir, "sent")
            os.mkdir(sent)
            with open(os.path.join(sent, "data"), "w") as f:
                f.write("sent\n")
            job = int(
                l.belay(
                    "submit",
                    "--parsable",
                    "--workdir",
                    "upload",
                    "--chdir",
                    sent,
                    "--wrap",
                    "echo $BELAY_ATTEMPT $(cat data) $(ls); test $BELAY_ATTEMPT -gt 1 || { touch mine; exec sleep 1000; }",
                )
            )
            l.wait_log(job, "^1 sent data$")
            os.unlink(os.path.join(sent, "data"))
            l.cloud({"reclaim": {"instance": l.instance_of(job), "without_notice": True}})
            l.wait_ended(job)
            self.assertRegex(l.log(job), r"(?m)^2 sent data$")

    def test_rebalance_that_comes_to_nothing_saves_and_goes_on(self):
        with Lab() as l:
            job = start(l, every_ms=0)
            l.wait_log(job, "^step 20 ")
            self.assertEqual(
                l.belay("checkpoint", "save", str(job)),
                "job %d was asked for a checkpoint and keeps running\n" % job,
            )
            l.wait_event(job, "saved")
            before = l.job(job)
            l.cloud({"rebalance": {"instance": l.instance_of(job)}})
            l.wait_event(job, "saved", 2)
            after = l.job(job)
            self.assertRegex(
                l.belay("show", str(job)),
                r"(?m)^checkpoints   coop, every auto \([0-9.]+s: a save took .*, 2.05 reclaims an hour\), ",
            )
            self.assertGreaterEqual(before["save_interval_ms"], after["save_interval_ms"])
            young = (2 * max(after["pause_ms"], 1) * 3600000 / after["reclaims_per_hour"]) ** 0.5
            self.assertAlmostEqual(
                after["save_interval_ms"], max(15000, young, 4 * after["save_ms"]), delta=10
            )
            self.assertGreater(after["reclaims_per_hour"], before["reclaims_per_hour"] + 1)
            l.wait_ended(job)
            shown = self.check_result(l, job)
            self.assertEqual(len(shown["attempts"]), 1)
            self.assertEqual([c["cause"] for c in shown["checkpoints"]], ["rebalance", "user"])
            self.assertEqual(l.kinds(job).count("notice"), 1)

    # ---- the cloud's answers ----

    def test_refused_capacity_goes_to_the_other_zone(self):
        with Lab() as l:
            l.cloud({"capacity": {"zone": "us-east-1a", "type": "m6i.xlarge", "n": 0}})
            job = start(l, 20)
            l.wait_ended(job)
            self.check_result(l, job, 20)
            ran = [i for i in l.get("/instances?state=all")["instances"] if i["node"]]
            self.assertEqual([(i["zone"], i["market"]) for i in ran], [("us-east-1b", "spot")])

    def test_refused_capacity_everywhere_goes_on_demand(self):
        with Lab() as l:
            for zone in ("us-east-1a", "us-east-1b"):
                l.cloud({"capacity": {"zone": zone, "type": "m6i.xlarge", "n": 0}})
            job = start(l, 20)
            l.wait_ended(job)
            shown = self.check_result(l, job, 20)
            ran = [i for i in l.get("/instances?state=all")["instances"] if i["node"]]
            self.assertEqual([i["market"] for i in ran], ["on-demand"])
            # each part (boot, restore, run, save) is rounded by itself, to a millionth of a dollar
            self.assertAlmostEqual(
                shown["job"]["cost_uusd"], shown["job"]["on_demand_uusd"], delta=5
            )

    def test_throttled_calls_are_repeated(self):
        with Lab() as l:
            l.cloud({"throttle": {"action": "*", "count": 4}})
            job = start(l, 20)
            l.wait_ended(job)
            self.check_result(l, job, 20)
            self.assertEqual(l.state()["counts"]["launches"], 1)

    def test_lost_answer_to_a_launch_makes_one_machine(self):
        for how in ("close", "garbage", "error"):
            with self.subTest(how), Lab() as l:
                l.cloud({"drop_reply": {"action": "RunInstances", "count": 2, "how": how}})
                job = start(l, 20)
                l.wait_ended(job)
                self.check_result(l, job, 20)
                counts = l.state()["counts"]
                self.assertEqual(counts["launches"], 1)
                self.assertEqual(counts["replays"], counts["launch_calls"] - 1)

    # ---- belayd ----

    def test_restart_of_belayd_is_not_noticed(self):
        with Lab() as l:
            job = start(l)
            follower = l.start_belay("logs", "-f", str(job))
            for line in ("^step 20 ", "^step 60 ", "^step 100 "):
                l.wait_log(job, line)
                l.kill_belayd()
                l.up()
            l.wait_ended(job)
            shown = self.check_result(l, job)
            self.assertEqual(len(shown["attempts"]), 1)
            self.assertEqual(
                follower.communicate(timeout=WAIT_S)[0], undisturbed("chain.py", STEPS, 0)
            )
            self.assertEqual(l.state()["counts"]["launches"], 1)

    def test_belayd_that_was_stopped_for_long_holds_nobody_for_lost(self):
        with Lab() as l:
            job = start(l, 400, every_ms=3600000)
            l.wait_log(job, "^step 20 ")
            os.kill(l.belayd_pid(), signal.SIGSTOP)
            l.wait_output(job, "^step 245 ")  # of 20 ms at least: 4.5 s, of a lease of 3 s
            os.kill(l.belayd_pid(), signal.SIGCONT)
            l.wait_ended(job)
            self.assertEqual(len(self.check_result(l, job, 400)["attempts"]), 1)

    def test_events_while_belayd_is_away_are_reported_later(self):
        with Lab() as l:
            job = start(l, 60)
            l.wait_log(job, "^step 10 ")
            l.kill_belayd()
            program = [p for p in l.processes() if re.search(r"chain\.py 60", command_line(p))]
            self.assertTrue(all_gone(program, WAIT_S))
            l.up()
            l.wait_ended(job)
            self.assertEqual(len(self.check_result(l, job, 60)["attempts"]), 1)

    def test_checkpoint_of_a_notice_while_belayd_is_away_is_resumed(self):
        with Lab() as l:
            job = start(l, every_ms=3600000)
            l.wait_log(job, "^step 20 ")
            doomed = l.instance_of(job)
            l.kill_belayd()
            l.cloud({"reclaim": {"instance": doomed, "notice_s": 4}})
            l.wait_cloud(
                lambda s: [i for i in s["instances"] if i["instance"] == doomed and i["gone_ms"]],
                "the machine is gone",
            )
            saved = l.manifests(job)
            self.assertEqual(len(saved), 1)
            l.up()
            l.wait_ended(job)
            shown = self.check_result(l, job)
            restored = shown["attempts"][-1]["restored"]
            self.assertEqual((restored["attempt"], restored["sequence"]), saved[0])
            self.assertEqual(len(shown["attempts"]), 2)

    # ---- agents and supervisors ----

    def test_killed_agent_takes_its_tasks_over_again(self):
        with Lab(belayd={"lease": "30s"}) as l:  # longer than an agent's restart on a busy machine
            job = start(l)
            for n in (1, 2):
                l.wait_event(job, "saved", n)
                os.kill(l.agents()[0], signal.SIGKILL)
            l.wait_ended(job)
            shown = self.check_result(l, job)
            self.assertEqual(len(shown["attempts"]), 1)
            self.assertEqual(l.state()["counts"]["launches"], 1)

    def test_killed_supervisor_ends_the_attempt_and_all_of_it(self):
        with Lab() as l:
            job = start(l)
            l.wait_event(job, "saved")
            program = [
                p for p in l.processes() if re.search(r"chain\.py %d" % STEPS, command_line(p))
            ]
            os.kill(l.supervisors()[0], signal.SIGKILL)
            self.assertTrue(all_gone(program, WAIT_S))
            l.wait_ended(job)
            shown = self.check_result(l, job)
            self.assertEqual([a["end"] for a in shown["attempts"]], ["node-lost", "succeeded"])
            self.check_resumed(shown, 2)

    def test_agent_that_was_frozen_finds_its_attempt_fenced(self):
        """The node of a frozen agent is lost and the job runs elsewhere. The attempt of the agent
        that returns late is ended and changes nothing.
        """
        with Lab() as l:
            job = start(l, 400)
            l.wait_event(job, "saved")
            agent = l.agents()[0]
            old = [p for p in l.processes() if re.search(r"chain\.py 400", command_line(p))]
            os.kill(agent, signal.SIGSTOP)
            l.wait_event(job, "started", 2)
            os.kill(agent, signal.SIGCONT)
            self.assertTrue(all_gone(old, WAIT_S))
            l.wait_ended(job)
            shown = self.check_result(l, job, 400)
            self.assertEqual([a["end"] for a in shown["attempts"]], ["node-lost", "succeeded"])
            self.check_resumed(shown, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
