# SPDX-License-Identifier: Apache-2.0
"""embed.py FILE NAME: prints a C source in which NAME is the text of FILE, but for its lines of
comments."""

import sys

path, name = sys.argv[1:]
print("/* Made of %s by base/embed.py. */" % path.rsplit("/", 1)[-1])
print("extern const char %s[];" % name)
print("const char %s[] =" % name)
with open(path, encoding="utf-8") as f:
    for line in f:
        if not line.startswith("#"):
            print(
                '    "%s\\n"'
                % line.rstrip("\n").replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
            )
print("    ;")
