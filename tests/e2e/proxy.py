# SPDX-License-Identifier: Apache-2.0
"""A proxy between belayd and a provider's API that knows every call by its name, and makes chosen
ones fail.

Faults hit the next calls of one name in sequence, each with its own kind (see Fault). Other calls
pass unchanged, byte for byte, so that signatures stay valid. Every connection serves one request: a
client that repeats a request by itself after a closed connection would hide the fault.
"""

import http.client
import http.server
import json
import threading
import urllib.parse
from xml.sax.saxutils import escape

TIMEOUT_S = 60
HOP_BY_HOP = {"connection", "content-length", "date", "server", "transfer-encoding"}
FLAVOR = ("Metadata-Flavor", "Google")  # identifies Google's metadata server
HTML = b"<html><head><title>502 Bad Gateway</title></head><body>no upstream</body></html>"


# ---- names of the calls of each provider ----
# seen: the operations that replies have named, and what each of them does


def page(is_later):
    return ", 2nd page" if is_later else ""


def name_aws(method, path, query, body, seen):
    if path.startswith("/latest/"):
        return {"PUT": "metadata token"}.get(method) or (
            "metadata role" if path.endswith("/security-credentials/") else "metadata credentials"
        )
    form = urllib.parse.parse_qs(body.decode())
    return form["Action"][0] + page("NextToken" in form)


def name_gcp(method, path, query, body, seen):
    if path.startswith("/computeMetadata/"):
        return "metadata token"
    if path == "/token":
        return "token"
    parts = path.split("/")[5:]  # below the project
    if parts[:2] == ["aggregated", "instances"]:
        return "instances.aggregatedList" + page("pageToken" in query)
    if parts[2] == "operations":
        return (
            "zoneOperations.get of %s" % seen.get(parts[3], "?")
            if len(parts) > 3
            else "zoneOperations.list" + page("pageToken" in query)
        )
    return "instances." + {"POST": "insert", "GET": "get", "DELETE": "delete"}[method]


def name_azure(method, path, query, body, seen):
    if path.startswith("/metadata/"):
        return "metadata token"
    if path.endswith("/oauth2/v2.0/token"):
        return "token"
    if path.startswith("/api/retail/"):
        return "GET prices" + page("skip=" in query)
    parts = path.split("/")
    at = next((k for k, p in enumerate(parts) if p.startswith("Microsoft.")), None)
    if at is None:
        return "GET resources by tag" + page("skiptoken" in query)
    what, is_one = parts[at + 1], len(parts) > at + 2
    if what == "locations":
        return "GET operation of " + ("VM" if parts[at] == "Microsoft.Compute" else "NIC")
    short = {"virtualMachines": "VM", "networkInterfaces": "NIC", "disks": "disk"}[what]
    if is_one:
        return method + " " + short
    return ("GET power states" if "statusOnly" in query else "GET VMs") + page("skiptoken" in query)


def name_lambda(method, path, query, body, seen):
    return {
        "GET instances": "listInstances",
        "GET instance-types": "listInstanceTypes",
        "POST launch": "launchInstance",
        "POST terminate": "terminateInstance",
    }["%s %s" % (method, path.split("/")[-1])]


# ---- refusals of each provider ----


def error_aws(status, code, message):
    return (
        status,
        "text/xml",
        (
            "<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors>"
            "<RequestID>00000000-0000-0000-0000-000000000001</RequestID></Response>"
            % (code, message)
        ),
    )


def error_gcp(status, code, message):
    return (
        status,
        "application/json",
        json.dumps(
            {
                "error": {
                    "code": status,
                    "message": message,
                    "errors": [{"domain": "global", "reason": code, "message": message}],
                }
            }
        ),
    )


def error_azure(status, code, message):
    return status, "application/json", json.dumps({"error": {"code": code, "message": message}})


def error_lambda(status, code, message):
    if code == "1015":  # from the proxy in front of the API
        return status, "text/plain", "error code: " + code
    return status, "application/json", json.dumps({"error": {"code": code, "message": message}})


def error_token(status, code, message):
    return status, "application/json", json.dumps({"error": code, "error_description": message})


# ---- a fleet that has found no capacity ----


def fleet_errors(body, code, message):
    form = {k: v[0] for k, v in urllib.parse.parse_qs(body.decode()).items()}
    items, n = "", 1
    prefix = "LaunchTemplateConfigs.1.Overrides."
    while code and "%s%d.InstanceType" % (prefix, n) in form:
        items += (
            "<item><launchTemplateAndOverrides><overrides><instanceType>%s</instanceType><availabilityZone>%s"
            "</availabilityZone></overrides></launchTemplateAndOverrides><lifecycle>spot</lifecycle><errorCode>%s"
            "</errorCode><errorMessage>%s</errorMessage></item>"
            % (
                form["%s%d.InstanceType" % (prefix, n)],
                form["%s%d.AvailabilityZone" % (prefix, n)],
                code,
                escape(message),
            )
        )
        n += 1
    return (
        "<CreateFleetResponse><fleetId>fleet-1</fleetId><errorSet>%s</errorSet><fleetInstanceSet/>"
        "</CreateFleetResponse>" % items
    )


class Provider:
    def __init__(self, name_call, error, garbage, internal):
        self.name_call, self.error, self.garbage, self.internal = (
            name_call,
            error,
            garbage,
            internal,
        )


