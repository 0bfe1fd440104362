"""Starting, cancelling and reading runs."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app import jobs
from app.accounts.errors import NotAllowed
from app.accounts.models import User
from app.campaigns.models import Campaign
from app.datasets.models import Dataset, DatasetState
from app.jobs import Job
from app.journal import service as journal
from app.journal.models import Action
from app.runs import service, trials
from app.runs.describing import describe
from app.runs.errors import (
    BadConfig,
    BadSeeds,
    CampaignNotOpened,
    RunIsOver,
    TargetNotReady,
    TargetWithoutImages,
    TooFewLabels,
)
from app.runs.finding import Wanted, find_runs
from app.runs.labels import thaw
from app.runs.models import Run, TrialState
from app.runs.pairs import look_at_pair
from app.runs.pulse import pulse_of
from app.stores.folder import FolderStorage
from clarinet.files.label_table import TRUE
from clarinet.recipes.doing import Doing
from tests.app.runs.conftest import answered
from tests.factories import NOW, make_campaign, make_dataset, make_run, make_user


def start(
    session: Session, campaign: Campaign, target: Dataset, storage: FolderStorage, **changes: Any
) -> Run:
    details: dict[str, Any] = {
        "method": "clarinet-plus",
        "setting": "cc",
        "preset": "quick",
        "seeds": [0],
        "config": {},
    }
    admin = changes.pop("by", None) or make_user(session, role="admin")
    details |= changes
    labels = service.freeze_labels(session, campaign, setting=details["setting"], by=admin, storage=storage)
    pair = look_at_pair(session, storage, campaign, target.id, by=admin)
    return service.start_run(session, labels, pair, **details, by=admin, now=NOW)


class TestStartRun:
    def test_each_seed_is_queued_and_published(
        self, session: Session, campaign: Campaign, target: Dataset, storage: FolderStorage
    ) -> None:
        run = start(session, campaign, target, storage, seeds=[3, 1])

        assert [trial.seed for trial in run.trials] == [1, 3]
        assert run.state is TrialState.QUEUED
        assert session.info["jobs"] == [Job(jobs.TRAIN_TRIAL, (str(trial.id),)) for trial in run.trials]

    def test_the_journal_names_the_campaign(
        self, session: Session, campaign: Campaign, target: Dataset, storage: FolderStorage, admin: User
    ) -> None:
        run = start(session, campaign, target, storage, by=admin)
        service.cancel_run(session, run, by=admin, now=NOW)

        lines = journal.entries(session, by=admin, campaign_id=campaign.id, limit=2)[::-1]
        assert [line.action for line in lines] == [Action.RUN_STARTED, Action.RUN_CANCELLED]
        assert [line.details["campaign"] for line in lines] == [campaign.name] * 2

    def test_a_note_is_kept_and_the_journal_tells_of_it(
        self, session: Session, campaign: Campaign, target: Dataset, storage: FolderStorage, admin: User
    ) -> None:
        run = start(session, campaign, target, storage, by=admin, note="first try")
        describe(session, run, note="second try", by=admin)
        describe(session, run, note="second try", by=admin)

        lines = journal.entries(session, by=admin, campaign_id=campaign.id, limit=2)[::-1]
        assert run.note == "second try"
        assert [line.action for line in lines] == [Action.RUN_STARTED, Action.RUN_CHANGED]
        assert [line.details["note"] for line in lines] == ["first try", "second try"]
        assert lines[1].details["run"] == run.number

    def test_only_admins_write_notes(
        self, session: Session, campaign: Campaign, target: Dataset, storage: FolderStorage, annotator: User
    ) -> None:
        run = start(session, campaign, target, storage)

        with pytest.raises(NotAllowed):
            describe(session, run, note="mine", by=annotator)
        assert run.note == ""

    def test_the_labels_are_frozen_as_they_are(
        self, session: Session, campaign: Campaign, target: Dataset, storage: FolderStorage
    ) -> None:
        run = start(session, campaign, target, storage)

        labels = thaw(storage, run.snapshot_digest, num_classes=2)
        facts = run.snapshot_facts
        assert labels.example_ids is not None
        assert len(labels) == 60
        assert len(np.unique(labels.example_ids)) == 60
        assert labels.counts(TRUE) == facts["true"]
        assert sum(facts["true"]) + sum(facts["complementary"]) == 60 == facts["answers"]
        assert facts["classes"] == ["cat", "dog"]
        assert not facts["is_unfinished"]
        assert facts["simulated_share"] == 0

    def test_labels_from_elsewhere_cannot_be_weighed_by_their_questions(
        self, session: Session, campaign: Campaign, target: Dataset, storage: FolderStorage, admin: User
    ) -> None:
        labels = service.freeze_labels(session, campaign, setting="cc", by=admin, storage=storage)
        inverse: dict[str, Any] = {
            "method": "clarinet-plus",
            "setting": "cc",
            "preset": "quick",
            "seeds": [0],
            "config": {"complementary_loss": "inverse"},
            "pair": look_at_pair(session, storage, campaign, target.id, by=admin),
            "by": admin,
            "now": NOW,
        }

        assert service.start_run(session, labels, **inverse).state is TrialState.QUEUED
        with pytest.raises(BadConfig, match="labels from elsewhere"):
            service.start_run(session, replace(labels, facts=labels.facts | {"imported": 1}), **inverse)

    def test_the_share_of_simulated_answers_is_kept(
        self, session: Session, target: Dataset, storage: FolderStorage, annotator: User
    ) -> None:
        annotator.is_simulated = True
        campaign = answered(session, storage, by=annotator)

        assert start(session, campaign, target, storage).snapshot_facts["simulated_share"] == 1

    def test_an_unfinished_campaign_weighs_classes_by_drawn_over_answered(
        self, session: Session, target: Dataset, storage: FolderStorage, annotator: User
    ) -> None:
        campaign = answered(session, storage, examples=120, answers=80, by=annotator)

        run = start(session, campaign, target, storage)

        assert run.snapshot_facts["is_unfinished"]
        labels = thaw(storage, run.snapshot_digest, num_classes=2)
        assert labels.weights.sum() == pytest.approx(120)

    def test_equal_labels_are_one_file(
        self, session: Session, campaign: Campaign, target: Dataset, storage: FolderStorage
    ) -> None:
        first = start(session, campaign, target, storage)
        second = start(session, campaign, target, storage)

        assert first.snapshot_digest == second.snapshot_digest
        assert second.number == first.number + 1

    def test_the_config_is_the_presets_with_overrides_and_without_a_seed(
        self, session: Session, campaign: Campaign, target: Dataset, storage: FolderStorage
    ) -> None:
        run = start(session, campaign, target, storage, config={"epochs": 3, "distorted_share": 1})

        assert run.config["length"]["epochs"] == 3
        assert run.config["distortion"]["distorted_share"] == 1.0
        assert run.config["length"]["batch_size"] == 64
        assert "seed" not in run.config

    def test_too_few_labels_say_how_many_are_missing(
        self, session: Session, target: Dataset, storage: FolderStorage, annotator: User
    ) -> None:
        campaign = answered(session, storage, answers=10, by=annotator)

        with pytest.raises(TooFewLabels, match=r"\d+ more answers until a run can start") as refused:
            start(session, campaign, target, storage)

        assert refused.value.facts["need"] == 20
        assert session.scalar(select(func.count()).select_from(Run)) == 0
        assert "jobs" not in session.info

    def test_a_draft_has_nothing_to_learn_from(
        self, session: Session, target: Dataset, storage: FolderStorage
    ) -> None:
        with pytest.raises(CampaignNotOpened):
            start(session, make_campaign(session, state="draft"), target, storage)

    def test_annotators_start_nothing(
        self, session: Session, campaign: Campaign, target: Dataset, storage: FolderStorage, annotator: User
    ) -> None:
        with pytest.raises(NotAllowed):
            start(session, campaign, target, storage, by=annotator)

    def test_the_target_must_be_ready_and_have_images(
        self, session: Session, campaign: Campaign, target: Dataset, storage: FolderStorage
    ) -> None:
        target.state = DatasetState.IMPORTING
        with pytest.raises(TargetNotReady, match="importing"):
            start(session, campaign, target, storage)

        only_tests = make_dataset(session, storage, train=0, test=2)
        with pytest.raises(TargetWithoutImages):
            start(session, campaign, only_tests, storage)

    @pytest.mark.parametrize("seeds", [[], list(range(21)), [1, 1], [-1], [2**31]])
    def test_bad_seeds_are_refused(
        self, session: Session, campaign: Campaign, target: Dataset, storage: FolderStorage, seeds: list[int]
    ) -> None:
        with pytest.raises(BadSeeds):
            start(session, campaign, target, storage, seeds=seeds)

    def test_a_refused_hyper_parameter_is_named(
        self, session: Session, campaign: Campaign, target: Dataset, storage: FolderStorage
    ) -> None:
        with pytest.raises(BadConfig, match="Epochs is 0, but must lie between 1 and") as refused:
            start(session, campaign, target, storage, config={"epochs": 0})

        assert refused.value.facts["field"] == "epochs"


class TestCancelRun:
    def test_what_waits_ends_at_once_and_what_trains_is_left_to_its_supervisor(
        self, session: Session, storage: FolderStorage, admin: User
    ) -> None:
        run = make_run(session, storage, seeds=(0, 1))
        claim = trials.claim_trial(session, run.trials[0].id, by="worker", now=NOW)
        assert claim is not None
        session.expire_all()
        run = service.get_run(session, run.id, by=admin)

        service.cancel_run(session, run, by=admin, now=NOW)

        assert [trial.state for trial in run.trials] == [TrialState.RUNNING, TrialState.CANCELLED]
        assert trials.beat(session, claim, now=NOW).cancel_requested

    def test_a_finished_run_cannot_be_cancelled(
        self, session: Session, storage: FolderStorage, admin: User
    ) -> None:
        run = make_run(session, storage, state="succeeded")

        with pytest.raises(RunIsOver):
            service.cancel_run(session, run, by=admin, now=NOW)

    def test_annotators_cancel_nothing(
        self, session: Session, storage: FolderStorage, annotator: User
    ) -> None:
        with pytest.raises(NotAllowed):
            service.cancel_run(session, make_run(session, storage), by=annotator, now=NOW)


class TestListRuns:
    def test_pages_follow_each_other_newest_first(
        self, session: Session, storage: FolderStorage, admin: User
    ) -> None:
        runs = [make_run(session, storage, train=2) for _ in range(3)]

        first, following = find_runs(session, Wanted(), by=admin, limit=2)
        second, end = find_runs(session, Wanted(), by=admin, after=following, limit=2)

        assert [run.id for run in first + second] == [run.id for run in reversed(runs)]
        assert end is None


class TestPulse:
    def test_it_tells_states_and_epochs_and_when_all_is_over(
        self, session: Session, storage: FolderStorage
    ) -> None:
        run = make_run(session, storage, train=2)
        claim = trials.claim_trial(session, run.trials[0].id, by="worker", now=NOW)
        assert claim is not None

        assert pulse_of(session, run.id) == (
            {"trials": [{"seed": 0, "state": "running", "epoch": 0, "doing": None}]},
            False,
        )
        trials.record_doing(session, claim, Doing("features", 64, 280))
        assert pulse_of(session, run.id)[0]["trials"][0] == {
            "seed": 0,
            "state": "running",
            "epoch": 0,
            "doing": {"kind": "features", "done": 64, "total": 280},
        }
        trials.end_cancelled(session, claim, now=NOW + timedelta(seconds=1))
        assert pulse_of(session, run.id)[1]
