"""One-time links: the first admin's, those for one address, those to another password."""

from datetime import timedelta

import pytest
from sqlalchemy.orm import Session
from starlette.requests import Request

from app.accounts import service
from app.accounts.errors import (
    AccountDisabled,
    AccountErased,
    AccountOfProgram,
    EmailNotMeant,
    EmailTaken,
    InvitationNotFound,
    NotAllowed,
)
from app.accounts.models import Role
from app.deps import reached_at
from app.settings import Settings
from tests.factories import NOW, PASSWORD, make_user


def test_only_the_newest_link_makes_the_first_admin(session: Session) -> None:
    secrets = [service.invite_first_admin(session, now=NOW + timedelta(seconds=n)) for n in range(3)]
    *old, newest = [secret or "" for secret in secrets]

    for secret in old:
        with pytest.raises(InvitationNotFound):
            service.find_invitation(session, secret, now=NOW + timedelta(minutes=1))
    service.accept_invitation(
        session, newest, email="ada@example.org", name="Ada", password_hash="hash", now=NOW
    )
    assert service.has_admin(session)
    assert service.invite_first_admin(session, now=NOW) is None


def test_every_link_for_the_first_admin_ends_when_there_is_one(session: Session) -> None:
    secret = service.invite_first_admin(session, now=NOW)
    assert secret
    assert service.find_invitation(session, secret, now=NOW)

    make_user(session, role="admin")

    with pytest.raises(InvitationNotFound):
        service.find_invitation(session, secret, now=NOW)
    with pytest.raises(InvitationNotFound):
        service.accept_invitation(
            session, secret, email="eve@example.org", name="Eve", password_hash="hash", now=NOW
        )


def test_a_link_for_one_address_makes_no_account_for_another(session: Session) -> None:
    _, secret = service.invite(
        session, role=Role.ADMIN, note="Ada", email=" Ada@Example.org", by=None, now=NOW
    )

    with pytest.raises(EmailNotMeant):
        service.accept_invitation(
            session, secret, email="eve@example.org", name="Eve", password_hash="hash", now=NOW
        )
    user = service.accept_invitation(
        session, secret, email="ADA@example.org", name="Ada", password_hash="hash", now=NOW
    )
    assert user.email == "ada@example.org"


def test_no_link_is_made_for_an_address_that_has_an_account(session: Session) -> None:
    user = make_user(session)

    with pytest.raises(EmailTaken):
        service.invite(session, role=Role.ANNOTATOR, note="", email=user.email.upper(), by=None, now=NOW)


def test_a_link_to_another_password_works_once_for_a_day(session: Session) -> None:
    admin, user = make_user(session, role="admin"), make_user(session, password=PASSWORD)
    _, old = service.make_password_link(session, user, by=admin, now=NOW)
    _, secret = service.make_password_link(session, user, by=admin, now=NOW)
    late = NOW + service.PASSWORD_LINK_LIFE

    for given, when in ((old, NOW), (secret, late), ("unknown", NOW)):
        with pytest.raises(InvitationNotFound):
            service.choose_password(session, given, password_hash="new", now=when)
    assert service.choose_password(session, secret, password_hash="new", now=NOW).id == user.id
    session.refresh(user)
    assert user.password_hash == "new"
    with pytest.raises(InvitationNotFound):
        service.choose_password(session, secret, password_hash="newer", now=NOW)


def test_links_are_of_one_kind(session: Session) -> None:
    admin = make_user(session, role="admin")
    _, to_password = service.make_password_link(session, make_user(session), by=admin, now=NOW)
    _, to_account = service.invite(session, role=Role.ADMIN, note="", by=admin, now=NOW)

    with pytest.raises(InvitationNotFound):
        service.accept_invitation(
            session, to_password, email="eve@example.org", name="Eve", password_hash="hash", now=NOW
        )
    with pytest.raises(InvitationNotFound):
        service.choose_password(session, to_account, password_hash="hash", now=NOW)


def test_links_to_another_password_are_for_people_who_may_come_in(session: Session) -> None:
    admin, user = make_user(session, role="admin"), make_user(session, password=PASSWORD)
    robot, _, _ = service.simulated_annotator(session, "Robot", by=admin, now=NOW)
    _, secret = service.make_password_link(session, user, by=admin, now=NOW)
    service.set_disabled(session, user.id, disabled=True, by=admin, now=NOW)

    with pytest.raises(InvitationNotFound):
        service.choose_password(session, secret, password_hash="new", now=NOW)
    with pytest.raises(AccountDisabled):
        service.make_password_link(session, user, by=admin, now=NOW)
    with pytest.raises(AccountOfProgram):
        service.make_password_link(session, robot, by=admin, now=NOW)
    service.erase_account(session, user.id, name=user.name, by=admin, now=NOW)
    with pytest.raises(AccountErased):  # nobody could enable it
        service.make_password_link(session, user, by=admin, now=NOW)
    with pytest.raises(NotAllowed):
        service.make_password_link(session, admin, by=make_user(session), now=NOW)


@pytest.mark.parametrize(
    ("chosen", "asked", "begins"),
    [
        ("http://127.0.0.1:8000", "localhost:9000", "http://localhost:9000/"),
        ("http://127.0.0.1:8000", "evil.example", "http://127.0.0.1:8000"),
        ("https://clarinet.example.org", "localhost:9000", "https://clarinet.example.org"),
    ],
    ids=["another port of this machine", "a host of the request's own", "an address for others"],
)
def test_links_begin_where_the_operator_says_or_at_the_port_of_who_sits_here(
    settings: Settings, chosen: str, asked: str, begins: str
) -> None:
    """Also under `clarinet up`, which writes every setting out for its children."""
    scope = {"type": "http", "scheme": "http", "path": "/", "headers": [(b"host", asked.encode())]}

    assert reached_at(Request(scope), settings.model_copy(update={"public_url": chosen})) == begins
