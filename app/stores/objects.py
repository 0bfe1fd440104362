"""What requests about objects of a bucket share: keys, pieces of files, and words."""

import os
from collections.abc import Iterator
from typing import Any, BinaryIO

from app.storage import About

PART = 8 * 2**20  # bytes of a request; S3 takes 10,000 parts

_used_in: dict[str, int] = {}  # obstore's threads live in the process that used it first


def refuse_after_fork() -> None:
    """Raise where obstore would hang for ever: in a process that was forked after it was used."""
    if _used_in.setdefault("process", os.getpid()) != os.getpid():
        raise RuntimeError("this process was forked from one that has used a bucket; start a fresh one")


def checked(key: str) -> str:
    """The key; raises ValueError where it leaves the root."""
    if not key or any(part in {"", ".", ".."} for part in key.split("/")):
        raise ValueError(f"a storage key must stay below the root: {key!r}")
    return key


def about_of(found: Any) -> About:
    """What a store says of an object."""
    version = found["e_tag"] or found["last_modified"].isoformat()
    return About(found["path"], found["size"], found["last_modified"], version)


def pieces_of(file: BinaryIO, size: int) -> Iterator[bytes]:
    """The first bytes of a file, some at once."""
    file.seek(0)
    while size > 0 and (piece := file.read(min(PART, size))):
        size -= len(piece)
        yield piece


def first_line(error: Exception) -> str:
    """What an error says, in short."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
