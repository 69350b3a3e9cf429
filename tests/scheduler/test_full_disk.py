# SPDX-License-Identifier: Apache-2.0
"""A full disk under belayd's state: what is new is refused in plain words, nothing is lost, and all goes on when there is
space again."""

import concurrent.futures
import os
import shutil
import sys
import time
import unittest

from belayd import JOB, WAIT_S, Belayd, Keys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import small_disk  # noqa: E402


class Disk:
    """A belayd on a disk that is full when we say so."""

    def __enter__(self):
        self.d = Belayd()
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
            # The one that meets the full disk is kept and waits for the outcome; those behind it are refused.
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
            )  # reads go on
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
            d.start(wait=False)  # there is no room to begin
            self.assertEqual(d.process.wait(WAIT_S), 1)
            self.assertRegex(d.log().splitlines()[-1], "cannot start.*(no space|full|No space)")
            self.assertIn("state directory %s is full: free some" % d.state, d.log())
            disk.free()
            d.start()
            self.assertEqual(disk.names(), {"before%d" % i for i in range(20)})
            self.assertGreater(d.submit(), max(jobs))

    def test_an_agent_is_told_to_keep_its_output(self):
        with Disk() as disk:
            d, keys = disk.d, Keys(disk.d)
            key = keys.key()
            body = {
                "token": d.token(kind="join", pool="base"),
                "csr_pem": keys.request(key),
                "host": "n",
                "version": "1",
                "cpus": 1,
                "memory_mib": 1,
            }
            joined = d.call("POST", "/agent/v1/join", body, tls=True)[1]
            cert = (keys.save(joined["cert_pem"]), key)
            job = d.submit()
            sync = {
                "incarnation": 1,
                "notice": {},
                "attempts": [{"job": job, "attempt": 1, "phase": "running", "started_at": 1}],
            }
            self.assertEqual(
                d.call("POST", "/agent/v1/sync", {**sync, "seq": 1}, cert=cert)[0], 200
            )
            path = "/agent/v1/output/%d/1?offset=" % job
            self.assertEqual(d.call("POST", path + "0", b"a" * 5000, cert=cert)[1], {"size": 5000})
            disk.fill()
            status, reply, _ = d.call("POST", path + "5000", b"b" * 200000, cert=cert)
            self.assertEqual((status, reply["error"]["kind"]), (507, "no-space"))
            disk.free()
            kept = d.call("POST", path + "0", b"", cert=cert)[1]["size"]
            self.assertGreaterEqual(
                kept, 5000
            )  # what fitted may stay: it is what was written there
            d.call("POST", path + "%d" % kept, b"b" * (205000 - kept), cert=cert)
            self.assertEqual(
                d.call("GET", "/api/v1/jobs/%d/logs" % job)[1], b"a" * 5000 + b"b" * 200000
            )


class Output(unittest.TestCase):
    def test_output_leaves_room_for_commits(self):
        with Disk() as disk:
            d, keys = disk.d, Keys(disk.d)
            key = keys.key()
            body = {
                "token": d.token(kind="join", pool="base"),
                "csr_pem": keys.request(key),
                "host": "n",
                "version": "1",
                "cpus": 1,
                "memory_mib": 1,
            }
            joined = d.call("POST", "/agent/v1/join", body, tls=True)[1]
            cert = (keys.save(joined["cert_pem"]), key)
            job = d.submit()
            running = {"job": job, "attempt": 1, "phase": "running", "started_at": 1}
            sync = {"incarnation": 1, "notice": {}, "attempts": [running]}
            self.assertEqual(
                d.call("POST", "/agent/v1/sync", {**sync, "seq": 1}, cert=cert)[0], 200
            )
            size, pieces = 0, 0
            while size < 1 << 40 and pieces < 24 * 5:  # 24 MiB
                status, reply, _ = d.call(
                    "POST",
                    "/agent/v1/output/%d/1?offset=%d" % (job, size),
                    os.urandom(200000),
                    cert=cert,
                )
                self.assertEqual(status, 200, reply)
                size, pieces = reply["size"], pieces + 1
            self.assertEqual(size, 1 << 50, "it was cut")
            log = d.call("GET", "/api/v1/jobs/%d/logs?tail=3" % job)[1]
            self.assertIn(b"state directory is almost full", log)
            other = d.submit(name="other")
            self.assertEqual(d.call("POST", "/api/v1/jobs/%d/cancel" % job)[0], 200)
            ended = {**running, "phase": "ended", "end": "killed", "ended_at": 2}
            status, reply, _ = d.call(
                "POST", "/agent/v1/sync", {**sync, "seq": 2, "attempts": [ended]}, cert=cert
            )
            self.assertEqual(status, 200, reply)
            d.kill()
            d.start()
            self.assertEqual(d.call("GET", "/api/v1/jobs/%d" % other)[0], 200)
            state = d.call("GET", "/api/v1/jobs/%d" % job)[1]["job"]["state"]
            self.assertNotIn(state, ("pending", "running"))


if __name__ == "__main__":
    small_disk.main()
