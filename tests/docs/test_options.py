# SPDX-License-Identifier: Apache-2.0
"""The job options in the manual and the documents compared with the table that the programs use
(job/attributes.c): names, values, ranges and defaults.
"""

import json
import os
import re
import subprocess
import unittest
from pathlib import Path

import manual

TABLE = json.loads(subprocess.check_output([os.environ["PRINT_ATTRIBUTES"]]))
FLAGS = {row["flag"]: row for row in TABLE if "flag" in row}


def plain(line):
    """The displayed text of a list item: ".It Fl c Ar N , Fl Fl cpus Ns = Ns Ar N" is "-c N,
    --cpus=N".
    """
    text, joined = "", True
    for word in line.split()[1:]:
        if word == "Ns":
            joined = True
        elif word == "Fl":
            text += "-" if joined or text.endswith("-") else " -"
            joined = True
        elif word == ",":
            text, joined = text + ",", False
        elif word not in ("Ar", "Cm"):
            text += word if joined else " " + word
            joined = False
    return text


MACROS = "Ar Cm Dq Ev Fl Li Nm No Ns Op Pa Pq Sq Sx Xr".split()


class Item:
    """Flags that are described together, their values, and the text."""

    def __init__(self, line):
        self.lines, self.flags = [], {}
        for long, value, letter, argument in re.findall(
            r"--([a-z-]+)(?:=(\S+?))?(?=, -|$)|(?<!-)-([A-Za-z])(?: (\S+?))?(?=, -|$)", plain(line)
        ):
            self.flags[long or letter] = value or argument or None

    def text(self):
        """The text in one line, without macros."""
        words = " ".join(re.sub(r"^\.[A-Z][a-z]\b ?", "", line) for line in self.lines).split()
        text = " ".join(word for word in words if word not in MACROS)
        return re.sub(r" ([,.;:)])", r"\1", text.replace("( ", "("))


