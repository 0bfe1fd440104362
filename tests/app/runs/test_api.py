"""The JSON API of runs, and its stream of events."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app import jobs
from app.campaigns.models import Campaign
from app.datasets.models import Dataset
from app.db import Base, connect
from app.jobs import Job
from app.main import create_app
from app.runs import service, trials
from app.runs.events import Streams
from app.runs.models import Run, TrialState
from app.runs.snapshots import freeze
from app.settings import Settings
from app.storage import Storage
from clarinet.files.label_table import Labels
from tests.app.runs.conftest import answered
from tests.factories import NOW, make_dataset, make_run, make_token, make_user


def body(target: Dataset, **changes: Any) -> dict[str, Any]:
    return {"target_dataset_id": str(target.id), "preset": "quick", **changes}


class TestStartRun:
    def test_a_run_is_accepted_stored_and_published(
        self, client: TestClient, session: Session, campaign: Campaign, target: Dataset, published: list[Job]
    ) -> None:
        response = client.post(f"/api/v1/campaigns/{campaign.id}/runs", json=body(target, seeds=[5]))

        assert response.status_code == 202
        run = response.json()
        assert response.headers["location"] == f"/api/v1/runs/{run['id']}"
        assert (run["state"], run["seeds"], run["labels"]["answers"]) == ("queued", [5], 60)
        assert published == [Job(jobs.TRAIN_TRIAL, (run["trials"][0]["id"],))]
        assert session.get_one(Run, UUID(run["id"])).preset == "digits-quick"

    def test_what_fits_the_images_is_trained_and_told(
        self, client: TestClient, session: Session, storage: Storage, campaign: Campaign
    ) -> None:
        target = make_dataset(session, storage, looks="photographs")
        session.commit()
        url = f"/api/v1/campaigns/{campaign.id}/runs"

        fitting = client.post(url, json={"target_dataset_id": str(target.id)}).json()
        asked = client.post(url, json=body(target, preset="digits")).json()

        assert (fitting["looks"], fitting["preset"], fitting["recipe_warning"]) == (
            "photographs",
            "photographs",
            "",
        )
        assert fitting["recipe"].startswith("photographs: ")
        assert (asked["preset"], asked["recipe"]) == ("digits", "digits: LeNet at 28 pixels")
        assert asked["recipe_warning"].startswith(
            "The images look like photographs, and preset digits is a recipe"
        )
        assert client.get(f"/api/v1/runs/{asked['id']}").json()["recipe"] == asked["recipe"]

    def test_a_pair_that_cannot_work_is_a_problem(
        self, client: TestClient, session: Session, storage: Storage, campaign: Campaign, published: list[Job]
    ) -> None:
        trees = make_dataset(session, storage, class_names=["oak", "elm"])
        session.commit()
        url = f"/api/v1/campaigns/{campaign.id}/runs"

        apart = client.post(url, json=body(trees))
        same = client.post(url, json={"target_dataset_id": str(campaign.dataset_id)})

        assert (apart.status_code, apart.json()["type"]) == (422, "/problems/no-shared-class")
        assert (same.status_code, same.json()["type"]) == (422, "/problems/target-is-source")
        assert published == []

    def test_a_misspelt_field_is_an_error(
        self, client: TestClient, campaign: Campaign, target: Dataset
    ) -> None:
        response = client.post(f"/api/v1/campaigns/{campaign.id}/runs", json=body(target, sed=1))

        assert response.status_code == 422

    def test_a_refused_hyper_parameter_is_a_problem_that_names_it(
        self, client: TestClient, campaign: Campaign, target: Dataset, published: list[Job]
    ) -> None:
        response = client.post(
            f"/api/v1/campaigns/{campaign.id}/runs", json=body(target, config={"epochs": 0})
        )

        assert response.status_code == 422
        assert response.json()["type"] == "/problems/bad-config"
        assert response.json()["field"] == "epochs"
        assert published == []

    def test_an_unknown_target_is_not_found(self, client: TestClient, campaign: Campaign) -> None:
        response = client.post(
            f"/api/v1/campaigns/{campaign.id}/runs", json={"target_dataset_id": str(uuid4())}
        )

        assert response.status_code == 404

    def test_annotators_may_not(
        self, annotator_client: TestClient, campaign: Campaign, target: Dataset
    ) -> None:
        response = annotator_client.post(f"/api/v1/campaigns/{campaign.id}/runs", json=body(target))

        assert response.status_code == 403


@pytest.fixture
def run(session: Session, storage: Storage) -> Run:
    """A run of two seeds; the first has reported an epoch."""
    run = make_run(session, storage, seeds=(0, 1), train=2)
    claim = trials.claim_trial(session, run.trials[0].id, by="worker", now=NOW)
    assert claim is not None
    report = trials.Report(
        epoch=1,
        epochs=2,
        step=3,
        seconds=1.5,
        losses={"complementary": 0.7},
        target_accuracy=0.75,
        source_accuracy_estimate=0.5,
        source_accuracy_error=0.1,
    )
    trials.record_epoch(session, claim, report, now=NOW)
    session.commit()
    session.expire_all()
    return run


def test_a_run_is_read_with_trials_and_figures(client: TestClient, run: Run) -> None:
    read = client.get(f"/api/v1/runs/{run.id}").json()

    assert (read["state"], read["mean_accuracy"], read["std_accuracy"]) == ("running", 0.75, None)
    assert (read["epoch"], read["epochs"]) == (1, 4)
    assert [trial["state"] for trial in read["trials"]] == ["running", "queued"]
    assert read["label_snapshot"] == run.snapshot_digest


def test_runs_are_listed_by_campaign(client: TestClient, run: Run) -> None:
    found = client.get("/api/v1/runs", params={"campaign_id": str(run.campaign_id)}).json()
    none = client.get("/api/v1/runs", params={"campaign_id": str(uuid4())}).json()

    assert [item["id"] for item in found["items"]] == [str(run.id)]
    assert none == {"items": [], "next": None}


def test_metrics_are_read_by_seed_and_epoch(client: TestClient, run: Run) -> None:
    [metric] = client.get(f"/api/v1/runs/{run.id}/metrics").json()["items"]

    assert (metric["seed"], metric["epoch"], metric["losses"]) == (0, 1, {"complementary": 0.7})


def test_cancelling_twice_is_cancelling_once(client: TestClient, run: Run) -> None:
    first = client.post(f"/api/v1/runs/{run.id}/cancel")
    second = client.post(f"/api/v1/runs/{run.id}/cancel")

    assert (first.status_code, second.status_code) == (200, 200)
    assert [trial["state"] for trial in second.json()["trials"]] == ["running", "cancelled"]
    assert first.json()["cancel_requested_at"] == second.json()["cancel_requested_at"]


@pytest.mark.parametrize(
    ("method", "path"), [("get", ""), ("get", "/metrics"), ("get", "/events"), ("post", "/cancel")]
)
class TestEveryRoute:
    def test_an_unknown_run_is_not_found(self, client: TestClient, method: str, path: str) -> None:
        response = client.request(method, f"/api/v1/runs/{uuid4()}{path}")

        assert response.status_code == 404
        assert response.json()["type"] == "/problems/run-not-found"

    def test_annotators_see_nothing(
        self, annotator_client: TestClient, run: Run, method: str, path: str
    ) -> None:
        assert annotator_client.request(method, f"/api/v1/runs/{run.id}{path}").status_code == 403


class TestEvents:
    def test_a_finished_runs_stream_tells_its_state_and_ends(
        self, client: TestClient, session: Session, storage: Storage
    ) -> None:
        run = make_run(session, storage, train=2, state="succeeded")
        session.commit()

        response = client.get(f"/api/v1/runs/{run.id}/events")

        assert response.headers["content-type"].startswith("text/event-stream")
        events = [block.splitlines() for block in response.text.replace("\r\n", "\n").strip().split("\n\n")]
        assert [lines[0] for lines in events] == ["event: update", "event: end"]
        state = {"seed": 0, "state": TrialState.SUCCEEDED.value, "epoch": 0}
        assert json.loads(events[0][1].removeprefix("data: ")) == {"trials": [state]}

    def test_streams_are_bounded(self, app: FastAPI, client: TestClient, run: Run) -> None:
        app.state.streams = Streams(most=0)

        response = client.get(f"/api/v1/runs/{run.id}/events")

        assert response.status_code == 429
        assert response.headers["retry-after"] == "5"


def test_labels_are_frozen_while_nobody_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On SQLite an open writing transaction keeps every answer waiting."""
    settings = Settings(environment="test", data_dir=tmp_path, _env_file=None)
    storage = Storage(settings.artefact_dir)
    database = connect(settings.sqlalchemy_url)
    Base.metadata.create_all(database.engine)
    with database.write.begin() as session:
        campaign = answered(session, storage, by=make_user(session))
        target = make_dataset(session, storage, train=10)
        admin = make_user(session, role="admin")
    with database.write() as session:
        token = make_token(session, admin)
    writers: list[int] = []

    def note(storage: Storage, labels: Labels) -> str:
        writers.append(database.engine.pool.checkedout())  # type: ignore[attr-defined]  # a QueuePool has it
        return freeze(storage, labels)

    monkeypatch.setattr(service, "freeze", note)
    app = create_app(settings, database=database, publish=lambda _: None)
    client = TestClient(app, headers={"Authorization": f"Bearer {token}"})
    response = client.post(f"/api/v1/campaigns/{campaign.id}/runs", json=body(target))
    database.dispose()

    assert response.status_code == 202
    assert writers == [0]
