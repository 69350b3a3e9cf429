# SPDX-License-Identifier: Apache-2.0
"""What the training loops of this directory share. Each is called as

    loop_LIBRARY.py STEPS SECONDS_A_STEP DEVICE

and prints every tenth step, where it was resumed, and at its end a hash of the weights, which are
the same bit for bit whether it was interrupted or not.
"""

import hashlib
import os
import sys
import time

# Both are read when CUDA and XLA start.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_deterministic_ops=true")

STEPS, PAUSE_S, DEVICE = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
SAMPLES, BATCH, SIDE, CLASSES = 3200, 32, 16, 10


def done(step):
    """Call after each step."""
    if step % 10 == 0:
        print("step %d" % step, flush=True)
    time.sleep(PAUSE_S)


def report(arrays):
    """arrays: of the weights, as NumPy's."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(array.tobytes())
    print("weights %s" % found.hexdigest(), flush=True)


def report_model(model):
    report(tensor.detach().cpu().numpy() for tensor in model.state_dict().values())


def begin():
    import torch

    torch.manual_seed(1)
    torch.set_num_threads(1)  # on a CPU the order of a sum affects its last bit
    torch.use_deterministic_algorithms(True)


def new_model():
    """With dropout, so that the generators' states count."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(3, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(64 * SIDE * SIDE // 16, CLASSES),
    )


class Samples:
    """A data set of images that follow from their numbers."""

    def __len__(self):
        return SAMPLES

    def __getitem__(self, i):
        import torch

        generator = torch.Generator().manual_seed(i)
        return torch.rand(3, SIDE, SIDE, generator=generator), i % CLASSES


class Batches:
    """A loader with a state, in the form that torchdata's StatefulDataLoader has."""

    def __init__(self):
        self.epoch = self.at = 0

    def __len__(self):
        return SAMPLES // BATCH

    def __iter__(self):
        import torch

        if self.at >= len(self):
            self.epoch, self.at = self.epoch + 1, 0
        samples = Samples()
        order = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(self.epoch))
        while self.at < len(self):
            chosen = order[self.at * BATCH : (self.at + 1) * BATCH].tolist()
            self.at += 1
            yield (
                torch.stack([samples[i][0] for i in chosen]),
                torch.tensor([samples[i][1] for i in chosen]),
            )

    def state_dict(self):
        return {"epoch": self.epoch, "at": self.at}

    def load_state_dict(self, state):
        self.epoch, self.at = state["epoch"], state["at"]
