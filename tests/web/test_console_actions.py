# SPDX-License-Identifier: Apache-2.0
"""What users do on single pages of the web console, on a real cluster, and that it is done."""

import unittest

import browser
import console
from cluster import BUILD, Cluster

COOP = {"method": "coop", "every_ms": 1000, "keep": 3}


class Actions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster().__enter__()
        cls.addClassCleanup(lambda: cls.cluster.__exit__(None, None, None))
        cls.b = browser.Browser(cls.cluster.dir, cls.cluster.url()).__enter__()
        cls.addClassCleanup(cls.b.quit)

    def sign_in(self, user):
        self.b.driver.delete_all_cookies()
        console.sign_in(self.b, self.cluster.token(user))

    def confirm(self):
        self.b.click(self.b.one("dialog[open] button[type=submit]"))
        self.b.wait("!document.querySelector('dialog[open]')", "the end of the question")

    def test_checkpoints_are_pinned_and_verified(self):
        c, b = self.cluster, self.b
        job = c.job_as("ann", "saved", "chain.py", 100, 0.02, checkpoint=COOP)
        c.wait_ended(job)
        newest = c.get("/jobs/%d/checkpoints" % job)["checkpoints"][0]
        name = "checkpoint %d.%d" % (newest["attempt"], newest["sequence"])
        self.sign_in("dee")  # sees it, and may not change it
        console.show(b, "/console/jobs/%d" % job)
        b.wait_text("in the store", "main")
        self.assertEqual(b.all("main [aria-label^='Pin checkpoint']"), [])
        self.assertEqual(b.all("main [aria-label^='Verify checkpoint']"), [])
        self.sign_in("ann")
        console.show(b, "/console/jobs/%d" % job)
        b.press("Pin " + name)
        self.assertIn("until it is unpinned", b.one("dialog[open]").text)
        self.assertEqual(b.axe(), [])
        self.confirm()
        b.button("Unpin " + name)
        self.assertTrue(c.get("/jobs/%d/checkpoints" % job)["checkpoints"][0]["pinned"])
        b.press("Verify " + name)
        self.confirm()
        b.wait_text("intact", "main")
        self.assertEqual(
            [v["by"] for v in c.get("/jobs/%d/checkpoints/verify" % job)["verifications"]], ["ann"]
        )
        self.assertEqual(b.axe(), [])
        b.press("Unpin " + name)
        self.confirm()
        b.button("Pin " + name)
        self.assertIn(
            "belay checkpoint get %d@" % job, b.script("return document.body.textContent")
        )
        b.check()

    def test_users_and_roles_by_role(self):
        b = self.b
        rows = "[...document.querySelectorAll('main tbody tr')].map((r) => r.innerText)"
        for user, sees in (("ada", True), ("ann", False)):
            self.sign_in(user)
            console.show(b, "/console/users")
            found = b.wait(rows + ".length > 6 && " + rows, "the users")
            with self.subTest(user=user):
                self.assertEqual(any("operator" in row for row in found), sees, found)
            lea = next(row for row in found if row.startswith("lea"))
            self.assertIn("vision (lead)", lea)
        b.check()

    def test_a_node_is_drained_with_a_reason(self):
        c, b = self.cluster, self.b
        c.wait_ended(c.job_as("ann", "brief", script="#!/bin/sh\ntrue\n"))
        node = c.get("/nodes?state=all")["nodes"][-1]["id"]
        self.sign_in("ola")
        console.show(b, "/console/nodes/%d" % node)
        b.press("Drain")
        b.one("dialog[open] input[name=reason]").send_keys("fan 2 is loud")
        self.confirm()
        b.button("Undrain")
        events = c.get("/events?after=0&wait_ms=0")["events"]
        self.assertTrue(any("fan 2 is loud" in e["text"] for e in events), events)
        b.check()

    def test_instances_of_others_are_an_administrators(self):
        for user, has_choice in (("ola", False), ("ada", True)):
            self.sign_in(user)
            console.show(self.b, "/console/advice")
            self.assertEqual(bool(self.b.all("select[name=instances]")), has_choice, user)
        console.show(self.b, "/console/advice?instances=all")
        self.b.check()

    def test_ranks_of_a_gang(self):
        c, b = self.cluster, self.b
        job = c.job_as("cho", "two", script="#!/bin/sh\nexec sleep 1000\n", nodes=2, exclusive=True)
        c.wait_event(job, "started")
        self.sign_in("cho")
        console.show(b, "/console/jobs/%d" % job)
        b.wait_text("2 of 2", "[aria-label=Gang]")
        nodes = b.script(
            "return [...document.querySelectorAll('[aria-label=Gang] tbody a')].map((a) =>"
            " Number(a.innerText))"
        )
        self.assertEqual(nodes, [a["node"] for a in c.show(job)["attempts"]])
        b.check()
        c.post_as("cho", "/jobs/%d/cancel" % job)

    def test_a_search_in_a_long_log_draws_what_is_in_sight(self):
        c, b = self.cluster, self.b
        lines = 20000
        job = c.job_as("ann", "long", script="#!/bin/sh\nseq %d\necho found it\n" % lines)
        c.wait_ended(job)
        self.sign_in("ann")
        console.show(b, "/console/jobs/%d" % job)
        more = "[...document.querySelectorAll('[role=log] button')]"
        while b.script("return %s.length" % more):
            before = b.script("return %s[0].innerText" % more)
            b.click(b.one("[role=log] button"))
            b.wait("!%s.some((e) => e.innerText === given[0])" % more, "earlier output", before)
        count = "document.querySelectorAll('.log-line').length"
        b.wait(count + " >= given[0]", "all lines", lines - 1)
        for word, hits in (("1", 10000), ("19999", 1), ("found it", 1)):
            drawn, took_ms = self.search(word)
            print("%r in %d lines: %d drawn, %.0f ms" % (word, lines, drawn, took_ms))
            self.assertLess(drawn, lines / 10, word)
            found = b.text(".log-tools [role=status]").split(" of ")[-1]
            self.assertGreaterEqual(int(found.replace(",", "")), hits)
            self.assertTrue(b.wait("document.querySelector('.log-hit mark')", "the match"))
        b.check()

    def search(self, word):
        """Types the word; returns how many lines were drawn for it, and how long that took."""
        return self.b.driver.execute_async_script(
            """const [word, done] = arguments, drawn = new Set(), began = performance.now();
            new MutationObserver((all) => all.forEach((m) => {
              const e = m.target.nodeType === 1 ? m.target : m.target.parentElement;
              const line = e && e.closest('.log-line');
              if (line) drawn.add(line);
            })).observe(document.querySelector('[role=log]'),
              { subtree: true, childList: true, characterData: true, attributes: true });
            const input = document.querySelector('.log-tools input[type=search]');
            input.value = word;
            input.dispatchEvent(new Event('input', { bubbles: true }));
            requestAnimationFrame(() => requestAnimationFrame(() => {
              const took = performance.now() - began;
              setTimeout(() => done([drawn.size, took]), 500); // and what follows by scrolling
            }));""",
            word,
        )


if __name__ == "__main__":
    browser.need()
    if not console.has_console(BUILD + "/scheduler/belayd"):
        browser.npm.skip("belayd was built without the web console")
    unittest.main(verbosity=2)
