# SPDX-License-Identifier: Apache-2.0
"""belay's API for Python programs: standard library only.

    import belay_client

    client = belay_client.Client()              # finds belayd as the command `belay` does
    job = client.submit(script="#!/bin/sh\\necho hello\\n", cwd="/tmp", name="hello")["id"]
    ended = client.wait(job)
    print(ended["end"], client.read_log(job).decode())

Every call of the API is a method. Its name is the operationId in GET /api/v1/openapi.json, its
keyword arguments are the parameters and the members of the body, and it returns the JSON of the
reply unchanged (docs/reference/api.md). Some further methods combine several calls: jobs, wait,
expects, run_in, send_workdir, read_log, follow_log.

A Client may be used by one thread at a time. Each call opens its own connection.
"""

from __future__ import annotations

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

Json = dict[str, Any]  # a reply, as in docs/reference/api.md
T = TypeVar("T")

WORKDIR_PIECE_BYTES = 4 << 20  # part of a file of a working directory that has one hash
WAIT_MS = 20000  # wait time of one long poll


class Error(Exception):
    """An error reply of belayd. kind is stable (docs/reference/api.md), text is for people."""

    def __init__(self, status: int, kind: str, text: str) -> None:
        super().__init__(text)
        self.status, self.kind, self.text = status, kind, text


class Unavailable(Error):
    """belayd could not be reached, broke the connection, or asks to try again later. It is unknown
    whether a change was made."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("belayd", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def _read(path: str) -> str:
    with open(path) as f:
        text: str = f.read()
        return text


def _read_secret(path: str) -> str:
    """Refuses a file that others may read or change, as `belay` does."""
    with open(path) as f:
        if os.fstat(f.fileno()).st_mode & 0o077:
            raise PermissionError(
                "%s: others can read or change it; chmod 600 makes it yours" % path
            )
        text: str = f.read()
        return text


def _local_socket() -> str:
    """The socket of the user's own belayd (belayd.json in its home has the path), else of the
    machine's."""
    home = os.environ.get("BELAY_HOME") or os.path.expanduser("~/.local/share/belay")
    try:
        path: str = json.loads(_read(os.path.join(home, "belayd.json")))["socket"]
    except (OSError, ValueError, KeyError):
        path = os.path.join(home, "belayd.sock")
    system = "/run/belay/belayd.sock"
    return path if os.path.exists(path) or not os.path.exists(system) else system


