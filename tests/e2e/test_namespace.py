# SPDX-License-Identifier: Apache-2.0
"""The metadata service at its real address, http://169.254.169.254, in the test's own network
namespace."""

import os
import sys
import unittest

from lab import Lab, undisturbed

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import namespaces  # noqa: E402

SETUP = "ip link set lo up && ip address add 169.254.169.254/32 dev lo"


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
            self.assertEqual(l.said(job), undisturbed("chain.py", 150, 0))
            metadata = {i["metadata"] for i in l.state()["instances"] if i["metadata"]}
            self.assertLessEqual(metadata, {"http://169.254.169.254"})


if __name__ == "__main__":
    namespaces.main("-n", setup=SETUP, programs=["ip"])
