"""The arrays of an npz: headers are read and judged by us, before memory is asked for.

numpy.load would believe the header: one of 128 bytes makes it ask for 32 GB.
"""

import io
import tokenize
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from clarinet.files.array_names import CLASS_NAMES, Part, arrays_by_name
from clarinet.files.folders import class_list
from clarinet.files.json_text import json_of
from clarinet.files.names import NO_LABEL, as_listed, class_lines, classes_in_order, in_a_row
from clarinet.files.no_class import VOID, is_void
from clarinet.files.refusal import Refused
from clarinet.files.splits import SPLITS
from clarinet.files.zips import Members
from clarinet.recipes.counting import there_are

SUFFIX = ".npy"
MAX_HEADER_BYTES = 4096
MAX_LIST_BYTES = 2**20
CHUNK_BYTES = 4 * 2**20
MAX_MADE = 200  # characters that say how images were made
GREY_DIMENSIONS, COLOUR_DIMENSIONS, RGB = 3, 4, 3
_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_NO_HEADER = (ValueError, LookupError, TypeError, SyntaxError, RecursionError, EOFError, tokenize.TokenError)


@dataclass(frozen=True, slots=True)
class Header:
    """What an array says of itself, checked: it holds numbers or text, and as many as it says."""

    member: str
    called: str | Path  # in a refusal
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    data_offset: int  # bytes before the first value


def read_header(file: Members, name: str) -> Header | None:
    """The header of the array `name`, or None if the npz has none.

    Raises:
        Refused: no array, one of Python objects or in Fortran order, or not as long as it says.
    """
    member = f"{name}{SUFFIX}"
    if member not in file.members:
        return None
    called = file.called(member)
    with file.open(member) as stream:
        start = io.BytesIO(stream.read(MAX_HEADER_BYTES))
    try:
        shape, is_fortran, dtype = _READERS[npy.read_magic(start)](start, max_header_size=MAX_HEADER_BYTES)
    except _NO_HEADER as error:
        raise Refused(called, "has no header of a numpy array") from error
    if dtype.hasobject:
        raise Refused(called, "holds Python objects; only numbers are taken")
    if is_fortran and len(shape) > 1:
        raise Refused(called, "is stored in Fortran order; save numpy.ascontiguousarray of it")
    if any(type(side) is not int or side < 0 for side in shape):
        raise Refused(called, f"claims the shape {words(shape)}, which no array has")
    if start.tell() + dtype.itemsize * prod(shape) != file.size(member):  # Python's numbers do not overflow
        raise Refused(called, f"claims the shape {words(shape)} but holds another number of bytes")
    return Header(member, called, shape, dtype, start.tell())


@dataclass(frozen=True, slots=True)
class ImageArray:
    """The images of a part of an npz, and what their labels are called."""

    part: Part
    header: Header | None  # None: labels alone, which `read_labels` refuses where there are any

    @property
    def count(self) -> int:
        """N."""
        return 0 if self.header is None else self.header.shape[0]


def image_arrays(file: Members) -> tuple[list[ImageArray], list[str]]:
    """The arrays of images of an npz, in the order in which they come, and what is to be said of its arrays.

    The parts of one split come after one another, and have images of one shape.

    Returns:
        Train before test; and sentences without their full stop.

    Raises:
        Refused: no array of images; one that is called nearly like one that is understood; or as
            `read_image_header` does.
    """
    names = [member.removesuffix(SUFFIX) for member in file.members if member.endswith(SUFFIX)]
    listed = class_list(file.members)
    others = [member for member in file.members if not member.endswith(SUFFIX) and member != listed]
    named = arrays_by_name(names, others)
    if named.near is not None:
        name, better = named.near
        why = f"is called nearly like {better}, which the file lacks; call it {better}, or take it out"
        raise Refused(file.called(f"{name}{SUFFIX}"), why)
    found = [ImageArray(part, read_image_header(file, part.word)) for part in named.parts]
    if not any(one.header for one in found):
        told = ""
        if names:
            have = in_a_row([f'"{name}"' for name in names])
            told = f"; it has {have}: name them so where they are saved"
        raise Refused(file.name, f"has neither an array x_train nor an array x_test{told}")
    for split in SPLITS:
        own = [one.header for one in found if one.part.split == split and one.header is not None]
        for header in own[1:]:
            if header.shape[1:] != own[0].shape[1:]:
                shapes = f"{words(header.shape)}, but {own[0].called} {words(own[0].shape)}"
                raise Refused(header.called, f"has the shape {shapes}; both belong to one split")
    return found, list(named.remarks)


