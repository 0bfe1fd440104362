"""What the files of `clarinet train` hold, with the classes of all of them counted alike."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from clarinet.commands.opening import Opened, Pair
from clarinet.files.label_files import load_labels
from clarinet.files.label_table import Labels
from clarinet.files.named_labels import is_by_filename
from clarinet.files.names import (
    names_in_line,
    numbers_among,
    plain_number,
    require_distinct_classes,
    share_no_class,
    strangers,
)
from clarinet.recipes.counting import is_or_are, many, there_are
from clarinet.recipes.errors import ClassesNotCounted, ConfigError, DataError

if TYPE_CHECKING:
    from torch import Tensor

    from clarinet.data.streams import ImageFiles
    from clarinet.data.training_data import DomainData

MOST_CLASSES = 1000  # more are a file of other numbers; the discriminator's memory grows with the classes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inputs:
    """Both domains, the labels of a file where one gives them, and the classes.

    Args:
        source, target: arrays; the target's labels count the classes told apart. Test images of others are
            left out, and images that train have -1.
        labels: of `--labels`.
        num_classes: K.
        class_names: K names, or None where the classes are only numbers.
    """

    source: "DomainData"
    target: "DomainData"
    labels: Labels | None
    num_classes: int
    class_names: list[str] | None


def read_inputs(arguments: argparse.Namespace, pair: Pair, side: int) -> Inputs:
    """Read the files that the arguments name, opened as `pair`; folders become squares of `side` pixels.

    The classes are those of the label file where there is one: by name if it names them, else numbers.
    Without one they are those that the source's folders or its npz name, or numbers up to its largest label.

    Raises:
        DataError: a file that cannot be read, lacks something, has other classes, or the other's images.
        ConfigError: `--classes` is missing or contradicts the files.
    """
    (source, known), (target, tested) = pair.source.read(side), pair.target.read(side)
    for path, arrays, needed in (
        (arguments.source, source, ("x_train",) if arguments.labels else ("x_train", "y_train")),
        (arguments.target, target, ("x_train",)),
    ):
        missing = [name for name in needed if name not in arrays]
        if missing:
            raise DataError(f"{path} lacks {missing[0]}")
    _require_other_images(arguments, source["x_train"], target["x_train"])
    labels = _labels(arguments, source["x_train"], pair.source, known)
    # A label file counts the campaign's classes, which need not be the folders, nor in their order.
    names = known if labels is None else labels.class_names or []
    if labels is not None:
        num_classes = labels.num_classes
    elif names and pair.source.files is not None:
        num_classes = len(names)
    else:
        largest = _largest(arguments, source)
        num_classes = len(names) if names else _counted(arguments, largest)
    if names and arguments.classes not in {None, num_classes}:
        raise ConfigError(f"--classes is {arguments.classes}, but the classes are {', '.join(names)}")
    if share_no_class(names, tested):
        raise DataError(
            f"the classes are {', '.join(names)}, and {arguments.target} has {', '.join(tested)}: none in "
            "common; name the folders of the target as the classes are called"
        )
    return Inputs(
        source=source,
        target=_scored(arguments, target, tested, num_classes, names, is_part=labels is not None),
        labels=labels,
        num_classes=num_classes,
        class_names=names or None,
    )


def _require_other_images(
    arguments: argparse.Namespace, source: "Tensor | ImageFiles", target: "Tensor | ImageFiles"
) -> None:
    """Refuse a target of which most images are the source's, whatever their files are called."""
    from clarinet.data.sameness import overlap_of

    overlap = overlap_of(source, target)
    if overlap.is_too_large:
        raise DataError(
            f"{arguments.target} has images of {arguments.source}: {overlap.in_words}; the target must be "
            "other images than the source, or there is nothing to adapt to"
        )


def _filenames(source: Opened) -> list[str]:
    """What the source's training images are called, in their order; none where they are an npz."""
    files = source.files
    return [] if files is None else [one.path for one in files.placed if one.split == "train"]


