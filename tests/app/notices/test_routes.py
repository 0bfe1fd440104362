"""Subscriptions in the API and on their page."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app import jobs
from app.accounts import service as accounts
from app.accounts.models import Role, User
from app.clock import utc_now
from app.jobs import Job
from app.journal.models import Action, Entry
from app.notices import service
from app.notices.models import Event, Notice, NoticeState, Subscription
from app.settings import Settings
from tests.app.accounts.conftest import HTML
from tests.factories import make_user

HOOK = {"url": "https://hooks.example.org/clarinet?key=k", "events": ["run-ended", "person-paused"]}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """With a host to post to and a mail server that nobody asks."""
    more = {
        "webhook_hosts": ("hooks.example.org",),
        "smtp_url": "smtp://127.0.0.1:9",
        "mail_from": "clarinet@example.org",
    }
    return Settings(**settings.model_dump() | more, _env_file=None)


def test_a_subscription_is_made_shown_tried_out_and_ended(
    client: TestClient, session: Session, published: list[Job], admin: User
) -> None:
    made = client.post("/api/v1/subscriptions", json=HOOK, headers={"Idempotency-Key": "k1"})
    again = client.post("/api/v1/subscriptions", json=HOOK, headers={"Idempotency-Key": "k1"})
    [shown] = client.get("/api/v1/subscriptions").json()["items"]

    assert made.status_code == 201
    secret = made.json()["secret"]
    assert secret.startswith("whsec_")
    assert (again.status_code, again.json()["type"]) == (409, "/problems/made-before")
    assert made.json()["url"] == HOOK["url"]
    assert shown | {"url": HOOK["url"]} == {
        name: value for name, value in made.json().items() if name != "secret"
    }
    assert shown["url"] == "https://hooks.example.org/…"  # what follows may be a secret
    assert shown["events"] == ["person-paused", "run-ended"]
    assert shown["made_by"] == admin.name

    tried = client.post(f"/api/v1/subscriptions/{shown['id']}/test")
    [notice] = client.get(f"/api/v1/subscriptions/{shown['id']}/notices").json()["items"]
    assert (tried.status_code, notice["state"], notice["event"]) == (202, "waiting", "test")
    assert notice["said"]["type"] == "test"
    assert published == [Job(jobs.SEND_NOTICE, (notice["id"],))]

    assert client.delete(f"/api/v1/subscriptions/{shown['id']}").status_code == 204
    assert client.delete(f"/api/v1/subscriptions/{shown['id']}").status_code == 404
    session.expire_all()
    assert session.scalars(select(Notice)).all() == []
    lines = {entry.action: entry.details for entry in session.scalars(select(Entry))}
    assert lines[Action.SUBSCRIPTION_MADE] == {
        "to": "hooks.example.org",
        "events": "person-paused, run-ended",
    }
    assert lines[Action.SUBSCRIPTION_ENDED]["to"] == "hooks.example.org"
    assert secret not in str(lines)


@pytest.mark.parametrize(
    ("body", "slug"),
    [
        ({"events": []}, "malformed-request"),
        ({"events": ["test"]}, "malformed-request"),
        ({**HOOK, "url": "https://evil.org/"}, "address-not-allowed"),
        ({**HOOK, "url": "http://hooks.example.org/"}, "address-not-allowed"),
    ],
)
def test_what_cannot_be_subscribed_to_is_refused(client: TestClient, body: Any, slug: str) -> None:
    refused = client.post("/api/v1/subscriptions", json=body)

    assert (refused.status_code, refused.json()["type"]) == (422, f"/problems/{slug}")
    assert client.get("/api/v1/subscriptions").json()["items"] == []


def test_annotators_and_reviewers_have_none(annotator_client: TestClient) -> None:
    assert annotator_client.get("/api/v1/subscriptions").status_code == 403
    assert annotator_client.post("/api/v1/subscriptions", json=HOOK).status_code == 403


def test_the_page_does_the_same(client: TestClient, session: Session) -> None:
    page = client.get("/subscriptions", headers=HTML)
    assert "On hooks.example.org. For mail leave it empty." in page.text

    made = client.post("/subscriptions", data={"to": "webhook", **HOOK}, headers=HTML)
    assert made.status_code == 201
    assert "whsec_" in made.text
    again = client.get("/subscriptions", headers=HTML).text
    assert "https://hooks.example.org/…" in again
    assert "whsec_" not in again
    assert "key=k" not in again
    mailed = client.post("/subscriptions", data={"to": "mail", "events": "run-ended"}, headers=HTML)
    assert mailed.status_code == 303
    hook, mail = session.scalars(select(Subscription).order_by(Subscription.created_at)).all()
    assert (mail.url, mail.secret, mail.events) == (None, None, ["run-ended"])

    assert client.post(f"/subscriptions/{hook.id}/test", data={}, headers=HTML).status_code == 303
    assert "waits to be sent" in client.get("/subscriptions", headers=HTML).text
    assert client.post(f"/subscriptions/{hook.id}/delete", data={}, headers=HTML).status_code == 303
    assert "https://hooks" not in client.get("/subscriptions", headers=HTML).text


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"to": "webhook", "url": "https://hooks.example.org/"}, "Choose at least one event."),
        ({"to": "webhook", "events": "run-ended"}, "Please fill this in."),
        ({"to": "webhook", "url": "https://evil.org/", "events": "run-ended"}, "Nothing is sent to evil.org"),
    ],
)
def test_a_form_that_cannot_be_meant_comes_back_with_why(client: TestClient, form: Any, words: str) -> None:
    refused = client.post("/subscriptions", data=form, headers=HTML)

    assert refused.status_code == 422
    assert words in refused.text
    assert "Nobody is told more than before." in refused.text


ENDED: dict[str, tuple[Callable[..., object], str]] = {
    "role-changed": (
        lambda session, who, by: accounts.set_role(session, who.id, Role.REVIEWER, by=by, now=utc_now()),
        "who made it is no admin any more",
    ),
    "account-disabled": (
        lambda session, who, by: accounts.set_disabled(session, who.id, disabled=True, by=by, now=utc_now()),
        "the account of who made it was disabled",
    ),
    "person-erased": (
        lambda session, who, by: accounts.erase_account(session, who.id, name=who.name, by=by, now=utc_now()),
        "who made it was erased",
    ),
}


@pytest.mark.parametrize("because", ENDED)
def test_a_subscription_ends_with_its_makers_rights_for_all_to_see(
    client: TestClient, session: Session, settings: Settings, admin: User, because: str
) -> None:
    end, words = ENDED[because]
    other = make_user(session, role="admin")
    name = other.name
    row = service.subscribe(
        session, settings, url=str(HOOK["url"]), events=[Event.RUN_ENDED], by=other, now=utc_now()
    )
    waiting = service.try_out(session, settings, row.id, by=other, now=utc_now())
    session.commit()

    end(session, other, admin)
    session.commit()
    [shown] = client.get("/api/v1/subscriptions").json()["items"]
    page = client.get("/subscriptions", headers=HTML).text
    tried = client.post(f"/api/v1/subscriptions/{shown['id']}/test")
    due = service.waiting_notices(session, utc_now())
    session.commit()

    assert (shown["ended_because"], shown["ended_at"] is None) == (because, False)
    assert f": {words}" in page
    assert "Send a test" not in page
    assert (tried.status_code, tried.json()["type"]) == (409, "/problems/subscription-ended")
    session.refresh(waiting)
    assert (due, waiting.state, waiting.failure) == ([], NoticeState.GIVEN_UP, service.ENDED)
    line = session.scalars(select(Entry).where(Entry.action == Action.SUBSCRIPTION_ENDED)).one()
    assert (line.by_id, line.details["to"]) == (admin.id, "hooks.example.org")
    assert line.details["because"] == because
    assert (line.details["person"] == name) == (because != "person-erased")

    if because != "person-erased":
        other.role, other.disabled_at = Role.ADMIN, None
        session.commit()
        assert client.get("/api/v1/subscriptions").json()["items"][0]["ended_because"] == because
    assert client.delete(f"/api/v1/subscriptions/{shown['id']}").status_code == 204
    assert client.get("/api/v1/subscriptions").json()["items"] == []
    again = session.scalars(select(Entry).where(Entry.action == Action.SUBSCRIPTION_ENDED)).all()
    assert len(again) == 1
