"""An npz of a domain as tensors, read with care: the file may come from anywhere."""

from collections.abc import Mapping
from math import prod
from pathlib import Path

import torch
from torch import Tensor

from clarinet.files.arrays import Header, class_names_of, read_array, read_image_header, read_labels
from clarinet.files.folders import SPLITS
from clarinet.files.names import NO_LABEL
from clarinet.files.refusal import Refused
from clarinet.files.zips import Members, open_zip
from clarinet.recipes.errors import DataError

ARRAYS = ("x_train", "y_train", "x_test", "y_test")
LARGEST_ARRAY_BYTES = 4 * 2**30


def load_npz(path: Path | str) -> dict[str, Tensor]:
    """Read x_train, y_train, x_test and y_test, whichever are there: images uint8, labels int64.

    Nothing is unpickled, and no more memory is asked for than the member's header and size agree on.

    Args:
        path: the npz file.

    Returns:
        Images (N, H, W) or (N, H, W, 3) and labels (N,), -1 for unknown, by the four names.

    Raises:
        DataError: not an npz, truncated, pickled or oversized members, labels that do not fit the images, or
            none of the four arrays.
    """
    found: dict[str, Tensor] = {}
    with open_zip(Path(path), Path(path)) as archive:
        file = Members(archive, Path(path))
        for split in SPLITS:
            header = read_image_header(file, split)
            if header is not None:
                _check_fits(header)
                found[f"x_{split}"] = torch.from_numpy(read_array(file, header))
            labels = read_labels(file, split, 0 if header is None else header.shape[0])
            if labels is not None:
                found[f"y_{split}"] = torch.from_numpy(labels)
    if not found:
        raise DataError(f"{path} has none of {', '.join(ARRAYS)}")
    return found


def load_class_names(path: Path | str, arrays: Mapping[str, Tensor]) -> list[str]:
    """What an npz calls its classes, in the order of their numbers; empty where it does not say.

    Args:
        path: the npz file.
        arrays: what `load_npz` read of it.

    Raises:
        DataError: names that do not fit the labels, or that nobody can tell apart.
    """
    labels = [values for name, values in arrays.items() if name.startswith("y_") and len(values)]
    highest = max((int(values.max()) for values in labels), default=NO_LABEL)
    with open_zip(Path(path), Path(path)) as archive:
        found = class_names_of(Members(archive, Path(path)), highest)
    return [] if found is None else found[0]


def _check_fits(header: Header) -> None:
    size = prod(header.shape)
    if size > LARGEST_ARRAY_BYTES:
        raise Refused(
            header.called,
            f"has {size} bytes, but at most {LARGEST_ARRAY_BYTES} are read into memory; save it as one npy "
            "file for NpyImages, which reads images while they train",
        )
