"""Whose account at the provider is whose here: at each sign-in, by linking, and by taking the link away."""

from datetime import datetime

import structlog
from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.callers import digest
from app.accounts.credentials import locked
from app.accounts.ending import Because, end_all
from app.accounts.errors import LastAdmin
from app.accounts.models import Role, User
from app.accounts.organisation.claims import Person
from app.accounts.organisation.errors import (
    AddressHasAccount,
    AddressNotVerified,
    DisabledHere,
    NoAccountHere,
    NotOfOrganisation,
    OnlyWay,
    OtherAccountLinked,
    PasswordFirst,
    SignInNotBegun,
)
from app.accounts.organisation.models import OrganisationIdentity, UsedSignIn
from app.accounts.people import add_user, set_role
from app.journal import writing as journal
from app.journal.models import Action
from app.organisation_settings import OrganisationSettings

BY_GROUPS = "groups"  # in the journal: what gave the role
ROLES = (Role.ADMIN, Role.REVIEWER, Role.ANNOTATOR)  # of several the first one

log = structlog.get_logger()


def use_state(session: Session, state: str, *, until: datetime, now: datetime) -> None:
    """Take an answer of the provider. Each counts once, also for two requests at the same moment.

    Raises:
        SignInNotBegun: it was used.
    """
    session.execute(delete(UsedSignIn).where(UsedSignIn.expires_at <= now))
    try:
        with session.begin_nested():
            session.add(UsedSignIn(state_hash=digest(state), expires_at=until))
    except IntegrityError as error:
        raise SignInNotBegun from error


def sign_in(session: Session, person: Person, *, settings: OrganisationSettings, now: datetime) -> User:
    """Whose account here this is, with the role that their groups give; made or linked if that is allowed.

    Raises:
        NotOfOrganisation, AddressNotVerified: they may not come. `turn_away` says what follows.
        NoAccountHere, AddressHasAccount: there is none that is theirs.
        DisabledHere: an admin disabled it.
    """
    require_welcome(person, settings)
    identity = identity_of(session, person)
    if identity is None:
        identity = _first_time(session, person, settings=settings, now=now)
    user = session.get_one(User, identity.user_id, populate_existing=True)
    if user.disabled_at is not None:
        raise DisabledHere
    identity.seen_at = now
    _give_role(session, user, person, settings=settings, now=now)
    return user


def identity_of(session: Session, person: Person) -> OrganisationIdentity | None:
    """The row of this account at the provider."""
    return session.scalar(
        select(OrganisationIdentity).where(
            OrganisationIdentity.issuer == person.issuer, OrganisationIdentity.subject == person.subject
        )
    )


def linked(session: Session, user: User, settings: OrganisationSettings) -> OrganisationIdentity | None:
    """What this person is linked with at the provider of the settings."""
    return session.scalar(
        select(OrganisationIdentity).where(
            OrganisationIdentity.user_id == user.id, OrganisationIdentity.issuer == settings.oidc_issuer
        )
    )


def require_welcome(person: Person, settings: OrganisationSettings) -> None:
    """Let only those go on whom the settings allow.

    Raises:
        NotOfOrganisation: by group or domain.
        AddressNotVerified: by domain, and nobody says that the address is theirs.
    """
    allowed = set(settings.oidc_allowed_groups)
    if allowed and not allowed & person.groups:
        raise NotOfOrganisation(settings.organisation)
    domains = {each.lower().lstrip("@") for each in settings.oidc_allowed_domains}
    if not domains:
        return
    if not person.is_verified:
        raise AddressNotVerified(settings.organisation)
    if person.email.rpartition("@")[2] not in domains:
        raise NotOfOrganisation(settings.organisation)


def turn_away(session: Session, person: Person, *, now: datetime) -> None:
    """End what somebody is signed in with who may not come any more, and write that down."""
    identity = identity_of(session, person)
    user = None if identity is None else session.get(User, identity.user_id)
    if identity is not None and user is not None:
        identity.seen_at = now  # by which a sign-in that waits for its code falls
        end_all(session, user, because=Because.TURNED_AWAY, by=None, now=now)
    facts = journal.naming(user) if user else {"account": "unknown"}
    journal.write(session, Action.SIGN_IN_REFUSED, by=None, details={**facts, "at": "organisation"})


