# SPDX-License-Identifier: Apache-2.0
"""Makes the bundle (meson.build of this folder): the same inputs give the same bytes.

    bin/belay-agent bin/belay      the programs, and bin/belay-supervisor
    bin/srun bin/scontrol ...      names of belay, for the scripts of jobs
    lib/private/                   the libraries that they were linked with, and ld.so
    lib/libbelay.so.0              for jobs' programs that are linked with it
    share/belay/belay/             the package for jobs' programs in Python
    relocate DIR                   makes the programs run from DIR/bin; not for /opt/belay/VERSION
"""

import argparse
import gzip
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile

SLURM_NAMES = (
    "sacct",
    "salloc",
    "sbatch",
    "scancel",
    "scontrol",
    "seff",
    "sinfo",
    "squeue",
    "srun",
    "sshare",
    "sstat",
)
# belay loads these at run time (cli/lazy.h); the other programs are linked with them. SQLite is not
# included, because nodes do not run `belay simulate`.
LATE = ("libcrypto.so.3", "libcurl.so.4", "libssl.so.3")
PROGRAM_BYTES_MAX = 256 << 20

RELOCATE = """\
#!/bin/sh
# relocate DIR: sets the loader path in the programs of this bundle, for an installation in the absolute path DIR.
set -eu
case $0 in */*) here=${0%%/*} ;; *) here=. ;; esac
loader=$1/lib/private/ld.so
case $loader in /*) ;; *) echo "relocate: expected an absolute path, found $1" >&2; exit 1 ;; esac
if [ "$(printf %%s "$loader" | wc -c)" -gt %(space)d ]; then
    echo "relocate: the path $1 is too long" >&2
    exit 1
fi
place() {
    printf '%%s\\000' "$loader" | dd of="$here/$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}
%(places)s"""


def libraries(program):
    """The libraries that the loader finds for it: name -> file. The loader itself is "ld.so"."""
    text = subprocess.run(
        ["ldd", program], stdout=subprocess.PIPE, check=True, universal_newlines=True
    ).stdout
    found = {}
    for line in text.splitlines():
        m = re.match(r"\s*(\S+)(?: => (\S+|not found))?(?: \(0x[0-9a-f]+\))?$", line)
        if not m or m[1].startswith(("linux-vdso", "linux-gate")):
            continue
        path = m[2] or m[1]
        if not path.startswith("/"):
            sys.exit("%s: cannot find the library %s: install it" % (program, m[1]))
        name = os.path.basename(path)
        found["ld.so" if name.startswith("ld-") else os.path.basename(m[1])] = path
    if "ld.so" not in found:
        sys.exit("%s: ldd shows no dynamic loader:\n%s" % (program, text))
    return found


def stripped(program, strip):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "program")
        subprocess.run([strip, "-o", path, program], check=True)
        return read(path)


def read(path):
    with open(path, "rb") as f:
        data = f.read(PROGRAM_BYTES_MAX + 1)
    if len(data) > PROGRAM_BYTES_MAX:
        sys.exit("%s: over %d bytes" % (path, PROGRAM_BYTES_MAX))
    return data


def place_of(data, loader, program):
    """The position of the loader's path in the program."""
    wanted = loader.encode() + b"\0"
    if data.count(wanted) != 1:
        sys.exit(
            "%s: expected to find its loader's path once, found it %d times"
            % (program, data.count(wanted))
        )
    return data.index(wanted)


def contents(a):
    files, places = {}, ""
    for name, program in (
        ("bin/belay", a.belay),
        ("bin/belay-agent", a.agent),
        ("bin/belay-supervisor", a.supervisor),
    ):
        data = stripped(program, a.strip)
        files[name] = (data, 0o755)
        places += "place %s %d\n" % (name, place_of(data, a.loader, program))
        for library, path in libraries(program).items():
            files["lib/private/" + library] = (read(path), 0o755)
    for library in LATE:
        if "lib/private/" + library not in files:
            sys.exit(
                "no program of the bundle is linked with %s, which belay loads when it needs it"
                % library
            )
    files["lib/libbelay.so.0"] = (read(a.library), 0o755)
    for path in a.python:
        files["share/belay/belay/" + os.path.basename(path)] = (read(path), 0o644)
    files["relocate"] = ((RELOCATE % {"space": len(a.loader), "places": places}).encode(), 0o755)
    return files


def write(files, out):
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=6, mtime=0, filename="") as z:
        with tarfile.open(fileobj=z, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            folders = {os.path.dirname(name) for name in files} | {"lib", "share"}
            for folder in sorted(folders - {""}):
                info = tarfile.TarInfo(folder)
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(info)
            for name in SLURM_NAMES:
                info = tarfile.TarInfo("bin/" + name)
                info.type, info.linkname = tarfile.SYMTYPE, "belay"
                tar.addfile(info)
            for name, (data, mode) in sorted(files.items()):
                info = tarfile.TarInfo(name)
                info.size, info.mode = len(data), mode
                tar.addfile(info, io.BytesIO(data))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for option in ("output", "loader", "strip", "agent", "supervisor", "belay", "library"):
        parser.add_argument("--" + option, required=True)
    parser.add_argument("--python", required=True, nargs="+")
    a = parser.parse_args()
    files = contents(a)
    # belayd may have the old one open, so it is replaced, not overwritten
    part = a.output + ".part"
    with open(part, "wb") as out:
        write(files, out)
    os.replace(part, a.output)


main()
