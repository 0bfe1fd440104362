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

from app.accounts.models import User
from app.campaigns.models import Campaign
from app.clock import utc_now
from app.datasets.models import Dataset
from app.idempotency import LIFE, IdempotencyKey
from app.labels.models import LabelImport
from app.storage import Storage
from tests.app.accounts.conftest import in_person
from tests.app.test_hardening import crowded  # noqa: F401  # a fixture
from tests.factories import make_campaign, make_dataset

ZIP = b"PK\x03\x04"


def count(session: Session, model: Any) -> int:
    """Rows of a table."""
    return session.scalars(select(func.count()).select_from(model)).one()


def key() -> dict[str, str]:
    """A new key."""
    return {"Idempotency-Key": str(uuid4())}


def test_a_campaign_sent_twice_is_one(client: TestClient, session: Session, storage: Storage) -> None:
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
    client: TestClient, session: Session, storage: Storage
) -> None:
    dataset = make_dataset(session, storage)
    session.commit()
    headers = key()
    body = {"name": "once", "dataset_id": str(dataset.id)}
    client.post("/api/v1/campaigns", json=body, headers=headers)

    other = client.post("/api/v1/campaigns", json=body | {"rounds": 2}, headers=headers)

    assert other.status_code == 422
    assert other.json()["type"] == "/problems/key-used-otherwise"


def test_what_was_refused_keeps_no_key(client: TestClient, session: Session, storage: Storage) -> None:
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
