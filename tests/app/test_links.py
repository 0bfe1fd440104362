"""Campaigns, datasets, runs and models name each other in the API; lists can be limited to one of them."""

from uuid import uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.registry import service as registry
from app.registry.models import Model
from app.runs.models import Run
from app.stores.folder import FolderStorage
from tests.factories import NOW, make_campaign, make_run

API = "/api/v1"
pytestmark = pytest.mark.dialects


def published(session: Session, storage: FolderStorage) -> tuple[Run, Model]:
    """A run with one seed and its model."""
    run = make_run(session, storage, train=4, state="succeeded")
    trial = run.trials[0]
    card = {"run": run.number, "run_id": str(run.id), "seed": 0, "method": run.method, "preset": run.preset}
    card["classes"] = ["cat", "dog"]
    model = registry.publish_model(
        session,
        trial_id=trial.id,
        key=f"models/{trial.id}/1",
        digest="d" * 64,
        size_bytes=1,
        card=card,
        now=NOW,
    )
    return run, model


def listed(client: TestClient, what: str, **limits: object) -> list[str]:
    """Ids of a list."""
    answer = client.get(f"{API}/{what}", params={name: str(value) for name, value in limits.items()})
    assert answer.status_code == 200
    return [item["id"] for item in answer.json()["items"]]


def test_each_names_the_others(client: TestClient, session: Session, storage: FolderStorage) -> None:
    run, model = published(session, storage)
    session.commit()

    told_of_model = client.get(f"{API}/models/{model.id}").json()
    told_of_run = client.get(f"{API}/runs/{run.id}").json()
    told_of_campaign = client.get(f"{API}/campaigns/{run.campaign_id}").json()

    origin = ("campaign_id", "source_dataset_id", "target_dataset_id")
    assert told_of_model["run_id"] == str(run.id)
    assert [told_of_model[name] for name in origin] == [told_of_run[name] for name in origin]
    assert told_of_campaign["dataset_id"] == told_of_run["source_dataset_id"] == str(run.source_dataset_id)
    assert told_of_run["target_dataset_id"] == str(run.target_dataset_id)
    assert client.get(f"{API}/models").json()["items"][0]["run_id"] == str(run.id)


def test_lists_can_be_limited_to_what_belongs_to_one(
    client: TestClient, session: Session, storage: FolderStorage
) -> None:
    (run, model), (other_run, other_model) = (published(session, storage) for _ in range(2))
    draft = make_campaign(session, state="draft")
    session.commit()

    assert listed(client, "campaigns", dataset_id=draft.dataset_id) == [str(draft.id)]
    assert listed(client, "runs", campaign_id=run.campaign_id) == [str(run.id)]
    for dataset_id in (run.source_dataset_id, run.target_dataset_id):
        assert listed(client, "runs", dataset_id=dataset_id) == [str(run.id)]
        assert listed(client, "models", dataset_id=dataset_id) == [str(model.id)]
    assert listed(client, "models", run_id=other_run.id) == [str(other_model.id)]
    assert listed(client, "models", campaign_id=other_run.campaign_id) == [str(other_model.id)]
    assert listed(client, "models", run_id=uuid4()) == []


def test_a_page_of_a_limited_list_leads_to_its_next(
    client: TestClient, session: Session, storage: FolderStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(session, storage, train=4, state="succeeded")
    again = make_run(session, storage, train=4, state="succeeded")
    again.campaign_id = run.campaign_id
    session.commit()
    monkeypatch.setattr("app.runs.list_pages.ROWS", 1)

    page = client.get(f"/runs?campaign_id={run.campaign_id}", headers={"accept": "text/html"}).text

    assert f"/runs?campaign_id={run.campaign_id}&amp;after={again.number}" in page


@pytest.mark.parametrize("what", ["campaign_id", "dataset_id"])
def test_a_list_of_what_is_not_there_is_not_found(client: TestClient, what: str) -> None:
    assert client.get(f"/runs?{what}={uuid4()}", headers={"accept": "text/html"}).status_code == 404
