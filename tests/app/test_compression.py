"""Pages, scripts and text downloads leave compressed; pictures, streams and answers to POST as they are."""

import gzip
import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.datastructures import Headers

from app.accounts import callers
from app.accounts import service as accounts
from app.accounts.models import User
from app.clock import utc_now
from app.compression import takes_gzip
from app.datasets.models import Example
from app.pages import asset
from app.stores.folder import FolderStorage
from tests.asgi import ask
from tests.factories import make_campaign, make_dataset, make_run


@pytest.mark.parametrize(
    ("header", "takes"),
    [
        ("gzip, deflate, br", True),
        ("GZIP;q=0.5", True),
        ("*", True),
        ("gzip;q=0", False),
        ("gzip; q=0.00, br", False),
        ("br", False),
        ("", False),
    ],
)
def test_who_takes_gzip(header: str, takes: bool) -> None:
    assert takes_gzip(Headers({"accept-encoding": header})) is takes


def test_what_is_text_leaves_compressed(app: FastAPI, client: TestClient, session: Session) -> None:
    campaign = make_campaign(session, examples=40)
    session.commit()
    token = client.headers["authorization"].encode()
    for path in (
        "/campaigns",
        asset("css/base.css"),
        f"/api/v1/campaigns/{campaign.id}/labels",
        "/api/v1/openapi.json",
    ):
        known = [("host", b"testserver"), ("authorization", token), ("accept", b"*/*")]
        plain = ask(app, "GET", path, known)
        packed = ask(app, "GET", path, [*known, ("accept-encoding", b"gzip")])

        if len(plain.body) < 500:
            assert "content-encoding" not in packed.headers or path.endswith("/labels"), path
            continue
        assert packed.headers["content-encoding"] == "gzip", path
        assert "Accept-Encoding" in packed.headers["vary"], path
        assert len(packed.body) < len(plain.body) / 2, path
        assert packed.headers.get("content-length", str(len(packed.body))) == str(len(packed.body)), path
        unpacked = gzip.decompress(packed.body)
        if path != "/campaigns":  # it has a token under a new mask
            assert unpacked == plain.body, path


def test_pictures_and_streams_leave_as_they_are(
    app: FastAPI, client: TestClient, session: Session, storage: FolderStorage
) -> None:
    dataset = make_dataset(session, storage, size=64)
    run = make_run(session, storage)
    example = session.scalars(select(Example.id).where(Example.dataset_id == dataset.id)).first()
    session.commit()
    known = [
        ("host", b"testserver"),
        ("authorization", client.headers["authorization"].encode()),
        ("accept-encoding", b"gzip"),
    ]
    for path in (
        f"/api/v1/datasets/{dataset.id}/examples/{example}/image",
        asset("vendor/instrument-sans.woff2"),
    ):
        assert "content-encoding" not in ask(app, "GET", path, known).headers, path

    assert "content-encoding" not in ask(app, "HEAD", f"/api/v1/runs/{run.id}/events", known).headers


def test_the_token_of_a_page_has_a_new_mask_each_time(
    app: FastAPI, session: Session, admin: User, anonymous: TestClient
) -> None:
    secret = accounts.start_session(session, admin, now=utc_now())
    session.commit()
    anonymous.cookies.set("clarinet", secret)
    pages = [anonymous.get("/account", headers={"Accept": "text/html"}).text for _ in range(2)]
    tokens = [re.search(r'name="csrf-token" content="(\w+)"', page) for page in pages]

    assert tokens[0]
    assert tokens[1]
    first, second = tokens[0][1], tokens[1][1]
    own = callers.csrf_token(app.state.settings.signing_secret(), secret)
    assert first != second
    assert callers.unmasked(first) == callers.unmasked(second) == own
    assert own not in pages[0]
    for token in (first, second, own):
        made = anonymous.post("/api/v1/tokens", json={"name": "mine"}, headers={"X-CSRF-Token": token})
        assert made.status_code == 201
    assert (
        anonymous.post(
            "/api/v1/tokens", json={"name": "x"}, headers={"X-CSRF-Token": first[::-1]}
        ).status_code
        == 403
    )
