"""How many images two domains have in common."""

from collections.abc import Iterable, Iterator
from hashlib import blake2b, file_digest
from pathlib import Path

import torch
from torch import Tensor

from clarinet.data.streams import ImageFiles, ImageStream
from clarinet.recipes.errors import DataError
from clarinet.recipes.overlap import Overlap

BLOCK = 256  # images of a stream in memory at a time


def overlap_of(source: Tensor | ImageStream, target: Tensor | ImageStream) -> Overlap:
    """How many of the target's images are among the source's, in whatever order.

    Images are the same where all their pixels are. Those of two lists of files, which would take minutes to
    decode, are the same where the files are, byte by byte.

    Args:
        source, target: (N, ...) images; of another size or number of channels none is the same.

    Raises:
        DataError: a file that cannot be read.
    """
    if isinstance(source, ImageFiles) and isinstance(target, ImageFiles):
        return Overlap(sum(_are_among(source.paths, target.paths)), len(target))
    if tuple(source.shape[1:]) != tuple(target.shape[1:]):
        return Overlap(0, len(target))
    known = set(_digests(source))
    return Overlap(sum(digest in known for digest in _digests(target)), len(target))


def _digests(images: Tensor | ImageStream) -> Iterator[bytes]:
    for start in range(0, len(images), BLOCK):
        rows = torch.arange(start, min(start + BLOCK, len(images)))
        block = images[rows] if isinstance(images, Tensor) else images.read(rows)
        yield from (
            blake2b(image.data, digest_size=16).digest() for image in block.contiguous().cpu().numpy()
        )


def _are_among(source: Iterable[Path], target: Iterable[Path]) -> Iterator[bool]:
    """Whether each file of the target is one of the source's; only those of one size are read."""
    by_size: dict[int, list[Path]] = {}
    for path in source:
        by_size.setdefault(_size(path), []).append(path)
    known: dict[int, set[bytes]] = {}
    for path in target:
        size = _size(path)
        if size not in known:
            known[size] = {_digest(other) for other in by_size.get(size, ())}
        yield bool(known[size]) and _digest(path) in known[size]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error


def _digest(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file_digest(file, lambda: blake2b(digest_size=16)).digest()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
