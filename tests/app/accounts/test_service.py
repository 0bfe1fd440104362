"""Who somebody is and what they may do."""

from datetime import datetime, timedelta
from uuid import UUID

import pytest
from sqlalchemy.orm import Session

from app.accounts import callers, service
from app.accounts.callers import digest
from app.accounts.errors import (
    EmailTaken,
    InvitationNotFound,
    NotAllowed,
    TokenNotFound,
    UserNotFound,
    WeakPassword,
    WrongCredentials,
)
from app.accounts.models import ApiToken, LoginSession, Role, User
from tests.factories import NOW, PASSWORD, make_user

NOWHERE = UUID(int=0)


IDLE = timedelta(days=3)


def by_cookie(session: Session, secret: str, *, now: datetime = NOW) -> User | None:
    """Who is signed in with a cookie."""
    caller = callers.caller_by_cookie(session, secret, now=now, idle_since=now - IDLE)
    return caller.user if caller else None


def by_token(session: Session, secret: str, *, now: datetime = NOW) -> User | None:
    """Whose token this is."""
    caller = callers.caller_by_token(session, secret, now=now)
    return caller.user if caller else None


def check(session: Session, email: str, password: str) -> User:
    """Whose e-mail and password these are."""
    return service.check_credentials(service.user_with_email(session, email), password)


def is_same(found: User | None, user: User) -> bool:
    """Whether this is that person, loaded again or not."""
    return found is not None and found.id == user.id


def test_passwords_prove_who_somebody_is(session: Session) -> None:
    user = make_user(session, password=PASSWORD)

    assert check(session, f" {user.email.upper()} ", PASSWORD) == user
    with pytest.raises(WrongCredentials):
        check(session, user.email, PASSWORD + " ")
    with pytest.raises(WrongCredentials):
        check(session, "nobody@example.org", PASSWORD)


def test_an_account_without_a_password_cannot_sign_in(session: Session) -> None:
    user = make_user(session)

    for guess in ("", "None", PASSWORD):
        with pytest.raises(WrongCredentials):
            check(session, user.email, guess)


def test_short_passwords_are_refused(session: Session) -> None:
    with pytest.raises(WeakPassword):
        make_user(session, password="123456789")


def test_an_address_has_one_account(session: Session) -> None:
    user = make_user(session)

    with pytest.raises(EmailTaken):
        service.create_user(
            session, email=user.email.upper(), name="Twin", role=Role.ADMIN, password=None, now=NOW
        )
    assert session.get(User, user.id) is user


def test_sessions_end(session: Session) -> None:
    secret = service.start_session(session, make_user(session), now=NOW)

    row = session.get_one(LoginSession, digest(secret))
    row.seen_at = NOW + service.SESSION_LIFE - timedelta(minutes=1)
    session.flush()

    assert by_cookie(session, secret, now=NOW + service.SESSION_LIFE - timedelta(seconds=1))
    assert by_cookie(session, secret, now=NOW + service.SESSION_LIFE) is None


def test_sessions_that_nobody_uses_end_earlier(session: Session) -> None:
    secret = service.start_session(session, make_user(session), now=NOW)
    assert by_cookie(session, secret, now=NOW + IDLE - timedelta(seconds=1))
    assert by_cookie(session, secret, now=NOW + IDLE) is None

    session.get_one(LoginSession, digest(secret)).seen_at = NOW + timedelta(days=2)
    session.flush()

    assert by_cookie(session, secret, now=NOW + IDLE)


def test_secrets_are_kept_as_digests_only(session: Session) -> None:
    user = make_user(session)
    cookie = service.start_session(session, user, now=NOW)
    token, secret = service.create_token(session, user, "script", now=NOW)

    assert session.get(LoginSession, cookie) is None
    assert session.get(LoginSession, digest(cookie)) is not None
    assert secret not in {getattr(token, column.name) for column in ApiToken.__table__.columns}


def test_signing_out_ends_one_session(session: Session) -> None:
    user = make_user(session)
    here, there = (service.start_session(session, user, now=NOW) for _ in range(2))

    service.sign_out(session, here)

    assert by_cookie(session, here) is None
    assert is_same(by_cookie(session, there), user)


def test_a_new_password_signs_other_browsers_out(session: Session) -> None:
    user = make_user(session, password=PASSWORD)
    here, there = (service.start_session(session, user, now=NOW) for _ in range(2))

    new = service.hash_if_strong("another long one")
    service.change_password(session, user, proved=user, password_hash=new, keep=here, now=NOW)

    assert is_same(by_cookie(session, here), user)
    assert by_cookie(session, there) is None
    assert check(session, user.email, "another long one") == user


