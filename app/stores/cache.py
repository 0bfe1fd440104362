"""What this machine keeps of a bucket: whole artefacts; the least lately used make room for others."""

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

LOCKS = 64  # files that keep two from fetching one artefact at once; several artefacts share one
LOCK = ".lock"
UNUSED_S = 7 * 24 * 3600.0
STALE_S = 3600.0  # a file that nobody has written for so long is of a process that died


@dataclass(frozen=True, slots=True)
class Cache:
    """A folder that all processes of a machine share; artefacts in it never change.

    It holds at most so many bytes, but always the artefact that came last. What `place` gives comes on top.
    What nobody has used for UNUSED_S goes when something comes: it may have been deleted from the bucket.
    """

    folder: Path
    max_bytes: int

    def find(self, key: str) -> Path | None:
        """Where an artefact lies, as used at this moment; None where it does not."""
        path = self._path(key)
        try:
            os.utime(path)
        except FileNotFoundError:
            return None
        return path

    def fetched(self, key: str, fetch: Callable[[BinaryIO], None]) -> Path:
        """The same, after `fetch` has written it where it was not there. It appears whole or not at all."""
        if found := self.find(key):
            return found
        with self._alone(key):
            if found := self.find(key):  # somebody else has fetched it meanwhile
                return found
            path = self._path(key)
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._made("new"), delete=False) as file:
                try:
                    fetch(file)  # type: ignore[arg-type]  # the wrapper is a BinaryIO in all but name
                    file.flush()
                    os.fsync(file.fileno())  # a name that outlives its bytes would be read as whole
                except BaseException:
                    Path(file.name).unlink(missing_ok=True)
                    raise
            Path(file.name).replace(path)
        self._make_room(but=path)
        return path

    def drop(self, key: str) -> None:
        """Forget an artefact."""
        self._path(key).unlink(missing_ok=True)

    @contextmanager
    def place(self) -> Iterator[Path]:
        """An empty folder while the block lasts; those of processes that died are deleted."""
        places = self._made("places")
        for left in places.iterdir():
            _delete_abandoned(left)
        folder = Path(tempfile.mkdtemp(dir=places))
        try:
            with (folder / LOCK).open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH)
                (folder / "files").mkdir()
                yield folder / "files"
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def spool(self) -> Path:
        """A folder for files without a name."""
        return self._made("new")

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(key.encode()).hexdigest()
        return self.folder / "files" / name[:2] / name

    def _made(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @contextmanager
    def _alone(self, key: str) -> Iterator[None]:
        number = int(self._path(key).name[:8], 16) % LOCKS
        with (self._made("locks") / str(number)).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def make_room(self, wanted: float) -> None:
        """Let the least lately used go until so many bytes are free on the disk, or nothing is left to go."""
        if self._free() >= wanted:
            return
        for _, _, path in sorted(self._found()):
            path.unlink(missing_ok=True)
            if self._free() >= wanted:
                return

    def _free(self) -> int:
        return shutil.disk_usage(self._made("files")).free

    def _found(self) -> list[tuple[float, int, Path]]:
        """When each was last used, its bytes and where it lies."""
        found = []
        for path in self._made("files").glob("*/*"):
            with suppress(FileNotFoundError):
                about = path.stat()
                found.append((about.st_mtime, about.st_size, path))
        return found

    def _make_room(self, *, but: Path) -> None:
        found = self._found()
        used = sum(size for _, size, _ in found)
        for last_used, size, path in sorted(found):
            if used <= self.max_bytes and last_used > time.time() - UNUSED_S:
                break
            if path != but:
                path.unlink(missing_ok=True)
                used -= size
        for path in self._made("new").iterdir():
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < time.time() - STALE_S:
                    path.unlink()


def _delete_abandoned(folder: Path) -> None:
    """Delete a place whose process has died; one that is just being made has no lock yet, or a young one."""
    try:
        with (folder / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if (folder / "files").is_dir():  # made after the lock was taken
                shutil.rmtree(folder, ignore_errors=True)
    except (FileNotFoundError, BlockingIOError):
        return
