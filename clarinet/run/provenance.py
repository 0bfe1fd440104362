"""What a number rests on besides its config and data: versions, machine, threads."""

import os
import platform
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from clarinet.networks.precision import in_bfloat16


def environment(device: torch.device) -> dict[str, Any]:
    """Versions and hardware of this process, as plain JSON values."""
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "clarinet": _version("clarinet"),
        "code": code_digest(),
        "device": device.type,
        "gpu": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
        "processor": processor(),
        "bfloat16": in_bfloat16("bfloat16", device),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }


@cache
def code_digest() -> str:
    """A digest of this package's files, in hexadecimal: they change between releases, the version does not.

    Of a run that several processes trained, one after the other, it is the last one's.
    """
    package = Path(__file__).parent
    digest = blake2b(digest_size=6)
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def processor() -> str:
    """The processor's name where Linux tells it, else the architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
