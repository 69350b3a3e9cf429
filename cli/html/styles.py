# SPDX-License-Identifier: Apache-2.0
"""styles.py TOKENS FILE: prints a C source with the style sheet of the reports, made of the tokens
of the web console and FILE: report_css, and report_mail_css, in which all variables are replaced by
the colours for light, because programs that show mail know neither.
"""

import re
import sys


def plain(text):
    """The style sheet without variables."""
    values = dict(re.findall(r"(--[\w-]+):\s*([^;]+);", text))
    text = re.sub(r"--[\w-]+:[^;]+;\s*", "", text)
    for _ in range(3):  # a variable may have another one as its value
        text = re.sub(r"var\((--[\w-]+)\)", lambda m: values[m[1]], text)
    text = re.sub(r"light-dark\(([^,()]+),[^()]+\)", r"\1", text)
    return re.sub(r"color-scheme:[^;]*;", "", text)


def small(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def literal(name, text):
    print("extern const char %s[];\nconst char %s[] =" % (name, name))
    for line in text.splitlines():
        print('    "%s\\n"' % line.replace("\\", "\\\\").replace('"', '\\"'))
    print("    ;")


text = ""
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as f:
        text += f.read()
print("/* Made by cli/html/styles.py. */")
literal("report_css", small(text))
literal("report_mail_css", small(plain(text)))
