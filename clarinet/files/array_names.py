"""Which arrays of an npz are images and labels of which split, and what its other arrays are called. Pure.

Every array is understood, or said to be left out, or refused where its name is nearly one that is understood:
labels that nobody reads would train and score as if there were none.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from clarinet.files.names import in_a_row
from clarinet.files.splits import SPLITS, THIRD, WORDS, counts_as, third_told

IMAGES, LABELS, CLASS_NAMES = "x", "y", "class_names"
# What people call them, without the signs that join words.
_CALLED = """
classnames classname classes classlist labelnames labelsnames labelname names targetnames categories
"""
_CLASS_NAMES = frozenset(_CALLED.split())
_KINDS = {
    IMAGES: ("x", "xs", "images", "image", "imgs", "img", "pictures", "pixels", "data", "features"),
    LABELS: ("y", "ys", "labels", "label", "targets", "target", "truth"),
}
_UNDERSTOOD = re.compile(r"[xy]_([a-z]+)")
_JOINTS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Part:
    """Images x_WORD and labels y_WORD, either of which may be missing, and the split that they count as."""

    word: str
    split: str


@dataclass(frozen=True, slots=True)
class NamedArrays:
    """What the names of an npz's arrays say.

    Args:
        parts: train before test, and what is called so before what joins it.
        near: an array that is called nearly like one that is understood and is not there, and by which name.
        remarks: sentences without their full stop.
    """

    parts: Sequence[Part]
    near: tuple[str, str] | None
    remarks: Sequence[str]


def arrays_by_name(names: Collection[str], others: Collection[str] = ()) -> NamedArrays:
    """Sort the arrays of an npz.

    Args:
        names: of its arrays.
        others: files in it that are no arrays.
    """
    words = {word for name in names if (word := _word(name))}
    meant = {WORDS[word] for word in words}
    parts = [Part(word, counts_as(WORDS[word], meant)) for word in words]
    parts.sort(key=lambda part: (SPLITS.index(part.split), part.word not in SPLITS, part.word))
    unread = [name for name in names if not _word(name) and name != CLASS_NAMES]
    near = [(name, better) for name in unread if (better := _near(name)) and better not in names]
    remarks = [third_told(f"{IMAGES}_{part.word}", part.split) for part in parts if WORDS[part.word] == THIRD]
    left = [f'"{name}"' for name in (*unread, *others)]
    if left:
        told = "is no array that is understood and was" if len(left) == 1 else "are no such arrays and were"
        remarks.append(f"{in_a_row(left)} {told} left out; expected x_train, y_train, x_test, y_test")
    return NamedArrays(parts, near[0] if near else None, remarks)


def _word(name: str) -> str | None:
    """The word for a split in the name of an array that is understood."""
    found = _UNDERSTOOD.fullmatch(name)
    return found[1] if found and found[1] in WORDS else None


def _near(name: str) -> str | None:
    """The name that is understood and that somebody meant, if so."""
    plain = _JOINTS.sub("", name.casefold())
    if plain in _CLASS_NAMES:
        return CLASS_NAMES
    for kind, called in _KINDS.items():
        for one in called:
            if plain == one:
                return f"{kind}_train"
            for rest in (plain.removeprefix(one), plain.removesuffix(one)):
                if rest != plain and rest in WORDS:
                    return f"{kind}_{rest}"
    return None
