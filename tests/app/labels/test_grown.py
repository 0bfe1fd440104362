"""Files about a grown dataset count its training images one after the other, out and in."""

import csv
import io
import zipfile

from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.datasets.models import Example
from app.labels.models import ImportedAnswer
from app.stores.folder import FolderStorage
from tests.app.labels.taking import send
from tests.factories import answer, grow_rows, make_campaign, make_dataset, make_user, questions_of


def test_positions_leave_test_images_between_out(
    client: TestClient, session: Session, storage: FolderStorage
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
    sent = send(client, campaign, b"position,class_name\n4,cat\n6,dog\n", "more.csv")

    assert [int(row["position"]) for row in found["labels"]] == list(range(7))
    assert {row["num_images"] for row in found["labels"]} == {"7"}
    assert sorted(int(row["position"]) for row in found["answers"]) == list(range(7))
    assert (sent["status"], sent["state"]) == (202, "ready"), sent
    about = select(Example.position).join(ImportedAnswer, ImportedAnswer.example_id == Example.id)
    assert set(session.scalars(about)) == {6, 8}


def test_pictures_in_class_folders_are_counted_likewise(
    client: TestClient, session: Session, storage: FolderStorage
) -> None:
    dataset = make_dataset(session, storage, train=4, test=2)
    grow_rows(session, dataset, 1)
    first, last = session.scalars(
        select(Example)
        .where(Example.dataset_id == dataset.id, Example.position.in_([0, 6]))
        .order_by(Example.position)
    )
    last.byte_offset, last.byte_length, last.digest = first.byte_offset, first.byte_length, first.digest
    campaign = make_campaign(session, dataset=dataset)
    about = next(item for item in questions_of(session, campaign) if item.example_id == last.id)
    answer(session, campaign, about.id, "yes")
    session.commit()
    address = f"/api/v1/campaigns/{campaign.id}/labels"

    with zipfile.ZipFile(io.BytesIO(client.get(f"{address}/folders").content)) as pictures:
        [name] = pictures.namelist()
    [row] = csv.DictReader(io.StringIO(client.get(address).text))

    assert (name, row["position"]) == (f"{campaign.class_names[about.candidate_class]}/000004.png", "4")
