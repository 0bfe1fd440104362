"""Renaming and erasing people: what identifies them goes, what they did stays."""

import json
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import delete, func, select, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.errors import AccountErased, LastAdmin, NameDiffers, NotAllowed
from app.accounts.models import ApiToken, Invitation, LoginSession, Role, User
from app.annotation.models import Answer
from app.campaigns.models import CampaignMember, GroupPerson
from app.clock import utc_now
from app.journal import service as journal
from app.journal.models import Action, Entry
from app.journal.writing import ADDRESS
from app.members import service
from app.request_keys import IdempotencyKey
from tests.factories import NOW, PASSWORD, answer, make_campaign, make_token, make_user, questions_of

API = "/api/v1"


def joined(session: Session, admin: User) -> User:
    """Somebody who came by an invitation, and whom the journal tells of in every way."""
    session.info[ADDRESS] = "192.0.2.7"
    _, secret = accounts.invite(
        session, role=Role.ANNOTATOR, note="Jane from class", email="jane@example.org", by=admin, now=NOW
    )
    jane = accounts.accept_invitation(
        session,
        secret,
        email="jane@example.org",
        name="Jane Doe",
        password_hash=accounts.hash_if_strong(PASSWORD),
        now=NOW,
    )
    accounts.start_session(session, jane, now=NOW, address="192.0.2.7", browser="Firefox, Linux")
    accounts.create_token(session, jane, "Jane's laptop", now=NOW)
    accounts.begin_second_factor(session, jane)
    accounts.rename(session, jane.id, "Jane Roe", by=admin)
    journal.write(session, Action.SIGN_IN_REFUSED, by=None, details=journal.naming(jane))
    # As an earlier version wrote them: by name alone.
    journal.write(session, Action.PERSON_PAUSED, by=None, details={"person": "Jane Roe"})
    journal.write(session, Action.TOKEN_REVOKED, by=jane, details={"token": "t", "person": "Otto"})
    session.flush()
    return jane


def test_nothing_that_identifies_somebody_is_left_and_the_answers_are(session: Session, admin: User) -> None:
    jane = joined(session, admin)
    namesake = make_user(session)
    accounts.rename(session, namesake.id, "Jane Roe", by=admin)
    accounts.set_role(session, namesake.id, Role.REVIEWER, by=admin, now=NOW)
    campaign = make_campaign(session)
    group = service.make_group(session, "Class 4b", by=admin, now=NOW)
    service.add_person(session, group.id, jane.id, by=admin)
    service.add_member(session, campaign, jane.id, by=admin)
    answer(session, campaign, questions_of(session, campaign)[0].id, by=jane)
    session.add(IdempotencyKey(user_id=jane.id, key="Jane's 1st", request="", created_at=NOW))

    erased = service.erase_person(session, jane.id, name="Jane Roe", by=admin, now=NOW)

    session.expire_all()
    assert erased.name.startswith("Person ")
    row = session.get_one(User, jane.id)
    assert (row.password_hash, row.totp_secret, row.erased_at) == (None, None, NOW)
    for table in (LoginSession, ApiToken, GroupPerson, CampaignMember, IdempotencyKey):
        mine = select(func.count()).select_from(table).where(table.user_id == jane.id)
        assert session.scalar(mine) == 0, table
    everything = [
        str([getattr(item, column.key) for column in table.__table__.columns])
        for table in (User, Invitation, LoginSession, ApiToken)
        for item in session.scalars(select(table).where(*([User.id != namesake.id] if table is User else [])))
    ]
    lines = session.execute(select(Entry.details, Entry.address, Entry.by_id, Entry.action)).all()
    everything += [json.dumps(line.details) for line in lines if str(namesake.id) not in str(line.details)]
    for trace in ("Jane", "jane@", "192.0.2.7"):
        assert [item for item in everything if trace in item] == [], trace
    assert {line.address for line in lines if line.by_id == jane.id} == {""}
    assert {line.address for line in lines if line.action is Action.SIGN_IN_REFUSED} == {""}
    # What was done stays, and a namesake keeps the name.
    assert {Action.ACCOUNT_MADE, Action.SIGNED_IN, Action.TOKEN_MADE} <= {
        line.action for line in lines if line.by_id == jane.id
    }
    assert [line.details["person"] for line in lines if line.action is Action.ROLE_CHANGED] == ["Jane Roe"]
    [revoked] = [line.details for line in lines if line.action is Action.TOKEN_REVOKED]
    assert revoked == {"token": erased.name, "person": "Otto"}
    assert session.scalars(select(Answer.user_id)).all() == [jane.id]


