# SPDX-License-Identifier: Apache-2.0
"""The web console in Chromium, on a belayd with 1,000 nodes and 100,000 jobs: how long pages take
until something is painted and until their rows are, how long interactions take, and what belayd's
ticks cost with the console and without it, in turn.

The references are the same pages before anything was loaded. Nodes and changes are those of
stream.py.
"""

import asyncio
import json
import os
import statistics
import time

import browser
import console
import stream

QUEUED, WINDOW_S, ROUNDS = stream.QUEUED, stream.WINDOW_S, stream.ROUNDS
LOADS = 5
NEEDLES = 20  # jobs of a name of their own, in the midst of the others
PAGES_DOWN = 5
SETTLED = "document.querySelector('main h1') && !document.querySelector('.loading')"
ROWS = "document.querySelectorAll('.table-long tbody tr:not(.table-space)')"
FIRST = ROWS + "[0].querySelector('a').innerText"
PAGES = {
    "overview": "/",
    "jobs": "/console/jobs",
    "nodes": "/console/nodes",
}

# In each page before its own scripts. `events` are the interactions of the Event Timing API, from
# the input to the next paint, in steps of 8 ms; shorter ones than 16 ms are not reported. arm()
# measures from the next input of that kind until what it makes the page show was painted. There are
# changes of the page that nothing announces, so each frame is looked at.
MEASURE = """
(() => {
  const m = { events: [], frames: [], took: null, shown: null };
  Object.defineProperty(window, '__bench', { value: m });
  new PerformanceObserver((list) => {
    for (const e of list.getEntries())
      if (e.interactionId)
        m.events.push([e.duration, e.processingStart - e.startTime,
          e.processingEnd - e.processingStart, e.name]);
  }).observe({ type: 'event', durationThreshold: 16, buffered: true });
  const painted = (fn) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = fn;
    channel.port2.postMessage(0);
  });
  const when = (is_there, fn) => {
    const look = () => (is_there() ? painted(fn) : requestAnimationFrame(look));
    look();
  };
  m.arm = (kind, is_there) => {
    m.took = null;
    addEventListener(kind, (e) => when(is_there, () => { m.took = performance.now() - e.timeStamp; }),
      { capture: true, once: true });
  };
  m.scroll = (ms, by, done) => {
    const frames = [], began = performance.now();
    let last = began;
    const step = (now) => {
      frames.push(now - last);
      last = now;
      scrollBy(0, by);
      if (now - began < ms) requestAnimationFrame(step); else done(frames.slice(1));
    };
    requestAnimationFrame(step);
  };
  when(() => SETTLED, () => { m.shown = performance.now(); });
})();
""".replace(
    "SETTLED", SETTLED
)


def missing(belayd):
    """Why nothing can be measured here; None if it can."""
    why = browser.missing()
    if not why and not console.has_console(belayd):
        why = "belayd was built without the web console: run web/fetch.py, and build it anew"
    return why


def worst(values):
    return "%.0f ms, worst %.0f" % (statistics.median(values), max(values))


def load_pages(b):
    """For each page the times in ms until the first paint with content and until its data are
    shown, without anything from the browser's cache."""
    b.command("Network.enable")
    b.command("Network.setCacheDisabled", cacheDisabled=True)
    took = {name: [] for name in PAGES}
    for _ in range(LOADS):
        for name, path in PAGES.items():
            b.open(path)
            took[name].append(
                b.wait(
                    "window.__bench && __bench.shown && [performance.getEntriesByName("
                    "'first-contentful-paint')[0].startTime, __bench.shown]",
                    "the page and its data",
                )
            )
    b.command("Network.setCacheDisabled", cacheDisabled=False)
    return took


