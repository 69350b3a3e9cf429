# SPDX-License-Identifier: Apache-2.0
"""Puts the variables that stand for the flags of jobs into a manual page: a list item for each row
of the table of options that has some. usage: variables.py PRINT_ATTRIBUTES PAGE.in >PAGE"""

import json
import subprocess
import sys


def items(table):
    for row in table:
        if "env" in row:
            yield ".It Ev " + " , ".join(row["env"].split())
            yield ".Fl Fl " + row["flag"]


def main(program, page):
    table = json.loads(subprocess.check_output([program]))
    with open(page) as f:
        sys.stdout.write(f.read().replace("@VARIABLES@", "\n".join(items(table))))


if __name__ == "__main__":
    main(*sys.argv[1:])
