# SPDX-License-Identifier: Apache-2.0
"""Sharded PyTorch state under belay: torch.distributed.checkpoint (DCP), saved while training goes
on and restored on any number of ranks. PyTorch 2.6 or later.

    import belay.dcp

    run = belay.dcp.Run(total=10000, app=belay.dcp.App(model, optimizer))
    for step in run.steps():
        train_step(model, optimizer, step)

That is all, as with belay.torch.Run: the run continues from the last checkpoint, saves when belay
wants it, and ends the program when the node will be given up. The parameters may be sharded (FSDP,
tensor parallel, any DTensor), and the run may continue on another number of ranks or nodes.

A save copies the state (from a GPU into pinned memory), and training goes on; a thread writes the
copy and commits it. The copy's memory is kept for the next save. Before a node is given up the save
is waited for.

Programs with loops of their own use the parts: Writer and Reader are what dcp.async_save(),
dcp.save() and dcp.load() take as storage_writer and storage_reader.

The ranks of a node write one directory, which is that node's part of the checkpoint. A piece that
only another node saved (replicated tensors are saved once) is sent by a rank there when the
checkpoint is loaded.
"""

from __future__ import annotations

import copy
import os
import pickle
import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Generator, Mapping

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystem, FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.tensor import DTensor

import belay
import belay.torch

_NAME = "dcp"
_FETCHED = ".belay-fetched"
_METADATA = ".metadata"
_SEND_BYTES = 64 << 20

_groups: list[Any] = []  # the default group, and the group of the saves


def _group() -> Any:
    """The process group of the saves: its collectives run in a thread, next to the program's. All
    ranks must call it together. None with one rank."""
    if belay.torch.world_size() == 1:
        return None
    if not _groups or _groups[0] is not dist.group.WORLD:
        _groups[:] = [dist.group.WORLD, dist.new_group(backend="gloo")]
    return _groups[1]


def _gathered(value: Any, group: Any) -> list[Any]:
    """Each rank's value."""
    if group is None:
        return [value]
    values: list[Any] = [None] * belay.torch.world_size()
    dist.all_gather_object(values, value, group=group)
    return values


def _node() -> str:
    return os.environ.get("BELAY_NODE_RANK", "0")


