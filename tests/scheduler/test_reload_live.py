# SPDX-License-Identifier: Apache-2.0
"""What a reload puts in force: each key, while jobs run and others are submitted; and what it
refuses because jobs need it."""

import base64
import contextlib
import http.server
import os
import re
import socketserver
import sqlite3
import threading
import time
import unittest

from belayd import CONFIG, JOB, WAIT_S, Belayd, Node

RELOAD = "/api/v1/admin/reload"
NIGHT = "windows: {night: {from: '00:00', to: '00:01'}}\n"
ALWAYS = "windows: {night: {from: '00:00', to: '00:00'}}\n"


class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, body))
        self.server.arrived.release()
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


class Mailbox(socketserver.StreamRequestHandler):
    """Takes every mail, and notes who signed in for it with which password."""

    def say(self, text):
        self.wfile.write(text.encode() + b"\r\n")

    def sign_in(self, words):
        if len(words) < 3:
            self.say("334 ")
        given = words[2] if len(words) > 2 else self.rfile.readline().strip().decode()
        self.server.got.append(base64.b64decode(given).decode().split("\0")[1:])
        self.say("235 welcome")

    def handle(self):
        self.say("220 here")
        while line := self.rfile.readline():
            words = line.decode().split()
            if words[0] == "EHLO":
                self.say("250-here\r\n250 AUTH PLAIN")
            elif words[0] == "AUTH":
                self.sign_in(words)
            elif words[0] == "DATA":
                self.say("354 go on")
                while self.rfile.readline() != b".\r\n":
                    pass
                self.say("250 ok")
                self.server.arrived.release()
            else:
                self.say("221 bye" if words[0] == "QUIT" else "250 ok")


