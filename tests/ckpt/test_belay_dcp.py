# SPDX-License-Identifier: Apache-2.0
"""belay.dcp on ranks of several nodes, each with an agent of its own that is a thread of this
test: what one number of ranks saved is restored on another, bit for bit. Skipped where PyTorch is
not installed or has no torch.distributed.checkpoint."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

sys.dont_write_bytecode = True
LIB = sys.argv.pop(1)
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, LIB)
import belay

try:
    import torch
    import torch.distributed.checkpoint as dcp
    import torch.distributed.tensor  # noqa: F401
except ImportError:
    torch = None
STEPS = 12
TIMEOUT_S = 200


class Job:
    """A gang of nodes: its store holds the checkpoints that all nodes have committed."""

    def __init__(self, test):
        self.test = test
        self.dir = tempfile.mkdtemp(prefix="belay-test-")
        test.addCleanup(shutil.rmtree, self.dir)
        self.store = os.path.join(self.dir, "store")
        self.stored = []  # progress of whole checkpoints, oldest first
        self.attempt = 0

    def part(self, progress, node):
        return os.path.join(self.store, "%s" % progress, "rank-%04d" % node)

    def begin(self, nodes, ranks_per_node=1):
        """A new attempt, with what the newest whole checkpoint has."""
        self.attempt += 1
        self.nodes = [Node(self, n) for n in range(nodes)]
        saved = self.stored[-1] if self.stored else None
        saved_nodes = len(os.listdir(os.path.join(self.store, str(saved)))) if saved else 0
        for n, node in enumerate(self.nodes):
            node.environment["BELAY_RESTORED"] = "1" if saved else "0"
            node.environment["BELAY_RESTORED_RANKS"] = str(saved_nodes)
            if n < saved_nodes:
                shutil.copytree(self.part(saved, n), node.checkpoint, dirs_exist_ok=True)
            if saved and saved_nodes != nodes:
                every = os.path.join(node.dir, "ranks")
                shutil.copytree(os.path.join(self.store, str(saved)), every)
                node.environment["BELAY_RESTORED_DIR"] = every

    def run(self, ranks, ask=None, fault=None):
        """Runs the ranks, in turn on the nodes. ask: (step, reason): from that step on each agent
        wants a save. fault: (rank, "die" or "fail", step). Returns rank 0's lines and all exit
        codes."""
        meeting = os.path.join(self.dir, "meeting%d" % self.attempt)
        processes = []
        for rank in range(ranks):
            node = self.nodes[rank % len(self.nodes)]
            command = [sys.executable, os.path.join(HERE, "dcp_rank.py"), LIB, meeting]
            command += [str(rank), str(ranks), str(STEPS)]
            if fault and fault[0] == rank:
                command += [fault[1], str(fault[2])]
            environment = {**os.environ, **node.environment, "GLOO_SOCKET_IFNAME": "lo"}
            environment["LOCAL_RANK"] = str(rank // len(self.nodes))
            err = tempfile.TemporaryFile()
            self.test.addCleanup(err.close)
            processes.append(
                (
                    subprocess.Popen(
                        command,
                        env=environment,
                        stdin=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                        stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                        stderr=err,
                        text=True,
                    ),
                    err,
                )
            )
        first = processes[0][0]
        lines = []
        ended = threading.Event()
        servers = [threading.Thread(target=node.serve, args=(ended,)) for node in self.nodes]
        for server in servers:
            server.start()
        # Like belay, which ends the other ranks of a gang when one has failed.
        watch = threading.Thread(target=self.end_all, args=([p for p, _ in processes],))
        watch.start()
        try:
            for line in first.stdout:
                lines.append(line.strip())
                if ask and line == "step %d\n" % ask[0]:
                    for node in self.nodes:
                        node.ask(ask[1])
                if line.startswith("step "):
                    try:
                        first.stdin.write("\n")
                        first.stdin.flush()
                    except BrokenPipeError:
                        break
            codes = [p.wait(TIMEOUT_S) for p, _ in processes]
        finally:
            for p, _ in processes:
                p.kill()
            watch.join()
            ended.set()
            for server in servers:
                server.join()
        said = []
        for p, err in processes:
            if p.stdout:
                p.stdout.close()
            if p.stdin:
                p.stdin.close()
            err.seek(0)
            said.append(err.read().decode(errors="replace"))
        self.said = "\n".join(said)
        return lines, codes

    @staticmethod
    def end_all(processes):
        left = list(processes)
        while left:
            for p in list(left):
                try:
                    code = p.wait(0.05)
                except subprocess.TimeoutExpired:
                    continue
                left.remove(p)
                if code not in (0, belay.EXIT_CHECKPOINTED):
                    for other in left:
                        other.kill()

    def committed(self, progress):
        """A node has committed: keeps the checkpoint once all have."""
        here = os.path.join(self.store, str(progress))
        if len(os.listdir(here)) == len(self.nodes):
            self.stored.append(progress)


class Node:
    """The agent's side of the file protocol on one node."""

    lock = threading.Lock()

    def __init__(self, job, number):
        self.job, self.number = job, number
        self.dir = os.path.join(job.dir, "%d-%d" % (job.attempt, number))
        self.control = os.path.join(self.dir, "control")
        self.checkpoint = os.path.join(self.dir, "checkpoint")
        os.makedirs(self.control)
        os.makedirs(self.checkpoint)
        self.reason = None
        self.environment = {
            "BELAY_CONTROL_DIR": self.control,
            "BELAY_CHECKPOINT_DIR": self.checkpoint,
            "BELAY_NODE_RANK": str(number),
            "USE_LIBUV": "0",
        }

    def put(self, name, value):
        temp = os.path.join(self.dir, "new")
        with open(temp, "w") as f:
            json.dump(value, f)
        os.rename(temp, os.path.join(self.control, name))

    def ask(self, reason):
        self.reason = reason
        self.put("request", {"id": 1, "reason": reason, "deadline_ms": None})

    def serve(self, ended):
        number = 1
        while not ended.is_set():
            path = os.path.join(self.control, "commit.%d" % number)
            if not os.path.exists(path):
                ended.wait(0.01)
                continue
            with open(path) as f:
                progress = json.load(f)["progress"]
            with Node.lock:
                # A save that was not whole, of an earlier attempt, is replaced.
                shutil.rmtree(self.job.part(progress, self.number), ignore_errors=True)
                shutil.copytree(self.checkpoint, self.job.part(progress, self.number))
                self.job.committed(progress)
            stop, self.reason = self.reason in ("notice", "evict"), None
            # Before a node is given up the answer comes when the checkpoint of all is durable.
            while stop and progress not in self.job.stored and not ended.wait(0.01):
                pass
            os.unlink(os.path.join(self.control, "request"))
            self.put("result.%d" % number, {"ok": True, "sequence": number, "stop": stop})
            number += 1


