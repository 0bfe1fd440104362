"""Who is told what, and what they are told."""

import enum
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import ForeignKey, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.accounts.models import User
from app.claims import Claimable
from app.db import Base, enum_column


class Event(enum.StrEnum):
    """What may be told."""

    RUN_ENDED = "run-ended"
    CAMPAIGN_NEARLY_DONE = "campaign-nearly-done"
    PERSON_PAUSED = "person-paused"
    TEST = "test"  # nothing happened: an admin tries a subscription out


class NoticeState(enum.StrEnum):
    """A notice's life."""

    WAITING = "waiting"
    SENT = "sent"
    GIVEN_UP = "given-up"


class Subscription(Base):
    """Somebody, or a program, who is told of some events: at an address of theirs, or by mail."""

    __tablename__ = "subscription"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    url: Mapped[str | None] = mapped_column(String(500))  # None: by mail to who made it
    secret: Mapped[str | None] = mapped_column(String(64))  # signs what is posted; mail is not signed
    events: Mapped[list[str]]
    created_by_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="RESTRICT"))
    created_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]  # with what its maker was: nothing is told any more, for good
    ended_because: Mapped[str | None] = mapped_column(String(32))  # app.accounts.ending.Because

    created_by: Mapped[User] = relationship(lazy="raise")


class Notice(Claimable, Base):
    """One event that one subscription is told of, once; sent by whoever claims it."""

    __tablename__ = "notice"
    __table_args__ = (UniqueConstraint("subscription_id", "event", "subject"),)

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    subscription_id: Mapped[UUID] = mapped_column(ForeignKey("subscription.id", ondelete="CASCADE"))
    event: Mapped[Event] = mapped_column(enum_column(Event))
    subject: Mapped[str] = mapped_column(String(120))  # which of its kind: of a run its id and end
    said: Mapped[dict[str, Any]]  # the facts, as they were when it was noticed
    state: Mapped[NoticeState] = mapped_column(
        enum_column(NoticeState), default=NoticeState.WAITING, index=True
    )
    due_at: Mapped[datetime]  # not before then
    failure: Mapped[str | None] = mapped_column(Text)  # of the last attempt, in words
    created_at: Mapped[datetime]
    sent_at: Mapped[datetime | None]
