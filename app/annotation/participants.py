"""People in a campaign: how they do on gold, who is paused, whose answers are left out."""

import math
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.annotation import statements
from app.annotation.errors import ParticipantNotFound, PersonPaused
from app.annotation.models import Participant, Tally
from app.annotation.turns import Turn
from app.campaigns.models import Campaign
from app.campaigns.noting import note
from app.journal.models import Action

MIN_GOLD = 8  # answers to gold before anybody is paused
SURE = 2.33  # standard deviations: one in a hundred of those exactly at the bound lies above


def upper_end(right: int, wrong: int) -> float:
    """Of Wilson's interval for the share right: an accuracy above it would hardly have given so few."""
    right, wrong = max(right, 0), max(wrong, 0)  # below 0: undone after an admin let the person go on
    count = right + wrong
    if not count:
        return 1.0
    share, square = right / count, SURE**2
    spread = math.sqrt(share * (1 - share) / count + square / (4 * count**2))
    return (share + square / (2 * count) + SURE * spread) / (1 + square / count)


def is_too_often_wrong(right: int, wrong: int, *, bound: float) -> bool:
    """Whether somebody is surely right less often than the bound."""
    return right + wrong >= MIN_GOLD and upper_end(right, wrong) < bound


def require_not_paused(session: Session, turn: Turn, user: User) -> bool:
    """Whether there is gold to mix in, for somebody who may go on.

    Raises:
        PersonPaused: this person is to wait.
    """
    if not turn.has_gold:  # then nothing in this request has paused them
        is_paused, has_gold = turn.is_paused, False
    else:
        [(is_paused, has_gold)] = statements.PERSON.rows(session, campaign=turn.id, me=user.id)
    if is_paused:
        raise PersonPaused
    return bool(has_gold)


def count_gold(
    session: Session,
    turn: Turn,
    *,
    answers: int,
    right: int,
    wrong: int,
    by: User,
    now: datetime,
) -> None:
    """Add to what this person answered of gold; whoever is surely too often wrong is paused."""
    _add(session, turn.id, by.id, answers=answers, right=right, wrong=wrong)
    if wrong <= 0:
        return
    row = session.get_one(Participant, (turn.id, by.id), populate_existing=True)
    if row.paused_at is None and is_too_often_wrong(row.gold_right, row.gold_wrong, bound=turn.gold_bound):
        row.paused_at, row.paused_by_id = now, None
        session.flush()
        facts = {"person": by.name, "gold_right": row.gold_right, "gold_wrong": row.gold_wrong}
        noted = session.get_one(Campaign, turn.id)
        note(session, Action.PERSON_PAUSED, noted, by=None, details=facts)


def pause_person(session: Session, campaign: Campaign, user_id: UUID, *, by: User, now: datetime) -> None:
    """Give this person no more questions of the campaign; what they hold may still be answered.

    Raises:
        NotAllowed: `by` is no admin.
        ParticipantNotFound: they never answered in this campaign.
    """
    _require_participant(session, campaign, user_id, by=by)
    session.execute(
        update(Participant)
        .where(*_is(campaign, user_id), Participant.paused_at.is_(None))
        .values(paused_at=now, paused_by_id=by.id)
    )
    note(session, Action.PERSON_PAUSED, campaign, by=by, details=_name(session, user_id))


def resume_person(session: Session, campaign: Campaign, user_id: UUID, *, by: User) -> None:
    """Let this person go on; what they got wrong on gold so far counts no more.

    Raises:
        NotAllowed, ParticipantNotFound: as for pausing.
    """
    _require_participant(session, campaign, user_id, by=by)
    session.execute(
        update(Participant)
        .where(*_is(campaign, user_id))
        .values(paused_at=None, paused_by_id=None, gold_right=0, gold_wrong=0)
    )
    note(session, Action.PERSON_RESUMED, campaign, by=by, details=_name(session, user_id))


def leave_out(session: Session, campaign: Campaign, user_id: UUID, *, by: User, left_out: bool) -> None:
    """Make no labels of this person's answers, or make them again.

    Raises:
        NotAllowed, ParticipantNotFound: as for pausing.
    """
    _require_participant(session, campaign, user_id, by=by)
    session.execute(update(Participant).where(*_is(campaign, user_id)).values(is_left_out=left_out))
    action = Action.PERSON_LEFT_OUT if left_out else Action.PERSON_COUNTED
    note(session, action, campaign, by=by, details=_name(session, user_id))


def _name(session: Session, user_id: UUID) -> dict[str, object]:
    return {"person": session.get_one(User, user_id).name}


def paused_count(session: Session, campaign_id: UUID) -> int:
    """How many people are paused."""
    query = select(func.count()).where(
        Participant.campaign_id == campaign_id, Participant.paused_at.is_not(None)
    )
    return session.scalar(query) or 0


def _require_participant(session: Session, campaign: Campaign, user_id: UUID, *, by: User) -> None:
    accounts.require_admin(by)
    if session.get(Participant, (campaign.id, user_id)) is None:
        answered = select(Tally.user_id).where(Tally.campaign_id == campaign.id, Tally.user_id == user_id)
        if session.scalar(answered.limit(1)) is None:
            raise ParticipantNotFound
        _add(session, campaign.id, user_id)


def _is(campaign: Campaign, user_id: UUID) -> tuple[ColumnElement[bool], ...]:
    return Participant.campaign_id == campaign.id, Participant.user_id == user_id


def _add(
    session: Session,
    campaign_id: UUID,
    user_id: UUID,
    *,
    answers: int = 0,
    right: int = 0,
    wrong: int = 0,
) -> None:
    session.execute(
        statements.ADD_TO_PARTICIPANT[session.get_bind().dialect.name],
        {
            "campaign_id": campaign_id,
            "user_id": user_id,
            "gold_answers": answers,
            "gold_right": right,
            "gold_wrong": wrong,
            "is_left_out": False,
        },
    )
