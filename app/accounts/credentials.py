"""Sessions and tokens: how they begin, what they allow, and when they end."""

import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Select, delete, func, or_, select, update
from sqlalchemy.orm import Session

from app.accounts.callers import digest
from app.accounts.errors import (
    NotSignedIn,
    ProofNeeded,
    SessionNotFound,
    TokenNotFound,
    TooManyTokens,
    WrongCredentials,
)
from app.accounts.models import ApiToken, Invitation, LoginSession, Purpose, Scope, User
from app.accounts.passwords import password_matches
from app.journal import writing as journal
from app.journal.models import Action

SESSION_LIFE = timedelta(days=14)
PROOF_LIFE = timedelta(minutes=10)  # for which a password that was given is not asked for again
TOKEN_LIFE = timedelta(days=90)
LONGEST_TOKEN_LIFE = timedelta(days=365)
MAX_TOKENS = 20  # of one person, that work


def user_with_email(session: Session, email: str) -> User | None:
    """Whose address this is."""
    return session.scalar(select(User).where(User.email == email.strip().lower()))


def check_credentials(user: User | None, password: str, *, before: Callable[[], None] = lambda: None) -> User:
    """The same person, if the password is theirs. Takes 20 ms or more, and longer where others wait.

    It needs no database: hold no connection meanwhile. `before` is called when the wait is over.

    Raises:
        WrongCredentials: nobody, wrong password, or the account is disabled.
    """
    matches = password_matches(user.password_hash if user else None, password, before=before)
    if user is None or not matches or user.disabled_at is not None:
        raise WrongCredentials
    return user


def locked(session: Session, proved: User) -> User:
    """This person's row as it is now, kept as it is until the transaction ends.

    Raises:
        WrongCredentials: the account was disabled or got another password since it was proved.
    """
    user = session.scalar(
        select(User)
        .where(User.id == proved.id)
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    )
    if user is None or user.disabled_at is not None or user.password_hash != proved.password_hash:
        raise WrongCredentials
    return user


def start_session(
    session: Session,
    user: User,
    *,
    now: datetime,
    address: str = "",
    browser: str = "",
    is_proved: bool = True,
    by: str = "",
) -> str:
    """A new session for somebody who has proved who they are; gives its secret.

    Args:
        is_proved: with what opens the delicate, a password as a rule.
        by: whose word we take for who they are; "" for none but ours.

    An outside worker has proved nothing, so that their session opens nothing that wants a password.

    Raises:
        WrongCredentials: that was with a password which is no longer theirs.
    """
    locked(session, user)
    secret = secrets.token_urlsafe(32)
    session.execute(delete(LoginSession).where(LoginSession.expires_at < now))
    session.add(
        LoginSession(
            id_hash=digest(secret),
            user_id=user.id,
            created_at=now,
            expires_at=now + SESSION_LIFE,
            proved_at=now if is_proved and not user.is_outside else None,
            address=address,
            browser=browser,
        )
    )
    journal.write(session, Action.SIGNED_IN, by=user, details={"by": by} if by else None)
    return secret


def sign_out(session: Session, secret: str) -> None:
    """End the session of this cookie."""
    session.execute(delete(LoginSession).where(LoginSession.id_hash == digest(secret)))


def sessions_of(user: User, *, now: datetime, idle_since: datetime) -> Select[LoginSession]:
    """Where this person is signed in, last used first."""
    used_at = func.coalesce(LoginSession.seen_at, LoginSession.created_at)
    return (
        select(LoginSession)
        .where(LoginSession.user_id == user.id, LoginSession.expires_at > now, used_at > idle_since)
        .order_by(used_at.desc(), LoginSession.id_hash)
    )


def end_session(session: Session, session_id: str, *, by: User) -> None:
    """End one of one's own sessions, by the digest under which it is kept.

    Raises:
        SessionNotFound: it is over, or somebody else's.
    """
    ended = session.execute(
        delete(LoginSession)
        .where(LoginSession.id_hash == session_id, LoginSession.user_id == by.id)
        .returning(LoginSession.id_hash)
    ).one_or_none()
    if ended is None:
        raise SessionNotFound
    journal.write(session, Action.SESSION_ENDED, by=by)


def note_proof(session: Session, secret: str, *, now: datetime) -> None:
    """The password was given again in the session of this cookie."""
    session.execute(update(LoginSession).where(LoginSession.id_hash == digest(secret)).values(proved_at=now))


def is_proved(session: Session, secret: str, *, now: datetime) -> bool:
    """Whether the password was given in this session within PROOF_LIFE."""
    proved_at = session.scalar(select(LoginSession.proved_at).where(LoginSession.id_hash == digest(secret)))
    return proved_at is not None and proved_at > now - PROOF_LIFE


