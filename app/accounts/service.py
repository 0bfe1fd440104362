"""Accounts, sign-in, tokens, invitations: who somebody is and what they may do."""

import hashlib
import secrets
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Select, delete, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

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
from app.accounts.models import ApiToken, Invitation, LoginSession, Role, User
from app.accounts.passwords import hash_password, password_matches

SESSION_LIFE = timedelta(days=14)
INVITATION_LIFE = timedelta(days=7)
MIN_PASSWORD_LENGTH = 10
SIMULATED_DOMAIN = "simulated.invalid"  # a reserved name: nobody has an address there


def require_admin(user: User) -> None:
    """Raises NotAllowed unless `user` is an admin."""
    if not user.is_admin:
        raise NotAllowed


def create_user(
    session: Session,
    *,
    email: str,
    name: str,
    role: Role,
    password: str | None,
    now: datetime,
    is_simulated: bool = False,
) -> User:
    """Add an account; without a password it can only be used through tokens.

    Raises:
        EmailTaken: there is an account with this address.
        WeakPassword: shorter than MIN_PASSWORD_LENGTH.
    """
    return _add_user(
        session,
        email=email,
        name=name,
        role=role,
        password_hash=None if password is None else hash_if_strong(password),
        is_simulated=is_simulated,
        now=now,
    )


def _add_user(
    session: Session,
    *,
    email: str,
    name: str,
    role: Role,
    password_hash: str | None,
    now: datetime,
    is_simulated: bool = False,
) -> User:
    user = User(
        email=email.strip().lower(),
        name=name.strip(),
        role=role,
        password_hash=password_hash,
        is_simulated=is_simulated,
        created_at=now,
    )
    try:
        with session.begin_nested():
            session.add(user)
    except IntegrityError as error:
        raise EmailTaken(user.email) from error
    return user


def hash_if_strong(password: str) -> str:
    """What to store of a new password. Takes 20 ms or more: call it where no writer waits.

    Raises:
        WeakPassword: shorter than MIN_PASSWORD_LENGTH.
    """
    if len(password) < MIN_PASSWORD_LENGTH:
        raise WeakPassword(need=MIN_PASSWORD_LENGTH)
    return hash_password(password)


def simulated_annotator(
    session: Session, name: str, *, by: User, now: datetime
) -> tuple[User, ApiToken, str]:
    """A program's account that answers in a person's place, a new token of it, and the token's secret.

    The same name gives the same account, so that a repeated simulation adds nobody. The account has no
    password and is marked, and pages say so wherever its answers count.

    Raises:
        NotAllowed: `by` is no admin.
    """
    require_admin(by)
    email = f"{hashlib.sha256(name.encode()).hexdigest()[:16]}@{SIMULATED_DOMAIN}"
    user = session.scalar(select(User).where(User.email == email, User.is_simulated))
    if user is None:
        user = create_user(
            session, email=email, name=name, role=Role.ANNOTATOR, password=None, now=now, is_simulated=True
        )
    token, secret = create_token(session, user, "simulation", now=now)
    return user, token, secret


def check_credentials(session: Session, email: str, password: str) -> User:
    """Whose e-mail and password these are. Takes 20 ms or more: call it where no writer waits.

    Raises:
        WrongCredentials: no such account, wrong password, or the account is disabled.
    """
    user = session.scalar(select(User).where(User.email == email.strip().lower()))
    matches = password_matches(user.password_hash if user else None, password)
    if user is None or not matches or user.disabled_at is not None:
        raise WrongCredentials
    return user


def change_password(session: Session, user: User, *, proved: User, password_hash: str, keep: str) -> None:
    """Set a new password and sign out every browser but the one with the secret `keep`.

    Args:
        proved: what `check_credentials` gave for the present password.
        password_hash: of the new one, from `hash_if_strong`.

    Raises:
        WrongCredentials: the password was changed since it was checked.
    """
    changed = session.execute(
        update(User)
        .where(User.id == user.id, User.password_hash == proved.password_hash)
        .values(password_hash=password_hash)
        .returning(User.id)
    ).one_or_none()
    if changed is None:
        raise WrongCredentials
    session.execute(
        delete(LoginSession).where(LoginSession.user_id == user.id, LoginSession.id_hash != digest(keep))
    )


def user_by_email(session: Session, email: str) -> User:
    """The person with this address; for commands of those who hold the database anyway.

    Raises:
        UserNotFound: no such person.
    """
    user = session.scalar(select(User).where(User.email == email.strip().lower()))
    if user is None:
        raise UserNotFound
    return user


def start_session(session: Session, user: User, *, now: datetime) -> str:
    """A new session for somebody who has proved who they are."""
    secret = secrets.token_urlsafe(32)
    session.execute(delete(LoginSession).where(LoginSession.expires_at < now))
    session.add(
        LoginSession(id_hash=digest(secret), user_id=user.id, created_at=now, expires_at=now + SESSION_LIFE)
    )
    return secret


