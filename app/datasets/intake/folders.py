"""A zip of image files -> pictures: classes from folders, or from a CSV."""

from collections.abc import Iterator, Sequence

from app.datasets.intake.pictures import picture_of_file, require_no_archive
from app.datasets.intake.reading import Reading, check_total, checked_classes
from app.datasets.intake.shards import Incoming
from app.datasets.intake.tables import Row
from app.datasets.intake.zips import Archive
from clarinet.files.folders import SPLITS, Placed, begins_as_image, is_named_as_image, place, without_wrapping
from clarinet.files.names import numbers_among
from clarinet.files.refusal import Refused

HEAD_BYTES = 512


def read_folders(archive: Archive) -> Reading:
    """Images by class folders, below `train` and `test` or not; or all in one folder, without classes."""
    return _reading(archive, place(_images(archive), archive.name))


def read_table(archive: Archive, rows: Sequence[Row], table: str) -> Reading:
    """The images that a table names, in its order within each split.

    Raises:
        Refused: a row without its image, an image without its row, or one named twice.
    """
    paths = _images(archive)
    bare = {"/".join(parts): path for path, parts in without_wrapping(paths).items()}
    placed: dict[str, Placed] = {}
    for row in rows:
        path = row.filename if row.filename in archive.members else bare.get(row.filename)
        if path is None:
            raise Refused(
                row.filename, f"is named in line {row.line} of {table} but is not in {archive.name}"
            )
        if path in placed:
            raise Refused(row.filename, f"is named twice in {table}, the second time in line {row.line}")
        placed[path] = Placed(path, row.split, row.class_name)
    missing = sorted(set(paths) - placed.keys())
    if missing:
        raise Refused(missing[0], f"is in {archive.name} but not in {table} ({len(missing)} such in all)")
    return _reading(archive, sorted(placed.values(), key=lambda one: SPLITS.index(one.split)))


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


def _reading(archive: Archive, placed: Sequence[Placed]) -> Reading:
    check_total(len(placed), archive.name)
    names = {one.class_name for one in placed if one.class_name is not None}
    class_names = checked_classes(names, archive.name) if names else None
    labels = dict(zip(names, numbers_among(class_names or (), names), strict=True))

    def pictures() -> Iterator[Incoming]:
        for one in placed:
            label = None if one.class_name is None else labels[one.class_name]
            yield Incoming(one.split, label, picture_of_file(archive.read(one.path), one.path))

    return Reading(len(placed), class_names, pictures())
