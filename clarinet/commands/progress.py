"""What `clarinet train` shows of a run: a bar on a terminal, lines elsewhere, TensorBoard where wanted."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clarinet.commands.options import percent
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.doing import Doing
from clarinet.recipes.scoring import ScoredOn
from clarinet.recipes.source_accuracy import in_words
from clarinet.run.pacing import Paced

if TYPE_CHECKING:
    from clarinet.run.results import EpochReport, TrainResult

Show = Callable[["EpochReport"], None]
LINE_S = 10.0  # at least between two lines of what a run is doing
NOT_MEASURED = "the accuracy on the target was not measured: no image of it has one of these classes"


@dataclass(frozen=True, slots=True)
class Shown:
    """What to call after each epoch, and with what the run does while no epoch ends."""

    on_epoch: Show
    on_doing: Callable[[Doing], None]


@contextmanager
def shown(config: TrainConfig, *, quiet: bool, log_dir: Path | None) -> Iterator[Shown]:
    """What to call while a run trains.

    Args:
        config: of the run.
        quiet: show nothing; a log is written all the same.
        log_dir: folder for TensorBoard's events, or None.

    Raises:
        ConfigError: a log is wanted, and the package is missing or there is a file in the folder's place.
    """
    with ExitStack() as stack:
        shows: list[Show] = []
        if log_dir is not None:
            shows.append(stack.enter_context(_tensorboard(log_dir)))
        progress = Shown(_ignore, _ignore)
        if not quiet:
            progress = stack.enter_context(_bar(config)) if sys.stdout.isatty() else _lines()
        shows.append(progress.on_epoch)

        def show(report: "EpochReport") -> None:
            for each in shows:
                each(report)

        yield Shown(show, progress.on_doing)


def _ignore(told: object) -> None:
    pass


def _lines() -> Shown:
    def say(doing: Doing) -> None:
        print(doing.sentence(), flush=True)

    return Shown(_line, Paced(say, every_s=LINE_S))


@contextmanager
def _bar(config: TrainConfig) -> Iterator[Shown]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("epochs"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[told]}"),
    )
    with Progress(*columns) as progress:
        task = progress.add_task(f"seed {config.seed}", total=config.length.epochs, told="")

        def show(report: "EpochReport") -> None:
            progress.update(task, completed=report.epoch, told=_accuracies(report))

        def say(doing: Doing) -> None:
            progress.update(task, told=doing.sentence())

        yield Shown(show, say)


def _line(report: "EpochReport") -> None:
    losses = ", ".join(f"{name} {value:.4f}" for name, value in report.losses.items())
    progress = f"epoch {report.epoch}/{report.epochs}  {report.seconds:6.1f} s"
    print(f"{progress}  {_accuracies(report)}  {losses}", flush=True)


def _accuracies(report: "EpochReport") -> str:
    found = report.source_estimate
    source = "-" if found is None or found.estimate is None else in_words(found)
    return f"target {percent(report.target_accuracy)}  source (estimated) {source}"


def say_how_well(result: "TrainResult") -> None:
    """What is known of a finished run: the target first, the source as what it is, an estimate."""
    known, found = result.target_accuracy, result.reports[-1].source_estimate
    on_target = NOT_MEASURED if known is None else measured(known, result.scored_on)
    print(f"seed {result.config.seed}, {result.seconds:.0f} s: {on_target}")
    if found is not None:
        print(f"seed {result.config.seed}: on the source, estimated from held-out answers: {in_words(found)}")


def measured(accuracy: float, scored: ScoredOn) -> str:
    """An accuracy with its interval, and the images that it was measured on."""
    return f"{percent(accuracy)} ({scored.interval_in_words(accuracy)}) on the target, {scored.in_words()}"


@contextmanager
def _tensorboard(folder: Path) -> Iterator[Show]:
    """Each loss and each figure of a report as a scalar over the optimiser's steps."""
    from clarinet.run.loggers import TensorBoardLogger

    logger = TensorBoardLogger(folder)
    logger.open()  # what cannot be written is refused before the training
    try:
        yield logger.log
    finally:
        logger.close()
