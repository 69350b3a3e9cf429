# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional network with dropout on Fashion-MNIST, in PyTorch, and survives the
loss of its node."""

import argparse
import gzip
import hashlib
import os
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import TensorDataset

sys.path.append(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients", "python")
)
import belay.torch


def read(directory, name, header):
    path = os.path.join(directory, name)
    try:
        with gzip.open(path, "rb") as f:
            return np.frombuffer(f.read(), np.uint8, offset=header)
    except OSError as error:
        sys.exit(
            "%s: %s: install the data set (Debian: apt install dataset-fashion-mnist) or say where it is with --data"
            % (path, error.strerror or error)
        )


def load_data(directory):
    images = read(directory, "train-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28)
    labels = read(directory, "train-labels-idx1-ubyte.gz", 8)
    return TensorDataset(torch.from_numpy(images.copy()), torch.from_numpy(labels.astype(np.int64)))


def new_model():
    return nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(16 * 5 * 5, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def digest(model):
    h = hashlib.sha256()
    for tensor in model.state_dict().values():
        h.update(tensor.cpu().numpy().tobytes())
    return h.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=800, help="minibatches to train on")
    parser.add_argument(
        "--batch", type=int, default=64, help="samples in a minibatch, of each rank"
    )
    parser.add_argument(
        "--global-batch",
        type=int,
        help="of all ranks together, whatever their number (instead of --batch)",
    )
    parser.add_argument(
        "--data", default="/usr/share/datasets/fashion-mnist", help="directory of the data set"
    )
    arguments = parser.parse_args()

    torch.manual_seed(1)
    torch.set_num_threads(1)  # the order of a sum affects its last bit
    torch.use_deterministic_algorithms(True)
    distributed = "RANK" in os.environ  # under torchrun
    if distributed:
        torch.distributed.init_process_group("gloo")
    data, model = load_data(arguments.data), new_model()
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=200, gamma=0.5)

    run = belay.torch.Run(arguments.steps, model=model, optimizer=optimizer, schedule=schedule)
    # Without find_unused_parameters, DDP lays out the gradients again after the first step, and so
    # also after a resume: with more than two ranks that changes the order of sums, and thus their
    # last bits.
    network = (
        nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
        if distributed
        else model
    )
    for step, (images, labels) in run.batches(
        data, arguments.batch, global_batch=arguments.global_batch
    ):
        loss = nn.functional.cross_entropy(network(images.float() / 255), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if (step + 1) % 20 == 0 and belay.torch.rank() == 0:
            print("step %d loss %.4f" % (step + 1, loss.item()), flush=True)
    if belay.torch.rank() == 0:
        print("weights sha256 %s" % digest(model), flush=True)
    if distributed:
        # Gloo's threads (of PyTorch 1.13) may abort a process that ends in the usual way while its
        # peers end, or hang it.
        torch.distributed.barrier()
        os._exit(0)


if __name__ == "__main__":
    main()