def require_proof(session: Session, user: User, secret: str, *, now: datetime) -> None:
    """Let only somebody go on who gave the password lately; nothing ends their session before this commits.

    Raises:
        NotSignedIn: the session or the account has ended meanwhile.
        ProofNeeded: it was given too long ago.
    """
    session.execute(select(User.id).where(User.id == user.id).with_for_update(key_share=True))
    alive = session.scalar(
        select(LoginSession.id_hash)
        .join(User, User.id == LoginSession.user_id)
        .where(
            LoginSession.id_hash == digest(secret),
            LoginSession.user_id == user.id,
            User.disabled_at.is_(None),
        )
    )
    if alive is None:
        raise NotSignedIn
    if not is_proved(session, secret, now=now):
        raise ProofNeeded


def create_token(
    session: Session,
    user: User,
    name: str,
    *,
    now: datetime,
    scope: Scope = Scope.MANAGE,
    life: timedelta = TOKEN_LIFE,
    by: User | None = None,
    made_with: ApiToken | None = None,
) -> tuple[ApiToken, str]:
    """A bearer token and its secret, which is shown once.

    Args:
        user: whose it is.
        by: the admin who makes it for a program; its end is their end. None: its owner.
        made_with: the token with which they ask; it ends no later.

    Raises:
        TooManyTokens: `user` has MAX_TOKENS that work. A program's oldest ends instead.
    """
    # Requests at once take turns, or each would count one less.
    session.execute(select(User.id).where(User.id == user.id).with_for_update(key_share=True))
    live = session.scalars(tokens_of(user, now=now)).all()
    if len(live) >= MAX_TOKENS:
        if not user.is_simulated:
            raise TooManyTokens(MAX_TOKENS)
        for old in live[MAX_TOKENS - 1 :]:
            old.revoked_at = now
    secret = f"clt_{secrets.token_urlsafe(32)}"
    expires_at = now + min(life, LONGEST_TOKEN_LIFE)
    token = ApiToken(
        user_id=user.id,
        name=name,
        token_hash=digest(secret),
        scope=scope,
        created_at=now,
        expires_at=min(expires_at, made_with.expires_at) if made_with else expires_at,
        made_by_id=by.id if by else None,
        made_with_id=made_with.id if made_with else None,
    )
    session.add(token)
    session.flush()  # callers show token.id
    facts = {"token": name, "scope": scope.value, "until": token.expires_at.date().isoformat()}
    journal.write(session, Action.TOKEN_MADE, by=by or user, details=facts)
    return token, secret


def tokens_of(user: User, *, now: datetime) -> Select[ApiToken]:
    """The user's tokens that still work, newest first."""
    return (
        select(ApiToken)
        .where(ApiToken.user_id == user.id, ApiToken.revoked_at.is_(None), ApiToken.expires_at > now)
        .order_by(ApiToken.created_at.desc(), ApiToken.id)
    )


def token_of_secret(session: Session, secret: str) -> ApiToken | None:
    """The row of a bearer token."""
    return session.scalar(select(ApiToken).where(ApiToken.token_hash == digest(secret)))


def revoke_token(session: Session, token_id: UUID, *, by: User, now: datetime) -> None:
    """Make a token useless, and with it those that were made by it.

    Raises:
        TokenNotFound: it does not exist, or is somebody else's and `by` no admin.
    """
    token = session.get(ApiToken, token_id)
    if token is None or (token.user_id != by.id and not by.is_admin):
        raise TokenNotFound
    if token.revoked_at is not None:
        return
    _revoke(session, or_(ApiToken.id == token_id, ApiToken.made_with_id == token_id), now=now)
    facts = {"token": token.name}
    if token.user_id != by.id:
        facts |= journal.naming(session.get_one(User, token.user_id))
    journal.write(session, Action.TOKEN_REVOKED, by=by, details=facts)


def end_credentials(session: Session, user_id: UUID, *, now: datetime, keep: str = "") -> None:
    """End a person's sessions, tokens, tokens of programs that they made, and links to another password.

    They end for good: whoever is let in again signs in anew. The session with the secret `keep` stays.
    """
    session.execute(
        delete(LoginSession).where(LoginSession.user_id == user_id, LoginSession.id_hash != digest(keep))
    )
    _revoke(session, or_(ApiToken.user_id == user_id, ApiToken.made_by_id == user_id), now=now)
    session.execute(
        update(Invitation)
        .where(
            Invitation.for_id == user_id,
            Invitation.purpose == Purpose.PASSWORD,
            Invitation.accepted_at.is_(None),
            Invitation.expires_at > now,
        )
        .values(expires_at=now)
    )


def _revoke(session: Session, which: object, *, now: datetime) -> None:
    session.execute(update(ApiToken).where(which, ApiToken.revoked_at.is_(None)).values(revoked_at=now))  # type: ignore[arg-type]
