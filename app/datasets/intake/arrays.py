"""npz files -> pictures: the pixels are streamed, never loaded whole."""

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from app.datasets.intake.limits import MAX_CLASSES, MAX_PIXELS, MAX_SIDE
from app.datasets.intake.pictures import picture_of_pixels
from app.datasets.intake.reading import Reading, check_total, checked_classes
from app.datasets.intake.shards import Incoming
from app.datasets.intake.zips import Archive
from clarinet.files.arrays import (
    CHUNK_BYTES,
    Header,
    ImageArray,
    class_names_of,
    image_arrays,
    made_by,
    read_labels,
    read_pieces,
)
from clarinet.files.names import NO_LABEL
from clarinet.files.refusal import Refused
from clarinet.recipes.counting import many


def read_arrays(
    archive: Archive,
    given: Sequence[str] = (),
    *,
    first_class: int | None = None,
    no_label: int | None = None,
) -> Reading:
    """Images x_train and x_test with the classes y_train and y_test, any of them missing, and others of a
    split's name; see `image_arrays`.

    Labels are numbers from 0 on, -1 for unknown. Their names are those `given`, else in an array class_names,
    else in a list of classes in the file. Without any, the classes are called by their numbers: "0", "1", ...
    up to the largest. Classes without an image are included. So a label means the same here as in the file.

    Args:
        archive: the npz.
        given: names of the classes, in the order of their numbers.
        first_class: from which number the labels count, 0 or 1; None: from 0, if that can be.
        no_label: the label of images whose class nobody knows, beside -1; None: nobody said it.

    Raises:
        Refused: no images, arrays of another shape or type or of nearly the right name, numbers of images and
            labels that differ, or fewer names than numbers. Or numbers that run from 1 to K, if nobody says
            from where they count; or 255 apart from the others, if nobody says whether it is a class.
    """
    images, about_arrays = image_arrays(archive)
    for one in images:
        if one.header is not None:
            _check_size(one.header)
    check_total(sum(one.count for one in images), archive.name)
    labels = [_labels(archive, one, no_label) for one in images]
    left_out = [] if no_label is None else _without(labels, no_label)
    first = _first(archive, np.concatenate(labels), first_class)
    labels = [np.where(values > NO_LABEL, values - first, values) for values in labels]
    numbered = np.concatenate(labels)
    class_names, told = _names(
        archive,
        given,
        numbered,
        first=first,
        is_said=first_class is not None,
        is_void_said=no_label is not None,
    )

    def pictures() -> Iterator[Incoming]:
        for one, own in zip(images, labels, strict=True):
            if one.header is None:
                continue
            for pixels, label in zip(_pixels(archive, one.header), own, strict=True):
                true_class = None if label == NO_LABEL else int(label)
                yield Incoming(one.part.split, true_class, picture_of_pixels(pixels))

    return Reading(
        sum(one.count for one in images),
        class_names,
        pictures(),
        made=made_by(archive.comment),
        remarks=[*about_arrays, *left_out, *told, *_remarks(numbered[numbered != NO_LABEL])],
    )


def _without(labels: Sequence[np.ndarray], no_label: int) -> list[str]:
    """Make what somebody said to stand for no label none, in place; gives how often that was, to be told."""
    if no_label == NO_LABEL:
        return []
    count = 0
    for values in labels:
        count += int((values == no_label).sum())
        values[values == no_label] = NO_LABEL
    have = "has" if count == 1 else "have"
    return [f"{many(count, 'image')} {have} the label {no_label}, which stands for no class"]


def _first(archive: Archive, labels: np.ndarray, said: int | None) -> int:
    """From which number the labels count."""
    if said == 1 and 0 in labels:
        raise Refused(archive.name, "has the label 0, so that its labels cannot count from 1")
    return said or 0


def _names(
    archive: Archive,
    given: Sequence[str],
    labels: np.ndarray,
    *,
    first: int,
    is_said: bool,
    is_void_said: bool,
) -> tuple[list[str] | None, list[str]]:
    """The classes up to the highest number, and what to say of where their names are from."""
    known = np.unique(labels[labels != NO_LABEL])
    if not len(known):
        return None, []
    highest = int(known[-1])
    found = class_names_of(
        archive, known.tolist(), given, first=first, is_from_0=is_said, is_void_said=is_void_said
    )
    if found is None:
        if not is_said and known[0] == 1 and highest == len(known) > 1:
            raise Refused(
                archive.name,
                f"numbers its classes from 1 to {highest}, and none is 0: counted from 1 there are {highest} "
                f"classes; counted from 0 there are {highest + 1}, and no image is of class 0; say "
                "first_class=1 or first_class=0",
            )
        return [str(label + first) for label in range(highest + 1)], []
    names, whence = found
    in_order = checked_classes(names, archive.name, listed=names)
    return in_order, [] if given else [f"The classes have {whence}"]


def _remarks(labels: np.ndarray) -> list[str]:
    """What is odd about the labels that are known."""
    known = np.unique(labels).tolist()
    if not known or 0 in known or known[-1] < 1:
        return []
    return ["No image is of the class 0; if the labels count from 1, subtract 1 and import the file anew"]


def _check_size(header: Header) -> None:
    _, height, width, *_ = header.shape
    if not (1 <= height <= MAX_SIDE and 1 <= width <= MAX_SIDE) or height * width > MAX_PIXELS:
        raise Refused(
            str(header.called), f"has images of {height} x {width} pixels; 1 to {MAX_SIDE} a side are taken"
        )


def _labels(archive: Archive, images: ImageArray, no_label: int | None) -> np.ndarray:
    """(N,) int64 classes of images, NO_LABEL where none are given."""
    found = read_labels(archive, images.part.word, images.count, most=MAX_CLASSES, no_label=no_label)
    return np.full(images.count, NO_LABEL, np.int64) if found is None else found


def _pixels(archive: Archive, header: Header) -> Iterator[np.ndarray]:
    """The images one by one, (H, W) or (H, W, 3)."""
    one = header.shape[1:]
    at_once = max(1, CHUNK_BYTES // prod(one))
    for piece in read_pieces(archive, header, at_once * prod(one)):
        yield from np.frombuffer(piece, np.uint8).reshape(-1, *one)
