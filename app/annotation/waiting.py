"""Letting finished questions wait for another answer."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import statements
from app.annotation.answering import AskedQuestion, set_standing
from app.annotation.consensus import MAX_SLOTS
from app.annotation.errors import CampaignNotOpen
from app.annotation.models import Answer, AnswerValue, Question
from app.annotation.tallies import take_back_finished
from app.annotation.turns import take_turn
from app.campaigns.models import Campaign, CampaignState


def wait_again(
    session: Session, campaign: Campaign, question_ids: Sequence[int], *, by: User, now: datetime
) -> int:
    """Let each of these wait for one more answer than it has; gives how many do.

    Questions that wait already, or have MAX_SLOTS answers, stay as they are.

    Raises:
        CampaignNotOpen: the campaign takes no answers.
    """
    turn = take_turn(session, campaign.id, by=by)  # of an admin, who may know of every campaign
    if turn.state not in (CampaignState.OPEN, CampaignState.PAUSED):
        raise CampaignNotOpen(state=turn.state)
    locked = statements.LOCK_QUESTIONS.rows(session, campaign=turn.id, ids=sorted(question_ids))
    rows = [AskedQuestion(*row) for row in locked]
    given = _answers_to(session, question_ids)  # counted under the lock: somebody may have answered since
    # An undo may have come between; and answers that are left out still hold their slots.
    finished = [
        row for row in rows if row.campaign_id == turn.id and not row.is_waiting and given[row.id] < MAX_SLOTS
    ]
    for answers in {given[row.id] for row in finished}:
        ids = [row.id for row in finished if given[row.id] == answers]
        session.execute(
            update(Question).where(Question.id.in_(ids)).values(least=answers + 1),
            execution_options={"synchronize_session": False},
        )
        set_standing(session, ids, slots=answers + 1, is_waiting=True, move=turn.question_count)
    take_back_finished(session, turn, [row.candidate_class for row in finished], by=by, now=now)
    return len(finished)


def _answers_to(session: Session, question_ids: Sequence[int]) -> dict[int, int]:
    """How many live yes and no answers each question has, left out or not."""
    rows = session.execute(
        select(Answer.question_id, func.count().label("answers"))
        .where(
            Answer.question_id.in_(question_ids),
            Answer.superseded_at.is_(None),
            Answer.value != AnswerValue.UNSURE,
        )
        .group_by(Answer.question_id)
    )
    return dict.fromkeys(question_ids, 0) | {row.question_id: row.answers for row in rows}
