"""Taking answers, exactly once each, and taking them back."""

import enum
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from sqlalchemy import RowMapping, delete, insert, or_, select, update
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import statements
from app.annotation.consensus import MAX_SLOTS, UNSURE_LIMIT, answers_needed
from app.annotation.errors import CampaignNotOpen, KeyReused, NothingToUndo, UndoTooLate
from app.annotation.leasing import LEASE, LeasedQuestion, held_questions, serialise
from app.annotation.models import Answer, AnswerValue, Lease, Question
from app.annotation.tallies import Change, add_to_tallies
from app.campaigns.draws import MAX_BLOCK
from app.campaigns.models import Campaign, CampaignState

UNDO_LIMIT = MAX_BLOCK  # a whole page of one class

NOT_HERE = "There is no such question in this campaign."
CLOSED = "The campaign is closed and takes no more answers."
NOT_OPEN_YET = "The campaign is not open yet."
ANSWERED_BY_YOU = "You have answered this question already."
TAKEN = "Somebody else got this question in the meantime; your answer was not needed."


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """What a client sends."""

    question_id: int
    value: AnswerValue
    response_ms: int | None
    key: UUID


class Status(enum.StrEnum):
    """What became of a given answer."""

    STORED = "stored"
    REPEATED = "repeated"  # it was stored before
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one given answer; `detail` is a sentence if it was refused."""

    key: UUID
    status: Status
    detail: str | None = None


@dataclass(slots=True)
class _Asked:
    """A question with all that bears on it, locked until the transaction ends."""

    row: RowMapping  # id, candidate_class, least, slots, is_waiting
    leases: list[RowMapping] = field(default_factory=list)  # id, slot, user_id, expires_at
    answers: list[RowMapping] = field(default_factory=list)  # live ones: user_id, value

    def lease_of(self, user: User) -> RowMapping | None:
        """This person's slot, answered, held or expired."""
        return next((lease for lease in self.leases if lease["user_id"] == user.id), None)

    def held_by_others(self, user: User, now: datetime) -> int:
        """Slots with which other people may still answer."""
        return sum(
            lease["user_id"] != user.id and lease["expires_at"] is not None and lease["expires_at"] > now
            for lease in self.leases
        )

    def count(self, value: AnswerValue, *, without: User | None = None) -> int:
        """Live answers of this value."""
        return sum(
            answer["value"] is value and (without is None or answer["user_id"] != without.id)
            for answer in self.answers
        )


def answer_questions(
    session: Session, campaign: Campaign, given: Sequence[GivenAnswer], *, by: User, now: datetime
) -> list[Outcome]:
    """Store answers, each exactly once however often it is sent; gives what became of each, in order.

    A lease is checked again here: one that ran out still counts while nobody took the slot. Answers to
    leases of a paused campaign count; a closed one takes none.

    Raises:
        KeyReused: a key belongs to a different answer; nothing was stored.
    """
    state = serialise(session, by, campaign)
    known = _answers_with_keys(session, given, by=by)
    fresh: dict[UUID, GivenAnswer] = {}
    for item in given:
        before = known.get(item.key) or fresh.get(item.key)
        if before is None:
            fresh[item.key] = item
        elif (before.question_id, before.value) != (item.question_id, item.value):
            raise KeyReused(item.key)

    refused = _store(session, campaign, list(fresh.values()), state=state, by=by, now=now)
    outcomes = []
    for item in given:
        if item.key in refused:
            outcomes.append(Outcome(item.key, Status.REFUSED, refused[item.key]))
        elif fresh.pop(item.key, None):
            outcomes.append(Outcome(item.key, Status.STORED))
        else:
            outcomes.append(Outcome(item.key, Status.REPEATED))
    return outcomes


def _answers_with_keys(
    session: Session, given: Sequence[GivenAnswer], *, by: User
) -> dict[UUID, GivenAnswer]:
    rows = session.execute(statements.KNOWN_KEYS, {"me": by.id, "keys": [item.key for item in given]})
    return {row.key: GivenAnswer(*row) for row in rows}


