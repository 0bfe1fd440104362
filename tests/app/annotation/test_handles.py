"""Handles of questions."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from app.annotation.handles import END, Handles

HANDLES = Handles("0" * 64)
OTHERS = Handles("1" * 64)


@given(st.integers(1, END - 1))
def test_a_handle_leads_back_to_its_question(question_id: int) -> None:
    handle = HANDLES.of(question_id)

    assert 0 <= handle < END <= 2**53  # which JavaScript keeps exactly
    assert HANDLES.question_id(handle) == question_id


def test_neighbours_and_other_campaigns_share_nothing() -> None:
    handles = [HANDLES.of(question_id) for question_id in range(1, 2001)]

    assert len(set(handles)) == 2000
    rising = sum(a < b for a, b in itertools.pairwise(handles))
    assert 900 < rising < 1100
    assert abs(sum(handles) / 2000 / END - 1 / 2) < 0.03
    assert not set(handles) & {OTHERS.of(question_id) for question_id in range(1, 2001)}


def test_what_is_no_handle_is_no_question() -> None:
    assert [HANDLES.question_id(number) for number in (-1, END, 2**62)] == [0, 0, 0]
