"""Several runs on one device, which take their steps in turn.

A run of small networks leaves most of a GPU idle. Each run has a stream of its own, whose kernels fill what
the others leave. Each has a random state of its own, too, so it learns what it would learn alone.
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import TypeVar

import torch

from clarinet.recipes.errors import ConfigError, Interrupted

Result = TypeVar("Result")
Run = Generator[None, None, Result]
"""A run that stops after each of its steps and returns its result at the end."""


def finished(run: Run[Result]) -> Result:
    """Take all steps of one run."""
    while True:
        try:
            next(run)
        except StopIteration as end:
            result: Result = end.value
            return result


def take_turns(runs: Iterable[Run[Result]], device: torch.device, *, at_once: int) -> list[Result]:
    """Take the steps of several runs by turns.

    Args:
        runs: each is begun when one before it has ended, beyond the first so many.
        device: of all of them.
        at_once: how many have begun and not ended, at most; at least 1.

    Returns:
        Their results, in the order of the runs.

    Raises:
        ConfigError: at_once is below 1.
        Interrupted: the first of the runs that was, after all that have begun have been interrupted or ended.
        Exception: whatever else a run raises, at once.
    """
    if at_once < 1:
        raise ConfigError(f"at_once is {at_once}; at least one run must take its steps")
    waiting = iter(enumerate(runs))
    results: dict[int, Result] = {}
    interrupted: Interrupted | None = None
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), ExitStack() as begun:
        free = [Lane(device) for _ in range(at_once)]
        active: list[tuple[int, Run[Result], Lane]] = []
        while True:
            if interrupted is None:
                for number, run in islice(waiting, len(free)):
                    begun.callback(run.close)
                    active.append((number, run, free.pop()))
            if not active:
                break
            for turn in list(active):
                number, run, lane = turn
                try:
                    with lane.taken():
                        next(run)
                    continue
                except StopIteration as end:
                    results[number] = end.value
                except Interrupted as error:
                    interrupted = interrupted or error
                lane.left()
                active.remove(turn)
                free.append(lane)
    if interrupted:
        raise interrupted
    return [results[number] for number in sorted(results)]


class Lane:
    """Where one run after the other takes its turns: on a GPU a stream and a random state, else nothing."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # torch has no types here
            self._stream.wait_stream(torch.cuda.current_stream(device))
            self._random = torch.Generator(device)

    def left(self) -> None:
        """Let what comes after on the caller's stream wait for what was done here."""
        if self._device.type == "cuda":
            torch.cuda.current_stream(self._device).wait_stream(self._stream)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """What is done inside is done there."""
        if self._device.type != "cuda":
            yield
            return
        index = torch.cuda.current_device() if self._device.index is None else self._device.index
        common = torch.cuda.default_generators[index]
        before = common.graphsafe_get_state()
        common.graphsafe_set_state(self._random)
        try:
            with torch.cuda.stream(self._stream):
                yield
        finally:
            common.graphsafe_set_state(before)