class Visitor:
    """Who uses the list of jobs; `took` has the times in ms until the result was painted."""

    def __init__(self, b):
        self.b, self.took, self.frames, self.events, self.n = b, {}, [], [], 0

    def measure(self, what, kind, is_there, act):
        self.b.script(
            "const fn = () => (%s); __bench.arm(arguments[0], fn)" % is_there,
            kind,
        )
        act()
        took = self.b.wait("__bench.took", what)
        self.n += 1
        self.took.setdefault(what, []).append(took)

    def press_in(self, selector, *keys):
        return lambda: self.b.one(selector).send_keys(*keys)

    def visit(self):
        b, key = self.b, browser.Keys
        console.follow(b, "/console/jobs?state=all")
        b.wait(ROWS + ".length > 0", "the jobs")
        down = self.press_in("select[name=sort]", key.ARROW_DOWN)
        is_first = "location.search.includes('sort=oldest') && %s && +%s < 10" % (
            ROWS + "[0]",
            FIRST,
        )
        self.measure("sort", "keydown", is_first, down)
        b.one("input[name=name]").send_keys("needle*")
        enter = self.press_in("input[name=name]", key.ENTER)
        is_found = "%s.length === %d" % (ROWS, NEEDLES)
        self.measure("filter by name, %d of all" % NEEDLES, "keydown", is_found, enter)
        link = b.one(".table-long tbody a")
        is_open = "location.pathname !== '/console/jobs' && " + SETTLED
        self.measure("open a job", "click", is_open, link.click)
        console.follow(b, "/console/jobs")
        b.wait(ROWS + ".length > 0", "the jobs")
        count = "+document.querySelector('.table-long table').getAttribute('aria-rowcount')"
        for _ in range(PAGES_DOWN):
            n = b.script("return " + count)
            b.script("document.activeElement.blur()")
            self.measure(
                "next page of the list", "keydown", "%s > %d" % (count, n), lambda: b.keys(key.END)
            )
        b.script("scrollTo(0, 0)")
        self.frames += b.driver.execute_async_script("__bench.scroll(1000, 90, arguments[0])")
        self.events += b.script("return __bench.events.splice(0)")

    def visit_until(self, end):
        while time.monotonic() < end:
            self.visit()


async def measure_ticks(l, say, b):
    visitor, without, used, blank = Visitor(b), [], [], []
    for _ in range(ROUNDS):
        b.open("about:blank")
        blank += b.driver.execute_async_script("__bench.scroll(4000, 0, arguments[0])")
        without.append(await stream.window(l))
        b.open("/console/jobs")
        visits = asyncio.to_thread(visitor.visit_until, time.monotonic() + WINDOW_S)
        used.append((await asyncio.gather(stream.window(l), visits))[0])
    longest, waited, ran, name = max(visitor.events, default=(16, 0, 0, "none above"))
    say(
        "longest interaction of %d, input to next paint" % visitor.n,
        "%.0f ms (%s)" % (longest, name),
        "waited %.0f ms, ran %.0f ms, then was painted" % (waited, ran),
        "%d above 100 ms" % sum(e[0] > 100 for e in visitor.events),
    )
    for what, took in visitor.took.items():
        say("  %s, until it is shown" % what, worst(took))
    a, z = visitor.frames, blank
    say(
        "a frame while the list scrolls",
        worst(a),
        "of an empty document: " + worst(z),
        "%.2f x; worst %.2f x" % (statistics.median(a) / statistics.median(z), max(a) / max(z)),
    )
    for i, what, unit in ((1, "mean tick", "%.3f ms"), (0, "belayd's share of a core", "%.4f")):
        a, z = (statistics.median(w[i] for w in ws) for ws in (used, without))
        say(what + ", a console in use", unit % a, "without: " + unit % z, "%.2f x" % (a / z))


def say_loads(say, empty, loaded):
    for name in PAGES:
        for i, what in enumerate(("first contentful paint", "its data are shown")):
            a, z = ([took[i] for took in all[name]] for all in (loaded, empty))
            say(
                "%s, %s" % (name, what),
                worst(a),
                "on an empty belayd: " + worst(z),
                "%.2f x" % (statistics.median(a) / statistics.median(z)),
            )


def submit(l, spec):
    half = [("/jobs", json.dumps(spec).encode())] * (QUEUED // 2)
    l.post_all(half, 32)
    for i in range(NEEDLES):
        l.post("/jobs", {**spec, "name": "needle-%d" % i})
    l.post_all(half, 32)


def bench(l, say, spec):
    """l: a bench.Local without an agent."""
    stream.raise_files()
    token = l.post("/tokens", {"kind": "api", "user": "viewer", "admin": True})["token"]
    with open(os.path.join(l.home, "belayd.json")) as f:
        url = json.load(f)["url"]
    with browser.Browser(l.home, url) as b:
        b.command("Page.addScriptToEvaluateOnNewDocument", source=MEASURE)
        console.sign_in(b, token)
        empty = load_pages(b)
        b.open("about:blank")
        submit(l, spec)

        async def use(_):
            say_loads(say, empty, await asyncio.to_thread(load_pages, b))
            await measure_ticks(l, say, b)

        stream.with_nodes(l, use)
        b.open("about:blank")
