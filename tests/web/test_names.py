# SPDX-License-Identifier: Apache-2.0
"""Every name in the console's sources is declared, and every import is an export, also in what no
test opens: TypeScript's compiler, from npm, reads them as the JavaScript that they are."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import npm  # noqa: E402

SOURCES = os.path.join(HERE, "..", "..", "web", "src")
BUILD = os.environ.get("BELAY_BUILD", os.path.join(HERE, "..", "..", "build"))
PACKAGE = {"private": True, "dependencies": {"typescript": "5.6.3"}}
OPTIONS = "--noEmit --allowJs --checkJs --target es2022 --module esnext --moduleResolution bundler"
# No such name (and perhaps a similar one), no such module, no such export of it.
FOUND = re.compile(r"^.*: error TS(?:2304|2552|2307|2305|2614|2724|18004): .*$", re.M)
PACKAGES = re.compile(r"Cannot find module '(?!\.)")  # which are fetched for builds alone


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = os.path.join(BUILD, "tests", "web", "npm-typescript")
        npm.install(cls.dir, PACKAGE, "TypeScript")

    def wrong(self, *files):
        done = subprocess.run(
            ["node", self.dir + "/node_modules/typescript/bin/tsc", *OPTIONS.split(), *files],
            capture_output=True,
            text=True,
            timeout=240,
        )
        self.assertEqual(done.stderr, "")
        return [line for line in FOUND.findall(done.stdout) if not PACKAGES.search(line)]

    def test_every_name_of_the_console_is_declared(self):
        self.assertEqual(self.wrong(os.path.join(SOURCES, "main.js")), [])

    def test_a_name_that_is_not_is_found(self):
        with tempfile.TemporaryDirectory(prefix="belay-names.") as folder:
            for name, text in (
                ("a.js", "export const one = 1;\n"),
                ("b.js", 'import { two } from "./a.js";\nexport const f = () => two;\n'),
                ("c.js", "export const f = (list) => list.filter(isComing);\n"),
                ("d.js", 'import { one } from "./no.js";\nexport const o = { one, nothing };\n'),
            ):
                with open(os.path.join(folder, name), "w") as f:
                    f.write(text)
            paths = [os.path.join(folder, name) for name in ("b.js", "c.js", "d.js")]
            said = "\n".join(self.wrong(*paths))
        for what in ("'two'", "'isComing'", "'./no.js'", "'nothing'"):
            self.assertIn(what, said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
