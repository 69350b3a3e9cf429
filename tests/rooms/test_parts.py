# SPDX-License-Identifier: Apache-2.0
"""parts.py reports each kind of violation that is planted in a small tree."""

import tempfile
import unittest
from pathlib import Path

import parts

TREE = {
    "model/state.h": "struct model {\n    struct model_options options;\n    struct rows rows;\n    struct queue_state queue;\n};\n",
    "model/model_state.h": "struct rows {\n    int n;\n};\n",
    "model/model.c": "int n(const struct model *m)\n{\n    return m->rows.n;\n}\n",
    "model/check.c": "int n(const struct model *m)\n{\n    return m->queue.n;\n}\n",
    "queue/queue_state.h": "struct queue_state {\n    int n;\n};\n",
    "queue/queue.c": "int n(const struct model *m)\n{\n    return m->queue.n + m->options.n;\n}\n",
}


class Parts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name, text in TREE.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.root / parts.CORE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def refused(self, name, text, *words):
        self.write(name, text)
        findings = parts.Check(self.root).run()
        self.assertEqual(len(findings), 1, findings)
        for word in words:
            self.assertIn(word, findings[0])

    def allowed(self, name, text):
        self.write(name, text)
        self.assertEqual(parts.Check(self.root).run(), [])

    def test_a_tree_whose_parts_are_named_by_their_owners_passes(self):
        check = parts.Check(self.root)
        self.assertEqual(check.run(), [])
        self.assertEqual(
            check.owners, {"rows": "scheduler/core/model", "queue": "scheduler/core/queue"}
        )

    def test_a_part_of_another_folder_is_refused(self):
        self.refused(
            "supply/launch.c",
            "\n    n = m->queue.n;\n",
            "supply/launch.c:2",
            "m->queue belongs to scheduler/core/queue",
        )

    def test_the_folder_of_the_model_does_not_own_all_parts(self):
        self.refused("model/load.c", "    m->queue.n = 0;\n", "m->queue belongs to")

    def test_a_file_beside_the_folders_owns_none(self):
        self.refused("plan.c", "    m->rows.n = 0;\n", "m->rows belongs to scheduler/core/model")

    def test_a_test_of_the_core_names_no_part(self):
        text = '#include "scheduler/core/queue/queue_access.h"\n    n = l->m->queue.n;\n'
        self.refused("../../tests/core/lab.c", text, "tests/core/lab.c:2", "m->queue belongs to")

    def test_a_test_of_the_core_does_not_include_all_parts(self):
        text = '#include "scheduler/core/model/state.h"\n'
        self.refused("../../tests/core/lab.c", text, "tests/core/lab.c:1", "only files of")

    def test_another_m_elsewhere_is_no_model(self):
        self.allowed("../../agent/message.c", "    n = m->queue.n;\n")

    def test_a_model_behind_another_pointer_is_seen(self):
        self.refused("supply/launch.c", "    n = w->m->queue.n;\n", "m->queue belongs to")

    def test_a_macro_is_seen(self):
        self.refused("supply/launch.h", "#define N(m) ((m)->queue.n)\n", "m->queue belongs to")

    def test_a_model_by_another_name_is_refused(self):
        self.refused("supply/launch.c", "int n(const struct model *world);\n", "*world: call it m")

    def test_a_member_that_is_no_part_is_refused(self):
        text = TREE["model/state.h"].replace("};", "    int n;\n};")
        self.refused("model/state.h", text, "int n;: is no part that a folder owns")

    def test_a_part_without_a_home_is_refused(self):
        text = TREE["model/state.h"].replace("};", "    struct lost lost;\n};")
        self.refused("model/state.h", text, "struct lost is defined nowhere")

    def test_a_comment_and_another_member_of_that_name_are_not_code(self):
        self.allowed("supply/launch.c", "/* m->queue */\n    n = team->queue.n;\n")


if __name__ == "__main__":
    unittest.main()
