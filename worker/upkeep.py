"""Periodic: nudge what waits, hand lost work on, end what was tried too often. Imports no torch.

Messages are only nudges, so any number of upkeeps may run, and none of them needs to know the broker's state.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from uuid import UUID

import structlog
from sqlalchemy.orm import Session

from app import jobs
from app.campaigns import drawings, openings
from app.clock import utc_now
from app.datasets import importing
from app.disk.measuring import measure
from app.disk.retention import Policy, tidy
from app.labels import service as labels
from app.mistakes import umaps
from app.notices import service as notices
from app.notices.happenings import LOOKS
from app.notices.models import Event
from app.quality import service as quality
from app.registry import predictions
from app.registry.naming import name_the_nameless
from app.request_keys import forget_keys
from app.runs import trials
from app.runs.workers import UPKEEP, forget_workers, own_version, process_name, record_service
from app.storage import StorageAway
from worker.beats import silently
from worker.context import Context
from worker.outages import OUTAGES

EVERY_S = 5.0
# Work whose row keeps no note of its last nudge is nudged again this seldom: its message may only be late.
NUDGE_AGAIN_S = 30.0
FORGET_EVERY_S = 3600.0  # keys that last a day
DISK_EVERY_S = 3600.0  # a walk over all files

Step = Callable[[Session, datetime], None]

log = structlog.get_logger()


class Upkeep:
    """What one upkeep remembers between its rounds: whom it nudged when."""

    def __init__(
        self,
        context: Context,
        *,
        clock: Callable[[], datetime] = utc_now,
        beat: Callable[[], None] = silently,
    ) -> None:
        self.context = context
        self.clock = clock
        self._beat = beat
        self._name = f"{UPKEEP}-{process_name(os.getpid())}"
        self._nudged: dict[tuple[str, UUID], float] = {}
        self._keys_due = self._disk_due = time.monotonic()

    def once(self) -> None:
        """One round. Each step is on its own: what goes wrong in one is logged, and the others follow."""
        steps: tuple[Step, ...] = (
            self._imports,
            self._label_imports,
            self._openings,
            self._drawings,
            self._checks,
            self._figures,
            self._trials,
            self._models,
            self._predictions,
            self._umaps,
            *(partial(self._happenings, event) for event in LOOKS),
            self._notices,
            self._workers,
            self._keys,
        )
        for step in steps:
            self._beat()
            with _alone(step), self.context.unit_of_work() as session:
                step(session, self.clock())
        if time.monotonic() >= self._disk_due:
            self._disk_due = time.monotonic() + DISK_EVERY_S
            for walk in (self._tidy, self._measure):  # with short transactions of their own
                self._beat()
                with _alone(walk):
                    walk(self.clock())

    def _tidy(self, now: datetime) -> None:
        """Delete what was kept long enough."""
        policy = Policy.of(self.context.settings)
        if gone := tidy(self.context.database, self.context.storage, policy, now=now):
            log.info("upkeep.tidied", count=gone)

    def _measure(self, now: datetime) -> None:
        """Add up what takes the disk."""
        measure(self.context.database, self.context.storage, now=now)

    def _imports(self, session: Session, now: datetime) -> None:
        for model, job in importing.JOB_OF.items():
            importing.give_up_imports(session, model, now)
            self._nudge(session, job, importing.waiting_imports(session, model, now))

    def _label_imports(self, session: Session, now: datetime) -> None:
        labels.give_up_imports(session, now)
        self._nudge(session, jobs.IMPORT_LABELS, labels.waiting_imports(session, now))

    def _openings(self, session: Session, now: datetime) -> None:
        openings.give_up_openings(session, now)
        self._nudge(session, jobs.OPEN_CAMPAIGN, openings.waiting_openings(session, now))

    def _drawings(self, session: Session, now: datetime) -> None:
        drawings.give_up_drawings(session, now)
        self._nudge(session, jobs.DRAW_FURTHER, drawings.waiting_drawings(session, now))

    def _checks(self, session: Session, now: datetime) -> None:
        self._nudge(session, jobs.CHECK_DRAWS, quality.waiting_checks(session, now))

    def _figures(self, session: Session, now: datetime) -> None:
        self._nudge(session, jobs.KEEP_FIGURES, quality.waiting_figures(session, now))

    def _trials(self, session: Session, now: datetime) -> None:
        if ended := trials.give_up_trials(session, now):
            log.info("upkeep.trials_ended", count=ended)
        for trial_id in trials.waiting_trials(session, now):
            log.info("upkeep.trial_nudged", trial_id=str(trial_id))
            jobs.enqueue(session, jobs.TRAIN_TRIAL, trial_id)

    def _models(self, session: Session, now: datetime) -> None:
        name_the_nameless(session, now=now)

    def _predictions(self, session: Session, now: datetime) -> None:
        predictions.give_up_predictions(session, now)
        self._nudge(session, jobs.PREDICT_DATASET, predictions.waiting_predictions(session, now))

    def _umaps(self, session: Session, now: datetime) -> None:
        umaps.give_up_umaps(session, now)
        self._nudge(session, jobs.MAKE_UMAP, umaps.waiting_umaps(session, now))

    def _happenings(self, event: Event, session: Session, now: datetime) -> None:
        notices.note_happenings(session, self.context.settings, event, now)

    def _notices(self, session: Session, now: datetime) -> None:
        self._nudge(session, jobs.SEND_NOTICE, notices.waiting_notices(session, now))

    def _workers(self, session: Session, now: datetime) -> None:
        record_service(session, self._name, UPKEEP, version=own_version(), now=now)
        forget_workers(session, now=now)

    def _keys(self, session: Session, now: datetime) -> None:
        if time.monotonic() >= self._keys_due:
            forget_keys(session, now=now)
            self._keys_due = time.monotonic() + FORGET_EVERY_S

    def _nudge(self, session: Session, name: str, waiting: list[UUID]) -> None:
        moment = time.monotonic()
        self._nudged = {key: at for key, at in self._nudged.items() if moment - at < NUDGE_AGAIN_S}
        for row_id in waiting:
            if (name, row_id) not in self._nudged:
                self._nudged[name, row_id] = moment
                log.info("upkeep.nudged", job=name, row_id=str(row_id))
                jobs.enqueue(session, name, row_id)


@contextmanager
def _alone(step: Callable[..., None]) -> Iterator[None]:
    """Keep what goes wrong in a step from the steps behind it."""
    name = getattr(step, "func", step).__name__  # of a partial, what it calls
    try:
        yield
    except (*OUTAGES, StorageAway) as error:
        log.warning("upkeep.away", step=name, error=type(error).__name__)
    except Exception:
        # The edge of the process: upkeep is what recovers the others, so one fault must not stop all of it.
        log.exception("upkeep.failed", step=name)


def run_upkeep(context: Context, ended: threading.Event, *, beat: Callable[[], None] = silently) -> None:
    """Work until `ended` is set; `beat` is called before each step."""
    upkeep = Upkeep(context, beat=beat)
    while not ended.is_set():
        upkeep.once()
        ended.wait(EVERY_S)
