# SPDX-License-Identifier: Apache-2.0
"""A list that belayd gives in pages is printed whole, in the order of its numbers."""

import json
import os
import subprocess
import tempfile
import unittest

from canned import Canned

BUILD = os.path.abspath(os.environ.get("BELAY_BUILD", "build"))
ALL = "/api/v1/nodes?state=all"


class Pages(unittest.TestCase):
    def listed(self, **pages):
        """What belay nodes --all prints; pages: ("", or before_ID) -> (numbers, next)."""
        with tempfile.TemporaryDirectory(prefix="belay-pages.") as folder:
            socket = os.path.join(folder, "s")
            with Canned(socket, Canned.Answer) as canned:
                canned.replies = {
                    ALL
                    + name.replace("first", "").replace("before_", "&before="): {
                        "nodes": [{"id": n, "name": "n%d" % n} for n in numbers],
                        "next": after,
                    }
                    for name, (numbers, after) in pages.items()
                }
                done = subprocess.run(
                    [BUILD + "/cli/belay", "nodes", "--all", "--json"],
                    env={**os.environ, "BELAY_SOCKET": socket},
                    capture_output=True,
                    text=True,
                    timeout=60,
                )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        reply = json.loads(done.stdout)
        return [n["id"] for n in reply["nodes"]], reply["next"]

    def test_older_pages_come_before_newer_ones(self):
        self.assertEqual(self.listed(first=([1, 2], None)), ([1, 2], None))
        shown = self.listed(first=([8, 9], 8), before_8=([4, 6], 4), before_4=([1], None))
        self.assertEqual(shown, ([1, 4, 6, 8, 9], None))

    def test_pages_that_do_not_end_are_ended(self):
        shown = self.listed(first=([8, 9], 8), before_8=([8, 9], 8))
        self.assertEqual(shown, ([8, 9, 8, 9], None))


if __name__ == "__main__":
    unittest.main()
