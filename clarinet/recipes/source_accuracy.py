"""The accuracy on the source, as held-out complementary labels tell it: its interval, and when it is shown.

Never imports torch: pages and the API show the same figures by the same rule.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import ceil, inf, isfinite
from typing import Any, Self

from clarinet.recipes.binomial import Interval, effective_count, share_interval

# Held-out labels. Of ten classes and an accuracy of 95 %, 200 leave a quarter of 0 to 100 % open, 100 a half.
NEEDED = 200
EARLIER = ("source_accuracy_estimate", "source_accuracy_error")  # what versions up to 0.1.0 kept


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEstimate:
    """An estimate that may be shown, or how many labels are missing until there is one.

    Args:
        estimate, low, high: the accuracy and its 95 % confidence interval, in [0, 1]; None where fewer labels
            are held out than needed.
        held_out: complementary labels that estimated it.
        needed: how many it takes.
        missing: about how many more complementary labels it takes until so many are held out; 0 once they
            are.
    """

    estimate: float | None
    low: float | None
    high: float | None
    held_out: int
    needed: int
    missing: int

    @classmethod
    def of(cls, found: Interval | None, *, held_out: int, share: float) -> Self | None:
        """What may be shown of an estimate.

        Args:
            found: what the held-out labels tell; None where they tell nothing, however many there are.
            held_out: how many these are.
            share: which part of the complementary labels is held out.

        Returns:
            None where labels are missing and no share of further ones is held out, or where enough of them
            tell nothing.
        """
        if held_out >= NEEDED:
            if found is None:
                return None
            low, high = found.low, found.high
            return cls(estimate=found.value, low=low, high=high, held_out=held_out, needed=NEEDED, missing=0)
        if share <= 0:
            return None
        missing = ceil(round((NEEDED - held_out) / share, 6))  # 104 of 0.05 are 2,080, whatever floats say
        return cls(estimate=None, low=None, high=None, held_out=held_out, needed=NEEDED, missing=missing)

    def to_dict(self) -> dict[str, Any]:
        """Field names to plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`, or from what the API gives."""
        return cls(**{item.name: values[item.name] for item in fields(cls)})


def accuracy_interval(
    share: float, error: float, *, num_classes: int, label_noise: float = 0.0
) -> Interval | None:
    """The accuracy that goes with a share of violated labels: predictions that a complementary label forbids.

    The number of violations is binomial, so the share has Clopper and Pearson's interval, of as many labels
    of equal weight as its standard error speaks of. The accuracy falls with the share:

        accuracy = (1 - rho - (K-1) share) / (1 - K rho),

    so that its interval is the share's, turned round; clipped to [0, 1], where every accuracy lies.

    Args:
        share: of the held-out labels that are violated, in [0, 1].
        error: its standard error, above 0, as `effective_count` takes it.
        num_classes: K.
        label_noise: rho, the share of labels that name the true class.

    Returns:
        None where so many labels are wrong (rho >= 1/K) that they say nothing.
    """
    told = 1 - num_classes * label_noise  # how much a label says, of what a right one does
    if told <= 0:
        return None

    def accuracy(point: float) -> float:
        return min(max((1 - label_noise - (num_classes - 1) * point) / told, 0.0), 1.0)

    found = share_interval(share, error)
    return Interval(accuracy(found.value), low=accuracy(found.high), high=accuracy(found.low))


def of_earlier_version(
    estimate: float | None, error: float | None, *, num_classes: int, config: Mapping[str, Any]
) -> SourceEstimate | None:
    """The same from what versions up to 0.1.0 kept: an estimate, possibly below 0, and its standard error.

    How many labels were held out was not kept. The error tells how many of equal weight they were worth,
    which is their number where all weigh the same and lower elsewhere.

    Args:
        estimate, error: as they were kept.
        num_classes: K.
        config: hyper-parameters by their names of today; some may be missing.

    Returns:
        None without an estimate, and where the two cannot belong together.
    """
    noise = float(config.get("label_noise", 0.0))
    told = 1 - num_classes * noise
    if estimate is None or error is None or not isfinite(estimate) or not 0 < error < inf or told <= 0:
        return None
    share = (1 - noise - estimate * told) / (num_classes - 1)
    share = min(max(share, 0.0), 1.0)  # beyond them by rounding alone
    error = error * told / (num_classes - 1)
    found = accuracy_interval(share, error, num_classes=num_classes, label_noise=noise)
    held_out = round(effective_count(share, error))
    return SourceEstimate.of(found, held_out=held_out, share=float(config.get("held_out_share", 0.0)))


def upgraded_figures(
    figures: Mapping[str, Any], *, num_classes: int | None, config: Mapping[str, Any]
) -> dict[str, Any]:
    """Figures of a training that any version has written down, as this one would have.

    Args:
        figures: plain values by name, in records and cards.
        num_classes, config: as for `of_earlier_version`; without a number of classes there is no estimate.
    """
    if not set(EARLIER) & figures.keys():
        return dict(figures)
    estimate, error = (figures.get(name) for name in EARLIER)
    found = (
        of_earlier_version(estimate, error, num_classes=num_classes, config=config) if num_classes else None
    )
    kept = {name: value for name, value in figures.items() if name not in EARLIER}
    return kept | {"source_estimate": found and found.to_dict()}


def in_words(found: SourceEstimate) -> str:
    """For a line of text: the figure with its interval, or how much is missing."""
    if found.estimate is None or found.low is None or found.high is None:
        return (
            f"an estimate needs {found.needed:,} held-out answers; there are {found.held_out:,}: about "
            f"{found.missing:,} more"
        )
    ends = f"{100 * found.low:.1f} to {100 * found.high:.1f} %"
    return f"{100 * found.estimate:.1f} % ({ends})"
