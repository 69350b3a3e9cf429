# SPDX-License-Identifier: Apache-2.0
"""Who may do what, with a real belayd: each role makes each call of the API, others look for what
they may not see in every answer, and tokens are used outside of their scope. test_access.c has the
tables.
"""

import json
import os
import re
import subprocess
import sys
import time
import unittest

from belayd import BUILD, CONFIG, JOB, WAIT_S, Belayd, Node

sys.path.insert(0, os.path.join(BUILD, "clients", "python"))
import belay.client  # noqa: E402

ROLES = ["viewer", "member", "lead", "operator", "admin"]
USERS = dict(zip(ROLES, ["vic", "ben", "lea", "ola", "ada"]))
PEOPLE = """users: {vic: viewer, ola: operator, ada: admin}
teams:
  red: {users: [ann, ben, lea, vic], leads: [lea]}
  blue: {users: [cho, ola, ada]}
"""
SECRET = "s3cret"


def operations(d):
    for path, item in d.call("GET", "/api/v1/openapi.json")[1]["paths"].items():
        for method, operation in item.items():
            yield method.upper(), path, operation


class Roles(unittest.TestCase):
    def check_denied(self, reply, text):
        self.assertEqual((reply[0], reply[1]["error"]["kind"]), (403, "denied"), reply[1])
        self.assertIn(text, reply[1]["error"]["text"])

    def belayd(self, more=""):
        return Belayd(CONFIG + PEOPLE + more)

    # ---- role x call ----

    def test_each_call_is_refused_to_each_lesser_role(self):
        with self.belayd() as d:
            tokens = {role: d.token(kind="api", user=user) for role, user in USERS.items()}
            connections = {role: d.connect(tls=True) for role in ROLES}
            for role, token in tokens.items():
                self.assertEqual(d.call("GET", "/api/v1/version", token=token)[1]["role"], role)
            n = 0
            for method, path, operation in list(operations(d)):
                if not path.startswith("/api/") and path != "/metrics":
                    self.assertNotIn("x-belay-role", operation)
                    continue
                least = ROLES.index(operation["x-belay-role"])
                self.assertIn("403", operation["responses"], path)
                for role in ROLES:
                    # numbers that nothing has, and no body: nothing is changed
                    ends = path == "/api/v1/logout"  # the token that it is sent
                    status, body, _ = d.call(
                        method,
                        re.sub(r"\{\w+\}", "4711", path)
                        + ("?for_ms=1" if path == "/api/v1/stream" else ""),
                        token=d.token(kind="api", user=USERS[role]) if ends else tokens[role],
                        on=connections[role],
                    )
                    refused = status == 403 and re.search(
                        "needs (the role|an administrator)", body["error"]["text"]
                    )
                    with self.subTest(call=method + " " + path, role=role):
                        if ROLES.index(role) < least:
                            self.assertTrue(refused, (status, body))
                        elif status == 403:
                            # this call asks for an object, too: nobody's
                            self.assertIn("nodes", path, body)
                    n += 1
            for c in connections.values():
                c.close()
            self.assertGreater(n, 250)

    def test_a_secret_is_granted_to_teams_that_exist(self):
        with self.belayd() as d:
            ann = d.token(kind="api", user="ann")
            secret = {"name": "key", "value": "0123456789"}
            self.assertEqual(d.call("POST", "/api/v1/secrets", secret, token=ann)[0], 200)

            def grant(*to):
                body = {"name": "key", "add": to}
                return d.call("POST", "/api/v1/secrets/grant", body, token=ann)[:2]

            for team, why in (
                ("read", 'there is no team "read"; did you mean "red"?'),
                ("green-house", "(belay shares lists them)"),
            ):
                status, said = grant("user:ben", "team:" + team)
                self.assertEqual(status, 400, said)
                self.assertIn(why, said["error"]["text"])
            self.assertEqual(grant("team:blue")[0], 200)
            (kept,) = d.call("GET", "/api/v1/secrets", token=ann)[1]["secrets"]
            self.assertEqual(kept["grants"], ["team:blue"])

    def test_a_lead_changes_the_jobs_of_the_team_and_an_operator_all(self):
        with self.belayd() as d:
            ann, ben, lea, ola, cho, vic = (
                d.token(kind="api", user=u) for u in ("ann", "ben", "lea", "ola", "cho", "vic")
            )
            red = d.call("POST", "/api/v1/jobs", JOB, token=ann)[1]["id"]
            blue = d.call("POST", "/api/v1/jobs", JOB, token=cho)[1]["id"]
            self.check_denied(d.call("POST", "/api/v1/jobs", JOB, token=vic), "role member")

            def change(job, what, token, body=None):
                return d.call("POST", "/api/v1/jobs/%d/%s" % (job, what), body, token=token)

            for what in ("hold", "release", "cancel", "requeue", "update", "save", "reclaim"):
                self.check_denied(change(red, what, ben), "job %d is ann's" % red)
                self.check_denied(change(blue, what, lea), "job %d is cho's" % blue)
            for token in (lea, ola):
                self.assertEqual(change(red, "hold", token)[0], 200)
                self.assertEqual(change(red, "release", token)[0], 200)
                self.assertEqual(change(red, "update", token, {"nice": 5})[0], 200)
                self.check_denied(
                    change(red, "exec", token, {"command": ["sh"]}), "it runs commands as ann"
                )
            # what an operator holds, its owner does not release
            self.assertEqual(change(red, "hold", ola)[0], 200)
            self.assertEqual(change(red, "release", ann)[0], 403)
            self.assertEqual(change(red, "release", ola)[0], 200)
            # many at once
            told = d.call(
                "POST", "/api/v1/jobs/cancel", {"jobs": ["%d-%d" % (red, blue)]}, token=lea
            )[1]
            self.assertEqual((told["cancelled"], told["denied"]), (1, 1))
            self.assertEqual(change(blue, "cancel", ola)[0], 200)
            # a cron entry runs as its owner, so a lead may stop it but not say what it runs
            entry = d.call(
                "POST",
                "/api/v1/crons",
                {"name": "nightly", "schedule": "0 3 * * *", "job": JOB},
                token=ann,
            )[1]["id"]
            path = "/api/v1/crons/%d" % entry
            self.check_denied(
                d.call("POST", path, {"name": "x"}, token=lea), "runs commands as ann"
            )
            self.check_denied(
                d.call("POST", path, {"name": "x"}, token=ola), "runs commands as ann"
            )
            self.check_denied(d.call("POST", path + "/pause", token=ben), "cron entry")
            for what in ("pause", "resume", "run"):
                self.assertIn(d.call("POST", path + "/" + what, token=lea)[0], (200, 201))
            node = Node(d)
            self.check_denied(
                d.call("POST", "/api/v1/nodes/%d/drain" % node.number, token=lea), "role operator"
            )
            self.assertEqual(
                d.call("POST", "/api/v1/nodes/%d/drain" % node.number, token=ola)[0], 200
            )

    def test_jobs_run_as_the_account_of_their_pool(self):
        config = (
            "cluster: lab\nlisten: 127.0.0.1:0\npools:\n  base: {}\n"
            "  spare: {run_as: {ann: a.smith, '*': batch}}\n"
        )
        with Belayd(config) as d:
            nodes = {pool: Node(d, pool) for pool in ("base", "spare")}
            for user, pool, account in (
                ("ann", "base", "ann"),
                ("ann", "spare", "a.smith"),
                ("bob", "spare", "batch"),
            ):
                token = d.token(kind="api", user=user)
                job = d.call("POST", "/api/v1/jobs", {**JOB, "pool": pool}, token=token)[1]["id"]
                desired, end = nodes[pool].sync(), time.monotonic() + WAIT_S
                while job not in [a["job"] for a in desired.get("attempts", [])]:
                    self.assertLess(time.monotonic(), end)
                    desired = nodes[pool].sync(have_rev=desired["rev"], wait_ms=10000)
                self.assertEqual(
                    [a["user"] for a in desired["attempts"] if a["job"] == job], [account]
                )

    # ---- visibility ----

    def secrets(self, d, token):
        """A job that runs, one that has ended, and a cron entry, with SECRET wherever a user or an
        agent writes something.
        """
        spec = {
            **JOB,
            "name": SECRET,
            "script": "#!/bin/sh\n# %s\n" % SECRET,
            "args": [SECRET],
            "env": {"X": SECRET},
            "cwd": "/" + SECRET,
            "labels": {"exp": SECRET},
            "url": "https://lab.example/" + SECRET,
        }
        jobs = [d.call("POST", "/api/v1/jobs", spec, token=token)[1]["id"] for _ in range(2)]
        entry = d.call(
            "POST",
            "/api/v1/crons",
            {"name": SECRET, "schedule": "0 3 * * *", "job": spec},
            token=token,
        )[1]["id"]
        self.assertEqual(d.call("POST", "/api/v1/jobs/%d/cancel" % jobs[1], token=token)[0], 200)
        Node(d).begin(jobs[0])
        return jobs, entry

    def read_everything(self, d, token, jobs, entry):
        """The answers of every call that reads, as text, by path."""
        answers = {}
        more = [
            "/api/v1/jobs?state=all&why=1",
            "/api/v1/jobs?state=all&name=%s" % SECRET,
            "/api/v1/jobs?state=all&label=exp%%3D%s" % SECRET,
            "/api/v1/cost?by=label:exp",
            "/api/v1/cost?by=project,user",
            "/api/v1/cost?by=user,label:exp",
            "/api/v1/advice?user=ann",
            "/api/v1/forgotten?for_ms=0&volumes=none",
        ]
        for method, path, _ in operations(d):
            if method == "GET" and (path.startswith("/api/") or path == "/metrics"):
                ids = [entry] if "/crons/" in path else jobs
                more += [path.replace("{id}", str(i)) for i in ids]
        c = d.connect(tls=True)
        for path in more:
            is_stream = path == "/api/v1/stream"  # from the first event on, for a moment
            status, body, _ = d.call(
                "GET",
                path + ("?for_ms=1" if is_stream else ""),
                token=token,
                on=c,
                headers={"Last-Event-ID": "0-0"} if is_stream else None,
            )
            text = body.decode() if isinstance(body, bytes) else json.dumps(body)
            answers[path] = (status, text)
        c.close()
        return answers

    def test_visibility_says_who_reads_the_jobs_of_others(self):
        for visibility, readers in (
            ("owner", {"ann", "lea", "ola", "ada"}),
            ("team", {"ann", "ben", "lea", "vic", "ola", "ada"}),
            ("all", {"ann", "ben", "cho", "lea", "vic", "ola", "ada", "nobody"}),
        ):
            with self.belayd("visibility: %s\n" % visibility) as d:
                ann = d.token(kind="api", user="ann")
                jobs, entry = self.secrets(d, ann)
                for user in ("ann", "ben", "cho", "lea", "vic", "ola", "ada", "nobody"):
                    token = d.token(kind="api", user=user)
                    answers = self.read_everything(d, token, jobs, entry)
                    leaks = {p for p, (_, text) in answers.items() if SECRET in text}
                    path = "/api/v1/jobs/%d" % jobs[0]
                    with self.subTest(visibility=visibility, user=user):
                        if user in readers:
                            self.assertIn(path, leaks)
                            self.assertIn("/api/v1/crons/%d" % entry, leaks)
                            self.assertIn("/api/v1/jobs?state=all&name=" + SECRET, leaks)
                            continue
                        self.assertEqual(leaks, set())
                        for part in ("", "/why", "/events", "/logs", "/diagnose", "/load"):
                            status, text = answers[path + part]
                            self.assertEqual(status, 403)
                            self.assertIn("job %d is ann's" % jobs[0], text)
                        self.assertEqual(answers["/api/v1/crons/%d/runs" % entry][0], 403)
                        self.assertEqual(answers["/api/v1/cost?by=label:exp"][0], 403)
                        listed = json.loads(answers["/api/v1/jobs?state=all&why=1"][1])["jobs"]
                        shown = [j for j in listed if j["id"] == jobs[0]][0]
                        self.assertEqual(
                            [shown[k] for k in ("hidden", "name", "url", "user", "state", "cpus")],
                            [True, "-", None, "ann", "running", 1],
                        )
                        for how in ("name=" + SECRET, "label=exp%3D" + SECRET):
                            self.assertEqual(
                                json.loads(answers["/api/v1/jobs?state=all&" + how][1])["jobs"], []
                            )
                        events = json.loads(answers["/api/v1/events"][1])["events"]
                        of_job = [e for e in events if e["job"] == jobs[0]]
                        self.assertIn("submitted", [e["kind"] for e in of_job])
                        self.assertEqual(
                            {e["text"] for e in of_job}, {"not shown: the job is another user's"}
                        )

    def test_a_waiting_reader_of_all_events_gets_no_text_of_others(self):
        with self.belayd() as d:
            ann, cho = (d.token(kind="api", user=u) for u in ("ann", "cho"))
            last = d.call("GET", "/api/v1/events", token=cho)[1]["last"]
            c = d.connect(tls=True)
            c.request(
                "GET",
                "/api/v1/events?wait_ms=20000&after=%d" % last,
                headers={"Authorization": "Bearer " + cho},
            )
            d.call("POST", "/api/v1/jobs", {**JOB, "name": SECRET}, token=ann)
            reply = c.getresponse().read().decode()
            c.close()
            self.assertIn("not shown", reply)
            self.assertNotIn(SECRET, reply)

    # ---- tokens ----

    def test_users_create_tokens_that_give_no_more_than_they_have(self):
        with self.belayd() as d:
            ann, vic, ola = (d.token(kind="api", user=u) for u in ("ann", "vic", "ola"))

            def create(token, **request):
                return d.call("POST", "/api/v1/tokens", {"kind": "api", **request}, token=token)

            status, made, _ = create(ann, scope="read-only")
            self.assertEqual(status, 201)
            self.check_denied(create(vic), "role member")
            self.check_denied(create(ann, role="operator"), "ann is member")
            self.check_denied(create(ann, role="admin"), "administrator")
            self.check_denied(create(ann, admin=True), "administrator")
            self.check_denied(create(ann, user="ola"), "ola's")
            self.check_denied(create(made["token"]), "read-only")
            # one that is limited creates no greater one, nor one that lives longer
            less = create(ola, role="member", ttl_ms=3600000)[1]
            self.check_denied(create(less["token"], role="operator"), "member")
            child = create(less["token"], ttl_ms=0)[1]
            self.assertEqual(child["expires_at"], less["expires_at"])
            self.assertEqual(
                d.call("GET", "/api/v1/version", token=child["token"])[1]["role"], "member"
            )
            for wrong in ("admin", "pool=", "pool=nope", "cron=4711", "cron=x", "x" * 200):
                status, said, _ = create(ann, scope=wrong)
                self.assertIn(status, (400, 404), wrong)
                self.assertNotIn("scope: scope", said["error"]["text"])
            self.assertEqual(create(ann, role="king")[0], 400)
            mine = d.call("GET", "/api/v1/tokens", token=ann)[1]["tokens"]
            self.assertEqual({t["user"] for t in mine}, {"ann"})
            self.assertEqual([t["scope"] for t in mine if t["id"] == made["id"]], ["read-only"])
            self.check_denied(
                d.call("POST", "/api/v1/tokens/%d/revoke" % less["id"], token=ann), "ola's"
            )
            self.assertEqual(
                d.call("POST", "/api/v1/tokens/%d/revoke" % made["id"], token=ann)[0], 200
            )
            self.assertEqual(d.call("GET", "/api/v1/jobs", token=made["token"])[0], 401)

    def test_tokens_do_what_their_scope_says(self):
        with self.belayd() as d:
            ann = d.token(kind="api", user="ann")
            crons = [
                d.call(
                    "POST",
                    "/api/v1/crons",
                    {"name": name, "schedule": "0 3 * * *", "job": JOB},
                    token=ann,
                )[1]["id"]
                for name in ("a", "b")
            ]
            read, ci, base, run = (
                d.token(kind="api", user="ann", scope=s)
                for s in ("read-only", "ci", "pool=base", "cron=%d" % crons[0])
            )

            def post(token, path, body=None):
                return d.call("POST", "/api/v1/" + path, body, token=token)

            job = d.call("POST", "/api/v1/jobs", {**JOB, "pool": "spare"}, token=ci)[1]["id"]
            for token in (read, ci, base):
                self.assertEqual(d.call("GET", "/api/v1/jobs/%d" % job, token=token)[0], 200)
            self.check_denied(post(read, "jobs", JOB), "read-only")
            self.check_denied(post(read, "jobs/%d/cancel" % job), "read-only")
            self.check_denied(post(ci, "crons", {}), "submitting, changing and following")
            self.check_denied(post(ci, "jobs/%d/exec" % job, {"command": ["sh"]}), "ci")
            self.check_denied(post(base, "jobs/%d/cancel" % job), "pool base only")
            self.check_denied(post(base, "jobs", {**JOB, "pool": "spare"}), "pool base only")
            self.check_denied(post(base, "jobs/estimate", {**JOB, "pool": "spare"}), "pool base")
            mine = post(base, "jobs", JOB)[1]["id"]
            self.assertEqual(
                d.call("GET", "/api/v1/jobs/%d" % mine, token=base)[1]["job"]["pool"], "base"
            )
            self.check_denied(
                post(base, "jobs/%d/update" % mine, {"pool": "spare"}), "pool base only"
            )
            self.assertEqual(post(base, "jobs/%d/cancel" % mine)[0], 200)
            started = post(run, "crons/%d/run" % crons[0])
            self.assertEqual(started[0], 201)
            of_entry = started[1]["id"]
            self.assertEqual(d.call("GET", "/api/v1/jobs/%d" % of_entry, token=run)[0], 200)
            self.check_denied(post(run, "crons/%d/run" % crons[1]), "cron entry %d" % crons[0])
            self.check_denied(post(run, "crons/%d" % crons[0], {"name": "x"}), "cron entry")
            self.check_denied(post(run, "crons/%d/pause" % crons[0]), "cron entry")
            self.check_denied(post(run, "jobs", JOB), "cron entry")
            self.check_denied(d.call("GET", "/api/v1/jobs/%d" % job, token=run), "job %d" % job)
            # an administrator's token is no administrator's within its scope
            less = d.token(kind="api", user="ada", scope="read-only")
            told = d.call("GET", "/api/v1/version", token=less)[1]
            self.assertEqual((told["role"], told["admin"]), ("admin", False))
            self.check_denied(post(less, "audit"), "read-only")

    # ---- rates ----

    def test_a_user_beyond_the_rate_is_asked_to_wait_and_the_command_does(self):
        with self.belayd("requests_per_second: 1\nrequests_burst: 5\n") as d:
            path = os.path.join(d.dir, "token")
            token, boss = d.token(kind="api", user="ann"), d.token(kind="api", user="ada")
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
                f.write(token)
            end, refused = time.monotonic() + WAIT_S, None
            while not refused and time.monotonic() < end:
                reply = d.call("GET", "/api/v1/version", token=token)
                refused = reply if reply[0] == 429 else None
            self.assertEqual(refused[1]["error"]["kind"], "throttled")
            self.assertIn("requests_per_second", refused[1]["error"]["text"])
            self.assertEqual(refused[2]["Retry-After"], "1")
            self.assertGreaterEqual(d.metric('belay_api_rate_limited_total{of="user"}'), 1)
            self.assertEqual(d.metric('belay_api_rate_limited_total{of="sign-in"}'), 0)
            for _ in range(20):
                self.assertEqual(d.call("GET", "/api/v1/version", token=boss)[0], 200)
            for _ in range(3):
                done = subprocess.run(
                    [os.path.join(BUILD, "cli/belay"), "list"],
                    env={
                        **os.environ,
                        "BELAY_SERVER": d.url,
                        "BELAY_TOKEN_FILE": path,
                        "BELAY_CA_FILE": os.path.join(d.state, "ca.pem"),
                    },
                    timeout=WAIT_S,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
                self.assertEqual((done.returncode, done.stderr), (0, b""))
            client = belay.client.Client(
                server=d.url, token=token, ca_file=os.path.join(d.state, "ca.pem")
            )
            for _ in range(3):
                self.assertEqual(client.version()["user"], "ann")

    def test_the_lists_of_the_commands_have_the_jobs_of_others_without_what_they_are(self):
        with self.belayd() as d:
            jobs, _ = self.secrets(d, d.token(kind="api", user="ann"))
            pending = d.call(
                "POST", "/api/v1/jobs", {**JOB, "cpus": 4000}, token=d.token(kind="api", user="ann")
            )[1]["id"]
            path = os.path.join(d.dir, "token")
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
                f.write(d.token(kind="api", user="cho"))
            squeue = os.path.join(d.dir, "squeue")
            os.symlink(os.path.join(BUILD, "cli/belay"), squeue)

            def run(*words):
                return subprocess.run(
                    words,
                    env={
                        **os.environ,
                        "BELAY_SERVER": d.url,
                        "BELAY_TOKEN_FILE": path,
                        "BELAY_CA_FILE": os.path.join(d.state, "ca.pem"),
                    },
                    timeout=WAIT_S,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    universal_newlines=True,
                )

            for words in (
                (squeue, "-h", "-o", "%i %j %u %t %r %N %Z"),
                (os.path.join(BUILD, "cli/belay"), "list"),
                (os.path.join(BUILD, "cli/belay"), "top", "-1"),
            ):
                done = run(*words)
                self.assertEqual((done.returncode, done.stderr), (0, ""), words)
                self.assertNotIn(SECRET, done.stdout)
                self.assertIn("ann", done.stdout)
            self.assertIn("%d - ann PD" % pending, run(squeue, "-h", "-o", "%i %j %u %t").stdout)
            done = run(squeue, "-h", "-j", str(jobs[0]))
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("job %d is ann's" % jobs[0], done.stderr)


if __name__ == "__main__":
    unittest.main()