PROVIDERS = {
    "aws": Provider(name_aws, error_aws, b'<?xml version="1.0"?>\n<Resp', "InternalError"),
    "gcp": Provider(name_gcp, error_gcp, b'{"kind":"compute#', "internalError"),
    "azure": Provider(name_azure, error_azure, b'{"name":"', "InternalServerError"),
    "lambda": Provider(name_lambda, error_lambda, b'{"data": {"inst', "global/internal-error"),
}


class Fault:
    """how: "closed before" the call is sent; "closed after", "garbage after", "5xx after" it took
    effect; before it is sent: "502 page", "no answer" (until the caller gives up), "error" with
    status, code and message, "another's" (a page with status, not from Google) and "says" (HTTP 200
    with message as the body, described by code); "passes": no fault; "only Errors": a fleet's, each
    with code. The emulator does "operation" (accepted, and failed with code later) and "dry" (the
    places in message have no capacity, described by code)."""

    def __init__(self, how, status=0, code="", message="made up by the test"):
        self.how, self.status, self.code, self.message = how, status, code, message

    def __str__(self):
        return {
            "error": self.code,
            "operation": "operation: " + self.code,
            "says": self.code,
            "another's": self.code,
            "dry": self.code,
            "only Errors": "only Errors, " + self.code
            if self.code
            else "neither instance nor Error",
        }.get(self.how, self.how)


class Proxy:
    def __init__(self, provider, upstream, metadata=None):
        self.provider = PROVIDERS[provider]
        self.upstream = urllib.parse.urlsplit(upstream).netloc
        self.metadata = metadata or {}  # path -> function that returns the metadata service's reply
        self.lock = threading.Lock()
        self.faults = {}  # name -> pending faults
        self.seen = {}  # operation -> its action
        self.answered = set()  # names of calls
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        self.thread = threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.1}
        )
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def arm(self, name, faults):
        with self.lock:
            self.faults.setdefault(name, []).extend(faults)

    def disarm(self, name):
        with self.lock:
            self.faults.pop(name, None)

    def waiting(self, name):
        """How many faults are pending."""
        with self.lock:
            return len(self.faults.get(name, []))

    def take(self, name):
        with self.lock:
            waiting = self.faults.get(name)
            return waiting.pop(0) if waiting else None

    def error(self, name, status, code, message):
        say = error_token if name in ("token", "metadata token") else self.provider.error
        status, kind, text = say(status, code, message)
        return status, [("Content-Type", kind), FLAVOR], text.encode()

    def answer(self, request, body):
        """None, or status, headers, body."""
        url = urllib.parse.urlsplit(request.path)
        name = self.provider.name_call(request.command, url.path, url.query, body, self.seen)
        fault = self.take(name)
        how = fault.how if fault else "none"
        if how == "closed before":
            return None
        if how == "502 page":
            return 502, [("Content-Type", "text/html")], HTML
        if how == "no answer":
            request.connection.recv(1)  # until the caller has closed
            return None
        if how == "error":
            return self.error(name, fault.status, fault.code, fault.message)
        if how == "another's":
            return fault.status, [("Content-Type", "text/html")], HTML
        if how == "says":
            return 200, [("Content-Type", "application/json"), FLAVOR], fault.message.encode()
        if how == "only Errors":
            return (
                200,
                [("Content-Type", "text/xml")],
                fleet_errors(body, fault.code, fault.message).encode(),
            )
        reply = self.pass_on(request, body)
        self.answered.add(name)
        self.note_operation(reply[2])
        if how == "closed after":
            return None
        if how == "garbage after":
            return 200, [("Content-Type", "application/json"), FLAVOR], self.provider.garbage
        if how == "5xx after":
            return self.error(name, 500, self.provider.internal, fault.message)
        return reply

    def note_operation(self, body):
        if body.startswith(b"{") and b'compute#operation"' in body:
            operation = json.loads(body)
            if operation["kind"] == "compute#operation":  # not a list of operations
                self.seen[operation["name"]] = operation["operationType"]

    def pass_on(self, request, body):
        path = request.path.split("?")[0]
        if path in self.metadata:
            return 200, [("Content-Type", "text/plain"), FLAVOR], self.metadata[path]().encode()
        c = http.client.HTTPConnection(self.upstream, timeout=TIMEOUT_S)
        try:
            path = request.path.replace("maxResults=500", "maxResults=1")  # to force several pages
            c.putrequest(request.command, path, skip_host=True, skip_accept_encoding=True)
            for key, value in request.headers.items():
                if key.lower() != "connection":
                    c.putheader(key, value)
            c.endheaders(body)
            reply = c.getresponse()
            headers = [(k, v) for k, v in reply.getheaders() if k.lower() not in HOP_BY_HOP]
            return reply.status, headers, reply.read()
        finally:
            c.close()

    def handler(self):
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def one(self):
                self.close_connection = True
                try:
                    reply = proxy.answer(
                        self, self.rfile.read(int(self.headers.get("Content-Length") or 0))
                    )
                    if reply:
                        status, headers, body = reply
                        self.send_response(status)
                        for key, value in headers:
                            self.send_header(key, value)
                        self.send_header("Content-Length", str(len(body)))
                        self.send_header("Connection", "close")
                        self.end_headers()
                        self.wfile.write(body)
                except (OSError, http.client.HTTPException):
                    pass  # either side has closed: close the connection

            do_GET = do_PUT = do_POST = do_DELETE = one

            def log_message(self, *args):
                pass

        return Handler
