# SPDX-License-Identifier: Apache-2.0
"""The wheel: pip installs it without a network, a type checker reads its types, and every public
function says what it does."""

import ast
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

import manual

WHEEL = Path(os.environ["BELAY_WHEEL"])
PACKAGE = manual.ROOT / "clients/python/belay"
LIBRARIES = sorted(PACKAGE.glob("*.py"))  # the client is made by the build
# Their modules may be missing here; what they define is then Any.
OF_OTHERS = ["--ignore-missing-imports", "--allow-subclassing-any", "--allow-untyped-decorators"]

RIGHT = """\
import belay
import belay.client
step: int = (belay.last_durable() or 0) if belay.restored() else 0
with belay.checkpoint(step, 10) as directory:
    path: str = directory
jobs = [belay.client.Client().show_job(1)["job"]]
client: belay.client.Client = belay.Client()
try:
    jobs.append(client.show_job(2)["job"])
except belay.Unavailable as e:
    text: str = e.text
"""
WRONG = """\
import belay
import belay.client
belay.commit("ten")
where: str = belay.checkpoint_dir()
belay.checkpoint(1, 2, 3, 4)
with belay.checkpoint(1) as directory:
    directory.commit()
belay.client.Client().submit(script="#!/bin/sh", cwd="/", market="spots")
belay.Client().submit(script="#!/bin/sh", cwd="/", market="spots")
"""
WRONG_LINES = ["3", "4", "5", "7", "8", "9"]

INSTALLED = """\
import sys, belay
late = {"belay.client", "http.client", "socket", "ssl", "urllib.parse"} & set(sys.modules)
assert not late, late
import importlib.metadata
found = importlib.metadata.distribution("belay-scheduler")
assert belay.__file__.endswith("site-packages/belay/__init__.py"), belay.__file__
assert not belay.should_checkpoint() and belay.commit(1)
client = belay.Client
import belay.client
assert client is belay.client.Client and belay.Error is belay.client.Error
print(found.version, *sorted(found.metadata.get_all("Provides-Extra")))
"""


def public(tree):
    """Yields the public functions, classes and methods of a module that its framework does not
    describe, with their names."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, node
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and not member.name.startswith(("_", "on_")):
                    yield "%s.%s" % (node.name, member.name), member
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name, node


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="belay-wheel.")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.python = os.path.join(cls.folder, "venv", "bin", "python")
        cls.run_tool([sys.executable, "-m", "venv", os.path.join(cls.folder, "venv")])
        cls.pip("install", "--no-index", str(WHEEL))

    @classmethod
    def run_tool(cls, command, code=0, **more):
        # Without the caller's Python settings: a library of the build must not stand in.
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PIP_"))}
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=200, cwd=cls.folder, **more
        )
        if done.returncode != code:
            raise AssertionError("%s: %s%s" % (command, done.stdout, done.stderr))
        return done.stdout

    @classmethod
    def pip(cls, *arguments):
        return cls.run_tool([cls.python, "-m", "pip", "-q", *arguments])

    def mypy(self, text, code):
        path = os.path.join(self.folder, "program.py")
        with open(path, "w") as f:
            f.write(text)
        if not shutil.which("mypy"):
            self.skipTest("mypy is not installed")
        command = ["mypy", "--strict", "--no-color-output", "--cache-dir", self.folder]
        said = self.run_tool([*command, "--python-executable", self.python, path], code)
        return sorted(set(re.findall(r"program\.py:(\d+): error: ", said))), said

    def test_it_is_importable_and_whole(self):
        version = WHEEL.name.split("-")[1]
        self.assertEqual(
            self.run_tool([self.python, "-c", INSTALLED]).split(),
            [version, "lightning", "torch", "transformers"],
        )
        self.pip("check")

    def test_nothing_stays_when_it_is_removed(self):
        other = os.path.join(self.folder, "other")
        self.run_tool([sys.executable, "-m", "venv", other])
        pip = [other + "/bin/python", "-m", "pip", "-q"]
        before = set(glob.glob(other + "/lib/python3*/site-packages/*"))
        self.run_tool([*pip, "install", "--no-index", str(WHEEL)])
        added = {os.path.basename(p) for p in glob.glob(other + "/lib/python3*/site-packages/*")}
        added -= {os.path.basename(path) for path in before}
        self.assertEqual({name for name in added if not name.endswith(".dist-info")}, {"belay"})
        self.run_tool([*pip, "uninstall", "-y", "belay-scheduler"])
        self.assertEqual(set(glob.glob(other + "/lib/python3*/site-packages/*")), before)

    def test_it_is_one_package_with_types(self):
        with zipfile.ZipFile(WHEEL) as wheel:
            modules = [name for name in wheel.namelist() if "dist-info" not in name]
            for path in LIBRARIES:
                self.assertEqual(wheel.read("belay/" + path.name), path.read_bytes())
        wanted = [path.name for path in LIBRARIES] + ["client.py", "py.typed"]
        self.assertEqual(sorted(modules), sorted("belay/" + name for name in wanted))

    def test_mypy_reads_its_types(self):
        self.assertEqual(self.mypy(RIGHT, 0)[0], [])
        lines, said = self.mypy(WRONG, 1)
        self.assertEqual(lines, WRONG_LINES, said)

    def test_the_libraries_are_typed(self):
        if not shutil.which("mypy"):
            self.skipTest("mypy is not installed")
        # In their folder, not installed: mypy reports nothing of installed packages. Types of a
        # PyTorch that happens to be installed do not count: versions differ in theirs.
        command = ["mypy", "--strict", "--no-site-packages", *OF_OTHERS]
        command += ["--cache-dir", self.folder]
        self.run_tool([*command, *map(str, Path(os.environ["BELAY_CLIENT"]).parent.glob("*.py"))])

    def test_everything_public_is_described(self):
        with zipfile.ZipFile(WHEEL) as wheel:
            for name in wheel.namelist():
                if not name.endswith(".py"):
                    continue
                tree = ast.parse(wheel.read(name))
                self.assertTrue(ast.get_docstring(tree), name)
                for what, node in public(tree):
                    with self.subTest(name + ": " + what):
                        self.assertTrue(ast.get_docstring(node))

    def test_the_library_without_dependencies_runs_on_old_pythons(self):
        ast.parse((PACKAGE / "__init__.py").read_text(), feature_version=(3, 7))

    def test_the_same_sources_give_the_same_bytes(self):
        again = os.path.join(self.folder, WHEEL.name)
        with zipfile.ZipFile(WHEEL) as wheel:
            names = [name for name in wheel.namelist() if name.startswith("belay/")]
            made = wheel.extract("belay/client.py", self.folder)
        self.run_tool(
            [sys.executable, "-B", str(manual.ROOT / "clients/python/wheel.py")]
            + ["--version", WHEEL.name.split("-")[1], "--output", again]
            + ["--license", str(manual.ROOT / "LICENSE"), "--package"]
            + [
                made if name == "belay/client.py" else str(PACKAGE / os.path.basename(name))
                for name in names
            ]
        )
        self.assertEqual(Path(again).read_bytes(), WHEEL.read_bytes())


if __name__ == "__main__":
    unittest.main()
