"""What streams look at every second: whether anything of a run has changed, and which epochs are new."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from sqlalchemy import or_, select
from sqlalchemy.orm import Session, selectinload

from app.runs.errors import RunNotFound
from app.runs.models import Metric, Run, Trial, TrialState, doing_of


def pulse_of(session: Session, run_id: UUID) -> tuple[dict[str, Any], bool]:
    """What followers of a run compare: states, epochs and what is done, by seed; whether it is over.

    One small query, for streams that ask every second.

    Raises:
        RunNotFound: it is gone.
    """
    told = (Trial.seed, Trial.state, Trial.doing, Trial.doing_done, Trial.doing_total)
    epoch = Trial.last_metric["epoch"].as_integer()
    rows = session.execute(select(*told, epoch).where(Trial.run_id == run_id).order_by(Trial.seed)).all()
    if not rows:
        raise RunNotFound
    trials = [
        {
            "seed": seed,
            "state": state.value,
            "epoch": epoch or 0,
            "doing": asdict(doing) if (doing := doing_of(kind, done, total)) else None,
        }
        for seed, state, kind, done, total, epoch in rows
    ]
    over = all(state not in (TrialState.QUEUED, TrialState.RUNNING) for _, state, *_ in rows)
    return {"trials": trials}, over


def metrics_after(
    session: Session, run_id: UUID, known: Sequence[int], *, upto: Sequence[int]
) -> tuple[Run, list[Metric]]:
    """A run with its trials, and what these reported after the epochs that are `known`, by seed, as it came.

    A trial that went on from behind what is known tells its last epoch again.
    """
    run = session.scalars(select(Run).where(Run.id == run_id).options(selectinload(Run.trials))).one()
    new = [
        (Metric.trial_id == trial.id)
        & (Metric.epoch > (seen if seen < last else last - 1))
        & (Metric.epoch <= last)
        for trial, seen, last in zip(run.trials, known, upto, strict=True)
        if seen != last
    ]
    return run, list(session.scalars(select(Metric).where(or_(*new)).order_by(Metric.recorded_at, Metric.id)))
