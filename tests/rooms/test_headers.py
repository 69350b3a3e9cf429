# SPDX-License-Identifier: Apache-2.0
"""headers.py reports each kind of violation that is planted in a small tree."""

import tempfile
import unittest
from pathlib import Path

import headers

TREE = dict.fromkeys(headers.INTERFACES, "") | {
    "base/str.h": "#define STR(a) str_copy(a)\nint str_copy(char *to);\nint str_to_i64(\n    const char *text);\n",
    "base/str.c": "static int twice(int n)\n{\n    return 2 * n;\n}\n\nint str_copy(char *to)\n{\n    return twice(1);\n}\n",
    "base/str_num.c": "int str_to_i64(\n    const char *text)\n{\n    return 0;\n}\n",
    "base/map.h": "struct map {\n    int (*hash)(const void *);\n};\nvoid *map_get(struct map *m);\n",
    "base/map.c": "void *map_get(struct map *m)\n{\n    return m;\n}\n",
    "ckpt/ckpt.h": "int save(void);\nint restore(void);\n",
    "ckpt/save.c": "int save(void)\n{\n    return 0;\n}\n",
    "ckpt/restore.c": "int restore(void)\n{\n    return 0;\n}\n",
    "scheduler/core/model/model.h": "int queue_add(void);\n",
    "scheduler/core/model/model.c": "",
    "scheduler/core/queue/queue.c": "int queue_add(void)\n{\n    return 0;\n}\n",
    "cli/list.h": "int list_verb(void);\n",
    "cli/list.c": "int list_verb(void)\n{\n    return 0;\n}\n",
}


class Headers(unittest.TestCase):
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

    def refused(self, name, text, *words):
        self.write(name, text)
        findings = headers.Check(self.root).run()
        self.assertEqual(len(findings), 1, findings)
        for word in words:
            self.assertIn(word, findings[0])

    def allowed(self, name, text):
        self.write(name, text)
        self.assertEqual(headers.Check(self.root).run(), [])

    def test_a_tree_whose_headers_declare_their_own_passes(self):
        check = headers.Check(self.root)
        self.assertEqual(check.run(), [])
        self.assertEqual(check.n_functions, 7)

    def test_a_function_of_another_file_is_refused(self):
        self.refused(
            "base/map.h",
            "void *map_get(struct map *m);\n/* str.c */\nint str_copy(char *to);\n",
            "base/map.h:3: str_copy is defined in base/str.c",
            "declare it in base/str.h",
        )

    def test_every_room_of_the_product_is_looked_at(self):
        for room in headers.ROOMS:
            with self.subTest(room):
                self.setUp()
                self.write(f"{room}/a.c", "int a(void)\n{\n    return 0;\n}\n")
                self.write(f"{room}/b.c", "")
                self.refused(f"{room}/b.h", "int a(void);\n", f"declare it in {room}/a.h")

    def test_a_declaration_over_several_lines_is_seen(self):
        self.refused(
            "base/map.h",
            "const struct a *const *str_to_i64(\n    const char *text,\n    int (*fn)(int), int n);\n",
            "base/map.h:1: str_to_i64",
        )

    def test_a_pointer_as_result_is_seen(self):
        self.refused("base/str.h", "void *map_get(struct map *m);\n", "base/str.h:1: map_get")

    def test_what_is_no_declaration_is_not_taken_for_one(self):
        self.allowed(
            "base/map.h",
            "/* int str_copy(char *to); */\n#define M \\\n    str_copy(1);\ntypedef int (*fn)(int);\n"
            "static inline int get(void)\n{\n    return str_copy(0);\n}\n",
        )

    def test_a_file_whose_name_only_begins_alike_is_another(self):
        self.write("base/mapped.c", "int mapped(void)\n{\n    return 0;\n}\n")
        self.refused("base/map.h", "int mapped(void);\n", "base/mapped.c")

    def test_a_missing_interface_is_reported(self):
        (self.root / "scheduler/core/model/model.h").unlink()
        self.assertIn("no such interface", headers.Check(self.root).run()[0])


if __name__ == "__main__":
    unittest.main()
