# SPDX-License-Identifier: Apache-2.0
"""The files of packaging/monitoring with a real Prometheus."""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import unittest
import urllib.parse
import urllib.request

from lab import Lab
from reference import documented_labels, family
from monitoring.board import DAYS, EXPECTED, MINUTES, promtool_tests

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
FILES = os.path.join(TOP, "packaging/monitoring")
# Queries of the board that have no data where there are no GPUs, racks, budgets and failures.
EMPTY = re.compile("gpu|rack|budget|refusals|deadline|4.*5|reclaim|lost_work|notice")


def panels():
    """Of all panels of the board: title -> refId -> query."""
    found = {}
    with open(os.path.join(FILES, "belay.grafana.json")) as f:
        for p in json.load(f)["panels"]:
            if p["type"] != "row":
                assert p["title"] not in found, p["title"]
                found[p["title"]] = {t["refId"]: t["expr"] for t in p["targets"]}
    return found


def board():
    """(title of the panel, query) of all panels."""
    return [(title, query) for title, of in panels().items() for query in of.values()]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@unittest.skipUnless(shutil.which("promtool"), "prometheus is not installed: run scripts/setup")
class Monitoring(unittest.TestCase):
    def promtool(self, *arguments, cwd=FILES):
        done = subprocess.run(
            ["promtool", *arguments], cwd=cwd, capture_output=True, text=True, timeout=60
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_alert_fires_when_it_should(self):
        with open(os.path.join(HERE, "monitoring/rules_test.yml")) as f:
            tests = f.read()
        with open(os.path.join(FILES, "belay.rules.yml")) as f:
            alerts = re.findall(r"alert: (\w+)", f.read())
        for alert in alerts:
            self.assertIn('alertname="%s"' % alert, tests)
            self.assertIn("alertname: %s}" % alert, tests)
        with Lab() as l:
            shutil.copy(os.path.join(FILES, "belay.rules.yml"), l.dir)
            l.write("rules_test.yml", tests)
            self.promtool("test", "rules", "rules_test.yml", cwd=l.dir)

    def test_rules_and_board_name_metrics_that_there_are(self):
        known = documented_labels()
        with open(os.path.join(FILES, "belay.rules.yml")) as f:
            used = set(re.findall(r"\bbelay_\w+", f.read()))
        for _, query in board():
            used |= set(re.findall(r"\bbelay_\w+", query))
        self.assertEqual({name for name in used if family(name, known) not in known}, set())

    def test_each_query_of_the_board_answers_as_computed_by_hand(self):
        queries = panels()
        self.assertEqual(
            {(title, ref) for title, of in queries.items() for ref in of},
            {(title, ref) for title, of in EXPECTED.items() for ref in of},
            "tests/e2e/monitoring/board.py has two results of each query of the board",
        )
        for title, of in EXPECTED.items():
            for ref, (_, busy, quiet) in of.items():
                self.assertNotEqual(busy, quiet, "%s/%s: one result twice" % (title, ref))
        with tempfile.TemporaryDirectory() as where:
            with open(os.path.join(where, "board.yml"), "w") as f:
                json.dump(promtool_tests(queries), f)
            self.promtool("test", "rules", "board.yml", cwd=where)

    def test_data_of_tests_have_the_labels_of_the_reference(self):
        """Else a query for a label that belayd does not write would be found right."""
        known = documented_labels()
        with open(os.path.join(HERE, "monitoring/rules_test.yml")) as f:
            series = re.findall(r"series: '(belay_.*?)',", f.read())
        self.assertTrue(series)
        for _, _, busy, quiet in (MINUTES, DAYS):
            series += [*busy, *quiet]
        for one in series:
            name = family(one.split("{")[0], known)
            self.assertIn(name, known)
            used = set(re.findall(r'(\w+)="', one)) - {"le"}
            self.assertEqual(used - known[name], set(), one)

    def configure(self, l):
        """The recipe's configuration, as docs/how-to/monitoring.md has it put into effect."""
        made = l.post("/tokens", {"kind": "api", "scope": "metrics", "ttl_ms": 3600000})
        l.write("belay-token", made["token"])
        l.write("belay-ca.pem", made["ca_pem"])
        with open(os.path.join(FILES, "prometheus.yml")) as f:
            text = f.read()
        server = urllib.parse.urlparse(made["server"])
        text = text.replace("belay.example.org:7443", server.netloc).replace("15s", "1s")
        shutil.copy(os.path.join(FILES, "belay.rules.yml"), l.dir)
        return l.write("prometheus.yml", text)

    def query(self, port, text):
        url = "http://127.0.0.1:%d/api/v1/query?query=%s" % (port, urllib.parse.quote(text))
        with urllib.request.urlopen(url, timeout=30) as f:
            return json.load(f)["data"]["result"]

    def test_a_real_prometheus_scrapes_and_answers_the_board(self):
        with Lab() as l:
            l.wait_ended(l.submit("chain.py", 200, method="coop", every_ms=1000))
            job = l.submit("chain.py", 100000)
            l.wait_log(job, r"^step 3 ")
            configuration = self.configure(l)
            self.promtool("check", "config", "prometheus.yml", cwd=l.dir)
            port = free_port()
            server = subprocess.Popen(
                [
                    "prometheus",
                    "--config.file=" + configuration,
                    "--storage.tsdb.path=" + os.path.join(l.dir, "data"),
                    "--web.listen-address=127.0.0.1:%d" % port,
                ],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:

                def scraped_twice():
                    try:
                        found = self.query(port, 'count_over_time(up{job="belay"}[5m]) >= 3')
                    except OSError:
                        return None
                    return found

                l.wait(scraped_twice, "Prometheus has scraped belayd three times")
                self.assertEqual(self.query(port, "up")[0]["value"][1], "1")
                for title, query in board():
                    found = self.query(port, query)
                    if not EMPTY.search(query):
                        self.assertTrue(found, "%s: %s" % (title, query))
            finally:
                server.terminate()
                server.wait(timeout=60)
                l.post("/jobs/%d/cancel" % job)
                l.wait_ended(job)


if __name__ == "__main__":
    unittest.main()
