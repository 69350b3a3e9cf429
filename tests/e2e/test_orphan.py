# SPDX-License-Identifier: Apache-2.0
"""A machine whose belayd is gone for good ends itself, and where one that is switched off goes on costing money, it has
itself deleted."""

import glob
import os
import unittest

from lab import GCP, Lab, nothing_is_left, read_bytes

ACCOUNT = "nodes@lab.iam.gserviceaccount.com"
COMPUTE = "https://www.googleapis.com/auth/compute"
IDENTITY = "/subscriptions/%s/resourceGroups/lab/providers/Microsoft.ManagedIdentity/userAssignedIdentities/nodes"
EMULATED = "00000000-0000-0000-0000-000000000001"


class Orphan(unittest.TestCase):
    def orphan(self, provider, pool=None, cloud=None, faults=()):
        """What becomes of a machine that has saved and ended its job because nobody answers; belayd stays dead."""
        with Lab(provider=provider, pool=pool, cloud=cloud, belayd={"orphan_timeout": "2s"}) as l:
            job = l.submit("chain.py", 3000, method="coop", every_ms=3600000)
            l.wait_log(job, "^step 20 ")
            machine = l.emulated(l.wait(lambda: l.instance_of(job), "the launch is answered"))["instance"]
            for fault in faults:
                l.cloud(fault)
            l.kill_belayd()

            def is_over(state):
                i = next(i for i in state["instances"] if i["instance"] == machine)
                return i["state"] == "stopped" or i["gone_ms"]
            state = l.wait_cloud(is_over, "the machine is over")
            l.wait_cloud(lambda s: not l.agents(), "the agent is over")
            said = "".join(read_bytes(path).decode(errors="replace")
                           for path in glob.glob(os.path.join(l.dir, "machines", "*.console")))
            self.assertEqual(len(l.manifests(job)), 1)  # it was saved before
            self.assertNotIn("ya29.", said)
            self.assertNotIn("Bearer", said)
            is_deleted = nothing_is_left(state)
            l.up()
            l.post("/jobs/%d/cancel" % job)
            l.wait_cloud(nothing_is_left, "belayd, when it is back, deletes what was switched off")
            return "deleted" if is_deleted else "stopped", said

    def test_on_aws_power_off_is_the_end(self):
        what, said = self.orphan("aws")
        self.assertEqual(what, "deleted")
        self.assertNotIn("cannot delete", said)

    def test_on_gcp_it_deletes_itself(self):
        accounts = GCP["service_accounts"] + [{"email": ACCOUNT, "key_file": "nodes-key.json"}]
        what, said = self.orphan(
            "gcp", {"service_account": ACCOUNT, "scopes": [COMPUTE]}, {"service_accounts": accounts},
            [{"refuse": {"action": "instances.delete", "code": "backendError"}}])
        self.assertEqual(what, "deleted", said)
        self.assertIn("this machine is not deleted yet", said)

    def test_on_gcp_without_an_account_it_is_stopped(self):
        what, said = self.orphan("gcp")
        self.assertEqual(what, "stopped")
        self.assertIn("this machine cannot delete itself: HTTP status 404", said)

    def test_on_gcp_without_the_right_it_is_stopped(self):
        accounts = GCP["service_accounts"] + [{"email": ACCOUNT, "key_file": "nodes-key.json", "role": "viewer"}]
        what, said = self.orphan("gcp", {"service_account": ACCOUNT}, {"service_accounts": accounts})
        self.assertEqual(what, "stopped")
        self.assertIn("this machine cannot delete itself: HTTP status 403", said)

    def test_on_azure_it_deletes_itself_with_its_parts(self):
        what, said = self.orphan("azure", {"identity": IDENTITY % EMULATED})
        self.assertEqual(what, "deleted", said)

    def test_on_azure_without_an_identity_it_is_stopped(self):
        what, said = self.orphan("azure")
        self.assertEqual(what, "stopped")
        self.assertIn("this machine cannot delete itself: HTTP status 400", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
