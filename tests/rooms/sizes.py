# SPDX-License-Identifier: Apache-2.0
"""Checks that folders and files are small enough to read: counts the C files of folders, and the
lines of C files.

sizes.py [SOURCE_ROOT]     default: the checkout that this file is in

Both limits and their exceptions are read from two paragraphs of docs/architecture.md, found by
their first words. What they name in `backticks` may exceed the limit:

A folder has at most N C files      counts .c files, not those of its subfolders A C file has at
most N lines        .c and .h of the product: not of tests, fuzz and bench

An exception that is no longer needed is reported too.
"""

import re
import sys
from collections import Counter
from pathlib import Path

from rooms import PAGE, TableError, quoted

NO_PRODUCT = ("tests", "fuzz", "bench")


def rule(page, begin):
    """The number in the paragraph that begins so, and the names in it."""
    found = re.search(re.escape(begin).replace("N", r"(\d+)") + r"\b.*?(?:\n\n|\Z)", page, re.S)
    if not found:
        raise TableError(f'{PAGE}: no paragraph begins with "{begin}"')
    return int(found[1]), quoted(found[0])


class Check:
    def __init__(self, root):
        self.root = Path(root)
        page = (self.root / PAGE).read_text()
        self.files = rule(page, "A folder has at most N C files")
        self.lines = rule(page, "A C file has at most N lines")
        self.findings, self.n_files = [], 0

    def run(self):
        in_folder, lines = Counter(), Counter()
        for file in self.sources():
            self.n_files += 1
            if file.suffix == ".c":
                in_folder[file.parent.as_posix()] += 1
            if file.parts[0] not in NO_PRODUCT:
                lines[file.as_posix()] = (self.root / file).read_bytes().count(b"\n")
        self.compare(in_folder, self.files, "C files", "make folders of it")
        self.compare(lines, self.lines, "lines", "make two files of it")
        return self.findings

    def sources(self):
        for top in sorted(self.root.iterdir()):
            if (
                top.is_dir()
                and not top.name.startswith(".")
                and not (top / "meson-private").exists()
            ):
                for file in sorted(top.rglob("*.[ch]")):
                    yield file.relative_to(self.root)

    def compare(self, counts, limit, what, advice):
        most, excepted = limit
        for name, n in counts.items():
            if n > most and name not in excepted:
                self.findings.append(
                    f"{name}: {n} {what}, at most {most}: {advice}, or say in {PAGE} why not"
                )
        for name in excepted:
            if counts[name] <= most:
                self.findings.append(
                    f"{PAGE}: {name} has {counts[name]} {what}: it is no exception any more"
                )


def main():
    if len(sys.argv) > 2:
        sys.exit("usage: sizes.py [SOURCE_ROOT]")
    root = sys.argv[1] if len(sys.argv) == 2 else Path(__file__).resolve().parents[2]
    try:
        check = Check(root)
        findings = check.run()
    except TableError as e:
        sys.exit(str(e))
    for finding in findings:
        print(finding)
    print(f"{check.n_files} files: {len(findings)} too large")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
