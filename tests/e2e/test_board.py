# SPDX-License-Identifier: Apache-2.0
"""The board of packaging/monitoring as Grafana's own types of dashboards describe it, from npm."""

import json
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import npm  # noqa: E402

FILE = os.path.join(HERE, "..", "..", "packaging/monitoring/belay.grafana.json")
BUILD = os.environ.get("BELAY_BUILD", os.path.join(HERE, "..", "..", "build"))
PACKAGE = {
    "private": True,
    "dependencies": {"@grafana/schema": "11.6.0", "typescript": "5.6.3"},
}
# The modules of the schema are named by their files.
OPTIONS = "--noEmit --strict --skipLibCheck --target es2022 --module esnext --moduleResolution node"
# Of each: a fault of the board, which the types do not allow.
FAULTS = (
    ('"type": "stat"', '"type": "statistics"'),
    ('"mode": "multi"', '"mode": "several"'),
    ('"fillOpacity"', '"opacity"'),
    ('"refId"', '"id"'),
    ('"unit"', '"units"'),
    ('"schemaVersion": 39', '"schemaVersion": "39"'),
)


class Board(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = os.path.join(BUILD, "tests", "e2e", "npm-grafana")
        npm.install(cls.dir, PACKAGE, "Grafana's types")
        with open(FILE) as f:
            cls.board = f.read()

    def check(self, board):
        """What the compiler says of this board."""
        path = os.path.join(self.dir, "board.ts")
        with open(os.path.join(HERE, "monitoring/board.ts")) as f, open(path, "w") as out:
            out.write(f.read() + board)
        compiler = os.path.join(self.dir, "node_modules/typescript/bin/tsc")
        done = subprocess.run(
            ["node", compiler, *OPTIONS.split(), path],
            cwd=self.dir,
            capture_output=True,
            text=True,
            timeout=120,
        )
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def test_it_is_a_dashboard_of_grafana(self):
        self.assertEqual(self.check(self.board), (0, ""))
        for right, wrong in FAULTS:
            with self.subTest(wrong=wrong):
                self.assertIn(right, self.board)
                status, said = self.check(self.board.replace(right, wrong))
                self.assertIn(": error TS2", said)
                self.assertNotEqual(status, 0)

    def test_its_panels_have_places_of_their_own(self):
        taken, ids = {}, set()
        for panel in json.loads(self.board)["panels"]:
            self.assertNotIn(panel["id"], ids, panel["title"])
            ids.add(panel["id"])
            at = panel["gridPos"]
            self.assertLessEqual(at["x"] + at["w"], 24, panel["title"])
            for x in range(at["x"], at["x"] + at["w"]):
                for y in range(at["y"], at["y"] + at["h"]):
                    other = taken.setdefault((x, y), panel["title"])
                    self.assertEqual(other, panel["title"], "they overlap")


if __name__ == "__main__":
    unittest.main()
