# SPDX-License-Identifier: Apache-2.0
"""No page links to a missing file or heading."""

import re
import unittest

import manual

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.S | re.M)


def pages():
    found = sorted(manual.ROOT.glob("*.md"))
    for folder in ("docs", "examples"):
        found += sorted((manual.ROOT / folder).rglob("*.md"))
    return found


def anchors(page):
    """Anchors as GitHub derives them from headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


class Links(unittest.TestCase):
    def test_every_link_leads_somewhere(self):
        self.assertGreater(len(pages()), 4)
        for page in pages():
            for target in LINK.findall(CODE.sub("", page.read_text())):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                file = (page.parent / name).resolve() if name else page
                with self.subTest(f"{page.relative_to(manual.ROOT)}: {target}"):
                    self.assertTrue(file.exists(), "there is no such file")
                    if anchor and file.suffix == ".md":
                        self.assertIn(anchor, anchors(file))


if __name__ == "__main__":
    unittest.main()
