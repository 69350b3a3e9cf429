# SPDX-License-Identifier: Apache-2.0
"""The files of packaging/monitoring with a real Prometheus."""

import json
import os
import re
import shutil
import socket
import subprocess
import unittest
import urllib.parse
import urllib.request

from lab import Lab

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
FILES = os.path.join(TOP, "packaging/monitoring")
# Queries of the board that have no data where there are no GPUs, racks, budgets and failures.
EMPTY = re.compile("gpu|rack|budget|refusals|deadline|4.*5|reclaim|lost_work|notice")


def board():
    """(title of the panel, query) of all panels."""
    with open(os.path.join(FILES, "belay.grafana.json")) as f:
        panels = json.load(f)["panels"]
    return [(p["title"], t["expr"]) for p in panels for t in p.get("targets", [])]


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
        with open(os.path.join(TOP, "docs/reference/metrics.md")) as f:
            known = set(re.findall(r"`(belay_\w+)", f.read()))
        with open(os.path.join(FILES, "belay.rules.yml")) as f:
            used = set(re.findall(r"\bbelay_\w+", f.read()))
        for _, query in board():
            used |= set(re.findall(r"\bbelay_\w+", query))
        of_histograms = {name: re.sub("_(bucket|count|sum)$", "", name) for name in used}
        unknown = {name for name in used if name not in known and of_histograms[name] not in known}
        self.assertEqual(unknown, set())

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
