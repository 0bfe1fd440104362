"""Two at the same moment: a first sign-in makes one account, and an answer counts once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts import service
from app.accounts.models import Role, User
from app.accounts.organisation.models import OrganisationIdentity, UsedSignIn
from app.db import Database
from tests.app.accounts.conftest import Browser
from tests.app.accounts.organisation.conftest import way_back, who
from tests.app.accounts.organisation.test_accounts import GROUPS
from tests.provider import Provider


def new(app: FastAPI) -> Browser:
    """A browser over a database whose transactions really commit."""
    return Browser(TestClient(app, follow_redirects=False, raise_server_exceptions=False))


def at_once(*acts: Callable[[], int]) -> list[int]:
    """What they give, begun at the same moment."""
    barrier = Barrier(len(acts))

    def do(act: Callable[[], int]) -> int:
        barrier.wait()
        return act()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(do, acts))


def test_two_first_sign_ins_make_one_account(committing_app: FastAPI, committed: Database) -> None:
    browsers = [new(committing_app) for _ in range(4)]
    backs = [way_back(browser.get("/sign-in/organisation")) for browser in browsers]

    statuses = at_once(*(lambda b=b, p=p: b.get(p).status_code for b, p in zip(browsers, backs, strict=True)))

    assert statuses == [303] * 4
    assert {who(browser) for browser in browsers} == {"ada@example.org"}
    with committed.read() as session:
        assert session.scalar(select(func.count()).select_from(User)) == 1
        assert session.scalar(select(func.count()).select_from(OrganisationIdentity)) == 1


@pytest.mark.parametrize("committed", ["postgresql"], indirect=True)  # SQLite lets one write after the other
def test_an_account_that_is_made_between_two_looks_is_ones_own(
    committing_app: FastAPI, committed: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = new(committing_app), new(committing_app)
    backs = [way_back(browser.get("/sign-in/organisation")) for browser in (first, second)]
    look, statuses = service.user_with_email, list[int]()

    def look_late(session: Session, email: str) -> User | None:
        monkeypatch.setattr(service, "user_with_email", look)
        statuses.append(second.get(backs[1]).status_code)
        return look(session, email)

    monkeypatch.setattr(service, "user_with_email", look_late)
    statuses.append(first.get(backs[0]).status_code)

    assert statuses == [303, 303]
    with committed.read() as session:
        assert session.scalar(select(func.count()).select_from(User)) == 1


def test_one_answer_signs_in_once(committing_app: FastAPI, committed: Database) -> None:
    browser = new(committing_app)
    back = way_back(browser.get("/sign-in/organisation"))
    cookie = browser.client.cookies["clarinet-organisation"]
    copies = [new(committing_app) for _ in range(4)]
    for copy in copies:
        copy.client.cookies.set("clarinet-organisation", cookie)

    statuses = at_once(*(lambda c=c: c.get(back).status_code for c in copies))

    assert sorted(statuses) == [303, 409, 409, 409]
    with committed.read() as session:
        assert session.scalar(select(func.count()).select_from(UsedSignIn)) == 1


@GROUPS
def test_of_two_admins_who_lose_their_group_at_once_one_stays(
    committing_app: FastAPI, committed: Database, provider: Provider
) -> None:
    backs, browsers = [], []
    for name in ("ada", "grace"):
        provider.person = {
            "sub": name,
            "email": f"{name}@example.org",
            "email_verified": True,
            "groups": ["leads"],
        }
        browser = new(committing_app)
        assert browser.get(way_back(browser.get("/sign-in/organisation"))).status_code == 303
    for name in ("ada", "grace"):
        provider.person = {"sub": name, "email": f"{name}@example.org", "email_verified": True, "groups": []}
        browsers.append(new(committing_app))
        backs.append(way_back(browsers[-1].get("/sign-in/organisation")))

    statuses = at_once(*(lambda b=b, p=p: b.get(p).status_code for b, p in zip(browsers, backs, strict=True)))

    assert statuses == [303, 303]
    with committed.read() as session:
        assert sorted(session.scalars(select(User.role))) == [Role.ADMIN, Role.ANNOTATOR]