def _finds_by_name(labels: Path, ignored: Sequence[str]) -> bool:
    try:
        return labels.suffix in {".csv", ".tsv"} and is_by_filename(labels, ignored)
    except (OSError, ValueError):
        return False  # which is said when it is read


def _labels(
    arguments: argparse.Namespace, images: "Tensor | ImageFiles", source: Opened, known: list[str]
) -> Labels | None:
    if not arguments.labels:
        return None
    if arguments.classes is not None:
        _check_count(arguments.classes)
    count = len(images) if images.shape else 0
    filenames = _filenames(source)
    ignored = names_in_line(arguments.ignore_columns)
    if source.files is not None and not _finds_by_name(arguments.labels, ignored):
        _require_no_table(arguments.source, arguments.labels)
    try:
        labels = load_labels(
            arguments.labels,
            images=count,
            num_classes=arguments.classes,
            filenames=filenames,
            class_names=known,
            first_class=arguments.first_class,
            ignore_columns=ignored,
        )
    except ClassesNotCounted:
        raise ConfigError(
            f"{arguments.labels} does not say how many classes there are; say it: --classes K"
        ) from None
    if labels.named and labels.class_names is None:
        raise DataError(
            f"{arguments.labels} names only {', '.join(labels.named.values())} of its {labels.num_classes} "
            "classes, as long as nothing is known about the others; the npz of the same labels names all"
        )
    return labels


def _require_no_table(folder: Path, labels: Path) -> None:
    """Refuse a folder with a CSV, wherever the application's import would find it."""
    from clarinet.files.below import files_below

    for path in files_below(folder):
        if path.suffix.lower() == ".csv" and not (labels.exists() and path.samefile(labels)):
            raise DataError(
                f"{folder} holds {path.relative_to(folder)}; images that were imported with a CSV have its "
                "order, and label files count by it. Move it elsewhere if it was no part of the import"
            )


def _check_count(classes: int) -> None:
    if not 1 < classes <= MOST_CLASSES:
        raise ConfigError(f"--classes is {classes}; it must lie between 2 and {MOST_CLASSES}")


def _largest(arguments: argparse.Namespace, source: "DomainData") -> int:
    """The largest of the source's labels, all of which are known."""
    labels = source["y_train"]
    if labels.ndim != 1 or not len(labels):
        raise DataError(
            f"y_train of {arguments.source} has shape {tuple(labels.shape)}; expected labels (N,)"
        )
    smallest, largest = int(labels.min()), int(labels.max())
    if smallest < 0:
        raise DataError(f"y_train of {arguments.source} has the label {smallest}; labels count from 0")
    return largest


def _counted(arguments: argparse.Namespace, largest: int) -> int:
    """K as asked for, or else from the source's labels: its npz lists no classes."""
    num_classes: int = largest + 1 if arguments.classes is None else arguments.classes
    if arguments.classes is None:
        told = f"{many(num_classes, 'class', 'classes')}, after the largest label of {arguments.source}"
        print(f"clarinet: {told}; --classes K says otherwise", file=sys.stderr)
    if num_classes > MOST_CLASSES:
        raise DataError(
            f"{arguments.source} would make {num_classes} classes (its largest label is {largest}); "
            f"at most {MOST_CLASSES} are possible"
        )
    if largest >= num_classes:
        raise DataError(
            f"y_train of {arguments.source} has labels up to {largest}, which needs --classes {largest + 1}"
        )
    return num_classes


