# SPDX-License-Identifier: Apache-2.0
"""Saves and restores, compared with tar | zstd, restic, rclone and the aws command on the same
trees, where these are installed, with cp, and with the limit of the disk or the server.

BELAY_BENCH_MIB: size of the large trees (4096). BELAY_BENCH_DIR: where all data is written.
BELAY_BENCH_TREES: names of the trees, separated by spaces (all; empty: none, only nginx).
BELAY_BENCH_S3: ceph or swift, a server of tests/s3server.py; only for tools that speak S3
(BELAY_BENCH_S3_MIB: 1024). Or nginx, which drops what is saved and has prepared answers
(nginx_s3.py): compared with as many curl processes as belay has threads.
"""

import datetime
import hashlib
import hmac
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
import nginx_s3  # noqa: E402
import s3server  # noqa: E402
import trees  # noqa: E402

SMALL_FILES = 10000
FEW_FILES, FEW_CHANGED = 20000, 50  # one file in this many
CHANGED = 20
PUTS, PUT_MIB = 8, 4  # in parallel, of this size
THREADS = 6  # of a save or restore: THREADS_MAX of ckpt/chunk.c
PAIRS = 5  # with nginx
ROUNDS = 3  # of limit and figure alternately: a virtual disk varies from second to second
MANY_FILES = 1000
LONG_MS = 20000  # a round that takes longer is the last one


