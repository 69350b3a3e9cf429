# SPDX-License-Identifier: Apache-2.0
"""The Python client: the options of a job are its arguments, made from the table of options and the
API's description with type, default and words; and all of it is typed."""

import copy
import glob
import inspect
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import manual

CLIENT = Path(os.environ["BELAY_CLIENT"])
PACKAGE = CLIENT.parent
SOURCE = manual.ROOT / "clients/python"
sys.path[:0] = [str(PACKAGE.parent), str(SOURCE)]
import belay.client  # noqa: E402
import make_client  # noqa: E402

MODULES = ["__init__.py", "client.py", "dcp.py", "lightning.py", "py.typed", "torch.py"]
MODULES += ["transformers.py"]

TABLE = json.loads(subprocess.check_output([os.environ["PRINT_ATTRIBUTES"]]))
DOCUMENT = json.loads(subprocess.check_output([os.environ["PRINT_OPENAPI"]]))
SCHEMAS = DOCUMENT["components"]["schemas"]
# One of each kind: number, text, words, list, mapping, truth; required ones have no default.
TYPES = {
    "script": "str",
    "cpus": "int | None",
    "time_limit_ms": "int | None",
    "url": "str | None",
    "market": "Literal['any', 'spot', 'on-demand'] | None",
    "requeue": "bool | None",
    "args": "Sequence[str] | None",
    "depends": "Sequence[Mapping[str, Any]] | None",
    "resources": "Mapping[str, int] | None",
    "checkpoint": "Mapping[str, Any] | None",
}

WRONG = """\
import belay.client
c = belay.client.Client()
c.submit(script="#!/bin/sh", cwd="/", market="spots")
c.update(1, url=7)
c.submit(script="#!/bin/sh", cwd="/", cpu=1)
c.submit(script="#!/bin/sh")
number: int = c.read_log(1)
"""


def arguments(text):
    """Of a docstring: names and words."""
    section = inspect.cleandoc(text).split("\nArgs:\n")[1]
    return {
        name: " ".join(said.split())
        for name, said in re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", section, re.M)
    }


