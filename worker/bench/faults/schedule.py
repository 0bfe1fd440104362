"""What is done to which host, when and for how long: drawn from a seed before anything starts."""

import random
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

TEN_MINUTES = 600.0
LONG_S = 20.0  # between what a lease of 30 s outlives for certain and what it does not


class Kind(StrEnum):
    """What can happen to a host."""

    KILL = "kill"  # -9 of a part of it, which starts again
    POWER = "power"  # all of it ends and nobody is told; it comes back after a while
    CUT = "cut"  # no packet comes through for a while
    PAUSE = "pause"  # SIGSTOP of everything for a while
    SKEW = "skew"  # its clock is ten minutes off for a while


NEEDS_NETWORK = (Kind.CUT, Kind.POWER)


class Chance(NamedTuple):
    """How often a kind of fault is drawn, and its bounds in seconds."""

    weight: int
    on: str
    kind: Kind
    least_s: float = 0.0
    most_s: float = 0.0
    part: str = "main"


class Fault(NamedTuple):
    """One fault. `which` chooses a host among those of its role, in [0, 1)."""

    on: str
    kind: Kind
    part: str
    for_s: float
    ahead_s: float
    wait_s: float  # before it
    which: float

    @property
    def costs_attempt(self) -> bool:
        """Whether the trial that is hit is claimed again: its holder is gone, or silent for a lease."""
        ends = self.kind in (Kind.KILL, Kind.POWER)
        lasts = self.kind in (Kind.CUT, Kind.PAUSE) and self.for_s > LONG_S
        return self.on == "gpu" and (ends or lasts)


# Which faults annotators feel.
ANSWERS = (
    Chance(28, "web", Kind.KILL),
    Chance(14, "web", Kind.POWER, 1, 5),
    Chance(20, "web", Kind.CUT, 1, 12),
    Chance(12, "web", Kind.PAUSE, 1, 8),
    Chance(10, "web", Kind.SKEW, 5, 20),
    Chance(8, "database", Kind.KILL, part="all"),
    Chance(4, "database", Kind.PAUSE, 1, 4),
    Chance(4, "broker", Kind.KILL),
)
# Which faults trainings feel. A lease lasts 30 s: some cuts and pauses outlive it, most do not.
TRIALS = (
    Chance(20, "gpu", Kind.KILL, part="trainer"),
    Chance(14, "gpu", Kind.KILL, part="supervisor"),
    Chance(14, "gpu", Kind.KILL),
    Chance(9, "gpu", Kind.POWER, 1, 4),
    Chance(12, "gpu", Kind.CUT, 1, 8),
    Chance(2, "gpu", Kind.CUT, 32, 40),
    Chance(9, "gpu", Kind.PAUSE, 1, 6),
    Chance(2, "gpu", Kind.PAUSE, 32, 40),
    Chance(8, "gpu", Kind.SKEW, 2, 8),
    Chance(2, "io", Kind.KILL),
    Chance(2, "upkeep", Kind.KILL),
    Chance(2, "upkeep", Kind.CUT, 2, 8),
    Chance(2, "store", Kind.PAUSE, 1, 5),
    Chance(2, "broker", Kind.KILL),
)


def drawn(
    chances: Sequence[Chance], count: int, *, seed: int, most_wait_s: float, can_cut: bool
) -> list[Fault]:
    """So many faults, the same ones for the same seed; those that need a network only where there is one."""
    chance = random.Random(seed)
    possible = [one for one in chances if can_cut or one.kind not in NEEDS_NETWORK]
    picked = chance.choices(possible, [one.weight for one in possible], k=count)
    return [
        Fault(
            on=one.on,
            kind=one.kind,
            part=one.part,
            for_s=chance.uniform(one.least_s, one.most_s),
            ahead_s=chance.choice((-TEN_MINUTES, TEN_MINUTES)) if one.kind is Kind.SKEW else 0.0,
            wait_s=chance.uniform(0, most_wait_s),
            which=chance.random(),
        )
        for one in picked
    ]
