"""Evaluations over the API and on pages: from a run to its accuracy and back."""

import re
from uuid import UUID

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.datasets import versions
from app.datasets.models import Dataset
from app.db import Database
from app.evaluations.models import Evaluation
from app.registry.models import Model
from app.registry.target_predictions import FACTS
from app.runs.models import Run
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.app.evaluations import laid_out

HTML = {"accept": "text/html"}


@pytest.fixture
def model(session: Session, storage: FolderStorage) -> Model:
    """Of a run whose target nobody labelled."""
    target = laid_out.make_target(session, storage)
    model = laid_out.make_model(session, storage, target)
    target.class_names, target.train_per_class, target.test_per_class = None, [], []
    session.flush()
    version = versions.version(session, target.id, 1)
    version.class_names, version.train_per_class, version.test_per_class = None, [], []
    session.commit()
    return model


def test_a_program_asks_plans_and_reads(
    *,
    client: TestClient,
    session: Session,
    settings: Settings,
    database: Database,
    storage: FolderStorage,
    model: Model,
    admin: User,
    annotator: User,
) -> None:
    plan = client.get(f"/api/v1/models/{model.id}/evaluations/plan?half_width=0.2").json()
    body = {"model_id": str(model.id), "half_width": 0.2, "drawn_share": 0.5}
    key = {"Idempotency-Key": "once"}

    made = client.post("/api/v1/evaluations", json=body, headers=key)
    again = client.post("/api/v1/evaluations", json=body, headers=key)
    read = client.get(made.headers["location"]).json()
    found = session.get_one(Evaluation, UUID(read["id"]))
    campaign = laid_out.opened(session, settings, database, storage, found, by=admin)
    given = laid_out.answer_all(session, campaign, by=annotator)
    session.commit()

    assert made.status_code == 201
    assert again.json()["id"] == read["id"]
    assert (plan["population"], plan["known"]) == (60, 0)
    assert plan["sample"] == plan["asked"] == plan["drawn"] == read["sample_size"]
    assert given == read["sample_size"] + read["sample_size"] // 2
    result = client.get(f"/api/v1/evaluations/{read['id']}").json()["result"]
    run = client.get(f"/api/v1/runs/{model.run_id}").json()
    assert run["mean_accuracy"] is None
    assert run["measured_by_people"]["accuracy"] == result["interval"]["estimate"]
    assert result["interval"]["estimate"] == pytest.approx(result["right"] / read["sample_size"])
    for which in (f"run_id={model.run_id}", f"model_id={model.id}", f"dataset_id={campaign.dataset_id}"):
        items = client.get(f"/api/v1/evaluations?{which}").json()["items"]
        assert [item["id"] for item in items] == [read["id"]]
    assert client.get(f"/api/v1/campaigns/{campaign.id}").json()["kind"] == "evaluation"
    assert client.get(f"/api/v1/evaluations/{read['id']}/comparisons").json()["items"] == []


def test_a_person_goes_from_the_run_to_its_accuracy_and_back(
    *,
    client: TestClient,
    session: Session,
    settings: Settings,
    database: Database,
    storage: FolderStorage,
    model: Model,
    admin: User,
    annotator: User,
) -> None:
    run = client.get(f"/runs/{model.run_id}", headers=HTML).text
    form = client.get(f"/runs/{model.run_id}/evaluations/new?expected=0.95", headers=HTML).text
    typed = {"model_id": str(model.id), "expected": "0.9", "half_width": "0.1", "drawn_share": "1.0"}
    typed |= {"overlap": "1", "once": "this very form"}
    counted = client.post(
        f"/runs/{model.run_id}/evaluations/new", data=typed | {"count": "1", "by_class": "true"}
    )
    made, again = (client.post(f"/runs/{model.run_id}/evaluations/new", data=typed) for _ in range(2))
    other = client.post(f"/runs/{model.run_id}/evaluations/new", data=typed | {"once": "another"})
    page = client.get(made.headers["location"], headers=HTML).text
    found = session.get_one(Evaluation, UUID(made.headers["location"].rsplit("/", 1)[-1]))
    campaign = laid_out.opened(session, settings, database, storage, found, by=admin)
    asking = client.get(f"/evaluations/{found.id}", headers=HTML).text
    laid_out.answer_all(session, campaign, by=annotator)
    session.commit()

    assert counted.status_code == 200
    # 20 of each class at least: whatever width is asked for, it takes all pictures, and is offered once.
    assert counted.text.count("all 60 pictures, measured, not estimated: 60 questions") == 1
    assert "within 10 points" not in counted.text
    assert '<option value="true" selected>from each predicted class' in counted.text
    assert '<option value="0.1" selected>' in counted.text
    assert made.headers["location"] == again.headers["location"] != other.headers["location"]
    assert "Ask people whether its predictions are right" in run
    assert "Ask people how good it is" in run
    assert re.search(r"within 10 points: \d+ questions", form)
    assert "Not measured" in page
    assert "Open it" in page
    after = client.get(f"/runs/{model.run_id}", headers=HTML).text
    assert f"measured by 1 person on {found.sample_size} pictures" in after
    assert f"/evaluations/{found.id}" in after
    page = client.get(f"/evaluations/{found.id}", headers=HTML).text
    assert "every 5s" in asking
    assert "every 5s" not in page
    assert "Every picture is judged" in page
    assert f"/runs/{model.run_id}" in page
    assert f"/campaigns/{campaign.id}" in page
    back = client.get(f"/campaigns/{campaign.id}/evaluation")
    assert back.headers["location"] == f"/evaluations/{found.id}"
    shown = client.get(f"/campaigns/{campaign.id}", headers=HTML).text
    assert f"/campaigns/{campaign.id}/evaluation" in shown
    assert "Launch a run" not in shown
    assert "by people" in client.get("/runs", headers=HTML).text
    assert "Nobody has said of a picture" in client.get(f"/campaigns/{campaign.id}/review", headers=HTML).text


