"""A zip of image files -> pictures: classes from folders, or from tables."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.datasets.intake.against import disjoint_told
from app.datasets.intake.by_tables import about_images, by_tables
from app.datasets.intake.limits import MAX_LIST_BYTES, MAX_TABLE_BYTES
from app.datasets.intake.pictures import picture_of_file, require_no_archive
from app.datasets.intake.reading import Reading, check_total, checked_classes
from app.datasets.intake.shards import Incoming
from app.datasets.intake.tables import WANTED, NoTable, Table, is_table, read_table
from app.datasets.intake.zips import Archive
from clarinet.files.folders import Placed, Placement, around_told, class_list, place, require_told_apart
from clarinet.files.kinds import (
    begins_as_image,
    doubles_told,
    ending_of,
    is_named_as_image,
    no_pictures_told,
    split_off_doubles,
)
from clarinet.files.names import NO_LABEL, as_listed, class_lines, in_a_row, numbers_among
from clarinet.files.no_class import VOID, is_called, means_missing, odd_number
from clarinet.files.pictures import Change
from clarinet.files.refusal import Refused, shown
from clarinet.files.splits import SPLITS
from clarinet.recipes.counting import is_or_are, many

HEAD_BYTES = 512
EXPECTED = (
    "expected pictures such as PNG and JPEG, or the arrays x_train and y_train as numpy.savez saves them"
)
# May tell classes in ways that nobody reads.
OF_CLASSES = {
    "txt",
    "json",
    "xml",
    "mat",
    "xlsx",
    "ods",
    "yaml",
    "yml",
    "pkl",
    "parquet",
    "db",
    "sqlite",
    "jsonl",
}
SUBMISSION = "submission"  # in the names of tables of Kaggle that show how answers look, and are none
# Of programs that pack what they write as a zip; nobody means pictures in them.
DOCUMENTS = {"xlsx", "docx", "pptx", "ods", "odt", "odp", "epub"}


def read_folders(archive: Archive, *, class_names: Sequence[str] = (), no_label: str = "") -> Reading:
    """The images of a zip: as tables in it say, and else by class folders, below `train` and `test` or not.

    Args:
        archive: the zip.
        class_names: of the dataset that the images join; empty for a new one.
        no_label: what is written in place of a class where nobody knows it; "" where nobody said so.

    Raises:
        Refused: tables alone could tell the classes, and none has a column of file names. Or images that join
            others lie in one folder, which could be a class; or a class is called by a number that may stand
            for none, if nobody says whether it does.
    """
    tables, others = _tables(archive)
    found = _look(archive, others)
    placement = place(found.images, archive.name, class_names=class_names, listed=_listed(archive))
    tables = about_images(tables, others, placement, found.images)
    if others and not tables and not any(one.class_name for one in placement.placed):
        raise Refused(others[0], WANTED)
    placement.remarks.extend(f'"{path}" names no images and was left out' for path in others)
    classed = _classed(archive, placement, tables, found, class_names)
    return _reading(archive, classed, found, tables, class_names=class_names, no_label=no_label)


def read_with_table(
    archive: Archive, table: Table, *, class_names: Sequence[str] = (), no_label: str = ""
) -> Reading:
    """The images that a table beside the zip names, in its order within each split; see `read_folders`."""
    found = _look(archive, ())
    placement = place(found.images, archive.name, class_names=class_names, listed=_listed(archive))
    classed = _classed(archive, placement, [table], found, class_names)
    return _reading(archive, classed, found, [table], class_names=class_names, no_label=no_label)


def _listed(archive: Archive) -> list[str]:
    """The classes that a list in the zip names."""
    path = class_list(archive.members)
    if path is None:
        return []
    return class_lines(archive.read(path, limit=MAX_LIST_BYTES).decode(errors="replace"))


def _tables(archive: Archive) -> tuple[list[Table], list[str]]:
    """The tables of images in a zip, and the paths of those of other things."""
    tables, others = [], []
    for path in archive.members:
        if is_table(path) and not _shows_answers(path):
            try:
                tables.append(read_table(archive.read(path, limit=MAX_TABLE_BYTES), path))
            except NoTable:
                others.append(path)
    return tables, others


@dataclass(frozen=True, slots=True)
class _Found:
    """What is in a zip: images, or what claims to be one; and what was left out."""

    images: list[str]
    refused: list[Refused]  # archives, whose images somebody may have meant
    remarks: list[str]
    telling: list[str]  # files that are not read and may tell classes


def _look(archive: Archive, tables: Sequence[str]) -> _Found:
    """Find the images of a zip by their names and first bytes. `tables`: paths that are told of elsewhere."""
    images, refused, others = [], [], []
    listed = class_list(archive.members)
    for path in archive.members:
        try:
            if ending_of(path) in DOCUMENTS:
                others.append(path)
            elif is_named_as_image(path) or _holds_image(archive, path):
                images.append(path)
            elif path != listed and path not in tables and not is_table(path):
                others.append(path)
        except Refused as refusal:
            refused.append(refusal)
    images, doubles = split_off_doubles(images)
    remarks = [*doubles_told(doubles), *no_pictures_told(others)]
    remarks += [
        f'"{path}" shows what answers look like, and was left out'
        for path in archive.members
        if _shows_answers(path)
    ]
    telling = [path for path in others if ending_of(path) in OF_CLASSES and not _is_read_by_people(path)]
    return _Found(images, refused, remarks, telling)


def _shows_answers(path: str) -> bool:
    return is_table(path) and SUBMISSION in path.rpartition("/")[2].casefold()


def _is_read_by_people(path: str) -> bool:
    return path.rpartition("/")[2].casefold().startswith(("readme", "license", "licence"))


def _classed(
    archive: Archive, placement: Placement, tables: Sequence[Table], found: _Found, class_names: Sequence[str]
) -> Placement:
    """Images with the classes that tables give, or else their places."""
    if placement.around and not any(table.has_classes for table in tables):
        if class_names:
            require_told_apart(placement.around, class_names)
        placement.remarks.append(around_told(placement.around))
    return by_tables(archive.name, placement, tables, found.images) if tables else placement


def _holds_image(archive: Archive, path: str) -> bool:
    head = archive.head(path, HEAD_BYTES)
    require_no_archive(head, path)
    return begins_as_image(head)


def _reading(
    archive: Archive,
    placement: Placement,
    found: _Found,
    tables: Sequence[Table],
    *,
    class_names: Sequence[str],
    no_label: str,
) -> Reading:
    """Images with their places. A class that a column of a table is about is there without an image, too."""
    remarks = [*placement.remarks, *found.remarks]
    placed = _without(placement.placed, no_label, remarks)
    refused = [*found.refused, *placement.refused]
    if not refused and not archive.refused:
        if not placed and found.remarks:
            raise Refused(archive.name, f"holds no images: {'; '.join(found.remarks)}; {EXPECTED}")
        check_total(len(placed), archive.name)
    names = {one.class_name for one in placed if one.class_name is not None}
    remarks += disjoint_told(
        {
            split: {one.class_name for one in placed if one.split == split and one.class_name}
            for split in SPLITS
        }
    )
    columns = [name for table in tables for name in table.classes if not is_called(name, no_label)]
    known = None if no_label else class_names
    in_order = _classes(archive, names, columns, remarks, known=known) if names else None
    if not names and found.telling:
        remarks.append(
            f'No image has a class; if "{shown(found.telling[0])}" tells classes, write them as a table: a '
            ".csv with the first line filename,class"
        )
    labels = dict(zip(names, numbers_among(in_order or (), names), strict=True))
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
        in_order,
        pictures(),
        refused=refused,
        remarks=remarks,
        changes=changes,
        contradictions=placement.contradictions,
    )


def _without(placed: Sequence[Placed], no_label: str, remarks: list[str]) -> list[Placed]:
    """Those images, of no class where theirs is what somebody said to stand for none, which is told."""
    found = [
        one._replace(class_name=None) if one.class_name and is_called(one.class_name, no_label) else one
        for one in placed
    ]
    if no_label and no_label != str(NO_LABEL):
        count = sum(one is not other for one, other in zip(found, placed, strict=True))
        of_it = f'of "{shown(no_label)}", which stands for no class'
        remarks.append(f"{many(count, 'image')} {is_or_are(count)} {of_it}")
    return found


def _require_no_odd_number(archive: Archive, names: set[str], known: Sequence[str]) -> None:
    """Raises Refused where a class may be none by its number, and the images join none that is called so."""
    number = odd_number(names)
    if number is None or number in known:
        return
    if number == str(NO_LABEL):
        why, else_ = "the others are called by their numbers", "call it otherwise"
    else:
        why, else_ = f'none of "{VOID - 1}"', f"say no_label={NO_LABEL}"
    raise Refused(
        archive.name,
        f'has images of "{number}", and {why}: if it means that nobody knows the class, say '
        f"no_label={number}; if it is a class, {else_}",
    )


def _classes(
    archive: Archive,
    names: set[str],
    columns: Sequence[str],
    remarks: list[str],
    *,
    known: Sequence[str] | None,
) -> list[str]:
    """The classes in label order: as a list in the archive has them, or the columns of tables, or else by the
    alphabet.

    `known`: those of the dataset that the images join; None where somebody said what stands for no class.
    """
    names = names | set(columns)
    missing = [name for name in sorted(names) if means_missing(name)]
    if missing:
        told = in_a_row([f'"{shown(name)}"' for name in missing])
        is_one = len(missing) == 1
        counts = "counts as a class; where it means" if is_one else "count as classes; where they mean"
        remarks.append(
            f"{told} {counts} that nobody knows the class, leave the cell of the table empty, or say "
            f"no_label={shown(missing[0]) if is_one else 'with one of them'}"
        )
    path = class_list(archive.members)
    if path is None:
        if known is not None:
            _require_no_odd_number(archive, names, known)
        return checked_classes(names, archive.name, listed=columns)
    listed = _listed(archive)
    is_used = as_listed(names, listed) is not None
    if known is not None and not is_used:
        _require_no_odd_number(archive, names, known)
    told = (
        "gives the order of the classes" if is_used else "does not list the classes of the images; left out"
    )
    remarks.append(f'"{path}" {told}')
    return checked_classes(names, archive.name, listed=listed if is_used else columns)
