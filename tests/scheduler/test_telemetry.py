# SPDX-License-Identifier: Apache-2.0
"""Telemetry of tasks and GPUs, from the wire to `belay diagnose`."""

import time
import unittest

from belayd import WAIT_S, Belayd, Node

CONFIG = """\
cluster: lab
listen: 127.0.0.1:0
pools: {base: {egress_usd_per_gib: 0.12}}
store_usd_per_gib_month: 0.304375
telemetry: {minutes: 1h, diagnose: {over: 20m, least: 10s}, advise: {idle_for: 30s, sizes_least: 40s}}
node_types: {small: {watts: {idle: 100, full: 500}}}
racks: {left: {max_kw: 0.6, pue: 1.25, nodes: {small: "n,n-2"}}}
"""
SLOW = {
    "ms": 60000,
    "cpu_ms": 3000,
    "blocked_ms": 50000,
    "read_bytes": 1 << 30,
    "memory_bytes": 1 << 20,
    "node_cpus": 8,
}
HOT = {
    "ms": 60000,
    "known_ms": 60000,
    "busy_ms": 59000,
    "memory_bytes": 1 << 34,
    "memory_total_bytes": 1 << 35,
    "energy_mj": 30000000,
    "temperature_c": 91,
    "clock_permille_ms": 36000000,
    "thermal_ms": 40000,
}


