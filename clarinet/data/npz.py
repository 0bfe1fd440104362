"""An npz of a domain as tensors, read with care: the file may come from anywhere."""

import warnings
from collections.abc import Mapping
from math import prod
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from clarinet.files.arrays import Header, ImageArray, class_names_of, image_arrays, read_array, read_labels
from clarinet.files.names import NO_LABEL
from clarinet.files.refusal import Refused
from clarinet.files.splits import SPLITS
from clarinet.files.zips import Members, open_zip
from clarinet.recipes.errors import FilesLeftOut

LARGEST_ARRAY_BYTES = 4 * 2**30


def load_npz(path: Path | str) -> dict[str, Tensor]:
    """Read x_train, y_train, x_test and y_test, whichever are there: images uint8, labels int64.

    A third split, such as x_val, is the test split where there is none, else further training images; a
    warning says so, and names the arrays that are not read. Nothing is unpickled, and no more memory is asked
    for than the member's header and size agree on.

    Args:
        path: the npz file.

    Returns:
        Images (N, H, W) or (N, H, W, 3) and labels (N,), -1 for unknown, by the four names.

    Raises:
        DataError: not an npz, truncated, pickled or oversized members, labels that do not fit the images, no
            images, or an array that is called nearly like one of these and could be meant for it.
    """
    found, told = read_npz(path)
    for sentence in told:
        warnings.warn(sentence, FilesLeftOut, stacklevel=2)
    return found


def read_npz(path: Path | str) -> tuple[dict[str, Tensor], list[str]]:
    """The same, and what is to be said of its arrays, in sentences."""
    with open_zip(Path(path), Path(path)) as archive:
        file = Members(archive, Path(path))
        parts, remarks = image_arrays(file)
        for part in parts:
            if part.header is not None:
                _check_fits(part.header)
        read = [(part, _images(file, part), read_labels(file, part.part.word, part.count)) for part in parts]
    found: dict[str, Tensor] = {}
    for split in SPLITS:
        own = [(part, images, labels) for part, images, labels in read if part.part.split == split]
        if pixels := [images for _, images, _ in own if images is not None]:
            found[f"x_{split}"] = torch.cat(pixels) if len(pixels) > 1 else pixels[0]
        if any(labels is not None for _, _, labels in own):
            known = [
                np.full(part.count, NO_LABEL, np.int64) if labels is None else labels
                for part, _, labels in own
            ]
            found[f"y_{split}"] = torch.from_numpy(np.concatenate(known))
    return found, [f"{path}: {remark}." for remark in remarks]


def _images(file: Members, part: ImageArray) -> Tensor | None:
    return None if part.header is None else torch.from_numpy(read_array(file, part.header))


def load_class_names(path: Path | str, arrays: Mapping[str, Tensor]) -> list[str]:
    """What an npz calls its classes, in the order of their numbers; empty where it does not say.

    Args:
        path: the npz file.
        arrays: what `load_npz` read of it.

    Raises:
        DataError: names that do not fit the labels, or that nobody can tell apart; or a label 255 that may
            mean that nobody knows the class.
    """
    labels = [values for name, values in arrays.items() if name.startswith("y_")]
    numbers = {number for values in labels for number in torch.unique(values).tolist()} - {NO_LABEL}
    with open_zip(Path(path), Path(path)) as archive:
        found = class_names_of(Members(archive, Path(path)), numbers)
    return [] if found is None else found[0]


def _check_fits(header: Header) -> None:
    size = prod(header.shape)
    if size > LARGEST_ARRAY_BYTES:
        raise Refused(
            header.called,
            f"has {size} bytes, but at most {LARGEST_ARRAY_BYTES} are read into memory; save it as one npy "
            "file for NpyImages, which reads images while they train",
        )
