"""How far two accuracies differ, with an interval; how labels and values differ. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Any

import numpy as np

from clarinet.files.label_table import COMPLEMENTARY, TRUE, Labels
from clarinet.recipes.binomial import MISSED, beta_quantile
from clarinet.recipes.scoring import ScoredOn

FEWEST_SEEDS = 2


@dataclass(frozen=True, slots=True)
class Difference:
    """An accuracy less another, with the ends of its 95 % interval; fractions.

    Args:
        value, low, high: of the difference.
        basis: in one sentence, what the interval speaks about.
    """

    value: float
    low: float
    high: float
    basis: str


def between_samples(mine: float, others: float, scored: ScoredOn, others_scored: ScoredOn) -> Difference:
    """Of accuracies on images drawn apart: the intervals of both, as Newcombe (1998) joins them.

    Where both were measured on the same images it is too wide, never too narrow: both fail on hard ones.
    """
    low, high = scored.interval(mine)
    others_low, others_high = others_scored.interval(others)
    value = mine - others
    below = math.hypot(mine - low, others_high - others)
    above = math.hypot(high - mine, others - others_low)
    basis = (
        f"the images, {scored.images:,} and {others_scored.images:,}, taken as two samples; too wide where "
        "they are the same images"
    )
    return Difference(value, max(-1.0, value - below), min(1.0, value + above), basis)


def between_hits(mine: Sequence[Any], others: Sequence[Any]) -> Difference:
    """Of accuracies on the very same images, image by image, after Bonett and Price (2012).

    One image that only the one finds and one that only the other finds are added, so that few images do not
    promise too much. Of several seeds an image counts by the share of them that find it.

    Args:
        mine, others: of each seed (N,) 0 or 1 for the images that score, N >= 1.
    """
    apart = np.mean(mine, axis=0) - np.mean(others, axis=0)
    added = np.append(apart, (1.0, -1.0))
    reach = 1.96 * float(added.std()) / math.sqrt(len(added))
    middle = float(added.mean())
    basis = f"{len(apart):,} images, the same ones, one by one"
    return Difference(float(apart.mean()), max(-1.0, middle - reach), min(1.0, middle + reach), basis)


def between_seeds(mine: Sequence[float], others: Sequence[float]) -> Difference | None:
    """Of means over seeds, by Welch's t: how far further seeds might be apart on these very images.

    None where one has a single seed, which tells nothing of their spread.
    """
    if min(len(mine), len(others)) < FEWEST_SEEDS:
        return None
    value = fmean(mine) - fmean(others)
    parts = [variance(values) / len(values) for values in (mine, others)]
    error = math.sqrt(sum(parts))
    if error == 0:
        return None
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(values) - 1) for part, values in zip(parts, (mine, others), strict=True)
    )
    reach = t_quantile(freedom) * error
    basis = f"the seeds, n = {len(mine)} and {len(others)}, on these images"
    return Difference(value, max(-1.0, value - reach), min(1.0, value + reach), basis)


def t_quantile(freedom: float) -> float:
    """What |t| of so many degrees of freedom exceeds in 5 of 100 cases: I_x(f/2, 1/2), x = f/(f + t^2)."""
    x = beta_quantile(MISSED, freedom / 2, 0.5)
    return math.sqrt(freedom * (1 - x) / x)


def settings_that_differ(configs: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Any]]]:
    """Name and values, one for each configuration, of what is not the same in all; None: has none."""
    names = dict.fromkeys(name for values in configs for name in values)
    rows = [(name, [values.get(name) for values in configs]) for name in names]
    return [(name, values) for name, values in rows if any(value != values[0] for value in values[1:])]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelDifference:
    """How the frozen labels of two runs differ: labels that one alone has, by kind, and weights.

    Args:
        are_equal: whether it is the same file.
        mine, others: labels that only these have, by kind: "complementary" and "true".
        shared: labels of the same image, kind and class in both.
        reweighted: how many of these weigh differently.
        examples: images about which something differs.
    """

    are_equal: bool
    mine: dict[str, int]
    others: dict[str, int]
    shared: int
    reweighted: int
    examples: int


def labels_that_differ(mine: Labels, others: Labels) -> LabelDifference:
    """By the application's numbers of the images; both have them, and as many classes."""
    keys, other_keys = _keys(mine), _keys(others)
    shared, at, other_at = np.intersect1d(keys, other_keys, return_indices=True)
    ours, theirs = np.setdiff1d(keys, other_keys), np.setdiff1d(other_keys, keys)
    changed = ~np.isclose(mine.weights[at], others.weights[other_at], rtol=1e-6)
    touched = np.concatenate([ours, theirs, shared[changed]]) // (2 * mine.num_classes)
    return LabelDifference(
        are_equal=False,
        mine=_by_kind(ours, mine.num_classes),
        others=_by_kind(theirs, mine.num_classes),
        shared=len(shared),
        reweighted=int(changed.sum()),
        examples=len(np.unique(touched)),
    )


def _keys(labels: Labels) -> Any:
    ids = labels.example_ids
    if ids is None:
        raise ValueError("labels without the numbers of their images")
    return (ids * 2 + labels.kinds) * labels.num_classes + labels.classes


def _by_kind(keys: Any, num_classes: int) -> dict[str, int]:
    kinds = keys // num_classes % 2
    return {"complementary": int((kinds == COMPLEMENTARY).sum()), "true": int((kinds == TRUE).sum())}
