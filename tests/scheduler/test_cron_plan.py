# SPDX-License-Identifier: Apache-2.0
"""When cron entries start in the next days, and how their runs ended, with a real belayd."""

import datetime
import unittest

from belayd import CONFIG, JOB, Belayd, Node

PLAN = "/api/v1/crons/plan"
MORE = """visibility: owner
calendars:
  never: [2020-01-01..2120-01-01]
"""


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


class CronPlan(unittest.TestCase):
    def add(self, d, token=None, **entry):
        status, body, _ = d.call("POST", "/api/v1/crons", {"job": JOB, **entry}, token=token)
        self.assertEqual(status, 201, body)
        return body["id"]

    def plan(self, d, query="", token=None):
        status, body, _ = d.call("GET", PLAN + query, token=token)
        self.assertEqual(status, 200, body)
        return body, {c["name"]: c for c in body["crons"]}

    def test_it_has_the_times_of_these_days_and_no_more_than_fit(self):
        with Belayd(CONFIG + MORE) as d:
            daily = self.add(d, name="daily", schedule="30 2 * * *", zone="Australia/Sydney")
            self.add(d, name="hourly", schedule="0 * * * *")
            self.add(d, name="often", schedule="* * * * *")
            self.add(d, name="paused", schedule="0 * * * *")
            self.add(d, name="left-out", schedule="0 4 * * *", skip_on="never")
            self.add(d, name="next", after=daily)
            paused = [
                c for c in d.call("GET", "/api/v1/crons")[1]["crons"] if c["name"] == "paused"
            ]
            self.assertEqual(d.call("POST", "/api/v1/crons/%d/pause" % paused[0]["id"])[0], 200)
            body, plan = self.plan(d)
            since, until = moment(body["from"]), moment(body["to"])
            self.assertEqual(until - since, datetime.timedelta(days=14))
            self.assertEqual(len(plan["daily"]["starts"]), 14)
            self.assertEqual({t[11:19] for t in plan["daily"]["starts"]}, {"02:30:00"})
            self.assertFalse(plan["daily"]["more"])
            self.assertEqual(len(plan["hourly"]["starts"]), 14 * 24)
            self.assertEqual(len(plan["often"]["starts"]), 400)
            self.assertTrue(plan["often"]["more"])
            for entry in plan.values():
                times = [moment(t) for t in entry["starts"]]
                self.assertEqual(times, sorted(set(times)))
                self.assertTrue(all(since < t < until for t in times))
            self.assertEqual((plan["paused"]["starts"], plan["paused"]["state"]), ([], "paused"))
            self.assertEqual(plan["left-out"]["starts"], [])
            self.assertEqual(len(plan["left-out"]["left_out"]), 14)
            self.assertIn("never", plan["left-out"]["left_out"][0]["why"])
            self.assertEqual(plan["next"]["after"], daily)
            self.assertEqual(plan["next"]["starts"], plan["daily"]["starts"])
            self.assertEqual(len(self.plan(d, "?days=1")[1]["daily"]["starts"]), 1)
            for bad in ("0", "32", "x", ""):
                self.assertEqual(d.call("GET", PLAN + "?days=" + bad)[0], 400, bad)

    def test_all_entries_together_have_a_limit(self):
        with Belayd() as d:
            for k in range(14):
                self.add(d, name="often%d" % k, schedule="* * * * *")
            entries = self.plan(d)[0]["crons"]
            self.assertEqual(len(entries), 14)
            self.assertEqual(sum(len(c["starts"]) for c in entries), 5000)
            self.assertTrue(all(c["more"] for c in entries))

    def test_it_shows_the_entries_that_the_caller_may_read(self):
        with Belayd(CONFIG + MORE) as d:
            ann, bob = (d.token(kind="api", user=u) for u in ("ann", "bob"))
            self.add(d, token=ann, name="of-ann", schedule="0 4 * * *")
            self.assertEqual(list(self.plan(d, token=ann)[1]), ["of-ann"])
            self.assertEqual(list(self.plan(d, token=bob)[1]), [])
            self.assertEqual(list(self.plan(d)[1]), ["of-ann"])

    def test_runs_have_the_end_of_their_jobs_and_the_plan_how_long_they_take(self):
        with Belayd() as d:
            cron = self.add(d, name="nightly", schedule="0 4 * * *", job={**JOB, "name": "nightly"})
            runs = "/api/v1/crons/%d/runs" % cron
            self.assertIsNone(self.plan(d)[1]["nightly"]["usual_ms"])
            job = d.call("POST", "/api/v1/crons/%d/run" % cron)[1]["id"]
            run = d.call("GET", runs)[1]["runs"][0]
            self.assertEqual((run["job"], run["end"], run["ended_at"]), (job, None, None))
            node = Node(d)
            node.begin(job)
            node.attempts = [
                {
                    "job": job,
                    "attempt": 1,
                    "phase": "ended",
                    "started_at": 1,
                    "end": "succeeded",
                    "exit_code": 0,
                }
            ]
            node.sync()
            run = d.call("GET", runs)[1]["runs"][0]
            self.assertEqual(run["end"], "succeeded")
            self.assertLessEqual(moment(run["started_at"]), moment(run["ended_at"]))
            entry = self.plan(d)[1]["nightly"]
            self.assertGreater(entry["usual_ms"], 0)
            self.assertEqual(entry["usual_ms"], entry["longest_ms"])
            listed = d.call("GET", "/api/v1/crons?runs=1")[1]["crons"][0]
            self.assertEqual(listed["runs"], [run])
            self.assertNotIn("runs", d.call("GET", "/api/v1/crons")[1]["crons"][0])
            self.assertEqual(d.call("GET", "/api/v1/crons?runs=11")[0], 400)


if __name__ == "__main__":
    unittest.main()