def sign_out(session: Session, secret: str) -> None:
    """End the session of this cookie."""
    session.execute(delete(LoginSession).where(LoginSession.id_hash == digest(secret)))


def create_token(session: Session, user: User, name: str, *, now: datetime) -> tuple[ApiToken, str]:
    """A bearer token and its secret, which is shown once."""
    secret = f"clt_{secrets.token_urlsafe(32)}"
    token = ApiToken(user_id=user.id, name=name, token_hash=digest(secret), created_at=now)
    session.add(token)
    session.flush()  # callers show token.id
    return token, secret


def tokens_of(user: User) -> Select[ApiToken]:
    """The user's tokens that still work, newest first."""
    return (
        select(ApiToken)
        .where(ApiToken.user_id == user.id, ApiToken.revoked_at.is_(None))
        .order_by(ApiToken.created_at.desc())
    )


def revoke_token(session: Session, token_id: UUID, *, by: User, now: datetime) -> None:
    """Make one of one's own tokens useless.

    Raises:
        TokenNotFound: it does not exist or belongs to somebody else.
    """
    token = session.scalar(select(ApiToken).where(ApiToken.id == token_id, ApiToken.user_id == by.id))
    if token is None:
        raise TokenNotFound
    token.revoked_at = token.revoked_at or now


def invite(
    session: Session, *, role: Role, note: str, by: User | None, now: datetime
) -> tuple[Invitation, str]:
    """A one-time link for a new account, and its secret; `by` is None for the first admin's."""
    if by is not None:
        require_admin(by)
    secret = secrets.token_urlsafe(32)
    invitation = Invitation(
        token_hash=digest(secret),
        role=role,
        note=note,
        invited_by_id=by.id if by else None,
        created_at=now,
        expires_at=now + INVITATION_LIFE,
    )
    session.add(invitation)
    session.flush()
    return invitation, secret


def invitation_url(public_url: str, secret: str) -> str:
    """The link to hand on: where people reach us, whatever host the asker's request named."""
    return f"{public_url.rstrip('/')}/invitations/{secret}"


def find_invitation(session: Session, secret: str, *, now: datetime) -> Invitation:
    """The invitation of a link that can still be used.

    Raises:
        InvitationNotFound: unknown, used or expired.
    """
    invitation = session.scalar(
        select(Invitation).where(
            Invitation.token_hash == digest(secret),
            Invitation.accepted_at.is_(None),
            Invitation.expires_at > now,
        )
    )
    if invitation is None:
        raise InvitationNotFound
    return invitation


def accept_invitation(
    session: Session, secret: str, *, email: str, name: str, password_hash: str, now: datetime
) -> User:
    """Make the invited account. The link works once, whoever clicks it how often.

    Args:
        password_hash: from `hash_if_strong`.

    Raises:
        InvitationNotFound, EmailTaken: nothing was changed.
    """
    invitation = find_invitation(session, secret, now=now)
    user = _add_user(
        session, email=email, name=name, role=invitation.role, password_hash=password_hash, now=now
    )
    used = session.execute(
        update(Invitation)
        .where(Invitation.id == invitation.id, Invitation.accepted_at.is_(None))
        .values(accepted_at=now)
        .returning(Invitation.id)
    ).one_or_none()
    if used is None:
        raise InvitationNotFound
    return user


def open_invitations(now: datetime) -> Select[Invitation]:
    """Links that nobody has used yet, newest first."""
    return (
        select(Invitation)
        .where(Invitation.accepted_at.is_(None), Invitation.expires_at > now)
        .order_by(Invitation.created_at.desc())
    )


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


def people() -> Select[User]:
    """Everybody with an account, by name."""
    return select(User).order_by(User.name, User.id)


def people_after(user_id: UUID | None) -> Select[User]:
    """Everybody with an account in the order of ids, from behind one id."""
    query = select(User).order_by(User.id)
    return query if user_id is None else query.where(User.id > user_id)


def has_admin(session: Session) -> bool:
    """Whether somebody can administer this installation."""
    return (
        session.scalar(select(User.id).where(User.role == Role.ADMIN, User.disabled_at.is_(None)).limit(1))
        is not None
    )


def set_disabled(session: Session, user_id: UUID, *, disabled: bool, by: User, now: datetime) -> User:
    """Lock somebody out, or let them in again; their answers stay.

    Raises:
        UserNotFound: no such person.
        NotAllowed: `by` is no admin, or would lock themselves out.
    """
    require_admin(by)
    user = session.get(User, user_id)
    if user is None:
        raise UserNotFound
    if disabled and user.id == by.id:
        raise NotAllowed("another admin")
    user.disabled_at = now if disabled else None
    if disabled:
        session.execute(delete(LoginSession).where(LoginSession.user_id == user.id))
    return user
