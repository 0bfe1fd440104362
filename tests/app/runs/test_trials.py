"""The life of a trial, and the fence around it."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app import jobs
from app.claims import LEASE, MAX_ATTEMPTS, Claim, ClaimLost
from app.jobs import Job
from app.runs import trials
from app.runs.faults import Fault
from app.runs.models import Metric, Trial, TrialState, last_metric_of
from app.runs.workers import record_worker
from app.stores.folder import FolderStorage
from clarinet.recipes.doing import Doing
from tests.factories import NOW, make_run

LATER = NOW + LEASE + timedelta(seconds=1)


@pytest.fixture
def trial(session: Session, storage: FolderStorage) -> Trial:
    return make_run(session, storage, train=2).trials[0]


def claim(session: Session, trial: Trial, *, now: object = NOW) -> Claim:
    claimed = trials.claim_trial(session, trial.id, by="worker", now=now)  # type: ignore[arg-type]
    assert claimed is not None
    return claimed


def now_of(session: Session, trial: Trial) -> Trial:
    session.refresh(trial)
    return trial


def report(epoch: int, accuracy: float = 0.5) -> trials.Report:
    return trials.Report(
        epoch=epoch,
        epochs=9,
        step=epoch,
        seconds=float(epoch),
        losses={"complementary": 1.0},
        target_accuracy=accuracy,
        source_estimate=None,
    )


def test_a_claim_is_won_once(session: Session, trial: Trial) -> None:
    claim(session, trial)

    assert trials.claim_trial(session, trial.id, by="another", now=NOW) is None


def test_a_lapsed_claim_is_taken_over(session: Session, trial: Trial) -> None:
    claim(session, trial)

    assert claim(session, trial, now=LATER).number == 2
    assert now_of(session, trial).started_at == NOW


def test_epochs_that_a_resumed_trial_went_back_behind_are_replaced(session: Session, trial: Trial) -> None:
    claimed = claim(session, trial)
    for epoch, accuracy in ((1, 0.1), (2, 0.2), (3, 0.3), (2, 0.25)):
        trials.record_epoch(session, claimed, report(epoch, accuracy), now=NOW)

    rows = session.execute(select(Metric.epoch, Metric.target_accuracy).order_by(Metric.epoch)).all()
    assert rows == [(1, 0.1), (2, 0.25)]
    assert now_of(session, trial).target_accuracy == 0.25
    last = last_metric_of(trial)
    assert last is not None
    assert (last.epoch, last.target_accuracy, last.recorded_at) == (2, 0.25, NOW)


def test_what_a_trial_is_doing_is_kept_until_an_epoch_ends(session: Session, trial: Trial) -> None:
    claimed = claim(session, trial)
    assert now_of(session, trial).doing_now is None

    for done in (0, 64):
        trials.record_doing(session, claimed, Doing("features", done, 3718))
    assert now_of(session, trial).doing_now == Doing("features", 64, 3718)

    trials.record_epoch(session, claimed, report(1), now=NOW)
    assert now_of(session, trial).doing_now is None
    assert (trial.doing_done, trial.doing_total) == (None, None)


@pytest.mark.parametrize(
    "end",
    [
        lambda session, claimed: trials.succeed_trial(
            session, claimed, target_accuracy=1.0, result={}, now=NOW
        ),
        lambda session, claimed: trials.fail_trial(session, claimed, reason="why", now=NOW),
        lambda session, claimed: trials.end_cancelled(session, claimed, now=NOW),
        lambda session, claimed: trials.hand_back(session, claimed, counts=True, now=NOW),
        lambda session, claimed: trials.hand_back(session, claimed, counts=False, now=NOW),
        lambda session, claimed: trials.claim_trial(session, claimed.id, by="another", now=LATER),
    ],
    ids=["succeeded", "failed", "cancelled", "lost", "handed back", "taken over"],
)
def test_a_trial_that_nobody_or_somebody_else_trains_is_doing_nothing(
    session: Session, trial: Trial, end: Callable[[Session, Claim], object]
) -> None:
    claimed = claim(session, trial)
    trials.record_doing(session, claimed, Doing("fine-tuning", 40, 150))

    end(session, claimed)

    assert now_of(session, trial).doing_now is None
    assert (trial.doing, trial.doing_done, trial.doing_total) == (None, None, None)
    with pytest.raises(ClaimLost):
        trials.record_doing(session, claimed, Doing("fine-tuning", 60, 150))
    assert now_of(session, trial).doing_now is None


def test_a_zombie_writes_nothing_at_all(session: Session, trial: Trial) -> None:
    zombie = claim(session, trial)
    claim(session, trial, now=LATER)

    for write in (
        lambda: trials.record_epoch(session, zombie, report(1), now=LATER),
        lambda: trials.succeed_trial(session, zombie, target_accuracy=1.0, result={}, now=LATER),
        lambda: trials.fail_trial(session, zombie, reason="late", now=LATER),
        lambda: trials.end_cancelled(session, zombie, now=LATER),
        lambda: trials.hand_back(session, zombie, counts=True, now=LATER),
        lambda: trials.beat(session, zombie, now=LATER),
    ):
        with pytest.raises(ClaimLost):
            write()

    assert session.scalars(select(Metric)).all() == []
    assert now_of(session, trial).state is TrialState.RUNNING
    assert trial.claimed_until == LATER + LEASE


def test_an_ended_trial_takes_no_more_epochs(session: Session, trial: Trial) -> None:
    claimed = claim(session, trial)
    trials.end_cancelled(session, claimed, now=NOW)

    with pytest.raises(ClaimLost):
        trials.record_epoch(session, claimed, report(1), now=NOW)


def test_a_lost_process_counts_and_its_trial_is_sent_again_at_once(session: Session, trial: Trial) -> None:
    trials.hand_back(session, claim(session, trial), counts=True, now=NOW)

    assert (now_of(session, trial).state, trial.attempts) == (TrialState.QUEUED, 1)
    assert session.info["jobs"] == [Job(jobs.TRAIN_TRIAL, (str(trial.id),))]


def test_a_worker_that_shuts_down_does_not_count_and_upkeep_sends_its_trial_next(
    session: Session, trial: Trial
) -> None:
    trials.hand_back(session, claim(session, trial), counts=False, now=NOW)

    assert (now_of(session, trial).state, trial.attempts) == (TrialState.QUEUED, 0)
    assert "jobs" not in session.info
    assert trials.waiting_trials(session, NOW) == [trial.id]


class TestWaitingTrials:
    @pytest.mark.usefixtures("trial")
    def test_one_that_was_just_queued_is_left_alone(self, session: Session) -> None:
        assert trials.waiting_trials(session, NOW) == []
        assert trials.waiting_trials(session, NOW + trials.NUDGE_IDLE * 2) == []

    def test_with_an_idle_worker_a_lost_message_is_sent_again_soon_and_once(
        self, session: Session, trial: Trial
    ) -> None:
        soon = NOW + trials.NUDGE_IDLE * 2
        record_worker(session, "gpu@host", queues="gpu,io", device="CPU", now=soon)

        assert trials.waiting_trials(session, soon) == [trial.id]
        assert trials.waiting_trials(session, soon) == []

    def test_one_whose_holder_went_silent_is_handed_on_at_once_and_once(
        self, session: Session, trial: Trial
    ) -> None:
        claim(session, trial)

        assert trials.waiting_trials(session, NOW + LEASE) == []
        assert trials.waiting_trials(session, LATER) == [trial.id]
        assert trials.waiting_trials(session, LATER) == []

    def test_ended_ones_never_wait(self, session: Session, trial: Trial) -> None:
        trials.end_cancelled(session, claim(session, trial), now=NOW)

        assert trials.waiting_trials(session, NOW + timedelta(days=1)) == []


class TestGiveUpTrials:
    def test_after_three_lost_attempts_a_trial_fails_with_the_reason(
        self, session: Session, trial: Trial
    ) -> None:
        now = NOW
        for _ in range(MAX_ATTEMPTS):
            last = claim(session, trial, now=now)
            trials.record_doing(session, last, Doing("features", 0, 9))
            assert trials.give_up_trials(session, now) == 0
            now += LEASE + timedelta(seconds=1)
        trial.fault = Fault.MACHINE  # of an older setback
        session.flush()

        assert trials.claim_trial(session, trial.id, by="worker", now=now) is None
        assert trials.give_up_trials(session, now) == 1

        assert now_of(session, trial).state is TrialState.FAILED
        assert trial.doing_now is None
        assert trial.failure is not None
        assert "3 times" in trial.failure
        assert trial.fault is None  # nobody knows whose
        with pytest.raises(ClaimLost):  # the last holder only looked dead
            trials.record_epoch(session, last, report(1), now=now)

    def test_a_cancelled_trial_whose_supervisor_died_ends(self, session: Session, trial: Trial) -> None:
        trials.record_doing(session, claim(session, trial), Doing("features", 0, 9))
        trial.run.cancel_requested_at = NOW
        session.flush()

        assert trials.give_up_trials(session, NOW) == 0
        assert trials.give_up_trials(session, LATER) == 1

        assert now_of(session, trial).state is TrialState.CANCELLED
        assert trial.doing_now is None

    def test_a_cancelled_run_is_claimed_by_nobody(self, session: Session, trial: Trial) -> None:
        trial.run.cancel_requested_at = NOW
        session.flush()

        assert trials.claim_trial(session, trial.id, by="worker", now=NOW) is None
