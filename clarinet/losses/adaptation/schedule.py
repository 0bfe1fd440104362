"""How the weight of the adaptation rises once it has begun."""

import math

from clarinet.recipes.config import TrainConfig

RISE_SLOPE = 10  # of 2/(1 + exp(-10 p)) - 1, by which DANN's adaptation rises
RISE_STEPS = 10_000  # over which it rises in CDAN's code, whatever the length of the run


def adaptation_share(config: TrainConfig, since: int, remaining: int) -> float:
    """Share of the adaptation's weight at a step, in [0, 1].

    A function of the step alone, so that no counter can run apart from another or get lost.

    Args:
        config: its adaptation_schedule.
        since: steps since the adaptation began, >= 0.
        remaining: steps from its beginning to the end of the run.
    """
    if config.adaptation.adaptation_schedule == "constant":
        return 1.0
    whole = RISE_STEPS if config.adaptation.adaptation_schedule == "10000-steps" else remaining
    return 2 / (1 + math.exp(-RISE_SLOPE * since / whole)) - 1
