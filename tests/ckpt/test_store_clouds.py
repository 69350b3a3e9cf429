# SPDX-License-Identifier: Apache-2.0
"""The stores in Google's buckets and Azure's containers, against a server here with faults on
demand.

    test_store_clouds.py TEST_STORE_CLOUDS              both, with faults
    test_store_clouds.py TEST_STORE_CLOUDS DIRECTORY    Azurite, installed there from npm once
"""

import base64
import datetime
import hashlib
import hmac
import http.server
import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.parse
import urllib.request
from xml.sax.saxutils import escape

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import npm

PAGE = 3
TOKEN, SIGNATURE = "g00d.t0ken", "sv=2021-12-02&sig=g00d"
KMS_KEY, SCOPE = (
    "projects/p/locations/eu/keyRings/r/cryptoKeys/k",
    "lab-1",
)  # the encryption that every write must request
RUN_S = 150


class Faults:
    """The faults of each method's next requests. Not executed: throttle (503), error (500), denied,
    no-bucket, moved, bad, full. Executed: done-error (500), drop (no reply), torn (half a reply),
    garbage (bytes that are not HTTP). list-*: malformed lists."""

    REFUSED = {
        "throttle": (503, "SlowDown"),
        "error": (500, "InternalError"),
        "denied": (403, "AccessDenied"),
        "bad": (400, "InvalidArgument"),
        "full": (507, "InsufficientStorage"),
        "moved": (307, ""),
    }

    def __init__(self):
        self.lock, self.of = threading.Lock(), {}

    def order(self, method, how):
        with self.lock:
            if method == "CLEAR":
                self.of.clear()
            else:
                self.of.setdefault(method, []).append(how)

    def next(self, method):
        with self.lock:
            waiting = self.of.get(method)
            return waiting.pop(0) if waiting else None


