# SPDX-License-Identifier: Apache-2.0
"""A full disk under belayd's state: new requests are refused with an error that names the cause,
nothing is lost, and everything continues when there is space again.
"""

import concurrent.futures
import os
import shutil
import sys
import time
import unittest

from belayd import CONFIG, JOB, WAIT_S, Belayd, Node

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import small_disk  # noqa: E402


class Disk:
    """A belayd on a disk that the test can fill."""

    def __init__(self, config=""):
        self.config = CONFIG + config

    def __enter__(self):
        self.d = Belayd(self.config)
        self.disk = small_disk.SmallDisk(self.d.state, "24m")
        self.fill, self.free = self.disk.fill, self.disk.free
        self.d.start()
        return self

    def __exit__(self, kind, error, trace):
        try:
            problems = self.d.end()
        finally:
            self.disk.end()
        print(self.d.log()[-4000:] if error or problems else "", end="", file=sys.stderr)
        shutil.rmtree(self.d.dir)
        if problems and not error:
            raise AssertionError("; ".join(problems))

    def wait(self, is_there, what):
        end = time.monotonic() + WAIT_S
        while not is_there():
            if time.monotonic() > end:
                raise AssertionError("not within %d s: %s" % (WAIT_S, what))
            time.sleep(0.01)  # there is nothing to wait on

    def is_full(self):
        return self.d.call("GET", "/healthz")[:2] == (
            503,
            b"the disk that holds the state is full\n",
        )

    def names(self):
        return {
            j["name"] for j in self.d.call("GET", "/api/v1/jobs?state=all&limit=200")[1]["jobs"]
        }


class FullDisk(unittest.TestCase):
    def test_what_is_new_is_refused_and_all_goes_on_when_there_is_space(self):
        with Disk() as disk, concurrent.futures.ThreadPoolExecutor() as pool:
            d = disk.d
            before = [d.submit(name="before%d" % i) for i in range(20)]
            disk.fill()
            # The request that finds the disk full is kept until the outcome is known; later ones
            # are refused.
            first = pool.submit(d.call, "POST", "/api/v1/jobs", {**JOB, "name": "kept"})
            disk.wait(disk.is_full, "belayd sees that the disk is full")
            for method, path, body in (
                ("POST", "/api/v1/jobs", {**JOB, "name": "refused"}),
                ("POST", "/api/v1/jobs/%d/cancel" % before[0], None),
                ("POST", "/api/v1/tokens", {"kind": "api", "user": "ann"}),
            ):
                status, reply, _ = d.call(method, path, body)
                self.assertEqual((status, reply["error"]["kind"]), (507, "no-space"))
                self.assertIn("free some space", reply["error"]["text"])
            self.assertFalse(first.done())
            self.assertEqual(
                d.call("GET", "/api/v1/jobs/%d" % before[0])[1]["job"]["state"], "pending"
            )  # reads continue
            self.assertEqual(d.call("GET", "/api/v1/nodes")[0], 200)
            self.assertEqual(d.call("GET", "/api/v1/jobs/%d/why" % before[0])[0], 200)
            self.assertEqual(d.metric("belay_state_disk_full"), 1)
            disk.free()
            status, reply, _ = first.result(WAIT_S)
            self.assertEqual(status, 201)
            disk.wait(lambda: d.call("GET", "/healthz")[0] == 200, "belayd sees the space")
            after = d.submit(name="after")
            self.assertGreater(after, reply["id"])
            self.assertEqual(disk.names(), {"before%d" % i for i in range(20)} | {"kept", "after"})

    def test_a_kill_on_a_full_disk_loses_nothing(self):
        with Disk() as disk:
            d = disk.d
            jobs = [d.submit(name="before%d" % i) for i in range(20)]
            disk.fill()
            with concurrent.futures.ThreadPoolExecutor() as pool:
                lost = pool.submit(d.call, "POST", "/api/v1/jobs", {**JOB, "name": "unanswered"})
                disk.wait(disk.is_full, "belayd sees that the disk is full")
                d.kill()
                self.assertIsInstance(lost.exception(WAIT_S), OSError)
            d.start(wait=False)  # the disk has no space for a start
            self.assertEqual(d.process.wait(WAIT_S), 1)
            self.assertRegex(d.log().splitlines()[-1], "cannot start.*(no space|full|No space)")
            self.assertIn("state directory %s is full: free some" % d.state, d.log())
            disk.free()
            d.start()
            self.assertEqual(disk.names(), {"before%d" % i for i in range(20)})
            self.assertGreater(d.submit(), max(jobs))

    def test_an_agent_is_asked_to_keep_its_output(self):
        with Disk() as disk:
            d = disk.d
            node, job = Writer(d), d.submit()
            node.begin(job)
            self.assertEqual(node.write(job, 0, b"a" * 5000), 5000)
            disk.fill()
            status, reply, _ = node.call("output/%d/1?offset=5000" % job, b"b" * 200000)
            self.assertEqual((status, reply["error"]["kind"]), (507, "no-space"))
            disk.free()
            kept = node.write(job, 0, b"")
            self.assertGreaterEqual(kept, 5000)  # what fitted may stay: it equals what was written
            node.write(job, kept, b"b" * (205000 - kept))
            self.assertEqual(
                d.call("GET", "/api/v1/jobs/%d/logs" % job)[1], b"a" * 5000 + b"b" * 200000
            )


