# SPDX-License-Identifier: Apache-2.0
"""Lightning by belay.lightning, with a loader that has a state. See loop.py."""

import loop
import torch

import belay.lightning

try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl


class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = loop.new_model()

    def training_step(self, batch, _):
        x, y = batch
        return torch.nn.functional.cross_entropy(self.model(x), y)

    def on_train_batch_end(self, *_):
        loop.done(self.trainer.global_step)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


loop.begin()
module = Module()
trainer = pl.Trainer(
    max_steps=loop.STEPS,
    accelerator="gpu" if loop.DEVICE == "cuda" else "cpu",
    devices=1,
    callbacks=[belay.lightning.Checkpoints()],
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
before = belay.lightning.restored()
if before:
    print("resumed at step %d" % torch.load(before, weights_only=False)["global_step"], flush=True)
trainer.fit(module, loop.Batches(), ckpt_path=before)
belay.lightning.exit_if_stopped()
loop.report_model(module)
