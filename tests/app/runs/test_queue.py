"""Whose turn it is, and what people do about it."""

from datetime import timedelta
from uuid import UUID

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app import jobs
from app.accounts.models import User
from app.claims import LEASE, Claim, ClaimLost
from app.jobs import Job
from app.journal import service as journal
from app.runs import queue, service, steering, trials
from app.runs.comparing import compare
from app.runs.errors import NothingFailed, RunIsOver
from app.runs.finding import Sort, Wanted, find_runs
from app.runs.models import Priority, Run, Trial, TrialState
from app.stores.folder import FolderStorage
from tests.factories import NOW, make_run, make_user

HTML = {"accept": "text/html"}
FIVE = (0, 1, 2, 3, 4)
LATER = NOW + LEASE + timedelta(seconds=1)


@pytest.fixture
def admin(session: Session) -> User:
    return make_user(session, role="admin")


def take(session: Session, second: int) -> tuple[Claim, Trial]:
    claim = queue.claim_next(session, by="worker", now=NOW + timedelta(seconds=second))
    assert claim is not None
    return claim, session.get_one(Trial, claim.id, populate_existing=True)


def taken(session: Session, runs: list[Run], *, first: int = 1, count: int) -> str:
    """Letters of the runs whose trials are taken one after the other, each ending before the next begins."""
    found = ""
    for second in range(first, first + count):
        claim, trial = take(session, second)
        found += "abc"[[run.id for run in runs].index(trial.run_id)]
        trials.end_cancelled(session, claim, now=NOW)
    return found


def report(epoch: int, accuracy: float, seconds: float) -> trials.Report:
    return trials.Report(
        epoch=epoch,
        epochs=9,
        step=epoch,
        seconds=seconds,
        losses={"complementary": 1.0},
        target_accuracy=accuracy,
        source_estimate=None,
    )


class TestVersions:
    def test_what_a_later_version_asks_for_is_left_to_its_workers(
        self, session: Session, storage: FolderStorage
    ) -> None:
        [newer, ours] = [make_run(session, storage, train=2) for _ in range(2)]
        newer.config = newer.config | {"attention_heads": 8}
        session.flush()

        claim, trial = take(session, 1)
        assert trial.run_id == ours.id
        assert queue.claim_next(session, by="worker", now=NOW) is None
        left = session.get_one(Trial, newer.trials[0].id, populate_existing=True)
        assert (left.state, left.attempts) == (TrialState.QUEUED, 0)

        taken = queue.claim_next(session, by="a newer worker", now=NOW, knows=lambda _: True)
        assert taken is not None
        assert (taken.id, claim.id) == (left.id, trial.id)


class TestTurns:
    def test_two_runs_of_five_seeds_take_turns_and_the_places_say_so(
        self, session: Session, storage: FolderStorage
    ) -> None:
        runs = [make_run(session, storage, seeds=FIVE, train=2) for _ in range(2)]

        places = queue.places(session, runs, now=NOW)
        assert [[places[trial.id] for trial in run.trials] for run in runs] == [
            [1, 3, 5, 7, 9],
            [2, 4, 6, 8, 10],
        ]
        assert taken(session, runs, count=10) == "ababababab"
        assert queue.claim_next(session, by="worker", now=NOW) is None
        assert queue.places(session, [session.merge(run) for run in runs], now=NOW) == {}

    def test_neither_the_earlier_run_nor_the_later_one_waits_for_all_of_the_other(
        self, session: Session, storage: FolderStorage
    ) -> None:
        runs = [make_run(session, storage, seeds=FIVE, train=2)]
        assert taken(session, runs, count=3) == "aaa"
        runs.append(make_run(session, storage, seeds=FIVE, train=2))
        runs[1].created_at = NOW + timedelta(seconds=3)
        session.flush()

        assert taken(session, runs, first=4, count=7) == "ababbbb"

    def test_who_comes_first_goes_before_the_others_and_who_is_last_behind_them(
        self, session: Session, storage: FolderStorage, admin: User
    ) -> None:
        runs = [make_run(session, storage, seeds=(0, 1), train=2) for _ in range(3)]
        steering.prioritise(session, runs[0], Priority.LOW, by=admin)
        steering.prioritise(session, runs[2], Priority.HIGH, by=admin)
        session.flush()

        assert taken(session, runs, count=6) == "ccbbaa"

    def test_a_trial_whose_holder_went_silent_is_taken_on_before_a_new_one_of_its_run(
        self, session: Session, storage: FolderStorage
    ) -> None:
        run = make_run(session, storage, seeds=FIVE, train=2)
        trials.claim_trial(session, run.trials[3].id, by="worker", now=NOW)

        claim = queue.claim_next(session, by="another", now=LATER)

        assert claim == Claim(Trial, run.trials[3].id, 2)


