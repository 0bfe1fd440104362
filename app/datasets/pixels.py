"""Stored pictures -> arrays for training. No torch: the web process may import this."""

import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
from PIL import Image

from app.datasets.intake.shards import UNKNOWN_CLASS, shard_key
from app.storage import Storage

THREADS = 4
BATCH = 512  # images a thread takes at a time; smaller ones spend their time on handing over
GREY = 1


@dataclass(frozen=True, slots=True)
class Images:
    """Pixels of a split, in position order."""

    ids: list[int]  # example ids
    arrays: np.ndarray  # uint8, (N, H, W) grey or (N, H, W, 3) RGB
    true_classes: np.ndarray  # int64, (N,), -1 where unknown; to score, never to train on the target


class Place(NamedTuple):
    """Where the bytes of an example lie."""

    id: int
    true_class: int | None
    shard: int
    byte_offset: int
    byte_length: int


def decode(
    storage: Storage, prefix: str, places: Sequence[Place], *, size: tuple[int, int], channels: int
) -> Images:
    """Decode examples to one size (height, width) and number of channels, one shard in memory at a time."""
    height, width = size
    shape = (len(places), height, width) if channels == GREY else (len(places), height, width, channels)
    arrays = np.empty(shape, np.uint8)
    mode = "L" if channels == GREY else "RGB"

    def fill(data: bytes, first: int, batch: Sequence[Place]) -> None:
        for index, place in enumerate(batch, first):
            file = io.BytesIO(data[place.byte_offset : place.byte_offset + place.byte_length])
            with Image.open(file, formats=("PNG", "JPEG")) as image:
                picture = image.convert(mode)
            if picture.size != (width, height):
                picture = picture.resize((width, height), Image.Resampling.BILINEAR)
            arrays[index] = np.asarray(picture)

    done = 0
    with ThreadPoolExecutor(THREADS) as threads:
        for shard, group in groupby(places, key=lambda place: place.shard):
            inside = list(group)
            data = storage.read(shard_key(prefix, shard))
            starts = range(0, len(inside), BATCH)
            batches = [(data, done + start, inside[start : start + BATCH]) for start in starts]
            for _ in threads.map(lambda batch: fill(*batch), batches):
                pass  # raises what a thread raised
            done += len(inside)
    return Images(
        [place.id for place in places],
        arrays,
        np.array(
            [UNKNOWN_CLASS if place.true_class is None else place.true_class for place in places], np.int64
        ),
    )
