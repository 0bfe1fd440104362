"""Checkpoints and models on disk: one safetensors file with JSON in its header, replaced atomically.

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

from clarinet.cards import model_card
from clarinet.errors import CheckpointError, CheckpointNotWritten, ConfigError
from clarinet.networks import Classifier, ModelSpec
from clarinet.training_result import TrainResult

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
    ours = {"kind": kind, "format_version": FORMAT_VERSION, "versions": versions, DIGEST: _digest(contents)}
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
    """Read what `write_tensors` wrote.

    Files of before there were digests are taken as they are.

    Raises:
        CheckpointError: missing, damaged, of another kind or of an unknown format version.
    """
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {})[HEADER_KEY])
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
    if DIGEST in header and header[DIGEST] != _digest(tensors):
        raise CheckpointError(f"{path} is damaged: it holds other tensors than were written; {ANOTHER}")
    return tensors, header


def save_model(path: str | Path, result: TrainResult, *, card: Mapping[str, Any] | None = None) -> None:
    """Write a trained classifier with its card; `load_model` and `load_card` read them.

    Args:
        path: file to write, replaced in one step.
        result: the finished run.
        card: from `model_card`; None makes one that says nothing about data and labels.

    Raises:
        CheckpointNotWritten: the disk refuses it.
    """
    path = Path(path)
    header = {"spec": result.model.spec.to_dict(), "card": dict(card or model_card(result))}
    write_tensors(path, result.model.state_dict(), header, kind="model")


def load_model(path: str | Path) -> Classifier:
    """Rebuild a classifier from `save_model`, on the CPU and in eval mode.

    Args:
        path: the safetensors file.

    Raises:
        CheckpointError: the file cannot be read, is damaged, or does not fit its own description.
    """
    tensors, header = read_tensors(path, kind="model")
    try:
        model = Classifier(ModelSpec(**header["spec"]))
        model.load_state_dict(tensors)
    except (KeyError, TypeError, RuntimeError, ConfigError) as error:
        raise CheckpointError(f"{path} does not fit its own description: {error}") from error
    return model.eval()


def load_card(path: str | Path) -> dict[str, Any]:
    """The card that `save_model` wrote: plain JSON values by name, see `cards.model_card`.

    Args:
        path: the safetensors file.

    Raises:
        CheckpointError: the file cannot be read, or has none.
    """
    card = read_tensors(path, kind="model")[1].get("card")
    if not isinstance(card, dict):
        raise CheckpointError(f"{path} has no model card")
    return card


def _digest_of_json(values: Mapping[str, Any]) -> str:
    """SHA-256 of JSON values as they are read again: tuples as lists, keys as text."""
    read_again = json.loads(json.dumps(values))
    return hashlib.sha256(json.dumps(read_again, sort_keys=True).encode()).hexdigest()


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over names, types, shapes and contents; not over the file, whose header holds it."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        value = tensors[name]  # on the CPU and contiguous
        digest.update(f"{name}{tuple(value.shape)}{value.dtype}".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
