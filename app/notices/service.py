"""Subscriptions, and the life of notices: noted once, claimed, sent, tried again, given up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session, joinedload

from app import claims, jobs
from app.accounts import service as accounts
from app.accounts.models import User
from app.accounts.service import Because, subscription_facts
from app.claims import Claim, unclaimed
from app.journal import service as journal
from app.journal.models import Action
from app.notices.addresses import check_url
from app.notices.errors import NoMailServer, SubscriptionEnded, SubscriptionNotFound
from app.notices.happenings import Happening, happenings
from app.notices.models import Event, Notice, NoticeState, Subscription
from app.notices.posting import make_secret
from app.settings import Settings

_INSERT = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}
# After the first attempt, the second, ...; after the last one nobody tries again: a day and a half in all.
PAUSES = tuple(
    timedelta(seconds=s) for s in (10, 60, 5 * 60, 30 * 60, 2 * 3600, 6 * 3600, 12 * 3600, 12 * 3600)
)
MAX_ATTEMPTS = len(PAUSES) + 1
AT_ONCE = 10  # notices that upkeep asks for in a round: who does not answer holds other jobs up
LOST = "The process that sent it was lost; it was not tried again."
ENDED = "The subscription has ended; it was not sent."
WORDS: Mapping[str, str] = MappingProxyType(  # why a subscription has ended, continuing a sentence
    {
        Because.ACCOUNT_DISABLED: "the account of who made it was disabled",
        Because.ROLE_CHANGED: "who made it is no admin any more",
        Because.PERSON_ERASED: "who made it was erased",
        Because.TURNED_AWAY: "their organisation does not let in who made it any more",
        Because.TAKEN_OVER: "the account of who made it went to the organisation's",
    }
)
ASKED_FOR = "An admin tries this subscription out: notices arrive."


@dataclass(frozen=True, slots=True)
class Sending:
    """A notice that is ours to send, and where to."""

    claim: Claim
    attempt: int
    said: dict[str, Any]
    url: str | None
    secret: str
    email: str | None  # None: by mail, but to nobody any more


def subscribe(
    session: Session, settings: Settings, *, url: str | None, events: Sequence[Event], by: User, now: datetime
) -> Subscription:
    """Tell somebody of events from now on: a program at an address, or, without one, `by` by mail.

    Raises:
        NotAllowed: `by` is no admin.
        AddressNotAllowed: nothing is posted there.
        NoMailServer: mail is asked for and there is none.
    """
    accounts.require_admin_throughout(session, by)  # its end is the subscription's
    if url is None and not settings.sends_mail:
        raise NoMailServer
    if url is not None:
        check_url(settings, url)
    subscription = Subscription(
        url=url,
        secret=None if url is None else make_secret(),
        events=sorted({str(event) for event in events}),
        created_by=by,
        created_at=now,
    )
    session.add(subscription)
    session.flush()  # its id
    journal.write(session, Action.SUBSCRIPTION_MADE, by=by, details=_facts(subscription))
    return subscription


def list_subscriptions(session: Session, *, by: User) -> Sequence[Subscription]:
    """All, the oldest first.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    query = select(Subscription).options(joinedload(Subscription.created_by))
    return session.scalars(query.order_by(Subscription.created_at, Subscription.id)).all()


def get_subscription(session: Session, subscription_id: UUID, *, by: User) -> Subscription:
    """One.

    Raises:
        NotAllowed: `by` is no admin.
        SubscriptionNotFound: there is none.
    """
    accounts.require_admin(by)
    found = session.get(Subscription, subscription_id, options=[joinedload(Subscription.created_by)])
    if found is None:
        raise SubscriptionNotFound
    return found


def end_subscription(session: Session, subscription_id: UUID, *, by: User) -> None:
    """Take a subscription out of the list; what still waits is not sent. Raises like `get_subscription`."""
    subscription = get_subscription(session, subscription_id, by=by)
    if subscription.ended_at is None:
        journal.write(session, Action.SUBSCRIPTION_ENDED, by=by, details=_facts(subscription))
    session.delete(subscription)


def try_out(
    session: Session, settings: Settings, subscription_id: UUID, *, by: User, now: datetime
) -> Notice:
    """Send a notice that says that an admin asked for it.

    Raises:
        NotAllowed, SubscriptionNotFound: as `get_subscription`.
        SubscriptionEnded: nobody is told by it any more.
    """
    subscription = get_subscription(session, subscription_id, by=by)
    if why := why_ended(subscription):
        raise SubscriptionEnded(why)
    happening = Happening(Event.TEST, str(uuid4()), now, "/subscriptions", ASKED_FOR, {})
    notice = Notice(id=uuid4(), **_columns(settings, subscription.id, happening, now=now))
    session.add(notice)
    session.flush()
    jobs.enqueue(session, jobs.SEND_NOTICE, notice.id)
    return notice


def why_ended(subscription: Subscription) -> str:
    """By what a subscription has ended, continuing a sentence; "" where it goes on."""
    if subscription.ended_at is None:
        return ""
    return WORDS.get(subscription.ended_because or "", WORDS[Because.ROLE_CHANGED])


