# SPDX-License-Identifier: Apache-2.0
"""A program of test_belay_torch.py: the Trainer of transformers under belay.

    trainer.py OUTPUT_DIR

Dropout and the order of the samples are random; the last line is a hash of the weights.
"""

import hashlib
import sys

import belay.transformers
import torch
from transformers import Trainer, TrainingArguments

STEPS = 12


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 1)
        self.dropout = torch.nn.Dropout(0.3)

    def forward(self, x, labels=None):
        found = self.second(self.dropout(torch.relu(self.first(x)))).squeeze(-1)
        return {"loss": torch.nn.functional.mse_loss(found, labels), "logits": found}


torch.manual_seed(1)
torch.set_num_threads(1)
model = Model()
samples = torch.rand(40, 8, generator=torch.Generator().manual_seed(3))
data = [{"x": x, "labels": x.sum()} for x in samples]
arguments = TrainingArguments(
    output_dir=sys.argv[1],
    max_steps=STEPS,
    per_device_train_batch_size=4,
    save_strategy="no",
    logging_strategy="no",
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
    seed=1,
)
trainer = Trainer(
    model, arguments, train_dataset=data, callbacks=[belay.transformers.Checkpoints()]
)
before = belay.transformers.restored()
trainer.train(resume_from_checkpoint=before)
belay.transformers.exit_if_stopped()
if before:
    print("resumed at step %d" % torch.load(before + "/scheduler.pt")["last_epoch"])
weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
print("weights %s at %d" % (hashlib.sha256(weights).hexdigest(), trainer.state.global_step))
