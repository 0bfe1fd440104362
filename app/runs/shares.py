"""Which classes a model takes the target's pictures for, where that is odd. Pure; needs no label."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.runs.words import counted

FACTS = "predicted_counts"  # of a result and a card: the target's training images by predicted class
# How far from equal shares (0) to one class alone (1) a collapse begins: 85 % of the pictures in one of two
# classes, 73 % in one of ten. Beyond it all classes but one share what little is left.
COLLAPSED = 0.7
FEWEST = 20  # pictures before so large a share of them says anything
SCARCE = 0.25  # of an equal share, as the library's MERGED_SHARE
NAMED = 4  # classes that a sentence names


def predicted_counts(facts: Mapping[str, Any]) -> list[int] | None:
    """Pictures of the target by the class that they are taken for; None where nothing tells it.

    Args:
        facts: of a trial's result or a model's card. One of an earlier version knows those that score it.
    """
    if facts.get(FACTS) is not None:
        return list(facts[FACTS])
    confusion = facts.get("confusion")
    return [sum(column) for column in zip(*confusion, strict=True)] if confusion else None


def has_collapsed(facts: Mapping[str, Any]) -> bool:
    """Whether nearly every picture is taken for the same class."""
    counts = predicted_counts(facts)
    return counts is not None and _is_collapsed(counts)


def odd_shares(facts: Mapping[str, Any], classes: Sequence[str], target: str) -> str:
    """What is odd about them, in words that continue "Seed 0" or "It"; "" where nothing is.

    Args:
        facts: of a trial's result or a model's card.
        classes: names in the campaign's order.
        target: what the dataset is called.
    """
    counts = predicted_counts(facts)
    if counts is not None and _is_collapsed(counts):
        return _collapse(counts, classes, target)
    merged = facts.get("merged_class")
    if merged is None:
        return ""
    scarce = [merged]
    if facts.get(FACTS) is not None and counts is not None:
        least = SCARCE * sum(counts) / len(counts)
        scarce = [place for place, count in enumerate(counts) if count < least] or scarce
    names = _names([classes[place] for place in scarce], "and")
    one = "It" if len(scarce) == 1 else "Each"
    it = "it" if len(scarce) == 1 else "them"
    return (
        f"takes hardly any picture of {target} for {names}. {one} may have merged with another class, or be "
        f"rare there. Another seed, or more answers about {it}, may help."
    )


def _is_collapsed(counts: Sequence[int]) -> bool:
    total, equal = sum(counts), 1 / len(counts)
    return total >= FEWEST and max(counts) / total >= equal + COLLAPSED * (1 - equal)


def _collapse(counts: Sequence[int], classes: Sequence[str], target: str) -> str:
    total, first = sum(counts), max(range(len(counts)), key=counts.__getitem__)
    others = sorted(
        (place for place in range(len(counts)) if counts[place] and place != first),
        key=lambda place: -counts[place],
    )
    told = [f"{counted(counts[first])} of {counted(total)} pictures of {target} for “{classes[first]}”"]
    told += [f"{counted(counts[place])} for “{classes[place]}”" for place in others[:NAMED]]
    if len(others) > NAMED:
        told.append(f"{counted(sum(counts[place] for place in others[NAMED:]))} for other classes")
    none = [classes[place] for place in range(len(counts)) if not counts[place]]
    if none:
        told.append(f"none for {_names(none, 'or')}")
    shares = _row(told, "and")
    return (
        f"takes {shares}. Unless nearly all of them do show “{classes[first]}”, the model has "
        "collapsed: what it says of a picture tells nothing about it."
    )


def _names(names: Sequence[str], word: str) -> str:
    quoted = [f"“{name}”" for name in names[:NAMED]]
    rest = len(names) - NAMED
    if rest > 0:
        quoted.append(f"{counted(rest)} other {'class' if rest == 1 else 'classes'}")
    return _row(quoted, word)


def _row(parts: Sequence[str], word: str) -> str:
    """Parts of a sentence: "a, b and c"."""
    return f" {word} ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)
