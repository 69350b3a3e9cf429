# SPDX-License-Identifier: Apache-2.0
"""A user fills belayd's disk, or its memory: with the output of one job, of many jobs, of a job
that claims to have written much, with working directories, with unread input of a session, and with
one submit of a million jobs. Each time the stored amount is limited, jobs continue and end
normally, and other users lose nothing."""

import hashlib
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scheduler"))
from belayd import CONFIG, Belayd, Node  # noqa: E402
from lab import Lab  # noqa: E402

MIB = 1 << 20
ALL_IS_HERE = 1 << 50
LIMITS = "log_max_per_job: 1M\nlog_max_per_user_day: 3M\n"

# What it prints goes through a pipe. Where it runs as the agent's own user it can open the file.
SPARSE = """\
#!/usr/bin/python3
import os, time
try:
    os.ftruncate(1, 300 << 20)
    os._exit(7)
except OSError:
    pass
log = os.open(os.environ["BELAY_CONTROL_DIR"] + "/../output.log", os.O_RDWR)
os.write(1, b"first\\n")
while os.fstat(log).st_size < 6:
    time.sleep(0.01)
os.ftruncate(log, 300 << 20)
os.write(1, b"last\\n")
"""


def stored(path):
    """Disk usage in bytes of the files below it."""
    return sum(
        os.stat(os.path.join(at, name)).st_blocks * 512
        for at, _, names in os.walk(path)
        for name in names
    )


