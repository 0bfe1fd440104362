"""Nothing that people answer in an evaluation trains: no gold, no drawn class, on no way."""

import json
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service as annotation
from app.annotation.models import Naming
from app.campaigns.models import Campaign
from app.datasets.models import Dataset
from app.db import Database
from app.labels.errors import EvaluationGivesNoLabels
from app.labels.models import ImportedAnswer
from app.runs import service as runs
from app.runs.labels import collect
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.app.evaluations import laid_out
from tests.app.evaluations.test_evaluations import WITHIN
from tests.app.labels.taking import send
from tests.factories import answer, make_campaign, questions_of


@pytest.fixture
def campaign(
    *,
    session: Session,
    settings: Settings,
    database: Database,
    storage: FolderStorage,
    admin: User,
    annotator: User,
) -> Campaign:
    """An evaluation's, all of it answered, known pictures included, and after each no the class named."""
    model = laid_out.make_model(session, storage, laid_out.make_target(session, storage))
    wishes = replace(WITHIN, asks_which=True)
    found = laid_out.make_evaluation(session, storage, model, wishes, by=admin)
    campaign = laid_out.opened(session, settings, database, storage, found, by=admin)
    campaign.gold_share = 0.3
    known = annotation.some_known(session, campaign, per_class=5)
    annotation.mark_known(session, campaign, known, by=admin)
    session.commit()
    laid_out.answer_all(session, campaign, by=annotator, names=True)
    session.commit()
    assert session.scalar(select(func.count()).select_from(Naming))
    return campaign


def test_no_snapshot_takes_its_answers(
    session: Session, storage: FolderStorage, campaign: Campaign, admin: User
) -> None:
    with pytest.raises(EvaluationGivesNoLabels):
        collect(session, campaign)
    with pytest.raises(EvaluationGivesNoLabels, match="Use a campaign that collects labels"):
        runs.freeze_labels(session, campaign, setting="cc", by=admin, storage=storage)


def test_a_campaign_over_the_same_pictures_has_its_own_answers_alone(
    session: Session, storage: FolderStorage, campaign: Campaign, admin: User, annotator: User
) -> None:
    other = make_campaign(session, dataset=session.get_one(Dataset, campaign.dataset_id))
    asked = questions_of(session, other)[:40]
    for question in asked:
        answer(session, other, question.id, "no", by=annotator)
    session.commit()

    labels, _ = collect(session, other)
    frozen = runs.freeze_labels(session, other, setting="cc", by=admin, storage=storage)

    assert labels.example_ids is not None
    assert sorted(labels.example_ids.tolist()) == sorted(question.example_id for question in asked)
    assert sum(frozen.facts["complementary"]) == len(asked)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/campaigns/{id}/labels?format=csv"),
        ("GET", "/api/v1/campaigns/{id}/labels?format=npz"),
        ("GET", "/api/v1/campaigns/{id}/labels/folders"),
        ("GET", "/campaigns/{id}/runs/new"),
        ("POST", "/api/v1/campaigns/{id}/runs"),
        ("POST", "/api/v1/campaigns/{id}/imports"),
        ("GET", "/campaigns/{id}/imports"),
    ],
)
def test_every_way_to_labels_is_closed_in_words(
    client: TestClient, campaign: Campaign, method: str, path: str
) -> None:
    body: dict[str, object] = {}
    if path.endswith("/runs"):
        body = {"json": {"target_dataset_id": str(campaign.dataset_id)}}
    elif method == "POST":
        body = {"files": {"file": ("labels.csv", b"position,class,kind\n0,cat,true\n")}}

    response = client.request(method, path.format(id=campaign.id), **body)  # type: ignore[arg-type]  # by name

    assert response.status_code == 409
    assert "its answers say how often a model is right" in response.text


@pytest.mark.parametrize("format", ["csv", "jsonl", "label-studio"])
def test_its_answers_are_no_labels_elsewhere(
    client: TestClient, session: Session, campaign: Campaign, format: str
) -> None:
    answers = client.get(f"/api/v1/campaigns/{campaign.id}/answers?format={format}").content
    lines = client.get(f"/api/v1/campaigns/{campaign.id}/answers?format=jsonl").text.splitlines()
    other = make_campaign(session, dataset=session.get_one(Dataset, campaign.dataset_id))
    session.commit()

    send(client, other, answers, f"answers.{format.replace('label-studio', 'json')}")

    assert {json.loads(line)["purpose"] for line in lines} == {"evaluation", "gold"}
    assert session.scalar(select(func.count()).select_from(ImportedAnswer)) == 0
    labels, _ = collect(session, other, imported=True)
    assert len(labels) == 0
