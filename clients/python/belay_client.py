# SPDX-License-Identifier: Apache-2.0
"""belay's API for Python programs: one file, standard library only.

    import belay_client

    client = belay_client.Client()              # finds belayd as the command `belay` does
    job = client.submit(script="#!/bin/sh\\necho hello\\n", cwd="/tmp", name="hello")["id"]
    ended = client.wait(job)
    print(ended["end"], client.read_log(job).decode())

Every call of the API is a method named as its operationId in GET /api/v1/openapi.json, with the parameters and the members of its
body as keywords; it gives the answer's JSON as it is (docs/reference/api.md). Below them stand some that do more: jobs, wait, expects, run_in,
send_workdir, read_log, follow_log.

A Client may be used by one thread at a time. Each call is a connection of its own.
"""

import contextlib
import datetime
import hashlib
import http.client
import json
import os
import socket
import ssl
import stat
import struct
import time
import urllib.parse

WORKDIR_PIECE_BYTES = 4 << 20  # of a file of a working directory, between two of its hashes
WAIT_MS = 20000  # of a call that waits for something to happen


class Error(Exception):
    """What belayd said no with. kind is stable (docs/reference/api.md), text is for people."""

    def __init__(self, status, kind, text):
        super().__init__(text)
        self.status, self.kind, self.text = status, kind, text


class Unavailable(Error):
    """belayd could not be reached, broke off, or asks to try again: whether a change was made is not known."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("belayd", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def _read(path):
    with open(path) as f:
        return f.read()


def _local_socket():
    """Of a belayd of one's own: belayd.json in its home says where, if it is somewhere else."""
    home = os.environ.get("BELAY_HOME") or os.path.expanduser("~/.local/share/belay")
    try:
        path = json.loads(_read(os.path.join(home, "belayd.json")))["socket"]
    except (OSError, ValueError, KeyError):
        path = os.path.join(home, "belayd.sock")
    system = "/run/belay/belayd.sock"
    return path if os.path.exists(path) or not os.path.exists(system) else system


def _clean(members):
    """Without what was not given. A word of Python's has a '_' behind it."""
    return {
        name.rstrip("_"): value
        for name, value in members.items()
        if value is not None and name != "self"
    }


def _below(directory, path=""):
    """What is in a directory, and in those in it."""
    for entry in os.scandir(os.path.join(directory, path)):
        if entry.name != ".git":
            below = os.path.join(path, entry.name)
            yield below
            if entry.is_dir(follow_symlinks=False):
                yield from _below(directory, below)


