# SPDX-License-Identifier: Apache-2.0
"""belay admin doctor and the quotas of the account: enough, too little for what the pools may
start, a call that is refused, and a provider that reports none.
"""

import json
import subprocess
import unittest

from lab import BUILD, WAIT_S, Lab

CHECK = "provider quotas"


class Account(Lab):
    """A lab whose pool asks for quotas where the emulator has them. `more` are further pools."""

    def __init__(self, more=None, **arguments):
        super().__init__(**arguments)
        self.more = more or {}

    def provision(self, ports):
        pool = super().provision(ports)["pools"]["cloud"]
        if self.provider == "aws":
            pool["quotas"] = ports["ec2"]
        return {"pools": {"cloud": pool, **{n: {**pool, **p} for n, p in self.more.items()}}}

    def doctor(self):
        """The rows of the check, and the exit code of the doctor."""
        done = subprocess.run(
            [BUILD + "/cli/belay", "admin", "doctor", "--json", "--state", self.dir],
            cwd=self.dir,
            env=self.env,
            timeout=WAIT_S,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=False,
        )
        rows = json.loads(done.stdout)["checks"]
        return [r for r in rows if r["check"] == CHECK], done.returncode

    def ask_again(self):
        """belayd keeps an answer for some minutes."""
        self.stop_belayd()
        self.up()


class AccountQuotas(unittest.TestCase):
    def fault(self, lab):
        rows, status = lab.doctor()
        self.assertEqual(status, 1)
        faults = [r for r in rows if r["result"] == "fault"]
        self.assertEqual(len(faults), 1, rows)
        return faults[0]

    def test_aws(self):
        # 8 machines of 4 vCPUs a pool
        quotas = {"L-34B43A08": 64, "L-1216C47A": 64}
        with Account(cloud={"vcpu_quotas": quotas}) as lab:
            (row,), _ = lab.doctor()
            self.assertEqual((row["result"], row["cure"]), ("ok", None), row)
            self.assertIn("2, each has room", row["text"])
            self.check_count_and_refusals(lab)
        with Account(cloud={"vcpu_quotas": quotas}, more={"night": {"max_nodes": 9}}) as lab:
            rows, status = lab.doctor()
            self.assertEqual((status, {r["result"] for r in rows}), (1, {"fault"}))
            self.assertEqual(len(rows), 2)
            self.assertIn(
                'aws, us-east-1, "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance '
                'Requests": 0 of 64 used; pool cloud, night may start 17 more machines, which '
                "need 68",
                {r["text"] for r in rows},
            )
            self.assertIn("Service Quotas", rows[0]["cure"])
            self.assertIn("lower max_nodes of pool cloud, night", rows[0]["cure"])

    def check_count_and_refusals(self, lab):
        """What runs counts, and the pool's own machines leave its room."""
        job = lab.submit("chain.py", 60, 0.02, 1 << 10)
        lab.wait_log(job, r"^step 2 ")
        lab.ask_again()
        shown = lab.get("/admin/account-quotas")
        self.assertEqual(shown["unknown"], [])
        (spot,) = [q for q in shown["quotas"] if "Spot" in q["name"]]
        self.assertEqual(
            {k: spot[k] for k in ("limit", "used", "left", "wanted", "enough", "pools")},
            {
                "limit": 64,
                "used": 4,
                "left": 60,
                "wanted": 28,
                "enough": True,
                "pools": [{"pool": "cloud", "nodes": 7, "wanted": 28}],
            },
        )
        lab.wait_ended(job)
        for action, code, right in (
            ("GetServiceQuota", "AccessDeniedException", "servicequotas:GetServiceQuota"),
            ("DescribeInstances", "UnauthorizedOperation", "ec2:DescribeInstances"),
        ):
            lab.ask_again()
            lab.cloud({"refuse": {"action": action, "code": code, "count": 50}})
            (row,), _ = lab.doctor()
            self.assertEqual(row["result"], "unknown")
            self.assertIn("pool cloud (aws, us-east-1): ", row["text"])
            self.assertIn("it needs the permission " + right, row["text"])
            self.assertTrue(row["cure"].startswith("grant that right to belayd"), row)

    def check_cloud(self, provider, enough, too_little, text, refusal, right):
        """8 machines of 8 cores in each market."""
        with Account(provider=provider, cloud=enough) as lab:
            (row,), _ = lab.doctor()
            self.assertEqual(row["result"], "ok", row)
            lab.ask_again()
            lab.cloud({"refuse": {**refusal, "count": 50}})
            (row,), _ = lab.doctor()
            self.assertEqual(row["result"], "unknown")
            self.assertIn("it needs the permission " + right, row["text"])
        with Account(provider=provider, cloud=too_little) as lab:
            row = self.fault(lab)
            self.assertIn(text, row["text"])
            self.assertIn("pool cloud may start 8 more machines, which need 64", row["text"])

    def test_gcp(self):
        self.check_cloud(
            "gcp",
            {"cpu_quotas": {"N2_CPUS": 64, "PREEMPTIBLE_CPUS": 64}},
            {"cpu_quotas": {"N2_CPUS": 63, "PREEMPTIBLE_CPUS": 64}},
            'gcp, us-central1, "N2_CPUS": 0 of 63 used',
            {"action": "regions.get", "code": "forbidden"},
            "compute.regions.get",
        )

    def test_a_family_of_gcp_that_regions_do_not_report(self):
        """Its limit is known, what is used of it is not."""
        spot = {"cpu_quotas": {"PREEMPTIBLE_CPUS": 64}}
        with Account(provider="gcp", cloud={**spot, "family_quotas": {"N2": 63}}) as lab:
            text = 'gcp, us-central1, "CPUS_PER_VM_FAMILY N2": an unknown part of %d used; '
            row = self.fault(lab)
            self.assertIn(text % 63 + "pool cloud may start 8 more machines, which", row["text"])
            lab.ask_again()
            lab.cloud({"refuse": {"action": "quotaInfos.get", "code": "forbidden", "count": 50}})
            (row,), _ = lab.doctor()
            self.assertEqual(row["result"], "unknown")
            self.assertIn("reports none for some of its types", row["text"])
        with Account(provider="gcp", cloud={**spot, "family_quotas": {"C4": 1, "N2": 64}}) as lab:
            (row,), _ = lab.doctor()
            self.assertEqual(row["result"], "unknown")
            self.assertIn(text % 64, row["text"])

    def test_azure(self):
        self.check_cloud(
            "azure",
            {"spot_cores": 64},
            {"spot_cores": 63},
            'azure, eastus, "lowPriorityCores": 0 of 63 used',
            {"action": "usages/read", "code": "AuthorizationFailed"},
            "Microsoft.Compute/locations/usages/read",
        )

    def test_a_new_account_has_the_default(self):
        with Account() as lab:
            rows, status = lab.doctor()
            self.assertEqual((status, len(rows)), (1, 2))
            self.assertIn("0 of 5 used", rows[0]["text"])

    def test_where_a_provider_reports_none(self):
        with Account(provider="lambda") as lab:
            (row,), _ = lab.doctor()
            self.assertEqual(row["result"], "unknown")
            self.assertIn("lambda has no API that reports quotas", row["text"])
            self.assertIn("look at ", row["cure"])


if __name__ == "__main__":
    unittest.main()