@unittest.skipUnless(torch, "PyTorch 2.6 or later (torch.distributed.checkpoint) is not installed")
class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.expected = {}

    def undisturbed(self, ranks):
        if ranks not in self.expected:
            job = Job(self)
            job.begin(1)
            lines, codes = job.run(ranks)
            self.assertEqual(codes, [0] * ranks, job.said)
            self.assertEqual(job.stored, [])
            self.expected[ranks] = lines[-1]
        return self.expected[ranks]

    def state(self, line):
        self.assertRegex(line, "^state ")
        return line.split()[1]

    def check(self, job, ranks, saved):
        """The next attempt, of so many ranks, resumes from that step and ends as it would have."""
        self.assertEqual(job.stored[-1], saved)
        lines, codes = job.run(ranks)
        self.assertEqual(codes, [0] * ranks, job.said)
        self.assertEqual(lines[:2], ["resumed at step %d" % saved, "step %d" % (saved + 1)])
        self.assertEqual(self.state(lines[-1]), self.state(self.undisturbed(2)))
        return lines

    def test_the_state_does_not_depend_on_the_number_of_ranks(self):
        self.assertEqual(self.state(self.undisturbed(3)), self.state(self.undisturbed(2)))

    def test_two_nodes_stop_at_a_notice_then_three_then_two_continue(self):
        job = Job(self)
        for nodes, step, reason in ((2, 4, "notice"), (3, 8, "evict")):
            job.begin(nodes)
            lines, codes = job.run(nodes, ask=(step, reason))
            self.assertEqual(codes, [belay.EXIT_CHECKPOINTED] * nodes, job.said)
            self.assertEqual((lines[-1], job.stored[-1]), ("step %d" % step, step))
        job.begin(2)
        self.check(job, 2, 8)

    def test_each_node_needs_only_its_own_part_when_their_number_is_the_same(self):
        job = Job(self)
        job.begin(2)
        job.run(2, ask=(6, "notice"))
        held = [os.listdir(os.path.join(job.part(6, node), "dcp")) for node in range(2)]
        self.assertEqual(sorted(held[0]), [".metadata", "__0_0.distcp"])
        self.assertEqual(held[1], ["__1_0.distcp"])
        job.begin(2)
        lines = self.check(job, 2, 6)
        self.assertEqual(lines[-1], self.undisturbed(2))  # the generators too
        for node in job.nodes:
            self.assertEqual(sorted(os.listdir(node.checkpoint)), ["dcp"])

    def test_training_goes_on_during_a_save(self):
        job = Job(self)
        job.begin(2)
        lines, codes = job.run(2, ask=(3, "periodic"))
        self.assertEqual((codes, job.stored), ([0, 0], [3]), job.said)
        self.assertEqual(lines[-1], self.undisturbed(2))
        job.begin(3)
        self.check(job, 3, 3)

    def test_a_rank_killed_in_the_middle_of_a_save_costs_only_that_save(self):
        job = Job(self)
        job.begin(2)
        job.run(2, ask=(3, "notice"))
        for rank in (1, 0):
            job.begin(2)
            _, codes = job.run(2, ask=(7, "periodic"), fault=(rank, "die", 7))
            self.assertEqual((codes, job.stored), ([-9, -9], [3]), job.said)
        job.begin(3)
        self.check(job, 3, 3)

    def test_a_rank_that_cannot_write_costs_only_that_save(self):
        job = Job(self)
        job.begin(2)
        lines, codes = job.run(2, ask=(7, "periodic"), fault=(1, "fail", 7))
        self.assertEqual(codes, [0, 0], job.said)
        self.assertIn("not saved, continuing: rank 1: no space left on the device", job.said)
        self.assertTrue(all(step > 7 for step in job.stored), job.stored)  # the request stays
        self.assertEqual(lines[-1], self.undisturbed(2))

    def test_four_ranks_on_two_nodes_then_three_on_one(self):
        job = Job(self)
        job.begin(2)
        _, codes = job.run(4, ask=(5, "notice"))
        self.assertEqual(codes, [belay.EXIT_CHECKPOINTED] * 4, job.said)
        job.begin(1)
        self.check(job, 3, 5)


