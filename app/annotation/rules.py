"""What follows from an answer. Pure: no database, no clock, no request.

* Only who has a slot of a question may answer it, once. A lease that ran out still counts while the question
  waits, for then nobody took the slot.
* A yes or a no keeps its slot for good. "Can't tell" and "cannot be used" give it back.
* A question needs as many yes and no answers as `consensus.answers_needed` says of those it has. Slots that
  other people hold at the moment are never taken from under them.
* It waits while a yes or no is missing and fewer than UNSURE_LIMIT people could not tell, or said that its
  picture cannot be used. What still waits after an answer goes to the end of the queue, where somebody else
  meets it. The head of the queue stays free of questions that the people at work cannot answer.
* Once UNUSABLE_LIMIT people said that a picture cannot be used, about whichever of its questions, it is set
  aside: nobody more is asked about it, until a reviewer keeps it.
* An undone answer leaves its slot with whoever took it back, and the question waits for them. One that had
  given it away leaves one beyond, where others have all of them.
* A hasty answer, too, gives its slot back, and says nothing: somebody else is asked.
* A known picture stands in no queue and enters no sum; it only says how its person is doing. Whatever they
  answer, they keep their slot of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import NamedTuple, TypedDict
from uuid import UUID

from app.annotation.consensus import MAX_SLOTS, UNSURE_LIMIT, answers_needed
from app.annotation.models import OF_CLASS, AnswerValue, Purpose

LEASE = timedelta(minutes=10)
UNUSABLE_LIMIT = 2  # people: one person's word takes no picture away
YES, NO, UNSURE, UNUSABLE = AnswerValue


class QuestionState(NamedTuple):
    """A row of `question`, as far as it matters here."""

    id: int
    campaign_id: UUID
    candidate_class: int
    least: int
    slots: int
    is_waiting: bool
    purpose: Purpose
    is_match: bool | None
    example_id: int
    is_set_aside: bool


class Slot(NamedTuple):
    """A row of `lease`."""

    lease_id: int
    number: int
    user_id: UUID
    expires_at: datetime | None  # None: answered
    held_since: datetime | None = None  # None: not known

    def is_open(self, now: datetime) -> bool:
        """Whether its holder may still answer with it."""
        return self.expires_at is not None and self.expires_at > now

    def is_taken(self, now: datetime) -> bool:
        """Whether nobody else can have it."""
        return self.expires_at is None or self.expires_at > now


@dataclass(slots=True)
class Asked:
    """A question with all that bears on it."""

    row: QuestionState
    slots: list[Slot] = field(default_factory=list)
    # Live ones, with who gave them; None: a hasty one, which says nothing.
    answers: list[tuple[UUID, AnswerValue | None]] = field(default_factory=list)

    @property
    def is_gold(self) -> bool:
        """Whether its right answer is known."""
        return self.row.purpose is Purpose.GOLD

    def slot_of(self, user_id: UUID) -> Slot | None:
        """This person's slot: answered, held or run out."""
        return next((slot for slot in self.slots if slot.user_id == user_id), None)

    def held_by_others(self, user_id: UUID, now: datetime) -> int:
        """Slots with which other people may still answer."""
        return sum(slot.user_id != user_id and slot.is_open(now) for slot in self.slots)

    @property
    def decided(self) -> int:
        """Live yes and no answers."""
        return sum(value in OF_CLASS for _, value in self.answers)

    @property
    def told_unusable(self) -> set[UUID]:
        """Who said that its picture cannot be used."""
        return {user_id for user_id, value in self.answers if value is UNUSABLE}

    def values(self, *, without: UUID | None = None) -> list[AnswerValue]:
        """Live answers that say something, all or all but one person's."""
        return [value for user_id, value in self.answers if user_id != without and value is not None]


class Effect(NamedTuple):
    """How a question stands after an answer was stored or taken back, and what that adds to the sums."""

    slots: int  # yes and no answers that it needs
    is_waiting: bool
    goes_to_the_end: bool  # of the queue
    is_first: bool  # the answer is on the first slot: before any confirmation
    finished: int  # 1: the question stopped waiting, -1: it waits again
    confirmed: int = 0  # 1: a first yes has a second by now, -1: it has one no longer
    denied: int = 0  # likewise of a no in answer to a first yes

    def moved(self, rank_step: int) -> int:
        """How far back in the queue it goes; `rank_step` is the campaign's."""
        return rank_step if self.goes_to_the_end else 0


def keeps_slot(question: Asked, value: AnswerValue, *, is_hasty: bool) -> bool:
    """Whether who answered so holds the slot for good."""
    return question.is_gold or (value in OF_CLASS and not is_hasty)


def may_answer(question: Asked, user_id: UUID, now: datetime) -> bool:
    """Whether this person's slot still counts, for somebody who has not answered."""
    slot = question.slot_of(user_id)
    return slot is not None and (slot.is_open(now) or question.row.is_waiting or question.is_gold)


def after_answer(
    question: Asked,
    value: AnswerValue | None,
    *,
    by: UUID,
    now: datetime,
    confirm_yes: bool,
    lead: int = 0,
) -> Effect | None:
    """What follows from a new answer by somebody who may give it; None for a known picture.

    Args:
        question: what was answered.
        value: None for a hasty answer: somebody else is asked as if it had not been given.
        by: who gave it.
        now: when.
        confirm_yes: as in `consensus.answers_needed`.
        lead: likewise.
    """
    slot = question.slot_of(by)
    assert slot is not None  # `may_answer` saw it
    if question.is_gold:
        return None
    values = [*question.values(), *([] if value is None else [value])]
    held = question.held_by_others(by, now)
    slots = _slots(question, values, held, confirm_yes=confirm_yes, lead=lead)
    is_waiting = not question.row.is_set_aside and _waits(values, slots)
    return Effect(
        slots,
        is_waiting,
        goes_to_the_end=is_waiting,
        is_first=slot.number == 0 and value is not None,
        finished=int(question.row.is_waiting) - int(is_waiting),
        **_seconded(question, value, by=by, slot_number=slot.number),
    )


