# SPDX-License-Identifier: Apache-2.0
"""The metrics of a cluster in which a job was reclaimed and resumed, as Prometheus reads them."""

import re
import shutil
import subprocess
import unittest

import reference
from lab import Lab

try:
    from prometheus_client.openmetrics.parser import (
        text_string_to_metric_families as open_metrics,
    )
    from prometheus_client.parser import text_string_to_metric_families as prometheus
except ImportError:
    raise unittest.SkipTest("python3-prometheus-client is not installed: run scripts/setup")

OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


class Metrics(unittest.TestCase):
    def scrape(self, l, parser=prometheus, **headers):
        """All samples as {name: {labels: value}}."""
        text = l.call("GET", "/metrics", root="", headers=headers)[1].decode()
        samples = {}
        for family in parser(text):
            self.assertTrue(family.documentation, family.name)
            for s in family.samples:
                samples.setdefault(s.name, {})[tuple(sorted(s.labels.items()))] = s.value
        return text, samples

    def value(self, samples, name, **labels):
        """The sum over all series that have these labels."""
        return sum(
            value for found, value in samples[name].items() if set(labels.items()) <= set(found)
        )

    def test_metrics_tell_of_a_reclaim_and_of_what_it_cost(self):
        with Lab() as l:
            job = l.submit("chain.py", 200, method="coop", every_ms=3600000, market="spot")
            l.wait_log(job, r"^step 40 ")
            while_it_runs = self.scrape(l)[1]
            l.cloud({"reclaim": {"instance": l.instance_of(job), "notice_s": 5}})
            shown = l.wait_ended(job)
            l.wait_cloud(lambda s: s["alive"] == 0, "the machines are given back")
            before = l.get("/cost")  # a machine that was given back may still be settled
            text, now = self.scrape(l)
            after = l.get("/cost")
            strict = self.scrape(l, open_metrics, Accept=OPEN_METRICS)[1]
        running = dict(state="running")
        place = dict(pool="cloud", market="spot")
        self.assertEqual(self.value(while_it_runs, "belay_jobs", **running), 1)
        self.assertEqual(self.value(while_it_runs, "belay_nodes", state="up", **place), 1)
        # The job prints little, and all the time: at most its last lines are under way.
        self.assertEqual(len(while_it_runs["belay_node_log_lag_bytes"]), 1)
        self.assertLess(self.value(while_it_runs, "belay_node_log_lag_bytes", pool="cloud"), 10000)
        self.assertGreaterEqual(self.value(while_it_runs, "belay_node_log_lag_seconds"), 0)
        self.assertNotIn("belay_node_log_lag_bytes", now)
        self.assertEqual(self.value(now, "belay_jobs", **running), 0)
        self.assertEqual(self.value(now, "belay_jobs"), 0)
        for name, labels, expected in (
            ("belay_attempts_ended_total", dict(end="reclaimed"), 1),
            ("belay_attempts_ended_total", dict(end="succeeded"), 1),
            ("belay_reclaim_notices_total", {}, 1),
            ("belay_reclaimed_attempts_total", dict(saved="yes"), 1),
            ("belay_reclaimed_attempts_total", dict(saved="no"), 0),
            ("belay_notice_saved_seconds_count", {}, 1),
            ("belay_job_start_seconds_count", {}, 2),
        ):
            self.assertEqual(self.value(now, name, **labels), expected, name)
            self.assertEqual(self.value(strict, name, **labels), expected, name)
        self.assertEqual(self.value(now, "belay_job_queue_wait_seconds_count"), 2)
        self.assertEqual(self.value(now, "belay_checkpoint_seconds_count", cause="notice"), 1)
        self.assertLess(self.value(now, "belay_notice_saved_seconds_sum"), 5)
        self.assertEqual(
            self.value(now, "belay_checkpoint_bytes_total"),
            sum(c["bytes"] for c in shown["checkpoints"]),
        )
        uusd = round(self.value(now, "belay_cost_dollars_total") * 1e6)
        self.assertGreater(uusd, 0)
        self.assertGreaterEqual(uusd, before["total"]["uusd"])
        self.assertLessEqual(uusd, after["total"]["uusd"])
        for samples in (while_it_runs, now):
            self.check_labels(samples)
        self.lint(text)

    def check_labels(self, samples):
        """All labels are in the reference, which the data of test_monitoring.py follow."""
        known = reference.documented_labels()
        for name, series in samples.items():
            for labels in series:
                written = {label for label, _ in labels} - {"le"}
                self.assertEqual(written - known[reference.family(name, known)], set(), name)

    def lint(self, text):
        if not shutil.which("promtool"):
            self.skipTest("promtool is not installed: run scripts/setup")
        checked = subprocess.run(
            ["promtool", "check", "metrics"],
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))

    def test_the_reference_has_all_metrics(self):
        with Lab() as l:
            text = l.call("GET", "/metrics", root="")[1].decode()
        printed = set(re.findall(r"^# TYPE (\w+)", text, re.M))
        documented = set(reference.documented_labels())
        self.assertEqual(printed - documented, set())
        absent = {name for name in documented - printed if "_store_credentials" not in name}
        self.assertEqual(absent, set())

    def test_jobs_count_by_what_they_wait_for(self):
        with Lab() as l:
            for zone in ("us-east-1a", "us-east-1b"):
                l.cloud({"capacity": {"zone": zone, "type": "m6i.xlarge", "n": 0}})
            held = l.submit("chain.py", 1)
            l.post("/jobs/%d/hold" % held)
            l.submit("chain.py", 1, depends=[{"kind": "afterok", "job": held}])
            l.submit("chain.py", 1, array="1-5")
            l.submit("chain.py", 1, begin_at_ms=4070908800000)
            now = self.scrape(l)[1]
        for reason, n in (("hold", 1), ("dependency", 1), ("capacity", 5), ("time", 1)):
            self.assertEqual(self.value(now, "belay_jobs", state="pending", reason=reason), n)


if __name__ == "__main__":
    unittest.main()
