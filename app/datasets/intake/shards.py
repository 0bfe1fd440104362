"""Encoded pictures, packed into a few large files with one fixed-size record per picture.

A file per picture would cost an inode, an fsync and a directory entry each; 60,000 of them take minutes to
delete.
"""

import hashlib
import json
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO, NamedTuple, Self
from uuid import UUID

from app.datasets.intake.limits import SHARD_BYTES
from app.datasets.intake.pictures import Picture
from app.storage import Storage
from clarinet.files.names import NO_LABEL
from clarinet.files.splits import SPLITS

MEDIA_TYPES = ("image/png", "image/jpeg")
# split, media type, true class, shard, offset, length, width, height, SHA-256
LAYOUT = struct.Struct("<BBiIQIII32s")


@dataclass(frozen=True, slots=True)
class Incoming:
    """A picture on its way into a dataset."""

    split: str  # train or test
    true_class: int | None
    picture: Picture
    filename: str | None = None  # its path in the archive


class Record(NamedTuple):
    """Where a picture was put; one row of the example table."""

    split: str
    media_type: str
    true_class: int | None
    shard: int
    byte_offset: int
    byte_length: int
    width: int
    height: int
    digest: str  # SHA-256 of the bytes, hex
    filename: str | None = None

    def pack(self) -> bytes:
        """LAYOUT.size bytes."""
        return LAYOUT.pack(
            SPLITS.index(self.split),
            MEDIA_TYPES.index(self.media_type),
            NO_LABEL if self.true_class is None else self.true_class,
            self.shard,
            self.byte_offset,
            self.byte_length,
            self.width,
            self.height,
            bytes.fromhex(self.digest),
        )


def shard_prefix(dataset_id: UUID, claim_number: int) -> str:
    """Storage prefix of what one claimed import of a dataset packs."""
    return f"datasets/{dataset_id}/{claim_number}"


def shard_key(prefix: str, shard: int) -> str:
    """Storage key of a shard."""
    return f"{prefix}/shard-{shard:05d}.bin"


def index_key(prefix: str) -> str:
    """Storage key of the records; only needed until they are rows."""
    return f"{prefix}/index.bin"


def names_key(prefix: str) -> str:
    """Storage key of the file names, one a line in JSON; only needed until they are in rows."""
    return f"{prefix}/names.jsonl"


def delete_index(storage: Storage, prefix: str) -> None:
    """Delete what is only needed until the records are rows."""
    storage.delete(index_key(prefix))
    storage.delete(names_key(prefix))


def read_records(storage: Storage, prefix: str, *, chunk: int) -> Iterator[list[Record]]:
    """The records in position order, at most `chunk` at a time."""
    with (
        storage.open(index_key(prefix)) as file,
        storage.open(names_key(prefix)) as names,
    ):
        while data := file.read(chunk * LAYOUT.size):
            rows = LAYOUT.iter_unpack(data)
            yield [
                Record(
                    SPLITS[split],
                    MEDIA_TYPES[media],
                    None if true_class == NO_LABEL else true_class,
                    shard,
                    offset,
                    length,
                    width,
                    height,
                    digest.hex(),
                    json.loads(next(names)),
                )
                for split, media, true_class, shard, offset, length, width, height, digest in rows
            ]


class ShardWriter:
    """Packs pictures below a storage prefix, in position order; `with` closes the last shard and index."""

    def __init__(self, storage: Storage, prefix: str, *, shard_bytes: int = SHARD_BYTES) -> None:
        self._storage = storage
        self._prefix = prefix
        self._shard_bytes = shard_bytes
        self._files = ExitStack()
        self._shard_files = ExitStack()
        self._shard: BinaryIO | None = None
        self._number = -1
        self._offset = 0
        self._digest = hashlib.sha256()
        self.counts = dict.fromkeys(SPLITS, 0)
        self.size_bytes = 0
        self.channels = 1

    def __enter__(self) -> Self:
        self._index = self._files.enter_context(self._storage.create(index_key(self._prefix)))
        self._names = self._files.enter_context(self._storage.create(names_key(self._prefix)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shard_files.__exit__(kind, error, trace)
        self._files.__exit__(kind, error, trace)

    def add(self, incoming: Incoming) -> None:
        """Append a picture; its position is the number of pictures before it."""
        if incoming.split == "train" and self.counts["test"]:
            raise ValueError("the train split comes first")
        picture = incoming.picture
        if self._shard is None or self._offset + len(picture.data) > self._shard_bytes:
            self._start_shard()
        assert self._shard is not None  # just started
        digest = hashlib.sha256(picture.data)
        self._shard.write(picture.data)
        self._index.write(
            Record(
                incoming.split,
                picture.media_type,
                incoming.true_class,
                self._number,
                self._offset,
                len(picture.data),
                picture.width,
                picture.height,
                digest.hexdigest(),
            ).pack()
        )
        self._names.write(json.dumps(incoming.filename).encode() + b"\n")
        self._digest.update(digest.digest())
        self._offset += len(picture.data)
        self.size_bytes += len(picture.data)
        self.channels = max(self.channels, picture.channels)
        self.counts[incoming.split] += 1

    @property
    def shards(self) -> int:
        """How many there are."""
        return self._number + 1

    @property
    def digest(self) -> str:
        """SHA-256 over the pictures' digests in position order, hex."""
        return self._digest.hexdigest()

    def _start_shard(self) -> None:
        self._shard_files.close()
        self._number += 1
        self._offset = 0
        self._shard = self._shard_files.enter_context(
            self._storage.create(shard_key(self._prefix, self._number))
        )
