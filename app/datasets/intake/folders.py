"""A zip of image files -> pictures: classes from folders, or from tables."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.datasets.intake.against import Named, disjoint_told, numbered_told, splits_told
from app.datasets.intake.limits import MAX_LIST_BYTES, MAX_TABLE_BYTES
from app.datasets.intake.pictures import picture_of_file, require_no_archive
from app.datasets.intake.reading import Reading, check_total, checked_classes
from app.datasets.intake.shards import Incoming
from app.datasets.intake.tables import WANTED, NoTable, Row, Table, is_table, read_table
from app.datasets.intake.zips import Archive
from clarinet.files.folders import (
    PathFinder,
    Placed,
    Placement,
    around_told,
    class_list,
    place,
    require_told_apart,
)
from clarinet.files.kinds import (
    begins_as_image,
    doubles_told,
    ending_of,
    is_named_as_image,
    no_pictures_told,
    split_off_doubles,
)
from clarinet.files.names import (
    alike_paths,
    as_listed,
    class_lines,
    in_a_row,
    numbers_among,
    same_path,
    sameness,
)
from clarinet.files.pictures import Change
from clarinet.files.refusal import Refused, shown
from clarinet.files.splits import SPLITS, THIRD, split_told
from clarinet.recipes.counting import is_or_are, many

HEAD_BYTES = 512
EXPECTED = (
    "expected pictures such as PNG and JPEG, or the arrays x_train and y_train as numpy.savez saves them"
)
# May tell classes in ways that nobody reads.
OF_CLASSES = {"txt", "json", "xml", "mat", "xlsx", "ods", "yaml", "yml", "pkl", "parquet", "db", "sqlite"}
SUBMISSION = "submission"  # in the names of tables of Kaggle that show how answers look, and are none
# Of programs that pack what they write as a zip; nobody means pictures in them.
DOCUMENTS = {"xlsx", "docx", "pptx", "ods", "odt", "odp", "epub"}
# How programs write that something is missing.
NOT_KNOWN = {"na", "n/a", "nan", "null", "none", "unknown", "no label", "nolabel", "unlabeled", "unlabelled"}
NOT_KNOWN |= {"-1", "-", "--", "?", "??"}


def read_folders(archive: Archive, *, class_names: Sequence[str] = ()) -> Reading:
    """The images of a zip: as tables in it say, and else by class folders, below `train` and `test` or not.

    Args:
        archive: the zip.
        class_names: of the dataset that the images join; empty for a new one.

    Raises:
        Refused: tables alone could tell the classes, and none has a column of file names. Or images that join
            others lie in one folder, which could be a class.
    """
    tables, others = _tables(archive)
    found = _look(archive, others)
    placement = place(found.images, archive.name, class_names=class_names)
    tables = _about_images(tables, others, placement, found.images)
    if others and not tables and not any(one.class_name for one in placement.placed):
        raise Refused(others[0], WANTED)
    placement.remarks.extend(f'"{path}" names no images and was left out' for path in others)
    return _reading(archive, _classed(archive, placement, tables, found, class_names), found, tables)


def read_with_table(archive: Archive, table: Table, *, class_names: Sequence[str] = ()) -> Reading:
    """The images that a table beside the zip names, in its order within each split; see `read_folders`."""
    found = _look(archive, ())
    placement = place(found.images, archive.name, class_names=class_names)
    return _reading(archive, _classed(archive, placement, [table], found, class_names), found, [table])


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


def _about_images(
    tables: Sequence[Table], others: list[str], placement: Placement, images: Sequence[str]
) -> list[Table]:
    """Those without the ones by ids that are no names of images; `others` gets their paths."""
    found = []
    for table in tables:
        if table.has_ids and not _names_any(table, _named_by(table, placement, images)):
            others.append(table.name)
        else:
            found.append(table)
    return found


def _names_any(table: Table, images: Sequence[str]) -> bool:
    finder = PathFinder(images, by_id=True)
    return any(finder.find(row.filename) or finder.could_be_several(row.filename) for row in table.rows)


def _named_by(table: Table, placement: Placement, paths: Sequence[str]) -> list[str]:
    """The images that a table may name. By ids, of which each split may have the same ones: those of the
    split that the table's own name tells, or else training images."""
    if not table.has_ids:
        return list(paths)
    split = split_told(table.name.rpartition("/")[2].rpartition(".")[0])
    ids = {same_path(path.rpartition("/")[2].rpartition(".")[0]) for path in paths}
    if split is None and len(ids) == len(paths):
        return list(paths)
    wanted, splits = "test" if split == "test" else "train", {one.path: one.split for one in placement.placed}
    return [path for path in paths if splits.get(path, wanted) == wanted]


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
    return _by_tables(archive, placement, tables, found.images) if tables else placement


