# SPDX-License-Identifier: Apache-2.0
"""Installed programs are hardened: test_hardening.py SOURCE COMPILER PROGRAM... (of the build that
the test belongs to).

The built files are examined with readelf. A second build directory, set up for a release, shows
the compiler's flags; one library and some objects of each program are built in it. Programs of a
release that were built beside this build are examined as well.
"""

import glob
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest

SOURCE, COMPILER, FILES = sys.argv[1], sys.argv[2], sys.argv[3:]
ENDBR64 = b"\xf3\x0f\x1e\xfa"
BTI = (0xD503245F, 0xD503233F)  # bti c, paciasp
# The note of an object about indirect branches and returns. A program has it only if the C
# library's objects have it.
NOTE = {"x86_64": r"x86 feature: IBT, SHSTK", "aarch64": r"AArch64 feature: BTI, PAC"}.get(
    platform.machine()
)

# Sources of each program, and of the libraries common to all, that have buffers and call functions
# which _FORTIFY_SOURCE replaces.
SOURCES = {
    "scheduler/belayd": [
        "scheduler/main.c",
        "scheduler/daemon.c",
        "scheduler/core/model/text.c",
        "db/open.c",
    ],
    "agent/belay-agent": ["agent/main.c", "agent/task/task_work.c", "agent/config.c"],
    "cli/belay": ["cli/main.c", "cli/checkpoint_store.c"],
    "emulator/belay-emulator": ["emulator/main.c", "emulator/config.c"],
    "of all": ["base/str.c", "base/fs.c", "ckpt/begin.c", "cloud/call.c"],
}


