# SPDX-License-Identifier: Apache-2.0
"""belay audit: finds nothing in whole runs, and every kind of difference planted in the database of
a running belayd; the emulator knows what the provider really has."""

import contextlib
import json
import os
import sqlite3
import unittest

from lab import Lab

QUIET = {
    "sweep": "1h",
    "busy_sweep": "300ms",
    "settle": "0s",
}  # so that planted differences are not corrected

READ_USD, WRITE_USD = 1000, 2000  # per GiB


def uusd(size, usd_gib):
    return (2 * size * usd_gib * 1000000 + (1 << 30)) // (2 << 30)


class Audit(unittest.TestCase):
    def audit(self, lab):
        return lab.post("/audit")

    def kinds(self, lab):
        return sorted(
            ((d["kind"], d["instance"]) for d in self.audit(lab)["differences"]),
            key=lambda k: (k[0], k[1] or 0),
        )

    @contextlib.contextmanager
    def planted(self, lab, table, key, **values):
        """Changes a row without belayd's knowledge, and restores it."""
        sql = sqlite3.connect(os.path.join(lab.home, "belay.db"), timeout=30, isolation_level=None)
        names = list(values)
        before = sql.execute(
            "SELECT %s FROM %s WHERE %s" % (", ".join(names), table, key)
        ).fetchone()
        change = "UPDATE %s SET %s WHERE %s" % (table, ", ".join(n + " = ?" for n in names), key)
        sql.execute(change, list(values.values()))
        try:
            yield
        finally:
            sql.execute(change, before)
            sql.close()

    def test_whole_runs_leave_no_difference(self):
        for provider in ("aws", "azure", "gcp"):
            with self.subTest(provider):
                self.check_whole_run(provider)

    def check_whole_run(self, provider):
        priced = {
            "store_usd_per_gib_month": 1000000,
            "budgets": {"all": {"usd_per_month": 1000000}},
        }
        with Lab(
            belayd={"settle": "500ms", **priced},
            provider=provider,
            pool={"egress_usd_per_gib": READ_USD, "upload_usd_per_gib": WRITE_USD},
        ) as lab:
            self.assertEqual(
                self.audit(lab),
                {"pools": 1, "machines": 0, "instances": 0, "found": 0, "differences": []},
            )
            jobs = [
                lab.submit("chain.py", 60, 0.02, 1 << 20, method="coop", every_ms=1000)
                for _ in range(3)
            ]
            lab.wait_log(jobs[0], r"^step 20 ")
            self.assertEqual(self.audit(lab)["differences"], [])
            lab.cloud(
                {
                    "reclaim": {
                        "instance": lab.emulated(lab.instance_of(jobs[0]))["instance"],
                        "notice_s": 5,
                    }
                }
            )
            for job in jobs:
                lab.wait_ended(job)
            lab.wait(lambda: not lab.get("/instances")["instances"], "every row is over")
            done = self.audit(lab)
            self.assertEqual(done["differences"], [])
            self.assertGreaterEqual(done["instances"], 2)
            self.assertEqual(lab.belay("audit").split("\n")[0][:14], "0 differences:")
            self.check_egress(lab, jobs)
            self.check_storage(lab, jobs)

    def check_storage(self, lab, jobs):
        """The cost of keeping checkpoints, including costs after the jobs' end, and the budget's
        share.
        """

        def of_jobs(what):
            return [what(lab.get("/jobs/%d" % job)) for job in jobs]

        kept = of_jobs(
            lambda d: sum(row["uusd"] for row in d["ledger"] if row["kind"] == "storage")
        )
        self.assertGreater(kept[0], 0)
        lab.wait(
            lambda: lab.get("/budgets")["budgets"][0]["spent_uusd"]
            == sum(of_jobs(lambda d: d["job"]["cost_uusd"])),
            "all that they cost is spent",
        )

    def check_egress(self, lab, jobs):
        """Reads and writes reported by agents, at their prices, add up to the costs in belay cost
        and of the jobs."""
        moved = 0
        for job in jobs:
            detail = lab.get("/jobs/%d" % job)
            of_job = sum(uusd(a["fetched_bytes"] or 0, READ_USD) for a in detail["attempts"])
            of_job += sum(uusd(c["stored_bytes"], WRITE_USD) for c in detail["checkpoints"])
            self.assertEqual(
                sum(row["uusd"] for row in detail["ledger"] if row["kind"] == "egress"), of_job
            )
            self.assertEqual(
                sum(row["uusd"] for row in detail["ledger"]), detail["job"]["cost_uusd"]
            )
            moved += of_job
        self.assertGreater(moved, 0)
        spent = {
            line["key"]: line["uusd"]
            for line in json.loads(lab.belay("cost", "--by", "kind", "--json"))["lines"]
        }
        self.assertEqual(spent["egress"], moved)
        self.assertIn("DATA", lab.belay("cost", "--by", "user").split("\n")[0])

    def test_every_kind_of_difference_is_found(self):
        with Lab(belayd=QUIET, pool={"idle_timeout": "1h"}) as lab:
            job = lab.submit("plain.sh", 5)
            lab.wait_ended(job)
            row = lab.get("/instances")["instances"][0]
            one, here = row["id"], "id = %d" % row["id"]
            self.assertEqual(self.kinds(lab), [])

            for name, value in (
                ("type", "m5.large"),
                ("zone", "us-east-1z"),
                ("market", "on-demand"),
            ):
                with self.subTest(name), self.planted(lab, "instances", here, **{name: value}):
                    (found,) = self.audit(lab)["differences"]
                    self.assertEqual(
                        (found["kind"], found["instance"], found["provider_id"]),
                        ("differs", one, row["provider_id"]),
                    )
                    self.assertIn("its %s is " % name, found["text"])
            with self.planted(
                lab, "instances", here, token="another", provider_id="i-0123456789abcdef0"
            ):
                self.assertEqual(self.kinds(lab), [("no-instance", one), ("no-row", None)])
                code, shown = self.belay(lab, "audit")
                self.assertEqual(code, 1)
                self.assertIn(row["provider_id"], shown)
                self.assertIn("2 differences", shown)
                code, shown = self.belay(lab, "audit", "--json")
                self.assertEqual((code, json.loads(shown)["found"]), (1, 2))
            with self.planted(lab, "instances", here, pool="removed"):
                self.assertIn(("no-pool", one), self.kinds(lab))
            attempt = "job = %d AND kind = 'useful'" % job
            uusd, ms, _ = self.ledger(lab, attempt)
            with self.planted(lab, "ledger", attempt, uusd=uusd + 1):
                found, *sums = self.audit(lab)["differences"]
                self.assertEqual((found["kind"], found["instance"]), ("ledger", one))
                self.assertIn("attempts cost", found["text"])
                self.assertEqual([(s["kind"], s["instance"]) for s in sums], [("ledger", None)] * 3)
                self.assertRegex(
                    sums[0]["text"],
                    "^the sums by month differ from the ledger, .*, useful: by 0 ms, -1 uusd and 0 jobs$",
                )
                self.assertRegex(
                    sums[1]["text"],
                    "^the sums of [0-9-]* differ from the ledger's rows of that day: by 0 ms and -1 uusd$",
                )
                self.assertRegex(
                    sums[2]["text"],
                    "^job %d: its row has a cost of [0-9]* uusd, and the ledger has [0-9]* uusd$"
                    % job,
                )
            with self.planted(lab, "ledger", attempt, ms=ms + 1):
                self.assertEqual(set(self.kinds(lab)), {("ledger", one), ("ledger", None)})
            sums = "span = 31 AND detail = 3 AND kind = 'useful'"
            with self.planted(lab, "cost_sums", sums, ms=ms + 1):
                (found,) = self.audit(lab)["differences"]
                self.assertRegex(
                    found["text"],
                    "^the sums by month differ from those by day, .*, useful: by -1 ms, 0 uusd and 0 jobs$",
                )
            self.assertEqual(self.kinds(lab), [])

            self.end(lab)
            self.assertEqual(self.kinds(lab), [])
            for name in ("uusd", "node_ms"):
                value = self.ledger(lab, "job = 0 AND kind = 'idle'")[2 * (name == "node_ms")]
                with self.subTest(name), self.planted(
                    lab, "ledger", "job = 0 AND kind = 'idle'", **{name: value - 1}
                ):
                    self.assertEqual(set(self.kinds(lab)), {("ledger", one), ("ledger", None)})
            with self.planted(lab, "instances", here, accrued_uusd=123456):
                self.assertEqual(self.kinds(lab), [("ledger", one)])
            with self.planted(lab, "instances", here, state="running"):
                self.assertIn(("no-instance", one), self.kinds(lab))

    def test_a_provider_that_does_not_answer_is_reported(self):
        with Lab(belayd=QUIET) as lab:
            with open(lab.config) as f:
                pool = json.load(f)["pools"]["cloud"]
            keys = lab.write(
                "wrong", "[default]\naws_access_key_id = A\naws_secret_access_key = B\n"
            )
            lab.post(
                "/pools",
                {
                    "text": json.dumps(
                        {"pools": {"cloud": pool, "wrong": {**pool, "credentials": keys}}}
                    )
                },
            )
            done = self.audit(lab)
            self.assertEqual(
                [(d["kind"], d["pool"]) for d in done["differences"]], [("not-listed", "wrong")]
            )

    def ledger(self, lab, key):
        with contextlib.closing(
            sqlite3.connect(os.path.join(lab.home, "belay.db"), timeout=30)
        ) as sql:
            return sql.execute("SELECT uusd, ms, node_ms FROM ledger WHERE " + key).fetchone()

    def belay(self, lab, *words):
        with lab.start_belay(*words) as process:
            out = process.communicate(timeout=60)[0]
        return process.returncode, out

    def end(self, lab):
        """Ends every machine now."""
        for node in lab.get("/nodes")["nodes"]:
            lab.post("/nodes/%d/delete" % node["id"])
        lab.wait(lambda: not lab.get("/instances")["instances"], "every row is over")


if __name__ == "__main__":
    unittest.main(verbosity=2)
