# SPDX-License-Identifier: Apache-2.0
"""Ten years of schedules in more than five zones, across all of their clock changes, compared with
another calendar: Python's zoneinfo.

    test_cron_calendar.py CRON_TIMES

The expected times are computed minute by minute of the local calendar, from the rules that
job/cron.h states: which moments show this minute? None: the clock was put forward over it. Two:
it was put back. Nothing of the method of job/cron.c (spans, offsets) is used here.
"""

import subprocess
import sys
import unittest
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

UTC = timezone.utc
FIRST, LAST = date(2024, 1, 1), date(2033, 12, 31)

ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Sydney",  # southern: summer time over the new year
    "Australia/Lord_Howe",  # by half an hour
    "America/Santiago",  # at midnight
    "Africa/Casablanca",  # back and forth for a month of its own calendar
]

# (minutes, hours, text): of every day.
DAILY = [([m], [h], f"{m} {h} * * *") for h in (0, 1, 2, 3) for m in (0, 15, 30, 45)] + [
    ([59], [23], "59 23 * * *"),
    ([0], [12], "0 12 * * *"),
    ([0, 30], [1, 2], "0,30 1-2 * * *"),
    ([10], list(range(0, 24, 2)), "10 */2 * * *"),
]
DENSE = [
    ([0], list(range(24)), "0 * * * *"),
    ([0], list(range(24)), "0 0-23 * * *"),
    (list(range(0, 60, 7)), list(range(24)), "*/7 * * * *"),
    (list(range(60)), [1, 2, 3], "* 1-3 * * *"),
    (list(range(60)), list(range(24)), "* * * * *"),
]


def shows(u, zone):
    return datetime.fromtimestamp(u, zone).replace(tzinfo=None)


def put_forward_at(local, zone):
    """The moment at which the clock was put forward over this minute."""
    low, high = (int(local.replace(tzinfo=zone, fold=f).timestamp()) for f in (1, 0))
    while high - low > 1:  # before it they show less than local, from it on more
        middle = (low + high) // 2
        low, high = (middle, high) if shows(middle, zone) < local else (low, middle)
    return high


def expected(zone, minutes, hours, days, gap, twice):
    every_hour = len(hours) == 24
    due = set()
    for day in days:
        for hour in hours:
            for minute in minutes:
                local = datetime(day.year, day.month, day.day, hour, minute)
                both = {int(local.replace(tzinfo=zone, fold=f).timestamp()) for f in (0, 1)}
                moments = sorted(u for u in both if shows(u, zone) == local)
                if not moments:
                    due |= {put_forward_at(local, zone)} if gap == "run" else set()
                elif twice == "both" or (twice == "auto" and every_hour):
                    due |= set(moments)
                else:
                    due.add(moments[-1 if twice == "last" else 0])
    return sorted(due)


def changes(zone):
    """The days on which the clock is changed."""
    day, was = FIRST, None
    while day <= LAST:
        offset = datetime(day.year, day.month, day.day, 12, tzinfo=zone).utcoffset()
        if was is not None and offset != was:
            yield day
        day, was = day + timedelta(days=1), offset


class Calendar(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.questions, cls.answers = [], []

    def ask(self, name, gap, twice, minutes, hours, text, days):
        zone = ZoneInfo(name)
        midnight = datetime(days[0].year, days[0].month, days[0].day) - timedelta(minutes=1)
        start = int(midnight.replace(tzinfo=zone).timestamp())
        last = days[-1] + timedelta(days=1)
        end = int(datetime(last.year, last.month, last.day, tzinfo=zone).timestamp()) - 1
        self.questions.append(f"{name} {gap} {twice} {start} {end} {text}\n")
        self.answers.append(expected(zone, minutes, hours, days, gap, twice))

    def test_every_time_is_the_other_calendars(self):
        all_days = [FIRST + timedelta(days=n) for n in range((LAST - FIRST).days + 1)]
        n_changes = 0
        for name in ZONES:
            changed = list(changes(ZoneInfo(name)))
            n_changes += len(changed)
            self.assertGreaterEqual(len(changed), 20, name)
            for minutes, hours, text in DAILY[1::5]:
                self.ask(name, "run", "auto", minutes, hours, text, all_days)
            for day in changed:
                near = [day + timedelta(days=n) for n in (-1, 0, 1)]
                for minutes, hours, text in DAILY:
                    for gap, twice in (
                        ("run", "auto"),
                        ("skip", "last"),
                        ("run", "both"),
                        ("skip", "first"),
                    ):
                        self.ask(name, gap, twice, minutes, hours, text, near)
                for minutes, hours, text in DENSE[:4]:
                    self.ask(name, "run", "auto", minutes, hours, text, near)
                self.ask(name, "skip", "first", *DENSE[2], near)
            for day in changed[:2]:
                near = [day + timedelta(days=n) for n in (-1, 0, 1)]
                self.ask(name, "run", "auto", *DENSE[4], near)
                self.ask(name, "run", "last", *DENSE[4], near)
        done = subprocess.run(
            [sys.argv[1]], input="".join(self.questions), capture_output=True, text=True, timeout=60
        )
        self.assertEqual(done.stderr, "")
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), len(self.questions))
        differences, times = [], 0
        for question, answer, line in zip(self.questions, self.answers, lines):
            found = [int(word) for word in line.split()]
            times += len(found)
            if found != answer:
                odd = sorted(set(found) ^ set(answer))[:3]
                differences.append(
                    f"{question.strip()}: {[datetime.fromtimestamp(u, UTC).isoformat() for u in odd]}"
                )
        print(
            f"{len(lines)} schedules, {times} times, {n_changes} changes of the clocks: {len(differences)} differences"
        )
        self.assertEqual(differences[:10], [])

    def test_a_zone_that_is_none_is_refused(self):
        for name in ("Europe/Berlinn", "Lindon1", "UTC+3", "Etc", "EST5XDT"):
            done = subprocess.run(
                [sys.argv[1]],
                input=f"{name} run auto 0 1 @daily\n",
                capture_output=True,
                text=True,
                timeout=60,
            )
            self.assertIn("there is no time zone", done.stderr, name)
            self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
