# SPDX-License-Identifier: Apache-2.0
"""The Trainer of transformers by belay.transformers. See loop.py."""

import json
import os
import tempfile

import loop
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

import belay.transformers


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = loop.new_model()

    def forward(self, x, labels=None):
        found = self.model(x)
        return {"loss": torch.nn.functional.cross_entropy(found, labels), "logits": found}


class Data(loop.Samples):
    def __getitem__(self, i):
        x, y = super().__getitem__(i)
        return {"x": x, "labels": y}


class Done(TrainerCallback):
    def on_step_end(self, args, state, control, **_):
        loop.done(state.global_step)


loop.begin()
model = Model()
with tempfile.TemporaryDirectory() as output:
    arguments = TrainingArguments(
        output_dir=output,
        max_steps=loop.STEPS,
        per_device_train_batch_size=loop.BATCH,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        use_cpu=loop.DEVICE == "cpu",
        disable_tqdm=True,
        seed=1,
    )
    callbacks = [belay.transformers.Checkpoints(), Done()]
    trainer = Trainer(model, arguments, train_dataset=Data(), callbacks=callbacks)
    before = belay.transformers.restored()
    if before:
        with open(os.path.join(before, "trainer_state.json")) as f:
            print("resumed at step %d" % json.load(f)["global_step"], flush=True)
    trainer.train(resume_from_checkpoint=before)
    belay.transformers.exit_if_stopped()
loop.report_model(model)
