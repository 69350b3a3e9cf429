# SPDX-License-Identifier: Apache-2.0
"""The HTML reports of `belay`: what is in a page without its script, and what its script draws."""

import html
import json
import re
import shutil
import subprocess

# A minimal browser for the script of a page: `places` are the ids that the page has.
BROWSER = """
const places = %s, data = %s, seen = { plots: [], missing: [] };
function element() { return { style: {}, appendChild: e => e, after: e => e, remove() {} }; }
globalThis.document = { body: element(), querySelector: element, createElement: element, getElementById: id => {
  if (id === "data") return { textContent: data };
  return places.includes(id) ? Object.assign(element(), { id: id }) : null; } };
globalThis.getComputedStyle = () => ({ color: "rgb(1, 2, 3)" });
globalThis.matchMedia = () => ({ addEventListener() {} });
globalThis.addEventListener = () => {};
globalThis.Dygraph = class {
  constructor(e, rows, options) {
    if (rows.some(r => r.length !== rows[0].length || r.some(v => v !== null && !Number.isFinite(Number(v))))) throw new Error("a row that cannot be drawn");
    if (!options.xlabel || !options.ylabel) throw new Error("an axis without a title");
    seen.plots.push({ rows: rows.length, columns: rows[0].length, labels: options.labels.length, colors: options.colors.length,
      dots: rows.filter(r => r[r.length - 1] !== null).length });
  }
};
%s
console.log(JSON.stringify(seen));
"""


def data_of(page):
    """The data of its plots."""
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1]
    )


def loads_nothing(page):
    return not re.search(r"<(?:script|link|img)[^>]*\b(?:src|href)=", page) and not re.search(
        r"(?:@import|url\()\s*['\"]?(?:https?:)?//", page
    )


def text_of(page):
    """What a reader without JavaScript sees, one line for each element that has a text."""
    page = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.S)
    return re.sub(r"\s*\n\s*", "\n", html.unescape(re.sub(r"<[^>]+>", "\n", page)))


def rows_of(page, caption):
    """The rows of the table with that caption, as lists of texts; the first has the headings."""
    table = re.search(
        r"<table[^>]*><caption>%s</caption>(.*?)</table>" % re.escape(html.escape(caption)),
        page,
        re.S,
    )
    assert table, caption
    return [
        [
            html.unescape(re.sub(r"<[^>]+>", "", cell)).strip()
            for cell in re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", row, re.S)
        ]
        for row in re.findall(r"<tr[^>]*>(.*?)</tr>", table[1], re.S)
    ]


def plots_of(page):
    """What the script draws; None without node."""
    if not shutil.which("node"):
        print("SKIP: there is no node to run the page's script")
        return None
    places = re.findall(r'id="(plot-[^"]+)"', page)
    script = page.rsplit("<script>", 1)[1].split("</script>")[0]
    done = subprocess.run(
        ["node", "-"],
        input=BROWSER % (json.dumps(places), json.dumps(json.dumps(data_of(page))), script),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    plots = json.loads(done.stdout)["plots"]
    assert len(plots) == len(places), (len(plots), places)
    return plots
