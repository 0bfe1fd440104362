"""Runs on a target whose class names are written otherwise."""

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.stores.folder import FolderStorage
from tests.factories import answer, make_campaign, make_dataset, questions_of


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["Cat", "Dog", "Owl"], None),
        (["cat ", "DOG", "owl"], None),
        (["cat", "dog", "owls"], "of owls"),
    ],
)
def test_a_target_is_scored_by_names_that_are_the_same_and_says_which_are_not(
    client: TestClient, session: Session, storage: FolderStorage, names: list[str], told: str | None
) -> None:
    source = make_dataset(session, storage, train=90, class_names=["cat", "dog", "owl"])
    target = make_dataset(session, storage, train=30, test=30, class_names=names)
    campaign = make_campaign(session, dataset=source)
    for question in questions_of(session, campaign):
        answer(session, campaign, question.id, "no")
    session.commit()
    body = {"target_dataset_id": str(target.id), "method": "gac", "preset": "short", "seeds": [0]}

    made = client.post(f"/api/v1/campaigns/{campaign.id}/runs", json=body)

    assert made.status_code == 202, made.text
    unscored = made.json()["unscored"]
    assert (unscored == "") == (told is None)
    assert (told or "") in unscored
