# SPDX-License-Identifier: Apache-2.0
"""belay cost and its API call, by every grouping, on sums that are written into the database of a
running belayd.
"""

import csv
import datetime
import io
import json
import os
import sqlite3
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scheduler"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import report_page  # noqa: E402
from belayd import BUILD, CONFIG, Belayd  # noqa: E402

HOUR = 3600000
OCTOBER, NOVEMBER, JANUARY = (
    20362,
    20393,
    20819,
)  # 2025-10-01, 2025-11-01 and 2027-01-01, days since 1970


class Cost(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # its dates are of 2025
        cls.belayd = Belayd(
            CONFIG + "retention: {jobs: forever, logs: forever, daily_costs: forever}\n"
        )
        cls.d = cls.belayd.__enter__()
        cls.addClassCleanup(cls.belayd.__exit__, None, None, None)
        with sqlite3.connect(os.path.join(cls.d.state, "belay.db"), timeout=30) as cls.sql:
            cls.sql.execute(
                'INSERT INTO label_sets VALUES (1, \'{"model": "a", "project": "x"}\'), (2, \'{"model": "b"}\')'
            )
            cls.spent(OCTOBER, 1, "nlp", "ann", "useful", 3 * HOUR, 6000000, 20000000)
            cls.spent(OCTOBER + 3, 1, "nlp", "ann", "lost", HOUR, 2000000, 0)
            cls.spent(OCTOBER + 3, 1, "nlp", "ann", "", 0, 0, 0, ended=2, succeeded=1)
            cls.spent(OCTOBER + 30, 2, "nlp", "bob", "useful", HOUR, 1000000, 4000001)
            cls.spent(NOVEMBER, 0, "vision", "eve", "useful", HOUR, 500000, 700000)
            cls.spent(NOVEMBER, 0, "vision", "eve", "", 0, 0, 0, ended=1, succeeded=1)
            cls.spent(NOVEMBER + 2, 0, "", "", "idle", 2 * HOUR, 333, 0)
            for id, name, user, team, at, uusd in (
                (1, "<b>dear</b>", "bob", "nlp", OCTOBER + 30, 400000),
                (2, "y", "eve", "vision", NOVEMBER, 500000),
                (3, "z", "ann", "nlp", OCTOBER + 3, 8000000),
            ):
                cls.job(
                    id=id,
                    name=name,
                    user=user,
                    team=team,
                    ended_at=at * 24 * HOUR,
                    cost_uusd=uusd,
                    state="ended",
                    end_kind="succeeded",
                    market="any",
                    method="none",
                )
        cls.sql.close()

    @classmethod
    def job(cls, **values):
        for _, name, kind, required, default, _ in cls.sql.execute("PRAGMA table_info(jobs)"):
            if required and default is None and name not in values:
                values[name] = "" if kind == "TEXT" else 0
        cls.sql.execute(
            "INSERT INTO jobs (%s) VALUES (%s)" % (", ".join(values), ", ".join("?" * len(values))),
            list(values.values()),
        )

    @classmethod
    def spent(
        cls,
        day,
        labels,
        team,
        user,
        kind,
        ms,
        uusd,
        on_demand,
        ended=0,
        succeeded=0,
        machine=("burst", "m5.large", "spot"),
    ):
        """Writes sums as db/rollup.c keeps them: by day and by month, with and without labels, and
        by month for users and machines only.
        """
        month = max(m for m in (OCTOBER, NOVEMBER, JANUARY) if m <= day)
        of_machine = machine if kind else ("", "", "")
        only_market = ("", "", of_machine[2] if kind == "idle" else "")
        for span, detail, since in (
            (1, 7, day),
            (1, 3, day),
            (31, 7, month),
            (31, 3, month),
            (31, 2, month),
            (31, 1, month),
        ):
            cls.sql.execute(
                "INSERT INTO cost_sums VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET ms = ms + excluded.ms,"
                " uusd = uusd + excluded.uusd, on_demand_uusd = on_demand_uusd + excluded.on_demand_uusd",
                (
                    span,
                    detail,
                    since,
                    labels if detail == 7 else 0,
                    *((team, user) if detail & 1 else ("", "")),
                    *(of_machine if detail & 2 else only_market),
                    kind,
                    ms,
                    ms,
                    uusd,
                    on_demand,
                    ended,
                    succeeded,
                ),
            )

    def belay(self, *words, expect=0):
        done = subprocess.run(
            [os.path.join(BUILD, "cli/belay"), "cost", *words],
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "BELAY_SOCKET": self.d.socket},
        )
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout if expect == 0 else done.stderr

    def lines(self, *words):
        said = json.loads(self.belay(*words, "--json"))
        return {tuple(line["keys"]): line["uusd"] for line in said["lines"]}

    def test_each_way_of_asking_has_a_line_for_each_value(self):
        for words, expected in (
            (("--by", "team"), {("",): 333, ("nlp",): 9000000, ("vision",): 500000}),
            (
                ("--by", "user"),
                {("",): 333, ("ann",): 8000000, ("bob",): 1000000, ("eve",): 500000},
            ),
            (("--by", "label:model"), {("",): 500333, ("a",): 8000000, ("b",): 1000000}),
            (("--by", "project"), {("",): 1500333, ("x",): 8000000}),
            (("--by", "pool"), {("burst",): 9500333}),
            (("--by", "type"), {("m5.large",): 9500333}),
            (("--by", "market"), {("spot",): 9500333}),
            (("--by", "kind"), {("idle",): 333, ("lost",): 2000000, ("useful",): 7500000}),
            (("--by", "month"), {("2025-10",): 9000000, ("2025-11",): 500333}),
            (("--month",), {("2025-10",): 9000000, ("2025-11",): 500333}),
            (
                ("--week",),
                {("2025-09-29",): 8000000, ("2025-10-27",): 1500000, ("2025-11-03",): 333},
            ),
            (
                ("--by", "team", "--month"),
                {("", "2025-11"): 333, ("nlp", "2025-10"): 9000000, ("vision", "2025-11"): 500000},
            ),
            (
                ("--by", "user,label:model", "--day", "--team", "nlp"),
                {
                    ("ann", "a", "2025-10-01"): 6000000,
                    ("ann", "a", "2025-10-04"): 2000000,
                    ("bob", "b", "2025-10-31"): 1000000,
                },
            ),
            (("--by", "team", "--month", "2025-11"), {("",): 333, ("vision",): 500000}),
            (("--by", "team", "--week", "2025-11-02"), {("nlp",): 1000000, ("vision",): 500000}),
            (("--by", "team", "--day", "2025-10-31"), {("nlp",): 1000000}),
            (
                ("--by", "user", "--from", "2025-10-04T00:00:00Z", "--to", "2025-11-02T00:00:00Z"),
                {("ann",): 2000000, ("bob",): 1000000, ("eve",): 500000},
            ),
            (
                ("--by", "user", "--from", "2025-10-04", "--to", "2025-11-02"),
                {("ann",): 2000000, ("bob",): 1000000, ("eve",): 500000},
            ),
            (("--by", "month", "--user", "ann", "--pool", "burst"), {("2025-10",): 8000000}),
            (("--by", "month", "--pool", "none"), {}),
        ):
            with self.subTest(words):
                self.assertEqual(self.lines(*words), expected)

    def test_the_total_is_the_same_by_whatever_key(self):
        sums = ("uusd", "on_demand_uusd", "useful_ms", "lost_ms", "total_ms")
        keys = (
            *("user", "team", "project", "label:model", "pool", "type", "market", "kind"),
            *("day", "week", "month", "team,month", "pool,day", "user,market"),
            *("kind,user", "type,market,pool,kind"),
        )
        first = json.loads(self.belay("--by", "user", "--json"))["total"]
        self.assertEqual((first["uusd"], first["jobs"], first["succeeded"]), (9500333, 3, 2))
        for by in keys:
            with self.subTest(by):
                said = json.loads(self.belay("--by", by, "--json"))
                for key in sums:
                    of_lines = sum(line[key] for line in said["lines"])
                    self.assertEqual((of_lines, said["total"][key]), (first[key], first[key]), key)
                counts = [said["total"][key] for key in ("jobs", "succeeded", "spent_uusd")]
                self.assertEqual(
                    counts, [first[key] for key in ("jobs", "succeeded", "spent_uusd")]
                )
                of_lines = [line["jobs"] for line in said["lines"]]
                if None not in of_lines:
                    self.assertEqual(sum(of_lines), 3)
                table = self.belay("--by", by)
                self.assertRegex(table, r"(?m)^total +3 +\$9\.50 ")
        # by job, and for a moment within a day, the ledger's rows are added up
        at = ("--from", "2025-10-01T00:00:01Z")
        for words in (("--by", "job"), *((("--by", by, *at)) for by in ("user", "pool", "day"))):
            self.assertEqual(json.loads(self.belay(*words, "--json"))["total"]["jobs"], 3, words)

    def test_idle_time_of_owned_machines_has_a_row_of_its_own(self):
        owned = ("local", "8 cpus", "owned")
        with sqlite3.connect(os.path.join(self.d.state, "belay.db"), timeout=30) as type(self).sql:
            self.spent(JANUARY + 1, 0, "", "", "idle", HOUR, 7000000, 0, machine=owned)
            self.spent(JANUARY + 1, 0, "", "", "idle", HOUR, 20, 0)
            self.spent(JANUARY + 1, 0, "nlp", "ann", "useful", HOUR, 1000000, 0, machine=owned)
        self.addCleanup(self.forget)
        for by, others in (
            ("user", {("",): 20, ("ann",): 1000000}),
            ("team", {("",): 20, ("nlp",): 1000000}),
            ("label:model", {("",): 1000020}),
            ("market", None),
        ):
            got = self.lines("--by", by, "--month", "2027-01")
            if others:
                self.assertEqual(got, {**others, ("(idle, owned)",): 7000000}, by)
            else:
                self.assertEqual(got, {("owned",): 8000000, ("spot",): 20})
        self.assertEqual(
            self.lines("--by", "user", "--month", "2027-01", "--user", "ann"), {("ann",): 1000000}
        )
        self.assertIn("(idle, owned)", self.belay("--by", "user,day", "--month", "2027-01"))

    def test_what_data_cost_on_its_way_takes_no_time(self):
        day = JANUARY + 1
        with sqlite3.connect(os.path.join(self.d.state, "belay.db"), timeout=30) as type(self).sql:
            self.spent(day, 0, "nlp", "ann", "useful", HOUR, 1000000, 3000000)
            self.spent(day, 0, "nlp", "ann", "egress", 0, 378000000, 0)
        self.addCleanup(self.forget)
        period = ("--month", "2027-01")
        said = json.loads(self.belay("--by", "kind", *period, "--json"))
        self.assertEqual(
            {line["key"]: (line["uusd"], line["total_ms"]) for line in said["lines"]},
            {"egress": (378000000, 0), "useful": (1000000, HOUR)},
        )
        table = self.belay("--by", "user", *period).splitlines()
        self.assertIn("DATA", table[0])
        self.assertIn("$378.00", table[1])
        rows = list(csv.DictReader(io.StringIO(self.belay("--by", "user", *period, "--csv"))))
        self.assertEqual(
            (rows[0]["egress_uusd"], rows[0]["useful_uusd"], rows[0]["total_ms"]),
            ("378000000", "1000000", str(HOUR)),
        )
        self.assertNotIn("DATA", self.belay("--by", "user", "--month", "2025-10"))
        report = self.belay("--weekly-report", "--week", "2027-01-02")
        self.assertIn("data                $378.00 for checkpoints", report)

    def forget(self):
        with sqlite3.connect(os.path.join(self.d.state, "belay.db"), timeout=30) as sql:
            sql.execute("DELETE FROM cost_sums WHERE since >= ?", (JANUARY,))

    def test_what_reclaims_cost_and_what_a_job_and_a_model_did(self):
        said = json.loads(self.belay("--by", "label:model", "--json"))
        self.assertEqual(said["total"]["done"], {"keys": 1, "uusd": 8000000})
        table = self.belay("--by", "label:model").splitlines()
        self.assertEqual(table[0].split()[:4], ["MODEL", "JOBS", "COST", "ON-DEMAND"])
        self.assertEqual(
            table[2].split(),
            ["a", "2", "$8.00", "$20.00", "60", "%", "4h00m", "75", "%", "$2.00", "$8.00"],
        )
        self.assertEqual(
            table[-1], "model: 1 with a job that succeeded, $8.00 each, including failed attempts"
        )
        self.assertEqual(
            self.belay("--by", "team", "--month").splitlines()[0].split()[:3],
            ["TEAM", "MONTH", "JOBS"],
        )

    def test_a_spreadsheet_gets_every_number(self):
        rows = list(csv.DictReader(io.StringIO(self.belay("--by", "label:model,kind", "--csv"))))
        self.assertEqual(
            [(r["model"], r["kind"], r["jobs"], r["uusd"], r["lost_uusd"]) for r in rows],
            [
                ("", "idle", "", "333", "0"),
                ("", "useful", "", "500000", "0"),
                ("a", "lost", "", "2000000", "2000000"),
                ("a", "useful", "", "6000000", "0"),
                ("b", "useful", "", "1000000", "0"),
            ],
        )

    # ---- the report ----

    def report(self, *words):
        return json.loads(self.belay("--weekly-report", "--week", "2025-10-29", "--json", *words))

    def test_a_report_is_of_a_week_and_a_team(self):
        said = self.report()
        self.assertEqual(
            (said["team"], said["from"], said["to"]),
            (None, "2025-10-27T00:00:00Z", "2025-11-03T00:00:00Z"),
        )
        self.assertEqual(
            (
                said["total"]["uusd"],
                said["before_uusd"],
                said["jobs_ended"],
                said["jobs_succeeded"],
            ),
            (1500000, 0, 1, 1),
        )
        self.assertEqual(
            [(line["key"], line["uusd"]) for line in said["users"]],
            [("bob", 1000000), ("eve", 500000)],
        )
        self.assertEqual([line["key"] for line in said["projects"]], [])
        self.assertEqual([line["key"] for line in said["pools"]], ["burst"])
        self.assertEqual(len(said["days"]), 56)
        self.assertEqual(
            {d["day"]: d["uusd"] for d in said["days"] if d["uusd"]},
            {
                "2025-10-01": 6000000,
                "2025-10-04": 2000000,
                "2025-10-31": 1000000,
                "2025-11-01": 500000,
            },
        )
        self.assertEqual(
            [(j["id"], j["team"], j["cost_uusd"]) for j in said["jobs"]],
            [(2, "vision", 500000), (1, "nlp", 400000)],
        )
        self.assertEqual((said["budgets"], said["advice"]), ([], []))
        of_team = self.report("--team", "nlp")
        self.assertEqual((of_team["team"], of_team["total"]["uusd"]), ("nlp", 1000000))
        self.assertEqual([j["id"] for j in of_team["jobs"]], [1])
        self.assertEqual(sum(d["uusd"] for d in of_team["days"]), 9000000)
        self.assertEqual(self.report("--team", "none")["total"]["uusd"], 0)

    def test_a_report_for_people_says_it_all(self):
        text = self.belay("--weekly-report", "--week", "2025-10-03", "--team", "nlp")
        for part in (
            "belay: what team nlp spent from 2025-09-29 to 2025-10-05 (UTC)",
            "spent               $8.00\n",
            "the same on-demand  $20.00, saved 60.0 %",
            "lost to reclaims    $2.00, 25.0 %",
            "jobs that ended     2, 1 succeeded, $8.00 each",
            "no running job holds unused resources",
        ):
            self.assertIn(part, text)
        self.assertRegex(text, r"USER +SPENT +ON-DEMAND")
        self.assertRegex(text, r"\nx +\$8.00 +\$20.00 +60 % +\$2.00 +75 %")
        later = self.belay("--weekly-report", "--week", "2025-10-09")
        self.assertIn("spent               $0.00, 100.0 % less than the week before ($8.00)", later)
        now = self.belay("--weekly-report")  # the last complete week
        monday = datetime.datetime.now(datetime.timezone.utc).date()
        monday -= datetime.timedelta(days=monday.weekday() + 7)
        self.assertIn("from %s to %s" % (monday, monday + datetime.timedelta(days=6)), now)

    def test_the_page_is_whole_and_shows_the_same(self):
        page = os.path.join(self.d.dir, "report.html")
        said = self.report("--html", page)
        with open(page, encoding="utf-8") as f:
            text = f.read()
        self.assertTrue(report_page.loads_nothing(text))
        self.assertNotIn("<script", text)
        self.assertNotIn("<b>", text)
        seen = report_page.text_of(text)
        for part in (
            "All teams, 2025-10-27 to 2025-11-02 (UTC)",
            "$1.50",
            "bob",
            "<b>dear</b>",
            "No running job",
            "belay cost --weekly-report --week 2025-10-27\n",
        ):
            self.assertIn(part, seen)
        weeks = report_page.rows_of(
            text, "Spent in each week, and what it would have cost on-demand"
        )
        self.assertEqual(len(weeks), 9)
        self.assertEqual([weeks[-1][0], weeks[-1][1]], ["2025-10-27", "$1.50"])
        self.assertEqual(text.count('class="bar '), 16)
        days = report_page.rows_of(text, "The days of this week")
        self.assertEqual([d[0] for d in days[1:]], [d["day"] for d in said["days"][-7:]])

    def test_the_style_of_the_mail_has_no_variables(self):
        """Programs that show mail know none, and drop what has them."""
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        source = subprocess.check_output(
            [
                sys.executable,
                os.path.join(root, "cli/html/styles.py"),
                os.path.join(root, "web/src/style/tokens.css"),
                os.path.join(root, "cli/html/report.css"),
            ],
            text=True,
            timeout=60,
        )
        page, mail = source.split("extern const char report_mail_css")
        for word in ("var(--", "light-dark("):
            self.assertIn(word, page)
            self.assertNotIn(word, mail)
        self.assertRegex(mail, r'"html \{\\n"\s+"background: #f4f6f7;\\n"\s+"color: #16232a;')

    def test_a_report_takes_a_week_and_nothing_else(self):
        for words in (
            ("--by", "team"),
            ("--month",),
            ("--month", "2025-10"),
            ("--csv",),
            ("--user", "ann"),
            ("--from", "2025-10-01T00:00:00Z"),
        ):
            self.assertIn(
                "takes --team, --week DATE", self.belay("--weekly-report", *words, expect=2)
            )
        for words in (
            ("--html", "page.html"),
            ("--mail", "ann"),
            ("--post", "https://example.com/"),
        ):
            self.assertIn(
                "--html, --mail and --post need --weekly-report", self.belay(*words, expect=2)
            )
        self.assertIn(
            "--post: expected https://HOST/PATH",
            self.belay("--weekly-report", "--post", "example.com", expect=2),
        )
        self.assertIn(
            "report.mail: expected an address",
            self.belay("--weekly-report", "--mail", "a b", expect=1),
        )
        self.assertIn(
            "/nonexistent",
            self.belay("--weekly-report", "--html", "/nonexistent/page.html", expect=1),
        )

    def test_what_makes_no_sense_is_refused(self):
        self.assertIn('found "weather"', self.belay("--by", "weather", expect=2))
        self.assertIn("2026-11-22", self.belay("--week", "2026-11", expect=2))
        self.assertIn(
            "one period at a time",
            self.belay("--week", "2025-11-02", "--month", "2025-11", expect=2),
        )
        self.assertIn("it must be job, or some of", self.belay("--by", "team,job", expect=1))
        self.assertEqual(
            self.belay("--by", "team,project,user,pool,market", expect=1),
            "belay: cost by 5 keys: at most 4 at once\n",
        )
        self.assertIn(
            "of all teams and pools", self.belay("--by", "job", "--team", "nlp", expect=1)
        )
        self.assertIn(
            "at most 4 at once", self.belay("--by", "team,user,pool,market,kind", expect=1)
        )


if __name__ == "__main__":
    unittest.main()
