"""Taking answers, exactly once each."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import BindParameter, bindparam, delete, insert, select, update
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import rules
from app.annotation.errors import CampaignNotOpen, PersonPaused
from app.annotation.fates import bind_known, lost_beside
from app.annotation.leasing import Leased, lease, lease_questions
from app.annotation.locking import LockedCampaign, apply_effect, lock_campaign, lock_questions
from app.annotation.models import Answer, AnswerValue, Lease, UsedTime
from app.annotation.participants import note_gold
from app.annotation.setting_aside import set_aside_by_answers, with_their_pictures
from app.annotation.submissions import Outcome, Stored, SubmittedAnswer, decide
from app.annotation.tallies import count_answer, load_tallies

_KNOWN = select(Answer.key, Answer.question_id, Answer.value).where(
    Answer.user_id == bindparam("me"), Answer.key.in_(bindparam("keys", expanding=True))
)
_IDS: BindParameter[int] = bindparam("ids", expanding=True)
_KEEP = update(Lease).where(Lease.id.in_(_IDS)).values(expires_at=None)
_GIVE_BACK = delete(Lease).where(Lease.id.in_(_IDS))


class Execution(NamedTuple):
    """What serves leasing and answering: `lease` and `answer` as here, or those of `app.fast`."""

    lease: Callable[..., tuple[LockedCampaign, Leased]]
    answer: Callable[..., tuple[LockedCampaign, list[Outcome], Leased | None]]


def answer(
    session: Session,
    campaign_id: UUID,
    submitted: Sequence[SubmittedAnswer],
    *,
    count: int = 0,
    one_class: bool = False,
    by: User,
    now: datetime,
) -> tuple[LockedCampaign, list[Outcome], Leased | None]:
    """Lock the campaign, store answers, each once however often it is sent, and lease what comes next.

    A lease is checked again here: one that ran out still counts while nobody took the slot. Answers to
    leases of a paused campaign count; a closed one takes none, and none is taken of somebody who is paused.

    Gives the campaign, what became of each answer, in order, and up to `count` questions: None where `count`
    is 0 or none may be had now, and then the answers stand.

    Raises:
        CampaignNotFound: there is none that this person may know of.
        KeyReused: a key belongs to a different answer; nothing was stored.
    """
    campaign = lock_campaign(session, campaign_id, by=by)
    outcomes = _store(session, campaign, submitted, by=by, now=now)
    leased = None
    if count:
        with suppress(CampaignNotOpen, PersonPaused):
            leased = lease_questions(session, campaign, count=count, by=by, now=now, one_class=one_class)
    return campaign, outcomes, leased


PLAIN = Execution(lease, answer)


def _store(
    session: Session,
    campaign: LockedCampaign,
    submitted: Sequence[SubmittedAnswer],
    *,
    by: User,
    now: datetime,
) -> list[Outcome]:
    known = _known(session, submitted, by=by)
    ids = with_their_pictures(session, campaign.id, submitted)
    questions, asked = lock_questions(session, campaign.id, ids)
    decision = decide(
        submitted,
        known,
        asked,
        campaign=campaign,
        by=by,
        now=now,
        lost=lost_beside(session, campaign.id, asked, by=by, now=now),
    )
    note_gold(session, campaign, decision.stored, by=by, now=now)
    bind_known(session, campaign, [item.question.row.id for item in decision.stored], by=by, now=now)
    if decision.stored:
        session.execute(insert(Answer), [_row(item, by=by, now=now) for item in decision.stored])
    if decision.used is not None:
        session.merge(UsedTime(user_id=by.id, spans=decision.used))
    _settle_slots(session, decision.stored)
    # Known pictures enter no sum, and use up the person's time like all others.
    classes = {item.question.row.candidate_class for item in decision.stored}
    tallies = load_tallies(session, campaign, classes, by=by, now=now)
    for answer, question, _, effect, _ in decision.stored:
        tally = tallies[question.row.candidate_class]
        tally.looked_until = decision.looked_until
        apply_effect(questions[question.row.id], effect, campaign)
        if effect is not None:
            count_answer(tally, effect, value=answer.value, response_ms=answer.response_ms)
    session.flush()
    set_aside_by_answers(session, campaign, decision.stored, asked, by=by, now=now)
    return decision.outcomes()


def _known(
    session: Session, submitted: Sequence[SubmittedAnswer], *, by: User
) -> dict[UUID, tuple[int, AnswerValue]]:
    rows = session.execute(_KNOWN, {"me": by.id, "keys": [item.key for item in submitted]})
    return {key: (question_id, value) for key, question_id, value in rows}


def _row(stored: Stored, *, by: User, now: datetime) -> dict[str, object]:
    item = stored.answer
    return {
        "question_id": item.question_id,
        "user_id": by.id,
        "value": item.value,
        "response_ms": item.response_ms,
        "key": item.key,
        "created_at": now,
        "is_hasty": stored.is_hasty,
    }


def _settle_slots(session: Session, stored: Sequence[Stored]) -> None:
    """Keep the slots of answered questions for good, and give back those of questions nobody could tell."""
    ids: dict[bool, list[int]] = {True: [], False: []}
    for item in stored:
        ids[rules.keeps_slot(item.question, item.answer.value, is_hasty=item.is_hasty)].append(
            item.slot.lease_id
        )
    for is_kept, statement in ((True, _KEEP), (False, _GIVE_BACK)):
        if ids[is_kept]:
            # No lease is loaded here that would have to follow.
            session.execute(
                statement, {"ids": ids[is_kept]}, execution_options={"synchronize_session": False}
            )
