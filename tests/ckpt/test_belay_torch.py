# SPDX-License-Identifier: Apache-2.0
"""belay.torch, belay.lightning and belay.transformers against an agent that is a thread of
this test. Tests that need PyTorch are skipped where it is not installed; the trainers of Lightning
and transformers are fakes that make the same calls as the real ones."""

import contextlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import unittest.mock

sys.dont_write_bytecode = True
LIB, EXAMPLES = sys.argv.pop(1), sys.argv.pop(1)
HERE = os.path.dirname(os.path.abspath(__file__))
# Debian's torch has no libuv.
LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo", "USE_LIBUV": "0"}
sys.path.insert(0, LIB)
import belay

try:
    import torch
except ImportError:
    torch = None


def has(module):
    try:
        return torch is not None and importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of its parent
        return False


needs_torch = unittest.skipUnless(torch, "PyTorch (python3-torch) is not installed")

TRAIN = [
    sys.executable,
    os.path.join(EXAMPLES, "pytorch", "train.py"),
    "--steps",
    "30",
    "--batch",
    "16",
]
DATA = "/usr/share/datasets/fashion-mnist"
needs_data = unittest.skipUnless(
    torch and os.path.isdir(DATA), "needs PyTorch and dataset-fashion-mnist"
)


class Agent:
    """The agent's side of the file protocol, for a program or this process."""

    def __init__(self, test):
        self.dir = tempfile.mkdtemp(prefix="belay-test-")
        test.addCleanup(shutil.rmtree, self.dir)
        self.control, self.checkpoint = os.path.join(self.dir, "control"), os.path.join(
            self.dir, "checkpoint"
        )
        os.mkdir(self.control)
        os.mkdir(self.checkpoint)
        self.commits = []

    def environment(self, restored):
        return {
            "BELAY_CONTROL_DIR": self.control,
            "BELAY_CHECKPOINT_DIR": self.checkpoint,
            "BELAY_NOTICE_FILE": os.path.join(self.control, "notice"),
            "BELAY_RESTORED": "1" if restored else "0",
        }

    def put(self, name, value):
        temp = os.path.join(self.dir, "new")
        with open(temp, "w") as f:
            json.dump(value, f)
        os.rename(temp, os.path.join(self.control, name))

    def ask(self, reason):
        self.put("request", {"id": 1, "reason": reason, "deadline_ms": None})

    def forget(self, name):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.control, name))

    def serve(self, alive, stop, take_back=False):
        """Answers commits while alive(). take_back: removes the request at the first."""
        number = len(self.commits) + 1
        while alive():
            path = os.path.join(self.control, "commit.%d" % number)
            if not os.path.exists(path):
                os.sched_yield()
                continue
            with open(path) as f:
                self.commits.append(json.load(f))
            if take_back:
                self.forget("request")
            self.put(
                "result.%d" % number, {"ok": True, "attempt": 1, "sequence": number, "stop": stop}
            )
            number += 1


class InProcess(unittest.TestCase):
    """belay's request goes to this process."""

    def setUp(self):
        self.agent = Agent(self)
        self.begin(restored=False)
        self.addCleanup(
            lambda: [os.environ.pop(name, None) for name in self.agent.environment(False)]
        )

    def begin(self, restored):
        os.environ.update(self.agent.environment(restored))
        for name in ("belay", "belay.torch", "belay.lightning", "belay.transformers"):
            if name in sys.modules:
                importlib.reload(sys.modules[name])

    @contextlib.contextmanager
    def served(self, stop):
        done = threading.Event()
        thread = threading.Thread(target=self.agent.serve, args=(lambda: not done.is_set(), stop))
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def stand_in(self, name, **members):
        module = types.ModuleType(name)
        module.__dict__.update(members)
        sys.modules[name] = module
        self.addCleanup(sys.modules.pop, name)


def without_torch():
    """The trainers' callbacks do not need torch on one rank."""
    if torch:
        return
    module = types.ModuleType("torch")
    distributed = types.ModuleType("torch.distributed")
    distributed.is_available = lambda: False
    data = types.ModuleType("torch.utils.data")
    data.DataLoader, data.Sampler = object, object
    module.distributed = distributed
    for name, value in (
        ("torch", module),
        ("torch.distributed", distributed),
        ("torch.utils", types.ModuleType("torch.utils")),
        ("torch.utils.data", data),
    ):
        sys.modules[name] = value


