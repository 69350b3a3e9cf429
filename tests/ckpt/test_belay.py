# SPDX-License-Identifier: Apache-2.0
"""The package belay against an agent that is a thread of this test."""

import contextlib
import importlib
import io
import json
import os
import shutil
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv.pop(1))
import belay

NAMES = (
    "BELAY_CONTROL_DIR",
    "BELAY_CHECKPOINT_DIR",
    "BELAY_NOTICE_FILE",
    "BELAY_RESTORED",
    "BELAY_COMMIT_TIMEOUT_S",
    "BELAY_RESTORED_RANKS",
    "BELAY_RESTORED_DIR",
    "BELAY_NODE_RANK",
)


class UnderBelay(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="belay-test-")
        self.control = os.path.join(self.dir, "control")
        self.checkpoint = os.path.join(self.dir, "checkpoint")
        os.mkdir(self.control)
        os.mkdir(self.checkpoint)
        os.environ["BELAY_CONTROL_DIR"] = self.control
        os.environ["BELAY_CHECKPOINT_DIR"] = self.checkpoint
        os.environ["BELAY_NOTICE_FILE"] = os.path.join(self.control, "notice")
        os.environ["BELAY_RESTORED"] = "0"
        importlib.reload(belay)

    def tearDown(self):
        shutil.rmtree(self.dir)
        for name in NAMES:
            os.environ.pop(name, None)

    def put(self, name, value):
        temp = os.path.join(self.dir, "new")
        with open(temp, "w") as f:
            f.write(value if isinstance(value, str) else json.dumps(value))
        os.rename(temp, os.path.join(self.control, name))

    def read(self, name):
        with open(os.path.join(self.control, name)) as f:
            return json.load(f)

    def agent(self, number, result, seen=None):
        """Answers one commit; seen gets the content of the checkpoint directory at that moment."""

        def serve():
            while not os.path.exists(os.path.join(self.control, "commit.%d" % number)):
                os.sched_yield()
            if seen is not None:
                for root, _, files in os.walk(self.checkpoint):
                    for name in files:
                        path = os.path.join(root, name)
                        with open(path) as f:
                            seen[os.path.relpath(path, self.checkpoint)] = f.read()
            self.put("result.%d" % number, result)

        thread = threading.Thread(target=serve)
        thread.start()
        self.addCleanup(thread.join)

    def test_threads_may_commit_and_report_at_the_same_time(self):
        answers = {"durable": False, "ok": True}
        reads, malformed, ended = [0], [], threading.Event()

        def serve():  # reads each file as soon as it is there, as an agent does
            number = 1
            while not ended.is_set():
                for name in ["progress"] + ["commit.%d" % number]:
                    try:
                        with open(os.path.join(self.control, name)) as f:
                            json.load(f)
                        reads[0] += 1
                    except FileNotFoundError:
                        continue
                    except ValueError:
                        malformed.append(name)
                    if name != "progress":
                        self.put("result.%d" % number, answers)
                        self.put("stored.%d" % number, {"ok": True})
                        number += 1

        failed = []

        def work():
            try:
                for n in range(25):
                    belay._reported_at = None
                    belay.progress(n, 50)
                    if not belay.commit(n):
                        failed.append("not committed")
                    belay.last_durable()
            except Exception as error:
                failed.append(repr(error))

        server = threading.Thread(target=serve)
        server.start()
        workers = [threading.Thread(target=work) for _ in range(6)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        ended.set()
        server.join()
        self.assertEqual((failed, malformed), ([], []))
        self.assertEqual((belay.wait_durable(5), belay.last_durable()), (True, 24))
        self.assertGreater(reads[0], 150)
        self.assertEqual([n for n in os.listdir(self.control) if n.startswith(".")], [])

    def test_what_each_rank_had_saved_is_found(self):
        self.assertEqual((belay.restored_ranks(), belay.restored_dir(0)), (0, None))
        os.environ["BELAY_RESTORED"] = "1"
        self.assertEqual(
            (belay.restored_ranks(), belay.restored_dir(0), belay.restored_dir(1)),
            (1, self.checkpoint, None),
        )
        os.environ.update(BELAY_RESTORED_RANKS="3", BELAY_NODE_RANK="2")  # the same as now
        self.assertEqual(
            (belay.restored_ranks(), belay.restored_dir(2), belay.restored_dir(0)),
            (3, self.checkpoint, None),
        )
        everyone = os.path.join(self.dir, "ranks")
        for name in ("rank-0000", "rank-0001"):
            os.makedirs(os.path.join(everyone, name))
        os.environ.update(BELAY_RESTORED_RANKS="2", BELAY_RESTORED_DIR=everyone)
        self.assertEqual(
            [belay.restored_dir(k) for k in range(3)],
            [os.path.join(everyone, "rank-0000"), os.path.join(everyone, "rank-0001"), None],
        )

    def test_a_request_is_seen_and_a_commit_answers_it(self):
        self.assertFalse(belay.should_checkpoint())
        belay._asked_at = None
        self.put("request", {"id": 1, "reason": "periodic", "deadline_ms": None})
        self.assertTrue(belay.should_checkpoint())
        self.agent(1, {"ok": True, "attempt": 1, "sequence": 1, "stop": False})
        self.assertTrue(belay.commit(5, 10))
        self.assertEqual(self.read("commit.1"), {"progress": 5, "total": 10, "wait": False})
        self.assertFalse(belay.stopping())

    def test_a_save_at_a_notice_stops_the_program(self):
        self.put("request", {"id": 1, "reason": "notice", "deadline_ms": None})
        self.agent(1, {"ok": True, "attempt": 1, "sequence": 1})
        self.assertTrue(belay.commit())
        self.assertTrue(belay.stopping())
        self.agent(2, {"ok": True, "attempt": 1, "sequence": 2, "stop": False})
        self.assertTrue(belay.commit())
        self.assertFalse(belay.stopping())

    def test_a_failed_commit_is_said_and_is_no_exception(self):
        for number, result in enumerate(
            ({"ok": False, "error": "full"}, "not json", "[]", {"ok": 1}), 1
        ):
            self.agent(number, result)
            with contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertFalse(belay.commit())
            self.assertIn("belay: not saved, continuing: ", said.getvalue())
            self.assertFalse(belay.stopping())

    def test_a_commit_without_an_agent_is_given_up_for_good(self):
        os.environ["BELAY_COMMIT_TIMEOUT_S"] = "0.1"
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertFalse(belay.commit())
        self.assertIn("did not answer", said.getvalue())
        self.assertFalse(self.read("result.1")["ok"])
        os.environ["BELAY_CONTROL_DIR"] = os.path.join(self.dir, "none")
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertFalse(belay.commit())

    def accept(self, number, progress):
        self.agent(
            number, {"ok": True, "attempt": 1, "sequence": number, "stop": False, "durable": False}
        )
        self.assertTrue(belay.commit(progress, 100))

    def test_an_accepted_commit_is_durable_or_lost_later(self):
        self.assertIsNone(belay.last_durable())
        self.assertTrue(belay.wait_durable())
        self.accept(1, 11)
        self.accept(2, 22)
        self.assertIsNone(belay.last_durable())
        self.assertFalse(belay.wait_durable(0.02))
        self.put("stored.1", {"ok": True, "attempt": 1, "sequence": 1})
        self.assertEqual(belay.last_durable(), 11)
        self.put("stored.2", {"ok": True, "attempt": 1, "sequence": 2})
        self.assertTrue(belay.wait_durable())
        self.accept(3, 33)
        self.put("stored.3", {"ok": False, "error": "full"})
        belay._asked_at = None
        with contextlib.redirect_stderr(io.StringIO()) as said:
            belay.should_checkpoint()
        self.assertIn("belay: not saved, continuing: full", said.getvalue())
        self.assertFalse(belay.wait_durable())
        self.assertEqual(belay.last_durable(), 22)

    def test_a_commit_that_waits_is_durable_at_once(self):
        self.accept(1, 11)
        self.agent(2, {"ok": True, "attempt": 1, "sequence": 2, "stop": False})
        self.assertTrue(belay.commit(22, 100, wait=True))
        self.assertEqual(self.read("commit.2"), {"progress": 22, "total": 100})
        self.assertEqual(belay.last_durable(), 22)
        self.assertTrue(belay.wait_durable())
        self.agent(3, {"ok": True})
        with belay.checkpoint(33, 100, wait=True):
            pass
        self.assertNotIn("wait", self.read("commit.3"))

    def test_numbers_go_on_from_the_greatest(self):
        self.put("result.7", {})
        self.put("commit.3", {})
        self.put("commit.09", {})
        self.agent(8, {"ok": True})
        self.assertTrue(belay.commit())

    def test_a_checkpoint_block_moves_its_files_into_place_and_commits(self):
        for path in ("old", "both"):
            with open(os.path.join(self.checkpoint, path), "w") as f:
                f.write("before")
        os.makedirs(os.path.join(self.checkpoint, ".belay-stage", "of a killed process"))
        seen = {}
        self.agent(1, {"ok": True}, seen)
        with belay.checkpoint(3, 9) as directory:
            self.assertEqual(os.listdir(directory), [])
            os.makedirs(os.path.join(directory, "sub", "deep"))
            for path in ("both", "sub/deep/new"):
                with open(os.path.join(directory, path), "w") as f:
                    f.write("after")
            os.symlink("both", os.path.join(directory, "link"))
            with open(os.path.join(self.checkpoint, "both")) as f:
                self.assertEqual(f.read(), "before")
        self.assertEqual(
            seen, {"old": "before", "both": "after", "sub/deep/new": "after", "link": "after"}
        )
        self.assertEqual(self.read("commit.1"), {"progress": 3, "total": 9, "wait": False})
        self.assertFalse(os.path.exists(directory))

    def test_a_checkpoint_block_does_not_wait_for_the_disk(self):
        def synced(*_):
            self.fail("the program waited for the disk")

        with contextlib.ExitStack() as stack:
            stack.enter_context(unittest.mock.patch.object(belay, "commit"))
            for name in ("fsync", "fdatasync", "sync"):
                stack.enter_context(unittest.mock.patch.object(os, name, synced))
            with belay.checkpoint(5) as directory:
                with open(os.path.join(directory, "state"), "w") as f:
                    f.write("5")
        self.assertEqual(os.listdir(self.checkpoint), ["state"])

    def test_a_checkpoint_block_that_fails_changes_nothing(self):
        with self.assertRaises(ZeroDivisionError):
            with belay.checkpoint(3) as directory:
                with open(os.path.join(directory, "half"), "w") as f:
                    f.write("x")
                raise ZeroDivisionError
        self.assertEqual(os.listdir(self.checkpoint), [])
        self.assertEqual(os.listdir(self.control), [])

    def test_seconds_left_is_the_nearest_deadline(self):
        now = time.time()
        self.assertEqual(belay.seconds_left(), float("inf"))
        self.put("notice", {"kind": "rebalance", "deadline_ms": None})
        self.assertEqual(belay.seconds_left(), float("inf"))
        self.put("notice", {"kind": "reclaim", "deadline_ms": int((now + 100) * 1000)})
        self.assertTrue(80 < belay.seconds_left() <= 100)
        self.put("request", {"reason": "notice", "deadline_ms": int((now - 5) * 1000)})
        self.assertEqual(belay.seconds_left(), 0)

    def test_progress_reaches_the_disk_now_and_then_and_at_the_end(self):
        start = time.monotonic()
        numbers = set()
        for i in range(2000):
            belay.progress(i, 2000)
            numbers.add(self.read("progress")["done"])
        self.assertLessEqual(len(numbers), 2 + (time.monotonic() - start) / 0.2)
        belay.progress(2000, 2000)
        self.assertEqual(self.read("progress"), {"done": 2000, "total": 2000})
        os.environ["BELAY_CONTROL_DIR"] = os.path.join(self.dir, "none")
        belay.progress(2001, 2001)

    def test_steps_may_be_integers_of_numpy_or_pytorch(self):
        class Integer:
            def __init__(self, value):
                self.value = value

            def __index__(self):
                return self.value

            def __eq__(self, other):
                return self.value == getattr(other, "value", other)

        belay.progress(Integer(30), Integer(40))
        self.assertEqual(self.read("progress"), {"done": 30, "total": 40})
        self.agent(1, {"ok": True})
        self.assertTrue(belay.commit(Integer(30), Integer(40)))
        self.assertEqual(self.read("commit.1"), {"progress": 30, "total": 40, "wait": False})
        with self.assertRaises(TypeError):
            belay.commit(object())
        self.assertEqual(sorted(os.listdir(self.control)), ["commit.1", "progress", "result.1"])

    def test_waits_for_other_ranks_add_up(self):
        belay.waited(0.25)
        self.assertEqual(self.read("waited"), {"ms": 250})
        for none in (-1, 0, float("nan"), float("inf")):
            belay.waited(none)
        start = time.monotonic()
        while self.read("waited")["ms"] == 250:  # reported once a second
            with belay.waiting():
                self.assertLess(time.monotonic() - start, 10)
        self.assertLess(self.read("waited")["ms"], 10250)
        os.environ["BELAY_CONTROL_DIR"] = os.path.join(self.dir, "none")
        belay.waited(1)

    def test_restored_needs_the_directory(self):
        self.assertFalse(belay.restored())
        os.environ["BELAY_RESTORED"] = "1"
        self.assertTrue(belay.restored())
        self.assertEqual(belay.checkpoint_dir(), self.checkpoint)


class OutsideBelay(unittest.TestCase):
    def test_nothing_is_to_do(self):
        importlib.reload(belay)
        self.assertFalse(belay.restored())
        self.assertIsNone(belay.checkpoint_dir())
        self.assertFalse(belay.should_checkpoint())
        self.assertEqual(belay.seconds_left(), float("inf"))
        self.assertTrue(belay.commit(1, 2))
        self.assertIsNone(belay.last_durable())
        self.assertTrue(belay.wait_durable())
        belay.progress(1, 2)
        with belay.waiting():
            belay.waited(1)
        self.assertFalse(belay.stopping())
        with belay.checkpoint(1) as directory:
            with open(os.path.join(directory, "x"), "w") as f:
                f.write("x")
        self.assertFalse(os.path.exists(directory))


for name in NAMES:
    os.environ.pop(name, None)
unittest.main(verbosity=2)