def _scored(
    arguments: argparse.Namespace,
    target: "DomainData",
    tested: list[str],
    num_classes: int,
    names: list[str],
    *,
    is_part: bool,
) -> "DomainData":
    """The target with the classes, among those told apart, of what scores: test images, or those that train.

    Classes of test images that are not told apart are a mistake, unless `is_part`: people may have been asked
    about a part of the classes. Of images that train they are only told of; those images do not score.
    """
    from clarinet.data.folders import numbered, scored

    classes = partial(_classes, arguments, tested=tested, num_classes=num_classes, names=names)
    found: DomainData = {"x_train": target["x_train"]}
    if "x_test" in target and "y_test" in target:
        given = target["y_test"]
        if given.ndim != 1 or given.shape != target["x_test"].shape[:1]:
            return target  # which is refused, in words, with the rest of the data
        own, listed, numbers = classes("y_test", given, is_part=is_part)
        others = [own[k] for k in sorted(set(given.tolist())) if k >= 0 and numbers[k] < 0]
        if others and not is_part:
            raise DataError(
                f"{arguments.target} has images of {', '.join(others)}, but {arguments.source} has the "
                f"classes {', '.join(listed)}; both need a folder of each class under one name"
            )
        found = scored({**found, "x_test": target["x_test"], "y_test": given}, numbers)
        _tell_unscored(arguments, given, own, listed, image="test image", is_part=is_part)
    if "y_test" in found or "y_train" not in target:
        return found
    given = target["y_train"]
    try:
        own, listed, numbers = classes("y_train", given, is_part=is_part)
        labels = numbered(given, numbers)
    except DataError as unknown:
        print(f"clarinet: {unknown}. So nothing scores", file=sys.stderr)
        return found
    _tell_unscored(arguments, given, own, listed, image="training image", is_part=is_part)
    return {**found, "y_train": labels}


def _tell_unscored(
    arguments: argparse.Namespace,
    given: "Tensor",
    own: list[str],
    listed: list[str],
    *,
    image: str,
    is_part: bool,
) -> None:
    """Say on stderr which images of the target do not score, and why."""
    counts = [int((given == number).sum()) for number in range(len(own))]
    whose = "campaign" if is_part else "training"
    if told := strangers(listed, own, counts, total=len(given), whose=whose, image=image):
        print(f"clarinet: of {arguments.target}, {told}; they do not score", file=sys.stderr)
    if unknown := int((given < 0).sum()):
        told = f"{unknown:,} of {many(len(given), image)} of {arguments.target} {is_or_are(unknown)}"
        print(f"clarinet: {told} of no known class, and do not score", file=sys.stderr)


def _classes(
    arguments: argparse.Namespace,
    array: str,
    given: "Tensor",
    *,
    tested: list[str],
    num_classes: int,
    names: list[str],
    is_part: bool,
) -> tuple[list[str], list[str], list[int]]:
    """The classes that the target's labels count, those told apart, and the number of each among the latter.

    Raises:
        DataError: they cannot be compared.
    """
    largest = int(given.max()) if len(given) else -1
    if not tested and largest >= (MOST_CLASSES if names else num_classes):
        more = f"; say --classes {largest + 1} if the source merely lacks images of some"
        raise DataError(
            f"{array} of {arguments.target} has labels up to {largest}, but "
            + there_are(num_classes, "class", "classes")
            + (more if not (names or is_part) and largest < MOST_CLASSES else "")
        )
    own = tested or [str(number) for number in range(largest + 1)]
    listed = names or [str(number) for number in range(num_classes)]
    if bool(tested) != bool(names):
        own, listed = _numbered(arguments, own, listed, by_name=bool(tested))
    require_distinct_classes(arguments.labels or arguments.source, listed)
    require_distinct_classes(arguments.target, own)
    return own, listed, numbers_among(listed, own)


def _numbered(
    arguments: argparse.Namespace, own: list[str], listed: list[str], *, by_name: bool
) -> tuple[list[str], list[str]]:
    """The target's classes and those told apart, of which the former (`by_name`) or the latter have names."""
    if all(name.isdecimal() for name in (own if by_name else listed)):
        return [plain_number(name) for name in own], [plain_number(name) for name in listed]
    if by_name:
        counted = arguments.labels or arguments.source
        raise DataError(
            f"{arguments.target} has the classes {', '.join(own)}, but those of {counted} are numbers; name "
            "them there as well (in a label file by a column class_name), or the folders by their numbers"
        )
    if arguments.classes is None:
        raise DataError(
            f"the classes are {', '.join(listed)}, but those of {arguments.target} are numbers; "
            f"say --classes {len(listed)} if they count the classes in this order"
        )
    return own, [str(number) for number in range(len(listed))]
