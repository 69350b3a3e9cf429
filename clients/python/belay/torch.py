# SPDX-License-Identifier: Apache-2.0
"""PyTorch training loops that survive the loss of a node. PyTorch 1.13 or later.

    import belay.torch

    run = belay.torch.Run(total=10000, model=model, optimizer=optimizer, schedule=schedule)
    for step, (images, labels) in run.batches(dataset, batch_size=128):
        loss = train_step(model, optimizer, images, labels)
        schedule.step()

That is all: the run continues from the last checkpoint, saves when belay wants it, and ends the
program when the node will be given up. Outside belay it is an ordinary loop.

A checkpoint holds the step, the `state_dict()` of every part, and the states of the random number
generators of torch (of the CPU and of each GPU), numpy and Python, so that dropout and augmentation
continue as without an interruption. The samples of a step are a pure function of the seed and the
step, so no loader state is saved. On one type of device, with deterministic kernels and without
loader workers that draw their own random numbers, an interrupted run gives bit for bit the same
result.

With several processes (torch.distributed initialised before) all ranks save and stop at the same
step. On each node the process of local rank 0 asks belay, and all processes get the answer if any
was asked to save, every second and not after each step (Poll). This holds for torchrun on one node,
for a job of several nodes (belay submit --nodes) whose script is one rank on each, and for torchrun
on each of its nodes. The parts, which are the same on all ranks (DDP), are saved once per node;
with `sharded=True` each rank saves its own (FSDP local state), and the run can continue only with
the same number of ranks. Each rank saves its generators, which are restored if the number of ranks
is the same. A job of `--nodes 2-8` may continue with another number of ranks: give batches() a
global_batch to keep the size of a step.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import time
from typing import Any, Callable, Generator, Iterator, Mapping, TypeVar

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Sampler

import belay

_FORMAT = 1
_POLL_STEPS_MAX = 128
T = TypeVar("T")


def rank() -> int:
    """The rank of this process; 0 without torch.distributed."""
    return int(dist.get_rank()) if dist.is_available() and dist.is_initialized() else 0


def world_size() -> int:
    """The number of processes; 1 without torch.distributed."""
    return int(dist.get_world_size()) if dist.is_available() and dist.is_initialized() else 1


def leads() -> bool:
    """True on the process of each node that talks to belay: local rank 0."""
    return int(os.environ.get("LOCAL_RANK", rank())) == 0


def any_rank(value: object) -> bool:
    """True on every rank if it is true on one; all must call it."""
    if world_size() == 1:
        return bool(value)
    flag = torch.tensor(
        [int(bool(value))], device="cuda" if dist.get_backend() == "nccl" else "cpu"
    )
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return bool(flag.item())


def agree(value: T) -> T:
    """Rank 0's value, on every rank; all must call it."""
    if world_size() == 1:
        return value
    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def gather(value: T) -> list[T]:
    """Each rank's value, on every rank; all must call it."""
    if world_size() == 1:
        return [value]
    values: list[Any] = [None] * world_size()
    dist.all_gather_object(values, value)
    return values


def all_ok(ok: bool) -> bool:
    """True on every rank if it was true on all; all must call it."""
    return all(gather(bool(ok)))


class Poll:
    """Asks belay whether to save, for all ranks together and at the same step on each; all must
    call wants_save() after each step.

    A question is an all-reduce (some 0.4 to 0.9 ms with gloo, and with NCCL a wait for the GPU), so
    most steps have none. It is asked every `every_s` seconds, or every `every_steps` steps if
    given. Clocks differ between ranks; therefore every question also settles after how many steps
    the next one comes: the least that any rank proposes, from the longest of its steps since the
    last question. That number at most doubles from question to question and is 128 at most, so that
    a run whose steps become slower is still asked in time. One rank alone asks after each step.
    """

    def __init__(self, every_s: float = 1.0, every_steps: int | None = None) -> None:
        self._every_s, self._every_steps = every_s, every_steps
        self._interval = self._left = every_steps or 1
        self._longest_s = 0.0
        self._before: float | None = None

    def wants_save(self, asked: Callable[[], bool] | None = None) -> bool:
        """True on all ranks if asked() is on the leading process of any node; by default that is
        belay.should_checkpoint()."""
        asked = asked or belay.should_checkpoint
        if world_size() == 1:
            return asked()
        now = time.monotonic()
        if self._before is not None:
            self._longest_s = max(self._longest_s, now - self._before)
        self._before = now
        self._left -= 1
        return self._left <= 0 and self._ask(leads() and asked())

    def _ask(self, asked: bool) -> bool:
        # Both numbers in one reduction to the greatest; of the interval the least is wanted.
        device = "cuda" if dist.get_backend() == "nccl" else "cpu"
        answer = torch.tensor([int(asked), -self._proposal()], device=device)
        dist.all_reduce(answer, op=dist.ReduceOp.MAX)
        wanted, interval = answer.tolist()
        self._interval = self._left = -interval
        self._longest_s = 0.0
        # What follows a question that ends in a save is no step.
        self._before = None if wanted else time.monotonic()
        return bool(wanted)

    def _proposal(self) -> int:
        if self._every_steps:
            return self._every_steps
        most = min(2 * self._interval, _POLL_STEPS_MAX)
        if most * self._longest_s <= self._every_s:
            return most
        return max(1, int(self._every_s / self._longest_s))


