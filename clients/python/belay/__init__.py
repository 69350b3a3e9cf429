# SPDX-License-Identifier: Apache-2.0
"""Take part in belay's checkpoints from Python. Python 3.7 or later, no dependencies.

Outside belay every call is a no-op that reports "nothing to do", so a program needs no second code
path:

    import belay

    step = load(belay.checkpoint_dir()) if belay.restored() else 0
    while step < total:
        step += 1
        work(step)
        belay.progress(step, total)
        if belay.should_checkpoint():
            with belay.checkpoint(step, total) as directory:
                save(directory)
            if belay.stopping():
                sys.exit(belay.EXIT_CHECKPOINTED)

Functions may be called by several threads, for example to commit in one while another trains.

The full contract is docs/reference/checkpoints.md.

belay.Client is the client of belayd's API (help(belay.client); Python 3.9 or later):

    job = belay.Client().submit(script="#!/bin/sh\\necho hello\\n", cwd="/tmp")["id"]

belay.torch, belay.dcp, belay.lightning and belay.transformers save and restore training programs.
Each is imported by its name; import belay alone loads none of them.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import operator
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any, Iterator, Mapping

if TYPE_CHECKING:
    from belay.client import Client as Client  # noqa: F401
    from belay.client import Error as Error  # noqa: F401
    from belay.client import Unavailable as Unavailable  # noqa: F401

EXIT_CHECKPOINTED = 85
"""Exit code: checkpointed, continue this job elsewhere."""
STAGE = ".belay-stage"
"""Where checkpoint() lets the program write, in checkpoint_dir()."""

_ASK_EVERY_S = 0.02
_PROGRESS_EVERY_S = 0.2
_WAITED_EVERY_S = 1.0
_WAITED_MAX_S = 1e9
_POLL_S = 0.01
_COMMIT_TIMEOUT_S = 600.0  # BELAY_COMMIT_TIMEOUT_S overrides it
_ACCEPTED_MAX = 8  # the agent keeps no more answers

# Caches of this process's last requests and reports.
_asked_at: float | None = None
_asked_answer = False
_reported_at: float | None = None
_waited_s = 0.0
_waited_reported_at: float | None = None
_stopping = False
# Accepted commits, as (number, progress), and the outcome of the last settled one.
_accepted: list[tuple[int, int | None]] = []
_durable: tuple[int | None] | None = None
_lost: str | None = None
_settling = threading.Lock()


def __getattr__(name: str) -> Any:
    """The client's names. They are loaded when used, because programs under belay need none."""
    if name not in ("Client", "Error", "Unavailable"):
        raise AttributeError("module 'belay' has no attribute %r" % name)
    return getattr(importlib.import_module("belay.client"), name)


def _control(name: str) -> str | None:
    """The path of a file of the protocol, or None outside belay."""
    directory = os.environ.get("BELAY_CONTROL_DIR")
    return os.path.join(directory, name) if directory else None


def _inside(name: str) -> str:
    """The path of a file of the protocol. Only inside belay."""
    return os.path.join(os.environ["BELAY_CONTROL_DIR"], name)


def _read(path: str) -> dict[str, Any] | None:
    """The JSON object in a file, or None if the file is missing or malformed."""
    try:
        with open(path, "rb") as f:
            value = json.loads(f.read(65536).decode("utf-8"))
    except (OSError, ValueError, TypeError):
        return None
    return value if isinstance(value, dict) else None


def _publish(path: str, value: Mapping[str, Any], replace: bool) -> None:
    """Writes a JSON object to path atomically. replace False: FileExistsError if path exists."""
    text = json.dumps(value) + "\n"
    own = ".belay-%d-%d" % (os.getpid(), threading.get_ident())
    temp = os.path.join(os.path.dirname(path), own)
    with open(temp, "w", encoding="utf-8") as f:
        f.write(text)
    if replace:
        os.replace(temp, path)
        return
    try:
        os.link(temp, path)
    finally:
        os.unlink(temp)


def _plain(number: Any) -> Any:
    """A step as an int: programs also count with NumPy's or PyTorch's integers, which json does not
    know. Anything else stays as it is."""
    return operator.index(number) if hasattr(number, "__index__") else number


def restored() -> bool:
    """True if checkpoint_dir() holds a checkpoint to resume from."""
    return os.environ.get("BELAY_RESTORED") == "1" and checkpoint_dir() is not None


def checkpoint_dir() -> str | None:
    """The directory where the program writes its state and, when restored, finds it. None outside
    belay."""
    return os.environ.get("BELAY_CHECKPOINT_DIR") or None


def restored_ranks() -> int:
    """In a job of several nodes: the number of nodes that made the restored checkpoint; otherwise
    1. 0 = nothing restored."""
    return int(os.environ.get("BELAY_RESTORED_RANKS", "1")) if restored() else 0