class Client:
    """Where belayd is: server="https://host:port" with the token and the file of the cluster's CA certificate; or a UNIX socket, on
    which the user counts. Without either: BELAY_SERVER with BELAY_TOKEN_FILE and BELAY_CA_FILE, else BELAY_SOCKET, else the socket in
    BELAY_HOME (~/.local/share/belay), else /run/belay/belayd.sock.
    """

    def __init__(self, server=None, token=None, ca_file=None, socket=None, timeout_s=90):
        if not server and not socket and os.environ.get("BELAY_SERVER"):
            server = os.environ["BELAY_SERVER"]
            token = token or _read(os.environ["BELAY_TOKEN_FILE"]).strip()
            ca_file = ca_file or os.environ["BELAY_CA_FILE"]
        if server and not (server.startswith("https://") and token and ca_file):
            raise ValueError("a server is https://HOST:PORT, and needs a token and a CA file")
        self.timeout_s = timeout_s
        self._server = urllib.parse.urlsplit(server) if server else None
        self._headers = {"Authorization": "Bearer " + token} if server else {}
        self._tls = ssl.create_default_context(cafile=ca_file) if server else None
        self._socket = socket or os.environ.get("BELAY_SOCKET") or _local_socket()

    # ---- one call ----

    def _connect(self):
        if self._server:
            return http.client.HTTPSConnection(
                self._server.hostname, self._server.port, timeout=self.timeout_s, context=self._tls
            )
        return _UnixConnection(self._socket, self.timeout_s)

    def _exchange(self, method, target, body):
        """Status, headers and the bytes of the answer."""
        connection = self._connect()
        headers = dict(self._headers)
        data = None
        if isinstance(body, bytes):
            data = body
            headers["Content-Type"] = "application/octet-stream"
        elif body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, target, data, headers)
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()
        except (OSError, http.client.HTTPException) as e:
            where = self._server.geturl() if self._server else self._socket
            raise Unavailable(
                0, "unavailable", "no belayd answers at %s: %s" % (where, e or type(e).__name__)
            ) from e
        finally:
            connection.close()

    def _raw(self, method, path, ids=None, query=None, body=None):
        """path as in the document, with {id}. A list in the query becomes words with commas, or is repeated where words may hold them."""
        pairs = []
        for name, value in (query or {}).items():
            if isinstance(value, (list, tuple)) and name in ("name", "label"):
                pairs += [(name, item) for item in value]
            elif isinstance(value, (list, tuple)):
                pairs.append((name, ",".join(map(str, value))))
            else:
                pairs.append((name, int(value) if isinstance(value, bool) else value))
        target = path.format(**{name: int(value) for name, value in (ids or {}).items()})
        if pairs:
            target += "?" + urllib.parse.urlencode(pairs)
        status, headers, data = self._exchange(method, target, body)
        if 200 <= status <= 299:
            return headers, data
        try:
            error = json.loads(data)["error"]
        except (ValueError, KeyError, TypeError):
            error = {
                "kind": "io",
                "text": "belayd answered with HTTP status %d and no reason" % status,
            }
        raise (Unavailable if status == 503 else Error)(status, error["kind"], error["text"])

    def _call(self, method, path, ids=None, query=None, body=None):
        return json.loads(self._raw(method, path, ids, query, body)[1])

    # ---- jobs ----

    def submit(
        self,
        *,
        script,
        cwd,
        name=None,
        args=None,
        env=None,
        nodes=None,
        nodes_min=None,
        on_loss=None,
        script_on=None,
        cpus=None,
        memory_mib=None,
        gpus=None,
        gpu_model=None,
        gpu_memory_mib=None,
        constraint=None,
        resources=None,
        licences=None,
        exclusive=None,
        nodelist=None,
        exclude=None,
        input=None,
        pool=None,
        market=None,
        time_limit_ms=None,
        checkpoint=None,
        array=None,
        retries=None,
        retry=None,
        requeue=None,
        drill=None,
        team=None,
        qos=None,
        nice=None,
        hold=None,
        begin_at_ms=None,
        deadline_at_ms=None,
        finish_by_ms=None,
        finish_in_ms=None,
        finish_at=None,
        work_ms=None,
        max_uusd=None,
        max_uusd_per_hour=None,
        kill_on_invalid_dep=None,
        window=None,
        depends_any=None,
        depends=None,
        launch=None,
        notify=None,
        labels=None,
        url=None,
        why=None,
    ):
        spec = _clean(locals())
        spec.pop("why", None)
        return self._call(
            "POST", "/api/v1/jobs", query={} if why is None else {"why": why}, body=spec
        )

    def estimate(
        self,
        *,
        script,
        cwd,
        name=None,
        args=None,
        env=None,
        nodes=None,
        nodes_min=None,
        on_loss=None,
        script_on=None,
        cpus=None,
        memory_mib=None,
        gpus=None,
        gpu_model=None,
        gpu_memory_mib=None,
        constraint=None,
        resources=None,
        licences=None,
        exclusive=None,
        nodelist=None,
        exclude=None,
        input=None,
        pool=None,
        market=None,
        time_limit_ms=None,
        checkpoint=None,
        array=None,
        retries=None,
        retry=None,
        requeue=None,
        drill=None,
        team=None,
        qos=None,
        nice=None,
        hold=None,
        begin_at_ms=None,
        deadline_at_ms=None,
        finish_by_ms=None,
        finish_in_ms=None,
        finish_at=None,
        work_ms=None,
        max_uusd=None,
        max_uusd_per_hour=None,
        kill_on_invalid_dep=None,
        window=None,
        depends_any=None,
        depends=None,
        launch=None,
        notify=None,
        labels=None,
        url=None,
    ):
        """When and where the job would start and what it would cost; nothing is submitted."""
        return self._call("POST", "/api/v1/jobs/estimate", body=_clean(locals()))

    def list_jobs(
        self,
        *,
        state=None,
        user=None,
        team=None,
        pool=None,
        name=None,
        label=None,
        since=None,
        until=None,
        sort=None,
        array=None,
        index=None,
        before=None,
        limit=None,
        why=None,
    ):
        return self._call("GET", "/api/v1/jobs", query=_clean(locals()))

    def show_job(self, id):
        return self._call("GET", "/api/v1/jobs/{id}", {"id": id})

    def why(self, id, *, brief=None):
        return self._call(
            "GET", "/api/v1/jobs/{id}/why", {"id": id}, {} if brief is None else {"brief": brief}
        )

    def diagnose(self, id, *, over_ms=None):
        return self._call(
            "GET", "/api/v1/jobs/{id}/diagnose", {"id": id}, _clean({"over_ms": over_ms})
        )

    def job_events(self, id, *, after=None, wait_ms=None):
        return self._call(
            "GET",
            "/api/v1/jobs/{id}/events",
            {"id": id},
            _clean({"after": after, "wait_ms": wait_ms}),
        )

    def job_logs(
        self,
        id,
        *,
        offset=None,
        since=None,
        tail=None,
        attempt=None,
        rank=None,
        wait_ms=None,
        max=None,
    ):
        """Bytes, the offset behind them, and whether nothing follows."""
        headers, data = self._raw(
            "GET",
            "/api/v1/jobs/{id}/logs",
            {"id": id},
            _clean(
                {
                    "offset": offset,
                    "since": since,
                    "tail": tail,
                    "attempt": attempt,
                    "rank": rank,
                    "wait_ms": wait_ms,
                    "max": max,
                }
            ),
        )
        return data, int(headers["Belay-Log-Next"]), headers["Belay-Log-End"] == "1"

    def cancel(self, id, *, tasks=None):
        return self._call(
            "POST", "/api/v1/jobs/{id}/cancel", {"id": id}, body=_clean({"tasks": tasks}) or None
        )

    def cancel_many(self, jobs):
        """jobs: numbers, and ranges of them as text ("10-20")."""
        return self._call("POST", "/api/v1/jobs/cancel", body={"jobs": [str(job) for job in jobs]})

    def reclaim(self, id):
        return self._call("POST", "/api/v1/jobs/{id}/reclaim", {"id": id})

    def requeue(self, id, *, from_scratch=None, force=None):
        return self._call(
            "POST",
            "/api/v1/jobs/{id}/requeue",
            {"id": id},
            body=_clean({"from_scratch": from_scratch, "force": force}) or None,
        )

    def update(
        self,
        id,
        *,
        tasks=None,
        at_once=None,
        name=None,
        time_limit_ms=None,
        retries=None,
        retry=None,
        requeue=None,
        nice=None,
        pool=None,
        market=None,
        team=None,
        qos=None,
        begin_at_ms=None,
        window=None,
        depends_any=None,
        depends=None,
        cpus=None,
        memory_mib=None,
        gpus=None,
        nodes=None,
        nodes_min=None,
        script_on=None,
        on_loss=None,
        gpu_model=None,
        gpu_memory_mib=None,
        constraint=None,
        resources=None,
        licences=None,
        exclusive=None,
        nodelist=None,
        exclude=None,
        input=None,
        deadline_at_ms=None,
        finish_by_ms=None,
        finish_in_ms=None,
        work_ms=None,
        max_uusd=None,
        max_uusd_per_hour=None,
        url=None,
    ):
        """Of a job that waits, or (name, time limit, retries, nice, url) runs; all of it or nothing."""
        members = _clean(locals())
        del members["id"]
        return self._call("POST", "/api/v1/jobs/{id}/update", {"id": id}, body=members)

    def hold(self, id):
        return self._call("POST", "/api/v1/jobs/{id}/hold", {"id": id})

    def release(self, id, *, from_scratch=None):
        return self._call(
            "POST",
            "/api/v1/jobs/{id}/release",
            {"id": id},
            body=_clean({"from_scratch": from_scratch}) or None,
        )

    def save(self, id):
        return self._call("POST", "/api/v1/jobs/{id}/save", {"id": id})

    def drill(self, id, *, without_notice=None):
        return self._call(
            "POST",
            "/api/v1/jobs/{id}/drill",
            {"id": id},
            body=_clean({"without_notice": without_notice}) or None,
        )

    def compared(self, id, *, number, with_, equal, text=None):
        return self._call(
            "POST",
            "/api/v1/jobs/{id}/compared",
            {"id": id},
            body=_clean({"number": number, "with": with_, "equal": equal, "text": text}),
        )

    def list_drills(self, *, user=None, limit=None):
        return self._call("GET", "/api/v1/drills", query=_clean(locals()))

    # ---- sessions: frames in both directions, docs/reference/api.md ----

    def exec(
        self,
        id,
        *,
        command=None,
        signal=None,
        to=None,
        rank=None,
        tty=None,
        term=None,
        rows=None,
        columns=None,
    ):
        members = _clean(locals())
        del members["id"]
        return self._call("POST", "/api/v1/jobs/{id}/exec", {"id": id}, body=members)

    def channel_output(self, id, *, offset=None, wait_ms=None):
        """Bytes, and whether nothing follows."""
        headers, data = self._raw(
            "GET",
            "/api/v1/channels/{id}/output",
            {"id": id},
            _clean({"offset": offset, "wait_ms": wait_ms}),
        )
        return data, headers.get("Belay-Channel-End") == "1"

    def channel_input(self, id, data, *, offset=None):
        return json.loads(
            self._raw(
                "POST", "/api/v1/channels/{id}/input", {"id": id}, _clean({"offset": offset}), data
            )[1]
        )

    def close_channel(self, id):
        return self._call("POST", "/api/v1/channels/{id}/close", {"id": id})

    # ---- working directories ----

    def put_workdir(self, data):
        return json.loads(self._raw("POST", "/api/v1/workdirs", body=data)[1])

    def add_workdir_pieces(self, data):
        return json.loads(self._raw("POST", "/api/v1/workdirs/pieces", body=data)[1])

    # ---- cron ----

    def add_cron(
        self,
        *,
        name,
        schedule,
        job,
        zone=None,
        gap=None,
        twice=None,
        overlap=None,
        catch_up=None,
        catch_up_max=None,
    ):
        return self._call("POST", "/api/v1/crons", body=_clean(locals()))

    def list_crons(self, *, user=None):
        return self._call("GET", "/api/v1/crons", query=_clean(locals()))

    def show_cron(self, id):
        return self._call("GET", "/api/v1/crons/{id}", {"id": id})

    def edit_cron(
        self,
        id,
        *,
        name=None,
        schedule=None,
        zone=None,
        gap=None,
        twice=None,
        overlap=None,
        catch_up=None,
        catch_up_max=None,
        job=None,
    ):
        members = _clean(locals())
        del members["id"]
        return self._call("POST", "/api/v1/crons/{id}", {"id": id}, body=members)

    def pause_cron(self, id):
        return self._call("POST", "/api/v1/crons/{id}/pause", {"id": id})

    def resume_cron(self, id):
        return self._call("POST", "/api/v1/crons/{id}/resume", {"id": id})

    def remove_cron(self, id):
        return self._call("POST", "/api/v1/crons/{id}/remove", {"id": id})

    def run_cron(self, id):
        return self._call("POST", "/api/v1/crons/{id}/run", {"id": id})

    def cron_runs(self, id, *, before=None, limit=None):
        return self._call(
            "GET", "/api/v1/crons/{id}/runs", {"id": id}, _clean({"before": before, "limit": limit})
        )

    # ---- the cluster ----

    def list_nodes(self, *, state=None):
        return self._call("GET", "/api/v1/nodes", query=_clean(locals()))

    def drain_node(self, id):
        return self._call("POST", "/api/v1/nodes/{id}/drain", {"id": id})

    def undrain_node(self, id):
        return self._call("POST", "/api/v1/nodes/{id}/undrain", {"id": id})

    def delete_node(self, id):
        return self._call("POST", "/api/v1/nodes/{id}/delete", {"id": id})

    def list_instances(self, *, state=None):
        return self._call("GET", "/api/v1/instances", query=_clean(locals()))

    def list_pools(self):
        return self._call("GET", "/api/v1/pools")

    def apply_pools(self, *, text, file=None, dry_run=None, expect=None):
        return self._call("POST", "/api/v1/pools", body=_clean(locals()))

    def pool_details(self, *, name=None):
        return self._call("GET", "/api/v1/pools/detail", query=_clean(locals()))

    def list_offers(self):
        return self._call("GET", "/api/v1/offers")

    def list_shares(self):
        return self._call("GET", "/api/v1/shares")

    def list_quotas(self):
        return self._call("GET", "/api/v1/quotas")

    def list_budgets(self):
        return self._call("GET", "/api/v1/budgets")

    def list_racks(self):
        return self._call("GET", "/api/v1/racks")

    def summary(self):
        return self._call("GET", "/api/v1/summary")

    def audit(self):
        return self._call("POST", "/api/v1/audit")

    def cost(self, *, by=None, user=None, team=None, pool=None, from_=None, to=None):
        return self._call("GET", "/api/v1/cost", query=_clean(locals()))

    def cost_jobs(self, *, user=None, team=None, from_=None, to=None, limit=None):
        return self._call("GET", "/api/v1/cost/jobs", query=_clean(locals()))

    def send_report(self, *, subject, text, mail=None, url=None, html=None):
        return self._call("POST", "/api/v1/cost/report", body=_clean(locals()))

    def use(self, *, pool=None, from_=None, to=None, step_ms=None):
        return self._call("GET", "/api/v1/use", query=_clean(locals()))

    def forgotten(self, *, for_ms=None, user=None, volumes=None):
        return self._call("GET", "/api/v1/forgotten", query=_clean(locals()))

    def advice(self, *, user=None, after=None, limit=None):
        return self._call("GET", "/api/v1/advice", query=_clean(locals()))

    def events(self, *, after=None, wait_ms=None):
        return self._call("GET", "/api/v1/events", query=_clean(locals()))

    def create_token(self, *, kind, user=None, admin=None, pool=None, ttl_ms=None):
        return self._call("POST", "/api/v1/tokens", body=_clean(locals()))

    def list_tokens(self):
        return self._call("GET", "/api/v1/tokens")

    def revoke_token(self, id):
        return self._call("POST", "/api/v1/tokens/{id}/revoke", {"id": id})

    def version(self):
        return self._call("GET", "/api/v1/version")

    def openapi(self):
        return self._call("GET", "/api/v1/openapi.json")

    def metrics(self):
        return self._raw("GET", "/metrics")[1].decode()

    def health(self):
        return self._raw("GET", "/healthz")[1].decode()

    # ---- more than a call ----

    def jobs(self, **filters):
        """All jobs of list_jobs with these filters, page after page."""
        filters.setdefault("limit", 200)
        while True:
            page = self.list_jobs(**filters)
            yield from page["jobs"]
            if page["next"] is None:
                return
            filters["before"] = page["next"]

    def _patiently(self, call, until):
        """A call that may wait while belayd is restarted."""
        while True:
            try:
                return call()
            except Unavailable:
                if time.monotonic() > until:
                    raise
                time.sleep(1)

    def wait(self, id, timeout_s=None, restart_s=60):
        """The job when it has ended: JOB of docs/reference/api.md. TimeoutError when it has not by then. belayd may be away for restart_s."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        after = 0
        while True:
            left_ms = WAIT_MS if end is None else min(WAIT_MS, int(1000 * (end - time.monotonic())))
            page = self._patiently(
                lambda: self.job_events(id, after=after, wait_ms=max(left_ms, 0)),
                time.monotonic() + restart_s,
            )
            after = page["last"]
            if page["state"] == "ended" and not page["events"]:
                return self.show_job(id)["job"]
            if left_ms <= 0:
                raise TimeoutError("job %d has not ended" % id)

    def expects(self, id):
        """How a job with finish_by is expected to go on: why, done_at (in half of the cases), late_at (in 95 of 100) and cost_uusd as in docs/reference/api.md, the
        times and finish_by as datetimes, None while they are not known; and makes_it, whether it is done by finish_by in 95 of 100 (None: not known).
        None for a job that has ended, or need not be done by any time."""
        shown = self.show_job(id)
        if shown["expects"] is None:
            return None
        found = {**shown["expects"], "finish_by": shown["job"]["finish_by"]}
        for name in ("done_at", "late_at", "finish_by"):
            found[name] = found[name] and datetime.datetime.fromisoformat(
                found[name].replace("Z", "+00:00")
            )
        return {**found, "makes_it": found["late_at"] and found["late_at"] <= found["finish_by"]}

    def run_in(self, id, command, rank=0, input=b""):
        """Runs a command inside a running job, without a terminal: its exit code, standard output and standard error, as bytes."""
        session = self.exec(id, command=command, rank=rank)["id"]
        frames = [
            bytes([5]) + struct.pack(">I", len(piece)) + piece
            for piece in (input[at : at + 32768] for at in range(0, len(input), 32768))
        ] + [bytes([6, 0, 0, 0, 0])]
        out, err, data, sent, read, ended = [], [], b"", 0, 0, False
        try:
            while True:
                if frames:  # in turn, so that neither side waits for the other for long
                    sent = self.channel_input(session, frames.pop(0), offset=sent)["size"]
                piece, ended = self.channel_output(
                    session, offset=read, wait_ms=0 if frames else WAIT_MS
                )
                read += len(piece)
                data += piece
                while len(data) >= 5 and len(data) >= 5 + struct.unpack(">I", data[1:5])[0]:
                    kind, n = data[0], struct.unpack(">I", data[1:5])[0]
                    content, data = data[5 : 5 + n], data[5 + n :]
                    if kind == 3:
                        return content[0], b"".join(out), b"".join(err)
                    if kind == 4:
                        raise Error(0, "io", content.decode(errors="replace"))
                    (out if kind == 1 else err).append(content)
                if ended:
                    raise Error(0, "io", "the session broke off")
        finally:
            with contextlib.suppress(Error):
                self.close_channel(session)

    def send_workdir(self, directory):
        """Sends all that is in it but .git; the answer is for launch={"workdir": ...} of submit. Links stay links."""
        lines, places = [], {}
        for path in sorted(_below(directory), key=os.fsencode):
            whole = os.path.join(directory, path)
            mode = os.lstat(whole).st_mode
            if stat.S_ISLNK(mode):
                lines.append("l %s\t%s\n" % (path, os.readlink(whole)))
            elif stat.S_ISDIR(mode):
                lines.append("d %o %s\n" % (mode & 0o777, path))
            elif stat.S_ISREG(mode):
                hashes, size = [], 0
                with open(whole, "rb") as f:
                    while piece := f.read(WORKDIR_PIECE_BYTES):
                        hashes.append(hashlib.sha256(piece).hexdigest())
                        places.setdefault(hashes[-1], (whole, size))
                        size += len(piece)
                lines.append(
                    "f %o %d %s %s\n" % (mode & 0o777, size, ",".join(hashes) or "-", path)
                )
        text = "".join(["belay-workdir 1\n", *lines]).encode()
        answer, before = self.put_workdir(text), None
        while answer["missing"]:
            if answer["missing"] == before:
                raise Error(0, "io", "belayd does not keep what it is sent of %s" % directory)
            before, pack = answer["missing"], b""
            for piece_hash in before:
                with open(places[piece_hash][0], "rb") as f:
                    f.seek(places[piece_hash][1])
                    piece = f.read(WORKDIR_PIECE_BYTES)
                if pack and len(pack) + len(piece) + 128 > WORKDIR_PIECE_BYTES:
                    self.add_workdir_pieces(pack)
                    pack = b""
                pack += b"%s %d\n" % (piece_hash.encode(), len(piece)) + piece
            self.add_workdir_pieces(pack)
            answer = self.put_workdir(text)
        return answer["workdir"]

    def follow_log(self, id, restart_s=60, **part):
        """Pieces of its output as they come, until it has ended; part as for job_logs."""
        ended = False
        while not ended:
            data, offset, ended = self._patiently(
                lambda: self.job_logs(id, wait_ms=WAIT_MS, **part), time.monotonic() + restart_s
            )
            part = {**{k: v for k, v in part.items() if k in ("attempt", "rank")}, "offset": offset}
            if data:
                yield data

    def read_log(self, id, **part):
        """Its output by now; part as for job_logs."""
        pieces = []
        while True:
            data, offset, _ = self.job_logs(id, **part)
            if not data:
                return b"".join(pieces)
            pieces.append(data)
            part = {**{k: v for k, v in part.items() if k in ("attempt", "rank")}, "offset": offset}
