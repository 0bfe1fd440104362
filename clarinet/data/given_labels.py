"""Labels as a caller gives them, numbers or names, as the table that the library takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from clarinet.files.label_table import COMPLEMENTARY, TRUE, Labels
from clarinet.files.names import NO_LABEL, classes_in_order, numbers_among, require_distinct_classes
from clarinet.recipes.errors import DataError

Column = NDArray[np.generic] | Tensor | Sequence[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """Labels one by one.

    Args:
        images: (L,) int64, the image of each.
        values: (L,) of int64, or of str.
    """

    images: NDArray[np.int64]
    values: NDArray[Any]

    @property
    def are_names(self) -> bool:
        """Whether they are words."""
        return self.values.dtype.kind == "U"


def told_by(column: Column, name: str, *, images: int, widest: int = 1) -> Told:
    """The labels in a column, without those that are none: -1, None, "" and what is no number.

    Args:
        column: (N,), or (N, M) where an image may have several.
        name: what errors call it.
        images: N.
        widest: dimensions that it may have.

    Raises:
        DataError: another shape, or labels that are neither whole numbers from 0 on nor names.
    """
    array = _array_of(column)
    if not 1 <= array.ndim <= widest or len(array) != images:
        wanted = f"({images},)" + (f" or ({images}, M)" if widest > 1 else "")
        raise DataError(f"{name} has shape {array.shape} for {images} images; expected {wanted}")
    places = np.arange(array.size) // max(array.size // max(images, 1), 1)
    values = array.reshape(-1)
    if values.dtype.kind in "iu":
        return _numbers(places, values.astype(np.int64), name)
    if values.dtype.kind == "f":
        return _numbers(places, np.where(np.isnan(values), NO_LABEL, values), name)
    kept = np.array([not _is_none(value) for value in values], bool)
    rest = values[kept].tolist()
    if all(isinstance(value, str) for value in rest):
        return Told(places[kept], np.array(rest, str))
    if all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in rest):
        return _numbers(places[kept], np.array(rest), name)
    odd = next(value for value in rest if not isinstance(value, str))
    raise DataError(f"{name} has {odd!r}; labels are whole numbers or names, all of one kind")


def _array_of(column: Column) -> NDArray[Any]:
    if isinstance(column, Tensor):
        return column.detach().cpu().numpy()
    # NumPy would make words of all entries of a list where one is a word.
    return np.array(column, object) if isinstance(column, list | tuple) else np.asarray(column)


def _is_none(value: object) -> bool:
    if isinstance(value, str):
        return not value
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ == "NAType"  # pandas has a none of its own


def _numbers(places: NDArray[np.int64], values: NDArray[Any], name: str) -> Told:
    whole = values.astype(np.int64)
    wrong = (whole != values) | (whole < NO_LABEL)
    if wrong.any():
        raise DataError(
            f"{name} has {values[wrong][0]}; labels are whole numbers from 0 on, and -1 where there is none"
        )
    return Told(places[whole != NO_LABEL], whole[whole != NO_LABEL])


def classes_among(told: Sequence[Told], classes: Sequence[Any] | None) -> NDArray[Any]:
    """(K,) the classes in the order that counts them, int64 or str.

    Args:
        told: labels; of one kind.
        classes: as the caller lists them; None takes those that labels name: numbers by value, words by the
            alphabet.

    Raises:
        DataError: two kinds, two that are one, or numbers with gaps and nobody to say which are missing.
    """
    if classes is not None:
        listed = np.asarray(list(classes))
        if listed.dtype.kind not in "iuU" or len(np.unique(listed)) < len(listed):
            raise DataError(f"classes are {list(classes)}; expected distinct whole numbers or distinct names")
        if listed.dtype.kind == "U":
            require_distinct_classes("classes", listed.tolist())
            return listed
        if listed.size and listed.min() < 0:
            raise DataError(f"classes are {list(classes)}; numbers count from 0 on, and -1 is no class")
        return listed.astype(np.int64)
    named = [each for each in told if len(each.values)]
    if len({each.are_names for each in named}) > 1:
        raise DataError("some labels are names and others are numbers; give all of one kind")
    if not named:
        return np.empty(0, np.int64)
    found = np.unique(np.concatenate([each.values for each in named]))
    if named[0].are_names:
        return np.array(classes_in_order(set(found.tolist())))
    missing = np.setdiff1d(np.arange(found[0], found[-1]), found)
    if len(missing):
        raise DataError(
            f"no label names class {missing[0]}, but some name {found[0]} and {found[-1]}; say which classes "
            f"there are: classes=range({found[-1] + 1})"
        )
    return found


def numbers_of(told: Told, classes: NDArray[Any], name: str) -> NDArray[np.int64]:
    """(L,) the place of each label among the classes; names that people take for one are one.

    Raises:
        DataError: a label that is none of them, by what it is.
    """
    distinct, each = np.unique(told.values, return_inverse=True)
    if told.are_names and classes.dtype.kind == "U":
        numbers = numbers_among(classes.tolist(), distinct.tolist())
    else:
        places = {value: number for number, value in enumerate(classes.tolist())}
        numbers = [places.get(value, NO_LABEL) for value in distinct.tolist()]
    if NO_LABEL in numbers:
        odd = distinct[numbers.index(NO_LABEL)]
        raise DataError(f"{name} has {odd.item()!r}, but the classes are {', '.join(map(str, classes))}")
    return np.array(numbers, np.int64)[each]


def table_of(
    complementary: Column | None,
    true: Column | None,
    *,
    images: int,
    classes: Sequence[Any] | None = None,
    weights: Column | None = None,
) -> tuple[Labels, NDArray[Any]]:
    """The table of what is known of images, and the classes that it counts.

    Args:
        complementary: (N,) or (N, M) classes that each image is not; see `told_by`. None for none.
        true: (N,) the class that it is, of some.
        images: N.
        classes: see `classes_among`.
        weights: (N,) trust in the labels of each image; None trusts all alike.

    Returns:
        The table, and (K,) classes of int64 or str.

    Raises:
        DataError: labels that contradict the above, or an image with labels of both kinds.
    """
    no = told_by(
        [NO_LABEL] * images if complementary is None else complementary, "y", images=images, widest=2
    )
    yes = told_by([NO_LABEL] * images if true is None else true, "true", images=images)
    both = np.intersect1d(no.images, yes.images)
    if len(both):
        raise DataError(f"image {both[0]} has a label in y and one in true; keep the true one alone")
    found = classes_among([no, yes], classes)
    if len(found) < 2:  # noqa: PLR2004 - with one class there is nothing to tell apart
        raise DataError(f"the labels name {len(found)} classes; at least 2 are needed")
    positions = np.concatenate([no.images, yes.images])
    order = np.argsort(positions, kind="stable")
    kinds = np.repeat([COMPLEMENTARY, TRUE], [len(no.images), len(yes.images)])
    numbers = np.concatenate([numbers_of(no, found, "y"), numbers_of(yes, found, "true")])
    trust = np.ones(images, np.float32) if weights is None else _weights(weights, images)
    table = Labels(
        kinds=kinds[order].astype(np.uint8),
        classes=numbers[order],
        weights=trust[positions[order]],
        positions=positions[order],
        num_classes=len(found),
        named=dict(enumerate(map(str, found.tolist()))),
    )
    return table, found


def _weights(column: Column, images: int) -> NDArray[np.float32]:
    found = np.asarray(column.cpu() if isinstance(column, Tensor) else column, np.float32)
    if found.shape != (images,):
        raise DataError(f"sample_weight has shape {found.shape}; expected ({images},)")
    return found


def table_for(
    y: Column | Labels | None,
    true: Column | None,
    *,
    images: int,
    classes: Sequence[Any] | None,
    weights: Column | None,
) -> tuple[Labels, NDArray[Any]]:
    """The table of what is known of images, and the classes that it counts.

    Args:
        y: complementary labels as `table_of` takes them, or the table itself.
        true, images, classes, weights: as in `table_of`.

    Raises:
        DataError: as `table_of` does; or there are none, or a table has something beside it.
    """
    if isinstance(y, Labels):
        if true is not None or classes is not None or weights is not None:
            raise DataError("y is a table of labels, which has its own classes, weights and true labels")
        names = y.class_names
        return y, np.arange(y.num_classes) if names is None else np.array(names)
    if y is None and true is None:
        raise DataError(
            "there are no labels: give y, a class that each image is not. The classes of folders, or of "
            "a data set's items, are true ones as a rule, and are not taken for it"
        )
    return table_of(y, true, images=images, classes=classes, weights=weights)


def numbers_for(labels: Column, classes: NDArray[Any], *, images: int) -> NDArray[np.int64]:
    """(N,) the place of each image's label among the classes; raises DataError, also where one lacks."""
    told = told_by(labels, "y", images=images)
    if len(told.values) < images:
        raise DataError(f"y has labels of {len(told.values)} of {images} images; leave the others out")
    return numbers_of(told, classes, "y")
