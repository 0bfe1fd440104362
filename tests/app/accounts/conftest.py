"""Browsers: clients with a cookie jar that send our pages' token with every form."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx2 import Response
from sqlalchemy.orm import Session

from app.accounts import callers, service
from app.accounts.models import User
from app.clock import utc_now
from app.db import Base, Database, connect
from app.main import create_app
from app.settings import Settings
from tests.conftest import postgres_database
from tests.factories import PASSWORD, make_user

HTML = {"Accept": "text/html"}


@dataclass
class Browser:
    """What a person does: open pages, send their forms."""

    client: TestClient

    def get(self, path: str) -> Response:
        """Open a page."""
        return self.client.get(path, headers=HTML)

    def send(self, path: str, *, page: str, **fields: str) -> Response:
        """Send a form from a page, with the token that the page carries."""
        token = re.search(r'name="csrf-token" content="([^"]*)"', self.get(page).text)
        assert token
        return self.client.post(path, data={"csrf_token": token[1], **fields}, headers=HTML)

    def sign_in(self, email: str, password: str = PASSWORD, **fields: str) -> Response:
        """Send the sign-in form."""
        return self.send("/sign-in", page="/sign-in", email=email, password=password, **fields)

    @property
    def cookie(self) -> str:
        """The session's secret."""
        value = self.client.cookies.get("clarinet")
        assert value
        return str(value)


@pytest.fixture
def new_browser(app: FastAPI) -> Iterator[Callable[[], Browser]]:
    """As many browsers as a test needs."""
    with TestClient(app, follow_redirects=False, raise_server_exceptions=False) as first:

        def make() -> Browser:
            return Browser(TestClient(app, follow_redirects=False, raise_server_exceptions=False))

        assert first
        yield make


@pytest.fixture
def browser(new_browser: Callable[[], Browser]) -> Browser:
    """One browser, signed out."""
    return new_browser()


@pytest.fixture
def ada(session: Session) -> User:
    """An admin with a password."""
    user = make_user(session, role="admin", password=PASSWORD)
    session.commit()
    return user


@pytest.fixture
def grace(session: Session) -> User:
    """An annotator with a password."""
    user = make_user(session, password=PASSWORD)
    session.commit()
    return user


def in_person(app: FastAPI, session: Session, user: User) -> TestClient:
    """A client of the API in a browser where this person signed in just now."""
    secret = service.start_session(session, user, now=utc_now())
    session.commit()
    token = callers.csrf_token(app.state.settings.signing_secret(), secret)
    return TestClient(
        app,
        cookies={"clarinet": secret},
        headers={"X-CSRF-Token": token},
        follow_redirects=False,
        raise_server_exceptions=False,
    )


@pytest.fixture(params=["sqlite", "postgresql"])
def committed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database of its own, whose transactions really commit."""
    if request.param == "sqlite":
        database = connect(f"sqlite:///{tmp_path / 'own.db'}")
        Base.metadata.create_all(database.engine)
        yield database
        database.dispose()
        return
    with postgres_database() as url:
        database = connect(url)
        Base.metadata.create_all(database.engine)
        yield database
        database.dispose()


@pytest.fixture
def committing_app(committed: Database, settings: Settings) -> FastAPI:
    """The application over that database."""
    return create_app(settings, database=committed, publish=lambda _job: None)
