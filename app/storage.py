"""Images, snapshots and checkpoints: bytes under a key, in a folder."""

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from app.errors import Conflict


class StoredFileMissing(Conflict):
    """The database knows of an artefact whose file is not in the folder of artefacts."""

    title = "Stored file missing"

    def __init__(self) -> None:
        super().__init__(
            "A file that this needs is no longer in the server's folder of data (CLARINET_DATA_DIR). "
            "Restore the folder from a backup, or make this anew."
        )


class StoredFileDamaged(Conflict):
    """A file of an artefact is there, but it is not what was written, or cannot be read."""

    title = "Stored file damaged"

    def __init__(self) -> None:
        super().__init__(
            "A file that this needs is in the server's folder of data (CLARINET_DATA_DIR), but it is damaged "
            "or cannot be read. Restore the folder from a backup, or make this anew."
        )


# A folder in a file's place, a file that belongs to somebody else, a disk that fails.
_UNREADABLE = frozenset({errno.EISDIR, errno.EACCES, errno.EPERM, errno.EIO})


@contextmanager
def _said() -> Iterator[None]:
    """What the system refuses, as what it means."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise StoredFileMissing from None
    except OSError as error:
        if error.errno not in _UNREADABLE:
            raise
        raise StoredFileDamaged from error


@lru_cache(maxsize=1000)
def _digest_of(path: Path, _size: int, _changed_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class Storage:
    """A folder of immutable artefacts. Keys are written by us, never by users."""

    root: Path

    def path(self, key: str) -> Path:
        """Where the artefact lies.

        Raises:
            ValueError: the key leaves the root.
        """
        path = (self.root / key).resolve()
        if not path.is_relative_to(self.root.resolve()) or path == self.root.resolve():
            raise ValueError(f"a storage key must stay below the root: {key!r}")
        return path

    @contextmanager
    def create(self, key: str) -> Iterator[BinaryIO]:
        """Write an artefact; it appears whole, when the block ends well, or not at all."""
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file:
            try:
                yield file  # type: ignore[misc]  # the wrapper is a BinaryIO in all but name
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                Path(file.name).unlink(missing_ok=True)  # its folder may have been deleted meanwhile
                raise
        Path(file.name).replace(path)

    def move(self, key: str, to: str) -> None:
        """Give an artefact another key, in the place of what may be there."""
        target = self.path(to)
        target.parent.mkdir(parents=True, exist_ok=True)
        self.path(key).replace(target)

    def put(self, key: str, data: bytes) -> str:
        """Store bytes; gives their SHA-256 in hex."""
        with self.create(key) as file:
            file.write(data)
        return hashlib.sha256(data).hexdigest()

    def read(self, key: str, *, offset: int = 0, length: int = -1) -> bytes:
        """Bytes of an artefact, or of a part of it.

        Raises:
            StoredFileMissing: it is not there.
            StoredFileDamaged: what is there cannot be read.
        """
        with _said(), self.path(key).open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def size_and_digest(self, key: str) -> tuple[int, str]:
        """Bytes and SHA-256, in hex, of an artefact of any size; it is read again only once it has changed.

        Raises:
            StoredFileMissing: it is not there.
            StoredFileDamaged: what is there cannot be read.
        """
        with _said():
            path = self.path(key)
            about = path.stat()
            return about.st_size, _digest_of(path, about.st_size, about.st_mtime_ns)

    def read_as_written(self, key: str, digest: str, *, offset: int = 0, length: int = -1) -> bytes:
        """Bytes of an artefact whose SHA-256, in hex, was kept.

        Raises:
            StoredFileMissing: it is not there.
            StoredFileDamaged: it cannot be read, or these are other bytes.
        """
        data = self.read(key, offset=offset, length=length)
        if hashlib.sha256(data).hexdigest() != digest:
            raise StoredFileDamaged
        return data

    def delete_tree(self, prefix: str) -> None:
        """Delete every artefact below a prefix; nothing there is fine."""
        shutil.rmtree(self.path(prefix), ignore_errors=True)
