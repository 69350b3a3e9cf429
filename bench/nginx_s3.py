# SPDX-License-Identifier: Apache-2.0
"""An S3 server on loopback that costs as little as possible, to find belay's own limit: nginx
receives the chunks of a save and drops them, and sends the files of a directory as the chunks of a
restore. Nothing is verified. Manifests, fences and lists are few: a thread of this process keeps
them as files in the same directory, for which nginx is a proxy.
"""

import http.server
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
import s3server  # noqa: E402

START_S = 10
CHUNK_BYTES = 4 << 20  # ckpt/ckpt.h

CONF = """\
daemon off;
worker_processes %(workers)d;
error_log %(dir)s/error.log warn;
pid %(dir)s/pid;
%(user)s
events { worker_connections 256; }
http {
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    default_type application/octet-stream;
    client_max_body_size 0;
    # A request's body is in memory when it is answered, and is never written anywhere.
    client_body_buffer_size %(chunk)d;
    client_body_temp_path %(dir)s/body;
    proxy_temp_path %(dir)s/proxy;
    fastcgi_temp_path %(dir)s/fastcgi;
    uwsgi_temp_path %(dir)s/uwsgi;
    scgi_temp_path %(dir)s/scgi;
    upstream drop { server unix:%(dir)s/drop; keepalive 32; }
    server { listen unix:%(dir)s/drop; location / { return 200; } }
    server {
        listen 127.0.0.1:%(port)d;
        location / {
            proxy_pass http://127.0.0.1:%(kept)d;
            proxy_set_header Host $http_host;
        }
        location ~ /chunks/ {
            root %(objects)s;
            if ($request_method = PUT) { rewrite ^ /drop last; }
        }
        location = /drop {
            internal;
            proxy_pass http://drop;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Content-Length "";
            proxy_pass_request_headers off;
            proxy_pass_request_body off;
        }
    }
}
"""


class Kept(http.server.BaseHTTPRequestHandler):
    """The objects that are no chunks, as files below server.top."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def path_of_object(self):
        name = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        return self.server.top + os.path.normpath("/" + name)

    def answer(self, status, body=b"", length=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        path = self.path_of_object()
        if "list-type" in query:
            self.answer(200, self.listing(path, query.get("prefix", [""])[0]))
        elif os.path.isfile(path):
            with open(path, "rb") as f:
                self.answer(200, f.read())
        else:
            self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")

    def do_HEAD(self):
        path = self.path_of_object()
        there = os.path.isfile(path)
        self.answer(200 if there else 404, length=os.path.getsize(path) if there else 0)

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.path_of_object()
        if os.path.exists(path):
            self.answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(body)
        self.answer(200)

    @staticmethod
    def listing(bucket, prefix):
        """One page with all keys: a checkpoint has few objects that are no chunks, and chunks are
        listed only where an attempt saves again."""
        keys = []
        for root, _, names in os.walk(os.path.join(bucket, os.path.dirname(prefix))):
            for name in names:
                path = os.path.join(root, name)
                key = os.path.relpath(path, bucket)
                if key.startswith(prefix):
                    keys.append((key, os.path.getsize(path)))
        return (
            "<ListBucketResult><IsTruncated>false</IsTruncated>%s</ListBucketResult>"
            % "".join(
                "<Contents><Key>%s</Key><Size>%d</Size></Contents>" % (escape(key), size)
                for key, size in sorted(keys)
            )
        ).encode()


class Nginx:
    """As the servers of tests/s3server.py. Objects are files below self.objects/BUCKET."""

    access_key = s3server.Server.access_key

    def __init__(self, directory=None):
        if not shutil.which("nginx"):
            raise SystemExit("bench: there is no nginx; scripts/setup bench installs it")
        self.dir = tempfile.mkdtemp(prefix="belay-s3.", dir=directory)
        os.chmod(self.dir, 0o755)
        self.objects = os.path.join(self.dir, "objects")
        os.makedirs(os.path.join(self.objects, s3server.BUCKET))
        self.kept = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Kept)
        self.kept.daemon_threads, self.kept.top = True, self.objects
        threading.Thread(target=self.kept.serve_forever, daemon=True).start()
        self.port = s3server.free_port()
        self.endpoint = "http://127.0.0.1:%d" % self.port
        self.env = {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": s3server.SECRET_KEY,
            "AWS_DEFAULT_REGION": s3server.REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
        }
        self.begin()

    def begin(self):
        conf = os.path.join(self.dir, "nginx.conf")
        with open(conf, "w") as f:
            f.write(
                CONF
                % {
                    "dir": self.dir,
                    "objects": self.objects,
                    "port": self.port,
                    "kept": self.kept.server_address[1],
                    "workers": os.cpu_count(),
                    "chunk": CHUNK_BYTES + (1 << 16),
                    "user": "user root;" if os.getuid() == 0 else "",  # chunks are for their owner
                }
            )
        self.process = subprocess.Popen(
            ["nginx", "-p", self.dir, "-c", conf, "-e", os.path.join(self.dir, "error.log")],
            stdin=subprocess.DEVNULL,
        )
        end = time.monotonic() + START_S
        while not os.path.exists(os.path.join(self.dir, "pid")):
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit("bench: nginx did not start")
            time.sleep(0.05)  # nothing to wait on

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.kept.shutdown()
        self.kept.server_close()
        shutil.rmtree(self.dir)
