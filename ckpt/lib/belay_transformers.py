# SPDX-License-Identifier: Apache-2.0
"""The Trainer of Hugging Face's transformers (4.30 or later) under belay.

    import belay_transformers

    callbacks = [belay_transformers.Checkpoints()]
    trainer = Trainer(model, arguments, train_dataset=data, callbacks=callbacks)
    trainer.train(resume_from_checkpoint=belay_transformers.restored())
    belay_transformers.exit_if_stopped()

A checkpoint is the Trainer's own: the Trainer saves after the step in which belay asked for one,
and its files below `output_dir` are taken over (as hard links where possible, so that no byte is
written twice). Saves that the Trainer makes by its own `save_steps` are committed as well.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

import belay
import belay_torch
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

    def __init__(self, poll: belay_torch.Poll | None = None) -> None:
        super().__init__()
        self._poll = poll or belay_torch.Poll()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        first = state.is_world_process_zero
        if first:
            belay.progress(state.global_step, state.max_steps)
        if self._poll.wants_save():
            control.should_save = True
        return control

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        first = state.is_world_process_zero
        if first:
            source = os.path.join(args.output_dir, "checkpoint-%d" % state.global_step)
            self._take(source, state)
        if belay_torch.agree(belay.stopping() if first else None):
            control.should_training_stop = True
        return control

    @staticmethod
    def _take(source: str, state: Any) -> None:
        try:
            with belay.checkpoint(state.global_step, state.max_steps) as directory:
                shutil.copytree(source, os.path.join(directory, _NAME), copy_function=_link_or_copy)
        except OSError as error:
            print("belay: not saved, continuing: %s" % error, file=sys.stderr, flush=True)
