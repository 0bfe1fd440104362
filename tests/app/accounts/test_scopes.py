"""What tokens and sessions let through, in the framework's way and in the fast one."""

from datetime import timedelta
from typing import Literal
from uuid import uuid4

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient
from httpx2 import Response
from sqlalchemy import update
from sqlalchemy.orm import Session

from app.access import is_in_person
from app.accounts import callers, service
from app.accounts.models import ApiToken, LoginSession, Scope, User
from app.campaigns.models import Campaign
from app.clock import utc_now
from app.db import Database
from app.main import create_app
from app.settings import Settings
from tests.app.accounts.conftest import in_person
from tests.factories import make_campaign, make_user

EXECUTIONS: list[Literal["fast", "plain"]] = ["fast", "plain"]


@pytest.fixture(params=EXECUTIONS)
def app(request: pytest.FixtureRequest, settings: Settings, database: Database) -> FastAPI:
    """The application with either execution of answers."""
    return create_app(settings, database=database, publish=lambda _job: None, answering=request.param)


@pytest.fixture
def campaign(session: Session) -> Campaign:
    """An open campaign."""
    campaign = make_campaign(session)
    session.commit()
    return campaign


@pytest.fixture
def token(session: Session, admin: User) -> str:
    """An admin's token that may do all."""
    _, secret = service.create_token(session, admin, "script", now=utc_now())
    session.commit()
    return secret


def with_token(app: FastAPI, secret: str) -> TestClient:
    """A program."""
    headers = {"Authorization": f"Bearer {secret}"}
    return TestClient(app, headers=headers, follow_redirects=False, raise_server_exceptions=False)


def lease(client: TestClient, campaign: Campaign) -> Response:
    """Ask for a question."""
    return client.post(f"/api/v1/campaigns/{campaign.id}/questions", json={"count": 1})


@pytest.mark.parametrize(
    ("scope", "looks", "answers", "manages"),
    [(Scope.READ, 200, 403, 403), (Scope.ANNOTATE, 403, 200, 403), (Scope.MANAGE, 200, 200, 201)],
)
def test_a_token_does_what_its_scope_says(
    *,
    app: FastAPI,
    session: Session,
    admin: User,
    campaign: Campaign,
    scope: Scope,
    looks: int,
    answers: int,
    manages: int,
) -> None:
    _, secret = service.create_token(session, admin, "script", now=utc_now(), scope=scope)
    session.commit()
    program = with_token(app, secret)

    assert program.get("/api/v1/me").status_code == 200
    assert program.get("/api/v1/users").status_code == looks
    leased = lease(program, campaign)
    assert leased.status_code == answers
    assert program.post("/api/v1/invitations", json={}).status_code == manages
    if answers == 403:
        assert leased.json()["type"] == "/problems/token-too-narrow"
        assert "read" in leased.json()["detail"]


def test_a_narrow_token_revokes_itself_alone(app: FastAPI, session: Session, annotator: User) -> None:
    made = {
        scope: service.create_token(session, annotator, scope, now=utc_now(), scope=scope)
        for scope in (Scope.ANNOTATE, Scope.MANAGE)
    }
    session.commit()
    narrow, wide = made[Scope.ANNOTATE], made[Scope.MANAGE]
    program = with_token(app, narrow[1])

    assert program.delete(f"/api/v1/tokens/{wide[0].id}").status_code == 403
    assert program.delete(f"/api/v1/tokens/{narrow[0].id}").status_code == 204
    assert program.get("/api/v1/me").status_code == 401
    assert with_token(app, wide[1]).get("/api/v1/me").status_code == 200


def test_a_token_ends_in_both_executions(
    app: FastAPI, session: Session, token: str, campaign: Campaign
) -> None:
    program = with_token(app, token)
    assert lease(program, campaign).status_code == 200

    session.execute(update(ApiToken).values(expires_at=utc_now() - timedelta(seconds=1)))
    session.commit()

    assert lease(program, campaign).status_code == 401
    assert program.get("/api/v1/me").status_code == 401


