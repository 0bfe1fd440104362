"""Answers to labels."""

import numpy as np
import pytest

from app.annotation.consensus import answers_needed, verdict, weighed, wrong
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


@pytest.mark.parametrize(
    ("yes", "no", "lead", "needed"),
    [
        *[(0, 0, 1, 1), (1, 0, 1, 2), (2, 0, 1, 2), (1, 1, 1, 3), (2, 1, 1, 3)],
        *[(0, 0, 2, 1), (1, 0, 2, 2), (2, 0, 2, 2), (1, 1, 2, 3), (2, 1, 2, 4), (3, 1, 2, 4), (2, 2, 2, 4)],
    ],
)
def test_of_two_classes_what_is_confirmed_does_not_depend_on_what_is_said(
    yes: int, no: int, lead: int, needed: int
) -> None:
    for counts in ((yes, no), (no, yes)):
        assert answers_needed(*counts, confirm_yes=False, lead=lead) == needed


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
        (2, 0, 1.0, TRUE, 1.0),
        (2, 0, 0.55, TRUE, 0.5),  # half of what there is between 1/10 and 1
        (2, 0, 0.1, None, 0.0),  # as probable as any class
        (2, 0, 0.05, None, 0.0),  # the answers tell that it is another
        (0, 1, 0.0, COMPLEMENTARY, 1.0),
        (0, 1, 0.02, COMPLEMENTARY, 0.8),  # of the 1/10 that nobody had to be asked about, 1/50 is left
        (0, 1, 0.1, None, 0.0),  # a no of somebody who answers at random
        (1, 2, 0.14, None, 0.0),  # of ten classes, one that nobody was asked about is as surely wrong
        (1, 0, 0.99, None, 0.0),  # waits for its confirmation, whoever said it
    ],
)
def test_a_label_weighs_what_it_tells(
    yes: int, no: int, probability: float, kind: LabelKind | None, weight: float
) -> None:
    given = weighed(verdict(yes, no, confirm_yes=True), probability, num_classes=10)

    assert (given.kind, given.answers) == (kind, yes + no)
    assert given.weight == pytest.approx(weight)
    assert wrong(given, num_classes=10) == pytest.approx(
        1 if kind is None else 1 - probability if kind is TRUE else probability
    )


@pytest.mark.parametrize("num_classes", [2, 3, 10, 50])
@pytest.mark.parametrize("probability", [0.0, 0.2, 0.5, 0.97, 1.0])
def test_a_weight_mixes_being_sure_and_having_no_idea(num_classes: int, probability: float) -> None:
    """Probabilities of all classes: of the class asked about p, the others alike."""
    known = np.full(num_classes, (1 - probability) / (num_classes - 1))
    known[0] = probability
    no_idea = np.full(num_classes, 1 / num_classes)
    sure = {
        TRUE: np.eye(num_classes)[0],
        COMPLEMENTARY: np.array([0, *[1 / (num_classes - 1)] * (num_classes - 1)]),
    }
    labels = [
        weighed(verdict(*said, confirm_yes=True), probability, num_classes=num_classes)
        for said in ((2, 0), (0, 1))
    ]

    for given in labels:
        if given.kind is not None:
            mixed = given.weight * sure[given.kind] + (1 - given.weight) * no_idea
            np.testing.assert_allclose(mixed, known, atol=1e-12)
    # Of the two labels one tells what the answers say, unless they say what chance says.
    assert sum(given.kind is not None for given in labels) == (abs(probability - 1 / num_classes) > 1e-9)


def test_no_bound_decides_about_a_label() -> None:
    weights = [
        weighed(verdict(0, 1, confirm_yes=True), chance, num_classes=10).weight
        for chance in np.linspace(0, 0.2, 401)
    ]

    assert max(abs(np.diff(weights))) < 0.006  # no jump anywhere


@pytest.mark.parametrize("probability", [0.02, 0.3, 0.5, 0.9])
def test_of_two_classes_a_no_weighs_as_the_true_label_that_it_is(probability: float) -> None:
    no = weighed(verdict(0, 2, confirm_yes=True), probability, num_classes=2)
    yes = weighed(verdict(2, 0, confirm_yes=True), 1 - probability, num_classes=2)

    assert no.weight == pytest.approx(yes.weight)
    assert wrong(no, num_classes=2) == pytest.approx(wrong(yes, num_classes=2))
