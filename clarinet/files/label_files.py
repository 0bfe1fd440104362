"""Labels from files: what the application hands out, or freezes for a run, beside the images it is about."""

import csv
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from clarinet.files.agreeing import first_contradiction, said_of
from clarinet.files.arrays import SUFFIX, read_array, read_header
from clarinet.files.columns import FILENAMES, OF_POSITIONS
from clarinet.files.folders import PathFinder
from clarinet.files.json_text import json_of
from clarinet.files.label_columns import (
    Keys,
    label_table,
    only_one,
    records_of,
    tell_unread,
    unread_in,
)
from clarinet.files.label_table import KINDS, LabelRow, Labels
from clarinet.files.named_labels import by_filename, lacks_positions
from clarinet.files.names import NO_LABEL, require_counted_from_0, sameness
from clarinet.files.tables import unguarded
from clarinet.files.zips import Members, open_zip
from clarinet.recipes.counting import is_or_are, many, there_are
from clarinet.recipes.errors import ClassesNotCounted, ColumnsLeftOut, DataError

ARRAYS_HANDED_OUT = ("example_ids", "filenames", "answers", "imported")  # of the application, needless here
NEEDED = ("position", "kind", "weight")  # of each row


@dataclass(slots=True)
class _Told:
    """What the rows of a file say of the file as a whole."""

    finder: PathFinder
    places: Mapping[str, int]  # of the images, by what their files are called; empty where nobody knows
    ignored: tuple[str, ...] = ()  # columns, or keys, that are left out
    names: set[tuple[int, str]] = field(default_factory=set)  # class and its name
    num_classes: set[int] = field(default_factory=set)
    num_images: set[int] = field(default_factory=set)
    elsewhere: list[str] = field(
        default_factory=list
    )  # labels whose file lies at another place than they say
    unsaid: set[float] = field(default_factory=set)  # probabilities of labels without a word on `excluded`


def load_labels(
    path: Path | str,
    *,
    images: int,
    num_classes: int | None = None,
    filenames: Sequence[str] = (),
    class_names: Sequence[str] = (),
    first_class: int | None = None,
    ignore_columns: Sequence[str] = (),
) -> Labels:
    """Read a label file: CSV (.csv), TSV (.tsv), JSON lines (.jsonl), or a frozen snapshot (.npz).

    A label's `position` is its image's place in the data set, which is its row in the npz of the images. Its
    `kind` is "true" or "complementary", its `class` counts the campaign's classes from 0, which need not be
    those of a folder, nor in their order. The columns `class_name`, `num_classes`, `num_images`,
    `probability` and `excluded` are optional. The last has the classes that earlier answers about the image
    had ruled out when the label's question was drawn, with spaces between; an image with a yes may then have
    the noes before it.

    Args:
        path: the file; its ending says its format.
        images: how many source images there are.
        num_classes: K; None takes it from the file.
        filenames: what the file of each image is called. Where they are given, a table may have the columns
            `filename` and `label` (or `class`, or `class_name`) in place of positions and numbers. Without a
            column `kind` its labels are true ones, without `weight` they weigh 1.
        class_names: those that such labels are about, in their order; else those of the table, in the
            alphabet's.
        first_class: from which number the file counts classes, 0 or 1. None: from 0; what runs from 1 to K
            is refused.
        ignore_columns: columns of a table, or keys of JSON lines, that are left out, whatever they say.

    Raises:
        DataError: another ending; a file that cannot be read, lacks something or has no labels. Or a number
            that is none, an image or class that is not there, another number of images than the file tells,
            classes that are not always named alike.
        ClassesNotCounted: no `num_classes`, and none in the file.
    """
    path = Path(path)
    readers = {".csv": _table_rows, ".tsv": _table_rows, ".jsonl": _json_rows, ".npz": _snapshot_rows}
    if path.suffix not in readers:
        raise DataError(f"{path} is no label file: its name must end in {', '.join(readers)}")
    told = _Told(
        finder=PathFinder(filenames),
        places={name: at for at, name in enumerate(filenames)},
        ignored=tuple(ignore_columns),
    )
    try:
        if filenames and path.suffix in {".csv", ".tsv"} and lacks_positions(path, told.ignored):
            rows, names = by_filename(
                path, filenames, class_names, first_class=first_class, ignored=told.ignored
            )
            return Labels.of(rows, num_classes=len(names), named=dict(enumerate(names)))
        rows = list(readers[path.suffix](path, told))
    except DataError:
        raise
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as labels: {str(error) or type(error).__name__}") from error
    if not rows:
        raise DataError(f"{path} has no labels")
    if len(told.unsaid) > 1:
        warnings.warn(
            f"{path}: its labels have unequal probabilities, and nothing says which classes were excluded "
            "when their questions were drawn. If a model's belief drew them, as older versions handed out, "
            "they mislead a training: download the file anew. Where nothing was excluded, add an empty "
            "column `excluded`",
            ColumnsLeftOut,
            stacklevel=2,
        )
    if told.elsewhere:
        labels = many(len(told.elsewhere), "label")
        warnings.warn(
            f"{path}: the files of {labels} lie at other places than their positions say, as in "
            f"{told.elsewhere[0]}; the file names count",
            ColumnsLeftOut,
            stacklevel=2,
        )
    _check_images(path, told.num_images, images)
    count = _count(path, told.num_classes, num_classes)
    rows = _counted(path, rows, told, count, first_class)
    for number, row in enumerate(rows, 1):
        if row.kind not in KINDS:
            raise DataError(
                f"label {number} of {path} is of the kind {row.kind!r}; expected {' or '.join(KINDS)}"
            )
        if not 0 <= row.position < images:
            raise DataError(
                f"label {number} of {path} is about image {row.position}, but {there_are(images, 'image')}"
            )
        if not 0 <= row.class_ < count:
            raise DataError(
                f"label {number} of {path} names class {row.class_}; {there_are(count, 'class', 'classes')}"
            )
        if not all(0 <= class_ < count for class_ in row.excluded):
            raise DataError(
                f"label {number} of {path} excludes {', '.join(map(str, row.excluded))}; "
                f"{there_are(count, 'class', 'classes')}"
            )
    names = _names(path, told.names)
    _require_agreement(path, rows, [names.get(number, str(number)) for number in range(count)])
    return Labels.of(rows, num_classes=count, named=names)


