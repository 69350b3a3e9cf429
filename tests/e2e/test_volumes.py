# SPDX-License-Identifier: Apache-2.0
"""belay advise --forgotten: a volume that outlived its machine is reported with its cost per day;
with `all`, volumes that belay did not make are reported too; a provider that refuses the request
does not hide the others; and nothing is ever deleted.
"""

import json
import unittest

from lab import Lab

DAY_MS = 86400000
DAYS_A_MONTH = 30.4375


def uusd_per_day(gib, usd_per_gib_month):
    return int(gib * usd_per_gib_month * 1e6 / DAYS_A_MONTH + 0.5)


class Volumes(unittest.TestCase):
    def forgotten(self, lab, volumes, for_ms=0):
        return lab.get("/forgotten?for_ms=%d&volumes=%s" % (for_ms, volumes))

    def volumes(self, lab, *args):
        reply = self.forgotten(lab, *args)
        self.assertEqual((reply["unlisted"], reply["more"]), ([], False))
        return {i["name"]: i for i in reply["items"] if i["code"] == "volume"}

    def test_a_volume_that_outlived_its_machine_is_listed_with_its_price(self):
        """This account's images add a second volume, which is not deleted with its instance. Other
        volumes exist from before."""
        old = [
            {
                "zone": "us-east-1a",
                "type": "gp2",
                "gib": 100 + k,
                "age": "40d",
                "tags": {"Name": "old-%d" % k},
            }
            for k in range(3)
        ]
        old.append(
            {
                "zone": "us-east-1b",
                "type": "weird",
                "gib": 7,
                "age": "40d",
                "tags": {"belay:cluster": "another"},
            }
        )
        with Lab(
            cloud={"image_volume_gib": 200, "page": 2, "volumes": old},
            belayd={"volume_usd_per_gib_month": {"aws": {"gp2": 0.11}}},
        ) as lab:
            job = lab.submit("chain.py", 2, 0.01, 1 << 10)
            lab.wait_ended(job)
            instance = lab.get("/instances?state=all")["instances"][0]
            lab.wait(lambda: not lab.get("/instances")["instances"], "the machine is given back")
            (found,) = self.volumes(lab, "own").values()
            self.assertEqual(found["bytes"], 200 << 30)
            self.assertEqual(found["uusd_per_day"], uusd_per_day(200, 0.08))
            self.assertEqual(
                found["volume"],
                {
                    "id": found["name"],
                    "provider": "aws",
                    "region": "us-east-1",
                    "zone": instance["zone"],
                    "type": "gp3",
                    "gib": 200,
                    "uusd_per_gib_month": 80000,
                    "price_from": "list price, us-east-1",
                    "own": True,
                },
            )
            self.assertEqual(self.volumes(lab, "own", DAY_MS), {})  # too new to be reported
            said = lab.belay("advise", "--forgotten", "--for", "0s")
            self.assertRegex(
                said,
                r"(?m)^%s +- +aws +us-east-1[ab] +gp3 +yes +200 +0.08 +list price, us-east-1 +\S+ +\$0.5257$"
                % found["name"],
            )
            self.assertIn("1 item unused for 0ms: $0.5257 a day.", said)
            self.assertIn("belay deletes none", said)
            self.check_refused(lab)
            lab.stop_belayd()  # which caches the answer for some minutes
            lab.up()
            self.check_all(lab, found)

    def test_disks_of_a_google_project_are_listed_too(self):
        disks = [
            {
                "zone": "us-central1-a",
                "name": "left",
                "type": "pd-balanced",
                "gib": 100,
                "age": "40d",
                "tags": {"owner": "ann"},
            },
            {"zone": "us-central1-b", "name": "young", "type": "pd-ssd", "gib": 10},
        ]
        with Lab(cloud={"volumes": disks}, provider="gcp") as lab:
            job = lab.submit("chain.py", 60, 0.02, 1 << 10)
            lab.wait_log(job, r"^step 2 ")  # its machine's disk is in use
            self.assertEqual(self.volumes(lab, "own"), {})
            every = self.volumes(lab, "all")
            self.assertEqual(set(every), {"left", "young"})
            self.assertEqual(every["left"]["uusd_per_day"], uusd_per_day(100, 0.1))
            self.assertEqual(
                {
                    k: every["left"]["volume"][k]
                    for k in ("provider", "region", "zone", "type", "gib", "price_from", "own")
                },
                {
                    "provider": "gcp",
                    "region": "us-central1",
                    "zone": "us-central1-a",
                    "type": "pd-balanced",
                    "gib": 100,
                    "price_from": "list price, us-central1",
                    "own": False,
                },
            )
            self.assertEqual(set(self.volumes(lab, "all", 30 * DAY_MS)), {"left"})

    def check_refused(self, lab):
        lab.cloud({"refuse": {"action": "DescribeVolumes", "code": "UnauthorizedOperation"}})
        reply = self.forgotten(lab, "all")
        (why,) = reply["unlisted"]
        self.assertEqual(
            (why["pool"], why["provider"], why["region"]), ("cloud", "aws", "us-east-1")
        )
        self.assertIn("needs the permission ec2:DescribeVolumes", why["text"])
        self.assertEqual(
            self.forgotten(lab, "all")["unlisted"], [why]
        )  # not requested again at once
        self.assertIn(
            "The volumes of pool cloud (aws, us-east-1) are not known: ",
            lab.belay("advise", "--forgotten", "--volumes", "all"),
        )

    def check_all(self, lab, own):
        every = self.volumes(lab, "all")
        (strange,) = [v for v in every.values() if v["volume"]["type"] == "weird"]
        self.assertEqual(set(every), {own["name"], "old-0", "old-1", "old-2", strange["name"]})
        self.assertEqual(every["old-1"]["volume"]["price_from"], "configuration")
        self.assertEqual(every["old-1"]["uusd_per_day"], uusd_per_day(101, 0.11))
        self.assertEqual(
            [every["old-1"]["volume"]["own"], strange["volume"]["own"]], [False, False]
        )
        self.assertEqual(
            (
                strange["uusd_per_day"],
                strange["volume"]["uusd_per_gib_month"],
                strange["volume"]["price_from"],
            ),
            (0, None, None),
        )
        self.assertNotIn(own["name"], self.volumes(lab, "all", 30 * DAY_MS))
        self.assertRegex(
            lab.belay("advise", "--forgotten", "--volumes", "all"),
            r"(?m)^old-1 +%s +aws " % every["old-1"]["volume"]["id"],
        )
        said = json.loads(
            lab.belay("advise", "--forgotten", "--volumes", "none", "--for", "0s", "--json")
        )
        self.assertEqual([i for i in said["items"] if i["volume"]], [])


if __name__ == "__main__":
    unittest.main()
