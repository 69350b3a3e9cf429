# SPDX-License-Identifier: Apache-2.0
"""sizes.py reports each kind of violation that is planted in a small tree."""

import tempfile
import unittest
from pathlib import Path

import rooms
import sizes

PAGE = """# Page

A folder has at most 2 C files, so that it can be read. One
has more: `cli` (a verb).

A C file has at most 3 lines. `job/table.c` has more: it is data.

A paragraph that names `base/str.c`.
"""
TREE = {
    "docs/architecture.md": PAGE,
    "base/str.c": "1\n2\n3\n",
    "base/map.c": "1\n",
    "base/str.h": "1\n",
    "base/map.h": "1\n",
    "base/uv/loop.c": "1\n",
    "cli/a.c": "1\n",
    "cli/b.c": "1\n",
    "cli/c.c": "1\n",
    "job/table.c": "1\n2\n3\n4\n",
    "tests/test_str.c": "1\n2\n3\n4\n",
    "build/x.c": "1\n2\n3\n4\n",
    "build/meson-private/x": "",
}


class Sizes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name, text in TREE.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def refused(self, *words):
        findings = sizes.Check(self.root).run()
        self.assertEqual(len(findings), 1, findings)
        for word in words:
            self.assertIn(word, findings[0])

    def test_a_tree_within_its_limits_passes(self):
        check = sizes.Check(self.root)
        self.assertEqual(check.run(), [])
        self.assertEqual(check.n_files, 10)

    def test_a_full_folder_is_refused(self):
        self.write("base/list.c", "1\n")
        self.refused("base: 3 C files, at most 2")

    def test_headers_and_subfolders_do_not_count(self):
        self.write("base/list.h", "1\n")
        self.write("base/uv/tls.c", "1\n")
        self.assertEqual(sizes.Check(self.root).run(), [])

    def test_a_folder_of_tests_is_counted(self):
        self.write("tests/test_map.c", "1\n")
        self.write("tests/test_list.c", "1\n")
        self.refused("tests: 3 C files")

    def test_a_long_file_is_refused(self):
        self.write("base/map.c", "1\n2\n3\n4\n")
        self.refused("base/map.c: 4 lines, at most 3")

    def test_a_long_header_is_refused(self):
        self.write("base/map.h", "1\n2\n3\n4\n")
        self.refused("base/map.h: 4 lines")

    def test_a_stale_exception_is_reported(self):
        self.write("job/table.c", "1\n")
        self.refused("job/table.c has 1 lines: it is no exception any more")
        (self.root / "job/table.c").unlink()
        self.refused("job/table.c has 0 lines")

    def test_a_page_without_the_rule_is_an_error(self):
        self.write("docs/architecture.md", PAGE.replace("A C file has", "C files have"))
        with self.assertRaises(rooms.TableError):
            sizes.Check(self.root)


if __name__ == "__main__":
    unittest.main()
