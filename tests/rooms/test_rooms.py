# SPDX-License-Identifier: Apache-2.0
"""rooms.py reports, with its line, each kind of violation that is planted in a small tree."""

import tempfile
import unittest
from pathlib import Path

import rooms

TABLES = """
| room | what is there | may include | libraries |
|---|---|---|---|
| `base` | ground | - | jansson |
| `base/uv` | the loop | `base` | libuv |
| `core` | decisions | `base` | - |
| `cloud` | drivers | `base` | openssl |
| `agent` | tasks | `base`, `base/uv`, `cloud/notice` | libuv |
| `daemon/tick`, `daemon/effects` | commits | `base`, `core` | - |
| `daemon` | listens | `base`, `base/uv`, `daemon/tick` | - |
| `tests` | | `*` | * |

Words:

| where | never | because |
|---|---|---|
| `core` | `time(`, `clock_system` | time arrives in the event |
| `*`, `!base/mem`, `!tests` | `malloc(` | one place aborts |
| `*`, `!base/log` | `mutable globals` | contexts are passed |
"""

TREE = {
    "base/err.h": "#include <stdbool.h>\n#include <sys/types.h>\n",
    "base/json.h": '#include "base/err.h"\n#include <jansson.h>\n',
    "base/mem.c": "void *mem_alloc(void)\n{\n    return malloc(1);\n}\n",
    "base/log.c": "static struct {\n    int level;\n} state;\n",
    "base/uv/loop.h": '#include "base/err.h"\n#include <uv.h>\n',
    "core/model.h": '#include "base/err.h"\n',
    "cloud/driver.h": '#include "base/err.h"\n',
    "cloud/notice.h": '#include "cloud/driver.h"\n#include <openssl/evp.h>\n',
    "agent/task/task.h": '#include "base/uv/loop.h"\n#include "cloud/notice.h"\n',
    "daemon/tick.h": '#include "core/model.h"\n',
    "daemon/effects.c": '#include "daemon/tick.h"\n',
    "daemon/main.c": '#include "daemon/tick.h"\n#include "base/uv/loop.h"\n',
    "tests/test_core.c": '#include "helper.h"\n#include "core/model.h"\n#include <cmocka.h>\n#include <uv.h>\n',
    "tests/helper.h": "",
}


