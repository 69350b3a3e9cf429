# SPDX-License-Identifier: Apache-2.0
"""A job on one or several nodes whose state is sharded, saved by belay.dcp while it goes on. Its
result does not depend on the number of ranks.

    sharded.py DIR STEPS SECONDS_A_STEP

The ranks meet by a file in DIR, because MASTER_PORT may be the same for jobs of several clusters on
one machine. Rank 0 prints some steps, how often a step was taken while a save was being written,
and a hash of the whole state at the end.
"""

import contextlib
import datetime
import hashlib
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

import belay.dcp

ROWS = (7, 1000, 4099)  # none divides evenly
directory, steps, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
rank, world_size = (int(os.environ.get(name, n)) for name, n in (("RANK", 0), ("WORLD_SIZE", 1)))
name = "meeting-%s-%s" % tuple(os.environ.get("BELAY_" + n, "0") for n in ("JOB_ID", "ATTEMPT"))
torch.set_num_threads(1)
torch.manual_seed(1)
dist.init_process_group(
    "gloo",
    init_method="file://" + os.path.join(directory, name),
    rank=rank,
    world_size=world_size,
    timeout=datetime.timedelta(seconds=120),
)
mesh = init_device_mesh("cpu", (world_size,))


def drawn(step, rows):
    generator = torch.Generator()
    generator.manual_seed(step)
    return distribute_tensor(torch.rand(rows, 33, generator=generator), mesh, [Shard(0)])


class State:
    """Sharded parameters and their momentum, and what all ranks have."""

    def __init__(self):
        self.parameters = [drawn(n, n) for n in ROWS]
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
            m.mul_(0.9).add_(drawn(step, p.shape[0]))
            p.add_(m, alpha=0.01)
        self.same.add_(step % 17)
        self.number += step

    def hash(self):
        found = hashlib.sha256(b"%d" % self.number + self.same.numpy().tobytes())
        for tensor in self.parameters + self.momentum:
            found.update(tensor.full_tensor().numpy().tobytes())
        return found.hexdigest()


state, beside = State(), 0
run = belay.dcp.Run(steps, state=state)
with contextlib.closing(run.steps()) as remaining:
    for step in remaining:
        state.train(step)
        time.sleep(seconds)
        beside += run._saving is not None and not run._saving.done()
        if rank == 0 and step % 10 == 9:
            print("step %d" % (step + 1), flush=True)
found = state.hash()
if rank == 0:
    print("steps beside a save: %d" % beside, flush=True)
    print("state %s" % found, flush=True)
dist.barrier()
dist.destroy_process_group()