class Callbacks(InProcess):
    @classmethod
    def setUpClass(cls):
        without_torch()

    def lightning(self):
        self.stand_in("lightning.pytorch.callbacks", Callback=object)
        self.stand_in("lightning.pytorch")
        self.stand_in("lightning")
        import belay.lightning

        self.addCleanup(sys.modules.pop, "belay.lightning")
        return belay.lightning

    def trainer(self):
        def save(path):
            with open(path, "w") as f:
                f.write("state at %d" % trainer.global_step)

        trainer = types.SimpleNamespace(
            global_step=7,
            max_steps=10,
            is_global_zero=True,
            should_stop=False,
            save_checkpoint=save,
        )
        return trainer

    def test_lightning_saves_when_asked_and_stops_at_a_notice(self):
        module, trainer = self.lightning(), self.trainer()
        callback = module.Checkpoints()
        self.assertIsNone(module.restored())
        callback.on_train_batch_end(trainer, None, None, None, 0)
        self.assertEqual(os.listdir(self.agent.checkpoint), [])
        for reason, stop in (("periodic", False), ("notice", True)):
            self.agent.ask(reason)
            belay._asked_at = None
            with self.served(stop):
                callback.on_train_batch_end(trainer, None, None, None, 0)
            self.assertEqual(trainer.should_stop, stop)
            trainer.global_step += 1
        self.assertEqual(
            self.agent.commits, [{"progress": n, "total": 10, "wait": False} for n in (7, 8)]
        )
        with self.assertRaises(SystemExit) as end:
            module.exit_if_stopped()
        self.assertEqual(end.exception.code, belay.EXIT_CHECKPOINTED)
        self.begin(restored=True)
        with open(module.restored()) as f:
            self.assertEqual(f.read(), "state at 8")

    @needs_torch
    def test_lightning_goes_on_with_the_generators_of_its_rank(self):
        module = self.lightning()
        saved = module.Checkpoints().state_dict()
        self.assertTrue(all(type(n) is int for state in saved["generators"] for n in state))
        expected = torch.rand(3).tolist()
        for states, same in ((1, True), (2, False)):  # 2: saved by another number of ranks
            callback = module.Checkpoints()
            callback.load_state_dict({"generators": saved["generators"] * states})
            torch.rand(5)  # what is drawn before the training begins
            callback.on_train_start(None, None)
            self.assertEqual(torch.rand(3).tolist() == expected, same)
            callback.on_train_start(None, None)  # of a second fit()
            self.assertNotEqual(torch.rand(3).tolist(), expected)

    def test_lightning_that_cannot_write_goes_on(self):
        module, trainer = self.lightning(), self.trainer()

        def fail(path):
            raise RuntimeError("cannot pickle a lambda")

        trainer.save_checkpoint = fail
        self.agent.ask("notice")
        with contextlib.redirect_stderr(io.StringIO()) as said:
            module.Checkpoints().on_train_batch_end(trainer, None, None, None, 0)
        self.assertIn("belay: not saved, continuing: cannot pickle a lambda", said.getvalue())
        self.assertFalse(trainer.should_stop)
        self.assertEqual(os.listdir(self.agent.checkpoint), [])

    def test_transformers_saves_when_asked_and_stops_at_a_notice(self):
        self.stand_in("transformers", TrainerCallback=object)
        import belay.transformers as module

        self.addCleanup(sys.modules.pop, "belay.transformers")
        output = os.path.join(self.agent.dir, "output")
        args = types.SimpleNamespace(output_dir=output)
        state = types.SimpleNamespace(global_step=7, max_steps=10, is_world_process_zero=True)
        control = types.SimpleNamespace(should_save=False, should_training_stop=False)
        callback = module.Checkpoints()
        self.assertFalse(callback.on_step_end(args, state, control).should_save)
        self.agent.ask("notice")
        belay._asked_at = None
        self.assertTrue(callback.on_step_end(args, state, control).should_save)
        os.makedirs(os.path.join(output, "checkpoint-7"))
        with open(os.path.join(output, "checkpoint-7", "trainer_state.json"), "w") as f:
            f.write("seven")
        with self.served(True):
            callback.on_save(args, state, control)
        self.assertTrue(control.should_training_stop)
        self.begin(restored=True)
        with open(os.path.join(module.restored(), "trainer_state.json")) as f:
            self.assertEqual(f.read(), "seven")

    def test_what_an_earlier_checkpoint_of_the_trainer_had_does_not_pile_up(self):
        """DeepSpeed writes a directory of a new name into each."""
        self.stand_in("transformers", TrainerCallback=object)
        import belay.transformers as module

        self.addCleanup(sys.modules.pop, "belay.transformers")
        output = os.path.join(self.agent.dir, "output")
        args = types.SimpleNamespace(output_dir=output)
        state = types.SimpleNamespace(max_steps=10, is_world_process_zero=True)
        control = types.SimpleNamespace(should_save=False, should_training_stop=False)
        callback = module.Checkpoints()
        with open(os.path.join(self.agent.checkpoint, "of the program"), "w"):
            pass
        with self.served(False):
            for state.global_step in (7, 8, 9):
                saved = os.path.join(output, "checkpoint-%d" % state.global_step)
                states = os.path.join(saved, "global_step%d" % state.global_step)
                os.makedirs(states)
                for path in (os.path.join(saved, "latest"), os.path.join(states, "optimizer.pt")):
                    with open(path, "w") as f:
                        f.write("at %d" % state.global_step)
                callback.on_save(args, state, control)
        self.begin(restored=True)
        found = [os.path.relpath(at, module.restored()) for at, _, _ in os.walk(module.restored())]
        self.assertEqual(found, [".", "global_step9"])
        with open(os.path.join(module.restored(), "latest")) as f:
            self.assertEqual(f.read(), "at 9")
        self.assertEqual(sorted(os.listdir(self.agent.checkpoint)), ["of the program", "trainer"])

    def test_the_trainer_of_several_nodes_has_to_save_on_each(self):
        self.stand_in("transformers", TrainerCallback=object)
        import belay.transformers as module

        self.addCleanup(sys.modules.pop, "belay.transformers")
        with unittest.mock.patch.dict(os.environ, {"BELAY_NNODES": "2"}):
            for each in (True, False):
                args = types.SimpleNamespace(save_on_each_node=each)
                with contextlib.nullcontext() if each else self.assertRaisesRegex(
                    ValueError, "save_on_each_node=True"
                ):
                    module.Checkpoints().on_train_begin(args, None, None)

    def test_transformers_whose_checkpoint_is_missing_goes_on(self):
        self.stand_in("transformers", TrainerCallback=object)
        import belay.transformers as module

        self.addCleanup(sys.modules.pop, "belay.transformers")
        args = types.SimpleNamespace(output_dir=os.path.join(self.agent.dir, "none"))
        state = types.SimpleNamespace(global_step=7, max_steps=10, is_world_process_zero=True)
        control = types.SimpleNamespace(should_save=False, should_training_stop=False)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            module.Checkpoints().on_save(args, state, control)
        self.assertIn("not saved, continuing", said.getvalue())
        self.assertFalse(control.should_training_stop)


