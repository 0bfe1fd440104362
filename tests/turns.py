"""What requests of annotators do: take the person's turn in the campaign, then call the service."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from app.annotation.models import AnswerValue
from app.campaigns.models import Campaign


def lease(
    session: Session, campaign: Campaign, *, count: int, by: User, now: datetime, one_class: bool = False
) -> list[service.LeasedQuestion]:
    """Ask for questions."""
    turn = service.take_turn(session, campaign.id, by=by)
    return service.lease_questions(session, turn, count=count, by=by, now=now, one_class=one_class).questions


def submit(
    session: Session, campaign: Campaign, given: Sequence[service.GivenAnswer], *, by: User, now: datetime
) -> list[service.Outcome]:
    """Send answers, and ask for nothing."""
    ahead = service.about_answers(campaign.id, given, by=by)
    turn, about = service.take_turn_with(session, campaign.id, ahead, by=by)
    return service.answer_questions(session, turn, given, about, by=by, now=now)


def undo(
    session: Session, campaign: Campaign, *, count: int = 1, by: User, now: datetime
) -> list[tuple[service.LeasedQuestion, AnswerValue]]:
    """Take answers back."""
    turn = service.take_turn(session, campaign.id, by=by)
    return service.undo_answers(session, turn, count=count, by=by, now=now)


def release(session: Session, campaign: Campaign, *, by: User, now: datetime) -> None:
    """Give back what is held."""
    turn = service.take_turn(session, campaign.id, by=by)
    service.release_leases(session, turn, by=by, now=now)


def renew(session: Session, campaign: Campaign, *, by: User, now: datetime) -> datetime | None:
    """Hold it for another while."""
    turn = service.take_turn(session, campaign.id, by=by)
    return service.renew_leases(session, turn, by=by, now=now)
