# SPDX-License-Identifier: Apache-2.0
"""The Trainer of Hugging Face's transformers (4.30 or later) under belay.

    import belay.transformers

    callbacks = [belay.transformers.Checkpoints()]
    trainer = Trainer(model, arguments, train_dataset=data, callbacks=callbacks)
    trainer.train(resume_from_checkpoint=belay.transformers.restored())
    belay.transformers.exit_if_stopped()

A checkpoint is the Trainer's own: the Trainer saves after the step in which belay asked for one,
and its files below `output_dir` are taken over (as hard links where possible, so that no byte is
written twice). Saves that the Trainer makes by its own `save_steps` are committed as well. What the
checkpoint before had and this one does not, such as DeepSpeed's `global_stepN/`, is removed.
`save_total_limit` limits what stays below `output_dir`.

In a job of several nodes each node needs all files that it resumes from: give the arguments
`save_on_each_node=True` and an `output_dir` on the node's own disk.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

import belay
import belay.torch
from transformers import TrainerCallback

_NAME = "trainer"


def restored() -> str | None:
    """What to give to train(resume_from_checkpoint=...): the path of the restored checkpoint, or
    None."""
    return os.path.join(belay.checkpoint_dir() or "", _NAME) if belay.restored() else None


def exit_if_stopped() -> None:
    """Call after train(): ends the program if it was stopped for belay to continue it elsewhere."""
    if belay.stopping():
        sys.exit(belay.EXIT_CHECKPOINTED)


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


class Checkpoints(TrainerCallback):
    """Lets the Trainer save when belay wants it, and ends train() when the node will be given
    up. poll: how often the ranks ask belay."""

    def __init__(self, poll: belay.torch.Poll | None = None) -> None:
        super().__init__()
        self._poll = poll or belay.torch.Poll()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if int(os.environ.get("BELAY_NNODES", "1")) > 1 and not args.save_on_each_node:
            raise ValueError(
                "in a job of several nodes the Trainer must save on each: give TrainingArguments("
                "save_on_each_node=True) and an output_dir on the node's own disk"
            )

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        if belay.torch.leads():
            belay.progress(state.global_step, state.max_steps)
        if self._poll.wants_save():
            control.should_save = True
        return control

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        source = os.path.join(args.output_dir, "checkpoint-%d" % state.global_step)

        def take(directory: str) -> None:
            if belay.torch.leads():
                target = os.path.join(directory, _NAME)
                shutil.copytree(source, target, copy_function=_link_or_copy)

        belay.torch.save_together(state.global_step, state.max_steps, take, replaces=_NAME)
        if belay.torch.any_rank(belay.torch.leads() and belay.stopping()):
            control.should_training_stop = True
        return control
