"""Accounts as programs meet them."""

from datetime import datetime, timedelta

from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.accounts import service
from app.accounts.models import User
from app.clock import utc_now
from tests.app.accounts.conftest import in_person
from tests.factories import make_user


def bearer(token: str) -> dict[str, str]:
    """The header of another program."""
    return {"Authorization": f"Bearer {token}"}


def test_me_names_the_caller_and_no_secrets(client: TestClient, admin: User) -> None:
    me = client.get("/api/v1/me").json()

    assert me["id"] == str(admin.id)
    assert set(me) == {
        *("id", "email", "name", "role", "is_simulated", "is_outside"),
        *("created_at", "disabled_at", "erased_at"),
    }


def test_tokens_are_made_listed_and_revoked(app: FastAPI, session: Session, annotator: User) -> None:
    browser = in_person(app, session, annotator)
    made = browser.post("/api/v1/tokens", json={"name": "script", "scope": "read", "days": 7})
    assert made.status_code == 201
    (listed,) = browser.get("/api/v1/tokens").json()["items"]
    assert (listed["name"], listed["scope"], listed["seen_at"]) == ("script", "read", None)
    assert "token" not in listed
    life = datetime.fromisoformat(listed["expires_at"]) - datetime.fromisoformat(listed["created_at"])
    assert life == timedelta(days=7)
    program = TestClient(app, headers=bearer(made.json()["token"]))
    assert program.get("/api/v1/me").status_code == 200
    app.state.uses.write_down()
    session.expire_all()
    assert browser.get("/api/v1/tokens").json()["items"][0]["seen_at"]

    assert browser.delete(f"/api/v1/tokens/{made.json()['id']}").status_code == 204

    assert program.get("/api/v1/me").status_code == 401


def test_anothers_token_is_not_found_but_by_admins(
    app: FastAPI, client: TestClient, session: Session, annotator: User
) -> None:
    own, _ = service.create_token(session, annotator, "script", now=utc_now())
    other = in_person(app, session, make_user(session))

    assert other.delete(f"/api/v1/tokens/{own.id}").status_code == 404
    assert str(own.id) not in client.get("/api/v1/tokens").text
    assert [item["id"] for item in client.get(f"/api/v1/users/{annotator.id}/tokens").json()["items"]] == [
        str(own.id)
    ]
    assert other.get(f"/api/v1/users/{annotator.id}/tokens").status_code == 403
    assert client.delete(f"/api/v1/tokens/{own.id}").status_code == 204
    assert client.get(f"/api/v1/users/{annotator.id}/tokens").json()["items"] == []


def test_users_page_by_key(client: TestClient, session: Session) -> None:
    for _ in range(4):
        make_user(session)
    session.commit()

    seen: list[str] = []
    after = ""
    while True:
        page = client.get(f"/api/v1/users?limit=2{after}").json()
        seen += [user["id"] for user in page["items"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"

    assert len(seen) == len(set(seen)) >= 5
    assert client.get("/api/v1/users?limit=201").status_code == 422


def test_an_invitation_is_a_link_into_the_pages(client: TestClient) -> None:
    made = client.post("/api/v1/invitations", json={"role": "annotator", "note": "Grace"})

    assert made.status_code == 201
    assert client.get(made.json()["url"], headers={"Accept": "text/html"}).status_code == 200


def test_people_are_locked_out_and_let_in(
    client: TestClient, annotator: User, annotator_client: TestClient
) -> None:
    address = f"/api/v1/users/{annotator.id}"

    assert client.patch(address, json={"disabled": True}).json()["disabled_at"]
    assert annotator_client.get("/api/v1/me").status_code == 401
    assert client.patch(address, json={"disabled": False}).json()["disabled_at"] is None
    assert annotator_client.get("/api/v1/me").status_code == 401  # what ended stays so
    assert client.patch(address, json={}).status_code == 422


def test_simulated_annotators_are_marked_and_may_only_answer(client: TestClient) -> None:
    made = client.post("/api/v1/simulated-annotators", json={"name": "Robot 1"}).json()
    again = client.post("/api/v1/simulated-annotators", json={"name": "Robot 1"}).json()

    assert made["user"]["id"] == again["user"]["id"]
    assert made["user"]["is_simulated"]
    assert client.get("/api/v1/me", headers=bearer(made["token"])).json()["role"] == "annotator"
    assert client.get("/api/v1/users", headers=bearer(made["token"])).status_code == 403
