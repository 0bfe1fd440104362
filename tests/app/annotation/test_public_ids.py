"""Public ids of questions."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from app.annotation.public_ids import END, PublicIds

IDS = PublicIds("0" * 64)
OTHERS = PublicIds("1" * 64)


@given(st.integers(1, END - 1))
def test_a_public_id_leads_back_to_its_question(question_id: int) -> None:
    public_id = IDS.of(question_id)

    assert 0 <= public_id < END <= 2**53  # which JavaScript keeps exactly
    assert IDS.question_id(public_id) == question_id


def test_neighbours_and_other_campaigns_share_nothing() -> None:
    public_ids = [IDS.of(question_id) for question_id in range(1, 2001)]

    assert len(set(public_ids)) == 2000
    rising = sum(a < b for a, b in itertools.pairwise(public_ids))
    assert 900 < rising < 1100
    assert abs(sum(public_ids) / 2000 / END - 1 / 2) < 0.03
    assert not set(public_ids) & {OTHERS.of(question_id) for question_id in range(1, 2001)}


def test_what_is_no_public_id_is_no_question() -> None:
    assert [IDS.question_id(number) for number in (-1, END, 2**62)] == [0, 0, 0]
