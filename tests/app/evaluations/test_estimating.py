"""What answers say of an accuracy. The whole tables: `python -m tests.app.evaluations.coverage`."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from app.evaluations.estimating import (
    Interval,
    Stratum,
    accuracy_interval,
    compare,
    corrected_interval,
    questions_needed,
    stratified_interval,
)
from tests.app.evaluations.coverage import (
    TRUTHS,
    by_class,
    compared,
    corrected,
    exact_coverage,
    of_the_app,
    plain,
    stratified,
)

PERFECT = {"gold_yes_right": 10**6, "gold_yes_asked": 10**6, "gold_no_right": 10**6, "gold_no_asked": 10**6}


def within(found: Interval) -> bool:
    return 0 <= found.low <= found.estimate <= found.high <= 1


class TestAccuracy:
    def test_the_interval_keeps_its_promise(self) -> None:
        """Summed, not simulated: on average 95 +- 1.5 %, and at no accuracy below 92.5 %."""
        found = np.array([exact_coverage(of_the_app, n, np.array(TRUTHS))[0] for n in (200, 335, 600, 1000)])

        assert 0.935 <= found.mean() <= 0.965
        assert found.min() >= 0.95 - 1e-9

    @pytest.mark.parametrize(("yes", "asked"), [(0, 1), (1, 1), (37, 40), (600, 600)])
    def test_it_is_around_what_was_counted(self, yes: int, asked: int) -> None:
        found = accuracy_interval(yes, asked)

        assert within(found)
        assert found.estimate == yes / asked

    @pytest.mark.parametrize(("yes", "asked"), [(0, 0), (3, 2), (-1, 5)])
    def test_what_cannot_be_is_refused(self, yes: int, asked: int) -> None:
        with pytest.raises(ValueError, match="hits of"):
            accuracy_interval(yes, asked)


class TestQuestionsNeeded:
    @pytest.mark.parametrize(
        ("half_width", "expected"), [(0.02, None), (0.02, 0.9), (0.05, 0.8), (0.01, 1.0)]
    )
    def test_as_many_are_enough_and_one_less_is_not(self, half_width: float, expected: float | None) -> None:
        needed = questions_needed(half_width, expected)
        share = 0.5 if expected is None else expected

        # Rounded so that as many hits as expected can be whole: the function itself takes parts of one.
        reach = [
            max(found.estimate - found.low, found.high - found.estimate)
            for n in (needed - 30, needed + 30)
            for found in [accuracy_interval(round(share * n), n)]
        ]
        assert reach[1] < half_width < reach[0]

    def test_no_accuracy_takes_more_than_the_unknown_one(self) -> None:
        assert max(questions_needed(0.03, share) for share in (0.3, 0.5, 0.7, 0.95)) == questions_needed(0.03)

    @pytest.mark.parametrize(("half_width", "expected"), [(0.0, None), (0.5, None), (0.1, 1.1), (1e-5, None)])
    def test_what_cannot_be_is_refused(self, half_width: float, expected: float | None) -> None:
        with pytest.raises(ValueError, match="within"):
            questions_needed(half_width, expected)


class TestPeopleErr:
    def test_by_hand(self) -> None:
        """Of right predictions they call 9 of 10 right, of wrong ones 8 of 10 wrong: 76 % yes are 80 %."""
        found = corrected_interval(
            accuracy_interval(760, 1000),
            gold_yes_right=90,
            gold_yes_asked=100,
            gold_no_right=80,
            gold_no_asked=100,
        )

        assert found is not None
        assert found.estimate == pytest.approx((0.76 - 0.2) / (0.9 - 0.2))
        assert within(found)

    @pytest.mark.parametrize("yes", [0, 100, 371, 400])
    def test_without_errors_it_is_the_plain_one(self, yes: int) -> None:
        found, plain = corrected_interval(accuracy_interval(yes, 400), **PERFECT), accuracy_interval(yes, 400)

        assert found is not None
        assert found.estimate == plain.estimate
        assert (found.low, found.high) == pytest.approx((plain.low, plain.high), abs=1e-4)

    def test_few_known_questions_make_it_wider_than_many(self) -> None:
        widths = []
        for known in (20, 200, 2000):
            right = known * 19 // 20
            found = corrected_interval(
                accuracy_interval(360, 400),
                gold_yes_right=right,
                gold_yes_asked=known,
                gold_no_right=right,
                gold_no_asked=known,
            )
            assert found is not None
            assert within(found)
            widths.append(found.high - found.low)

        plain = accuracy_interval(360, 400)
        assert widths[0] > widths[1] > widths[2] > plain.high - plain.low

    def test_more_yes_than_such_people_can_say_promises_nothing_narrow(self) -> None:
        found = corrected_interval(
            accuracy_interval(399, 400),
            gold_yes_right=40,
            gold_yes_asked=50,
            gold_no_right=49,
            gold_no_asked=50,
        )

        assert found is not None
        assert (found.estimate, found.high) == (1, 1)
        assert found.low <= accuracy_interval(399, 400).low

    @pytest.mark.parametrize(("right", "asked"), [(0, 0), (10, 50)])
    def test_people_of_whom_nothing_is_known_or_who_guess_cannot_be_corrected(
        self, right: int, asked: int
    ) -> None:
        assert (
            corrected_interval(
                accuracy_interval(90, 100),
                gold_yes_right=40,
                gold_yes_asked=50,
                gold_no_right=right,
                gold_no_asked=asked,
            )
            is None
        )

    @pytest.mark.parametrize(
        ("truth", "people", "known"), [(0.5, (0.83, 0.9), 25), (0.99, (0.97, 0.98), 100)]
    )
    def test_it_covers(self, truth: float, people: tuple[float, float], known: int) -> None:
        assert corrected(truth, 400, people, known, repetitions=500)[0] >= 0.93


class TestStrata:
    def test_one_is_the_plain_interval(self) -> None:
        found, plain = stratified_interval([Stratum(7, 371, 400)]), accuracy_interval(371, 400)

        assert (found.estimate, found.low, found.high) == pytest.approx(
            (plain.estimate, plain.low, plain.high)
        )

    def test_each_counts_by_its_weight(self) -> None:
        """Nine tenths of the target at 90 %, and a tenth that is asked about as often, at 50 %."""
        strata = [Stratum(0.9, 90, 100), Stratum(0.1, 50, 100)]
        found = stratified_interval(strata)

        assert found.estimate == pytest.approx(0.9 * 0.9 + 0.1 * 0.5)
        assert within(found)
        assert stratified_interval([Stratum(5 * s.weight, s.yes, s.asked) for s in strata]) == found

    def test_parts_that_differ_narrow_it(self) -> None:
        found = stratified_interval([Stratum(1, 200, 200), Stratum(1, 0, 200)])
        alike = accuracy_interval(200, 400)

        assert found.high - found.low < (alike.high - alike.low) / 2

    def test_it_covers(self) -> None:
        assert stratified("one of ten bad", 20, repetitions=500)[0] >= 0.93

    def test_a_draw_by_class_covers_as_a_simple_one(self) -> None:
        covered, width, judged = by_class("ten, each half of the one before", 0.9, 200, 4.0, repetitions=400)

        assert 0.93 <= covered <= 0.985
        assert width <= plain(0.9, 200, repetitions=400)[1]
        assert 200 <= judged <= 400

    @pytest.mark.parametrize("strata", [[], [Stratum(1, 0, 0)], [Stratum(0, 1, 2)], [Stratum(1, 3, 2)]])
    def test_what_cannot_be_is_refused(self, strata: list[Stratum]) -> None:
        with pytest.raises(ValueError, match="tratum"):
            stratified_interval(strata)


class TestCompare:
    @pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (6, 0), (20, 10), (15, 15), (3, 90)])
    def test_the_p_value_is_that_of_the_exact_test(self, first: int, second: int) -> None:
        found = compare(first, second, 400)
        expected = binomtest(first, first + second).pvalue if first + second else 1.0

        assert found.p_value == pytest.approx(expected)
        assert found.estimate == pytest.approx((first - second) / 400)
        assert found.low <= found.estimate <= found.high

    def test_the_other_way_round_is_the_same(self) -> None:
        one, other = compare(20, 9, 300), compare(9, 20, 300)

        assert (one.estimate, one.low, one.high) == pytest.approx((-other.estimate, -other.high, -other.low))
        assert one.p_value == other.p_value

    def test_always_only_one_is_right(self) -> None:
        found = compare(50, 0, 50)

        assert (found.estimate, found.high) == (1, 1)
        assert math.isclose(found.p_value, 2 * 0.5**50)

    def test_it_covers_and_equals_are_seldom_called_different(self) -> None:
        covered, _, different = compared((0.1, 0.1), 200, repetitions=500)

        assert covered >= 0.93
        assert different <= 0.07

    @pytest.mark.parametrize(("first", "second", "asked"), [(-1, 0, 5), (3, 3, 5), (0, 0, 0)])
    def test_what_cannot_be_is_refused(self, first: int, second: int, asked: int) -> None:
        with pytest.raises(ValueError, match="of"):
            compare(first, second, asked)
