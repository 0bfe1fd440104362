"""Tensors on disk, of checkpoints and models: one safetensors file, JSON in its header, replaced whole.

Nothing is ever unpickled: a file from elsewhere can be wrong, but it cannot run code.
"""

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from clarinet.files.json_text import json_of
from clarinet.recipes.errors import CheckpointError, CheckpointNotWritten

FORMAT_VERSION = 1
HEADER_KEY = "clarinet"
DIGEST = "weights"  # where the header has the tensors' digest; model files have had it from the first on
ANOTHER = "bring another copy of it, or train anew"
REST = "rest"  # where it has the digest of all else that it says


def write_tensors(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, Any], *, kind: str) -> None:
    """Replace `path` in one step, so that a reader or a crash sees the old file or the new one, never a part.

    Args:
        path: file to write; its folder is made.
        tensors: any tensors by name.
        header: JSON values stored with them.
        kind: what the file is, checked when it is read.

    Raises:
        CheckpointNotWritten: no space, no permission, no folder; what was at `path` is still there.
    """
    versions = {"torch": str(torch.__version__), "python": platform.python_version()}
    contents = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    ours = {
        "kind": kind,
        "format_version": FORMAT_VERSION,
        "versions": versions,
        DIGEST: tensors_digest(contents),
    }
    said = {**header, **ours}
    text = json.dumps(said | {REST: _digest_of_json(said)})
    with replacing(path) as temporary:
        temporary.touch()
        usual = temporary.stat().st_mode
        save_file(contents, temporary, {HEADER_KEY: text})
        temporary.chmod(usual)  # safetensors leaves it to its owner alone, whatever the umask says


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file to write, which takes the place of `path` when the block ends well.

    Raises:
        CheckpointNotWritten: the disk refuses it; what was at `path` is still there.
    """
    temporary = _beside(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
    except (OSError, SafetensorError) as error:
        raise CheckpointNotWritten(f"{path} cannot be written: {error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Refuse before a long run what `replacing` would refuse after it; makes the folder, and leaves no file.

    Raises:
        CheckpointNotWritten: no space, no permission, no folder, or a folder at `path`.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError("it is a folder")
        temporary = _beside(path)
        try:
            temporary.write_bytes(b"clarinet")
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise CheckpointNotWritten(f"{path} cannot be written: {error}") from error


def _beside(path: Path) -> Path:
    # Two containers that share a disk may share process ids.
    return path.with_name(f".{path.name}.{uuid4().hex}.tmp")


def _sync(path: Path) -> None:
    """Wait until a file, or a folder's entries, are on the disk; a power cut can undo a bare rename."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_tensors(path: str | Path, *, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `write_tensors` wrote: the tensors on the CPU by name, and the header.

    Files of before there were digests are taken as they are.

    Raises:
        CheckpointError: missing, damaged, of another kind or of an unknown format version.
    """
    try:
        with safe_open(path, framework="pt") as file:
            header = json_of((file.metadata() or {})[HEADER_KEY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    if not isinstance(header, dict) or header.get("kind") != kind:
        raise CheckpointError(f"{path} does not hold a {kind}; name a file that does")
    if header.get("format_version") != FORMAT_VERSION:
        raise CheckpointError(
            f"{path} has format version {header.get('format_version')}, not {FORMAT_VERSION}; the version "
            "of clarinet that wrote it can read it"
        )
    digest = header.pop(REST, None)
    if digest is not None and digest != _digest_of_json(header):
        raise CheckpointError(f"{path} is damaged: its header says other things than were written; {ANOTHER}")
    if DIGEST in header and header[DIGEST] != tensors_digest(tensors):
        raise CheckpointError(f"{path} is damaged: it holds other tensors than were written; {ANOTHER}")
    return tensors, header


def _digest_of_json(values: Mapping[str, Any]) -> str:
    """SHA-256 of JSON values as they are read again: tuples as lists, keys as text."""
    read_again = json.loads(json.dumps(values))
    return hashlib.sha256(json.dumps(read_again, sort_keys=True).encode()).hexdigest()


def tensors_digest(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256, in hex, over names, types, shapes and contents of tensors, in the order of their names.

    Equal weights have equal digests whatever else a file says: its header, where this stands, is left out.
    """
    digest = hashlib.sha256()
    for name in sorted(tensors):
        value = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name}{tuple(value.shape)}{value.dtype}".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