@dataclass(slots=True)
class _Told:
    """What tables say, row by row."""

    placed: dict[str, Placed] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    third: set[str] = field(default_factory=set)  # paths of a validation split
    left: set[str] = field(default_factory=set)  # names of files that no table is about
    elsewhere: list[Refused] = field(default_factory=list)  # what lies in the folder of another class
    otherwise: list[Refused] = field(default_factory=list)  # what has another number than its folder
    named: list[Named] = field(default_factory=list)  # images of rows whose places say something


def _by_tables(
    archive: Archive, placement: Placement, tables: Sequence[Table], images: Sequence[str]
) -> Placement:
    """Images in the order of the tables within each split; where these say nothing, their place counts.

    A row without its image is refused, and so are an image without its row and one that is named twice.
    """
    by_place = {one.path: one for one in placement.placed}
    images = [path for path in images if path not in placement.marks]
    alike = alike_paths(images)
    paths = [*by_place, *(path for path in images if path not in by_place and path not in alike)]
    told = _Told(refused=list(alike.values()))
    classes = {sameness(row.class_name) for table in tables for row in table.rows if row.class_name}
    folders = {sameness(one.class_name) for one in placement.placed if one.class_name}
    classes = classes | folders if classes & folders else set()  # else the folders mean something else
    is_about: list[Collection[str]] = []  # by table: images that have to have a line in one
    for table in tables:
        named = _named_by(table, placement, paths)
        finder = PathFinder(named, by_id=table.has_ids)
        own = _within_folder(table, named, finder)  # looked among first
        for row in table.rows:
            within = f"{table.folder}/{row.filename}" if table.folder else row.filename
            tries = ((own, within), (own, row.filename), (finder, within), (finder, row.filename))
            path = next((found for one, called in tries if (found := one.find(called))), None)
            if path is None:
                several = finder.could_be_several(row.filename)
                why = "could be several files" if several else "is not"
                mend = "; write its folders, too" if several else ""
                where = f"is named in line {row.line} of {table.name} but {why} in {archive.name}{mend}"
                told.refused.append(Refused(row.filename, where))
            elif path in told.placed:
                where = f"is named twice in {table.name}, the second time in line {row.line}"
                told.refused.append(Refused(row.filename, where))
            else:
                told.placed[path] = _placed(path, row, table, by_place.get(path))
                if path in by_place:
                    told.named.append(Named(row, table.name, by_place[path]))
                if row.split == THIRD:
                    told.third.add(path)
                if _lies_elsewhere(row, by_place.get(path), classes):
                    where = f"{row.class_name!r:.80} by line {row.line} of {table.name}"
                    lies = f"lies in the folder of {by_place[path].class_name!r:.80} and is {where}"
                    told.elsewhere.append(Refused(path, f"{lies}; the table counts"))
        is_about.append(_to_be_named_by(table, named, told.placed, by_place))
    for path in paths:
        if path not in told.placed:
            if any(path in named for named in is_about):
                where = f"is in {archive.name} but not in {' or '.join(table.name for table in tables)}"
                mend = "add it there, its class empty where nobody knows it, or take it out"
                told.refused.append(Refused(path, f"{where}; {mend}"))
                continue
            told.left.add(shown(path))
            if path in by_place:
                told.placed[path] = by_place[path]
    numbered, told.otherwise = ([], []) if classes else numbered_told(told.named)
    told.remarks += [*numbered, *splits_told(told.named)]
    return _told_by(told, tables, placement)


