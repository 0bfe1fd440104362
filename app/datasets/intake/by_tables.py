"""Where tables put the images of a zip: each row's image, with the class and the split that the row says."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from app.datasets.intake.against import Named, numbered_told, splits_told
from app.datasets.intake.tables import Row, Table
from clarinet.files.folders import PathFinder, Placed, Placement
from clarinet.files.names import alike_paths, in_a_row, same_path, sameness
from clarinet.files.refusal import Refused, shown
from clarinet.files.splits import SPLITS, THIRD, split_told
from clarinet.recipes.counting import is_or_are, many


def about_images(
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


def by_tables(
    archive_name: str, placement: Placement, tables: Sequence[Table], images: Sequence[str]
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
                where = f"is named in line {row.line} of {table.name} but {why} in {archive_name}{mend}"
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
                where = f"is in {archive_name} but not in {' or '.join(table.name for table in tables)}"
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
