"""Images, snapshots, checkpoints and models: bytes under a key. What every place for them can do.

The places are in `app/stores`: a folder, or a bucket of an S3 store. Artefacts are immutable but for logs and
checkpoints of trials, which are only ever taken whole, by `local`.
"""

import errno
import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from app.errors import Conflict

if TYPE_CHECKING:
    from app.stores.folder import FolderStorage

UNFINISHED = ".new-"  # how names begin of what is still being written


class StorageAway(Exception):
    """The place of artefacts does not answer, or refuses us; nothing is known of what was asked last."""


class StorageRefused(StorageAway):
    """The place of artefacts answers, and refuses us: settings of this machine are wrong, or its clock."""

    @property
    def sentence(self) -> str:
        """What is wrong, and what to do."""
        return f"{self}. Mend CLARINET_S3_* of this machine, or its clock."


class StoredFileMissing(Conflict):
    """The database knows of an artefact whose file is not where artefacts are kept."""

    title = "Stored file missing"

    def __init__(self) -> None:
        super().__init__(
            "A file that this needs is no longer in the server's folder of data (CLARINET_DATA_DIR) or in "
            "its bucket (CLARINET_S3_BUCKET). Restore it from a backup, or make this anew."
        )


class StoredFileDamaged(Conflict):
    """A file of an artefact is there, but it is not what was written, or cannot be read."""

    title = "Stored file damaged"

    def __init__(self) -> None:
        super().__init__(
            "A file that this needs is in the server's folder of data (CLARINET_DATA_DIR) or in its bucket "
            "(CLARINET_S3_BUCKET), but it is damaged or cannot be read. Restore it from a backup, or make "
            "this anew."
        )


# A folder in a file's place, a file that belongs to somebody else, a disk that fails.
_UNREADABLE = frozenset({errno.EISDIR, errno.EACCES, errno.EPERM, errno.EIO})