def said(*command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def symbols(path, binding=r"\w+"):
    """Name -> value, type and section: from the symbol table of a program that is not stripped,
    else from its exported symbols.
    """
    found = {}
    for line in said("readelf", "-sW", path).splitlines():
        m = re.match(
            r"\s*\d+: ([0-9a-f]+)\s+(\d+) (\w+)\s+%s\s+\w+\s+(\w+) ([^\s@]+)" % binding, line
        )
        if m:
            found.setdefault(m[5], (int(m[1], 16), m[3], m[4]))
    return found


def functions_of_object(path):
    """Name -> first bytes of each exported function."""
    sections = {}
    for line in said("readelf", "-SW", path).splitlines():
        m = re.match(r"\s*\[\s*(\d+)\] \S+\s+PROGBITS\s+[0-9a-f]+ ([0-9a-f]+)", line)
        if m:
            sections[m[1]] = int(m[2], 16)
    found = {}
    with open(path, "rb") as f:
        for name, (value, kind, where) in symbols(path, "GLOBAL").items():
            if kind == "FUNC" and where in sections:
                f.seek(sections[where] + value)
                found[name] = f.read(4)
    return found


def fortify_level():
    """The highest level that this compiler and its libc accept without a warning."""
    flags = [
        "-O2",
        "-Werror",
        "-U_FORTIFY_SOURCE",
        "-D_FORTIFY_SOURCE=3",
        "-x",
        "c",
        "-c",
        "-",
        "-o",
        "/dev/null",
    ]
    done = subprocess.run(
        [COMPILER, *flags],
        input="#include <string.h>\nint main(void) { return 0; }\n",
        text=True,
        capture_output=True,
    )
    return 3 if done.returncode == 0 else 2


def release_programs():
    """Programs of these sources in build directories for a release, unless the flags may have
    changed since.
    """
    found = []
    for told in glob.glob(os.path.join(SOURCE, "build*", "meson-info", "intro-buildoptions.json")):
        with open(told) as f:
            options = {o["name"]: o["value"] for o in json.load(f)}
        if (
            options["optimization"] in ("0", "plain")
            or options["b_sanitize"] not in ("none", [])
            or options.get("fuzz")
        ):
            continue
        build = os.path.dirname(os.path.dirname(told))
        programs = (os.path.join(build, name) for name in (*SOURCES, "simtest/belay-sim"))
        found += [
            p
            for p in programs
            if os.path.exists(p)
            and os.path.getmtime(p) > os.path.getmtime(os.path.join(SOURCE, "meson.build"))
        ]
    return found


def code_at(path, address, n):
    """n bytes of the file at this address."""
    for line in said("readelf", "-lW", path).splitlines():
        m = re.match(r"\s*LOAD\s+(0x\w+) (0x\w+) 0x\w+ (0x\w+)", line)
        if m:
            offset, start, size = (int(x, 16) for x in m.groups())
            if start <= address < start + size:
                with open(path, "rb") as f:
                    f.seek(offset + address - start)
                    return f.read(n)
    raise AssertionError("%s: nothing is at %#x" % (path, address))


class Hardening(unittest.TestCase):
    def need(self, path, text, pattern, there=True):
        if bool(re.search(pattern, text)) != there:
            self.fail(
                "%s: %s %r in what readelf says"
                % (path, "there is no" if there else "there is", pattern)
            )

    def check_file(self, path, compiled=True):
        """compiled: checks also what the compiler adds; sanitized builds lack it."""
        with self.subTest(path):
            header, dynamic = said("readelf", "-hlW", path), said("readelf", "-dW", path)
            self.need(path, header, r"Type:\s+DYN")
            if "INTERP" in header:
                self.need(path, dynamic, r"Flags:.*\bPIE\b")
            self.need(path, header, r"GNU_RELRO")
            self.need(path, dynamic, r"\bNOW\b")
            self.need(path, dynamic, r"TEXTREL", False)
            self.need(path, header, r"GNU_STACK\s.*\sRW\s")
            self.need(path, header, r"LOAD\s.*\sRWE\s", False)
            if compiled:
                self.need(path, " ".join(symbols(path)), r"\b__stack_chk_fail\b")

    def check_entries(self, path, found):
        """A function that an indirect branch may reach begins with a landing instruction."""
        functions = [
            v
            for name, (v, kind, where) in found.items()
            if kind == "FUNC" and where != "UND" and (name == "main" or name.startswith("belay_"))
        ]
        self.assertTrue(functions, path)
        for address in functions[:20]:
            self.check_entry(path, code_at(path, address, 4))

    def check_entry(self, where, code):
        if platform.machine() == "x86_64":
            self.assertEqual(code, ENDBR64, where)
        elif platform.machine() == "aarch64":
            self.assertIn(struct.unpack("<I", code)[0], BTI, where)

    def test_what_is_installed(self):
        programs = [f for f in FILES if not f.endswith(".tar.gz")]
        self.assertGreaterEqual(len(programs), 5)
        for path in programs:
            self.check_file(path, not self.is_sanitized(path))
            if not self.is_sanitized(path):
                self.check_entries(path, symbols(path))

    def is_sanitized(self, path):
        return "libasan" in said("readelf", "-dW", path) or "__asan_init" in symbols(path)

    def test_what_is_in_the_bundle(self):
        for bundle in [f for f in FILES if f.endswith(".tar.gz")]:
            with tempfile.TemporaryDirectory() as d, tarfile.open(bundle) as t:
                ours = [
                    m
                    for m in t.getmembers()
                    if m.isfile()
                    and (
                        re.search(r"(^|/)bin/belay[^/.]*$", m.name)
                        or re.search(r"libbelay\.so", m.name)
                    )
                ]
                self.assertGreaterEqual(len(ours), 4, [m.name for m in ours])
                for m in ours:
                    t.extract(m, d)
                    self.check_file(
                        os.path.join(d, m.name), not self.is_sanitized(os.path.join(d, m.name))
                    )

    def test_compiler_options_of_a_release(self):
        flags = [
            "-fstack-protector-strong",
            "-fstack-clash-protection",
            "-fPI",
            "-Wformat-security",
        ]
        flags += {
            "x86_64": ["-fcf-protection=full"],
            "aarch64": ["-mbranch-protection=standard"],
        }.get(platform.machine(), [])
        with tempfile.TemporaryDirectory() as d:
            env = {
                k: v for k, v in os.environ.items() if k not in ("CFLAGS", "CPPFLAGS", "LDFLAGS")
            }
            said("meson", "setup", "--buildtype=release", d, SOURCE, env={**env, "CC": COMPILER})
            with open(os.path.join(d, "compile_commands.json")) as f:
                commands = [c["command"] for c in json.load(f)]
            self.assertGreater(len(commands), 300)
            for command in commands:
                for flag in flags:
                    if " " + flag not in command:
                        self.fail("there is no %s in %s" % (flag, command))
                self.assertIn("-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=%d " % fortify_level(), command)
            with open(os.path.join(d, "build.ninja")) as f:
                library = re.search(
                    r"^build (ckpt/lib/libbelay\.so[.\d]*): c_LINKER", f.read(), re.M
                )[1]
            said("ninja", "-C", d, library, env=env)
            built = os.path.join(d, library)
            self.check_file(built)
            found = symbols(built)
            self.check_entries(built, found)
            self.assertTrue([s for s in found if s.endswith("_chk") and s.startswith("__")])
            self.check_objects(d, env)

    def check_objects(self, build, env):
        """Linking whole programs would take minutes; some of their objects already show the
        compiler's part.
        """
        with open(os.path.join(build, "compile_commands.json")) as f:
            objects = {
                os.path.relpath(os.path.join(c["directory"], c["file"]), SOURCE): c["output"]
                for c in json.load(f)
                if "implicit" not in c["output"]
            }
        said(
            "ninja",
            "-C",
            build,
            *(objects[s] for sources in SOURCES.values() for s in sources),
            env=env
        )
        for program, sources in SOURCES.items():
            with self.subTest(program):
                used = set()
                for source in sources:
                    path = os.path.join(build, objects[source])
                    functions = functions_of_object(path)
                    self.assertTrue(functions, source)
                    for name, code in functions.items():
                        self.check_entry("%s of %s" % (name, source), code)
                    if NOTE:
                        self.need(path, said("readelf", "-nW", path), NOTE)
                    used |= set(symbols(path))
                self.assertIn("__stack_chk_fail", used)
                self.assertTrue([s for s in used if re.fullmatch(r"__\w+_chk", s)], program)

    def test_programs_of_a_release_that_are_built(self):
        for path in release_programs():
            self.check_file(path)
            with self.subTest(path):
                self.check_entries(path, symbols(path))


if __name__ == "__main__":
    for program in "readelf", "meson", "ninja":
        if not shutil.which(program):
            print("SKIP: there is no program %s" % program)
            sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
