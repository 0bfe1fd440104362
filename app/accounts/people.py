"""People: how they come, what they may do, and who may change that."""

import hashlib
from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from sqlalchemy import Select, delete, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.accounts.credentials import create_token, end_credentials, user_with_email
from app.accounts.ending import Because, end_all
from app.accounts.errors import (
    AccountErased,
    AccountOfProgram,
    AccountOfWorker,
    EmailTaken,
    LastAdmin,
    NotAllowed,
    UserNotFound,
    WrongCredentials,
)
from app.accounts.models import ApiToken, LoginSession, Role, Scope, User
from app.accounts.passwords import hash_password
from app.accounts.strength import refuse_weak
from app.db import Base
from app.journal import writing as journal
from app.journal.models import Action
from app.languages import translatable

ADMINS_LOCK = 0x61646D696E73  # of PostgreSQL: who is an admin; any number that no other lock has
NAMES = 100  # of campaigns, and of data sets, that make no password
SIMULATED_DOMAIN = "simulated.invalid"  # a reserved name: nobody has an address there


def require_admin(user: User) -> None:
    """Raises NotAllowed unless `user` is an admin."""
    if not user.is_admin:
        raise NotAllowed


def require_admin_throughout(session: Session, user: User) -> None:
    """Raises NotAllowed unless `user` is an admin now; they stay one until this transaction ends.

    For what ends with its maker. Made while somebody else ends that, it would be overlooked.
    """
    require_admin(user)
    own = active_admins().where(User.id == user.id)
    if session.scalar(own.order_by(None).with_for_update(read=True)) is None:
        raise NotAllowed


def require_reviewer(user: User) -> None:
    """Raises NotAllowed unless `user` is a reviewer or an admin."""
    if not user.may_review:
        raise NotAllowed(translatable("a reviewer or an admin"))


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
        WeakPassword: too short, or easy to guess.
    """
    return add_user(
        session,
        email=email,
        name=name,
        role=role,
        password_hash=None if password is None else hash_if_strong(password, (email, name)),
        is_simulated=is_simulated,
        now=now,
    )


def add_user(
    session: Session,
    *,
    email: str,
    name: str,
    role: Role,
    password_hash: str | None,
    now: datetime,
    is_simulated: bool = False,
    is_outside: bool = False,
    is_invited: bool = False,
) -> User:
    """The same with what `hash_if_strong` made of the password; `is_invited`: they do it themselves."""
    user = User(
        email=email.strip().lower(),
        name=name.strip(),
        role=role,
        password_hash=password_hash,
        is_simulated=is_simulated,
        is_outside=is_outside,
        created_at=now,
    )
    try:
        with session.begin_nested():
            session.add(user)
    except IntegrityError as error:
        raise EmailTaken(user.email) from error
    facts = {**journal.naming(user), "role": role.value} | ({"simulated": True} if is_simulated else {})
    journal.write(session, Action.ACCOUNT_MADE, by=user if is_invited else None, details=facts)
    return user


def names_here(session: Session) -> list[str]:
    """What everybody here knows and so tries first: names of campaigns and data sets, the newest."""
    found: list[str] = []
    for name in ("campaign", "dataset"):
        table = Base.metadata.tables[name]  # their features know accounts, not the other way round
        found += session.scalars(select(table.c.name).order_by(table.c.created_at.desc()).limit(NAMES))
    return found


def hash_if_strong(password: str, context: Iterable[str] = ()) -> str:
    """What to store of a new password. Takes 20 ms or more: call it where no writer waits.

    Args:
        password: as typed.
        context: name and address of the person, and `names_here`, which make no password.

    Raises:
        WeakPassword: too short, or easy to guess.
    """
    refuse_weak(password, context)
    return hash_password(password)


def simulated_annotator(
    session: Session, name: str, *, by: User, now: datetime, made_with: ApiToken | None = None
) -> tuple[User, ApiToken, str]:
    """A program's account that answers in a person's place, a new token of it, and the token's secret.

    The same name gives the same account, so that a repeated simulation adds nobody. The account has no
    password and is marked, and pages say so wherever its answers count. The token may only annotate. It ends
    with `by`'s own and with the token `made_with`, if they ask by one.

    Raises:
        NotAllowed: `by` is no admin.
    """
    require_admin_throughout(session, by)
    email = f"{hashlib.sha256(name.encode()).hexdigest()[:16]}@{SIMULATED_DOMAIN}"
    user = session.scalar(select(User).where(User.email == email, User.is_simulated))
    if user is None:
        user = create_user(
            session, email=email, name=name, role=Role.ANNOTATOR, password=None, now=now, is_simulated=True
        )
    token, secret = create_token(
        session, user, "simulation", now=now, scope=Scope.ANNOTATE, by=by, made_with=made_with
    )
    return user, token, secret


def change_password(
    session: Session, user: User, *, proved: User, password_hash: str, keep: str, now: datetime
) -> None:
    """Set a new password; end tokens, and every session but the one with the secret `keep`.

    Args:
        user: whose.
        proved: what `check_credentials` gave for the present password.
        password_hash: of the new one, from `hash_if_strong`.
        keep: the cookie of the browser in which it is changed.

    Raises:
        WrongCredentials: the password was changed since it was checked.
    """
    changed = session.execute(
        update(User)
        .where(User.id == user.id, User.password_hash == proved.password_hash, User.disabled_at.is_(None))
        .values(password_hash=password_hash)
        .returning(User.id)
    ).one_or_none()
    if changed is None:
        raise WrongCredentials
    end_credentials(session, user.id, now=now, keep=keep)
    journal.write(session, Action.PASSWORD_CHANGED, by=user)


def user_by_email(session: Session, email: str) -> User:
    """The person with this address; for commands of those who hold the database anyway.

    Raises:
        UserNotFound: no such person.
    """
    user = user_with_email(session, email)
    if user is None:
        raise UserNotFound
    return user


def get_person(session: Session, user_id: UUID, *, by: User) -> User:
    """Anybody with an account.

    Raises:
        NotAllowed: `by` is no admin.
        UserNotFound: no such person.
    """
    require_admin(by)
    user = session.get(User, user_id)
    if user is None:
        raise UserNotFound
    return user


def people() -> Select[User]:
    """Everybody with an account, by name."""
    return select(User).order_by(User.name, User.id)


def people_after(user_id: UUID | None) -> Select[User]:
    """Everybody with an account in the order of ids, from behind one id."""
    query = select(User).order_by(User.id)
    return query if user_id is None else query.where(User.id > user_id)


def active_admins() -> Select[UUID]:
    """Those who can administer this installation, by id."""
    return select(User.id).where(User.role == Role.ADMIN, User.disabled_at.is_(None)).order_by(User.id)


def has_admin(session: Session) -> bool:
    """Whether somebody can administer this installation."""
    return session.scalar(active_admins().limit(1)) is not None


def take_turns(session: Session) -> None:
    """Let nobody else decide who is an admin before this transaction ends; SQLite has one writer anyway."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(ADMINS_LOCK)))


