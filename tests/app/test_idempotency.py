"""The same request under the same key makes one thing, however often and by how many at once it is sent."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app import jobs
from app.accounts.models import User
from app.campaigns.models import Campaign
from app.clock import utc_now
from app.contract import operations_of
from app.datasets.models import Dataset, DatasetVersion
from app.idempotency import HEADER
from app.jobs import Job
from app.labels.models import LabelImport
from app.request_keys import LIFE, IdempotencyKey
from app.stores.folder import FolderStorage
from tests.app.accounts.conftest import in_person
from tests.app.quality.test_review import answered
from tests.app.test_hardening import crowded  # noqa: F401  # a fixture
from tests.factories import make_campaign, make_dataset

ZIP = b"PK\x03\x04"


def count(session: Session, model: Any) -> int:
    """Rows of a table."""
    return session.scalars(select(func.count()).select_from(model)).one()


def key() -> dict[str, str]:
    """A new key."""
    return {"Idempotency-Key": str(uuid4())}


def test_a_campaign_sent_twice_is_one(client: TestClient, session: Session, storage: FolderStorage) -> None:
    dataset = make_dataset(session, storage)
    session.commit()
    body, headers = {"name": "once", "dataset_id": str(dataset.id)}, key()

    first = client.post("/api/v1/campaigns", json=body, headers=headers)
    again = client.post("/api/v1/campaigns", json=body, headers=headers)

    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert first.headers["location"] == again.headers["location"]
    assert count(session, Campaign) == 1


def test_another_request_under_the_key_is_refused(
    client: TestClient, session: Session, storage: FolderStorage
) -> None:
    dataset = make_dataset(session, storage)
    session.commit()
    headers = key()
    body = {"name": "once", "dataset_id": str(dataset.id)}
    client.post("/api/v1/campaigns", json=body, headers=headers)

    other = client.post("/api/v1/campaigns", json=body | {"rounds": 2}, headers=headers)

    assert other.status_code == 422
    assert other.json()["type"] == "/problems/key-used-otherwise"


def test_what_was_refused_keeps_no_key(client: TestClient, session: Session, storage: FolderStorage) -> None:
    dataset = make_dataset(session, storage)
    session.commit()
    headers = key()
    missing = client.post(
        "/api/v1/campaigns", json={"name": "a", "dataset_id": str(uuid4())}, headers=headers
    )

    assert missing.status_code >= 400
    assert count(session, IdempotencyKey) == 0
    body = {"name": "a", "dataset_id": str(dataset.id)}
    assert client.post("/api/v1/campaigns", json=body, headers=headers).status_code == 201


@pytest.mark.parametrize("by", ["form", "bare", "json"])
def test_an_upload_sent_twice_is_one(client: TestClient, session: Session, by: str) -> None:
    headers = key()

    def send(name: str) -> httpx2.Response:
        if by == "form":
            return client.post(
                "/api/v1/datasets", data={"name": name}, files={"file": ("a.zip", ZIP)}, headers=headers
            )
        if by == "json":
            return client.post("/api/v1/datasets", json={"name": name, "path": "/nowhere"}, headers=headers)
        bare = headers | {"Content-Type": "application/octet-stream"}
        return client.post(f"/api/v1/datasets?name={name}", content=ZIP, headers=bare)

    first, again = send("one"), send("one")

    if by == "json":  # refused, and again so: nothing was made
        assert first.status_code == again.status_code == 422
        assert count(session, Dataset) == 0
        return
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["id"] == again.json()["id"]
    assert send("two").status_code == 422
    assert count(session, Dataset) == 1


def test_labels_sent_twice_are_one_import(client: TestClient, session: Session) -> None:
    campaign = make_campaign(session)
    session.commit()
    path, headers = f"/api/v1/campaigns/{campaign.id}/imports", key()
    files = {"file": ("l.csv", b"position,class,answer\n0,0,no\n")}

    first, again = (client.post(path, files=files, headers=headers) for _ in range(2))

    assert (first.status_code, again.status_code) == (202, 202), first.text
    assert first.json() == again.json()
    assert count(session, LabelImport) == 1


@pytest.mark.parametrize("by", ["form", "bare", "images", "labels"])
def test_another_file_of_the_same_name_and_size_is_another_request(
    client: TestClient, session: Session, storage: FolderStorage, by: str
) -> None:
    headers, dataset, campaign = key(), make_dataset(session, storage), make_campaign(session)
    session.commit()
    kept = [count(session, table) for table in (Dataset, DatasetVersion, LabelImport)]
    path, files = {
        "form": ("datasets", [ZIP + b"one", ZIP + b"two"]),
        "bare": ("datasets?name=a", [ZIP + b"one", ZIP + b"two"]),
        "images": (f"datasets/{dataset.id}/images", [ZIP + b"one", ZIP + b"two"]),
        "labels": (
            f"campaigns/{campaign.id}/imports",
            [f"position,class,answer\n0,{n},no\n".encode() for n in (0, 1)],
        ),
    }[by]

    def send(data: bytes) -> httpx2.Response:
        if by == "bare":
            bare = headers | {"Content-Type": "application/octet-stream"}
            return client.post(f"/api/v1/{path}", content=data, headers=bare)
        fields = {"name": "a"} if by == "form" else {}
        return client.post(f"/api/v1/{path}", data=fields, files={"file": ("a", data)}, headers=headers)

    first, other, again = send(files[0]), send(files[1]), send(files[0])

    assert (first.status_code, again.status_code) == (202, 202), first.text
    assert first.json()["id"] == again.json()["id"]
    assert (other.status_code, other.json()["type"]) == (422, "/problems/key-used-otherwise")
    assert sum(count(session, table) for table in (Dataset, DatasetVersion, LabelImport)) == sum(kept) + 1


@pytest.mark.parametrize("kind", ["campaign", "dataset", "group", "import", "images", "decision"])
def test_what_was_made_and_deleted_since_is_said_to_be_deleted(
    client: TestClient, session: Session, storage: FolderStorage, kind: str
) -> None:
    dataset, campaign = make_dataset(session, storage), make_campaign(session, examples=3, confirm_yes=True)
    [question] = answered(session, campaign, "ynyn")
    session.commit()
    decision = {"question_id": question.id, "value": "no"}
    labels = {"file": ("l.csv", b"position,class,answer\n0,0,no\n")}
    path, sent = {
        "campaign": ("campaigns", {"json": {"name": "once", "dataset_id": str(dataset.id)}}),
        "dataset": ("datasets", {"data": {"name": "once"}, "files": {"file": ("a.zip", ZIP)}}),
        "group": ("groups", {"json": {"name": "once"}}),
        "import": (f"campaigns/{campaign.id}/imports", {"files": labels}),
        "images": (f"datasets/{dataset.id}/images", {"files": {"file": ("a.zip", ZIP)}}),
        "decision": (f"campaigns/{campaign.id}/decisions", {"json": decision}),
    }[kind]
    headers = key()

    def send() -> httpx2.Response:
        return client.post(f"/api/v1/{path}", headers=headers, **sent)  # type: ignore[arg-type]

    made = send()
    assert made.status_code < 300, made.text
    there = made.headers.get("location", f"/api/v1/{path}/{made.json()['id']}")
    gone = client.post(f"{there}/undo") if kind == "decision" else client.delete(there)
    assert gone.status_code == 204, gone.text
    again = send()
    session.expire_all()

    assert (again.status_code, again.json()["type"]) == (409, "/problems/deleted-since"), again.text
    assert again.json()["made"] == str(made.json()["id"])
    assert "under a new key" in again.json()["detail"]
    headers = key()
    assert send().status_code == made.status_code


@pytest.fixture
def ada(app: FastAPI, session: Session, admin: User) -> TestClient:
    """An admin in a browser: no token makes tokens."""
    return in_person(app, session, admin)


def test_a_secret_is_not_told_again(ada: TestClient) -> None:
    for path, body in (
        ("tokens", {"name": "a"}),
        ("invitations", {"note": "b"}),
        ("simulated-annotators", {"name": "c"}),
    ):
        headers = key()
        made = ada.post(f"/api/v1/{path}", json=body, headers=headers)
        again = ada.post(f"/api/v1/{path}", json=body, headers=headers)

        assert (made.status_code, again.status_code) == (201, 409)
        assert again.json()["type"] == "/problems/made-before"
        assert again.json()["made"] in made.text


def test_keys_are_their_senders_and_last_a_day(
    app: FastAPI, ada: TestClient, annotator: User, session: Session
) -> None:
    headers = key()
    for sender in (ada, in_person(app, session, annotator)):
        assert sender.post("/api/v1/tokens", json={"name": "a"}, headers=headers).status_code == 201
    assert ada.post("/api/v1/tokens", json={"name": "a"}, headers=headers).status_code == 409

    session.execute(update(IdempotencyKey).values(created_at=utc_now() - LIFE - timedelta(minutes=1)))
    session.commit()

    assert ada.post("/api/v1/tokens", json={"name": "a"}, headers=headers).status_code == 201


# Which end something, change it or hand it out, or bring a key in each answer; their second time finds it so.
NO_KEY = {
    *("lease_questions", "submit_answers", "undo_answers", "renew_leases", "release_leases", "prove_myself"),
    *("pause_campaign", "close_campaign", "pause_person", "resume_person", "leave_person_out"),
    *("count_person_again", "undo_decision", "cancel_run", "change_answer", "note_practised", "erase_person"),
    *(
        "pause_run",
        "resume_run",
        "retry_run",
        "predict_pictures",
        "predict_pictures_by_alias",
        "test_subscription",
        "ask_for_trial_umap",
    ),
}


def test_every_post_that_makes_or_launches_something_takes_a_key(app: FastAPI) -> None:
    posts = {
        one["operationId"]: any(
            given["name"].lower() == HEADER.lower() for given in one.get("parameters", ())
        )
        for _, method, one in operations_of(app.openapi())
        if method == "post"
    }

    assert {name for name, takes_key in posts.items() if not takes_key} == NO_KEY
    assert {"ask_doubtful_questions_again", "mark_known_pictures", "open_campaign", "start_run"} <= set(posts)


def test_what_is_launched_twice_under_a_key_is_launched_once(
    client: TestClient, session: Session, storage: FolderStorage, published: list[Job]
) -> None:
    dataset = make_dataset(session, storage, train=8)
    draft, is_open = (
        make_campaign(session, state="draft", dataset=dataset),
        make_campaign(session, dataset=dataset),
    )
    session.commit()

    for campaign, path, body in ((draft, "open", None), (is_open, "gold", {"per_class": 1})):
        headers, there = key(), f"/api/v1/campaigns/{campaign.id}/{path}"
        first, again = (client.post(there, json=body, headers=headers) for _ in range(2))
        assert first.status_code in {200, 202}, first.text
        assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert [job.name for job in published].count(jobs.OPEN_CAMPAIGN) == 1


def test_questions_are_asked_again_once(client: TestClient, session: Session) -> None:
    campaign = make_campaign(session, examples=3, confirm_yes=True)
    answered(session, campaign, "uuu", "uuu")
    session.commit()
    path, headers = f"/api/v1/campaigns/{campaign.id}/review/ask-again", key()

    first, again = (client.post(path, json={"count": 1}, headers=headers) for _ in range(2))
    others = [client.post(path, json={"count": 1}, headers=key()).json() for _ in range(2)]

    assert (first.json(), again.json()) == ({"asked": 1}, {"asked": 1})
    assert others == [{"asked": 1}, {"asked": 0}]  # one of two was left


@pytest.mark.parametrize("bad", ["", " ", "a b", "x" * 129, "\x7f"])
def test_an_odd_key_is_malformed(ada: TestClient, bad: str) -> None:
    answer = ada.post("/api/v1/tokens", json={"name": "a"}, headers={"Idempotency-Key": bad})

    assert answer.status_code == 422


@pytest.mark.dialects
def test_many_at_once_make_one(crowded: tuple[str, str]) -> None:  # noqa: F811  # the fixture
    url, token = crowded
    headers = {"Authorization": f"Bearer {token}"} | key()

    def send(_: int) -> int:
        return httpx2.post(
            f"{url}/api/v1/datasets", data={"name": "one"}, files={"file": ("a.zip", ZIP)}, headers=headers
        ).status_code

    with ThreadPoolExecutor(8) as threads:
        statuses = set(threads.map(send, range(16)))

    assert statuses == {202}
    listed = httpx2.get(f"{url}/api/v1/datasets", headers={"Authorization": f"Bearer {token}"}).json()
    assert len(listed["items"]) == 1