class Output(unittest.TestCase):
    """The test plays the agents: it sends the output of jobs."""

    def setUp(self):
        self.d = Belayd(CONFIG + LIMITS)
        self.d.start()
        self.addCleanup(self.d.__exit__, None, None, None)
        self.node = Node(self.d, "spare", cpus=64, memory_mib=100000)

    def run_job(self, token):
        status, body, _ = self.d.call(
            "POST",
            "/api/v1/jobs",
            {"name": "loud", "script": "#!/bin/sh\n", "cwd": "/", "cpus": 1, "pool": "spare"},
            token=token,
        )
        self.assertEqual(status, 201, body)
        self.node.begin(body["id"])
        return body["id"]

    def write(self, job, offset, data=b"", hole=0):
        more = "&hole=%d" % hole if hole else ""
        status, body, _ = self.node.call("output/%d/1?offset=%d%s" % (job, offset, more), data)
        self.assertEqual(status, 200, body)
        return body["size"]

    def flood(self, job, most):
        """Sends until belayd accepts no more, at most this many bytes; returns how many it
        accepted."""
        offset, piece = 0, b"x" * (128 << 10)
        while offset < most:
            size = self.write(job, offset, piece)
            if size == ALL_IS_HERE:
                return offset
            offset = size
        return offset

    def end(self, job, output_bytes):
        mine = next(a for a in self.node.attempts if a["job"] == job)
        mine.update(phase="ended", end="succeeded", output_bytes=output_bytes)
        self.node.sync()
        self.node.attempts.remove(mine)

    def log(self, job, tail=600):
        reply = self.d.call("GET", "/api/v1/jobs/%d/logs?offset=-%d" % (job, tail))
        return reply[1].decode(), reply[2].get("Belay-Log-End") == "1"

    def test_what_is_kept_has_a_limit_by_job_and_by_user_and_jobs_end_all_the_same(self):
        eve, ann = (self.d.token(kind="api", user=user) for user in ("eve", "ann"))
        before = stored(self.d.state)
        job = self.run_job(eve)
        self.assertLessEqual(self.flood(job, 5 * MIB), MIB)
        self.end(job, 100 * MIB)
        text, complete = self.log(job)
        self.assertTrue(complete)  # so that readers do not wait for more
        self.assertIn(
            "---- belay: output is not kept from here on: the job has reached the limit", text
        )
        self.assertIn("output.log", text)
        shown = self.d.call("GET", "/api/v1/jobs/%d" % job)[1]["job"]
        self.assertEqual((shown["state"], shown["exit_code"]), ("ended", 0))
        kinds = [e["kind"] for e in self.d.call("GET", "/api/v1/jobs/%d/events" % job)[1]["events"]]
        self.assertEqual(kinds.count("output-cut"), 1)
        for _ in range(5):
            job = self.run_job(eve)
            self.flood(job, 5 * MIB)
            self.end(job, 100 * MIB)
        self.assertIn("within a day", self.log(job)[0])
        self.assertLess(stored(self.d.state) - before, 5 * MIB)
        self.assertEqual(self.d.metric("belay_log_cuts_total"), 6)
        self.assertEqual(self.d.metric("belay_log_bytes_total"), 3 * MIB)
        job = self.run_job(ann)
        self.assertEqual(self.write(job, 0, b"mine\n"), 5)
        self.end(job, 5)
        self.assertEqual(self.log(job), ("mine\n", True))

    def test_a_node_whose_disk_is_full_gets_no_new_work_and_every_view_says_so(self):
        token = self.d.token(kind="api", user="ann")
        self.node.sync(disk_full="1.0 MiB of 16.0 MiB are free")
        status, body, _ = self.d.call(
            "POST",
            "/api/v1/jobs",
            {"name": "small", "script": "#!/bin/sh\n", "cwd": "/", "cpus": 1, "pool": "spare"},
            token=token,
        )
        self.assertEqual(status, 201, body)
        job = body["id"]
        self.assertEqual(
            self.node.sync(disk_full="0 B of 16.0 MiB are free").get("attempts", []), []
        )
        node = self.d.call("GET", "/api/v1/nodes")[1]["nodes"][0]
        self.assertEqual((node["state"], node["disk"]), ("up", "full"))
        self.assertEqual(node["disk_text"], "0 B of 16.0 MiB are free")
        why = self.d.call("GET", "/api/v1/jobs/%d/why" % job)[1]["reasons"]
        self.assertEqual(why[0]["code"], "nodes-full")
        self.assertIn("0 B of 16.0 MiB are free", why[0]["text"])
        self.node.begin(job)
        node = self.d.call("GET", "/api/v1/nodes")[1]["nodes"][0]
        self.assertEqual((node["disk"], node["disk_text"]), ("ok", None))
        log = self.d.log()
        self.assertEqual(log.count("a node's disk is full"), 1)
        self.assertEqual(log.count("a node's disk has space again"), 1)

    def test_what_is_cut_stays_cut_over_a_restart(self):
        job = self.run_job(self.d.token(kind="api", user="eve"))
        self.flood(job, 2 * MIB)
        text = self.log(job)
        self.d.kill()
        self.d.start()
        self.assertEqual(self.write(job, 0), ALL_IS_HERE)
        self.assertEqual(self.write(job, 10 * MIB, b"more"), ALL_IS_HERE)
        self.assertEqual(self.log(job)[0], text[0])

    def test_a_hole_takes_no_space_and_has_an_end(self):
        job, before = self.run_job(self.d.token(kind="api", user="eve")), stored(self.d.state)
        self.assertEqual(self.write(job, 0, b"first\n"), 6)
        self.assertEqual(self.write(job, 6, hole=300 * MIB), 6 + 300 * MIB)
        self.assertEqual(self.write(job, 6 + 300 * MIB, b"last\n"), 11 + 300 * MIB)
        self.assertEqual(self.write(job, 11 + 300 * MIB, hole=ALL_IS_HERE), ALL_IS_HERE)
        self.assertIn("output for an attempt (4 GiB)", self.log(job)[0])
        self.assertLess(stored(self.d.state) - before, 2 * MIB)
        status, body, _ = self.node.call("output/%d/1?offset=0&hole=5" % job, b"both")
        self.assertEqual((status, body["error"]["kind"]), (400, "invalid"))

    def test_a_session_that_is_not_read_holds_a_bounded_amount(self):
        eve = self.d.token(kind="api", user="eve")
        job = self.run_job(eve)
        status, body, _ = self.d.call(
            "POST", "/api/v1/jobs/%d/exec" % job, {"command": ["sleep", "1000"]}, token=eve
        )
        self.assertEqual(status, 201, body)
        path, piece = "/api/v1/channels/%d/input" % body["id"], b"x" * (64 << 10)
        size, waiting = 0, None
        for n in range(64):  # never waits for space: each post ends the wait of the previous one
            c = self.d.connect(tls=True)
            c.request(
                "POST",
                "%s?offset=%d" % (path, n * len(piece)),
                piece,
                {"Authorization": "Bearer " + eve},
            )
            if waiting:
                size = json.loads(waiting.getresponse().read())["size"]
                waiting.close()
            elif n < 3:
                size = json.loads(c.getresponse().read())["size"]
                c.close()
                continue
            waiting = c
        waiting.close()
        self.assertGreaterEqual(size, 256 << 10)
        self.assertLessEqual(size, MIB + (72 << 10))

    def submit_array(self, tasks, token):
        return self.d.call(
            "POST",
            "/api/v1/jobs",
            {"name": "many", "script": "#!/bin/sh\n", "cwd": "/", "array": tasks},
            token=token,
        )[:2]

    def test_an_array_is_as_many_jobs_as_it_has_tasks(self):
        eve = self.d.token(kind="api", user="eve")
        status, body = self.submit_array("0-999999", eve)
        self.assertEqual((status, body["error"]["kind"]), (409, "conflict"), body)
        self.assertIn("max_submitted", body["error"]["text"])
        self.assertIn("1000000 more", body["error"]["text"])
        for n, expected in ((199999, 201), (2, 409), (1, 201), (1, 409)):
            status, body = self.submit_array("1-%d" % n, eve)
            self.assertEqual(status, expected, json.dumps(body)[:300])


