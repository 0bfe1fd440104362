"""What a step learns from labels: the paper's risks, ours, and those for labels that are not uniform."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from clarinet.data.batches import SourceBatch
from clarinet.data.domains import Domains
from clarinet.losses.complementary import (
    bounded_complementary_loss,
    class_floor_loss,
    class_proportions,
    corrected_objective,
    estimated_class_ceiling,
    one_hot,
    per_class_complementary_risk,
    true_label_loss,
)
from clarinet.recipes.config import TrainConfig
from clarinet.run.label_losses import NON_UNIFORM, LabelFacts, complementary_loss, true_loss


class LabelObjective:
    """The part of a step's objective that labels decide, as a function of its batches and logits.

    Args:
        config: of the run; its losses.
        domains: whose labels are looked at as a whole, once.
        batch_size: labels of a kind in a step.

    Raises:
        DataError: a loss needs what cannot be estimated from these labels.
    """

    def __init__(self, config: TrainConfig, domains: Domains, *, batch_size: int) -> None:
        self._config = config
        options = config.losses
        self._alpha = domains.alpha
        of_dataset = options.class_proportions == "dataset"
        self._proportions = _dataset_proportions(domains) if of_dataset else None
        non_uniform = options.complementary_loss in NON_UNIFORM
        self._facts = LabelFacts.of(config, domains, batch_size) if non_uniform else None
        self._floor = _class_floor(domains, options.class_floor) if options.class_floor > 0 else None

    def __call__(
        self, parts: Mapping[str, SourceBatch], logits: Sequence[Tensor], *, label_noise: float | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The scalar to minimise, and what to report: () each, in nats, the latter detached and by name.

        Args:
            parts: batches by kind of label, "complementary" before "true", those that train.
            logits: (B, K) of each.
            label_noise: measured share of wrong complementary labels; None takes the config's.
        """
        objective, reported = self._label_losses(parts, logits, label_noise)
        if self._floor is not None:
            loss = class_floor_loss(logits[0], self._floor)
            objective = objective + self._config.losses.class_floor_weight * loss
            reported["class_floor"] = loss.detach()
        return objective, reported

    def _label_losses(
        self, parts: Mapping[str, SourceBatch], logits: Sequence[Tensor], label_noise: float | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """L_c = alpha L_true + (1 - alpha) L_comp, of PC-UDA, or the one of the two that there is.

        L_comp is what `corrected_objective` gives: while it ascends on the complementary risk, L_true still
        descends.
        """
        true, reported = None, {}
        if "true" in parts:
            true = self._true_loss(parts["true"], logits[-1])
            reported = {"true": true.detach()}
            if "complementary" not in parts:
                return true, reported
        if self._facts is None:
            objective, shown = self._complementary_loss(parts["complementary"], logits[0], label_noise)
        else:
            objective, shown = complementary_loss(
                self._config, self._facts, list(parts.values()), list(logits)
            )
        reported = {"complementary": shown.detach()} | reported
        if true is not None:
            objective = self._alpha * true + (1 - self._alpha) * objective
        return objective, reported

    def _true_loss(self, part: SourceBatch, logits: Tensor) -> Tensor:
        if self._facts is None:
            return true_label_loss(logits, part.true, part.weights)
        return true_loss(self._config, self._facts, part, logits)

    def _complementary_loss(
        self, part: SourceBatch, logits: Tensor, label_noise: float | None
    ) -> tuple[Tensor, Tensor]:
        """The objective to minimise and the loss to show, which differ while the correction ascends."""
        options, labels, weights = self._config.losses, part.complementary, part.weights
        if options.complementary_loss == "unbiased":
            risk = per_class_complementary_risk(
                logits, labels, weights, self._proportions, second_term_prior=options.second_term_prior
            )  # (K,)
            counts = None
            if options.ascent_weight == "count":
                counts = one_hot(labels, logits.shape[1]).sum(0)  # (K,)
            return corrected_objective(risk, counts), risk.sum()
        if options.complementary_loss == "cross-entropy":
            loss = true_label_loss(logits, labels, weights)  # towards what the images are not
        else:
            noise = options.label_noise if label_noise is None else label_noise
            loss = bounded_complementary_loss(logits, labels, weights, label_noise=noise)
        return loss, loss


def _dataset_proportions(domains: Domains) -> Tensor:
    """(K,) share of each complementary label in the data set."""
    rows = domains.complementary_rows
    return class_proportions(domains.complementary[rows], domains.weights[rows], domains.spec.num_classes)


def _class_floor(domains: Domains, floor: float) -> Tensor:
    """(K,) floor of each class's share: the config's, lowered where the labels say that it is rare."""
    num_classes, rows = domains.spec.num_classes, domains.complementary_rows
    weights = domains.weights[rows]
    if domains.probabilities is not None:
        weights = weights / domains.probabilities[rows]
    ceiling = estimated_class_ceiling(domains.complementary[rows], weights, num_classes)
    return (ceiling / 2).clamp(1e-3 / num_classes, floor / num_classes)
