"""What follows from an answer, without a database."""

from datetime import timedelta
from uuid import UUID

import pytest

from app.annotation import rules
from app.annotation.models import AnswerValue, Purpose
from app.annotation.rules import Asked, QuestionState, Slot, after_answer, after_undo
from tests.factories import NOW

YES, NO, UNSURE, UNUSABLE = AnswerValue
ME, SHE, HE, THEY = (UUID(int=number) for number in range(1, 5))
SOON, OVER = NOW + timedelta(minutes=5), NOW - timedelta(minutes=5)


def asked(
    *answers: tuple[UUID, AnswerValue],
    slots: int = 1,
    is_waiting: bool = True,
    least: int = 1,
    purpose: Purpose = Purpose.LABELLING,
) -> Asked:
    """A question with these answers, and a slot of mine."""
    row = QuestionState(7, UUID(int=9), 2, least, slots, is_waiting, purpose, True, 3, False)
    held = [Slot(1, 0, ME, SOON)]
    return Asked(row, held, list(answers))


@pytest.mark.parametrize(
    ("before", "value", "slots", "is_waiting", "finished"),
    [
        ([], NO, 1, False, 1),  # a no stands alone
        ([], YES, 2, True, 0),  # a yes needs a second person
        ([(SHE, YES)], YES, 2, False, 1),
        ([(SHE, YES)], NO, 3, True, 0),  # and a third where they disagree
        ([], UNSURE, 1, True, 0),  # somebody else may be able to tell
        ([(SHE, UNSURE), (HE, UNSURE)], UNSURE, 1, False, 1),  # or nobody is
        ([], UNUSABLE, 1, True, 0),  # one person's word takes nothing away
        ([(SHE, UNSURE), (HE, UNSURE)], UNUSABLE, 1, False, 1),
        ([(SHE, UNUSABLE)], YES, 2, True, 0),
        ([(SHE, UNSURE), (HE, UNSURE)], NO, 1, False, 1),
    ],
)
def test_where_a_yes_is_confirmed(
    before: list[tuple[UUID, AnswerValue]],
    value: AnswerValue,
    slots: int,
    is_waiting: bool,
    finished: int,
) -> None:
    effect = after_answer(asked(*before), value, by=ME, now=NOW, confirm_yes=True)

    assert effect is not None
    assert (effect.slots, effect.is_waiting, effect.finished) == (slots, is_waiting, finished)
    assert effect.goes_to_the_end == is_waiting
    assert effect.moved(500) == (500 if is_waiting else 0)


def test_a_question_asked_of_several_waits_for_all_of_them() -> None:
    first = after_answer(asked(least=2, slots=2), NO, by=ME, now=NOW, confirm_yes=False)
    last = after_answer(asked((SHE, NO), least=2, slots=2), NO, by=ME, now=NOW, confirm_yes=False)

    assert first is not None
    assert last is not None
    assert (first.slots, first.is_waiting, last.slots, last.is_waiting) == (2, True, 2, False)


def test_nobody_loses_the_slot_that_they_hold() -> None:
    question = asked((SHE, YES), slots=3)
    question.slots.append(Slot(2, 1, HE, SOON))
    question.slots.append(Slot(3, 2, THEY, OVER))

    effect = after_answer(question, YES, by=ME, now=NOW, confirm_yes=True)

    assert effect is not None
    assert (effect.slots, effect.is_waiting) == (3, True)


@pytest.mark.parametrize("value", AnswerValue)
def test_an_answer_taken_back_leaves_the_sums_as_they_were(value: AnswerValue) -> None:
    before = asked()
    given = after_answer(before, value, by=ME, now=NOW, confirm_yes=True)
    assert given is not None
    after = asked((ME, value), slots=given.slots, is_waiting=given.is_waiting)

    undone = after_undo(after, by=ME, slot_number=0, now=NOW, confirm_yes=True)

    assert undone is not None
    assert given.finished + undone.finished == 0
    assert (undone.slots, undone.is_waiting, undone.goes_to_the_end) == (1, True, False)
    assert undone.is_first == given.is_first


def test_who_may_answer() -> None:
    late = asked()
    late.slots[0] = Slot(1, 0, ME, OVER)
    taken = asked(is_waiting=False)
    taken.slots[0] = Slot(1, 0, ME, OVER)

    assert rules.may_answer(asked(is_waiting=False), ME, NOW)
    assert rules.may_answer(late, ME, NOW)
    assert not rules.may_answer(taken, ME, NOW)
    assert not rules.may_answer(asked(), SHE, NOW)


def test_a_known_picture_has_no_effect_and_keeps_its_slot() -> None:
    gold = asked(purpose=Purpose.GOLD, is_waiting=False)

    assert after_answer(gold, UNSURE, by=ME, now=NOW, confirm_yes=True) is None
    assert rules.keeps_slot(gold, UNSURE, is_hasty=False)
    assert not rules.keeps_slot(asked(), UNSURE, is_hasty=False)
    assert rules.keeps_slot(asked(), NO, is_hasty=False)
    assert rules.right_value(gold) is YES


@pytest.mark.parametrize(
    ("others", "is_waiting", "slot"),
    [
        ([], True, 0),
        ([Slot(2, 0, SHE, OVER)], True, 0),
        ([Slot(2, 0, SHE, SOON)], True, None),  # she has the only one
        ([], False, None),  # somebody finished it
    ],
)
def test_the_slot_of_a_cannot_tell_comes_back_while_it_is_free(
    others: list[Slot], is_waiting: bool, slot: int | None
) -> None:
    question = asked((ME, UNSURE), is_waiting=is_waiting)
    question.slots[:] = others

    assert rules.slot_after_unsure(question, NOW) == slot


def test_a_question_that_nobody_could_tell_comes_back_to_who_takes_that_back() -> None:
    question = asked((ME, UNSURE), (SHE, UNSURE), (HE, UNSURE), is_waiting=False)
    question.slots.clear()

    assert rules.slot_after_unsure(question, NOW) == 0


def test_asking_again_takes_one_more_answer_at_the_end_of_the_queue() -> None:
    effect = rules.after_asking_again(2)

    assert (effect.slots, effect.is_waiting, effect.finished) == (3, True, -1)
    assert effect.moved(10) == 10
