#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""fetch.py [--dev]: gets the packages of web/package-lock.json from npm's registry into
web/node_modules, each checked against the lock file's SHA-512 before anything of it is unpacked.
--dev: also those for work on the console, which is not built from them. Does nothing if they are
there. npm_config_registry names a mirror, as for npm.

npm itself would do; Debian's comes with 380 packages, for three archives without dependencies that
run no code when they are installed.
"""

import base64
import hashlib
import io
import json
import os
import random
import shutil
import sys
import tarfile
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
TRIES = 4
TIMEOUT_S = 30
ARCHIVE_MAX = 16 << 20  # bytes
FILES_MAX = 64 << 20  # bytes of all files of one package


def main():
    with_dev = sys.argv[1:] == ["--dev"]
    with open(os.path.join(HERE, "package-lock.json"), encoding="utf-8") as f:
        packages = json.load(f)["packages"]
    for path, package in packages.items():
        if path and (with_dev or not package.get("dev")):
            try:
                fetch(os.path.join(HERE, path), url_of(path, package), package["integrity"])
            except (OSError, ValueError, tarfile.TarError) as e:
                sys.exit("fetch.py: %s: %s" % (url_of(path, package), e))


def url_of(path, package):
    name = path.removeprefix("node_modules/")
    registry = os.environ.get("npm_config_registry", "https://registry.npmjs.org").rstrip("/")
    return "%s/%s/-/%s-%s.tgz" % (registry, name, name.split("/")[-1], package["version"])


def fetch(folder, url, integrity):
    """Puts one package into its folder, whole or not at all."""
    mark = os.path.join(folder, ".integrity")
    if os.path.exists(mark) and open(mark, encoding="utf-8").read() == integrity:
        return
    archive = download(url)
    check(archive, integrity)
    new = folder + ".new"
    shutil.rmtree(new, ignore_errors=True)
    unpack(archive, new)
    with open(os.path.join(new, ".integrity"), "w", encoding="utf-8") as f:
        f.write(integrity)
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(new, folder)


def download(url):
    if not url.startswith("https://"):
        raise ValueError("not an https URL")
    for attempt in range(TRIES):
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as reply:
                archive = reply.read(ARCHIVE_MAX + 1)
            if len(archive) > ARCHIVE_MAX:
                raise ValueError("more than %d bytes" % ARCHIVE_MAX)
            return archive
        except urllib.error.HTTPError as e:
            if e.code < 500 or attempt + 1 == TRIES:
                raise
        except OSError:
            if attempt + 1 == TRIES:
                raise
        time.sleep(2**attempt * random.uniform(0.5, 1))
    raise AssertionError("not reached")


def check(archive, integrity):
    """Raises ValueError unless the archive has the digest of a Subresource Integrity string."""
    digest = base64.b64encode(hashlib.sha512(archive).digest()).decode()
    if integrity != "sha512-" + digest:
        raise ValueError("its SHA-512 is not the one of package-lock.json; nothing was unpacked")


def unpack(archive, folder):
    """Regular files of the archive, without its first folder; anything else is refused."""
    size = 0
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        for member in tar:
            name = member.name.split("/", 1)[-1]
            if member.isdir():
                continue
            size += member.size
            if not member.isfile() or name.startswith("/") or ".." in name.split("/"):
                raise ValueError("it has %r, which is no file below it" % member.name)
            if size > FILES_MAX:
                raise ValueError("its files have more than %d bytes" % FILES_MAX)
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                shutil.copyfileobj(tar.extractfile(member), f)


if __name__ == "__main__":
    main()