def _require_agreement(path: Path, rows: Sequence[LabelRow], class_names: Sequence[str]) -> None:
    """Raises DataError where two labels of an image cannot both be true."""
    if (pair := first_contradiction(rows)) is not None:
        before, label = (rows[place] for place in pair)
        told = f"image {label.position} is {said_of(label, class_names)}"
        raise DataError(
            f"label {pair[1] + 1} of {path} says that {told}, but label {pair[0] + 1} says that it is "
            f"{said_of(before, class_names)}; keep the one that is right"
        )


def _counted(path: Path, rows: list[LabelRow], told: _Told, count: int, first: int | None) -> list[LabelRow]:
    """Rows whose classes count from 0; raises DataError where they seem to count from 1."""
    if first is None:
        names = dict(told.names)
        listed = [names.get(number, str(number)) for number in range(count)]
        try:
            require_counted_from_0((str(row.class_) for row in rows if row.class_ >= 0), listed)
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
    if not first:
        return rows
    told.names = {(number - first, name) for number, name in told.names}
    return [
        row._replace(class_=row.class_ - first, excluded=tuple(one - first for one in row.excluded))
        for row in rows
    ]


def _check_images(path: Path, told: set[int], images: int) -> None:
    if others := told - {images}:
        raise DataError(
            f"{path} belongs to {many(others.pop(), 'image')}, but here {is_or_are(images)} {images:,}, and "
            "a label finds its image by the place; give the images as they were when they were imported, "
            "none added and none removed"
        )


def _count(path: Path, told: set[int], wanted: int | None) -> int:
    """K by the file, which must be the one wanted, or else the latter."""
    if wanted is not None and told <= {wanted}:
        return wanted
    if not told:
        raise ClassesNotCounted(f"{path} does not say how many classes there are; give num_classes")
    if wanted is None and len(told) == 1:
        return next(iter(told))
    found = ", ".join(map(str, sorted(told)))
    raise DataError(f"{path} is about {found} classes, but there should be {wanted or 'one number of them'}")


def _names(path: Path, told: set[tuple[int, str]]) -> dict[int, str]:
    """The names that the file gives to classes, each to one."""
    names = dict(sorted(told))
    if not len(told) == len(names) == len(set(map(sameness, names.values()))):
        raise DataError(f"{path} has two names for one class, or one name for two")
    return names


def _table_rows(path: Path, told: _Told) -> Iterator[LabelRow]:
    table = label_table(path, told.ignored)
    _require(path, table.names, ("position", "kind", "class", "weight"))
    name = only_one(path, table.names, FILENAMES, "the image's file")
    unread = unread_in(path, table, {*NEEDED, *OF_POSITIONS, "class", "class_name", name or ""})
    for line, row in records_of(path, table):
        # What is left empty was not said.
        given = {key: value for key, value in row.items() if value or key in NEEDED}
        given["filename"] = row[name] if name else ""
        if "excluded" in table.names:
            given.setdefault("excluded", "")
        names = [unguarded(row["class_name"])] if row.get("class_name") else []
        yield from _rows(given, [row["class"]], names, f"line {line} of {path}", told)
    tell_unread(path, unread)


