# SPDX-License-Identifier: Apache-2.0
"""Temporary S3 servers that are not belay's, for tests: Ceph's radosgw, which checks signatures
strictly and keeps objects in memory, and the s3api of OpenStack's Swift, which answers 501 to
every conditional write and keeps objects in files. Each listens on loopback and has a directory
that is removed with it. scripts/setup real installs both; tests that need a missing one are
skipped.

    s3server.py ceph|swift PROGRAM ARG...
        runs PROGRAM with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_DEFAULT_REGION and
        AWS_ENDPOINT_URL in its environment; {} in an argument becomes the store's URL,
        s3://jobs?endpoint=..., whose bucket exists

    with s3server.start("ceph") as server:  # the same in Python
        server.url, server.endpoint, server.env, server.make_bucket("another")
"""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid

SKIPPED = 77  # Meson's exit code for a skipped test
START_S = 60
BUCKET, REGION, SECRET_KEY = "jobs", "us-east-1", "a-secret-of-the-tests-own"


class Missing(Exception):
    """A program that is not installed."""


def run(*words, **more):
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=START_S,
        universal_newlines=True,
        **more
    )
    if done.returncode != 0:
        raise SystemExit("s3server: %s: %s" % (" ".join(words), done.stdout))
    return done.stdout


def free_port():
    """A free port below those that outgoing connections use."""
    while True:
        port = random.randrange(10000, 30000)
        with contextlib.suppress(OSError), socket.socket() as s:
            s.bind(("127.0.0.1", port))
            return port


class Server:
    """Common to both servers: a directory, processes, keys."""

    access_key = "BELAYTEST"

    def __init__(self, dir=None):
        self.missing()
        self.dir = tempfile.mkdtemp(prefix="belay-s3.", dir=dir)
        self.children = []
        try:
            self.port = self.begin()
            self.endpoint = "http://127.0.0.1:%d" % self.port
            self.url = "s3://%s?endpoint=%s" % (BUCKET, self.endpoint)
            self.env = {
                "AWS_ACCESS_KEY_ID": self.access_key,
                "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
                "AWS_DEFAULT_REGION": REGION,
                "AWS_ENDPOINT_URL": self.endpoint,
            }
            self.wait_answers()
            self.make_bucket(BUCKET)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for child in reversed(self.children):
            child.kill()
            child.wait()
        shutil.rmtree(self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)

    def logged(self, name):
        with open(self.path(name), errors="replace") as f:
            return f.read()[-4000:]

    def spawn(self, *words, **more):
        name = os.path.basename(words[0]) + ".out"
        with open(self.path(name), "w") as out:
            child = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=more.pop("stdout", out), stderr=out, **more
            )
        self.children.append(child)
        return child

    def wait_answers(self):
        end = time.monotonic() + START_S
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 5).close()
                return
            for child in self.children:
                if child.poll() is not None:
                    raise SystemExit(
                        "s3server: %s ended: %s"
                        % (child.args[0], self.logged(os.path.basename(child.args[0]) + ".out"))
                    )
            if time.monotonic() > end:
                raise SystemExit("s3server: no answer within %d s" % START_S)
            time.sleep(0.05)  # nothing to wait on

    def make_bucket(self, name):
        """Creates the bucket unless it exists."""
        run(
            "aws",
            "--endpoint-url",
            self.endpoint,
            "s3api",
            "create-bucket",
            "--bucket",
            name,
            env={**os.environ, **self.env},
        )


