# SPDX-License-Identifier: Apache-2.0
"""A machine whose belayd is gone for good ends itself; where a switched-off machine still costs
money, it deletes itself."""

import concurrent.futures
import glob
import os
import unittest

from lab import GCP, Lab, nothing_is_left, read_bytes

ACCOUNT = "nodes@lab.iam.gserviceaccount.com"
COMPUTE = "https://www.googleapis.com/auth/compute"
IDENTITY = "/subscriptions/%s/resourceGroups/lab/providers/Microsoft.ManagedIdentity/userAssignedIdentities/nodes"
EMULATED = "00000000-0000-0000-0000-000000000001"


def orphan(provider, pool=None, cloud=None, faults=()):
    """A machine whose job has saved and ended must end too, with belayd dead for good."""
    case = unittest.TestCase()
    with Lab(provider=provider, pool=pool, cloud=cloud, belayd={"orphan_timeout": "2s"}) as l:
        job = l.submit("chain.py", 3000, method="coop", every_ms=3600000)
        l.wait_log(job, "^step 20 ")
        machine = l.emulated(l.wait(lambda: l.instance_of(job), "the launch is answered"))[
            "instance"
        ]
        for fault in faults:
            l.cloud(fault)
        l.kill_belayd()

        def is_over(state):
            i = next(i for i in state["instances"] if i["instance"] == machine)
            return i["state"] == "stopped" or i["gone_ms"]

        state = l.wait_cloud(is_over, "the machine is over")
        l.wait_cloud(lambda s: not l.agents(), "the agent is over")
        said = "".join(
            read_bytes(path).decode(errors="replace")
            for path in glob.glob(os.path.join(l.dir, "machines", "*.console"))
        )
        case.assertEqual(len(l.manifests(job)), 1)  # it was saved first
        case.assertNotIn("ya29.", said)
        case.assertNotIn("Bearer", said)
        is_deleted = nothing_is_left(state)
        l.up()
        l.post("/jobs/%d/cancel" % job)
        l.wait_cloud(nothing_is_left, "belayd, when it is back, deletes what was switched off")
        return "deleted" if is_deleted else "stopped", said


def gcp_accounts(**more):
    return {
        "service_accounts": GCP["service_accounts"]
        + [{"email": ACCOUNT, "key_file": "nodes-key.json", **more}]
    }


# In parallel, because it takes long to establish that belayd does not answer.
CASES = {
    "aws": ("aws",),
    "gcp": (
        "gcp",
        {"service_account": ACCOUNT, "scopes": [COMPUTE]},
        gcp_accounts(),
        [{"refuse": {"action": "instances.delete", "code": "backendError"}}],
    ),
    "gcp without an account": ("gcp",),
    "gcp without the right": ("gcp", {"service_account": ACCOUNT}, gcp_accounts(role="viewer")),
    "azure": ("azure", {"identity": IDENTITY % EMULATED}),
    "azure without an identity": ("azure",),
}


class Orphan(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lanes = concurrent.futures.ThreadPoolExecutor(len(CASES))
        cls.found = {name: cls.lanes.submit(orphan, *case) for name, case in CASES.items()}
        cls.addClassCleanup(cls.lanes.shutdown)

    def check(self, name, expected, text):
        what, said = self.found[name].result()
        self.assertEqual(what, expected, said)
        self.assertIn(text, said)
        return said

    def test_on_aws_power_off_is_the_end(self):
        self.assertNotIn("cannot delete", self.check("aws", "deleted", ""))

    def test_on_gcp_it_deletes_itself(self):
        self.check("gcp", "deleted", "this machine is not deleted yet")

    def test_on_gcp_without_an_account_it_is_stopped(self):
        self.check(
            "gcp without an account",
            "stopped",
            "this machine cannot delete itself: HTTP status 404",
        )

    def test_on_gcp_without_the_right_it_is_stopped(self):
        self.check(
            "gcp without the right", "stopped", "this machine cannot delete itself: HTTP status 403"
        )

    def test_on_azure_it_deletes_itself_with_its_parts(self):
        self.check("azure", "deleted", "")

    def test_on_azure_without_an_identity_it_is_stopped(self):
        self.check(
            "azure without an identity",
            "stopped",
            "this machine cannot delete itself: HTTP status 400",
        )


if __name__ == "__main__":
    unittest.main(verbosity=2)
