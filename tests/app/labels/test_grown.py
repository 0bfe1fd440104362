"""Files about a grown dataset count its training images one after the other, out and in."""

import csv
import io

from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.datasets.models import Example
from app.labels.models import ImportedAnswer
from app.storage import Storage
from tests.app.labels.taking import send
from tests.factories import answer, grow_rows, make_campaign, make_dataset, make_user, questions_of


def test_positions_leave_test_images_between_out(
    client: TestClient, session: Session, storage: Storage
) -> None:
    dataset = make_dataset(session, storage, train=4, test=2)
    grow_rows(session, dataset, 3)  # behind the test images: positions 6 to 8
    campaign = make_campaign(session, dataset=dataset)
    person = make_user(session)
    for question in questions_of(session, campaign):
        answer(session, campaign, question.id, "no", by=person)
    session.commit()
    address = f"/api/v1/campaigns/{campaign.id}"

    found = {
        what: list(csv.DictReader(io.StringIO(client.get(f"{address}/{what}").text)))
        for what in ("labels", "answers")
    }
    sent = send(client, campaign, b"position,class_name\n4,cat\n6,dog\n")

    assert [int(row["position"]) for row in found["labels"]] == list(range(7))
    assert {row["num_images"] for row in found["labels"]} == {"7"}
    assert sorted(int(row["position"]) for row in found["answers"]) == list(range(7))
    assert sent["state"] == "ready", sent
    about = select(Example.position).join(ImportedAnswer, ImportedAnswer.example_id == Example.id)
    assert set(session.scalars(about)) == {6, 8}
