# SPDX-License-Identifier: Apache-2.0
"""Checks who may include whom: compares every #include with the tables of docs/architecture.md.

rooms.py [SOURCE_ROOT]     default: the checkout that this file is in

The tables are the only statement of the rules. Two are read, found by their first lines:

| room | what is there | may include | libraries |     paths in `backticks`; libraries by name
| where | never | because |                              paths, words

A file belongs to the room with the longest path that it starts with (`base/uv` before `base`),
and may always include its own room. The path of a single module (`cloud/notice`) means its .c
and .h. Permissions are as exact as rooms: permission for `base` does not include `base/uv`. `*`
is everything.
"""

import re
import sys
from pathlib import Path

PAGE = "docs/architecture.md"

# The library of each header outside of the C library; a name ending in "/" is a folder of headers.
LIBRARIES = {
    "uv.h": "libuv",
    "sqlite3.h": "sqlite",
    "curl/": "libcurl",
    "glib.h": "glib",
    "openssl/": "openssl",
    "jansson.h": "jansson",
    "yaml.h": "libyaml",
    "zstd.h": "zstd",
    "expat.h": "expat",
    "popt.h": "popt",
    "libsmartcols/": "libsmartcols",
    "cmocka.h": "cmocka",
    "belay.h": "libbelay",
}

SYSTEM = set(
    """assert ctype dirent dlfcn errno fcntl float fnmatch fts ftw getopt glob grp ifaddrs inttypes libgen limits locale malloc math
    netdb poll pthread pwd regex sched semaphore setjmp signal spawn stdarg stdatomic stdbool stddef stdint
    stdio stdlib stdnoreturn string strings syslog termios threads time unistd utmpx wchar""".split()
)
SYSTEM_FOLDERS = ("sys/", "linux/", "netinet/", "arpa/", "net/", "sanitizer/")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
COMMENT_OR_STRING = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S
)
# A global variable: static, or defined at the left margin; not const, not a function, not a type.
GLOBAL = re.compile(
    r"^(?!.*\bconst\b)(?:\s*static\s[^()]*(?:=.*|;|\{)|(?:(?:struct|enum)\s+)?\w+\s+\**\w+(?:\[[^]]*\])*\s*(?:=.*|;))$"
)
NOT_GLOBAL = re.compile(r"^(?:struct|enum|union|extern|return|goto)\s+\w+;|^typedef\b")


class TableError(Exception):
    pass


class Room:
    def __init__(self, paths, may_include, libraries):
        self.paths, self.may_include, self.libraries = paths, may_include, libraries

    def __str__(self):
        return self.paths[0]


class Ban:
    def __init__(self, where, words, because):
        self.where, self.because = where, because
        self.tests = [(word, test_for(word)) for word in words]

    def is_about(self, file):
        excepted = [path[1:] for path in self.where if path.startswith("!")]
        return any(covers(path, file) for path in self.where) and not any(
            covers(path, file) for path in excepted
        )


def test_for(word):
    if word == "mutable globals":
        return lambda line: GLOBAL.match(line) and not NOT_GLOBAL.match(line)
    return re.compile(r"(?<![A-Za-z0-9_])" + re.escape(word)).search


def covers(path, file):
    """True if the path is this module, or a folder above the file."""
    return path == "*" or file in (path + ".c", path + ".h") or file.startswith(path + "/")


def rows_of(page, first_cell):
    """The rows of the table whose header starts with first_cell, as lists of cells (none has a | in
    it)."""
    rows, inside = [], False
    for line in page.splitlines():
        if not line.startswith("|"):
            if inside:
                break
            continue
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if cells and cells[0] == first_cell:
            inside = True
        elif inside and not set(line) <= set("|-: "):
            rows.append(cells)
    if not rows:
        raise TableError(f'{PAGE}: there is no table that starts with "| {first_cell} |"')
    return rows


def quoted(cell):
    return re.findall(r"`([^`]+)`", cell)


def names(cell):
    return [] if cell in ("", "-") else [name.strip() for name in cell.split(",")]


def read_tables(page):
    rooms = []
    for cells in rows_of(page, "room"):
        if len(cells) != 4 or not quoted(cells[0]):
            raise TableError(
                f"{PAGE}: expected | `room` | what is there | may include | libraries |: {cells}"
            )
        rooms.append(Room(quoted(cells[0]), quoted(cells[2]), names(cells[3])))
    bans = []
    for cells in rows_of(page, "where"):
        if len(cells) != 3 or not quoted(cells[0]) or not quoted(cells[1]):
            raise TableError(f"{PAGE}: expected | `where` | `never` | because |: {cells}")
        bans.append(Ban(quoted(cells[0]), quoted(cells[1]), cells[2]))
    known = set(LIBRARIES.values()) | {"*"}
    for room in rooms:
        for library in room.libraries:
            if library not in known:
                raise TableError(f"{PAGE}: {room}: {library} is none of {', '.join(sorted(known))}")
    return rooms, bans


