"""Task: claim a trial, start its training process, watch over it, settle its end. Imports no torch.

With CLARINET_TRIALS_AT_ONCE the process takes several trials of a run. Each has a claim of its own.
"""

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import UUID

import structlog
from sqlalchemy.orm import Session

from app.claims import Claim, ClaimLost
from app.clock import utc_now
from app.runs import configs, queue, trials
from app.runs.faults import Fault
from app.runs.logs import log_key
from app.runs.models import Run
from app.runs.workers import SEPARATOR, note_trouble, process_name
from app.storage import StorageAway, StorageRefused
from app.tracing import spans
from worker.beating import beating
from worker.beats import Listener
from worker.context import Context
from worker.fitness import trouble_of
from worker.local import processes
from worker.local.memory_kills import memory_kills
from worker.local.self_check import thorough_trouble_of
from worker.mirror import Mirror
from worker.outages import OUTAGES, keep_trying
from worker.retelling import retold
from worker.supervision import STORAGE_AWAY, Ending, Supervision, Watched

# Between two looks whether a log has grown, where it is not written to the place where it is kept.
LOG_S = 10.0
OLDER = (
    "The job's program is older than this run asks for. Name the image of this version in the file that "
    "CLARINET_LAUNCHER_TEMPLATE is."
)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Taken:
    """Claims on trials of one run, and until when each may train, on the monotonic clock."""

    claims: list[Claim]
    run: Run
    deadlines: list[float]


def train_trial(context: Context, trial_id: UUID, *, only: bool = False) -> None:
    """Train what is next in the queue in a process of its own, or do nothing if nothing waits.

    The message is only a nudge: it was sent for one trial, and those of other runs may come first by now. Who
    was started for one trial, with as many GPUs as it needs, trains that one `only`.
    """
    if context.is_stopping():
        log.info("trial.left_for_others", trial_id=str(trial_id))
        return
    worker = process_name(os.getppid())  # what started this process
    if trouble := _own_trouble(context, worker):
        log.warning("worker.takes_nothing", trouble=trouble)
        return
    with context.unit_of_work() as session:
        taken = _taken(context, session, trial_id, worker, only=only)
    if taken is None:
        return
    claims, run = taken.claims, taken.run
    first = claims[0]
    # What packages log meanwhile is about the first of them; our own lines name theirs.
    structlog.contextvars.bind_contextvars(run_id=str(run.id), trial_id=str(first.id))
    for claim in claims:
        log.info("trial.claimed", trial_id=str(claim.id), claim=claim.number)
    with spans.span(
        "trial.supervise",
        asked_by=run.traceparent,
        statements=False,  # one every few seconds, for hours
        run=run.number,
        trial=str(first.id),
        claim=first.number,
        trials=len(claims),
    ):
        blames_machine = _train_claimed(context, claims, worker, taken.deadlines)
    if blames_machine:
        context.suspicion.set(True)
        _own_trouble(context, worker)


def _taken(context: Context, session: Session, trial_id: UUID, worker: str, *, only: bool) -> _Taken | None:
    """Claim what is to be trained; None: there is nothing for us."""
    by, now = f"{worker}{SEPARATOR}{os.getpid()}", time.monotonic()
    if only:
        first = trials.claim_trial(session, trial_id, by=by, now=utc_now())
    else:
        first = queue.claim_next(session, by=by, now=utc_now())
    if first is None:
        log.info("trial.none_free", trial_id=str(trial_id))
        return None
    run = trials.load_trial(session, first.id).run
    if only and not configs.is_known(run.config):  # the queue would have left it to others
        log.warning("trial.asks_for_more", trial_id=str(trial_id))
        trials.set_back(session, first, reason=OLDER, fault=Fault.MACHINE, by=worker, now=utc_now())
        return None
    further = 0 if only else context.settings.trials_at_once - 1
    claims = [first, *queue.claim_beside(session, first, at_most=further, by=by, now=utc_now())]
    limit = context.settings.run_timeout_s
    return _Taken(claims, run, [now + limit - trials.limited_seconds(session, claim.id) for claim in claims])


def _own_trouble(context: Context, worker: str) -> str | None:
    """What keeps this machine from training, in a sentence; its row says so, too.

    One whose last training failed by its fault is looked at closer, until nothing is found; as long its
    heartbeat, which sees less, leaves the sentence alone.
    """
    look = thorough_trouble_of if context.suspicion else trouble_of
    trouble = look(context.settings, context.database, context.storage)
    was_suspect = bool(context.suspicion)
    context.suspicion.set(trouble is not None)
    if trouble or was_suspect:
        with context.unit_of_work() as session:
            note_trouble(session, worker, trouble)
    return trouble


