# SPDX-License-Identifier: Apache-2.0
"""Signing in to the console with a real browser: Debian's Chromium, headless. What the other tests
of sessions claim about browsers is shown here: which cookies one takes on loopback, what a page of
another site can do, and that a link is not used up before its page sends it. Skipped where there is
no Chromium, or belayd was built without the console.
"""

import contextlib
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from belayd import BUILD, CONFIG, JOB, WAIT_S, Belayd  # noqa: E402

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    print("there is no python3-selenium")
    sys.exit(77)
DRIVER = shutil.which("chromedriver")
if not DRIVER:
    print("there is no chromedriver (package chromium-driver)")
    sys.exit(77)

FETCH = """const done = arguments[arguments.length - 1];
fetch(arguments[0], arguments[1]).then(async (r) => done([r.status, await r.text()]),
    (e) => done([0, String(e)]));"""


class Recorder(http.server.BaseHTTPRequestHandler):
    """Another user's server on this machine: keeps what it is sent."""

    def do_GET(self):
        self.server.cookies.append(self.headers.get("Cookie"))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title>")

    def log_message(self, *arguments):
        pass


class Chromium(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.d = self.stack.enter_context(Belayd(CONFIG + "users: {ola: operator}\n"))
        if self.d.call("GET", "/")[0] != 200:
            self.skipTest("belayd was built without the console")
        self.browser = self.start()

    def start(self):
        """A browser with a profile of its own, which accepts belayd's certificate."""
        options = webdriver.ChromeOptions()
        for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
            options.add_argument(word)
        options.accept_insecure_certs = True
        browser = webdriver.Chrome(options=options, service=Service(DRIVER))
        self.stack.callback(browser.quit)
        browser.set_page_load_timeout(WAIT_S)
        browser.set_script_timeout(WAIT_S)
        return browser

    def link(self):
        status, reply, _ = self.d.call("POST", "/api/v1/console/link", {})
        self.assertEqual(status, 201, reply)
        return reply

    def wait(self, condition, browser=None):
        return WebDriverWait(browser or self.browser, WAIT_S).until(condition)

    def fetch(self, path, browser=None, **options):
        """The status and text of a call that the page makes."""
        b = browser or self.browser
        return b.execute_async_script(FETCH, path, {"credentials": "include", **options})

    def signed_in(self, browser=None):
        """Waits until the page has left that of the sign-in; returns whoami."""
        self.wait(lambda b: "/console/sign-in" not in b.current_url, browser)
        status, text = self.fetch("/api/v1/whoami", browser)
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def open_link(self):
        link = self.link()
        self.browser.get(link["url"])
        return link, self.signed_in()

    def test_belay_console_signs_a_browser_in(self):
        fake = os.path.join(self.d.dir, "browser")
        with open(fake, "w") as f:
            f.write('#!/bin/sh\necho "$1" >"$RECORD"\n')
        os.chmod(fake, 0o755)
        record = os.path.join(self.d.dir, "record")
        out = subprocess.run(
            ["script", "-qec", BUILD + "/cli/belay console", "/dev/null"],
            env={**os.environ, "BELAY_HOME": self.d.state, "BROWSER": fake, "RECORD": record},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=WAIT_S,
            check=True,
            text=True,
        ).stdout
        self.assertIn("opened http://", out)
        with open(record) as f:
            self.browser.get(f.read().strip())  # the file with the link
        me = self.signed_in()
        self.assertEqual((me["by"], me["admin"]), ("session", True))
        # no certificate was asked about, and the link is in no address or history
        self.assertRegex(self.browser.current_url, r"^http://[0-9a-f]{32}\.localhost:\d+/$")
        self.assertTrue(self.browser.execute_script("return window.isSecureContext"))
        (cookie,) = self.browser.get_cookies()
        self.assertEqual(
            (cookie["name"], cookie["secure"], cookie["httpOnly"], cookie["sameSite"]),
            ("__Host-belay", True, True, "Strict"),
        )
        self.assertEqual(self.browser.execute_script("return document.cookie"), "")
        status, text = self.fetch(
            "/api/v1/jobs", method="POST", headers={"X-CSRF-Token": me["csrf"]}, body=self.job()
        )
        self.assertEqual(status, 201, text)
        self.assertEqual(self.fetch("/api/v1/jobs", method="POST", body=self.job())[0], 403)

    def job(self):
        return json.dumps(JOB)

    def test_a_used_link_signs_no_second_browser_in(self):
        link, _ = self.open_link()
        other = self.start()
        other.get(link["url"])
        alert = self.wait(lambda b: b.find_element(By.CSS_SELECTOR, "[role=alert]"), other)
        self.assertIn("run belay console again", alert.text)
        self.assertEqual(other.get_cookies(), [])

    def test_a_token_signs_in_over_https(self):
        self.browser.get(self.d.url + "/console/sign-in")
        field = self.wait(lambda b: b.find_element(By.ID, "token"))
        field.send_keys(self.d.token(kind="api", user="ola"))
        field.submit()
        me = self.signed_in()
        self.assertEqual((me["user"], me["role"], me["by"]), ("ola", "operator", "session"))
        (cookie,) = self.browser.get_cookies()
        self.assertEqual((cookie["name"], cookie["sameSite"]), ("__Host-belay", "Strict"))
        # a link of another user does not replace it
        self.browser.get(self.link()["remote_url"])
        alert = self.wait(lambda b: b.find_element(By.CSS_SELECTOR, "[role=alert]"))
        self.assertIn("signed in as ola", alert.text)

    def test_other_sites_and_ports_get_no_cookie_and_change_nothing(self):
        _, me = self.open_link()
        origin = re.match("(http://[^/]+)/", self.browser.current_url).group(1)
        elsewhere = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
        elsewhere.cookies = []
        threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
        self.stack.callback(elsewhere.server_close)
        self.stack.callback(elsewhere.shutdown)
        for name in ("127.0.0.1", "localhost", "other.localhost"):
            self.browser.get("http://%s:%d/" % (name, elsewhere.server_port))
            # nor does a page there act with it, even if it knew the name and the csrf
            for more in ({}, {"headers": {"X-CSRF-Token": me["csrf"]}}):
                for mode in ("cors", "no-cors"):
                    self.fetch(
                        origin + "/api/v1/jobs", method="POST", mode=mode, body=self.job(), **more
                    )
        self.assertEqual(set(elsewhere.cookies), {None})
        self.assertEqual(self.d.call("GET", "/api/v1/jobs?state=all")[1]["jobs"], [])
        self.browser.get(origin + "/")
        self.assertEqual(self.signed_in()["by"], "session")
        # it is the name that keeps the cookie back: ports do not
        name = origin.split("//")[1].split(":")[0]
        self.browser.get("http://%s:%d/" % (name, elsewhere.server_port))
        self.assertIn("__Host-belay=l.", elsewhere.cookies[-1])

    def test_signing_out_ends_the_session(self):
        _, me = self.open_link()
        headers = {"X-CSRF-Token": me["csrf"]}
        self.assertEqual(self.fetch("/api/v1/logout", method="POST", headers=headers)[0], 200)
        self.assertEqual(self.browser.get_cookies(), [])
        self.assertEqual(self.fetch("/api/v1/whoami")[0], 401)


if __name__ == "__main__":
    unittest.main(verbosity=2)
