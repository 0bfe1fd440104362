"""Files of trained weights in the folder that the operator names: listed and hashed, never read as weights.

This process knows no torch. What a file holds is for the training process to read, tensors alone.
"""

import hashlib
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from app.accounts import service as accounts
from app.accounts.models import User
from app.datasets.errors import PathNotAllowed
from app.datasets.uploads import open_server_file
from app.runs.configs import WITHOUT_A_FILE
from app.runs.errors import WeightsFolderUnusable
from clarinet.recipes.choices import TIMM

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
    return [WeightsFile(found.name, found.size_bytes, found.digest()) for found in _listed(folder)]


def weights_names(folder: Path | None, *, by: User) -> list[str]:
    """The names of the same files, none of which is read; none where no folder can be listed.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    try:
        return [] if folder is None else [found.name for found in _listed(folder)]
    except WeightsFolderUnusable:
        return []


def file_for(architecture: str, names: Sequence[str]) -> str | None:
    """The first file that is named after a network, as packages name them; whether it fits shows in training.

    "efficientnet-lite0-57934424.pth" is named after timm/tf_efficientnet_lite0.
    """
    wanted = _plain(architecture.removeprefix(TIMM).partition(".")[0])
    return next((name for name in names if f"{_plain(name)}-".startswith(f"{wanted}-")), None)


def _plain(name: str) -> str:
    """Small letters and digits, one hyphen for all else; without timm's mark of TensorFlow's networks."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).removeprefix("tf-")


def weights_asked_for(
    folder: Path | None, config: Mapping[str, object], *, by: User
) -> dict[str, str | None]:
    """The file that hyper-parameters name as trained weights, to its digest; nothing if the folder lacks it.

    The digest is None while somebody writes the file, or if this process may not read it.

    Raises:
        NotAllowed: `by` is no admin.
        WeightsFolderUnusable: it is not there, no folder, or closed to this process.
    """
    accounts.require_admin(by)
    name = config.get("pretrained", "")
    if folder is None or name in WITHOUT_A_FILE:
        return {}
    return {found.name: found.digest() for found in _listed(folder) if found.name == name}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a file of weights lies, behind links, and its size and time when it was looked at."""

    name: str
    real: Path
    root: Path
    size_bytes: int
    changed_ns: int

    def digest(self) -> str | None:
        try:
            return _digest(self.real, self.root, self.size_bytes, self.changed_ns)
        except (_Changing, PathNotAllowed, OSError):
            return None


def _listed(folder: Path) -> list[_Place]:
    try:
        root = folder.resolve(strict=True)
        paths = sorted(root.iterdir())
    except (OSError, RuntimeError) as error:  # RuntimeError: a circle of links
        raise WeightsFolderUnusable(folder, _reason(error)) from error
    places = [_place(path, root) for path in paths if _is_named_so(path)]
    return [place for place in places if place is not None]


def _is_named_so(path: Path) -> bool:
    # A name that is no UTF-8 holds surrogates, which are not printable.
    is_shown = path.name.isprintable() and not path.name.startswith(".")
    return is_shown and path.suffix.lower() in ENDINGS


def _place(path: Path, root: Path) -> _Place | None:
    try:
        real = path.resolve(strict=True)
        found = real.stat()
    except (OSError, RuntimeError):  # gone meanwhile, or a link that leads nowhere
        return None
    if not real.is_relative_to(root) or not stat.S_ISREG(found.st_mode):
        return None
    return _Place(path.name, real, root, found.st_size, found.st_mtime_ns)


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