def read_image_header(file: Members, split: str) -> Header | None:
    """The header of a split's images, uint8 (N, H, W) or (N, H, W, 3).

    Raises:
        Refused: as `read_header` does, or an array of another type or shape.
    """
    header = read_header(file, f"x_{split}")
    if header is None:
        return None
    shape = header.shape
    if header.dtype != np.uint8:
        raise Refused(header.called, f"holds {header.dtype} values; images must be uint8, 0 to 255")
    is_colour = len(shape) == COLOUR_DIMENSIONS and shape[3] == RGB
    if len(shape) != GREY_DIMENSIONS and not is_colour:
        raise Refused(
            header.called, f"has the shape {words(shape)}; images must be (N, H, W) or (N, H, W, 3)"
        )
    return header


def read_labels(
    file: Members, split: str, count: int, *, most: int = 2**63, no_label: int | None = None
) -> NDArray[np.int64] | None:
    """(N,) classes of a split's images, NO_LABEL where one is unknown; None if the npz has none.

    Args:
        count: N.
        most: how many classes there can be.
        no_label: what stands for none of them, too, however large; it is given as it stands.

    Raises:
        Refused: as `read_header` does, or what is no label for each image.
    """
    header = read_header(file, f"y_{split}")
    if header is None:
        return None
    if header.dtype.kind not in "iu":
        raise Refused(header.called, f"holds {header.dtype} values; labels must be whole numbers")
    if header.shape != (count,):
        told = f"has the shape {words(header.shape)}, but {there_are(count, 'image')} in x_{split}"
        raise Refused(header.called, f"{told}; expected {words((count,))}")
    values = read_array(file, header)
    counted = values if no_label is None else values[values != no_label]
    if len(counted) and not (counted.min() >= NO_LABEL and counted.max() < most):
        raise Refused(header.called, f"has labels outside 0 to {most - 1} (-1 for unknown)")
    return values.astype(np.int64)


def read_class_names(file: Members) -> list[str] | None:
    """The array `class_names`: text, one name for each class number from 0 on; None if the npz has none.

    Raises:
        Refused: as `read_header` does, or what is no list of text.
    """
    header = read_header(file, CLASS_NAMES)
    if header is None:
        return None
    if header.dtype.kind not in "US" or len(header.shape) != 1:
        told = f"holds {header.dtype} values of the shape {words(header.shape)}; names must be a list of text"
        raise Refused(header.called, told)
    values = read_array(file, header).tolist()
    return [name.decode(errors="replace") if isinstance(name, bytes) else name for name in values]


