"""Which hyper-parameters go together, and with which labels. Never imports torch."""

import re
from collections.abc import Collection

from clarinet.recipes.choices import BACKBONES, LEAST_SIZES, Setting, is_backbone
from clarinet.recipes.counting import many
from clarinet.recipes.errors import ConfigError, DataError
from clarinet.recipes.groups import Length, Network, Optimisation
from clarinet.recipes.learning import Adaptation, Distortion, Losses, Pretraining, SelfTraining

DIGEST = re.compile("[0-9a-f]{64}")


def check_network(network: Network) -> None:
    """Refuse trained weights for a network that has none, and images too small for it.

    Raises:
        ConfigError: a sentence that says what to change; likewise below.
    """
    if network.pretrained and not is_backbone(network.architecture):
        raise ConfigError(
            f"pretrained is {network.pretrained!r}, but architecture {network.architecture} has no "
            f"pretrained weights; {', '.join(sorted(BACKBONES))} and timm/NAME have",
            "pretrained",
        )
    digest = network.pretrained_digest
    if digest and not DIGEST.fullmatch(digest):
        raise ConfigError(
            f"pretrained_digest is {digest!r}, but must be a SHA-256: 64 digits 0 to 9 and a to f",
            "pretrained_digest",
        )
    if digest and not network.pretrained:
        raise ConfigError(
            "pretrained_digest is that of a file of trained weights; name it as pretrained",
            "pretrained_digest",
        )
    least = LEAST_SIZES.get(network.architecture, 0)
    if network.image_size < least:
        raise ConfigError(
            f"image_size is {network.image_size}, but {network.architecture} needs {least} or more",
            "image_size",
        )


def check_kept_features(
    method: str, network: Network, losses: Losses, distortion: Distortion, pretraining: Pretraining
) -> None:
    """Refuse a run on kept features that has nothing to keep, or promises what such a run does not do."""
    if not network.kept_features:
        if network.bottleneck:
            raise ConfigError(
                f"bottleneck is {network.bottleneck}, but only a network of kept features has one; set "
                "kept_features, or bottleneck to 0",
                "bottleneck",
            )
        return
    if network.bottleneck == 0 and method != "clarinet-plus":
        raise ConfigError(
            f"kept_features without a bottleneck finds classes without the losses of {method}; choose the "
            "preset photographs-quick, or the method clarinet-plus",
            "kept_features",
        )
    if not is_backbone(network.architecture):
        raise ConfigError(
            f"kept_features needs a network for photographs, and {network.architecture} is none; name one as "
            "architecture",
            "kept_features",
        )
    if not network.pretrained:
        raise ConfigError(
            "kept_features keeps a network as its trained weights made it, and there are none; name them as "
            "pretrained: hub, or a file",
            "pretrained",
        )
    if network.bottleneck and distortion.distorted_share > 0:
        raise ConfigError(
            f"distorted_share is {distortion.distorted_share}, but kept features are those of the images as "
            "they are; set it to 0",
            "distorted_share",
        )
    if network.bottleneck == 0 and losses.complementary_loss != "bounded":
        raise ConfigError(
            f"complementary_loss is {losses.complementary_loss}, but kept_features takes uniform labels by "
            "their likelihood (bounded)",
            "complementary_loss",
        )
    if pretraining.pretraining_share > 0:
        raise ConfigError(
            "kept_features has features from the start; set pretraining_share to 0", "pretraining_share"
        )


def check_fine_tuning(length: Length, network: Network, self_training: SelfTraining) -> None:
    """Refuse turns of fine-tuning where nothing is kept, or that leave no round before and after each."""
    turns, size = self_training.fine_tuning_turns, self_training.fine_tuning_size
    if turns == 0:
        return
    if not network.has_rounds:
        raise ConfigError(
            f"fine_tuning_turns is {turns}, but only a network of kept features has such turns, and no "
            "bottleneck; set kept_features, or fine_tuning_turns to 0",
            "fine_tuning_turns",
        )
    if length.epochs <= turns:
        raise ConfigError(
            f"epochs is {length.epochs}, but {turns} turns of fine-tuning need {turns + 1} rounds at least: "
            "before, between and after them; train longer, or set fine_tuning_turns lower",
            "epochs",
        )
    least = max(16, LEAST_SIZES.get(network.architecture, 0))
    if 0 < size < least:
        raise ConfigError(
            f"fine_tuning_size is {size}, but {network.architecture} needs {least} or more",
            "fine_tuning_size",
        )