@needs_torch
class Loops(InProcess):
    def batches(self, start, **more):
        import belay.torch

        return list(belay.torch.BatchesByStep(100, 8, 3, start, 40, **more))

    def test_batches_follow_from_seed_and_step(self):
        whole = self.batches(0)
        self.assertEqual(len(whole), 40)
        self.assertEqual(whole[17:], self.batches(17))
        for epoch in range(3):
            seen = [i for batch in whole[12 * epoch : 12 * epoch + 12] for i in batch]
            self.assertEqual(len(seen), len(set(seen)))
            self.assertTrue(all(0 <= i < 100 for i in seen))
        self.assertNotEqual(whole[0], whole[12])
        with self.assertRaisesRegex(ValueError, "do not make one batch"):
            importlib.import_module("belay.torch").BatchesByStep(7, 8, 1, 0, 10)

    def test_a_step_of_a_global_batch_is_the_same_for_any_number_of_ranks(self):
        import belay.torch

        steps = []
        for ranks in (1, 2, 3, 4):
            shares = []
            for rank in range(ranks):
                with unittest.mock.patch.multiple(
                    belay.torch, rank=lambda r=rank: r, world_size=lambda n=ranks: n
                ):
                    shares.append(
                        list(belay.torch.BatchesByStep(100, None, 3, 5, 15, global_batch=10))
                    )
            self.assertTrue(all(sum(len(s[k]) for s in shares) == 10 for k in range(10)))
            steps.append([[i for s in shares for i in s[k]] for k in range(10)])
        self.assertTrue(all(s == steps[0] for s in steps))

    def test_a_checkpoint_of_other_parts_is_refused(self):
        import belay.torch

        layer = torch.nn.Linear(2, 2)
        with self.served(False):
            belay.torch.Run(5, layer=layer).save()
        self.begin(restored=True)
        import belay.torch

        with self.assertRaisesRegex(
            RuntimeError, r"has the parts \['layer'\], the run \['model'\]"
        ):
            belay.torch.Run(5, model=layer)

    def test_a_loader_with_a_state_goes_on_where_it_was(self):
        class Loader:
            def __init__(self):
                self.at = 0

            def __iter__(self):
                while True:
                    self.at += 1
                    yield self.at

            def state_dict(self):
                torch.rand(1)  # as one that draws a seed
                return {"at": self.at}

            def load_state_dict(self, state):
                self.at = state["at"]
                torch.rand(1)

        kinds = ["belay.torch"] + (["belay.dcp"] if has("torch.distributed.tensor") else [])
        for kind in kinds:
            with self.subTest(kind):
                self.begin(restored=False)
                module = importlib.import_module(kind)
                loader = Loader()
                run = module.Run(5, each={"loader": loader})
                for _, batch in zip(range(3), loader):
                    run.step = batch
                with self.served(False):
                    run.save()
                    getattr(run, "wait", lambda: None)()
                self.begin(restored=True)
                module = importlib.reload(importlib.import_module(kind))
                expected = torch.rand(1)
                for ranks, begins in ((1, run.step + 1), (2, 1)):
                    loader = Loader()
                    with contextlib.ExitStack() as stack:
                        said = stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
                        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
                        if ranks > 1:  # the checkpoint is of another number
                            path = os.path.join(self.agent.checkpoint, "state.pt")
                            if kind == "belay.dcp":
                                continue
                            content = torch.load(path, weights_only=False)
                            torch.save({**content, "ranks": ranks}, path)
                        run = module.Run(5, each={"loader": loader})
                    self.assertEqual((run.step, next(iter(loader))), (3, begins))
                    self.assertEqual("loader begin anew" in said.getvalue(), ranks > 1)
                    if ranks == 1:
                        self.assertTrue(torch.equal(torch.rand(1), expected))

    def test_generators_go_on_where_they_were(self):
        import random

        import numpy

        import belay.torch

        state = belay.torch.rng_state()
        first = (torch.rand(3).tolist(), random.random(), numpy.random.rand())
        belay.torch.set_rng_state(state)
        self.assertEqual((torch.rand(3).tolist(), random.random(), numpy.random.rand()), first)


