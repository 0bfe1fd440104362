"""Taking back one's own last answers."""

from datetime import datetime

from sqlalchemy import Row, delete, insert, or_, select, update
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import statements
from app.annotation.answering import Asked, load_asked, set_standing
from app.annotation.consensus import MAX_SLOTS, UNSURE_LIMIT, answers_needed
from app.annotation.errors import CampaignNotOpen, NothingToUndo, UndoTooLate
from app.annotation.leasing import LEASE, LeasedQuestion, held_questions
from app.annotation.models import Answer, AnswerValue, Lease, Question
from app.annotation.participants import count_gold
from app.annotation.tallies import Change, take_out_of_tallies
from app.annotation.turns import Turn
from app.campaigns.draws import MAX_BLOCK
from app.campaigns.models import CampaignState

UNDO_LIMIT = MAX_BLOCK  # a whole page of one class
GivenBefore = Row[int, int, AnswerValue, int | None, datetime | None]


def undo_answers(
    session: Session, turn: Turn, *, count: int, by: User, now: datetime
) -> list[tuple[LeasedQuestion, AnswerValue]]:
    """Take back up to `count` answers of this person; gives them in the order in which they were given.

    Raises:
        CampaignNotOpen, NothingToUndo, UndoTooLate: not even the last one could be taken back.
    """
    if turn.state in (CampaignState.DRAFT, CampaignState.CLOSED):
        raise CampaignNotOpen(state=turn.state)
    recent = session.execute(
        select(Answer.id, Answer.question_id, Answer.value, Answer.response_ms, Answer.superseded_at)
        .join(Question, Question.id == Answer.question_id)
        .where(Answer.user_id == by.id, Question.campaign_id == turn.id)
        .order_by(Answer.id.desc())
        .limit(UNDO_LIMIT)
    )
    last = [answer for answer in recent if answer.superseded_at is None][:count]
    if not last:
        raise NothingToUndo(limit=UNDO_LIMIT)
    # All at once, so that they are locked in the order in which every other request locks them.
    asked = load_asked(session, turn, [answer.question_id for answer in last])
    undone: dict[int, AnswerValue] = {}
    for answer in last:
        try:
            _undo(session, turn, asked[answer.question_id], answer, by=by, now=now)
        except UndoTooLate:
            if not undone:
                raise
            break
        undone[answer.question_id] = answer.value
    held = {question.id: question for question in held_questions(session, turn, by=by, now=now)}
    return [(held[question_id], value) for question_id, value in reversed(undone.items())]


def _undo(
    session: Session, turn: Turn, question: Asked, last: GivenBefore, *, by: User, now: datetime
) -> None:
    """Supersede this person's answer to a question, which is theirs again.

    Raises:
        UndoTooLate: it was "can't tell", and somebody else has the question by now; nothing was changed.
    """
    slot = _take_back_slot(session, turn, question, last.value, by=by, now=now)
    session.execute(
        update(Answer).where(Answer.id == last.id).values(superseded_at=now),
        execution_options={"synchronize_session": False},
    )
    if question.is_gold:
        _take_back_gold(session, turn, question, last.value, by=by, now=now)
    else:
        _ask_once_more(session, turn, question, last, slot=slot, by=by, now=now)


def _take_back_gold(
    session: Session, turn: Turn, question: Asked, value: AnswerValue, *, by: User, now: datetime
) -> None:
    is_counted = value is not AnswerValue.UNSURE and not turn.gold_feedback
    is_right = (value is AnswerValue.YES) == question.row.is_match
    count_gold(
        session,
        turn,
        answers=-1,
        right=-int(is_counted and is_right),
        wrong=-int(is_counted and not is_right),
        by=by,
        now=now,
    )


def _ask_once_more(
    session: Session,
    turn: Turn,
    question: Asked,
    last: GivenBefore,
    *,
    slot: int,
    by: User,
    now: datetime,
) -> None:
    """Let a question wait whose answer `last` was taken back."""
    yes = question.count(AnswerValue.YES, without=by)
    no = question.count(AnswerValue.NO, without=by)
    needed = answers_needed(yes, no, confirm_yes=turn.confirm_yes, least=question.row.least)
    slots = max(needed, yes + no + question.held_by_others(by, now) + 1)
    set_standing(session, [last.question_id], slots=slots, is_waiting=True, move=0)
    change = Change(
        candidate_class=question.row.candidate_class,
        value=last.value,
        is_first=slot == 0,
        response_ms=last.response_ms,
        finished=1 - int(question.row.is_waiting),
    )
    take_out_of_tallies(session, turn, [change], by=by, now=now)


def _take_back_slot(
    session: Session, turn: Turn, question: Asked, value: AnswerValue, *, by: User, now: datetime
) -> int:
    """Hold a slot of the question again, before everything else this person holds; gives which."""
    until = now + LEASE
    [(first,)] = statements.FIRST_TURN.rows(session, campaign=turn.id, me=by.id, now=now)
    own = question.lease_of(by)
    if own is not None:
        statements.HOLD_AGAIN.rows(session, ids=[own.id], until=until, first=first)
        return own.slot
    # "Can't tell" gave the slot away: take one that nobody holds, if the question is still to be asked.
    live = [lease for lease in question.leases if lease.expires_at is None or lease.expires_at > now]
    unsure = question.count(AnswerValue.UNSURE)
    stopped = unsure >= UNSURE_LIMIT and len(live) < question.row.slots
    assert value is AnswerValue.UNSURE  # the other answers keep their slot
    if not (question.row.is_waiting or stopped) or len(live) >= question.row.slots:
        raise UndoTooLate
    slot = min(set(range(MAX_SLOTS)) - {lease.slot for lease in live})
    session.execute(
        delete(Lease).where(
            Lease.question_id == question.row.id, or_(Lease.slot == slot, Lease.user_id == by.id)
        ),
        execution_options={"synchronize_session": False},
    )
    session.execute(
        insert(Lease).values(
            question_id=question.row.id, slot=slot, user_id=by.id, expires_at=until, turn=first
        )
    )
    return slot