class Workdirs(unittest.TestCase):
    """Many small files, and lists of files without content."""

    def fill(self, d, user, path, body_of):
        token = d.token(kind="api", user=user)
        for n in range(300):
            status, body, _ = d.call("POST", path, body_of(n), token=token)
            if status != 200:
                return status, body["error"]["text"]
        return status, ""

    def check_full(self, answer):
        self.assertEqual(answer[0], 429, answer)
        self.assertIn("workdir_max_per_user", answer[1])

    def test_files_count_by_blocks_and_lists_of_files_count(self):
        def piece(n):
            data = b"%d" % n
            return b"%s %d\n%s" % (hashlib.sha256(data).hexdigest().encode(), len(data), data)

        def tree(n):
            lines = [b"d 755 %06d-%04d\n" % (n, k) for k in range(1000)]
            return b"belay-workdir 1\n" + b"".join(lines)

        with Belayd(CONFIG + "workdir_max_per_user: 1M\n") as d:
            for user, path, body_of in (("eve", "/pieces", piece), ("mallory", "", tree)):
                before = stored(d.state + "/workdirs")
                self.check_full(self.fill(d, user, "/api/v1/workdirs" + path, body_of))
                self.assertLess(stored(d.state + "/workdirs") - before, 2 * MIB)
            ann = d.token(kind="api", user="ann")
            status, body, _ = d.call("POST", "/api/v1/workdirs", tree(0), token=ann)
            self.assertEqual(status, 200, body)


class Requests(unittest.TestCase):
    """Large scripts that are submitted and cancelled, and small changes that each leave a line."""

    def until_refused(self, d, user, calls):
        token, taken, connection = d.token(kind="api", user=user), 0, d.connect(tls=True)
        self.addCleanup(connection.close)
        for path, body in calls(d, token):
            status, answer, _ = d.call("POST", path, body, token=token, on=connection)
            if status == 429:
                self.assertIn("store_max_per_user_day", answer["error"]["text"])
                self.assertEqual(d.call("GET", "/api/v1/jobs", token=token)[0], 200)
                return taken
            self.assertIn(status, (200, 201), answer)
            taken += 1
        self.fail("%s was never refused" % user)

    def submits(self, d, token):
        script = "#!/bin/sh\n#" + "x" * (200 << 10) + "\n"
        for n in range(1, 20):
            yield "/api/v1/jobs", {"name": "big", "script": script, "cwd": "/", "hold": True}

    def changes(self, d, token):
        yield "/api/v1/jobs", {"name": "small", "script": "#!/bin/sh\n", "cwd": "/", "hold": True}
        job = d.call("GET", "/api/v1/jobs", token=token)[1]["jobs"][0]["id"]
        for n in range(1000):
            yield "/api/v1/jobs/%d/%s" % (job, "hold" if n % 2 else "release"), {}

    def test_what_a_user_has_stored_in_a_day_has_a_limit(self):
        with Belayd(CONFIG + "store_max_per_user_day: 1M\n") as d:
            self.assertLessEqual(self.until_refused(d, "eve", self.submits), 5)
            self.assertLessEqual(self.until_refused(d, "mallory", self.changes), 512)
            full = d.token(
                kind="api", user="mallory"
            )  # jobs, which cost money, can still be stopped
            job = d.call("GET", "/api/v1/jobs?user=mallory", token=full)[1]["jobs"][0]
            self.assertEqual(job["user"], "mallory")
            path = "/api/v1/jobs/%d/" % job["id"]
            self.assertEqual(d.call("POST", path + "release", {}, token=full)[0], 429)
            self.assertEqual(d.call("POST", path + "cancel", {}, token=full)[0], 200)
            ann, boss = d.token(kind="api", user="ann"), d.token(kind="api", user="eve", admin=True)
            job = {"name": "one", "script": "#!/bin/sh\n", "cwd": "/"}
            for token in ann, boss:
                self.assertEqual(d.call("POST", "/api/v1/jobs", job, token=token)[0], 201)


class Sparse(unittest.TestCase):
    def test_output_of_a_real_agent_is_sent_without_its_holes(self):
        with Lab() as lab:
            before = stored(os.path.join(lab.home))
            job = lab.submit(lab.write("sparse", SPARSE, 0o755))
            shown = lab.wait_ended(job)
            self.assertEqual(shown["job"]["exit_code"], 0)
            reply, data = lab.call("GET", "/jobs/%d/logs?offset=-5&wait_ms=1000" % job)
            end = int(reply.headers["Belay-Log-Next"])
            self.assertEqual((data, end), (b"last\n", (300 << 20) + 5))
            self.assertLess(stored(os.path.join(lab.home)) - before, 20 * MIB)


if __name__ == "__main__":
    unittest.main()