@contextmanager
def said() -> Iterator[None]:
    """What the system refuses, as what it means."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise StoredFileMissing from None
    except OSError as error:
        if error.errno not in _UNREADABLE:
            raise
        raise StoredFileDamaged from error


@dataclass(frozen=True, slots=True)
class _Opened:
    """A file that is open, the same as another one while nothing was written."""

    device: int
    inode: int
    size: int
    changed_ns: int
    file: BinaryIO = field(compare=False)


@lru_cache(maxsize=1000)
def _digest_of(opened: _Opened) -> str:
    return hashlib.file_digest(opened.file, "sha256").hexdigest()  # type: ignore[arg-type]  # it can readinto


@dataclass(frozen=True, slots=True)
class About:
    """What is known of an artefact without reading it."""

    key: str
    size: int  # bytes
    changed_at: datetime
    version: str  # another one once other bytes are there


class Storage(ABC):
    """A place of artefacts. Keys are written by us, never by users.

    Any of these raises StorageAway where the place does not answer, for as long as it is patient.
    """

    @abstractmethod
    def create(self, key: str) -> AbstractContextManager[BinaryIO]:
        """Write an artefact; it appears whole, when the block ends well, or not at all."""

    @abstractmethod
    def read(self, key: str, *, offset: int = 0, length: int = -1) -> bytes:
        """Bytes of an artefact, or of a part of it.

        Raises:
            StoredFileMissing: it is not there.
            StoredFileDamaged: what is there cannot be read.
        """

    @abstractmethod
    def tail(self, key: str, length: int) -> bytes:
        """The last bytes of an artefact, also of one that grows; b"" where there is none."""

    @abstractmethod
    def file(self, key: str) -> Path:
        """Where the whole artefact can be read on this machine at this moment; nobody may write there.

        Raises:
            StoredFileMissing: it is not there.
        """

    @abstractmethod
    def about(self, key: str) -> About | None:
        """What is known of an artefact; None: there is none."""

    @abstractmethod
    def listed(self, prefix: str = "") -> Iterator[About]:
        """Every artefact below a prefix; what is still being written, or goes meanwhile, is left out."""

    def unfinished(self) -> Iterator[About]:
        """What is being written, or never was finished because its writer died.

        A place that takes artefacts whole has none of it.
        """
        return iter(())

    @abstractmethod
    def names(self, prefix: str) -> set[str]:
        """Names directly below a prefix, of artefacts and of what has some below it."""

    def paths(self, prefix: str, depth: int) -> set[str]:
        """What lies below a prefix, as paths of at most so many names, of one listing."""
        found: set[str] = set()
        for about in self.listed(prefix):
            names = about.key.removeprefix(f"{prefix}/").split("/")[:depth]
            found.update("/".join(names[:count]) for count in range(1, len(names) + 1))
        return found

    @abstractmethod
    def move(self, key: str, to: str) -> None:
        """Give an artefact another key, in the place of what may be there."""

    @abstractmethod
    def delete(self, key: str) -> bool:
        """Delete an artefact; whether there was one."""

    @abstractmethod
    def delete_tree(self, prefix: str) -> None:
        """Delete every artefact below a prefix; nothing there is fine."""

    @abstractmethod
    def drop_empty(self, prefix: str) -> None:
        """Forget a prefix below which nothing is left."""

    @abstractmethod
    def local(self, *keys: str) -> AbstractContextManager["FolderStorage"]:
        """A folder in which these artefacts lie by path while the block lasts, for what works by paths.

        What is written there stays on this machine until it is kept. For a folder it is the folder itself.

        Raises:
            StoredFileMissing: one of them is not there; in a folder, once it is read.
        """

    @abstractmethod
    def keep(self, folder: "FolderStorage", prefix: str) -> None:
        """Store the file of a key, or all files below a prefix, that were written into what `local` gave."""

    @abstractmethod
    def spool(self) -> Path:
        """A folder for files that are on their way in."""

    @abstractmethod
    def free_bytes(self) -> int | None:
        """What can still be stored; None: nobody can say."""

    @abstractmethod
    def holds(self, path: Path) -> bool:
        """Whether a path of this machine lies where artefacts are kept."""

    @abstractmethod
    def check(self) -> None:
        """Write something, read it back and delete it; raises what is wrong."""

    @abstractmethod
    def patiently(self, patience_s: float, *, beat: Callable[[], None] = lambda: None) -> "Storage":
        """The same place, waited for so long, in seconds.

        `beat` is called again and again while one waits, from whatever thread, and must not raise.
        """

    @property
    @abstractmethod
    def words(self) -> str:
        """Where that is, for people."""

    def link(self, key: str, digest: str) -> str | None:  # noqa: ARG002 - for places that have addresses
        """An address at which anybody can fetch an artefact for minutes, without us; None: there is none.

        Args:
            key: of the artefact.
            digest: the SHA-256, in hex, that it must have.

        Raises:
            StoredFileMissing: it is not there.
            StoredFileDamaged: these are other bytes.
        """
        return None

    def open(self, key: str) -> BinaryIO:
        """A whole artefact, to read from any place.

        Raises:
            StoredFileMissing: it is not there.
            StoredFileDamaged: what is there cannot be read.
        """
        with said():
            return self.file(key).open("rb")

    def put(self, key: str, data: bytes) -> str:
        """Store bytes; gives their SHA-256 in hex."""
        with self.create(key) as file:
            file.write(data)
        return hashlib.sha256(data).hexdigest()

    def size_and_digest(self, key: str) -> tuple[int, str]:
        """Bytes and SHA-256, in hex, of an artefact of any size; it is read again only once it has changed.

        Raises:
            StoredFileMissing: it is not there.
            StoredFileDamaged: what is there cannot be read.
        """
        # By what is open, not by its path: a cache may make room for others at any moment.
        with said(), self.open(key) as file:
            about = os.fstat(file.fileno())
            opened = _Opened(about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, file)
            return about.st_size, _digest_of(opened)

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