def rng_state() -> dict[str, Any]:
    """The random number generators of this process."""
    state = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    if "numpy" in sys.modules:
        state["numpy"] = sys.modules["numpy"].random.get_state()
    return state


def set_rng_state(state: dict[str, Any]) -> None:
    """Restores what rng_state() returned. The GPUs' generators are left if their number differs."""
    torch.set_rng_state(state["torch"])
    random.setstate(state["python"])
    if (
        "cuda" in state
        and torch.cuda.is_available()
        and len(state["cuda"]) == torch.cuda.device_count()
    ):
        torch.cuda.set_rng_state_all(state["cuda"])
    if "numpy" in state:
        import numpy

        numpy.random.set_state(state["numpy"])


def _directory_here(directory: str | None) -> str | None:
    """The directory given by this node's leading process; None if any node's gave none. All must
    call it."""
    here = os.environ.get("BELAY_NODE_RANK", "0")
    if world_size() == 1:
        return directory
    given: list[Any] = [None] * world_size()
    dist.all_gather_object(given, (here, leads(), directory))
    directories = {node: path for node, does_lead, path in given if does_lead}
    return directories[here] if all(directories.values()) else None


def save_together(
    step: int,
    total: int | None,
    write: Callable[[str], object],
    replaces: str | None = None,
) -> None:
    """Makes a checkpoint of the files that write(directory) creates; all ranks call it, and each
    calls write with the directory of its node. Returns when the checkpoint is accepted (see
    belay.commit) or has failed: then a line on stderr says why, the previous checkpoint is kept,
    and the program should continue. replaces: see belay.checkpoint."""
    if not leads():
        directory = _directory_here(None)
        if directory:
            _write_together(directory, write)
        return
    notified = False
    try:
        with belay.checkpoint(step, total, replaces=replaces) as directory:
            notified = True
            if not _directory_here(directory):
                raise _NotWritten("another node has no directory for it")
            _write_together(directory, write)
    except (OSError, _NotWritten) as error:
        if not notified:
            _directory_here(None)
        say("not saved, continuing: %s" % error)


def _write_together(directory: str, write: Callable[[str], object]) -> None:
    error: Exception | None = None
    try:
        write(directory)
    except Exception as caught:  # the ranks must meet below, whatever happened to one
        error = caught
    if all_ok(error is None):
        return
    if leads():
        raise _NotWritten(error or "another rank could not write its part")
    say("rank %d: %s" % (rank(), error or "another rank could not write its part"))


class _NotWritten(Exception):
    pass


def say(text: str) -> None:
    """A line on stderr."""
    print("belay: " + text, file=sys.stderr, flush=True)


