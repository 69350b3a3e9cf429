# SPDX-License-Identifier: Apache-2.0
"""Checks how the sources are written: layout, unused names, shell mistakes, spelling.

    style.py CHECK [SOURCE_ROOT]    c, black, flake8, web, shell, spelling, meson: one check
    style.py format [SOURCE_ROOT]   formats all C, Python, JavaScript and CSS files

SOURCE_ROOT defaults to the checkout that this file is in. The files are found by walking the tree,
so a checkout and a tarball give the same result. Build directories and fuzz corpora are left out.

Exit code: 0 if nothing was found; 1 if something was, with the file and the command that mends it;
77 (Meson: skipped) if the tool is not installed.
"""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

COLUMNS = 100
FUNCTION_LINES = 60  # a screen, from the first line of the signature to the closing brace
SKIPPED = 77
IGNORED_WORDS = Path(__file__).resolve().parent / "ignored_words.txt"

# Versions of the formatters: another version formats the same code differently.
VERSIONS = {"clang-format": "14", "black": "23"}

LEFT_OUT = ("fuzz/corpus/",)
# A test may be one long list of cases.
NOT_PRODUCT = ("tests/", "fuzz/", "bench/")
# Job scripts as Slurm users write them: they are input, so only syntax errors count. black would
# turn #SBATCH into "# SBATCH".
SCRIPTS_OF_USERS = ("tests/e2e/slurm/",)
WEB = ("web/", "tests/web/", "cli/html/"), (".js", ".mjs", ".css")
SPELLED = (".c", ".h", ".py", ".js", ".css", ".md", ".sh", ".build", ".yaml", ".1", ".8")

# Of a Meson file: a source file, but not one that the build makes.
SOURCE = re.compile(r"(?<!output: )'([^']+\.c)'")

SHEBANG = re.compile(rb"#!.*[/ ](?:ba|da)?sh\b")


class Skip(Exception):
    pass


class Tree:
    def __init__(self, root):
        self.root = Path(root).resolve()
        self.files = sorted(self.walk())

    def walk(self):
        for folder, folders, names in os.walk(self.root):
            here = Path(folder).relative_to(self.root).as_posix()
            at = "" if here == "." else here + "/"
            folders[:] = [
                name
                for name in folders
                if (not name.startswith(".") or name == ".ci")
                and name not in ("__pycache__", "node_modules")
                and at + name + "/" not in LEFT_OUT
                and not (Path(folder) / name / "meson-private").exists()
            ]
            yield from (at + name for name in names)

    def named(self, *endings):
        return [file for file in self.files if file.endswith(endings)]

    def web(self):
        folders, endings = WEB
        return [file for file in self.named(*endings) if file.startswith(folders)]

    def python(self):
        return [file for file in self.named(".py") if not file.startswith(SCRIPTS_OF_USERS)]

    def shell_scripts(self):
        return [
            f
            for f in self.files
            if f.endswith(".sh") or "." not in Path(f).name and self.is_shell(f)
        ]

    def is_shell(self, file):
        with open(self.root / file, "rb") as f:
            return SHEBANG.match(f.readline(100)) is not None

    def run(self, command, files):
        """Runs the command over the files, a part of them on each core; returns all it printed."""
        n = os.cpu_count() or 1

        def run_part(part):
            return subprocess.run(
                [*command, *part],
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                universal_newlines=True,
            )

        parts = [part for part in (files[i::n] for i in range(n)) if part]
        with ThreadPoolExecutor(n) as pool:
            done = list(pool.map(run_part, parts))
        text = "".join(d.stdout for d in done)
        if any(d.returncode for d in done) and not text.strip():
            raise RuntimeError(f"{command[0]} failed and printed nothing")
        return text if any(d.returncode for d in done) else ""


def tool(name):
    wanted = VERSIONS.get(name)
    candidates = [f"{name}-{wanted}", name] if wanted else [name]
    for path in filter(None, map(shutil.which, candidates)):
        if not wanted:
            return path
        said = subprocess.run([path, "--version"], stdout=subprocess.PIPE, universal_newlines=True)
        if re.search(rf"\b{wanted}\.\d", said.stdout):
            return path
    version = f" (version {wanted})" if wanted else ""
    raise Skip(f"skipped: {name}{version} is not installed: run scripts/setup on Debian 12")


def clang_format():
    return [tool("clang-format"), "--style=file"]


def black():
    return [tool("black"), f"--line-length={COLUMNS}"]


def prettier(tree):
    """The version of web/package-lock.json. Templates of htm are left as they are written."""
    program = tree.root / "web/node_modules/prettier/bin/prettier.cjs"
    if not program.exists() or not shutil.which("node"):
        raise Skip(
            "skipped: prettier or node is not there: run scripts/setup, or web/fetch.py --dev"
        )
    return [tool("node"), str(program), "--config=web/prettier.json"]


def files_in(text):
    return sorted({line.split(":")[0] for line in text.splitlines() if ": error: " in line})