class Telemetry(unittest.TestCase):
    def setUp(self):
        self.d = Belayd(CONFIG)
        self.d.start()
        self.addCleanup(self.d.__exit__, None, None, None)
        self.node, self.no = Node(self.d, cpus=8, memory_mib=1000, gpus=2), 0

    def sync(self, attempts, wait_ms=0, **more):
        return self.node.sync(attempts=attempts, wait_ms=wait_ms, **more)

    def run_job(self, *others, **spec):
        """A job started by an agent in addition to others: its number and the agent's status of
        it."""
        job = self.d.submit(**spec)
        end = time.monotonic() + WAIT_S
        while not any(a["job"] == job for a in self.sync(list(others), 1000).get("attempts", [])):
            self.assertLess(time.monotonic(), end)
        attempt = {
            "job": job,
            "attempt": 1,
            "phase": "running",
            "started_at": int(time.time() * 1000),
        }
        self.sync([*others, attempt])
        return job, attempt

    def task(self, job, load, at=None, attempt=1):
        self.no += 1
        return {
            "no": self.no,
            "at": int(time.time() * 1000) if at is None else at,
            "job": job,
            "attempt": attempt,
            "load": load,
        }

    def gpu(self, job, load, gpu="GPU-a"):
        return {**self.task(job, load), "gpu": gpu, "index": 1}

    def diagnosis(self, job, until):
        """Waits until the condition holds and returns it: reports take some seconds to arrive."""
        end = time.monotonic() + WAIT_S
        while True:
            status, body, _ = self.d.call("GET", "/api/v1/jobs/%d/diagnose" % job)
            self.assertEqual(status, 200, body)
            if until(body):
                return body
            self.assertLess(time.monotonic(), end, body)
            self.d.call(
                "GET", "/api/v1/events?after=1000000&wait_ms=200"
            )  # as long as nothing happens

    def test_the_cost_of_reading_input_is_estimated_and_billed_at_the_start(self):
        job, _ = self.run_job(cpus=8, time_limit_ms=3600000, input={"bytes": 10 << 30})
        self.assertEqual(
            self.d.call("GET", "/api/v1/jobs/%d" % job)[1]["job"]["cost_uusd"], 10 * 120000
        )
        waits = self.d.submit(cpus=8, time_limit_ms=3600000, input={"bytes": 140 << 30})
        self.assertEqual(
            self.d.call("GET", "/api/v1/jobs/%d/why" % waits)[1]["estimate"]["input_uusd"],
            140 * 120000,
        )
        self.assertIn(
            "where reading its input from elsewhere costs $16.80, at each start",
            self.d.belay("why", str(waits)).stdout,
        )

    def test_from_the_wire_to_the_diagnosis(self):
        job, attempt = self.run_job(gpus=1)
        said = self.d.belay("diagnose", str(job)).stdout
        self.assertIn("its node reported nothing about it", said)

        loads = [self.task(job, SLOW), self.task(job, {**SLOW, "ms": 1})]
        desired = self.sync([attempt], task_loads=loads, gpu_loads=[self.gpu(job, HOT)])
        self.assertEqual((desired["task_loads_taken"], desired["gpu_loads_taken"]), (2, 3))
        self.sync([attempt], task_loads=loads)  # repeated, as by an agent that got no answer
        body = self.diagnosis(job, lambda b: b["ranks"])
        self.assertTrue(body["enough"])
        self.assertEqual(body["ranks"][0]["ms"], 60001)
        self.assertEqual(body["gpus"][0]["gpu"], "GPU-a")
        self.assertEqual(
            [f["code"] for f in body["findings"]], ["thermal-throttling"]
        )  # its GPU is busy, so disks do not slow it down
        self.assertEqual(body["findings"][0]["gpu"], 1)
        self.assertEqual(self.d.belay("diagnose", str(job), "--json").returncode, 0)
        said = self.d.belay("diagnose", str(job)).stdout
        self.assertIn(
            "thermal-throttling: GPU 1 is throttled by heat 67 % of the time: 91 degrees, its clock at 60 % of its maximum",
            said,
        )
        self.assertIn("    > have the machine's cooling checked", said)

        # The attempt ends, and the report of its last minute follows.
        self.sync([{**attempt, "phase": "ended", "end": "succeeded"}])
        self.sync([], task_loads=[self.task(job, {**SLOW, "ms": 100})])
        self.assertEqual(self.diagnosis(job, lambda b: b["ranks"][0]["ms"] == 60101)["attempt"], 1)

    def test_load_over_time(self):
        job, attempt = self.run_job(gpus=1)
        path, minute = "/api/v1/jobs/%d/load" % job, 60000
        status, body, _ = self.d.call("GET", path)
        self.assertEqual((status, body["at_ms"], body["gpus"]), (200, [], []))
        at = int(time.time() * 1000) // minute * minute
        self.sync(
            [attempt],
            task_loads=[
                self.task(job, SLOW, at),
                self.task(job, {**SLOW, "ms": 60000, "cpu_ms": 9000}, at),
            ],
            gpu_loads=[self.gpu(job, HOT)],
        )
        self.diagnosis(job, lambda b: b["ranks"] and b["gpus"])
        body = self.d.call("GET", path)[1]
        self.assertEqual((body["span_ms"], body["rank"]), (minute, 0))
        self.assertEqual(body["at_ms"], [at])  # two reports of one minute are one point
        self.assertEqual(body["cpu_milli"], [100])  # 12 s in two minutes of observation
        self.assertEqual(body["memory_bytes"], [1 << 20])
        self.assertEqual(body["read_bytes_s"], [(2 << 30) * 1000 // 120000])
        self.assertEqual(body["blocked_percent"], [83])
        (gpu,) = body["gpus"]
        self.assertEqual((gpu["gpu"], gpu["index"]), ("GPU-a", 1))
        for name, value in (("busy_percent", 98), ("watts", 500), ("temperature_c", 91)):
            self.assertEqual(gpu[name], [value], name)
        other = self.d.call("GET", path + "?rank=1")[1]
        self.assertEqual((other["at_ms"], other["gpus"]), ([], []))

    def test_a_job_that_waits_for_disks(self):
        job, attempt = self.run_job(cpus=2)
        other, running = self.run_job(attempt, cpus=2)
        self.sync(
            [attempt, running],
            task_loads=[
                self.task(job, SLOW),
                self.task(other, {**SLOW, "blocked_ms": 0, "cpu_ms": 110000}),
            ],
        )
        body = self.diagnosis(job, lambda b: b["ranks"])
        self.assertEqual([f["code"] for f in body["findings"]], ["iowait"])
        self.assertIn(
            "it waits for disks 83 % of the time, and its cpus are 3 % busy",
            body["findings"][0]["text"],
        )
        self.assertEqual(self.diagnosis(other, lambda b: b["ranks"])["findings"], [])
        self.assertIn("No bottleneck is visible", self.d.belay("diagnose", str(other)).stdout)

    def test_a_throttled_node_gets_no_new_jobs_and_its_draw_counts(self):
        job, attempt = self.run_job(gpus=1)
        self.sync([attempt], gpu_loads=[self.gpu(job, {**HOT, "energy_mj": 34500000})])  # 575 W
        end = time.monotonic() + WAIT_S
        while self.d.call("GET", "/api/v1/nodes")[1]["nodes"][0]["throttled"] == "none":
            self.assertLess(time.monotonic(), end)
            self.d.call("GET", "/api/v1/events?after=1000000&wait_ms=200")
        node = self.d.call("GET", "/api/v1/nodes")[1]["nodes"][0]
        self.assertEqual((node["throttled"], node["rack"]), ("heat", "left"))
        while self.d.call("GET", "/api/v1/nodes")[1]["nodes"][0]["watts"] != 575:
            self.assertLess(time.monotonic(), end)
            self.d.call("GET", "/api/v1/events?after=1000000&wait_ms=200")
        self.assertEqual(
            self.d.call("GET", "/api/v1/racks")[1]["racks"],
            [
                {
                    "name": "left",
                    "max_watts": 600,
                    "idle_watts": 200,
                    "watts": 675,
                    "measured_watts": 275,
                    "nodes": 2,
                    "joined": 1,
                    "pue": 1.25,
                }
            ],
        )
        self.assertEqual(self.d.metric('belay_rack_watts{rack="left"}'), 675)
        self.assertEqual(self.d.metric('belay_rack_pue{rack="left"}'), 1.25)
        waits = self.d.submit()
        self.sync([attempt])
        said = self.d.belay("why", str(waits)).stdout
        self.assertIn(
            "1 node is throttled by heat, power or the board, and gets no new jobs until that is over: n (heat)",
            said,
        )
        self.assertRegex(self.d.belay("nodes").stdout, r"(?m) left +575 +heat ")
        self.assertRegex(
            self.d.belay("nodes", "--racks").stdout, r"(?m)^left +600 +675 +200 +2 +1$"
        )

    def test_output_that_has_not_arrived_is_counted_by_node(self):
        job, attempt = self.run_job()
        lag = 'belay_node_log_lag_%s{node="n",pool="base"}'
        for written, sent, missing in ((0, 0, 0), (5000, 0, 5000), (5000, 3000, 2000)):
            self.sync([{**attempt, "output_bytes": written}])
            if sent:
                self.assertEqual(self.node.call("output/%d/1?offset=0" % job, b"a" * sent)[0], 200)
            self.assertEqual(self.d.metric(lag % "bytes"), missing)
        self.wait_for(lambda: self.d.metric(lag % "seconds") > 0)
        self.assertEqual(self.node.call("output/%d/1?offset=3000" % job, b"a" * 2000)[0], 200)
        self.assertEqual(self.d.metric(lag % "bytes"), 0)
        self.assertEqual(self.d.metric(lag % "seconds"), 0)
        # A belayd that was started anew looks at its files.
        self.d.kill()
        self.d.start()
        self.sync([{**attempt, "output_bytes": 5001}])
        self.assertEqual(self.d.metric(lag % "bytes"), 1)
        self.sync([])
        self.assertNotIn("belay_node_log_lag_bytes{", self.d.call("GET", "/metrics")[1].decode())

    def wait_for(self, holds):
        end = time.monotonic() + WAIT_S
        while not holds():
            self.assertLess(time.monotonic(), end)
            self.d.call("GET", "/api/v1/events?after=1000000&wait_ms=200")

    def test_what_nobody_touches_is_listed_with_its_price(self):
        ends, first = self.run_job(checkpoint={"method": "coop", "after": "last"})
        held, second = self.run_job(first, checkpoint={"method": "coop"})
        saved = {
            "sequence": 1,
            "bytes": 100 << 30,
            "stored_bytes": 10,
            "took_ms": 5,
            "pause_ms": 1,
            "progress": 3,
            "saved_at": int(time.time() * 1000),
            "cause": "program",
        }
        self.sync(
            [
                {**first, "checkpoints": [saved]},
                {**second, "checkpoints": [{**saved, "bytes": 200 << 30}]},
            ]
        )
        self.assertEqual(self.d.call("POST", "/api/v1/jobs/%d/reclaim" % held)[0], 200)
        self.sync(
            [
                {**first, "phase": "ended", "end": "succeeded"},
                {**second, "phase": "ended", "end": "cancelled"},
            ]
        )
        end, items = time.monotonic() + WAIT_S, []
        while {(i["code"], i["job"]) for i in items} != {
            ("kept-checkpoints", ends),
            ("held-job", held),
            ("idle-node", None),
        }:
            self.assertLess(time.monotonic(), end, items)
            self.d.call("GET", "/api/v1/events?after=1000000&wait_ms=200")
            status, body, _ = self.d.call("GET", "/api/v1/forgotten?for_ms=0")
            self.assertEqual(status, 200, body)
            items = body["items"]
        self.assertEqual(
            [(i["job"], i["bytes"], i["uusd_per_day"]) for i in items if i["job"]],
            [(held, 200 << 30, 2000000), (ends, 100 << 30, 1000000)],
        )  # most expensive first: a cent per GiB and day
        events = self.d.call("GET", "/api/v1/jobs/%d/events?limit=1000" % held)[1]["events"]
        self.assertGreater(len(events), 2)
        self.assertEqual(items[0]["since"], events[-1]["at"])  # its last event
        self.assertEqual(
            self.d.call("GET", "/api/v1/forgotten")[1],
            {"items": [], "for_ms": 30 * 86400000, "more": False, "unlisted": []},
        )
        said = self.d.belay("advise", "--forgotten", "--for", "0s").stdout
        self.assertRegex(said, r"(?m)^held-job +%d +- +job " % held)
        self.assertIn("3 items unused for", said)
        self.assertIn("$3.00 a day", said)
        self.assertIn(
            "Nothing has been unused for 30d",
            self.d.belay("advise", "--forgotten").stdout,
        )
        self.assertNotIn("$$", said)
        self.assertEqual(self.d.belay("advise", "--for", "1d").returncode, 2)
        self.assertEqual(self.d.belay("advise", "--volumes", "all").returncode, 2)
        self.assertEqual(self.d.belay("advise", "--forgotten", "--volumes", "some").returncode, 2)
        self.assertEqual(self.d.belay("advise", "--instances", "all").returncode, 2)
        self.assertEqual(self.d.belay("advise", "--forgotten", "--instances", "own").returncode, 2)

    def test_whose_volumes_are_looked_for_is_said(self):
        ann = self.d.token(kind="api", user="ann")
        for query, status in (
            ("volumes=own", 200),
            ("volumes=all", 200),
            ("volumes=none", 200),
            ("volumes=none&user=ann", 200),
            ("user=ann", 200),
            ("volumes=some", 400),
            ("volumes=", 400),
            ("volumes=own&user=ann", 400),
            ("volumes=all&user=ann", 400),
            ("instances=all", 200),
            ("instances=all&volumes=none", 200),
            ("instances=none&user=ann", 200),
            ("instances=own", 400),
            ("instances=", 400),
            ("instances=all&user=ann", 400),
        ):
            self.assertEqual(self.d.call("GET", "/api/v1/forgotten?" + query)[0], status, query)
        for query, status in (
            ("volumes=own", 200),
            ("", 200),
            ("volumes=all", 403),
            ("instances=none", 200),
            ("instances=all", 403),
            ("instances=all&volumes=none", 403),
        ):  # those of others are the administrators'
            self.assertEqual(
                self.d.call("GET", "/api/v1/forgotten?" + query, token=ann)[0], status, query
            )

    def test_what_cannot_be_is_left_out(self):
        job, attempt = self.run_job()
        strange = self.d.submit(pool="base", hold=True)
        now = int(time.time() * 1000)
        loads = [
            self.task(job, SLOW, at=now + 3600000),
            self.task(job, SLOW, at=1),
            self.task(strange, SLOW),
            self.task(99, SLOW),
            self.task(job, SLOW, attempt=7),
            self.task(job, {**SLOW, "ms": 30000}),
        ]
        self.sync([attempt], task_loads=loads)
        self.assertEqual(self.diagnosis(job, lambda b: b["ranks"])["ranks"][0]["ms"], 30000)
        self.assertEqual(self.d.call("GET", "/api/v1/jobs/%d/diagnose" % strange)[1]["ranks"], [])

    def advice(self, until, query=""):
        end = time.monotonic() + WAIT_S
        while True:
            body = {"items": [], "looked_at": 0, "next": 0}
            while body["next"] is not None:  # page by page, as they come
                status, page, _ = self.d.call(
                    "GET", "/api/v1/advice?after=%d%s" % (body["next"], query)
                )
                self.assertEqual(status, 200, page)
                body = {
                    "items": body["items"] + page["items"],
                    "looked_at": body["looked_at"] + page["looked_at"],
                    "next": page["next"],
                }
            if until(body):
                return body
            self.assertLess(time.monotonic(), end, body)
            self.d.call(
                "GET", "/api/v1/events?after=1000000&wait_ms=200"
            )  # as long as nothing happens

    def test_what_is_held_and_not_used(self):
        idle, first = self.run_job(gpus=2, checkpoint={"method": "coop"})
        large, second = self.run_job(first, cpus=4, memory_mib=800)
        well, third = self.run_job(first, second, cpus=1)
        self.assertEqual(self.advice(lambda b: True), {"items": [], "looked_at": 3, "next": None})
        self.assertIn("No advice: 3 running jobs", self.d.belay("advise").stdout)
        cold = {**HOT, "busy_ms": 600, "thermal_ms": 0}
        busy = {"ms": 60000, "cpu_ms": 59000, "memory_bytes": 100 << 20}
        self.sync(
            [first, second, third],
            task_loads=[
                self.task(idle, busy),
                self.task(large, {**busy, "cpu_ms": 60000}),
                self.task(well, busy),
            ],
            gpu_loads=[self.gpu(idle, cold), self.gpu(idle, cold, "GPU-b")],
        )
        items = self.advice(lambda b: len(b["items"]) >= 3)["items"]
        self.assertEqual(
            {(i["code"], i["job"]) for i in items},
            {("idle-gpus", idle), ("too-much-memory", large), ("too-many-cpus", large)},
        )
        one = next(i for i in items if i["job"] == idle)
        self.assertIn("2 of its 2 GPUs were less than 5 % busy", one["text"])
        self.assertTrue(one["can_reclaim"] and one["cost_uusd"] is not None and one["user"])
        self.assertEqual(self.advice(lambda b: True, "&user=nobody")["items"], [])
        one_each = []
        for job, after in ((idle, 0), (large, idle), (well, large)):
            page = self.d.call("GET", "/api/v1/advice?limit=1&after=%d" % after)[1]
            self.assertEqual((page["looked_at"], page["next"]), (1, None if job == well else job))
            one_each += page["items"]
        self.assertEqual(
            {(i["code"], i["job"]) for i in one_each}, {(i["code"], i["job"]) for i in items}
        )
        for wrong in ("after=-1", "after=x", "limit=0", "limit=501"):
            self.assertEqual(self.d.call("GET", "/api/v1/advice?" + wrong)[0], 400)
        said = self.d.belay("advise").stdout
        self.assertRegex(said, r"(?m)^idle-gpus +%d +- +job " % idle)
        self.assertIn(
            "job %d: it used 100 MiB of memory at most, 13 %% of the 800 MiB that it asked for: far too much"
            % large,
            said,
        )
        self.assertEqual(self.d.belay("advise", "--json").returncode, 0)

        # A job without checkpoints would lose its work.
        done = self.d.belay("advise", "--reclaim", str(large))
        self.assertEqual(done.returncode, 1)
        self.assertIn("has no checkpoints", done.stderr)
        done = self.d.belay("advise", "--reclaim", str(idle))
        self.assertIn(
            "job %d is being saved, and held until belay release %d" % (idle, idle),
            done.stdout,
        )
        # The job is stopped only after it has saved.
        asked = self.sync([first, second, third])["attempts"]
        self.assertEqual(
            {a["job"]: (a["want"], a.get("saves_asked", 0)) for a in asked},
            {idle: ("run", 1), large: ("run", 0), well: ("run", 0)},
        )
        first["checkpoints"] = [
            {
                "sequence": 1,
                "bytes": 1000,
                "stored_bytes": 500,
                "took_ms": 5,
                "saved_at": int(time.time() * 1000),
                "cause": "user",
            }
        ]
        self.sync([first, second, third])
        del first["checkpoints"]
        desired = self.sync([first, second, third])
        wants = {a["job"]: (a["want"], a.get("reason")) for a in desired["attempts"]}
        self.assertEqual(
            wants, {idle: ("save-stop", "cancelled"), large: ("run", None), well: ("run", None)}
        )
        self.sync([{**first, "phase": "ended", "end": wants[idle][1]}, second, third])
        row = self.d.call("GET", "/api/v1/jobs/%d" % idle)[1]["job"]
        self.assertEqual((row["state"], row["hold"]), ("pending", "user"))
        done = self.d.belay("advise", "--reclaim", str(idle))
        self.assertIn("does not run", done.stderr)

    def test_a_program_that_begins_again_is_named_and_held(self):
        self.d.kill()
        self.d.config = CONFIG + "hold_in_vain: 2\n"
        self.d.start()
        job, attempt = self.run_job(checkpoint={"method": "coop"})
        for n in (1, 2, 3):
            saved = {
                "sequence": 1,
                "bytes": 1000,
                "stored_bytes": 500,
                "took_ms": 10,
                "saved_at": int(time.time() * 1000),
                "cause": "periodic",
                "progress": 60 - n,
            }
            self.sync([{**attempt, "checkpoints": [saved]}])
            why = self.d.call("GET", "/api/v1/jobs/%d/why" % job)[1]
            self.assertEqual(["in-vain"] * (n > 1), [w["code"] for w in why["warnings"]])
            if n == 3:
                item = self.advice(lambda b: b["items"])["items"][0]
                self.assertEqual(
                    (item["code"], item["job"], item["waste_uusd_per_hour"]),
                    ("in-vain", job, item["uusd_per_hour"]),
                )
                self.assertIn("2 times in a row", item["text"])
            self.assertEqual(self.d.call("POST", "/api/v1/jobs/%d/requeue" % job)[0], 200)
            self.sync([{**attempt, "phase": "ended", "end": "cancelled"}])
            if n == 3:
                break
            end = time.monotonic() + WAIT_S
            while not any(a["attempt"] == n + 1 for a in self.sync([], 1000).get("attempts", [])):
                self.assertLess(time.monotonic(), end)
            attempt = {
                "job": job,
                "attempt": n + 1,
                "phase": "running",
                "started_at": int(time.time() * 1000),
                "restored_attempt": n,
                "restored_sequence": 1,
                "restored_progress": 60 - n,
                "first_done": 0,
                "done": 3,
                "total": 1000,
            }
            self.sync([attempt])
        row = self.d.call("GET", "/api/v1/jobs/%d" % job)[1]["job"]
        self.assertEqual((row["state"], row["hold"]), ("pending", "user"))
        said = self.d.belay("why", str(job)).stdout
        self.assertIn(
            "2 times in a row it was restored, started from before its checkpoint, and never got beyond step 59",
            said,
        )
        kinds = [e["kind"] for e in self.d.call("GET", "/api/v1/jobs/%d/events" % job)[1]["events"]]
        self.assertEqual((kinds.count("in-vain"), kinds.count("held")), (2, 1))

    def test_nodes_that_nobody_uses(self):
        self.d.kill()
        self.d.config = CONFIG.replace("idle_for: 30s", "idle_for: 1s")
        self.d.start()
        self.sync([])
        item = self.advice(lambda b: b["items"])["items"][0]
        self.assertEqual(
            (item["code"], item["job"], item["user"], item["cost_uusd"]),
            ("idle-node", None, None, None),
        )
        self.assertIn("no job has been on it for", item["text"])
        self.assertIn("node n", self.d.belay("advise").stdout)

    def test_a_restart_keeps_what_was_stored(self):
        job, attempt = self.run_job()
        self.sync([attempt], task_loads=[self.task(job, SLOW)])
        self.diagnosis(job, lambda b: b["ranks"])
        self.d.kill()
        self.d.start()
        self.assertEqual(
            self.d.call("GET", "/api/v1/jobs/%d/diagnose" % job)[1]["ranks"][0]["ms"], 60000
        )

    def test_options_that_are_wrong(self):
        for arguments in (
            ["advise", "what"],
            ["advise", "--weeks", "2"],
            ["advise", "reserve", "--user", "ann"],
            ["advise", "--reclaim", "x"],
            ["diagnose"],
            ["diagnose", "x"],
            ["diagnose", "1", "--over", "soon"],
            ["diagnose", "1", "2"],
        ):
            self.assertEqual(self.d.belay(*arguments).returncode, 2, arguments)
        done = self.d.belay("diagnose", "99")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no job 99", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