def _store(
    session: Session,
    campaign: Campaign,
    given: Sequence[GivenAnswer],
    *,
    state: CampaignState,
    by: User,
    now: datetime,
) -> dict[UUID, str]:
    """Store what can be stored; gives a sentence for each refused key."""
    if state in (CampaignState.DRAFT, CampaignState.CLOSED):
        closed = CLOSED if state is CampaignState.CLOSED else NOT_OPEN_YET
        return {item.key: closed for item in given}
    asked = _load(session, campaign, [item.question_id for item in given])
    refused: dict[UUID, str] = {}
    stored: list[GivenAnswer] = []
    for item in given:
        question = asked.get(item.question_id)
        why = NOT_HERE if question is None else _refusal(question, by=by, now=now)
        if why is None and any(item.question_id == other.question_id for other in stored):
            why = ANSWERED_BY_YOU
        if why is None:
            stored.append(item)
        else:
            refused[item.key] = why
    if stored:
        _write(session, campaign, stored, asked, by=by, now=now)
    return refused


def _load(session: Session, campaign: Campaign, question_ids: Sequence[int]) -> dict[int, _Asked]:
    """Questions, locked, with their leases and live answers."""
    ids = {"ids": sorted(set(question_ids))}
    questions = session.execute(statements.LOCK_QUESTIONS, ids | {"campaign": campaign.id}).mappings()
    asked = {row["id"]: _Asked(row) for row in questions}
    for lease in session.execute(statements.LEASES, ids).mappings():
        if lease["question_id"] in asked:
            asked[lease["question_id"]].leases.append(lease)
    for answer in session.execute(statements.LIVE_ANSWERS, ids).mappings():
        if answer["question_id"] in asked:
            asked[answer["question_id"]].answers.append(answer)
    return asked


def _refusal(question: _Asked, *, by: User, now: datetime) -> str | None:
    if any(answer["user_id"] == by.id for answer in question.answers):
        return ANSWERED_BY_YOU
    lease = question.lease_of(by)
    if lease is None:
        return TAKEN
    is_live = lease["expires_at"] is not None and lease["expires_at"] > now
    return None if is_live or question.row["is_waiting"] else TAKEN


def _write(
    session: Session,
    campaign: Campaign,
    given: Sequence[GivenAnswer],
    asked: dict[int, _Asked],
    *,
    by: User,
    now: datetime,
) -> None:
    session.execute(
        statements.ADD_ANSWERS,
        [
            {
                "question_id": item.question_id,
                "user_id": by.id,
                "value": item.value,
                "response_ms": item.response_ms,
                "key": item.key,
                "created_at": now,
            }
            for item in given
        ],
    )
    answered: list[int] = []  # ids of leases
    freed: list[int] = []
    standings: dict[tuple[int, bool, bool], list[int]] = defaultdict(list)
    changes = []
    for item in given:
        question = asked[item.question_id]
        lease = question.lease_of(by)
        assert lease is not None  # _refusal saw it
        is_unsure = item.value is AnswerValue.UNSURE
        (freed if is_unsure else answered).append(lease["id"])
        yes = question.count(AnswerValue.YES) + (item.value is AnswerValue.YES)
        no = question.count(AnswerValue.NO) + (item.value is AnswerValue.NO)
        unsure = question.count(AnswerValue.UNSURE) + is_unsure
        needed = answers_needed(yes, no, confirm_yes=campaign.confirm_yes, least=question.row["least"])
        slots = max(needed, yes + no + question.held_by_others(by, now))
        is_waiting = yes + no < slots and unsure < UNSURE_LIMIT
        if (slots, is_waiting) != (question.row["slots"], question.row["is_waiting"]) or is_waiting:
            # What must be asked again goes behind everything else: somebody else meets it there, and the head
            # of the queue stays free of questions that the people at work cannot answer.
            standings[slots, is_waiting, is_waiting].append(item.question_id)
        changes.append(
            Change(
                candidate_class=question.row["candidate_class"],
                value=item.value,
                is_first=lease["slot"] == 0,
                response_ms=item.response_ms,
                finished=int(question.row["is_waiting"]) - int(is_waiting),
            )
        )
    if answered:
        session.execute(statements.HOLD_FOR_GOOD, {"ids": answered})
    if freed:
        session.execute(statements.FREE_SLOTS, {"ids": freed})
    for (slots, is_waiting, to_the_end), ids in standings.items():
        set_standing(
            session,
            ids,
            slots=slots,
            is_waiting=is_waiting,
            move=campaign.question_count if to_the_end else 0,
        )
    add_to_tallies(session, campaign, changes, by=by, now=now)


def set_standing(session: Session, ids: Sequence[int], *, slots: int, is_waiting: bool, move: int) -> None:
    """Say how many answers questions need, whether one is missing, and move them back in the queue."""
    session.execute(
        statements.SET_STANDING, {"ids": ids, "new_slots": slots, "waits": is_waiting, "move": move}
    )