def _first_time(
    session: Session, person: Person, *, settings: OrganisationSettings, now: datetime
) -> OrganisationIdentity:
    if not (settings.oidc_make_accounts or settings.oidc_link_by_email):
        raise NoAccountHere(settings.organisation)
    if not person.email or not person.is_verified:
        raise AddressNotVerified(settings.organisation)
    user = accounts.user_with_email(session, person.email)
    if user is not None:
        _take_over(session, user, person, settings=settings, now=now)
        return link(session, user, person, settings=settings, now=now, how="address")
    if not settings.oidc_make_accounts:
        raise NoAccountHere(settings.organisation)
    name = person.name or person.email.partition("@")[0]
    role = role_of(person, settings) or Role.ANNOTATOR
    user = add_user(
        session, email=person.email, name=name, role=role, password_hash=None, is_invited=True, now=now
    )
    return link(session, user, person, settings=settings, now=now, how="first sign-in")


def _take_over(
    session: Session, user: User, person: Person, *, settings: OrganisationSettings, now: datetime
) -> None:
    """Give an account to whoever has its address, and to nobody else.

    Nobody has verified that whoever made it had the address. So all that they could come back with ends.
    """
    if not settings.oidc_link_by_email or linked(session, user, settings) is not None:
        raise AddressHasAccount(person.email)
    if user.is_simulated or user.is_outside:
        raise AddressHasAccount(person.email)
    if user.disabled_at is not None:
        raise DisabledHere
    user = locked(session, user)
    user.password_hash = user.totp_secret = user.totp_since = user.totp_step = None
    end_all(session, user, because=Because.TAKEN_OVER, by=None, now=now)


def link(
    session: Session, user: User, person: Person, *, settings: OrganisationSettings, now: datetime, how: str
) -> OrganisationIdentity:
    """Link two accounts.

    Args:
        how: for the journal.

    Raises:
        OtherAccountLinked: one of them is linked already.
    """
    identity = OrganisationIdentity(
        user_id=user.id,
        issuer=person.issuer,
        subject=person.subject,
        called=person.email or person.name or person.subject[:254],
        linked_at=now,
    )
    try:
        with session.begin_nested():
            session.add(identity)
    except IntegrityError as error:
        raise OtherAccountLinked(settings.organisation) from error
    journal.write(session, Action.ORGANISATION_LINKED, by=user, details={**journal.naming(user), "by": how})
    return identity


def unlink(session: Session, user: User, settings: OrganisationSettings, *, by: User | None) -> bool:
    """Take the link away; False where there is none. `by` None: somebody who holds the database.

    Raises:
        OnlyWay, PasswordFirst: the person would have no way in.
    """
    identity = linked(session, user, settings)
    if identity is None:
        return False
    if by is not None and not settings.password_sign_in:
        raise OnlyWay(settings.organisation)
    if by is not None and user.password_hash is None:
        raise PasswordFirst
    session.delete(identity)
    journal.write(session, Action.ORGANISATION_UNLINKED, by=by, details=journal.naming(user))
    return True


def role_of(person: Person, settings: OrganisationSettings) -> Role | None:
    """The highest role that their groups give, an annotator's for none; None where groups give no roles."""
    if not settings.oidc_roles:
        return None
    given = {Role(settings.oidc_roles[group]) for group in person.groups if group in settings.oidc_roles}
    return next((role for role in ROLES if role in given), Role.ANNOTATOR)


def _give_role(
    session: Session, user: User, person: Person, *, settings: OrganisationSettings, now: datetime
) -> None:
    """Another role ends what they are signed in with. The last admin stays one, whatever their groups say."""
    role = role_of(person, settings)
    if role is None or role is user.role:
        return
    try:
        set_role(session, user.id, role, by=None, now=now, because=BY_GROUPS)
    except LastAdmin:
        log.warning("organisation.last_admin_kept", user=str(user.id), groups_give=role.value)
        details = {**journal.naming(user), "groups give": role.value}
        journal.write(session, Action.ROLE_KEPT, by=None, details=details)
