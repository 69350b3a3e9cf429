# SPDX-License-Identifier: Apache-2.0
"""names.py reports each kind of violation that is planted in a small tree."""

import tempfile
import unittest
from pathlib import Path

import names

TREE = {
    "CONTRIBUTING.md": "",
    "docs/architecture.md": "# Page\n\nA file (`plan.c`), a folder (`base/uv/`).\n",
    "docs/how-to/cost.md": "`job.json` is the user's, `train.py` is ours.\n",
    "cloud/NEW-DRIVER.md": "Read `driver.h`.\n",
    "cloud/driver.h": "struct driver {\n    int n;\n};\n/* gone_now() */\n",
    "cloud/aws/notice.c": "",
    "scheduler/core/plan.c": "int plan_next(void)\n{\n    return 0;\n}\n",
    "scheduler/core/model/check.c": "",
    "base/uv/loop.h": "",
    "base/str.c": "",
    "fuzz/fuzz_aws_reply.c": "",
    "examples/train.py": "",
    "build/meson-private/x": "",
    "build/old.c": "int old_name;",
}


class Names(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name, text in TREE.items():
            self.write(name, text)
        held = names.ELSEWHERE
        names.ELSEWHERE = {}
        self.addCleanup(setattr, names, "ELSEWHERE", held)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def findings(self, text, page="docs/architecture.md"):
        self.write(page, text)
        return names.Check(self.root).run()

    def refused(self, text, *words, page="docs/architecture.md"):
        findings = self.findings(text, page)
        self.assertEqual(len(findings), 1, findings)
        for word in words:
            self.assertIn(word, findings[0])

    def allowed(self, text, page="docs/architecture.md"):
        self.assertEqual(self.findings(text, page), [])

    def test_a_tree_whose_names_exist_passes(self):
        self.assertEqual(names.Check(self.root).run(), [])

    def test_a_renamed_file_is_reported(self):
        self.refused("1\n2 `plans.c`\n", "docs/architecture.md:2: `plans.c`: no such file")
        self.refused("`scheduler/core/plans.c`", "no such file")
        self.refused("`base/uv/loops`", "no such file")
        self.refused("`nets/tcp.h`", "no such file")

    def test_a_renamed_program_is_reported(self):
        self.refused("`test.py`", "no such file", page="docs/how-to/cost.md")

    def test_every_page_is_read(self):
        for page in ("CONTRIBUTING.md", "cloud/NEW-DRIVER.md", "docs/how-to/cost.md"):
            with self.subTest(page):
                self.setUp()
                self.refused("`base/map.c`", page, page=page)

    def test_paths_and_modules_are_found(self):
        self.allowed("`base/str.c` `base/str` `base` `base/uv/` `!base/uv/loop` `model/check.c`")

    def test_a_file_without_a_folder_is_in_the_core_or_in_a_folder_named_beside_it(self):
        self.allowed("`check.c` of the core; of `cloud/aws/` the `notice.c`.\n")
        self.allowed("With `cloud/aws/notice.c` goes `notice.c`.\n")
        self.refused("`cloud/aws/` is.\n\nThis is `notice.c`.\n", ":3: `notice.c`")
        self.refused("| `cloud/aws/` |\n| `notice.c` |\n", ":2: `notice.c`")

    def test_capitals_stand_for_something_that_exists(self):
        self.allowed("`cloud/NAME/notice.c` `fuzz/fuzz_NAME_reply.c` `cloud/*/notice.c`\n")
        self.refused("`cloud/NAME/metadata.c`", "no such file")
        self.refused("`fuzz_NAME_request`", "no source has it")

    def test_functions_and_types_are_in_a_source(self):
        self.allowed("`plan_next()` `plan_next(m)` `plan_next` `struct driver`\n")
        self.refused("`plan_last()`", "no source has it")
        self.refused("`struct plan_next`", "no such type")
        self.refused("`plan_last`", "no source has it")

    def test_a_word_in_a_comment_or_in_a_build_is_no_source(self):
        self.refused("`gone_now()`", "no source has it")
        self.refused("`old_name`", "no source has it")

    def test_words_of_users_are_theirs(self):
        self.allowed("`plan_last` is a key", page="docs/how-to/cost.md")
        self.refused("`plan_last()`", "no source has it", page="docs/how-to/cost.md")

    def test_blocks_of_code_are_not_read(self):
        self.allowed("```sh\nsee `plans.c`\n```\n")

    def test_what_is_made_elsewhere_is_listed_while_it_is_named(self):
        names.ELSEWHERE = {"docs/architecture.md": {"exit.c"}}
        self.allowed("`exit.c`")
        self.refused("nothing", "does not name `exit.c` any more")


if __name__ == "__main__":
    unittest.main()
