"""Taking back one's own last answers, whatever became of their questions since.

By which ones could be taken back, nobody is to see what others finished or which pictures are known.
"""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import delete, func, or_, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import rules
from app.annotation.errors import CampaignNotOpen, NothingToUndo, PersonPaused
from app.annotation.holding import LeasedQuestion, held_questions
from app.annotation.locking import LockedCampaign, apply_effect, lock_questions
from app.annotation.models import Answer, AnswerValue, Lease, Question
from app.annotation.participants import count_gold
from app.annotation.rules import LEASE
from app.annotation.setting_aside import bring_back_by_undo, questions_of_pictures
from app.annotation.tallies import count_answer, load_tallies
from app.campaigns.draws import MAX_BLOCK
from app.campaigns.models import CampaignState

UNDO_LIMIT = MAX_BLOCK  # a whole page of one class


class _Slot(NamedTuple):
    number: int
    is_beyond: bool = False  # others have all that the question needs


def undo_answers(
    session: Session, campaign: LockedCampaign, *, count: int, by: User, now: datetime
) -> list[tuple[LeasedQuestion, AnswerValue]]:
    """Take back up to `count` answers of this person; gives them in the order in which they were given.

    Raises:
        CampaignNotOpen, PersonPaused, NothingToUndo: not even the last one could be taken back.
    """
    if campaign.is_paused:
        raise PersonPaused
    if campaign.state in (CampaignState.DRAFT, CampaignState.CLOSED):
        raise CampaignNotOpen(state=campaign.state)
    recent = session.scalars(
        select(Answer)
        .join(Question, Question.id == Answer.question_id)
        .where(Answer.user_id == by.id, Question.campaign_id == campaign.id)
        .order_by(Answer.id.desc())
        .limit(UNDO_LIMIT)
        .execution_options(populate_existing=True)
    )
    last = [answer for answer in recent if answer.superseded_at is None][:count]
    if not last:
        raise NothingToUndo(limit=UNDO_LIMIT)
    # All at once, so that they are locked in the order in which every other request locks them.
    unusable = [answer.question_id for answer in last if answer.value is AnswerValue.UNUSABLE]
    ids = {answer.question_id for answer in last} | questions_of_pictures(session, campaign.id, unusable)
    questions, asked = lock_questions(session, campaign.id, ids)
    undone: dict[int, AnswerValue] = {}
    for answer in last:
        slot = _take_back_slot(session, campaign, asked[answer.question_id], by=by, now=now)
        answer.superseded_at = now
        undone[answer.question_id] = answer.value
        place = questions[answer.question_id], asked[answer.question_id]
        _undo(session, campaign, *place, answer=answer, slot=slot, by=by)
    session.flush()
    taken_back = {questions[id_].example_id for id_ in unusable if id_ in undone}
    bring_back_by_undo(session, campaign, taken_back, by=by, now=now)
    held = {question.id: question for question in held_questions(session, campaign, by=by, now=now)}
    return [(held[question_id], value) for question_id, value in reversed(undone.items())]


def _undo(
    session: Session,
    campaign: LockedCampaign,
    question: Question,
    asked: rules.Asked,
    *,
    answer: Answer,
    slot: _Slot,
    by: User,
) -> None:
    """Let follow what follows from an answer that was taken back just now."""
    now = answer.superseded_at
    assert now is not None
    effect = rules.after_undo(
        asked,
        by=by.id,
        slot_number=slot.number,
        is_beyond=slot.is_beyond,
        now=now,
        confirm_yes=campaign.confirming.of_yes,
        lead=campaign.lead(question.id),
        is_hasty=answer.is_hasty,
    )
    # The same statements for a known picture and for any other: neither is to take longer.
    apply_effect(question, effect, campaign)
    class_ = question.candidate_class
    tally = load_tallies(session, campaign, {class_}, by=by, now=now)[class_]
    if effect is not None:
        count_answer(tally, effect, value=answer.value, response_ms=answer.response_ms, sign=-1)
    if campaign.has_gold:
        _note_undone(session, campaign, asked, answer.value, by=by, now=now)


def _note_undone(
    session: Session,
    campaign: LockedCampaign,
    asked: rules.Asked,
    value: AnswerValue,
    *,
    by: User,
    now: datetime,
) -> None:
    is_counted = asked.is_gold and value.is_of_class
    is_right = value is rules.right_value(asked)
    count_gold(
        session,
        campaign,
        answers=-int(asked.is_gold),
        right=-int(is_counted and is_right),
        wrong=-int(is_counted and not is_right),
        by=by,
        now=now,
    )


def _take_back_slot(
    session: Session, campaign: LockedCampaign, question: rules.Asked, *, by: User, now: datetime
) -> _Slot:
    """Hold a slot of the question again, before everything else this person holds; gives which.

    Where the answer gave it away and all are taken, it is one beyond these.
    """
    before = select(func.coalesce(func.min(Lease.turn), 1) - 1).join(
        Question, Question.id == Lease.question_id
    )
    turn = session.scalar(
        before.where(Question.campaign_id == campaign.id, Lease.user_id == by.id, Lease.expires_at > now)
    )
    assert turn is not None
    own = question.slot_of(by.id)
    if own is not None:
        lease = session.get_one(Lease, own.lease_id, populate_existing=True)
        lease.expires_at, lease.turn = now + LEASE, turn
        return _Slot(own.number)
    free = rules.slot_after_unsure(question, now)
    number = rules.slot_for_change(question, now) if free is None else free
    in_the_way = or_(Lease.slot == number, Lease.user_id == by.id)
    session.execute(delete(Lease).where(Lease.question_id == question.row.id, in_the_way))
    again = Lease(question_id=question.row.id, slot=number, user_id=by.id, turn=turn)
    again.expires_at, again.held_since = now + LEASE, now
    session.add(again)
    session.flush()
    return _Slot(number, is_beyond=free is None)