class Ceph(Server):
    """One monitor, one object store in memory, one gateway."""

    CONF = """\
[global]
fsid = {fsid}
mon_host = [v2:127.0.0.1:{mon}/0]
ms_bind_msgr1 = false
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
run_dir = {dir}
admin_socket =
pid_file =
log_file = {dir}/$name.log
mon_cluster_log_file = {dir}/cluster.log
mon_data = {dir}/mon
osd_data = {dir}/osd
rgw_data = {dir}/rgw
keyring = {dir}/keyring
crash_dir = {dir}
osd_objectstore = memstore
memstore_device_bytes = 32G
osd_crush_chooseleaf_type = 0
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 8
osd_pool_default_pg_autoscale_mode = off
mon_allow_pool_size_one = true
mon_data_avail_crit = 0
paxos_propose_interval = 0.05
rgw_frontends = beast endpoint=127.0.0.1:{port}
rgw_enable_usage_log = false
rgw_enable_gc_threads = true
rgw_gc_obj_min_wait = 1
rgw_gc_processor_period = 1
"""
    KEYS = (
        ("mon.", "mon", "allow *"),
        ("client.admin", "mon", "allow *", "osd", "allow *"),
        ("osd.0", "mon", "allow profile osd", "osd", "allow *"),
    )

    @staticmethod
    def missing():
        for program in (
            "ceph-mon",
            "ceph-osd",
            "radosgw",
            "radosgw-admin",
            "ceph",
            "monmaptool",
            "ceph-authtool",
            "aws",
        ):
            if not shutil.which(program):
                raise Missing("there is no %s; scripts/setup real installs it" % program)

    def begin(self):
        port, mon, fsid = free_port(), free_port(), str(uuid.uuid4())
        self.write("ceph.conf", self.CONF.format(dir=self.dir, fsid=fsid, mon=mon, port=port))
        env = {**os.environ, "CEPH_CONF": self.path("ceph.conf")}
        for folder in ("mon", "osd", "rgw"):
            os.mkdir(self.path(folder))
        run("ceph-authtool", "--create-keyring", self.path("keyring"))
        for name, *caps in self.KEYS:
            words = [w for pair in zip(caps[::2], caps[1::2]) for w in ("--cap", *pair)]
            run("ceph-authtool", self.path("keyring"), "-n", name, "--gen-key", *words)
        run(
            "monmaptool",
            "--create",
            "--fsid",
            fsid,
            "--addv",
            "a",
            "[v2:127.0.0.1:%d/0]" % mon,
            self.path("monmap"),
        )
        run("ceph-mon", "--mkfs", "-i", "a", "--monmap", self.path("monmap"), env=env)
        self.spawn("ceph-mon", "-f", "-i", "a", env=env)
        run("ceph", "osd", "create", env=env)
        run("ceph-osd", "--mkfs", "-i", "0", env=env)
        self.spawn("ceph-osd", "-f", "-i", "0", env=env)
        run(
            "radosgw-admin",
            "user",
            "create",
            "--uid=belay",
            "--display-name=belay",
            "--access-key=" + self.access_key,
            "--secret-key=" + SECRET_KEY,
            "--max-buckets=0",
            env=env,
        )
        self.spawn("radosgw", "-f", "-n", "client.admin", env=env)
        return port


class Swift(Server):
    """Proxy, account, container and object servers in one process that runs serve_swift."""

    access_key = "belay:belay"
    PYTHON = "/usr/bin/python3"  # the distribution's interpreter, for which Swift is packaged

    @classmethod
    def missing(cls):
        if (
            subprocess.run(
                [cls.PYTHON, "-c", "import swift.common.middleware.s3api"],
                stderr=subprocess.DEVNULL,
                stdin=subprocess.DEVNULL,
            ).returncode
            != 0
        ):
            raise Missing("there is no Swift for %s; scripts/setup real installs it" % cls.PYTHON)
        if not shutil.which("aws"):
            raise Missing("there is no aws; scripts/setup installs it")

    def begin(self):
        child = self.spawn(
            self.PYTHON,
            "-B",
            os.path.abspath(__file__),
            "--serve-swift",
            self.dir,
            stdout=subprocess.PIPE,
            universal_newlines=True,
            env={**os.environ, "EVENTLET_NO_GREENDNS": "yes"},
        )
        port = child.stdout.readline()
        if not port:
            raise SystemExit("s3server: Swift did not start: %s" % self.logged("python3.out"))
        return int(port)


SWIFT_FILTERS = (
    "catch_errors",
    "gatekeeper",
    "listing_formats",
    "bulk",
    "s3api",
    "tempauth",
    "copy",
    "slo",
    "dlo",
)
SWIFT_OPTIONS = {
    "s3api": "location = " + REGION,
    "tempauth": "user_belay_belay = %s .admin" % SECRET_KEY,
}


