"""The JSON API of runs, and its stream of events."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx2 import Response
from sqlalchemy.orm import Session

from app import jobs
from app.campaigns.models import Campaign
from app.datasets.models import Dataset
from app.db import Base, connect
from app.jobs import Job
from app.main import create_app
from app.runs import service, trials
from app.runs.events import Streams
from app.runs.labels import freeze
from app.runs.models import Run, TrialState
from app.settings import Settings
from app.stores.folder import FolderStorage
from clarinet.files.label_table import Labels
from clarinet.recipes.doing import Doing
from tests.app.runs.conftest import ESTIMATE, TOO_FEW, answered, reported
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

    def test_sent_twice_under_one_key_it_is_launched_once(
        self, client: TestClient, campaign: Campaign, target: Dataset, published: list[Job]
    ) -> None:
        path, headers = f"/api/v1/campaigns/{campaign.id}/runs", {"Idempotency-Key": "one"}

        first, again = (client.post(path, json=body(target), headers=headers) for _ in range(2))
        other = client.post(path, json=body(target, seeds=[1]), headers=headers)

        assert (first.status_code, again.status_code, other.status_code) == (202, 202, 422)
        assert first.json()["id"] == again.json()["id"]
        assert first.headers["location"] == again.headers["location"]
        assert len(published) == 1

    def test_what_fits_the_images_is_trained_and_told(
        self, client: TestClient, session: Session, storage: FolderStorage, campaign: Campaign
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
            "The images look like photographs, but preset digits is made for digits"
        )
        assert client.get(f"/api/v1/runs/{asked['id']}").json()["recipe"] == asked["recipe"]

    def test_a_pair_that_cannot_work_is_a_problem(
        self,
        client: TestClient,
        session: Session,
        storage: FolderStorage,
        campaign: Campaign,
        published: list[Job],
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

    def test_a_run_begins_with_a_file_of_the_servers_folder_and_no_other(
        self, app: FastAPI, client: TestClient, campaign: Campaign, target: Dataset, tmp_path: Path
    ) -> None:
        (tmp_path / "secret.pt").write_bytes(b"secret")
        folder = tmp_path / "weights"
        folder.mkdir()
        (folder / "net.pt").write_bytes(b"tensors")
        app.state.settings = app.state.settings.model_copy(update={"weights_dir": folder})

        def start(name: str) -> Response:
            config = {"architecture": "timm/resnet18", "pretrained": name}
            return client.post(f"/api/v1/campaigns/{campaign.id}/runs", json=body(target, config=config))

        started = start("net.pt")
        refused = [start(name) for name in ("../secret.pt", str(tmp_path / "secret.pt"), "other.pt")]

        assert started.status_code == 202
        network = started.json()["config"]["network"]
        assert (network["pretrained"], network["pretrained_digest"]) == (
            "net.pt",
            sha256(b"tensors").hexdigest(),
        )
        assert [(response.status_code, response.json()["field"]) for response in refused] == [
            (422, "pretrained")
        ] * 3
        assert "which has no 'other.pt'" in refused[2].json()["detail"]

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


def test_a_run_is_read_with_trials_and_figures(client: TestClient, run: Run) -> None:
    read = client.get(f"/api/v1/runs/{run.id}").json()

    assert (read["state"], read["mean_accuracy"], read["std_accuracy"]) == ("running", 0.75, None)
    assert (read["chance"], read["is_guessing"]) == (0.5, False)
    assert (read["epoch"], read["epochs"]) == (1, 4)
    assert (read["scored_on"], read["scored_split"], read["scored_of"]) == (40, "test", 40)
    assert 0.55 < read["interval_low"] < 0.75 < read["interval_high"] < 0.9
    assert read["source_estimate"] == ESTIMATE
    assert [trial["source_estimate"] for trial in read["trials"]] == [ESTIMATE, None]
    assert [trial["state"] for trial in read["trials"]] == ["running", "queued"]
    assert read["label_snapshot"] == run.snapshot_digest


def test_a_target_without_test_images_scores_by_those_it_trains_on(
    client: TestClient, session: Session, storage: FolderStorage
) -> None:
    target = make_dataset(session, storage, train=5, test=0, class_names=("dog", "owl"))
    run = make_run(session, storage, train=2, target=target)
    session.commit()

    read = client.get(f"/api/v1/runs/{run.id}").json()

    assert (read["scored_on"], read["scored_split"], read["scored_of"]) == (3, "train", 5)
    assert (read["mean_accuracy"], read["interval_low"], read["interval_high"]) == (None, None, None)


def test_a_target_without_known_classes_measures_nothing_and_what_an_estimate_lacks_is_told(
    client: TestClient, session: Session, storage: FolderStorage
) -> None:
    target = make_dataset(session, storage, train=4, class_names=None)
    run = make_run(session, storage, train=2, target=target)
    reported(session, run, source_estimate=TOO_FEW)
    session.commit()

    read = client.get(f"/api/v1/runs/{run.id}").json()

    assert (read["scored_on"], read["mean_accuracy"], read["source_estimate"]) == (0, None, TOO_FEW)


def test_a_row_of_an_earlier_version_is_read_by_the_same_rule(
    client: TestClient, session: Session, storage: FolderStorage
) -> None:
    runs = [make_run(session, storage, train=2) for _ in range(2)]
    for run, (estimate, error) in zip(runs, ((-0.499, 0.469), (0.75, 0.02)), strict=True):
        reported(session, run, source_accuracy_estimate=estimate, source_accuracy_error=error)
    session.commit()

    hidden, shown = (client.get(f"/api/v1/runs/{run.id}/metrics").json()["items"][0] for run in runs)

    assert hidden["source_estimate"]["estimate"] is None
    assert hidden["source_estimate"]["missing"] > 0
    assert 0 < shown["source_estimate"]["low"] < 0.75 < shown["source_estimate"]["high"] < 1
    assert shown["source_estimate"]["held_out"] == 470  # 0.251 * 0.749 / 0.02^2, one hit and one miss more


def test_runs_are_listed_by_campaign(client: TestClient, run: Run) -> None:
    found = client.get("/api/v1/runs", params={"campaign_id": str(run.campaign_id)}).json()
    none = client.get("/api/v1/runs", params={"campaign_id": str(uuid4())}).json()

    assert [item["id"] for item in found["items"]] == [str(run.id)]
    assert none == {"items": [], "next": None}


def test_metrics_are_read_by_seed_and_epoch(client: TestClient, run: Run) -> None:
    [metric] = client.get(f"/api/v1/runs/{run.id}/metrics").json()["items"]

    assert (metric["seed"], metric["epoch"], metric["losses"]) == (0, 1, {"complementary": 0.7})
    assert metric["source_estimate"] == ESTIMATE


def test_what_a_trial_is_doing_is_read(
    client: TestClient, session: Session, storage: FolderStorage, run: Run
) -> None:
    own = make_run(session, storage, train=2)
    claim = trials.claim_trial(session, own.trials[0].id, by="worker", now=NOW)
    assert claim is not None
    trials.record_doing(session, claim, Doing("features", 1024, 3718))
    session.commit()
    session.expire_all()

    [trial] = client.get(f"/api/v1/runs/{own.id}").json()["trials"]
    others = client.get(f"/api/v1/runs/{run.id}").json()["trials"]

    assert trial["doing"] == {"kind": "features", "done": 1024, "total": 3718}
    assert [other["doing"] for other in others] == [None, None]


def test_cancelling_twice_is_cancelling_once(client: TestClient, run: Run) -> None:
    first = client.post(f"/api/v1/runs/{run.id}/cancel")
    second = client.post(f"/api/v1/runs/{run.id}/cancel")

    assert (first.status_code, second.status_code) == (200, 200)
    assert [trial["state"] for trial in second.json()["trials"]] == ["running", "cancelled"]
    assert first.json()["cancel_requested_at"] == second.json()["cancel_requested_at"]


class TestNotes:
    def test_a_note_comes_with_the_run_and_is_read(
        self, client: TestClient, campaign: Campaign, target: Dataset
    ) -> None:
        made = client.post(f"/api/v1/campaigns/{campaign.id}/runs", json=body(target, note=" why\r\nnot "))
        listed = client.get("/api/v1/runs").json()["items"]

        assert made.json()["note"] == "why\nnot"
        assert [item["note"] for item in listed] == ["why\nnot"]

    def test_it_is_changed_and_taken_away_and_stays_where_it_is_left_out(
        self, client: TestClient, run: Run
    ) -> None:
        url = f"/api/v1/runs/{run.id}"

        changes: list[dict[str, str]] = [{"note": "Ünï 猫 <b>"}, {}, {"note": "x" * 500}, {"note": ""}]
        notes = [client.patch(url, json=change).json()["note"] for change in changes]

        assert notes == ["Ünï 猫 <b>", "Ünï 猫 <b>", "x" * 500, ""]

    @pytest.mark.parametrize("note", ["x" * 501, "bell \a", "zero \0", "turned \u202e round", 7])
    def test_what_is_too_long_or_cannot_be_seen_is_refused(
        self, client: TestClient, run: Run, note: object
    ) -> None:
        response = client.patch(f"/api/v1/runs/{run.id}", json={"note": note})

        assert response.status_code == 422
        assert client.get(f"/api/v1/runs/{run.id}").json()["note"] == ""


@pytest.mark.parametrize(
    ("method", "path"),
    [("get", ""), ("patch", ""), ("get", "/metrics"), ("get", "/events"), ("post", "/cancel")],
)
class TestEveryRoute:
    def test_an_unknown_run_is_not_found(self, client: TestClient, method: str, path: str) -> None:
        response = client.request(
            method, f"/api/v1/runs/{uuid4()}{path}", json={} if method == "patch" else None
        )

        assert response.status_code == 404
        assert response.json()["type"] == "/problems/run-not-found"

    def test_annotators_see_nothing(
        self, annotator_client: TestClient, run: Run, method: str, path: str
    ) -> None:
        response = annotator_client.request(
            method, f"/api/v1/runs/{run.id}{path}", json={} if method == "patch" else None
        )

        assert response.status_code == 403


class TestEvents:
    def test_a_finished_runs_stream_tells_its_state_and_ends(
        self, client: TestClient, session: Session, storage: FolderStorage
    ) -> None:
        run = make_run(session, storage, train=2, state="succeeded")
        session.commit()

        response = client.get(f"/api/v1/runs/{run.id}/events")

        assert response.headers["content-type"].startswith("text/event-stream")
        events = [block.splitlines() for block in response.text.replace("\r\n", "\n").strip().split("\n\n")]
        assert [lines[:2] for lines in events] == [["id: 0", "event: update"], ["id: 0", "event: end"]]
        state = {"seed": 0, "state": TrialState.SUCCEEDED.value, "epoch": 0, "doing": None}
        assert json.loads(events[0][2].removeprefix("data: ")) == {"trials": [state]}

    def test_what_is_no_id_of_its_events_is_refused_in_words(self, client: TestClient, run: Run) -> None:
        for since in ("1", "1-", "1-x", "1-2-3", "٣-1", f"1-{10**9}"):
            response = client.get(f"/api/v1/runs/{run.id}/events", params={"since": since})

            assert response.status_code == 422
            assert response.json()["detail"].endswith("such as 3-3, or leave it out.")

    def test_streams_are_bounded(self, app: FastAPI, client: TestClient, run: Run) -> None:
        app.state.streams = Streams(most=0)

        response = client.get(f"/api/v1/runs/{run.id}/events")

        assert response.status_code == 429
        assert response.headers["retry-after"] == "5"


def test_labels_are_frozen_while_nobody_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On SQLite an open writing transaction keeps every answer waiting."""
    settings = Settings(environment="test", data_dir=tmp_path, _env_file=None)
    storage = FolderStorage(settings.artefact_dir)
    database = connect(settings.sqlalchemy_url)
    Base.metadata.create_all(database.engine)
    with database.write.begin() as session:
        campaign = answered(session, storage, by=make_user(session))
        target = make_dataset(session, storage, train=10)
        admin = make_user(session, role="admin")
    with database.write() as session:
        token = make_token(session, admin)
    writers: list[int] = []

    def note(storage: FolderStorage, labels: Labels) -> str:
        writers.append(database.engine.pool.checkedout())  # type: ignore[attr-defined]  # a QueuePool has it
        return freeze(storage, labels)

    monkeypatch.setattr(service, "freeze", note)
    app = create_app(settings, database=database, publish=lambda _: None)
    client = TestClient(app, headers={"Authorization": f"Bearer {token}"})
    response = client.post(f"/api/v1/campaigns/{campaign.id}/runs", json=body(target))
    database.dispose()

    assert response.status_code == 202
    assert writers == [0]