class Handler(http.server.BaseHTTPRequestHandler):
    """One bucket of Google's at /jobs, one container of Azure's at /lab1/jobs."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a reply is two writes
    faults, lock = Faults(), threading.Lock()
    objects, blocks = {}, {}

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", **headers):
        torn = self.how == "torn" and len(body) > 1
        if self.how == "drop" or (self.how == "torn" and not torn):
            self.close_connection = True
            return
        if self.how == "garbage":
            self.wfile.write(b"this is not HTTP\r\n\r\n")
            self.close_connection = True
            return
        if self.how == "done-error":
            status, body, headers = 500, self.error("InternalError"), {}
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if status != 204 and "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if torn else body)
        if torn:
            self.close_connection = True

    def error(self, code):
        bom = "\ufeff" if self.azure else ""
        return f'{bom}<?xml version="1.0"?><Error><Code>{code}</Code><Message>no</Message></Error>'.encode()

    def refuse(self, status, code):
        extra = {"x_ms_error_code": code} if self.azure and code else {}
        self.reply(status, b"" if self.command == "HEAD" else self.error(code), **extra)

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        target = urllib.parse.urlsplit(self.path)
        self.how, self.azure = None, target.path.startswith("/lab1/")
        if target.path == "/control":
            self.faults.order(*body.decode().split())
            self.reply(200)
            return
        if self.serve(target, body):
            return
        self.query = urllib.parse.parse_qs(target.query, keep_blank_values=True)
        self.how = self.faults.next(self.command)
        if self.how in self.faults.REFUSED:
            self.refuse(*self.faults.REFUSED[self.how])
        elif self.how == "no-bucket":
            self.refuse(404, "ContainerNotFound" if self.azure else "NoSuchBucket")
        elif not self.may(target.path):
            self.refuse(
                *(
                    (403, "AuthenticationFailed")
                    if self.query.get("sig")
                    else (401, "AuthenticationRequired")
                )
            )
        elif self.azure and not self.headers.get("x-ms-version"):
            self.refuse(400, "MissingRequiredHeader")
        else:
            with self.lock:
                self.act(target.path, body)

    def serve(self, target, body):
        """Answers requests other than the store's; returns false for the store's."""
        return False

    def may(self, path):
        return self.headers.get("Authorization") == "Bearer " + TOKEN or (
            self.azure and self.query.get("sig") == ["g00d"]
        )

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = handle_any

    def act(self, path, body):
        root = "/lab1/jobs" if self.azure else "/jobs"
        key = path[len(root) + 1 :]
        if self.command == "GET" and not key:
            self.list()
        elif self.command in ("GET", "HEAD"):
            self.get(path)
        elif self.command == "DELETE":
            gone = self.objects.pop(path, None)
            if gone is not None:
                self.reply(202 if self.azure else 204)
            else:
                self.refuse(404, "BlobNotFound" if self.azure else "NoSuchKey")
        elif self.command == "PUT":
            self.put(path, body)
        else:
            self.refuse(405, "MethodNotAllowed")

    def get(self, path):
        data = self.objects.get(path)
        if data is None:
            self.refuse(404, "BlobNotFound" if self.azure else "NoSuchKey")
            return
        etag = '"%s"' % hashlib.md5(data).hexdigest()
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if self.headers.get("If-Match", etag) != etag:
            self.refuse(412, "ConditionNotMet" if self.azure else "PreconditionFailed")
        elif self.command == "HEAD":
            self.reply(200, Content_Length=str(len(data)), ETag=etag)
        elif asked:
            self.reply(
                206, data[int(asked[1]) : int(asked[2]) + 1 if asked[2] else None], ETag=etag
            )
        else:
            self.reply(200, data, ETag=etag)

    def put(self, path, body):
        comp, sum_ = self.query.get("comp", [""])[0], self.headers.get("Content-MD5")
        if sum_ and sum_ != base64.b64encode(hashlib.md5(body).digest()).decode():
            self.refuse(400, "Md5Mismatch" if self.azure else "BadDigest")
            return
        if (
            self.azure
            and path.startswith("/lab1/jobs/signed/")
            and self.headers.get("x-ms-encryption-scope") != SCOPE
            or not self.azure
            and self.headers.get("x-goog-encryption-kms-key-name") != KMS_KEY
        ):
            self.refuse(400, "InvalidArgument")
            return
        if comp == "block":
            self.blocks[(path, self.query["blockid"][0])] = body
            self.reply(201)
            return
        absent = (
            self.headers.get("If-None-Match") == "*"
            if self.azure
            else self.headers.get("x-goog-if-generation-match") == "0"
        )
        if absent and path in self.objects:
            self.refuse(
                *((409, "BlobAlreadyExists") if self.azure else (412, "PreconditionFailed"))
            )
            return
        source = self.headers.get("x-goog-copy-source")
        if comp == "blocklist":
            ids = re.findall("<Latest>([^<]*)</Latest>", body.decode())
            if any((path, i) not in self.blocks for i in ids):
                self.refuse(400, "InvalidBlockList")
                return
            body = b"".join(self.blocks[(path, i)] for i in ids)
            self.blocks = {k: v for k, v in self.blocks.items() if k[0] != path}
        elif self.azure and self.headers.get("x-ms-blob-type") != "BlockBlob":
            self.refuse(400, "MissingRequiredHeader")
            return
        elif source:
            if "/" + source not in self.objects:
                self.refuse(404, "NoSuchKey")
                return
            body = self.objects["/" + source]
        self.objects[path] = body
        self.reply(
            201 if self.azure else 200, b"<CopyObjectResult/>" if source else b"", ETag='"x"'
        )

    def list(self):
        root = "/lab1/jobs/" if self.azure else "/jobs/"
        prefix = root + self.query["prefix"][0]
        after = self.query.get("marker" if self.azure else "continuation-token", [""])[0]
        keys = sorted(k for k in self.objects if k.startswith(prefix) and k[len(root) :] > after)
        page, more = keys[:PAGE], keys[PAGE:]
        token = escape(page[-1][len(root) :]) if more else ""
        if self.how and self.how.startswith("list-"):
            token = "same" if self.how == "list-again" else token
            more = more or self.how == "list-again"
        size = (
            (lambda k: "much") if self.how == "list-size" else lambda k: str(len(self.objects[k]))
        )
        if self.azure:
            items = "".join(
                f"<Blob><Name>{k[len(root):]}</Name><Properties><Content-Length>{size(k)}</Content-Length>"
                "</Properties></Blob>"
                for k in page
            )
            text = (
                f'\ufeff<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>{items}</Blobs>'
                f"<NextMarker>{token}</NextMarker></EnumerationResults>"
            )
        else:
            items = "".join(
                f"<Contents><Key>{urllib.parse.quote(k[len(root):], safe='')}</Key><Size>{size(k)}</Size>"
                "</Contents>"
                for k in page
            )
            text = (
                f"<ListBucketResult><IsTruncated>{'true' if more else 'false'}</IsTruncated>"
                f"<NextContinuationToken>{token}</NextContinuationToken>{items}</ListBucketResult>"
            )
        if self.how == "list-html":
            text = "<html><body>welcome to the hotel's network</body></html>"
        if self.how == "list-other":
            text = "<Other/>"
        self.reply(200, text.encode())


def run(program, url, token, control):
    print(f"---- {url}", flush=True)
    subprocess.run(
        [program, url, token, control], check=True, timeout=RUN_S, stdin=subprocess.DEVNULL
    )


def here(program):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = f"http://127.0.0.1:{server.server_port}"
    run(program, f"gs://jobs?endpoint={root}&kms_key={KMS_KEY}", TOKEN, root + "/control")
    run(program, f"az://lab1/jobs?endpoint={root}", TOKEN, root + "/control")
    run(
        program,
        f"az://lab1/jobs/signed?endpoint={root}&encryption_scope={SCOPE}",
        SIGNATURE,
        root + "/control",
    )


# ---- Azurite ----

START_S = 60
PACKAGE = {"private": True, "dependencies": {"azurite": "3.35.0"}}
ACCOUNT, KEY = "lab1", base64.b64encode(b"a key of the test's own").decode()


def signature():
    """A shared access signature of the account, for blobs, for an hour."""
    end = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )
    fields = {
        "sp": "rwdlac",
        "ss": "b",
        "srt": "sco",
        "st": "",
        "se": end,
        "sip": "",
        "spr": "https,http",
        "sv": "2021-12-02",
        "ses": "",
    }
    text = "\n".join([ACCOUNT, *fields.values(), ""])
    fields["sig"] = base64.b64encode(
        hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    ).decode()
    return urllib.parse.urlencode({k: v for k, v in fields.items() if v})


def azurite(program, directory):
    npm.install(directory, PACKAGE, "Azurite")
    with tempfile.TemporaryDirectory() as data:
        server = subprocess.Popen(
            [
                os.path.join(directory, "node_modules", ".bin", "azurite-blob"),
                "--inMemoryPersistence",
                "--disableTelemetry",
                "--blobHost",
                "127.0.0.1",
                "--blobPort",
                "0",
            ],
            cwd=data,
            env={**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        timer = threading.Timer(START_S, server.kill)
        timer.start()
        try:
            root = None
            for line in server.stdout:
                found = re.search(
                    r"successfully listen\w* (?:on|at) (http://127\.0\.0\.1:\d+)", line
                )
                if found:
                    root = found[1]
                    break
            timer.cancel()
            if not root:
                sys.exit("Azurite did not start")
            threading.Thread(target=server.stdout.read, daemon=True).start()
            sas = signature()
            made = urllib.request.Request(
                f"{root}/{ACCOUNT}/jobs?restype=container&{sas}",
                method="PUT",
                data=b"",
                headers={"x-ms-version": "2021-12-02"},
            )
            urllib.request.urlopen(made, timeout=RUN_S).close()
            run(program, f"az://{ACCOUNT}/jobs?endpoint={root}", sas, "-")
        finally:
            timer.cancel()
            server.kill()
            server.wait()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        azurite(sys.argv[1], os.path.abspath(sys.argv[2]))
    else:
        here(sys.argv[1])
