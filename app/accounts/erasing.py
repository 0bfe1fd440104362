"""Erasing a person: what identifies them goes, and their answers stay under a pseudonym."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import delete, or_, select, update
from sqlalchemy.orm import Session

from app.accounts.ending import Because, end_all
from app.accounts.errors import NameDiffers, NotAllowed
from app.accounts.links import ANYBODY, called
from app.accounts.models import ApiToken, Invitation, LoginSession, Role, User
from app.accounts.organisation.models import OrganisationIdentity
from app.accounts.people import require_another_admin, to_change
from app.journal import writing as journal
from app.journal.models import Action

ERASED_DOMAIN = "erased.invalid"  # a reserved name: nobody has an address there


def erase_account(session: Session, user_id: UUID, *, name: str, by: User | None, now: datetime) -> User:
    """Take address, name, password, second factor, sessions, tokens and links away, and rewrite the journal.

    Args:
        name: of the person, as a check against a slip.
        by: an admin; None: somebody who holds the database.

    Raises:
        UserNotFound, AccountErased: there is nobody to erase.
        NotAllowed: `by` is no admin any more, or means themselves.
        LastAdmin: nobody else could administer the installation.
        NameDiffers: it is not their name.
    """
    user = to_change(session, user_id, by=by)
    if by is not None and user.id == by.id:
        raise NotAllowed("another admin")
    require_another_admin(session, user)
    if name.strip() != user.name:
        raise NameDiffers
    pseudonym = _pseudonym(session)
    links = or_(Invitation.for_id == user.id, Invitation.email == user.email)
    told = session.scalars(select(Invitation).where(links)).all()
    notes = {name for one in told for name in (one.note, called(one)) if name} - {ANYBODY}
    end_all(session, user, because=Because.PERSON_ERASED, by=by, now=now)  # the journal says of what
    journal.forget(session, user, pseudonym=pseudonym, notes=notes)
    session.execute(delete(Invitation).where(links))
    session.execute(delete(LoginSession).where(LoginSession.user_id == user.id))
    session.execute(delete(OrganisationIdentity).where(OrganisationIdentity.user_id == user.id))
    own = select(ApiToken.id).where(ApiToken.user_id == user.id)
    session.execute(update(ApiToken).where(ApiToken.made_with_id.in_(own)).values(made_with_id=None))
    session.execute(delete(ApiToken).where(ApiToken.user_id == user.id))
    user.email, user.name, user.role = f"{user.id.hex}@{ERASED_DOMAIN}", pseudonym, Role.ANNOTATOR
    user.password_hash = user.totp_secret = user.totp_since = user.totp_step = None
    user.disabled_at, user.erased_at = user.disabled_at or now, now
    session.flush()
    journal.write(session, Action.PERSON_ERASED, by=by, details=journal.naming(user))
    return user


def _pseudonym(session: Session) -> str:
    """ "Person 17": the next number that nobody is called by."""
    taken = set(session.scalars(select(User.name).where(User.name.like("Person %"))))
    number = 1
    while f"Person {number}" in taken:
        number += 1
    return f"Person {number}"
