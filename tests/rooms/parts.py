# SPDX-License-Identifier: Apache-2.0
"""Checks who names a part of `struct model`: each folder of scheduler/core owns one or more parts.

parts.py [SOURCE_ROOT]     default: the checkout that this file is in

scheduler/core/model/state.h lists the parts. The folder whose header defines the type of a part
owns it: only files of that folder may use `m->PART`, and only files of the core include state.h.
All others, the tests of the core too, use the functions of the folders' headers. model/check.c and
model/check_jobs.c compare the parts with each other. Every `struct model *` of the core is called
m, so the text is searched without parsing it.
"""

import re
import sys
from pathlib import Path

from rooms import without_comments

CORE = "scheduler/core"
STATE = f"{CORE}/model/state.h"
EVERYTHING = (f"{CORE}/model/check.c", f"{CORE}/model/check_jobs.c", STATE)
# Set once, when the model is made: every folder reads them.
SHARED = {"options"}
MEMBER = re.compile(r"^\s+struct (\w+) (\w+);", re.M)
INCLUDES_STATE = re.compile(rf'^\s*#\s*include\s*"{re.escape(STATE)}"')
# A file with one of these includes sees parts through the headers of accessors.
INCLUDES_CORE = re.compile(rf'^\s*#\s*include\s*"(?:{CORE}/|tests/core/)', re.M)
NAMED_OTHERWISE = re.compile(r"struct model \*(?:const )?(?!m\b)(\w+)\s*[,;=)]")


class Check:
    def __init__(self, root):
        self.root = Path(root)
        self.texts = {
            file.relative_to(self.root).as_posix(): without_comments(file.read_text(), False)
            for file in sorted((self.root / CORE).rglob("*.[ch]"))
        }
        self.owners, self.findings = {}, []
        self.outside = {}
        for top in sorted(self.root.iterdir()):
            if (
                top.is_dir()
                and not top.name.startswith(".")
                and not (top / "meson-private").exists()
            ):
                for file in sorted(top.rglob("*.[ch]")):
                    name = file.relative_to(self.root).as_posix()
                    text = without_comments(file.read_text(), True)
                    if name not in self.texts and INCLUDES_CORE.search(text):
                        self.outside[name] = text

    def run(self):
        self.read_parts()
        for file, text in self.texts.items():
            for n, line in enumerate(text.splitlines(), 1):
                self.line(file, f"{file}:{n}", line)
        for file, text in self.outside.items():
            for n, line in enumerate(text.splitlines(), 1):
                if INCLUDES_STATE.match(line):
                    self.findings.append(f"{file}:{n}: only files of {CORE} include {STATE}")
                self.parts_of(file, f"{file}:{n}", line)
        return self.findings

    def read_parts(self):
        body = re.search(r"^struct model \{(.*?)^\};", self.texts[STATE], re.M | re.S)
        members = [line for line in body[1].splitlines() if line.strip()]
        for line in members:
            found = MEMBER.match(line)
            if not found:
                self.findings.append(f"{STATE}: {line.strip()}: is no part that a folder owns")
                continue
            if found[2] in SHARED:
                continue
            homes = [file for file, text in self.texts.items() if f"struct {found[1]} {{" in text]
            if not homes:
                self.findings.append(f"{STATE}: struct {found[1]} is defined nowhere in {CORE}")
                continue
            self.owners[found[2]] = homes[0].rsplit("/", 1)[0]

    def line(self, file, where, line):
        found = NAMED_OTHERWISE.search(line)
        if found:
            self.findings.append(f"{where}: struct model *{found[1]}: call it m")
        if file not in EVERYTHING:
            self.parts_of(file, where, line)

    def parts_of(self, file, where, line):
        for found in re.finditer(r"\bm\)?->(\w+)", line):
            owner = self.owners.get(found[1])
            if owner and not file.startswith(owner + "/"):
                self.findings.append(
                    f"{where}: m->{found[1]} belongs to {owner}: use a function of its headers"
                )


def main():
    if len(sys.argv) > 2:
        sys.exit("usage: parts.py [SOURCE_ROOT]")
    root = sys.argv[1] if len(sys.argv) == 2 else Path(__file__).resolve().parents[2]
    check = Check(root)
    findings = check.run()
    for finding in findings:
        print(finding)
    print(
        f"{len(check.owners)} parts of the model in {len(check.texts)} files: {len(findings)} wrong"
    )
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