def long_functions(lines):
    """Line, name and length of each function that is longer than a screen. A body is between braces
    that are alone at the left margin; tables, structs and blocks have none there.
    """
    start = None
    for i, line in enumerate(lines):
        if line == "{":
            start = i
            while start > 0 and not re.search(r"^$|^#|[;{}]$|\*/$", lines[start - 1]):
                start -= 1
        elif line == "}" and start is not None:
            n = i - start + 1
            if n > FUNCTION_LINES:
                yield start + 1, re.search(r"(\w+)\(|$", " ".join(lines[start:i]))[1], n
            start = None


def check_c(tree):
    findings = []
    files = tree.named(".c", ".h")
    for file in files:
        lines = (tree.root / file).read_text(encoding="utf-8").split("\n")
        findings += [
            f"{file}:{i}: {len(line)} columns, at most {COLUMNS}: break the line by hand"
            for i, line in enumerate(lines, 1)
            if len(line) > COLUMNS
        ]
        if not file.startswith(NOT_PRODUCT):
            findings += [
                f"{file}:{i}: {name}() has {n} lines, at most {FUNCTION_LINES}: name its steps"
                for i, name, n in long_functions(lines)
            ]
    try:
        command = clang_format()
    except Skip:
        if findings:
            return findings
        raise
    text = tree.run([*command, "--dry-run", "--Werror", "--ferror-limit=1"], files)
    findings += [f"{file}: not formatted. Run: clang-format -i {file}" for file in files_in(text)]
    return findings + ([text] if text and not files_in(text) else [])


def check_black(tree):
    command = [*black(), "--check"]
    findings = []
    for line in tree.run(command, tree.python()).splitlines():
        found = re.match(r"would reformat (.*)", line)
        if found:
            findings.append(f"{found[1]}: not formatted. Run: black -l {COLUMNS} {found[1]}")
        elif line.startswith("error:"):
            findings.append(line)
    return findings


def check_flake8(tree):
    # syntax, comparisons, bare excepts; unused and undefined names; long comments and docstrings,
    # which black leaves as they are
    rules = f"--select=E9,E71,E72,F,W505 --max-doc-length={COLUMNS}"
    command = [tool("flake8"), "--isolated", "--jobs=1", *rules.split()]
    text = tree.run(command, tree.named(".py"))
    return with_advice(text, f"Mend each by hand; run again: flake8 --isolated {rules}")


def check_web(tree):
    files = tree.web()
    findings = [
        f"{file}:{i}: {len(line)} columns, at most {COLUMNS}: break the line by hand"
        for file in files
        for i, line in enumerate((tree.root / file).read_text(encoding="utf-8").split("\n"), 1)
        if len(line) > COLUMNS
    ]
    try:
        command = prettier(tree)
    except Skip:
        if findings:
            return findings
        raise
    text = tree.run([*command, "--list-different"], files)
    return findings + [f"{file}: not formatted. Run: style.py format" for file in text.split()]


def check_shell(tree):
    command = [tool("shellcheck"), "--format=gcc"]
    scripts = tree.shell_scripts()
    ours = [file for file in scripts if not file.startswith(SCRIPTS_OF_USERS)]
    theirs = [file for file in scripts if file.startswith(SCRIPTS_OF_USERS)]
    text = tree.run(command, ours) + tree.run([*command, "--severity=error"], theirs)
    return with_advice(text, "Mend each by hand; run again: shellcheck FILE")


def check_spelling(tree):
    files = sorted({*tree.named(*SPELLED), *tree.shell_scripts()})
    command = [tool("codespell"), f"--ignore-words={IGNORED_WORDS}"]
    return with_advice(
        tree.run(command, files),
        "Run: codespell -I tests/style/ignored_words.txt -w FILE; add a correct word to that list",
    )


def check_meson(tree):
    """The product's source files: one a line and sorted, so a file is found and two changes
    merge."""
    findings = []
    for file in tree.named("meson.build"):
        if file.startswith("tests/"):
            continue
        before = ""
        for i, line in enumerate((tree.root / file).read_text().splitlines(), 1):
            sources = SOURCE.findall(line)
            if len(sources) > 1:
                findings.append(f"{file}:{i}: {len(sources)} source files: one a line")
            is_in_list = re.match(r"\s+'", line) and len(sources) == 1
            if is_in_list and sources[0] < before:
                findings.append(f"{file}:{i}: {sources[0]} comes before {before}: sort the list")
            before = sources[0] if is_in_list else ""
    return findings


def with_advice(text, advice):
    return [*text.splitlines(), advice] if text else []


def format_all(tree):
    for command, files in (
        ([*clang_format(), "-i"], tree.named(".c", ".h")),
        (black(), tree.python()),
        ([*prettier(tree), "--log-level=warn", "--write"], tree.web()),
    ):
        sys.stdout.write(tree.run(command, files))
    return []


CHECKS = {
    "c": check_c,
    "black": check_black,
    "flake8": check_flake8,
    "web": check_web,
    "shell": check_shell,
    "spelling": check_spelling,
    "meson": check_meson,
    "format": format_all,
}


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in CHECKS:
        sys.exit("usage: style.py %s [SOURCE_ROOT]" % "|".join(CHECKS))
    root = sys.argv[2] if len(sys.argv) == 3 else Path(__file__).resolve().parents[2]
    try:
        findings = CHECKS[sys.argv[1]](Tree(root))
    except Skip as e:
        print(e)
        sys.exit(SKIPPED)
    for finding in findings:
        print(finding)
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