class Stager:
    """Copies a state_dict into memory of its own, and keeps that memory for the next copy of the
    same shapes: allocating it takes longer than copying. What is on a GPU goes into pinned memory,
    all tensors at once, so that the caller waits for the device alone."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], torch.Tensor] = {}

    @torch.no_grad()
    def copy(self, state: Any) -> Any:
        """The copy. It is valid until the next call."""
        devices: set[torch.device] = set()
        used: dict[tuple[Any, ...], torch.Tensor] = {}
        copied = self._any(state, (), devices, used)
        for device in devices:
            torch.cuda.current_stream(device).synchronize()
        self._kept = used
        return copied

    def _any(self, value: Any, path: tuple[Any, ...], devices: Any, used: Any) -> Any:
        if isinstance(value, DTensor):
            local = self._tensor(value.to_local(), path, devices, used)
            return DTensor(local, value._spec, requires_grad=False)
        if type(value) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
            return self._tensor(value.detach(), path, devices, used)
        if isinstance(value, torch.Tensor):  # a subclass
            return value.cpu() if value.device.type != "cpu" else value.clone()
        if isinstance(value, dict):
            return {k: self._any(v, (*path, k), devices, used) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            items = [self._any(v, (*path, i), devices, used) for i, v in enumerate(value)]
            return items if isinstance(value, list) else tuple(items)
        return copy.deepcopy(value)

    def _tensor(self, value: torch.Tensor, path: Any, devices: Any, used: Any) -> torch.Tensor:
        on_gpu = value.is_cuda
        kept = self._kept.get(path)
        if kept is None or kept.shape != value.shape or kept.dtype != value.dtype:
            kept = torch.empty(value.shape, dtype=value.dtype, pin_memory=on_gpu)
        kept.copy_(value, non_blocking=on_gpu)
        if on_gpu:
            devices.add(value.device)
        used[path] = kept
        return kept


class Writer(FileSystemWriter):
    """A storage_writer of DCP: what is written becomes the checkpoint of this job, committed as by
    belay.commit(step, total) when all ranks have written. All ranks make one together for each
    save. Outside belay nothing is written.

    As with every storage, one save must have ended before the next begins, and async_save() needs a
    process group of its own when the program uses gloo: process_group=writer.group. On other nodes
    than the first the commit may take longer than the save: wait() before belay.stopping().
    """

    # Of the last save of this process, if another node's process finishes that save.
    _committing: Future[None] | None = None

    def __init__(
        self, step: int, total: int | None = None, threads: int = 1, stager: Stager | None = None
    ) -> None:
        self._step, self._total = step, total
        self._stager = stager or Stager()
        self._directory = belay.checkpoint_dir()
        self._stage = os.path.join(self._directory or "", belay.STAGE)
        super().__init__(os.path.join(self._stage, _NAME), sync_files=False, thread_count=threads)
        self.group = _group()
        self.failure: str | None = None  # which rank could not write, and why

    def reset(self, checkpoint_id: Any = None) -> None:
        """The directory is belay's: a checkpoint_id is ignored."""
        super().reset()

    def stage(self, state_dict: Any) -> Any:
        """The copy of the state that async_save() writes."""
        self.per_thread_copy_ahead = 0
        return self._stager.copy(state_dict) if self._directory else {}

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Empties the directory to write to. The plan, which all ranks wait for, comes after."""
        if not kwargs.get("use_collectives", True):
            raise ValueError("belay needs a checkpoint of all ranks: use_collectives=True")
        super().set_up_storage_writer(is_coordinator, *args, **kwargs)
        self._coordinates = is_coordinator
        self.wait()
        if self._directory and belay.torch.leads():
            shutil.rmtree(self._stage, ignore_errors=True)  # of a save that failed
            os.makedirs(self.path)

    def prepare_local_plan(self, plan: Any) -> Any:
        """The plan as it is: the node's leading process makes the directory."""
        return plan

    def write_data(self, plan: Any, planner: Any) -> Any:
        """Writes this rank's part; commits the node's when all ranks have written theirs."""
        if not self._directory:
            nothing: Any = torch.futures.Future()
            nothing.set_result([])
            return nothing
        error: Exception | None = None
        try:
            written = super().write_data(plan, planner)
            # A thread that failed only leaves its items out.
            if len(written.value()) != len(plan.items):
                raise OSError("a thread could not write its part of the checkpoint")
        except Exception as caught:  # the ranks must meet below, whatever happened to one
            error = caught
        why = _gathered(error and str(error), self.group)
        failed = ["rank %d: %s" % (at, text) for at, text in enumerate(why) if text is not None]
        if failed:
            self.failure = failed[0]
            if belay.torch.leads():
                shutil.rmtree(self._stage, ignore_errors=True)
            raise error or OSError(self.failure)
        if belay.torch.leads() and not self._coordinates:
            # Before a node is given up a commit returns when all nodes have committed; the first
            # one does so when this function has returned on all.
            executor = ThreadPoolExecutor(1, "belay-commit")
            Writer._committing = executor.submit(self._commit)
            executor.shutdown(wait=False)
        return written

    def finish(self, metadata: Any, results: Any) -> None:
        """Writes what all ranks wrote where, and commits the first node's part."""
        if self._directory:
            super().finish(metadata, results)
            self._commit()

    @staticmethod
    def wait() -> None:
        """Waits until this node's part of the last save is committed, or has failed to be."""
        committing, Writer._committing = Writer._committing, None
        if committing is not None:
            committing.result()

    def _commit(self) -> None:
        # What is replaced may have files of more ranks.
        belay.commit_stage(self._step, self._total, replaces=_NAME)


class _Places(FileSystem):
    """Finds a file of the checkpoint in whichever directory has it."""

    def __init__(self, directories: list[str]) -> None:
        self.directories = directories

    def find(self, name: str) -> str | None:
        paths = (os.path.join(directory, name) for directory in self.directories)
        return next((path for path in paths if os.path.exists(path)), None)

    def concat_path(self, path: Any, suffix: str) -> Any:
        return Path(self.find(suffix) or os.path.join(path, suffix))