def after_undo(
    question: Asked,
    *,
    by: UUID,
    slot_number: int,
    now: datetime,
    confirm_yes: bool,
    lead: int = 0,
    is_hasty: bool = False,
    is_beyond: bool = False,
) -> Effect | None:
    """What follows where somebody takes back their answer and has its slot again.

    `is_beyond`: their answer had given it away, and others have all that there are. They may answer again,
    and the question waits for them no more than before.
    """
    if question.is_gold:
        return None
    held, values = question.held_by_others(by, now) + (not is_beyond), question.values(without=by)
    slots = _slots(question, values, held, confirm_yes=confirm_yes, lead=lead)
    # Where others gave all that it can need, it waits for nobody, and is still theirs to answer.
    is_waiting = not question.row.is_set_aside and len(values) - _untold(values) < slots
    return Effect(
        slots,
        is_waiting,
        goes_to_the_end=False,
        is_first=slot_number == 0 and not is_hasty,
        finished=int(question.row.is_waiting) - int(is_waiting),
        **_seconded(question, None, by=by, slot_number=slot_number),
    )


def after_change(
    question: Asked,
    value: AnswerValue | None,
    *,
    by: UUID,
    slot: Slot,
    now: datetime,
    confirm_yes: bool,
    lead: int = 0,
) -> Effect | None:
    """What follows where somebody's answer becomes another, on this slot; None for a known picture.

    `value` is None where the answer says nothing: it was hasty, and stays so.
    """
    if question.is_gold:
        return None
    values = [*question.values(without=by), *([] if value is None else [value])]
    held = question.held_by_others(by, now)
    slots = _slots(question, values, held, confirm_yes=confirm_yes, lead=lead)
    is_waiting = not question.row.is_set_aside and _waits(values, slots)
    return Effect(
        slots,
        is_waiting,
        goes_to_the_end=is_waiting and not question.row.is_waiting,
        is_first=slot.number == 0 and value is not None,
        finished=int(question.row.is_waiting) - int(is_waiting),
        **_seconded(question, value, by=by, slot_number=slot.number),
    )


def slot_for_change(question: Asked, now: datetime) -> int:
    """The slot for an answer that had given its own away and is changed or taken back: where all are taken,
    beyond the last one."""
    taken = {slot.number for slot in question.slots if slot.is_taken(now)}
    return next(number for number in count() if number not in taken)


def waits(question: Asked) -> bool:
    """Whether a question is asked on that is set aside no longer."""
    return not question.is_gold and _waits(question.values(), question.row.slots)


def slot_after_unsure(question: Asked, now: datetime) -> int | None:
    """The slot for whoever takes back an answer that gave theirs away; None where all are taken by now.

    A question that too many could not tell about, or that is set aside, is no longer asked, but this person
    may have it again.
    """
    taken = [slot.number for slot in question.slots if slot.is_taken(now)]
    was_stopped = question.row.is_set_aside or _untold(question.values()) >= UNSURE_LIMIT
    if len(taken) >= question.row.slots or not (question.row.is_waiting or was_stopped):
        return None
    return min(set(range(MAX_SLOTS)) - set(taken))


def after_asking_again(answers: int) -> Effect:
    """A finished question with so many yes and no answers waits for one more, at the end of the queue."""
    return Effect(answers + 1, is_waiting=True, goes_to_the_end=True, is_first=False, finished=-1)


def right_value(question: Asked) -> AnswerValue:
    """What is right about a known picture."""
    return YES if question.row.is_match else NO


class _Seconded(TypedDict):
    confirmed: int
    denied: int


def _seconded(question: Asked, value: AnswerValue | None, *, by: UUID, slot_number: int) -> _Seconded:
    """What it adds to the sums of answers to a first yes that this person's answer becomes `value`.

    The second slot's answer is meant: later ones are asked for where these two differ, or to ask again.
    """
    holders = {slot.number: slot.user_id for slot in question.slots}
    said = dict(question.answers)
    before = _second_to_yes(holders, said)
    after = _second_to_yes(holders | {slot_number: by}, said | {by: value})
    return {
        "confirmed": int(after is YES) - int(before is YES),
        "denied": int(after is NO) - int(before is NO),
    }


def _second_to_yes(
    holders: Mapping[int, UUID], said: Mapping[UUID, AnswerValue | None]
) -> AnswerValue | None:
    """The answer on the second slot where that on the first is a yes."""
    first, second = (said.get(holders[number]) if number in holders else None for number in (0, 1))
    return second if first is YES else None


def _untold(values: Sequence[AnswerValue]) -> int:
    return sum(value not in OF_CLASS for value in values)


def _waits(values: Sequence[AnswerValue], slots: int) -> bool:
    return len(values) - _untold(values) < slots and _untold(values) < UNSURE_LIMIT


def _slots(question: Asked, values: Sequence[AnswerValue], held: int, *, confirm_yes: bool, lead: int) -> int:
    yes, no = values.count(YES), values.count(NO)
    least = question.row.least
    needed = answers_needed(yes, no, confirm_yes=confirm_yes, least=least, lead=lead)
    # Changes of what gave its slot away bring more answers than MAX_SLOTS; nothing is leased beyond.
    return max(needed, yes + no, min(yes + no + held, MAX_SLOTS))
