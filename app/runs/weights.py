"""Files of trained weights in the folder that the operator names: listed and hashed, never read as weights.

This process knows no torch. What a file holds is for the training process to read, tensors alone.
"""

import hashlib
import os
import stat
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from app.accounts import service as accounts
from app.accounts.models import User
from app.datasets.errors import PathNotAllowed
from app.datasets.uploads import open_server_file
from app.runs.errors import WeightsFolderUnusable

ENDINGS = (".safetensors", ".pt", ".pth")  # the latter two: a state dict
DIGESTS = 1_000  # that are remembered; a file of 100 MB takes a good part of a second to hash


@dataclass(frozen=True, slots=True)
class WeightsFile:
    """A file that training could start from.

    Args:
        name: of the file in its folder.
        size_bytes: of the file.
        digest: SHA-256 of its bytes; None while somebody writes it, or if this process may not read it.
    """

    name: str
    size_bytes: int
    digest: str | None


class _Changing(Exception):
    """Somebody wrote the file while it was hashed."""


def weights_files(folder: Path, *, by: User) -> list[WeightsFile]:
    """The files that lie directly in the folder, by name, with one of the ENDINGS in any case.

    Left out are hidden files, links that lead out of the folder, what is no plain file, and names that cannot
    be shown. The first look at a file reads it whole, and so does the first after it changed.

    Raises:
        NotAllowed: `by` is no admin.
        WeightsFolderUnusable: it is not there, no folder, or closed to this process.
    """
    accounts.require_admin(by)
    try:
        root = folder.resolve(strict=True)
        paths = sorted(root.iterdir())
    except (OSError, RuntimeError) as error:  # RuntimeError: a circle of links
        raise WeightsFolderUnusable(folder, _reason(error)) from error
    found = [_look(path, root) for path in paths if _is_named_so(path)]
    return [file for file in found if file is not None]


def _is_named_so(path: Path) -> bool:
    # A name that is no UTF-8 holds surrogates, which are not printable.
    is_shown = path.name.isprintable() and not path.name.startswith(".")
    return is_shown and path.suffix.lower() in ENDINGS


def _look(path: Path, root: Path) -> WeightsFile | None:
    try:
        real = path.resolve(strict=True)
        found = real.stat()
    except (OSError, RuntimeError):  # gone meanwhile, or a link that leads nowhere
        return None
    if not real.is_relative_to(root) or not stat.S_ISREG(found.st_mode):
        return None
    try:
        digest = _digest(real, root, found.st_size, found.st_mtime_ns)
    except (_Changing, PathNotAllowed, OSError):
        digest = None
    return WeightsFile(path.name, found.st_size, digest)


@lru_cache(maxsize=DIGESTS)
def _digest(real: Path, root: Path, size_bytes: int, changed_ns: int) -> str:
    with open_server_file(str(real), [root]) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # it has readinto
        after = os.fstat(file.fileno())
    if (after.st_size, after.st_mtime_ns) != (size_bytes, changed_ns):
        raise _Changing
    return digest


def _reason(error: OSError | RuntimeError) -> str:
    match error:
        case FileNotFoundError():
            return "is not there"
        case NotADirectoryError():
            return "is no folder"
        case PermissionError():
            return "may not be read by the server"
        case _:
            return "cannot be opened"
