# SPDX-License-Identifier: Apache-2.0
"""A loop over JAX and Orbax, as the how-to guide has it. See loop.py."""

import os
import sys

import loop

if loop.DEVICE == "cpu":
    os.environ["JAX_PLATFORMS"] = "cpu"
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # other programs use the GPU too
import jax
import numpy
import optax
import orbax.checkpoint as ocp

import belay

WIDTH = 256


def new_state(transformation):
    keys = jax.random.split(jax.random.key(1), 3)
    parameters = {
        "first": 0.1 * jax.random.normal(keys[0], (WIDTH, WIDTH)),
        "second": 0.1 * jax.random.normal(keys[1], (WIDTH, 1)),
    }
    return {
        "parameters": parameters,
        "optimizer": transformation.init(parameters),
        "key": jax.random.key_data(keys[2]),
        "step": numpy.asarray(0),
    }


def loss_of(parameters, x, kept):
    hidden = jax.nn.relu(x @ parameters["first"]) * kept
    return (((hidden @ parameters["second"])[:, 0] - x.sum(1)) ** 2).mean()


@jax.jit
def train(state, x):
    key, now = jax.random.split(jax.random.wrap_key_data(state["key"]))
    kept = jax.random.bernoulli(now, 0.7, (x.shape[0], WIDTH))
    gradients = jax.grad(loss_of)(state["parameters"], x, kept)
    updates, optimizer = adam.update(gradients, state["optimizer"])
    return {
        "parameters": optax.apply_updates(state["parameters"], updates),
        "optimizer": optimizer,
        "key": jax.random.key_data(key),
        "step": state["step"] + 1,
    }


adam = optax.adam(1e-3)
state, saver, step = new_state(adam), ocp.StandardCheckpointer(), 0
if belay.restored():
    state = saver.restore(os.path.join(belay.checkpoint_dir(), "orbax"), state)
    step = int(state["step"])
    print("resumed at step %d" % step, flush=True)
while step < loop.STEPS:
    batch = numpy.random.default_rng(step).random((loop.BATCH, WIDTH), dtype=numpy.float32)
    state = train(state, batch)
    step += 1
    loop.done(step)
    belay.progress(step, loop.STEPS)
    if belay.should_checkpoint():
        with belay.checkpoint(step, loop.STEPS, replaces="orbax") as directory:
            saver.save(os.path.join(directory, "orbax"), state)
            saver.wait_until_finished()
        if belay.stopping():
            sys.exit(belay.EXIT_CHECKPOINTED)
loop.report(numpy.asarray(leaf) for leaf in jax.tree.leaves(state["parameters"]))
