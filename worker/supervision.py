"""Over a process that trains: hold its leases, see when it must end, and write the ends that it cannot.

The training process writes the ends that it reaches itself: success, and a refusal in words. The supervisor
writes every other end. Both name the same claim, so whoever is late writes nothing.
"""

import enum
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import structlog
from sqlalchemy.orm import Session

from app.claims import BEAT_S, MAX_ATTEMPTS, Claim, ClaimLost
from app.clock import utc_now
from app.runs import trials
from app.runs.faults import Fault
from worker.beats import Listener
from worker.context import Context
from worker.local import processes
from worker.local.memory_kills import memory_kills
from worker.outages import OUTAGES, PATIENCE_S, keep_trying
from worker.trainer.exits import Exit

LOOK_S = 0.25  # how often the process is looked at
CHECKPOINT_GRACE_S = 20.0  # for a checkpoint, when the trial goes on elsewhere; shorter than the lease
CANCEL_GRACE_S = 5.0
SHOWN_LINES = 12
OVERDUE = "Training took longer than the limit of {:g} h and was stopped."
STALLED = (
    "The training did not get on for {} s and was stopped. Where a step takes so long here, raise "
    "CLARINET_STALL_TIMEOUT_S of this worker."
)
OUT_OF_MEMORY = (
    "The memory of this machine ran out, and the system stopped the training. Give the machine more memory, "
    "let it do less at once, or choose a smaller batch."
)
DATABASE_AWAY = "The database did not answer for longer than a training waits for it."
STORAGE_AWAY = "The store of images and models did not answer for longer than a training waits for it."

log = structlog.get_logger()


class Ending(enum.Enum):
    """Why supervision ended."""

    EXITED = "the process ended by itself"
    STOPPING = "this worker shuts down"
    CANCELLED = "people asked for it"
    PAUSED = "people paused it"
    OVERDUE = "it trained longer than it may"
    AWAY = "the database did not answer for too long"
    LOST = "the trial is not ours any more"
    STALLED = "it made no step for longer than it may"
    BESIDE = "another trial of its process had to end"


@dataclass(frozen=True, slots=True)
class Watched:
    """A claim, and what is seen of its trial from outside."""

    claim: Claim
    log_path: Path
    listener: Listener
    deadline: float  # on the monotonic clock


