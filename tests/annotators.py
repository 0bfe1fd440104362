"""What requests of annotators do: lock the campaign for a person, and serve them in one of two ways."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from app.annotation.models import AnswerValue
from app.campaigns.models import Campaign
from app.fast import queue
from app.fast.answering import FAST

execution: service.Execution = FAST  # of the functions below; tests of both set it


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
    _, leased = execution.lease(session, campaign.id, count=count, by=by, now=now, one_class=one_class)
    return leased.questions


def submit(
    session: Session,
    campaign: Campaign,
    submitted: Sequence[service.SubmittedAnswer],
    *,
    by: User,
    now: datetime,
) -> list[service.Outcome]:
    """Send answers, and ask for nothing."""
    _, outcomes, _ = execution.answer(session, campaign.id, submitted, by=by, now=now)
    return outcomes


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