def limits(row):
    """The range of a row, as the manual must print it."""
    kind, low, high, unit = row["type"], row["min"], row["max"], row.get("unit")
    if high == 0 or kind == "moment" or high > 10**18:
        return None
    if kind in ("text", "name", "url"):
        return "at most %d bytes" % high
    if unit == "uusd":
        return "at most %d dollars" % (high // 1000000)
    if unit == "ms":
        return ("1 second" if low == 1000 else str(low)) + " to %d days" % (high // 86400000)
    if unit == "MiB":
        return "up to %d TiB" % (high >> 20)
    return "%d to %d" % (low, high)


def defaults(row):
    """The default of the table, if it is a value, and its name in the help line."""
    said, value = re.findall(r"default:? ([\w.$]+)", row["help"]), row.get("default")
    is_value = isinstance(value, str) or (value is not None and value >= row["min"])
    if is_value and "unit" not in row and "alias" not in row["masks"]:
        said.append("USR1" if row["flag"] == "signal" else str(value))
    return said


def items():
    """The items of the section about job flags."""
    text = manual.read("docs/man/belay.1").split("\n.Sh THE FLAGS OF JOBS\n")[1]
    found, depth = [], 0
    for line in text.split("\n.Sh ")[0].splitlines():
        depth += line.startswith(".Bl ") - line.startswith(".El")
        if line.startswith(".It ") and depth == 1:
            found.append(Item(line))
        elif found:
            found[-1].lines.append(line)
    return found


class Options(unittest.TestCase):
    def test_the_manual_describes_what_each_flag_takes(self):
        described = {}
        for item in items():
            for name, takes in item.flags.items():
                self.assertNotIn(name, described)
                described[name] = takes
        expected = {name: row.get("takes") for name, row in FLAGS.items()}
        expected.update(
            {row["letter"]: row.get("takes") for row in FLAGS.values() if "letter" in row}
        )
        self.assertEqual(described.keys(), expected.keys())
        for name, takes in expected.items():
            with self.subTest(name):
                self.assertEqual(described[name], takes)

    def test_the_manual_has_the_range_and_the_default_of_each(self):
        n = 0
        for item in items():
            for row in (FLAGS[name] for name in item.flags if len(name) > 1):
                text = item.text()
                if "alias" not in row["masks"] and limits(row):
                    n += 1
                    with self.subTest(row["flag"]):
                        self.assertIn(limits(row), text)
                for value in defaults(row):
                    n += 1
                    with self.subTest(row["flag"]):
                        self.assertRegex(text, r"[Dd]efault:? %s\b|%s \(default\)" % (value, value))
        self.assertGreater(n, 25)

    def check_keys(self, text, expected):
        """Checks the words after Cm, except the values of an option."""
        found = set()
        for words in re.findall(r"\bCm ([a-z-]+(?: , [a-z-]+)*)(?![a-z-])", text):
            found |= set(words.split(" , "))
        self.assertEqual(found - {"yes", "no", "keep"}, expected)

    def test_the_manual_lists_the_keys_of_update(self):
        section = manual.read("docs/man/belay.1").split("\n.Ss belay update ")[1]
        waits, runs = section.split("\n.Ss ")[0].split("\nFor a running job:\n")
        waits = waits.split("\nFor a pending job:\n")[1]
        keys = {row["key"]: row for row in TABLE if "key" in row}
        members = {row["name"]: row for row in TABLE if row["changes"]}
        running = {
            key
            for key, row in keys.items()
            if members.get(row.get("name"), members.get(key, row))["changes_while_running"]
        }
        self.check_keys(waits, set(keys))
        self.check_keys(runs.split("\nAn array is changed")[0], running)

    def test_help_errors_and_completions_have_every_key_and_flag(self):
        """All in the order of the table."""
        belay, keys = os.environ["BELAY"], [row["key"] for row in TABLE if "key" in row]
        _, text, _ = manual.run(belay, "update", "--help")
        self.assertEqual(re.findall(r"^  ([a-z-]+)=", text.split("\nKeys, ")[1], re.M), keys)
        code, _, text = manual.run(belay, "update", "1", "no-such-key=1")
        self.assertEqual(code, 2)
        listed = re.search(r"expected one of (.*?),? found", text)[1]
        self.assertEqual(re.sub(r" \(.*", "", listed).split(", "), keys)
        for shell, pattern in (
            ("bash", r"(?s)\n    update\).*?\n        arguments=\"([^\"]*)\""),
            ("zsh", r"(?s)\n    update\).*?'\*:change:compadd -S = -- ([^']*)'"),
            ("fish", r"'__belay_verb update' -f -a '([^']*)'"),
        ):
            with self.subTest(shell):
                _, text, _ = manual.run(belay, "completion", shell)
                self.assertEqual([w.rstrip("=") for w in re.search(pattern, text)[1].split()], keys)
                for flag in FLAGS:
                    self.assertRegex(text, r"(--| -l )%s\b" % flag)

    def test_the_documents_list_what_an_update_changes(self):
        page = manual.read("docs/reference/api.md").split("\n### Changing a job\n")[1]
        changes = [row for row in TABLE if row["changes"] and "name" in row]
        for state, rows in (
            ("pending", changes),
            ("running", [row for row in changes if row["changes_while_running"]]),
        ):
            listed = re.search(r"^\| %s \| (.*) \|$" % state, page, re.M)[1]
            with self.subTest(state):
                self.assertEqual(
                    set(re.findall(r"`([a-z_]+)`", listed)), {row["name"] for row in rows}
                )

    def test_the_documents_have_the_variables_of_slurm(self):
        """docs/reference/slurm.md; the manual page is generated from the table."""
        page = manual.read("docs/reference/slurm.md").split("\n## Variables in place of flags\n")[1]
        rows = [line for line in page.splitlines() if line.startswith("| `S")]
        first, second = rows[0].split("|")[1], rows[1].split("|")[1]
        prefixes, names = re.findall(r"`(S\w+_)X`", first), re.findall(r"`([A-Z_ ]+)`", first)[-1]
        described = [prefix + name for prefix in prefixes for name in names.split()]
        described += " ".join(re.findall(r"`([^`]+)`", second)).split()
        described.remove("SBATCH_WAIT")  # not a flag of jobs
        expected = [name for row in TABLE for name in row.get("env", "").split()]
        self.assertEqual(sorted(described), sorted(expected))
        built = Path(os.environ["BELAY_SLURM_1"]).read_text()
        for name in expected:
            self.assertRegex(built, r"(?m)^\.It Ev .*\b%s\b" % name)


if __name__ == "__main__":
    unittest.main()
