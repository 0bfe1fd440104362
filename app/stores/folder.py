"""Artefacts in a folder of this machine, each in a file."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from app.storage import UNFINISHED, About, Storage, said

CHECKED = f"{UNFINISHED}check"


@dataclass(frozen=True, slots=True)
class FolderStorage(Storage):
    """A folder of artefacts, which all processes share."""

    root: Path

    def path(self, key: str) -> Path:
        """Where the artefact lies, or would.

        Raises:
            ValueError: the key leaves the root.
        """
        path = (self.root / key).resolve()
        if not path.is_relative_to(self.root.resolve()) or path == self.root.resolve():
            raise ValueError(f"a storage key must stay below the root: {key!r}")
        return path

    @contextmanager
    def create(self, key: str) -> Iterator[BinaryIO]:
        """As Storage has it: a file beside it is synced and takes its name."""
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=UNFINISHED, delete=False) as file:
            try:
                yield file  # type: ignore[misc]  # the wrapper is a BinaryIO in all but name
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                Path(file.name).unlink(missing_ok=True)  # its folder may have been deleted meanwhile
                raise
        Path(file.name).replace(path)

    def read(self, key: str, *, offset: int = 0, length: int = -1) -> bytes:
        """As Storage has it."""
        with said(), self.path(key).open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def tail(self, key: str, length: int) -> bytes:
        """As Storage has it; also where it cannot be read."""
        try:
            with self.path(key).open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - length))
                return file.read()
        except OSError:
            return b""

    def file(self, key: str) -> Path:
        """As Storage has it."""
        path = self.path(key)
        with said():
            path.stat()
        return path

    def about(self, key: str) -> About | None:
        """As Storage has it."""
        path = self.path(key)
        return _about(key, path.stat()) if path.is_file() else None

    def listed(self, prefix: str = "") -> Iterator[About]:
        """As Storage has it; what does not belong to us is listed as well."""
        return self._walk(prefix, is_finished=True)

    def unfinished(self) -> Iterator[About]:
        """As Storage has it."""
        return self._walk("", is_finished=False)

    def _walk(self, prefix: str, *, is_finished: bool) -> Iterator[About]:
        root = self.root.resolve()
        waiting = [str(self.path(prefix) if prefix else root)]
        while waiting:
            with suppress(FileNotFoundError), os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif entry.name.startswith(UNFINISHED) is not is_finished:
                        key = Path(entry.path).relative_to(root).as_posix()
                        with suppress(FileNotFoundError):
                            yield _about(key, entry.stat(follow_symlinks=False))

    def names(self, prefix: str) -> set[str]:
        """As Storage has it; of empty folders, too."""
        try:
            return {path.name for path in self.path(prefix).iterdir()}
        except (FileNotFoundError, NotADirectoryError):
            return set()

    def paths(self, prefix: str, depth: int) -> set[str]:
        """As Storage has it; of empty folders, too."""
        names = self.names(prefix)
        if depth == 1:
            return names
        inside = {f"{name}/{path}" for name in names for path in self.paths(f"{prefix}/{name}", depth - 1)}
        return names | inside

    def move(self, key: str, to: str) -> None:
        """As Storage has it."""
        target = self.path(to)
        target.parent.mkdir(parents=True, exist_ok=True)
        self.path(key).replace(target)

    def delete(self, key: str) -> bool:
        """As Storage has it."""
        try:
            self.path(key).unlink()
        except FileNotFoundError:
            return False
        return True

    def delete_tree(self, prefix: str) -> None:
        """As Storage has it."""
        shutil.rmtree(self.path(prefix), ignore_errors=True)

    def drop_empty(self, prefix: str) -> None:
        """As Storage has it."""
        with suppress(OSError):  # there is something in it yet, or it is no more
            self.path(prefix).rmdir()

    @contextmanager
    def local(self, *_keys: str) -> Iterator["FolderStorage"]:
        """As Storage has it: everything is here already."""
        yield self

    def keep(self, folder: "FolderStorage", prefix: str) -> None:
        """As Storage has it: what was written is here already."""

    def spool(self) -> Path:
        """As Storage has it: beside the artefacts, because /tmp is memory on many systems."""
        folder = self.path("uploads")
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def free_bytes(self) -> int:
        """As Storage has it: what is free on the disk."""
        self.root.mkdir(parents=True, exist_ok=True)
        return shutil.disk_usage(self.root).free

    def holds(self, path: Path) -> bool:
        """As Storage has it."""
        return path.resolve().is_relative_to(self.root.resolve())

    def check(self) -> None:
        """As Storage has it."""
        self.root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self.root, prefix=CHECKED) as file:
            file.write(b"x")

    def patiently(self, patience_s: float, *, beat: Callable[[], None] = lambda: None) -> "FolderStorage":  # noqa: ARG002
        """As Storage has it: a folder is there or not."""
        return self

    @property
    def words(self) -> str:
        """As Storage has it."""
        return str(self.root)


def _about(key: str, found: os.stat_result) -> About:
    changed_at = datetime.fromtimestamp(found.st_mtime, UTC)
    return About(key, found.st_size, changed_at, str(found.st_mtime_ns))
