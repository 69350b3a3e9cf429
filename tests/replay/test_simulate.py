# SPDX-License-Identifier: Apache-2.0
"""belay simulate as users run it: the example of the manual, its JSON, its page, its errors."""

import datetime
import json
import os
import pty
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import report_page  # noqa: E402

EXAMPLE = ROOT / "examples/simulate"
OWNED = "base=2,cpus=4,memory=16G,gpus=1"


def belay(*words, expect=0):
    return run("simulate", *words, expect=expect)


def forecast(*words):
    return run("cost", "forecast", *words)


def run(verb, *words, expect=0):
    done = subprocess.run(
        [os.environ["BELAY"], verb, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
        cwd=EXAMPLE,
    )
    assert done.returncode == expect, (done.returncode, done.stdout, done.stderr)
    return done.stdout if expect == 0 else done.stderr


def duration(ms):
    """As printed in tables."""
    s = ms // 1000
    for unit, part, text in (
        (86400, 3600, "%dd%02dh"),
        (3600, 60, "%dh%02dm"),
        (60, 1, "%dm%02ds"),
    ):
        if s >= unit:
            return text % (s // unit, s % unit // part)
    return (
        "%dms" % ms
        if s == 0
        else "%d.%ds" % (s, ms % 1000 // 100)
        if ms % 1000 >= 100
        else "%ds" % s
    )


def example(*words, pools="pools.yaml"):
    return belay(
        "--pools",
        pools,
        "--pools",
        "on-demand.yaml",
        "--jobs",
        "jobs.csv",
        "--trace",
        "traces",
        "--owned",
        OWNED,
        *words,
    )


class Simulate(unittest.TestCase):
    def setUp(self):
        self.dir = Path(tempfile.mkdtemp(prefix="belay-simulate-"))
        self.addCleanup(shutil.rmtree, self.dir)

    def quick(self):
        """The example's pools, without computing tables."""
        return self.write(
            "pools.yaml",
            (EXAMPLE / "pools.yaml").read_text() + "deadlines: {policy: uniform-sticky}\n",
        )

    def elsewhere(self):
        """The same, with a store elsewhere at its own price."""
        return self.write(
            "elsewhere.yaml",
            self.quick().read_text()
            + "store_place: gcp/us-central1\nstore_usd_per_gib_month: 0.02\n",
        )

    def write(self, name, text):
        (self.dir / name).write_text(text)
        return self.dir / name

    def test_the_manual_shows_what_its_example_prints(self):
        printed = re.sub(r"\s+\n", "\n", example()).strip()
        shown = re.search(
            r"prints, side by side.*?```text\n(.*?)\.\.\.\n",
            (ROOT / "docs/how-to/simulate.md").read_text(),
            re.S,
        )[1]
        self.assertIn(shown.strip(), printed)

    def test_a_week_in_racks_that_have_too_little_power(self):
        """Two racks of four nodes with 8 GPUs, each with power for two and a half nodes at full
        load; more work than there is capacity for.
        """
        pools = self.write(
            "racks.yaml",
            "pools: {base: {}}\nnode_types: {dgx: {watts: {idle: 2000, full: 10000}}}\n"
            "racks:\n  r1: {max_kw: 28, nodes: {dgx: 'gpu[1-4]'}}\n  r2: {max_kw: 28, nodes: {dgx: 'gpu[5-8]'}}\n",
        )
        rng, at, rows = random.Random(7), 0, ["submit,run,user,cpus,memory,gpus,nodes"]
        while at < 7 * 86400:
            gpus, nodes = rng.choice([(1, 1), (1, 1), (2, 1), (4, 1), (8, 1), (8, 2)])
            rows.append(
                "%d,%d,%s,%d,1G,%d,%d"
                % (at, rng.randint(600, 6 * 3600), rng.choice("abc"), gpus * 8, gpus, nodes)
            )
            at += rng.randint(1, 1400)
        words = (
            "--pools",
            pools,
            "--jobs",
            self.write("week.csv", "\n".join(rows)),
            "--owned",
            "base=8,cpus=64,memory=60G,gpus=8,names=gpu[1-8]",
        )
        result = json.loads(belay(*words, "--json"))["simulations"][0]
        self.assertEqual(result["all"]["ended"], len(rows) - 1)
        for rack in result["racks"]:
            self.assertLessEqual(rack["most_watts"], rack["max_watts"])
            self.assertGreater(
                rack["most_watts"], 0.9 * rack["max_watts"]
            )  # and the limit is what keeps it there
            self.assertGreater(rack["mean_watts"], 8000)
        self.assertLess(result["utilisation"]["gpus"], result["utilisation_without_racks"]["gpus"])
        printed = belay(*words)
        self.assertRegex(printed, r"GPUs in use +\d+\.\d %\n  if racks had no limit +\d+\.\d %")
        self.assertRegex(
            printed,
            r"RACK +MAX KW +MOST KW +MEAN KW\nr1 +28\.00 +2\d\.\d\d +\d+\.\d\d\nr2 +28\.00 ",
        )
        self.assertIn(
            "names= has 7 names for 8 machines",
            belay(*words[:-1], "base=8,cpus=64,memory=60G,gpus=8,names=gpu[1-7]", expect=2),
        )

    def test_the_example_is_what_its_maker_makes(self):
        subprocess.run([sys.executable, EXAMPLE / "make.py", self.dir], check=True, timeout=60)
        made = sorted(p.relative_to(self.dir) for p in self.dir.rglob("*") if p.is_file())
        self.assertEqual(len(made), 4)
        for path in made:
            self.assertEqual((self.dir / path).read_bytes(), (EXAMPLE / path).read_bytes(), path)

    def test_everything_adds_up(self):
        result = json.loads(example("--json"))
        self.assertEqual(result["never_ran"], 0)
        self.assertEqual(result, json.loads(example("--json")))
        for s in result["simulations"]:
            self.assertEqual(s["cost_uusd"], sum(s["cost_uusd_by_market"].values()))
            self.assertEqual(s["cost_uusd"], sum(p["cost_uusd"] for p in s["pools"]))
            for key in (
                "jobs",
                "ended",
                "cost_uusd",
                "lost_ms",
                "reclaims",
                "late",
                "with_deadline",
            ):
                self.assertEqual(s["all"][key], sum(t[key] for t in s["teams"]), key)
                self.assertEqual(
                    s["all"][key], sum(p["started_there"][key] for p in s["pools"]), key
                )
            self.assertEqual([t["team"] for t in s["teams"]], ["nlp", "vision"])
            self.assertEqual(s["reclaims"], sum(p["reclaims"] for p in s["pools"]))
            burst = s["pools"][1]
            self.assertEqual(burst["cost_uusd"], sum(burst["spent_uusd"].values()))
            self.assertAlmostEqual(sum(s["over_time"]["spent_usd"]), s["cost_uusd"] / 1e6, places=3)
            self.assertEqual(len(s["waits_ms"]), 200)
            self.assertEqual(s["waits_ms"], sorted(s["waits_ms"]))
            self.assertEqual(s["waits_ms"][-1], s["all"]["wait_ms"]["max"])
        spot, on_demand = result["simulations"]
        self.assertLess(spot["cost_uusd"], on_demand["cost_uusd"])
        self.assertGreater(spot["reclaims"], 0)
        self.assertEqual(on_demand["cost_uusd_by_market"]["spot"], 0)

    def test_a_part_of_the_log(self):
        jobs = (EXAMPLE / "jobs.csv").read_text().splitlines()[1:]
        april = sum("2026-04-01" <= line.split(",")[4] < "2026-04-08" for line in jobs)
        for words in (
            ("--from", "2026-04-01", "--days", "7"),
            ("--from", "2026-04-01T00:00:00Z", "--to", "2026-04-08"),
        ):
            result = json.loads(example("--json", *words, pools=self.quick()))
            self.assertEqual(result["simulations"][0]["all"]["jobs"], april)

    def test_scarcer_machines_shorter_notices_and_no_checkpoints_cost(self):
        def one(*words):
            return json.loads(
                belay(
                    "--pools",
                    self.quick(),
                    "--jobs",
                    "jobs.csv",
                    "--trace",
                    "traces",
                    "--owned",
                    OWNED,
                    "--days",
                    "30",
                    "--json",
                    *words,
                )
            )["simulations"][0]

        usual = one()
        self.assertGreater(
            one("--machines", "1")["cost_uusd_by_market"]["on_demand"],
            usual["cost_uusd_by_market"]["on_demand"],
        )
        self.assertGreater(one("--notice", "0")["all"]["lost_ms"], usual["all"]["lost_ms"])
        self.assertGreater(
            one("--no-checkpoints")["all"]["lost_ms"], one("--notice", "0")["all"]["lost_ms"]
        )
        self.assertGreater(
            one("--boot", "9m")["all"]["wait_ms"]["mean"], usual["all"]["wait_ms"]["mean"]
        )
        self.assertGreater(
            one("--answer", "2m")["all"]["wait_ms"]["mean"], usual["all"]["wait_ms"]["mean"]
        )
        self.assertGreater(
            one("--boot-tail", "9m")["all"]["wait_ms"]["p95"], usual["all"]["wait_ms"]["p95"]
        )
        self.assertGreater(one("--gone", "20m")["cost_uusd"], usual["cost_uusd"])
        self.assertNotEqual(one("--trace-from", "10d")["cost_uusd"], usual["cost_uusd"])

    def test_what_was_observed_before_the_log(self):
        words = ("--pools", self.quick(), "--jobs", "jobs.csv", "--days", "2", "--owned", OWNED)
        printed = belay(*words, "--trace", "traces", "--observed", "traces")
        self.assertIn("\n3 of 3 spot offers were observed before the first job.\n", printed)
        self.assertIn(
            "--observed: traces/none.json",
            belay(*words, "--observed", "traces/none.json", expect=2),
        )

    def test_what_jobs_read_is_paid_for_at_each_start(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "jobs.csv")
            with open(path, "w") as f:
                f.write(
                    "submit,run,cpus,gpus,memory,pool,input,input_place\n"
                    + "".join(
                        "%d,3600,4,1,14G,burst,%s\n" % row
                        for row in (
                            (0, "140G,gcp/us-central1"),
                            (10, "140G,aws/us-east-1"),
                            (20, ","),
                        )
                    )
                )
            s = json.loads(
                belay("--pools", self.quick(), "--owned", OWNED, "--jobs", path, "--json")
            )["simulations"][0]
        self.assertEqual(s["all"]["ended"], 3)
        self.assertEqual(
            s["spent_uusd"]["egress"], 140 * 120000
        )  # of the far store; without traces nothing is reclaimed: one start

    def test_what_checkpoints_cost_on_their_way_and_in_their_place(self):
        words = ("--jobs", "jobs.csv", "--trace", "traces", "--owned", OWNED, "--days", "30")
        s = json.loads(belay("--pools", self.elsewhere(), *words, "--json"))["simulations"][0]
        egress, storage = s["spent_uusd"]["egress"], s["spent_uusd"]["storage"]
        self.assertGreater(min(egress, storage), 0)
        self.assertEqual(s["cost_uusd"], sum(s["cost_uusd_by_market"].values()) + egress + storage)
        self.assertEqual(s["cost_uusd"], sum(p["cost_uusd"] for p in s["pools"]) + storage)
        self.assertAlmostEqual(sum(s["over_time"]["spent_usd"]), s["cost_uusd"] / 1e6, places=3)
        printed = belay("--pools", self.elsewhere(), "--pools", self.quick(), *words)
        self.assertRegex(
            printed,
            r"\n  data transfer +\$%.2f +\$0\.00 *\n  checkpoints kept +\$%.2f +\$0\.00"
            % (egress / 1e6, storage / 1e6),
        )
        self.assertRegex(printed, r"POOL +JOBS +WAIT +LATE +COST +DATA +USEFUL")
        self.assertRegex(printed, r"POOL +JOBS +WAIT +LATE +COST +USEFUL")

    def test_what_is_printed_of_a_pool_is_what_the_json_says(self):
        """A job on several nodes, saved and reclaimed: each kind of time has its own name."""
        jobs = self.write(
            "gangs.csv",
            "submit,run,cpus,nodes,pool\n"
            + "".join("%d,4h,4,%d,burst\n" % (7200 * i, 1 + i % 3) for i in range(60)),
        )
        words = ("--pools", self.quick(), "--jobs", jobs, "--trace", "traces", "--owned", OWNED)
        s = json.loads(belay(*words, "--json"))["simulations"][0]
        printed = belay(*words)
        heads = re.search(r"^POOL .*$", printed, re.M)[0].split()
        for i, pool in enumerate(s["pools"]):
            cells = dict(
                zip(
                    heads,
                    re.split(
                        r"(?<! %)\s+(?!%)",
                        re.search(r"^%s .*$" % pool["pool"], printed, re.M)[0].strip(),
                    ),
                )
            )
            for kind, ms in pool["time_ms"].items():
                if kind not in ("egress", "storage"):
                    self.assertEqual(cells[kind.upper()], duration(ms), (pool["pool"], kind))
                    self.assertTrue(ms > 0 or kind in ("lost", "start") or i == 0, kind)
        self.assertIn(
            "useful time %.1f %%" % (100 * s["time_ms"]["useful"] / sum(s["time_ms"].values())),
            re.sub(" +", " ", printed),
        )
        self.assertNotIn(
            "GANG-WAIT",
            belay(
                "--pools",
                self.quick(),
                "--jobs",
                self.write("one.csv", "submit,run\n0,1h\n"),
                "--owned",
                OWNED,
            ),
        )

    def test_the_page_is_whole_and_shows_the_same(self):
        page = self.dir / "report.html"
        name = self.elsewhere()
        result = json.loads(
            belay(
                "--pools",
                name,
                "--jobs",
                "jobs.csv",
                "--trace",
                "traces",
                "--owned",
                OWNED,
                "--json",
                "--html",
                page,
            )
        )
        text = page.read_text()
        self.assertTrue(report_page.loads_nothing(text))
        self.assertEqual(text.count("</script>"), 3)
        self.assertEqual(report_page.data_of(text), result)
        plots = report_page.plots_of(text)
        for plot in plots or []:
            self.assertGreater(plot["rows"], 1)
            self.assertEqual(plot["columns"], plot["labels"])
            self.assertEqual(plot["columns"], plot["colors"] + 1)
        if plots:
            self.assertEqual(len(plots), 5)
        seen = report_page.text_of(text)
        self.assertIn("Seed 1.", seen)
        self.assertRegex(seen, r"Made by belay [0-9.]+ on \d{4}-\d\d-\d\d at \d\d:\d\d UTC, with\n")
        self.assertIn("belay simulate --pools ", seen)
        one = result["simulations"][0]
        for part in (
            one["utilisation"]["cpus"],
            one["utilisation"]["gpus"],
            one["time_ms"]["useful"] / sum(one["time_ms"].values()),
        ):
            self.assertIn("%.1f %%" % (100 * part), seen)
        for uusd in (
            result["simulations"][0]["cost_uusd"],
            *map(result["simulations"][0]["spent_uusd"].get, ("egress", "storage")),
        ):
            self.assertGreater(uusd, 0)
            self.assertIn("$%.2f" % (uusd / 1e6), seen.replace(",", ""))
        pools = report_page.rows_of(text, "What ran in each pool, and what it cost")
        self.assertEqual([row[0] for row in pools[1:]], [p["pool"] for p in one["pools"]])
        for row, pool in zip(pools[1:], one["pools"]):
            self.assertEqual(row[5], "$%.2f" % (pool["cost_uusd"] / 1e6))
            self.assertEqual(row[-1], str(pool["reclaims"]))
        waits = report_page.rows_of(text, "The longest wait of this part of the jobs")
        self.assertEqual(waits[-1], ["100 %", duration(one["all"]["wait_ms"]["max"])])
        spent = report_page.rows_of(text, "Dollars spent so far")
        self.assertEqual(len(spent), 14)
        self.assertAlmostEqual(
            float(spent[-1][1][1:]), sum(one["over_time"]["spent_usd"]), delta=0.01
        )

    def test_what_is_planned_costs_no_more_than_uniform_progress_and_is_not_late(self):
        """Jobs with --finish-by on the example's market, from several begins, in all of its zones
        and in one.
        """
        start = datetime.datetime(2026, 1, 1)
        lines = ["submit,run,cpus,gpus,memory,finish_by,work"]
        for i in range(9):
            work, within = ((48, 60), (12, 20), (6, 9))[i % 3]
            submit = start + datetime.timedelta(hours=17 * i)
            lines.append(
                f"{submit.isoformat()}Z,{work}h,4,1,14G,{(submit + datetime.timedelta(hours=within)).isoformat()}Z,{work}h"
            )
        jobs = self.write("deadlines.csv", "\n".join(lines) + "\n")
        burst = (EXAMPLE / "pools.yaml").read_text().split("  burst:")[1]
        for zones in ("us-east-1a, us-east-1c, us-east-1d", "us-east-1d"):
            words = ["--jobs", jobs, "--trace", "traces", "--json"]
            for policy in ("planned", "uniform-sticky", "uniform", "on-demand"):
                text = f"pools:\n  burst:{burst}deadlines: {{policy: {policy}}}\n".replace(
                    "us-east-1a, us-east-1c, us-east-1d", zones
                )
                words += ["--pools", self.write(f"{policy}.yaml", text)]
            costs = [0, 0, 0, 0]
            for trace_from in ("0", "25d"):
                ran = json.loads(belay(*words, "--trace-from", trace_from))["simulations"]
                for i, s in enumerate(ran):
                    self.assertEqual(
                        (s["all"]["with_deadline"], s["all"]["ended"], s["all"]["late"]),
                        (9, 9, 0),
                        (zones, trace_from, i),
                    )
                    costs[i] += s["cost_uusd"]
                self.assertLess(
                    ran[0]["cost_uusd"], 1.05 * ran[1]["cost_uusd"], (zones, trace_from)
                )
            print(zones, *(f"{c / 1e6:.2f}" for c in costs))
            self.assertLess(costs[0], costs[1])
            self.assertLess(costs[0], costs[2])

    def test_one_job_on_each_offer(self):
        words = (
            "--work",
            "48h",
            "--finish-by",
            "60h",
            "-c",
            "4",
            "-G",
            "1",
            "-m",
            "14G",
            "--pools",
            "pools.yaml",
            "--trace",
            "traces",
            "--starts",
            "6",
        )
        printed = forecast(*words)
        shown = re.search(
            r"## One job: `belay cost forecast`.*?```text\n(.*?)```",
            (ROOT / "docs/how-to/simulate.md").read_text(),
            re.S,
        )
        for line in shown[1].splitlines():
            if line != "...":
                self.assertIn(line, printed)
        few = json.loads(forecast("--json", *words[:-1], "2"))["candidates"]
        self.assertEqual(
            json.loads(forecast("--json", *words[:3], "+60h", *words[4:-1], "2"))["candidates"], few
        )
        limited = json.loads(forecast("--json", "--time", "2880", *words[2:-1], "2"))
        self.assertEqual(
            json.loads(forecast("--json", "--time", "48h", *words[:-1], "2")), limited
        )  # as with submit, nothing above the limit is reckoned with
        self.assertLess(limited["candidates"][0]["cost_uusd"]["mean"], few[0]["cost_uusd"]["mean"])
        self.assertRegex(
            run("cost", "--help"), r"Usage: belay cost \[forecast\] \[OPTION\.\.\.\]\n"
        )
        self.assertEqual(len(few), 7)
        self.assertIsNone(few[0]["offer"])
        on_demand = [c for c in few[1:] if c["offer"]["market"] == "on-demand"]
        self.assertEqual([c["late"] for c in on_demand], [0, 0, 0])
        self.assertLess(few[0]["cost_uusd"]["mean"], on_demand[0]["cost_uusd"]["mean"])
        quick = ("--json", "--work", "10h", "-c", "4", "-m", "14G", "--pools", "pools.yaml")
        near = json.loads(forecast(*quick))["candidates"][0]["cost_uusd"]
        far = json.loads(forecast(*quick, "--input", "gs://lab/x,size=140G,place=gcp/us-central1"))[
            "candidates"
        ][0]["cost_uusd"]
        self.assertEqual(
            (near["data"], far["data"]), (0, 140 * 120000)
        )  # without traces nothing is reclaimed: one start
        self.assertEqual(far["mean"] - near["mean"], far["data"])
        table = forecast(*quick[1:], "-i", "s3://lab/x,size=140G,place=aws/us-west-2")
        self.assertRegex(table, r"ON +COST +DATA DONE AFTER")
        self.assertRegex(table, r"all, as belay chooses +\$\d+\.\d+ +\$2\.80 ")
        for words, part in (
            ((), "unexpected word"),
            (("forecast", *quick[1:], "--limit", "0"), "--limit: "),
            (("forecast", *quick[1:], "--limit", "1001"), "--limit: "),
            (("forecast", *quick[1:], "--time", "9h"), "--time is less than --work"),
            (("forecast",), "expected a job and pools: "),
            (
                ("forecast", "train.py"),
                'unexpected word "train.py": belay cost forecast reads no script; options describe',
            ),
            (("forecast", "train.py", "--time", "2h"), 'unexpected word "train.py"'),
            (("forecast", "--time", "soon"), "--time: "),
            (("forecast", "--work", "1h"), "expected a job and pools: "),
            (("--work", "1h"), "these options belong to belay cost forecast"),
            (
                ("forecast", "--work", "1h", "--by", "job"),
                "--from, --to and --csv select past costs",
            ),
            (("forecast", "--finish-by", "soon"), "--finish-by: expected a time such as now+1hour"),
            (("forecast", "--finish-by", "8"), "or +8h from now, found"),
            (("forecast", "--finish-by", "+0"), "--finish-by: expected at least one second"),
            (("forecast", "--finish-by", "2020-01-01T00:00:00Z"), "has passed"),
            (
                ("forecast", "--input", "data.csv"),
                "--input: expected data with its size, as in s3://bucket/prefix,size=140G",
            ),
            (("forecast", "--input", "s3://lab/x"), "--input: the size must be given"),
            (
                (
                    "forecast",
                    "--work",
                    "1h",
                    "--pools",
                    "pools.yaml",
                    "-i",
                    "s3://lab/x,size=1G,place=moon/sea",
                ),
                "expected the location of the input",
            ),
            (("forecast", "--market", "bazaar"), "--market: expected any, spot or on-demand"),
            (
                ("forecast", "--work", "1h", "-c", "9999", "--pools", "pools.yaml"),
                "no machine that could be launched is large enough for the job",
            ),
        ):
            with self.subTest(words):
                self.assertIn(part, run("cost", *(words or ("what",)), expect=2))

    def test_a_forecast_says_nothing_twice_and_what_it_reckons_with(self):
        job = ("-c", "4", "-G", "1", "-m", "14G", "--pools", "pools.yaml")
        near = ("--work", "6h", "--finish-by", "8h", *job)
        # as belay submit takes them: a bare number is minutes
        self.assertEqual(forecast(*near), forecast("--work", "360", "--finish-by", "+480", *job))
        traces = ("--trace", "traces", "--starts", "6")
        text = forecast(*near)
        # three zones without traces have the same result, and a single run has no distribution
        self.assertRegex(text, r"^ON +COST DONE AFTER LATE RECLAIMS\n")
        self.assertEqual(len(re.findall(r"(?m)^burst/", text)), 2)
        self.assertRegex(
            text, r"(?m)^burst/us-east-1a/g5.xlarge spot \(and 2 more zones\) +\$\d.* no +0.0$"
        )
        # the remedy is true: with it the job costs as much as is said
        found = re.search(
            r"Until the job reports progress, its 6h00m of work are reckoned as up to 12h00m "
            r"\(work_margin 100 %\);\nwith --time 7h, after which it is ended, it would cost "
            r"(\$\S+) instead of (\$\S+)\.\n",
            text,
        )
        cost = re.compile(r"(?m)^all, as belay chooses +(\$\S+)")
        self.assertEqual(cost.search(text)[1], found[2])
        text = forecast(*near, "--time", "7h")
        self.assertEqual(cost.search(text)[1], found[1])
        self.assertIn("its 6h00m of work are reckoned as up to 7h00m (--time).\n", text)
        self.assertNotIn("reckoned", forecast("--work", "6h", *job))
        for more in ((), traces):
            far = ("--work", "10h", "--finish-by", "6h", *job, *more)
            text = forecast(*far)
            found = re.match(
                r"infeasible by 4h0(\d)m: the fastest run takes 10h0\1m, and the deadline is 6h00m "
                r"away\n\nON ",
                text,
            )
            self.assertTrue(found, text)
            for no in ("LATE", "100.0 %", "reckoned"):
                self.assertNotIn(no, text)
            by_ms = json.loads(forecast("--json", *far))["infeasible_by_ms"]
            self.assertEqual(by_ms // 60000, 240 + int(found[1]))
        self.assertIsNone(json.loads(forecast("--json", *near))["infeasible_by_ms"])
        text = forecast(*near, *traces, "--limit", "2")
        self.assertEqual(len(re.findall(r"(?m)^burst/", text)), 2)
        self.assertIn("\n2 more offers are not shown (--limit).\n", text)
        both = json.loads(forecast("--json", *near, *traces, "--limit", "2"))
        self.assertEqual((len(both["candidates"]), both["more"]), (3, 4))
        whole = json.loads(forecast("--json", *near, *traces))
        self.assertEqual(whole["candidates"][:3], both["candidates"])
        self.assertEqual((len(whole["candidates"]), whole["more"]), (7, 0))

    def test_a_terminal_sees_how_far_it_is(self):
        master, slave = pty.openpty()
        done = subprocess.Popen(
            [
                os.environ["BELAY"],
                "simulate",
                "--pools",
                self.quick(),
                "--jobs",
                "jobs.csv",
                "--trace",
                "traces",
                "--owned",
                OWNED,
            ],
            cwd=EXAMPLE,
            stdout=subprocess.DEVNULL,
            stderr=slave,
            stdin=subprocess.DEVNULL,
        )
        os.close(slave)
        seen = b""
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:
                break
            if not part:
                break
            seen += part
        os.close(master)
        self.assertEqual(done.wait(timeout=60), 0)
        self.assertIn(b" 50 %", seen)
        self.assertTrue(seen.endswith(b"\r\033[K"), seen[-80:])

    def test_mistakes_are_reported_with_their_position(self):
        for words, part in (
            ((), "give the pools, --pools FILE"),
            (("--pools", "pools.yaml"), "and the log of jobs, --jobs FILE"),
            (("--pools", "nowhere.yaml", "--jobs", "jobs.csv"), "nowhere.yaml"),
            (("--pools", "jobs.csv", "--jobs", "jobs.csv"), "jobs.csv:"),
            (
                ("--pools", "pools.yaml", "--jobs", "pools.yaml"),
                "pools.yaml:2: a log of jobs begins",
            ),
            (("--pools", "pools.yaml", "--jobs", "jobs.csv"), "--owned base=4,cpus=8,memory=60G"),
            (("--owned", "base"), "--owned: expected POOL=COUNT"),
            (("--pools", "pools.yaml", "--jobs", "jobs.csv", "--trace", "/nowhere"), "/nowhere"),
            (("--pools", "pools.yaml", "--jobs", "jobs.csv", "--trace", "a=/nowhere"), "/nowhere"),
            (
                ("--pools", "pools.yaml", "--jobs", "jobs.csv", "--trace", "make.py"),
                "--trace: make.py",
            ),
            (("--days", "0"), "--days:"),
            (("--boot", "soon"), "--boot:"),
            (("--answer", "0"), "--answer: expected a duration above 0"),
            (("--gone", "now"), "--gone:"),
            (("--from", "yesterday"), "--from: expected a time"),
            (
                ("--pools", "pools.yaml", "--jobs", "jobs.csv", "--owned", OWNED, "--boot", "10m"),
                "boot_timeout",
            ),
            (
                (
                    "--pools",
                    "pools.yaml",
                    "--jobs",
                    "jobs.csv",
                    "--owned",
                    OWNED,
                    "--from",
                    "2030-01-01",
                ),
                "jobs.csv: none of its jobs was submitted in the time of --from, --to or --days: its 1000 jobs were submitted from 2026-03-01T01:47:45Z to ",
            ),
            (
                (
                    "--pools",
                    "pools.yaml",
                    "--jobs",
                    self.write("no.csv", "submit,run\n0,0\n"),
                    "--owned",
                    OWNED,
                ),
                "no job of the log ran (1 never did)",
            ),
            (
                (
                    "--pools",
                    "pools.yaml",
                    "--jobs",
                    "jobs.csv",
                    "--days",
                    "3",
                    "--to",
                    "2026-04-08",
                ),
                "--days and --to",
            ),
        ):
            with self.subTest(words):
                self.assertIn(part, belay(*words, expect=2))


if __name__ == "__main__":
    unittest.main()