def test_annotators_do_not_learn_that_a_model_is_judged(
    *,
    client: TestClient,
    annotator_client: TestClient,
    session: Session,
    settings: Settings,
    database: Database,
    storage: FolderStorage,
    model: Model,
    admin: User,
) -> None:
    made = client.post("/api/v1/evaluations", json={"model_id": str(model.id), "half_width": 0.2}).json()
    found = session.get_one(Evaluation, UUID(made["id"]))
    campaign = laid_out.opened(session, settings, database, storage, found, by=admin)
    here = f"/api/v1/campaigns/{campaign.id}"

    kinds = [each.get(here).json()["kind"] for each in (client, annotator_client)]
    [listed] = [row for row in annotator_client.get("/api/v1/campaigns").json()["items"] if row["id"] in here]
    audit = annotator_client.get(f"{here}/audit").json()
    page = annotator_client.get(f"/campaigns/{campaign.id}/audit", headers=HTML).text
    client.post(f"{here}/close")

    assert kinds == ["evaluation", None]
    assert listed["kind"] is audit["expected_yes_rate"] is audit["sample_seed"] is None
    assert not re.search("model|prediction|evaluat", page.split("<main")[1].split("</main")[0])
    seeds = [each.get(f"{here}/audit").json()["sample_seed"] for each in (client, annotator_client)]
    assert seeds == [found.sample_seed, None]


def test_peoples_number_orders_the_list_and_stands_in_comparisons(
    *,
    client: TestClient,
    session: Session,
    settings: Settings,
    database: Database,
    storage: FolderStorage,
    model: Model,
    admin: User,
    annotator: User,
) -> None:
    target = session.get_one(Dataset, session.get_one(Run, model.run_id).target_dataset_id)
    better = laid_out.make_model(session, storage, target, wrong_every=30)
    session.commit()
    shown = {}
    for each in (model, better):
        body = {"model_id": str(each.id), "half_width": 0.2}
        made = client.post("/api/v1/evaluations", json=body).json()
        found = session.get_one(Evaluation, UUID(made["id"]))
        campaign = laid_out.opened(session, settings, database, storage, found, by=admin)
        laid_out.answer_all(session, campaign, by=annotator)
        session.commit()
        shown[str(each.run_id)] = client.get(f"/api/v1/evaluations/{made['id']}").json()["result"]["interval"]

    lowest, highest = (client.get(f"/api/v1/runs?sort={sort}accuracy").json()["items"] for sort in ("", "-"))
    compared = client.get(f"/api/v1/runs/compare?run={better.run_id}&run={model.run_id}").json()
    page = client.get(f"/runs/compare?run={better.run_id}&run={model.run_id}", headers=HTML).text

    ids = [str(model.run_id), str(better.run_id)]
    assert [item["id"] for item in lowest] == ids
    assert [item["id"] for item in highest] == ids[::-1]
    difference = compared["items"][1]["by_images"]
    between = shown[ids[0]]["estimate"] - shown[ids[1]]["estimate"]
    assert difference["value"] == pytest.approx(between)
    assert "people judged for both" in difference["basis"]
    assert page.count("by people") == 2


def test_what_cannot_be_evaluated_is_said(client: TestClient, session: Session, model: Model) -> None:
    wrong = client.post("/api/v1/evaluations", json={"model_id": str(model.id), "half_width": 0.0001})
    model.card = {name: value for name, value in model.card.items() if name != FACTS}
    session.commit()

    older = client.post("/api/v1/evaluations", json={"model_id": str(model.id)})
    form = client.get(f"/runs/{model.run_id}/evaluations/new", headers=HTML)

    assert wrong.status_code == 422
    assert older.status_code == 409
    assert "Repeat its run" in older.json()["detail"]
    assert "Repeat its run" in form.text
