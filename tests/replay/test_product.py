# SPDX-License-Identifier: Apache-2.0
"""The deadline policy in the product, on recorded availability: the short form of
`scripts/bench policy --product`. Costs are of the simulation, so every run has the same ones.
Without the traces (BELAY_TRACES, ../shared/traces): skipped (77)."""

import os
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
AIM = 1.02  # belay's cost relative to the cheapest reference

# (zones, slack, window, time limit): the greatest ratio, and the most late jobs of belay. A ratio
# above AIM, or a late job, is a BAR TO LOWER: what holds today, not what is wanted.
BARS = {
    (1, 1.17, 1, product.LIMIT_SAVES): (AIM, 0),
    (4, 1.08, 1, product.LIMIT_SAVES): (1.12, 0),
    (9, 1.17, 0, product.LIMIT_SAVES): (AIM, 0),
    (9, 1.04, 0, product.LIMIT_SAVES): (AIM, 0),
    (9, product.MIXED, 0, product.LIMIT_SAVES): (1.06, 0),
    (9, product.MIXED, 0, product.LIMIT_WORK): (1.04, 0),
}
WINDOWS = 3


class Product(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="belay-product-")
        self.addCleanup(scratch.cleanup)
        self.dir = scratch.name

    def run_window(self, n_zones, slack, i, policy, limit=product.LIMIT_SAVES):
        window = product.Window(os.environ["BELAY"], TRACES, n_zones, slack, i, WINDOWS, limit)
        return window.run(policy, self.dir)[0]

    def test_no_reference_is_cheaper_by_more_than_the_bar(self):
        for (n_zones, slack, i, limit), (bar, late) in BARS.items():
            cells = {
                policy: product.Cell([self.run_window(n_zones, slack, i, policy, limit)])
                for policy in (product.OURS, *RIVALS)
            }
            found, ours = product.ratio(cells), cells[product.OURS]
            print(
                "%d zones, slack %s, limit with %s: %.4f of %s, %d late"
                % (n_zones, slack, limit, found, product.cheapest(cells), ours.late)
            )
            with self.subTest(zones=n_zones, slack=slack, limit=limit):
                self.assertEqual(ours.jobs, product.JOBS)
                self.assertEqual(cells[product.ALONE].late, 0)
                self.assertLessEqual(found, bar)
                self.assertLessEqual(ours.late, late)

    def test_the_same_log_gives_the_same_result(self):
        first, second = [self.run_window(1, 1.6, 0, product.OURS) for _ in range(2)]
        self.assertEqual(first, second)


if __name__ == "__main__":
    try:
        product.traces(TRACES)
    except product.NoTraces as e:
        print(e)
        sys.exit(77)
    unittest.main()
