# SPDX-License-Identifier: Apache-2.0
"""Writes the wheel of belay's Python package: checkpoints and the client.

    wheel.py --version VERSION --output FILE.whl --license FILE --package FILE...

--package: the files of the package belay. Programs import the same names as with share/belay on
PYTHONPATH.

The wheel is written here, not by a build backend, because a build has no network to fetch one from,
and so that the same sources give the same bytes.
"""

import argparse
import base64
import hashlib
import os
import zipfile

NAME = "belay-scheduler"  # the name belay is another project's in the index of Python packages
EPOCH = (1980, 1, 1, 0, 0, 0)  # the first time that a zip file can have

METADATA = """\
Metadata-Version: 2.1
Name: %(name)s
Version: %(version)s
Summary: The client of belay, and the libraries with which programs take part in its checkpoints
License: Apache-2.0
Requires-Python: >=3.9
Provides-Extra: torch
Requires-Dist: torch >=1.13 ; extra == 'torch'
Provides-Extra: lightning
Requires-Dist: lightning >=2.0 ; extra == 'lightning'
Provides-Extra: transformers
Requires-Dist: transformers >=4.30 ; extra == 'transformers'
Description-Content-Type: text/markdown

`import belay` gives both parts: `belay.checkpoint()` and the other functions take part in
checkpoints, `belay.Client` is the client of belayd's API (`belay.client`, imported when it is
used). `belay.torch`, `belay.dcp`, `belay.lightning` and `belay.transformers` are for training
programs. All are typed, and `help(belay)` is the manual.
"""

WHEEL = """\
Wheel-Version: 1.0
Generator: belay
Root-Is-Purelib: true
Tag: py3-none-any
"""


def read(path):
    with open(path, "rb") as f:
        return f.read()


def members(version, license_file, package):
    """Yields (name in the wheel, content)."""
    for path in package:
        yield "belay/" + os.path.basename(path), read(path)
    info = "%s-%s.dist-info/" % (NAME.replace("-", "_"), version)
    yield info + "licenses/LICENSE", read(license_file)
    yield info + "METADATA", (METADATA % {"name": NAME, "version": version}).encode()
    yield info + "WHEEL", WHEEL.encode()


def write(output, version, files):
    record = ""
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as wheel:

        def add(name, content):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            wheel.writestr(entry, content)

        for name, content in files:
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            record += "%s,sha256=%s,%d\n" % (name, digest.decode(), len(content))
            add(name, content)
        name = "%s-%s.dist-info/RECORD" % (NAME.replace("-", "_"), version)
        add(name, (record + name + ",,\n").encode())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--license", required=True)
    parser.add_argument("--package", nargs="+", required=True)
    o = parser.parse_args()
    write(o.output, o.version, members(o.version, o.license, o.package))


if __name__ == "__main__":
    main()
