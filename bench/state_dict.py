# SPDX-License-Identifier: Apache-2.0
"""How long a training loop waits for an asynchronous save of a state_dict by belay.dcp, against
copying the state in memory, and against PyTorch's own writer in the same directory.

BELAY_BENCH_MIB: size of the state (4096); the memory that is needed is three times that.
BELAY_BENCH_DEVICE: where it is, cpu or cuda (cpu). From a GPU it is copied into pinned memory.
BELAY_BENCH_DIR: where the checkpoint is written. Needs PyTorch 2.6 or later.
"""

import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
import warnings

LIB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "clients", "python")
LARGE_MIB = 64  # of one large tensor
SMALL, SMALL_BYTES = 500, 4096
ROUNDS = 6  # of limit and figure, each first in half of them


class Agent:
    """Answers commits at once: what belay-agent does with them is not measured here."""

    def __init__(self, directory):
        self.control = os.path.join(directory, "control")
        self.ended = threading.Event()
        os.mkdir(self.control)
        os.mkdir(os.path.join(directory, "checkpoint"))
        os.environ["BELAY_CONTROL_DIR"] = self.control
        os.environ["BELAY_CHECKPOINT_DIR"] = os.path.join(directory, "checkpoint")
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        number = 1
        while not self.ended.wait(0.005):
            if os.path.exists(os.path.join(self.control, "commit.%d" % number)):
                temp = os.path.join(self.control, ".answer")
                with open(temp, "w") as f:
                    f.write('{"ok": true}')
                os.rename(temp, os.path.join(self.control, "result.%d" % number))
                number += 1

    def close(self):
        self.ended.set()
        self.thread.join()
        del os.environ["BELAY_CONTROL_DIR"], os.environ["BELAY_CHECKPOINT_DIR"]


def timed(act):
    began = time.monotonic()
    result = act()
    return time.monotonic() - began, result


def make_state(mib, device):
    import torch

    def rand(n):
        return torch.rand(n, device=device)

    state = {"large.%d" % n: rand(LARGE_MIB << 18) for n in range(max(1, mib // LARGE_MIB))}
    state.update({"small.%d" % n: rand(SMALL_BYTES // 4) for n in range(SMALL)})
    return state


def measure(mib, directory, say, device):
    import torch
    import torch.distributed.checkpoint as dcp

    import belay.dcp

    state, on_gpu = make_state(mib, device), device != "cpu"
    stager = belay.dcp.Stager()

    def belay_save():
        return dcp.async_save(state, storage_writer=belay.dcp.Writer(1, stager=stager))

    def torch_save():
        place = os.path.join(directory, "torch")
        return dcp.async_save(state, storage_writer=dcp.FileSystemWriter(place))

    def copy():
        """Into the memory that the last save has left."""
        for name, tensor in state.items():
            stager._kept[(name,)].copy_(tensor, non_blocking=on_gpu)
        if on_gpu:
            torch.cuda.synchronize()

    if on_gpu:
        torch.cuda.synchronize()
    first = timed(lambda: {n: t.cpu() if on_gpu else t.clone() for n, t in state.items()})[0]
    begun, saving = timed(belay_save)
    saving.result()
    name = "%d MiB of state%s, loop waits for" % (mib, " on a GPU" if on_gpu else "")
    report(say, name + " first save", begun, "a copy into new memory", first)
    copies, saves, whole, own = [], [], [], []
    for n in range(ROUNDS):
        if n % 2 == 0:
            copies.append(timed(copy)[0])
        began = time.monotonic()
        waited, saving = timed(belay_save)
        saving.result()
        saves.append(waited)
        whole.append(time.monotonic() - began)
        if n % 2 == 1:
            copies.append(timed(copy)[0])
        waited, saving = timed(torch_save)
        saving.result()
        own.append(waited)
    waited = statistics.median(saves)
    report(say, name + " a later save", waited, "a copy", statistics.median(copies))
    ratios = sorted(save / copied for save, copied in zip(saves, copies))
    text = "%.2f, median of %s"
    say("", text % (statistics.median(ratios), ", ".join("%.2f" % ratio for ratio in ratios)))
    report(say, "", waited, "PyTorch's FileSystemWriter", statistics.median(own))
    one = torch.rand(4)
    if dcp.FileSystemWriter(directory).stage({"": one})[""].data_ptr() == one.data_ptr():
        say("", "which does not copy what is in memory: a step meanwhile changes what is saved")
    whole = statistics.median(whole)
    gib = mib / 1024
    say("  accepted after", "%.2f s" % whole)
    say("  a GiB", "waits %.3f s, accepted %.2f s" % (waited / gib, whole / gib))


def report(say, name, value, what, reference):
    say(
        name,
        "%.3f s" % value,
        "%s %.3f s" % (what, reference),
        "%.2f of it" % (value / reference),
    )


def bench(say, device=None):
    sys.path.insert(0, LIB)
    try:
        import torch.distributed.tensor  # noqa: F401
    except ImportError:
        say("state_dict", "skipped", "PyTorch 2.6 or later is not installed")
        return
    directory = tempfile.mkdtemp(prefix="belay-bench.", dir=os.environ.get("BELAY_BENCH_DIR"))
    agent = Agent(directory)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one process, and PyTorch overwrites its own files
            device = device or os.environ.get("BELAY_BENCH_DEVICE", "cpu")
            measure(int(os.environ.get("BELAY_BENCH_MIB", 4096)), directory, say, device)
    finally:
        agent.close()
        shutil.rmtree(directory)


if __name__ == "__main__":
    bench(lambda *words: print(*words, sep="   ", flush=True))