def room_of(rooms, file):
    """The room of a file and the path by which it belongs there, or (None, "")."""
    best, by = None, ""
    for room in rooms:
        for path in room.paths:
            if covers(path, file) and len(path) > len(by):
                best, by = room, path
    return best, by


def library_of(header):
    for prefix, library in LIBRARIES.items():
        if header == prefix or (prefix.endswith("/") and header.startswith(prefix)):
            return library
    return None


def is_system(header):
    return header.startswith(SYSTEM_FOLDERS) or (header.endswith(".h") and header[:-2] in SYSTEM)


def without_comments(text, keep_strings):
    def blank(match):
        found = match.group()
        if keep_strings and found[0] in "\"'":
            return found
        return found[0] + found[-1] if found[0] in "\"'" else "\n" * found.count("\n")

    return COMMENT_OR_STRING.sub(blank, text)


class Check:
    def __init__(self, root):
        self.root = Path(root)
        self.rooms, self.bans = read_tables((self.root / PAGE).read_text())
        self.findings, self.n_files, self.n_includes = [], 0, 0

    def run(self):
        for room in self.rooms:
            for path in room.paths + room.may_include:
                if path != "*" and not self.exists(path):
                    self.findings.append(f"{PAGE}: {room}: there is no {path}")
        for file in self.sources():
            self.file(file)
        return self.findings

    def exists(self, path):
        return any((self.root / (path + end)).exists() for end in ("", ".h", ".c"))

    def sources(self):
        """All .c and .h files outside of build directories."""
        for top in sorted(self.root.iterdir()):
            if (
                top.is_dir()
                and not top.name.startswith(".")
                and not (top / "meson-private").exists()
            ):
                for file in sorted(top.rglob("*.[ch]")):
                    yield file.relative_to(self.root).as_posix()

    def file(self, file):
        self.n_files += 1
        room, _ = room_of(self.rooms, file)
        if not room:
            self.findings.append(f"{file}: is in no room of {PAGE}")
            return
        text = (self.root / file).read_text()
        for n, line in enumerate(without_comments(text, True).splitlines(), 1):
            found = INCLUDE.match(line)
            if found:
                self.n_includes += 1
                refused = (
                    self.angled(room, found[2])
                    if found[1] == "<"
                    else self.quoted(room, file, found[2])
                )
                if refused:
                    self.findings.append(f"{file}:{n}: {line.strip()}: {refused}")
        self.words(file, without_comments(text, False))

    def angled(self, room, header):
        library = library_of(header)
        if library is None:
            return (
                None
                if is_system(header)
                else "tests/rooms/rooms.py does not know whose header this is"
            )
        if library in room.libraries or "*" in room.libraries:
            return None
        return f"{room} may use {', '.join(room.libraries) or 'no library'}"

    def quoted(self, room, file, header):
        target = self.resolve(file, header)
        if target is None:
            return "there is no such file"
        other, by = room_of(self.rooms, target)
        if other is room:
            return None
        for path in room.may_include:
            if path == "*" or (covers(path, target) and len(path) >= len(by)):
                return None
        return f"{room} may include {', '.join(room.may_include) or 'only its own'}"

    def resolve(self, file, header):
        """The path of an included header from the root: relative to the root, else to the file's
        folder.
        """
        for start in (self.root, (self.root / file).parent):
            target = (start / header).resolve()
            if target.is_file() and target.is_relative_to(self.root.resolve()):
                return target.relative_to(self.root.resolve()).as_posix()
        return None

    def words(self, file, text):
        for ban in self.bans:
            for n, line in enumerate(text.splitlines() if ban.is_about(file) else [], 1):
                self.findings += [
                    f"{file}:{n}: {word}: {ban.because}" for word, test in ban.tests if test(line)
                ]


def main():
    if len(sys.argv) > 2:
        sys.exit("usage: rooms.py [SOURCE_ROOT]")
    root = sys.argv[1] if len(sys.argv) == 2 else Path(__file__).resolve().parents[2]
    try:
        check = Check(root)
        findings = check.run()
    except TableError as e:
        sys.exit(str(e))
    for finding in findings:
        print(finding)
    print(f"{check.n_includes} includes of {check.n_files} files: {len(findings)} wrong")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
