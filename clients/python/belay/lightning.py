# SPDX-License-Identifier: Apache-2.0
"""PyTorch Lightning under belay (2.0 or later; also as pytorch_lightning).

    import belay.lightning

    trainer = Trainer(callbacks=[belay.lightning.Checkpoints()], ...)
    trainer.fit(model, data, ckpt_path=belay.lightning.restored())
    belay.lightning.exit_if_stopped()

A checkpoint is Lightning's own, with loops, optimizers and schedules; it is made after the batch in
which belay asked for one. The callback adds the states of the random number generators, which
Lightning does not save. Lightning decides how an epoch is resumed in its middle: a loader with
state_dict() continues, another one restarts its epoch. Lightning before 2.5 trains the last batch
before the save again (its issues 18060 and 19815).
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any

import belay
import belay.torch

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback

_NAME = "lightning.ckpt"


def restored() -> str | None:
    """The path to give to fit(ckpt_path=...): of the restored checkpoint, or None."""
    return os.path.join(belay.checkpoint_dir() or "", _NAME) if belay.restored() else None


def exit_if_stopped() -> None:
    """Call after fit(): ends the program if it was stopped for belay to continue it elsewhere."""
    if belay.stopping():
        sys.exit(belay.EXIT_CHECKPOINTED)


class Checkpoints(Callback):
    """Saves when belay wants it, on all ranks at the same batch, and ends fit() when the node will
    be given up. poll: how often the ranks ask belay."""

    def __init__(self, poll: belay.torch.Poll | None = None) -> None:
        super().__init__()
        self._poll = poll or belay.torch.Poll()
        self._generators: bytes | None = None  # to restore when training begins

    def state_dict(self) -> dict[str, Any]:
        """The generators of each rank: Lightning calls it on all, and keeps that of the first."""
        own = pickle.dumps(belay.torch.rng_state())
        # Numbers, because Lightning loads its checkpoints as data that may not name classes.
        return {"generators": [list(state) for state in belay.torch.gather(own)]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what state_dict() returned, when training begins; not on another number of
        ranks."""
        states = state_dict["generators"]
        if len(states) == belay.torch.world_size():
            self._generators = bytes(states[belay.torch.rank()])

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Restores the generators: what Lightning and the loader draw at the start is done."""
        state, self._generators = self._generators, None
        if state is not None:
            belay.torch.set_rng_state(pickle.loads(state))

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        step, total = trainer.global_step, trainer.max_steps if trainer.max_steps > 0 else None
        first = trainer.is_global_zero
        if first:
            belay.progress(step, total)
        if not self._poll.wants_save():
            return
        belay.torch.save_together(
            step, total, lambda directory: trainer.save_checkpoint(os.path.join(directory, _NAME))
        )
        if belay.torch.agree(belay.stopping() if first else None):
            trainer.should_stop = True