def restored_dir(rank: int) -> str | None:
    """The directory of that rank's part of the restored checkpoint. If the number of ranks has
    changed, every rank's part is available, so that the program can redistribute it; otherwise only
    this node's own. None if not available."""
    everyone = os.environ.get("BELAY_RESTORED_DIR")
    if not restored():
        return None
    if everyone:
        path = os.path.join(everyone, "rank-%04d" % rank)
        return path if os.path.isdir(path) else None
    return checkpoint_dir() if rank == int(os.environ.get("BELAY_NODE_RANK", "0")) else None


def should_checkpoint() -> bool:
    """True if belay wants a checkpoint. Cheap enough for every step."""
    global _asked_at, _asked_answer
    now = time.monotonic()
    if _asked_at is None or now - _asked_at >= _ASK_EVERY_S:
        _asked_at = now
        _settle()
        request = _control("request")
        _asked_answer = request is not None and os.path.exists(request)
    return _asked_answer


def seconds_left() -> float:
    """Seconds until the node is taken away or the save must be done; infinity while there is no
    deadline."""
    left = float("inf")
    for path in (os.environ.get("BELAY_NOTICE_FILE"), _control("request")):
        deadline = (_read(path) or {}).get("deadline_ms") if path else None
        if isinstance(deadline, (int, float)):
            left = min(left, deadline / 1000.0 - time.time())
    return max(left, 0.0)


def asked_to_stop() -> bool:
    """True if the save that belay wants is one before the node is given up."""
    request = _control("request")
    return request is not None and (_read(request) or {}).get("reason") in ("notice", "evict")


def _create_commit(progress: int | None, total: int | None, wait: bool) -> int:
    """Returns the number of the new commit. Two processes of one job never share a number."""
    how = {} if wait else {"wait": False}
    while True:
        names = os.listdir(os.environ["BELAY_CONTROL_DIR"])
        used = [
            int(m.group(1))
            for m in (re.match(r"(?:commit|result)\.([1-9][0-9]*)$", n) for n in names)
            if m
        ]
        number = max(used, default=0) + 1
        try:
            _publish(
                _inside("commit.%d" % number),
                dict({"progress": _plain(progress), "total": _plain(total)}, **how),
                replace=False,
            )
            return number
        except FileExistsError:
            pass


def _wait_result(number: int) -> dict[str, Any]:
    """Waits for the agent's answer. On timeout we write the answer ourselves, unless the agent was
    first, so that the agent does not later save a directory that we have begun to change."""
    path = _inside("result.%d" % number)
    late = {"ok": False, "error": "the belay agent did not answer in time"}
    end = time.monotonic() + float(os.environ.get("BELAY_COMMIT_TIMEOUT_S") or _COMMIT_TIMEOUT_S)
    while not os.path.exists(path):
        if time.monotonic() < end:
            time.sleep(_POLL_S)
        else:
            with contextlib.suppress(FileExistsError):
                _publish(path, late, replace=False)
    return _read(path) or {"ok": False, "error": "the belay agent's answer is malformed"}


def _settle() -> None:
    """Reads the outcomes of accepted commits."""
    global _durable, _lost
    with _settling:
        while _accepted and os.path.exists(_inside("stored.%d" % _accepted[0][0])):
            number, progress = _accepted.pop(0)
            stored = _read(_inside("stored.%d" % number)) or {
                "error": "the belay agent's answer is malformed"
            }
            if stored.get("ok") is True:
                _durable, _lost = (progress,), None
            else:
                _lost = str(stored.get("error"))
                print("belay: not saved, continuing: %s" % _lost, file=sys.stderr, flush=True)


def commit(progress: int | None = None, total: int | None = None, wait: bool = False) -> bool:
    """Commits the content of checkpoint_dir() as the checkpoint; the directory must not change
    until this returns. Returns True outside belay, and as soon as it is accepted (a snapshot
    exists, and is stored while the program continues); with wait, and when the node will be given
    up, when it is durable. Afterwards new files may be written and renamed into place; writing to a
    large file in place before it is durable loses the checkpoint (docs/reference/checkpoints.md).
    Returns False if the checkpoint is not saved: the previous one is kept, a line on stderr says
    why, and the program should continue. In a job of several nodes either all ranks give their
    progress, or none does and the commit is a barrier."""
    global _asked_at, _stopping, _durable, _lost
    if _control("") is None:
        return True
    _settle()
    stop = asked_to_stop()
    try:
        number = _create_commit(progress, total, wait)
        result = _wait_result(number)
    except OSError as error:
        number, result = 0, {"ok": False, "error": str(error)}
    _asked_at = None  # the question is open again
    if result.get("ok") is not True:
        print("belay: not saved, continuing: %s" % result.get("error"), file=sys.stderr, flush=True)
        return False
    _stopping = bool(result.get("stop", stop))
    with _settling:
        if result.get("durable", True):
            _durable, _lost = (progress,), None
            del _accepted[:]  # this one is newer
        else:
            _accepted.append((number, progress))
            del _accepted[:-_ACCEPTED_MAX]
    return True


