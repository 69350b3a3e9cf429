# SPDX-License-Identifier: Apache-2.0
"""belay breakeven as users run it: the example of the manual, its JSON, its page, its errors."""

import json
import os
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

EXAMPLE = ROOT / "examples/breakeven"


def belay(*words, expect=0):
    done = subprocess.run(
        [os.environ["BELAY"], "breakeven", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        cwd=EXAMPLE,
        env={**os.environ, "BELAY_SOCKET": "/nonexistent/belayd.sock"},
    )
    assert done.returncode == expect, (done.returncode, done.stdout, done.stderr)
    return done.stdout if expect == 0 else done.stderr


class Breakeven(unittest.TestCase):
    def setUp(self):
        self.dir = Path(tempfile.mkdtemp(prefix="belay-breakeven-"))
        self.addCleanup(shutil.rmtree, self.dir)

    def test_the_manual_shows_what_its_example_prints(self):
        printed = re.sub(r" +\n", "\n", belay("one-price.yaml"))
        shown = re.search(
            r"```text\n(.*?)```", (ROOT / "docs/how-to/breakeven.md").read_text(), re.S
        )[1]
        for part in shown.split("...\n"):
            self.assertIn(part.strip(), printed)

    def test_the_worked_examples(self):
        result = json.loads(belay("h100.yaml", "--json"))
        items = {i["item"]: i["uusd_per_productive_gpu_hour"] / 1e6 for i in result["own"]["items"]}
        for item, usd, digits in (
            ("hardware", 2.53, 2),
            ("staff", 0.84, 2),
            ("power", 0.091, 3),
            ("network", 0.10, 2),
        ):
            self.assertEqual(round(items[item], digits), usd, item)
        self.assertAlmostEqual(
            sum(items.values()), result["own"]["uusd_per_productive_gpu_hour"] / 1e6, places=5
        )
        self.assertAlmostEqual(result["own"]["uusd_per_productive_gpu_hour"] / 1e6, 3.554, places=3)
        rents = {r["name"]: r for r in result["rent"]}
        spot = {i["item"]: i for i in rents["azure spot"]["items"]}
        self.assertEqual(spot["egress"]["cost_uusd_per_month"], 378000000)
        self.assertAlmostEqual(
            spot["work lost to interruptions"]["cost_uusd"] / spot["spot machines"]["cost_uusd"],
            0.01,
            places=6,
        )
        self.assertEqual(
            round(
                1
                - spot["spot machines"]["cost_uusd"]
                / rents["azure on-demand"]["items"][0]["cost_uusd"],
                2,
            ),
            0.80,
        )
        result = json.loads(belay("one-price.yaml", "--json"))
        at = result["rent"][0]["break_even"]
        self.assertEqual(
            round(result["own"]["uusd_per_gpu_year"]["hardware_and_power"] / 1e6), 18628
        )
        self.assertEqual(at["hardware_and_power"]["owning_costs_less"], "above")
        self.assertEqual(round(at["hardware_and_power"]["utilisation"], 3), 0.405)
        self.assertEqual(round(at["utilisation"]["utilisation"], 2), 0.54)

    def test_everything_adds_up(self):
        result = json.loads(belay("h100.yaml", "--json"))
        self.assertEqual(result, json.loads(belay("h100.yaml", "--json")))
        for side in [result["own"]] + result["rent"]:
            self.assertEqual(len(side["paid_so_far_uusd"]), 60)
            for over in side["over"]:
                n = over["months"]
                self.assertEqual(
                    over["paid_uusd"], sum(sum(i["cash_uusd"][:n]) for i in side["items"])
                )
                self.assertEqual(
                    over["cost_uusd"], sum(sum(i["monthly_cost_uusd"][:n]) for i in side["items"])
                )
                self.assertEqual(over["paid_uusd"], side["paid_so_far_uusd"][n - 1])
                self.assertEqual(over["value_left_uusd"], over["paid_uusd"] - over["cost_uusd"])
            self.assertEqual([o["months"] for o in side["over"]], [12, 24, 36, 60])
            self.assertEqual(
                side["over"][2]["cost_uusd"], sum(i["cost_uusd"] for i in side["items"])
            )
            for figure in side["figures"]:
                self.assertTrue(figure["origin"] == "given" or figure["source"], figure)
        for rent in result["rent"]:
            month = rent["break_even"]["month"]
            if month:
                self.assertLessEqual(
                    result["own"]["paid_so_far_uusd"][month - 1],
                    rent["paid_so_far_uusd"][month - 1],
                )
                self.assertGreater(
                    result["own"]["paid_so_far_uusd"][month - 2],
                    rent["paid_so_far_uusd"][month - 2],
                )
        self.assertEqual(
            [w["name"] for w in result["what_if"]],
            [
                "utilisation falls by 10 points",
                "a generation 3 times better after 18 months",
                "spot prices double",
            ],
        )

    def test_options_win_over_the_file(self):
        usual = json.loads(belay("one-price.yaml", "--json"))

        def own(*words):
            return json.loads(belay("one-price.yaml", "--json", *words))["own"][
                "uusd_per_productive_gpu_hour"
            ]

        self.assertLess(own("--utilization", "95%"), usual["own"]["uusd_per_productive_gpu_hour"])
        self.assertEqual(own("--utilization", "0.8"), own("--utilization", "80"))
        for words in (
            ("--node-usd", "500000"),
            ("--pue", "1.9"),
            ("--kwh", "0.2"),
            ("--kw", "0.9"),
            ("--staff", "3"),
            ("--years", "2"),
            ("--nodes", "4"),
        ):
            self.assertGreater(own(*words), usual["own"]["uusd_per_productive_gpu_hour"], words)
        more = json.loads(
            belay(
                "one-price.yaml",
                "--json",
                "--price",
                "3.10",
                "--type",
                "aws/p5.48xlarge",
                "--months",
                "60",
                "--reserved",
                "12=2.90",
                "--reserved",
                "36=2.10",
                "--spot",
                "1.80",
            )
        )
        self.assertEqual(
            [r["name"] for r in more["rent"]],
            [
                "rented",
                "on-demand at $3.10",
                "aws/p5.48xlarge on-demand",
                "aws/p5.48xlarge spot",
                "lambda/gpu_8x_h100_sxm5 on-demand",
                "reserved, 12 months at $2.90",
                "reserved, 36 months at $2.10",
                "spot at $1.80",
            ],
        )
        self.assertEqual(more["months"], 60)

    def test_defaults_are_shown_with_their_source(self):
        printed = belay("--node-usd", "300000", "--type", "aws/p5.48xlarge")
        self.assertNotIn("No staff is counted", belay("one-price.yaml"))
        for part in (
            "No staff is counted: give the number of people with --staff",
            "Uptime Institute",
            "EIA, Electric Power Monthly",
            "catalogue, list price of 2026-07-20, us-east-1",
            "NVIDIA's data sheet",
            "utilisation_percent",
            "Not counted, own: spares_percent",
            "network_usd_per_month, staff.",
        ):
            self.assertIn(part, printed)
        months = belay("--node-usd", "300000", "--price", "4", "--cash-flow")
        self.assertRegex(months, r"\n +60 ")

    def test_the_page_is_whole_and_shows_the_same(self):
        page = self.dir / "report.html"
        result = json.loads(belay("h100.yaml", "--json", "--html", page))
        text = page.read_text()
        self.assertTrue(report_page.loads_nothing(text))
        self.assertEqual(text.count("</script>"), 3)
        self.assertEqual(report_page.data_of(text), result)
        seen = report_page.text_of(text)
        plots = report_page.plots_of(text)
        if plots:
            self.check_plots(plots, result)
        self.assertEqual(
            text.count('class="bar '), (1 + len(result["what_if"])) * (1 + len(result["rent"]))
        )
        for side in [result["own"]] + result["rent"]:
            for item in side["items"]:
                self.assertIn(item["item"], seen)
            for figure in side["figures"]:
                self.assertIn(figure["figure"], seen)
        self.assertNotIn("No staff is counted", seen)
        self.assertRegex(seen, r"Made by belay [0-9.]+ on .* UTC, with\nbelay breakeven h100.yaml")
        versus = report_page.rows_of(
            text, "The utilisation from which owning costs less than renting"
        )
        self.assertEqual([row[0] for row in versus[1:]], [r["name"] for r in result["rent"]])
        paid = report_page.rows_of(text, "Paid after so many months")
        last = result["own"]["paid_so_far_uusd"][-1]
        self.assertEqual(paid[-1][:2], ["60 months", "${:,}".format(round(last / 1e6))])

    def check_plots(self, plots, result):
        self.assertEqual(len(plots), 2)
        utilisation, paid = plots
        for plot in plots:
            self.assertEqual(plot["columns"], plot["labels"])
        self.assertEqual(paid["rows"], 60)
        met = [r["break_even"]["utilisation"]["utilisation"] for r in result["rent"]]
        met = [u for u in met if u is not None]
        self.assertEqual(utilisation["rows"], 96 + len(met))
        self.assertEqual(utilisation["dots"], len(met))

    def test_the_page_says_what_is_not_counted(self):
        page = self.dir / "report.html"
        belay("one-price.yaml", "--staff", "0", "--html", page)
        self.assertIn("No staff is counted", report_page.text_of(page.read_text()))
        belay("one-price.yaml", "--html", page)
        versus = report_page.rows_of(
            page.read_text(), "The utilisation from which owning costs less than renting"
        )
        self.assertEqual(versus[1][2:5], ["above 54.3 %", "above 41.3 %", "above 40.5 %"])

    def test_mistakes_are_reported_with_the_remedy(self):
        wrong = self.dir / "wrong.yaml"
        wrong.write_text("own:\n  node_usd: 5\n  pues: 3\n")
        for words, part in (
            ((), "what does a node cost?"),
            (("--node-usd", "5"), "what is it compared with?"),
            (
                ("--node-usd", "five"),
                '--node-usd: expected a number in 0 .. 1000000000, $ a node, found "five"',
            ),
            (("--utilization", "120%"), "--utilization: expected 1% to 100%"),
            (("--type", "aws/p5.48xlarge2"), 'did you mean "p5.48xlarge"?'),
            (("--months", "61"), "--months: "),
            (("--reserved", "2.10"), "--reserved: expected MONTHS=USD"),
            (("nowhere.yaml",), "nowhere.yaml"),
            (("one-price.yaml", "h100.yaml"), 'unexpected word "h100.yaml"'),
            ((wrong,), 'wrong.yaml:3: unknown key "pues"; did you mean "pue"?'),
            (("one-price.yaml", "--nodes", "100000", "--node-usd", "1000000"), "wrong unit?"),
        ):
            with self.subTest(words):
                self.assertIn(part, belay(*words, expect=2))
        self.assertIn(
            "/nonexistent", belay("one-price.yaml", "--html", "/nonexistent/page.html", expect=1)
        )


if __name__ == "__main__":
    unittest.main()
