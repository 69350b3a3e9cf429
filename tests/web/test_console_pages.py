# SPDX-License-Identifier: Apache-2.0
"""Every page of the web console, with data of a real cluster: readable for all (axe-core), at the
width of a phone and of a laptop, light and dark, and without an error of the browser.
"""

import unittest

import browser
import console
from cluster import BUILD, Cluster

WIDTHS = {360: 800, 1280: 900}
COLOURS = ["color-contrast", "link-in-text-block"]  # all that differs in the other theme


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster().__enter__()
        cls.addClassCleanup(lambda: cls.cluster.__exit__(None, None, None))
        cls.numbers = cls.cluster.story()
        cls.cluster.fill_weeks()
        cls.b = browser.Browser(cls.cluster.dir, cls.cluster.url()).__enter__()
        cls.addClassCleanup(cls.b.quit)

    def check_looks(self, what):
        """Accessible at each width in both themes, and nothing sticks out of the window."""
        for width, height in WIDTHS.items():
            self.b.resize(width, height)
            with self.subTest(page=what, width=width):
                self.assertEqual(self.b.overflow(), [])
            for dark in (False, True):
                self.b.theme(dark)
                with self.subTest(page=what, width=width, dark=dark):
                    self.assertEqual(self.b.axe(rules=COLOURS if dark else None), [])

    def test_pages(self):
        self.b.open("/")
        self.b.one("input[name=token]", "the sign-in, which / shows to strangers")
        self.check_looks("sign-in")
        console.sign_in(self.b, self.cluster.token("ada"))
        for name, path in console.pages(self.numbers):
            with self.subTest(page=name):
                console.show(self.b, path)
                self.assertIn("belay", self.b.driver.title)
                self.check_looks(name)
                self.b.check()
        # A page that there is not, and a job that there is not, say so.
        for path, text in (
            ("/console/nowhere", "no such page"),
            ("/console/jobs/4711", "there is no job 4711"),
        ):
            with self.subTest(page=path):
                self.b.open(path)
                self.b.wait_text(text)
                self.check_looks(path)
                self.b.problems()  # the browser logs the 404


if __name__ == "__main__":
    browser.need()
    if not console.has_console(BUILD + "/scheduler/belayd"):
        browser.npm.skip("belayd was built without the web console")
    unittest.main(verbosity=2)
