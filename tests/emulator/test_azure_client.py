# SPDX-License-Identifier: Apache-2.0
"""Azure's own client, @azure/arm-compute, against the emulator. It comes from npm into the build directory, once.

    test_azure_client.py EMULATOR CLIENT_DIRECTORY
"""

import json
import os
import re
import shutil
import subprocess
import sys

import rig

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = {"private": True, "type": "module", "dependencies": {"@azure/arm-compute": "22.4.0"}}
SKIPPED = 77  # Meson's
INSTALL_S, RUN_S = 240, 120
NOT_REACHED = r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT"
CONFIGURATION = {
    "dir": "instances",
    "providers": {"azure": {
        "boot_delay_ms": 50, "page": 2, "retry_after_s": 0,
        "clients": [{"client_id": "belay", "client_secret": "s3cret"}],
        "pools": [{"zone": zone, "type": "Standard_D8s_v5", "spot": {"capacity": n, "usd_per_hour": "0.08"},
                   "on_demand": {"usd_per_hour": "0.384"}} for zone, n in (("1", 4), ("2", 0))]}},
}


def skip(why):
    print("skipped: " + why)
    sys.exit(SKIPPED)


def install(directory):
    """Whole or not at all: the mark comes last."""
    mark = os.path.join(directory, "installed")
    if os.path.exists(mark) and open(mark).read() == json.dumps(PACKAGE):
        return
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    with open(os.path.join(directory, "package.json"), "w") as f:
        json.dump(PACKAGE, f)
    try:
        done = subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1"], cwd=directory,
            timeout=INSTALL_S, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except subprocess.TimeoutExpired:
        skip("npm's registry is too slow")
    if done.returncode != 0:
        print(done.stdout)
        if re.search(NOT_REACHED, done.stdout):
            skip("npm's registry cannot be reached")
        sys.exit("npm cannot install the client")
    with open(mark, "w") as f:
        f.write(json.dumps(PACKAGE))


def main():
    program, directory = sys.argv[1], os.path.abspath(sys.argv[2])
    if not shutil.which("node") or not shutil.which("npm"):
        skip("there is no node with npm; scripts/setup installs them")
    install(directory)
    script = os.path.join(directory, "azure_client.mjs")
    shutil.copyfile(os.path.join(HERE, "azure_client.mjs"), script)  # where it finds its packages
    with rig.emulator(program, CONFIGURATION) as ports:
        subprocess.run(["node", script, ports["azure"], ports["azure_tenant"], ports["azure_subscription"]],
                       check=True, timeout=RUN_S, stdin=subprocess.DEVNULL)


main()
