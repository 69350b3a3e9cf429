# SPDX-License-Identifier: Apache-2.0
"""Takes a picture of every page of the web console, for scripts/screenshots: at three widths, light
and dark, of a small cluster that is real but for its cloud and its past.

    screenshots.py DIRECTORY [WORD]...    only pages whose name has one of the words
"""

import os
import sys

import console
from browser import Browser, need
from cluster import BUILD, Cluster

SIZES = {360: 800, 1280: 900, 1920: 1080}
HEIGHT_MAX = int(os.environ.get("HEIGHT_MAX", "2400"))  # px of a picture


def main(directory, words):
    need()
    if not console.has_console(BUILD + "/scheduler/belayd"):
        sys.exit("screenshots: belayd was built without the web console: run scripts/setup")
    os.makedirs(directory, exist_ok=True)
    with Cluster() as cluster:
        numbers = cluster.story()
        cluster.fill_weeks()
        with Browser(cluster.dir, cluster.url()) as b:
            b.allowed.append("")  # the tests look for errors
            b.open(console.SIGN_IN)
            b.one("input[name=token]", "the sign-in")
            shown = [("sign-in", None), *console.pages(numbers)]
            shown = [s for s in shown if not words or any(word in s[0] for word in words)]
            for name, path in shown:
                if path and not b.driver.get_cookies():
                    console.sign_in(b, cluster.token("ada"))
                take(b, directory, name, path)


def take(b, directory, name, path):
    for width, height in SIZES.items():
        b.resize(width, height)
        for dark in (False, True):
            b.theme(dark)
            if path:
                console.show(b, path)  # again: charts are drawn for a width and a theme
            file = os.path.join(
                directory, "%s-%d-%s.png" % (name, width, "dark" if dark else "light")
            )
            b.screenshot(file, HEIGHT_MAX)
            print(file, flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
