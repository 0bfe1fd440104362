"""Which images an evaluation judges, and in which order people are asked: pure functions of secret seeds.

Everything follows as in `draws`. By a seed of its own the images of a dataset have a random order; its first
n are a simple random sample, whatever n is. Evaluations of the same dataset share this seed: a later one
meets the images of an earlier one, and only adds to them.

Each image of the sample whose answer is not known yet gets a question about the class that the model predicts
(round EVALUATED). Among them come questions about classes drawn uniformly (round DRAWN), so that yes is no
habit. All of them stand in one random order, cut into turns; within a turn questions of a class follow each
other, as in `draws`. So what was answered when people stopped is a random sample, too, to about a turn.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.campaigns.draws import MIN_BLOCK, TURNS, Draws, Integers, draw_classes, probabilities, random_words

DRAWN, EVALUATED = 0, 1  # rounds
LEAST_OF_CLASS = 20  # pictures of each predicted class, where each is drawn from by itself


class Stratum(NamedTuple):
    """Pictures that a model takes for one class, in an evaluation that draws from each class by itself."""

    population: int
    sampled: int  # the first of these in the random order
    end: int  # of all pictures in that order, where the last of them stands, and one more


def strata_of(predicted: Sequence[int], *, sample: int, num_classes: int) -> list[Stratum]:
    """How many pictures of each predicted class to draw, for a sample of about so many.

    Each class gets its share of the sample, so that the accuracy of all is known as well as by a simple draw
    or better; and at least LEAST_OF_CLASS, or all that it has.

    Args:
        predicted: class of each picture, in random order.
        sample: as many as a simple draw would take.
        num_classes: K.
    """
    classes = np.asarray(predicted, dtype=np.int64)  # (N,)
    found = []
    for class_ in range(num_classes):
        places = np.flatnonzero(classes == class_)
        share = math.ceil(sample * len(places) / len(classes))
        taken = min(len(places), max(share, LEAST_OF_CLASS))
        found.append(Stratum(len(places), taken, int(places[taken - 1]) + 1 if taken else 0))
    return found


def in_random_order(seed: str, positions: Sequence[int]) -> Integers:
    """(N,) positions of a dataset's images; any first of them are a simple random sample."""
    words = random_words(seed, "sample", positions, 0)[:, 0]  # (N,)
    ordered: Integers = np.asarray(positions, dtype=np.int64)[np.argsort(words, kind="stable")]
    return ordered


def images_to_mix_in(ordered: Integers, *, sample: int, count: int) -> Integers:
    """(count,) of the images in random order those about which a drawn class is asked.

    They lie behind the sample; where there are too few, the sample's own follow. A sample by predicted class
    has no end in that order (0): the last of all come first.
    """
    if not sample:
        return ordered[::-1][:count]
    return np.concatenate([ordered[sample:], ordered[:sample]])[:count]


def draw_evaluation(
    seed: str, asked: Integers, predicted: Integers, others: Integers, *, num_classes: int
) -> Draws:
    """Every question of an evaluation, in asking order. Pure.

    Args:
        seed: 256 bits in hex.
        asked: (N,) positions of the images whose prediction is judged.
        predicted: (N,) their predicted classes.
        others: (M,) positions of the images about which a drawn class is asked.
        num_classes: K >= 2.
    """
    positions = np.concatenate([asked, others]).astype(np.int64)  # (N + M,)
    rounds = np.repeat(np.array([EVALUATED, DRAWN], dtype=np.int64), [len(asked), len(others)])
    classes = np.concatenate([predicted, draw_classes(seed, others, num_classes=num_classes, rounds=1)[0]])
    words = np.concatenate(
        [random_words(seed, "order", part.tolist(), round_)[:, 0] for part, round_ in _parts(asked, others)]
    )
    sequence = np.lexsort((positions, words))
    size = max(1, min(MIN_BLOCK * num_classes, len(positions) // TURNS))
    turn = np.empty(len(positions), dtype=np.int64)
    turn[sequence] = np.arange(len(positions)) // size
    turns = int(turn.max(initial=-1)) + 1
    keys = random_words(seed, "turn", range(turns * num_classes), EVALUATED)[:, 0].reshape(turns, num_classes)
    order = np.lexsort((words, classes, keys[turn, classes], turn))
    return Draws(
        positions=positions[order],
        rounds=rounds[order],
        classes=classes[order],
        ranks=np.arange(len(positions), dtype=np.int64),
    )


def _parts(asked: Integers, others: Integers) -> tuple[tuple[Integers, int], tuple[Integers, int]]:
    return (asked, EVALUATED), (others, DRAWN)


def sample_commitment(
    seed: str,
    *,
    dataset_digest: str,
    class_names: Sequence[str],
    sample_seed: str,
    sample_size: int,
    strata: Sequence[Sequence[int]] | None = None,
    asked: int,
    drawn: int,
) -> str:
    """What is published when an evaluation opens: SHA-256 over canonical JSON."""
    facts = {
        "asked": asked,
        "classes": list(class_names),
        "dataset_digest": dataset_digest,
        "drawn": drawn,
        "probabilities": probabilities(len(class_names)),
        "sample_seed": sample_seed,
        "sample_size": sample_size,
        "seed": seed,
    } | ({} if strata is None else {"strata": [list(item) for item in strata]})
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
