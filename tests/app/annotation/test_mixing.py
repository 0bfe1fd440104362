"""How much of what people are asked is asked again, without a database."""

import pytest

from app.annotation.mixing import chance, chance_of_confirming, mixture
from app.campaigns.confirming import Confirming

SEED = "5a" * 32


@pytest.mark.parametrize("num_classes", [3, 4, 5, 10, 50, 1000])
def test_yes_stays_rare_with_first_questions_and_without(num_classes: int) -> None:
    law = mixture(1 / num_classes)
    bound = 1 / num_classes + 0.25

    # Whatever returns is taken for a yes; of the settled ones one in twenty turns out a yes.
    among_first = (1 / num_classes + law.returning) / (1 + law.returning)
    without = (1 + 0.05 * law.settled_later) / (1 + law.settled_later)

    assert among_first < bound
    assert without < bound


@pytest.mark.parametrize("num_classes", [2, 3, 4, 5, 10, 50, 1000])
def test_more_may_return_than_arise(num_classes: int) -> None:
    law = mixture(1 / num_classes)

    assert 1 / num_classes < law.returning < 2 / 3, "and nobody knows of the next one that it is one"
    assert law.answers == pytest.approx(1 + 1 / num_classes + 0.05)


def test_of_two_classes_nothing_hides_what_returns() -> None:
    law = mixture(1 / 2)

    assert law.settled_among_the_rest(allowed=100, coming=1) == 0
    assert mixture(1 / 2, least=2).answers == pytest.approx(2.05), "asked of two, nothing is confirmed beside"


def test_predictions_that_are_judged_return_by_chance_as_well() -> None:
    law = mixture(1.0)

    assert 0 < law.returning < 1
    assert law.settled_later == 0


@pytest.mark.parametrize(
    ("law", "shares"), [(1, (1 / 2, 3 / 8, 1 / 8)), (2, (5 / 9, 3 / 9, 1 / 9))], ids=["half", "4/9"]
)
def test_chance_chooses_a_part_of_the_questions(law: int, shares: tuple[float, ...]) -> None:
    policy = Confirming(is_on=True, overlap=1, num_classes=2, law=law)
    leads = [policy.lead(chance_of_confirming(SEED, question)) for question in range(4_000)]

    assert leads == [policy.lead(chance_of_confirming(SEED, question)) for question in range(4_000)]
    assert leads != [policy.lead(chance_of_confirming("5b" * 32, question)) for question in range(4_000)]
    for lead, share in enumerate(shares):
        assert abs(leads.count(lead) / 4_000 - share) < 5 * (1 / 4 / 4_000) ** 0.5
    hosts = [chance(SEED, question) < 0.6 for question in range(4_000)]
    both = sum(lead > 0 and hosted for lead, hosted in zip(leads, hosts, strict=True)) / 4_000
    assert abs(both - 0.6 * (1 - shares[0])) < 5 * (0.3 * 0.7 / 4_000) ** 0.5, "whatever stands behind them"


@pytest.mark.parametrize(
    ("policy", "of_yes", "of_part", "share"),
    [
        (Confirming(is_on=True, overlap=1, num_classes=10), True, False, 0.1),
        (Confirming(is_on=True, overlap=2, num_classes=10), True, False, 0.1),
        (Confirming(is_on=False, overlap=1, num_classes=10), False, False, 0),
        (Confirming(is_on=True, overlap=1, num_classes=3), True, False, 1 / 3),
        (Confirming(is_on=True, overlap=1, num_classes=2), False, True, 4 / 9),
        (Confirming(is_on=True, overlap=1, num_classes=2, law=1), False, True, 1 / 2),
        (Confirming(is_on=True, overlap=2, num_classes=2), False, False, 0),
        (Confirming(is_on=False, overlap=1, num_classes=2), False, False, 0),
    ],
)
def test_what_is_confirmed(policy: Confirming, of_yes: bool, of_part: bool, share: float) -> None:
    assert (policy.of_yes, policy.of_part) == (of_yes, of_part)
    assert policy.share == pytest.approx(share)
    assert [policy.lead(0.01), policy.lead(0.4), policy.lead(0.99)] == ([2, 1, 0] if of_part else [0, 0, 0])


def test_chance_follows_from_seed_and_place_and_is_even() -> None:
    drawn = [chance(SEED, place) for place in range(4_000)]

    assert drawn == [chance(SEED, place) for place in range(4_000)]
    assert drawn != [chance("5b" * 32, place) for place in range(4_000)]
    assert drawn[0] != chance(SEED, 0, 1)
    # 0.5 and 1 / 12, within five standard deviations.
    mean = sum(drawn) / len(drawn)
    assert abs(mean - 0.5) < 5 * (1 / 12 / len(drawn)) ** 0.5
    assert abs(sum((x - mean) ** 2 for x in drawn) / len(drawn) - 1 / 12) < 0.006
