"""What brings the domains together in a step: the adversarial loss, the discrepancy, and how they rise."""

import math

import torch
from torch import Tensor, nn

from clarinet.losses.adaptation.adversary import DomainBatch, scattered_adversarial_loss
from clarinet.losses.adaptation.discrepancy import multi_kernel_discrepancy
from clarinet.networks.precision import mixed
from clarinet.recipes.config import TrainConfig

RISE_SLOPE = 10  # of 2/(1 + exp(-10 p)) - 1, by which DANN's adaptation rises
RISE_STEPS = 10_000  # over which it rises in CDAN's code, whatever the length of the run


def adapts(config: TrainConfig) -> bool:
    """Whether the method has any loss that brings the domains together."""
    return config.trade_off > 0 or config.discrepancy_weight > 0


def adaptation_share(config: TrainConfig, since: int, remaining: int) -> float:
    """Share of the adaptation's weight at a step, in [0, 1].

    A function of the step alone, so that no counter can run apart from another or get lost.

    Args:
        config: its adaptation_schedule.
        since: steps since the adaptation began, >= 0.
        remaining: steps from its beginning to the end of the run.
    """
    if config.adaptation_schedule == "constant":
        return 1.0
    whole = RISE_STEPS if config.adaptation_schedule == "10000-steps" else remaining
    return 2 / (1 + math.exp(-RISE_SLOPE * since / whole)) - 1


def full_reversal(config: TrainConfig) -> float:
    """The strength of the reversal once the adaptation has its whole weight.

    All networks move in one summed step: D with gamma_2, G with gamma_1. Scaled by the discriminator, G feels
    gamma_2 * lambda as in the paper; by the classifier, gamma_1 * lambda as in the published code.
    """
    if config.reversal_scale == "classifier":
        return config.trade_off
    return config.trade_off * config.discriminator_learning_rate / config.learning_rate


def adaptation_losses(
    config: TrainConfig,
    discriminator: nn.Module | None,
    source: list[DomainBatch],
    target: DomainBatch,
    share: float | Tensor,
) -> dict[str, Tensor]:
    """The terms of the objective that bring the domains together, by name.

    Args:
        config: which ones, and how.
        discriminator: D, where there is an adversarial loss.
        source: one or two parts of the source batch.
        target: the target batch.
        share: of their whole weight, from `adaptation_share`.
    """
    losses: dict[str, Tensor] = {}
    if discriminator is not None:
        with mixed(config.precision, target.features.device):
            # D always learns with all its weight; the share is that of what the features feel.
            losses["adversarial"] = scattered_adversarial_loss(
                discriminator,
                source,
                target,
                sharpening=config.sharpening,
                reversal=share * full_reversal(config),
                conditioning=config.conditioning,
                entropy_gradient=config.entropy_gradient,
                domain_loss=config.domain_loss,
            )
    if config.discrepancy_weight > 0:
        losses["discrepancy"] = (
            share
            * config.discrepancy_weight
            * multi_kernel_discrepancy(
                torch.cat([part.features for part in source]),
                target.features,
                torch.cat([part.weights for part in source]),
            )
        )
    return losses
