# SPDX-License-Identifier: Apache-2.0
"""Third-party programs from npm, for tests in Python; without npm or network they are skipped."""

import json
import os
import re
import shutil
import subprocess
import sys

SKIPPED = 77  # Meson's exit code for a skipped test
INSTALL_S = 240
NOT_REACHED = r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT"


def skip(why):
    print("skipped: " + why)
    sys.exit(SKIPPED)


def install(directory, package, what):
    """Installs the dependencies of `package` (of a package.json) below the directory, once. The
    marker file is written last, so an interrupted installation is repeated. `what` is named in
    errors.
    """
    if not shutil.which("node") or not shutil.which("npm"):
        skip("there is no node with npm; scripts/setup installs them")
    mark = os.path.join(directory, "installed")
    if os.path.exists(mark):
        with open(mark) as f:
            if f.read() == json.dumps(package):
                return
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    with open(os.path.join(directory, "package.json"), "w") as f:
        json.dump(package, f)
    try:
        done = subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1"],
            cwd=directory,
            timeout=INSTALL_S,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except subprocess.TimeoutExpired:
        skip("npm's registry is too slow")
    if done.returncode != 0:
        print(done.stdout)
        if re.search(NOT_REACHED, done.stdout):
            skip("npm's registry cannot be reached")
        sys.exit("npm cannot install %s" % what)
    with open(mark, "w") as f:
        f.write(json.dumps(package))
