"""The life of a trial: claimed, reporting, ended. Every write names the claim it was made under."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, and_, delete, func, or_, select, update
from sqlalchemy.orm import Session, joinedload

from app import claims, jobs
from app.claims import MAX_ATTEMPTS, Claim, unclaimed
from app.runs.faults import MAX_SETBACKS, Fault, last_words, pause_after
from app.runs.models import Metric, Run, Trial, TrialState, kept_of
from app.runs.workers import able_workers, live_workers
from clarinet.recipes.doing import Doing

# A queued trial is nudged again this soon when a worker idles (its message was lost), else this seldom.
NUDGE_IDLE = timedelta(seconds=15)
NUDGE_BUSY = timedelta(seconds=120)
LONGEST_FAILURE = 4000  # characters

# Of a trial that says what it does by its epochs or its state alone.
DOING_NOTHING: dict[str, Any] = {"doing": None, "doing_done": None, "doing_total": None}

FOLDER = "trials"  # in storage
LOG, CHECKPOINT = "log.txt", "checkpoint.safetensors"  # of a trial, in its folder

UNFINISHED = (TrialState.QUEUED, TrialState.RUNNING)
UNCLAIMED = (
    "The cluster started jobs for it, and {} of them ended before they began to train. Their own logs say "
    "why; CLARINET_LAUNCHER_TEMPLATE describes them."
)
LOST = "The process that trained was lost {attempts} times; it was not tried again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What training reports after an epoch; fractions are in [0, 1]."""

    epoch: int
    epochs: int
    step: int
    seconds: float
    losses: dict[str, float]
    target_accuracy: float | None
    source_estimate: dict[str, Any] | None  # the library's SourceEstimate
    learning_rate: float | None = None
    pseudo_label_share: float | None = None  # of the target's images; None where none is ever learned from


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a supervisor must know at each beat."""

    cancel_requested: bool
    pause_requested: bool


def trial_prefix(trial_id: UUID) -> str:
    """The storage folder of a trial's log and of its checkpoint."""
    return f"{FOLDER}/{trial_id}"


def checkpoint_key(trial_id: UUID) -> str:
    """Where a trial's checkpoint is kept."""
    return f"{trial_prefix(trial_id)}/{CHECKPOINT}"


def _not_cancelled() -> ColumnElement[bool]:
    return (
        select(Run.cancel_requested_at).where(Run.id == Trial.run_id).correlate(Trial).scalar_subquery()
    ).is_(None)


def not_paused() -> ColumnElement[bool]:
    """Whether people let the trial's run go on."""
    return (select(Run.paused_at).where(Run.id == Trial.run_id).correlate(Trial).scalar_subquery()).is_(None)


def free(now: datetime) -> tuple[ColumnElement[bool], ...]:
    """Conditions of a trial that somebody may take: it waits, or its holder went silent."""
    return (
        Trial.state.in_(UNFINISHED),
        unclaimed(Trial, now),
        Trial.attempts < MAX_ATTEMPTS,
        or_(Trial.not_before.is_(None), Trial.not_before <= now),
        _not_cancelled(),
        not_paused(),
    )


def is_free(session: Session, trial_id: UUID, *, now: datetime) -> bool:
    """Whether somebody may take the trial."""
    return session.scalar(select(Trial.id).where(Trial.id == trial_id, *free(now))) is not None


def claim_trial(session: Session, trial_id: UUID, *, by: str, now: datetime) -> Claim | None:
    """Take a trial that waits or was lost; None if it is held, over, cancelled, paused or tried too often."""
    return claims.claim(
        session,
        Trial,
        trial_id,
        *free(now),
        by=by,
        now=now,
        state=TrialState.RUNNING,
        started_at=func.coalesce(Trial.started_at, now),
        launches=0,
        **DOING_NOTHING,
    )


def may_launch(trial: Trial, *, now: datetime) -> bool:
    """Whether a job may be asked for: each that ended without a claim is followed later than the last."""
    return (
        trial.launched_at is None
        or not trial.launches
        or trial.launched_at + pause_after(trial.launches) <= now
    )


def note_launch(session: Session, trial_id: UUID, *, now: datetime) -> None:
    """Count a job that a cluster has taken for a trial that waits.

    One more than the first means that the job before it ended and never had the trial. After MAX_SETBACKS of
    those the trial fails: this last job finds nothing to do.
    """
    launches = session.scalar(
        update(Trial)
        .where(Trial.id == trial_id, *free(now))
        .values(launches=Trial.launches + 1, launched_at=now)
        .returning(Trial.launches),
        execution_options={"synchronize_session": False},
    )
    if launches is None or launches == 1:  # somebody has it by now, or nothing is wrong
        return
    ended, reason = launches - 1, UNCLAIMED.format(launches - 1)
    if ended >= MAX_SETBACKS:
        failed = {"state": TrialState.FAILED, "failure": reason, "finished_at": now}
        _note_waiting(session, trial_id, now, fault=Fault.MACHINE, **failed)
    else:
        _note_waiting(session, trial_id, now, fault=Fault.MACHINE, setback=reason, not_before=now)