class TestPause:
    def test_nobody_takes_its_trials_until_it_goes_on_and_what_trains_is_asked_to_stop(
        self, session: Session, storage: FolderStorage, admin: User
    ) -> None:
        run = make_run(session, storage, seeds=(0, 1), train=2)
        claim, trial = take(session, 0)

        steering.pause_run(session, run, by=admin, now=NOW)
        steering.pause_run(session, run, by=admin, now=LATER)
        session.flush()
        assert trials.beat(session, claim, now=NOW).pause_requested
        trials.hand_back(session, claim, counts=False, now=NOW)
        day = NOW + timedelta(days=1)
        assert queue.claim_next(session, by="worker", now=day) is None
        assert trials.waiting_trials(session, day) == []
        assert run.paused_at == NOW
        assert "jobs" not in session.info

        steering.resume_run(session, run, by=admin, now=LATER)
        steering.resume_run(session, run, by=admin, now=LATER)
        session.flush()
        session.refresh(trial)
        assert (trial.state, trial.attempts) == (TrialState.QUEUED, 0)
        assert session.info["jobs"] == [Job(jobs.TRAIN_TRIAL, (str(one.id),)) for one in run.trials]
        assert take(session, 60)[1] is trial
        lines = journal.entries(session, by=admin, campaign_id=run.campaign_id, limit=9)
        assert [line.details.get("paused") for line in lines if "paused" in line.details] == [False, True]

    def test_one_whose_supervisor_died_meanwhile_waits_like_the_others(
        self, session: Session, storage: FolderStorage, admin: User
    ) -> None:
        run = make_run(session, storage, train=2)
        claim, trial = take(session, 0)
        steering.pause_run(session, run, by=admin, now=NOW)
        session.flush()

        trials.give_up_trials(session, NOW)
        session.refresh(trial)
        assert trial.state is TrialState.RUNNING
        trials.give_up_trials(session, LATER)
        session.refresh(trial)
        assert (trial.state, trial.claimed_until) == (TrialState.QUEUED, None)
        with pytest.raises(ClaimLost):
            trials.beat(session, claim, now=LATER)

    def test_what_has_ended_or_is_being_cancelled_cannot_be_paused(
        self, session: Session, storage: FolderStorage, admin: User
    ) -> None:
        over = make_run(session, storage, train=2, state="succeeded")
        cancelled = make_run(session, storage, train=2)
        cancelled.cancel_requested_at = NOW

        for run in (over, cancelled):
            with pytest.raises(RunIsOver):
                steering.pause_run(session, run, by=admin, now=NOW)