@needs_torch
class Polls(unittest.TestCase):
    """Processes with their own clocks, of two nodes: ranks 0 and 1 ask belay, rank 2 does not."""

    def run_ranks(self, durations, ask=((), (), ()), steps=500, **arguments):
        """Returns the steps of saves and of collectives, which must be the same on all ranks."""
        directory = tempfile.mkdtemp(prefix="belay-test-")
        self.addCleanup(shutil.rmtree, directory)
        ranks = []
        for rank in range(3):
            plan = {"steps": steps, "arguments": arguments}
            plan.update(durations=durations[rank], ask=ask[rank])
            command = [sys.executable, os.path.join(HERE, "poll_rank.py"), LIB]
            command += [os.path.join(directory, "meeting"), str(rank), "3", json.dumps(plan)]
            env = {**os.environ, "LOCAL_RANK": "1" if rank == 2 else "0", **LOOPBACK}
            ranks.append(
                subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            )
        found = []
        for p in ranks:
            out, err = p.communicate(timeout=200)
            self.assertEqual(p.returncode, 0, err.decode())
            found.append(json.loads(out))
        self.assertEqual(found[1:], found[:1] * 2)
        return found[0]["saves"], found[0]["collectives"]

    def test_all_ranks_save_at_the_same_step_by_whichever_clock(self):
        found, collectives = self.run_ranks(
            [[[1, 0.010]], [[1, 0.013]], [[1, 0.020], [40, 3.0], [41, 0.020]]],
            ask=([], [100, 301], [200]),  # nobody asks rank 2
        )
        self.assertEqual(len(found), 2)
        for step, asked in zip(found, (100, 301)):
            self.assertIn(step - asked, range(51))  # a second of the slowest
        self.assertLess(len(collectives), 40)

    def test_a_run_that_becomes_slow_is_asked_after_each_step_again(self):
        fast = [[1, 0.001], [301, 5.0]]
        _, collectives = self.run_ranks([fast, [[1, 0.001]], [[1, 0.001]]])
        self.assertEqual(collectives[:8], [1, 3, 7, 15, 31, 63, 127, 255])
        self.assertEqual(collectives[8:], list(range(255 + 128, 501)))

    def test_every_so_many_steps(self):
        found, collectives = self.run_ranks(
            [[[1, 9.0]]] * 3, ask=([3], [20], []), steps=40, every_steps=7
        )
        self.assertEqual((found, collectives), ([7, 21], [7, 14, 21, 28, 35]))

    def test_the_least_that_a_rank_was_given_counts(self):
        _, collectives = self.run_ranks([[[1, 0.125]], [[1, 0.25]], [[1, 0.125]]], every_s=2.0)
        self.assertEqual(collectives[:5], [1, 3, 7, 15, 23])  # 8 steps of 0.25 s