def note_not_launched(session: Session, trial_id: UUID, *, reason: str, now: datetime) -> None:
    """Say why a cluster took no job for a trial that waits; it is asked again."""
    _note_waiting(session, trial_id, now, fault=Fault.PASSING, setback=_stored(reason), not_before=now)


def _note_waiting(session: Session, trial_id: UUID, now: datetime, **values: Any) -> None:
    session.execute(
        update(Trial).where(Trial.id == trial_id, *free(now)).values(**values),
        execution_options={"synchronize_session": False},
    )


def beat(session: Session, claim: Claim, *, now: datetime) -> Situation:
    """Hold the claim for another lease and look what people want.

    Raises:
        ClaimLost: somebody else has the trial, or it was ended.
    """
    claims.renew(session, claim, now=now)
    asked = select(Run.cancel_requested_at, Run.paused_at).join(Trial, Trial.run_id == Run.id)
    cancelled, paused = session.execute(asked.where(Trial.id == claim.id)).one()
    return Situation(cancel_requested=cancelled is not None, pause_requested=paused is not None)


def record_doing(session: Session, claim: Claim, doing: Doing) -> None:
    """Keep what training does until an epoch ends; raises ClaimLost if the trial is not ours any more."""
    claims.write(session, claim, doing=doing.kind, doing_done=doing.done, doing_total=doing.total)


def record_epoch(session: Session, claim: Claim, report: Report, *, now: datetime) -> None:
    """Keep an epoch's figures. Epochs a resumed trial has gone back behind are replaced.

    Raises:
        ClaimLost: the trial is not ours any more; nothing was written.
    """
    metric = Metric(
        trial_id=claim.id,
        epoch=report.epoch,
        epochs=report.epochs,
        step=report.step,
        seconds=report.seconds,
        losses=dict(report.losses),
        target_accuracy=report.target_accuracy,
        source_estimate=report.source_estimate,
        learning_rate=report.learning_rate,
        pseudo_label_share=report.pseudo_label_share,
        recorded_at=now,
    )
    # First the fenced write: it locks the row, so the epoch below belongs to the holder of the claim.
    claims.write(
        session,
        claim,
        target_accuracy=report.target_accuracy,
        last_metric=kept_of(metric),
        **DOING_NOTHING,
    )
    session.execute(delete(Metric).where(Metric.trial_id == claim.id, Metric.epoch >= report.epoch))
    session.add(metric)


def succeed_trial(
    session: Session, claim: Claim, *, target_accuracy: float | None, result: dict[str, Any], now: datetime
) -> None:
    """End well; raises ClaimLost if the trial is not ours any more."""
    _release(
        session,
        claim,
        state=TrialState.SUCCEEDED,
        target_accuracy=target_accuracy,
        result=result,
        finished_at=now,
    )


def fail_trial(
    session: Session, claim: Claim, *, reason: str, fault: Fault | None = None, now: datetime
) -> None:
    """End with a reason in words and whose fault it was, where that is known.

    Raises:
        ClaimLost: the trial is not ours any more.
    """
    _release(session, claim, state=TrialState.FAILED, failure=_stored(reason), fault=fault, finished_at=now)


def set_back(
    session: Session, claim: Claim, *, reason: str, fault: Fault, by: str, now: datetime
) -> TrialState:
    """Queue a trial again that the worker `by` could not train, through no fault of the trial's.

    It rests for a while; then another worker takes it, where there is one. Its attempts stay. One that
    machines set back MAX_SETBACKS times fails instead, unless a worker is there that could train it and has
    not tried; what passes counts for nothing. Gives what it is now.

    Raises:
        ClaimLost: the trial is not ours any more.
    """
    setbacks, avoided, processes = session.execute(
        select(Trial.setbacks, Trial.avoided, Run.processes)
        .join(Run, Run.id == Trial.run_id)
        .where(Trial.id == claim.id)
    ).one()
    if fault is Fault.MACHINE:
        setbacks, avoided = min(setbacks + 1, MAX_SETBACKS), sorted({*avoided, by})
    untried = able_workers(live_workers(session, now=now), processes).difference(avoided)
    if fault is Fault.MACHINE and setbacks >= MAX_SETBACKS and not untried:
        fail_trial(session, claim, reason=last_words(reason, avoided), fault=fault, now=now)
        return TrialState.FAILED
    _release(
        session,
        claim,
        state=TrialState.QUEUED,
        queued_at=now - 2 * NUDGE_BUSY,
        attempts=Trial.attempts - 1,
        fault=fault,
        setbacks=setbacks,
        setback=_stored(reason),
        not_before=now + pause_after(max(1, setbacks)),
        avoided=avoided,
    )
    return TrialState.QUEUED


