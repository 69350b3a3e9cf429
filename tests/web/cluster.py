# SPDX-License-Identifier: Apache-2.0
"""A small cluster with people, jobs, money and a cloud, for the tests of the web console and its
screenshots: real processes, as in tests/e2e/lab.py.

    with Cluster() as c:
        jobs = c.story()
        token = c.token("ann")
"""

import contextlib
import http.client
import json
import os
import random
import sqlite3
import ssl
import sys
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from lab import BUILD, JOBS, PYTHON, WAIT_S, Lab  # noqa: E402,F401

ROLES = {"vic": "viewer", "ann": "member", "lea": "lead", "ola": "operator", "ada": "admin"}
ACCOUNT = "nobody"  # of all jobs, where the agents run as root
DAY_MS = 24 * 3600 * 1000
CLOUD = {
    "boot_delay_ms": 300,
    "pools": [
        {
            "zone": zone,
            "type": "m6i.xlarge",
            "spot": {"capacity": 8, "usd_per_hour": usd},
            "on_demand": {"capacity": 8},
        }
        for zone, usd in (("us-east-1a", 0.0768), ("us-east-1b", 0.0812))
    ],
}
POOL = {
    "idle_timeout": "5s",
    "run_as": {"*": ACCOUNT},
}
BELAYD = {
    "cluster": "vision-lab",
    "users": {"vic": "viewer", "ola": "operator", "ada": "admin"},
    "teams": {
        "vision": {"shares": 30, "users": ["ann", "ben", "lea", "vic"], "leads": ["lea"]},
        "language": {"shares": 50, "users": ["cho", "dee"]},
        "ops": {"shares": 20, "users": ["ola", "ada"]},
    },
    "visibility": "all",
    "qos": {"urgent": {"boost": "1d", "preempts": ["spare"]}, "spare": {"boost": "-7d"}},
    "budgets": {
        "vision": {"match": {"team": "vision"}, "usd_per_month": 2000, "at_limit": "park"},
        "language": {"match": {"team": "language"}, "usd_per_month": 3000},
        "sweeps": {"match": {"labels": {"project": "sweep"}}, "usd_per_day": 25},
    },
}
# What the made-up weeks before today cost: team, user, project, dollars a day, part that is spot.
SPENDING = [
    ("vision", "ann", "resnet", 74.0, 0.9),
    ("vision", "ben", "sweep", 31.0, 1.0),
    ("language", "cho", "llm", 160.0, 0.8),
    ("language", "dee", "eval", 22.0, 0.5),
    ("ops", "ola", "nightly", 6.0, 0.0),
]
SPOT_SAVES = 0.4  # of the on-demand price is what spot costs

FAILS = r"""#!/bin/sh
printf '\033[1mloading\033[0m shard 1 of 4 \033[32mok\033[0m\n'
printf '\033[33mwarning:\033[0m 12 images have no label\n'
printf '\033[31merror:\033[0m /data/val/0131.tar: unexpected end of file\n'
exit 3
"""
SLEEPS = "#!/bin/sh\necho rank $BELAY_NODE_RANK of $BELAY_NNODES\nexec sleep 100000\n"


