# SPDX-License-Identifier: Apache-2.0
"""One rank of test_belay_dcp.py: a run whose result does not depend on the number of ranks.

    dcp_rank.py LIB RENDEZVOUS RANK WORLD_SIZE STEPS [die|fail STEP]

Parameters are sharded unevenly, one tensor and one number are the same on all ranks. Rank 0 prints
a line for each step and a hash of the whole state at the end, and what it draws then. die: this
rank is killed in the middle of writing its part of a save at STEP. fail: it cannot write.
"""

import contextlib
import datetime
import hashlib
import os
import signal
import sys

lib, rendezvous, rank, world_size, steps = sys.argv[1:6]
fault, fault_at = (sys.argv[6], int(sys.argv[7])) if sys.argv[6:] else (None, -1)
sys.path.insert(0, lib)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.distributed.checkpoint import filesystem  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import Shard, distribute_tensor  # noqa: E402

import belay  # noqa: E402
import belay.dcp  # noqa: E402
import belay.torch  # noqa: E402

belay._ASK_EVERY_S = 0  # a request is seen after the step in which it was made
torch.set_num_threads(1)
torch.manual_seed(1)
dist.init_process_group(
    "gloo",
    init_method="file://" + rendezvous,
    rank=int(rank),
    world_size=int(world_size),
    timeout=datetime.timedelta(seconds=120),
)
mesh = init_device_mesh("cpu", (int(world_size),))


def whole(step, rows):
    generator = torch.Generator()
    generator.manual_seed(step)
    return torch.rand(rows, 33, generator=generator)


class State:
    """Sharded parameters and their momentum, and what all ranks have."""

    def __init__(self):
        self.parameters = [distribute_tensor(whole(n, n), mesh, [Shard(0)]) for n in (7, 1000)]
        self.momentum = [p * 0 for p in self.parameters]
        self.same, self.number = torch.zeros(5000), 0

    def state_dict(self):
        named = {"same": self.same, "number": self.number}
        for i, (p, m) in enumerate(zip(self.parameters, self.momentum)):
            named["layer.%d" % i] = {"weight": p, "momentum": m}
        return named

    def load_state_dict(self, state):
        self.number = state["number"]

    def train(self, step):
        for p, m in zip(self.parameters, self.momentum):
            m.mul_(0.9).add_(distribute_tensor(whole(step, p.shape[0]), mesh, [Shard(0)]))
            p.add_(m, alpha=0.01)
        self.same.add_(whole(step, 1)[0, 0])
        self.number += step

    def hash(self):
        found = hashlib.sha256(b"%d" % self.number + self.same.numpy().tobytes())
        for tensor in self.parameters + self.momentum:
            found.update(tensor.full_tensor().numpy().tobytes())
        return found.hexdigest()


write, write_data = filesystem._write_item, belay.dcp.Writer.write_data
written = []


def write_data_of_step(writer, *arguments):
    written[:] = [writer._step]
    return write_data(writer, *arguments)


def write_some(*arguments, **more):
    if written[0] == fault_at and written[1:]:
        if fault == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError("no space left on the device")
    written.append(1)
    return write(*arguments, **more)


state = State()
run = belay.dcp.Run(int(steps), poll=belay.torch.Poll(every_steps=1), state=state)
if fault:
    filesystem._write_item, belay.dcp.Writer.write_data = write_some, write_data_of_step
with contextlib.closing(run.steps()) as remaining:
    for step in remaining:
        state.train(step)
        torch.rand(3)
        if rank == "0":
            print("step %d" % (step + 1), flush=True)
        if rank == "0" and sys.stdin.readline() == "":  # the test decides when the next one begins
            sys.exit("the test has ended")
found = state.hash()
if rank == "0":
    print("state %s draws %s" % (found, torch.rand(2).tolist()), flush=True)
dist.barrier()
dist.destroy_process_group()
