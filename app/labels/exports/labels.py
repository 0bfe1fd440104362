"""A campaign's labels as files. `clarinet train --labels` reads the CSV, TSV, JSON lines and npz."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from app.labels.exports import formats, label_studio
from app.labels.exports.formats import ExportFormat
from clarinet.files.label_table import KINDS, LabelKind, LabelRow
from clarinet.files.names import NO_LABEL
from clarinet.files.tables import guarded

ARROW = {
    "example_id": "int64",
    "position": "int64",
    "filename": "string",
    "kind": "string",
    "class": "int64",
    "class_name": "string",
    "answers": "int64",
    "weight": "float64",
    "imported": "bool",
    "num_classes": "int64",
    "num_images": "int64",
}
# As a run freezes them: see app.runs.labels and clarinet.files.label_files.
NUMPY = {
    "example_ids": "<i8",
    "positions": "<i8",
    "kinds": "|u1",
    "classes": "<i8",
    "answers": "<i8",
    "weights": "<f4",
    "imported": "|b1",
    "filenames": "",  # bytes in UTF-8, as many as the longest needs
}
# Where a round followed a model's belief, each label ends with how its question was drawn.
CHANCE = {"probability": "float64", "excluded": "string"}


def pieces(
    rows: Iterable[LabelRow],
    kind: ExportFormat,
    *,
    class_names: Sequence[str],
    num_images: int,
    image_url: str,
    longest_filename: int = 1,
    most_excluded: int = 0,
) -> Iterator[bytes]:
    """A label file, piece by piece.

    Args:
        rows: with the names of their files.
        kind: of the file.
        class_names: K names.
        num_images: how many images the positions count.
        image_url: has {example_id} in it.
        longest_filename: bytes of a name, for arrays.
        most_excluded: classes that earlier answers had ruled out, at most; 0: no row tells how its question
            was drawn.
    """
    arrow = ARROW | (CHANCE if most_excluded else {})
    match kind:
        case ExportFormat.CSV:
            return formats.csv_pieces(
                list(arrow), _named(_safe(rows), _guarded(class_names), num_images, arrow)
            )
        case ExportFormat.TSV:
            return formats.tsv_pieces(
                list(arrow), _named(_safe(rows), _guarded(class_names), num_images, arrow)
            )
        case ExportFormat.JSONL:
            return formats.json_pieces(_objects(rows, class_names, num_images, arrow))
        case ExportFormat.PARQUET:
            return formats.parquet_pieces(arrow, _named(rows, class_names, num_images, arrow))
        case ExportFormat.NPZ:
            further = {"class_names": np.array(class_names), "num_images": np.array(num_images)}
            chances = {"probabilities": "<f8", "excluded": f"({most_excluded},)<i8"} if most_excluded else {}
            columns = NUMPY | {"filenames": f"|S{longest_filename}"} | chances
            numbers = (_numbers(row, most_excluded)[: len(columns)] for row in rows)
            return formats.npz_pieces(columns, numbers, names=lambda: further)
        case ExportFormat.LABEL_STUDIO:
            return formats.json_array_pieces(_tasks(rows, class_names, image_url))


def _guarded(names: Sequence[str]) -> list[str]:
    return [guarded(name) for name in names]


def _safe(rows: Iterable[LabelRow]) -> Iterator[LabelRow]:
    """Rows whose file names no spreadsheet takes for a formula."""
    return (row if row.filename is None else row._replace(filename=guarded(row.filename)) for row in rows)


def _numbers(row: LabelRow, most_excluded: int) -> formats.Row:
    kind = KINDS.index(row.kind)
    name = (row.filename or "").encode()
    chance = math.nan if row.probability is None else row.probability  # of one from elsewhere nobody knows it
    excluded = (*row.excluded, *[NO_LABEL] * (most_excluded - len(row.excluded)))
    about = row.example_id, row.position, kind, row.class_
    return (*about, row.answers, row.weight, row.imported, name, chance, excluded)


def _named(
    rows: Iterable[LabelRow], names: Sequence[str], num_images: int, columns: Collection[str]
) -> Iterator[formats.Row]:
    for row in rows:
        told = (
            row.example_id,
            row.position,
            row.filename,
            row.kind,
            row.class_,
            names[row.class_],
            row.answers,
            row.weight,
            row.imported,
            len(names),
            num_images,
            row.probability,
            " ".join(map(str, row.excluded)),
        )
        yield told[: len(columns)]


def _objects(
    rows: Iterable[LabelRow], names: Sequence[str], num_images: int, columns: Collection[str]
) -> Iterator[dict[str, Any]]:
    """An object per example, or several where its classes differ in kind, weight, origin or question."""
    for (_, kind, weight, imported, chance, excluded), group in groupby(
        rows,
        key=lambda row: (
            row.example_id,
            row.kind,
            row.weight,
            row.imported,
            row.probability,
            row.excluded,
        ),
    ):
        found = list(group)
        yield {
            "example_id": found[0].example_id,
            "position": found[0].position,
            "filename": found[0].filename,
            "kind": kind,
            "classes": [row.class_ for row in found],
            "class_names": [names[row.class_] for row in found],
            "answers": found[0].answers,
            "weight": weight,
            "imported": imported,
            "num_classes": len(names),
            "num_images": num_images,
        } | ({"probability": chance, "excluded": excluded} if "probability" in columns else {})


def _tasks(rows: Iterable[LabelRow], names: Sequence[str], image_url: str) -> Iterator[dict[str, Any]]:
    """A task per example with one annotation: its class, or the classes it is not."""
    for example_id, group in groupby(rows, key=lambda row: row.example_id):
        found = list(group)
        control = label_studio.IS if found[0].kind == LabelKind.TRUE else label_studio.IS_NOT
        yield {
            "data": label_studio.data_of(example_id, found[0].position, found[0].filename, image_url),
            "annotations": [{"result": [label_studio.choice(control, [names[row.class_] for row in found])]}],
        }