def set_disabled(session: Session, user_id: UUID, *, disabled: bool, by: User, now: datetime) -> User:
    """Lock somebody out, or let them in again; their answers stay. Their way in ends for good.

    Raises:
        UserNotFound: no such person.
        NotAllowed: `by` is no admin any more, or would lock themselves out.
    """
    user = to_change(session, user_id, by=by)
    if disabled and user.id == by.id:
        raise NotAllowed("another admin")
    if disabled == (user.disabled_at is not None):
        return user
    user.disabled_at = now if disabled else None
    if disabled:
        end_all(session, user, because=Because.ACCOUNT_DISABLED, by=by, now=now)
    action = Action.ACCOUNT_DISABLED if disabled else Action.ACCOUNT_ENABLED
    journal.write(session, action, by=by, details=journal.naming(user))
    return user


def set_role(
    session: Session, user_id: UUID, role: Role, *, by: User | None, now: datetime, because: str = ""
) -> User:
    """Make somebody an admin, a reviewer or an annotator. They sign in anew, and their tokens end.

    Without `by` it is somebody who holds the database, or `because` says which rule gives it.

    Raises:
        UserNotFound: no such person.
        NotAllowed: `by` is no admin any more, or means themselves.
        AccountOfProgram, AccountOfWorker: a simulated annotator stays one, and so does an outside worker.
    """
    user = to_change(session, user_id, by=by)
    if user.role is role:
        return user
    if by is not None and user.id == by.id:
        raise NotAllowed("another admin")
    if by is None:
        require_another_admin(session, user)
    require_of_person(user)
    user.role = role
    end_all(session, user, because=Because.ROLE_CHANGED, by=by, now=now)
    facts = {**journal.naming(user), "role": role.value} | ({"by": because} if because else {})
    journal.write(session, Action.ROLE_CHANGED, by=by, details=facts)
    return user


def rename(session: Session, user_id: UUID, name: str, *, by: User | None) -> User:
    """Call somebody otherwise, everywhere from now on; lines of the journal keep what they said then.

    Args:
        by: an admin; None: somebody who holds the database.

    Raises:
        UserNotFound: no such person.
        NotAllowed: `by` is no admin any more.
        AccountErased: nobody is behind this account.
    """
    user = to_change(session, user_id, by=by)
    if user.name == name:
        return user
    user.name = name
    session.flush()
    journal.write(session, Action.PERSON_RENAMED, by=by, details=journal.naming(user))
    return user


def require_another_admin(session: Session, user: User) -> None:
    """Raises LastAdmin where nobody but `user` can administer this installation."""
    if user.is_admin and session.scalar(active_admins().where(User.id != user.id)) is None:
        raise LastAdmin


def require_of_person(user: User) -> None:
    """Raises AccountOfProgram or AccountOfWorker where nobody could sign in with an address."""
    if user.is_simulated:
        raise AccountOfProgram
    if user.is_outside:
        raise AccountOfWorker


def end_sessions(session: Session, user_id: UUID, *, by: User) -> None:
    """Sign somebody out wherever they are signed in; their tokens stay.

    Raises:
        NotAllowed: `by` is no admin.
        UserNotFound: no such person.
    """
    user = get_person(session, user_id, by=by)
    session.execute(delete(LoginSession).where(LoginSession.user_id == user_id))
    journal.write(session, Action.SESSION_ENDED, by=by, details=journal.naming(user))


def to_change(session: Session, user_id: UUID, *, by: User | None) -> User:
    """Somebody whom `by` may change, who is an admin now and stays one until this commits.

    Of two admins who disable each other at once the second waits, and is no admin any more when it is their
    turn: at least one is always left. Without `by` it is somebody who holds the database.
    """
    take_turns(session)
    if by is not None:
        require_admin(by)
        if session.scalar(active_admins().where(User.id == by.id)) is None:
            raise NotAllowed
    user = session.get(User, user_id, populate_existing=True)
    if user is None:
        raise UserNotFound
    if user.erased_at is not None:
        raise AccountErased
    return user
