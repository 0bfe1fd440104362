"""People in a campaign: how they do on gold, who is paused, whose answers are left out."""

import math
from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.annotation import rules
from app.annotation.errors import ParticipantNotFound, PersonPaused
from app.annotation.locking import LockedCampaign
from app.annotation.models import Lease, Participant, PausedFor, Question, Tally
from app.annotation.submissions import Stored
from app.campaigns.models import Campaign
from app.campaigns.noting import note
from app.journal.models import Action
from app.journal.service import naming

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


def require_not_paused(session: Session, campaign: LockedCampaign, user: User) -> bool:
    """Whether there is gold to mix in, for somebody who may go on.

    Raises:
        PersonPaused: this person is to wait.
    """
    is_paused = campaign.is_paused
    if campaign.has_gold:  # by which something in this request may have paused them
        paused_at = select(Participant.paused_at).where(*_is(campaign, user.id))
        is_paused = session.scalar(paused_at) is not None
    if is_paused:
        raise PersonPaused
    return campaign.has_gold


def note_gold(
    session: Session, campaign: LockedCampaign, stored: Sequence[Stored], *, by: User, now: datetime
) -> None:
    """Note how this person does on known pictures. Nothing of it is told: gold looks like any question.

    Where there are any, answers without them are noted as well, so that they take as long.
    """
    if not stored or not campaign.has_gold:
        return
    gold = [item for item in stored if item.question.is_gold]
    right = wrong = 0
    for answer, question, *_ in gold:
        if answer.value.is_of_class:
            is_right = answer.value is rules.right_value(question)
            right += is_right
            wrong += not is_right
    count_gold(session, campaign, answers=len(gold), right=right, wrong=wrong, by=by, now=now)


def count_gold(
    session: Session,
    campaign: LockedCampaign,
    *,
    answers: int,
    right: int,
    wrong: int,
    by: User,
    now: datetime,
) -> None:
    """Add to what this person answered of gold; whoever is surely too often wrong is paused."""
    right_now, wrong_now = _add(session, campaign.id, by.id, answers=answers, right=right, wrong=wrong)
    if wrong <= 0 or not is_too_often_wrong(right_now, wrong_now, bound=campaign.gold_bound):
        return
    row = session.get_one(Participant, (campaign.id, by.id), populate_existing=True)
    if row.paused_at is None:
        row.paused_at, row.paused_by_id, row.paused_for = now, None, PausedFor.KNOWN_PICTURES
        row.asked_again = None
        session.flush()
        _give_back(session, campaign.id, by.id, now)
        facts = {**naming(by), "gold_right": row.gold_right, "gold_wrong": row.gold_wrong}
        noted = session.get_one(Campaign, campaign.id)
        note(session, Action.PERSON_PAUSED, noted, by=None, details=facts)


def pause_person(session: Session, campaign: Campaign, user_id: UUID, *, by: User, now: datetime) -> None:
    """Give this person no more questions of the campaign and take no more answers; others get what they hold.

    Raises:
        NotAllowed: `by` is no admin.
        ParticipantNotFound: they never answered in this campaign.
    """
    _require_participant(session, campaign, user_id, by=by)
    session.execute(
        update(Participant)
        .where(*_is(campaign, user_id), Participant.paused_at.is_(None))
        .values(paused_at=now, paused_by_id=by.id, paused_for=PausedFor.ADMIN)
    )
    _give_back(session, campaign.id, user_id, now)
    note(session, Action.PERSON_PAUSED, campaign, by=by, details=_name(session, user_id))


def pause_unreliable(
    session: Session, campaign: Campaign, user_id: UUID, *, why: PausedFor, now: datetime
) -> None:
    """Pause somebody for how they answer, unless they are paused or an admin let them go on."""
    _add(session, campaign.id, user_id)
    paused = session.execute(
        update(Participant)
        .where(*_is(campaign, user_id), Participant.paused_at.is_(None), ~Participant.is_vouched_for)
        .values(paused_at=now, paused_by_id=None, paused_for=why, asked_again=None)
        .returning(Participant.user_id)
    ).all()
    if paused:
        _give_back(session, campaign.id, user_id, now)
        note(
            session,
            Action.PERSON_PAUSED,
            campaign,
            by=None,
            details={**_name(session, user_id), "why": why},
        )


def _give_back(session: Session, campaign_id: UUID, user_id: UUID, now: datetime) -> None:
    """Let others have what this person holds."""
    here = select(Question.id).where(Question.campaign_id == campaign_id, Question.id == Lease.question_id)
    held = (
        select(Lease.id)
        .where(Lease.user_id == user_id, Lease.expires_at > now, here.correlate(Lease).exists())
        .with_for_update(skip_locked=True)
    )
    session.execute(
        update(Lease).where(Lease.id.in_(held)).values(expires_at=now),
        execution_options={"synchronize_session": False},
    )


def resume_person(session: Session, campaign: Campaign, user_id: UUID, *, by: User) -> None:
    """Let this person go on; what they got wrong on gold so far counts no more.

    They are not paused again for how they answer: an admin has seen it.

    Raises:
        NotAllowed, ParticipantNotFound: as for pausing.
    """
    _require_participant(session, campaign, user_id, by=by)
    session.execute(
        update(Participant)
        .where(*_is(campaign, user_id))
        .values(
            paused_at=None,
            paused_by_id=None,
            paused_for=None,
            is_vouched_for=True,
            gold_right=0,
            gold_wrong=0,
        )
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
    return naming(session.get_one(User, user_id))


def is_paused(session: Session, campaign_id: UUID, user_id: UUID) -> bool:
    """Whether somebody is paused there."""
    row = session.get(Participant, (campaign_id, user_id))
    return row is not None and row.paused_at is not None


def paused_among(session: Session, campaign_id: UUID, people: Collection[UUID]) -> set[UUID]:
    """Those of these people who are paused there."""
    query = select(Participant.user_id).where(
        Participant.campaign_id == campaign_id,
        Participant.user_id.in_(people),
        Participant.paused_at.is_not(None),
    )
    return set(session.scalars(query))


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


def _is(campaign: Campaign | LockedCampaign, user_id: UUID) -> tuple[ColumnElement[bool], ...]:
    return Participant.campaign_id == campaign.id, Participant.user_id == user_id


def _add(
    session: Session,
    campaign_id: UUID,
    user_id: UUID,
    *,
    answers: int = 0,
    right: int = 0,
    wrong: int = 0,
) -> tuple[int, int]:
    """Gives how many are right and wrong then."""
    insert = postgresql_insert if session.get_bind().dialect.name == "postgresql" else sqlite_insert
    row = insert(Participant).values(
        campaign_id=campaign_id,
        user_id=user_id,
        gold_answers=answers,
        gold_right=right,
        gold_wrong=wrong,
        is_left_out=False,
    )
    counts = {
        column.name: column + row.excluded[column.name]
        for column in (Participant.gold_answers, Participant.gold_right, Participant.gold_wrong)
    }
    added = row.on_conflict_do_update(index_elements=("campaign_id", "user_id"), set_=counts)
    sums = session.execute(added.returning(Participant.gold_right, Participant.gold_wrong)).one()
    return sums.gold_right, sums.gold_wrong
