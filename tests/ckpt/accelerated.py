# SPDX-License-Identifier: Apache-2.0
"""A program of test_belay_torch.py: a loop of accelerate under belay, as the how-to guide has it.
Dropout is random; the last line is a hash of the weights."""

import hashlib
import os
import sys

import belay
import belay.torch
import torch
from accelerate import Accelerator

STEPS = 12
torch.manual_seed(1)
torch.set_num_threads(1)
accelerator = Accelerator(cpu=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.3), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters())
model, optimizer = accelerator.prepare(model, optimizer)
poll, step = belay.torch.Poll(), 0
if belay.restored():
    accelerator.load_state(os.path.join(belay.checkpoint_dir(), "accelerate"))
    step = accelerator.step
    print("resumed at step %d" % step)
while step < STEPS:
    x = torch.rand(4, 8, generator=torch.Generator().manual_seed(step))
    accelerator.backward(((model(x).squeeze(-1) - x.sum(1)) ** 2).mean())
    optimizer.step()
    optimizer.zero_grad()
    step += 1
    accelerator.step = step
    if poll.wants_save():
        belay.torch.save_together(
            step,
            STEPS,
            lambda directory: accelerator.save_state(os.path.join(directory, "accelerate")),
            replaces="accelerate",
        )
        if belay.torch.any_rank(belay.torch.leads() and belay.stopping()):
            sys.exit(belay.EXIT_CHECKPOINTED)
weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
print("weights %s" % hashlib.sha256(weights).hexdigest())
