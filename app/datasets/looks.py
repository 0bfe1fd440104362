"""What stored pictures look like, from a few of them: digits or photographs."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.datasets.intake.shards import shard_key
from app.datasets.models import Dataset, Example
from app.datasets.pixels import opened_stored
from app.storage import Storage
from clarinet.files.looks import LARGE_SIDE, evenly_spread, looks_among
from clarinet.recipes.choices import Looks

# A request waits for these; an import looks at as many as the library does.
MOST_IN_A_REQUEST = 64


class Stored(NamedTuple):
    """Where the bytes of a picture lie."""

    shard: int
    byte_offset: int
    byte_length: int


def positions_to_look_at(train: int, test: int, **most: int) -> list[int]:
    """Positions of the pictures that tell: of the train split, which comes first, or else of the other."""
    return list(evenly_spread(train or test, **most))


def looks_of_stored(storage: Storage, prefix: str, pictures: Iterable[Stored]) -> Looks:
    """What pictures below a storage prefix look like; one is in memory at a time."""
    return looks_among(_small(storage, prefix, picture) for picture in pictures)


def looks_of_dataset(session: Session, storage: Storage, dataset: Dataset, *, prefix: str) -> Looks:
    """What a ready dataset looks like: as its import found, else by a look at a few pictures now.

    Imports of earlier versions did not look. What is seen is not kept, so that a transaction that only reads
    may ask.

    Raises:
        StoredFileMissing, StoredFileDamaged: the server has lost a picture.
    """
    if dataset.looks is not None:
        return dataset.looks
    positions = positions_to_look_at(dataset.train_count, dataset.test_count, most=MOST_IN_A_REQUEST)
    rows = session.execute(
        select(Example.shard, Example.byte_offset, Example.byte_length)
        .where(Example.dataset_id == dataset.id, Example.position.in_(positions))
        .order_by(Example.position)
    )
    return looks_of_stored(storage, prefix, [Stored(*row) for row in rows])


def _small(storage: Storage, prefix: str, picture: Stored) -> np.ndarray:
    data = storage.read(
        shard_key(prefix, picture.shard), offset=picture.byte_offset, length=picture.byte_length
    )
    with opened_stored(data) as image:
        image.thumbnail((LARGE_SIDE, LARGE_SIDE))  # a JPEG decodes fewer pixels
        return np.asarray(image.convert("L" if image.mode == "L" else "RGB"))