def test_revoked_tokens_are_useless(session: Session) -> None:
    user = make_user(session)
    token, secret = service.create_token(session, user, "script", now=NOW)
    assert is_same(by_token(session, secret), user)

    service.revoke_token(session, token.id, by=user, now=NOW)

    assert by_token(session, secret) is None


def test_only_admins_revoke_another_persons_token(session: Session) -> None:
    token, secret = service.create_token(session, make_user(session), "script", now=NOW)

    with pytest.raises(TokenNotFound):
        service.revoke_token(session, token.id, by=make_user(session), now=NOW)
    assert by_token(session, secret)

    service.revoke_token(session, token.id, by=make_user(session, role="admin"), now=NOW)

    assert by_token(session, secret) is None


def test_disabling_locks_out_at_once_and_enabling_lets_in(session: Session) -> None:
    admin, user = make_user(session, role="admin"), make_user(session, password=PASSWORD)
    cookie = service.start_session(session, user, now=NOW)
    _, token = service.create_token(session, user, "script", now=NOW)

    service.set_disabled(session, user.id, disabled=True, by=admin, now=NOW)

    assert by_cookie(session, cookie) is None
    assert by_token(session, token) is None
    with pytest.raises(WrongCredentials):
        check(session, user.email, PASSWORD)

    service.set_disabled(session, user.id, disabled=False, by=admin, now=NOW)

    assert check(session, user.email, PASSWORD) == user
    assert by_cookie(session, cookie) is None  # ended, not paused
    assert by_token(session, token) is None


def test_admins_cannot_lock_themselves_out(session: Session) -> None:
    admin = make_user(session, role="admin")

    with pytest.raises(NotAllowed):
        service.set_disabled(session, admin.id, disabled=True, by=admin, now=NOW)


def test_only_admins_decide_about_people(session: Session) -> None:
    annotator, other = make_user(session), make_user(session)

    with pytest.raises(NotAllowed):
        service.set_disabled(session, other.id, disabled=True, by=annotator, now=NOW)
    with pytest.raises(NotAllowed):
        service.invite(session, role=Role.ADMIN, note="", by=annotator, now=NOW)
    with pytest.raises(NotAllowed):
        service.simulated_annotator(session, "Robot", by=annotator, now=NOW)


def test_unknown_people_are_not_found(session: Session) -> None:
    admin = make_user(session, role="admin")

    with pytest.raises(UserNotFound):
        service.set_disabled(session, NOWHERE, disabled=True, by=admin, now=NOW)


def test_an_invitation_works_once(session: Session) -> None:
    _, secret = service.invite(session, role=Role.ADMIN, note="Ada", by=None, now=NOW)

    user = service.accept_invitation(
        session, secret, email="ada@example.org", name="Ada", password_hash="hash", now=NOW
    )

    assert user.is_admin
    with pytest.raises(InvitationNotFound):
        service.accept_invitation(
            session, secret, email="eve@example.org", name="Eve", password_hash="hash", now=NOW
        )


def test_an_invitation_survives_a_refused_attempt(session: Session) -> None:
    taken = make_user(session).email
    _, secret = service.invite(session, role=Role.ANNOTATOR, note="", by=None, now=NOW)

    with pytest.raises(EmailTaken):
        service.accept_invitation(session, secret, email=taken, name="Ada", password_hash="hash", now=NOW)
    assert service.find_invitation(session, secret, now=NOW)


def test_invitations_expire_and_can_be_withdrawn(session: Session) -> None:
    admin = make_user(session, role="admin")
    old, old_secret = service.invite(session, role=Role.ANNOTATOR, note="", by=admin, now=NOW)
    withdrawn, withdrawn_secret = service.invite(session, role=Role.ANNOTATOR, note="", by=admin, now=NOW)

    service.withdraw_invitation(session, withdrawn.id, by=admin, now=NOW)

    with pytest.raises(InvitationNotFound):
        service.find_invitation(session, withdrawn_secret, now=NOW)
    with pytest.raises(InvitationNotFound):
        service.find_invitation(session, old_secret, now=NOW + service.INVITATION_LIFE)
    with pytest.raises(InvitationNotFound):
        service.withdraw_invitation(session, old.id, by=admin, now=NOW + service.INVITATION_LIFE)


def test_a_simulated_annotator_comes_back_under_its_name(session: Session) -> None:
    admin = make_user(session, role="admin")

    first, _, token = service.simulated_annotator(session, "Robot 1", by=admin, now=NOW)
    again, _, other_token = service.simulated_annotator(session, "Robot 1", by=admin, now=NOW)

    assert first.id == again.id
    assert first.is_simulated
    assert not first.is_admin
    assert is_same(by_token(session, token), first)
    assert is_same(by_token(session, other_token), first)