class Rooms(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name, text in {rooms.PAGE: TABLES, **TREE}.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def found(self, name, text):
        self.write(name, text)
        return rooms.Check(self.root).run()

    def refused(self, name, text, *parts):
        findings = self.found(name, text)
        self.assertEqual(len(findings), 1, findings)
        for part in parts:
            self.assertIn(part, findings[0])

    def allowed(self, name, text):
        self.assertEqual(self.found(name, text), [])

    def test_a_tree_that_keeps_to_the_table_passes(self):
        check = rooms.Check(self.root)
        self.assertEqual(check.run(), [])
        self.assertEqual((check.n_files, check.n_includes), (14, 20))

    def test_a_room_that_is_not_named_is_refused(self):
        self.refused(
            "core/plan.c",
            '\n#include "cloud/driver.h"\n',
            "core/plan.c:2",
            "cloud/driver.h",
            "core may include base",
        )

    def test_base_may_include_only_its_own(self):
        self.refused(
            "base/err.c",
            '#include "core/model.h"\n',
            "base/err.c:1",
            "base may include only its own",
        )

    def test_a_room_inside_a_room_is_not_opened_with_it(self):
        self.refused("core/plan.c", '#include "base/uv/loop.h"\n', "core may include base")

    def test_one_module_of_a_room_does_not_open_the_room(self):
        self.refused(
            "agent/task/task.c",
            '#include "cloud/driver.h"\n',
            "agent may include base, base/uv, cloud/notice",
        )

    def test_modules_named_apart_are_a_room_of_their_own(self):
        self.refused(
            "daemon/tick.c", '#include "base/uv/loop.h"\n', "daemon/tick may include base, core"
        )

    def test_a_listener_cannot_go_round_the_tick(self):
        self.refused(
            "daemon/api.c",
            '#include "core/model.h"\n',
            "daemon may include base, base/uv, daemon/tick",
        )

    def test_a_library_that_is_not_named_is_refused(self):
        self.refused("core/plan.c", "#include <uv.h>\n", "core may use no library")

    def test_a_library_is_known_by_its_folder(self):
        self.refused("agent/task/task.c", "#include <openssl/sha.h>\n", "agent may use libuv")

    def test_a_header_of_nobody_is_refused(self):
        self.refused("core/plan.c", "#include <boost.h>\n", "does not know whose header")

    def test_a_file_that_is_not_there_is_refused(self):
        self.refused("core/plan.c", '#include "core/gone.h"\n', "no such file")

    def test_a_path_out_of_the_tree_is_refused(self):
        self.refused("core/plan.c", '#include "../../../../etc/passwd"\n', "no such file")

    def test_a_path_around_the_table_is_seen_through(self):
        self.refused("core/plan.c", '#include "../cloud/driver.h"\n', "core may include base")

    def test_a_folder_without_a_room_is_refused(self):
        self.refused("extras/new.c", "", "extras/new.c: is in no room")

    def test_spaces_do_not_hide_an_include(self):
        self.refused("core/plan.c", "  #  include   <uv.h>\n", "core/plan.c:1")

    def test_comments_are_not_code(self):
        self.allowed(
            "core/plan.c",
            '/* #include <uv.h>\n   time(NULL) */\n// clock_system\nconst char *t = "time(";\n',
        )

    def test_words_are_found_with_their_reason(self):
        self.refused(
            "core/plan.c",
            "\n/* a\n b */ long now = x(time(NULL));\n",
            "core/plan.c:3: time(: time arrives",
        )

    def test_a_word_inside_another_is_not_meant(self):
        self.allowed("core/plan.c", "    int64_t n = boot_time(p);\n")

    def test_an_exception_is_only_for_the_file_it_names(self):
        self.refused(
            "base/memory.c",
            "    char *p = malloc(1);\n",
            "base/memory.c:1: malloc(: one place aborts",
        )

    def test_what_stays_mutable_is_found(self):
        for line in (
            "static int n;",
            "static struct job *last = NULL;",
            "    static char text[64];",
            "static struct {",
            "struct model the_model;",
            "bool is_ready = false;",
            "int64_t counts[8][2];",
            "enum phase now;",
        ):
            with self.subTest(line):
                self.refused("core/plan.c", line + "\n", "core/plan.c:1: mutable globals")

    def test_what_is_constant_or_local_is_not(self):
        for line in (
            "static const int n = 3;",
            "static const char *const names[] = {",
            "extern const struct sm job_sm;",
            "struct job;",
            "    int n = 3;",
            "static int count(int n)",
            "enum kind {",
            "struct job {",
            "typedef int job_id;",
            "int core_apply(struct model *m);",
            "    return n;",
        ):
            with self.subTest(line):
                self.allowed("core/plan.c", line + "\n")

    def test_build_directories_are_not_read(self):
        self.write("build/meson-private/check.c", "#include <boost.h>\n")
        self.allowed("build/generated.c", "#include <boost.h>\n")

    def test_a_room_of_the_table_has_to_exist(self):
        table = TABLES.replace("`core` | decisions | `base`", "`core` | decisions | `base`, `gone`")
        self.refused(rooms.PAGE, table, "core: there is no gone")

    def test_a_table_that_cannot_be_read_is_refused(self):
        for old, new in (
            ("| room |", "| chamber |"),
            ("| where |", "| place |"),
            ("| jansson |", "| janson |"),
            ("| ground | - |", "| - |"),
        ):
            with self.subTest(new):
                self.write(rooms.PAGE, TABLES.replace(old, new))
                self.assertRaises(rooms.TableError, rooms.Check, self.root)


if __name__ == "__main__":
    unittest.main()
