"""What a caller asked of `train`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from clarinet.distributed.group import ALONE, Group
from clarinet.networks.own import NOTHING, Own
from clarinet.recipes.choices import OWN_WEIGHTS, DoingKind
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.doing import Doing, OnPart
from clarinet.recipes.errors import ConfigError, Interrupted
from clarinet.run.results import EpochReport
from clarinet.run.resuming import RunState, save


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """The arguments of `train`, and the digest of its data where there is a checkpoint."""

    config: TrainConfig
    device: torch.device
    on_epoch: Callable[[EpochReport], None]
    on_doing: Callable[[Doing], None]
    on_part: OnPart
    should_stop: Callable[[], bool]
    checkpoint: Path | None
    digest: str
    weights_folder: Path | None
    own: Own = NOTHING
    group: Group = ALONE

    def __post_init__(self) -> None:
        """Refuse what does not go together; raises ConfigError."""
        if self.own and self.checkpoint:
            raise ConfigError(
                "a run with a backbone or transform of one's own keeps no checkpoint: none could say later "
                "whether it goes on with the same one; leave out the checkpoint"
            )
        if self.config.network.kept_features and not self.group.is_alone:
            raise ConfigError(
                f"preset {self.config.preset} computes the features of each image once and keeps them, which "
                "one process does; train it with one, or choose a preset that takes steps of batches"
            )
        pretrained = self.config.network.pretrained
        if self.own.backbone is None and pretrained == OWN_WEIGHTS:
            raise ConfigError(
                "pretrained is own, the weights of a backbone of one's own, and there is none; name hub or a "
                "file",
                "pretrained",
            )
        if self.own.backbone is not None and pretrained not in {"", OWN_WEIGHTS}:
            raise ConfigError(
                f"there is a backbone of one's own beside the trained weights {pretrained}; leave one out: a "
                "backbone begins with the weights that it has",
                "pretrained",
            )

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
        if self.checkpoint and self.group.leads:
            save(self.checkpoint, state, self.config, self.digest)