def notices_of(session: Session, subscription: Subscription, *, limit: int) -> Sequence[Notice]:
    """The newest."""
    own = Notice.subscription_id == subscription.id
    return session.scalars(
        select(Notice).where(own).order_by(Notice.created_at.desc(), Notice.id).limit(limit)
    ).all()


def latest_notices(session: Session) -> dict[UUID, Notice]:
    """The newest of each subscription."""
    place = func.row_number().over(
        partition_by=Notice.subscription_id, order_by=(Notice.created_at.desc(), Notice.id)
    )
    ranked = select(Notice.id, place.label("place")).subquery()
    newest = select(Notice).join(ranked, ranked.c.id == Notice.id).where(ranked.c.place == 1)
    return {notice.subscription_id: notice for notice in session.scalars(newest)}


def note_happenings(session: Session, settings: Settings, event: Event, now: datetime) -> None:
    """Make a notice of each event of a kind since the last look, once for each subscription that wants it."""
    live = session.scalars(select(Subscription).where(Subscription.ended_at.is_(None)))
    subscriptions = [one for one in live if event in one.events]
    if not subscriptions:
        return
    found = list(happenings(session, event, now=now))
    asked = select(Notice.subscription_id, Notice.event, Notice.subject)
    asked = asked.where(Notice.subject.in_([one.subject for one in found]))
    known = {(row[0], str(row[1]), row[2]) for row in session.execute(asked)}
    insert: Any = _INSERT[session.connection().dialect.name]  # each has a type of its own
    for subscription in subscriptions:
        for one in found:
            is_new = one.at is None or one.at >= subscription.created_at
            if is_new and (subscription.id, str(one.event), one.subject) not in known:
                values = {"id": uuid4(), "claim_number": 0, "attempts": 0}
                values |= {"state": NoticeState.WAITING, **_columns(settings, subscription.id, one, now=now)}
                session.execute(insert(Notice).values(**values).on_conflict_do_nothing())


def waiting_notices(session: Session, now: datetime) -> list[UUID]:
    """Notices that are due and that nobody sends."""
    lost = Notice.state == NoticeState.WAITING, unclaimed(Notice, now), Notice.attempts >= MAX_ATTEMPTS
    session.execute(
        update(Notice)
        .where(*lost)
        .values(state=NoticeState.GIVEN_UP, failure=func.coalesce(Notice.failure, LOST)),
        execution_options={"synchronize_session": False},
    )
    of_ended = select(Subscription.id).where(Subscription.ended_at.is_not(None))
    session.execute(
        update(Notice)
        .where(
            Notice.state == NoticeState.WAITING,
            unclaimed(Notice, now),
            Notice.subscription_id.in_(of_ended),
        )
        .values(state=NoticeState.GIVEN_UP, failure=ENDED),
        execution_options={"synchronize_session": False},
    )
    due = select(Notice.id).where(
        Notice.state == NoticeState.WAITING, unclaimed(Notice, now), Notice.due_at <= now
    )
    return list(session.scalars(due.order_by(Notice.due_at, Notice.id).limit(AT_ONCE)))


def claim_notice(session: Session, notice_id: UUID, *, by: str, now: datetime) -> Sending | None:
    """Take a notice that is due; None where somebody has it, it is not due, or it is over."""
    due = Notice.state == NoticeState.WAITING, Notice.due_at <= now, Notice.attempts < MAX_ATTEMPTS
    claim = claims.claim(session, Notice, notice_id, *due, by=by, now=now)
    if claim is None:
        return None
    notice = session.get_one(Notice, notice_id, populate_existing=True)
    subscription = session.get_one(
        Subscription, notice.subscription_id, options=[joinedload(Subscription.created_by)]
    )
    person = subscription.created_by
    may_know = person.is_admin and person.disabled_at is None and subscription.ended_at is None
    return Sending(
        claim=claim,
        attempt=notice.attempts,
        said=notice.said,
        url=subscription.url if may_know else None,
        secret=subscription.secret or "",
        email=person.email if may_know and subscription.url is None else None,
    )


def note_sent(session: Session, claim: Claim, *, now: datetime) -> None:
    """It arrived; raises ClaimLost if it is not ours any more."""
    claims.release(session, claim, state=NoticeState.SENT, sent_at=now, failure=None)


def note_failure(session: Session, claim: Claim, attempt: int, why: str, *, now: datetime) -> None:
    """It did not arrive: try again later, or not any more. Raises ClaimLost if it is not ours any more."""
    if attempt >= MAX_ATTEMPTS:
        claims.release(session, claim, state=NoticeState.GIVEN_UP, failure=why)
    else:
        claims.release(session, claim, due_at=now + PAUSES[attempt - 1], failure=why)


def _columns(
    settings: Settings, subscription_id: UUID, happening: Happening, *, now: datetime
) -> dict[str, Any]:
    said = {
        "type": str(happening.event),
        "timestamp": (happening.at or now).isoformat(),
        "data": happening.facts
        | {"words": happening.words, "url": settings.public_url.rstrip("/") + happening.page},
    }
    return {
        "subscription_id": subscription_id,
        "event": happening.event,
        "subject": happening.subject,
        "said": said,
        "due_at": now,
        "created_at": now,
    }


def _facts(subscription: Subscription) -> dict[str, Any]:
    return subscription_facts(subscription.url, subscription.events)
