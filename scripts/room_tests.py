# SPDX-License-Identifier: Apache-2.0
"""Which tests belong to a room, read from the suites of a build directory.

    room_tests.py BUILD            the rooms that have quick tests, one a line
    room_tests.py BUILD ROOM       "target PATH" and "test NAME" for each thing to build and to run
    room_tests.py BUILD --unit     the same for the unit tests of all rooms

Every test() in meson.build names its kind (`unit`) and its room (`core`) as suites; a test may
belong to several rooms. A room is called by the last part of its path: `core` is scheduler/core,
and its folder scheduler/core/queue is `queue`.
Quick tests are those of the kinds in QUICK; the others start whole systems.

Exit code: 0; 2 if no room of that name has quick tests, with the list of rooms that have.
"""

import json
import os
import subprocess
import sys

QUICK = {"unit", "sim", "style", "fuzz-replay"}
KINDS = {"unit", "sim", "fuzz-replay", "integration", "real", "e2e", "attack", "chaos", "programs"}


def introspect(build, what):
    command = ["meson", "introspect", build, "--" + what]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def suites_of(test):
    # Meson writes "project:suite".
    return {suite.split(":")[-1] for suite in test["suite"]}


def quick_tests(tests):
    """room -> its quick tests, in the order of meson.build."""
    rooms = {}
    for test in tests:
        suites = suites_of(test)
        if suites & QUICK:
            for room in suites - KINDS:
                rooms.setdefault(room, []).append(test)
    return rooms


def files_to_build(build, tests, targets):
    """Paths within the build directory, sorted."""
    wanted = {target for test in tests for target in test["depends"]}
    files = [file for target in targets if target["id"] in wanted for file in target["filename"]]
    return sorted(os.path.relpath(file, os.path.realpath(build)) for file in files)


def unknown(room, rooms):
    names = " ".join(sorted(rooms))
    return f"room_tests.py: no room {room!r} has quick tests; those that have are: {names}"


def main(build, name=None):
    tests = introspect(build, "tests")
    rooms = quick_tests(tests)
    if name is None:
        print("\n".join(sorted(rooms)))
        return 0
    if name == "--unit":
        chosen = [test for test in tests if "unit" in suites_of(test)]
    else:
        chosen = rooms.get(name.strip("/").split("/")[-1])
    if chosen is None:
        print(unknown(name, rooms), file=sys.stderr)
        return 2
    for file in files_to_build(build, chosen, introspect(build, "targets")):
        print("target", file)
    for test in chosen:
        print("test", test["name"])
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
