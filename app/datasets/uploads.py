"""Files on their way in: kept below uploads/<id of the import> until the intake has read them."""

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal
from uuid import UUID

from app.datasets.errors import BadUpload, PathNotAllowed
from app.storage import Storage

Kind = Literal["auto", "zip", "npz"]
# Of the names in a zip that does not say it; "" finds out.
NamesEncoding = Literal[
    "", "utf-8", "gb18030", "big5", "cp932", "cp949", "cp437", "cp850", "cp866", "cp1252", "cp1251"
]
FirstClass = Literal["", "0", "1"]  # from which number an npz counts classes; "": from 0, if that can be
SKIP_BAD, SAY_ENCODING = "skip_bad", "say_encoding"  # by which a failed import may still succeed
ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")  # npz files are zips, too
COPY_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Upload:
    """What somebody wants imported: open files at their beginning, and what they were called."""

    file: BinaryIO
    filename: str
    kind: Kind = "auto"
    table: BinaryIO | None = None  # a CSV beside the zip
    table_name: str = ""
    skip_bad: bool = False  # go on without files that cannot be taken in
    encoding: NamesEncoding = ""
    classes: str = ""  # names for numbers, one a line
    first_class: FirstClass = ""
    no_label: str = ""  # what stands for a class that nobody knows


def upload_prefix(import_id: UUID) -> str:
    """Storage prefix of the files as they came."""
    return f"uploads/{import_id}"


def store_upload(storage: Storage, import_id: UUID, upload: Upload) -> dict[str, Any]:
    """Copy the files into storage; gives what the intake needs to know of them.

    Raises:
        BadUpload: the file is no zip or npz by its first bytes; nothing was kept.
    """
    head = upload.file.read(4)
    upload.file.seek(0)
    name = _name_of(upload.filename) or "upload"
    if not head.startswith(ZIP_MAGIC):
        raise BadUpload(
            "The file is empty; nothing was stored."
            if not head
            else "The file is neither a zip nor an npz (a zip of arrays); nothing was stored."
        )
    prefix = upload_prefix(import_id)
    _copy(storage, f"{prefix}/data", upload.file)
    kept: dict[str, Any] = {"kind": upload.kind, "name": name, "data": f"{prefix}/data"}
    kept |= {"skip_bad": upload.skip_bad, "encoding": upload.encoding, "classes": upload.classes}
    kept |= {"first_class": upload.first_class, "no_label": upload.no_label}
    if upload.table is not None:
        _copy(storage, f"{prefix}/table", upload.table)
        kept |= {"table": f"{prefix}/table", "table_name": _name_of(upload.table_name) or "table.csv"}
    return kept


def _name_of(given: str) -> str:
    """The last part of what a file was called, as far as it can be shown."""
    return "".join(filter(str.isprintable, Path(given.replace("\\", "/").replace("\0", "")).name))


@contextmanager
def open_server_file(path: str, roots: Sequence[Path]) -> Iterator[BinaryIO]:
    """Open a file below one of `roots`, whatever links lead there.

    What was checked is the open file itself, not a path that could lead elsewhere a moment later.

    Raises:
        PathNotAllowed: missing, no plain file, or outside the roots; says the same in all cases, so that
            nobody can learn which files the server has.
    """
    try:
        descriptor = _open_below(path, roots)
    except (OSError, ValueError, RuntimeError) as error:  # not there, a NUL in it, a circle of links
        raise PathNotAllowed from error
    with os.fdopen(descriptor, "rb") as file:
        yield file


def _open_below(path: str, roots: Sequence[Path]) -> int:
    real = Path(path).resolve(strict=True)
    if not any(real.is_relative_to(root.resolve()) for root in roots):
        raise PathNotAllowed
    # NONBLOCK: opening a pipe would wait for its writer.
    descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    opened = os.fstat(descriptor)
    # A folder on the way may have been swapped between resolving and opening.
    is_same = real.resolve(strict=True) == real and os.path.samestat(real.stat(), opened)
    if not is_same or not stat.S_ISREG(opened.st_mode):
        os.close(descriptor)
        raise PathNotAllowed
    return descriptor


def _copy(storage: Storage, key: str, source: BinaryIO) -> None:
    with storage.create(key) as file:
        shutil.copyfileobj(source, file, COPY_BYTES)
