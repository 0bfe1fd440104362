"""What the run page shows beyond a run's rows: means over seeds, and whether anybody will train it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean
from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from app.runs.faults import WORDS
from app.runs.models import Metric, Run, Trial, TrialState, Worker
from app.runs.shares import odd_shares
from app.runs.summary import is_set_back
from app.runs.workers import SEEN, can_split, training_workers

TOO_FEW = (
    "The run trains in {} processes, each on a GPU of its own (CLARINET_GPUS) or, without GPUs, a core. "
    "This worker has {}."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """Figures over the seeds that ended well, and the losses of the last epochs.

    Args:
        classes: names in the campaign's order.
        per_class: (name, mean accuracy or None where no image that scores has the class).
        confusion: summed counts [true][predicted]; None until a seed has ended.
        losses: (name, mean over the seeds), of each seed's last epoch.
        failures: (seed, whose fault in words or "", first line, further lines) of trials that failed.
        setbacks: unfinished trials that a worker could not train, and that have not gone on since.
        odd: (seed, what is odd about the classes that it takes the target's pictures for).
        counts: (name, complementary labels, true labels) by class.
    """

    classes: list[str]
    per_class: list[tuple[str, float | None]]
    confusion: list[list[int]] | None
    losses: list[tuple[str, float]]
    failures: list[tuple[int, str, str, str]]
    setbacks: list[Trial]
    odd: list[tuple[int, str]]
    counts: list[tuple[str, int, int]]


@dataclass(frozen=True, slots=True)
class Silence:
    """Nobody takes trainings: how long ago somebody was seen, in seconds; None: never.

    Where workers are there, `troubles` says by host why each of them takes none, or not this one.
    """

    seconds: float | None
    troubles: tuple[tuple[str, str], ...] = ()


def details_of(run: Run, latest: Mapping[UUID, Metric], *, target: str) -> Details:
    """The figures of a run whose trials are loaded; `target`: what the dataset is called."""
    facts = run.snapshot_facts
    classes = list(facts["classes"])
    results = [trial.result for trial in run.trials if trial.result]
    scored = [result for result in results if result.get("confusion")]
    losses: dict[str, list[float]] = {}
    for trial in run.trials:
        if trial.id in latest:
            for name, value in latest[trial.id].losses.items():
                losses.setdefault(name, []).append(value)
    return Details(
        classes=classes,
        per_class=_per_class(classes, scored),
        confusion=_summed([result["confusion"] for result in scored]),
        losses=[(name.replace("_", " "), fmean(values)) for name, values in losses.items()],
        failures=[
            (trial.seed, WORDS[trial.fault] if trial.fault else "", *_first_line(trial.failure))
            for trial in run.trials
            if trial.failure is not None
        ],
        setbacks=[trial for trial in run.trials if is_set_back(trial, latest.get(trial.id))],
        odd=[
            (trial.seed, words)
            for trial in run.trials
            if trial.result and (words := odd_shares(trial.result, classes, target))
        ],
        counts=list(zip(classes, facts["complementary"], facts["true"], strict=True)),
    )


def silent_workers_since(session: Session, run: Run, *, now: datetime) -> Silence | None:
    """Set when a trial of the run waits, not for people, and no worker is there that takes trainings."""
    if run.is_paused or not any(trial.state is TrialState.QUEUED for trial in run.trials):
        return None
    workers = training_workers(session)
    if not workers:
        return Silence(None)
    age = now - workers[0].seen_at
    if age > SEEN:
        return Silence(age.total_seconds())
    here = [worker for worker in workers if worker.seen_at > now - SEEN]
    told = [(worker.host or worker.name, _trouble(worker, run)) for worker in here]
    troubles = tuple((host, trouble) for host, trouble in told if trouble)
    return Silence(0.0, troubles) if len(troubles) == len(here) else None


def _trouble(worker: Worker, run: Run) -> str | None:
    """Why a worker does not take a run."""
    leaves_it_to_a_cluster = worker.most_processes == 0
    if worker.trouble or leaves_it_to_a_cluster or can_split(worker, run.processes):
        return worker.trouble
    return TOO_FEW.format(run.processes, worker.most_processes)


def _per_class(classes: Sequence[str], results: Sequence[dict[str, Any]]) -> list[tuple[str, float | None]]:
    rows = []
    for position, name in enumerate(classes):
        values = [result["per_class_accuracy"][position] for result in results]
        known = [value for value in values if value is not None]
        rows.append((name, fmean(known) if known else None))
    return rows


def _summed(matrices: Sequence[list[list[int]]]) -> list[list[int]] | None:
    if not matrices:
        return None
    return [[sum(cells) for cells in zip(*rows, strict=True)] for rows in zip(*matrices, strict=True)]


def _first_line(text: str) -> tuple[str, str]:
    first, _, rest = text.partition("\n")
    return first, rest.strip()
