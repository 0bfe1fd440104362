"""Labels from files: what the application hands out, or freezes for a run, beside the images it is about."""

import csv
import json
import math
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from clarinet.data.training_data import NO_LABEL, UNREADABLE, Labels
from clarinet.recipes.errors import ClassesNotCounted, DataError

KINDS = ("complementary", "true")  # in a snapshot their number says the kind

ESCAPED = ("=", "+", "-", "@", "\t", "\r", "\n")  # which the application's CSV has an apostrophe before


class Row(NamedTuple):
    """One label as a file has it; `chance` is the probability of the draw behind it."""

    position: int
    kind: str
    class_: int
    weight: float
    chance: float | None
    class_name: str | None
    num_classes: int | None = None
    num_images: int | None = None


def load_labels(path: Path | str, *, images: int, num_classes: int | None = None) -> Labels:
    """Read a label file of the application: CSV (.csv), JSON lines (.jsonl), or a frozen snapshot (.npz).

    A label's `position` is its image's place in the data set, which is its row in the npz of the images. Its
    `kind` is "true" or "complementary", its `class` counts the campaign's classes from 0, which need not be
    those of a folder, nor in their order. The columns `class_name`, `num_classes`, `num_images` and
    `probability` are optional.

    Args:
        path: the file; its ending says its format.
        images: how many source images there are.
        num_classes: K; None takes it from the file.

    Raises:
        DataError: another ending, a file that cannot be read or lacks something, no labels at all, a
            number that is none, an image or class that is not there, another number of images than the file
            tells, classes that are not always named alike.
        ClassesNotCounted: no `num_classes`, and none in the file.
    """
    path = Path(path)
    readers = {".csv": _csv_rows, ".jsonl": _json_rows, ".npz": _snapshot_rows}
    if path.suffix not in readers:
        raise DataError(f"{path} is no label file: its name must end in {', '.join(readers)}")
    try:
        rows = list(readers[path.suffix](path))
        listed = _listed_names(path) if path.suffix == ".npz" else None
    except DataError:
        raise
    except (*UNREADABLE, KeyError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as labels: {str(error) or type(error).__name__}") from error
    if not rows:
        raise DataError(f"{path} has no labels")
    _check_images(path, rows, images)
    count = _count(path, rows, listed, num_classes)
    for number, row in enumerate(rows, 1):
        if row.kind not in KINDS:
            raise DataError(
                f"label {number} of {path} is of the kind {row.kind!r}; expected {' or '.join(KINDS)}"
            )
        if not 0 <= row.position < images:
            raise DataError(f"label {number} of {path} is about image {row.position}, but there are {images}")
        if not 0 <= row.class_ < count:
            raise DataError(f"label {number} of {path} names class {row.class_}; there are {count} classes")
    return _tensors(rows, count, _names(path, rows, listed))


def _check_images(path: Path, rows: list[Row], images: int) -> None:
    told = {row.num_images for row in rows} - {None, images}
    if told:
        raise DataError(
            f"{path} belongs to {told.pop()} images, but here are {images}, and a label finds its image by "
            "the place; give the images as they were when they were imported, none added and none removed"
        )


def _count(path: Path, rows: list[Row], listed: list[str] | None, wanted: int | None) -> int:
    """K by the file, which must be the one wanted, or else the latter."""
    counts = (row.num_classes for row in rows) if listed is None else [len(listed)]
    told = {count for count in counts if count is not None}
    if wanted is not None and told <= {wanted}:
        return wanted
    if not told:
        raise ClassesNotCounted(f"{path} does not say how many classes there are; give num_classes")
    if wanted is None and len(told) == 1:
        return told.pop()
    found = ", ".join(map(str, sorted(told)))
    raise DataError(f"{path} is about {found} classes, but there should be {wanted or 'one number of them'}")


def _names(path: Path, rows: list[Row], listed: list[str] | None) -> dict[int, str]:
    """The names that the file gives to classes, each to one."""
    if listed is None:
        found = {(row.class_, row.class_name) for row in rows if row.class_name is not None}
    else:
        found = set(enumerate(listed))
    names = dict(sorted(found))
    if not len(found) == len(names) == len(set(names.values())):
        raise DataError(f"{path} has two names for one class, or one name for two")
    return names


def _tensors(rows: list[Row], num_classes: int, named: dict[int, str]) -> Labels:
    is_true = torch.tensor([row.kind == "true" for row in rows])
    classes = torch.tensor([row.class_ for row in rows])  # (L,)
    known = [row.chance for row in rows if row.chance is not None]
    return Labels(
        example=torch.tensor([row.position for row in rows]),
        complementary=classes.masked_fill(is_true, NO_LABEL),
        true=classes.masked_fill(~is_true, NO_LABEL),
        weights=torch.tensor([row.weight for row in rows], dtype=torch.float32),
        probabilities=torch.tensor(known, dtype=torch.float32) if len(known) == len(rows) else None,
        num_classes=num_classes,
        named=named,
    )


def _csv_rows(path: Path) -> Iterator[Row]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file, restval="", strict=True)
        _require(path, reader.fieldnames or (), ("position", "kind", "class", "weight"))
        for row in reader:
            place = f"line {reader.line_num} of {path}"
            chance, count, images = (row.get(name) for name in ("probability", "num_classes", "num_images"))
            yield Row(
                _whole(row["position"], f"{place}: position"),
                row["kind"],
                _whole(row["class"], f"{place}: class"),
                _amount(row["weight"], f"{place}: weight"),
                _amount(chance, f"{place}: probability") if chance else None,
                _unescaped(row.get("class_name")) or None,
                _whole(count, f"{place}: num_classes") if count else None,
                _whole(images, f"{place}: num_images") if images else None,
            )


