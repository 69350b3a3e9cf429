# SPDX-License-Identifier: Apache-2.0
"""bundle.py WEB ESBUILD OUT.c DEPFILE: makes the console: bundles src/ with the packages in
node_modules/, names each file after its content, puts their digests into index.html (Subresource
Integrity), and writes everything, plain and compressed, as the C table of scheduler/console.h.
ESBUILD is "" to leave the console out: then the table is empty.
"""

import base64
import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile

GZIP_MAX = 250 << 10  # bytes of everything, compressed
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
# Preact and uPlot speak the ES2020 of all browsers since 2021.
OPTIONS = ["--bundle", "--minify", "--format=esm", "--target=es2020", "--log-level=warning"]


def main():
    web, esbuild, out, depfile = sys.argv[1:]
    files = []
    if esbuild:
        with tempfile.TemporaryDirectory() as scratch:
            inputs = run_esbuild(web, esbuild, scratch)
            files = collect(web, scratch)
        with open(depfile, "w", encoding="utf-8") as f:
            f.write("%s: %s\n" % (out, " ".join(sorted(inputs))))
    total = sum(len(zipped) for _, _, _, zipped in files)
    if total > GZIP_MAX:
        sys.exit("bundle.py: the console has %d bytes compressed, over %d" % (total, GZIP_MAX))
    with open(out, "w", encoding="utf-8") as f:
        write_table(f, files)


def run_esbuild(web, esbuild, scratch):
    """Bundles src/main.js and src/style/main.css into scratch; returns the paths that were read."""
    meta = os.path.join(scratch, "meta.json")
    entries = [os.path.join(web, "src", "main.js"), os.path.join(web, "src", "style", "main.css")]
    command = [esbuild, *entries, *OPTIONS, "--outdir=" + scratch, "--entry-names=[name]"]
    subprocess.run([*command, "--metafile=" + meta], check=True, cwd=web)
    with open(meta, encoding="utf-8") as f:
        inputs = [os.path.join(web, path) for path in json.load(f)["inputs"]]
    os.remove(meta)
    others = ("index.html", "icon.svg", "package-lock.json")
    return inputs + [os.path.join(web, name) for name in others]


def collect(web, scratch):
    """Returns (path, type, plain, zipped) of each file, index.html first."""
    named = {"icon.svg": read(web, "icon.svg"), "licences.txt": licences(web)}
    named.update({name: read(scratch, name) for name in ("main.js", "main.css")})
    page = read(web, "index.html").decode()
    files = []
    for name, plain in named.items():
        stem, ext = os.path.splitext(name)
        path = "/console/assets/%s-%s%s" % (stem, hashlib.sha256(plain).hexdigest()[:16], ext)
        digest = "sha384-" + base64.b64encode(hashlib.sha384(plain).digest()).decode()
        page = page.replace("{%s}" % name, path).replace("{%s integrity}" % name, digest)
        files.append(packed(path, plain))
    return [packed("/index.html", page.encode())] + files


def packed(path, plain):
    return path, TYPES[os.path.splitext(path)[1]], plain, gzip.compress(plain, 9, mtime=0)


def licences(web):
    """The licence of each package that the console is made of, as it asks for."""
    texts = []
    for path, package in json.loads(read(web, "package-lock.json"))["packages"].items():
        if path and not package.get("dev"):
            name = path.removeprefix("node_modules/")
            texts.append("%s %s (%s)\n\n" % (name, package["version"], package["license"]))
            texts.append(read(web, path, "LICENSE").decode() + "\n\n")
    return "".join(texts).encode()


def read(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


def write_table(f, files):
    f.write("/* Made by web/bundle.py. */\n")
    f.write('#include "scheduler/console.h"\n')
    rows = []
    for i, (path, content_type, plain, zipped) in enumerate(files):
        for name, data in (("plain", plain), ("zipped", zipped)):
            f.write("static const unsigned char %s_%d[] = {\n" % (name, i))
            for at in range(0, len(data), 32):
                f.write(",".join(map(str, data[at : at + 32])) + ",\n")
            f.write("};\n")
        rows.append(
            '    {"%s", "%s", plain_%d, sizeof(plain_%d), zipped_%d, sizeof(zipped_%d)},\n'
            % (path, content_type, i, i, i, i)
        )
    f.write("const struct console_file console_files[] = {\n%s    {0}\n};\n" % "".join(rows))


if __name__ == "__main__":
    main()
