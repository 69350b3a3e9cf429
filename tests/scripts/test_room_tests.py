# SPDX-License-Identifier: Apache-2.0
"""Every room has quick tests, and scripts/test runs those of one room: test_room_tests.py SOURCE
BUILD.

The rooms are those of docs/architecture.md; the tests and their suites are those of the build
directory. scripts/test runs in a separate directory, in which ninja does nothing and meson only
records which tests it should run.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE, BUILD = Path(sys.argv[1]), sys.argv[2]
sys.path[:0] = [str(SOURCE / "scripts"), str(SOURCE / "tests" / "rooms")]
import room_tests  # noqa: E402
import rooms as architecture  # noqa: E402

# Rooms without quick tests of their own, and why.
NONE = {"tests": "its folders are the tests of the other rooms; `style` checks them"}
# Suites whose tests start whole systems and belong to no single room.
WHOLE = {"e2e", "attack", "chaos", "programs"}

MESON = """#!/bin/sh
case $1 in
introspect) shift 2; exec %(meson)s introspect %(build)s "$@" ;;
test) printf '%%s\\n' "$@" >ran
    mkdir -p build-quick/meson-logs
    echo '{"name": "one", "result": "OK"}' >build-quick/meson-logs/testlog.json ;;
*) exit 1 ;;
esac
"""


def rooms_of_the_table():
    """Room names as scripts/test accepts them; a single module has the tests of its folder."""
    table, _ = architecture.read_tables((SOURCE / architecture.PAGE).read_text())
    paths = {path for room in table for path in room.paths}
    return {Path(path).name for path in paths if (SOURCE / path).is_dir()}


class Suites(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tests = room_tests.introspect(BUILD, "tests")
        cls.rooms = room_tests.quick_tests(cls.tests)

    def test_every_room_has_quick_tests_or_is_named_as_having_none(self):
        rooms = rooms_of_the_table()
        self.assertLess({"base", "core", "uv", "db", "agent", "cli"}, rooms)
        self.assertEqual(rooms - set(self.rooms), set(NONE))

    def test_every_test_names_a_room(self):
        nowhere = [
            test["name"]
            for test in self.tests
            if not room_tests.suites_of(test) & WHOLE
            and not room_tests.suites_of(test) - room_tests.KINDS
        ]
        self.assertEqual(nowhere, [])

    def test_every_name_of_a_room_is_a_folder(self):
        folders = {
            path.name
            for pattern in ("*", "*/*", "*/*/*")
            for path in SOURCE.glob(pattern)
            if path.is_dir() and not path.relative_to(SOURCE).parts[0].startswith(("build", "."))
        }
        named = {suite for test in self.tests for suite in room_tests.suites_of(test)}
        self.assertLessEqual(named - room_tests.KINDS, folders)

    def test_what_a_room_needs_is_built(self):
        targets = room_tests.introspect(BUILD, "targets")
        files = room_tests.files_to_build(BUILD, self.rooms["core"], targets)
        self.assertIn("tests/core/test_core_plan", files)
        self.assertNotIn("tests/db/test_db_open", files)

    def test_a_test_depends_on_what_it_is_given(self):
        """Otherwise, with only one room built, it would run an old program, or none."""
        target_of = {
            file: target["id"]
            for target in room_tests.introspect(BUILD, "targets")
            for file in target["filename"]
        }
        self.assertIn(os.path.join(os.path.abspath(BUILD), "cli/belay"), target_of)
        missing = [
            f"{test['name']}: {word}"
            for test in self.tests
            for word in [*test["cmd"], *test["env"].values()]
            if word in target_of and target_of[word] not in test["depends"]
        ]
        self.assertEqual(missing, [])


class Script(unittest.TestCase):
    def setUp(self):
        self.dir = Path(tempfile.mkdtemp(prefix="belay-room-tests."))
        self.addCleanup(shutil.rmtree, self.dir)
        for folder in ("scripts", "bin", "build-quick"):
            (self.dir / folder).mkdir()
        for name in ("test", "room_tests.py"):
            shutil.copy(SOURCE / "scripts" / name, self.dir / "scripts" / name)
        (self.dir / "build-quick" / "build.ninja").touch()
        meson = MESON % {"meson": shutil.which("meson"), "build": os.path.abspath(BUILD)}
        nothing = "#!/bin/sh\nexit 0\n"
        for path, text in (
            ("bin/meson", meson),
            ("bin/ninja", nothing),
            ("scripts/setup", nothing),
        ):
            (self.dir / path).write_text(text)
            (self.dir / path).chmod(0o755)

    def run_test(self, *arguments):
        path = f"{self.dir / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(
            [self.dir / "scripts" / "test", *arguments],
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        ran = self.dir / "ran"
        return done, ran.read_text().split() if ran.exists() else []

    def test_one_room(self):
        for name in ("job", "base/uv"):
            done, ran = self.run_test(name)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 0 failed")
            self.assertIn("job_cron" if name == "job" else "uv_loop", ran)
            self.assertNotIn("db_open", ran)

    def test_an_unknown_room_is_refused_with_the_list(self):
        done, ran = self.run_test("kitchen")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertRegex(done.stderr, r"no room 'kitchen' .*: agent .*\bcore\b.* uv web wire\n")
        self.assertEqual(ran, [])

    def test_quick_is_the_unit_tests_of_all_rooms(self):
        done, ran = self.run_test("--quick")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertLess({"job_cron", "db_open", "core_plan", "uv_loop"}, set(ran))
        self.assertNotIn("fuzz_json", ran)
        self.assertNotIn("chaos", ran)

    def test_an_unknown_option_is_refused(self):
        done, ran = self.run_test("--qick")
        self.assertEqual((done.returncode, ran), (2, []))
        self.assertIn("usage: scripts/test [ROOM|--quick|", done.stderr)

    def test_a_failed_test_is_counted(self):
        meson = self.dir / "bin" / "meson"
        meson.write_text(meson.read_text().replace('"OK"', '"FAIL"'))
        done, _ = self.run_test("job")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "0 passed, 1 failed")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
