"""What the processes of a run have alike: configuration, data, and the checkpoint from which they go on."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

import torch

from clarinet.distributed.group import Group
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import ConfigError


def require_same(group: Group, config: TrainConfig, data_digest: str) -> None:
    """Refuse, in all processes, what would let them train apart.

    Raises:
        ConfigError: another process has another configuration, other data or another version of torch.
    """
    if group.is_alone:
        return
    for what, value in (
        ("configuration", json.dumps(config.flat(), sort_keys=True)),
        ("images or labels", data_digest),
        ("version of torch", str(torch.__version__)),
    ):
        own = blake2b(value.encode(), digest_size=16).digest()
        if group.any(group.same_bytes(own) != own):
            raise ConfigError(
                f"the processes of this run do not have the same {what}; start all of them with the same "
                "arguments, files and program"
            )


@contextmanager
def leaders_file(group: Group, path: Path | None) -> Iterator[Path | None]:
    """The file at the leader's path, for the others a copy of it: their host may lack it. None for none."""
    if group.is_alone or path is None:
        yield path if path and path.exists() else None
        return
    content = group.same_bytes(path.read_bytes() if group.leads and path.exists() else None)
    if content is None or group.leads:
        yield None if content is None else path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_bytes(content)
        yield copy
