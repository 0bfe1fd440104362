"""Taking answers, exactly once each, and taking them back."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import statements
from app.annotation.consensus import UNSURE_LIMIT, answers_needed
from app.annotation.errors import CampaignNotOpen, KeyReused, PersonPaused
from app.annotation.leasing import Leased, lease_questions
from app.annotation.models import AnswerValue, Purpose
from app.annotation.participants import count_gold
from app.annotation.turns import Turn
from app.campaigns.models import CampaignState
from app.languages import later
from app.prepared import Given, Rows, together

NOT_HERE = later("There is no such question in this campaign.")
CLOSED = later("The campaign is closed and takes no more answers.")
NOT_OPEN_YET = later("The campaign is not open yet.")
ANSWERED_BY_YOU = later("You have answered this question already.")
TAKEN = later("Somebody else got this question in the meantime; your answer was not needed.")

# Known pictures stand in no queue and enter no sum; whoever answered one keeps the slot.
_GOLD_STANDING: dict[str, object] = {
    "frees_slot": False,
    "slots": None,
    "is_waiting": None,
    "move": 0,
    "candidate_class": None,
    "is_first": False,
    "finished": 0,
}


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
    right_value: AnswerValue | None = None  # a known picture was answered wrongly, and the campaign tells so


class HeldSlot(NamedTuple):
    """A row of `lease`."""

    id: int
    slot: int
    user_id: UUID
    expires_at: datetime | None  # None: answered


class AskedQuestion(NamedTuple):
    """A row of `question`, as far as it matters here."""

    id: int
    campaign_id: UUID
    candidate_class: int
    least: int
    slots: int
    is_waiting: bool
    purpose: Purpose
    is_match: bool | None


@dataclass(slots=True)
class Asked:
    """A question with all that bears on it, locked until the transaction ends."""

    row: AskedQuestion
    leases: list[HeldSlot] = field(default_factory=list)
    answers: list[tuple[UUID, AnswerValue]] = field(default_factory=list)  # live ones, with who gave them

    @property
    def is_gold(self) -> bool:
        """Whether its right answer is known."""
        return self.row.purpose is Purpose.GOLD

    def lease_of(self, user: User) -> HeldSlot | None:
        """This person's slot, answered, held or expired."""
        return next((lease for lease in self.leases if lease.user_id == user.id), None)

    def held_by_others(self, user: User, now: datetime) -> int:
        """Slots with which other people may still answer."""
        return sum(
            lease.user_id != user.id and lease.expires_at is not None and lease.expires_at > now
            for lease in self.leases
        )

    def count(self, value: AnswerValue, *, without: User | None = None) -> int:
        """Live answers of this value."""
        return sum(
            given is value and (without is None or user_id != without.id) for user_id, given in self.answers
        )


def about_answers(campaign_id: UUID, given: Sequence[GivenAnswer], *, by: User) -> list[Given]:
    """What must be known to store them: their rows, in this order, are the `about` of the functions below.

    They lock the questions, so it must be this person's turn.
    """
    keys = [item.key for item in given]
    return [
        statements.KNOWN_KEYS.given(me=by.id, keys=keys),
        *_about(campaign_id, [item.question_id for item in given]),
    ]


def answer_questions(
    session: Session,
    turn: Turn,
    given: Sequence[GivenAnswer],
    about: Sequence[Rows],
    *,
    by: User,
    now: datetime,
) -> list[Outcome]:
    """Store answers, each exactly once however often it is sent; gives what became of each, in order.

    A lease is checked again here: one that ran out still counts while nobody took the slot. Answers to
    leases of a paused campaign count; a closed one takes none.

    Raises:
        KeyReused: a key belongs to a different answer; nothing was stored.
    """
    outcomes, writes = _answer(session, turn, given, about, by=by, now=now)
    together(session, *writes)
    return outcomes


def answer_and_lease(
    session: Session,
    turn: Turn,
    given: Sequence[GivenAnswer],
    about: Sequence[Rows],
    *,
    count: int,
    by: User,
    now: datetime,
    one_class: bool = False,
) -> tuple[list[Outcome], Leased | None]:
    """Both at once, for half of the work of one after the other; None where no questions may be had now.

    Raises:
        KeyReused: a key belongs to a different answer; nothing was stored.
    """
    outcomes, writes = _answer(session, turn, given, about, by=by, now=now)
    try:
        leased = lease_questions(
            session,
            turn,
            count=count,
            by=by,
            now=now,
            one_class=one_class,
            first=writes,
            freed=len(given),
        )
    except (CampaignNotOpen, PersonPaused):  # before anything was written: the answers stand
        together(session, *writes)
        return outcomes, None
    return outcomes, leased


def _answer(
    session: Session,
    turn: Turn,
    given: Sequence[GivenAnswer],
    about: Sequence[Rows],
    *,
    by: User,
    now: datetime,
) -> tuple[list[Outcome], list[Given]]:
    """What becomes of each answer, and what is still to be written for that."""
    keys, questions, leases_and_answers = about
    known = {key: (question_id, value) for key, question_id, value in keys}
    asked = _asked(turn, questions, leases_and_answers)
    fresh: dict[UUID, GivenAnswer] = {}
    for item in given:
        said = (item.question_id, item.value)
        if item.key not in known:
            known[item.key] = said
            fresh[item.key] = item
        elif known[item.key] != said:
            raise KeyReused(item.key)

    refused, stored = _sorted(turn, list(fresh.values()), asked, by=by, now=now)
    rows = [_row(turn, asked[item.question_id], item, by=by, now=now) for item in stored]
    gold = [item for item in stored if asked[item.question_id].is_gold]
    right = _note_gold(session, turn, gold, asked, by=by, now=now) if gold else {}
    outcomes = []
    for item in given:
        if item.key in refused:
            outcomes.append(Outcome(item.key, Status.REFUSED, refused[item.key]))
        elif fresh.pop(item.key, None):
            outcomes.append(Outcome(item.key, Status.STORED, right_value=right.get(item.key)))
        else:
            outcomes.append(Outcome(item.key, Status.REPEATED))
    add = statements.ADD_ANSWERS.given(rows, campaign=turn.id, me=by.id, now=now, sign=1)
    return outcomes, [add] if rows else []