class Reader(FileSystemReader):
    """A storage_reader of DCP for the restored checkpoint (belay.restored()). All ranks make one
    together, and load together; their number may differ from that of the save."""

    def __init__(self) -> None:
        directory = belay.checkpoint_dir()
        if not directory or not belay.restored():
            raise RuntimeError("there is no checkpoint to load: see belay.restored()")
        super().__init__(os.path.join(directory, _NAME))
        self._fetched = os.path.join(directory, _FETCHED)
        parts = [belay.restored_dir(rank) for rank in range(belay.restored_ranks())]
        # The part of this rank's number first; parts of the others only if their number changed.
        places = [str(self.path)] + [os.path.join(part, _NAME) for part in parts if part]
        self.fs = _Places([*places, self._fetched])
        self.group = _group()

    def reset(self, checkpoint_id: Any = None) -> None:
        """The directory is belay's: a checkpoint_id is ignored."""
        super().reset()

    def read_metadata(self, *args: Any, **kwargs: Any) -> Any:
        """What was saved, and where: read by a rank that has it, for all."""
        path = self.fs.find(_METADATA)
        has = _gathered(path is not None, self.group)
        if not any(has):
            raise FileNotFoundError("no rank has %s of the restored checkpoint" % _METADATA)
        box: list[Any] = [super().read_metadata() if path else None]
        if self.group is not None and not all(has):
            dist.broadcast_object_list(box, src=has.index(True), group=self.group)
        return box[0]

    def read_data(self, plan: Any, planner: Any) -> Any:
        """Reads this rank's items, and sends other nodes what only this one has."""
        self._fetch(plan)
        try:
            read = super().read_data(plan, planner)
        finally:
            _gathered(None, self.group)  # the others may still read
            if belay.torch.leads():
                shutil.rmtree(self._fetched, ignore_errors=True)
        return read

    def _fetch(self, plan: Any) -> None:
        """Gets the pieces of files that this node lacks into files of the same size and name."""
        if self.group is None:
            return
        pieces = set()
        for item in plan.items:
            place = self.storage_data[item.storage_index]
            if not self.fs.find(place.relative_path):
                pieces.add((place.relative_path, place.offset, place.length))
        wanted = _gathered((_node(), pieces), self.group)
        names = sorted({piece[0] for _, lacking in wanted for piece in lacking})
        holders = _gathered([self.fs.find(name) is not None for name in names], self.group)
        source = {name: _first(held[i] for held in holders) for i, name in enumerate(names)}
        missing = [name for name in names if source[name] is None]
        if missing:
            raise FileNotFoundError("no rank has %s of the restored checkpoint" % missing)
        here = {piece for node, lacking in wanted if node == _node() for piece in lacking}
        errors = []
        for piece in sorted({piece for _, lacking in wanted for piece in lacking}):
            try:
                self._send(piece, source[piece[0]], piece in here and belay.torch.leads())
            except OSError as error:
                errors.append("rank %d: %s" % (belay.torch.rank(), error))
        errors = sum(_gathered(errors, self.group), [])
        if errors:
            raise OSError("the checkpoint cannot be sent between nodes: %s" % errors[0])

    def _send(self, piece: tuple[str, int, int], source: Any, keep: bool) -> None:
        """One piece of a file, from rank `source` to all; written here if `keep`. All take part to
        its end, also where reading or writing fails."""
        name, offset, length = piece
        sends = belay.torch.rank() == source
        failed: OSError | None = None
        while length > 0:
            n = min(length, _SEND_BYTES)
            data = torch.empty(n, dtype=torch.uint8)
            try:
                if sends:
                    _read_at(self.fs.find(name) or name, data.numpy(), offset)
            except OSError as error:
                failed = error
            dist.broadcast(data, src=source, group=self.group)
            try:
                if keep and failed is None:
                    _write_at(os.path.join(self._fetched, name), data.numpy(), offset)
            except OSError as error:
                failed = error
            offset, length = offset + n, length - n
        if failed:
            raise failed


def _read_at(path: str, data: Any, offset: int) -> None:
    with open(path, "rb") as f:
        f.seek(offset)
        if f.readinto(data) != len(data):
            raise OSError("%s ends before a piece of it" % path)


