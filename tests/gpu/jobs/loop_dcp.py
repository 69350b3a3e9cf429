# SPDX-License-Identifier: Apache-2.0
"""PyTorch by belay.dcp: saves go on in a thread. See loop.py."""

import loop
import torch

import belay.dcp

loop.begin()
model = loop.new_model().to(loop.DEVICE)
optimizer = torch.optim.AdamW(model.parameters())
run = belay.dcp.Run(loop.STEPS, app=belay.dcp.App(model, optimizer))
for step, (x, y) in run.batches(loop.Samples(), loop.BATCH):
    found = model(x.to(loop.DEVICE))
    loss = torch.nn.functional.cross_entropy(found, y.to(loop.DEVICE))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loop.done(step + 1)
loop.report_model(model)