def last_durable() -> int | None:
    """The `progress` of the newest commit of this process that is known to be durable, or None. For
    a program that must keep data until its checkpoint is durable (consumed input, for example)."""
    _settle()
    return _durable[0] if _durable else None


def wait_durable(timeout: float | None = None) -> bool:
    """Waits until the last commit of this process is durable. Returns False if it was lost (a line
    on stderr says why), or after the timeout (in seconds; None = as long as commit() waits)."""
    if timeout is None:
        timeout = float(os.environ.get("BELAY_COMMIT_TIMEOUT_S") or _COMMIT_TIMEOUT_S)
    end = time.monotonic() + timeout
    _settle()
    while _accepted and time.monotonic() < end:
        time.sleep(_POLL_S)
        _settle()
    return not _accepted and _lost is None


def progress(done: int, total: int | None = None) -> None:
    """Reports the program's progress. Written to disk at most 5 times a second; the last one, done
    == total, always is."""
    global _reported_at
    path = _control("progress")
    now = time.monotonic()
    if path is None or (
        _reported_at is not None and now - _reported_at < _PROGRESS_EVERY_S and done != total
    ):
        return
    _reported_at = now
    with contextlib.suppress(OSError):  # it is for show: a full disk must not end the program
        _publish(path, {"done": _plain(done), "total": _plain(total)}, replace=True)


def waited(seconds: float) -> None:
    """Reports that this rank has waited so many more seconds for the others, as waiting() measures.
    One process per node should report."""
    global _waited_s, _waited_reported_at
    path = _control("waited")
    if path is None or not 0 < seconds < _WAITED_MAX_S:
        return
    _waited_s += seconds
    now = time.monotonic()
    if _waited_reported_at is not None and now - _waited_reported_at < _WAITED_EVERY_S:
        return
    _waited_reported_at = now
    with contextlib.suppress(OSError):  # as progress
        _publish(path, {"ms": int(_waited_s * 1000)}, replace=True)


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """Context manager around a wait for other ranks (a barrier, an all-reduce): `belay advise` then
    says which rank the others wait for."""
    began = time.monotonic()
    try:
        yield
    finally:
        waited(time.monotonic() - began)


def stopping() -> bool:
    """True once the last commit() served a notice or an eviction: exit with EXIT_CHECKPOINTED."""
    return _stopping


def _move_into_place(stage: str, directory: str) -> None:
    """Moves every file below stage to the same path below directory. Nothing is synced: the agent
    reads the page cache, and what has to survive the machine is the copy in the store."""
    for root, directories, files in os.walk(stage):
        target = os.path.normpath(os.path.join(directory, os.path.relpath(root, stage)))
        os.makedirs(target, exist_ok=True)
        for name in files + [d for d in directories if os.path.islink(os.path.join(root, d))]:
            os.replace(os.path.join(root, name), os.path.join(target, name))


def _remove_others(stage: str, directory: str, name: str) -> None:
    """Removes what the directory of this name has and the one to replace it does not."""
    old, new = os.path.join(directory, name), os.path.join(stage, name)
    for root, directories, files in os.walk(old, topdown=False):
        beside = os.path.normpath(os.path.join(new, os.path.relpath(root, old)))
        for entry in files + [d for d in directories if os.path.islink(os.path.join(root, d))]:
            other = os.path.join(beside, entry)
            if not os.path.lexists(other) or os.path.isdir(other):
                os.unlink(os.path.join(root, entry))
        if not os.path.isdir(beside):
            os.rmdir(root)


@contextlib.contextmanager
def checkpoint(
    step: int | None = None,
    total: int | None = None,
    wait: bool = False,
    replaces: str | None = None,
) -> Iterator[str]:
    """Yields a directory to write the new state to. When the block ends without an exception, the
    files are moved to checkpoint_dir() (each replaces the file of its name, others stay, except in
    the directory `replaces`) and committed; otherwise they are dropped. So a program that is killed
    while it writes does not damage the previous checkpoint's files. The program may continue, and
    enter the next such block, at once; with wait it continues when the checkpoint is durable. A
    failed commit is reported as by commit(). Outside belay the files are written to a temporary
    directory and dropped.
    """
    directory = checkpoint_dir()
    if directory is None:
        with tempfile.TemporaryDirectory() as scratch:
            yield scratch
        return
    stage = os.path.join(directory, STAGE)
    shutil.rmtree(stage, ignore_errors=True)  # of a process that was killed
    os.makedirs(stage)
    try:
        yield stage
        if replaces:
            _remove_others(stage, directory, replaces)
        _move_into_place(stage, directory)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    commit(step, total, wait)


def commit_stage(
    step: int | None = None, total: int | None = None, replaces: str | None = None
) -> bool:
    """For libraries that write the files of STAGE by several processes: does what the end of
    checkpoint() does."""
    directory = checkpoint_dir()
    if directory is None:
        return True
    stage = os.path.join(directory, STAGE)
    try:
        if replaces:
            _remove_others(stage, directory, replaces)
        _move_into_place(stage, directory)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return commit(step, total)
