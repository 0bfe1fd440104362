"""As `app.annotation.answering`: two round trips on PostgreSQL, the one that leases included."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import rules
from app.annotation.answering import Execution
from app.annotation.errors import CampaignNotOpen, PersonPaused
from app.annotation.fates import lost_beside
from app.annotation.leasing import Leased
from app.annotation.locking import LockedCampaign
from app.annotation.models import AnswerValue
from app.annotation.participants import note_gold
from app.annotation.setting_aside import set_aside_by_answers, with_their_pictures
from app.annotation.submissions import Decision, Outcome, Stored, SubmittedAnswer, decide
from app.fast import statements
from app.fast.leasing import lease, lease_questions, lock_campaign
from app.fast.prepared import Bound, run_all


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
    """As `app.annotation.answering.answer`."""
    campaign, decision, asked = _decided(session, campaign_id, submitted, by=by, now=now)
    note_gold(session, campaign, decision.stored, by=by, now=now)
    writes = _writes(campaign, decision, by=by, now=now)
    if any(item.answer.value is AnswerValue.UNUSABLE for item in decision.stored):  # seldom
        run_all(session, *writes)
        writes = []
        set_aside_by_answers(session, campaign, decision.stored, asked, by=by, now=now)
    leased = None
    try:
        if count:
            leased = lease_questions(
                session,
                campaign,
                count=count,
                by=by,
                now=now,
                one_class=one_class,
                first=writes,
                freed=len(submitted),
            )
        else:
            run_all(session, *writes)
    except (CampaignNotOpen, PersonPaused):  # before anything was written: the answers stand
        run_all(session, *writes)
    return campaign, decision.outcomes(), leased


FAST = Execution(lease, answer)


def _decided(
    session: Session,
    campaign_id: UUID,
    submitted: Sequence[SubmittedAnswer],
    *,
    by: User,
    now: datetime,
) -> tuple[LockedCampaign, Decision, dict[int, rules.Asked]]:
    ids = sorted(with_their_pictures(session, campaign_id, submitted))
    known = statements.KNOWN_KEYS.bind(me=by.id, keys=[item.key for item in submitted])
    locked = statements.LOCK_QUESTIONS.bind(ids=ids, campaign=campaign_id)
    around = statements.SLOTS_AND_ANSWERS.bind(ids=ids)
    campaign, results = lock_campaign(session, campaign_id, known, locked, around, by=by)
    asked = _asked(campaign_id, results.of(locked), results.of(around))
    decision = decide(
        submitted,
        {row.key: (row.question_id, row.value) for row in results.of(known)},
        asked,
        campaign=campaign,
        by=by,
        now=now,
        lost=lost_beside(session, campaign_id, asked, by=by, now=now),
    )
    return campaign, decision, asked


def _asked(
    campaign_id: UUID,
    questions: Sequence[rules.QuestionState],
    slots_and_answers: Sequence[statements.SlotOrAnswer],
) -> dict[int, rules.Asked]:
    asked = {row.id: rules.Asked(row) for row in questions if row.campaign_id == campaign_id}
    for row in slots_and_answers:
        question = asked.get(row.question_id)
        if question is None:
            continue
        if row.value is not None:
            question.answers.append((row.user_id, None if row.is_hasty else row.value))
        elif row.lease_id is not None and row.slot is not None:
            question.slots.append(
                rules.Slot(row.lease_id, row.slot, row.user_id, row.expires_at, row.held_since)
            )
    return asked


def _writes(campaign: LockedCampaign, decision: Decision, *, by: User, now: datetime) -> list[Bound[Any]]:
    rows = [_row(campaign, item) for item in decision.stored]
    common = {
        "campaign": campaign.id,
        "me": by.id,
        "now": now,
        "until": decision.looked_until,
        "used": decision.used,
    }
    writes: list[Bound[Any]] = [statements.ADD_ANSWERS.bind(rows, **common)] if rows else []
    if campaign.has_gold:  # before them, as `fates.bind_known`
        answered = [row["question_id"] for row in rows]
        bind = statements.BIND_KNOWN.bind(campaign=campaign.id, me=by.id, now=now, answered=answered)
        return [bind, *writes]
    return writes


def _row(campaign: LockedCampaign, stored: Stored) -> dict[str, object]:
    """An answer with what follows from it, as `statements.ADD_ANSWERS` takes it."""
    answer, question, slot, effect, is_hasty = stored
    row: dict[str, object] = {
        "question_id": answer.question_id,
        "value": answer.value,
        "response_ms": answer.response_ms,
        "key": answer.key.hex,
        "lease_id": slot.lease_id,
        "keeps_slot": rules.keeps_slot(question, answer.value, is_hasty=is_hasty),
        "is_hasty": is_hasty,
        "candidate_class": question.row.candidate_class,
        "counts": effect is not None,
    }
    if effect is None:  # a known picture: its row is written as it is, so that it takes as long
        stands = {"slots": question.row.slots, "is_waiting": question.row.is_waiting}
        return row | stands | {"move": 0, "is_first": False, "finished": 0, "confirmed": 0, "denied": 0}
    return row | {
        "slots": effect.slots,
        "is_waiting": effect.is_waiting,
        "move": effect.moved(campaign.rank_step),
        "is_first": effect.is_first,
        "finished": effect.finished,
        "confirmed": effect.confirmed,
        "denied": effect.denied,
    }