@unittest.skipUnless(torch, "PyTorch 2.6 or later (torch.distributed.checkpoint) is not installed")
class Alone(unittest.TestCase):
    """One process, with torch.distributed.checkpoint's own functions."""

    def setUp(self):
        self.job = Job(self)
        self.job.begin(1)
        self.enter()

    def enter(self):
        os.environ.update(self.job.nodes[0].environment)
        self.addCleanup(
            lambda: [os.environ.pop(name, None) for name in self.job.nodes[0].environment]
        )

    def save(self, save, state, step):
        import belay.dcp

        ended = threading.Event()
        server = threading.Thread(target=self.job.nodes[0].serve, args=(ended,))
        self.job.nodes[0].ask("periodic")
        server.start()
        try:
            future = save(state, storage_writer=belay.dcp.Writer(step, 100))
            if save is dcp.async_save:
                for value in state.values():
                    value.zero_()  # as the next step of a training loop
                future.result(TIMEOUT_S)
        finally:
            ended.set()
            server.join()

    def test_what_a_save_wrote_is_loaded(self):
        import belay.dcp

        for step, save in ((1, dcp.save), (2, dcp.async_save)):
            state = {"a": torch.arange(30.0).reshape(3, 10) * step, "b": torch.ones(7) * step}
            wanted = {name: value.clone() for name, value in state.items()}
            self.save(save, state, step)
            self.job.begin(1)
            self.enter()
            found = {name: torch.zeros_like(value) for name, value in state.items()}
            dcp.load(found, storage_reader=belay.dcp.Reader())
            for name in wanted:
                self.assertTrue(torch.equal(found[name], wanted[name]), name)
        self.assertEqual(self.job.stored, [1, 2])

    def test_without_a_checkpoint_there_is_nothing_to_load(self):
        import belay.dcp

        with self.assertRaisesRegex(RuntimeError, "no checkpoint to load"):
            belay.dcp.Reader()

    def test_outside_belay_nothing_is_written(self):
        import belay.dcp

        for name in self.job.nodes[0].environment:
            os.environ.pop(name)
        here = os.listdir(".")
        dcp.save({"a": torch.ones(3)}, storage_writer=belay.dcp.Writer(1))
        self.assertEqual(os.listdir("."), here)

    def test_memory_of_a_copy_is_used_again(self):
        import belay.dcp

        stager = belay.dcp.Stager()
        state = {"layers": [torch.ones(4), torch.ones(2, 2)], "n": 1, "names": ("a", "b")}
        first = stager.copy(state)
        places = [t.data_ptr() for t in first["layers"]]
        state["layers"][0].mul_(3)
        self.assertEqual(first["layers"][0].tolist(), [1.0] * 4)
        state["layers"][1] = torch.ones(3, 2)
        second = stager.copy(state)
        self.assertEqual(second["layers"][0].tolist(), [3.0] * 4)
        self.assertEqual(second["layers"][0].data_ptr(), places[0])
        self.assertEqual((second["n"], second["names"]), (1, ("a", "b")))
        self.assertEqual(second["layers"][1].shape, (3, 2))

    def test_what_cannot_be_written_keeps_the_checkpoint_before(self):
        import belay.dcp
        from torch.distributed.checkpoint import filesystem
        from torch.distributed.checkpoint.api import CheckpointException

        self.save(dcp.save, {"a": torch.ones(3)}, 1)

        def full(*arguments, **more):
            raise OSError("no space left on the device")

        write = filesystem._write_item
        filesystem._write_item = full
        self.addCleanup(setattr, filesystem, "_write_item", write)
        with self.assertRaisesRegex(CheckpointException, "no space left"):
            dcp.save({"a": torch.zeros(3)}, storage_writer=belay.dcp.Writer(2))
        with unittest.mock.patch("threading.excepthook"):
            with self.assertRaisesRegex(CheckpointException, "a thread could not write its part"):
                dcp.save({"a": torch.zeros(3)}, storage_writer=belay.dcp.Writer(2, threads=2))
        filesystem._write_item = write
        self.assertEqual(os.listdir(self.job.nodes[0].checkpoint), ["dcp"])
        self.assertEqual(self.job.stored, [1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
