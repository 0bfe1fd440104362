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
from app.runs.workers import able_workers, can_split, live_workers, own_version, worker_of

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

    What a later version asks for, with settings that this one does not know, is left to its workers. So is
    a run in more processes than this worker has GPUs for, and what this worker could not train before, while
    another one of its version is there that could and has not tried it.
    """
    known: list[UUID] = []
    left = 0
    worker = worker_of(by)
    live = live_workers(session, now=now)
    own = next((found for found in live if found.process == worker), None)
    asked = _in_order(now).add_columns(Run.config, Run.processes, Trial.avoided)
    for trial_id, config, processes, avoided in session.execute(asked):
        if own is not None and not can_split(own, processes):
            continue
        if worker in avoided and able_workers(live, processes).difference(avoided, {worker}):
            continue
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


def claim_beside(session: Session, first: Claim, *, at_most: int, by: str, now: datetime) -> list[Claim]:
    """Take further trials of a claimed one's run, for the process that trains it; each by a claim of its own.

    Other workers that idle find their share. A trial whose process was lost once, or that a machine set back,
    trains alone from then on: so what one trial does to a process never ends another one's attempts. Seeds
    of a run in several processes train alone, too.
    """
    if at_most < 1:
        return []
    run_id, attempts, setbacks, processes = session.execute(
        select(Trial.run_id, Trial.attempts, Trial.setbacks, Run.processes)
        .join(Run, Run.id == Trial.run_id)
        .where(Trial.id == first.id)
    ).one()
    if attempts > 1 or setbacks or processes > 1:
        return []
    unharmed = Trial.run_id == run_id, Trial.attempts == 0, Trial.setbacks == 0
    # Who holds one and waits may wait for somebody who waits for that one: what is locked is left.
    waiting = session.scalars(
        select(Trial.id)
        .where(*unharmed, *free(now))
        .order_by(Trial.started_at.is_(None), Trial.seed)
        .with_for_update(of=Trial, skip_locked=True)
    ).all()
    holders = session.scalars(select(Trial.claimed_by).where(Trial.claimed_until >= now).distinct())
    busy = {worker_of(by), *(worker_of(holder) for holder in holders if holder)}
    idle = [
        each
        for each in live_workers(session, now=now)
        if each.process not in busy and not each.trouble and each.version == own_version()
    ]
    share = -(-(1 + len(waiting)) // (1 + len(idle))) - 1
    claims = (claim_trial(session, trial_id, by=by, now=now) for trial_id in waiting[: min(at_most, share)])
    return [claim for claim in claims if claim]


def places(session: Session, runs: Sequence[Run], *, now: datetime) -> dict[UUID, int]:
    """Where the waiting trials of these runs stand, from 1 for the next one, by trial id; runs with trials.

    Empty where none of these runs has a trial that waits.
    """
    trials = {trial.id: trial.state for run in runs for trial in run.trials}
    if TrialState.QUEUED not in trials.values():
        return {}
    order = enumerate(session.scalars(_in_order(now)), start=1)
    return {trial_id: place for place, trial_id in order if trial_id in trials}
