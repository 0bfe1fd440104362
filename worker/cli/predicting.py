"""`clarinet model predict`: image files here by a model of a server, as `clarinet predict` tells them."""

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.errors import AppError
from clarinet.files.below import image_files
from clarinet_client import Client
from clarinet_client.shapes.runs import Model, Pictures

DIGITS = 6  # of a probability, as `clarinet predict` writes it
MOST_FILES, MOST_BYTES = 32, 16 * 1024 * 1024  # of a request; a larger file goes alone


@dataclass(frozen=True, slots=True)
class Written:
    """What became of the files."""

    images: int
    classes: int
    left_out: tuple[str, ...]  # a sentence about each


def files_at(place: Path) -> list[Path]:
    """A file, or every image file below a folder.

    Raises:
        AppError: it is neither.
        DataError: the folder holds no images.
    """
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise AppError(f"--images {place} is neither a folder of images nor a file.")
    return image_files(place)


def write_predictions(
    client: Client, model: Model, place: Path, out: Path, *, skip_bad: bool, on_look: Callable[[object], None]
) -> Written:
    """Write the class and the probabilities of each picture; what cannot be finished leaves no file.

    Args:
        client: of the server.
        model: that predicts; one version, whatever an alias comes to mean meanwhile.
        place: a picture or a folder of pictures.
        out: the CSV.
        skip_bad: leave pictures out that the server refuses.
        on_look: is told how many are done and how many there are.

    Raises:
        AppError: a picture is refused, or nothing is left.
    """
    files, done, refused = files_at(place), 0, []
    around = place if place.is_dir() else place.parent
    classes: list[str] = model["card"]["classes"]
    part = out.with_name(out.name + ".part")
    try:
        sizes = [(path, path.stat().st_size) for path in files]
    except OSError as error:
        raise AppError(f"{error.filename} cannot be read: {error.strerror}.") from error
    try:
        # A file's name may be of other bytes than UTF-8's; they are written as they are.
        with part.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            table = csv.writer(file)
            table.writerow(["file", "class", *(f"probability_{name}" for name in classes)])
            for some in _batches(sizes):
                names = [path.relative_to(around).as_posix() for path in some]
                for name, one in zip(names, _said(client, model, some, names)["pictures"], strict=True):
                    if one["refused"] is not None:
                        refused.append(one["refused"])
                        continue
                    shares = [f"{share:.{DIGITS}f}" for share in one["probabilities"] or ()]
                    table.writerow([name, one["predicted_class"], *shares])
                done += len(some)
                on_look((done, len(files)))
        if refused and (not skip_bad or len(refused) == len(files)):
            raise AppError("\n".join([*refused, f"{out} was not written."]))
        part.replace(out)
    except OSError as error:
        raise AppError(f"{out} cannot be written: {error.strerror}.") from error
    finally:
        part.unlink(missing_ok=True)
    return Written(len(files) - len(refused), len(classes), tuple(refused))


def _said(client: Client, model: Model, files: Sequence[Path], names: Sequence[str]) -> Pictures:
    sent = [name.encode("utf-8", "replace").decode() for name in names]
    try:
        pictures = [path.read_bytes() for path in files]
    except OSError as error:
        raise AppError(f"{error.filename} cannot be read: {error.strerror}.") from error
    return client.models.predict(model["id"], list(zip(sent, pictures, strict=True)))


def _batches(files: Sequence[tuple[Path, int]]) -> Iterator[list[Path]]:
    """The files in their order, as many at once as fit into a request."""
    some: list[Path] = []
    size = 0
    for path, bytes_ in files:
        if some and (len(some) == MOST_FILES or size + bytes_ > MOST_BYTES):
            yield some
            some, size = [], 0
        some.append(path)
        size += bytes_
    if some:
        yield some