def undo_answers(
    session: Session, campaign: Campaign, *, count: int, by: User, now: datetime
) -> list[tuple[LeasedQuestion, AnswerValue]]:
    """Take back up to `count` answers of this person; gives them in the order in which they were given.

    Raises:
        CampaignNotOpen, NothingToUndo, UndoTooLate: not even the last one could be taken back.
    """
    undone: list[tuple[LeasedQuestion, AnswerValue]] = []
    for _ in range(count):
        try:
            undone.append(undo_answer(session, campaign, by=by, now=now))
        except (NothingToUndo, UndoTooLate):
            if not undone:
                raise
            break
    return undone[::-1]


def undo_answer(
    session: Session, campaign: Campaign, *, by: User, now: datetime
) -> tuple[LeasedQuestion, AnswerValue]:
    """Supersede this person's last answer in the campaign; the question is theirs again.

    Raises:
        CampaignNotOpen: the campaign is closed or was never opened.
        NothingToUndo: none of the last UNDO_LIMIT answers stands.
        UndoTooLate: it was "can't tell", and somebody else has the question by now.
    """
    state = serialise(session, by, campaign)
    if state in (CampaignState.DRAFT, CampaignState.CLOSED):
        raise CampaignNotOpen(state=state)
    recent = session.execute(
        select(Answer.id, Answer.question_id, Answer.value, Answer.response_ms, Answer.superseded_at)
        .join(Question, Question.id == Answer.question_id)
        .where(Answer.user_id == by.id, Question.campaign_id == campaign.id)
        .order_by(Answer.id.desc())
        .limit(UNDO_LIMIT)
    )
    last = next((answer for answer in recent if answer.superseded_at is None), None)
    if last is None:
        raise NothingToUndo(limit=UNDO_LIMIT)
    question = _load(session, campaign, [last.question_id])[last.question_id]
    slot = _take_back_slot(session, campaign, question, last.value, by=by, now=now)
    session.execute(
        update(Answer).where(Answer.id == last.id).values(superseded_at=now),
        execution_options={"synchronize_session": False},
    )
    yes = question.count(AnswerValue.YES, without=by)
    no = question.count(AnswerValue.NO, without=by)
    needed = answers_needed(yes, no, confirm_yes=campaign.confirm_yes, least=question.row["least"])
    slots = max(needed, yes + no + question.held_by_others(by, now) + 1)
    set_standing(session, [last.question_id], slots=slots, is_waiting=True, move=0)
    change = Change(
        candidate_class=question.row["candidate_class"],
        value=last.value,
        is_first=slot == 0,
        response_ms=last.response_ms,
        finished=1 - int(question.row["is_waiting"]),
    )
    add_to_tallies(session, campaign, [change], by=by, now=now, sign=-1)
    again = held_questions(session, campaign, by=by, now=now, question_id=last.question_id)
    return again[0], last.value


def _take_back_slot(
    session: Session, campaign: Campaign, question: _Asked, value: AnswerValue, *, by: User, now: datetime
) -> int:
    """Hold a slot of the question again, before everything else this person holds; gives which."""
    until = now + LEASE
    mine = {"campaign": campaign.id, "me": by.id, "now": now}
    first: int = session.execute(statements.FIRST_TURN, mine).scalar_one()
    own = question.lease_of(by)
    if own is not None:
        session.execute(statements.HOLD_AGAIN, {"ids": [own["id"]], "until": until, "first": first})
        return int(own["slot"])
    # "Can't tell" gave the slot away: take one that nobody holds, if the question is still to be asked.
    live = [lease for lease in question.leases if lease["expires_at"] is None or lease["expires_at"] > now]
    unsure = question.count(AnswerValue.UNSURE)
    stopped = unsure >= UNSURE_LIMIT and len(live) < question.row["slots"]
    assert value is AnswerValue.UNSURE  # the other answers keep their slot
    if not (question.row["is_waiting"] or stopped) or len(live) >= question.row["slots"]:
        raise UndoTooLate
    slot = min(set(range(MAX_SLOTS)) - {lease["slot"] for lease in live})
    session.execute(
        delete(Lease).where(
            Lease.question_id == question.row["id"], or_(Lease.slot == slot, Lease.user_id == by.id)
        ),
        execution_options={"synchronize_session": False},
    )
    session.execute(
        insert(Lease).values(
            question_id=question.row["id"], slot=slot, user_id=by.id, expires_at=until, turn=first
        )
    )
    return slot
