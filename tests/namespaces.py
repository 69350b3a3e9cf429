# SPDX-License-Identifier: Apache-2.0
"""Tests in Linux namespaces of their own, where they may mount and have addresses: nothing outside
is changed, and nothing is left behind. Such a test ends with namespaces.main()."""

import os
import shutil
import subprocess
import sys
import unittest

INSIDE = "BELAY_TEST_IN_NAMESPACE"


def why_not(kinds, probe, programs):
    if os.geteuid() != 0:
        return "namespaces need root"
    for program in ("unshare", *programs):
        if not shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin"):
            return "there is no program %s" % program
    tried = subprocess.run(["unshare", *kinds, "sh", "-c", probe], capture_output=True)
    if tried.returncode != 0:
        return "in namespaces of this machine this fails: %s" % probe
    return None


def main(*kinds, setup="true", probe="true", programs=()):
    """Runs the tests of the main module in new namespaces (options of unshare), after the shell
    command setup. They are skipped where they need more than there is: programs, and what the shell
    command probe does."""
    if os.environ.pop(INSIDE, None):
        unittest.main(verbosity=2)
    reason = why_not(kinds, probe, programs)
    if reason:
        print("SKIP: %s" % reason)
        sys.exit(77)
    os.environ[INSIDE] = "1"
    script = '{ %s; } && exec "$@"' % setup
    os.execvp("unshare", ["unshare", *kinds, "sh", "-c", script, "sh", sys.executable, *sys.argv])