def _write_at(path: str, data: Any, offset: int) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as f:
        f.seek(offset)
        f.write(data)


def _first(values: Any) -> int | None:
    return next((i for i, value in enumerate(values) if value), None)


class App:
    """The state of a model and its optimizers under their parameters' names, as DCP needs it to
    restore on another number of ranks. model may be wrapped by DDP or FSDP."""

    def __init__(self, model: Any, optimizers: Any) -> None:
        self.model, self.optimizers = model, optimizers

    def state_dict(self) -> dict[str, Any]:
        """What is saved; the tensors are the model's own."""
        model, optimizers = get_state_dict(self.model, self.optimizers)
        return {"model": model, "optimizers": optimizers}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what state_dict() returned."""
        set_state_dict(
            self.model,
            self.optimizers,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizers"],
        )


class Run(belay.torch.Run):
    """A training run of `total` steps over parts that have state_dict() and load_state_dict(), such
    as App; see belay.torch.Run. Saves go on in a thread. threads: how many write files."""

    def __init__(
        self,
        total: int,
        poll: belay.torch.Poll | None = None,
        threads: int = 1,
        each: Mapping[str, Any] | None = None,
        **parts: Any,
    ) -> None:
        self._stager, self._threads = Stager(), threads
        self._saving: Future[Any] | None = None
        self._writer: Writer | None = None
        super().__init__(total, poll=poll, each=each, **parts)

    def _load(self) -> None:
        reader = Reader()
        held = reader.read_metadata().state_dict_metadata
        own = "generators.%d" % belay.torch.rank()
        state: dict[str, Any] = {"step": 0, "ranks": 0, **self.parts}
        if own in held:
            state[own] = torch.empty(held[own].size, dtype=torch.uint8)
        dcp.load(state, storage_reader=reader, process_group=reader.group)
        self.step = state["step"]
        has_own = state["ranks"] == belay.torch.world_size()
        self._set_own_state(pickle.loads(state[own].numpy().tobytes()) if has_own else None)
        if belay.torch.rank() == 0:
            print("resumed at step %d" % self.step, flush=True)

    def save(self) -> None:
        """Begins a checkpoint of the steps done so far; all ranks call it. Returns when the state
        is copied. A failure is reported by a line on stderr, and the previous checkpoint kept."""
        self.wait()
        generators = bytearray(pickle.dumps(self._own_state()))
        state = {
            "step": self.step,
            "ranks": belay.torch.world_size(),
            "generators.%d" % belay.torch.rank(): torch.frombuffer(generators, dtype=torch.uint8),
            **self.parts,
        }
        self._writer = writer = Writer(self.step, self.total, self._threads, self._stager)
        self._saving = dcp.async_save(state, storage_writer=writer, process_group=writer.group)

    def wait(self) -> None:
        """Waits for the save that is being written, if any."""
        saving, self._saving = self._saving, None
        try:
            if saving is not None:
                saving.result()
            Writer.wait()
        except (Exception, CheckpointException) as error:  # the latter is none of the former
            why = self._writer and self._writer.failure
            # PyTorch's text has the trace of every rank, or that it could not be pickled.
            belay.torch.say("not saved, continuing: %s" % (why or error))

    def _asked(self) -> bool:
        # The request stays until the save is committed; only that to stop needs a second save.
        if self._saving is not None and not self._saving.done():
            return belay.stopping() or belay.asked_to_stop()
        return belay.stopping() or belay.should_checkpoint()

    def done_step(self) -> bool:
        """Call after each step: counts it, reports it to belay, begins a save when requested.
        Returns True if the program should end now."""
        self.step += 1
        if belay.torch.leads():
            belay.progress(self.step, self.total)
        if not self.poll.wants_save(self._asked):
            return False
        if not belay.torch.any_rank(belay.torch.leads() and belay.stopping()):
            self.save()
            if not belay.torch.any_rank(belay.torch.leads() and belay.asked_to_stop()):
                return False
        self.wait()
        return belay.torch.any_rank(belay.torch.leads() and belay.stopping())

    def steps(self) -> Generator[int, None, None]:
        """Yields the remaining steps, as belay.torch.Run; at the end waits for the last save."""
        yield from super().steps()
        self.wait()
