# SPDX-License-Identifier: Apache-2.0
"""What verbs print on a terminal fits it, whatever verbs there are; a list that is watched; times
in UTC."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import unittest

from test_local import WAIT_S, Home

NAME = "a-rather-long-name-of-a-training-run"
# A verb's answers. Of None there is none of its own: it starts or ends something, or the output is
# that of a job, a command or a shell.
ANSWERS = {
    "up": None,
    "down": None,
    "submit": None,
    "run": None,
    "exec": None,
    "attach": None,
    "logs": None,
    "login": None,
    "logout": None,
    "completion": None,
    "slurm": None,  # the widths are Slurm's
    "top": None,  # test_local.py
    "cancel": None,
    "update": None,
    "requeue": None,
    "hold": None,
    "release": None,
    "simulate": None,
    "breakeven": None,
    "list": ("", "-a", "--why", "-a --why"),
    "show": ("1", "2", "3_1", "--events 1", "8"),
    "why": ("1", "2", "3", "3_1", "8"),
    "diagnose": ("1",),
    "drill": ("--list",),
    "cron": ("list", "show 1", "history 1"),
    "checkpoint": ("list 1",),
    "nodes": ("", "--all"),
    "calendar": ("list", "show holidays"),
    "reservation": ("list", "show disks"),
    "shares": ("",),
    "quotas": ("",),
    "budget": ("",),
    "pools": ("", "show", "show local"),
    "offers": ("",),
    "console": None,
    "cost": ("", "--by user,pool", "--by kind", "--by job", "--by day", "--weekly-report"),
    "advise": ("", "--forgotten", "--anomalies", "reserve"),
    "audit": ("",),
    "digest": ("",),
    "admin": ("doctor", "audit-log", "audit-log verify", "retention", "reload --dry-run"),
    "whoami": ("",),
    "secret": ("list",),
    "token": ("list",),
    "version": ("",),
}


def visible(text):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")


def fits(line, width):
    """A word that is longer than the line stays whole."""
    return len(line) <= width or " " not in line.strip()


class Width(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.h = Home().__enter__()
        try:
            cls.prepare()
        except BaseException as e:
            cls.h.__exit__(type(e), e, None)
            raise

    @classmethod
    def prepare(cls):
        def ok(*arguments):
            done = cls.h.belay(*arguments)
            if done.returncode != 0:
                raise AssertionError((arguments, done))

        ok("up")
        ok("submit", "--wait", "-J", NAME, cls.h.script("true\n"))
        ok("submit", "-J", NAME, "--hold", "--begin", "tomorrow", cls.h.script("true\n"))
        ok("submit", "--wait", "-a", "0-3%2", cls.h.script("true\n"))
        ok("submit", "-J", NAME, "-c", "4000", "--comment", "words " * 20, cls.h.script("true\n"))
        ok("calendar", "set", "holidays", *("2027-01-%02d" % day for day in range(1, 32, 2)))
        ok(*("cron", "add", "0 3 * * *", cls.h.script("true\n"), "--name", NAME))
        ok(*("cron", "edit", "1", "--skip-on", "holidays", "--done-by", "07:00"))
        disks = ("--from", "tomorrow", "--for", "4h", "--pool", "local", "--reason", "words " * 12)
        ok("reservation", "add", "disks", *disks)
        ok("token", "create")

    @classmethod
    def tearDownClass(cls):
        cls.h.__exit__(None, None, None)

    def terminal(self, width, rows=50):
        main, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, width, 0, 0))
        self.addCleanup(os.close, main)
        return main, end

    def read_until(self, main, pattern):
        """Reads until the pattern, or the end of the program if it is None."""
        seen, until = "", time.monotonic() + WAIT_S
        while pattern is None or not re.search(pattern, seen):
            left = max(0, until - time.monotonic())
            self.assertTrue(select.select([main], [], [], left)[0], seen)
            try:
                piece = os.read(main, 65536)
            except OSError:
                self.assertIsNone(pattern, seen)
                return seen
            seen += piece.decode()
        return seen

    def shown(self, width, *arguments, env=None):
        main, end = self.terminal(width)
        p = self.h.start(*arguments, stdout=end, env=env)
        os.close(end)
        with p:
            seen = self.read_until(main, None)
            said = p.stderr.read()
        self.assertIn(p.returncode, (0, 1), (arguments, said))
        return visible(seen)

    def answers(self):
        for verb, endings in ANSWERS.items():
            for words in endings or ():
                yield [verb, *words.split()]

    def test_every_verb_is_known_here(self):
        said = self.h.belay("--help").stdout
        verbs = re.findall(r"(?m)^  (\w+) +\S", said)
        self.assertEqual(sorted(verbs), sorted(ANSWERS))

    def test_no_line_is_longer_than_the_terminal(self):
        for arguments in self.answers():
            for width in (60, 80, 120):
                with self.subTest(arguments, width=width):
                    for line in self.shown(width, *arguments).splitlines():
                        self.assertTrue(fits(line, width), "%d: %r" % (len(line), line))

    def test_what_has_no_space_is_named_or_shortened_and_all_is_there_with_wide(self):
        narrow = self.shown(60, "list", "-a")
        self.assertIn("not shown, for want of width: ATTEMPTS, RECLAIMS", narrow)
        self.assertIn("a-rather-..ining-run", narrow)
        self.assertRegex(narrow, r"(?m)^ *ID NAME")
        wide = self.shown(60, "list", "-a", "-o", "wide")
        self.assertIn(NAME, wide)
        self.assertIn("ATTEMPTS", wide)
        self.assertNotIn("not shown", wide)
        self.assertIn(NAME, self.h.belay("list", "-a").stdout)
        why = self.shown(80, "list", "--why")
        self.assertIn("WHY", why.splitlines()[0])
        self.assertIn("it needs 4000 cpus", " ".join(why.split()))

    def test_times_are_of_this_machines_zone_or_utc(self):
        def times(*arguments, zone):
            said = self.shown(120, *arguments, env={"TZ": zone})
            period = r"\d{4}-\S+\s+\S+\s+to\s+\S+(\s+\S+)?\s+\([\w/]+\)"
            said = re.sub(period, "", said)  # that of a reservation, in the zone that it names
            return re.findall(r"\d\d\d\d-\d\d-\d\d[ T][\d:]+Z?(?![\d:+-])", said)

        some = 0
        for arguments in self.answers():
            if arguments[0] in ("cost", "cron", "digest"):
                continue  # a configured zone, or periods, which are UTC
            with self.subTest(arguments):
                here, utc = times(*arguments, zone="XXX-9"), times(*arguments, zone="UTC0")
                asked = times(*arguments, "--utc", zone="XXX-9")
                self.assertEqual(asked, utc)
                self.assertEqual([t for t in here if t in utc], [])
                some += len(utc)
        self.assertGreater(some, 10)

    def test_a_list_is_watched_in_place(self):
        main, end = self.terminal(80, rows=24)
        p = self.h.start(
            "list", "--watch", "--every", "1", "--name", "seen*", stdin=end, stdout=end
        )
        self.read_until(main, r"no such active jobs")
        self.assertEqual(
            self.h.belay("submit", "--hold", "-J", "seen-" + NAME, "--wrap", "true").stderr, ""
        )
        seen = self.read_until(main, r"(?s)seen-.*\x1b\[J")
        screen = seen[seen.rindex("\x1b[H") :]
        self.assertEqual(screen.count("\x1b[J"), 1)
        self.assertTrue(screen.endswith("\x1b[J"), screen)  # nothing is cleared before it is drawn
        self.assertNotIn("\x1b[2J", seen)
        for line in visible(screen).splitlines():
            self.assertLessEqual(len(line), 80, line)
        self.h.belay("cancel", "--name", "seen*", "--yes")
        os.write(main, b" ")
        p.send_signal(signal.SIGINT)
        with p:
            self.read_to_the_end(main)
            os.close(end)
            self.assertEqual(p.wait(WAIT_S), -signal.SIGINT)

    def read_to_the_end(self, main):
        self.read_until(main, r"\x1b\[\?1049l")

    def test_a_watched_list_ends_with_q(self):
        main, end = self.terminal(80)
        p = self.h.start("list", "-aw", "-d", "3600", stdin=end, stdout=end)
        self.read_until(main, "q quits(?s:.*)\x1b\\[J")
        os.write(main, b"q")
        with p:
            self.read_to_the_end(main)
            self.assertEqual(p.wait(WAIT_S), 0)
        os.close(end)

    def test_a_watched_list_is_appended_elsewhere(self):
        with self.h.start("list", "--all", "--watch", "--every", "1") as p:
            clocks, until = 0, time.monotonic() + WAIT_S
            while clocks < 3:
                self.assertLess(time.monotonic(), until)
                line = p.stdout.readline()
                self.assertNotIn("\x1b", line)
                clocks += bool(re.fullmatch(r"\d\d:\d\d:\d\d\n", line))
            p.send_signal(signal.SIGINT)
            with contextlib.suppress(OSError):
                p.stdout.read()
            self.assertEqual(p.wait(WAIT_S), -signal.SIGINT)

    def test_a_watch_of_nothing_sensible_is_refused(self):
        for arguments in (("--every", "0"), ("--watch", "--state", "nonsense")):
            done = self.h.belay("list", *arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertTrue(done.stderr.startswith("belay: --"), done.stderr)


if __name__ == "__main__":
    unittest.main()
