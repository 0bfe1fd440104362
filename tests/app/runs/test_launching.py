"""Runs beside one that is there: the paper's methods, sweeps, repeating with changes, what to expect."""

from uuid import UUID

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.clock import utc_now
from app.runs import configs
from app.runs.expecting import expected
from app.runs.labels import thaw
from app.runs.launching import PAPER
from app.runs.models import Run, Trial, TrialState
from app.runs.workers import record_worker
from app.stores.folder import FolderStorage
from tests.app.runs.conftest import inputs_of, reported
from tests.factories import NOW, make_run

HTML = {"accept": "text/html"}


@pytest.fixture
def run(session: Session, storage: FolderStorage) -> Run:
    """Of two seeds, on 120 labels."""
    made = make_run(session, storage, seeds=(3, 4), state="succeeded", config={"learning_rate": 0.004})
    session.commit()
    return made


def count(session: Session) -> int:
    return session.scalars(select(func.count()).select_from(Run)).one()


def test_the_papers_methods_are_launched_once_over_the_same_labels(
    client: TestClient, session: Session, run: Run
) -> None:
    url, key = f"/api/v1/runs/{run.id}/sweeps", {"Idempotency-Key": "a"}

    made = client.post(url, json={}, headers=key)
    again = client.post(url, json={}, headers=key)
    other = client.post(url, json={"seeds": [1]}, headers=key)

    assert (made.status_code, again.json(), other.status_code) == (202, made.json(), 422)
    assert [item["method"] for item in made.json()["items"]] == list(PAPER)
    runs = session.scalars(select(Run).where(Run.sweep_id == UUID(made.json()["sweep_id"]))).all()
    assert {each.snapshot_digest for each in runs} == {run.snapshot_digest}
    assert {item["setting"] for item in made.json()["items"]} == {"cc"}
    assert [item["seeds"] for item in made.json()["items"]] == [[3, 4]] * 5
    listed = client.get("/api/v1/runs", params={"sweep_id": made.json()["sweep_id"]}).json()["items"]
    assert len(listed) == 5


def test_numbers_of_labels_are_nested_draws(
    client: TestClient, session: Session, storage: FolderStorage, run: Run
) -> None:
    body = {"methods": ["gac"], "seeds": [0], "labels": [100, 40, 120]}

    made = client.post(f"/api/v1/runs/{run.id}/sweeps", json=body).json()

    runs = session.scalars(
        select(Run).where(Run.sweep_id == UUID(made["sweep_id"])).order_by(Run.number)
    ).all()
    few, many, whole = (thaw(storage, each.snapshot_digest, num_classes=2) for each in runs)
    assert (len(few), len(many), len(whole)) == (40, 100, 120)
    assert few.example_ids is not None
    assert many.example_ids is not None
    assert np.isin(few.example_ids, many.example_ids).all()
    assert runs[2].snapshot_digest == run.snapshot_digest
    assert sum(runs[0].snapshot_facts["complementary"]) + sum(runs[0].snapshot_facts["true"]) == 40
    assert runs[0].snapshot_facts["part_of"] == run.snapshot_digest


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"labels": [121]}, "Numbers of labels lie between 1 and 120"),
        ({"labels": list(range(50, 60))}, "That would be 50 runs"),
        ({"methods": ["none"]}, "There is no method 'none'"),
    ],
)
def test_what_cannot_be_launched_is_refused_whole(
    client: TestClient, session: Session, run: Run, body: dict[str, object], told: str
) -> None:
    refused = client.post(f"/api/v1/runs/{run.id}/sweeps", json=body)

    assert refused.status_code == 422
    assert told in refused.json()["detail"]
    assert count(session) == 1


def test_the_form_as_it_comes_launches_them_and_compares_them(
    client: TestClient, session: Session, run: Run
) -> None:
    url = f"/runs/{run.id}/sweep"
    page = client.get(url, headers=HTML).text
    sent = inputs_of(page) | {"methods": list(PAPER)}

    first, second = (client.post(url, data=sent, headers=HTML) for _ in range(2))
    refused = client.post(url, data=sent | {"once": "b", "labels": "999"}, headers=HTML)
    # Only the first method has such a preset: nothing is started, the first neither.
    half = {"methods": list(PAPER), "once": "c", "preset": "published"}
    assert client.post(url, data=sent | half, headers=HTML).status_code == 422

    assert "nobody knows how long they take" in page
    assert (first.status_code, refused.status_code) == (303, 422)
    assert first.headers["location"] == second.headers["location"]
    assert first.headers["location"].count("run=") == 6
    assert count(session) == 6


def test_repeating_fills_the_form_as_the_run_was_started(client: TestClient, run: Run) -> None:
    page = client.get(
        f"/campaigns/{run.campaign_id}/runs/new", params={"like": str(run.id)}, headers=HTML
    ).text

    filled = inputs_of(page)
    assert (filled["recipe"], filled["seeds"]) == ("clarinet-plus/digits-quick", "3, 4")
    assert (filled["config.learning_rate"], filled["config.epochs"]) == ("0.004", "2")


def test_what_a_training_takes_is_told_by_the_same_recipe_on_the_same_images_alone(
    session: Session, run: Run
) -> None:
    ids = {"source_id": run.source_dataset_id, "target_id": run.target_dataset_id}
    before = expected(session, **ids, config=run.config, now=NOW)
    reported(session, run, seconds=7.5)
    session.flush()

    [found] = expected(session, **ids, config=run.config, now=NOW)

    assert before == []
    assert (found.seconds, found.trainings, found.runs) == (7.5, 1, [run.number])
    assert (found.device, found.memory_bytes, found.is_here) == ("", None, False)
    assert expected(session, **ids, config=run.config | {"preset": "other"}, now=NOW) == []


def test_time_and_memory_are_told_by_device_and_nothing_of_one_that_trained_nothing_alike(
    client: TestClient, session: Session, run: Run
) -> None:
    run.preset, run.config = "digits", configs.config_for("clarinet-plus", "cc", None, {}, looks="digits")
    trials = [*run.trials, Trial(run=run, seed=9, state=TrialState.SUCCEEDED, queued_at=NOW)]
    session.add_all(trials)
    session.flush()
    noted = ((3.0, 2_000_000_000), (9.0, 2_500_000_000), (200.0, 900_000_000))
    for trial, (seconds, memory) in zip(trials, noted, strict=True):
        of = "CPU (x86_64)" if trial.seed == 9 else "NVIDIA H100"
        trial.last_metric = {"seconds": seconds}
        trial.result = {"device": of, "memory_bytes": memory}
    for name, device in (("a", "NVIDIA H100"), ("b", "NVIDIA L4")):
        record_worker(session, name, queues="gpu", device=device, now=utc_now())
    session.commit()
    asked = f"target_dataset_id={run.target_dataset_id}"

    told = client.get(f"/api/v1/campaigns/{run.campaign_id}/estimate?{asked}").json()["items"]
    page = client.get(f"/campaigns/{run.campaign_id}/runs/new?{asked}", headers=HTML).text

    names = ("device", "is_here", "seconds", "longest_seconds", "memory_bytes", "trainings")
    assert [tuple(item[name] for name in names) for item in told] == [
        ("NVIDIA H100", True, 6.0, 9.0, 2_500_000_000, 2),
        ("NVIDIA L4", True, None, None, None, 0),
        ("CPU (x86_64)", False, 200.0, 200.0, 900_000_000, 1),
    ]
    assert "6 s on NVIDIA H100 (longest 9 s; 2.5 GB of memory at most; 2 trainings of run" in page
    assert "nobody knows how long on NVIDIA L4, where none has ended yet" in page