class Cluster(Lab):
    def __init__(self, belayd=None, pool=None, cloud=None):
        super().__init__(
            cloud={**CLOUD, **(cloud or {})},
            pool={**POOL, **(pool or {})},
            belayd={**BELAYD, **(belayd or {})},
            agent_prelude="export BELAY_NODE_SYSTEM_USERS=" + ACCOUNT,
        )

    def start(self):
        os.chmod(self.dir, 0o711)  # the account's programs are below it
        super().start()

    # ---- people ----

    def url(self):
        with open(os.path.join(self.home, "belayd.json")) as f:
            return json.load(f)["url"]

    def token(self, user, **more):
        return self.post("/tokens", {"kind": "api", "user": user, **more})["token"]

    def call_as(self, token, method, path, body=None):
        """Returns the status and the body of a call with a user's token."""
        where = urllib.parse.urlsplit(self.url())
        ca = ssl.create_default_context(cafile=os.path.join(self.home, "ca.pem"))
        c = http.client.HTTPSConnection(where.hostname, where.port, timeout=WAIT_S, context=ca)
        with contextlib.closing(c):
            c.request(
                method,
                "/api/v1" + path,
                None if body is None else json.dumps(body),
                {"Authorization": "Bearer " + token, "Content-Type": "application/json"},
            )
            reply = c.getresponse()
            return reply.status, json.loads(reply.read())

    def post_as(self, user, path, body=None):
        """Does what must succeed; keeps one token a user."""
        tokens = self.__dict__.setdefault("tokens", {})
        if user not in tokens:
            tokens[user] = self.token(user)
        status, answer = self.call_as(tokens[user], "POST", path, body or {})
        if status >= 300:
            raise AssertionError("%s: POST %s: %d %s" % (user, path, status, answer))
        return answer

    def job_as(self, user, name, program=None, *args, **spec):
        """Submits a program of tests/e2e/jobs, or a script (script=); returns the job's number."""
        if program:
            spec["script"] = '#!/bin/sh\nexec %s %s "$@"\n' % (PYTHON, os.path.join(JOBS, program))
        spec = {"name": name, "cwd": "/", "args": [str(a) for a in args], "cpus": 1, **spec}
        return self.post_as(user, "/jobs", spec)["id"]

    # ---- a day in the cluster ----

    def story(self):
        """Jobs in all states; `train` has just survived a reclaim. Returns their numbers, and
        those of cron entries, a node and a pool."""
        coop = {"method": "coop", "every_ms": 3000, "keep": 5}
        jobs = {}
        jobs["train"] = self.job_as(
            "ann",
            "train-resnet",
            "chain.py",
            100000,
            0.5,
            65536,
            checkpoint=coop,
            market="spot",
            labels={"project": "resnet", "model": "r50"},
            url="https://mlflow.lab.example/runs/41f2",
            exclusive=True,
        )
        jobs["deadline"] = self.job_as(
            "ann",
            "finetune-clip",
            "paced.py",
            3000,
            finish_in_ms=3600 * 1000,
            work_ms=3000 * 1000,
            checkpoint=coop,
            labels={"project": "resnet"},
        )
        jobs["gang"] = self.job_as(
            "cho", "pretrain-1b", script=SLEEPS, nodes=2, exclusive=True, labels={"project": "llm"}
        )
        jobs["array"] = self.job_as(
            "ben",
            "lr-sweep",
            "paced.py",
            4,
            array="0-11%3",
            qos="spare",
            checkpoint={"method": "coop"},
            labels={"project": "sweep"},
        )
        jobs["failed"] = self.job_as("dee", "evaluate", script=FAILS, labels={"project": "eval"})
        jobs["held"] = self.job_as("ann", "distil", script=SLEEPS, hold=True)
        jobs["unfit"] = self.job_as("dee", "render-frames", script=SLEEPS, cpus=96)
        jobs["after"] = self.job_as(
            "ann", "export-onnx", script=SLEEPS, depends=[{"kind": "afterok", "job": jobs["train"]}]
        )
        jobs["quick"] = self.job_as("ann", "smoke-test", "paced.py", 0.2)
        for name, user, schedule, zone in (
            ("nightly-eval", "ann", "30 2 * * *", "Europe/Berlin"),
            ("refresh-index", "cho", "0 */6 * * *", "UTC"),
            ("weekly-report", "ola", "0 8 * * 1", "Europe/Berlin"),
        ):
            job = {"name": name, "script": "#!/bin/sh\ntrue\n", "cwd": "/"}
            entry = {"name": name, "schedule": schedule, "zone": zone, "job": job}
            jobs[name] = self.post_as(user, "/crons", entry)["id"]
        self.wait_event(jobs["train"], "saved", 2)
        self.cloud({"reclaim": {"instance": self.instance_of(jobs["train"]), "notice_s": 8}})
        self.wait(lambda: len(self.show(jobs["train"])["attempts"]) > 1, "the second attempt")
        self.wait_log(jobs["train"], r"---- belay: attempt 2[^\n]*\n(.*\n)*step ")
        jobs["node"], jobs["pool"] = self.show(jobs["train"])["attempts"][-1]["node"], "cloud"
        self.wait_ended(jobs["failed"])
        self.wait_ended(jobs["quick"])
        node = self.get("/nodes")["nodes"][0]
        jobs.update(node=node["id"], pool=node["pool"])
        return jobs

    def fill_weeks(self, days=35):
        """Makes up what the days before today cost. belayd restarts; nothing else does."""
        for problem in self.stop_belayd():
            raise AssertionError(problem)
        chance, today = random.Random(1), int(time.time() * 1000) // DAY_MS
        with contextlib.closing(sqlite3.connect(os.path.join(self.home, "belay.db"))) as db:
            for project in {row[2] for row in SPENDING}:
                db.execute(
                    "INSERT INTO label_sets (labels_json) VALUES (?) ON CONFLICT DO NOTHING",
                    (json.dumps({"project": project}, separators=(",", ":")),),
                )
            for day in range(today - days, today):
                for row in SPENDING:
                    self.add_day(db, day, row, chance)
            for team in ("vision", "language"):
                db.execute(
                    "UPDATE budgets SET booked_uusd = booked_uusd + (SELECT coalesce(sum(uusd), 0)"
                    " FROM cost_sums WHERE span = 31 AND detail = 1 AND team = ?1 AND since ="
                    " (SELECT max(since) FROM cost_sums WHERE span = 31)) WHERE name = ?1",
                    (team,),
                )
            db.commit()
        self.up()

    def add_day(self, db, day, row, chance):
        team, user, project, usd, spot = row
        usd *= chance.uniform(0.6, 1.3) * (0.4 if (day + 3) % 7 >= 5 else 1)  # weekends are quieter
        (labels,) = db.execute(
            "SELECT id FROM label_sets WHERE labels_json LIKE ?", ('%%"%s"%%' % project,)
        ).fetchone()
        for market, part in (("spot", spot), ("on-demand", 1 - spot)):
            for kind, of_it in (("useful", 0.9), ("boot", 0.03), ("save", 0.03), ("lost", 0.04)):
                listed = int(usd * part * of_it * 1e6)
                paid = int(listed * SPOT_SAVES) if market == "spot" else listed
                ms = int(listed / 0.192 * 3.6)
                if listed:
                    self.add_sum(db, day, (labels, team, user, market, kind), ms, paid, listed)

    def add_sum(self, db, day, of, ms, paid, listed):
        """The six sets of sums of db/rollup.c."""
        labels, team, user, market, kind = of
        month = time.gmtime(day * 86400)
        first = day - month.tm_mday + 1
        for span, detail in ((1, 7), (1, 3), (31, 7), (31, 3), (31, 2), (31, 1)):
            people, machines = detail & 1, detail & 2
            db.execute(
                "INSERT INTO cost_sums VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,0,0)"
                " ON CONFLICT DO UPDATE SET ms = ms + excluded.ms, node_ms = node_ms +"
                " excluded.node_ms, uusd = uusd + excluded.uusd,"
                " on_demand_uusd = on_demand_uusd + excluded.on_demand_uusd",
                (
                    span,
                    detail,
                    day if span == 1 else first,
                    labels if detail == 7 else 0,
                    team if people else "",
                    user if people else "",
                    "cloud" if machines else "",
                    "m6i.xlarge" if machines else "",
                    market if machines else "",
                    kind,
                    ms,
                    ms,
                    paid,
                    listed,
                ),
            )
