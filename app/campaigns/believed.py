"""Which class each question by a model's belief asks about: pure functions of a seed and the beliefs.

What the model believes is kept as whole numbers, with the classes that each image may still have. From that
file and the seed everybody recomputes every draw, by the generator of `app.campaigns.draws`:

* candidate class: stream "belief", a = position of the example, b = round. A number below the sum of the
  image's weights (`clarinet.files.beliefs.question_weights`) lies in the range of one class.
* order: as of uniform draws.
"""

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.campaigns.draws import Draws, Integers, asking_order, block_size, numbers_below, random_words
from clarinet.files.beliefs import Beliefs, question_probabilities, question_weights

STREAM = "belief"
AT_ONCE = 1_000_000  # images times classes: so much is drawn in 50 MB, whatever the number of images


@dataclass(frozen=True, slots=True, eq=False)
class KeptBeliefs:
    """What a model believes of the N images that are asked about again, by position. K classes."""

    positions: Integers  # (N,) of the examples in their dataset, ascending
    beliefs: Beliefs  # (N, K)
    possible: NDArray[np.bool_]  # (N, K) classes that no earlier answer has ruled out, two or more of each

    def __len__(self) -> int:
        return len(self.positions)

    def as_bytes(self) -> bytes:
        """As an npz file."""
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            positions=self.positions,
            beliefs=self.beliefs,
            possible=np.packbits(self.possible, axis=1),
        )
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> "KeptBeliefs":
        """Read a file that `as_bytes` gave."""
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            beliefs = arrays["beliefs"]
            possible = np.unpackbits(arrays["possible"], axis=1, count=beliefs.shape[1]).astype(np.bool_)
            return cls(arrays["positions"], beliefs, possible)


def digest_of(data: bytes) -> str:
    """SHA-256 of a file of beliefs."""
    return hashlib.sha256(data).hexdigest()


def commitment_by_belief(
    seed: str,
    *,
    dataset_digest: str,
    examples: int,
    class_names: Sequence[str],
    round_: int,
    beliefs_digest: str,
    floor_percent: int,
) -> str:
    """What is published with such a drawing: SHA-256 over canonical JSON, with the law in it."""
    facts = {
        "beliefs": beliefs_digest,
        "classes": list(class_names),
        "dataset_digest": dataset_digest,
        "examples": examples,
        "floor_percent": floor_percent,
        "law": STREAM,
        "round": round_,
        "seed": seed,
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def draw_by_belief(
    seed: str, kept: KeptBeliefs, *, round_: int, floor_percent: int
) -> tuple[Draws, NDArray[np.float64]]:
    """One question about each image, in asking order, and (N,) the probability with which each was drawn.

    Args:
        seed: 256 bits in hex.
        kept: what the model believes.
        round_: that the questions are of.
        floor_percent: of each question's probability that all possible classes share equally.
    """
    count, num_classes = kept.beliefs.shape
    classes, chances = np.zeros(count, np.int64), np.zeros(count)
    step = max(1, AT_ONCE // num_classes)
    for start in range(0, count, step):
        part = slice(start, start + step)
        weights = question_weights(kept.beliefs[part], kept.possible[part], floor_percent=floor_percent)
        below = _numbers(seed, kept.positions[part], round_, weights.sum(1))  # (n,)
        classes[part] = (np.cumsum(weights, axis=1) <= below[:, None]).sum(1)
        chances[part] = question_probabilities(weights)[np.arange(len(weights)), classes[part]]
    order = asking_order(
        seed,
        kept.positions,
        classes,
        round_=round_,
        num_classes=num_classes,
        size=block_size(count, num_classes),
    )
    drawn = Draws(
        positions=kept.positions[order],
        rounds=np.full(count, round_, dtype=np.int64),
        classes=classes[order],
        ranks=np.arange(count, dtype=np.int64),
    )
    return drawn, chances[order]


def _numbers(seed: str, positions: Integers, round_: int, below: Integers) -> Integers:
    """(N,) numbers, each below its own of (N,) bounds."""
    values = np.zeros(len(positions), dtype=np.int64)
    open_ = np.arange(len(positions))
    block = 0
    while len(open_):
        given = random_words(seed, STREAM, positions[open_].tolist(), round_, block)
        drawn, found = numbers_below(below[open_], given)
        values[open_] = drawn
        open_ = open_[~found]
        block += 1
    return values
