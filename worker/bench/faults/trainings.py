"""Runs that train while their hosts fail: launched two at a time, watched, compared with undisturbed ones."""

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from sqlalchemy import select

from app.claims import MAX_ATTEMPTS
from app.registry.models import Model
from app.runs.models import Metric, Run, Trial, TrialState
from app.runs.trials import UNFINISHED
from app.runs.workers import SEPARATOR
from clarinet_client import Client, ServerAway, Unavailable
from clarinet_client.shapes.runs import RunChoices
from worker.bench.faults.hosts import Host
from worker.context import Context
from worker.outages import keep_trying

# Enough for every host to have work, and few: a lost trial waits for its lease, not for other runs' turns.
AT_ONCE = 2
LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class Loss:
    """A claim whose holder was hit, and when, on the monotonic clock."""

    trial_id: UUID
    claim_number: int
    at: float
    how: str


@dataclass(frozen=True, slots=True)
class Takeover:
    """How long it took until the trial was claimed again."""

    how: str
    seconds: float


@dataclass
class Trainings:
    """The runs of one label snapshot, and what befell their trials.

    `url` and `token`: of the web processes and an admin.
    """

    context: Context
    url: str
    token: str
    campaign_id: UUID
    target_id: UUID
    choices: RunChoices
    launched: int = 0
    takeovers: list[Takeover] = field(default_factory=list)
    _losses: list[Loss] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def launch(self) -> None:
        """Start one more run, over the same labels."""
        key = str(uuid4())  # which launches it once, however often it is sent
        with Client(self.url, self.token) as client:
            while True:
                try:
                    client.runs.launch(str(self.campaign_id), str(self.target_id), key=key, **self.choices)
                except (ServerAway, Unavailable):
                    continue
                self.launched += 1
                return

    def finish(self, runs: int, *, has_enough: Callable[[], bool], is_late: Callable[[], bool]) -> None:
        """Launch runs, a few at a time, and watch them until all trials have ended.

        Args:
            runs: so many at least, unless it is late.
            has_enough: until this holds, further ones follow, so that there is something to hit.
            is_late: once this holds, no further one is launched.
        """
        first = self.launched
        while True:
            found = keep_trying(self._trials)
            self._settle(found)
            unfinished = {trial.run_id for trial in found.values() if trial.state in UNFINISHED}
            wants_more = not is_late() and (self.launched - first < runs or not has_enough())
            if not unfinished and not wants_more:
                return
            if wants_more and len(unfinished) < AT_ONCE:
                self.launch()
            time.sleep(LOOK_S)

    def running_on(self, host: Host) -> list[Trial]:
        """The trials that a process of this host holds, with the rows as they are."""
        pids = set(map(str, host.pids()))
        found = keep_trying(self._trials).values()
        return [
            trial
            for trial in found
            if trial.state is TrialState.RUNNING and (trial.claimed_by or "").rpartition(SEPARATOR)[2] in pids
        ]

    def lose(self, trials: Sequence[Trial], how: str) -> None:
        """Note that the holders of these claims are hit now."""
        with self._lock:
            self._losses += [Loss(trial.id, trial.claim_number, time.monotonic(), how) for trial in trials]

    def _trials(self) -> dict[UUID, Trial]:
        with self.context.reading() as session:
            return {trial.id: trial for trial in session.scalars(select(Trial))}

    def _settle(self, found: dict[UUID, Trial]) -> None:
        """What was taken over, or has ended after all, is lost no longer."""
        now = time.monotonic()
        with self._lock:
            taken = [loss for loss in self._losses if found[loss.trial_id].claim_number > loss.claim_number]
            self.takeovers += [Takeover(loss.how, now - loss.at) for loss in taken]
            self._losses = [
                loss
                for loss in self._losses
                if loss not in taken and found[loss.trial_id].state in UNFINISHED
            ]


def can_be_taken(trial: Trial) -> bool:
    """Whether a trial that is lost now is tried again."""
    return trial.attempts < MAX_ATTEMPTS


def digests(context: Context) -> dict[tuple[int, int], str]:
    """What each trial that ended well computed, by run and seed: its tensors and every epoch's figures."""
    with context.reading() as session:
        ended = session.execute(
            select(Trial.id, Run.number, Trial.seed, Model.tensors_digest)
            .join(Run, Run.id == Trial.run_id)
            .join(Model, Model.trial_id == Trial.id)
        ).all()
        epochs: dict[UUID, list[object]] = {}
        for metric in session.scalars(select(Metric).order_by(Metric.trial_id, Metric.epoch)):
            told = (metric.epoch, metric.step, metric.losses, metric.target_accuracy, metric.source_estimate)
            epochs.setdefault(metric.trial_id, []).append(told)
    return {
        (number, seed): hashlib.sha256(json.dumps([tensors, epochs[trial_id]]).encode()).hexdigest()
        for trial_id, number, seed, tensors in ended
    }


def different(found: dict[tuple[int, int], str], undisturbed: dict[int, str], trials: int) -> int:
    """How many of so many trials did not end with what an undisturbed one of their seed computed."""
    same = sum(undisturbed[seed] == digest for (_, seed), digest in found.items())
    return trials - same


def failures(context: Context) -> dict[str, int]:
    """Why trials did not end well, and how often."""
    with context.reading() as session:
        ended = session.execute(select(Trial.state, Trial.failure).where(Trial.state != TrialState.SUCCEEDED))
        return dict(Counter(f"{state.value}: {failure or ''}".strip() for state, failure in ended))