def test_whoever_is_erased_is_out_and_stays_so(session: Session, client: TestClient, admin: User) -> None:
    person = make_user(session)
    headers = {"Authorization": f"Bearer {make_token(session, person)}"}
    path = f"{API}/users/{person.id}/erase"
    assert client.post(path, json={"name": "Somebody"}).json()["type"] == "/problems/name-differs"
    assert client.get(f"{API}/me", headers=headers).status_code == 200

    assert client.post(path, json={"name": person.name}).status_code == 204

    assert client.get(f"{API}/me", headers=headers).status_code == 401
    assert client.post(path, json={"name": "x"}).json()["type"] == "/problems/account-erased"
    for change in ({"disabled": False}, {"role": "admin"}, {"name": "Back"}):
        told = client.patch(f"{API}/users/{person.id}", json=change)
        assert told.status_code in {403, 409}, change
    session.refresh(person)
    with pytest.raises(AccountErased):
        accounts.make_password_link(session, person, by=admin, now=NOW)
    [shown] = [item for item in client.get(f"{API}/users").json()["items"] if item["id"] == str(person.id)]
    assert (shown["email"], bool(shown["erased_at"])) == (f"{person.id.hex}@erased.invalid", True)


def test_nobody_erases_themselves_the_last_admin_or_by_a_slip(session: Session, admin: User) -> None:
    for other in session.scalars(select(User).where(User.role == Role.ADMIN, User.id != admin.id)):
        other.role = Role.ANNOTATOR
    session.flush()
    person = make_user(session)

    with pytest.raises(NotAllowed):
        service.erase_person(session, admin.id, name=admin.name, by=admin, now=NOW)
    with pytest.raises(LastAdmin):
        service.erase_person(session, admin.id, name=admin.name, by=None, now=NOW)
    with pytest.raises(LastAdmin):
        accounts.set_role(session, admin.id, Role.REVIEWER, by=None, now=NOW)
    with pytest.raises(NameDiffers):
        service.erase_person(session, person.id, name="Person", by=admin, now=NOW)
    with pytest.raises(NotAllowed):
        service.erase_person(session, person.id, name=person.name, by=person, now=NOW)
    service.erase_person(session, person.id, name=person.name, by=None, now=NOW)
    with pytest.raises(AccountErased):
        service.erase_person(session, person.id, name=person.name, by=admin, now=NOW)


def test_an_admin_or_reviewer_is_not_erased_by_a_token(session: Session, client: TestClient) -> None:
    for role in ("admin", "reviewer"):
        person = make_user(session, role=role)
        session.commit()
        told = client.post(f"{API}/users/{person.id}/erase", json={"name": person.name})
        assert told.json()["type"] == "/problems/in-person-only"


def test_no_token_makes_a_reviewer(session: Session, client: TestClient) -> None:
    person = make_user(session)
    session.commit()

    told = [
        client.patch(f"{API}/users/{person.id}", json={"role": "reviewer"}),
        client.post(f"{API}/invitations", json={"role": "reviewer"}),
    ]

    assert [answer.json()["type"] for answer in told] == ["/problems/in-person-only"] * 2


