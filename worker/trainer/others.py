"""The other processes of a run in several, which the first one, with the claim, starts and watches.

Each of them trains its part of every batch. They die with the first, and what ends one of them badly ends the
first in the same way: so the supervisor, which watches that one alone, finds the same fault as if it were its
own.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import NoReturn, Self
from uuid import UUID

import torch

from clarinet.distributed.group import ALONE, Group
from clarinet.distributed.joining import joined
from clarinet.recipes.errors import ClarinetError, ConfigError
from worker.device import most_processes_without_gpu
from worker.trainer.exits import Exit
from worker.trainer.faults import WorkerUnfit, is_memory
from worker.trainer.given import PART

LOOK_S = 0.25
OWN_END_S = 10.0  # for the first one's own end, where it fails as another does: it tells more
NOTICED_S = 3.0  # until one that has died is seen to have


@dataclass(frozen=True, slots=True)
class Place:
    """Which process of a run this is, and where it finds the others."""

    rank: int = 0
    size: int = 1
    meeting: str = ""

    @classmethod
    def of(cls, words: Sequence[str]) -> Self:
        """From what `Others` wrote on the command line; of no words the first."""
        return cls(int(words[0]), int(words[1]), words[2]) if words else cls()

    @property
    def words(self) -> list[str]:
        """On a command line."""
        return [str(self.rank), str(self.size), self.meeting]


class OtherEnded(Exception):
    """Another process of the run ended badly, and this one cannot go on.

    Args:
        code: how it ended, as subprocess has it.
    """

    def __init__(self, code: int) -> None:
        super().__init__(f"another process of the run ended with {code}")
        self.code = code

    def follow(self) -> NoReturn:
        """End this process in the same way, from any of its threads."""
        if self.code < 0:
            # Only the main thread could give up a handler, and that one may wait in a collective.
            is_deadly = signal.getsignal(-self.code) is signal.SIG_DFL
            os.kill(os.getpid(), -self.code if is_deadly else signal.SIGKILL)
            time.sleep(NOTICED_S)  # one that leaves a core is taken up by whichever thread runs next
        os._exit(abs(self.code))


def device_of_part(device: torch.device, place: Place) -> torch.device:
    """Where a process trains: each on a GPU of its own, or without GPUs on a core.

    Raises:
        WorkerUnfit: the worker has fewer of them than the run has processes.
    """
    if place.size == 1:
        return device
    if device.type != "cuda":
        if place.size > (cores := most_processes_without_gpu()):
            raise WorkerUnfit(
                f"The run trains in {place.size} processes, each of which holds all images, and this worker "
                f"has no GPU and {cores} cores."
            )
        return device
    has = torch.cuda.device_count()
    if has < place.size:
        raise WorkerUnfit(
            f"The run trains in {place.size} processes, each on a GPU of its own, and this worker has {has} "
            "(CLARINET_GPUS)."
        )
    return torch.device("cuda", place.rank)


def share_cores(place: Place, threads: int) -> None:
    """Let each process of the run have its share of the cores, or the threads that the settings say."""
    if threads or place.size > 1:
        torch.set_num_threads(threads or max(1, (os.cpu_count() or 1) // place.size))


@contextmanager
def joined_here(place: Place, device: torch.device) -> Iterator[Group]:
    """`joined` for processes of one worker: what keeps them apart is this machine, and not their run.

    Raises:
        WorkerUnfit: they do not find each other.
    """
    with ExitStack() as stack:
        try:
            group = stack.enter_context(joined(place.rank, place.size, place.meeting, device=device))
        except ConfigError as error:
            raise WorkerUnfit(f"The processes of the run cannot work together here: {error}.") from error
        yield group


@dataclass(slots=True)
class Others:
    """The processes beside the first one, while it trains."""

    processes: list[subprocess.Popen[bytes]]
    _left: threading.Event = field(default_factory=threading.Event)

    def bad_end(self, *, within_s: float) -> OtherEnded | None:
        """How one of them ended badly, if one does within so many seconds; of several what tells most."""
        deadline = time.monotonic() + within_s
        while True:
            if codes := [code for process in self.processes if (code := process.poll())]:
                # Who loses a peer ends by an error of its own, which says nothing.
                return OtherEnded(min(codes, key=lambda code: (code == Exit.UNFORESEEN, code)))
            if time.monotonic() >= deadline:
                return None
            time.sleep(LOOK_S)

    def watch(self) -> None:
        """End this process as one of them has ended: it may wait for that one for ever."""
        while not self._left.wait(LOOK_S):
            ended = self.bad_end(within_s=0)
            if ended and not self._left.wait(OWN_END_S):
                ended.follow()

    def leave(self) -> None:
        """Watch them no more, and end them."""
        self._left.set()
        for process in self.processes:
            process.kill()
            process.wait()


@contextmanager
def with_others(
    size: int, trial_id: UUID, claim_number: int, *, device: torch.device, pipe: int
) -> Iterator[Group]:
    """Start the other processes of a run and lead them for as long as the block lasts.

    Raises:
        OtherEnded: one of them ended badly, and the block could not go on.
        WorkerUnfit: the worker has fewer GPUs than processes, or they do not find each other.
    """
    if size == 1:
        yield ALONE
        return
    first = Place(0, size)
    own_device = device_of_part(device, first)
    with tempfile.TemporaryDirectory() as folder:
        meeting = f"file://{folder}/meeting"
        command = [sys.executable, "-m", "worker.trainer", str(os.getpid()), PART]
        given = [str(trial_id), str(claim_number), str(pipe), "2"]  # they write where this process does
        others = Others(
            [
                # In this process's group, so that a signal for all of it reaches them.
                subprocess.Popen(
                    [*command, *Place(rank, size, meeting).words, *given],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[pipe],
                )
                for rank in range(1, size)
            ]
        )
        threading.Thread(target=others.watch, name="watch-others", daemon=True).start()
        try:
            with joined_here(replace(first, meeting=meeting), own_device) as group:
                yield group
        except (RuntimeError, ClarinetError) as error:
            # A peer that is gone shows in a collective first, before its end is seen.
            is_own = isinstance(error, ClarinetError) or is_memory(error)
            if not is_own and (ended := others.bad_end(within_s=NOTICED_S)):
                raise ended from error
            raise
        finally:
            others.leave()
