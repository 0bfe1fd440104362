"""How a process joins those that train a run with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist

from clarinet.distributed.group import ALONE, Group
from clarinet.recipes.errors import ConfigError

# One may still read or decode what another has in its memory; who dies is noticed by who started it.
PATIENCE = timedelta(hours=1)


@contextmanager
def joined(rank: int, size: int, meeting: str, *, device: torch.device) -> Iterator[Group]:
    """Be one of several processes for as long as the block lasts.

    Args:
        rank: which one, counted from 0.
        size: how many they are; one alone joins nobody.
        meeting: where they find each other, as `torch.distributed` names it: `env://`, `tcp://HOST:PORT` or
            `file://PATH` with a path that all of them see and where nothing is yet.
        device: on which this one trains.

    Raises:
        ConfigError: they do not find each other.
    """
    if size == 1:
        yield ALONE
        return
    # Wishes and files go between processors, whatever the networks are on.
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(device)
    try:
        dist.init_process_group(backend, init_method=meeting, rank=rank, world_size=size, timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        raise ConfigError(
            f"process {rank} of {size} did not find the others at {meeting}: {error}"
        ) from error
    try:
        yield Group(rank, size)
    finally:
        dist.destroy_process_group()
