"""The files below a folder of this machine: all of them, or the images."""

import os
from collections.abc import Iterator
from pathlib import Path

from clarinet.files.kinds import HEAD_BYTES, begins_as_image, is_litter, is_named_as_image
from clarinet.recipes.errors import DataError


def image_files(folder: Path) -> list[Path]:
    """Every image file below a folder, wherever it lies, by its path.

    Raises:
        DataError: there is none, or a folder or file cannot be read.
    """
    found = sorted(
        filter(is_image, files_below(folder)), key=lambda path: path.relative_to(folder).as_posix()
    )
    if not found:
        raise DataError(f"{folder} holds no images")
    return found


def files_below(folder: Path) -> Iterator[Path]:
    """All files below a folder but litter, also below links, but never below a link to where it lies itself.

    Raises:
        DataError: a folder that cannot be read, or a link to nothing.
    """
    yield from _below(folder, ())


def _below(folder: Path, around: tuple[str, ...]) -> Iterator[Path]:
    around = (*around, os.path.realpath(folder))
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise DataError(f"{folder} cannot be read: {error.strerror}") from error
    for entry in entries:
        path = folder / entry.name
        if is_litter(entry.name):
            continue
        if entry.is_file():
            yield path
        elif entry.is_dir():
            if os.path.realpath(path) not in around:
                yield from _below(path, around)
        elif entry.is_symlink():
            raise DataError(f"{path} is a link to nothing")


def is_image(path: Path) -> bool:
    """By its ending, or by its first bytes where the ending says nothing."""
    if is_named_as_image(path.name):
        return True
    try:
        with path.open("rb") as file:
            return begins_as_image(file.read(HEAD_BYTES))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