class Client(unittest.TestCase):
    def test_the_options_of_a_job_are_arguments(self):
        for method, schema, more in (
            ("submit", "JobSpec", {"why"}),
            ("estimate", "JobSpec", set()),
            ("update", "JobChange", {"id"}),
        ):
            with self.subTest(method):
                signature = inspect.signature(getattr(belay.client.Client, method)).parameters
                members = set(SCHEMAS[schema]["properties"])
                self.assertGreater(len(members), 35)
                self.assertEqual(set(signature) - {"self"}, members | more)
                for name in members:
                    is_needed = name in SCHEMAS[schema].get("required", [])
                    default = inspect.Parameter.empty if is_needed else None
                    self.assertIs(signature[name].default, default, name)
                for name in set(TYPES) & members:
                    self.assertEqual(signature[name].annotation, TYPES[name], name)

    def test_each_of_them_is_described(self):
        submit = arguments(belay.client.Client.submit.__doc__)
        self.assertEqual(set(submit), set(SCHEMAS["JobSpec"]["properties"]) | {"why"})
        update = arguments(belay.client.Client.update.__doc__)
        self.assertEqual(set(update), set(SCHEMAS["JobChange"]["properties"]))
        url = next(row["help"] for row in TABLE if row.get("name") == "url")
        self.assertEqual((submit["url"], update["url"]), (url, url))

    def test_a_new_option_is_a_new_argument(self):
        table, schemas = copy.deepcopy(TABLE), copy.deepcopy(SCHEMAS)
        row = next(row for row in table if row.get("name") == "url")
        table.append({**row, "name": "colour", "help": "its colour", "words": ["red", "blue"]})
        schemas["JobSpec"]["properties"]["colour"] = {"type": "string"}
        text = make_client.Options(table, schemas).filled("  @JobSpec@\n  @JobSpec: help@\n")
        self.assertIn('\n  colour: Literal["red", "blue"] | None = None,\n', text)
        self.assertIn("\n  colour: its colour\n", text)

    def test_an_option_without_words_does_not_build(self):
        schemas = copy.deepcopy(SCHEMAS)
        schemas["JobChange"]["properties"]["mute"] = {"type": "string"}
        with self.assertRaisesRegex(SystemExit, "says what mute is"):
            make_client.Options(TABLE, schemas).filled("@JobChange: help@\n")

    def test_what_is_made_is_formatted(self):
        for tool in (["black", "-q", "--check", "-l", "100"], ["flake8", "--isolated"]):
            if tool[0] == "flake8":
                tool += ["--select=E9,E71,E72,F,W505", "--max-doc-length=100"]
            if not shutil.which(tool[0]):
                print("SKIP: %s is not installed" % tool[0])
                continue
            done = subprocess.run([*tool, str(CLIENT)], capture_output=True, text=True, timeout=100)
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_a_token_file_of_others_is_refused(self):
        with tempfile.TemporaryDirectory() as dir_:
            path = os.path.join(dir_, "token")
            with open(path, "w") as f:
                f.write("secret\n")
            env = {"BELAY_SERVER": "https://x:1", "BELAY_TOKEN_FILE": path, "BELAY_CA_FILE": path}
            with unittest.mock.patch.dict(os.environ, env):
                os.chmod(path, 0o640)
                with self.assertRaisesRegex(
                    PermissionError, "token holds a secret but others may read"
                ):
                    belay.client.Client()
                os.chmod(path, 0o600)
                with self.assertRaises(ssl.SSLError):  # the file is not a certificate
                    belay.client.Client()

    def test_everything_is_annotated(self):
        for owner in (belay.client, belay.client.Client):
            for name, function in inspect.getmembers(owner, inspect.isfunction):
                if function.__module__ != "belay.client":
                    continue
                with self.subTest(name):
                    signature = inspect.signature(function)
                    self.assertIsNot(signature.return_annotation, inspect.Signature.empty)
                    for parameter in list(signature.parameters.values()):
                        if parameter.name != "self":
                            self.assertIsNot(parameter.annotation, inspect.Parameter.empty)

    def mypy(self, folder, *files):
        return subprocess.run(
            ["mypy", "--strict", "--no-color-output", "--cache-dir", folder, *map(str, files)],
            capture_output=True,
            text=True,
            timeout=200,
            cwd=folder,
            env={**os.environ, "MYPYPATH": str(PACKAGE.parent)},
        )

    def test_mypy_agrees_and_finds_what_is_wrong(self):
        if not shutil.which("mypy"):
            print("SKIP: mypy is not installed")
            return
        with tempfile.TemporaryDirectory(prefix="belay-mypy.") as folder:
            done = self.mypy(folder, CLIENT)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            wrong = os.path.join(folder, "wrong.py")
            with open(wrong, "w") as f:
                f.write(WRONG)
            found = re.findall(r"wrong\.py:(\d+): error: ", self.mypy(folder, wrong).stdout)
            self.assertEqual(sorted(set(found)), ["3", "4", "5", "6", "7"])

    def test_what_is_installed_is_marked_as_typed(self):
        """Where mypy finds it as an installed package, it reads its types only if it says that it
        has some (PEP 561)."""
        if not shutil.which("mypy"):
            print("SKIP: mypy is not installed")
            return
        with tempfile.TemporaryDirectory(prefix="belay-mypy.") as folder:
            subprocess.run(
                [sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=100
            )
            package = glob.glob(folder + "/lib/python3*/site-packages")[0] + "/belay"
            os.mkdir(package)
            with open(os.environ["BELAY_INSTALLED"]) as f:
                for source, place in json.load(f).items():
                    if "/share/belay/belay/" in place:
                        shutil.copy(source, package)
            self.assertEqual(sorted(os.listdir(package)), MODULES)
            wrong = os.path.join(folder, "wrong.py")
            with open(wrong, "w") as f:
                f.write(WRONG)
            done = subprocess.run(
                ["mypy", "--strict", "--no-color-output", "--cache-dir", folder]
                + ["--python-executable", folder + "/bin/python", wrong],
                capture_output=True,
                text=True,
                timeout=200,
                cwd=folder,
            )
            found = re.findall(r"wrong\.py:(\d+): error: ", done.stdout)
            self.assertEqual(sorted(set(found)), ["3", "4", "5", "6", "7"], done.stdout)


if __name__ == "__main__":
    unittest.main()
