"""A zip of image files -> pictures: classes from folders, or from a CSV."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from app.datasets.intake.names import checked_classes
from app.datasets.intake.pictures import picture_of_file
from app.datasets.intake.reading import Reading, check_total
from app.datasets.intake.refusal import Refused
from app.datasets.intake.shards import SPLITS, Incoming
from app.datasets.intake.tables import Row
from app.datasets.intake.zips import Archive

FLAT, BELOW_A_CLASS = 1, 2  # parts of a path, once wrapping folders and the split are taken off


class Placed(NamedTuple):
    """An image file and what its place, or the table, says about it."""

    path: str
    split: str
    class_name: str | None


def is_remark(path: str) -> bool:
    """Whether a file only tells people about the others: README and LICENSE files."""
    stem, _, suffix = path.rsplit("/", 1)[-1].lower().partition(".")
    return stem in ("readme", "license", "licence") and suffix in ("", "txt", "md")


def read_folders(archive: Archive) -> Reading:
    """Images by class folders, below `train` and `test` or not; or all in one folder, without classes."""
    placed = [_place(path, parts, archive.name) for path, parts in _bare_parts(archive)]
    known = [one.class_name is not None for one in placed]
    if any(known) and not all(known):
        stray = placed[known.index(False)].path
        raise Refused(stray, "lies outside the class folders; put every image into one, or none")
    return _reading(archive, sorted(placed, key=lambda one: (SPLITS.index(one.split), one.path)))


def read_table(archive: Archive, rows: Sequence[Row], table: str) -> Reading:
    """The images that a table names, in its order within each split.

    Raises:
        Refused: a row without its image, an image without its row, or one named twice.
    """
    paths = {path for path in archive.members if path != table and not is_remark(path)}
    bare = {"/".join(parts): path for path, parts in _without_wrapping(sorted(paths))}
    placed: dict[str, Placed] = {}
    for row in rows:
        path = row.filename if row.filename in paths else bare.get(row.filename)
        if path is None:
            raise Refused(
                row.filename, f"is named in line {row.line} of {table} but is not in {archive.name}"
            )
        if path in placed:
            raise Refused(row.filename, f"is named twice in {table}, the second time in line {row.line}")
        placed[path] = Placed(path, row.split, row.class_name)
    missing = sorted(paths - placed.keys())
    if missing:
        raise Refused(missing[0], f"is in {archive.name} but not in {table} ({len(missing)} such in all)")
    return _reading(archive, sorted(placed.values(), key=lambda one: SPLITS.index(one.split)))


def _without_wrapping(paths: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Each path with its parts, less folders that hold everything, as zipping a folder adds."""
    parts = {path: path.split("/") for path in paths}
    while parts and all(len(one) > 1 for one in parts.values()):
        first = {one[0] for one in parts.values()}
        if len(first) > 1 or first.pop().lower() in SPLITS:
            break
        parts = {path: one[1:] for path, one in parts.items()}
    return list(parts.items())


def _bare_parts(archive: Archive) -> list[tuple[str, list[str]]]:
    return _without_wrapping([path for path in archive.members if not is_remark(path)])


def _place(path: str, parts: list[str], archive_name: str) -> Placed:
    split = "train"
    if len(parts) > 1 and parts[0].lower() in SPLITS:
        split, parts = parts[0].lower(), parts[1:]
    if len(parts) == FLAT:
        return Placed(path, split, None)
    if len(parts) == BELOW_A_CLASS:
        return Placed(path, split, parts[0])
    raise Refused(
        path, f"lies too deep in {archive_name}; expected class/image, train/class/image or test/class/image"
    )


def _reading(archive: Archive, placed: Sequence[Placed]) -> Reading:
    check_total(len(placed), archive.name)
    names = {one.class_name for one in placed if one.class_name is not None}
    class_names = checked_classes(names, archive.name) if names else None
    labels = {name: label for label, name in enumerate(class_names or ())}

    def pictures() -> Iterator[Incoming]:
        for one in placed:
            label = None if one.class_name is None else labels[one.class_name]
            yield Incoming(one.split, label, picture_of_file(archive.read(one.path), one.path))

    return Reading(len(placed), class_names, pictures())
