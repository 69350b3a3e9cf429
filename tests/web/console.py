# SPDX-License-Identifier: Apache-2.0
"""What the tests of the web console, and its screenshots, do on its pages."""

import os
import re
import subprocess

from browser import Browser

HERE = os.path.dirname(os.path.abspath(__file__))
INDEX = os.path.join(HERE, "..", "..", "web", "src", "pages", "index.js")
SIGN_IN = "/console/sign-in"
# The jobs of cluster.py's story, and other things, whose pages stand for all.
SHOWN = {
    "/console/jobs/:ref": ["train", "array", "gang", "failed", "unfit", "deadline"],
    "/console/nodes/:id": ["node"],
    "/console/cron/:id": ["nightly-eval"],
    "/console/pools/:name": ["pool"],
}
# What a browser logs before the user has signed in, and when the token is wrong.
SIGNED_OUT = [
    "/api/v1/whoami - Failed to load resource: the server responded with a status of 401",
    "/login/session - Failed to load resource: the server responded with a status of 401",
]


def patterns():
    """The paths of web/src/pages/index.js."""
    with open(INDEX) as f:
        found = re.findall(r'\bpath: "(/[^"]*)"', f.read())
    if len(found) < 3 or len(found) != len(set(found)):
        raise AssertionError("%s: pages were not read: %s" % (INDEX, found))
    return found


def pages(numbers):
    """(name, path) of each page; numbers: of the things that SHOWN names."""
    for pattern in patterns():
        name = pattern.replace("/console/", "").strip("/").replace("/", "-") or "overview"
        if ":" not in pattern:
            yield name, pattern
            continue
        if pattern not in SHOWN:
            raise AssertionError("tests/web/console.py: SHOWN has nothing for " + pattern)
        for what in SHOWN[pattern]:
            path = re.sub(r":\w+", lambda _: str(numbers[what]), pattern)
            yield re.sub(r":\w+", what, name), path


def has_console(belayd):
    """Whether the program was built with the console: it has the digests of its files."""
    found = subprocess.run(["grep", "-c", "/console/assets/main", belayd], stdout=subprocess.PIPE)
    return found.returncode == 0


def sign_in(b: Browser, token, path="/"):
    """With the form, as a user does; ends at the path."""
    b.allowed += SIGNED_OUT
    b.open(SIGN_IN + "?next=" + path)
    field = b.one("input[name=token]", "the field for the token")
    field.send_keys(token)
    b.press("Sign in with the token")
    b.wait("location.pathname === given[0]", "the page after the sign-in", path.split("?")[0])
    settled(b)


def settled(b):
    """Waits until the page has its data, or says why not."""
    b.wait(
        "document.querySelector('main h1') && !document.querySelector('.loading')",
        "the page and its data",
    )


def show(b, path):
    """Opens a page, which has to be one and to have its data."""
    b.open(path)
    settled(b)
    failed = b.text("main [role=alert]")
    if failed:
        raise AssertionError("%s says: %s" % (path, failed))
    if "Not found" in b.driver.title:
        raise AssertionError("there is no page " + path)


def follow(b, path):
    """Goes to a page as a link of the console does, without loading it anew."""
    b.script(
        "const a = document.createElement('a'); a.href = arguments[0];"
        " document.querySelector('main').append(a); a.click(); a.remove()",
        path,
    )
    b.wait("location.pathname + location.search === given[0]", "the page " + path, path)
    settled(b)