class BatchesByStep(Sampler):
    """The batches of steps start .. total - 1, as lists of indices into n samples: a batch sampler
    for a DataLoader.

    Each epoch is a permutation determined by (seed, epoch); an incomplete batch is dropped. With
    several ranks each takes its part of the step's `batch_size * ranks` samples; or of
    `global_batch`, which stays the same when the number of ranks changes (it should be a multiple
    of every such number, because DDP weights ranks equally).
    """

    def __init__(
        self,
        n: int,
        batch_size: int | None,
        seed: int,
        start: int,
        total: int,
        global_batch: int | None = None,
    ) -> None:
        self.n, self.seed, self.start, self.total = n, seed, start, total
        self.rank, self.ranks = rank(), world_size()
        self.samples = global_batch or (batch_size or 0) * self.ranks
        self.per_epoch = n // self.samples
        if self.per_epoch < 1 or self.samples < self.ranks:
            raise ValueError(
                "%d samples do not make one batch of %d for %d ranks"
                % (n, self.samples, self.ranks)
            )

    def __len__(self) -> int:
        return max(0, self.total - self.start)

    def _order(self, epoch: int) -> list[int]:
        generator = torch.Generator()
        generator.manual_seed((self.seed * 1000003 + epoch) % 2**63)
        order: list[int] = torch.randperm(self.n, generator=generator).tolist()
        return order

    def __iter__(self) -> Iterator[list[int]]:
        epoch: int | None = None
        order: list[int] = []
        for step in range(self.start, self.total):
            wanted, place = divmod(step, self.per_epoch)
            if wanted != epoch:
                epoch, order = wanted, self._order(wanted)
            first = place * self.samples + self.samples * self.rank // self.ranks
            yield order[first : place * self.samples + self.samples * (self.rank + 1) // self.ranks]


class Run:
    """A training run of `total` steps over parts that have state_dict() and load_state_dict().
    Loads the last checkpoint: afterwards `run.step` is the step to continue from, initially 0, and
    the parts have their saved states. Do everything that draws random numbers at the start (initial
    weights) before. poll: how often the ranks ask belay. each: further parts that differ from rank
    to rank, such as a loader with a state (torchdata's StatefulDataLoader); they continue if the
    number of ranks is the same, otherwise they begin anew and a line on stderr says so."""

    def __init__(
        self,
        total: int,
        sharded: bool = False,
        poll: Poll | None = None,
        each: Mapping[str, Any] | None = None,
        **parts: Any,
    ) -> None:
        self.total, self.sharded, self.parts, self.step = total, sharded, parts, 0
        self.each = each or {}
        self.poll = poll or Poll()
        if belay.restored():
            self._load()

    # ---- files ----

    def _names(self) -> tuple[str | None, str]:
        """The files of this rank: of its parts (None if it saves none), and of its generators."""
        own = "state-%d.pt" % rank() if self.sharded else "state.pt" if leads() else None
        return own, "generators-%d.pt" % rank()

    def _write(self, directory: str) -> None:
        own, generators = self._names()
        if own:
            parts = {name: part.state_dict() for name, part in self.parts.items()}
            content = {"format": _FORMAT, "step": self.step, "ranks": world_size(), "parts": parts}
            torch.save(content, os.path.join(directory, own))
        torch.save(self._own_state(), os.path.join(directory, generators))

    def _own_state(self) -> dict[str, Any]:
        """What differs from rank to rank."""
        each = {name: part.state_dict() for name, part in self.each.items()}
        return {**rng_state(), "each": each}

    def _set_own_state(self, state: dict[str, Any] | None) -> None:
        if state is None:
            if self.each:
                say("the number of ranks has changed: %s begin anew" % ", ".join(self.each))
            return
        for name, part in self.each.items():
            if name in state.get("each", {}):
                part.load_state_dict(state["each"][name])
        set_rng_state(state)  # last, because loading may draw random numbers

    def _load(self) -> None:
        own, generators = self._names()
        directory, first = belay.checkpoint_dir() or "", belay.restored_dir(0)
        path = os.path.join(directory, own or "state.pt")
        if not self.sharded and not os.path.exists(path) and first:
            path = os.path.join(first, "state.pt")  # on a node more than there were
        # Every byte was verified by hash before the program started, and the file is this job's
        # own.
        content = torch.load(path, map_location="cpu", weights_only=False)
        if content.get("format") != _FORMAT:
            raise RuntimeError("%s is not of this version of belay.torch" % path)
        if set(content["parts"]) != set(self.parts):
            raise RuntimeError(
                "the checkpoint has the parts %s, the run %s"
                % (sorted(content["parts"]), sorted(self.parts))
            )
        if self.sharded and content["ranks"] != world_size():
            raise RuntimeError(
                "the checkpoint was made by %d ranks, here are %d"
                % (content["ranks"], world_size())
            )
        for name, part in self.parts.items():
            part.load_state_dict(content["parts"][name])
        self.step = content["step"]
        path = os.path.join(directory, generators)
        has_own = content["ranks"] == world_size() and os.path.exists(path)
        self._set_own_state(
            torch.load(path, map_location="cpu", weights_only=False) if has_own else None
        )
        if rank() == 0:
            print("resumed at step %d" % self.step, flush=True)

    # ---- saving ----

    def save(self) -> None:
        """Makes a checkpoint of the steps done so far; all ranks call it. See save_together."""
        save_together(self.step, self.total, self._write)

    def done_step(self) -> bool:
        """Call after each step: counts it, reports it to belay, saves when requested. Returns True
        if the program should end now."""
        self.step += 1
        if leads():
            belay.progress(self.step, self.total)
        if not self.poll.wants_save():
            return False
        self.save()
        return any_rank(leads() and belay.stopping())

    # ---- loops ----

    def steps(self) -> Generator[int, None, None]:
        """Yields the remaining steps, of 0 to total - 1. Ends the program with belay's exit code
        when it should stop."""
        while self.step < self.total:
            yield self.step
            if self.done_step():
                sys.exit(belay.EXIT_CHECKPOINTED)

    def batches(
        self,
        dataset: Any,
        batch_size: int | None = None,
        seed: int = 1,
        global_batch: int | None = None,
        **loader: Any,
    ) -> Iterator[tuple[int, Any]]:
        """Yields (step, batch) for the remaining steps, with batch_size samples on each rank or
        global_batch on all ranks together; `loader`: further arguments of the DataLoader."""
        if not batch_size and not global_batch:
            raise ValueError("either batch_size or global_batch has to be given")
        sampler = BatchesByStep(len(dataset), batch_size, seed, self.step, self.total, global_batch)
        with contextlib.closing(self.steps()) as steps:
            # Otherwise the loader's base seed would be drawn from the generator whose state is
            # saved.
            own = torch.Generator()
            own.manual_seed(seed)
            for step, batch in zip(
                steps, DataLoader(dataset, batch_sampler=sampler, generator=own, **loader)
            ):
                yield step, batch
