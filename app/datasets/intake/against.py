"""What tables and folders of one archive say against each other, so that somebody can look. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from app.datasets.intake.tables import Row
from clarinet.files.folders import Placed
from clarinet.files.names import are_numbers, classes_in_order, in_a_row, plain_number, sameness
from clarinet.files.refusal import Refused, shown
from clarinet.files.splits import THIRD, split_word
from clarinet.recipes.counting import is_or_are, many


class Named(NamedTuple):
    """An image with its row in a table and what its place says."""

    row: Row
    table: str  # what it is called
    place: Placed


def splits_told(named: Iterable[Named]) -> list[str]:
    """That a table puts images into another split than the folder they lie in; at most one sentence."""
    apart = [one for one in named if _is_of_another_split(one)]
    if not apart:
        return []
    row, table, place = apart[0]
    return [
        f"{many(len(apart), 'image')} {is_or_are(len(apart))} put into another split by {table} than by the "
        f'folder ("{shown(place.path)}" into {row.split}); the table counts'
    ]


def _is_of_another_split(one: Named) -> bool:
    folders = one.place.path.split("/")[:-1]
    word = next((found for folder in folders if (found := split_word(folder))), None)
    return one.row.split not in {None, THIRD, word} and word not in {None, THIRD}


def numbered_told(named: Sequence[Named]) -> tuple[list[str], list[Refused]]:
    """What to say of a table that numbers the classes which the folders name, as many as there are of these,
    and the images whose number is not that of their folder in the order of the alphabet.
    """
    both = [one for one in named if one.row.class_name is not None and one.place.class_name is not None]
    given = {str(one.row.class_name) for one in both}
    folders = {sameness(str(one.place.class_name)): str(one.place.class_name) for one in both}
    if len(folders) < 2 or len(given) != len(folders) or not _are_digits(given) or are_numbers(folders):  # noqa: PLR2004 - a class beside another
        return [], []
    in_order = classes_in_order(set(folders.values()))
    first = min(map(int, map(plain_number, given)))
    if max(map(int, map(plain_number, given))) != first + len(folders) - 1 or first > 1:
        return [], []
    numbers = {sameness(name): number for number, name in enumerate(in_order, first)}
    apart = [
        Refused(one.place.path, _apart(one))
        for one in both
        if int(plain_number(str(one.row.class_name))) != numbers[sameness(str(one.place.class_name))]
    ]
    counted = in_a_row([f'{number} is "{shown(name)}"' for number, name in enumerate(in_order, first)])
    told = f"{both[0].table} numbers classes which the folders name, and the table counts: the classes are "
    told += f"called {in_a_row(classes_in_order(given))}. In the order of the folders {counted}"
    if apart:
        told += f"; {many(len(apart), 'image')} {is_or_are(len(apart))} numbered otherwise ({apart[0].name})"
    return [told], apart


def _are_digits(names: Collection[str]) -> bool:
    return all(name.isascii() and name.isdigit() for name in names)


def _apart(one: Named) -> str:
    return (
        f"lies in the folder of {one.place.class_name!r:.80} and is {one.row.class_name!r:.80} by line "
        f"{one.row.line} of {one.table}, which is not that folder's number; the table counts"
    )


def disjoint_told(by_split: Mapping[str, set[str]]) -> list[str]:
    """That training and test images have no class in common; at most one sentence."""
    train, test = by_split.get("train", set()), by_split.get("test", set())
    if not train or not test or set(map(sameness, train)) & set(map(sameness, test)):
        return []
    return [
        f"The training images are of {in_a_row(classes_in_order(train))}, the test images of "
        f"{in_a_row(classes_in_order(test))}: no class is in both"
    ]
