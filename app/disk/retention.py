"""What is kept for how long: checkpoints and logs of trials that are over, and frozen labels of deleted runs.

Only what a row says is over goes, and half-written files that nobody writes any more. A folder that no row
knows stays: it may belong to another database. `leftovers` finds it for an operator who knows better.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Self
from uuid import UUID

import structlog
from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from app.db import Database
from app.registry import predictions
from app.registry import service as registry
from app.registry.models import Model
from app.runs import labels, trials
from app.runs.models import DeletedRun, Run, Trial, TrialState
from app.settings import Settings
from app.storage import Storage

log = structlog.get_logger()

AT_ONCE = 500  # trials that are looked up together
# A run that is being started writes its frozen labels again, and has its row within minutes.
SNAPSHOT_REST = timedelta(days=1)
UNFINISHED_REST = timedelta(days=1)  # an upload that stands still is given up much sooner


@dataclass(frozen=True, slots=True)
class Policy:
    """How long what a trial leaves behind is kept once it is over."""

    logs: timedelta
    checkpoints: timedelta  # of one that failed or was cancelled; of one that succeeded none is kept

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """As the deployment has it."""
        return cls(
            logs=timedelta(days=settings.keep_logs_days),
            checkpoints=timedelta(days=settings.keep_checkpoints_days),
        )


def tidy(database: Database, storage: Storage, policy: Policy, *, now: datetime) -> int:
    """Delete what has been kept long enough; gives how many files and folders went."""
    gone = 0
    there = _there(storage)
    ids = list(there)
    for start in range(0, len(ids), AT_ONCE):
        some = ids[start : start + AT_ONCE]
        with database.read.begin() as session:
            ended = list(session.scalars(_over(some)))
            published = set(session.scalars(select(Model.key).where(Model.trial_id.in_(some))))
        for trial in ended:
            try:
                if _due(there[trial.id], trial, policy, published, now=now):
                    gone += _tidy_trial(database, storage, trial.id, policy, now=now)
            except OSError:  # a file of somebody else's must not keep all that comes after it
                log.warning("disk.not_tidied", trial_id=str(trial.id), exc_info=True)
        predicted = {key: names for trial_id in some for key, names in there[trial_id].predicted.items()}
        for key in published.intersection(predicted):
            with database.read.begin() as session:  # which begins once the folders have been looked at
                gone += predictions.forget_lost(session, storage, key, predicted[key])
    gone += _tidy_snapshots(database, storage, now=now)
    return gone + _tidy_unfinished(storage, now=now)


@dataclass(slots=True)
class _Left:
    """Names of what a trial has left: own files, models of its claims, predictions by their model's key."""

    own: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    predicted: dict[str, set[str]] = field(default_factory=dict)


def _there(storage: Storage) -> dict[UUID, _Left]:
    """What each trial has left; one look at everything, because asking a bucket about each takes an hour."""
    found: dict[UUID, _Left] = {}
    for path in sorted(storage.paths(trials.FOLDER, 2)):
        trial, *names = path.split("/")
        with suppress(ValueError):  # not one of ours
            found.setdefault(UUID(trial), _Left()).own.update(names)
    for path in sorted(storage.paths(registry.FOLDER, 4)):
        trial, *names = path.split("/")
        with suppress(ValueError):
            left = found.setdefault(UUID(trial), _Left())
            left.models.update(names[:1])
            match names:
                case [model, predictions.FOLDER, prediction]:
                    key = f"{registry.models_prefix(UUID(trial))}/{model}"
                    left.predicted.setdefault(key, set()).add(prediction)
    return found


def _left(storage: Storage, trial_id: UUID) -> _Left:
    return _Left(
        storage.names(trials.trial_prefix(trial_id)), storage.names(registry.models_prefix(trial_id))
    )


def _over(trial_ids: list[UUID]) -> Select[Trial]:
    return select(Trial).where(Trial.id.in_(trial_ids), Trial.state.not_in(trials.UNFINISHED))


def _due(left: _Left, trial: Trial, policy: Policy, published: set[str], *, now: datetime) -> list[str]:
    """What has been kept long enough of a trial that is over, and what a lost claim of it did not publish."""
    prefix = trials.trial_prefix(trial.id)
    age = now - (trial.finished_at or now)
    rest = timedelta(0) if trial.state is TrialState.SUCCEEDED else policy.checkpoints
    kept_for = ((trials.CHECKPOINT, rest), (trials.LOG, policy.logs))
    due = [f"{prefix}/{name}" for name, kept in kept_for if age >= kept and name in left.own]
    models = registry.models_prefix(trial.id)
    claims = [f"{models}/{name}" for name in sorted(left.models)]
    return due + [key for key in claims if key not in published]


def _tidy_trial(
    database: Database, storage: Storage, trial_id: UUID, policy: Policy, *, now: datetime
) -> int:
    """Delete what is due of a trial while its row is held: meanwhile nobody tries it again or publishes."""
    with database.write.begin() as session:
        trial = session.scalar(_over([trial_id]).with_for_update())
        if trial is None:  # it is tried again, or has been deleted with its files
            return 0
        published = set(session.scalars(select(Model.key).where(Model.trial_id == trial_id)))
        due = _due(_left(storage, trial_id), trial, policy, published, now=now)
        own = trials.trial_prefix(trial_id)
        for key in due:
            if key.startswith(f"{own}/"):
                storage.delete(key)
            else:
                storage.delete_tree(key)
        for prefix in (own, registry.models_prefix(trial_id)):
            storage.drop_empty(prefix)
        return len(due)


def _tidy_snapshots(database: Database, storage: Storage, *, now: datetime) -> int:
    """Delete frozen labels that runs used which are deleted, once no other uses them."""
    waiting = select(DeletedRun.number).where(
        DeletedRun.snapshot_digest.is_not(None), DeletedRun.deleted_at <= now - SNAPSHOT_REST
    )
    with database.read.begin() as session:
        numbers = session.scalars(waiting).all()
    gone = 0
    for number in numbers:  # each by itself: while a bucket is asked, others wait to write
        with database.write.begin() as session:
            gone += _tidy_snapshot(session, storage, session.get(DeletedRun, number), now=now)
    return gone


def _tidy_snapshot(session: Session, storage: Storage, run: DeletedRun | None, *, now: datetime) -> int:
    if run is None or run.snapshot_digest is None:  # somebody else was faster
        return 0
    key = labels.key_of(run.snapshot_digest)
    is_used = select(Run.id).where(Run.snapshot_digest == run.snapshot_digest).exists()
    if session.scalar(select(is_used)):
        run.snapshot_digest = None  # it goes with the run that uses it
    elif _rested(storage, key, now):
        run.snapshot_digest = None
        return int(storage.delete(key))
    return 0


def _tidy_unfinished(storage: Storage, *, now: datetime) -> int:
    """Delete what nobody has written to for a day, whoever began it: its writer has died."""
    dead = [about.key for about in storage.unfinished() if about.changed_at <= now - UNFINISHED_REST]
    return sum(storage.delete(key) for key in dead)


def _rested(storage: Storage, key: str, now: datetime) -> bool:
    """Whether nobody has frozen these labels again lately."""
    about = storage.about(key)
    return about is None or about.changed_at <= now - SNAPSHOT_REST
