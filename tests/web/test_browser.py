# SPDX-License-Identifier: Apache-2.0
"""The harness of the console's tests sees what it must: pages that are wrong in one way each."""

import http.server
import tempfile
import threading
import unittest

import browser

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data: http:"
PAGE = """<!DOCTYPE html><html lang="en"><head><title>A page</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="/page.css">
<script src="/page.js" defer></script></head><body><main><h1>A page</h1>%s</main></body></html>"""
SCRIPT = """
addEventListener('keydown', (e) => { if (e.key === 'l') {
  fetch('/later').then((r) => r.text()).then((t) => {
    const p = document.createElement('p'); p.id = 'later'; p.textContent = t;
    document.querySelector('main').append(p); }); } });
if (location.pathname === '/throws') throw new Error('thrown');
if (location.pathname === '/rejects') Promise.reject(new Error('rejected'));
if (location.pathname === '/logs') console.error('logged');
if (location.pathname === '/elsewhere') new Image().src = 'http://other.example/x.png';
if (location.pathname === '/calls') alert('called');
"""
STYLE = """body { color: #222; background: #fff }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #111 } }
.wide { width: 1000px; height: 9px } .pale { color: #eee; background: #fff }"""
BODIES = {
    "/inline": "<script>document.title = 'ran'</script>",
    "/handler": '<img alt="x" src="data:," onerror="alert(1)">',
    "/wide": '<div class="wide"></div>',
    "/pale": '<p class="pale">hardly to be read</p>',
    "/fields": '<input id="first" aria-label="First"><button>Second</button>',
}


class Server(http.server.BaseHTTPRequestHandler):
    later = threading.Event()

    def do_GET(self):
        kind = "text/html"
        if self.path == "/page.js":
            kind, body = "text/javascript", SCRIPT
        elif self.path == "/page.css":
            kind, body = "text/css", STYLE
        elif self.path == "/later":
            self.later.wait(browser.WAIT_S)
            kind, body = "text/plain", "it came"
        else:
            body = PAGE % BODIES.get(self.path, "")
        data = body.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind + "; charset=utf-8")
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Harness(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="belay-web.")
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        url = "http://127.0.0.1:%d" % cls.server.server_port
        cls.b = browser.Browser(cls.directory.name, url).__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.b.quit()
        cls.server.shutdown()
        cls.server.server_close()
        cls.directory.cleanup()

    def check_found(self, path, *texts):
        """Each text is in the problems of the page."""
        self.b.open(path)
        self.b.wait("document.readyState === 'complete'", "the page")
        found = []
        for text in texts:
            if not any(text in p for p in found):
                found += self.b.problems()
            self.assertTrue(any(text in p for p in found), (text, found))
        with self.assertRaisesRegex(AssertionError, "the browser reports"):
            self.b.open(path)
            self.b.wait("document.readyState === 'complete'", "the page")
            self.b.check()

    def test_a_good_page_has_no_problem(self):
        self.b.open("/good")
        self.b.wait_text("A page", "h1")
        self.b.check()
        self.assertEqual(self.b.overflow(), [])

    def test_errors_of_a_page_are_problems(self):
        self.check_found("/throws", "errors: Uncaught Error: thrown")
        self.check_found("/rejects", "errors: Error: rejected")
        self.check_found("/logs", '"logged"')

    def test_code_that_was_injected_is_a_problem(self):
        self.check_found("/inline", "csp: script-src-elem inline")
        self.check_found("/handler", "csp: script-src-attr inline")
        self.check_found("/calls", "ran: alert called")

    def test_a_request_to_another_host_is_a_problem(self):
        self.check_found("/elsewhere", "other.example")

    def test_problems_survive_navigation(self):
        self.b.open("/throws")
        self.b.open("/good")
        self.assertTrue(any("thrown" in p for p in self.b.problems()))
        self.assertEqual(self.b.problems(), [])

    def test_what_comes_later_is_waited_for(self):
        self.b.open("/good")
        Server.later.clear()
        self.b.one("main")
        self.b.keys("l")
        with self.assertRaisesRegex(AssertionError, "not within 0 s"):
            self.b.wait("document.querySelector('#later')", "the later text", timeout_s=0)
        Server.later.set()
        self.assertEqual(
            self.b.wait("document.querySelector('#later')", "the text").text, "it came"
        )

    def test_too_wide_a_page_overflows(self):
        self.b.open("/wide")
        try:
            self.b.resize(360)
            self.assertEqual(self.b.script("return innerWidth"), 360)
            self.assertIn("div.wide 1008", self.b.overflow())
        finally:
            self.b.resize(1280)
        self.assertEqual(self.b.overflow(), [])

    def test_the_theme_is_set(self):
        self.b.open("/good")
        colours = {}
        for dark in (True, False):
            self.b.theme(dark)
            colours[dark] = self.b.script("return getComputedStyle(document.body).color")
        self.assertEqual(colours, {True: "rgb(221, 221, 221)", False: "rgb(34, 34, 34)"})

    def test_keys_move_the_focus(self):
        self.b.open("/fields")
        self.b.one("#first")
        self.assertEqual(
            self.b.tab_to(lambda name: name == "Second", "the button"), ["First", "Second"]
        )
        with self.assertRaisesRegex(AssertionError, "Tab does not come to"):
            self.b.tab_to(lambda name: name == "Third", "what is not there", steps_max=5)

    def test_axe_finds_text_that_is_too_pale(self):
        self.b.open("/good")
        self.assertEqual(self.b.axe(), [])
        self.b.open("/pale")
        self.assertTrue(any("color-contrast" in v for v in self.b.axe()), self.b.axe())
        self.b.check()


if __name__ == "__main__":
    browser.need()
    unittest.main(verbosity=2)
