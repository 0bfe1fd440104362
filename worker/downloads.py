"""Which trained weights lie on this machine because they were downloaded once. Imports no torch."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MOST = 500  # names; more networks than that nobody trains
LONGEST = 120  # characters of a name
OF_HUB = "models--"  # begins the folder of a repository: models--timm--resnet18.a1_in1k


def downloaded_weights() -> list[str]:
    """Names of files in torch's cache, and of repositories in that of the Hugging Face hub, in order."""
    found: set[str] = set()
    for names in (_of_torch, _of_hugging_face):
        with suppress(RuntimeError):  # of a user without a home
            found.update(name[:LONGEST] for name in names())
    return sorted(found)[:MOST]


def _of_torch() -> Iterator[str]:
    home = os.environ.get("TORCH_HOME")
    folder = Path(home) if home else _caches() / "torch"
    for path in _in(folder.expanduser() / "hub" / "checkpoints"):
        if path.suffix in (".pth", ".pt", ".safetensors"):
            yield path.name


def _of_hugging_face() -> Iterator[str]:
    folder = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    home = os.environ.get("HF_HOME")
    if not folder:
        folder = str((Path(home) if home else _caches() / "huggingface") / "hub")
    for path in _in(Path(folder).expanduser()):
        if path.name.startswith(OF_HUB) and any(_in(path / "snapshots")):
            yield path.name.rpartition("--")[2]


def _caches() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()


def _in(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []
