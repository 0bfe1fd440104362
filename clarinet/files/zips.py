"""Zip files, npz among them: members by their path, and damage of any kind as a refusal."""

import lzma
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from clarinet.files.foreign import LONG_ENOUGH, why_no_zip
from clarinet.files.refusal import Refused

# What truncated or damaged members raise while they are read.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,
    EOFError,
    OSError,
    ValueError,
    IndexError,
    RuntimeError,  # and NotImplementedError
)


class Members:
    """The files in a zip.

    Args:
        file: an open zip.
        name: what a refusal calls it: a stranger's name for it, or where it lies.
        members: those that count; None takes all.
    """

    def __init__(
        self, file: zipfile.ZipFile, name: str | Path, members: Mapping[str, zipfile.ZipInfo] | None = None
    ) -> None:
        self._file = file
        self.name = name
        self.members = {info.filename: info for info in file.infolist()} if members is None else members

    def called(self, path: str) -> str | Path:
        """What a refusal calls a member: with the zip's own place, if that is on this machine."""
        return self.name / path if isinstance(self.name, Path) else path

    def size(self, path: str) -> int:
        """What the zip says that a member has, unpacked, in bytes."""
        return self.members[path].file_size

    @contextmanager
    def open(self, path: str) -> Iterator[IO[bytes]]:
        """A member as a stream.

        Raises:
            Refused: damage, found while it is read.
        """
        try:
            with self._file.open(self.members[path]) as stream:
                yield stream
        except Refused:
            raise
        except DAMAGE as error:
            raise Refused(self.called(path), f"is cut short or damaged inside {self.name}") from error


@contextmanager
def open_zip(path: Path, name: str | Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip.

    Raises:
        Refused: none, or one that cannot be read.
    """
    try:
        file = zipfile.ZipFile(path)
    except DAMAGE as error:
        if isinstance(error, OSError) and error.strerror:
            raise Refused(name, f"cannot be read: {error.strerror}") from error
        raise Refused(name, why_no_zip(_head(path))) from error
    with file:
        yield file


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LONG_ENOUGH)
