# SPDX-License-Identifier: Apache-2.0
"""PyTorch by belay.torch, with a loader that has processes of its own. See loop.py."""

import loop
import torch

import belay.torch


def main():
    loop.begin()
    model = loop.new_model().to(loop.DEVICE)
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, loop.STEPS)
    run = belay.torch.Run(loop.STEPS, model=model, optimizer=optimizer, schedule=schedule)
    for step, (x, y) in run.batches(loop.Samples(), loop.BATCH, num_workers=2):
        found = model(x.to(loop.DEVICE))
        loss = torch.nn.functional.cross_entropy(found, y.to(loop.DEVICE))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        loop.done(step + 1)
    loop.report_model(model)


if __name__ == "__main__":  # the loader's processes may import this file
    main()
