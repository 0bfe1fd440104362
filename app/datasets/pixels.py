"""Stored pictures -> arrays for training. No torch: the web process may import this."""

import io
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
from PIL import Image

from app.datasets.intake.shards import shard_key
from app.storage import Storage, StoredFileDamaged
from clarinet.files.names import NO_LABEL
from clarinet.files.pictures import opened
from clarinet.files.refusal import Refused
from clarinet.recipes.doing import OnPart, silently

THREADS = 4
BATCH = 512  # images a thread takes at a time; smaller ones spend their time on handing over
GREY = 1


class Place(NamedTuple):
    """Where the bytes of an example lie."""

    id: int
    true_class: int | None
    shard: int
    byte_offset: int
    byte_length: int


@contextmanager
def opened_stored(content: bytes) -> Iterator[Image.Image]:
    """A picture that an import stored; what fails while it is used is the stored file's fault.

    Raises:
        StoredFileDamaged: these are not the bytes of one.
    """
    try:
        with opened(io.BytesIO(content), "", formats=("PNG", "JPEG")) as image:
            yield image
    except Refused as error:
        raise StoredFileDamaged from error


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredImages:
    """The pictures of a split in position order, in one size and number of channels, decoded when asked for.

    Safe to read from several threads at once. Reading raises StoredFileMissing or StoredFileDamaged where the
    server has lost one.
    """

    storage: Storage
    prefix: str
    places: Sequence[Place]
    size: tuple[int, int]  # height, width; a picture of another one is scaled to it, smoothed
    channels: int

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, H, W) of grey or (N, H, W, 3) of RGB pictures."""
        return (len(self.places), *self.size, *(() if self.channels == GREY else (self.channels,)))

    @property
    def nbytes(self) -> int:
        """Of all pictures at once."""
        return math.prod(self.shape)

    @property
    def ids(self) -> list[int]:
        """N example ids."""
        return [place.id for place in self.places]

    @property
    def true_classes(self) -> np.ndarray:
        """(N,) int64, -1 where unknown; to score, never to train on the target."""
        known = [NO_LABEL if place.true_class is None else place.true_class for place in self.places]
        return np.array(known, np.int64)

    def load(self, on_part: OnPart = silently) -> np.ndarray:
        """All of them, uint8 of this shape; one shard's bytes in memory at a time. Tells when it gets on."""
        arrays = np.empty(self.shape, np.uint8)

        def fill(data: bytes, first: int, batch: Sequence[Place]) -> None:
            for index, place in enumerate(batch, first):
                arrays[index] = self._decoded(data[place.byte_offset : place.byte_offset + place.byte_length])

        done = 0
        with ThreadPoolExecutor(THREADS) as threads:
            for shard, group in groupby(self.places, key=lambda place: place.shard):
                inside = list(group)
                data = self.storage.read(shard_key(self.prefix, shard))
                starts = range(0, len(inside), BATCH)
                batches = [(data, done + start, inside[start : start + BATCH]) for start in starts]
                for _ in threads.map(lambda batch: fill(*batch), batches):
                    on_part()  # the loop raises what a thread raised
                done += len(inside)
        return arrays

    def read(self, rows: Sequence[int]) -> np.ndarray:
        """Some of them, R rows: uint8 of this shape but for its first number."""
        arrays = np.empty((len(rows), *self.shape[1:]), np.uint8)
        for array, row in zip(arrays, rows, strict=True):
            place = self.places[row]
            key = shard_key(self.prefix, place.shard)
            array[:] = self._decoded(
                self.storage.read(key, offset=place.byte_offset, length=place.byte_length)
            )
        return arrays

    def _decoded(self, content: bytes) -> np.ndarray:
        height, width = self.size
        with opened_stored(content) as image:
            picture = image.convert("L" if self.channels == GREY else "RGB")
        if picture.size != (width, height):
            picture = picture.resize((width, height), Image.Resampling.BILINEAR)
        return np.asarray(picture)
