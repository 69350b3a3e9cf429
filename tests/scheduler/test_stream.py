# SPDX-License-Identifier: Apache-2.0
"""GET /api/v1/stream of a real belayd: what a commit changed comes after it and once, over restarts
too; each viewer gets what they may see; and nobody who reads slowly or opens many streams is in the
way of others.
"""

import contextlib
import json
import os
import queue
import socket
import sys
import threading
import time
import unittest

from belayd import BUILD, CONFIG, JOB, WAIT_S, Belayd, Node

sys.path.insert(0, os.path.join(BUILD, "clients", "python"))
import belay.client  # noqa: E402

PEOPLE = """visibility: owner
teams:
  red: {users: [ann, ben]}
  blue: {users: [cho]}
"""


class Stream:
    """A connection that reads a stream on a thread."""

    def __init__(self, d, query="", last=None, token=None, cookie=None):
        self.c = d.connect(tls=token is not None or cookie is not None)
        headers = {"Last-Event-ID": last} if last else {}
        if token:
            headers["Authorization"] = "Bearer " + token
        if cookie:
            headers["Cookie"] = cookie
        self.c.request("GET", "/api/v1/stream" + query, None, headers)
        self.reply = self.c.getresponse()
        self.status, self.headers = self.reply.status, self.reply.headers
        self.last, self.events, self.raw = last, queue.Queue(), []
        if self.status == 200:
            self.thread = threading.Thread(target=self.read, daemon=True)
            self.thread.start()
        else:
            self.error = json.loads(self.reply.read())["error"]

    def read(self):
        kind, data = None, None
        with contextlib.suppress(OSError, ValueError):
            while True:
                line = self.reply.readline()
                if not line:
                    break
                self.raw.append(line)
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    data = json.loads(value)
                elif name == "id":
                    self.last = value
                elif line == b"\n" and kind:
                    self.events.put((kind, data, self.last))
                    kind = data = None
        self.events.put((None, None, self.last))

    def next(self):
        return self.events.get(timeout=WAIT_S)

    def until(self, found):
        """The events up to the first for which found(kind, data) is true, which is the last."""
        events = []
        while True:
            events.append(self.next())
            kind, data, _ = events[-1]
            if kind is None:
                raise AssertionError("the stream ended: %s" % events)
            if found(kind, data):
                return events

    def rest(self):
        events = []
        while not events or events[-1][0] is not None:
            events.append(self.next())
        return events[:-1]

    def close(self):
        # the thread's read ends, and only then may the file be closed
        with contextlib.suppress(OSError, AttributeError):
            self.c.sock.shutdown(socket.SHUT_RDWR)
        if self.status == 200:
            self.thread.join(WAIT_S)
        self.c.close()


def is_state(job, state):
    return lambda kind, data: kind == "job" and data["id"] == job and data["state"] == state


def is_event(job, kind_of):
    return lambda kind, data: kind == "event" and data["job"] == job and data["kind"] == kind_of


