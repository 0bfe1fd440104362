"""One-time links: for a new account, for the first admin, for another password."""

import secrets
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Select, exists, or_, select, update
from sqlalchemy.orm import Session, aliased

from app.accounts.callers import digest
from app.accounts.credentials import end_credentials, user_with_email
from app.accounts.errors import (
    AccountDisabled,
    AccountErased,
    EmailNotMeant,
    EmailTaken,
    InvitationNotFound,
)
from app.accounts.models import Invitation, Purpose, Role, User
from app.accounts.people import (
    add_user,
    has_admin,
    require_admin,
    require_admin_throughout,
    require_of_person,
    take_turns,
)
from app.journal import writing as journal
from app.journal.models import Action

INVITATION_LIFE = timedelta(days=7)
PASSWORD_LINK_LIFE = timedelta(hours=24)
ANYBODY = "anybody with the link"


def invite(
    session: Session, *, role: Role, note: str, by: User | None, now: datetime, email: str | None = None
) -> tuple[Invitation, str]:
    """A one-time link for a new account, and its secret.

    Args:
        role: that the account will have.
        note: for whom it is meant.
        by: the admin who makes it; None: somebody who holds the database.
        email: the only address that it makes an account for; None: any.

    Raises:
        NotAllowed: `by` is no admin.
        EmailTaken: there is an account with this address.
    """
    if by is not None:
        require_admin_throughout(session, by)
    email = email.strip().lower() if email else None
    if email and user_with_email(session, email):
        raise EmailTaken(email)
    return make_invitation(session, role=role, note=note, email=email, by=by, now=now)


def make_invitation(
    session: Session, *, role: Role, note: str, email: str | None, by: User | None, now: datetime
) -> tuple[Invitation, str]:
    """As `invite`, where who makes it and the address were looked up before."""
    made = _make(session, Purpose.ACCOUNT, role=role, note=note, email=email, by=by, now=now)
    journal.write(
        session, Action.INVITATION_MADE, by=by, details={"for": called(made[0]), "role": role.value}
    )
    return made


def invite_first_admin(session: Session, *, now: datetime) -> str | None:
    """The secret of a link that makes the first admin; earlier ones end. None: there is an admin."""
    take_turns(session)
    if has_admin(session):
        return None
    session.execute(
        update(Invitation)
        .where(Invitation.purpose == Purpose.FIRST_ADMIN, Invitation.expires_at > now)
        .values(expires_at=now)
    )
    _, secret = _make(session, Purpose.FIRST_ADMIN, role=Role.ADMIN, now=now)
    return secret


def make_password_link(
    session: Session, user: User, *, by: User | None, now: datetime
) -> tuple[Invitation, str]:
    """A link by which somebody who has an account chooses another password, and its secret.

    Their earlier ones end. What they are signed in with stays until they use it.

    Args:
        user: for whom.
        by: the admin who makes it; None: they asked themselves, or somebody who holds the database did.

    Raises:
        NotAllowed: `by` is no admin.
        AccountOfProgram, AccountOfWorker, AccountErased, AccountDisabled: it would be of no use.
    """
    if by is not None:
        require_admin_throughout(session, by)
    require_of_person(user)
    if user.erased_at is not None:
        raise AccountErased
    if user.disabled_at is not None:
        raise AccountDisabled
    session.execute(
        update(Invitation)
        .where(
            Invitation.for_id == user.id, Invitation.purpose == Purpose.PASSWORD, Invitation.expires_at > now
        )
        .values(expires_at=now)
    )
    made = _make(
        session, Purpose.PASSWORD, role=user.role, note=user.name, email=user.email, for_=user, by=by, now=now
    )
    journal.write(session, Action.PASSWORD_LINK_MADE, by=by, details=journal.naming(user))
    return made


def _make(
    session: Session,
    purpose: Purpose,
    *,
    role: Role,
    now: datetime,
    note: str = "",
    email: str | None = None,
    for_: User | None = None,
    by: User | None = None,
) -> tuple[Invitation, str]:
    secret = secrets.token_urlsafe(32)
    invitation = Invitation(
        token_hash=digest(secret),
        purpose=purpose,
        role=role,
        note=note,
        email=email,
        for_id=for_.id if for_ else None,
        invited_by_id=by.id if by else None,
        created_at=now,
        expires_at=now + (PASSWORD_LINK_LIFE if purpose is Purpose.PASSWORD else INVITATION_LIFE),
    )
    session.add(invitation)
    session.flush()
    return invitation, secret


def invitation_url(public_url: str, secret: str) -> str:
    """The link to hand on: where people reach us, whatever host the asker's request named."""
    return f"{public_url.rstrip('/')}/invitations/{secret}"


def password_url(public_url: str, secret: str) -> str:
    """The same for a link to another password."""
    return f"{public_url.rstrip('/')}/password/{secret}"


