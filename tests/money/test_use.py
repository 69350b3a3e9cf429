# SPDX-License-Identifier: Apache-2.0
"""belayd's record of how nodes were used: the API call, and the advice derived from it. Nodes, jobs
and the ledger are written into the database of a running belayd; all of them have ended, so the
model is not affected.
"""

import datetime
import json
import os
import sqlite3
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scheduler"))
from belayd import BUILD, Belayd  # noqa: E402

HOUR = 3600000


class Use(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.belayd = Belayd()
        cls.d = cls.belayd.__enter__()
        cls.addClassCleanup(cls.belayd.__exit__, None, None, None)
        cls.now = int(datetime.datetime.now(datetime.timezone.utc).timestamp() * 1000)

    def setUp(self):
        self.sql = sqlite3.connect(
            os.path.join(self.d.state, "belay.db"), timeout=30, isolation_level=None
        )
        self.addCleanup(self.sql.close)
        for table in ("nodes", "jobs", "ledger", "offers", "gpu_loads"):
            self.sql.execute("DELETE FROM " + table)

    def insert(self, table, **values):
        for _, name, kind, required, default, _ in self.sql.execute(
            "PRAGMA table_info(%s)" % table
        ):
            if required and default is None and name not in values:
                values[name] = "" if kind == "TEXT" else 0
        self.sql.execute(
            "INSERT INTO %s (%s) VALUES (%s)"
            % (table, ", ".join(values), ", ".join("?" * len(values))),
            list(values.values()),
        )

    def node(self, id, pool, gpus, since_h, until_h, **values):
        self.insert(
            "nodes",
            id=id,
            name="n%d" % id,
            pool=pool,
            state="gone",
            cpus=16,
            gpus=gpus,
            market="owned",
            criu="unknown",
            notice="none",
            joined_at=self.now - since_h * HOUR,
            gone_at=self.now - until_h * HOUR,
            **values
        )

    def used(self, job, node, gpus, since_h, until_h, kind="useful"):
        if not self.sql.execute("SELECT id FROM jobs WHERE id = ?", (job,)).fetchone():
            self.insert(
                "jobs",
                id=job,
                user="ann",
                state="ended",
                end_kind="succeeded",
                cpus=2,
                gpus=gpus,
                market="any",
                method="none",
            )
        self.insert(
            "ledger",
            job=job,
            attempt=1,
            node=node,
            kind=kind,
            from_at=self.now - since_h * HOUR,
            to_at=self.now - until_h * HOUR,
            ms=(since_h - until_h) * HOUR,
        )

    def belay(self, *words, expect=0):
        done = subprocess.run(
            [os.path.join(BUILD, "cli/belay"), *map(str, words)],
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "BELAY_SOCKET": self.d.socket},
        )
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout if expect == 0 else done.stderr

    def breakeven(self, *words, expect=0):
        out = self.belay("breakeven", "--node-usd", "300000", "--price", "4", *words, expect=expect)
        return json.loads(out) if expect == 0 and "--json" in words else out

    def test_utilisation_is_that_of_the_reserved_nodes(self):
        self.node(1, "base", 8, 100, 50)  # 400 GPU-hours
        self.used(1, 1, 4, 100, 75)  # 100 of them useful,
        self.used(2, 1, 4, 90, 70, kind="lost")  # 80 lost
        self.node(2, "burst", 8, 60, 50, instance=7, on_demand_uusd_h=40000000)
        self.used(3, 2, 8, 60, 50)
        result = self.breakeven("--utilization", "measured", "--json")
        self.assertAlmostEqual(result["utilisation"], 0.25, places=6)
        figure = result["own"]["figures"][0]
        self.assertEqual((figure["figure"], figure["origin"]), ("utilisation_percent", "measured"))
        self.assertIn("of 400 GPU-hours in 4 weeks, pools base; jobs held 45.0 %", figure["source"])
        self.assertIn("measured, of 400 GPU-hours", self.breakeven("--utilization", "measured"))
        self.assertAlmostEqual(
            self.breakeven("--utilization", "measured", "--pool", "burst", "--json")["utilisation"],
            1,
        )
        self.assertIn(
            "no node of the pool none existed",
            self.breakeven("--utilization", "measured", "--pool", "none", expect=1),
        )

    def test_where_there_are_no_gpus_cpus_count_and_it_is_said(self):
        self.node(1, "base", 0, 10, 0)
        self.used(1, 1, 0, 10, 5)
        result = self.breakeven("--utilization", "measured", "--json")
        self.assertAlmostEqual(result["utilisation"], 0.0625, places=6)
        self.assertIn("cpu-hours", result["own"]["figures"][0]["source"])

    def test_only_the_weeks_that_are_asked_for_count(self):
        self.node(1, "base", 8, 20 * 24, 0)
        self.used(1, 1, 8, 19 * 24, 10 * 24)
        self.used(2, 1, 8, 84, 0)
        self.assertAlmostEqual(
            self.breakeven("--utilization", "measured", "--weeks", "1", "--json")["utilisation"],
            0.5,
            places=4,
        )
        self.assertAlmostEqual(
            self.breakeven("--utilization", "measured", "--weeks", "4", "--json")["utilisation"],
            (9 * 24 + 84) / 480,
            places=4,
        )

    def test_unmeasurable_values_are_reported(self):
        self.assertIn(
            "no node of a reserved pool existed in the last 4 weeks; for an elastic pool, name it with --pool",
            self.breakeven("--utilization", "measured", expect=1),
        )
        self.node(1, "base", 8, 100, 50)
        self.assertIn(
            "too little for a comparison; give a number",
            self.breakeven("--utilization", "measured", expect=1),
        )
        self.assertIn(
            "--weeks needs --utilization measured", self.breakeven("--weeks", "2", expect=2)
        )
        self.assertIn(
            "--pool needs --utilization measured",
            self.breakeven("--pool", "base", "--interruptions", "3", "--spot", "2", expect=2),
        )
        self.assertIn(
            "--weeks: ", self.breakeven("--weeks", "0", "--utilization", "measured", expect=2)
        )

    def test_interruptions_are_those_of_spot_machines(self):
        def spot(*words):
            return next(
                f
                for f in self.breakeven("--spot", "2", "--json", *words)["rent"][1]["figures"]
                if f["figure"] == "interruptions_percent_per_hour"
            )

        self.assertIn(
            "no spot machine has ended yet",
            self.breakeven("--spot", "2", "--interruptions", "measured", expect=1),
        )
        for id, pool, market, reclaims, hours in (
            (1, "burst", "spot", 3, 50),
            (2, "burst", "spot", 0, 50),
            (3, "other", "spot", 50, 100),
            (4, "burst", "on-demand", 7, 100),
        ):
            self.insert(
                "offers", id=id, pool=pool, market=market, reclaims=reclaims, up_ms=hours * HOUR
            )
        measured = spot("--interruptions", "measured", "--pool", "burst")
        self.assertEqual(
            (measured["value"], measured["origin"], measured["source"]),
            (3, "measured", "3 reclaims in 100 machine-hours of spot, pool burst"),
        )
        self.assertAlmostEqual(spot("--interruptions", "measured")["value"], 26.5)
        self.assertEqual(spot("--interruptions", "4.5")["value"], 4.5)
        self.assertEqual(spot()["value"], 2)
        self.assertIn(
            "no spot machines to compare", self.breakeven("--interruptions", "4", expect=2)
        )
        self.assertIn(
            "--interruptions: expected a number in 0 .. 100",
            self.breakeven("--spot", "2", "--interruptions", "often", expect=2),
        )

    def test_a_base_is_advised_by_what_was_held(self):
        self.node(1, "base", 8, 96, 0)
        self.node(2, "burst", 32, 96, 0, instance=3, on_demand_uusd_h=160000000)
        self.used(1, 1, 8, 96, 0)  # 8 all the time,
        self.used(2, 2, 12, 96, 47)  # 12 half of it, and a little more
        result = json.loads(self.belay("advise", "reserve", "--json", "--reserved", "2"))
        self.assertEqual((result["unit"], result["peak"]), ("gpus", 20))
        self.assertAlmostEqual(result["mean"], 14, places=0)
        self.assertGreaterEqual(result["hours"], 95)
        # Of 16: 8, and half of 8 more. Of 12: a little more than three quarters.
        self.assertEqual(result["size"], 16)
        self.assertAlmostEqual(result["use"], 0.755, places=2)
        # 32 GPUs at $160 an hour; owned ones have no such price. Above 8, each is used
        # half of the time.
        self.assertAlmostEqual(result["on_demand_uusd_per_hour"] / 1e6, 5, places=3)
        for point in result["sizes"]:
            self.assertAlmostEqual(
                point["cost_uusd"], point["reserved_uusd"] + point["beyond_uusd"], delta=1
            )
        cost = {p["size"]: p["cost_uusd"] for p in result["sizes"]}
        self.assertEqual(min(cost.values()), cost[result["cheapest"]])
        self.assertEqual(set(cost), set(range(21)))
        self.assertEqual(
            json.loads(self.belay("advise", "reserve", "--json", "--reserved", "1"))["cheapest"], 20
        )
        self.assertEqual(
            json.loads(self.belay("advise", "reserve", "--json", "--reserved", "3"))["cheapest"], 8
        )
        printed = self.belay("advise", "reserve")
        for part in ("Reserve 16: 75.", "by use", "with --reserved", "waited for capacity"):
            self.assertIn(part, printed)
        alone = json.loads(self.belay("advise", "reserve", "--json", "--pool", "burst"))
        self.assertEqual((alone["size"], alone["peak"], alone["cheapest"]), (0, 12, None))
        self.assertIn("Reserve none", self.belay("advise", "reserve", "--pool", "burst"))

    def test_a_base_is_sized_by_the_busy_time(self):
        self.node(1, "base", 32, 96, 0)
        self.used(1, 1, 16, 96, 0)
        self.insert(
            "gpu_loads",
            job=1,
            attempt=1,
            node=1,
            gpu="GPU-1",
            span_ms=HOUR,
            at=self.now - 10 * HOUR,
            ms=HOUR,
            known_ms=HOUR,
            busy_ms=HOUR // 4,
        )
        result = json.loads(self.belay("advise", "reserve", "--json"))
        self.assertEqual((result["by"], result["peak"]), ("busy", 16))
        self.assertAlmostEqual(result["mean"], 16, places=1)
        self.assertAlmostEqual(result["mean_busy"], 4, places=1)
        self.assertEqual((result["size"], result["size_by_held"]), (4, 16))
        held = json.loads(self.belay("advise", "reserve", "--json", "--by", "held"))
        self.assertEqual((held["by"], held["size"]), ("held", 16))
        self.assertIn("it takes 16 (--by held)", self.belay("advise", "reserve"))

    def test_a_trend_is_continued_and_three_weeks_are_too_few(self):
        hours = 3 * 7 * 24
        self.node(1, "base", 8, hours, 0)
        self.used(1, 1, 4, hours, 0)
        self.assertIsNone(json.loads(self.belay("advise", "reserve", "--json"))["trend"])
        self.assertIn("too little history", self.belay("advise", "reserve"))
        week = 7 * 24
        self.node(2, "base", 32, 6 * week, 0)
        for n in range(6):  # 2, 4, ... 12 more
            self.used(2 + n, 2, 2 * (n + 1), (6 - n) * week, (5 - n) * week)
        result = json.loads(
            self.belay("advise", "reserve", "--json", "--weeks", "6", "--by", "held")
        )
        trend = result["trend"]
        self.assertEqual((trend["weeks"], result["by"]), (6, "held"))
        self.assertGreater(trend["per_week"], 1.5)
        self.assertGreater(trend["next"], result["mean"])
        self.assertLessEqual(trend["low"], trend["next"])
        self.assertGreater(trend["size"], result["size"])
        self.assertIn(
            "Next month: the demand of 6 weeks", self.belay("advise", "reserve", "-w", "6")
        )

    def test_unknown_advice_is_refused(self):
        for words, part in (
            (("idle",), "belay advise reserve how many"),
            (("reserve", "--reserved", "cheap"), "--reserved: "),
            (("reserve", "--weeks", "53"), "--weeks: "),
            (("reserve", "--by", "guess"), "--by: "),
        ):
            with self.subTest(words):
                self.assertIn(part, self.belay("advise", *words, expect=2))
        self.assertIn("no node of any pool existed", self.belay("advise", "reserve", expect=1))


if __name__ == "__main__":
    unittest.main()
