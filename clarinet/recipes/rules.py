"""Which hyper-parameters go together. Never imports torch."""

from typing import TYPE_CHECKING

from clarinet.recipes.choices import BACKBONES, LEAST_SIZES
from clarinet.recipes.errors import ConfigError

if TYPE_CHECKING:
    from clarinet.recipes.config import TrainConfig


def check_together(config: "TrainConfig") -> None:
    """Refuse what single fields allow and together make no run.

    Raises:
        ConfigError: a sentence that says what to change.
    """
    if config.augmentation_full < config.augmentation_start:
        start, full = config.augmentation_start, config.augmentation_full
        raise ConfigError(
            f"augmentation_full is {full}, before augmentation_start ({start}); raise the one or lower the "
            "other"
        )
    if config.trade_off > 0 and config.learning_rate == 0:
        raise ConfigError(
            "learning_rate is 0, which leaves the reversal trade_off * gamma 2 / gamma 1 undefined; raise "
            "it, or set trade_off to 0"
        )
    if config.pretrained and config.architecture not in BACKBONES:
        raise ConfigError(
            f"pretrained is {config.pretrained!r}, but architecture {config.architecture} has no pretrained "
            f"weights; {', '.join(sorted(BACKBONES))} have"
        )
    least = LEAST_SIZES.get(config.architecture, 0)
    if config.image_size < least:
        raise ConfigError(
            f"image_size is {config.image_size}, but {config.architecture} needs {least} or more"
        )
    if config.pretraining_epochs >= config.epochs:
        raise ConfigError(
            f"pretraining is {config.pretraining}, which of {config.epochs} epochs leaves none to learn from "
            "labels; lower it or train longer"
        )
    _check_adaptation(config)
    _check_labels(config)


def _check_adaptation(config: "TrainConfig") -> None:
    if config.trade_off == 0 and config.discrepancy_weight == 0:
        return
    epochs = config.epochs - config.first_epochs
    if config.adversarial_start_epoch >= epochs:
        raise ConfigError(
            f"adversarial_start_epoch is {config.adversarial_start_epoch}, but only {epochs} epochs can "
            "adapt to the target; lower it, train longer, or take the method gac, which does not adapt"
        )


def _check_labels(config: "TrainConfig") -> None:
    if config.complementary_loss == "none" and config.setting == "cc":
        raise ConfigError(
            f"{config.method} with complementary_loss none learns from true labels alone, and the setting "
            "cc has none; choose the setting pc"
        )
    if config.pseudo_label_share > 0 and config.complementary_loss == "none":
        raise ConfigError(
            "pseudo_label_share is above 0, but with complementary_loss none the first of the two steps "
            "has nothing to learn from; set one of them back"
        )
    if config.pseudo_label_share > 0 and config.epochs == 1:
        raise ConfigError("epochs is 1, but training in two steps (pseudo_label_share) needs at least 2")
