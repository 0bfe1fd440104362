"""`clarinet evaluate`: how well a trained model does on images whose classes are known."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clarinet.commands.models import OpenedModel, add_model_options, opened_model
from clarinet.commands.opening import add_skip_option, say
from clarinet.commands.options import Commands, percent
from clarinet.files.names import NO_LABEL, numbers_among, plain_number
from clarinet.recipes.binomial import clopper_pearson
from clarinet.recipes.counting import many
from clarinet.recipes.errors import DataError

if TYPE_CHECKING:
    from clarinet.data.given import GivenFiles
    from clarinet.run.evaluation import Scores


def add_evaluate(commands: Commands) -> None:
    """Describe the command to the parser."""
    parser = commands.add_parser(
        "evaluate",
        help="how well a trained model does on a folder of classes",
        description="Print the accuracy with its 95 % interval, the accuracy of each class, and how often "
        "each class was taken for each other.",
    )
    add_model_options(parser)
    parser.add_argument(
        "--images",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder of CLASS/*; where it has train and test, test/CLASS/*",
    )
    add_skip_option(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.set_defaults(run=run_evaluate)


def run_evaluate(arguments: argparse.Namespace) -> int:
    """Score the model and say how well it does; returns the exit status."""
    model = opened_model(arguments)
    images, labels = _labelled(arguments.images, model.names, skip_bad=arguments.skip_bad)
    numbers = _numbers(arguments.images, model, labels)
    figures = _figures(model, _scores(model, images, numbers)) | _what_is_missing(model, labels, numbers)
    if arguments.json:
        print(json.dumps(figures))
        return 0
    for sentence in _sentences(figures):
        print(f"clarinet: {sentence}", file=sys.stderr)
    _show(figures)
    return 0


def _labelled(folder: Path, class_names: Sequence[str], *, skip_bad: bool) -> tuple["GivenFiles", list[str]]:
    """The images and the class folder of each; raises DataError."""
    from clarinet.data.folders import files_of
    from clarinet.data.given import placed_part

    if not folder.is_dir():
        raise DataError(f"--images {folder} is no folder")
    found = files_of(folder, skip_bad=skip_bad, class_names=class_names)
    say(found.said())
    images = placed_part(found, "scored")
    labels = images.labels
    if labels is None:
        raise DataError(
            f"the images of {folder} lie in no class folders; expected {folder}/CLASS/*, and a single "
            f"class as {folder}/test/CLASS/*"
        )
    return images, labels


def _numbers(folder: Path, model: OpenedModel, labels: Sequence[str]) -> list[int]:
    """The model's number of each image's class, or -1; raises DataError where it knows none of them."""
    own = sorted(set(labels))
    # Folders of numbers may be filled up with zeros.
    spelt = [plain_number(name) if name.isdecimal() and not model.has_names else name for name in own]
    found = dict(zip(own, numbers_among(model.names, spelt), strict=True))
    if all(number == NO_LABEL for number in found.values()):
        raise DataError(
            f"{folder} has the classes {', '.join(own)}, and the model knows {', '.join(model.names)}: none "
            "in common; name the folders as the model's classes are called"
        )
    return [found[name] for name in labels]


def _scores(model: OpenedModel, images: "GivenFiles", numbers: Sequence[int]) -> "Scores":
    """Of the images whose class the model knows."""
    import torch

    from clarinet.run.evaluation import score

    labels = torch.tensor(numbers)
    known = (labels != NO_LABEL).nonzero().squeeze(1)
    pixels = model.read(images.paths)
    predicted = model.probabilities(pixels[known]).argmax(1)  # type: ignore[index]  # of files it has rows
    return score(predicted, labels[known], len(model.names))


def _figures(model: OpenedModel, scores: "Scores") -> dict[str, Any]:
    images = sum(map(sum, scores.confusion))
    hits = sum(row[number] for number, row in enumerate(scores.confusion))
    low, high = clopper_pearson(hits, images)
    return {
        "accuracy": scores.accuracy,
        "low": low,
        "high": high,
        "images": images,
        "classes": model.names,
        "per_class_accuracy": scores.per_class,
        "confusion": scores.confusion,
    }


def _what_is_missing(model: OpenedModel, labels: Sequence[str], numbers: Sequence[int]) -> dict[str, Any]:
    """Images of classes that the model does not know, by class; and its classes without an image."""
    others = [name for name, number in zip(labels, numbers, strict=True) if number == NO_LABEL]
    return {
        "left_out": {name: others.count(name) for name in dict.fromkeys(others)},
        "without_images": [name for number, name in enumerate(model.names) if number not in set(numbers)],
    }


def _sentences(figures: dict[str, Any]) -> list[str]:
    told = []
    if left := figures["left_out"]:
        told.append(
            f"{many(sum(left.values()), 'image')} of {', '.join(left)} left out: the model knows "
            f"{', '.join(figures['classes'])}"
        )
    if without := figures["without_images"]:
        told.append(f"there is no image of {', '.join(without)}")
    return told


def _show(figures: dict[str, Any]) -> None:
    interval = f"95 % interval {100 * figures['low']:.2f} to {percent(figures['high'])}"
    print(f"accuracy {percent(figures['accuracy'])} on {many(figures['images'], 'image')}, {interval}")
    names, counts = figures["classes"], [sum(row) for row in figures["confusion"]]
    rows = zip(names, map(str, counts), map(percent, figures["per_class_accuracy"]), strict=True)
    print()
    _show_table([("class", "images", "accuracy"), *rows])
    print("\nimages of each class (rows) that were taken for each class (columns):\n")
    body = [(name, *map(str, row)) for name, row in zip(names, figures["confusion"], strict=True)]
    _show_table([("", *names), *body])


def _show_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        print("  ".join((first.ljust(widths[0]), *cells)))
