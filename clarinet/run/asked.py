"""What a caller asked of `train`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from clarinet.recipes.choices import DoingKind
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.doing import Doing
from clarinet.recipes.errors import Interrupted
from clarinet.run.results import EpochReport
from clarinet.run.resuming import RunState, save


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """The arguments of `train`, and the digest of its data where there is a checkpoint."""

    config: TrainConfig
    device: torch.device
    on_epoch: Callable[[EpochReport], None]
    on_doing: Callable[[Doing], None]
    should_stop: Callable[[], bool]
    checkpoint: Path | None
    digest: str
    weights_folder: Path | None

    def doing(self, kind: DoingKind, done: int, total: int) -> None:
        """Tell what the run does and how far it is with it; what the caller then raises ends the training."""
        self.on_doing(Doing(kind, done, total))

    def stop_if_asked(self, step: int) -> None:
        """End the run after so many steps where the caller wants it to; what the checkpoint holds is kept.

        Raises:
            Interrupted: should_stop says so.
        """
        if self.should_stop():
            has_checkpoint = self.checkpoint is not None and self.checkpoint.exists()
            raise Interrupted(step, self.checkpoint if has_checkpoint else None)

    def keep(self, state: RunState) -> None:
        """Write the checkpoint, if one is wanted."""
        if self.checkpoint:
            save(self.checkpoint, state, self.config, self.digest)
