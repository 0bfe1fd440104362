"""Answers to labels."""

import pytest

from app.annotation.consensus import LabelKind, answers_needed, verdict

TRUE, COMPLEMENTARY = LabelKind.TRUE, LabelKind.COMPLEMENTARY


@pytest.mark.parametrize(
    ("yes", "no", "kind"),
    [
        (0, 0, None),
        (0, 1, COMPLEMENTARY),
        (1, 0, None),
        (2, 0, TRUE),
        (1, 1, None),
        (2, 1, TRUE),
        (1, 2, COMPLEMENTARY),
        (0, 2, COMPLEMENTARY),
        (2, 2, None),
    ],
)
def test_with_confirmation(yes: int, no: int, kind: LabelKind | None) -> None:
    given = verdict(yes, no, confirm_yes=True)

    assert given.kind is kind
    assert given.answers == yes + no
    assert given.weight == (1.0 if kind else 0.0)


@pytest.mark.parametrize(
    ("yes", "no", "kind"),
    [(0, 0, None), (0, 1, COMPLEMENTARY), (1, 0, TRUE), (1, 1, None), (2, 1, TRUE), (1, 2, COMPLEMENTARY)],
)
def test_without_confirmation(yes: int, no: int, kind: LabelKind | None) -> None:
    assert verdict(yes, no, confirm_yes=False).kind is kind


@pytest.mark.parametrize(
    ("yes", "no", "needed"), [(0, 0, 1), (0, 1, 1), (1, 0, 2), (2, 0, 2), (1, 1, 3), (2, 1, 3), (1, 2, 3)]
)
def test_answers_needed_with_confirmation(yes: int, no: int, needed: int) -> None:
    assert answers_needed(yes, no, confirm_yes=True) == needed


@pytest.mark.parametrize(("yes", "no"), [(0, 0), (1, 0), (0, 1)])
def test_without_confirmation_one_answer_is_enough(yes: int, no: int) -> None:
    assert answers_needed(yes, no, confirm_yes=False) == 1


@pytest.mark.parametrize("confirm_yes", [True, False])
def test_enough_answers_always_settle_a_question(confirm_yes: bool) -> None:
    for yes in range(4):
        for no in range(4 - yes):
            if 0 < yes + no == answers_needed(yes, no, confirm_yes=confirm_yes):
                assert verdict(yes, no, confirm_yes=confirm_yes).kind is not None
