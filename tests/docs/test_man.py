# SPDX-License-Identifier: Apache-2.0
"""The manual pages compared with --help: exactly the existing verbs and options are described."""

import os
import re
import shlex
import shutil
import unittest
from pathlib import Path

import manual

LISTS = {
    "calendar",
    "list",
    "nodes",
    "reservation",
    "shares",
    "quotas",
    "budget",
    "pools",
    "offers",
    "secret",
    "token",
}
COMMON = {"-h", "--help", "--json", "--utc", "--color"}


def sections(page, macro):
    """Title -> lines of the sections that begin with .Sh or .Ss."""
    found, title = {}, None
    for line in manual.read("docs/man/" + page).splitlines():
        if line.startswith(f".{macro} "):
            title = line[4:]
            found[title] = []
        elif line.startswith(".Sh ") or (macro == "Ss" and line.startswith(".Ss ")):
            title = None
        elif title:
            found[title].append(line)
    return found


def options_described(lines):
    """The options in list items: "Fl x" is -x, "Fl Fl word" is --word."""
    found = set()
    for line in lines:
        if line.startswith(".It Fl "):
            found |= {"--" + word for word in re.findall(r"\bFl Fl ([a-z-]+)", line)}
            found |= {
                "-" + letter
                for letter in re.findall(r"(?<!Fl )Fl ([A-Za-z1?])(?:\\&)?(?= |$)", line)
            }
    return found


class Man(unittest.TestCase):
    def test_every_verb_is_described_in_the_order_of_help(self):
        titles = sections("belay.1", "Ss")
        self.assertEqual([title.split()[1] for title in titles], manual.verbs())

    def test_every_option_of_every_verb_is_described_and_no_other(self):
        of_jobs = options_described(sections("belay.1", "Sh")["THE FLAGS OF JOBS"])
        for title, lines in sections("belay.1", "Ss").items():
            verb = title.split()[1]
            described = options_described(lines) | COMMON
            if verb in LISTS:
                described |= {"-o", "--output"}
            if any("THE FLAGS OF JOBS" in line for line in lines):
                described |= of_jobs
            with self.subTest(verb):
                self.assertEqual(described, manual.options_of_verb(verb))
        self.assertEqual(options_described(sections("belay.1", "Sh")["VERBS"]) & COMMON, COMMON)

    def test_every_verb_has_examples_with_its_own_options(self):
        for verb in manual.verbs():
            _, out, _ = manual.run(os.environ["BELAY"], "help", verb)
            examples = out.partition("\nExamples:\n")[2].splitlines()
            self.assertTrue(examples, verb)
            for line in examples:
                with self.subTest(line):
                    words = shlex.split(line, comments=True)
                    self.assertEqual(words[:2], ["belay", verb])
                    own = words[: words.index("--")] if "--" in words else words
                    options = {w.split("=")[0] for w in own if re.match(r"--?[A-Za-z]", w)}
                    if verb != "slurm":
                        self.assertLessEqual(options, manual.options_of_verb(verb))

    def test_every_key_of_update_is_described(self):
        described = " ".join(
            next(
                lines
                for title, lines in sections("belay.1", "Ss").items()
                if title.startswith("belay update")
            )
        )
        _, out, _ = manual.run(os.environ["BELAY"], "update", "--help")
        keys = re.findall(r"^  ([a-z-]+)=\S+ +\S", out, re.M)
        self.assertGreater(len(keys), 20)
        for key in keys:
            with self.subTest(key):
                self.assertRegex(described, r"\b%s\b" % key)

    def test_every_option_of_the_other_programs_is_described_and_no_other(self):
        for variable, page in (
            ("BELAYD", "belayd.8"),
            ("BELAY_AGENT", "belay-agent.8"),
            ("BELAY_EMULATOR", "belay-emulator.1"),
        ):
            with self.subTest(page):
                code, out, _ = manual.run(os.environ[variable], "--help")
                self.assertEqual(code, 0)
                described = options_described(manual.read("docs/man/" + page).splitlines())
                self.assertEqual(described, manual.options_in(out))

    def test_the_variables_of_a_job_are_described(self):
        text = "\n".join(sections("belay.1", "Sh")["JOB SCRIPTS"])
        described = set(re.findall(r"\b(BELAY_[A-Z_]+)\b", text))
        self.assertEqual(
            described, set(re.findall(r'"(BELAY_[A-Z_]+)"', manual.read("agent/supervisor/env.c")))
        )

    def test_groff_has_nothing_to_say(self):
        if not shutil.which("groff"):
            print("SKIP: groff is not installed")
            return
        for page in sorted((manual.ROOT / "docs/man").glob("*.[18]")) + [
            Path(os.environ["BELAY_SLURM_1"])
        ]:
            with self.subTest(page.name):
                code, _, err = manual.run("groff", "-mdoc", "-Tutf8", "-ww", "-z", page)
                self.assertEqual((code, err), (0, ""))


if __name__ == "__main__":
    unittest.main()
