"""Task: claim a trial, start its training process, hold the lease, stop it. Imports no torch.

The training process writes the ends that it reaches itself: success, and a refusal in words. The supervisor
writes every other end. Both name the same claim, so whoever is late writes nothing.
"""

import enum
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

import structlog
from sqlalchemy.orm import Session

from app.claims import BEAT_S, MAX_ATTEMPTS, Claim, ClaimLost
from app.clock import utc_now
from app.runs import queue, trials
from app.runs.logs import log_key
from app.runs.workers import SEPARATOR, process_name
from worker.context import Context
from worker.local import processes
from worker.outages import OUTAGES, PATIENCE_S, keep_trying
from worker.trainer.exits import Exit

LOOK_S = 0.25  # how often the process is looked at
CHECKPOINT_GRACE_S = 20.0  # for a checkpoint, when the trial goes on elsewhere; shorter than the lease
CANCEL_GRACE_S = 5.0
SHOWN_LINES = 12

log = structlog.get_logger()


class Ending(enum.Enum):
    """Why supervision ended."""

    EXITED = "the process ended by itself"
    STOPPING = "this worker shuts down"
    CANCELLED = "people asked for it"
    PAUSED = "people paused it"
    OVERDUE = "it trained longer than it may"
    LOST = "the trial is not ours any more"


@dataclass(frozen=True, slots=True)
class Supervision:
    """One claim and the process that works under it."""

    context: Context
    claim: Claim
    process: subprocess.Popen[bytes]
    log_path: Path

    def watch(self, *, deadline: float) -> Ending:
        """Hold the lease until the process ends or must end; then it has ended.

        Args:
            deadline: on the monotonic clock.
        """
        held = beaten = time.monotonic()
        while True:
            try:
                self.process.wait(LOOK_S)
            except subprocess.TimeoutExpired:
                pass
            else:
                return Ending.EXITED
            now = time.monotonic()
            if self.context.is_stopping():
                processes.stop(self.process, grace_s=CHECKPOINT_GRACE_S)
                return Ending.STOPPING
            if now > deadline:
                processes.stop(self.process, grace_s=CANCEL_GRACE_S)
                return Ending.OVERDUE
            if now - beaten < BEAT_S:
                continue
            beaten = now
            try:
                asked = self._beat()
            except ClaimLost:
                return Ending.LOST
            except OUTAGES:
                # Nobody else can take the trial over while the database is away; so training goes on.
                log.warning("trial.beat_failed", exc_info=True)
                if now - held > PATIENCE_S:
                    return Ending.LOST
                continue
            held = time.monotonic()
            if asked.cancel_requested or asked.pause_requested:
                # Only who goes on needs time for a checkpoint.
                grace_s = CANCEL_GRACE_S if asked.cancel_requested else CHECKPOINT_GRACE_S
                processes.stop(self.process, grace_s=grace_s)
                return Ending.CANCELLED if asked.cancel_requested else Ending.PAUSED

    def settle(self, ending: Ending) -> None:
        """Write the end that the process could not write itself.

        Raises:
            ClaimLost: somebody else has the trial, or it was ended.
        """
        now = utc_now()
        with self.context.unit_of_work() as session:
            if ending is Ending.CANCELLED:
                trials.end_cancelled(session, self.claim, now=now)
            elif ending is Ending.OVERDUE:
                limit = self.context.settings.run_timeout_s / 3600
                reason = f"Training took longer than the limit of {limit:g} h and was stopped."
                trials.fail_trial(session, self.claim, reason=reason, now=now)
            elif ending in (Ending.STOPPING, Ending.PAUSED):
                trials.hand_back(session, self.claim, counts=False, now=now)
            elif ending is Ending.EXITED:
                self._settle_exit(session, self.process.returncode, now)

    def _settle_exit(self, session: Session, code: int, now: datetime) -> None:
        if code in (Exit.ENDED, Exit.CLAIM_LOST):
            return
        if code > 0 and code not in (Exit.INTERRUPTED, Exit.DATABASE_AWAY):
            trials.fail_trial(session, self.claim, reason=self._last_words(), now=now)
        elif trials.load_trial(session, self.claim.id).attempts < MAX_ATTEMPTS:
            trials.hand_back(session, self.claim, counts=True, now=now)
        else:
            reason = f"The training process was stopped {MAX_ATTEMPTS} times, the last time {_how(code)}."
            trials.fail_trial(session, self.claim, reason=reason, now=now)

    def _beat(self) -> trials.Situation:
        with self.context.unit_of_work() as session:
            return trials.beat(session, self.claim, now=utc_now())

    def _last_words(self) -> str:
        lines = processes.last_lines(self.log_path)[-SHOWN_LINES:]
        said = lines[-1] if lines else "it left no message"
        return "\n".join([f"The training process ended with an error: {said}", "", *lines])


def train_trial(context: Context, trial_id: UUID) -> None:
    """Train what is next in the queue in a process of its own, or do nothing if nothing waits.

    The message is only a nudge: it was sent for one trial, and those of other runs may come first by now.
    """
    if context.is_stopping():
        log.info("trial.left_for_others", trial_id=str(trial_id))
        return
    by = f"{process_name(os.getppid())}{SEPARATOR}{os.getpid()}"  # the worker is what started this process
    with context.unit_of_work() as session:
        claim = queue.claim_next(session, by=by, now=utc_now())
        if claim is None:
            log.info("trial.none_free", trial_id=str(trial_id))
            return
        trial_id = claim.id
        counted_s = trials.limited_seconds(session, trial_id)
    log.info("trial.claimed", trial_id=str(trial_id), claim=claim.number)
    path = context.storage.path(log_key(trial_id))
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + context.settings.run_timeout_s - counted_s
    with path.open("ab") as output:
        process = processes.start(
            "worker.trainer",
            str(trial_id),
            str(claim.number),
            str(os.getpid()),
            environment=processes.environment_of(context.settings),
            log=output,
        )
    supervision = Supervision(context, claim, process, path)
    ending = Ending.LOST
    try:
        ending = supervision.watch(deadline=deadline)
    finally:
        processes.kill(process)  # whatever happened: no training without a supervisor
    log.info("trial.left", trial_id=str(trial_id), why=ending.value, code=process.returncode)
    try:
        keep_trying(lambda: supervision.settle(ending))
    except ClaimLost:
        log.warning("trial.claim_lost", trial_id=str(trial_id), claim=claim.number)


def _how(code: int) -> str:
    if code >= 0:
        return f"with exit code {code}"
    name = signal.Signals(-code).name
    why = "; most often that means too little memory" if -code == signal.SIGKILL else ""
    return f"by signal {-code} ({name}){why}"