@needs_torch
class Programs(unittest.TestCase):
    """The interrupted program gives the result of an undisturbed run."""

    def run_once(self, agent, command, restored=False, stop=True):
        environment = {
            **os.environ,
            **LOOPBACK,
            **(agent.environment(restored) if agent else {}),
            "PYTHONPATH": LIB,
        }
        p = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if agent:
            server = threading.Thread(
                target=agent.serve, args=(lambda: p.poll() is None, stop, True)
            )
            server.start()
        out, err = p.communicate(timeout=240)
        if agent:
            server.join()
        return p.returncode, out, err

    def check(self, command, codes):
        code, undisturbed, err = self.run_once(None, command)
        if re.search("without libuv support", err):
            self.skipTest("this PyTorch has no libuv, and its torchrun does not start without")
        self.assertEqual(code, 0, err)
        agent = Agent(self)
        agent.ask("notice")
        code, first, err = self.run_once(agent, command)
        self.assertIn(code, codes, err)
        self.assertNotIn("weights", first)
        agent.forget("request")
        code, second, err = self.run_once(agent, command, restored=True)
        self.assertEqual(code, 0, err)
        self.assertIn("resumed at step %d\n" % agent.commits[0]["progress"], second)
        self.assertEqual(second.splitlines()[-1], undisturbed.splitlines()[-1])

    @unittest.skipUnless(has("transformers"), "transformers is not installed")
    def test_the_trainer_of_transformers(self):
        output = tempfile.mkdtemp(prefix="belay-test-")
        self.addCleanup(shutil.rmtree, output)
        command = [sys.executable, os.path.join(HERE, "trainer.py"), output]
        self.check(command, [belay.EXIT_CHECKPOINTED])

    @unittest.skipUnless(has("accelerate"), "accelerate is not installed")
    def test_a_loop_of_accelerate(self):
        command = [sys.executable, os.path.join(HERE, "accelerated.py")]
        self.check(command, [belay.EXIT_CHECKPOINTED])

    @needs_data
    def test_one_process(self):
        self.check(TRAIN, [belay.EXIT_CHECKPOINTED])

    @needs_data
    def test_two_ranks_under_torchrun(self):
        run = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--redirects",
            "2",
            "--tee",
            "2",
            "--nproc_per_node",
            "2",
        ]
        # torchrun returns its own exit code; belay has already asked the task to end by then.
        self.check(run + TRAIN[1:], [1, belay.EXIT_CHECKPOINTED])


if __name__ == "__main__":
    unittest.main(verbosity=2)
