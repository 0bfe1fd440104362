"""What the answers to one question add up to. Pure.

A no stands alone: it is wrong far less often than a yes. With K classes and a share e of images seen wrongly,
a no is wrong with about e / (K - 1), a yes with about e. With `confirm_yes` a yes needs a second person and
no objection, or two more yes than no. A yes that one of three people denied is wrong five times as often as
one that two people gave at once. Between two classes both are wrong with e, and the majority says which
(`app/campaigns/confirming.py`). "Can't tell" says nothing about the class and never enters.
"""

from dataclasses import dataclass

from clarinet.files.label_table import LabelKind

MAX_SLOTS = 4  # yes/no answers that a question can need; where they still disagree, an admin decides
UNSURE_LIMIT = 3  # people who could not tell; then nobody is asked any more


@dataclass(frozen=True, slots=True)
class Verdict:
    """A label, how many yes/no answers it rests on, and its weight in training."""

    kind: LabelKind | None  # None: not enough answers yet, or no agreement
    answers: int
    weight: float


def answers_needed(yes: int, no: int, *, confirm_yes: bool, least: int = 1, lead: int = 0) -> int:
    """How many yes/no answers settle a question that has these: `least` .. MAX_SLOTS.

    Args:
        yes: answers so far.
        no: likewise.
        confirm_yes: whether a yes needs a second person.
        least: answers it needs whatever they say.
        lead: by how many one of yes and no must lead, of two answers at least; 0: one answer may settle it.
    """
    answers = yes + no
    if answers < least:
        return least
    is_settled = verdict(yes, no, confirm_yes=confirm_yes).kind is not None
    if lead and (answers == 1 or abs(yes - no) < lead):
        is_settled = False
    return answers if is_settled else min(answers + 1, MAX_SLOTS)


def verdict(yes: int, no: int, *, confirm_yes: bool) -> Verdict:
    """The label that follows from the answers to one question, if all people are trusted alike."""
    lead = yes - no
    if lead >= (2 if confirm_yes else 1):
        kind = LabelKind.TRUE
    elif lead < 0:
        kind = LabelKind.COMPLEMENTARY
    else:
        kind = None
    return Verdict(kind, yes + no, 1.0 if kind else 0.0)


def weighed(
    found: Verdict, probability_yes: float, *, num_classes: int, prior: float | None = None
) -> Verdict:
    """The same label weighing what it tells: 1 where it is surely right, 0 where it says what chance says.

    Who knows with probability p that an image is of class k, and nothing of the others, knows the same as who
    is sure of it with the weight w and has no idea with 1 - w, where p = w + (1 - w) / K. Likewise who knows
    that it is not class k: 1 - p = w + (1 - w) (1 - 1 / K). So w = (right - chance) / (1 - chance), and no
    bound has to say from where on a label is one. Below 0 the answers tell the contrary: there is no label.

    Args:
        found: what follows if all people are trusted alike.
        probability_yes: that yes is right, given who answered what.
        num_classes: K.
        prior: how probable yes is before any answer; None: 1 / K, of a class that was drawn uniformly.
    """
    if found.kind is None:
        return Verdict(None, found.answers, 0.0)
    right = probability_yes if found.kind is LabelKind.TRUE else 1 - probability_yes
    chance = _chance(found.kind, 1 / num_classes if prior is None else prior)
    weight = (right - chance) / (1 - chance)
    return Verdict(found.kind, found.answers, weight) if weight > 0 else Verdict(None, found.answers, 0.0)


def wrong(given: Verdict, *, num_classes: int, prior: float | None = None) -> float:
    """How probably a label is wrong, by its weight; 1 where there is none. `prior`: as in `weighed`."""
    if given.kind is None:
        return 1.0
    return (1 - given.weight) * (1 - _chance(given.kind, 1 / num_classes if prior is None else prior))


def _chance(kind: LabelKind, prior: float) -> float:
    """How often such a label is right where nobody looked."""
    return prior if kind is LabelKind.TRUE else 1 - prior