def _clean(members: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that were given. An argument whose name is a keyword of Python ends in '_'."""
    return {
        name.rstrip("_"): value
        for name, value in members.items()
        if value is not None and name != "self"
    }


def _below(directory: str, path: str = "") -> Iterator[str]:
    """All entries below a directory, except .git."""
    for entry in os.scandir(os.path.join(directory, path)):
        if entry.name != ".git":
            below = os.path.join(path, entry.name)
            yield below
            if entry.is_dir(follow_symlinks=False):
                yield from _below(directory, below)


class Client:
    """A client of one belayd.

    Give either server="https://host:port" with the token and the file of the cluster's CA
    certificate, or the path of a UNIX socket, where the kernel identifies the user. The default is
    BELAY_SERVER with BELAY_TOKEN_FILE and BELAY_CA_FILE, else BELAY_SOCKET, else the socket in
    BELAY_HOME (~/.local/share/belay), else /run/belay/belayd.sock.
    """

    def __init__(
        self,
        server: str | None = None,
        token: str | None = None,
        ca_file: str | None = None,
        socket: str | None = None,
        timeout_s: float = 90,
    ) -> None:
        if not server and not socket and os.environ.get("BELAY_SERVER"):
            server = os.environ["BELAY_SERVER"]
            token = token or _read_secret(os.environ["BELAY_TOKEN_FILE"]).strip()
            ca_file = ca_file or os.environ["BELAY_CA_FILE"]
        if server and not (server.startswith("https://") and token and ca_file):
            raise ValueError("a server is https://HOST:PORT, and needs a token and a CA file")
        self.timeout_s = timeout_s
        self._server = urllib.parse.urlsplit(server) if server else None
        self._headers = {"Authorization": "Bearer %s" % token} if server else {}
        self._tls = ssl.create_default_context(cafile=ca_file) if server else None
        self._socket = socket or os.environ.get("BELAY_SOCKET") or _local_socket()

    @classmethod
    def inside(cls, timeout_s: float = 90) -> Client:
        """A client for a program that runs in a job. It uses the token of the job's attempt, which
        permits only update(int(os.environ["BELAY_JOB_ID"]), url=...)."""
        given = json.loads(_read(os.environ["BELAY_JOB_FILE"]))
        client = cls(socket="not used", timeout_s=timeout_s)
        client._server = urllib.parse.urlsplit(given["server"])
        client._headers = {"Authorization": "Bearer %s" % given["token"]}
        client._tls = ssl.create_default_context(cadata=given["ca"])
        return client

    # ---- one call ----

    def _connect(self) -> http.client.HTTPConnection:
        if self._server:
            return http.client.HTTPSConnection(
                self._server.hostname or "",
                self._server.port,
                timeout=self.timeout_s,
                context=self._tls,
            )
        return _UnixConnection(self._socket, self.timeout_s)

    def _exchange(
        self, method: str, target: str, body: Any
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Returns status, headers and body of the reply."""
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

    def _raw(
        self,
        method: str,
        path: str,
        ids: Mapping[str, int] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any | None = None,
    ) -> tuple[http.client.HTTPMessage, bytes]:
        """path is as in the OpenAPI document, with {id}. A list in the query is joined with commas,
        or becomes a repeated parameter if its items may contain commas."""
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

    def _call(
        self,
        method: str,
        path: str,
        ids: Mapping[str, int] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any | None = None,
    ) -> Json:
        answer: Json = json.loads(self._raw(method, path, ids, query, body)[1])
        return answer

    # ---- jobs ----

    def submit(
        self,
        *,
        script: str,
        cwd: str,
        name: str | None = None,
        args: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        nodes: int | None = None,
        nodes_min: int | None = None,
        on_loss: Literal["shrink", "wait"] | None = None,
        script_on: Literal["each", "first"] | None = None,
        cpus: int | None = None,
        memory_mib: int | None = None,
        gpus: int | None = None,
        gpu_model: str | None = None,
        gpu_memory_mib: int | None = None,
        constraint: str | None = None,
        resources: Mapping[str, int] | None = None,
        licences: Mapping[str, int] | None = None,
        exclusive: bool | None = None,
        nodelist: str | None = None,
        exclude: str | None = None,
        input: Mapping[str, Any] | None = None,
        pool: str | None = None,
        market: Literal["any", "spot", "on-demand"] | None = None,
        time_limit_ms: int | None = None,
        checkpoint: Mapping[str, Any] | None = None,
        array: str | None = None,
        retries: int | None = None,
        retry: Mapping[str, Any] | None = None,
        requeue: bool | None = None,
        drill: bool | None = None,
        team: str | None = None,
        qos: str | None = None,
        nice: int | None = None,
        hold: bool | None = None,
        begin_at_ms: int | None = None,
        deadline_at_ms: int | None = None,
        finish_by_ms: int | None = None,
        finish_in_ms: int | None = None,
        finish_at: str | None = None,
        work_ms: int | None = None,
        max_uusd: int | None = None,
        max_uusd_per_hour: int | None = None,
        kill_on_invalid_dep: bool | None = None,
        window: str | None = None,
        depends_any: bool | None = None,
        depends: Sequence[Mapping[str, Any]] | None = None,
        launch: Mapping[str, Any] | None = None,
        notify: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        url: str | None = None,
        why: int | None = None,
    ) -> Json:
        """Submits a job; the reply has its number as "id". None: the default. Durations are in ms,
        times in ms since 1970, money in micro-dollars, memory in MiB (docs/reference/api.md).

        Args:
            script: script text; begins with #!
            cwd: working directory, absolute
            name: the job's name
            args: arguments of the script
            env: environment of the job: names and values
            nodes: the number of nodes, which start the job together (default 1); with nodes_min,
                the maximum
            nodes_min: the least number of nodes that it starts on (default: nodes)
            on_loss: when one of several nodes is lost, continue on the others or wait for another
                (default shrink)
            script_on: start the script on each of several nodes (default), or only on the first,
                where srun starts tasks on all
            cpus: CPUs on each node (default 1)
            memory_mib: memory on each node (default 0)
            gpus: GPUs on each node (default 0)
            gpu_model: model of the GPUs: a100, rtx-4090
            gpu_memory_mib: the least memory of each GPU
            constraint: only nodes that have these features: a100&(ib|roce)
            resources: named resources on each node, and slices of GPUs: names and numbers
            licences: licences of the cluster that the job holds while it runs: names and numbers
            exclusive: no other job runs on its nodes, and it gets all of their resources; cpus,
                memory and GPUs are minimums
            nodelist: only these nodes: n[1-3,7]
            exclude: not on these nodes
            input: data that the program reads, whose transfer to an offer is part of that offer's
                price: bytes and place
            pool: the pool to run in, or several: whichever can start it first (default: any)
            market: the capacity that may be used (default any)
            time_limit_ms: time limit of one attempt; 0: none
            checkpoint: method, every_ms, at, keep, keep_every and after (docs/reference/api.md)
            array: a job with a task for each index: 0-99, 1,3,7 or 0-20:5; %10: at most ten at once
            retries: how often a failed program is started again
            retry: how often the job is queued again after each kind of end: a number, or null for
                unlimited
            requeue: queue the job again after a lost node, a reclaim, an eviction or a drain,
                whatever belayd's configuration says
            drill: after the job has saved or made progress: save, kill and resume it, and certify
                that it continues
            team: the team whose share and quota the job uses
            qos: the job's class (QOS): one that belayd's configuration defines
            nice: lower the job's priority: order it as if submitted this many minutes later
            hold: do not start the job before it is released
            begin_at_ms: do not start before this time
            deadline_at_ms: end the job if it is still pending and, by its time limit, can no longer
                end by this time
            finish_by_ms: finish by this time at the least cost: on spot while there is time, else
                on-demand
            finish_in_ms: finish_by_ms as milliseconds after the submit; for a cron entry, after
                each submit
            finish_at: finish_by_ms as the next time of day after the submit, in UTC; for a cron
                entry, after each submit, in its zone
            work_ms: how long the job runs without interruptions (default: its time limit)
            max_uusd: the most that the job may cost in all: before it exceeds that, it is saved and
                parked until the limit is raised
            max_uusd_per_hour: only nodes that together cost no more than this an hour; if there are
                none, wait for a lower price
            kill_on_invalid_dep: end the job when a dependency can never be met (default), or let it
                wait
            window: run only in this window of belayd's configuration; the job is saved and parked
                when it closes
            depends_any: whether one of the dependencies is enough
            depends: the jobs that the job waits for: a list of kind, job, task, delay_ms
            launch: output, error, input, open_mode, signal, image, workdir
            notify: who is notified of the job's changes: mail_types, mail_user, urls
            labels: names and values, for bills
            url: the page of the job's experiment in MLflow, W&B or TensorBoard, shown with the job
            why: whether the reply has the reasons why the job does not start at once
        """
        spec = _clean(locals())
        spec.pop("why", None)
        return self._call(
            "POST", "/api/v1/jobs", query={} if why is None else {"why": why}, body=spec
        )

    def estimate(
        self,
        *,
        script: str,
        cwd: str,
        name: str | None = None,
        args: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        nodes: int | None = None,
        nodes_min: int | None = None,
        on_loss: Literal["shrink", "wait"] | None = None,
        script_on: Literal["each", "first"] | None = None,
        cpus: int | None = None,
        memory_mib: int | None = None,
        gpus: int | None = None,
        gpu_model: str | None = None,
        gpu_memory_mib: int | None = None,
        constraint: str | None = None,
        resources: Mapping[str, int] | None = None,
        licences: Mapping[str, int] | None = None,
        exclusive: bool | None = None,
        nodelist: str | None = None,
        exclude: str | None = None,
        input: Mapping[str, Any] | None = None,
        pool: str | None = None,
        market: Literal["any", "spot", "on-demand"] | None = None,
        time_limit_ms: int | None = None,
        checkpoint: Mapping[str, Any] | None = None,
        array: str | None = None,
        retries: int | None = None,
        retry: Mapping[str, Any] | None = None,
        requeue: bool | None = None,
        drill: bool | None = None,
        team: str | None = None,
        qos: str | None = None,
        nice: int | None = None,
        hold: bool | None = None,
        begin_at_ms: int | None = None,
        deadline_at_ms: int | None = None,
        finish_by_ms: int | None = None,
        finish_in_ms: int | None = None,
        finish_at: str | None = None,
        work_ms: int | None = None,
        max_uusd: int | None = None,
        max_uusd_per_hour: int | None = None,
        kill_on_invalid_dep: bool | None = None,
        window: str | None = None,
        depends_any: bool | None = None,
        depends: Sequence[Mapping[str, Any]] | None = None,
        launch: Mapping[str, Any] | None = None,
        notify: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        url: str | None = None,
    ) -> Json:
        """Estimates when and where the job would start and what it would cost, without submitting
        it. The arguments are those of submit."""
        return self._call("POST", "/api/v1/jobs/estimate", body=_clean(locals()))

    def list_jobs(
        self,
        *,
        state: Sequence[
            Literal[
                "active",
                "all",
                "pending",
                "running",
                "cancelling",
                "unfolded",
                "ended",
                "succeeded",
                "failed",
                "user",
                "timeout",
                "reclaimed",
                "node-lost",
                "capacity",
                "evicted",
                "budget",
                "window",
                "drained",
                "gang",
                "checkpointed",
                "store",
                "store-away",
                "drilled",
                "dependency",
                "deadline",
            ]
        ]
        | None = None,
        user: Sequence[str] | None = None,
        team: Sequence[str] | None = None,
        pool: Sequence[str] | None = None,
        name: Sequence[str] | None = None,
        label: Sequence[str] | None = None,
        since: str | list[str] | None = None,
        until: str | list[str] | None = None,
        sort: str | list[str] | None = None,
        array: int | None = None,
        index: int | None = None,
        before: int | None = None,
        limit: int | None = None,
        why: int | None = None,
    ) -> Json:
        return self._call("GET", "/api/v1/jobs", query=_clean(locals()))

    def show_job(self, id: int) -> Json:
        return self._call("GET", "/api/v1/jobs/{id}", {"id": id})

    def why(self, id: int, *, brief: int | None = None) -> Json:
        return self._call(
            "GET", "/api/v1/jobs/{id}/why", {"id": id}, {} if brief is None else {"brief": brief}
        )

    def diagnose(self, id: int, *, over_ms: int | None = None) -> Json:
        return self._call(
            "GET", "/api/v1/jobs/{id}/diagnose", {"id": id}, _clean({"over_ms": over_ms})
        )

    def job_events(
        self,
        id: int,
        *,
        after: int | None = None,
        tail: int | None = None,
        wait_ms: int | None = None,
    ) -> Json:
        return self._call(
            "GET",
            "/api/v1/jobs/{id}/events",
            {"id": id},
            _clean({"after": after, "tail": tail, "wait_ms": wait_ms}),
        )

    def job_logs(
        self,
        id: int,
        *,
        offset: int | None = None,
        since: str | list[str] | None = None,
        tail: int | None = None,
        attempt: int | None = None,
        rank: int | None = None,
        wait_ms: int | None = None,
        max: int | None = None,
    ) -> tuple[bytes, int, bool]:
        """Returns bytes of the output, the offset of the next byte, and whether the output is
        complete. For a job of another user only administrators may read it; others get an Error
        with kind "denied"."""
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

    def cancel(self, id: int, *, tasks: str | None = None) -> Json:
        return self._call(
            "POST", "/api/v1/jobs/{id}/cancel", {"id": id}, body=_clean({"tasks": tasks}) or None
        )

    def cancel_many(self, jobs: Iterable[int | str]) -> Json:
        """jobs: numbers, and ranges of numbers as text ("10-20")."""
        return self._call("POST", "/api/v1/jobs/cancel", body={"jobs": [str(job) for job in jobs]})

    def reclaim(self, id: int) -> Json:
        return self._call("POST", "/api/v1/jobs/{id}/reclaim", {"id": id})

    def requeue(
        self, id: int, *, from_scratch: bool | None = None, force: bool | None = None
    ) -> Json:
        return self._call(
            "POST",
            "/api/v1/jobs/{id}/requeue",
            {"id": id},
            body=_clean({"from_scratch": from_scratch, "force": force}) or None,
        )

    def update(
        self,
        id: int,
        *,
        tasks: str | None = None,
        at_once: int | None = None,
        name: str | None = None,
        time_limit_ms: int | None = None,
        retries: int | None = None,
        retry: Mapping[str, Any] | None = None,
        requeue: bool | None = None,
        nice: int | None = None,
        pool: str | None = None,
        market: Literal["any", "spot", "on-demand"] | None = None,
        team: str | None = None,
        qos: str | None = None,
        begin_at_ms: int | None = None,
        window: str | None = None,
        depends_any: bool | None = None,
        depends: Sequence[Mapping[str, Any]] | None = None,
        cpus: int | None = None,
        memory_mib: int | None = None,
        gpus: int | None = None,
        nodes: int | None = None,
        nodes_min: int | None = None,
        script_on: Literal["each", "first"] | None = None,
        on_loss: Literal["shrink", "wait"] | None = None,
        gpu_model: str | None = None,
        gpu_memory_mib: int | None = None,
        constraint: str | None = None,
        resources: Mapping[str, int] | None = None,
        licences: Mapping[str, int] | None = None,
        exclusive: bool | None = None,
        nodelist: str | None = None,
        exclude: str | None = None,
        input: Mapping[str, Any] | None = None,
        deadline_at_ms: int | None = None,
        finish_by_ms: int | None = None,
        finish_in_ms: int | None = None,
        work_ms: int | None = None,
        max_uusd: int | None = None,
        max_uusd_per_hour: int | None = None,
        url: str | None = None,
    ) -> Json:
        """Changes options of a pending job, or some of a running one: all or none. None: unchanged.
        Units are those of submit (docs/reference/api.md).

        Args:
            tasks: for an array: only these tasks, which must have started: 3,5-7
            at_once: the most tasks of an array that run at once
            name: the job's name
            time_limit_ms: time limit of one attempt; 0: none
            retries: how often a failed program is started again
            retry: how often the job is queued again after each kind of end: a number, or null for
                unlimited
            requeue: queue the job again after a lost node, a reclaim, an eviction or a drain,
                whatever belayd's configuration says
            nice: lower the job's priority: order it as if submitted this many minutes later
            pool: the pool to run in, or several: whichever can start it first (default: any)
            market: the capacity that may be used (default any)
            team: the team whose share and quota the job uses
            qos: the job's class (QOS): one that belayd's configuration defines
            begin_at_ms: do not start before this time
            window: run only in this window of belayd's configuration; the job is saved and parked
                when it closes
            depends_any: whether one of the dependencies is enough
            depends: the jobs that the job waits for: a list of kind, job, task, delay_ms
            cpus: CPUs on each node (default 1)
            memory_mib: memory on each node (default 0)
            gpus: GPUs on each node (default 0)
            nodes: the number of nodes, which start the job together (default 1); with nodes_min,
                the maximum
            nodes_min: the least number of nodes that it starts on (default: nodes)
            script_on: start the script on each of several nodes (default), or only on the first,
                where srun starts tasks on all
            on_loss: when one of several nodes is lost, continue on the others or wait for another
                (default shrink)
            gpu_model: model of the GPUs: a100, rtx-4090
            gpu_memory_mib: the least memory of each GPU
            constraint: only nodes that have these features: a100&(ib|roce)
            resources: named resources on each node, and slices of GPUs: names and numbers
            licences: licences of the cluster that the job holds while it runs: names and numbers
            max_uusd: the most that the job may cost in all: before it exceeds that, it is saved and
                parked until the limit is raised
            max_uusd_per_hour: only nodes that together cost no more than this an hour; if there are
                none, wait for a lower price
            deadline_at_ms: end the job if it is still pending and, by its time limit, can no longer
                end by this time
            finish_by_ms: finish by this time at the least cost: on spot while there is time, else
                on-demand
            finish_in_ms: finish_by_ms as milliseconds from now
            work_ms: how long the job runs without interruptions (default: its time limit)
            nodelist: only these nodes: n[1-3,7]
            exclude: not on these nodes
            input: data that the program reads, whose transfer to an offer is part of that offer's
                price: bytes and place
            exclusive: no other job runs on its nodes, and it gets all of their resources; cpus,
                memory and GPUs are minimums
            url: the page of the job's experiment in MLflow, W&B or TensorBoard, shown with the job
        """
        members = _clean(locals())
        del members["id"]
        return self._call("POST", "/api/v1/jobs/{id}/update", {"id": id}, body=members)

    def hold(self, id: int) -> Json:
        return self._call("POST", "/api/v1/jobs/{id}/hold", {"id": id})

    def release(self, id: int, *, from_scratch: bool | None = None) -> Json:
        return self._call(
            "POST",
            "/api/v1/jobs/{id}/release",
            {"id": id},
            body=_clean({"from_scratch": from_scratch}) or None,
        )

    def save(self, id: int) -> Json:
        return self._call("POST", "/api/v1/jobs/{id}/save", {"id": id})

    def drill(self, id: int, *, without_notice: bool | None = None) -> Json:
        return self._call(
            "POST",
            "/api/v1/jobs/{id}/drill",
            {"id": id},
            body=_clean({"without_notice": without_notice}) or None,
        )

    def compared(
        self, id: int, *, number: int, with_: int, equal: bool, text: str | None = None
    ) -> Json:
        return self._call(
            "POST",
            "/api/v1/jobs/{id}/compared",
            {"id": id},
            body=_clean({"number": number, "with": with_, "equal": equal, "text": text}),
        )

    def list_drills(self, *, user: str | list[str] | None = None, limit: int | None = None) -> Json:
        return self._call("GET", "/api/v1/drills", query=_clean(locals()))

    # ---- sessions: frames in both directions, docs/reference/api.md ----

    def exec(
        self,
        id: int,
        *,
        command: Sequence[str] | None = None,
        signal: int | None = None,
        to: Literal["programs", "script", "all"] | None = None,
        rank: int | None = None,
        tty: bool | None = None,
        term: str | None = None,
        rows: int | None = None,
        columns: int | None = None,
    ) -> Json:
        members = _clean(locals())
        del members["id"]
        return self._call("POST", "/api/v1/jobs/{id}/exec", {"id": id}, body=members)

    def channel_output(
        self, id: int, *, offset: int | None = None, wait_ms: int | None = None
    ) -> tuple[bytes, bool]:
        """Returns bytes, and whether they are the last ones."""
        headers, data = self._raw(
            "GET",
            "/api/v1/channels/{id}/output",
            {"id": id},
            _clean({"offset": offset, "wait_ms": wait_ms}),
        )
        return data, headers.get("Belay-Channel-End") == "1"

    def channel_input(self, id: int, data: bytes, *, offset: int | None = None) -> Json:
        answer: Json = json.loads(
            self._raw(
                "POST", "/api/v1/channels/{id}/input", {"id": id}, _clean({"offset": offset}), data
            )[1]
        )
        return answer

    def close_channel(self, id: int) -> Json:
        return self._call("POST", "/api/v1/channels/{id}/close", {"id": id})

    # ---- working directories ----

    def put_workdir(self, data: bytes) -> Json:
        answer: Json = json.loads(self._raw("POST", "/api/v1/workdirs", body=data)[1])
        return answer

    def add_workdir_pieces(self, data: bytes) -> Json:
        answer: Json = json.loads(self._raw("POST", "/api/v1/workdirs/pieces", body=data)[1])
        return answer

    # ---- cron ----

    def add_cron(
        self,
        *,
        name: str,
        schedule: str,
        job: Mapping[str, Any],
        zone: str | None = None,
        gap: Literal["run", "skip"] | None = None,
        twice: Literal["auto", "first", "last", "both"] | None = None,
        overlap: Literal["skip", "queue", "replace"] | None = None,
        catch_up: Literal["none", "last", "all"] | None = None,
        catch_up_max: int | None = None,
    ) -> Json:
        return self._call("POST", "/api/v1/crons", body=_clean(locals()))

    def list_crons(self, *, user: str | list[str] | None = None) -> Json:
        return self._call("GET", "/api/v1/crons", query=_clean(locals()))

    def show_cron(self, id: int) -> Json:
        return self._call("GET", "/api/v1/crons/{id}", {"id": id})

    def edit_cron(
        self,
        id: int,
        *,
        name: str | None = None,
        schedule: str | None = None,
        zone: str | None = None,
        gap: Literal["run", "skip"] | None = None,
        twice: Literal["auto", "first", "last", "both"] | None = None,
        overlap: Literal["skip", "queue", "replace"] | None = None,
        catch_up: Literal["none", "last", "all"] | None = None,
        catch_up_max: int | None = None,
        job: Mapping[str, Any] | None = None,
    ) -> Json:
        members = _clean(locals())
        del members["id"]
        return self._call("POST", "/api/v1/crons/{id}", {"id": id}, body=members)

    def pause_cron(self, id: int) -> Json:
        return self._call("POST", "/api/v1/crons/{id}/pause", {"id": id})

    def resume_cron(self, id: int) -> Json:
        return self._call("POST", "/api/v1/crons/{id}/resume", {"id": id})

    def remove_cron(self, id: int) -> Json:
        return self._call("POST", "/api/v1/crons/{id}/remove", {"id": id})

    def run_cron(self, id: int) -> Json:
        return self._call("POST", "/api/v1/crons/{id}/run", {"id": id})

    def cron_runs(self, id: int, *, before: int | None = None, limit: int | None = None) -> Json:
        return self._call(
            "GET", "/api/v1/crons/{id}/runs", {"id": id}, _clean({"before": before, "limit": limit})
        )

    # ---- the cluster ----

    def list_nodes(self, *, state: str | list[str] | None = None) -> Json:
        return self._call("GET", "/api/v1/nodes", query=_clean(locals()))

    def drain_node(self, id: int) -> Json:
        return self._call("POST", "/api/v1/nodes/{id}/drain", {"id": id})

    def undrain_node(self, id: int) -> Json:
        return self._call("POST", "/api/v1/nodes/{id}/undrain", {"id": id})

    def delete_node(self, id: int) -> Json:
        return self._call("POST", "/api/v1/nodes/{id}/delete", {"id": id})

    def list_instances(self, *, state: str | list[str] | None = None) -> Json:
        return self._call("GET", "/api/v1/instances", query=_clean(locals()))

    def list_pools(self) -> Json:
        return self._call("GET", "/api/v1/pools")

    def apply_pools(
        self,
        *,
        text: str,
        file: str | None = None,
        dry_run: bool | None = None,
        expect: str | None = None,
    ) -> Json:
        return self._call("POST", "/api/v1/pools", body=_clean(locals()))

    def pool_details(self, *, name: str | list[str] | None = None) -> Json:
        return self._call("GET", "/api/v1/pools/detail", query=_clean(locals()))

    def list_offers(self) -> Json:
        return self._call("GET", "/api/v1/offers")

    def list_shares(self) -> Json:
        return self._call("GET", "/api/v1/shares")

    def list_quotas(self) -> Json:
        return self._call("GET", "/api/v1/quotas")

    def list_budgets(self) -> Json:
        return self._call("GET", "/api/v1/budgets")

    def list_racks(self) -> Json:
        return self._call("GET", "/api/v1/racks")

    def summary(self) -> Json:
        return self._call("GET", "/api/v1/summary")

    def audit(self) -> Json:
        return self._call("POST", "/api/v1/audit")

    def cost(
        self,
        *,
        by: str | list[str] | None = None,
        user: str | list[str] | None = None,
        team: str | list[str] | None = None,
        pool: str | list[str] | None = None,
        from_: str | list[str] | None = None,
        to: str | list[str] | None = None,
    ) -> Json:
        return self._call("GET", "/api/v1/cost", query=_clean(locals()))

    def cost_jobs(
        self,
        *,
        user: str | list[str] | None = None,
        team: str | list[str] | None = None,
        from_: str | list[str] | None = None,
        to: str | list[str] | None = None,
        limit: int | None = None,
    ) -> Json:
        return self._call("GET", "/api/v1/cost/jobs", query=_clean(locals()))

    def send_report(
        self,
        *,
        subject: str,
        text: str,
        mail: str | None = None,
        url: str | None = None,
        html: str | None = None,
    ) -> Json:
        return self._call("POST", "/api/v1/cost/report", body=_clean(locals()))

    def use(
        self,
        *,
        pool: str | list[str] | None = None,
        from_: str | list[str] | None = None,
        to: str | list[str] | None = None,
        step_ms: int | None = None,
    ) -> Json:
        return self._call("GET", "/api/v1/use", query=_clean(locals()))

    def forgotten(
        self,
        *,
        for_ms: int | None = None,
        user: str | list[str] | None = None,
        volumes: str | list[str] | None = None,
    ) -> Json:
        return self._call("GET", "/api/v1/forgotten", query=_clean(locals()))

    def advice(
        self,
        *,
        user: str | list[str] | None = None,
        after: int | None = None,
        limit: int | None = None,
    ) -> Json:
        return self._call("GET", "/api/v1/advice", query=_clean(locals()))

    def events(self, *, after: int | None = None, wait_ms: int | None = None) -> Json:
        return self._call("GET", "/api/v1/events", query=_clean(locals()))

    def create_token(
        self,
        *,
        kind: Literal["api", "join"],
        user: str | None = None,
        admin: bool | None = None,
        pool: str | None = None,
        ttl_ms: int | None = None,
    ) -> Json:
        return self._call("POST", "/api/v1/tokens", body=_clean(locals()))

    def list_tokens(self) -> Json:
        return self._call("GET", "/api/v1/tokens")

    def revoke_token(self, id: int) -> Json:
        return self._call("POST", "/api/v1/tokens/{id}/revoke", {"id": id})

    def version(self) -> Json:
        return self._call("GET", "/api/v1/version")

    def openapi(self) -> Json:
        return self._call("GET", "/api/v1/openapi.json")

    def metrics(self) -> str:
        return self._raw("GET", "/metrics")[1].decode()

    def health(self) -> str:
        return self._raw("GET", "/healthz")[1].decode()

    # ---- methods that combine calls ----

    def jobs(self, **filters: Any) -> Iterator[Json]:
        """All jobs that match these filters of list_jobs, read page by page."""
        filters.setdefault("limit", 200)
        while True:
            page = self.list_jobs(**filters)
            yield from page["jobs"]
            if page["next"] is None:
                return
            filters["before"] = page["next"]

    def _patiently(self, call: Callable[[], T], until: float) -> T:
        """Repeats a call while belayd is unavailable, until that time."""
        while True:
            try:
                return call()
            except Unavailable:
                if time.monotonic() > until:
                    raise
                time.sleep(1)

    def wait(self, id: int, timeout_s: float | None = None, restart_s: float = 60) -> Json:
        """Waits for the end of a job and returns it (JOB in docs/reference/api.md). TimeoutError
        after timeout_s. belayd may be unavailable for restart_s."""
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
                job: Json = self.show_job(id)["job"]
                return job
            if left_ms <= 0:
                raise TimeoutError("job %d has not ended" % id)

    def expects(self, id: int) -> Json | None:
        """The forecast for a job with finish_by; None for other jobs and after the end.

        It has why, done_at (median), late_at (95th percentile) and cost_uusd as in
        docs/reference/api.md, and finish_by. Times are datetimes, None if unknown. makes_it says
        whether late_at is not after finish_by (None: unknown)."""
        shown = self.show_job(id)
        if shown["expects"] is None:
            return None
        found = {**shown["expects"], "finish_by": shown["job"]["finish_by"]}
        for name in ("done_at", "late_at", "finish_by"):
            found[name] = found[name] and datetime.datetime.fromisoformat(
                found[name].replace("Z", "+00:00")
            )
        return {**found, "makes_it": found["late_at"] and found["late_at"] <= found["finish_by"]}

    def run_in(
        self, id: int, command: Sequence[str], rank: int = 0, input: bytes = b""
    ) -> tuple[int, bytes, bytes]:
        """Runs a command inside a running job, without a terminal. Returns its exit code, standard
        output and standard error (bytes)."""
        session = self.exec(id, command=command, rank=rank)["id"]
        frames = [
            bytes([5]) + struct.pack(">I", len(piece)) + piece
            for piece in (input[at : at + 32768] for at in range(0, len(input), 32768))
        ] + [bytes([6, 0, 0, 0, 0])]
        out: list[bytes] = []
        err: list[bytes] = []
        data, sent, read, ended = b"", 0, 0, False
        try:
            while True:
                if frames:  # alternate input and output, so that neither side waits for long
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

    def send_workdir(self, directory: str) -> str:
        """Sends the contents of a directory, except .git, and returns the value for
        launch={"workdir": ...} of submit. Symbolic links are sent as links."""
        lines: list[str] = []
        places: dict[str, tuple[str, int]] = {}
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
                raise Error(0, "io", "belayd did not store the content of %s" % directory)
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
        workdir: str = answer["workdir"]
        return workdir

    def follow_log(self, id: int, restart_s: float = 60, **part: Any) -> Iterator[bytes]:
        """Pieces of a job's output as they arrive, until the job has ended. part is as for
        job_logs."""
        ended = False
        while not ended:
            data, offset, ended = self._patiently(
                lambda: self.job_logs(id, wait_ms=WAIT_MS, **part), time.monotonic() + restart_s
            )
            part = {**{k: v for k, v in part.items() if k in ("attempt", "rank")}, "offset": offset}
            if data:
                yield data

    def read_log(self, id: int, **part: Any) -> bytes:
        """The current output of a job. part is as for job_logs."""
        pieces: list[bytes] = []
        while True:
            data, offset, _ = self.job_logs(id, **part)
            if not data:
                return b"".join(pieces)
            pieces.append(data)
            part = {**{k: v for k, v in part.items() if k in ("attempt", "rank")}, "offset": offset}
