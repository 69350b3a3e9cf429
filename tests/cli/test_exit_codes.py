# SPDX-License-Identifier: Apache-2.0
"""The exit codes of belay(1), for each verb: 1 for what does not exist or is refused, 2 for a wrong
command line or a value that belayd refuses."""

import re
import unittest

from test_local import Home

ABSENT, USAGE = 1, 2
# Job 1 has ended, 2 is held, 3 is an array of the tasks 0 and 1.
CASES = {
    "up": ((USAGE, "word"),),
    "down": ((USAGE, "word"),),
    "submit": ((USAGE, "/absent.sh"), (USAGE, ""), (USAGE, "-p nowhere --wrap true")),
    "run": ((USAGE, ""), (USAGE, "-c none true"), (USAGE, "-p nowhere true")),
    "list": ((USAGE, "word"), (USAGE, "--sort size"), (USAGE, "--state none")),
    "top": ((USAGE, "word"), (USAGE, "--every 0")),
    "hold": ((ABSENT, "99"), (ABSENT, "3_9"), (USAGE, "word"), (USAGE, ""), (ABSENT, "1")),
    "release": ((ABSENT, "99"), (ABSENT, "3_9"), (USAGE, "word"), (USAGE, "")),
    "requeue": ((ABSENT, "99"), (ABSENT, "3_9"), (USAGE, "word"), (USAGE, "")),
    "cancel": ((ABSENT, "99"), (USAGE, "word"), (USAGE, ""), (ABSENT, "1")),
    "update": (
        (ABSENT, "99 name=a"),
        (ABSENT, "3_9 name=a"),
        (USAGE, "word name=a"),
        (USAGE, "2 pool=nowhere"),
        (USAGE, "2 time=soon"),
        (USAGE, "2"),
        (ABSENT, "1 name=a"),
    ),
    "drill": ((ABSENT, "99"), (ABSENT, "3_9"), (USAGE, "word"), (USAGE, "")),
    "console": ((USAGE, "word"),),
    "cron": ((ABSENT, "pause 99"), (USAGE, "word"), (USAGE, "add soon x")),
    "checkpoint": ((USAGE, "word"), (USAGE, "")),
    "nodes": ((ABSENT, "drain absent"), (USAGE, "word")),
    "calendar": ((ABSENT, "show absent"), (ABSENT, "rm absent"), (USAGE, "word")),
    "reservation": ((ABSENT, "show absent"), (ABSENT, "rm absent"), (USAGE, "word")),
    "shares": ((USAGE, "word"),),
    "quotas": ((USAGE, "word"),),
    "budget": ((ABSENT, "show absent"), (USAGE, "word")),
    "pools": ((ABSENT, "show absent"), (USAGE, "word"), (USAGE, "apply /absent.yaml")),
    "offers": ((USAGE, "word"),),
    "cost": ((USAGE, "word"), (USAGE, "--by size"), (USAGE, "--month soon")),
    "breakeven": ((USAGE, "/absent.yaml"), (USAGE, "--none")),
    "advise": ((USAGE, "word"),),
    "simulate": ((USAGE, "word"), (USAGE, "--none")),
    "audit": ((USAGE, "word"),),
    "digest": ((USAGE, "word"), (USAGE, "--date soon")),
    "admin": ((USAGE, "word"), (USAGE, "")),
    "slurm": ((USAGE, "word"), (USAGE, "")),
    "login": ((USAGE, "word"),),
    "logout": ((USAGE, "word"),),
    "whoami": ((USAGE, "word"),),
    "secret": ((ABSENT, "rm absent"), (USAGE, "word")),
    "token": (
        (ABSENT, "revoke 99"),
        (USAGE, "revoke word"),
        (USAGE, "create --scope read-only --scope ci"),
        (USAGE, "word"),
    ),
    "completion": ((USAGE, "word"), (USAGE, "")),
    "version": ((USAGE, "word"),),
    "exec": ((ABSENT, "99 -- true"), (ABSENT, "3_9 -- true"), (USAGE, "word -- true"), (USAGE, "")),
}
for verb in ("show", "why", "logs", "diagnose", "attach"):
    CASES[verb] = ((ABSENT, "99"), (ABSENT, "3_9"), (USAGE, "word"), (USAGE, ""), (USAGE, "1 2"))


class ExitCodes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.h = Home().__enter__()
        script = cls.h.script("true\n")
        for words in (
            ("up",),
            ("submit", "--wait", script),
            ("submit", "--hold", script),
            ("submit", "--hold", "-a", "0-1", script),
        ):
            done = cls.h.belay(*words)
            if done.returncode != 0:
                cls.h.__exit__(AssertionError, AssertionError(), None)
                raise AssertionError(done)

    @classmethod
    def tearDownClass(cls):
        cls.h.__exit__(None, None, None)

    def test_every_verb_is_known_here(self):
        verbs = re.findall(r"(?m)^  (\w+) +\S", self.h.belay("--help").stdout)
        self.assertEqual(sorted(verbs), sorted(CASES))

    def test_every_verb_has_the_codes_of_the_manual(self):
        for verb, cases in CASES.items():
            for code, words in (*cases, (USAGE, "--no-such-option")):
                with self.subTest(verb, words=words):
                    done = self.h.belay(verb, *words.split())
                    self.assertEqual(done.returncode, code, done)
                    self.assertTrue(done.stderr, done)


if __name__ == "__main__":
    unittest.main()
