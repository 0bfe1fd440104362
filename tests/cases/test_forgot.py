"""A forgotten password: whom to ask, and the link that an admin makes."""

import re

from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.clock import utc_now
from tests.factories import make_user

HTML = {"Accept": "text/html"}


def test_somebody_comes_in_again_with_a_password_of_his_own(
    client: TestClient, anonymous: TestClient, session: Session, admin: User
) -> None:
    person = make_user(session)
    session.commit()
    new = "a new long password 22"

    asked = anonymous.get("/sign-in", headers=HTML).text
    by_token = client.post(f"/api/v1/users/{person.id}/password-link")
    # Who has the link becomes that person, so an admin makes it in person: no token does.
    secret = accounts.start_session(session, admin, now=utc_now())
    session.commit()
    in_person = TestClient(client.app, follow_redirects=False)
    in_person.cookies.set("clarinet", secret)
    page = in_person.get("/account", headers=HTML).text
    token = re.search(r'name="csrf-token" content="(\w+)"', page)
    assert token
    made = in_person.post(f"/api/v1/users/{person.id}/password-link", headers={"X-CSRF-Token": token[1]})
    link = made.json()["url"]
    page = anonymous.get(link, headers=HTML).text
    fields = set(re.findall(r'<input[^>]*name="(\w+)"', page)) - {"csrf_token"}
    changed = anonymous.post(link, data={name: new for name in fields if "password" in name}, headers=HTML)
    again = anonymous.get(link, headers=HTML)
    anonymous.cookies.clear()
    signed_in = anonymous.post("/sign-in", data={"email": person.email, "password": new}, headers=HTML)

    assert "orgot" in asked, "the page to sign in says what to do"
    assert by_token.status_code == 403
    assert made.status_code == 201, made.text
    assert changed.status_code == 303, changed.text
    assert again.status_code == 404, "a link works once"
    assert signed_in.status_code == 303, signed_in.text
