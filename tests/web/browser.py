# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium for the tests of the web console, driven through chromedriver.

    with Browser(directory, server=url) as browser:
        browser.open("/console/jobs")
        browser.wait("document.querySelector('h1')", "the heading")
        browser.check()

Its profile, home and temporary files are below the directory. It reaches nothing but loopback.
Waits are for changes of the page, always with a deadline. What the console must never cause is
collected: errors and warnings of the browser's log, reports of the content security policy,
uncaught errors, requests to other hosts. check(), and the end of the block, fail at any of them.

A machine without Chromium skips the test (need()).
"""

import base64
import hashlib
import json
import os
import ssl
import subprocess
import sys
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import npm  # noqa: E402

try:
    from selenium import webdriver
    from selenium.common.exceptions import (
        JavascriptException,
        StaleElementReferenceException,
        TimeoutException,
        WebDriverException,
    )
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    webdriver = None

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
WAIT_S = 120  # of any single wait
ZONE = "Europe/Berlin"  # of the viewer: not UTC, so that a wrong zone is seen
AXE = {"private": True, "dependencies": {"axe-core": "4.14.1"}}
PACKAGES = os.path.join(os.environ.get("BELAY_BUILD", "build"), "tests", "web", "npm")

# In each page before its own scripts. `ran` is what injected code would set or call.
PRELUDE = """
(() => {
  const seen = { csp: [], errors: [], ran: [] };
  Object.defineProperty(window, '__seen', { value: seen });
  addEventListener('securitypolicyviolation', (e) => seen.csp.push(
    e.effectiveDirective + ' ' + e.blockedURI + ' ' + (e.sample || '')));
  addEventListener('error', (e) => e.message && seen.errors.push(e.message));
  addEventListener('unhandledrejection', (e) => seen.errors.push(String(e.reason)));
  for (const name of ['alert', 'confirm', 'prompt', 'print', 'xss']) {
    Object.defineProperty(window, name, {
      value: (...what) => { seen.ran.push(name + ' ' + what.join(' ')); }, writable: false });
  }
})();
"""

# Retries an expression after each change of the page, and now and then for what is no change of
# the document (focus, scrolling).
WAIT = """
const done = arguments[arguments.length - 1], given = [...arguments].slice(0, -2);
const limit = arguments[arguments.length - 2];
const look = function () { return (EXPRESSION); };
let observer, timer, end, last = null;
const settle = (answer) => {
  observer.disconnect(); clearInterval(timer); clearTimeout(end); done(answer); };
const again = () => {
  try { const found = look.apply(null, given); if (found) settle([found, null]); }
  catch (e) { last = String(e); } };
observer = new MutationObserver(again);
observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
timer = setInterval(again, 200);
end = setTimeout(() => settle([null, last]), limit);
again();
"""


def missing():
    """What keeps Chromium from being driven here; None if nothing does."""
    if webdriver is None:
        return "python3-selenium is not installed; scripts/setup installs it on Debian"
    for program in (CHROMIUM, DRIVER):
        if not os.path.exists(program):
            return "there is no %s; scripts/setup installs it on Debian" % program
    return None


def need():
    """Skips the test where there is no Chromium that it can drive."""
    why = missing()
    if why:
        npm.skip(why)


def key_hash(url):
    """What Chromium calls the hash of a server's public key."""
    where = urllib.parse.urlsplit(url)
    pem = ssl.get_server_certificate((where.hostname, where.port), timeout=WAIT_S)
    key = subprocess.run(
        ["openssl", "x509", "-noout", "-pubkey"],
        input=pem.encode(),
        stdout=subprocess.PIPE,
        check=True,
        timeout=WAIT_S,
    ).stdout
    key = b"".join(line for line in key.splitlines() if not line.startswith(b"-"))
    return base64.b64encode(hashlib.sha256(base64.b64decode(key)).digest()).decode()


