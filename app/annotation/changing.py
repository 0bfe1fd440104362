"""Changing one of one's own last answers: the old one is superseded, a new one takes its place.

Any of the last answers may be changed while the campaign is open, whatever became of its question: by which
ones could be, nobody is to see what others finished or which pictures are known.
"""

from datetime import datetime
from uuid import UUID

from sqlalchemy import delete, func, insert, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import rules
from app.annotation.errors import AnswerNotFound, CampaignNotOpen, KeyReused, PersonPaused
from app.annotation.locking import LockedCampaign, apply_effect, lock_campaign, lock_questions
from app.annotation.models import Answer, AnswerValue, Lease, Question
from app.annotation.own import LAST
from app.annotation.participants import count_gold
from app.annotation.public_ids import public_ids_of
from app.annotation.setting_aside import bring_back_by_undo, questions_of_pictures, set_aside_by_answers
from app.annotation.submissions import Status, Stored, SubmittedAnswer
from app.annotation.tallies import count_answer, load_tallies
from app.campaigns.models import CampaignState


def change_shown_answer(
    session: Session,
    campaign_id: UUID,
    public_id: int,
    value: AnswerValue,
    *,
    key: UUID,
    by: User,
    now: datetime,
) -> Status:
    """Lock the campaign, and change the answer to the question with this public id, as `change_answer` does.

    Raises:
        CampaignNotFound: there is none that this person may know of.
        CampaignNotOpen, PersonPaused, AnswerNotFound, KeyReused: as for that.
    """
    question_id = public_ids_of(session, campaign_id).question_id(public_id)
    campaign = lock_campaign(session, campaign_id, by=by)
    return change_answer(session, campaign, question_id, value, key=key, by=by, now=now)


def change_answer(
    session: Session,
    campaign: LockedCampaign,
    question_id: int,
    value: AnswerValue,
    *,
    key: UUID,
    by: User,
    now: datetime,
) -> Status:
    """Let this person's answer to a question be another one; the same key twice is the same change.

    A hasty answer stays one that says nothing: others are asked in its place.

    Raises:
        CampaignNotOpen, PersonPaused: they may change nothing now.
        AnswerNotFound: it is none of their last LAST answers here.
        KeyReused: the key belongs to a different answer.
    """
    known = session.execute(
        select(Answer.question_id, Answer.value).where(Answer.user_id == by.id, Answer.key == key)
    ).one_or_none()
    if known is not None:
        if tuple(known) != (question_id, value):
            raise KeyReused(key)
        return Status.REPEATED
    if campaign.is_paused:
        raise PersonPaused
    if campaign.state is not CampaignState.OPEN:
        raise CampaignNotOpen(state=campaign.state)
    old = _last(session, campaign, question_id, by)
    ids = {question_id}
    if AnswerValue.UNUSABLE in (old.value, value):
        ids = questions_of_pictures(session, campaign.id, ids)
    questions, asked = lock_questions(session, campaign.id, ids)
    new = SubmittedAnswer(question_id, value, None, key)
    stored = _replace(
        session, campaign, old, new, questions[question_id], asked=asked[question_id], by=by, now=now
    )
    if old.value is AnswerValue.UNUSABLE:
        bring_back_by_undo(session, campaign, {stored.question.row.example_id}, by=by, now=now)
    set_aside_by_answers(session, campaign, [stored], asked, by=by, now=now)
    return Status.STORED


def _last(session: Session, campaign: LockedCampaign, question_id: int, by: User) -> Answer:
    """This person's answer to a question, if it is one of their last."""
    mine = (
        select(Answer)
        .join(Question, Question.id == Answer.question_id)
        .where(Question.campaign_id == campaign.id, Answer.user_id == by.id, Answer.superseded_at.is_(None))
    )
    found = session.scalar(mine.where(Question.id == question_id).execution_options(populate_existing=True))
    if found is None:
        raise AnswerNotFound(limit=LAST)
    later = select(func.count()).select_from(mine.where(Answer.id > found.id).subquery())
    if (session.scalar(later) or 0) >= LAST:
        raise AnswerNotFound(limit=LAST)
    return found


def _replace(
    session: Session,
    campaign: LockedCampaign,
    old: Answer,
    new: SubmittedAnswer,
    question: Question,
    *,
    asked: rules.Asked,
    by: User,
    now: datetime,
) -> Stored:
    before = asked.slot_of(by.id)
    slot = before or rules.Slot(0, rules.slot_for_change(asked, now), by.id, None)
    old.superseded_at = now
    session.flush()  # one answer stands at a time
    session.execute(
        insert(Answer),
        [
            {
                "question_id": new.question_id,
                "user_id": by.id,
                "value": new.value,
                "response_ms": None,
                "key": new.key,
                "created_at": now,
                "is_hasty": old.is_hasty,
            }
        ],
    )
    keeps = rules.keeps_slot(asked, new.value, is_hasty=old.is_hasty)
    _settle_slot(session, asked, slot, is_there=before is not None, keeps=keeps, by=by)
    told = None if old.is_hasty else new.value
    effect = rules.after_change(
        asked,
        told,
        by=by.id,
        slot=slot,
        now=now,
        confirm_yes=campaign.confirming.of_yes,
        lead=campaign.lead(question.id),
    )
    # The same statements for a known picture and for any other: neither is to take longer.
    apply_effect(question, effect, campaign)
    tally = load_tallies(session, campaign, {question.candidate_class}, by=by, now=now)[
        question.candidate_class
    ]
    if effect is not None:
        was_first = before is not None and before.number == 0 and not old.is_hasty
        gone = effect._replace(finished=0, confirmed=0, denied=0, is_first=was_first)
        count_answer(tally, gone, value=old.value, response_ms=old.response_ms, sign=-1)
        count_answer(tally, effect, value=new.value, response_ms=None)
    if campaign.has_gold:
        _note_changed(session, campaign, asked, old.value, new.value, by=by, now=now)
    session.flush()
    return Stored(new, asked, slot, effect, old.is_hasty)


def _settle_slot(
    session: Session, asked: rules.Asked, slot: rules.Slot, *, is_there: bool, keeps: bool, by: User
) -> None:
    """Hold the slot for good where the new answer does, and give it away where it does not."""
    of_question = Lease.question_id == asked.row.id
    if keeps:
        if is_there:
            session.get_one(Lease, slot.lease_id, populate_existing=True).expires_at = None
            return
        in_the_way = delete(Lease).where(of_question, Lease.slot == slot.number)  # it ran out
        session.execute(in_the_way, execution_options={"synchronize_session": False})
        session.add(Lease(question_id=asked.row.id, slot=slot.number, user_id=by.id, expires_at=None))
    elif is_there:
        gone = delete(Lease).where(of_question, Lease.user_id == by.id)
        session.execute(gone, execution_options={"synchronize_session": False})


def _note_changed(
    session: Session,
    campaign: LockedCampaign,
    asked: rules.Asked,
    old: AnswerValue,
    new: AnswerValue,
    *,
    by: User,
    now: datetime,
) -> None:
    right = rules.right_value(asked)
    is_gold = asked.is_gold
    was_wrong, is_wrong = (value.is_of_class and value is not right for value in (old, new))
    count_gold(
        session,
        campaign,
        answers=0,
        right=is_gold * (int(new is right) - int(old is right)),
        wrong=is_gold * (int(is_wrong) - int(was_wrong)),
        by=by,
        now=now,
    )