def find_invitation(session: Session, secret: str, *, now: datetime) -> Invitation:
    """The invitation of a link that can still be used.

    Raises:
        InvitationNotFound: unknown, used or expired; whoever invited is no admin any more; or it is for the
            first admin, and there is one.
    """
    return _find(session, secret, Purpose.ACCOUNT, Purpose.FIRST_ADMIN, now=now)


def find_password_link(session: Session, secret: str, *, now: datetime) -> tuple[Invitation, User]:
    """The link to another password that can still be used, and whose it is.

    Raises:
        InvitationNotFound: as `find_invitation`.
    """
    link = _find(session, secret, Purpose.PASSWORD, now=now)
    user = session.get(User, link.for_id)
    if user is None or user.disabled_at is not None:
        raise InvitationNotFound
    return link, user


def _find(session: Session, secret: str, *purposes: Purpose, now: datetime) -> Invitation:
    found = session.scalar(
        _usable(now).where(Invitation.token_hash == digest(secret), Invitation.purpose.in_(purposes))
    )
    if found is None:
        raise InvitationNotFound
    return found


def _usable(now: datetime) -> Select[Invitation]:
    """Links that still work. They end when their maker does, also one that was made at the same moment."""
    maker = aliased(User)
    is_maker_admin = exists().where(
        maker.id == Invitation.invited_by_id, maker.role == Role.ADMIN, maker.disabled_at.is_(None)
    )
    somebody = aliased(User)
    is_administered = exists().where(somebody.role == Role.ADMIN, somebody.disabled_at.is_(None))
    return select(Invitation).where(
        Invitation.accepted_at.is_(None),
        Invitation.expires_at > now,
        or_(Invitation.invited_by_id.is_(None), is_maker_admin),
        or_(Invitation.purpose != Purpose.FIRST_ADMIN, ~is_administered),
    )


def accept_invitation(
    session: Session, secret: str, *, email: str, name: str, password_hash: str, now: datetime
) -> User:
    """Make the invited account. The link works once, whoever clicks it how often.

    Args:
        password_hash: from `hash_if_strong`.

    Raises:
        InvitationNotFound, EmailTaken, EmailNotMeant: nothing was changed.
    """
    invitation = find_invitation(session, secret, now=now)
    if (
        invitation.purpose is Purpose.FIRST_ADMIN
    ):  # of two that are used at once the second one finds an admin
        take_turns(session)
        invitation = find_invitation(session, secret, now=now)
    if invitation.email is not None and invitation.email != email.strip().lower():
        raise EmailNotMeant(invitation.email)
    user = add_user(
        session,
        email=email,
        name=name,
        role=invitation.role,
        password_hash=password_hash,
        is_invited=True,
        now=now,
    )
    invitation.for_id = user.id  # by which erasing them finds what is written here
    _use(session, invitation, now=now)
    return user


def choose_password(session: Session, secret: str, *, password_hash: str, now: datetime) -> User:
    """Set another password by a link. All that the person was signed in with ends.

    Args:
        password_hash: from `hash_if_strong`.

    Raises:
        InvitationNotFound: nothing was changed.
    """
    link, user = find_password_link(session, secret, now=now)
    # The person before the link, as whatever else ends what they are signed in with.
    changed = session.execute(
        update(User)
        .where(User.id == user.id, User.disabled_at.is_(None))
        .values(password_hash=password_hash)
        .returning(User.id)
    ).one_or_none()
    if changed is None:
        raise InvitationNotFound
    _use(session, link, now=now)
    end_credentials(session, user.id, now=now)
    journal.write(session, Action.PASSWORD_CHANGED, by=user, details={"by": "link"})
    return user


def _use(session: Session, link: Invitation, *, now: datetime) -> None:
    used = session.execute(
        update(Invitation)
        .where(Invitation.id == link.id, Invitation.accepted_at.is_(None), Invitation.expires_at > now)
        .values(accepted_at=now)
        .returning(Invitation.id)
    ).one_or_none()
    if used is None:
        raise InvitationNotFound


def called(invitation: Invitation) -> str:
    """For whom it is, as the journal says it: name, address, or both; `erase_account` finds them again."""
    note, email = invitation.note, invitation.email or ""
    return f"{note} <{email}>" if note and email else note or email or ANYBODY


def open_invitations(now: datetime) -> Select[Invitation]:
    """Links for new accounts that still work, newest first."""
    return _usable(now).where(Invitation.purpose == Purpose.ACCOUNT).order_by(Invitation.created_at.desc())


def withdraw_invitation(session: Session, invitation_id: UUID, *, by: User, now: datetime) -> None:
    """Make an open link useless.

    Raises:
        NotAllowed: `by` is no admin.
        InvitationNotFound: unknown, used or expired.
    """
    require_admin(by)
    invitation = session.get(Invitation, invitation_id)
    if invitation is None or invitation.accepted_at is not None or invitation.expires_at <= now:
        raise InvitationNotFound
    invitation.expires_at = now
    journal.write(session, Action.INVITATION_WITHDRAWN, by=by, details={"for": called(invitation)})
