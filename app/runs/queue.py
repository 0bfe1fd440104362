"""Whose turn it is: runs take turns, trial by trial, those of a higher priority before all others."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Select, case, func, select
from sqlalchemy.orm import Session

from app.claims import Claim
from app.runs import configs
from app.runs.models import Priority, Run, Trial, TrialState
from app.runs.trials import claim_trial, free

log = structlog.get_logger()

RANKS = {Priority.HIGH: 0, Priority.NORMAL: 1, Priority.LOW: 2}
# Workers that look at the same moment want the same trial; each but one goes on to the next.
TRIES = 50


def _in_order(now: datetime) -> Select[UUID]:
    """Ids of the trials that wait, the next one first.

    Each run has one trial in the first round, one in the second and so on. In a round that run comes first
    which began none of its trials for the longest time. In a run those go first that have begun already.
    """
    last_begun = (
        select(Trial.run_id, func.max(Trial.started_at).label("at")).group_by(Trial.run_id).subquery()
    )
    turn = func.row_number().over(
        partition_by=Trial.run_id, order_by=(Trial.started_at.is_(None), Trial.seed)
    )
    return (
        select(Trial.id)
        .join(Run, Run.id == Trial.run_id)
        .outerjoin(last_begun, last_begun.c.run_id == Trial.run_id)
        .where(*free(now))
        .order_by(
            case(RANKS, value=Run.priority),
            turn,
            func.coalesce(last_begun.c.at, Run.created_at),
            Run.number,
            Trial.seed,
        )
    )


def claim_next(
    session: Session, *, by: str, now: datetime, knows: Callable[[Mapping[str, Any]], bool] = configs.is_known
) -> Claim | None:
    """Take the trial whose turn it is; None if nothing waits that this process can train.

    What a later version asks for, with settings that this one does not know, is left to its workers.
    """
    known: list[UUID] = []
    left = 0
    for trial_id, config in session.execute(_in_order(now).add_columns(Run.config)):
        if knows(config):
            known.append(trial_id)
        else:
            left += 1
        if len(known) == TRIES:
            break
    if left:
        log.info("trials.left_to_newer_workers", count=left)
    claims = (claim_trial(session, trial_id, by=by, now=now) for trial_id in known)
    return next((claim for claim in claims if claim), None)


def places(session: Session, runs: Sequence[Run], *, now: datetime) -> dict[UUID, int]:
    """Where the waiting trials of these runs stand, from 1 for the next one, by trial id; runs with trials.

    Empty where none of these runs has a trial that waits.
    """
    trials = {trial.id: trial.state for run in runs for trial in run.trials}
    if TrialState.QUEUED not in trials.values():
        return {}
    order = enumerate(session.scalars(_in_order(now)), start=1)
    return {trial_id: place for place, trial_id in order if trial_id in trials}
