# SPDX-License-Identifier: Apache-2.0
"""The metadata service at its real address, http://169.254.169.254, in the test's own network
namespace."""

import os
import re
import shutil
import subprocess
import sys
import unittest

from lab import Lab, undisturbed

INSIDE = "BELAY_TEST_IN_NAMESPACE"
SETUP = 'ip link set lo up && ip address add 169.254.169.254/32 dev lo && exec "$@"'


class Namespace(unittest.TestCase):
    def test_notice_is_read_at_the_real_address(self):
        # One machine at a time, because they share the address. The agents' configuration does not
        # name it.
        with Lab(
            cloud={"metadata": {"host": "169.254.169.254", "port": 80}},
            pool={"max_nodes": 1},
            agent_prelude="unset BELAY_METADATA",
        ) as l:
            job = l.submit("chain.py", 150, method="coop", every_ms=3600000)
            l.wait_log(job, "^step 30 ")
            first = l.instance_of(job)
            l.cloud({"reclaim": {"instance": first, "notice_s": 4}})
            shown = l.wait_ended(job)
            self.assertEqual([a["end"] for a in shown["attempts"]], ["reclaimed", "succeeded"])
            self.assertEqual([c["cause"] for c in shown["checkpoints"]], ["notice"])
            self.assertEqual(
                re.sub(r"^---- belay: .* ----\n", "", l.log(job), flags=re.M),
                undisturbed("chain.py", 150, 0),
            )
            metadata = {i["metadata"] for i in l.state()["instances"] if i["metadata"]}
            self.assertLessEqual(metadata, {"http://169.254.169.254"})


def why_not():
    if os.geteuid() != 0:
        return "a network namespace needs root"
    for program in ("unshare", "ip"):
        if not shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin"):
            return "there is no program %s" % program
    if subprocess.run(["unshare", "-n", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        return "this machine makes no network namespaces"
    return None


def main():
    if os.environ.pop(INSIDE, None):
        unittest.main(verbosity=2)
        return
    reason = why_not()
    if reason:
        print("SKIP: %s" % reason)
        return
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", "-n", "sh", "-c", SETUP, "sh", sys.executable, *sys.argv])


if __name__ == "__main__":
    main()
