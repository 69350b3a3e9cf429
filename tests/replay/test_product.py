# SPDX-License-Identifier: Apache-2.0
"""The deadline policy in the product, on recorded availability: the short form of
`scripts/bench policy --product`. Costs are of the simulation, so every run has the same ones.
Without the traces (BELAY_TRACES, ../shared/traces): skipped (77)."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))
import policy_product as product  # noqa: E402

TRACES = os.environ.get("BELAY_TRACES") or str(ROOT.parent / "shared/traces")
RIVALS = ("UP", "UC-h", product.ALONE)
OPTIMUM = os.environ["BENCH_PRODUCT_BEST"]
AIM = 1.02  # belay's cost relative to the cheapest reference

NEW = (product.HISTORY_NONE, product.BOOTS_CONSTANT)  # a new installation
TAUGHT = (product.HISTORY_2022, product.BOOTS_VARIED)  # as the table

# (zones, slack, window, time limit, market): the greatest ratio, and the most late jobs of belay. A
# ratio above AIM, or a late job, is a BAR TO LOWER: what holds today, not what is wanted.
BARS = {
    (1, 1.17, 1, product.LIMIT_SAVES, NEW): (AIM, 0),
    (4, 1.08, 1, product.LIMIT_SAVES, NEW): (AIM, 0),
    (9, 1.04, 0, product.LIMIT_SAVES, NEW): (AIM, 0),
    (9, product.MIXED, 0, product.LIMIT_SAVES, NEW): (AIM, 0),
    (2, product.MIXED, 0, product.LIMIT_WORK, NEW): (AIM, 0),
    (1, 1.17, 1, product.LIMIT_SAVES, TAUGHT): (AIM, 0),
    (4, 1.08, 1, product.LIMIT_SAVES, TAUGHT): (AIM, 0),
}
WINDOWS = 3


class Product(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="belay-product-")
        self.addCleanup(scratch.cleanup)
        self.dir = scratch.name

    def window(self, n_zones, slack, i, limit=product.LIMIT_SAVES, market=TAUGHT):
        return product.Window(
            os.environ["BELAY"], TRACES, n_zones, slack, i, WINDOWS, limit, *market
        )

    def test_no_reference_is_cheaper_by_more_than_the_bar(self):
        for (n_zones, slack, i, limit, market), (bar, late) in BARS.items():
            window = self.window(n_zones, slack, i, limit, market)
            cells = {
                policy: product.Cell([window.run(policy, self.dir)[0]])
                for policy in (product.OURS, *RIVALS)
            }
            optimum = window.optimum_uusd(OPTIMUM)
            found, ours = product.ratio(cells), cells[product.OURS]
            print(
                "%d zones, slack %s, limit with %s, history %s, boots %s: %.4f of %s, %.4f of the"
                " optimum, %d late"
                % (
                    *(n_zones, slack, limit, *market, found, product.cheapest(cells)),
                    *(ours.uusd / optimum, ours.late),
                )
            )
            with self.subTest(zones=n_zones, slack=slack, limit=limit, market=market):
                self.assertEqual(ours.jobs, product.JOBS)
                self.assertEqual(cells[product.ALONE].late, 0)
                self.assertLessEqual(found, bar)
                self.assertLessEqual(ours.late, late)
                self.assertLess(optimum, min(cell.uusd for cell in cells.values()))

    def test_the_same_log_gives_the_same_result(self):
        window = self.window(1, 1.6, 0)
        first, second = [window.run(product.OURS, self.dir)[0] for _ in range(2)]
        self.assertEqual(first, second)

    def test_the_optimum_of_a_small_market(self):
        """A boot of 120 s, a restore of 30 and a notice of 120; spot costs a fifth."""

        def optimum_s(data, *job):
            path = os.path.join(self.dir, "trace.json")
            with open(path, "w") as f:
                json.dump({"metadata": {"gap_seconds": 3600}, "data": data}, f)
            words = [OPTIMUM, "120", "30", "120", "0.2", "0", path]
            done = subprocess.run(words, input="%d %d %d" % job, text=True, capture_output=True)
            return float(done.stdout)

        self.assertEqual(optimum_s([1], 0, 7200, 14400), 0.2 * (120 + 7200))
        self.assertEqual(optimum_s([0], 0, 7200, 14400), 120 + 7200)
        # at the end of each hour the notice is worked in
        self.assertEqual(optimum_s([1, 0], 0, 7170, 14400), 0.2 * (120 + 3600 + 150 + 3570))
        self.assertEqual(optimum_s([1, 0], 3600, 3600, 7320), 0.2 * (120 + 3600))
        self.assertEqual(optimum_s([1, 0], 0, 7170, 7440), 0.2 * (120 + 3600) + 150 + 3570)
        self.assertEqual(optimum_s([1, 0], 0, 7200, 7200), float("inf"))


if __name__ == "__main__":
    try:
        product.traces(TRACES)
    except product.NoTraces as e:
        print(e)
        sys.exit(77)
    unittest.main()
