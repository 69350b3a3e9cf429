# SPDX-License-Identifier: Apache-2.0
"""Azure's own client, @azure/arm-compute, against the emulator. It is installed from npm into the
build directory, once.

test_azure_client.py EMULATOR CLIENT_DIRECTORY
"""

import os
import shutil
import subprocess
import sys

import rig

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import npm

PACKAGE = {"private": True, "type": "module", "dependencies": {"@azure/arm-compute": "22.4.0"}}
RUN_S = 120
CONFIGURATION = {
    "dir": "instances",
    "providers": {
        "azure": {
            "boot_delay_ms": 50,
            "page": 2,
            "retry_after_s": 0,
            "clients": [{"client_id": "belay", "client_secret": "s3cret"}],
            "pools": [
                {
                    "zone": zone,
                    "type": "Standard_D8s_v5",
                    "spot": {"capacity": n, "usd_per_hour": "0.08"},
                    "on_demand": {"usd_per_hour": "0.384"},
                }
                for zone, n in (("1", 4), ("2", 0))
            ],
        }
    },
}


def main():
    program, directory = sys.argv[1], os.path.abspath(sys.argv[2])
    npm.install(directory, PACKAGE, "the client")
    script = os.path.join(directory, "azure_client.mjs")
    shutil.copyfile(os.path.join(HERE, "azure_client.mjs"), script)  # where it finds its packages
    with rig.emulator(program, CONFIGURATION) as ports:
        subprocess.run(
            ["node", script, ports["azure"], ports["azure_tenant"], ports["azure_subscription"]],
            check=True,
            timeout=RUN_S,
            stdin=subprocess.DEVNULL,
        )


main()
