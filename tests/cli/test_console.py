# SPDX-License-Identifier: Apache-2.0
"""belay console: what a browser is given, and what is printed where there is none."""

import json
import os
import pty
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scheduler"))
from belayd import BUILD, WAIT_S, Belayd  # noqa: E402

LINK = r"(http://[0-9a-f]{32}\.localhost:[0-9]+)/console/sign-in#link=([0-9a-f]{64})"
# A browser that records what it was started with, and reads the page.
BROWSER = """#!/bin/sh
echo "$@" >>"$RECORD"
cat "${1#file://}" >>"$RECORD"
exit %d
"""


class Console(unittest.TestCase):
    def setUp(self):
        self.d = Belayd()
        self.d.__enter__()
        self.addCleanup(self.d.__exit__, None, None, None)
        self.record = os.path.join(self.d.dir, "record")

    def browser(self, name, status=0):
        path = os.path.join(self.d.dir, name)
        with open(path, "w") as f:
            f.write(BROWSER % status)
        os.chmod(path, 0o755)
        return path

    def belay(self, *arguments, terminal=True, **environment):
        """Returns the exit status, standard output and standard error."""
        env = {
            k: v
            for k, v in os.environ.items()
            if k not in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "BELAY_SERVER")
        }
        env.update(BELAY_HOME=self.d.state, RECORD=self.record, **environment)
        ours, theirs = pty.openpty() if terminal else os.pipe()
        done = subprocess.run(
            [BUILD + "/cli/belay", "console", *arguments],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.PIPE,
            text=True,
            timeout=WAIT_S,
        )
        os.set_blocking(ours, False)
        out = b""
        try:
            while piece := os.read(ours, 65536):
                out += piece
        except OSError:  # all was read
            pass
        os.close(ours)
        os.close(theirs)
        return done.returncode, out.decode(), done.stderr

    def test_the_browser_gets_a_file_and_no_secret_is_in_its_arguments(self):
        status, out, errors = self.belay(BROWSER="/nonexistent:" + self.browser("b"))
        self.assertEqual((status, errors), (0, ""))
        with open(self.record) as f:
            arguments, page = f.read().split("\n", 1)
        path = os.path.join(self.d.state, "console.html")
        self.assertEqual(arguments, "file://" + path)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        origin, secret = re.search("url=" + LINK, page).groups()
        self.assertIn("opened %s/console/sign-in as " % origin, out)
        self.assertNotIn(secret, out + arguments)

    def test_each_browser_is_tried_and_then_the_link_is_printed(self):
        status, out, errors = self.belay(BROWSER=self.browser("a", 1) + ":" + self.browser("b"))
        self.assertIn("opened http", out)
        with open(self.record) as f:
            self.assertEqual(f.read().count("file://"), 2)
        for browsers in ({}, {"BROWSER": self.browser("a", 3)}, {"BROWSER": ":/nonexistent:"}):
            status, out, errors = self.belay(**browsers)
            self.assertEqual(status, 0)
            self.assertIn("no browser was found", errors)
            self.assertRegex(out, "^%s\\s*$" % LINK)

    def test_without_a_terminal_the_link_is_printed(self):
        browser = self.browser("b")
        for words in ((), ("--print",)):
            status, out, errors = self.belay(*words, terminal=not words == (), BROWSER=browser)
            self.assertEqual(status, 0)
            self.assertRegex(out, "^%s\\s*$" % LINK)
            self.assertEqual("not a terminal" in errors, words == ())
            self.assertIn("once, within 60 s", errors)
        self.assertFalse(os.path.exists(self.record))
        self.assertFalse(os.path.exists(os.path.join(self.d.state, "console.html")))

    def test_where_no_file_can_be_written_the_link_is_printed(self):
        os.mkdir(os.path.join(self.d.state, "console.html"))
        status, out, errors = self.belay(BROWSER=self.browser("b"))
        self.assertEqual(status, 0)
        self.assertIn("console.html", errors)
        self.assertRegex(out, "^%s\\s*$" % LINK)
        self.assertFalse(os.path.exists(self.record))

    def test_json_and_https(self):
        token = os.path.join(self.d.dir, "token")
        with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write(self.d.token(kind="api", user="ann"))
        status, out, _ = self.belay(
            "--json",
            BELAY_SERVER=self.d.url,
            BELAY_TOKEN_FILE=token,
            BELAY_CA_FILE=os.path.join(self.d.state, "ca.pem"),
        )
        link = json.loads(out)
        self.assertEqual((status, link["user"], link["remote_url"]), (0, "ann", None))
        self.assertTrue(link["url"].startswith(self.d.url + "/console/sign-in#link="))

    def test_errors(self):
        self.assertEqual(self.belay("word")[0], 2)
        self.d.stop()
        status, out, errors = self.belay()
        self.assertEqual((status, out), (1, ""))
        self.assertIn("belayd", errors)


if __name__ == "__main__":
    unittest.main(verbosity=2)
