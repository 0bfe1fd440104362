"""Images that stay on disk: read when a step needs them, for data larger than memory."""

import os
import tokenize
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from clarinet.files.pictures import decoded
from clarinet.recipes.errors import DataError

RESIDENT_BYTES = 2 * 2**30  # images that take more are read while a trial trains


class ImageStream(Protocol):
    """A stack of images that are read by row; stands for a tensor in TrainData and `predict`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, H, W) of grey or (N, H, W, 3) of RGB images."""

    def __len__(self) -> int:
        """N."""

    def read(self, rows: Tensor) -> Tensor:
        """Read rows, (B,) int64 on the CPU, as uint8 (B, H, W) or (B, H, W, 3) there.

        Always the same for the same rows, and safe to call from several threads at once.
        """


class NpyImages:
    """The images of one npy file, uint8 (N, H, W) or (N, H, W, 3), as numpy.save writes it.

    Rows are read from the file, not mapped, so that they count in no process's memory.

    Raises:
        DataError: no such file, or its array is no stack of uint8 images in C order.
    """

    def __init__(self, path: Path) -> None:
        try:
            array = np.lib.format.open_memmap(path, mode="r")
        except (OSError, EOFError, ValueError, SyntaxError, OverflowError, tokenize.TokenError) as error:
            raise DataError(f"{path} cannot be read as npy: {error}") from error
        if array.dtype != np.uint8 or not array.flags.c_contiguous or array.ndim < 3:  # noqa: PLR2004 - (N, H, W)
            raise DataError(
                f"{path} holds {array.dtype} of shape {array.shape}; expected uint8 images in C order"
            )
        self.path = path
        self.shape: tuple[int, ...] = array.shape
        self._offset = array.offset
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, rows: Tensor) -> Tensor:
        """Rows (B,) int64 as uint8 (B, H, W) or (B, H, W, 3); see ImageStream.

        Raises:
            DataError: the file has become shorter.
        """
        size = int(np.prod(self.shape[1:]))
        images = np.empty((len(rows), size), np.uint8)
        for image, row in zip(images, rows.tolist(), strict=True):
            content = os.pread(self._file, size, self._offset + row * size)
            if len(content) != size:
                raise DataError(f"{self.path} has become shorter: its image {row} is cut off")
            image[:] = np.frombuffer(content, np.uint8)
        return torch.from_numpy(images.reshape(len(rows), *self.shape[1:]))


class ImageFiles:
    """Image files in an order of their own, decoded when they are read and brought to one square size.

    Each is read as people see it (`pictures.decoded`). What is not square becomes so by another scale, as
    everywhere in this library.

    Args:
        paths: one file per image, of any format that Pillow reads.
        image_size: height and width, in pixels; at least the network's, or detail is lost.
        colour: RGB, or else luminance.
    """

    def __init__(self, paths: Sequence[Path], *, image_size: int, colour: bool = True) -> None:
        self.paths = tuple(paths)
        self._side = image_size
        self._colour = colour
        self.shape = (len(self.paths), image_size, image_size, *([3] if colour else []))

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, rows: Tensor) -> Tensor:
        """Rows (B,) int64 as uint8 (B, S, S) or (B, S, S, 3); see ImageStream.

        Raises:
            DataError: a file that cannot be decoded, by its name.
        """
        images = np.empty((len(rows), *self.shape[1:]), np.uint8)
        for image, row in zip(images, rows.tolist(), strict=True):
            image[:] = decoded(self.paths[row], side=self._side, colour=self._colour)
        return torch.from_numpy(images)

    def __getitem__(self, rows: slice | Tensor) -> "ImageFiles":
        """Some of these, by a slice, (R,) int64 or (N,) bool, as of a tensor; none is read."""
        chosen = np.array(self.paths, object)[rows if isinstance(rows, slice) else rows.numpy()]
        return ImageFiles(chosen.tolist(), image_size=self._side, colour=self._colour)
