"""What requests of annotators do: lock the campaign for a person, and serve them in one of two ways."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from app.annotation.models import AnswerValue
from app.campaigns.models import Campaign
from app.fast import answering as fast_answering
from app.fast import leasing as fast_leasing
from app.fast import queue


class Execution(Protocol):
    """One of two ways to the same rows."""

    def lease(
        self, session: Session, campaign: Campaign, *, count: int, by: User, now: datetime, one_class: bool
    ) -> service.Leased:
        """Ask for questions."""

    def submit(
        self,
        session: Session,
        campaign: Campaign,
        submitted: Sequence[service.SubmittedAnswer],
        *,
        count: int = 0,
        one_class: bool = False,
        by: User,
        now: datetime,
    ) -> tuple[list[service.Outcome], service.Leased | None]:
        """Send answers, and ask for `count` questions after them."""


class Fast:
    """`app.fast`."""

    def lease(
        self, session: Session, campaign: Campaign, *, count: int, by: User, now: datetime, one_class: bool
    ) -> service.Leased:
        """Ask for questions."""
        locked, _ = fast_leasing.lock_campaign(session, campaign.id, by=by)
        return fast_leasing.lease_questions(session, locked, count=count, by=by, now=now, one_class=one_class)

    def submit(
        self,
        session: Session,
        campaign: Campaign,
        submitted: Sequence[service.SubmittedAnswer],
        *,
        count: int = 0,
        one_class: bool = False,
        by: User,
        now: datetime,
    ) -> tuple[list[service.Outcome], service.Leased | None]:
        """Send answers, and ask for `count` questions after them."""
        _, outcomes, leased = fast_answering.answer(
            session, campaign.id, submitted, count=count, one_class=one_class, by=by, now=now
        )
        return outcomes, leased


class Plain:
    """`app.annotation` by itself."""

    def lease(
        self, session: Session, campaign: Campaign, *, count: int, by: User, now: datetime, one_class: bool
    ) -> service.Leased:
        """Ask for questions."""
        locked = service.lock_campaign(session, campaign.id, by=by)
        return service.lease_questions(session, locked, count=count, by=by, now=now, one_class=one_class)

    def submit(
        self,
        session: Session,
        campaign: Campaign,
        submitted: Sequence[service.SubmittedAnswer],
        *,
        count: int = 0,
        one_class: bool = False,
        by: User,
        now: datetime,
    ) -> tuple[list[service.Outcome], service.Leased | None]:
        """Send answers, and ask for `count` questions after them."""
        locked = service.lock_campaign(session, campaign.id, by=by)
        if not count:
            return service.answer_questions(session, locked, submitted, by=by, now=now), None
        return service.answer_and_lease(
            session, locked, submitted, count=count, one_class=one_class, by=by, now=now
        )


FAST, PLAIN = Fast(), Plain()
execution: Execution = FAST  # of the functions below; tests of both set it


def lease(
    session: Session,
    campaign: Campaign,
    *,
    count: int,
    by: User,
    now: datetime,
    one_class: bool = False,
) -> list[service.LeasedQuestion]:
    """Ask for questions."""
    return execution.lease(session, campaign, count=count, by=by, now=now, one_class=one_class).questions


def submit(
    session: Session,
    campaign: Campaign,
    submitted: Sequence[service.SubmittedAnswer],
    *,
    by: User,
    now: datetime,
) -> list[service.Outcome]:
    """Send answers, and ask for nothing."""
    return execution.submit(session, campaign, submitted, by=by, now=now)[0]


def undo(
    session: Session, campaign: Campaign, *, count: int = 1, by: User, now: datetime
) -> list[tuple[service.LeasedQuestion, AnswerValue]]:
    """Take answers back."""
    locked = service.lock_campaign(session, campaign.id, by=by)
    return service.undo_answers(session, locked, count=count, by=by, now=now)


def release(session: Session, campaign: Campaign, *, by: User, now: datetime) -> None:
    """Give back what is held."""
    queue.forget_free_from(campaign.id)
    locked = service.lock_campaign(session, campaign.id, by=by)
    service.release_leases(session, locked, by=by, now=now)


def renew(session: Session, campaign: Campaign, *, by: User, now: datetime) -> datetime | None:
    """Hold it for another while."""
    locked = service.lock_campaign(session, campaign.id, by=by)
    return service.renew_leases(session, locked, by=by, now=now)
