"""A file that grows or is replaced for hours, such as a log or a checkpoint, kept as it changes."""

import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import structlog

from app.storage import Storage, StorageAway
from app.stores.folder import FolderStorage

log = structlog.get_logger()


class Mirror:
    """Keeps the file of a key while the block lasts, and once more at its end.

    Where storage is away the next look tries again: what is lost with this machine then is only the newest.

    Args:
        storage: where to keep it.
        folder: where it is written, from `storage.local`.
        key: of the file.
        every_s: seconds between two looks.
    """

    def __init__(self, storage: Storage, folder: FolderStorage, key: str, *, every_s: float) -> None:
        self._storage = storage
        self.folder = folder
        self._key = key
        self._every_s = every_s
        self._kept = folder.about(key)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="mirror", daemon=True)
        self._is_dropped = False

    def __enter__(self) -> Self:
        if self.folder is not self._storage:  # else it is written where it is kept
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        if not self._is_dropped:
            self._keep()

    @property
    def path(self) -> Path:
        """Where the file is written."""
        return self.folder.path(self._key)

    def drop(self) -> None:
        """Delete the file here and there, and keep it no more."""
        self._is_dropped = True
        self._end()
        self.folder.delete(self._key)
        try:
            self._storage.delete(self._key)
        except StorageAway:
            log.warning("storage.not_deleted", key=self._key)  # upkeep will

    def _end(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self._every_s):
            try:
                self._keep()
            except OSError:  # of this machine's disk; the next look, or the last one, may read it
                log.warning("storage.not_kept", key=self._key, exc_info=True)

    def _keep(self) -> None:
        about = self.folder.about(self._key)
        if about is None or about == self._kept:
            return
        try:
            self._storage.keep(self.folder, self._key)
        except FileNotFoundError:
            return  # dropped at this very moment, as what cannot be resumed is
        except StorageAway:
            log.warning("storage.away", key=self._key)
        else:
            self._kept = about