def _within_folder(table: Table, images: Sequence[str], finder: PathFinder) -> PathFinder:
    """Of those in the folder of a table, or deeper; the same finder, where it lies in none."""
    if not table.folder:
        return finder
    below = [path for path in images if path.startswith(f"{table.folder}/")]
    return PathFinder(below, by_id=table.has_ids)


def _to_be_named_by(
    table: Table, named: Sequence[str], told: Mapping[str, Placed], by_place: Mapping[str, Placed]
) -> set[str]:
    """The images that need a line in a table: below its folder; by ids, of the splits that it names."""
    below = f"{table.folder}/" if table.folder else ""
    splits = {told[path].split for path in named if path in told}
    is_any = not table.has_ids
    return {
        path
        for path in named
        if path.startswith(below) and (is_any or path not in by_place or by_place[path].split in splits)
    }


def _lies_elsewhere(row: Row, by_place: Placed | None, classes: set[str]) -> bool:
    """Whether an image lies in a folder that is called like another class than its row gives it."""
    if row.class_name is None or by_place is None or by_place.class_name is None:
        return False
    folder = sameness(by_place.class_name)
    return folder != sameness(row.class_name) and folder in classes


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
        if table.has_ids:
            remarks.append(
                f"{table.name} names images by their ids, which are their names without the ending"
            )
        if table.unread:
            remarks.append(f"Of {table.name} the columns {', '.join(table.unread)} were left out")
        remarks.extend(table.remarks)
    if told.elsewhere:
        remarks.append(
            f"{many(len(told.elsewhere), 'image')} {is_or_are(len(told.elsewhere))} given another class by "
            f"{in_a_row([table.name for table in tables])} than by the folder ({told.elsewhere[0].name}); "
            "the table counts"
        )
    remarks.extend(told.remarks)
    refused = told.refused + [one for one in placement.refused if one.name in told.left]
    in_order = sorted(placed, key=lambda one: SPLITS.index(one.split))
    return Placement(in_order, refused, remarks, contradictions=[*told.elsewhere, *told.otherwise])


def _holds_image(archive: Archive, path: str) -> bool:
    head = archive.head(path, HEAD_BYTES)
    require_no_archive(head, path)
    return begins_as_image(head)


def _reading(archive: Archive, placement: Placement, found: _Found, tables: Sequence[Table]) -> Reading:
    """Images with their places. A class that a column of a table is about is there without an image, too."""
    placed, remarks = placement.placed, [*placement.remarks, *found.remarks]
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
    columns = [name for table in tables for name in table.classes]
    class_names = _classes(archive, names, columns, remarks) if names else None
    if not names and found.telling:
        remarks.append(
            f'No image has a class; if "{shown(found.telling[0])}" tells classes, write them as a table: a '
            ".csv with the first line filename,class"
        )
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
        refused=refused,
        remarks=remarks,
        changes=changes,
        contradictions=placement.contradictions,
    )


def _means_missing(name: str) -> bool:
    return sameness(name).strip("<>#").replace("_", " ") in NOT_KNOWN


def _classes(archive: Archive, names: set[str], columns: Sequence[str], remarks: list[str]) -> list[str]:
    """The classes in label order: as a list in the archive has them, or the columns of tables, or else by the
    alphabet.
    """
    names = names | set(columns)
    missing = [name for name in sorted(names) if _means_missing(name)]
    if missing:
        told = in_a_row([f'"{shown(name)}"' for name in missing])
        is_one = len(missing) == 1
        counts = "counts as a class; where it means" if is_one else "count as classes; where they mean"
        remarks.append(
            f"{told} {counts} that nobody knows the class, leave the cell of the table empty, or put these "
            "pictures into a dataset of their own"
        )
    path = class_list(archive.members)
    if path is None:
        return checked_classes(names, archive.name, listed=columns)
    text = archive.read(path, limit=MAX_LIST_BYTES).decode(errors="replace")
    listed = class_lines(text)
    is_used = as_listed(names, listed) is not None
    told = (
        "gives the order of the classes" if is_used else "does not list the classes of the images; left out"
    )
    remarks.append(f'"{path}" {told}')
    return checked_classes(names, archive.name, listed=listed if is_used else columns)
