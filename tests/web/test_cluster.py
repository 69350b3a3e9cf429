# SPDX-License-Identifier: Apache-2.0
"""The console's pages of nodes, racks, pools, reservations and events, in Chromium on a real
belayd."""

import os
import socket
import sys
import tempfile
import unittest

import browser

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scheduler"))
from bare import BARE, CLEAN  # noqa: E402
from belayd import CONFIG, Belayd, Node  # noqa: E402

RACKS = """node_types:
  box: {watts: {idle: 100, full: 400}}
racks:
  r1: {max_kw: 1, pue: 1.3, nodes: {box: "n,n-2"}}
"""
ATTACK = "<img src=x onerror=xss(1)>"  # in every text that a user can set
PAGES = "nodes nodes/1 racks pools pools/base offers instances reservations drills events".split()
EVENTS = 210  # more than a page has


def sign_in(b, d):
    b.allowed.append("401")  # before the sign-in
    b.open("/console/sign-in")
    b.one("#token").send_keys(d.token(kind="api", admin=True))
    b.press("Sign in with the token")
    b.wait_text("Overview", "h1")


class ClusterPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="belay-web.")
        cls.addClassCleanup(cls.directory.cleanup)
        cls.d = Belayd(CONFIG + RACKS)
        cls.d.__enter__()
        cls.addClassCleanup(cls.d.__exit__, None, None, None)
        cls.node = Node(cls.d)
        cls.job = cls.d.submit(name=ATTACK)
        cls.node.begin(cls.job)
        cls.b = browser.Browser(cls.directory.name, cls.d.url)
        cls.b.__enter__()
        cls.addClassCleanup(cls.b.quit)
        sign_in(cls.b, cls.d)

    def setUp(self):
        self.node.sync()  # a silent one is lost

    def tearDown(self):
        self.b.check()

    def open(self, page):
        self.b.open("/console/" + page)
        self.b.one("h1")
        self.b.wait("!document.querySelector('.loading')", "the data of " + page)

    def get(self, path):
        status, reply, _ = self.d.call("GET", "/api/v1/" + path)
        self.assertEqual(status, 200, reply)
        return reply

    def fill(self, name, value):
        field = self.b.one("dialog [name=%s]" % name)
        field.clear()
        field.send_keys(value)

    def submit(self):
        self.b.click(self.b.one("dialog button[type=submit]"))

    def confirm(self):
        self.submit()
        self.b.wait("!document.querySelector('dialog')", "the end of the dialog")

    def test_markup_is_text_on_every_page_narrow_and_wide(self):
        for page in PAGES:
            for width in (1280, 360):
                with self.subTest(page, width=width):
                    self.b.resize(width)
                    self.open(page)
                    self.assertEqual(self.b.all(".notice-bad"), [], self.b.text())
                    self.assertEqual(self.b.overflow(), [])
                    self.b.check()
        self.b.resize(1280)

    def test_a_node_is_drained_and_undrained(self):
        self.open("nodes")
        self.b.press("n")
        self.b.wait_text("Node n", "h1")
        self.assertIn(ATTACK, self.b.wait_text(ATTACK, "tbody tr").text)
        self.b.press("Drain")
        self.b.wait_text("1 job will be saved and moved", "dialog")
        self.assertFalse(self.get("nodes")["nodes"][0]["drain"], "it asks first")
        self.confirm()
        self.b.wait_text("drained: by an operator", ".notice")
        self.assertTrue(self.get("nodes")["nodes"][0]["drain"])
        self.open("nodes?state=troubled")
        self.b.wait_text("drained: by an operator", "tbody tr")
        self.open("nodes/n")
        self.b.press("Undrain")
        self.confirm()
        self.b.button("Drain")
        self.assertFalse(self.get("nodes")["nodes"][0]["drain"])
        self.b.wait_text("undrain", ".events li")

    def test_a_rack_shows_its_power_and_its_nodes(self):
        self.open("racks")
        rack = self.get("racks")["racks"][0]
        self.b.wait_text("%d W of 1,000 W" % rack["watts"], ".card")
        self.b.wait_text("%d W at the site's meter (PUE 1.3)" % (1.3 * rack["watts"]), ".card")
        self.assertTrue(self.b.wait_text("busy", ".tile").text.startswith("n\n"))
        self.b.wait_text("1 node not joined", ".tile-missing")

    def test_nodes_are_reserved_and_the_reservation_is_removed(self):
        self.open("reservations")
        self.b.press("Reserve nodes")
        self.fill("name", "disks")
        self.fill("nodes", "n9")
        self.fill("reason", ATTACK)
        self.b.allowed.append("404")  # the browser logs what belayd refuses
        self.submit()
        self.b.wait_text("there is no node 'n9'", "dialog [role=alert]")
        self.fill("nodes", "n")
        self.fill("hours", "1.5")
        self.b.script(
            "document.querySelector('dialog [name=from]').value = arguments[0]",
            self.b.script("return new Date(Date.now() + 9e7).toISOString().slice(0, 16)"),
        )
        self.confirm()
        row = self.b.wait_text("disks", "tbody tr").text
        self.assertIn(ATTACK, row)
        self.assertIn("1 h 30 min", row)
        (made,) = self.get("reservations")["reservations"]
        self.assertEqual((made["nodes"], made["for_ms"], made["every"]), ("n", 5400000, None))
        self.b.press("Remove reservation disks")
        self.confirm()
        self.b.wait_text("No reservations", ".empty")
        self.assertEqual(self.get("reservations")["reservations"], [])

    def test_events_are_filtered_read_backwards_and_live(self):
        for _ in range(EVENTS):
            self.d.submit(hold=True)
        self.open("events")
        self.b.wait_text("submitted", ".events li")
        shown = len(self.b.all(".events li"))
        self.assertLess(shown, EVENTS)
        self.b.press("Older events")
        self.b.wait(
            "document.querySelectorAll('.events li').length > given[0]", "older events", shown
        )
        last = self.d.submit(name="newest")
        self.b.wait_text("job %d" % last, ".events li:first-child")
        self.assertGreater(len(self.b.all(".events li")), shown, "older ones stay")
        self.open("events?kind=nodes")
        kinds = {e.text for e in self.b.all(".events .badge")}
        self.assertIn("joined", kinds)
        self.assertNotIn("submitted", kinds)

    def test_a_pool_without_a_provider_says_what_it_has(self):
        self.open("pools")
        self.b.press("base")
        self.b.wait_text("Pool base", "h1")
        self.b.wait_text("n", "tbody tr")
        self.b.allowed.append("404")  # the browser logs what belayd refuses
        self.open("pools/nowhere")
        self.b.wait_text("there is no pool", "[role=alert]")


class AvoidedOffers(unittest.TestCase):
    def test_an_offer_that_gives_no_machine_has_the_reason(self):
        with socket.socket() as silent, tempfile.TemporaryDirectory(prefix="belay-web.") as home:
            silent.bind(("127.0.0.1", 0))  # without listen: connections are refused
            with Belayd(BARE % {"metadata": silent.getsockname()[1]}, prefix=CLEAN) as d:
                with browser.Browser(home, d.url) as b:
                    sign_in(b, d)
                    d.submit(pool="aws")
                    b.open("/console/pools/aws")
                    b.wait_text("no credentials, so nothing was sent: ", "tbody tr")
                    self.assertIn("avoided", b.wait_text("tried again", "tbody tr").text)


if __name__ == "__main__":
    browser.need()
    unittest.main(verbosity=2)
