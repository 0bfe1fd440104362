"""npz files -> pictures. Headers are read and judged by us; the pixels are streamed, never loaded whole.

numpy.load would believe the header: one of 128 bytes makes it ask for 32 GB.
"""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np
from numpy.lib import format as npy

from app.datasets.intake.limits import MAX_CLASSES, MAX_EXAMPLES, MAX_MADE, MAX_PIXELS, MAX_SIDE, MIB
from app.datasets.intake.pictures import picture_of_pixels
from app.datasets.intake.reading import Reading, check_total
from app.datasets.intake.shards import UNKNOWN_CLASS, Incoming
from app.datasets.intake.zips import Archive
from clarinet.files.folders import SPLITS
from clarinet.files.refusal import Refused

SUFFIX = ".npy"
MAX_HEADER_BYTES = 4096
CHUNK_BYTES = 4 * MIB
GREY_DIMENSIONS, COLOUR_DIMENSIONS, COLOURS = 3, 4, 3


@dataclass(frozen=True, slots=True)
class Header:
    """What an array says of itself, checked."""

    path: str
    shape: tuple[int, ...]
    dtype: np.dtype
    data_offset: int  # bytes before the first value


def read_arrays(archive: Archive) -> Reading:
    """Images x_train and x_test with the classes y_train and y_test, any of them missing; other arrays are
    not looked at.

    Labels are numbers from 0 on, -1 for unknown. The classes are called by them: "0", "1", ... up to the
    largest, those without an image included, so that a label means the same here as in the file.

    Raises:
        Refused: no images, arrays of another shape or type, or numbers of images and labels that differ.
    """
    images = {split: _image_header(archive, f"x_{split}{SUFFIX}") for split in SPLITS}
    total = sum(header.shape[0] for header in images.values() if header is not None)
    if not any(images.values()):
        raise Refused(archive.name, "has neither an array x_train nor an array x_test")
    check_total(total, archive.name)
    labels = {split: _labels(archive, split, images[split]) for split in SPLITS}
    highest = max(
        (int(values.max(initial=UNKNOWN_CLASS)) for values in labels.values()), default=UNKNOWN_CLASS
    )
    class_names = None if highest == UNKNOWN_CLASS else [str(label) for label in range(highest + 1)]

    def pictures() -> Iterator[Incoming]:
        for split in SPLITS:
            header = images[split]
            if header is None:
                continue
            for pixels, label in zip(_pixels(archive, header), labels[split], strict=True):
                true_class = None if label == UNKNOWN_CLASS else int(label)
                yield Incoming(split, true_class, picture_of_pixels(pixels))

    return Reading(total, class_names, pictures(), made=_made(archive.comment))


def _made(comment: bytes) -> str | None:
    """The line of text under "made" in a zip's comment, which is JSON from `clarinet make-syn-digits`."""
    try:
        facts = json.loads(comment)
    except (ValueError, RecursionError):
        return None
    said = facts.get("made") if isinstance(facts, dict) else None
    return said if isinstance(said, str) and said.isprintable() and 0 < len(said) <= MAX_MADE else None


def _read_header(archive: Archive, path: str) -> Header:
    with archive.open(path) as stream:
        start = io.BytesIO(stream.read(MAX_HEADER_BYTES))
    try:
        version = npy.read_magic(start)
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
        shape, is_fortran, dtype = read(start, max_header_size=MAX_HEADER_BYTES)
    except (ValueError, KeyError, TypeError, SyntaxError, RecursionError, EOFError) as error:
        raise Refused(path, "has no header of a numpy array") from error
    if dtype.hasobject:
        raise Refused(path, "holds Python objects; only numbers are taken")
    if is_fortran and len(shape) > 1:
        raise Refused(path, "is stored in Fortran order; save numpy.ascontiguousarray of it")
    if any(not 0 <= side <= MAX_EXAMPLES for side in shape):
        raise Refused(path, f"claims the shape {_words(shape)}, which is too large")
    size = start.tell() + dtype.itemsize * _product(shape)
    if size != archive.size(path):
        raise Refused(path, f"claims the shape {_words(shape)} but holds another number of bytes")
    return Header(path, shape, dtype, start.tell())


def _image_header(archive: Archive, path: str) -> Header | None:
    if path not in archive.members:
        return None
    header = _read_header(archive, path)
    shape = header.shape
    if header.dtype != np.uint8:
        raise Refused(path, f"holds {header.dtype} values; images must be uint8, 0 to 255")
    is_colour = len(shape) == COLOUR_DIMENSIONS and shape[3] == COLOURS
    if len(shape) != GREY_DIMENSIONS and not is_colour:
        raise Refused(path, f"has the shape {_words(shape)}; images must be (N, H, W) or (N, H, W, 3)")
    if not all(1 <= side <= MAX_SIDE for side in shape[1:3]) or shape[1] * shape[2] > MAX_PIXELS:
        raise Refused(path, f"has images of {shape[1]} x {shape[2]} pixels; 1 to {MAX_SIDE} a side are taken")
    return header


def _labels(archive: Archive, split: str, images: Header | None) -> np.ndarray:
    """(N,) int64 classes of a split's images, UNKNOWN_CLASS where none are given."""
    path = f"y_{split}{SUFFIX}"
    count = 0 if images is None else images.shape[0]
    if path not in archive.members:
        return np.full(count, UNKNOWN_CLASS, np.int64)
    header = _read_header(archive, path)
    if header.dtype.kind not in "iu":
        raise Refused(path, f"holds {header.dtype} values; labels must be whole numbers")
    if header.shape != (count,):
        raise Refused(
            path, f"has the shape {_words(header.shape)}, but there are {count} images in x_{split}"
        )
    with archive.open(path) as stream:
        stream.read(header.data_offset)
        values = np.frombuffer(_exactly(stream, header.dtype.itemsize * count), header.dtype)
    if count and not (values.min() >= UNKNOWN_CLASS and values.max() < MAX_CLASSES):
        raise Refused(path, f"has labels outside 0 to {MAX_CLASSES - 1} (-1 for unknown)")
    return values.astype(np.int64)


def _pixels(archive: Archive, header: Header) -> Iterator[np.ndarray]:
    """The images one by one, (H, W) or (H, W, 3)."""
    count, *one = header.shape
    image_bytes = _product(one)
    at_once = max(1, CHUNK_BYTES // image_bytes)
    with archive.open(header.path) as stream:
        stream.read(header.data_offset)
        for first in range(0, count, at_once):
            number = min(at_once, count - first)
            yield from np.frombuffer(_exactly(stream, number * image_bytes), np.uint8).reshape(number, *one)
        if stream.read(1):
            raise EOFError  # more than the list of members said; archive.open makes it a refusal


def _exactly(stream: IO[bytes], length: int) -> bytes:
    """`length` bytes; raises EOFError, which `Archive.open` turns into a refusal."""
    data = stream.read(length)
    if len(data) != length:
        raise EOFError
    return data


def _product(shape: tuple[int, ...] | list[int]) -> int:
    product = 1
    for side in shape:
        product *= side  # Python's integers, which do not overflow
    return product


def _words(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
