"""Accounts as programs meet them."""

from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.accounts.models import User
from tests.factories import make_user


def bearer(token: str) -> dict[str, str]:
    """The header of another program."""
    return {"Authorization": f"Bearer {token}"}


def test_me_names_the_caller_and_no_secrets(client: TestClient, admin: User) -> None:
    me = client.get("/api/v1/me").json()

    assert me["id"] == str(admin.id)
    assert set(me) == {"id", "email", "name", "role", "is_simulated", "created_at", "disabled_at"}


def test_tokens_are_made_listed_and_revoked(annotator_client: TestClient) -> None:
    made = annotator_client.post("/api/v1/tokens", json={"name": "script"})
    assert made.status_code == 201
    listed = annotator_client.get("/api/v1/tokens").json()["items"]
    assert {token["name"] for token in listed} == {"script", "test"}
    assert all("token" not in token for token in listed)
    assert annotator_client.get("/api/v1/me", headers=bearer(made.json()["token"])).status_code == 200

    assert annotator_client.delete(f"/api/v1/tokens/{made.json()['id']}").status_code == 204

    assert annotator_client.get("/api/v1/me", headers=bearer(made.json()["token"])).status_code == 401


def test_anothers_token_is_not_found(client: TestClient, annotator_client: TestClient) -> None:
    theirs = annotator_client.post("/api/v1/tokens", json={"name": "script"}).json()

    assert client.delete(f"/api/v1/tokens/{theirs['id']}").status_code == 404
    assert theirs["id"] not in client.get("/api/v1/tokens").text


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
    assert annotator_client.get("/api/v1/me").status_code == 200


def test_simulated_annotators_are_marked_and_may_only_answer(client: TestClient) -> None:
    made = client.post("/api/v1/simulated-annotators", json={"name": "Robot 1"}).json()
    again = client.post("/api/v1/simulated-annotators", json={"name": "Robot 1"}).json()

    assert made["user"]["id"] == again["user"]["id"]
    assert made["user"]["is_simulated"]
    assert client.get("/api/v1/me", headers=bearer(made["token"])).json()["role"] == "annotator"
    assert client.get("/api/v1/users", headers=bearer(made["token"])).status_code == 403
