# SPDX-License-Identifier: Apache-2.0
"""Checks that a header declares what its own file defines, so that a function is where its header
says.

headers.py [SOURCE_ROOT]     default: the checkout that this file is in

A header X.h beside an X.c declares only functions that X.c defines, or an X_*.c beside it (a
module in several files). A header without a file of its name (X_private.h, ckpt.h) is the
interface of several files and is not checked. The formatter puts a definition's name, and its
brace, at the left margin, so the text is searched without parsing it.
"""

import re
import sys
from pathlib import Path

from rooms import without_comments

ROOMS = (
    "agent",
    "base",
    "ckpt",
    "cli",
    "cloud",
    "db",
    "emulator",
    "job",
    "money",
    "replay",
    "scheduler",
    "simtest",
    "telemetry",
)
# Headers that declare functions of other files, with the reason.
INTERFACES = {
    "emulator/arm/arm.h": "what the front and the tests call, whichever of its files does it",
    "scheduler/core/model/model.h": "what users of the core call, whichever of its folders does it",
    "simtest/world.h": "struct world, and what each file of the simulation does with it",
}
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
FUNCTION = re.compile(
    r"^(?!static\b|typedef\b|extern\b)[A-Za-z_][\w \t*]*?[\s*](\w+)\(([^;{}]*?)\)\s*([;{])",
    re.M | re.S,
)


def functions(text, ends_with):
    """Name -> line of the functions at the left margin that are declared (;) or defined ({)."""
    blanked = PREPROCESSOR.sub(lambda m: "\n" * m[0].count("\n"), without_comments(text, False))
    return {
        found[1]: blanked.count("\n", 0, found.start(1)) + 1
        for found in FUNCTION.finditer(blanked)
        if found[3] == ends_with
    }


class Check:
    def __init__(self, root):
        self.root = Path(root)
        self.findings, self.n_functions = [], 0
        self.defined = {}  # name -> files that define it

    def files(self, pattern):
        for room in ROOMS:
            for file in sorted((self.root / room).rglob(pattern)):
                yield file, file.relative_to(self.root).as_posix()

    def run(self):
        for file, name in self.files("*.c"):
            for function in functions(file.read_text(), "{"):
                self.defined.setdefault(function, []).append(name)
                self.n_functions += 1
        for header in INTERFACES:
            if not (self.root / header).exists():
                self.findings.append(f"{header}: there is no such interface any more")
        for file, name in self.files("*.h"):
            if file.with_suffix(".c").exists() and name not in INTERFACES:
                self.header(file, name)
        return self.findings

    def header(self, file, name):
        stem = name[: -len(".h")]
        for function, line in functions(file.read_text(), ";").items():
            homes = self.defined.get(function, [])
            if homes and not any(
                home == stem + ".c" or home.startswith(stem + "_") for home in homes
            ):
                self.findings.append(
                    f"{name}:{line}: {function} is defined in {homes[0]}: declare it in "
                    f"{homes[0][: -len('.c')]}.h"
                )


def main():
    if len(sys.argv) > 2:
        sys.exit("usage: headers.py [SOURCE_ROOT]")
    root = sys.argv[1] if len(sys.argv) == 2 else Path(__file__).resolve().parents[2]
    check = Check(root)
    findings = check.run()
    for finding in findings:
        print(finding)
    print(f"{check.n_functions} functions: {len(findings)} declared elsewhere")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
