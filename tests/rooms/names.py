# SPDX-License-Identifier: Apache-2.0
"""Checks that what the documents name in `backticks` exists: files, folders, functions, types.

names.py [SOURCE_ROOT]     default: the checkout that this file is in

Reads docs/, CONTRIBUTING.md and cloud/NEW-DRIVER.md, without their code blocks.

- A path whose first part is a folder of the root must be a file, a folder, or a module without its
  .c or .h.
- A C file without a folder must be in a folder of scheduler/core, in the page's own folder, or in a
  folder that the same paragraph, list or row names. Any other file without a folder may be anywhere
  in the tree.
- NAME, ROOM and other words in capitals stand for any text, as * does: at least one matching file
  must exist.
- name() must occur in some source, as must struct and enum names; in the pages of DEVELOPERS also
  each word_with_underscores. Words in comments do not count.
"""

import os
import re
import sys
from pathlib import Path

DEVELOPERS = (
    "CONTRIBUTING.md",
    "cloud/NEW-DRIVER.md",
    "docs/architecture.md",
    "docs/explanation/deadlines.md",
    "docs/glossary.md",
)
CORE = "scheduler/core/"
# Not in the tree: created where belay runs or is built, or example names.
ELSEWHERE = {
    "CONTRIBUTING.md": {"a.json", "snake_case"},
    "docs/architecture.md": {"exit.json"},
}
SOURCES = (".c", ".h", ".py", ".sh", ".js", ".mjs", ".build", ".json", ".yaml", ".in", ".html")
SCRIPTS = ("scripts/", ".ci/", "tests/planted/run")  # sources without a suffix
BY_NAME = (".md", ".build", ".py", ".sh")

FENCE = re.compile(r"^```.*?^```$", re.S | re.M)
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)*/?")
CALL = re.compile(r"(?:\w+\.)*(\w+)\([^()]*\)")
TYPE = re.compile(r"(struct|enum) (\w+)")
TERM = re.compile(r"[A-Za-z]\w*_\w+")
ANY = re.compile(r"[A-Z]{3,}|\*")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
DEFINED = re.compile(r"\b(struct|enum) (\w+)\s*\{")


def pattern(name):
    """The pattern of a name with placeholders, else None."""
    if not ANY.search(name):
        return None
    parts = [re.escape(part) for part in ANY.split(name)]
    return re.compile(r"[\w.-]+".join(parts))


class Tree:
    def __init__(self, root):
        self.root, self.files, self.folders = Path(root), set(), set()
        self.words, self.types = set(), set()
        for folder, folders, names in os.walk(root):
            at = Path(folder).relative_to(root).as_posix()
            at = "" if at == "." else at + "/"
            folders[:] = [
                name
                for name in folders
                if (not name.startswith(".") or name == ".ci")
                and name != "__pycache__"
                and not (Path(folder) / name / "meson-private").exists()
            ]
            self.folders.update(at + name for name in folders)
            self.files.update(at + name for name in names)
        self.names = {file.rpartition("/")[2] for file in self.files}
        self.all = (
            self.files | self.folders | {f[:-2] for f in self.files if f[-2:] in (".c", ".h")}
        )

    def read(self):
        for file in self.files:
            if file.endswith(SOURCES) or file.startswith(SCRIPTS):
                text = (self.root / file).read_text(errors="replace")
                if file.endswith((".c", ".h")):
                    text = COMMENT.sub(" ", text)
                    self.types.update(DEFINED.findall(text))
                self.words.update(re.findall(r"\w+", text))
                self.words.add(file.rpartition("/")[2].partition(".")[0])

    def tails_of_core(self, n):
        """The last n parts of the path of each file."""
        return {"/".join(f.split("/")[-n:]) for f in self.files if f.startswith(CORE)}

    def has(self, name, among):
        found = pattern(name)
        return name in among or (found and any(found.fullmatch(other) for other in among))


class Check:
    def __init__(self, root):
        self.tree = Tree(root)
        self.tree.read()
        self.findings, self.n_names = [], 0
        self.elsewhere = {(page, name) for page, held in ELSEWHERE.items() for name in held}

    def run(self):
        for page in sorted(self.tree.files):
            if page in DEVELOPERS or (page.startswith("docs/") and page.endswith(".md")):
                self.page(page)
        for page, name in sorted(self.elsewhere):
            self.findings.append(f"{page}: does not name `{name}` any more: strike it in names.py")
        return self.findings

    def page(self, page):
        text = FENCE.sub(
            lambda m: "\n" * m[0].count("\n"), (self.tree.root / page).read_text(errors="replace")
        )
        # A paragraph, a list without blank lines, or one row of a table.
        for n, block in blocks(text):
            quoted = [(n + at, name.lstrip("!")) for at, name in names(block)]
            folders = self.folders_of([name for _, name in quoted])
            for line, name in quoted:
                self.name(page, line, name, folders | {page.rpartition("/")[0]})

    def folders_of(self, quoted):
        """The folders that are named, or that contain what is named."""
        found = set()
        for name in quoted:
            path = name.rstrip("/")
            found.update({path, path.rpartition("/")[0]} if "/" in name else set())
        return found - {""}

    def name(self, page, line, name, folders):
        if name in ELSEWHERE.get(page, ()):
            self.elsewhere.discard((page, name))
            return
        wrong = None
        if call := CALL.fullmatch(name):
            wrong = not self.tree.has(call[1], self.tree.words) and "no source has it"
        elif found := TYPE.fullmatch(name):
            wrong = found.groups() not in self.tree.types and "no such type"
        elif PATH.fullmatch(name) and ("/" in name or "." in name):
            wrong = not self.path(name, folders) and "no such file or folder"
        elif page in DEVELOPERS and TERM.fullmatch(name):
            wrong = not self.tree.has(name, self.tree.words) and "no source has it"
        else:
            return
        self.n_names += 1
        if wrong:
            self.findings.append(f"{page}:{line}: `{name}`: {wrong}")

    def path(self, name, folders):
        """True if the path exists, or is not a path of the tree."""
        path, is_c = name.rstrip("/"), name.endswith((".c", ".h"))
        first = path.partition("/")[0]
        if "/" in name and first in self.tree.folders:
            return self.tree.has(path, self.tree.all)
        if is_c:
            own = {f"{at}/{path}".lstrip("/") for at in folders}
            return self.tree.has(path, self.tree.tails_of_core(path.count("/") + 1)) or any(
                self.tree.has(file, self.tree.files) for file in own
            )
        if "/" not in name and name.endswith(BY_NAME):
            return self.tree.has(name, self.tree.names)
        return True


def blocks(text):
    """Yields (number of its first line, text) of each block."""
    start, held = 0, []
    for n, line in enumerate(text.splitlines() + [""]):
        if held and (not line.strip() or line.startswith("|") or held[0].startswith("|")):
            yield start, "\n".join(held)
            held = []
        if line.strip():
            start = start if held else n
            held.append(line)


def names(block):
    for n, line in enumerate(block.splitlines(), 1):
        for name in CODE.findall(line):
            yield n, name


def main():
    if len(sys.argv) > 2:
        sys.exit("usage: names.py [SOURCE_ROOT]")
    root = sys.argv[1] if len(sys.argv) == 2 else Path(__file__).resolve().parents[2]
    check = Check(root)
    findings = check.run()
    for finding in findings:
        print(finding)
    print(f"{check.n_names} names: {len(findings)} that do not exist")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