@dataclass(frozen=True, slots=True)
class Supervision:
    """A process that trains, and the trials that are its own; those that ended or were lost are taken out.

    Args:
        kills: how many processes the system has killed so far because memory ran out; None: nothing tells.
        kills_before: the same before the process was started.
    """

    context: Context
    process: subprocess.Popen[bytes]
    worker: str  # what started us
    under_way: list[Watched]
    kills: Callable[[], int | None] = memory_kills
    kills_before: int | None = None

    def watch(self) -> Ending:
        """Hold the leases until the process ends or must end; then it has ended."""
        held = beaten = got_on = time.monotonic()
        while True:
            try:
                self.process.wait(LOOK_S)
            except subprocess.TimeoutExpired:
                pass
            else:
                return Ending.EXITED
            now = time.monotonic()
            if self.heard():  # asked after the wait, in which this host may have slept
                got_on = now
            if asked := self._must_end(now, got_on=got_on):
                ending, grace_s = asked
                processes.stop(self.process, grace_s=grace_s)
                return ending
            if now - beaten < BEAT_S:
                continue
            beaten = now
            try:
                self._let_go()
                wanted = self._beat()
            except OUTAGES:
                # Nobody else can take a trial over while the database is away; so training goes on.
                log.warning("trial.beat_failed", exc_info=True)
                if now - held > PATIENCE_S:
                    processes.stop(self.process, grace_s=CHECKPOINT_GRACE_S)
                    return Ending.AWAY
                continue
            if not self.under_way:
                return Ending.LOST
            held = time.monotonic()
            if any(each.cancel_requested for each in wanted):  # only who goes on needs time for a checkpoint
                processes.stop(self.process, grace_s=CANCEL_GRACE_S)
                return Ending.CANCELLED
            if any(each.pause_requested for each in wanted):
                processes.stop(self.process, grace_s=CHECKPOINT_GRACE_S)
                return Ending.PAUSED

    def heard(self) -> bool:
        """Whether anything came from the process since the last time."""
        came = [each.listener.heard() for each in self.under_way]  # all of them, whoever came first
        return any(came)

    def _must_end(self, now: float, *, got_on: float) -> tuple[Ending, float] | None:
        """Why the process must end, whatever the rows say, and its grace in seconds."""
        if self.context.is_stopping():
            return Ending.STOPPING, CHECKPOINT_GRACE_S
        if any(now > each.deadline for each in self.under_way if each.listener.left is None):
            return Ending.OVERDUE, CANCEL_GRACE_S if len(self.under_way) == 1 else CHECKPOINT_GRACE_S
        if now - got_on > self.context.settings.stall_timeout_s:
            return Ending.STALLED, 0.0  # who makes no step writes no checkpoint, either
        return None

    def _let_go(self) -> None:
        """Write the ends of trials that ended while the process goes on with others."""
        for each in [each for each in self.under_way if each.listener.left is not None]:
            if each.listener.left == Exit.MACHINE:
                self.context.suspicion.set(True)
            try:
                self.settle(each, Ending.EXITED)
            except ClaimLost:
                log.warning("trial.claim_lost", trial_id=str(each.claim.id), claim=each.claim.number)
            self.under_way.remove(each)

    def _beat(self) -> list[trials.Situation]:
        """Hold the leases; who lost one is let go. The process notices by itself when it writes."""
        wanted: list[trials.Situation] = []
        lost: list[Watched] = []
        with self.context.unit_of_work() as session:
            for each in self.under_way:
                try:
                    wanted.append(trials.beat(session, each.claim, now=utc_now()))
                except ClaimLost:
                    lost.append(each)
        for each in lost:
            self.under_way.remove(each)
        return wanted

    def settle_all(self, ending: Ending) -> bool:
        """Write the ends that the process could not write itself; whether this machine may be to blame."""
        blames_machine = False
        now = time.monotonic()
        for each in self.under_way:
            beside = ending is Ending.OVERDUE and now <= each.deadline
            own = Ending.BESIDE if beside else ending
            is_its_exit = self._code(each) == Exit.MACHINE or self._ran_out_of_memory()
            blames_machine |= own is Ending.STALLED or (own is Ending.EXITED and is_its_exit)
            try:
                keep_trying(partial(self.settle, each, own))
            except ClaimLost:
                log.warning("trial.claim_lost", trial_id=str(each.claim.id), claim=each.claim.number)
        return blames_machine

    def settle(self, watched: Watched, ending: Ending) -> None:
        """Write the end of a trial that the process could not write itself.

        Raises:
            ClaimLost: somebody else has the trial, or it was ended.
        """
        now, settings, claim = utc_now(), self.context.settings, watched.claim
        with self.context.unit_of_work() as session:
            if ending is Ending.CANCELLED:
                trials.end_cancelled(session, claim, now=now)
            elif ending is Ending.OVERDUE:
                reason = OVERDUE.format(settings.run_timeout_s / 3600)
                trials.fail_trial(session, claim, reason=reason, fault=Fault.RUN, now=now)
            elif ending in (Ending.STOPPING, Ending.PAUSED, Ending.BESIDE):
                trials.hand_back(session, claim, counts=False, now=now)
            elif ending is Ending.STALLED:
                reason = STALLED.format(settings.stall_timeout_s)
                self._set_back(session, claim, Fault.MACHINE, reason, now)
            elif ending is Ending.AWAY:  # where somebody else has it meanwhile, the claim's number says so
                self._set_back(session, claim, Fault.PASSING, DATABASE_AWAY, now)
            elif ending is Ending.EXITED:
                self._settle_exit(session, watched, now)

    def _ran_out_of_memory(self) -> bool:
        """Whether the kernel says that it killed a process for memory, while this one was killed."""
        if self.process.returncode != -signal.SIGKILL or self.kills_before is None:
            return False
        return (self.kills() or 0) > self.kills_before

    def _is_its_own(self, watched: Watched) -> bool:
        """Whether an error was this trial's; what ends a process with several may be another one's."""
        return watched.listener.left is not None or len(self.under_way) == 1

    def _code(self, watched: Watched) -> int:
        """How a trial ended: as it was told, else as the whole process did."""
        told = watched.listener.left
        return self.process.returncode if told is None else told

    def _stops_with_us(self, code: int) -> bool:
        """Whether what asks this worker to stop asked the training, too, and it was faster than our look."""
        return self.context.is_stopping() and code in (Exit.INTERRUPTED, -signal.SIGTERM)

    def _settle_exit(self, session: Session, watched: Watched, now: datetime) -> None:
        code, claim = self._code(watched), watched.claim
        if code in (Exit.ENDED, Exit.CLAIM_LOST):
            return
        if code == Exit.MACHINE:
            reason = watched.listener.words or self._last_words(watched)
            self._set_back(session, claim, Fault.MACHINE, reason, now)
        elif code < 0 and self._ran_out_of_memory():
            self._set_back(session, claim, Fault.MACHINE, OUT_OF_MEMORY, now)
        elif code == Exit.STORAGE_AWAY:
            self._set_back(session, claim, Fault.PASSING, STORAGE_AWAY, now)
        elif code == Exit.DATABASE_AWAY:
            self._set_back(session, claim, Fault.PASSING, DATABASE_AWAY, now)
        elif code > 0 and code != Exit.INTERRUPTED and self._is_its_own(watched):
            trials.fail_trial(session, claim, reason=self._last_words(watched), now=now)
        elif self._stops_with_us(code):
            trials.hand_back(session, claim, counts=False, now=now)
        elif trials.load_trial(session, claim.id).attempts < MAX_ATTEMPTS:
            trials.hand_back(session, claim, counts=True, now=now)
        else:
            reason = f"The training process was stopped {MAX_ATTEMPTS} times, the last time {_how(code)}."
            trials.fail_trial(session, claim, reason=reason, now=now)

    def _set_back(self, session: Session, claim: Claim, fault: Fault, reason: str, now: datetime) -> None:
        trials.set_back(session, claim, reason=reason, fault=fault, by=self.worker, now=now)

    def _last_words(self, watched: Watched) -> str:
        lines = processes.last_lines(watched.log_path)[-SHOWN_LINES:]
        said = lines[-1] if lines else "it left no message"
        return "\n".join([f"The training process ended with an error: {said}", "", *lines])


def _how(code: int) -> str:
    if code >= 0:
        return f"with exit code {code}"
    name = signal.Signals(-code).name
    why = "; most often that means too little memory" if -code == signal.SIGKILL else ""
    return f"by signal {-code} ({name}){why}"
