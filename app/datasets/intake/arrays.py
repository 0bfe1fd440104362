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
    class_names_of,
    made_by,
    read_image_header,
    read_labels,
    read_pieces,
)
from clarinet.files.folders import SPLITS
from clarinet.files.names import NO_LABEL
from clarinet.files.refusal import Refused


def read_arrays(archive: Archive, given: Sequence[str] = ()) -> Reading:
    """Images x_train and x_test with the classes y_train and y_test, any of them missing; other arrays are
    not looked at.

    Labels are numbers from 0 on, -1 for unknown. Their names are those `given`, else in an array class_names,
    else in a list of classes in the file. Without any, the classes are called by their numbers: "0", "1", ...
    up to the largest. Classes without an image are included. So a label means the same here as in the file.

    Raises:
        Refused: no images, arrays of another shape or type, numbers of images and labels that differ, or
            fewer names than numbers.
    """
    images = {split: read_image_header(archive, split) for split in SPLITS}
    if not any(images.values()):
        raise Refused(archive.name, "has neither an array x_train nor an array x_test")
    for header in filter(None, images.values()):
        _check_size(header)
    counts = {split: 0 if header is None else header.shape[0] for split, header in images.items()}
    check_total(sum(counts.values()), archive.name)
    labels = {split: _labels(archive, split, count) for split, count in counts.items()}
    highest = max(int(values.max(initial=NO_LABEL)) for values in labels.values())
    class_names, told = _names(archive, given, highest)

    def pictures() -> Iterator[Incoming]:
        for split in SPLITS:
            header = images[split]
            if header is None:
                continue
            for pixels, label in zip(_pixels(archive, header), labels[split], strict=True):
                true_class = None if label == NO_LABEL else int(label)
                yield Incoming(split, true_class, picture_of_pixels(pixels))

    numbered = np.concatenate(list(labels.values()))
    return Reading(
        sum(counts.values()),
        class_names,
        pictures(),
        made=made_by(archive.comment),
        remarks=[*told, *_remarks(numbered[numbered != NO_LABEL])],
    )


def _names(archive: Archive, given: Sequence[str], highest: int) -> tuple[list[str] | None, list[str]]:
    """The classes up to the highest number, and what to say of where their names are from."""
    if highest == NO_LABEL:
        return None, []
    found = class_names_of(archive, highest, given)
    if found is None:
        return [str(label) for label in range(highest + 1)], []
    names, whence = found
    in_order = checked_classes(names, archive.name, listed=names)
    return in_order, [] if given else [f"The classes have {whence}"]


def _remarks(labels: np.ndarray) -> list[str]:
    """What is odd about the labels that are known."""
    if not len(labels) or 0 in labels or int(labels.max()) < 1:
        return []
    return ["No image is of the class 0; if the labels count from 1, subtract 1 and import the file anew"]


def _check_size(header: Header) -> None:
    _, height, width, *_ = header.shape
    if not (1 <= height <= MAX_SIDE and 1 <= width <= MAX_SIDE) or height * width > MAX_PIXELS:
        raise Refused(
            str(header.called), f"has images of {height} x {width} pixels; 1 to {MAX_SIDE} a side are taken"
        )


def _labels(archive: Archive, split: str, count: int) -> np.ndarray:
    """(N,) int64 classes of a split's images, NO_LABEL where none are given."""
    found = read_labels(archive, split, count, most=MAX_CLASSES)
    return np.full(count, NO_LABEL, np.int64) if found is None else found


def _pixels(archive: Archive, header: Header) -> Iterator[np.ndarray]:
    """The images one by one, (H, W) or (H, W, 3)."""
    one = header.shape[1:]
    at_once = max(1, CHUNK_BYTES // prod(one))
    for piece in read_pieces(archive, header, at_once * prod(one)):
        yield from np.frombuffer(piece, np.uint8).reshape(-1, *one)
