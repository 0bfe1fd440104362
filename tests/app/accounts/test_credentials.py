"""What somebody is signed in with ends when it should, and allows no more than it says."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts import callers, service
from app.accounts.errors import (
    AccountOfProgram,
    InvitationNotFound,
    NotAllowed,
    NotSignedIn,
    ProofNeeded,
    SessionNotFound,
    TooManyTokens,
    WrongCredentials,
)
from app.accounts.models import ApiToken, Role, Scope, User
from tests.factories import NOW, PASSWORD, make_user

NEW = "another long one"
LATER = NOW + timedelta(minutes=11)


def is_in(session: Session, secret: str) -> bool:
    """Whether a cookie still lets in."""
    idle_since = NOW - timedelta(days=1)
    return callers.caller_by_cookie(session, secret, now=NOW, idle_since=idle_since) is not None


def works(session: Session, secret: str) -> bool:
    """Whether a token still does."""
    return callers.caller_by_token(session, secret, now=NOW) is not None


def change_password(session: Session, user: User, *, keep: str, **_: object) -> None:
    service.change_password(
        session, user, proved=user, password_hash=service.hash_if_strong(NEW), keep=keep, now=NOW
    )


def choose_password(session: Session, user: User, *, by: User, **_: object) -> None:
    _link, secret = service.make_password_link(session, user, by=by, now=NOW)
    service.choose_password(session, secret, password_hash=service.hash_if_strong(NEW), now=NOW)


def disable_and_enable(session: Session, user: User, *, by: User, **_: object) -> None:
    for disabled in (True, False):
        service.set_disabled(session, user.id, disabled=disabled, by=by, now=NOW)


def demote_and_promote(session: Session, user: User, *, by: User, **_: object) -> None:
    for role in (Role.ANNOTATOR, Role.ADMIN):
        service.set_role(session, user.id, role, by=by, now=NOW)


ENDS = pytest.mark.parametrize(
    "end", [change_password, choose_password, disable_and_enable, demote_and_promote]
)
End = Callable[..., None]


@ENDS
def test_all_that_somebody_is_signed_in_with_ends_for_good(session: Session, end: End) -> None:
    boss, ada = make_user(session, role="admin"), make_user(session, role="admin", password=PASSWORD)
    here, there = (service.start_session(session, ada, now=NOW) for _ in range(2))
    own, secret = service.create_token(session, ada, "script", now=NOW)
    _, _, of_robot = service.simulated_annotator(session, "Robot", by=ada, now=NOW, made_with=own)
    _, _, of_other_robot = service.simulated_annotator(session, "Other robot", by=boss, now=NOW)
    _, link = service.make_password_link(session, ada, by=boss, now=NOW)
    bystander = service.start_session(session, boss, now=NOW)

    end(session, ada, by=boss, keep=here)

    assert is_in(session, here) is (end is change_password)
    assert not is_in(session, there)
    assert not works(session, secret)
    assert not works(session, of_robot), "made by a token that ended"
    with pytest.raises(InvitationNotFound):
        service.find_password_link(session, link, now=NOW)
    assert works(session, of_other_robot)
    assert is_in(session, bystander)


@pytest.mark.parametrize("end", [disable_and_enable, demote_and_promote])
def test_a_lost_admins_links_end_for_good(session: Session, end: End) -> None:
    boss, ada = make_user(session, role="admin"), make_user(session, role="admin", password=PASSWORD)
    _, invitation = service.invite(session, role=Role.ADMIN, note="", by=ada, now=NOW)
    _, link = service.make_password_link(session, make_user(session), by=ada, now=NOW)
    _, of_boss = service.invite(session, role=Role.ADMIN, note="", by=boss, now=NOW)

    end(session, ada, by=boss, keep="")

    with pytest.raises(InvitationNotFound):
        service.find_invitation(session, invitation, now=NOW)
    with pytest.raises(InvitationNotFound):
        service.find_password_link(session, link, now=NOW)
    assert service.find_invitation(session, of_boss, now=NOW)


def test_an_invitation_ends_with_its_maker_even_if_it_was_made_at_the_same_moment(session: Session) -> None:
    ada = make_user(session, role="admin")
    _, secret = service.invite(session, role=Role.ADMIN, note="", by=ada, now=NOW)
    ada.role = Role.ANNOTATOR  # as when the invitation was not to be seen yet

    session.flush()

    with pytest.raises(InvitationNotFound):
        service.find_invitation(session, secret, now=NOW)
    assert session.scalars(service.open_invitations(NOW)).all() == []


def test_tokens_end_by_themselves(session: Session) -> None:
    user = make_user(session)
    _, usual = service.create_token(session, user, "a", now=NOW)
    _, short = service.create_token(session, user, "b", now=NOW, life=timedelta(days=7))
    token, long = service.create_token(session, user, "c", now=NOW, life=timedelta(days=10_000))

    def alive(secret: str, days: int) -> bool:
        now = NOW + timedelta(days=days) - timedelta(seconds=1)
        return callers.caller_by_token(session, secret, now=now) is not None

    assert (alive(usual, 90), alive(usual, 91)) == (True, False)
    assert (alive(short, 7), alive(short, 8)) == (True, False)
    assert (alive(long, 365), alive(long, 366)) == (True, False)
    assert [item.name for item in session.scalars(service.tokens_of(user, now=NOW + timedelta(days=91)))] == [
        token.name
    ]


def test_what_a_token_made_ends_with_it(session: Session) -> None:
    ada = make_user(session, role="admin")
    parent, secret = service.create_token(session, ada, "cli", now=NOW, life=timedelta(days=5))
    child, made = service.simulated_annotator(session, "Robot", by=ada, now=NOW, made_with=parent)[1:]
    assert child.expires_at == parent.expires_at
    assert child.scope is Scope.ANNOTATE

    service.revoke_token(session, parent.id, by=ada, now=NOW)

    assert not works(session, secret)
    assert not works(session, made)


def test_nobody_has_more_than_twenty_tokens(session: Session) -> None:
    user = make_user(session)
    tokens = [service.create_token(session, user, f"t{n}", now=NOW)[0] for n in range(service.MAX_TOKENS)]

    with pytest.raises(TooManyTokens):
        service.create_token(session, user, "one more", now=NOW)

    service.revoke_token(session, tokens[0].id, by=user, now=NOW)
    assert service.create_token(session, user, "one more", now=NOW)


def test_a_programs_oldest_token_makes_room(session: Session) -> None:
    ada = make_user(session, role="admin")
    secrets = [
        service.simulated_annotator(session, "Robot", by=ada, now=NOW + timedelta(seconds=n))[2]
        for n in range(service.MAX_TOKENS + 2)
    ]
    assert [works(session, secret) for secret in secrets] == [False] * 2 + [True] * service.MAX_TOKENS


def test_an_admins_token_that_annotates_is_an_annotators(session: Session) -> None:
    ada = make_user(session, role="admin")
    _, secret = service.create_token(session, ada, "robot", now=NOW, scope=Scope.ANNOTATE)

    caller = callers.caller_by_token(session, secret, now=NOW)

    assert caller is not None
    assert caller.scope is Scope.ANNOTATE
    assert not caller.user.is_admin
    session.expire_all()
    assert session.get_one(User, ada.id).is_admin


def test_who_proved_a_password_that_changed_meanwhile_does_not_come_in(session: Session) -> None:
    user = make_user(session, password=PASSWORD)
    session.expunge(user)
    proved = service.check_credentials(user, PASSWORD)
    stored = session.get_one(User, user.id)
    change_password(session, stored, keep="")

    with pytest.raises(WrongCredentials):
        service.start_session(session, proved, now=NOW)


def test_one_ends_ones_own_sessions_and_no_others(session: Session) -> None:
    user, other = make_user(session), make_user(session)
    mine, theirs = (
        service.start_session(session, user, now=NOW),
        service.start_session(session, other, now=NOW),
    )

    with pytest.raises(SessionNotFound):
        service.end_session(session, callers.digest(theirs), by=user)
    service.end_session(session, callers.digest(mine), by=user)

    assert not is_in(session, mine)
    assert is_in(session, theirs)


def test_a_password_is_asked_for_again_after_ten_minutes(session: Session) -> None:
    user = make_user(session, password=PASSWORD)
    secret = service.start_session(session, user, now=NOW)

    service.require_proof(session, user, secret, now=NOW)
    with pytest.raises(ProofNeeded):
        service.require_proof(session, user, secret, now=LATER)
    service.note_proof(session, secret, now=LATER)
    service.require_proof(session, user, secret, now=LATER)


def test_no_proof_holds_in_a_session_that_ended_meanwhile(session: Session) -> None:
    user = make_user(session, password=PASSWORD)
    secret, other = (service.start_session(session, item, now=NOW) for item in (user, make_user(session)))
    service.sign_out(session, secret)

    for given in (secret, other, "nothing"):
        with pytest.raises(NotSignedIn):
            service.require_proof(session, user, given, now=NOW)


def test_roles_are_changed_by_admins_for_others(session: Session) -> None:
    ada, grace = make_user(session, role="admin"), make_user(session)
    robot, _, _ = service.simulated_annotator(session, "Robot", by=ada, now=NOW)

    assert service.set_role(session, grace.id, Role.ADMIN, by=ada, now=NOW).is_admin
    with pytest.raises(NotAllowed):
        service.set_role(session, ada.id, Role.ANNOTATOR, by=ada, now=NOW)
    with pytest.raises(AccountOfProgram):
        service.set_role(session, robot.id, Role.ADMIN, by=ada, now=NOW)
    service.set_role(session, ada.id, Role.ANNOTATOR, by=grace, now=NOW)
    with pytest.raises(NotAllowed):
        service.set_role(session, grace.id, Role.ANNOTATOR, by=ada, now=NOW)


def test_whoever_was_an_admin_a_moment_ago_changes_nobody(session: Session) -> None:
    ada, grace, bob = make_user(session, role="admin"), make_user(session, role="admin"), make_user(session)
    session.flush()
    session.expunge(ada)  # as the request of `ada` knows her
    service.set_disabled(session, ada.id, disabled=True, by=grace, now=NOW)

    with pytest.raises(NotAllowed):
        service.set_disabled(session, grace.id, disabled=True, by=ada, now=NOW)
    with pytest.raises(NotAllowed):
        service.set_role(session, bob.id, Role.ADMIN, by=ada, now=NOW)


def test_secrets_of_tokens_are_not_in_the_journal(session: Session, admin: User) -> None:
    from app.journal.models import Action, Entry

    token, secret = service.create_token(session, admin, "script", now=NOW, scope=Scope.READ)
    service.revoke_token(session, token.id, by=admin, now=NOW)

    entries = session.scalars(select(Entry).where(Entry.by_id == admin.id).order_by(Entry.id)).all()
    assert [entry.action for entry in entries] == [Action.TOKEN_MADE, Action.TOKEN_REVOKED]
    assert entries[0].details == {"token": "script", "scope": "read", "until": "2027-02-19"}
    assert secret not in str([entry.details for entry in entries])
    assert session.scalars(select(ApiToken.revoked_at).where(ApiToken.id == token.id)).one() == NOW