class Streams(unittest.TestCase):
    def belayd(self, more=""):
        d = Belayd(CONFIG + more)
        d.__enter__()
        self.addCleanup(lambda: d.__exit__(None, None, None))
        return d

    def open(self, d, query="", last=None, token=None, cookie=None):
        s = Stream(d, query, last, token, cookie)
        self.addCleanup(s.close)
        if s.status == 200:
            first = s.until(lambda kind, data: kind == "ready")
            s.replayed, s.ready = first[:-1], first[-1][1]
        return s

    # ---- what comes ----

    def test_a_job_from_its_submit_over_a_requeue_to_its_end(self):
        d = self.belayd()
        node = Node(d)
        s = self.open(d)
        self.assertEqual(s.headers["Content-Type"], "text/event-stream")
        self.assertEqual(s.headers["Cache-Control"], "no-store")
        self.assertEqual(s.ready, {"resumed": False})
        job = d.submit(name="first", requeue=True)
        found = s.until(is_state(job, "pending"))[-1][1]
        self.assertEqual((found["name"], found["ref"], found["hidden"]), ("first", str(job), False))
        node.begin(job)
        s.until(is_state(job, "running"))
        self.assertEqual(d.call("POST", "/api/v1/jobs/%d/requeue" % job)[0], 200)
        s.until(lambda kind, data: kind == "event" and data["job"] == job)
        self.assertEqual(d.call("POST", "/api/v1/jobs/%d/cancel" % job)[0], 200)
        desired, end = node.sync(), time.monotonic() + WAIT_S
        while desired.get("attempts") and time.monotonic() < end:
            node.attempts = [
                {"job": job, "attempt": a["attempt"], "phase": "ended", "end": "killed"}
                for a in desired["attempts"]
            ]
            desired = node.sync()
        self.assertEqual(s.until(is_state(job, "ended"))[-1][1]["end"], "cancelled")

    def test_events_are_those_of_the_history_in_order(self):
        d = self.belayd()
        s = self.open(d, "?types=event")
        jobs = [d.submit(name="j%d" % i) for i in range(20)]
        for job in jobs:
            d.call("POST", "/api/v1/jobs/%d/cancel" % job)
        events = s.until(is_event(jobs[-1], "ended"))
        history = d.call("GET", "/api/v1/events?after=0")[1]["events"]
        self.assertEqual([e for _, e, _ in events], history[: len(events)])
        self.assertEqual([i for _, _, i in events], ["0-%d" % e["id"] for _, e, _ in events])

    def test_nodes_crons_and_the_summary(self):
        d = self.belayd()
        s = self.open(d, "?types=node,cron,summary")
        node = Node(d)
        found = s.until(lambda kind, data: kind == "node" and data["state"] == "up")[-1][1]
        self.assertEqual((found["id"], found["pool"], found["drain"]), (node.number, "base", False))
        summary = s.until(lambda kind, data: kind == "summary" and data["nodes"]["up"] == 1)[-1][1]
        shown = d.call("GET", "/api/v1/summary")[1]
        self.assertEqual(set(summary), set(shown) - {"pools"})
        spec = {"name": "nightly", "schedule": "30 2 * * *", "job": JOB}
        entry = d.call("POST", "/api/v1/crons", spec)[1]["id"]
        found = s.until(lambda kind, data: kind == "cron")[-1][1]
        self.assertEqual((found["id"], found["name"], found["state"]), (entry, "nightly", "active"))
        node.sync(notice={"kind": "reclaim", "deadline": int(time.time() * 1000) + 600000})
        s.until(lambda kind, data: kind == "node" and data["notice"] == "reclaim")
        d.call("POST", "/api/v1/nodes/%d/drain" % node.number)
        s.until(lambda kind, data: kind == "node" and data["drain"])

    def test_output_is_announced(self):
        d = self.belayd()
        node = Node(d)
        job = d.submit()
        s = self.open(d, "?job=%d&types=log" % job)
        node.begin(job)
        status = node.call("output/%d/1?offset=0" % job, b"hello\n")[0]
        self.assertEqual(status, 200)
        self.assertEqual(s.until(lambda kind, data: True)[-1][:2], ("log", {"job": job}))

    def test_one_job_or_the_tasks_of_one_array(self):
        d = self.belayd()
        node = Node(d)
        array = d.submit(array="0-1", cpus=1)
        other = d.submit(hold=True)
        s = self.open(d, "?job=%d" % array)
        node.sync(wait_ms=10000)
        d.call("POST", "/api/v1/jobs/%d/cancel" % other)
        third = d.submit(hold=True)
        d.call("POST", "/api/v1/jobs/%d/cancel" % array)
        events = s.until(is_event(array, "cancel"))
        jobs = {data.get("job", data.get("id")) for _, data, _ in events}
        self.assertFalse(jobs & {other, third}, events)

    def test_what_users_name_cannot_end_a_line(self):
        d = self.belayd()
        s = self.open(d)
        names = ["a\nevent: forged\ndata: {}\n\n", "a\r\rid: 7", "\u2028\u0085 é"]
        jobs = []
        for name in names:
            status, body, _ = d.call("POST", "/api/v1/jobs", {**JOB, "labels": {"x": name}})
            jobs += [body["id"]] if status == 201 else []
            status, body, _ = d.call("POST", "/api/v1/jobs", {**JOB, "name": name})
            jobs += [body["id"]] if status == 201 else []
        last = d.submit()
        s.until(is_event(last, "submitted"))
        kinds = {b"event", b"data", b"id", b"retry"}
        for line in s.raw:
            self.assertNotIn(b"\r", line)
            self.assertIn(line.split(b":")[0].rstrip(b"\n"), kinds | {b""}, line)
        self.assertNotIn(b"event: forged\n", s.raw)

    # ---- over breaks ----

    def test_a_restart_leaves_no_gap_and_repeats_nothing(self):
        d = self.belayd()
        s = self.open(d, "?types=job,event")
        seen, states = [], []

        def take(events):
            seen.extend(data["id"] for kind, data, _ in events if kind == "event")
            states.extend(data["id"] for kind, data, _ in events if kind == "job")

        for how in (d.kill, d.stop, d.kill):
            job = d.submit()
            take(s.until(is_event(job, "submitted")))
            later = d.submit()  # its events may or may not have arrived when belayd ends
            how()
            take(s.rest())
            s.close()
            d.start()
            after = d.submit()  # while nobody listens
            s = self.open(d, "?types=job,event", last=s.last)
            self.assertEqual(s.ready, {"resumed": True})
            take(s.replayed)
            self.assertIn(later, states)
            self.assertIn(after, states)
        job = d.submit()
        take(s.until(is_event(job, "submitted")))
        history = [e["id"] for e in d.call("GET", "/api/v1/events?after=0")[1]["events"]]
        self.assertEqual(seen, history[: len(seen)])
        self.assertGreaterEqual(len(seen), 10)

    def test_a_client_that_cannot_continue_is_told_so(self):
        d = self.belayd()
        for i in range(101):
            d.call("POST", "/api/v1/jobs/%d/cancel" % d.submit())
        job = d.submit()
        for last, why in (
            ("0-1", "too much"),
            ("0-100000", "did not happen"),
            ("3-100", "restored"),
            ("100", "not one of this server's"),
            ("x" * 5000, "not one of this server's"),
        ):
            with self.subTest(last=last[:20]):
                s = self.open(d, last=last)
                self.assertEqual(s.ready, {"resumed": False})
                ((kind, data, _),) = s.replayed
                self.assertEqual(kind, "reset")
                self.assertIn(why, data["reason"])
                s.close()
        s = self.open(d, "?job=%d" % job, last="0-1")
        self.assertEqual(s.ready, {"resumed": True})
        self.assertEqual({data.get("job", job) for _, data, _ in s.replayed}, {job})

    def test_a_commit_of_many_rows_is_a_reset(self):
        d = self.belayd()
        d.submit(array="0-999", hold=True)
        s = self.open(d)
        jobs = [d.submit(hold=True) for _ in range(600)]
        narrow = self.open(d, "?job=%d" % jobs[300])
        words = ["%d" % j for j in jobs]
        status, body, _ = d.call("POST", "/api/v1/jobs/cancel", {"jobs": words})
        self.assertEqual(status, 200, body)
        narrow.until(is_state(jobs[300], "ended"))
        s.until(lambda kind, data: kind == "reset")

    def test_the_client_goes_on_after_a_restart(self):
        d = self.belayd()
        client = belay.client.Client(socket=d.socket)
        found = queue.Queue()

        def follow():
            for event in client.stream(types=["event"], restart_s=WAIT_S):
                found.put(event)
                if event.kind == "event" and event.data["kind"] == "ended":
                    break
            found.put(None)

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        self.assertEqual(found.get(timeout=WAIT_S).kind, "ready")
        job = client.submit(script="#!/bin/sh\n", cwd="/")["id"]
        first = found.get(timeout=WAIT_S)
        self.assertEqual((first.kind, first.data["kind"], first.id), ("event", "submitted", "0-1"))
        d.kill()
        d.start()
        client.cancel(job)
        events = list(iter(lambda: found.get(timeout=WAIT_S), None))
        ids = [e.data["id"] for e in events if e.kind == "event"]
        self.assertEqual(ids, list(range(2, 2 + len(ids))))
        thread.join(WAIT_S)

    def test_the_client_ends_after_the_time_that_was_asked_for(self):
        d = self.belayd()
        client = belay.client.Client(socket=d.socket)
        self.assertEqual([e.kind for e in client.stream(for_ms=50, types="job")], ["ready"])
        with self.assertRaisesRegex(belay.client.Error, "types: expected a list of job"):
            list(client.stream(types=["job", "jobs"]))

    # ---- who ----

    def test_others_see_of_a_job_what_the_lists_show(self):
        d = self.belayd(PEOPLE)
        tokens = {u: d.token(kind="api", user=u) for u in ("ann", "cho")}
        s = {u: self.open(d, token=tokens[u]) for u in tokens}
        spec = {**JOB, "name": "s3cret", "labels": {"k": "s3cret"}}
        job = d.call("POST", "/api/v1/jobs", spec, token=tokens["ann"])[1]["id"]
        entry = {"name": "s3cret", "schedule": "30 2 * * *", "job": spec}
        d.call("POST", "/api/v1/crons", entry, token=tokens["ann"])
        own = d.call("POST", "/api/v1/jobs", {**JOB, "name": "own"}, token=tokens["cho"])[1]["id"]
        seen = {u: s[u].until(is_event(own, "submitted")) for u in s}
        text = {u: b"".join(s[u].raw).decode() for u in s}
        self.assertIn("s3cret", text["ann"])
        self.assertIn('"cron"', json.dumps([k for k, _, _ in seen["ann"]]))
        self.assertNotIn("s3cret", text["cho"])
        self.assertNotIn("cron", [k for k, _, _ in seen["cho"]])
        listed = d.call("GET", "/api/v1/jobs", token=tokens["cho"])[1]["jobs"]
        listed = {j["id"]: j for j in listed}[job]
        shown = next(data for kind, data, _ in seen["cho"] if kind == "job" and data["id"] == job)
        self.assertEqual({k: listed[k] for k in shown}, shown)
        self.assertEqual((shown["name"], shown["hidden"]), ("-", True))
        refused = self.open(d, "?job=%d" % job, token=tokens["cho"])
        self.assertEqual((refused.status, refused.error["kind"]), (403, "denied"))

    def test_a_stream_ends_with_its_token(self):
        d = self.belayd(PEOPLE)
        token = d.token(kind="api", user="ann")
        soon = d.token(kind="api", user="ann", ttl_ms=3000)
        s, short = self.open(d, token=token), self.open(d, token=soon)
        other = self.open(d, token=d.token(kind="api", user="ben"))
        self.assertEqual(short.rest()[-1][1]["reason"], "expired")
        rows = d.call("GET", "/api/v1/tokens")[1]["tokens"]
        number = min(t["id"] for t in rows if t["user"] == "ann")
        self.assertEqual(d.call("POST", "/api/v1/tokens/%d/revoke" % number)[0], 200)
        self.assertEqual(s.rest()[-1][:2][0], "end")
        self.assertEqual(self.open(d, token=token).status, 401)
        job = d.submit()
        other.until(is_event(job, "submitted"))

    def test_a_stream_of_a_browser_ends_with_its_session_and_its_token(self):
        d = self.belayd(PEOPLE)
        token = d.token(kind="api", user="ann")
        for how in ("sign out", "revoke the token"):
            with self.subTest(how):
                origin = {"Origin": d.url}
                status, reply, headers = d.call(
                    "POST", "/login/session", {"token": token}, tls=True, headers=origin
                )
                self.assertEqual(status, 201, reply)
                cookie = headers["Set-Cookie"].split(";")[0]
                s = self.open(d, cookie=cookie)
                if how == "sign out":
                    sent = {**origin, "Cookie": cookie, "X-CSRF-Token": reply["csrf"]}
                    out = d.call("POST", "/api/v1/logout", {}, tls=True, headers=sent)
                    self.assertEqual(out[0], 200, out)
                else:
                    rows = d.call("GET", "/api/v1/tokens")[1]["tokens"]
                    number = next(t["id"] for t in rows if t["kind"] == "api")
                    self.assertEqual(d.call("POST", "/api/v1/tokens/%d/revoke" % number)[0], 200)
                self.assertEqual(s.rest()[-1][1]["reason"], "revoked")
                self.assertEqual(self.open(d, cookie=cookie).status, 401)

    def test_a_reload_and_the_end_of_belayd_end_all_streams(self):
        d = self.belayd(PEOPLE)
        s = self.open(d, token=d.token(kind="api", user="ann"))
        with open(os.path.join(d.dir, "belayd.yaml"), "w") as f:
            f.write(CONFIG + PEOPLE.replace("owner", "all"))
        self.assertEqual(d.call("POST", "/api/v1/admin/reload", {})[0], 200)
        self.assertEqual(s.rest()[-1][1]["reason"], "reloaded")
        s = self.open(d)
        d.stop()
        self.assertEqual(s.rest()[-1][1]["reason"], "stopping")
        d.start()

    def test_wrong_queries_are_refused(self):
        d = self.belayd()
        for query, status in (
            ("?types=", 400),
            ("?types=job,", 400),
            ("?types=jobs", 400),
            ("?types=" + "job," * 40 + "job", 400),
            ("?job=0", 400),
            ("?job=x", 400),
            ("?for_ms=0", 400),
            ("?job=4711", 404),
        ):
            with self.subTest(query=query):
                self.assertEqual(self.open(d, query).status, status)
        self.assertEqual(self.open(d, token="nonsense").status, 401)

    # ---- limits ----

    def test_a_user_may_have_some_streams_and_others_too(self):
        d = self.belayd(PEOPLE)
        ann, ben = (d.token(kind="api", user=u) for u in ("ann", "ben"))
        streams = [self.open(d, token=ann) for _ in range(16)]
        self.assertEqual({s.status for s in streams}, {200})
        refused = self.open(d, token=ann)
        self.assertEqual((refused.status, refused.error["kind"]), (429, "throttled"))
        self.assertEqual(d.metric("belay_streams"), 16)
        self.assertEqual(self.open(d, token=ben).status, 200)
        streams[0].close()
        end = time.monotonic() + WAIT_S
        while (s := self.open(d, token=ann)).status != 200 and time.monotonic() < end:
            s.close()
        self.assertEqual(s.status, 200)

    def test_a_client_that_does_not_read_costs_a_bounded_amount(self):
        d = self.belayd()
        raw = socket.socket(socket.AF_UNIX)
        self.addCleanup(raw.close)
        raw.settimeout(WAIT_S)
        raw.connect(d.socket)
        raw.sendall(b"GET /api/v1/stream HTTP/1.1\r\nHost: x\r\n\r\n")
        reader = self.open(d)
        end = time.monotonic() + WAIT_S
        on = d.connect()
        n = 0
        while d.metric('belay_streams_ended_total{reason="slow"}') == 0:
            self.assertLess(time.monotonic(), end)
            for _ in range(50):
                d.call("POST", "/api/v1/jobs", {**JOB, "name": "n" * 60}, on=on)
                n += 1
        on.close()
        got = b""
        while not got.endswith(b"0\r\n\r\n"):
            piece = raw.recv(1 << 20)
            self.assertTrue(piece, got[-200:])
            got += piece
        self.assertIn(b'event: end\ndata: {"reason":"slow"', got[-500:])
        last = d.submit()
        reader.until(is_event(last, "submitted"))  # who reads is not in its way


if __name__ == "__main__":
    unittest.main()
