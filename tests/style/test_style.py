# SPDX-License-Identifier: Apache-2.0
"""style.py reports each kind of mistake that is planted in a small tree."""

import tempfile
import unittest
from pathlib import Path

import style

GOOD = {
    ".clang-format": "BasedOnStyle: LLVM\nColumnLimit: 100\n",
    "base/err.c": "int x;\n",
    "scripts/run.py": "print(1)\n",
    "scripts/run": '#!/bin/sh\necho "$1"\n',
    "docs/page.md": "A page.\n",
    "tests/e2e/slurm/job.sh": "#!/bin/sh\necho $1\n",
    "tests/e2e/slurm/job.py": "#SBATCH --mem=1G\nx = 'a'\n",
    "fuzz/corpus/c/bad.c": "int  x ;\n",
    "build/meson-private/x": "",
    "build/bad.c": "int  x ;\n",
    ".cache/bad.c": "int  x ;\n",
}


class Style(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name, text in GOOD.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def findings(self, check):
        try:
            return "\n".join(style.CHECKS[check](style.Tree(self.root)))
        except style.Skip as e:
            self.skipTest(str(e))

    def assert_finds(self, check, name, text, *expected):
        self.assertEqual(self.findings(check), "")
        self.write(name, text)
        found = self.findings(check)
        for e in expected:
            self.assertIn(e, found)

    def test_c_that_is_not_formatted(self):
        self.assert_finds(
            "c", "base/x.h", "int  x ;\n", "base/x.h: ", "Run: clang-format -i base/x.h"
        )

    def test_a_long_line_of_c(self):
        text = "/* a */\n/* %s */\n" % ("b" * 95)
        self.assert_finds("c", "base/x.c", text, "base/x.c:2: 101 columns")

    def test_a_line_is_measured_in_characters(self):
        self.write("base/x.c", "/* %s */\n" % ("\u00e4" * 94))
        self.assertEqual(self.findings("c"), "")

    def test_a_function_longer_than_a_screen(self):
        def function(lines):
            return "static int f(int a,\n    int b)\n{\n%s}\n" % ("    a++;\n" * (lines - 4))

        self.write("base/x.c", "int y;\n" + function(60))
        self.write("tests/x.c", function(61))
        self.write("base/z.c", "int z[] = {\n%s};\n" % ("    1,\n" * 100))
        self.write("base/w.h", 'extern "C" {\n%s%s}\n' % (function(10), "int w;\n" * 60))
        self.assertNotIn("at most 60", self.findings("c"))
        self.write("base/x.c", "int y;\n" + function(61))
        self.assertIn("base/x.c:2: f() has 61 lines, at most 60: ", self.findings("c"))

    def test_python_that_is_not_formatted(self):
        self.assert_finds("black", "a.py", "x = 'a'\n", "a.py: ", "Run: black -l 100 a.py")

    def test_python_that_cannot_be_read(self):
        self.assert_finds("black", "a.py", "x = (\n", "cannot format a.py")

    def test_an_unused_import(self):
        self.assert_finds("flake8", "a.py", "import os\n", "a.py:1:1: F401")

    def test_an_undefined_name(self):
        self.assert_finds("flake8", "a.py", "print(x)\n", "a.py:1:7: F821")

    def test_a_long_line_of_a_comment_or_a_docstring(self):
        text = '"""%s"""\n# %s\n' % ("a" * 95, "b " * 50)
        self.assert_finds("flake8", "a.py", text, "a.py:1:101: W505", "a.py:2:101: W505")

    def test_a_shell_mistake_in_a_file_without_an_ending(self):
        self.assert_finds("shell", "scripts/x", "#!/bin/bash\nrm $1\n", "scripts/x:2:4: ", "SC2086")

    def test_a_syntax_error_in_a_script_of_a_user(self):
        self.assert_finds("shell", "tests/e2e/slurm/x.sh", "#!/bin/sh\nif\n", "x.sh:2:")

    def test_a_misspelt_word(self):
        self.assert_finds("spelling", "docs/x.md", "It is reci" + "eved.\n", "docs/x.md:1: ")

    def test_sources_that_are_not_sorted(self):
        good = "lib = static_library('x',\n  'a.c',\n  'b.c',\n  dependencies: [])\n"
        self.write("x/meson.build", good + "custom_target('t', output: 'y.c', input: 'x.c')\n")
        self.assert_finds(
            "meson",
            "y/meson.build",
            good.replace("a.c", "c.c"),
            "y/meson.build:3: b.c comes before c.c",
        )

    def test_several_sources_on_a_line(self):
        line = "executable('x', 'a.c', 'b.c')\n"
        self.write("tests/x/meson.build", line)
        self.assert_finds("meson", "x/meson.build", line, "x/meson.build:1: 2 source files: one a")

    def test_format_mends_c_and_python(self):
        self.write("a.py", "x = 'a'\n")
        self.write("base/x.c", "int  x ;\n")
        self.findings("format")
        self.assertEqual(self.findings("c") + self.findings("black"), "")

    def test_a_tool_that_is_missing_is_skipped_and_named(self):
        with self.assertRaisesRegex(style.Skip, "no-such-tool is not installed: run scripts/setup"):
            style.tool("no-such-tool")


if __name__ == "__main__":
    unittest.main()