class Cache:
    """Replaces memcached for Swift. Nothing expires during the life of the server."""

    def __init__(self):
        self.values = {}

    def set(self, key, value, **_):
        self.values[key] = value

    def get(self, key, **_):
        return self.values.get(key)

    def delete(self, key, **_):
        self.values.pop(key, None)

    def incr(self, key, delta=1, **_):
        self.values[key] = self.values.get(key, 0) + delta
        return self.values[key]


def serve_swift(dir):
    """Prints the proxy's port and serves until it is killed."""
    import eventlet
    import eventlet.wsgi

    eventlet.monkey_patch()
    from swift.common import utils

    utils.SWIFT_CONF_FILE = os.path.join(
        dir, "swift.conf"
    )  # before other modules read the machine's configuration

    def write(name, *lines):
        with open(os.path.join(dir, name), "w") as f:
            f.write("\n".join(lines) + "\n")

    write(
        "swift.conf",
        "[swift-hash]",
        "swift_hash_path_prefix = belay",
        "swift_hash_path_suffix = belay",
        "[storage-policy:0]",
        "name = one",
        "default = yes",
    )
    from swift.common import wsgi
    from swift.common.ring import RingBuilder

    os.makedirs(os.path.join(dir, "srv", "d1"))
    sockets = {
        n: eventlet.listen(("127.0.0.1", 0), backlog=1024)
        for n in ("account", "container", "object", "proxy")
    }
    common = [
        "[DEFAULT]",
        "devices = %s/srv" % dir,
        "mount_check = false",
        "swift_dir = " + dir,
        "log_level = ERROR",
    ]
    for name in ("account", "container", "object"):
        ring = RingBuilder(4, 1, 1)
        ring.add_dev(
            {
                "region": 1,
                "zone": 1,
                "ip": "127.0.0.1",
                "port": sockets[name].getsockname()[1],
                "device": "d1",
                "weight": 1,
            }
        )
        ring.rebalance()
        ring.get_ring().save(os.path.join(dir, name + ".ring.gz"))
        write(
            name + ".conf",
            *common,
            "[pipeline:main]",
            "pipeline = app",
            "[app:app]",
            "use = egg:swift#" + name
        )
    filters = [
        "[filter:%s]\nuse = egg:swift#%s\n%s" % (n, n, SWIFT_OPTIONS.get(n, ""))
        for n in SWIFT_FILTERS
    ]
    write(
        "proxy.conf",
        *common,
        "[pipeline:main]",
        "pipeline = %s proxy-server" % " ".join(SWIFT_FILTERS),
        "[app:proxy-server]",
        "use = egg:swift#proxy",
        "account_autocreate = true",
        "allow_account_management = true",
        *filters
    )
    cache = Cache()
    with open(os.devnull, "w") as nowhere:
        for name, listening in sockets.items():
            app = wsgi.loadapp(os.path.join(dir, name + ".conf"))

            def cached(env, start_response, app=app):
                return app({**env, "swift.cache": cache}, start_response)

            eventlet.spawn(eventlet.wsgi.server, listening, cached, log=nowhere, log_output=False)
        print(sockets["proxy"].getsockname()[1], flush=True)
        eventlet.Event().wait()


SERVERS = {"ceph": Ceph, "swift": Swift}


def start(which, dir=None):
    """Starts Ceph or Swift and waits until it answers and has the bucket. Raises Missing with what
    is not installed. dir: for its files.
    """
    return SERVERS[which](dir)


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--serve-swift":
        serve_swift(sys.argv[2])
        return
    if len(sys.argv) < 3 or sys.argv[1] not in SERVERS:
        sys.exit("usage: s3server.py ceph|swift PROGRAM ARG...")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        server = start(sys.argv[1])
    except Missing as e:
        print("skipped: %s" % e)
        sys.exit(SKIPPED)
    with server:
        words = [w.replace("{}", server.url) for w in sys.argv[2:]]
        sys.exit(
            subprocess.run(
                words, env={**os.environ, **server.env}, stdin=subprocess.DEVNULL
            ).returncode
        )


if __name__ == "__main__":
    main()