class TestTryAgain:
    def test_what_failed_waits_again_with_all_its_attempts_and_nobody_late_writes_to_it(
        self, session: Session, storage: FolderStorage, admin: User
    ) -> None:
        run = make_run(session, storage, seeds=(0, 1, 2), train=2)
        for second in range(2):
            late, _ = take(session, second)
            trials.fail_trial(session, late, reason="the disk was full", now=NOW)
        for trial in run.trials:
            session.refresh(trial)

        steering.retry_failed(session, run, seeds=[1, 2], by=admin, now=LATER)

        states = [(trial.state, trial.attempts, trial.failure) for trial in run.trials]
        assert states[0] == (TrialState.FAILED, 1, "the disk was full")
        assert states[1] == (TrialState.QUEUED, 0, None)
        assert Job(jobs.TRAIN_TRIAL, (str(run.trials[1].id),)) in session.info["jobs"]
        with pytest.raises(ClaimLost):
            trials.fail_trial(session, late, reason="again", now=LATER)
        assert queue.claim_next(session, by="worker", now=LATER) == Claim(Trial, run.trials[1].id, 2)
        with pytest.raises(NothingFailed):
            steering.retry_failed(session, run, seeds=[1], by=admin, now=LATER)

    def test_what_it_had_reached_counts_no_more_until_an_epoch_ends_and_all_its_time_is_there_again(
        self, session: Session, storage: FolderStorage, admin: User
    ) -> None:
        run, other = (make_run(session, storage, seeds=seeds, train=2) for seeds in ((0, 1), (0,)))
        broken = run.trials[0].id

        def train(trial_id: UUID, epoch: int, accuracy: float, *, seconds: float = 9.0) -> Claim:
            claim = trials.claim_trial(session, trial_id, by="worker", now=NOW)
            assert claim is not None
            trials.record_epoch(session, claim, report(epoch, accuracy, seconds), now=NOW)
            return claim

        def shown() -> tuple[list[int], float | None, int, list[int]]:
            session.expire_all()
            listed, _ = find_runs(session, Wanted(), by=admin, sort=Sort.HIGHEST, limit=9)
            summary = service.summaries(session, listed, now=NOW)[run.id]
            curve = compare(session, storage, [run.id], by=admin, now=NOW).runs[0].points
            return [one.number for one in listed], summary.mean, summary.epoch, [at.epoch for at in curve]

        for trial_id, accuracy in ((run.trials[1].id, 0.5), (other.trials[0].id, 0.6)):
            claim = train(trial_id, 2, accuracy)
            trials.succeed_trial(session, claim, target_accuracy=accuracy, result={}, now=NOW)
        trials.fail_trial(session, train(broken, 7, 0.9, seconds=100.0), reason="too long", now=NOW)
        session.expire_all()
        assert trials.limited_seconds(session, broken) == 100.0

        steering.retry_failed(session, service.get_run(session, run.id, by=admin), by=admin, now=NOW)

        assert shown() == ([other.number, run.number], 0.5, 9, [2])
        assert trials.limited_seconds(session, broken) == 0.0
        train(broken, 8, 0.9, seconds=112.5)
        assert shown() == ([run.number, other.number], 0.7, 10, [2, 7, 8])
        assert trials.limited_seconds(session, broken) == 12.5

    def test_of_a_cancelled_run_nothing_is_tried_again(
        self, session: Session, storage: FolderStorage, admin: User
    ) -> None:
        run = make_run(session, storage, train=2, state="failed")
        run.cancel_requested_at = NOW

        with pytest.raises(RunIsOver):
            steering.retry_failed(session, run, by=admin, now=NOW)


class TestRoutes:
    def test_programs_pause_go_on_prioritise_and_see_the_place(
        self, client: TestClient, session: Session, storage: FolderStorage
    ) -> None:
        first, second = (make_run(session, storage, seeds=(0, 1), train=2) for _ in range(2))
        session.commit()
        url = f"/api/v1/runs/{second.id}"

        assert [trial["place"] for trial in client.get(url).json()["trials"]] == [2, 4]
        assert client.patch(url, json={"priority": "high"}).json()["place"] == 1
        listed = {row["id"]: row["place"] for row in client.get("/api/v1/runs").json()["items"]}
        assert listed == {str(first.id): 3, str(second.id): 1}
        paused = client.post(f"{url}/pause").json()
        assert (paused["place"], paused["state"]) == (None, "queued")
        assert paused["paused_at"] is not None
        assert client.post(f"{url}/resume").json()["paused_at"] is None
        assert client.post(f"{url}/retry", json={}).json()["type"] == "/problems/nothing-failed"
        assert client.patch(url, json={"priority": "highest"}).status_code == 422

    def test_people_do_the_same_on_the_page(
        self, client: TestClient, session: Session, storage: FolderStorage
    ) -> None:
        run = make_run(session, storage, seeds=(0, 1), train=2)
        broken = make_run(session, storage, train=2, state="failed")
        session.commit()

        def page(of: Run = run) -> str:
            return client.get(f"/runs/{of.id}", headers=HTML).text

        assert "2 seeds wait. The next one is first in the queue; runs take turns." in page()
        assert "number 1 in the queue" in client.get("/runs", headers=HTML).text
        client.post(f"/runs/{run.id}/priority", data={"priority": "low"}, headers=HTML)
        assert '<option value="low" selected>after other runs</option>' in page()
        client.post(f"/runs/{run.id}/pause", headers=HTML)
        assert 'data-status="paused">Paused' in page()
        assert "It waits until somebody lets it go on" in page()
        assert "No training worker" not in page()
        assert "<small>paused</small>" in client.get("/runs", headers=HTML).text
        client.post(f"/runs/{run.id}/resume", headers=HTML)
        assert 'data-status="queued">Queued' in page()
        assert "1 seed has failed. Tried again, it goes on" in page(broken)
        client.post(f"/runs/{broken.id}/retry", headers=HTML)
        assert 'data-status="queued">Queued' in page(broken)