def _stored(reason: str) -> str:
    return reason.replace("\x00", "")[:LONGEST_FAILURE]  # PostgreSQL stores no NUL


def end_cancelled(session: Session, claim: Claim, *, now: datetime) -> None:
    """End because people asked for it; raises ClaimLost if the trial is not ours any more."""
    _release(session, claim, state=TrialState.CANCELLED, finished_at=now)


def hand_back(session: Session, claim: Claim, *, counts: bool, now: datetime) -> None:
    """Queue a trial again: its process was lost (`counts` as an attempt), or it is paused or its worker shuts
    down (does not).

    A worker that shuts down might take the message itself, so then upkeep sends it, in its next round.

    Raises:
        ClaimLost: the trial is not ours any more.
    """
    _release(
        session,
        claim,
        state=TrialState.QUEUED,
        queued_at=now if counts else now - 2 * NUDGE_BUSY,
        attempts=Trial.attempts if counts else Trial.attempts - 1,
    )
    if counts:
        jobs.enqueue(session, jobs.TRAIN_TRIAL, claim.id)


def _release(session: Session, claim: Claim, **values: Any) -> None:
    claims.release(session, claim, **values, **DOING_NOTHING)


def limited_seconds(session: Session, trial_id: UUID) -> float:
    """Seconds of training that count for a trial's limit: those before people let it try again do not."""
    excused = session.scalars(select(Trial.excused_s).where(Trial.id == trial_id)).one()
    return max(0.0, trained_seconds(session, trial_id) - excused)


def trained_seconds(session: Session, trial_id: UUID) -> float:
    """Seconds of training that a trial has reported, over all attempts."""
    return session.scalar(select(func.max(Metric.seconds)).where(Metric.trial_id == trial_id)) or 0.0


def load_trial(session: Session, trial_id: UUID) -> Trial:
    """A trial with its run."""
    return session.execute(
        select(Trial).where(Trial.id == trial_id).options(joinedload(Trial.run))
    ).scalar_one()


def waiting_trials(session: Session, now: datetime) -> list[UUID]:
    """Trials that should be nudged now, and the note that they were.

    A trial whose holder went silent is nudged at once; a queued one when a worker idles although it waits,
    and seldom otherwise: its message is behind others.
    """
    # Of a worker's process, which may hold several.
    held = session.scalar(
        select(func.count(Trial.claimed_by.distinct())).where(
            Trial.state == TrialState.RUNNING, Trial.claimed_until >= now
        )
    )
    idle = len(live_workers(session, now=now)) > (held or 0)
    patience = NUDGE_IDLE if idle else NUDGE_BUSY
    lost = and_(Trial.claimed_until.is_not(None), Trial.queued_at < Trial.claimed_until)
    waiting = session.scalars(
        select(Trial.id)
        .where(
            *free(now),
            or_(lost, Trial.queued_at < now - patience),
        )
        .order_by(Trial.queued_at, Trial.id)
    ).all()
    session.execute(
        update(Trial).where(Trial.id.in_(waiting)).values(queued_at=now),
        execution_options={"synchronize_session": False},
    )
    return list(waiting)


def give_up_trials(session: Session, now: datetime) -> int:
    """End what nobody will work on any more: cancelled while unheld, or lost too often. Gives how many."""
    unheld = Trial.state.in_(UNFINISHED), unclaimed(Trial, now)
    # Clearing claimed_until fences whoever held the row and only looked dead.
    ended = {"claimed_until": None, "claimed_by": None, "finished_at": now} | DOING_NOTHING
    cancelled = session.execute(
        update(Trial).where(*unheld, ~_not_cancelled()).values(state=TrialState.CANCELLED, **ended),
        execution_options={"synchronize_session": False},
    )
    failed = session.execute(
        update(Trial)
        .where(*unheld, Trial.attempts >= MAX_ATTEMPTS)
        .values(state=TrialState.FAILED, failure=LOST.format(attempts=MAX_ATTEMPTS), fault=None, **ended),
        execution_options={"synchronize_session": False},
    )
    # A paused trial whose supervisor died waits, like the others of its run.
    session.execute(
        update(Trial)
        .where(*unheld, Trial.state == TrialState.RUNNING, ~not_paused())
        .values(state=TrialState.QUEUED, claimed_until=None, claimed_by=None, **DOING_NOTHING),
        execution_options={"synchronize_session": False},
    )
    return int(cancelled.rowcount + failed.rowcount)  # type: ignore[attr-defined]  # a CursorResult
