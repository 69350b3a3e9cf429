# SPDX-License-Identifier: Apache-2.0
"""Pools changed by command: which changes are accepted and which refused, and that each is applied
whole or not at all, whenever belayd is killed.
"""

import concurrent.futures
import os
import socket
import time
import unittest

from bare import BARE, CLEAN
from belayd import JOB, WAIT_S, Belayd

BURST = """\
  burst:
    provider: aws
    region: us-east-1
    zones: [us-east-1a]
    types: [m6i.xlarge]
    markets: [spot, on-demand]
    image: ami-1
    endpoint: http://127.0.0.1:9
    credentials: %s
    max_nodes: %d
"""


class Bare(unittest.TestCase):
    def test_a_launch_without_credentials_is_refused_and_the_reason_is_shown(self):
        """No request was sent, so no machine can exist."""
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))  # without listen: connections are refused
            text = BARE % {"metadata": silent.getsockname()[1]}
            with Belayd(text, prefix=CLEAN) as d:
                jobs = {pool: d.submit(pool=pool) for pool in ("aws", "azure", "gcp")}
                end = time.monotonic() + WAIT_S
                while True:
                    offers = d.call("GET", "/api/v1/offers")[1]["offers"]
                    if all(o["refusals"] for o in offers):
                        break
                    self.assertLess(time.monotonic(), end, (offers, d.log()))
                    time.sleep(0.05)  # a refusal gives no event
                self.assertNotIn("no definite answer", d.log())
                for o in offers:  # the cause may disappear without an operator
                    most_ms = 10000 * 2 ** (o["refused_in_a_row"] - 1)
                    self.assertLessEqual(o["avoided_ms"] or 0, most_ms, o)
                    if o["avoided_ms"]:
                        self.assertIn("no credentials, so nothing was sent: ", o["avoided_why"])
                    else:
                        self.assertIsNone(o["avoided_why"])
                for pool, job in jobs.items():
                    why = d.call("GET", "/api/v1/jobs/%d/why" % job)[1]["reasons"]
                    self.assertEqual([r["code"] for r in why], ["offer-refused"], pool)
                    self.assertIn(": no credentials, so nothing was sent: ", why[0]["text"])


