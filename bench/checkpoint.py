# SPDX-License-Identifier: Apache-2.0
"""Saves and restores next to what tar | zstd, restic, rclone and the aws command do with the same trees, where they are
installed, and next to what the disk does at all.

BELAY_BENCH_MIB is the size of the large trees (4096), BELAY_BENCH_DIR where all of it lies. For the aws command
BELAY_BENCH_S3 names a place, s3://BUCKET/PREFIX, at the endpoint that it is configured for.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time

SMALL_FILES = 10000
CHANGED = 20  # one file in so many


class Tool:
    """bench_checkpoint, with a store of its own."""

    def __init__(self, build, store):
        self.process = subprocess.Popen([os.path.join(build, "bench", "bench_checkpoint"), "file://" + store],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True)

    def __call__(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer.startswith("{"):
            raise SystemExit("bench: %s: %s" % (" ".join(words), answer.strip() or "it died"))
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def sync(path):
    """What the others leave to the page cache counts as theirs."""
    for folder, _, files in os.walk(path) if os.path.isdir(path) else [(os.path.dirname(path), [],
                                                                         [os.path.basename(path)])]:
        for name in files:
            fd = os.open(os.path.join(folder, name), os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)


def shell(line, **names):
    began = time.monotonic()
    subprocess.run(["bash", "-c", "set -euo pipefail; " + line], check=True, stdout=subprocess.DEVNULL,
                   env=dict(os.environ, **names))
    return 1000 * (time.monotonic() - began)


class TarZstd:
    name, commands = "tar | zstd", ("tar", "zstd")

    def save(self, tree, at):
        return shell('tar -C "$TREE" -cf - . | zstd -q -1 -T0 -f -o "$AT"; sync "$AT"', TREE=tree, AT=at)

    def restore(self, at, tree):
        return shell('mkdir "$TREE"; zstd -q -dc "$AT" | tar -C "$TREE" -xf -', TREE=tree, AT=at)


class Restic:
    name, commands = "restic", ("restic",)
    secret = {"RESTIC_PASSWORD": "bench"}

    def save(self, tree, at):
        if not os.path.exists(at):
            shell('restic -q init -r "$AT"', AT=at, **self.secret)
        return shell('cd "$TREE"; restic -q --no-cache backup -r "$AT" .', TREE=tree, AT=at, **self.secret)

    def restore(self, at, tree):
        return shell('restic -q --no-cache restore latest -r "$AT" -t "$TREE"', TREE=tree, AT=at, **self.secret)


class Rclone:
    name, commands = "rclone", ("rclone",)

    def save(self, tree, at):
        took = shell('rclone -q --config /dev/null sync "$TREE" "$AT"', TREE=tree, AT=at)
        began = time.monotonic()
        sync(at)
        return took + 1000 * (time.monotonic() - began)

    def restore(self, at, tree):
        return shell('rclone -q --config /dev/null sync "$AT" "$TREE"', TREE=tree, AT=at)


class Aws:
    name, commands = "aws s3 cp", ("aws",)

    def __init__(self):
        self.to = os.environ["BELAY_BENCH_S3"]

    def save(self, tree, _):
        return shell('aws s3 cp --only-show-errors --recursive "$TREE" "$TO"', TREE=tree, TO=self.to)

    def restore(self, _, tree):
        return shell('aws s3 cp --only-show-errors --recursive "$TO" "$TREE"', TREE=tree, TO=self.to)


def peers():
    wanted = [TarZstd, Restic, Rclone] + ([Aws] if "BELAY_BENCH_S3" in os.environ else [])
    return [p() for p in wanted if all(shutil.which(c) for c in p.commands)]


class Bench:
    def __init__(self, build, say):
        self.dir = tempfile.mkdtemp(prefix="belay-bench.", dir=os.environ.get("BELAY_BENCH_DIR"))
        self.build, self.say = build, say
        self.mib = int(os.environ.get("BELAY_BENCH_MIB", "4096"))
        self.out = os.path.join(self.dir, "out")

    def fresh(self, name):
        path = os.path.join(self.dir, name)
        shutil.rmtree(path, ignore_errors=True)
        return path

    def measure(self, what, tree, tool, change=None):
        """One tree: everybody saves it (and with a change saves it again), and restores it."""
        belay = self.saves(lambda: tool("save", tree), change)
        peak = belay["peak_kib"]
        tool("evict", os.path.join(self.dir, "store"))
        back = tool("restore", self.out)
        self.check(tree)
        peak = max(peak, back["peak_kib"])
        others = {}
        for p in peers():
            at = self.fresh("peer")
            took = self.saves(lambda: {"ms": p.save(tree, at)}, change)["ms"]
            tool("evict", at if os.path.isdir(at) else self.dir)
            shutil.rmtree(self.out)
            others[p.name] = (took, p.restore(at, self.out))
            self.remove(at)
        shutil.rmtree(self.out)
        for i, (verb, mine) in enumerate((("save", belay["ms"]), ("restore", back["ms"]))):
            best = min(others, key=lambda name: others[name][i])
            self.say("%s, %s" % (what, verb), "%.2f s" % (mine / 1000),
                     ", ".join("%s: %.2f s" % (name, o[i] / 1000) for name, o in others.items()),
                     "%.2f x as fast as %s" % (others[best][i] / mine, best))
        self.say("%s, peak memory" % what, "%.0f MiB" % (peak / 1024))
        return belay, back

    def saves(self, save, change):
        done = save()
        if change:
            change()
            done = save()
        return done

    def check(self, tree):
        subprocess.run(["diff", "-r", tree, self.out], check=True)

    def remove(self, at):
        shutil.rmtree(at) if os.path.isdir(at) else os.unlink(at)

    def tool(self):
        self.fresh("store")
        return Tool(self.build, os.path.join(self.dir, "store"))

    def one_file(self):
        tree = self.fresh("tree")
        os.mkdir(tree)
        tool = self.tool()
        file = os.path.join(tree, "random")
        tool("fill", file, str(self.mib), "1")
        copied = os.path.join(self.dir, "copied")
        write = tool("copy", file, copied)["ms"]
        tool("evict", self.dir)
        read = tool("read", copied)["ms"]
        os.unlink(copied)
        tool("read", file)
        saved, back = self.measure("one file of %d MiB, random" % self.mib, tree, tool)
        for verb, mine, disk, means in (("save", saved["ms"], write, "a copy and an fsync"),
                                        ("restore", back["ms"], max(read, write), "the slower of that and a read")):
            self.say("  of what the disk does, %s" % verb, "%.0f MiB/s" % (1000 * self.mib / mine),
                     "%s: %.0f MiB/s" % (means, 1000 * self.mib / disk), "%.2f x" % (disk / mine))
        tool.close()

    def small_files(self):
        tree = self.fresh("tree")
        for i in range(SMALL_FILES):
            folder = os.path.join(tree, "%03d" % (i % 100))
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, "%05d" % i), "wb") as f:
                f.write(os.urandom(1000 + i % 5000) + b"text " * (i % 500))
        tool = self.tool()
        self.measure("%d files of some 5 KB" % SMALL_FILES, tree, tool)
        tool.close()

    def changed(self):
        tree = self.fresh("tree")
        os.mkdir(tree)
        tool = self.tool()
        n, size = max(self.mib // 4, CHANGED), 4
        seeds = iter(range(2, 1 << 30))
        for i in range(n):
            tool("fill", os.path.join(tree, "%05d" % i), str(size), str(next(seeds)))

        def change():
            for i in range(0, n, CHANGED):
                tool("fill", os.path.join(tree, "%05d" % i), str(size), str(next(seeds)))
        saved, _ = self.measure("%d MiB in %d files, 1 of %d changed" % (n * size, n, CHANGED), tree, tool, change)
        self.say("  of it not read, and stored", "%.1f %%, %.1f %%" % (100 * saved["unread"] / saved["bytes"],
                                                                      100 * saved["stored"] / saved["bytes"]))
        tool.close()


def bench(build, say):
    b = Bench(build, say)
    try:
        b.one_file()
        b.small_files()
        b.changed()
    finally:
        shutil.rmtree(b.dir)
