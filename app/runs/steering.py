"""What people do with a run that waits or trains: let it wait, go on or go first, and try it again."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from app import jobs
from app.accounts import service as accounts
from app.accounts.models import User
from app.campaigns import noting
from app.campaigns.models import Campaign
from app.journal.models import Action
from app.runs.errors import NothingFailed, RunIsOver
from app.runs.models import Priority, Run, TrialState, without_figures
from app.runs.service import lock_run
from app.runs.trials import trained_seconds


def pause_run(session: Session, run: Run, *, by: User, now: datetime) -> None:
    """Let a run wait: nobody takes its trials, and what trains is checkpointed and handed back in seconds.

    Asking twice is asking once.

    Raises:
        NotAllowed: `by` is no admin.
        RunIsOver: nothing of it waits or trains, or it is being cancelled.
    """
    _require_steerable(run, by)
    if run.paused_at is None:
        run.paused_at = now
        _note(session, run, by, paused=True)


def resume_run(session: Session, run: Run, *, by: User, now: datetime) -> None:
    """Let a run go on from its checkpoints; raises like `pause_run`. Asking twice is asking once."""
    _require_steerable(run, by)
    if run.paused_at is None:
        return
    run.paused_at = None
    _note(session, run, by, paused=False)
    _send(session, run, now)


def prioritise(session: Session, run: Run, priority: Priority, *, by: User) -> None:
    """Let the trials of a run go before those of others, or behind them; raises NotAllowed."""
    accounts.require_admin(by)
    if run.priority is not priority:
        run.priority = priority
        _note(session, run, by, priority=priority)


def retry_failed(
    session: Session, run: Run, *, seeds: Sequence[int] | None = None, by: User, now: datetime
) -> None:
    """Queue failed trials again: each goes on from its last checkpoint, if it has one, with all its attempts.

    Each has all its time again, too, and what it had reached counts no more until an epoch ends.

    Args:
        seeds: which; None: all that failed.

    Raises:
        NotAllowed: `by` is no admin.
        RunNotFound: somebody has deleted the run meanwhile.
        RunIsOver: the run was cancelled.
        NothingFailed: none of these trials has failed.
    """
    accounts.require_admin(by)
    lock_run(session, run)  # two admins may ask at once, or one while another deletes it
    if run.cancel_requested_at is not None:
        raise RunIsOver(run.number, TrialState.CANCELLED)
    failed = [
        trial
        for trial in run.trials
        if trial.state is TrialState.FAILED and (seeds is None or trial.seed in seeds)
    ]
    if not failed:
        raise NothingFailed(run.number)
    for trial in failed:
        trial.state, trial.failure, trial.finished_at = TrialState.QUEUED, None, None
        trial.attempts, trial.excused_s = 0, trained_seconds(session, trial.id)
        trial.fault, trial.setbacks, trial.setback, trial.not_before = None, 0, None, None
        trial.avoided, trial.launches = [], 0
        trial.target_accuracy, trial.last_metric = None, without_figures(trial.last_metric)
    _note(session, run, by, tried_again=[trial.seed for trial in failed])
    _send(session, run, now)


def _require_steerable(run: Run, by: User) -> None:
    accounts.require_admin(by)
    if run.is_finished:
        raise RunIsOver(run.number, run.state)
    if run.cancel_requested_at is not None:
        raise RunIsOver(run.number, TrialState.CANCELLED)


def _send(session: Session, run: Run, now: datetime) -> None:
    """Nudge what waits of a run."""
    session.flush()
    for trial in run.trials:
        session.refresh(trial)
        if trial.state is TrialState.QUEUED:
            trial.queued_at = now
            jobs.enqueue(session, jobs.TRAIN_TRIAL, trial.id)


def _note(session: Session, run: Run, by: User, **facts: object) -> None:
    campaign = session.get_one(Campaign, run.campaign_id)
    noting.note(session, Action.RUN_CHANGED, campaign, by=by, details={"run": run.number, **facts})