@pytest.mark.parametrize("how", ["disabled", "revoked"])
def test_disabling_and_revoking_end_in_both_executions(
    *, app: FastAPI, session: Session, admin: User, annotator: User, campaign: Campaign, how: str
) -> None:
    made, secret = service.create_token(session, annotator, "script", now=utc_now())
    browser = in_person(app, session, annotator)
    program = with_token(app, secret)
    assert lease(program, campaign).status_code == lease(browser, campaign).status_code == 200

    if how == "disabled":
        for disabled in (True, False):
            service.set_disabled(session, annotator.id, disabled=disabled, by=admin, now=utc_now())
    else:
        service.revoke_token(session, made.id, by=admin, now=utc_now())
        service.end_sessions(session, annotator.id, by=admin)
    session.commit()

    assert lease(program, campaign).status_code == lease(browser, campaign).status_code == 401


def test_idle_sessions_end_in_both_executions(
    app: FastAPI, session: Session, settings: Settings, annotator: User, campaign: Campaign
) -> None:
    browser = in_person(app, session, annotator)
    assert lease(browser, campaign).status_code == 200
    app.state.uses.write_down()
    almost = utc_now() - settings.session_idle

    for seen_at, status in ((almost + timedelta(minutes=1), 200), (almost, 401)):
        session.execute(update(LoginSession).values(seen_at=seen_at, created_at=almost))
        session.commit()

        assert browser.get("/api/v1/me").status_code == status
        assert lease(browser, campaign).status_code == status


def test_uses_are_noted_in_both_executions(
    app: FastAPI, session: Session, token: str, annotator: User, campaign: Campaign
) -> None:
    browser = in_person(app, session, annotator)
    lease(with_token(app, token), campaign)
    lease(browser, campaign)
    before = utc_now() - timedelta(minutes=1)

    app.state.uses.write_down()

    session.expire_all()
    for row in (
        session.query(ApiToken).filter_by(token_hash=callers.digest(token)).one(),
        session.query(LoginSession).filter_by(user_id=annotator.id).one(),
    ):
        assert row.seen_at
        assert row.seen_at > before


def test_no_token_does_what_needs_a_person(app: FastAPI, token: str) -> None:
    """Not tokens, passwords, proofs, other sessions; read from the routes' marks."""
    program = with_token(app, token)
    routes = [route for route in iter_route_contexts(app.routes) if is_in_person(route.endpoint)]
    assert {"/api/v1/tokens", "/api/v1/me/proof", "/account/password", "/account/tokens"} <= {
        route.path for route in routes
    }
    for route in routes:
        path = (route.path or "").replace("{token_id}", str(uuid4())).replace("{session_id}", "0" * 64)
        for method in (route.methods or set()) - {"HEAD", "OPTIONS"}:
            answer = program.request(method, path, json={})

            assert answer.status_code == 403, path
            assert answer.json()["type"] == "/problems/in-person-only"


def test_no_token_makes_an_admin(
    app: FastAPI, session: Session, admin: User, annotator: User, token: str
) -> None:
    lost = make_user(session, role="admin")  # who would be an admin again
    service.set_disabled(session, lost.id, disabled=True, by=admin, now=utc_now())
    session.commit()
    program = with_token(app, token)
    for answer in (
        program.post("/api/v1/invitations", json={"role": "admin"}),
        program.patch(f"/api/v1/users/{annotator.id}", json={"role": "admin"}),
        program.patch(f"/api/v1/users/{lost.id}", json={"disabled": False}),
        program.post(f"/api/v1/users/{admin.id}/password-link"),
        program.delete(f"/api/v1/users/{admin.id}/second-factor"),
    ):
        assert answer.status_code == 403
        assert answer.json()["type"] == "/problems/in-person-only"
    # Who has somebody's link, or their password alone, becomes that person.
    for answer in (
        program.post(f"/api/v1/users/{annotator.id}/password-link"),
        program.delete(f"/api/v1/users/{annotator.id}/second-factor"),
        program.post(f"/people/{annotator.id}/change", data={"act": "password-link"}),
        program.post(f"/people/{annotator.id}/change", data={"act": "no-second-factor"}),
    ):
        assert answer.status_code == 403
    assert program.post("/api/v1/invitations", json={"role": "annotator"}).status_code == 201
    assert program.patch(f"/api/v1/users/{annotator.id}", json={"role": "annotator"}).status_code == 200
