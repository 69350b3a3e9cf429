# SPDX-License-Identifier: Apache-2.0
"""What is installed is hardened: test_hardening.py SOURCE COMPILER PROGRAM... (of the build that the test belongs to).

The built files are looked at with readelf. A second build directory, set up for a release, shows what the compiler is told then, and
one library of it is built.
"""

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
BTI = (0xd503245f, 0xd503233f)  # bti c, paciasp


def said(*command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def symbols(path):
    """Name: value, size; of the table of a program that is not stripped, else of what it exports."""
    found = {}
    for line in said("readelf", "-sW", path).splitlines():
        m = re.match(r"\s*\d+: ([0-9a-f]+)\s+(\d+) (\w+)\s+\w+\s+\w+\s+(\w+) ([^\s@]+)", line)
        if m:
            found.setdefault(m[5], (int(m[1], 16), m[3], m[4]))
    return found


def code_at(path, address, n):
    """n bytes of the file, where its segments put that address."""
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
            self.fail("%s: %s %r in what readelf says" % (path, "there is no" if there else "there is", pattern))

    def check_file(self, path, compiled=True):
        """compiled: also what the compiler adds, of which sanitized builds have none."""
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
        """An indirect branch may end at a function only if that begins so."""
        functions = [v for name, (v, kind, where) in found.items()
                     if kind == "FUNC" and where != "UND" and (name == "main" or name.startswith("belay_"))]
        self.assertTrue(functions, path)
        for address in functions[:20]:
            code = code_at(path, address, 4)
            if platform.machine() == "x86_64":
                self.assertEqual(code, ENDBR64)
            elif platform.machine() == "aarch64":
                self.assertIn(struct.unpack("<I", code)[0], BTI)

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
                ours = [m for m in t.getmembers() if m.isfile() and
                        (re.search(r"(^|/)bin/belay[^/.]*$", m.name) or re.search(r"libbelay\.so", m.name))]
                self.assertGreaterEqual(len(ours), 4, [m.name for m in ours])
                for m in ours:
                    t.extract(m, d)
                    self.check_file(os.path.join(d, m.name), not self.is_sanitized(os.path.join(d, m.name)))

    def test_what_the_compiler_is_told_for_a_release(self):
        flags = ["-fstack-protector-strong", "-fstack-clash-protection", "-fPI", "-Wformat-security"]
        flags += {"x86_64": ["-fcf-protection=full"], "aarch64": ["-mbranch-protection=standard"]}.get(platform.machine(), [])
        with tempfile.TemporaryDirectory() as d:
            env = {k: v for k, v in os.environ.items() if k not in ("CFLAGS", "CPPFLAGS", "LDFLAGS")}
            said("meson", "setup", "--buildtype=release", d, SOURCE, env={**env, "CC": COMPILER})
            with open(os.path.join(d, "compile_commands.json")) as f:
                commands = [c["command"] for c in json.load(f)]
            self.assertGreater(len(commands), 300)
            for command in commands:
                for flag in flags:
                    if " " + flag not in command:
                        self.fail("there is no %s in %s" % (flag, command))
                self.assertRegex(command, "-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=[23]")
            with open(os.path.join(d, "build.ninja")) as f:
                library = re.search(r"^build (ckpt/lib/libbelay\.so[.\d]*): c_LINKER", f.read(), re.M)[1]
            said("ninja", "-C", d, library, env=env)
            built = os.path.join(d, library)
            self.check_file(built)
            found = symbols(built)
            self.check_entries(built, found)
            self.assertTrue([s for s in found if s.endswith("_chk") and s.startswith("__")])


if __name__ == "__main__":
    for program in "readelf", "meson", "ninja":
        if not shutil.which(program):
            print("SKIP: there is no program %s" % program)
            sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