class Writer(Node):
    """A node whose jobs write output."""

    def __init__(self, d):
        super().__init__(d, cpus=8, memory_mib=1000)

    def run(self, user):
        """Submits a job of this user and starts it here."""
        token = self.d.token(kind="api", user=user)
        status, body, _ = self.d.call("POST", "/api/v1/jobs", {**JOB, "cpus": 1}, token=token)
        if status != 201:
            raise AssertionError("submit: %s" % body)
        self.begin(body["id"])
        return body["id"]

    def write(self, job, offset, data):
        """Returns how many bytes belayd has, or None if the agent must keep the data for now."""
        status, reply, _ = self.call("output/%d/1?offset=%d" % (job, offset), data)
        if status == 507:
            return None
        if status != 200:
            raise AssertionError("output: %s" % reply)
        return reply["size"]

    def fill(self, job):
        """Writes until belayd accepts no more for now; returns how many bytes it has."""
        size = 0
        while (after := self.write(job, size, os.urandom(100000))) is not None:
            if after > 1 << 40 or size > 100 << 20:
                raise AssertionError("%d bytes were stored, then %d" % (size, after))
            size = after
        return size


IS_CUT = 1 << 50


class Shares(unittest.TestCase):
    """One user's output has filled the disk."""

    def test_only_the_output_of_who_filled_the_disk_is_cut(self):
        with Disk("log_full_wait: 5s\n") as disk:
            d, node = disk.d, Writer(disk.d)
            loud, quiet = node.run("loud"), node.run("quiet")
            first, text = b"a first line\n", b"".join(b"line %08d\n" % i for i in range(60000))
            at = node.write(quiet, 0, first)
            size = node.fill(loud)
            self.assertGreater(size, 8 << 20)
            self.assertEqual(d.metric("belay_log_disk_low"), 1)
            middle = len(text) // 2
            at = self.write_all(node, quiet, at, text[:middle])  # while the other keeps its own
            cut = []
            disk.wait(
                lambda: cut.append(node.write(loud, size, b"x" * 100000)) or cut[-1], "it is cut"
            )
            self.assertEqual(cut[-1], IS_CUT)
            self.write_all(node, quiet, at, text[middle:])
            late = node.run("late")
            self.assertEqual(node.write(late, 0, text[:100000]), 100000)
            self.assertEqual(self.log(d, quiet), first + text)
            self.assertEqual(self.log(d, late), text[:100000])
            tail = d.call("GET", "/api/v1/jobs/%d/logs?tail=3" % loud)[1]
            self.assertIn(b"state directory is almost full, and the user stores more", tail)
            self.assertEqual(self.cuts(d, loud), 1)
            self.assertEqual(self.cuts(d, quiet) + self.cuts(d, late), 0)
            told = [line for line in d.log().splitlines() if "directory is almost full" in line]
            self.assertEqual(len([line for line in told if "WARN" in line.upper()]), 1, told)
            self.assertRegex(told[0], r"most_by\W+loud")
            # The output of user loud is moved away: everything works again.
            os.unlink(os.path.join(d.state, "logs", "0", str(loud), "1.log"))
            disk.wait(lambda: d.metric("belay_log_disk_low") == 0, "there is space again")
            again = node.run("loud")
            self.write_all(node, again, 0, text)

    def test_space_that_is_made_in_time_saves_all_output(self):
        with Disk() as disk:
            d, node = disk.d, Writer(disk.d)
            ballast = os.path.join(d.state, "ballast")
            with open(ballast, "wb") as f:
                f.write(b"x" * (6 << 20))
            job = node.run("loud")
            size = node.fill(job)
            self.assertIsNone(node.write(job, size, b"x" * 100000))
            os.unlink(ballast)
            self.assertEqual(node.write(job, size, b"x" * 100000), size + 100000)
            self.assertEqual(self.cuts(d, job), 0)
            self.assertEqual(len(self.log(d, job)), size + 100000)

    def write_all(self, node, job, at, text):
        for i in range(0, len(text), 40000):
            piece = text[i : i + 40000]
            self.assertEqual(node.write(job, at, piece), at + len(piece))
            at += len(piece)
        return at

    def log(self, d, job):
        log, at = b"", 0
        while piece := d.call("GET", "/api/v1/jobs/%d/logs?offset=%d" % (job, at))[1]:
            log, at = log + piece, at + len(piece)
        return log

    def cuts(self, d, job):
        events = d.call("GET", "/api/v1/jobs/%d/events" % job)[1]["events"]
        return [e["kind"] for e in events].count("output-cut")