def _sorted(
    turn: Turn, given: Sequence[GivenAnswer], asked: dict[int, Asked], *, by: User, now: datetime
) -> tuple[dict[UUID, str], list[GivenAnswer]]:
    """A sentence for each refused key, and the answers that can be stored."""
    if turn.state in (CampaignState.DRAFT, CampaignState.CLOSED):
        closed = CLOSED if turn.state is CampaignState.CLOSED else NOT_OPEN_YET
        return {item.key: closed for item in given}, []
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
    return refused, stored


def load_asked(session: Session, turn: Turn, question_ids: Sequence[int]) -> dict[int, Asked]:
    """Questions, locked, with their leases and live answers."""
    return _asked(turn, *together(session, *_about(turn.id, question_ids)))


def _about(campaign_id: UUID, question_ids: Sequence[int]) -> tuple[Given, Given]:
    ids = sorted(set(question_ids))
    return (
        statements.LOCK_QUESTIONS.given(ids=ids, campaign=campaign_id),
        statements.ABOUT_QUESTIONS.given(ids=ids),
    )


def _asked(turn: Turn, questions: Rows, leases_and_answers: Rows) -> dict[int, Asked]:
    rows = (AskedQuestion(*row) for row in questions)
    asked = {row.id: Asked(row) for row in rows if row.campaign_id == turn.id}
    for question_id, user_id, lease_id, slot, expires_at, value in leases_and_answers:
        if question_id not in asked:
            continue
        if lease_id is None:
            asked[question_id].answers.append((user_id, value))
        else:
            asked[question_id].leases.append(HeldSlot(lease_id, slot, user_id, expires_at))
    return asked


def _refusal(question: Asked, *, by: User, now: datetime) -> str | None:
    if any(user_id == by.id for user_id, _ in question.answers):
        return ANSWERED_BY_YOU
    lease = question.lease_of(by)
    if lease is None:
        return TAKEN
    is_live = lease.expires_at is not None and lease.expires_at > now
    return None if is_live or question.row.is_waiting or question.is_gold else TAKEN


def _row(turn: Turn, question: Asked, item: GivenAnswer, *, by: User, now: datetime) -> dict[str, object]:
    """An answer with what follows from it, as `statements.ADD_ANSWERS` takes it."""
    lease = question.lease_of(by)
    assert lease is not None  # _refusal saw it
    row: dict[str, object] = {
        "question_id": item.question_id,
        "value": item.value,
        "response_ms": item.response_ms,
        "key": item.key.hex,
        "lease_id": lease.id,
    }
    if question.is_gold:
        return row | _GOLD_STANDING
    yes = question.count(AnswerValue.YES) + (item.value is AnswerValue.YES)
    no = question.count(AnswerValue.NO) + (item.value is AnswerValue.NO)
    unsure = question.count(AnswerValue.UNSURE) + (item.value is AnswerValue.UNSURE)
    needed = answers_needed(yes, no, confirm_yes=turn.confirm_yes, least=question.row.least)
    slots = max(needed, yes + no + question.held_by_others(by, now))
    is_waiting = yes + no < slots and unsure < UNSURE_LIMIT
    return row | {
        "frees_slot": item.value is AnswerValue.UNSURE,
        "slots": slots,
        "is_waiting": is_waiting,
        # What must be asked again goes behind everything else: somebody else meets it there, and the head of
        # the queue stays free of questions that the people at work cannot answer.
        "move": turn.question_count if is_waiting else 0,
        "candidate_class": question.row.candidate_class,
        "is_first": lease.slot == 0,
        "finished": int(question.row.is_waiting) - int(is_waiting),
    }


def _note_gold(
    session: Session,
    turn: Turn,
    given: Sequence[GivenAnswer],
    asked: dict[int, Asked],
    *,
    by: User,
    now: datetime,
) -> dict[UUID, AnswerValue]:
    """Note how this person does on known pictures; gives what is right by key, if it is to be told."""
    counted = given
    if turn.gold_feedback:  # who was told what is right and took the answer back had one chance
        ids = [item.question_id for item in given]
        before = statements.TAKEN_BACK.rows(session, me=by.id, ids=ids)
        counted = [item for item in given if (item.question_id,) not in before]
    right: dict[UUID, AnswerValue] = {}
    wrong: dict[UUID, AnswerValue] = {}
    for item in given:
        truth = AnswerValue.YES if asked[item.question_id].row.is_match else AnswerValue.NO
        if item.value is not AnswerValue.UNSURE:
            (right if item.value is truth else wrong)[item.key] = truth
    keys = {item.key for item in counted}
    count_gold(
        session,
        turn,
        answers=len(given),
        right=len(keys & set(right)),
        wrong=len(keys & set(wrong)),
        by=by,
        now=now,
    )
    return wrong if turn.gold_feedback else {}


def set_standing(session: Session, ids: Sequence[int], *, slots: int, is_waiting: bool, move: int) -> None:
    """Say how many answers questions need, whether one is missing, and move them back in the queue."""
    statements.SET_STANDING.rows(session, ids=ids, new_slots=slots, waits=is_waiting, move=move)
