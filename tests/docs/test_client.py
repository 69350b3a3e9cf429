# SPDX-License-Identifier: Apache-2.0
"""clients/python/belay_client: each argument that is an option of a job has the type, the default
and the words of the table of options and of the API's description; and all of it is typed."""

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

import manual

sys.path.insert(0, str(manual.ROOT / "clients/python"))
import belay_client  # noqa: E402

PACKAGE = manual.ROOT / "clients/python/belay_client"
CLIENT = PACKAGE / "__init__.py"
TABLE = json.loads(subprocess.check_output([os.environ["PRINT_ATTRIBUTES"]]))
DOCUMENT = json.loads(subprocess.check_output([os.environ["PRINT_OPENAPI"]]))
SCHEMAS = DOCUMENT["components"]["schemas"]
SCALARS = {"integer": "int", "boolean": "bool", "string": "str"}
# Of the table: what a member of its type is; that of all others is in the schema.
OF_TYPE = {"bool": "bool", "true": "bool", "false": "bool", "integer": "int", "duration": "int"}
OF_TYPE.update({"moment": "int", "money": "int", "text": "str", "name": "str", "url": "str"})

WRONG = """\
import belay_client
c = belay_client.Client()
c.submit(script="#!/bin/sh", cwd="/", market="spots")
c.update(1, url=7)
c.submit(script="#!/bin/sh", cwd="/", cpu=1)
c.submit(script="#!/bin/sh")
number: int = c.read_log(1)
"""


def literal(words):
    return "Literal[%s]" % ", ".join("'%s'" % word for word in words)


def type_of(schema):
    kind = schema["type"]
    kind = next(k for k in kind if k != "null") if isinstance(kind, list) else kind
    if "enum" in schema:
        return literal(schema["enum"])
    if kind == "array":
        return "Sequence[%s]" % type_of(schema["items"])
    if kind == "object":
        values = schema.get("additionalProperties")
        return "Mapping[str, %s]" % (type_of(values) if isinstance(values, dict) else "Any")
    return SCALARS[kind]


def rows(member):
    """Of the table, the one that is no other's alias first."""
    found = [row for row in TABLE if row.get("name") == member]
    return sorted(found, key=lambda row: "alias" in row["masks"])


def row_type(member):
    """None: the table does not say."""
    for row in rows(member):
        if row["words"]:
            return literal(row["words"])
        if row["type"] in OF_TYPE:
            return OF_TYPE[row["type"]]
    return None


def words_of(member, schema):
    """What the table says of it, else the API's description; None: neither does."""
    for row in rows(member):
        text = row.get("api_help") or row.get("help", row.get("key_help"))
        if text and text != "the same":
            return text
    return schema.get("description")


def arguments(text):
    """Of a docstring: names and words."""
    section = inspect.cleandoc(text).split("\nArgs:\n")[1]
    return {
        name: " ".join(said.split())
        for name, said in re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", section, re.M)
    }


class Client(unittest.TestCase):
    def check(self, method, expected, described, more=()):
        """more: arguments that are no members of the body."""
        signature = inspect.signature(method).parameters
        own = set(signature) - {"self", *more}
        self.assertEqual(own, set(expected))
        if described:
            self.assertEqual(set(described), own | (set(more) - {"id"}))
        for name, schema in expected.items():
            is_needed = name in SCHEMAS["JobSpec"]["required"] and "id" not in more
            wanted = row_type(name) or type_of(schema)
            with self.subTest((method.__name__, name)):
                said = signature[name].annotation.replace('"', "'")
                self.assertEqual(said, wanted if is_needed else wanted + " | None")
                default = signature[name].default
                self.assertIs(default, inspect.Parameter.empty if is_needed else None)
                if described:
                    words = words_of(name, schema)
                    self.assertTrue(described[name])
                    self.assertEqual(described[name], words or described[name])

    def test_the_arguments_of_submit_and_update_are_those_of_the_table(self):
        submit = belay_client.Client.submit
        spec = SCHEMAS["JobSpec"]["properties"]
        self.check(submit, spec, arguments(submit.__doc__), more=("why",))
        self.check(belay_client.Client.estimate, spec, None)
        update = belay_client.Client.update
        changes = SCHEMAS["JobChange"]["properties"]
        self.check(update, changes, arguments(update.__doc__), more=("id",))
        self.assertGreater(len(changes), 35)

    def test_a_token_file_of_others_is_refused(self):
        with tempfile.TemporaryDirectory() as dir_:
            path = os.path.join(dir_, "token")
            with open(path, "w") as f:
                f.write("secret\n")
            env = {"BELAY_SERVER": "https://x:1", "BELAY_TOKEN_FILE": path, "BELAY_CA_FILE": path}
            with unittest.mock.patch.dict(os.environ, env):
                os.chmod(path, 0o640)
                with self.assertRaisesRegex(PermissionError, "token: others can read or change it"):
                    belay_client.Client()
                os.chmod(path, 0o600)
                with self.assertRaises(ssl.SSLError):  # it is no certificate
                    belay_client.Client()

    def test_everything_is_annotated(self):
        for owner in (belay_client, belay_client.Client):
            for name, function in inspect.getmembers(owner, inspect.isfunction):
                if function.__module__ != "belay_client":
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
            package = glob.glob(folder + "/lib/python3*/site-packages")[0] + "/belay_client"
            os.mkdir(package)
            with open(os.environ["BELAY_INSTALLED"]) as f:
                for source, place in json.load(f).items():
                    if "/belay/belay_client/" in place:
                        shutil.copy(source, package)
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
