"""A zip of image files -> pictures: classes from folders, or from tables."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.datasets.intake.limits import MAX_LIST_BYTES, MAX_TABLE_BYTES
from app.datasets.intake.pictures import picture_of_file, require_no_archive
from app.datasets.intake.reading import Reading, check_total, checked_classes
from app.datasets.intake.shards import Incoming
from app.datasets.intake.tables import ENDINGS, WANTED, NoTable, Row, Table, read_table
from app.datasets.intake.zips import Archive
from clarinet.files.folders import (
    SPLITS,
    VALIDATION,
    PathFinder,
    Placed,
    Placement,
    begins_as_image,
    class_list,
    is_named_as_image,
    place,
)
from clarinet.files.names import as_listed, class_lines, numbers_among
from clarinet.files.pictures import Change
from clarinet.files.refusal import Refused, shown

HEAD_BYTES = 512


def read_folders(archive: Archive) -> Reading:
    """The images of a zip: as tables in it say, and else by class folders, below `train` and `test` or not.

    Raises:
        Refused: tables alone could tell the classes, and none has a column of file names.
    """
    tables, others = _tables(archive)
    placement = place(_images(archive), archive.name)
    if others and not tables and not any(one.class_name for one in placement.placed):
        raise Refused(others[0], WANTED)
    placement.remarks.extend(f'"{path}" names no images and was left out' for path in others)
    return _reading(archive, _by_tables(archive, placement, tables) if tables else placement)


def read_with_table(archive: Archive, table: Table) -> Reading:
    """The images that a table beside the zip names, in its order within each split."""
    return _reading(archive, _by_tables(archive, place(_images(archive), archive.name), [table]))


def _tables(archive: Archive) -> tuple[list[Table], list[str]]:
    """The tables of images in a zip, and the paths of those of other things."""
    tables, others = [], []
    for path in archive.members:
        if path.lower().endswith(ENDINGS):
            try:
                tables.append(read_table(archive.read(path, limit=MAX_TABLE_BYTES), path))
            except NoTable:
                others.append(path)
    return tables, others


@dataclass(slots=True)
class _Told:
    """What tables say, row by row."""

    placed: dict[str, Placed] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)
    third: set[str] = field(default_factory=set)  # paths of a validation split
    left: set[str] = field(default_factory=set)  # names of files that no table is about


def _by_tables(archive: Archive, placement: Placement, tables: Sequence[Table]) -> Placement:
    """Images in the order of the tables within each split; where these say nothing, their place counts.

    A row without its image is refused, and so are an image without its row and one that is named twice.
    """
    by_place = {one.path: one for one in placement.placed}
    paths = [*by_place, *(path for path in _images(archive) if path not in by_place)]
    finder, told = PathFinder(paths), _Told()
    for table in tables:
        for row in table.rows:
            within = f"{table.folder}/{row.filename}" if table.folder else row.filename
            path = finder.find(within) or finder.find(row.filename)
            if path is None:
                where = f"is named in line {row.line} of {table.name} but is not in {archive.name}"
                told.refused.append(Refused(row.filename, where))
            elif path in told.placed:
                where = f"is named twice in {table.name}, the second time in line {row.line}"
                told.refused.append(Refused(row.filename, where))
            else:
                told.placed[path] = _placed(path, row, table, by_place.get(path))
                if row.split in VALIDATION:
                    told.third.add(path)
    about = [f"{table.folder}/" if table.folder else "" for table in tables]
    for path in paths:
        if path not in told.placed:
            if any(path.startswith(folder) for folder in about):
                where = f"is in {archive.name} but not in {' or '.join(table.name for table in tables)}"
                told.refused.append(Refused(path, where))
                continue
            told.left.add(shown(path))
            if path in by_place:
                told.placed[path] = by_place[path]
    return _told_by(told, tables, placement)


def _placed(path: str, row: Row, table: Table, by_place: Placed | None) -> Placed:
    split = row.split or (by_place.split if by_place else "train")
    is_by_folder = not table.has_classes and by_place is not None
    return Placed(path, split, by_place.class_name if is_by_folder and by_place else row.class_name)


def _told_by(told: _Told, tables: Sequence[Table], placement: Placement) -> Placement:
    """What the tables say, with what is to be said of it."""
    placed, remarks = list(told.placed.values()), list(placement.remarks)
    if told.third:
        becomes = "train" if any(one.split == "test" for one in placed) else "test"
        placed = [one._replace(split=becomes) if one.path in told.third else one for one in placed]
        words = {"train": "training", "test": "test"}[becomes]
        remarks.append(f"The validation split of {tables[0].name} counts as {words} images")
    for table in tables:
        if table.unread:
            remarks.append(f"Of {table.name} the columns {', '.join(table.unread)} were left out")
    refused = told.refused + [one for one in placement.refused if one.name in told.left]
    return Placement(sorted(placed, key=lambda one: SPLITS.index(one.split)), refused, remarks)


def _images(archive: Archive) -> list[str]:
    """The paths of images, and of what claims to be one; other files are left out.

    Raises:
        Refused: an archive, whose images somebody may have meant.
    """
    return [path for path in archive.members if is_named_as_image(path) or _holds_image(archive, path)]


def _holds_image(archive: Archive, path: str) -> bool:
    head = archive.head(path, HEAD_BYTES)
    require_no_archive(head, path)
    return begins_as_image(head)


def _reading(archive: Archive, placement: Placement) -> Reading:
    placed, remarks = placement.placed, list(placement.remarks)
    if not placement.refused:
        check_total(len(placed), archive.name)
    names = {one.class_name for one in placed if one.class_name is not None}
    class_names = _classes(archive, names, remarks) if names else None
    labels = dict(zip(names, numbers_among(class_names or (), names), strict=True))
    changes: Counter[Change] = Counter()

    def pictures() -> Iterator[Incoming | Refused]:
        for one in placed:
            label = None if one.class_name is None else labels[one.class_name]
            changed: set[Change] = set()
            try:
                picture = picture_of_file(archive.read(one.path), one.path, note=changed.add)
            except Refused as refusal:
                yield refusal
                continue
            changes.update(changed)
            yield Incoming(one.split, label, picture, one.path)

    return Reading(
        len(placed),
        class_names,
        pictures(),
        refused=placement.refused,
        remarks=remarks,
        changes=changes,
    )


def _classes(archive: Archive, names: set[str], remarks: list[str]) -> list[str]:
    """The classes in label order: as a list in the archive has them, or else by the alphabet."""
    path = class_list(archive.members)
    if path is None:
        return checked_classes(names, archive.name)
    text = archive.read(path, limit=MAX_LIST_BYTES).decode(errors="replace")
    listed = class_lines(text)
    is_used = as_listed(names, listed) is not None
    told = (
        "gives the order of the classes" if is_used else "does not list the classes of the images; left out"
    )
    remarks.append(f'"{path}" {told}')
    return checked_classes(names, archive.name, listed=listed if is_used else ())
