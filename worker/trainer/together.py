"""Claimed trials of one run, trained in one process by turns. Each has its claim, log, checkpoint and end.

A trial that is alone takes the same way. What one of them runs into ends that one alone.
"""

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import torch

from app.claims import Claim
from app.db import Database, connect
from app.logs import configure_logs
from app.runs import trials
from app.runs.models import Trial
from app.settings import Settings
from app.stores.chosen import storage_of
from app.tracing import spans
from clarinet.run.memory import keep_freed_memory
from clarinet.run.turns import Run as Steps
from clarinet.run.turns import finished, take_turns
from worker.mirror import Mirror
from worker.outages import PATIENCE_S
from worker.trainer.exits import Exit
from worker.trainer.faults import NoRoom, exit_for
from worker.trainer.given import Given
from worker.trainer.others import OtherEnded, Place, share_cores
from worker.trainer.training import ClaimedTrial, device_of, training_in_steps
from worker.trainer.trial_data import TrialData

TOLD_S = 10.0  # for what a collector has yet to take at the end; nobody at a terminal waits for it
MIRROR_S = 5.0  # between two looks whether there is another checkpoint; writing one takes longer


def train_claimed(given: Sequence[Given], *, should_stop: Callable[[], bool]) -> Exit:
    """Train trials under claims that the supervisor took; gives what to tell it of the process."""
    settings = Settings()
    configure_logs(settings)
    spans.begin(settings, "trainer")
    try:
        with spans.span("trial.train", asked_by=spans.of_parent(), statements=False, trials=len(given)):
            return _train(settings, given, should_stop)
    finally:
        spans.end(within_s=TOLD_S)


def _train(settings: Settings, given: Sequence[Given], should_stop: Callable[[], bool]) -> Exit:
    keep_freed_memory()
    database = connect(settings.sqlalchemy_url)
    shop = _Shop(settings, database, device_of(settings.device), should_stop)
    try:
        if len(given) == 1:
            code = finished(shop.trial(given[0], together=1))
            assert code is not None  # alone it has an end of its own, too little memory included
            return code
        shop.train_together(given)
        return Exit.ENDED
    finally:
        database.dispose()


@dataclass(frozen=True, slots=True)
class _Shop:
    """What all trials of this process work with."""

    settings: Settings
    database: Database
    device: torch.device
    should_stop: Callable[[], bool]
    read: dict[UUID, TrialData] = field(default_factory=dict)  # of runs, for all their trials

    def train_together(self, given: Sequence[Given]) -> None:
        """Train several by turns, and after them those for which memory did not suffice beside others."""
        runs = (self._apart(each, self.trial(each, together=len(given))) for each in given)
        exits = take_turns(runs, self.device, at_once=len(given))
        for each in (each for each, code in zip(given, exits, strict=True) if code is None):
            gc.collect()
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
            finished(self._apart(each, self.trial(each, together=1)))

    def _apart(self, given: Given, steps: Steps[Exit | None]) -> Steps[Exit | None]:
        """The steps of one of several, which write into its log, and tell its end."""
        while True:
            given.speak()
            try:
                next(steps)
            except StopIteration as end:
                code: Exit | None = end.value
                if code is not None:
                    given.teller.leave(code)
                return code
            yield

    def trial(self, given: Given, *, together: int) -> Steps[Exit | None]:
        """Train one trial to its end; None: memory did not suffice beside others."""
        trial_id, teller = given.trial_id, given.teller

        def go_on() -> bool:
            teller.beat()
            return self.should_stop()

        try:
            with self.database.read.begin() as session:
                trial = trials.load_trial(session, trial_id)
            share_cores(Place(size=trial.run.processes), self.settings.trainer_threads)
            place = storage_of(self.settings).patiently(PATIENCE_S)
            key = trials.checkpoint_key(trial_id)
            # What waits in the training's own thread beats; the mirror's says nothing of whether it gets on.
            storage = place.patiently(PATIENCE_S, beat=teller.beat)
            there = [key] if storage.about(key) else []
            with storage.local(*there) as folder, Mirror(place, folder, key, every_s=MIRROR_S) as mirror:
                work = ClaimedTrial(
                    self.database,
                    storage,
                    mirror,
                    Claim(Trial, trial_id, given.claim_number),
                    trial,
                    trial.run,
                    self.settings.weights_dir,
                    teller.beat,
                    teller.write_end,
                    self.read,
                )
                return (yield from training_in_steps(work, self.device, go_on, together=together))
        except NoRoom:
            return None
        except OtherEnded:
            raise
        except Exception as error:  # what ends a training unforeseen ends this one
            return exit_for(error, given)