class Submits(unittest.TestCase):
    """One user's submits have filled the disk."""

    def test_submits_leave_space_for_cancels_and_ends(self):
        with Disk() as disk:
            d, node = disk.d, Writer(disk.d)
            job, token = node.run("ann"), d.token(kind="api", user="mal")
            script = "#!/bin/sh\n#%s\n" % ("x" * 500000)
            held, status = [], 201
            while status == 201 and len(held) < 100:
                body = {**JOB, "script": script, "hold": True}
                status, reply, _ = d.call("POST", "/api/v1/jobs", body, token=token)
                held += [reply.get("id")]
            self.assertEqual((status, reply["error"]["kind"]), (507, "no-space"), reply)
            self.assertIn("cancel works", reply["error"]["text"])
            self.assertFalse(disk.is_full())
            path = "/api/v1/jobs/%d/cancel" % held[0]
            self.assertEqual(d.call("POST", path, token=token)[0], 200)
            node.attempts[0].update(phase="ended", end="succeeded", ended_at=2)
            node.sync()
            state = d.call("GET", "/api/v1/jobs/%d" % job)[1]["job"]["state"]
            self.assertEqual(state, "ended")


class Output(unittest.TestCase):
    def test_output_leaves_space_for_commits(self):
        with Disk("log_full_wait: 0s\n") as disk:
            d, node = disk.d, Writer(disk.d)
            job = d.submit()
            node.begin(job)
            size, pieces = 0, 0
            while size < 1 << 40 and pieces < 24 * 5:  # 24 MiB
                size, pieces = node.write(job, size, os.urandom(200000)), pieces + 1
            self.assertEqual(size, IS_CUT)
            log = d.call("GET", "/api/v1/jobs/%d/logs?tail=3" % job)[1]
            self.assertIn(b"state directory is almost full", log)
            other = d.submit(name="other")
            self.assertEqual(d.call("POST", "/api/v1/jobs/%d/cancel" % job)[0], 200)
            node.attempts[0].update(phase="ended", end="killed", ended_at=2)
            node.sync()
            d.kill()
            d.start()
            self.assertEqual(d.call("GET", "/api/v1/jobs/%d" % other)[0], 200)
            state = d.call("GET", "/api/v1/jobs/%d" % job)[1]["job"]["state"]
            self.assertNotIn(state, ("pending", "running"))


if __name__ == "__main__":
    small_disk.main()
