"""`clarinet train` in several processes: by torchrun, by whatever sets its variables, or by `--processes`."""

import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clarinet.commands.options import named_device
from clarinet.recipes.errors import ConfigError

if TYPE_CHECKING:
    import torch

    from clarinet.distributed.group import Group

MEETING = "CLARINET_MEETING"  # where processes of `--processes` find each other; torchrun's do at MASTER_ADDR
PARENT = "CLARINET_PARENT"  # who started them
LOOK_S = 0.1
GRACE_S = 20.0  # for what others still have to say or to write once one has ended


@dataclass(frozen=True, slots=True)
class Place:
    """Which process of how many this one is, in all and on its host, and where they find each other."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    meeting: str = ""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Place":
        """As torchrun's variables say.

        Raises:
            ConfigError: they say something else than numbers.
        """
        meeting = environment.get(MEETING) or ("env://" if "MASTER_ADDR" in environment else "")
        if not meeting or "WORLD_SIZE" not in environment:
            return cls()
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
        try:
            rank, size, local_rank, local_size = (int(environment[name]) for name in names)
        except (KeyError, ValueError) as error:
            raise ConfigError(
                f"{', '.join(names)} must say which process this is, as torchrun sets them: {error}"
            ) from error
        return cls(rank, size, local_rank, local_size, meeting)


@contextmanager
def taking_part(device: str) -> "Iterator[tuple[Group, torch.device]]":
    """Be the process that the environment says, with a device of its own; all but the leader are silent.

    Args:
        device: auto, cpu or cuda.

    Raises:
        ConfigError: a host has fewer GPUs than processes, or they do not find each other.
    """
    import torch

    from clarinet.distributed.joining import joined

    place, found = Place.of(os.environ), named_device(device)
    if place.size > 1 and found.type == "cuda":
        gpus = torch.cuda.device_count()
        if gpus < place.local_size:
            raise ConfigError(
                f"{place.local_size} processes of this host would share {gpus} GPUs; start as many as there "
                "are, or take --device cpu"
            )
        found = torch.device("cuda", place.local_rank)
    _end_with(os.environ.get(PARENT))
    with joined(place.rank, place.size, place.meeting, device=found) as group, ExitStack() as stack:
        if not group.leads:
            stack.enter_context(redirect_stdout(io.StringIO()))
            stack.enter_context(redirect_stderr(io.StringIO()))
        yield group, found


def is_started_apart(environment: Mapping[str, str]) -> bool:
    """Whether this process is one of several already."""
    return Place.of(environment).size > 1


def run_together(words: Sequence[str], processes: int) -> int:
    """Run `python -m clarinet WORDS` in several processes of this host; gives the exit status.

    What ends one of them ends all. Ctrl-C and SIGTERM ask all of them to stop, a second one at once.
    """
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        running = [
            subprocess.Popen(
                [sys.executable, "-m", "clarinet", *words],
                env=_environment(rank, processes, f"file://{folder}/meeting"),
                start_new_session=True,  # a Ctrl-C reaches this process, which tells them
            )
            for rank in range(processes)
        ]

        def tell(_number: int, _frame: object) -> None:
            for process in running:
                with suppress(ProcessLookupError):
                    process.send_signal(signal.SIGTERM)

        for number in (signal.SIGINT, signal.SIGTERM):
            stack.callback(signal.signal, number, signal.signal(number, tell))
        try:
            return _watched(running)
        finally:
            for process in running:
                process.kill()
                process.wait()


def _environment(rank: int, processes: int, meeting: str) -> dict[str, str]:
    place = {"RANK": rank, "WORLD_SIZE": processes, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": processes}
    own = {MEETING: meeting, PARENT: str(os.getpid())} | {name: str(value) for name, value in place.items()}
    # Each would take all cores, and wait for the others at them.
    threads = {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // processes))}
    return threads | dict(os.environ) | own


def _watched(running: Sequence[subprocess.Popen[bytes]]) -> int:
    """The status of the first that ends badly, else 0; the others then have a grace."""
    status, deadline = 0, float("inf")
    while any(process.poll() is None for process in running) and time.monotonic() < deadline:
        status = status or _status(running)
        if status and deadline == float("inf"):
            deadline = time.monotonic() + GRACE_S
        time.sleep(LOOK_S)
    return status or _status(running)


def _status(running: Sequence[subprocess.Popen[bytes]]) -> int:
    """As a shell says it, of the first of them that has ended badly; 0: none has."""
    for process in running:
        code = process.poll()
        if code:
            return code if code > 0 else 128 - code
    return 0


def _end_with(parent: str | None) -> None:
    """End this process when the one that started it is gone."""
    if parent is None:
        return

    def watch() -> None:
        while os.getppid() == int(parent):
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, name="watch-parent", daemon=True).start()
