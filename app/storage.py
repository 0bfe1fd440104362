"""Images, snapshots and checkpoints: bytes under a key, in a folder."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
                Path(file.name).unlink()
                raise
        Path(file.name).replace(path)

    def put(self, key: str, data: bytes) -> str:
        """Store bytes; gives their SHA-256 in hex."""
        with self.create(key) as file:
            file.write(data)
        return hashlib.sha256(data).hexdigest()

    def read(self, key: str, *, offset: int = 0, length: int = -1) -> bytes:
        """Bytes of an artefact, or of a part of it.

        Raises:
            StoredFileMissing: it is not there.
        """
        try:
            with self.path(key).open("rb") as file:
                file.seek(offset)
                return file.read(length)
        except FileNotFoundError:
            raise StoredFileMissing from None

    def delete_tree(self, prefix: str) -> None:
        """Delete every artefact below a prefix; nothing there is fine."""
        shutil.rmtree(self.path(prefix), ignore_errors=True)