def _unescaped(name: str | None) -> str | None:
    """A name without the apostrophe that keeps spreadsheets from taking it for a formula."""
    return name[1:] if name and name.startswith("'") and name[1:].startswith(ESCAPED) else name


def _json_rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            place = f"line {number} of {path}"
            entry = json.loads(line)
            if not isinstance(entry, dict):
                raise DataError(f"{path} has a line that is no JSON object: {line.strip()[:80]}")
            _require(path, entry, ("position", "kind", "classes", "weight"))
            chance, count, images = (entry.get(name) for name in ("probability", "num_classes", "num_images"))
            if not isinstance(entry["classes"], list):
                raise DataError(f"{path} has a line whose classes are no list: {line.strip()[:80]}")
            for class_, name in zip_longest(entry["classes"], entry.get("class_names") or ()):
                yield Row(
                    _whole(entry["position"], f"{place}: position"),
                    str(entry["kind"]),
                    _whole(class_, f"{place}: class"),
                    _amount(entry["weight"], f"{place}: weight"),
                    None if chance is None else _amount(chance, f"{place}: probability"),
                    None if name is None else str(name),
                    None if count is None else _whole(count, f"{place}: num_classes"),
                    None if images is None else _whole(images, f"{place}: num_images"),
                )


def _snapshot_rows(path: Path) -> Iterator[Row]:
    names = ("positions", "kinds", "classes", "weights")
    arrays = _arrays(path, (*names, "probabilities", "num_images"))
    _require(path, arrays, names)
    columns = [arrays[name] for name in names]
    chances, images = arrays.get("probabilities"), arrays.get("num_images")
    told = None if images is None else _whole(images.tolist(), f"num_images of {path}")
    lengths = {column.shape for column in columns}
    if len(lengths) > 1 or len(next(iter(lengths))) != 1:
        raise DataError(f"{path} has arrays of the shapes {sorted(lengths)}; expected one length for all")
    listed: list[list[Any]] = [column.tolist() for column in columns]
    listed.append([None] * len(columns[0]) if chances is None else chances.tolist())
    for number, (position, kind, class_, weight, chance) in enumerate(zip(*listed, strict=True), 1):
        place = f"label {number} of {path}"
        known = KINDS[kind] if kind in range(len(KINDS)) else str(kind)
        yield Row(
            _whole(position, f"{place}: position"),
            known,
            _whole(class_, f"{place}: class"),
            _amount(weight, f"{place}: weight"),
            None if chance is None else _amount(chance, f"{place}: probability"),
            None,
            num_images=told,
        )


def _listed_names(path: Path) -> list[str] | None:
    """The class names of an npz, which has them once; a run's snapshot has none."""
    listed = _arrays(path, ("class_names",)).get("class_names")
    return None if listed is None else [str(name) for name in listed.tolist()]


def _arrays(path: Path, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Those arrays that an npz has. Not by numpy.load, which advises to unpickle what is no npz."""
    found = {}
    with zipfile.ZipFile(path) as archive:
        for name in {f"{name}.npy" for name in names} & set(archive.namelist()):
            with archive.open(name) as member:
                found[name.removesuffix(".npy")] = np.lib.format.read_array(member, allow_pickle=False)
    return found


def _require(path: Path, found: Iterable[str], wanted: tuple[str, ...]) -> None:
    missing = [name for name in wanted if name not in set(found)]
    if missing:
        raise DataError(f"{path} lacks {missing[0]}; a label file has {', '.join(wanted)}")


def _whole(value: Any, what: str) -> int:
    """An integer from text or a number; 1.5 is none, and neither is true. `what` says whose it is."""
    number = value
    if isinstance(value, str):
        with suppress(ValueError):
            number = int(value)
    if isinstance(number, bool) or not isinstance(number, int):
        raise DataError(f"{what} is {value!r:.80}; expected a whole number")
    return number


def _amount(value: Any, what: str) -> float:
    """A weight or probability from text or a number; `what` says which."""
    with suppress(TypeError, ValueError, OverflowError):
        number = float(value)
        if 0 <= number < math.inf:
            return number
    raise DataError(f"{what} is {value!r:.80}; expected a number of at least 0")