def class_names_of(
    file: Members,
    numbers: Collection[int],
    given: Sequence[str] = (),
    *,
    first: int = 0,
    is_from_0: bool = False,
    is_void_said: bool = False,
) -> tuple[list[str], str] | None:
    """The names of the classes that the labels count, tidy and in their order, and in words where they stand.

    They are those `given`, else the array class_names, else a list of classes among the files.

    Args:
        file: the npz.
        numbers: the labels that are known, each once, counted from 0.
        given: names that somebody gave beside the file.
        first: from where the file counts them.
        is_from_0: somebody said so; else they may count from 1 where none is 0, which is told.
        is_void_said: somebody said which label stands for none; else 255 may, where nothing names it.

    Returns:
        None where no image has a label, or nothing names the classes: then they are called by their numbers.

    Raises:
        Refused: fewer names than numbers, two that are the same to people, or one that nobody can read; or
            a label 255 that may stand for none.
    """
    highest, lowest = max(numbers, default=NO_LABEL), 0 if is_from_0 else min(numbers, default=0)
    found = None if highest == NO_LABEL else _names_found(file, given)
    in_file = {number + first for number in numbers}
    if not is_void_said and is_void(in_file) and (found is None or len(found[0]) <= VOID - first):
        raise Refused(
            file.name,
            f"has the label {VOID}, and none is {VOID - 1}: if it means that nobody knows the class, write "
            f"{NO_LABEL} in its place (in an array of int16), or say no_label={VOID} where the application "
            f"takes images in; if it is a class, name all {VOID + 1 - first} of them",
        )
    if found is None:
        return None
    named, whence = found
    if lowest > 0 and len(named) == highest:
        from_0 = f"it is {named[lowest]!r}" if lowest < highest else "it is no class"
        raise Refused(
            file.name,
            f"numbers its classes from {lowest} to {highest}, and {whence} are {highest}: counted from 1, "
            f"{lowest} is {named[lowest - 1]!r}; counted from 0, {from_0}, and a name is missing; number "
            "them from 0, or say first_class=1 where the application takes images in",
        )
    if len(named) <= highest:
        raise Refused(
            file.name, f"numbers its classes up to {highest}, and {whence} are only {len(named)} of them"
        )
    tidied = as_listed(named, named)
    if tidied is None or len(tidied) != len(named):
        classes_in_order(named)  # which says what nobody can read
        raise Refused(file.name, f"has two classes of the same name by {whence}")
    return tidied, whence


def _names_found(file: Members, given: Sequence[str]) -> tuple[list[str], str] | None:
    if given:
        return list(given), "the names that you gave"
    if (found := read_class_names(file)) is not None:
        return found, "its array class_names"
    if (path := class_list(file.members)) is None:
        return None
    with file.open(path) as stream:
        text = stream.read(MAX_LIST_BYTES + 1)
    if len(text) > MAX_LIST_BYTES:
        raise Refused(
            file.called(path), f"has more than {MAX_LIST_BYTES} bytes, too many for a list of classes"
        )
    return class_lines(text.decode(errors="replace")), f'"{path}"'


def made_by(comment: bytes) -> str | None:
    """How images were made that are not the published ones: a line in an npz's zip comment, which is JSON."""
    try:
        facts = json_of(comment)
    except ValueError:
        return None
    said = facts.get("made", facts.get("made_by")) if isinstance(facts, dict) else None  # the latter at first
    return said if isinstance(said, str) and said.isprintable() and 0 < len(said) <= MAX_MADE else None


def read_array(file: Members, header: Header) -> NDArray[Any]:
    """All of an array, writable.

    Raises:
        Refused: damaged, or too large for the memory.
    """
    try:
        array = np.empty(header.shape, header.dtype)
    except MemoryError as error:
        raise Refused(header.called, "needs more memory than there is") from error
    content = array.reshape(-1).view(np.uint8)
    done = 0
    for piece in read_pieces(file, header, CHUNK_BYTES):
        content[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
        done += len(piece)
    return array


def read_pieces(file: Members, header: Header, size: int) -> Iterator[bytes]:
    """The bytes of an array's values, so many at a time.

    Raises:
        Refused: damaged, or more than the list of members said.
    """
    total = header.dtype.itemsize * prod(header.shape)
    with file.open(header.member) as stream:
        stream.read(header.data_offset)
        for start in range(0, total, size):
            yield _exactly(stream, min(size, total - start))
        if stream.read(1):
            raise EOFError  # file.open makes it a refusal


def _exactly(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length)
    if len(data) != length:
        raise EOFError
    return data


def words(shape: tuple[int, ...]) -> str:
    """As numpy writes a shape, however long its numbers are."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
