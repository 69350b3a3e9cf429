# SPDX-License-Identifier: Apache-2.0
"""Pools that change while their machines run: no machine is forgotten, and no change needs a
restart."""

import json
import os
import unittest

from lab import Lab, Refused


def configured(lab):
    with open(lab.config) as f:
        return json.load(f)["pools"]["cloud"]


class Listed(Lab):
    """A lab whose pool has the address of the price list."""

    def access(self, provider, ports):
        given = super().access(provider, ports)
        return {**given, "prices": given["endpoint"]}


class Pools(unittest.TestCase):
    def apply(self, lab, pools, limits=None, **more):
        text = json.dumps({"pools": pools, **({"limits": limits} if limits else {})})
        return lab.post("/pools", {"file": "pools.yaml", "text": text, **more})

    def refused(self, lab, pools, *words):
        with self.assertRaises(Refused) as told:
            self.apply(lab, pools)
        self.assertEqual(told.exception.status, 409, told.exception)
        for word in words:
            self.assertIn(word, str(told.exception))

    def test_settings_change_under_a_machine_which_is_still_ended(self):
        with Lab() as lab:
            pool = configured(lab)
            job = lab.submit("plain.sh", 600, 1)
            lab.wait_event(job, "started")
            machine = lab.instance_of(job)
            self.refused(
                lab, {"cloud": {**pool, "endpoint": "http://127.0.0.1:1"}}, "endpoint", "instances"
            )
            self.refused(lab, {"cloud": {**pool, "credentials": "/elsewhere"}}, "credentials")
            self.refused(lab, {"cloud": {**pool, "region": "us-west-2"}}, "instances")
            self.refused(lab, {"other": pool}, "still has 1 instance")
            (change,) = self.apply(
                lab, {"cloud": {**pool, "image": "ami-2", "zones": ["us-east-1b"]}}
            )["changes"]["pools"]
            self.assertEqual({k["key"] for k in change["keys"]}, {"image", "zones"})
            shown = lab.get("/pools/detail?name=cloud")["pools"][0]
            self.assertEqual(shown["settings"]["image"], "ami-2")
            self.assertEqual(shown["limits"]["nodes"], {"max": 8, "used": 1})
            self.assertEqual([i["provider_id"] for i in shown["instances"]], [machine])
            self.assertEqual(len(shown["nodes"]), 1)
            lab.post("/jobs/%d/cancel" % job)
            lab.wait_cloud(
                lambda s: s["alive"] == 0,
                "the machine of the old settings is ended by the new driver",
            )

    def test_a_new_pool_launches_at_once_and_again_after_kill_9(self):
        with Lab(pool={"max_nodes": 0}) as lab:
            pool = configured(lab)
            job = lab.submit("plain.sh", 600, 1)
            lab.wait(lambda: lab.get("/jobs/%d/why" % job)["reasons"], "it waits")
            self.apply(lab, {"cloud": pool, "more": {**pool, "max_nodes": 1}})
            lab.wait_event(job, "started")
            self.assertEqual([i["pool"] for i in lab.get("/instances")["instances"]], ["more"])
            lab.kill_belayd()
            lab.up()
            self.assertEqual(lab.job(job)["state"], "running")
            self.refused(lab, {"cloud": pool}, "still has 1 instance")
            self.apply(lab, {"cloud": pool, "more": {**pool, "max_nodes": 0}})
            lab.post("/jobs/%d/cancel" % job)
            lab.wait_cloud(lambda s: s["alive"] == 0, "the machine is given back")
            lab.wait(lambda: not lab.get("/instances")["instances"], "its row is over")
            self.apply(lab, {"cloud": pool})
            self.assertEqual([p["name"] for p in lab.get("/pools")["pools"]], ["cloud"])

    def test_offers_have_the_prices_and_scores_of_the_market(self):
        types = ["g5.xlarge", "g6.xlarge", "m6i.xlarge"]
        market = [
            {
                "zone": zone,
                "type": t,
                "spot": {"capacity": n, "usd_per_hour": 0.0912},
                "on_demand": {"capacity": n, "usd_per_hour": 0.4321},
            }
            for zone, n in (("us-east-1a", 0), ("us-east-1b", 4))
            for t in types
        ]
        pool = {
            "types": types,
            "zones": ["us-east-1a", "us-east-1b"],
            "markets": ["spot", "on-demand"],
        }
        with Listed(cloud={"pools": market}, pool=pool, belayd={"price_every": "200ms"}) as lab:

            def offers():
                return {
                    (o["zone"], o["type"], o["market"]): o for o in lab.get("/offers")["offers"]
                }

            lab.wait(
                lambda: all(o["on_demand_uusd_h"] == 432100 for o in offers().values()),
                "the price list is read",
            )
            for (zone, _, kind), o in offers().items():
                self.assertEqual(o["price_uusd_h"], 91200 if kind == "spot" else 432100)
                self.assertEqual(
                    o["placement_score"],
                    None if kind != "spot" else 1 if zone == "us-east-1a" else 10,
                )
            self.assertIn("SCORE", lab.belay("offers"))
            lab.cloud({"capacity": {"zone": "us-east-1a", "type": "g5.xlarge", "n": 3}})
            lab.wait(
                lambda: offers()["us-east-1a", "m6i.xlarge", "spot"]["placement_score"] == 10,
                "a score follows",
            )
            lab.cloud(
                {"refuse": {"action": "GetSpotPlacementScores", "code": "UnauthorizedOperation"}}
            )
            lab.wait(
                lambda: all(o["placement_score"] is None for o in offers().values()),
                "no score is no longer one",
            )
            self.assertEqual({o["on_demand_uusd_h"] for o in offers().values()}, {432100})

    def test_limits_hold_as_soon_as_they_are_in_force(self):
        with Lab() as lab:
            pool = configured(lab)
            self.apply(lab, {"cloud": pool}, limits={"max_nodes": 1})
            jobs = [
                lab.submit("plain.sh", 600, 1, cpus=min(4, len(os.sched_getaffinity(0))))
                for _ in range(2)
            ]
            lab.wait_event(jobs[0], "started")
            lab.wait(
                lambda: any(
                    r["code"] == "limit" for r in lab.get("/jobs/%d/why" % jobs[1])["reasons"]
                ),
                "the limit",
            )
            self.assertEqual(lab.get("/pools/detail")["limits"]["nodes"], {"max": 1, "used": 1})
            self.apply(lab, {"cloud": pool}, limits={"max_nodes": 2})
            lab.wait_event(jobs[1], "started")

    def test_nodes_are_drained_and_deleted_by_name(self):
        with Lab() as lab:
            job = lab.submit("plain.sh", 600, 1)
            lab.wait_event(job, "started")
            node = lab.get("/nodes")["nodes"][0]
            self.apply(lab, {"cloud": {**configured(lab), "max_nodes": 1, "idle_timeout": "1h"}})
            out = lab.belay("nodes", "drain", node["name"])
            self.assertIn("node %d (%s): takes no more work" % (node["id"], node["name"]), out)
            lab.wait_event(job, "requeued")
            self.assertIn("takes work again", lab.belay("nodes", "undrain", str(node["id"])))
            lab.wait_event(job, "started", 2)
            self.assertEqual(lab.belay("nodes", "delete", node["name"], check=False), "")
            lab.post("/jobs/%d/cancel" % job)
            lab.wait_ended(job)
            self.assertIn("its instance is being ended", lab.belay("nodes", "delete", node["name"]))
            lab.wait_cloud(
                lambda s: s["alive"] == 0,
                "the deleted node's machine is gone before its hour of idleness",
            )


if __name__ == "__main__":
    unittest.main(verbosity=2)
