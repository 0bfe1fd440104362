"""Further images over HTTP, and names for numbers: status, shape, permission, pages."""

import io
from uuid import UUID, uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app import jobs
from app.datasets.models import Dataset, DatasetState, DatasetVersion
from app.jobs import Job
from app.stores.folder import FolderStorage
from tests.app.datasets.files import picture, zip_of
from tests.factories import make_campaign, make_dataset

ZIP = zip_of({"cat/1.png": picture(), "dog/2.png": picture(shade=9)})
HTML = {"accept": "text/html"}


@pytest.fixture
def dataset(session: Session, storage: FolderStorage) -> Dataset:
    """A ready one."""
    made = make_dataset(session, storage)
    session.commit()
    return made


def test_further_images_are_kept_and_their_import_asked_for(
    client: TestClient, session: Session, dataset: Dataset, published: list[Job]
) -> None:
    address, headers = f"/api/v1/datasets/{dataset.id}", {"Idempotency-Key": str(uuid4())}

    def send() -> tuple[int, dict[str, object]]:
        answer = client.post(
            f"{address}/images",
            data={"skip_known": "false", "classes": "cat\ndog"},
            files={"file": ("more.zip", io.BytesIO(ZIP))},
            headers=headers,
        )
        assert answer.headers["location"].endswith(f"/versions/{answer.json()['id']}")
        return answer.status_code, answer.json()

    status, made = send()
    assert send() == (status, made)  # the same key: the same addition

    assert (status, made["number"], made["state"]) == (202, None, "importing")
    assert published == [Job(jobs.ADD_IMAGES, (str(made["id"]),))]
    addition = session.get_one(DatasetVersion, UUID(str(made["id"])))
    assert addition.upload is not None
    assert (addition.upload["skip_known"], addition.upload["classes"]) == (False, "cat\ndog")
    addition.state = DatasetState.FAILED
    addition.upload = addition.upload | {"mend": "skip_bad"}
    session.commit()
    again, retried = f"{address}/versions/{made['id']}/import", {"Idempotency-Key": str(uuid4())}
    mended = [client.post(again, json={"skip_bad": True}, headers=retried) for _ in range(2)]
    assert [(answer.status_code, answer.json()["state"]) for answer in mended] == [(202, "importing")] * 2
    items = client.get(f"{address}/versions").json()["items"]
    assert [(item["number"], item["state"]) for item in items] == [(1, "ready"), (None, "importing")]
    assert client.get(address).json()["train_count"] == 6  # nothing has changed yet
    assert client.delete(f"{address}/versions/{made['id']}").status_code == 204
    assert client.get(f"{address}/versions/{made['id']}").json()["type"] == "/problems/version-not-found"
    lines = client.get("/api/v1/journal").json()["items"][:2]
    assert [line["action"] for line in lines] == ["images-dropped", "images-added"]
    assert {line["details"]["dataset"] for line in lines} == {dataset.name}


def test_what_cannot_be_added_is_refused(client: TestClient, session: Session, dataset: Dataset) -> None:
    address = f"/api/v1/datasets/{dataset.id}"
    bad = client.post(f"{address}/images", files={"file": ("x.zip", b"no zip")})
    misspelt = client.post(f"{address}/images", data={"skip_knwon": "true"}, files={"file": ("x.zip", ZIP)})
    first = client.get(f"{address}/versions").json()["items"][0]["id"]
    gone = client.delete(f"{address}/versions/{first}")
    named = client.put(f"{address}/classes", json={"names": ["a", "b"]})
    dataset.state = DatasetState.IMPORTING
    session.commit()
    early = client.post(f"{address}/images", files={"file": ("x.zip", ZIP)})

    told = [(answer.status_code, answer.json()["type"].rsplit("/", 1)[-1]) for answer in (bad, gone, named)]
    assert told == [(422, "bad-upload"), (409, "version-published"), (409, "classes-not-numbers")]
    assert misspelt.status_code == 422
    assert (early.status_code, early.json()["type"]) == (409, "/problems/dataset-not-ready")


def test_annotators_add_nothing(annotator_client: TestClient, dataset: Dataset) -> None:
    address, version = f"/api/v1/datasets/{dataset.id}", f"versions/{dataset.id}"
    answers = [
        annotator_client.post(f"{address}/images", files={"file": ("x.zip", ZIP)}),
        annotator_client.get(f"{address}/versions"),
        annotator_client.get(f"{address}/{version}"),
        annotator_client.post(f"{address}/{version}/import", json={}),
        annotator_client.delete(f"{address}/{version}"),
        annotator_client.put(f"{address}/classes", json={"names": []}),
        annotator_client.get(f"/datasets/{dataset.id}/images/new", headers=HTML),
    ]

    assert [answer.status_code for answer in answers] == [403] * 7


def test_pages_add_tell_and_forget(client: TestClient, session: Session, dataset: Dataset) -> None:
    page = f"/datasets/{dataset.id}"
    form = client.get(f"{page}/images/new", headers=HTML).text
    assert "It has 8 images" in form

    empty = client.post(f"{page}/images/new", data={}, headers=HTML)
    sent = client.post(
        f"{page}/images/new", data={"skip_known": "true"}, files={"file": ("more.zip", ZIP)}, headers=HTML
    )

    assert (empty.status_code, sent.status_code) == (422, 303)
    assert "Further images wait for a worker" in client.get(page, headers=HTML).text
    addition = session.query(DatasetVersion).filter(DatasetVersion.number.is_(None)).one()
    assert addition.upload is not None
    assert addition.upload["skip_known"] is True
    addition.state, addition.failure = DatasetState.FAILED, "The file is broken."
    session.commit()
    assert "Further images did not join. The file is broken." in client.get(page, headers=HTML).text
    assert client.post(f"{page}/versions/{addition.id}/drop", headers=HTML).status_code == 303
    assert "did not join" not in client.get(page, headers=HTML).text


def test_a_campaign_with_names_over_numbers_is_told_what_to_do(
    client: TestClient, session: Session, storage: FolderStorage
) -> None:
    dataset = make_dataset(session, storage, class_names=("0", "1"))
    body = {"name": "Names", "dataset_id": str(dataset.id), "classes": [{"name": "cat"}, {"name": "dog"}]}
    session.commit()
    campaign = client.post("/api/v1/campaigns", json=body).json()["id"]
    page = f"/campaigns/{campaign}"
    assert "numbers its true classes" in client.get(page, headers=HTML).text
    assert "Name these classes" in client.get(f"/datasets/{dataset.id}", headers=HTML).text

    named = client.post(f"/datasets/{dataset.id}/classes", data={"names": "dog\r\ncat\r\n"}, headers=HTML)

    assert named.status_code == 303
    session.refresh(dataset)
    assert dataset.class_names == ["dog", "cat"]
    assert "numbers its true classes" not in client.get(page, headers=HTML).text
    other = make_campaign(session, dataset=dataset, state="draft")
    session.commit()
    assert "numbers its true classes" not in client.get(f"/campaigns/{other.id}", headers=HTML).text
