# SPDX-License-Identifier: Apache-2.0
"""Trains a small neural network on Fashion-MNIST, and takes part in belay's checkpoints.

Two hidden layers, rectified linear units, softmax, minibatch gradient descent with momentum, in
float32. Everything that decides the result is the seed and the step: batches are a pure function of
both, and the state that a checkpoint holds is the step, the weights and their velocities. So a run
that was interrupted and resumed ends with the same weights, bit for bit, as one that was not (on
the same type of processor with the same numpy and BLAS).
"""

import os

# One thread, because the order of a sum affects its last bit. Must be set before numpy is loaded.
for _name in ("OPENBLAS", "OMP", "MKL", "BLIS", "VECLIB", "NUMEXPR"):
    os.environ[_name + "_NUM_THREADS"] = "1"

import argparse
import gzip
import hashlib
import sys

import numpy as np

sys.path.append(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients", "python")
)
import belay

LAYERS = (784, 256, 128, 10)
BATCH = 128
MOMENTUM = np.float32(0.9)
RATE = np.float32(0.05)
REPORT_EVERY = 20  # steps


def read_images(path):
    with gzip.open(path, "rb") as f:
        data = f.read()
    magic, n, rows, columns = np.frombuffer(data, ">i4", 4)
    if magic != 2051 or rows * columns != LAYERS[0]:
        raise ValueError("not a file of 28 x 28 images")
    return np.frombuffer(data, np.uint8, offset=16).reshape(n, LAYERS[0])


def read_labels(path):
    with gzip.open(path, "rb") as f:
        data = f.read()
    magic, n = np.frombuffer(data, ">i4", 2)
    if magic != 2049:
        raise ValueError("not a file of labels")
    return np.frombuffer(data, np.uint8, offset=8).reshape(n)


def load_data(directory):
    data = []
    for part in ("train", "t10k"):
        for reader, kind in ((read_images, "images-idx3"), (read_labels, "labels-idx1")):
            path = os.path.join(directory, "%s-%s-ubyte.gz" % (part, kind))
            try:
                data.append(reader(path))
            except FileNotFoundError:
                sys.exit(
                    "%s is missing: install the data set (Debian: apt install dataset-fashion-mnist) or say where "
                    "it is with --data" % path
                )
            except (OSError, EOFError, ValueError) as error:
                sys.exit("%s cannot be read: %s" % (path, error))
    return data


def pixels(images):
    return images.astype(np.float32) / np.float32(255)


def new_state(seed):
    """The weights of step 0 and velocities of zero: a matrix and a bias row for each layer."""
    rng = np.random.default_rng([seed, 0])
    state = {"step": np.int64(0)}
    for i, (fan_in, fan_out) in enumerate(zip(LAYERS, LAYERS[1:])):
        scale = np.float32(np.sqrt(2.0 / fan_in))
        state["w%d" % i] = rng.standard_normal((fan_in, fan_out), np.float32) * scale
        state["b%d" % i] = np.zeros(fan_out, np.float32)
    for name in weight_names():
        state["v" + name] = np.zeros_like(state[name])
    return state


def weight_names():
    return [kind + str(i) for i in range(len(LAYERS) - 1) for kind in "wb"]


class Sampler:
    """The images of step s: a pure function of the seed and s. Each epoch is another
    permutation."""

    def __init__(self, seed, n):
        self.seed, self.n, self.epoch = seed, n, None

    def batch(self, step):
        epoch, place = divmod(step, self.n // BATCH)
        if epoch != self.epoch:
            self.epoch = epoch
            self.order = np.random.default_rng([self.seed, 1 + epoch]).permutation(self.n)
        return self.order[place * BATCH : (place + 1) * BATCH]


def forward(state, x):
    """The activations of every layer, the last one without softmax."""
    activations = [x]
    for i in range(len(LAYERS) - 1):
        x = x @ state["w%d" % i] + state["b%d" % i]
        if i < len(LAYERS) - 2:
            x = np.maximum(x, np.float32(0))
        activations.append(x)
    return activations


def train_step(state, images, labels):
    """One step of gradient descent; returns the loss before it."""
    activations = forward(state, pixels(images))
    rows = np.arange(len(labels))
    logits = activations[-1] - activations[-1].max(axis=1, keepdims=True)
    exps = np.exp(logits)
    sums = exps.sum(axis=1, keepdims=True)
    loss = float(np.mean(np.log(sums[:, 0]) - logits[rows, labels]))
    delta = exps / sums
    delta[rows, labels] -= np.float32(1)
    delta /= np.float32(len(labels))
    for i in reversed(range(len(LAYERS) - 1)):
        gradients = {"w%d" % i: activations[i].T @ delta, "b%d" % i: delta.sum(axis=0)}
        if i > 0:
            delta = (delta @ state["w%d" % i].T) * (activations[i] > 0)
        for name, gradient in gradients.items():
            state["v" + name] = MOMENTUM * state["v" + name] - RATE * gradient
            state[name] = state[name] + state["v" + name]
    state["step"] += 1
    return loss


def accuracy(state, images, labels):
    right = 0
    for start in range(0, len(labels), 1000):
        logits = forward(state, pixels(images[start : start + 1000]))[-1]
        right += int((logits.argmax(axis=1) == labels[start : start + 1000]).sum())
    return right / len(labels)


def digest(state):
    h = hashlib.sha256()
    for name in weight_names():
        h.update(np.ascontiguousarray(state[name], "<f4").tobytes())
    return h.hexdigest()


def save(state, total):
    with belay.checkpoint(int(state["step"]), total) as directory:
        with open(os.path.join(directory, "state.npz"), "wb") as f:
            np.savez(f, **state)


def load(seed):
    if not belay.restored():
        return new_state(seed)
    with np.load(os.path.join(belay.checkpoint_dir(), "state.npz"), allow_pickle=False) as f:
        state = {name: f[name] for name in f.files}
    print("resumed at step %d" % state["step"], flush=True)
    return state


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--steps", type=positive, default=1400, help="minibatches of %d to train on" % BATCH
    )
    parser.add_argument("--seed", type=positive, default=1)
    parser.add_argument(
        "--data", default="/usr/share/datasets/fashion-mnist", help="directory of the data set"
    )
    arguments = parser.parse_args()

    images, labels, test_images, test_labels = load_data(arguments.data)
    sampler = Sampler(arguments.seed, len(labels))
    state = load(arguments.seed)
    while state["step"] < arguments.steps:
        batch = sampler.batch(int(state["step"]))
        loss = train_step(state, images[batch], labels[batch])
        step = int(state["step"])
        if step % REPORT_EVERY == 0 or step == arguments.steps:
            print("step %d loss %.4f" % (step, loss), flush=True)
        belay.progress(step, arguments.steps)
        if belay.should_checkpoint():
            save(state, arguments.steps)
            if belay.stopping():
                sys.exit(belay.EXIT_CHECKPOINTED)
    print("test accuracy %.4f" % accuracy(state, test_images, test_labels))
    print("weights sha256 %s" % digest(state), flush=True)


if __name__ == "__main__":
    main()
