# SPDX-License-Identifier: Apache-2.0
"""A belay-emulator for tests in Python."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time

READY_S = 30


@contextlib.contextmanager
def emulator(program, configuration):
    """Runs the emulator in a temporary directory; yields the content of its port file."""
    with tempfile.TemporaryDirectory(prefix="belay-test.") as directory:
        config, ports = os.path.join(directory, "emulator.yaml"), os.path.join(
            directory, "ports.json"
        )
        with open(config, "w") as f:
            json.dump(configuration, f)  # which is YAML too
        with open(os.path.join(directory, "log"), "w+") as log:
            child = subprocess.Popen(
                [program, "--config", config, "--port-file", ports],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            end = time.monotonic() + READY_S
            try:
                while not os.path.exists(ports):
                    if child.poll() is not None or time.monotonic() > end:
                        sys.exit("the emulator did not start")
                    time.sleep(0.02)
                with open(ports) as f:
                    yield json.load(f)
            finally:
                child.terminate()
                if child.wait(READY_S) != 0:
                    log.seek(0)
                    sys.exit(
                        "the emulator's exit code is %d; its log:\n%s"
                        % (child.returncode, log.read())
                    )