class Tool:
    """bench_checkpoint with its own store."""

    def __init__(self, build, store, env):
        self.process = subprocess.Popen(
            [os.path.join(build, "bench", "bench_checkpoint"), store],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            universal_newlines=True,
        )

    def __call__(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer.startswith("{"):
            raise SystemExit("bench: %s: %s" % (" ".join(words), answer.strip() or "it died"))
        return json.loads(answer)

    def cpu_s(self):
        """Its processor time so far."""
        with open("/proc/%d/stat" % self.process.pid) as f:
            ticks = f.read().rpartition(")")[2].split()[11:13]
        return sum(int(word) for word in ticks) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def timed(act):
    began = time.monotonic()
    act()
    return 1000 * (time.monotonic() - began)


def discard(path):
    """Deletes a tree. Of many files, only their content: their names stay until the end, under
    another name. ext4 does not reuse a deleted inode for minutes, and for each new file it looks at
    every such one, so that creating files would take many times as long.
    """
    if not os.path.isdir(path):
        return os.path.lexists(path) and os.unlink(path)
    files = [os.path.join(d, n) for d, _, names in os.walk(path) for n in names]
    if len(files) < MANY_FILES:
        return shutil.rmtree(path)
    for file in files:
        if os.path.isfile(file) and not os.path.islink(file):
            os.truncate(file, 0)
    gone = tempfile.mkdtemp(prefix="gone.", dir=os.path.dirname(path))
    os.rename(path, os.path.join(gone, "tree"))


def shell(line, **names):
    subprocess.run(
        ["bash", "-c", "set -euo pipefail; " + line],
        check=True,
        stdout=subprocess.DEVNULL,
        env=dict(os.environ, **names),
    )


# ---- other programs: save(tree, at), restore(at, tree) ----


class TarZstd:
    name, commands = "tar | zstd", ("tar", "zstd")

    def save(self, tree, at):
        shell('tar -C "$TREE" -cf - . | zstd -q -1 -T0 -f -o "$AT"', TREE=tree, AT=at)

    def restore(self, at, tree):
        shell('mkdir "$TREE"; zstd -q -dc "$AT" | tar -C "$TREE" -xf -', TREE=tree, AT=at)


class Restic:
    name, commands = "restic", ("restic",)
    secret = {"RESTIC_PASSWORD": "bench"}

    def __init__(self):
        self.made = set()

    def save(self, tree, at):
        if at not in self.made:
            shell('restic -q init -r "$AT"', AT=at, **self.secret)
        self.made.add(at)
        shell('cd "$TREE"; restic -q --no-cache backup -r "$AT" .', TREE=tree, AT=at, **self.secret)

    def restore(self, at, tree):
        shell(
            'restic -q --no-cache restore latest -r "$AT" -t "$TREE"',
            TREE=tree,
            AT=at,
            **self.secret
        )


class Rclone:
    name, commands = "rclone", ("rclone",)
    quiet = "rclone -q --links --config /dev/null "

    def save(self, tree, at):
        shell(self.quiet + 'sync "$TREE" "$AT"', TREE=tree, AT=at)

    def restore(self, at, tree):
        shell(self.quiet + 'sync "$AT" "$TREE"', TREE=tree, AT=at)


class Cp:
    """No peer, since it compresses and verifies nothing: the time of the plainest copy."""

    name, commands = "cp", ("cp",)

    def save(self, tree, at):
        shell('cp -a "$TREE" "$AT"', TREE=tree, AT=at)

    def restore(self, at, tree):
        shell('cp -a "$AT" "$TREE"', TREE=tree, AT=at)


class Aws:
    name, commands = "aws s3 cp", ("aws",)

    def save(self, tree, at):
        shell(
            'aws --endpoint-url "$AWS_ENDPOINT_URL" s3 cp --only-show-errors --recursive "$TREE" "$AT"',
            TREE=tree,
            AT=at,
        )

    def restore(self, at, tree):
        shell(
            'aws --endpoint-url "$AWS_ENDPOINT_URL" s3 cp --only-show-errors --recursive "$AT" "$TREE"',
            TREE=tree,
            AT=at,
        )


# ---- where saves are stored ----


class Disk:
    """A directory."""

    title, peers, mib, rounds = "", (TarZstd, Restic, Rclone, Cp), 4096, ROUNDS
    takes, gives = "the disk writes", "the disk reads"

    def __init__(self, dir):
        self.dir, self.env = dir, None

    def close(self):
        pass

    def store(self):
        return "file://" + self.path("store")

    def path(self, name):
        return os.path.join(self.dir, name)

    def fresh(self, name):
        discard(self.path(name))
        return self.path(name)

    def size(self, name):
        """Bytes stored."""
        return sum(
            os.path.getsize(os.path.join(d, n))
            for d, _, names in os.walk(self.path(name))
            for n in names
        )

    def peer(self, _):
        return self.fresh("peer")

    def drop(self, name):
        self.fresh(name)

    def sync(self, _):
        """Syncs once: an fsync of each file would take longer than a peer needs for durability."""
        shell('sync -f "$AT"', AT=self.path("peer"))

    def evict(self, tool, name):
        path = self.path(name)
        tool("evict", path if os.path.isdir(path) else self.dir)

    def write_limit(self, tool, mib):
        """The minimum time of a save, in ms."""
        return tool("disk", self.fresh("disk"), str(mib))["ms"]

    def read_limit(self, tool, mib):
        """The minimum time of a restore, in ms, from the data of write_limit."""
        took = tool("load", self.path("disk"), str(mib))["ms"]
        self.drop("disk")
        return took


class Bucket:
    """A bucket of a server that is started for it."""

    peers, rounds = (Rclone, Aws, Restic), 1
    takes, gives = "curl, %d PUTs at once" % PUTS, "curl, %d GETs at once" % PUTS

    def __init__(self, which, server):
        self.server, self.number, self.at = server, 0, {}
        self.title = ", S3 (%s)" % which
        self.env = {**os.environ, **self.server.env}
        os.environ.pop("AWS_CA_BUNDLE", None)  # rclone does not accept it
        os.environ.update(
            self.server.env,
            RCLONE_CONFIG_BENCH_TYPE="s3",
            RCLONE_CONFIG_BENCH_PROVIDER="Ceph",
            RCLONE_CONFIG_BENCH_ENV_AUTH="true",
            RCLONE_CONFIG_BENCH_ENDPOINT=self.server.endpoint,
            RCLONE_CONFIG_BENCH_REGION=s3server.REGION,
        )

    def close(self):
        self.server.close()

    def next(self, name):
        self.number += 1
        self.at[name] = "%s/%d" % (s3server.BUCKET, self.number)
        return self.at[name]

    def store(self):
        return "s3://%s?endpoint=%s" % (self.next("store"), self.server.endpoint)

    def peer(self, peer):
        roots = {Rclone: "bench:", Aws: "s3://", Restic: "s3:%s/" % self.server.endpoint}
        return roots[type(peer)] + self.next("peer")

    def drop(self, name):
        """Deletes the tree from the bucket, to free the server's memory."""
        shell(
            'aws --endpoint-url "$AWS_ENDPOINT_URL" s3 rm --only-show-errors --recursive "$AT"',
            AT="s3://" + self.at[name],
        )

    def size(self, name):
        """Bytes stored."""
        line = (
            'aws --endpoint-url "$AWS_ENDPOINT_URL" s3 ls --recursive --summarize "$AT" | tail -1'
        )
        text = subprocess.check_output(
            ["bash", "-c", line], env=dict(os.environ, AT="s3://%s/" % self.at[name])
        )
        return int(text.split()[-1])  # Total Size: BYTES

    def sync(self, _):
        pass

    def evict(self, *_):
        pass

    def curl(self, method, mib):
        """Sends or fetches prepared bytes in parallel, with presigned URLs; returns ms."""
        with tempfile.TemporaryDirectory() as d:
            names = ["%s/%d" % (self.at["limit"], i) for i in range(mib // PUT_MIB)]
            config = self.curl_config(d, 0, method, names)
            return timed(
                lambda: shell(
                    'curl -s --no-progress-meter --fail -Z --parallel-immediate --parallel-max %d -K "$CONFIG"'
                    % PUTS,
                    CONFIG=config,
                )
            )

    def curl_config(self, d, number, method, names):
        """Writes a configuration file for curl: PUTs of prepared bytes, or GETs."""
        block, config = os.path.join(d, "block"), os.path.join(d, "config%d" % number)
        if not os.path.exists(block):
            with open(block, "wb") as f:
                f.write(os.urandom(PUT_MIB << 20))
        with open(config, "w") as f:
            for name in names:
                f.write('url = "%s"\noutput = "/dev/null"\n' % self.signed(method, name))
                f.write('upload-file = "%s"\n' % block if method == "PUT" else "")
        return config

    def write_limit(self, _, mib):
        self.next("limit")
        return self.curl("PUT", mib)

    def read_limit(self, _, mib):
        took = self.curl("GET", mib)
        self.drop("limit")
        return took

    def signed(self, method, path):
        """A URL with Signature Version 4 in its query and an unsigned body."""
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        scope = "%s/%s/s3/aws4_request" % (date[:8], s3server.REGION)
        query = urllib.parse.urlencode(
            sorted(
                {
                    "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
                    "X-Amz-Credential": "%s/%s" % (self.server.access_key, scope),
                    "X-Amz-Date": date,
                    "X-Amz-Expires": "3600",
                    "X-Amz-SignedHeaders": "host",
                }.items()
            ),
            quote_via=urllib.parse.quote,
            safe="",
        )
        host = self.server.endpoint[len("http://") :]
        asked = "%s\n/%s\n%s\nhost:%s\n\nhost\nUNSIGNED-PAYLOAD" % (method, path, query, host)
        text = "AWS4-HMAC-SHA256\n%s\n%s\n%s" % (
            date,
            scope,
            hashlib.sha256(asked.encode()).hexdigest(),
        )
        key = ("AWS4" + s3server.SECRET_KEY).encode()
        for word in scope.split("/") + [text]:
            last, key = key, hmac.new(key, word.encode(), hashlib.sha256).digest()
        return "%s/%s?%s&X-Amz-Signature=%s" % (
            self.server.endpoint,
            path,
            query,
            hmac.new(last, text.encode(), hashlib.sha256).hexdigest(),
        )


class Prepared(Bucket):
    """nginx: what is saved is dropped, and what is restored was prepared."""

    def ready(self):
        """Where a save into a directory makes what a restore finds in the bucket."""
        return "file://" + os.path.join(self.server.objects, self.next("ready"))

    def restored(self):
        return "s3://%s?endpoint=%s" % (self.at["ready"], self.server.endpoint)

    def chunks(self):
        """The names of the prepared chunks."""
        top = self.server.objects
        walk = os.walk(os.path.join(top, self.at["ready"]))
        paths = [os.path.join(d, name) for d, _, names in walk for name in names]
        return [os.path.relpath(path, top) for path in paths if "/chunks/" in path]

    def curls(self, method, names):
        """THREADS processes of curl divide the requests; returns ms, and seconds of their processor
        time."""
        with tempfile.TemporaryDirectory() as d:
            configs = [
                self.curl_config(d, i, method, names[i::THREADS])
                for i in range(THREADS)
                if names[i::THREADS]
            ]

            def run():
                words = ["curl", "-s", "--no-progress-meter", "--fail", "-K"]
                processes = [
                    subprocess.Popen([*words, config], stdin=subprocess.DEVNULL)
                    for config in configs
                ]
                if any([p.wait() for p in processes]):
                    raise SystemExit("bench: curl failed")

            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            took = timed(run)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def tool_does(self, build, store, *words):
        """As curls, for bench_checkpoint with that store."""
        tool = Tool(build, store, self.env)
        before = tool.cpu_s()
        took = tool(*words)["ms"]
        used = tool.cpu_s() - before
        tool.close()
        return took, used

    def bench(self, build, say, mib):
        """Saves and restores a file, in turn with curl. The file and the objects are in the page
        cache, and files are restored into memory where there is a file system for that."""
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
        with tempfile.TemporaryDirectory(dir=memory) as out:
            with tempfile.TemporaryDirectory(dir=os.environ.get("BELAY_BENCH_DIR")) as tree:
                self.pairs(build, say, mib, tree, os.path.join(out, "restored"))

    def pairs(self, build, say, mib, tree, out):
        tool, file = Tool(build, self.ready(), None), os.path.join(tree, "random")
        tool("fill", file, str(mib), "1")
        tool("save", tree)
        tool.close()
        saves, restores = [], []
        for _ in range(PAIRS):
            for warm in (tree, os.path.join(self.server.objects, self.at["ready"])):
                shell('find "$AT" -type f -exec cat {} + >/dev/null', AT=warm)
            os.sync()
            names = ["%s/chunks/%d" % (self.next("limit"), i) for i in range(mib // PUT_MIB)]
            curl = self.curls("PUT", names)
            saves.append((self.tool_does(build, self.store(), "save", tree), curl))
            curl = self.curls("GET", self.chunks())
            restores.append((self.tool_does(build, self.restored(), "restore", out), curl))
            subprocess.run(["cmp", file, os.path.join(out, "random")], check=True)
            shutil.rmtree(out)
        for verb, measured, what in (("save", saves, "PUT"), ("restore", restores, "GET")):
            say_limit(
                say,
                "%d MiB%s, %s" % (mib, self.title, verb),
                mib,
                [(mine[0], curl[0]) for mine, curl in measured],
                "%d curl processes, %ss" % (THREADS, what),
            )
            mine, curl = (1024 / mib * statistics.median(p[i][1] for p in measured) for i in (0, 1))
            say(
                "  processor time",
                "%.2f s a GiB" % mine,
                "curl %.2f s a GiB" % curl,
                "%.2f x" % (mine / curl),
            )


def say_limit(say, what, mib, pairs, means):
    """pairs of ms: belay's, and those of the limit measured before."""
    mine, limit = (1000 * mib / statistics.median(p[i] for p in pairs) for i in (0, 1))
    ratios = sorted(p[1] / p[0] for p in pairs)
    say(
        what,
        "%.0f MiB/s" % mine,
        "%s: %.0f MiB/s" % (means, limit),
        "%.2f x, median of %s" % (statistics.median(ratios), ", ".join("%.2f" % r for r in ratios)),
    )


class Bench:
    def __init__(self, build, say, place, mib):
        self.build, self.say, self.place, self.mib = build, say, place, mib
        self.dir = (
            place.dir
            if isinstance(place, Disk)
            else tempfile.mkdtemp(prefix="belay-bench.", dir=os.environ.get("BELAY_BENCH_DIR"))
        )
        self.out = os.path.join(self.dir, "out")
        self.peers = [p for p in place.peers if all(shutil.which(c) for c in p.commands)]

    def close(self):
        shutil.rmtree(self.dir)

    def fresh(self, name):
        path = os.path.join(self.dir, name)
        discard(path)
        return path

    def measure(self, what, tree, tool, change=None):
        """Each tool saves the tree (with `change`: saves it, changes it and saves it again) and
        restores it.
        """
        saved = tool("save", tree)
        saved = self.again(change, lambda: tool("save", tree)) or saved
        snapshot = tool("snapshot", tree)
        pause = snapshot["ms"] if snapshot["bytes"] else saved["ms"]
        backs = [self.restore(tool)]
        subprocess.run(["diff", "-r", "--no-dereference", tree, self.out], check=True)
        discard(self.out)
        others, ratios = {}, {}
        for p in [peer() for peer in self.peers]:
            at = self.place.peer(p)
            os.sync()
            took = timed(lambda: p.save(tree, at))
            if change:
                self.place.sync(at)
            took = self.again(change, lambda: timed(lambda: p.save(tree, at))) or took
            synced = took + timed(lambda: self.place.sync(at))
            theirs, mine = self.restore_in_turn(tool, p, at)
            backs += mine
            ratios[p.name] = statistics.median(t / max(m["ms"], 1) for t, m in zip(theirs, mine))
            others[p.name] = (took, statistics.median(theirs), synced)
            self.place.drop("peer")
        back = {key: statistics.median(b[key] for b in backs) for key in ("ms", "peak_kib")}
        what += self.place.title
        self.line("%s, save" % what, saved["ms"], {n: o[0] for n, o in others.items()})
        if isinstance(self.place, Disk):
            self.line("  the others with sync", saved["ms"], {n: o[2] for n, o in others.items()})
        self.line("%s, restore" % what, back["ms"], {n: o[1] for n, o in others.items()}, ratios)
        self.say(
            "  the program waits",
            "%d ms" % pause,
            "the whole save: %.2f s" % (saved["ms"] / 1000),
            "%.2f %% of the save" % (100 * pause / max(saved["ms"], 1)),
        )
        self.say(
            "  peak memory of save and restore",
            "%.0f MiB, %.0f MiB" % (saved["peak_kib"] / 1024, back["peak_kib"] / 1024),
        )
        return saved

    def restore(self, tool):
        self.place.evict(tool, "store")
        return tool("restore", self.out)

    def restore_in_turn(self, tool, peer, at):
        """Restores with the peer and with belay alternately; returns the results of each."""
        theirs, mine = [], []
        for _ in range(self.place.rounds):
            os.sync()
            self.place.evict(tool, "peer")
            theirs.append(timed(lambda: peer.restore(at, self.out)))
            discard(self.out)
            os.sync()
            mine.append(self.restore(tool))
            discard(self.out)
            if theirs[-1] + mine[-1]["ms"] > LONG_MS:
                break
        return theirs, mine

    def again(self, change, save):
        if change:
            change()
            return save()
        return None

    def line(self, what, mine, others, ratios=None):
        """ratios: medians of pairs; otherwise the figures are compared."""
        ratios = ratios or {name: o / max(mine, 1) for name, o in others.items()}
        peers = [name for name in ratios if name != Cp.name]
        parts = []
        if peers:
            best = min(peers, key=lambda name: ratios[name])
            parts.append("%.2f x as fast as %s" % (ratios[best], best))
        if Cp.name in ratios:
            parts.append("%.2f of cp" % ratios[Cp.name])
        self.say(
            what,
            "%.2f s" % (mine / 1000),
            ", ".join("%s: %.2f s" % (name, o / 1000) for name, o in others.items()),
            ", ".join(parts),
        )

    def tool(self):
        return Tool(self.build, self.place.store(), self.place.env)

    def close_tool(self, tool):
        tool.close()
        self.place.drop("store")

    def one_file(self):
        tree = self.fresh("tree")
        os.mkdir(tree)
        tool = self.tool()
        file = os.path.join(tree, "random")
        tool("fill", file, str(self.mib), "1")
        tool("read", file)
        self.measure("one file of %d MiB, random" % self.mib, tree, tool)
        self.close_tool(tool)
        self.of_the_limit(tree, file)

    def of_the_limit(self, tree, file):
        """Saves into an empty store, and restores; before each, the limit is measured."""
        saves, restores = [], []
        for _ in range(ROUNDS):
            tool = self.tool()
            os.sync()
            limit = self.place.write_limit(tool, self.mib)
            tool("read", file)
            os.sync()
            saves.append((tool("save", tree)["ms"], limit))
            os.sync()
            limit = self.place.read_limit(tool, self.mib)
            self.place.evict(tool, "store")
            restores.append((tool("restore", self.out)["ms"], limit))
            discard(self.out)
            self.close_tool(tool)
        for verb, pairs, means in (
            ("save", saves, self.place.takes),
            ("restore", restores, self.place.gives),
        ):
            say_limit(self.say, "  compared with the limit, %s" % verb, self.mib, pairs, means)

    def write_small(self, tree, i):
        folder = os.path.join(tree, "%03d" % (i % 100))
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "%05d" % i), "wb") as f:
            f.write(os.urandom(1000 + i % 5000) + b"text " * (i % 500))

    def small_files(self):
        tree = self.fresh("tree")
        for i in range(SMALL_FILES):
            self.write_small(tree, i)
        tool = self.tool()
        self.measure("%d files of about 5 KB" % SMALL_FILES, tree, tool)
        self.close_tool(tool)

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

        saved = self.measure(
            "%d MiB in %d files, 1 of %d changed" % (n * size, n, CHANGED), tree, tool, change
        )
        self.say(
            "  share not read; share stored",
            "%.1f %%, %.1f %%"
            % (100 * saved["unread"] / saved["bytes"], 100 * saved["stored"] / saved["bytes"]),
        )
        self.close_tool(tool)

    def few_changed(self):
        """Small files, of which a few change: what a save then takes and stores."""
        tree = self.fresh("tree")
        for i in range(FEW_FILES):
            self.write_small(tree, i)
        tool, restic = self.tool(), Restic() if Restic in self.peers else None
        at = self.place.peer(restic) if restic else None
        saves = {"store": lambda: tool("save", tree)["ms"]}
        if restic:
            saves["peer"] = lambda: timed(lambda: restic.save(tree, at))
        for save in saves.values():
            save()
        took, stored = {name: [] for name in saves}, {name: [] for name in saves}
        for turn in range(ROUNDS):
            for i in range(turn, FEW_FILES, FEW_CHANGED):
                self.write_small(tree, i)
            os.sync()
            for name, save in saves.items():
                before = self.place.size(name)
                took[name].append(save())
                stored[name].append(self.place.size(name) - before)
        self.report_few({n: statistics.median(took[n]) for n in saves}, stored)
        self.close_tool(tool)
        if restic:
            self.place.drop("peer")

    def report_few(self, took, stored):
        mib = {name: statistics.median(sizes) / (1 << 20) for name, sizes in stored.items()}
        others = {"restic": took["peer"]} if "peer" in took else {}
        what = "%d files of about 5 KB, 1 of %d changed%s, save"
        self.line(what % (FEW_FILES, FEW_CHANGED, self.place.title), took["store"], others)
        self.say(
            "  stored, with the manifest",
            "%.1f MiB" % mib["store"],
            "restic: %.1f MiB" % mib["peer"] if others else "",
            "%.2f x its bytes" % (mib["store"] / mib["peer"]) if others else "",
        )

    def others_tree(self, name, fill, mib):
        tree = self.fresh("tree")
        try:
            fill(tree, mib)
        except (FileNotFoundError, ImportError) as e:
            self.say(name, "cannot be made: %s" % e)
            return
        files = [os.path.join(d, n) for d, _, names in os.walk(tree) for n in names]
        size = sum(os.lstat(path).st_size for path in files)
        tool = self.tool()
        self.measure("%s, %d files, %d MiB" % (name, len(files), size >> 20), tree, tool)
        self.close_tool(tool)

    def run(self):
        runs = {
            "file": self.one_file,
            "small": self.small_files,
            "changed": self.changed,
            "few": self.few_changed,
            "usr": lambda: self.others_tree("/usr", trees.system, self.mib),
            "git": lambda: self.others_tree("git repository", trees.repository, self.mib),
            "state": lambda: self.others_tree("state_dict", trees.state_dict, self.mib * 5 // 4),
        }
        names = os.environ.get("BELAY_BENCH_TREES", " ".join(runs)).split()
        try:
            for name in names:
                if name not in runs:
                    raise SystemExit(
                        "bench: BELAY_BENCH_TREES has %s: %s" % (name, ", ".join(runs))
                    )
                runs[name]()
        finally:
            self.close()


def bench_s3(build, say, which):
    top, mib = os.environ.get("BELAY_BENCH_DIR"), int(os.environ.get("BELAY_BENCH_S3_MIB", "1024"))
    if which == "nginx":
        place = Prepared(which, nginx_s3.Nginx(top))
    else:
        place = Bucket(which, s3server.start(which, top))
    try:
        if which == "nginx":
            place.bench(build, say, mib)
        else:
            Bench(build, say, place, mib).run()
    finally:
        place.close()


def bench(build, say):
    top, which = os.environ.get("BELAY_BENCH_DIR"), os.environ.get("BELAY_BENCH_S3")
    Bench(
        build,
        say,
        Disk(tempfile.mkdtemp(prefix="belay-bench.", dir=top)),
        int(os.environ.get("BELAY_BENCH_MIB", Disk.mib)),
    ).run()
    if which:
        bench_s3(build, say, which)
