"""Answers to labels."""

import pytest

from app.annotation.consensus import answers_needed, verdict, weighed
from clarinet.files.label_table import LabelKind

TRUE, COMPLEMENTARY = LabelKind.TRUE, LabelKind.COMPLEMENTARY


@pytest.mark.parametrize(
    ("yes", "no", "kind"),
    [
        (0, 0, None),
        (0, 1, COMPLEMENTARY),
        (1, 0, None),
        (2, 0, TRUE),
        (1, 1, None),
        (2, 1, None),
        (3, 1, TRUE),
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
    ("yes", "no", "needed"),
    [(0, 0, 1), (0, 1, 1), (1, 0, 2), (2, 0, 2), (1, 1, 3), (2, 1, 4), (1, 2, 3), (3, 1, 4), (2, 2, 4)],
)
def test_answers_needed_with_confirmation(yes: int, no: int, needed: int) -> None:
    assert answers_needed(yes, no, confirm_yes=True) == needed


@pytest.mark.parametrize(("yes", "no"), [(0, 0), (1, 0), (0, 1)])
def test_without_confirmation_one_answer_is_enough(yes: int, no: int) -> None:
    assert answers_needed(yes, no, confirm_yes=False) == 1


@pytest.mark.parametrize(
    ("yes", "no", "needed"), [(0, 0, 2), (0, 1, 2), (1, 0, 2), (0, 2, 2), (1, 1, 3), (2, 1, 4), (1, 2, 3)]
)
def test_an_overlap_asks_more_people_whatever_they_say(yes: int, no: int, needed: int) -> None:
    assert answers_needed(yes, no, confirm_yes=True, least=2) == needed


def test_without_confirmation_a_tie_asks_one_more() -> None:
    assert answers_needed(1, 1, confirm_yes=False, least=2) == 3
    assert answers_needed(2, 1, confirm_yes=False, least=2) == 3


@pytest.mark.parametrize("confirm_yes", [True, False])
def test_enough_answers_always_settle_a_question(confirm_yes: bool) -> None:
    for yes in range(4):  # fewer than MAX_SLOTS: at that many, an admin may have to decide
        for no in range(4 - yes):
            if 0 < yes + no == answers_needed(yes, no, confirm_yes=confirm_yes):
                assert verdict(yes, no, confirm_yes=confirm_yes).kind is not None


@pytest.mark.parametrize(
    ("yes", "no", "probability", "kind", "weight"),
    [
        (2, 0, 0.99, TRUE, 0.99),
        (2, 0, 0.45, None, 0.0),  # more probably wrong than right
        (0, 1, 0.02, COMPLEMENTARY, 0.98),
        (1, 2, 0.14, None, 0.0),  # of ten classes, one that nobody was asked about is as surely wrong
        (1, 0, 0.99, None, 0.0),  # waits for its confirmation, whoever said it
    ],
)
def test_a_label_weighs_as_much_as_it_is_probably_right(
    yes: int, no: int, probability: float, kind: LabelKind | None, weight: float
) -> None:
    given = weighed(verdict(yes, no, confirm_yes=True), probability, num_classes=10)

    assert (given.kind, given.answers) == (kind, yes + no)
    assert given.weight == pytest.approx(weight)