def _train_claimed(
    context: Context, claims: Sequence[Claim], worker: str, deadlines: Sequence[float]
) -> bool:
    """Start the training, watch over it and write its ends; whether this machine may be to blame."""
    set_back = partial(_set_back, context, claims, worker)
    with ExitStack() as stack:
        try:
            paths = beating(
                lambda: [stack.enter_context(_log_of(context, claim.id)) for claim in claims],
                lambda: _hold(context, claims),
            )
            if context.settings.logs_json:
                ids = structlog.contextvars.get_contextvars()
                for claim, path in zip(claims, paths, strict=True):
                    stack.enter_context(retold(path, **ids | {"trial_id": str(claim.id)}))
            kills_before = memory_kills()
            watched = [
                Watched(claim, path, stack.enter_context(Listener()), deadline)
                for claim, path, deadline in zip(claims, paths, deadlines, strict=True)
            ]
            process = _started(context, watched)
        except StorageRefused as refusal:
            log.warning("trial.storage_refused", trial_id=str(claims[0].id), exc_info=True)
            set_back(Fault.MACHINE, refusal.sentence)
            return True
        except StorageAway:
            log.warning("trial.storage_away", trial_id=str(claims[0].id), exc_info=True)
            set_back(Fault.PASSING, STORAGE_AWAY)
            return False
        except ClaimLost:
            log.warning("trial.claim_lost", trial_id=str(claims[0].id))
            return False
        except OSError as error:
            log.warning("trial.not_started", trial_id=str(claims[0].id), exc_info=True)
            reason = f"The training could not be started: {error.filename or 'the system'}: {error.strerror}."
            set_back(Fault.MACHINE, reason)
            return True
        supervision = Supervision(context, process, worker, watched, kills_before=kills_before)
        ending = Ending.LOST
        try:
            ending = supervision.watch()
        finally:
            processes.kill(process)  # whatever happened: no training without a supervisor
        supervision.heard()
        for each in watched:
            log.info("trial.left", trial_id=str(each.claim.id), why=ending.value, code=process.returncode)
        with spans.span("trial.settle", statements=True, why=ending.name.lower(), code=process.returncode):
            return supervision.settle_all(ending)


@contextmanager
def _log_of(context: Context, trial_id: UUID) -> Iterator[Path]:
    """The file of a trial's log on this machine, with what earlier attempts wrote; kept as it grows."""
    key = log_key(trial_id)
    there = [key] if context.patient.about(key) else []
    with context.patient.local(*there) as folder, Mirror(context.storage, folder, key, every_s=LOG_S):
        path = folder.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        yield path


def _started(context: Context, watched: Sequence[Watched]) -> subprocess.Popen[bytes]:
    with ExitStack() as stack:
        logs = [stack.enter_context(each.log_path.open("ab")) for each in watched]
        pipes = [each.listener.write_end for each in watched]
        given = [
            (str(each.claim.id), str(each.claim.number), str(pipe), str(log.fileno()))
            for each, pipe, log in zip(watched, pipes, logs, strict=True)
        ]
        return processes.start(
            "worker.trainer",
            str(os.getpid()),
            *(word for words in given for word in words),
            environment=processes.environment_of(context.settings) | spans.for_child(),
            log=logs[0],
            pass_fds=[*pipes, *(log.fileno() for log in logs)],
        )


def _hold(context: Context, claims: Sequence[Claim]) -> None:
    lost = 0
    try:
        with context.unit_of_work() as session:
            for claim in claims:
                try:
                    trials.beat(session, claim, now=utc_now())
                except ClaimLost:
                    lost += 1
    except OUTAGES:
        log.warning("trial.beat_failed", exc_info=True)  # as while it trains
    if lost == len(claims):  # one that lost its own alone is noticed by the watch over the process
        raise ClaimLost


def _set_back(context: Context, claims: Sequence[Claim], worker: str, fault: Fault, reason: str) -> None:
    def set_back(claim: Claim) -> None:
        with context.unit_of_work() as session:
            trials.set_back(session, claim, reason=reason, fault=fault, by=worker, now=utc_now())

    for claim in claims:
        try:
            keep_trying(partial(set_back, claim))
        except ClaimLost:
            log.warning("trial.claim_lost", trial_id=str(claim.id), claim=claim.number)