def test_the_journal_lets_nothing_else_be_changed(session: Session, admin: User) -> None:
    journal.write(session, Action.RUN_STARTED, by=admin, details={"run": 1})
    journal.write(session, Action.ROLE_CHANGED, by=admin, details=journal.naming(admin))
    session.flush()
    entry = session.scalars(select(Entry.id).where(Entry.action == Action.RUN_STARTED)).one()
    for statement in (
        delete(Entry).where(Entry.id == entry),
        update(Entry).where(Entry.id == entry).values(details={"run": 2}),
        update(Entry).where(Entry.id == entry).values(by_id=None),
        update(Entry).where(Entry.id == entry).values(at=NOW),
        update(Entry).where(Entry.id == entry).values(address="192.0.2.9"),
        update(Entry).where(Entry.id == entry).values(action=Action.RUN_CANCELLED),
        update(Entry).where(Entry.id == entry).values(campaign_id=uuid4()),
    ):
        with pytest.raises(DBAPIError, match="only written to"), session.begin_nested():
            session.execute(statement)


def test_the_page_renames_and_erases(client: TestClient, session: Session) -> None:
    person = make_user(session)
    session.commit()
    page, html = f"/people/{person.id}", {"Accept": "text/html"}
    renamed = client.post(f"{page}/change", data={"act": "rename", "name": "Ada <b>"}, headers=html)
    assert renamed.status_code == 303
    assert "Ada &lt;b&gt;" in client.get(page, headers=html).text

    wrong = client.post(f"{page}/erase", data={"name": "Ada"}, headers=html)
    assert wrong.status_code == 422
    assert "This is not the name of this person." in wrong.text
    assert 'href="#erase-name"' in wrong.text
    assert client.post(f"{page}/erase", data={"name": "Ada <b>"}, headers=html).status_code == 303

    shown = client.get(page, headers=html).text
    assert "Ada" not in shown
    assert "under this pseudonym" in shown


def test_a_reviewer_sees_what_a_reviewer_may_use(client: TestClient, session: Session) -> None:
    campaign = make_campaign(session)
    answer(session, campaign, questions_of(session, campaign)[0].id)
    reviewer = make_user(session, role="reviewer", password=PASSWORD)
    secret = accounts.start_session(session, reviewer, now=utc_now())
    session.commit()
    browser = TestClient(client.app, follow_redirects=False)
    browser.cookies.set("clarinet", secret)
    html = {"Accept": "text/html"}

    assert browser.get("/", headers=html).headers["location"] == "/campaigns"
    for path in ("/campaigns", f"/campaigns/{campaign.id}", f"/campaigns/{campaign.id}/review", "/annotate"):
        shown = browser.get(path, headers=html)
        assert shown.status_code == 200, path
        for word in (
            "/people",
            "/runs",
            "/datasets/new",
            "/models",
            "/groups",
            "members",
            "/pause",
            "/close",
        ):
            assert f'href="{word}' not in shown.text, (path, word)
            assert f'{campaign.id}{word}"' not in shown.text, (path, word)
    text = browser.get(f"/campaigns/{campaign.id}", headers=html).text
    assert "Person" not in text.partition("<main")[2]
    assert f"/campaigns/{campaign.id}/labels" in text
    assert f"/campaigns/{campaign.id}/answers" not in text


def test_what_somebody_made_is_shown_before_erasing(client: TestClient, session: Session) -> None:
    jane = make_user(session, role=Role.ADMIN)
    campaign = make_campaign(session)
    campaign.created_by_id = jane.id
    accounts.invite(session, role=Role.ANNOTATOR, note="", by=jane, now=NOW)
    make_token(session, jane)
    session.flush()

    found = client.get(f"{API}/users/{jane.id}/made").json()
    page = client.get(f"/people/{jane.id}", headers={"accept": "text/html"}).text

    assert found["counts"] == {"campaign": 1, "invitation": 1, "token": 1}
    assert [(item["kind"], item["name"]) for item in found["named"]] == [("campaign", campaign.name)]
    assert client.get(found["named"][0]["url"]).json()["id"] == str(campaign.id)
    assert "1 campaign, 1 invitation, 1 token." in page
    assert f"/campaigns/{campaign.id}" in page
    assert "made by a pseudonym" in page