def check_distortion(distortion: Distortion) -> None:
    """Refuse a curriculum that is full before it starts."""
    start, full = distortion.distortion_start, distortion.distortion_full
    if full < start:
        raise ConfigError(
            f"distortion_full is {full}, before distortion_start ({start}); raise the one or lower the other",
            "distortion_full",
        )


def check_lengths(length: Length, pretraining: Pretraining) -> None:
    """Refuse a run, or a step of two, whose epochs are used up before labels are learned from."""
    steps = [epochs for epochs in (length.first_epochs, length.epochs - length.first_epochs) if epochs]
    for epochs in steps:
        if pretraining.epochs_of(epochs) >= epochs:
            raise ConfigError(
                f"pretraining_share is {pretraining.pretraining_share}, which of {many(epochs, 'epoch')} "
                "leaves none to learn from labels; lower it or train longer",
                "pretraining_share",
            )
    if length.first_step_share > 0 and length.epochs == 1:
        raise ConfigError(
            "epochs is 1, but training in two steps (first_step_share) needs at least 2", "epochs"
        )


def check_adaptation(length: Length, optimisation: Optimisation, adaptation: Adaptation) -> None:
    """Refuse an adaptation that has no weight, no epochs or no reversal."""
    if adaptation.adaptation_kind == "none":
        return
    if adaptation.adaptation_weight == 0:
        raise ConfigError(
            "adaptation_weight is 0, which leaves no adaptation to the target; raise it, or take the method "
            "gac, which does not adapt",
            "adaptation_weight",
        )
    if adaptation.adaptation_kind == "adversary" and optimisation.learning_rate == 0:
        raise ConfigError(
            "learning_rate is 0, which leaves the reversal adaptation_weight * gamma 2 / gamma 1 undefined; "
            "raise it, or take the method gac, which does not adapt",
            "learning_rate",
        )
    epochs = length.epochs - length.first_epochs
    if adaptation.adaptation_start_epoch >= epochs:
        raise ConfigError(
            f"adaptation_start_epoch is {adaptation.adaptation_start_epoch}, but only "
            f"{many(epochs, 'epoch')} can adapt to the target; lower it, train longer, or take the method "
            "gac, which does not adapt",
            "epochs",
        )


def check_labels(method: str, setting: Setting, losses: Losses) -> None:
    """Refuse complementary labels alone for what learns from none."""
    if losses.complementary_loss == "none" and setting == "cc":
        raise ConfigError(
            f"setting is cc, but {method} learns from true labels alone; choose the setting pc",
            "setting",
        )


def check_label_count(labels: int, num_classes: int) -> None:
    """Refuse fewer labels than classes: of some class nothing at all is said.

    Raises:
        DataError: how many are missing.
    """
    if labels < num_classes:
        raise DataError(
            f"{many(labels, 'label')} cannot tell {num_classes} classes apart; collect "
            f"{num_classes - labels} more, or name fewer classes"
        )


def check_named_classes(losses: Losses, complementary: Collection[object], true: Collection[object]) -> None:
    """Refuse labels that a network fits which takes every image for one and the same class.

    Args:
        losses: of the run.
        complementary, true: the classes that at least one label of each kind names, as numbers or by name.

    Raises:
        DataError: all labels name one class.
    """
    if losses.complementary_loss == "none":
        if len(true) == 1:
            (known,) = true
            raise DataError(f"every true label names class {known}; at least two classes are needed")
        return
    if len(complementary) != 1 or len(true) > 1 or set(true) == set(complementary):
        return
    (denied,) = complementary
    if not true:
        raise DataError(f"every complementary label names class {denied}; at least two classes are needed")
    (known,) = true
    raise DataError(
        f"every complementary label names class {denied} and every true label class {known}, which all "
        "images may be of; collect answers about other classes"
    )
