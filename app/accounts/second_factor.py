"""A second factor: six digits that an authenticator on a phone shows for half a minute (TOTP, RFC 6238)."""

import enum
import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import pyotp
import segno
from sqlalchemy import delete, or_, select, update
from sqlalchemy.orm import Session

from app.accounts.callers import digest
from app.accounts.errors import WrongCode
from app.accounts.models import LoginSession, User
from app.accounts.organisation.models import OrganisationIdentity
from app.accounts.people import get_person
from app.journal import writing as journal
from app.journal.models import Action

PRODUCT = "Clarinet"
STEP_S = 30
TICKET_LIFE = timedelta(minutes=5)  # from the password to the code
_BOTH_SIDES = (0, -1, 1)  # steps around now: clocks differ, and typing takes a while


def begin_second_factor(session: Session, user: User) -> str:
    """A new secret for an authenticator; it counts once a first code has confirmed that it arrived there."""
    secret = pyotp.random_base32()
    session.execute(
        update(User)
        .where(User.id == user.id, User.totp_since.is_(None))
        .values(totp_secret=secret, totp_step=None)
    )
    found = session.scalar(select(User.totp_secret).where(User.id == user.id))
    return found or secret


def key_address(user: User, secret: str) -> str:
    """The otpauth:// address that an authenticator on this device opens."""
    return pyotp.TOTP(secret).provisioning_uri(name=user.email, issuer_name=PRODUCT)


def key_picture(user: User, secret: str) -> str:
    """The same as a QR code, for an authenticator on another device: SVG to stand in a page."""
    code: str = segno.make(key_address(user, secret), error="m").svg_inline(
        scale=4, dark="#000", light="#fff", svgclass=None, lineclass=None
    )
    return code


def confirm_second_factor(session: Session, user: User, code: str, *, now: datetime, keep: str) -> None:
    """Turn it on by a first code; other browsers than the one with the secret `keep` are signed out.

    Raises:
        WrongCode: the authenticator has another secret, or its clock is wrong.
    """
    use_code(session, user, code, now=now)
    session.execute(update(User).where(User.id == user.id, User.totp_since.is_(None)).values(totp_since=now))
    session.execute(
        delete(LoginSession).where(LoginSession.user_id == user.id, LoginSession.id_hash != digest(keep))
    )
    journal.write(session, Action.SECOND_FACTOR_ON, by=user)


def use_code(session: Session, user: User, code: str, *, now: datetime) -> None:
    """Take a code. Each works once, also for two requests at the same moment.

    Raises:
        WrongCode: it is not of this half minute or the ones beside it, or was used.
    """
    secret = session.scalar(select(User.totp_secret).where(User.id == user.id))
    step = None if secret is None else _step_of(secret, code, now=now)
    if step is None:
        raise WrongCode
    taken = session.execute(
        update(User)
        .where(User.id == user.id, or_(User.totp_step.is_(None), User.totp_step < step))
        .values(totp_step=step)
        .returning(User.id)
    ).one_or_none()
    if taken is None:
        raise WrongCode


def _step_of(secret: str, code: str, *, now: datetime) -> int | None:
    code = code.replace(" ", "")
    present = int(now.timestamp()) // STEP_S
    authenticator = pyotp.TOTP(secret)
    for step in (present + aside for aside in _BOTH_SIDES):
        if hmac.compare_digest(authenticator.at(step * STEP_S).encode(), code.encode()):
            return step
    return None


def turn_off_second_factor(session: Session, user_id: UUID, *, by: User | None) -> User:
    """Take the second factor away: one's own, or as an admin that of somebody whose phone is lost.

    Without `by` it is somebody who holds the database.

    Raises:
        NotAllowed: `by` is no admin and it is somebody else's.
        UserNotFound: no such person.
    """
    is_own = by is None or by.id == user_id
    user = session.get_one(User, user_id) if by is None or is_own else get_person(session, user_id, by=by)
    session.execute(
        update(User).where(User.id == user_id).values(totp_secret=None, totp_since=None, totp_step=None)
    )
    journal.write(session, Action.SECOND_FACTOR_OFF, by=by, details=journal.naming(user))
    return user


class Way(enum.StrEnum):
    """How somebody came as far as to the code."""

    PASSWORD = "p"
    LINK = "l"  # to another password
    ORGANISATION = "o"


@dataclass(frozen=True, slots=True)
class Ticket:
    """Who has only the code left to give.

    Args:
        is_proved: with what opens the delicate, as `start_session` takes it.
    """

    user: User
    way: Way
    is_proved: bool


def ticket_for(
    signing_secret: bytes,
    session: Session,
    user: User,
    *,
    now: datetime,
    way: Way = Way.PASSWORD,
    is_proved: bool = True,
) -> str:
    """What shows for TICKET_LIFE how far somebody came.

    It falls with the password, and one of the organisation with the next that is heard of them there.
    """
    until = int((now + TICKET_LIFE).timestamp())
    said = f"{user.id.hex}.{until}.{way}.{int(is_proved)}"
    return f"{said}.{_seal(signing_secret, session, user, way, said)}"


def read_ticket(signing_secret: bytes, session: Session, ticket: str, *, now: datetime) -> Ticket | None:
    """What a ticket shows; None where it is forged, too old, or has fallen."""
    said, _, seal = ticket.rpartition(".")
    try:
        name, until, way_given, proved = said.split(".")
        user_id, ends_at, way = UUID(hex=name), int(until[:12]), Way(way_given)
    except ValueError:
        return None
    user = session.get(User, user_id)
    if user is None or user.disabled_at is not None or ends_at <= now.timestamp():
        return None
    expected = _seal(signing_secret, session, user, way, said)
    if not hmac.compare_digest(expected.encode(), seal.encode()):
        return None
    return Ticket(user, way, is_proved=proved == "1")


def _seal(signing_secret: bytes, session: Session, user: User, way: Way, said: str) -> str:
    sealed = f"second-factor:{said}:{user.password_hash}"
    if way is Way.ORGANISATION:
        row = OrganisationIdentity
        links = session.execute(select(row.id, row.seen_at).where(row.user_id == user.id).order_by(row.id))
        sealed += "".join(f":{link}:{seen and seen.isoformat()}" for link, seen in links)
    return hmac.new(signing_secret, sealed.encode(), hashlib.sha256).hexdigest()
