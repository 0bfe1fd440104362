"""Which class each question asks about, and in which order: pure functions of one secret seed.

Everything follows from 256 secret bits through SHA-256, used as a counter-based generator. So whoever is
shown the seed after the campaign can recompute each draw with any SHA-256:

    digest(stream, a, b, c) = SHA-256(seed || stream, zeros up to 8 bytes || a: 8 bytes || b: 4 || c: 4)

with big-endian integers. A digest is four 64-bit words; digests with c = 0, 1, ... give further ones. A
number below n is the first word that lies below the largest multiple of n, modulo n. So it has no modulo
bias.

* candidate class: stream "class", a = position of the example in its dataset, b = round. Uniform over the
  classes that earlier rounds have not asked of this example, in ascending order; so uniform over all K in
  each round.
* order: stream "order" (same a, b; first word) shuffles the examples of a class, stream "turn"
  (a = turn * K + class, b = round) the classes within a turn.
"""

import hashlib
import json
import secrets
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SEED_BYTES = 32
MAX_BLOCK = 30  # questions of one class in a row; longer runs make people answer by habit
MIN_BLOCK = 12  # the smallest page of the grid mode
TURNS = 8  # small campaigns get shorter blocks, so that each class comes at least this often
_LAST = 2**64 - 1  # the largest word
_COUNTER = struct.Struct(">QII")

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Draws:
    """The questions of a campaign in asking order; four arrays of shape (Q,)."""

    positions: Integers  # of the example in its dataset
    rounds: Integers
    classes: Integers  # candidate class
    ranks: Integers  # 0 .. Q - 1

    def __len__(self) -> int:
        return len(self.ranks)


def new_seed() -> str:
    """256 random bits in hex."""
    return secrets.token_hex(SEED_BYTES)


def probabilities(num_classes: int) -> list[float]:
    """With which each class is drawn: uniformly."""
    return [1 / num_classes] * num_classes


def commitment(
    seed: str,
    *,
    dataset_digest: str,
    examples: int,
    class_names: Sequence[str],
    rounds: int,
    first_position: int = 0,
) -> str:
    """What is published with a drawing and checked once the seed is known: SHA-256 over canonical JSON.

    `first_position`: of a further drawing's images in their dataset; the first drawing does not name it.
    """
    facts: dict[str, object] = {"first_position": first_position} if first_position else {}
    facts |= {
        "classes": list(class_names),
        "dataset_digest": dataset_digest,
        "examples": examples,
        "probabilities": probabilities(len(class_names)),
        "rounds": rounds,
        "seed": seed,
    }
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def random_words(seed: str, stream: str, counters: Iterable[int], second: int, third: int = 0) -> Words:
    """Digests of (counter, second, third), four words each: (N, 4).

    Raises:
        ValueError: the seed is not 256 bits in hex.
    """
    secret = bytes.fromhex(seed)
    if len(secret) != SEED_BYTES:
        raise ValueError(f"a seed has {SEED_BYTES} bytes, not {len(secret)}")
    start = hashlib.sha256(secret + stream.encode().ljust(8, b"\0"))
    digests = bytearray()
    for counter in counters:
        state = start.copy()
        state.update(_COUNTER.pack(counter, second, third))
        digests += state.digest()
    return np.frombuffer(digests, dtype=">u8").reshape(-1, 4).astype(np.uint64)


def numbers_below(n: int | Integers, given: Words) -> tuple[Integers, NDArray[np.bool_]]:
    """Numbers in 0 .. n - 1 from the first usable word of each row, and which rows had one.

    Args:
        n: how many values are equally likely, at least 1; or (N,) of each row.
        given: (N, W) random words.

    Returns:
        (N,) values, 0 where no word was usable, and (N,) whether one was.
    """
    bounds = np.broadcast_to(np.asarray(n, dtype=np.uint64), len(given))  # (N,)
    beyond = (np.uint64(_LAST) % bounds + np.uint64(1)) % bounds  # 2^64 modulo n
    usable = given <= (np.uint64(_LAST) - beyond)[:, None]  # (N, W): below the largest multiple of n
    first = usable.argmax(axis=1)  # (N,)
    chosen = given[np.arange(len(given)), first] % bounds
    found: NDArray[np.bool_] = np.any(usable, axis=1)  # (N,)
    return np.where(found, chosen, np.uint64(0)).astype(np.int64), found


