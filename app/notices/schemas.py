"""What the JSON API and the forms of subscriptions accept and return."""

import enum
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from app.accounts.service import Because
from app.notices.addresses import shortened
from app.notices.models import Event, NoticeState, Subscription
from app.schemas import Input, Output, printable

Url = Annotated[str, StringConstraints(min_length=1, max_length=500), AfterValidator(printable)]


class Told(enum.StrEnum):
    """Events that can be subscribed to."""

    RUN_ENDED = "run-ended"
    CAMPAIGN_NEARLY_DONE = "campaign-nearly-done"
    PERSON_PAUSED = "person-paused"


class SubscriptionCreate(Input):
    """Who is to be told of what."""

    url: Url | None = Field(default=None, description="where to post; null: by mail to you")
    events: list[Told] = Field(min_length=1, max_length=len(Told))


class SubscriptionRead(Output):
    """Who is told of what: at `url`, or, where that is null, its maker by mail."""

    id: UUID
    url: str | None = Field(description="without what follows the host, which may be a secret")
    made_by: str
    events: list[Told]
    created_at: datetime
    ended_at: datetime | None = Field(description="with its maker's way in: nothing is told any more")
    ended_because: Because | None = Field(description="null: it goes on")

    @classmethod
    def of(cls, row: Subscription) -> "SubscriptionRead":
        """Read a row, whose maker is loaded."""
        return cls(**fields_of(row))


class SubscriptionCreated(SubscriptionRead):
    """The same with the whole address and the secret that signs what is posted, this once."""

    secret: str | None = Field(description="null: mail is not signed")


class SubscriptionPage(Output):
    """All subscriptions."""

    items: list[SubscriptionRead]
    next: str | None = Field(default=None, description="null: the list is whole")


class NoticeRead(Output):
    """What somebody is told of, and whether it arrived."""

    id: UUID
    event: Event
    said: dict[str, Any] = Field(description="what is posted")
    state: NoticeState
    attempts: int
    failure: str | None = Field(description="why the last attempt failed")
    due_at: datetime = Field(description="of a waiting one: no attempt is made before")
    created_at: datetime
    sent_at: datetime | None


class NoticePage(Output):
    """The newest notices of a subscription."""

    items: list[NoticeRead]
    next: str | None = Field(default=None, description="null: older ones are not shown")


class To(enum.StrEnum):
    """How somebody is told."""

    WEBHOOK = "webhook"
    MAIL = "mail"


def _as_list(given: Any) -> Any:
    return given if isinstance(given, list) else [given]


class SubscriptionForm(Input):
    """The form of the page."""

    to: To = To.WEBHOOK
    url: Url | None = None
    events: Annotated[list[Told], BeforeValidator(_as_list)] = []  # noqa: RUF012  # pydantic copies it


def fields_of(row: Subscription) -> dict[str, Any]:
    """A subscription's fields, as they leave."""
    return {
        "id": row.id,
        "url": row.url and shortened(row.url),
        "made_by": row.created_by.name,
        "events": row.events,
        "created_at": row.created_at,
        "ended_at": row.ended_at,
        "ended_because": row.ended_because,
    }
