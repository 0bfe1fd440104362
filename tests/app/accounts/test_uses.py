"""When tokens were last used is written down now and then, by whoever owns the database."""

import time
from collections.abc import Callable

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import ApiToken, User
from app.db import Base
from app.main import create_app
from app.settings import Settings
from tests.factories import make_token, make_user


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.main.EVERY_S", 0.02)


def use(app: FastAPI, token: str, *, until: Callable[[], bool], within_s: float) -> bool:
    """Ask with a token; whether `until` held within so long."""
    with TestClient(app, headers={"Authorization": f"Bearer {token}"}) as client:
        assert client.get("/api/v1/me").status_code == 200
        deadline = time.monotonic() + within_s
        while not until():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
    return True


def test_a_server_writes_uses_down_while_it_runs(settings: Settings) -> None:
    app = create_app(settings, publish=lambda _: None)
    database = app.state.database
    Base.metadata.create_all(database.engine)
    with database.write.begin() as session:
        token = make_token(session, make_user(session))

    def is_written() -> bool:
        with database.read.begin() as session:
            return session.scalar(select(ApiToken.seen_at)) is not None

    assert use(app, token, until=is_written, within_s=300)


def test_in_a_passed_database_no_thread_writes_between_requests(
    app: FastAPI, session: Session, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be one connection: a second thread would break the savepoint of a request that goes on."""
    written: list[None] = []
    monkeypatch.setattr(app.state.uses, "write_down", lambda: written.append(None))
    token = make_token(session, admin)
    session.commit()

    assert not use(app, token, until=lambda: bool(written), within_s=0.3)
