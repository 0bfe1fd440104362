"""Runs that take turns learn what each would learn alone, and end as each of them ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest
import torch

from clarinet.recipes.errors import ConfigError, Diverged, Interrupted
from clarinet.run.training import train, train_in_steps
from clarinet.run.turns import Run, take_turns
from tests.clarinet.factories import equal_weights, make_case

CPU = torch.device("cpu")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def counting(name: str, steps: int, told: list[str]) -> Run[str]:
    """A run that tells what it does."""
    told.append(f"{name} begins")
    try:
        for step in range(steps):
            told.append(f"{name} {step}")
            yield
    finally:
        told.append(f"{name} ends")
    return name


def test_so_many_take_their_steps_by_turns_and_others_follow() -> None:
    told: list[str] = []
    runs = (counting(name, steps, told) for name, steps in (("a", 1), ("b", 3), ("c", 1)))

    assert take_turns(runs, CPU, at_once=2) == ["a", "b", "c"]

    first = ["a begins", "a 0", "b begins", "b 0", "a ends", "b 1"]
    assert told == [*first, "b 2", "c begins", "c 0", "b ends", "c ends"]


@pytest.mark.long
@pytest.mark.parametrize("names", [("plus grey cc", "paper cc", "dann"), ("gac", "gac", "dan")])
def test_a_run_learns_in_turns_what_it_learns_alone(names: tuple[str, ...]) -> None:
    cases = [make_case(name) for name in names]
    torch.manual_seed(7)
    drawn_after = torch.rand(3)
    torch.manual_seed(7)

    together = take_turns((train_in_steps(*case) for case in cases), CPU, at_once=2)

    assert torch.equal(torch.rand(3), drawn_after)  # the caller's generator is where it was
    for case, result in zip(cases, together, strict=True):
        alone = train(*case)
        assert equal_weights(result.model, alone.model)
        assert [r.losses for r in result.reports] == [r.losses for r in alone.reports]


def test_all_are_interrupted_before_the_caller_hears_of_it() -> None:
    asked = count()
    told: list[str] = []

    def stopped(name: str) -> Run[None]:
        while True:
            if next(asked) >= 5:
                told.append(name)
                raise Interrupted(1, None)
            yield

    with pytest.raises(Interrupted):
        take_turns((stopped(name) for name in "abc"), CPU, at_once=2)

    assert sorted(told) == ["a", "b"]  # and c has not begun


def test_another_error_ends_all_at_once() -> None:
    told: list[str] = []

    def failing() -> Run[str]:
        yield
        raise Diverged(1, {"loss": float("nan")})

    with pytest.raises(Diverged):
        take_turns([counting("a", 100, told), failing()], CPU, at_once=2)

    assert told == ["a begins", "a 0", "a 1", "a ends"]


def test_no_turns_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least one run"):
        take_turns([counting("a", 1, [])], CPU, at_once=0)


@contextmanager
def hanging_after(seconds: float) -> Iterator[None]:
    """Graphs that disturb each other hang the GPU, which no Python error ends: the process is ended."""
    import faulthandler

    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@needs_gpu
@pytest.mark.parametrize("name", ["plus grey cc", "plus colour target", "paper cc", "paper pc colour", "dan"])
def test_runs_on_a_gpu_do_not_disturb_each_other(name: str) -> None:
    cuda = torch.device("cuda")
    config, data = make_case(name)
    configs = [config.changed(seed=seed, steps_per_epoch=40) for seed in range(4)]

    with hanging_after(60):
        runs = (train_in_steps(each, data, device=cuda) for each in configs)
        together = take_turns(runs, cuda, at_once=4)

    for each, result in zip(configs, together, strict=True):
        alone = train(each, data, device=cuda)
        for one, other in zip(result.reports, alone.reports, strict=True):
            assert one.losses == pytest.approx(other.losses, rel=0.02, abs=0.02)
