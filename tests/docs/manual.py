# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the documentation: finding pages and their parts."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def read(name):
    return (ROOT / name).read_text()


def blocks(name, language):
    """The code blocks in this language on a page, each with the line of its begin."""
    found = []
    for match in re.finditer(r"^```" + language + r"\n(.*?)^```$", read(name), re.S | re.M):
        found.append((read(name)[: match.start()].count("\n") + 2, match[1]))
    return found


def run(*argv):
    """(exit code, stdout, stderr)"""
    done = subprocess.run(
        [str(a) for a in argv], capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL
    )
    return done.returncode, done.stdout, done.stderr


OPTION = re.compile(r"^ +(?:(-\S), )?(--[a-z-]+)", re.M)


def options_in(help_text):
    """All -x and --word in the lines of a --help text."""
    return {option for pair in OPTION.findall(help_text) for option in pair if option}


def verbs():
    _, out, _ = run(os.environ["BELAY"], "--help")
    return re.findall(r"^  ([a-z]+) ", out, re.M)


def options_of_verb(verb):
    code, out, err = run(os.environ["BELAY"], verb, "--help")
    assert (code, err) == (0, ""), err
    return options_in(out)