@contextlib.contextmanager
def hook(handler=Hook, make=http.server.ThreadingHTTPServer):
    server = make(("127.0.0.1", 0), handler)
    server.got, server.arrived = [], threading.Semaphore(0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Live(unittest.TestCase):
    config = CONFIG

    def setUp(self):
        self.d = Belayd(self.config)
        self.d.start()
        self.addCleanup(self.d.__exit__, None, None, None)

    def reload(self, text, **body):
        with open(os.path.join(self.d.dir, "belayd.yaml"), "w") as f:
            f.write(text)
        self.d.config = text  # of the next start
        return self.d.call("POST", RELOAD, body)[:2]

    def changes(self, text, **body):
        status, said = self.reload(text, **body)
        self.assertEqual(status, 200, said)
        return [c["key"] for c in said["changes"]]

    def refusal(self, text, status=409):
        got, said = self.reload(text)
        self.assertEqual(got, status, said)
        return said["error"]["text"]

    def job(self, job):
        return self.d.call("GET", "/api/v1/jobs/%d" % job)[1]["job"]

    def wait_state(self, job, state):
        end = time.monotonic() + WAIT_S
        while self.job(job)["state"] != state:
            self.assertLess(time.monotonic(), end, self.job(job))
            time.sleep(0.02)  # belayd has no event for a state

    def submit(self, status=201, token=None, **spec):
        got, said, _ = self.d.call("POST", "/api/v1/jobs", {**JOB, **spec}, token=token)
        self.assertEqual(got, status, said)
        return said["id"] if status == 201 else said["error"]["text"]

    # ---- one key after the other ----

    def test_qos(self):
        high = "qos: {high: {boost: 1h, preempts: [low]}, low: {}}\n"
        self.assertIn("qos.high.boost", self.changes(CONFIG + high))
        job = self.submit(qos="high", hold=True)
        self.assertEqual(self.job(job)["qos"], "high")
        self.submit(status=400, qos="urgent")
        self.changes(CONFIG + "qos: {urgent: {}, low: {}, high: {boost: 2h}}\n")
        self.submit(qos="urgent", hold=True)
        self.assertEqual(self.job(job)["qos"], "high")

    def test_a_qos_that_jobs_have_stays(self):
        self.changes(CONFIG + "qos: {high: {}, low: {}}\n")
        node = Node(self.d)
        running = self.submit(qos="high")
        node.begin(running)
        held = [self.submit(qos="high", hold=True) for _ in range(11)]
        text = self.refusal(CONFIG + "qos: {low: {}}\n")
        self.assertIn("nothing was changed, because QOS high would be gone", text)
        for job in [running, *held[:7]]:
            self.assertIn("job %d" % job, text)
        self.assertIn(" and 4 more", text)
        status, said = self.reload(CONFIG + "qos: {low: {}}\n", dry_run=True)
        self.assertEqual((status, said["error"]["text"]), (409, text))
        self.submit(qos="high", hold=True)  # it is there
        self.changes(CONFIG + "qos: {high: {}}\n")  # nobody needs the other one
        self.submit(status=400, qos="low")

    def test_windows(self):
        self.changes(CONFIG + ALWAYS)
        node = Node(self.d)
        job = self.submit(window="night")
        node.begin(job)
        text = self.refusal(CONFIG)
        self.assertIn("window night would be gone, and these need it: job %d;" % job, text)
        waits = self.submit(window="night", begin_at_ms=int(time.time() * 1000) + 86400000)
        self.changes(CONFIG + ALWAYS + "retries: {node-lost: 3}\n")
        self.assertEqual(self.job(job)["state"], "running")
        self.assertEqual(self.job(waits)["state"], "pending")

    def test_a_window_that_opens_lets_its_jobs_run(self):
        self.changes(CONFIG + NIGHT)
        if time.strftime("%H:%M", time.gmtime()) in ("23:59", "00:00"):
            self.skipTest("it is just open")
        node = Node(self.d)
        job = self.submit(window="night")
        self.assertEqual(self.job(job)["state"], "pending")
        self.changes(CONFIG + ALWAYS)
        node.begin(job)

    def test_calendars(self):
        days = "calendars: {closed: ['2026-12-25'], open: ['2026-12-26']}\n"
        cron = {"name": "nightly", "schedule": "0 2 * * *", "skip_on": "closed", "job": JOB}
        self.assertEqual(self.d.call("POST", "/api/v1/crons", cron)[0], 400)
        self.changes(CONFIG + days)
        status, said, _ = self.d.call("POST", "/api/v1/crons", cron)
        self.assertEqual(status, 201, said)
        text = self.refusal(CONFIG + "calendars: {open: ['2026-12-26']}\n")
        self.assertIn("calendar closed would be gone", text)
        self.assertIn("cron entry nightly", text)
        self.changes(CONFIG + "calendars: {closed: ['2027-12-25']}\n")

    def test_licences(self):
        self.changes(CONFIG + "licences: {matlab: 3}\n")
        self.submit(licences={"matlab": 2}, hold=True)
        self.assertIn("licence matlab", self.refusal(CONFIG + "licences: {matlab: 1}\n"))
        self.changes(CONFIG + "licences: {matlab: 2}\n")

    def test_budgets_count_on(self):
        one = (
            "budgets: {ours: {usd_per_month: 10, at_limit: park, match: {labels: {paid: 'yes'}}}}\n"
        )
        two = one.replace("park", "stop-new")
        self.changes(CONFIG + one)
        node = Node(self.d)
        job = self.submit(labels={"paid": "yes"})
        node.begin(job)

        def budgets():
            return {b["name"]: b for b in self.d.call("GET", "/api/v1/budgets")[1]["budgets"]}

        self.assertEqual(budgets()["ours"]["jobs"], 1)
        for text in (
            CONFIG + one.replace("month: 10", "month: 20"),
            CONFIG + one.replace("}}}}", "}}}, all: {usd_per_day: 5}}"),
            CONFIG + two,
        ):
            self.reload(text)
            end = time.monotonic() + WAIT_S
            while budgets()["ours"]["jobs"] != 1:
                self.assertLess(time.monotonic(), end, budgets())
        self.changes(CONFIG)
        self.assertEqual(budgets(), {})
        self.assertEqual(self.job(job)["state"], "running")

    def test_racks(self):
        rack = "racks: {r1: {max_kw: %s, nodes: {dgx: 'n[1-4]'}}}\n"
        rack += "node_types: {dgx: {watts: {idle: 100, full: 400}}}\n"
        self.assertTrue(self.changes(CONFIG + rack % "2"))
        shown = self.d.call("GET", "/api/v1/racks")[1]["racks"]
        self.assertEqual([(r["name"], r["max_watts"]) for r in shown], [("r1", 2000)])
        self.changes(CONFIG + rack % "1.5")
        shown = self.d.call("GET", "/api/v1/racks")[1]["racks"]
        self.assertEqual([r["max_watts"] for r in shown], [1500])
        self.assertEqual(self.changes(CONFIG + rack % "1.5, pue: 1.2"), ["racks.r1.pue"])
        self.assertEqual(self.d.metric('belay_rack_pue{rack="r1"}'), 1.2)
        self.changes(CONFIG)
        self.assertEqual(self.d.call("GET", "/api/v1/racks")[1]["racks"], [])

    def test_spend_anomalies(self):
        limits = CONFIG + "spend_anomalies: {weeks: 6, at_least: 20%s}\n"
        self.assertEqual(
            sorted(self.changes(limits % "")), ["spend_anomalies.at_least", "spend_anomalies.weeks"]
        )
        changed = self.changes(limits % ", mail: [ops@lab.example], users: false")
        self.assertEqual(sorted(changed), ["spend_anomalies.mail", "spend_anomalies.users"])

    def test_a_file_of_a_webhook_or_of_mail_that_is_missing(self):
        path = os.path.join(self.d.dir, "url")
        hooks = CONFIG + "webhooks: {ops: {url_file: %s, events: [end]}}\n" % path
        digest = hooks + "digest: {at: '07:00'}\n"
        mail = CONFIG + "mail: {smtp: 'smtp://127.0.0.1', user: u, password_file: %s}\n" % path
        for text, key in ((hooks, "url_file"), (digest, "url_file"), (mail, "password_file")):
            got, said = self.reload(text)
            self.assertIn(got, (400, 404, 409), said)
            self.assertIn("nothing was changed", said["error"]["text"])
            self.assertIn(key + ": ", said["error"]["text"])
            self.assertIn(path, said["error"]["text"])
        with open(path, "w") as f:
            f.write("https://hooks.example/x\n")
        os.chmod(path, 0o600)
        self.assertIn("webhooks.ops.url_file", self.changes(hooks))
        os.unlink(path)  # what does not touch it is put in force
        self.assertEqual(self.changes(hooks + "lease: 1m\n"), ["lease"])

    def test_webhooks_are_told_at_once(self):
        with hook() as to:
            url = "http://127.0.0.1:%d/" % to.server_address[1]
            text = "webhooks: {ops: {url: '%s%%s', events: [end]}}\n" % url
            self.changes(CONFIG + text % "one")
            for path in ("/one", "/two"):
                if path == "/two":
                    self.assertEqual(self.changes(CONFIG + text % "two"), ["webhooks.ops.url"])
                job = self.submit(hold=True)
                self.d.call("POST", "/api/v1/jobs/%d/cancel" % job, {})
                self.assertTrue(to.arrived.acquire(timeout=WAIT_S))
                self.assertEqual(to.got[-1][0], path)
            self.changes(CONFIG)
            job = self.submit(hold=True)
            self.d.call("POST", "/api/v1/jobs/%d/cancel" % job, {})
            self.changes(CONFIG + text % "three")
            job = self.submit(hold=True)
            self.d.call("POST", "/api/v1/jobs/%d/cancel" % job, {})
            self.assertTrue(to.arrived.acquire(timeout=WAIT_S))
            self.assertEqual([path for path, _ in to.got], ["/one", "/two", "/three"])

    def test_mail(self):
        sent = os.path.join(self.d.dir, "sent")
        program = os.path.join(self.d.dir, "sendmail")
        os.mkfifo(sent)
        with open(program, "w") as f:
            f.write('#!/bin/sh\necho "$@" >%s\n' % sent)
        os.chmod(program, 0o755)
        self.changes(CONFIG + "mail: {sendmail: %s, from: ops}\n" % program)
        job = self.submit(hold=True, notify={"mail_types": ["end"], "mail_user": "ann@example.org"})
        self.d.call("POST", "/api/v1/jobs/%d/cancel" % job, {})
        with open(sent) as f:
            self.assertEqual(f.read(), "-i -f ops -- ann@example.org\n")

    def test_a_password_of_mail_is_reloaded_and_not_shown(self):
        section = "mail: {smtp: 'smtp://127.0.0.1:%d', from: ops@lab.example, user: %s, "
        section += "password_file: %s}\n"
        with hook(Mailbox, socketserver.ThreadingTCPServer) as to:
            changed, passwords = [], ("hush-one", "hush-two", "hush-three")
            for k, password in enumerate(passwords):
                path = os.path.join(self.d.dir, "password-%d" % k)
                with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
                    f.write(password + "\n")
                text = CONFIG + section % (to.server_address[1], "user%d" % (k // 2), path)
                status, said = self.reload(text)
                self.assertEqual(status, 200, said)
                changed.append(said)
                notify = {"mail_types": ["end"], "mail_user": "ann%d@example.org" % k}
                job = self.submit(hold=True, notify=notify)
                self.d.call("POST", "/api/v1/jobs/%d/cancel" % job, {})
                self.assertTrue(to.arrived.acquire(timeout=WAIT_S), self.d.log())
            self.assertEqual(
                to.got, [["user0", "hush-one"], ["user0", "hush-two"], ["user1", "hush-three"]]
            )
            keys = [[c["key"] for c in said["changes"]] for said in changed]
            self.assertEqual(
                keys[1:], [["mail.password_file"], ["mail.user", "mail.password_file"]]
            )
            # the server's URL could have a password in it: shown is that it changed
            text = CONFIG + section % (1, "user1", path)
            said = self.reload(text, dry_run=True)[1]
            self.assertEqual([c["new"] for c in said["changes"]], ["(not shown)"])
            log = self.d.log()
            rows = self.d.call("GET", "/api/v1/admin/audit-log")[1]["rows"]
            for password in passwords:
                self.assertNotIn(password, str(changed) + str(said) + log + str(rows))

    def test_times(self):
        node = Node(self.d)
        self.assertEqual(node.sync()["lease_ms"], 30000)
        text = "lease: 1m\nkill_wait: 7s\nstore_wait: 2m\nsweep: 10s\nbusy_sweep: 1s\nsettle: 5s\n"
        text += "price_every: 1m\nlog_full_wait: 1m\ntelemetry: {hours: 30d, throttled_for: 1m}\n"
        self.assertEqual(len(self.changes(CONFIG + text)), 10)
        job = self.submit()
        node.begin(job)
        got = node.sync()
        self.assertEqual(got["lease_ms"], 60000)
        attempt = got["attempts"][0]
        self.assertEqual((attempt["kill_wait_ms"], attempt["store_wait_ms"]), (7000, 120000))

    def test_a_shorter_lease_ends_no_node_that_has_not_heard_of_it(self):
        node = Node(self.d)
        job = self.submit()
        node.begin(job)
        self.changes(CONFIG + "lease: 1s\n")
        end = time.monotonic() + 3  # silent for longer than the new lease
        while time.monotonic() < end:
            self.assertEqual(self.d.call("GET", "/api/v1/nodes")[1]["nodes"][0]["state"], "up")
            time.sleep(0.1)  # what must not happen has no event
        self.assertEqual(node.sync()["lease_ms"], 1000)
        self.assertEqual(self.job(job)["state"], "running")

    def test_volumes_and_what_else_is_read_in_place(self):
        self.changes(
            CONFIG + "volume_usd_per_gib_month: {aws: {gp3: 0.1}}\nnotify_allow: [10.0.0.0/8]\n"
        )
        self.changes(CONFIG)

    # ---- all together ----

    def test_what_runs_is_not_touched_and_its_deadline_stays(self):
        node = Node(self.d)
        job = self.submit(time_limit_ms=3600000, finish_in_ms=7200000, work_ms=600000)
        node.begin(job)
        before = self.job(job)
        events = len(self.d.call("GET", "/api/v1/jobs/%d/events" % job)[1]["events"])
        text = CONFIG + ALWAYS + "qos: {high: {}}\nbudgets: {all: {usd_per_day: 9}}\n"
        text += "teams: {vision: {users: [ann]}}\nlease: 1m\n"
        self.changes(text)
        self.changes(CONFIG)
        after = self.job(job)
        for key in ("state", "attempts", "started_at", "finish_by", "time_limit_ms", "pace"):
            self.assertEqual(before.get(key), after.get(key), key)
        desired = node.sync()
        self.assertEqual([a["job"] for a in desired["attempts"]], [job])
        now = len(self.d.call("GET", "/api/v1/jobs/%d/events" % job)[1]["events"])
        self.assertEqual(now, events)

    def test_half_of_a_file_wrong_changes_nothing(self):
        good = "qos: {high: {}}\nvisibility: all\n"
        for bad in (
            "windows: {night: {from: '25:00', to: '06:00'}}\n",
            "windows: {night: {from: '22:00', to: '06:00', tz: Mars/Base}}\n",
            "budgets: {all: {usd_per_window: 9, window: nowhere}}\n",
            "oidc: {issuer: 'https://idp', client_id: x, client_secret_file: /nowhere/secret}\n",
            "racks: {r: {max_kw: 0}}\n",
        ):
            status, said = self.reload(CONFIG + good + bad)
            self.assertIn(status, (400, 404, 500, 503), said)
            self.assertEqual(self.changes(CONFIG), [])  # nothing was changed

    def test_what_cannot_change_is_named(self):
        for key, value in (
            ("listen", "127.0.0.1:1"),
            ("state", "/x"),
            ("socket", "/x/s"),
            ("server", "https://x"),
            ("names", "[x]"),
            ("store", "file:///x"),
            ("key_file", "/x/k"),
            ("secret_key_file", "/x/k"),
            ("deadlines", "{policy: uniform}"),
        ):
            text = self.refusal(
                CONFIG.replace("listen: 127.0.0.1:0\n", "") + "%s: %s\n" % (key, value)
            )
            self.assertIn("only a restart of belayd can change", text)
            self.assertIn(key, text)

    def test_teams_of_a_sign_in_are_kept(self):
        oidc = "teams: {vision: {}, nlp: {users: [bob]}}\noidc: {issuer: 'https://idp.example', "
        oidc += "client_id: belay, groups_claim: groups, teams: {v: vision}%s}\n"
        token = self.d.token(kind="api", user="cho")
        self.changes(CONFIG + oidc % "")
        self.submit(status=403, token=token, team="vision")
        self.d.stop()
        with contextlib.closing(sqlite3.connect(os.path.join(self.d.state, "belay.db"))) as db:
            db.execute("UPDATE tokens SET teams = 'vision', is_login = 1 WHERE user = 'cho'")
            db.commit()
        self.d.start()
        self.submit(token=token, team="vision", hold=True)
        for text in (oidc % ", token_lifetime: 2h", (oidc % "") + "visibility: all\n", oidc % ""):
            self.changes(CONFIG + text)
            self.submit(token=token, team="vision", hold=True)
        self.changes(CONFIG + "teams: {vision: {users: [ann]}, nlp: {users: [bob]}}\n")
        self.submit(status=403, token=token, team="vision")  # nobody signs in any more
        self.changes(CONFIG + oidc % "")
        self.submit(token=token, team="vision", hold=True)

    def test_sign_in_begins_and_ends(self):
        oidc = "oidc: {issuer: 'https://127.0.0.1:1', client_id: belay}\n"
        login = ("POST", "/login/device", {})
        before = self.d.call(*login)[0]
        self.changes(CONFIG + oidc)
        during = self.d.call(*login)[0]
        self.changes(CONFIG)
        self.assertEqual(self.d.call(*login)[0], before)
        self.assertNotEqual(during, before)

    def test_reloads_under_a_load_of_submissions(self):
        stop, problems, ids = threading.Event(), [], []

        def submit():
            n = 0
            while not stop.is_set():
                n += 1
                spec = {**JOB, "hold": n % 2 == 0, "qos": "low", "labels": {"k": str(n % 3)}}
                status, said, _ = self.d.call("POST", "/api/v1/jobs", spec)
                ids.append(said["id"]) if status == 201 else problems.append(said)

        texts = [
            CONFIG + "qos: {low: {}}\n",
            CONFIG
            + "qos: {high: {preempts: [low]}, low: {boost: 1h}}\n"
            + "budgets: {k: {usd_per_hour: 3, match: {labels: {k: '1'}}}}\n"
            + ALWAYS,
        ]
        self.changes(texts[0])
        threads = [threading.Thread(target=submit) for _ in range(3)]
        for t in threads:
            t.start()
        try:
            for i in range(30):
                self.assertTrue(self.changes(texts[(i + 1) % 2]))
        finally:
            stop.set()
            for t in threads:
                t.join()
        self.assertEqual(problems, [])
        self.assertGreater(len(ids), 30)
        self.assertEqual(len(set(ids)), len(ids))
        self.d.stop()
        self.d.start()  # what was committed is whole
        for job in ids[:: max(1, len(ids) // 20)]:
            self.assertEqual(self.job(job)["qos"], "low")
        self.assertEqual(re.findall("level=error|BROKEN", self.d.log()), [])


if __name__ == "__main__":
    unittest.main()
