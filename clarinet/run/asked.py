"""What a caller asked of `train`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from clarinet.networks.own import NOTHING, Own
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import ConfigError
from clarinet.run.results import EpochReport
from clarinet.run.resuming import RunState, save


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """The arguments of `train`, and the digest of its data where there is a checkpoint."""

    config: TrainConfig
    device: torch.device
    on_epoch: Callable[[EpochReport], None]
    should_stop: Callable[[], bool]
    checkpoint: Path | None
    digest: str
    weights_folder: Path | None
    own: Own = NOTHING

    def __post_init__(self) -> None:
        """Refuse what does not go together; raises ConfigError."""
        if self.own and self.checkpoint:
            raise ConfigError(
                "a run with a backbone or transform of one's own keeps no checkpoint: none could say later "
                "whether it goes on with the same one; leave out the checkpoint"
            )
        pretrained = self.config.network.pretrained
        if self.own.backbone is not None and pretrained:
            raise ConfigError(
                f"there is a backbone of one's own beside the trained weights {pretrained}; leave one out: a "
                "backbone begins with the weights that it has",
                "pretrained",
            )

    def keep(self, state: RunState) -> None:
        """Write the checkpoint, if one is wanted."""
        if self.checkpoint:
            save(self.checkpoint, state, self.config, self.digest)