class Browser:
    def __init__(self, directory, server, dark=False, width=1280, height=900, downloads=None):
        """server: http(s)://HOST:PORT, which runs; its certificate is accepted, no other."""
        self.server, self.dark, self.width, self.height = server, dark, width, height
        self.home = os.path.join(directory, "browser")
        self.downloads = downloads or os.path.join(self.home, "downloads")
        self.driver = None
        self.allowed = []  # texts of expected problems
        self.kept = []  # problems of earlier documents

    # ---- start and end ----

    def __enter__(self):
        os.makedirs(os.path.join(self.home, "tmp"), exist_ok=True)
        os.makedirs(self.downloads, exist_ok=True)
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        options.ignore_local_proxy_environment_variables()
        for argument in self.arguments():
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        options.add_experimental_option("prefs", {"download.default_directory": self.downloads})
        env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        env.update(
            HOME=self.home,
            TMPDIR=os.path.join(self.home, "tmp"),
            XDG_CONFIG_HOME=self.home,
            XDG_CACHE_HOME=self.home,
            TZ=ZONE,
            LANG="C.UTF-8",
        )
        service = Service(DRIVER, log_path=os.path.join(self.home, "driver.log"), env=env)
        self.driver = webdriver.Chrome(service=service, options=options)
        try:
            self.driver.set_page_load_timeout(WAIT_S)
            self.driver.set_script_timeout(2 * WAIT_S)
            self.command("Page.addScriptToEvaluateOnNewDocument", source=PRELUDE)
            self.resize(self.width, self.height)
            self.theme(self.dark)
        except BaseException:
            self.quit()
            raise
        return self

    def __exit__(self, kind, error, trace):
        try:
            if error is None:
                self.check()
            else:
                self.tell()
        finally:
            self.quit()

    def arguments(self):
        yield "--headless=new"
        yield "--user-data-dir=" + os.path.join(self.home, "profile")
        yield "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
        if self.server.startswith("https:"):
            yield "--ignore-certificate-errors-spki-list=" + key_hash(self.server)
        yield from (
            "--no-first-run --no-default-browser-check --disable-gpu --disable-dev-shm-usage"
            " --disable-background-networking --disable-component-update --disable-sync"
            " --disable-extensions --hide-scrollbars --force-device-scale-factor=1 --lang=en-GB"
            " --force-color-profile=srgb --disable-features=Translate,MediaRouter"
        ).split()
        if os.geteuid() == 0:
            yield "--no-sandbox"

    def quit(self):
        if self.driver:
            self.driver.quit()
            self.driver = None

    def tell(self):
        """Prints what helps to diagnose a failure."""
        try:
            print("==== the page %s" % self.driver.current_url, file=sys.stderr)
            print(self.script("return document.body.innerText")[:4000], file=sys.stderr)
            for problem in self.problems():
                print("PROBLEM: " + problem, file=sys.stderr)
            self.screenshot(os.path.join(self.home, "failed.png"))
        except WebDriverException as error:
            print("==== no page: %s" % error.msg, file=sys.stderr)

    # ---- the window ----

    def command(self, method, **parameters):
        """A command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(method, parameters)

    def resize(self, width, height=None):
        self.width, self.height = width, height or self.height
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=self.width,
            height=self.height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def theme(self, dark):
        self.dark = dark
        features = {
            "prefers-color-scheme": "dark" if dark else "light",
            "prefers-reduced-motion": "reduce",
        }
        self.command(
            "Emulation.setEmulatedMedia",
            features=[{"name": k, "value": v} for k, v in features.items()],
        )

    def screenshot(self, path, height_max=2400):
        """The whole page, up to a height: the window is made as high, because what is out of sight
        is not drawn (content-visibility)."""
        height = self.script("return Math.max(innerHeight, document.documentElement.scrollHeight)")
        before = self.height
        self.resize(self.width, min(height, height_max))
        try:
            self.driver.execute_async_script(
                "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
            )
            shot = self.command("Page.captureScreenshot", format="png")
        finally:
            self.resize(self.width, before)
        with open(path, "wb") as f:
            f.write(base64.b64decode(shot["data"]))

    # ---- the page ----

    def open(self, path):
        """Opens a path of the server, or a whole URL."""
        self.keep()
        self.driver.get(urllib.parse.urljoin(self.server, path))

    def path(self):
        return urllib.parse.urlsplit(self.driver.current_url).path

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def wait(self, expression, what, *given, timeout_s=WAIT_S):
        """Waits until the JavaScript expression is true in the page; returns its value. It finds
        the values of `given` as given[0] and so on. Survives navigation.
        """
        end, last = time.monotonic() + timeout_s, None
        while True:
            left_ms = max(1, int((end - time.monotonic()) * 1000))
            try:
                found, last = self.driver.execute_async_script(
                    WAIT.replace("EXPRESSION", expression),
                    *given,
                    left_ms,
                )
                if found:
                    return found
            except (JavascriptException, StaleElementReferenceException, TimeoutException) as error:
                last = error.msg  # the document was replaced meanwhile
            if time.monotonic() >= end:
                raise AssertionError(
                    "not within %d s: %s (%s) at %s; the page says:\n%s"
                    % (timeout_s, what, last, self.driver.current_url, self.text()[:2000])
                )

    def wait_text(self, text, selector="body", **more):
        """Waits for an element that shows the text; returns it."""
        return self.wait(
            "[...document.querySelectorAll(given[0])].find((e) => e.innerText.includes(given[1]))",
            "%r in %s" % (text, selector),
            selector,
            text,
            **more,
        )

    def text(self, selector="body"):
        found = self.driver.find_elements(By.CSS_SELECTOR, selector)
        return "\n".join(e.text for e in found)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector, what=None):
        """Waits for a visible element."""
        return self.wait(
            "[...document.querySelectorAll(given[0])].find((e) => e.checkVisibility())",
            what or selector,
            selector,
        )

    def button(self, name):
        """Waits for an enabled button or link by the name that it has for a screen reader."""
        return self.wait(
            "[...document.querySelectorAll('button, a[href], [role=button], [role=tab]')].find((e) =>"
            " e.checkVisibility() && !e.disabled && e.getAttribute('aria-disabled') !== 'true' &&"
            " (e.getAttribute('aria-label') || e.innerText).trim().startsWith(given[0]))",
            "the button %r" % name,
            name,
        )

    def press(self, name):
        self.click(self.button(name))

    def click(self, element):
        self.script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def keys(self, *what):
        """Keys for whatever has the focus."""
        ActionChains(self.driver).send_keys(*what).perform()

    def select_all(self):
        ActionChains(self.driver).key_down(Keys.CONTROL).send_keys("a").key_up(
            Keys.CONTROL
        ).perform()

    def focused(self):
        """The name, or else the text, of what has the focus."""
        return self.script(
            "const e = document.activeElement; return !e || e === document.body ? '' :"
            " (e.getAttribute('aria-label') || (e.labels && e.labels[0] && e.labels[0].innerText)"
            " || e.innerText || e.id || e.tagName).trim()"
        )

    def tab_to(self, is_there, what, steps_max=120):
        """Presses Tab until is_there(name of what has the focus)."""
        seen = []
        for _ in range(steps_max):
            self.keys(Keys.TAB)
            seen.append(self.focused())
            if is_there(seen[-1]):
                return seen
        raise AssertionError("Tab does not come to %s, only to %s" % (what, seen))

    # ---- what it must be like ----

    def overflow(self):
        """The elements that make the page wider than the window: for long, because a plot is drawn
        for another width only a while after it."""
        return self.driver.execute_async_script(
            """const done = arguments[0], end = performance.now() + 10000;
            const look = () => {
              const wide = document.documentElement.clientWidth;
              if (document.documentElement.scrollWidth <= wide) return done([]);
              if (performance.now() < end) return setTimeout(look, 50);
              done([...document.body.querySelectorAll('*')]
                .filter((e) => e.getBoundingClientRect().right > wide + 0.5)
                .map((e) => e.tagName.toLowerCase() + (e.id ? '#' + e.id : '')
                  + [...e.classList].map((c) => '.' + c).join('')
                  + ' ' + Math.round(e.getBoundingClientRect().right)).slice(0, 8)
                .concat(['the page is ' + document.documentElement.scrollWidth + ' wide']));
            };
            look();"""
        )

    def axe(self, impacts=("serious", "critical"), rules=None):
        """What axe-core finds in the page, as texts; by these rules alone, if any are given."""
        if not self.script("return !!window.axe"):
            self.script(axe_source())
        # Without preload: it would copy style sheets into elements, against the page's policy. Of a
        # log, which has thousands of lines, the first few stand for all.
        result = self.driver.execute_async_script(
            """const done = arguments[1], only = arguments[0];
            const how = { preload: false, resultTypes: ['violations'] };
            if (only) how.runOnly = { type: 'rule', values: only };
            axe.run({ exclude: [['.log-line:nth-child(n+40)'], ['.log-block:nth-child(n+3)']] }, how).then(
              (r) => done({ violations: r.violations, passes: r.passes.length }),
              (e) => done({ error: String(e) }))""",
            rules,
        )
        if "error" in result:
            raise AssertionError("axe-core: " + result["error"])
        if not result["passes"]:
            raise AssertionError("axe-core has checked nothing")
        return [
            "%s: %s: %s (%s)"
            % (
                v["impact"],
                v["id"],
                n["html"][:200],
                (n["failureSummary"] or "").replace("\n", " "),
            )
            for v in result["violations"]
            if v["impact"] in impacts
            for n in v["nodes"]
        ]

    def keep(self):
        """Remembers what the present document has seen, before it is replaced."""
        told = self.script(
            "const s = JSON.stringify(window.__seen || {});"
            " for (const k in window.__seen) window.__seen[k].length = 0; return s"
        )
        self.kept += [k + ": " + text for k, texts in json.loads(told).items() for text in texts]

    def problems(self):
        """What has gone wrong since the last call, as texts."""
        self.keep()
        found, self.kept = self.kept, []
        found += [
            "log: %s: %s" % (line["level"], line["message"])
            for line in self.driver.get_log("browser")
            if line["level"] in ("SEVERE", "WARNING")
        ]
        return [p for p in found if not any(text in p for text in self.allowed)]

    def check(self):
        problems = self.problems()
        if problems:
            raise AssertionError(
                "the browser reports, at %s:\n%s" % (self.driver.current_url, "\n".join(problems))
            )


def axe_source():
    npm.install(PACKAGES, AXE, "axe-core")
    with open(os.path.join(PACKAGES, "node_modules", "axe-core", "axe.min.js")) as f:
        return f.read()
