"""A stage: one training of new networks, which is a whole run or one of its two steps."""

from dataclasses import dataclass

from clarinet.data.domains import Domains
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.lengths import steps_in_epoch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """One training of new networks: a whole run, or one of its two steps.

    Args:
        config: of this stage; its epochs are those of the stage.
        domains: what it trains on.
        epochs_before, steps_before: done by the run before this stage.
        steps_after: to do after it.
    """

    config: TrainConfig
    domains: Domains
    epochs_before: int = 0
    steps_before: int = 0
    steps_after: int = 0

    @property
    def epoch_steps(self) -> int:
        """Steps in an epoch: see `steps_in_epoch`."""
        domains = self.domains
        labels = max(len(domains.complementary_rows), len(domains.true_rows))
        return steps_in_epoch(self.config, labels, len(domains.target))

    @property
    def steps(self) -> int:
        """Steps of the stage."""
        return self.config.epochs * self.epoch_steps
