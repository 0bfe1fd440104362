"""`clarinet predict`: the classes of image files by a trained model, as a table."""

import argparse
import csv
from pathlib import Path

from clarinet.commands.models import add_model_options, opened_model
from clarinet.commands.opening import add_skip_option, say
from clarinet.commands.options import Commands
from clarinet.recipes.counting import many
from clarinet.recipes.errors import DataError

DIGITS = 6  # of a probability


def add_predict(commands: Commands) -> None:
    """Describe the command to the parser."""
    parser = commands.add_parser(
        "predict",
        help="the classes of image files by a trained model",
        description="Write a CSV with a row for each image: file, class, and the probability of each class.",
    )
    add_model_options(parser)
    parser.add_argument(
        "--images",
        type=Path,
        required=True,
        metavar="DIR|FILE",
        help="an image file, or a folder: every image file below it",
    )
    add_skip_option(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="CSV", help="file to write")
    parser.set_defaults(run=run_predict)


def run_predict(arguments: argparse.Namespace) -> int:
    """Write the table and say so; returns the exit status."""
    from clarinet.run.tensor_files import check_writable, replacing

    check_writable(arguments.out)
    model = opened_model(arguments)
    files = _files(arguments.images, skip_bad=arguments.skip_bad)
    rows = model.probabilities(model.read(files)).tolist()
    around = arguments.images if arguments.images.is_dir() else arguments.images.parent
    # A file's name may be of other bytes than UTF-8's; they are written as they are.
    with (
        replacing(arguments.out) as temporary,
        temporary.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file,
    ):
        table = csv.writer(file)
        table.writerow(["file", "class", *(f"probability_{name}" for name in model.names)])
        for path, row in zip(files, rows, strict=True):
            likeliest = model.names[row.index(max(row))]
            shares = (f"{share:.{DIGITS}f}" for share in row)
            table.writerow([path.relative_to(around).as_posix(), likeliest, *shares])
    print(f"{arguments.out}: {many(len(files), 'image')}, {many(len(model.names), 'class', 'classes')}")
    return 0


def _files(place: Path, *, skip_bad: bool) -> list[Path]:
    from clarinet.data.folders import FolderFiles, why_unreadable
    from clarinet.files.below import image_files

    if place.is_file():
        return [place]
    if not place.is_dir():
        raise DataError(f"--images {place} is neither a folder of images nor a file")
    files = image_files(place)
    if not skip_bad:
        return files
    left_out = {file: why for file in files if (why := why_unreadable(file))}
    say(FolderFiles(place, {}, [], left_out=list(left_out.values())).said())
    if len(left_out) == len(files):
        raise DataError(f"--images {place} holds no image that can be read")
    return [file for file in files if file not in left_out]