def _json_rows(path: Path, told: _Told) -> Iterator[LabelRow]:
    keys = Keys({*NEEDED, *OF_POSITIONS, "classes", "class_names", "filename"}, told.ignored)
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            entry = json_of(line, keys_once=True)
            if not isinstance(entry, dict):
                raise DataError(f"{path} has a line that is no JSON object: {line.strip()[:80]}")
            keys.add(entry)
            entry = {key: value for key, value in entry.items() if key not in told.ignored}
            _require(path, entry, ("position", "kind", "classes", "weight"))
            classes, names = entry["classes"], entry.get("class_names") or []
            if not isinstance(classes, list) or not isinstance(names, list):
                raise DataError(f"{path} has a line whose classes are no list: {line.strip()[:80]}")
            if names and len(names) != len(classes):
                told_of = f"{many(len(classes), 'class', 'classes')} and {many(len(names), 'name')}"
                raise DataError(f"line {number} of {path} has {told_of} of classes; each needs one")
            yield from _rows(entry, classes, names, f"line {number} of {path}", told)
    tell_unread(path, keys.unread_in(path))


def _rows(
    entry: Mapping[str, Any], classes: Sequence[Any], names: Sequence[Any], where: str, told: _Told
) -> Iterator[LabelRow]:
    """The labels of an entry, one for each of its classes."""
    for name, found in (("num_classes", told.num_classes), ("num_images", told.num_images)):
        if entry.get(name) is not None:
            found.add(_whole(entry[name], f"{where}: {name}"))
    excluded = tuple(_whole(one, f"{where}: excluded") for one in _several(entry.get("excluded")))
    chance = _chance(entry.get("probability"), f"{where}: probability")
    if chance is not None and "excluded" not in entry:
        told.unsaid.add(chance)
    for given, class_name in zip_longest(classes, names):
        class_ = _whole(given, f"{where}: class")
        if class_name is not None:
            told.names.add((class_, str(class_name)))
        yield LabelRow(
            _place(entry, where, told),
            str(entry["kind"]).strip().lower(),
            class_,
            _amount(entry["weight"], f"{where}: weight"),
            chance,
            excluded=excluded,
        )


def _place(entry: Mapping[str, Any], where: str, told: _Told) -> int:
    """Of an entry's image: where the file of that name is, or else its position."""
    position = _whole(entry["position"], f"{where}: position")
    name = unguarded(str(entry.get("filename") or ""))
    if not name or not told.places:
        return position
    file = told.finder.find(name)
    if file is None:
        raise DataError(
            f"{where} is about the file {name!r:.80}, which is no image here, or could be several"
        )
    if told.places[file] != position:
        told.elsewhere.append(where)
    return told.places[file]


def _snapshot_rows(path: Path, told: _Told) -> Iterator[LabelRow]:
    """Of a frozen snapshot, or of an npz as it is handed out, which also names the classes."""
    wanted = ("positions", "kinds", "classes", "weights")
    arrays = _arrays(path, (*wanted, "probabilities", "excluded", "num_images", "class_names"))
    _require(path, arrays, wanted)
    columns = [arrays[name] for name in wanted]
    lengths = {column.shape for column in columns}
    if len(lengths) > 1 or len(next(iter(lengths))) != 1:
        raise DataError(f"{path} has arrays of the shapes {sorted(lengths)}; expected one length for all")
    if "num_images" in arrays:
        told.num_images.add(_whole(arrays["num_images"].tolist(), f"num_images of {path}"))
    if "class_names" in arrays:
        listed = arrays["class_names"].tolist()
        told.num_classes.add(len(listed))
        told.names.update((number, str(name)) for number, name in enumerate(listed))
    chances = arrays["probabilities"].tolist() if "probabilities" in arrays else [None] * len(columns[0])
    gone = arrays["excluded"].tolist() if "excluded" in arrays else [None] * len(columns[0])
    rows = zip(*[column.tolist() for column in columns], chances, gone, strict=True)
    for number, (position, kind, class_, weight, chance, excluded) in enumerate(rows, 1):
        known = KINDS[kind] if kind in range(len(KINDS)) else kind
        entry = {"position": position, "kind": known, "weight": weight, "probability": chance}
        if excluded is not None:
            entry["excluded"] = [class_ for class_ in _several(excluded) if class_ != NO_LABEL]
        yield from _rows(entry, [class_], (), f"label {number} of {path}", told)


def _arrays(path: Path, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Those arrays that an npz has."""
    with open_zip(path, path) as archive:
        file = Members(archive, path)
        headers = {name: read_header(file, name) for name in names}
        known = {f"{name}{SUFFIX}" for name in (*headers, *ARRAYS_HANDED_OUT)}
        tell_unread(path, [member for member in file.members if member not in known])
        return {name: read_array(file, header) for name, header in headers.items() if header is not None}


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


def _several(value: Any) -> list[Any]:
    """The parts of a text, or the items of a list; what is none of both is one that reading refuses."""
    if isinstance(value, str):
        return value.split()
    return [] if value is None else value if isinstance(value, list) else [value]


def _chance(value: Any, what: str) -> float | None:
    """A probability from text or a number; an array says by NaN that nobody knows it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return _amount(value, what)


def _amount(value: Any, what: str) -> float:
    """A weight or probability from text or a number; `what` says which."""
    with suppress(TypeError, ValueError, OverflowError):
        number = float(value)
        if 0 <= number < math.inf:
            return number
    raise DataError(f"{what} is {value!r:.80}; expected a number of at least 0")