class Pools(unittest.TestCase):
    def setUp(self):
        self.d = Belayd()
        self.d.start()
        self.addCleanup(self.d.__exit__, None, None, None)
        self.keys = os.path.join(self.d.dir, "credentials")
        with open(self.keys, "w") as f:
            f.write("[default]\naws_access_key_id = A\naws_secret_access_key = B\n")
        os.chmod(self.keys, 0o600)

    def text(self, n=4, base="  base: {}\n  spare: {}\n", more=""):
        return "pools:\n" + base + (BURST % (self.keys, n) if n is not None else "") + more

    def apply(self, text, **more):
        return self.d.call(
            "POST", "/api/v1/pools", {"file": "lab/pools.yaml", "text": text, **more}
        )

    def applied(self, text, **more):
        status, body, _ = self.apply(text, **more)
        self.assertEqual(status, 200, body)
        return body

    def refuse(self, status, kind, text, *words, **more):
        got, body, _ = self.apply(text, **more)
        self.assertEqual((got, body["error"]["kind"]), (status, kind), body)
        for word in words:
            self.assertIn(word, body["error"]["text"])

    def pools(self):
        return {p["name"]: p["max_nodes"] for p in self.d.call("GET", "/api/v1/pools")[1]["pools"]}

    def offers(self):
        return {
            (o["zone"], o["type"], o["market"])
            for o in self.d.call("GET", "/api/v1/offers")[1]["offers"]
            if not o["withdrawn"]
        }

    def detail(self, name):
        status, body, _ = self.d.call("GET", "/api/v1/pools/detail?name=" + name)
        self.assertEqual(status, 200, body)
        return body["pools"][0]

    # ---- applied changes ----

    def test_a_pool_is_added_changed_and_removed_without_a_restart(self):
        seen = self.applied(self.text(4), dry_run=True)
        self.assertFalse(seen["applied"])
        self.assertEqual(self.pools(), {"base": None, "spare": None})
        self.assertFalse(os.path.exists(self.d.state + "/pools.yaml"))
        (change,) = seen["changes"]["pools"]
        self.assertEqual((change["pool"], change["change"]), ("burst", "added"))
        self.assertEqual(
            change["offers_added"],
            ["us-east-1a m6i.xlarge spot", "us-east-1a m6i.xlarge on-demand"],
        )
        done = self.applied(self.text(4), expect=seen["revision"])
        self.assertTrue(done["applied"])
        self.assertEqual(done["changes"], seen["changes"])
        self.assertEqual(self.pools(), {"base": None, "spare": None, "burst": 4})
        self.assertEqual(len(self.offers()), 2)

        text = self.text(6).replace("[spot, on-demand]", "[spot]").replace("ami-1", "ami-2")
        (change,) = self.applied(text)["changes"]["pools"]
        self.assertEqual(
            {k["key"]: (k["old"], k["new"]) for k in change["keys"]},
            {
                "max_nodes": (4, 6),
                "image": ("ami-1", "ami-2"),
                "markets": (["spot", "on-demand"], ["spot"]),
            },
        )
        self.assertEqual(change["offers_withdrawn"], ["us-east-1a m6i.xlarge on-demand"])
        self.assertEqual(self.offers(), {("us-east-1a", "m6i.xlarge", "spot")})

        self.applied(self.text(None))
        self.assertEqual(self.pools(), {"base": None, "spare": None})
        self.assertEqual(self.offers(), set())
        self.assertEqual(self.applied(self.text(None))["changes"], {"pools": [], "limits": []})

    def test_jobs_and_tokens_know_the_pools_in_force(self):
        self.assertEqual(self.d.submit(pool="spare"), 1)
        self.d.token(kind="join", pool="spare")
        self.applied(self.text(None, base="  base: {}\n"))
        for path, request in (
            ("jobs", {**JOB, "pool": "spare"}),
            ("tokens", {"kind": "join", "pool": "spare"}),
        ):
            status, body, _ = self.d.call("POST", "/api/v1/" + path, request)
            self.assertEqual(status, 400)
            self.assertIn('pool "spare"', body["error"]["text"])
        why = self.d.call("GET", "/api/v1/jobs/1/why")[1]["reasons"]
        self.assertTrue(any("pool 'spare'" in r["text"] for r in why), why)

    def test_what_was_applied_wins_over_the_configuration_after_a_restart(self):
        self.applied(self.text(4, more="limits: {max_nodes: 3}\n"))
        self.d.kill()
        self.d.start()
        self.assertEqual(self.pools(), {"base": None, "spare": None, "burst": 4})
        self.assertEqual(self.detail("burst")["limits"]["nodes"], {"max": 4, "used": 0})
        self.assertEqual(
            self.d.call("GET", "/api/v1/pools/detail")[1]["limits"]["nodes"], {"max": 3, "used": 0}
        )
        self.assertIn("belay pools apply", self.d.log())
        self.assertEqual(os.stat(self.d.state + "/pools.yaml").st_mode & 0o777, 0o600)
        self.d.stop()
        os.unlink(self.d.state + "/pools.yaml")
        self.d.start()
        self.assertEqual(self.pools(), {"base": None, "spare": None})

    def test_limits_change_and_come_back_to_the_configuration(self):
        change = self.applied(self.text(4, more="limits: {max_gpus: 8, max_usd_per_hour: 1.5}\n"))[
            "changes"
        ]["limits"]
        self.assertEqual(
            change,
            [
                {"key": "max_gpus", "old": None, "new": 8},
                {"key": "max_usd_per_hour", "old": None, "new": "1.50"},
            ],
        )
        limits = self.d.call("GET", "/api/v1/pools/detail")[1]["limits"]
        self.assertEqual(limits["uusd_per_hour"], {"max": 1500000, "used": 0})
        self.assertEqual(len(self.applied(self.text(4))["changes"]["limits"]), 2)

    # ---- refused changes ----

    def test_mistakes_are_refused_with_their_line(self):
        self.refuse(
            400,
            "invalid",
            self.text(4).replace("m6i.xlarge", "m6i.xlrge"),
            "lab/pools.yaml:8:",
            'did you mean "m6i.xlarge"',
        )
        self.refuse(400, "invalid", self.text(4, more="cluster: x\n"), "lab/pools.yaml:14:")
        self.refuse(400, "invalid", "", "pools:")
        self.refuse(
            400,
            "invalid",
            self.text(4).replace("    endpoint: http://127.0.0.1:9\n", ""),
            "pool burst",
            "listens at 127.0.0.1",
            "0.0.0.0:7443",
        )
        self.refuse(400, "invalid", "pools: {a: {provider: aws, region: r}}", "lab/pools.yaml:1:")
        self.refuse(400, "invalid", "x" * ((1 << 20) + 1), "text")
        self.refuse(400, "invalid", self.text(4), "file", file="f" * 300)
        self.refuse(400, "invalid", self.text(4), "dry_run", dry_run="yes")
        status, body, _ = self.d.call("POST", "/api/v1/pools", b" " * (3 << 20))
        self.assertEqual((status, body["error"]["kind"]), (413, "invalid"))
        self.assertEqual(self.d.call("POST", "/api/v1/pools", {"file": "x"})[0], 400)
        self.assertEqual(self.pools(), {"base": None, "spare": None})

    def test_it_is_for_administrators_and_so_are_settings(self):
        self.applied(self.text(4))
        ann = self.d.token(kind="api", user="ann")
        status, body, _ = self.d.call("POST", "/api/v1/pools", {"text": self.text(5)}, token=ann)
        self.assertEqual((status, body["error"]["kind"]), (403, "denied"))
        seen = self.d.call("GET", "/api/v1/pools/detail?name=burst", token=ann)[1]["pools"][0]
        self.assertIsNone(seen["settings"])
        self.assertEqual(self.detail("burst")["settings"]["image"], "ami-1")
        self.assertEqual(self.d.call("GET", "/api/v1/pools/detail?name=nothing")[0], 404)
        self.assertEqual(self.d.call("GET", "/api/v1/pools/detail?name=%20")[0], 400)

    def test_a_pool_keeps_its_kind(self):
        self.applied(self.text(4))
        self.refuse(
            409,
            "conflict",
            self.text(None, base="  base: {}\n  burst: {}\n"),
            "burst",
            "another name",
        )
        self.assertEqual(self.pools(), {"base": None, "spare": None, "burst": 4})

    def test_what_is_put_in_force_is_what_was_seen(self):
        seen = self.applied(self.text(4), dry_run=True)["revision"]
        self.applied(self.text(5))
        self.refuse(409, "conflict", self.text(4), "check again", expect=seen)
        self.assertEqual(self.pools()["burst"], 5)

    def test_of_many_at_once_each_is_whole(self):
        with concurrent.futures.ThreadPoolExecutor(8) as some:
            done = list(some.map(lambda n: self.apply(self.text(n))[0], range(1, 17)))
        self.assertIn(200, done)
        self.assertLessEqual(set(done), {200, 409})
        self.assertEqual(done.count(200) > 0, "burst" in self.pools())

    def test_a_damaged_state_file_is_reported_at_the_start(self):
        self.d.stop()
        with open(self.d.state + "/pools.yaml", "w") as f:
            f.write("pools:\n  base: {}\n  nonsense: 1\n")
        self.d.start(wait=False)
        self.assertEqual(self.d.process.wait(60), 1)
        self.assertIn("pools.yaml:3:", self.d.log())
        os.unlink(self.d.state + "/pools.yaml")
        self.d.start()

    def test_a_file_that_cannot_be_written_changes_nothing(self):
        os.mkdir(self.d.state + "/pools.yaml")
        status, body, _ = self.apply(self.text(4))
        self.assertGreaterEqual(status, 400, body)
        self.assertEqual(self.pools(), {"base": None, "spare": None})
        os.rmdir(self.d.state + "/pools.yaml")
        self.applied(self.text(4))

    # ---- audit ----

    def test_an_audit_is_for_administrators_and_asks_one_at_a_time(self):
        nothing = {"pools": 0, "machines": 0, "instances": 0, "found": 0, "differences": []}
        self.assertEqual(self.d.call("POST", "/api/v1/audit")[:2], (200, nothing))
        status, body, _ = self.d.call(
            "POST", "/api/v1/audit", token=self.d.token(kind="api", user="ann")
        )
        self.assertEqual((status, body["error"]["kind"]), (403, "denied"))
        self.applied(self.text(4))  # no server listens at its endpoint
        (found,) = self.d.call("POST", "/api/v1/audit")[1]["differences"]
        self.assertEqual(
            (found["kind"], found["pool"], found["region"]), ("not-listed", "burst", "us-east-1")
        )
        with concurrent.futures.ThreadPoolExecutor(8) as some:
            done = list(some.map(lambda n: self.d.call("POST", "/api/v1/audit")[0], range(16)))
        self.assertIn(200, done)
        self.assertLessEqual(set(done), {200, 409})
        self.assertEqual(self.d.call("POST", "/api/v1/audit")[0], 200)

    # ---- volumes ----

    def test_a_provider_that_cannot_list_volumes_is_reported(self):
        self.applied(self.text(4))  # no server listens at its endpoint
        status, body, _ = self.d.call("GET", "/api/v1/forgotten?for_ms=0")
        self.assertEqual((status, [i["code"] for i in body["items"]]), (200, []))
        (why,) = body["unlisted"]
        self.assertEqual(
            (why["pool"], why["provider"], why["region"]), ("burst", "aws", "us-east-1")
        )
        self.assertIn("aws DescribeVolumes, us-east-1: ", why["text"])
        self.assertEqual(
            self.d.call("GET", "/api/v1/forgotten?for_ms=0&volumes=none")[1]["unlisted"], []
        )

    def test_the_end_does_not_wait_for_a_provider_that_is_silent(self):
        with socket.create_server(
            ("127.0.0.1", 0)
        ) as silent, concurrent.futures.ThreadPoolExecutor(1) as aside:
            silent.settimeout(WAIT_S)
            self.applied(
                self.text(4).replace("127.0.0.1:9", "127.0.0.1:%d" % silent.getsockname()[1])
            )
            asked = aside.submit(self.d.call, "GET", "/api/v1/forgotten?for_ms=0")
            connections = []
            while (
                not connections or b"Action=DescribeVolumes" not in connections[-1][1]
            ):  # others ask for instances and prices
                connection = silent.accept()[0]
                connection.settimeout(WAIT_S)
                data = connection.recv(65536)
                while b"Action=" not in data:
                    data += connection.recv(65536)
                connections.append((connection, data))
            self.assertEqual(self.d.stop(), 0)
            self.assertEqual(asked.result(WAIT_S)[0], 503)
            for connection, _ in connections:
                connection.close()

    # ---- kill -9 ----

    def test_killed_at_any_moment_the_pools_are_the_old_or_the_new_ones_and_never_older_than_answered(
        self,
    ):
        answered = 0
        for n in range(1, 13):
            with concurrent.futures.ThreadPoolExecutor() as some:
                going = some.submit(self.apply, self.text(n))
                if n % 3 == 0:
                    concurrent.futures.wait([going])
                elif n % 3 == 1:
                    concurrent.futures.wait([going], timeout=0.001 * n)
                self.d.kill()
                try:
                    if going.result()[0] == 200:
                        answered = n
                except OSError:
                    pass
                except Exception as gone:  # the connection ended in the middle
                    self.assertIn("emote", type(gone).__name__)
            self.d.start()
            self.assertIn(self.pools().get("burst", 0), (n, answered) if answered != n else (n,))
            answered = self.pools().get("burst", 0)
        self.assertEqual(answered, 12)

    # ---- the command ----

    def test_the_margin_that_keeps_a_job_off_spot_is_named_with_what_would_shrink_it(self):
        self.applied(self.text(4))

        def reasons(job):
            return {
                r["code"]: r["text"]
                for r in self.d.call("GET", "/api/v1/jobs/%s/why" % job)[1]["reasons"]
            }

        words = ("submit", "--parsable", "--pool", "burst", "--work", "6h", "--wrap", "true")
        asked = self.d.belay(*words, "--test-only", "--finish-by", "+8h").stdout
        done = self.d.belay(*words, "--finish-by", "+8h")
        job = done.stdout.strip()
        margin = (
            "about 6h00m of work (--work) are left, reckoned as up to 12h00m (work_margin 100 %) "
            "until its program reports progress; it could use spot with --time 7h, after which it "
            "is ended, or once its progress shows a twentieth of the work"
        )
        self.assertEqual(done.stderr, "belay: warning: job %s: %s\n" % (job, margin))
        self.assertEqual(reasons(job)["work-margin"], margin)
        self.assertIn("  - %s\n  - its finish time is in " % margin, asked)
        self.assertIn(", at $0.048 an hour\n", asked)  # 1 of 4 CPUs, on-demand
        self.assertNotIn("finish time", self.d.belay(*words, "--test-only").stdout)
        self.assertIn("  - %s\n" % margin, self.d.belay("why", job).stdout)
        self.assertEqual(self.d.belay("update", job, "time=7h").returncode, 0)
        self.assertNotIn("work-margin", reasons(job))
        self.assertIn(" up to 7h00m, its time limit (--time), ", reasons(job)["work"])
        self.assertIn("; it uses only spot for now", reasons(job)["finish-by"])
        done = self.d.belay(*words[:-3], "10h", "--wrap", "true", "--finish-by", "+6h")
        self.assertRegex(
            done.stderr,
            r", so the deadline is infeasible by 4h0\dm; on-demand is expected to meet a deadline "
            r"10h[01]\dm from now \(--finish-by \+6[01]\dm\)\n",
        )

    def test_the_command_shows_asks_and_applies(self):
        path = os.path.join(self.d.dir, "pools.yaml")

        def belay(*words, text=None):
            if text is not None:
                with open(path, "w") as f:
                    f.write(text)
            done = self.d.belay("pools", *words)
            return done.returncode, done.stdout, done.stderr

        code, out, err = belay("apply", "--dry-run", path, text=self.text(4))
        self.assertEqual((code, err), (0, ""))
        self.assertIn("+ pool burst (added)\n", out)
        self.assertIn("  + max_nodes: 4\n", out)
        self.assertIn("  + offer us-east-1a m6i.xlarge spot\n", out)
        code, out, err = belay("apply", path)
        self.assertEqual(code, 1)
        self.assertIn("--yes", err)
        self.assertNotIn("burst", self.pools())
        self.assertEqual(belay("apply", "--yes", path)[0], 0)
        self.assertEqual(self.pools()["burst"], 4)
        code, out, err = belay("apply", "-y", path, text=self.text(5))
        self.assertIn("~ pool burst (changed)\n  ~ max_nodes: 4 -> 5\n", out)
        self.assertIn("in force", out)
        self.assertIn("nothing changes", belay("apply", "-y", path)[1])
        code, out, err = belay("apply", "-y", path, text=self.text(5) + "x: 1\n")
        self.assertEqual(code, 1)
        self.assertIn(path + ":14:", err)
        code, out, err = belay("show", "burst")
        self.assertEqual((code, err), (0, ""))
        for line in (
            "pool burst (elastic)\n",
            "  max_nodes: 5\n",
            "  nodes: 0 of 5\n",
            "EFFECTIVE/H",
        ):
            self.assertIn(line, out)
        self.applied(self.text(5).replace("[spot, on-demand]", "[spot]"))
        self.assertNotIn("on-demand ", belay("show", "burst")[1])
        self.assertEqual(belay("show", "nothing")[0], 1)
        self.assertEqual(belay("apply")[0], 2)
        self.assertEqual(belay("apply", "/nowhere")[0], 2)
        self.assertIn('"configured": true', belay("show", "--json", "burst")[1])
        self.assertEqual(belay("apply", "--json", path, text=self.text(6))[0], 1)
        self.assertIn('"applied": true', belay("apply", "--json", "--yes", path)[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
