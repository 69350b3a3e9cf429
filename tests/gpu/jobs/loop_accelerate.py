# SPDX-License-Identifier: Apache-2.0
"""A loop over accelerate, as the how-to guide has it. See loop.py."""

import os
import sys

import loop
import torch
from accelerate import Accelerator

import belay
import belay.torch

loop.begin()
accelerator = Accelerator(cpu=loop.DEVICE == "cpu")
model = loop.new_model()
optimizer = torch.optim.AdamW(model.parameters())
model, optimizer = accelerator.prepare(model, optimizer)
poll, step, batches = belay.torch.Poll(), 0, loop.Batches()
accelerator.register_for_checkpointing(batches)
if belay.restored():
    accelerator.load_state(os.path.join(belay.checkpoint_dir(), "accelerate"))
    step = batches.epoch * len(batches) + batches.at
    print("resumed at step %d" % step, flush=True)
while step < loop.STEPS:
    for x, y in batches:
        found = model(x.to(accelerator.device))
        accelerator.backward(torch.nn.functional.cross_entropy(found, y.to(accelerator.device)))
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        loop.done(step)
        belay.progress(step, loop.STEPS)
        if poll.wants_save():
            belay.torch.save_together(
                step,
                loop.STEPS,
                lambda directory: accelerator.save_state(os.path.join(directory, "accelerate")),
                replaces="accelerate",
            )
            if belay.torch.any_rank(belay.torch.leads() and belay.stopping()):
                sys.exit(belay.EXIT_CHECKPOINTED)
        if step == loop.STEPS:
            break
loop.report_model(accelerator.unwrap_model(model))