def _uniform(seed: str, positions: Integers, round_: int, n: int) -> Integers:
    """(N,) numbers below n, one per position."""
    values = np.zeros(len(positions), dtype=np.int64)
    open_ = np.arange(len(positions))
    block = 0
    while len(open_):
        drawn, found = numbers_below(n, random_words(seed, "class", positions[open_].tolist(), round_, block))
        values[open_] = drawn
        open_ = open_[~found]
        block += 1
    return values


def draw_classes(seed: str, positions: Integers, *, num_classes: int, rounds: int = 1) -> Integers:
    """The candidate class of each example in each round, without replacement over the rounds.

    Args:
        seed: 256 bits in hex.
        positions: (N,) of the examples in their dataset.
        num_classes: K >= 2.
        rounds: R, 1 <= R <= K.

    Returns:
        (R, N) classes in 0 .. K - 1; each column holds distinct ones.
    """
    if not 1 <= rounds <= num_classes:
        raise ValueError(f"{rounds} rounds over {num_classes} classes cannot be drawn without replacement")
    classes = np.empty((rounds, len(positions)), dtype=np.int64)
    for round_ in range(rounds):
        drawn = _uniform(seed, positions, round_, num_classes - round_)  # (N,) among the classes left
        for asked in np.sort(classes[:round_], axis=0):  # ascending: each one asked before shifts the rest up
            drawn = drawn + (drawn >= asked)
        classes[round_] = drawn
    return classes


def block_size(examples: int, num_classes: int) -> int:
    """How many questions of one class come in a row."""
    return min(MAX_BLOCK, max(MIN_BLOCK, examples // (TURNS * num_classes)))


def draw(seed: str, positions: Integers, *, num_classes: int, rounds: int = 1) -> Draws:
    """Every question of a campaign, in asking order. Pure: the same arguments give the same questions.

    Rounds follow each other. Within one, the examples of a class are shuffled and cut into blocks; the
    classes take turns, one block each, in a fresh random order per turn. So a campaign that is stopped
    anywhere has asked about each class equally often, to about one block.
    """
    positions = np.asarray(positions, dtype=np.int64)
    classes = draw_classes(seed, positions, num_classes=num_classes, rounds=rounds)
    size = block_size(len(positions), num_classes)
    orders = [
        asking_order(seed, positions, classes[round_], round_=round_, num_classes=num_classes, size=size)
        for round_ in range(rounds)
    ]
    count = len(positions)
    return Draws(
        positions=np.concatenate([positions[order] for order in orders]),
        rounds=np.repeat(np.arange(rounds, dtype=np.int64), count),
        classes=np.concatenate([classes[round_][order] for round_, order in enumerate(orders)]),
        ranks=np.arange(rounds * count, dtype=np.int64),
    )


def asking_order(
    seed: str, positions: Integers, classes: Integers, *, round_: int, num_classes: int, size: int
) -> NDArray[np.intp]:
    """(N,) indices of the examples in the order in which they are asked about."""
    shuffle = random_words(seed, "order", positions.tolist(), round_)[:, 0]  # (N,)
    by_class = np.lexsort((positions, shuffle, classes))  # (N,) class after class, shuffled within
    starts = np.searchsorted(classes[by_class], np.arange(num_classes))  # (K,)
    nth = np.empty(len(classes), dtype=np.int64)  # (N,) place of an example among those of its class
    nth[by_class] = np.arange(len(classes)) - starts[classes[by_class]]
    turn = nth // size
    turns = int(turn.max(initial=-1)) + 1
    turn_keys = random_words(seed, "turn", range(turns * num_classes), round_)[:, 0].reshape(
        turns, num_classes
    )
    return np.lexsort((nth, classes, turn_keys[turn, classes], turn))
