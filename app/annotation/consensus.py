"""What the answers to one question add up to. Pure.

A no stands alone: it is wrong far less often than a yes (in K classes with a share e of images seen wrongly,
a no is wrong with about e / (K - 1), a yes with about e). With `confirm_yes` a yes needs a second person;
where the two disagree, a third decides. "Can't tell" says nothing about the class and never enters.
"""

import enum
from dataclasses import dataclass

MAX_SLOTS = 3  # yes/no answers that a question can need: the first, its confirmation, the deciding one
UNSURE_LIMIT = 3  # people who could not tell; then nobody is asked any more


class LabelKind(enum.StrEnum):
    """What is known of an example after its answers."""

    TRUE = "true"
    COMPLEMENTARY = "complementary"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A label, how many yes/no answers it rests on, and its weight in training."""

    kind: LabelKind | None  # None: not enough answers yet, or no agreement
    answers: int
    weight: float


def answers_needed(yes: int, no: int, *, confirm_yes: bool) -> int:
    """How many yes/no answers settle a question that has these: 1 .. MAX_SLOTS."""
    if not confirm_yes or yes == 0:
        return 1
    return 2 if no == 0 else MAX_SLOTS


def verdict(yes: int, no: int, *, confirm_yes: bool) -> Verdict:
    """The label that follows from the answers to one question.

    Every label weighs 1: with no estimate of each person's error rate there is no ground to trust one label
    more than another, and the labels' noise is left to the training.
    """
    answers = yes + no
    if yes > no:
        kind = LabelKind.TRUE if yes > 1 or not confirm_yes else None
    elif no > yes:
        kind = LabelKind.COMPLEMENTARY
    else:
        kind = None
    return Verdict(kind, answers, 1.0 if kind else 0.0)
