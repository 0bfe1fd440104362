"""The estimate of the accuracy on the source: its interval, when it is shown, what earlier versions kept."""

import math
from dataclasses import astuple

import numpy as np
import pytest
from scipy.special import betainc
from scipy.stats import beta

from clarinet.recipes import source_accuracy
from clarinet.recipes.binomial import (
    MISSED,
    Interval,
    clopper_pearson,
    effective_count,
    incomplete_beta,
    share_interval,
)
from clarinet.recipes.source_accuracy import (
    NEEDED,
    SourceEstimate,
    accuracy_interval,
    in_words,
    of_earlier_version,
    upgraded_figures,
)

CONFIG = {"held_out_share": 0.05, "label_noise": 0.0}
REPETITIONS = 2000


def error_of(share: float, count: float) -> float:
    """The standard error that the library gives a share of so many labels of equal weight."""
    smoothed = (share * count + 1) / (count + 2)
    return math.sqrt(smoothed * (1 - smoothed) / count)


class TestInterval:
    def test_no_hit_of_ten_by_hand(self) -> None:
        """(1 - p)^10 is 2.5 % at p = 1 - 0.025^(1/10), and of 10 hits p^10 is at 0.025^(1/10)."""
        assert clopper_pearson(0, 10) == pytest.approx((0, 1 - 0.025 ** (1 / 10)))
        assert clopper_pearson(10, 10) == pytest.approx((0.025 ** (1 / 10), 1))

    def test_each_end_leaves_half_of_what_may_be_missed_beyond(self) -> None:
        """By the sums of the binomial itself, which know nothing of beta distributions."""
        low, high = clopper_pearson(3, 20)

        def at_most(hits: int, share: float) -> float:
            return sum(math.comb(20, x) * share**x * (1 - share) ** (20 - x) for x in range(hits + 1))

        assert 1 - at_most(2, low) == pytest.approx(MISSED / 2)
        assert at_most(3, high) == pytest.approx(MISSED / 2)

    @pytest.mark.parametrize("count", [0.7, 8.5, 200, 333.3, 5000, 200_000])
    def test_it_is_the_quantiles_of_scipy(self, count: float) -> None:
        for hits in (0.3, 1, 7, count / 3, count - 0.4):
            if hits <= count:
                ends = beta.ppf(0.025, hits, count - hits + 1), beta.ppf(0.975, hits + 1, count - hits)
                assert clopper_pearson(hits, count) == pytest.approx(ends, rel=1e-7)
        for x in (0.0, 1e-9, 0.2, 0.5, 0.9, 1.0):
            assert incomplete_beta(count, 3, x) == pytest.approx(betainc(count, 3, x), rel=1e-7, abs=1e-12)

    @pytest.mark.parametrize("count", [1, 38, 199.5, 123_456])
    @pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
    def test_an_error_is_that_of_one_number_of_labels(self, count: float, share: float) -> None:
        assert effective_count(share, error_of(share, count)) == pytest.approx(count)

    @pytest.mark.parametrize(("hits", "count"), [(-1, 5), (6, 5), (0, 0), (math.nan, 5)])
    def test_what_is_no_share_is_refused(self, hits: float, count: float) -> None:
        with pytest.raises(ValueError, match="hits of"):
            clopper_pearson(hits, count)

    @pytest.mark.parametrize(("share", "error"), [(1.1, 0.1), (0.5, 0.0), (0.5, math.inf), (0.5, math.nan)])
    def test_an_impossible_error_is_refused(self, share: float, error: float) -> None:
        with pytest.raises(ValueError, match="standard error"):
            effective_count(share, error)


class TestCoverage:
    @pytest.mark.long(but=["10"])
    @pytest.mark.parametrize("num_classes", [2, 7, 10, 50])
    def test_it_holds_the_accuracy_as_often_as_it_says(self, num_classes: int) -> None:
        """Exact intervals are never too short; where hits are few they are a little long."""
        draws = np.random.default_rng(num_classes)
        # 3.5 standard deviations of a share of 0.95 over so many repetitions, as there are 60 cases.
        least = 0.95 - 3.5 * math.sqrt(0.95 * 0.05 / REPETITIONS)
        for count in (200, 700, 5000):
            known: dict[int, Interval] = {}
            for accuracy in (0.3, 0.6, 0.9, 0.97, 0.995):
                share = (1 - accuracy) / (num_classes - 1)
                hits, times = np.unique(draws.binomial(count, share, REPETITIONS), return_counts=True)
                for each in set(hits.tolist()) - known.keys():
                    found = accuracy_interval(
                        each / count, error_of(each / count, count), num_classes=num_classes
                    )
                    assert found is not None
                    assert 0 <= found.low <= found.value <= found.high <= 1
                    known[each] = found
                held = [known[each].low <= accuracy <= known[each].high for each in hits.tolist()]
                covered = (times * held).sum() / REPETITIONS
                assert covered >= least, f"{count} labels, accuracy {accuracy}: {covered}"

    def test_wilsons_would_not(self) -> None:
        """Which is why it is not taken: of 200 labels with a share of 0.17 / 200 it misses 16 %."""
        count, share, z = 200, 0.17 / 200, 1.96
        one = (1 + z**2 / 2 - z * math.sqrt(1 * (1 - 1 / count) + z**2 / 4)) / (
            count + z**2
        )  # low, at one hit

        assert share < one
        assert (1 - share) ** count < 0.85
        assert clopper_pearson(1, count)[0] < share

    def test_wrong_labels_that_are_told_of_are_allowed_for(self) -> None:
        draws = np.random.default_rng(0)
        share = 0.02 * 0.9 + 0.98 * 0.1 / 9  # of ten classes 90 % right, 2 % of the labels wrong
        held = []
        for hits in draws.binomial(600, share, 300).tolist():
            found = accuracy_interval(hits / 600, error_of(hits / 600, 600), num_classes=10, label_noise=0.02)
            assert found is not None
            held.append(found.low <= 0.9 <= found.high)

        assert sum(held) / 300 > 0.92

    def test_labels_of_which_one_in_k_is_wrong_say_nothing(self) -> None:
        assert accuracy_interval(0.1, 0.01, num_classes=10, label_noise=0.1) is None


class TestWhenItIsShown:
    FOUND = Interval(0.97, 0.9, 0.99)

    def test_from_200_held_out_labels_on(self) -> None:
        shown = SourceEstimate.of(self.FOUND, held_out=NEEDED, share=0.05)
        hidden = SourceEstimate.of(self.FOUND, held_out=NEEDED - 1, share=0.05)

        assert shown is not None
        assert (shown.estimate, shown.low, shown.high, shown.missing) == (0.97, 0.9, 0.99, 0)
        assert hidden is not None
        assert (hidden.estimate, hidden.low, hidden.high, hidden.missing) == (None, None, None, 20)

    def test_before_it_says_how_many_answers_are_missing(self) -> None:
        found = SourceEstimate.of(None, held_out=96, share=0.05)

        assert found is not None
        assert (found.held_out, found.needed, found.missing) == (96, 200, 2080)
        assert in_words(found) == "an estimate needs 200 held-out answers; there are 96: about 2,080 more"

    def test_with_its_interval_it_is_one_line(self) -> None:
        found = SourceEstimate.of(Interval(0.97, 0.9, 0.99049), held_out=300, share=0.05)

        assert found is not None
        assert in_words(found) == "97.0 % (90.0 to 99.0 %)"

    def test_where_nothing_is_held_out_or_enough_tells_nothing_there_is_none(self) -> None:
        assert SourceEstimate.of(None, held_out=0, share=0.0) is None
        assert SourceEstimate.of(None, held_out=500, share=0.05) is None

    def test_it_travels_as_json(self) -> None:
        found = SourceEstimate.of(self.FOUND, held_out=300, share=0.05)

        assert found is not None
        assert SourceEstimate.from_dict(found.to_dict()) == found


class TestEarlierVersions:
    @pytest.mark.parametrize(("hits", "noise"), [(0, 0.0), (3, 0.0), (40, 0.0), (30, 0.02)])
    def test_an_estimate_and_its_error_tell_what_this_version_would_have_found(
        self, hits: int, noise: float
    ) -> None:
        share, told = hits / 372, 1 - 10 * noise
        estimate, error = (1 - noise - 9 * share) / told, 9 * error_of(share, 372) / told

        found = of_earlier_version(estimate, error, num_classes=10, config=CONFIG | {"label_noise": noise})

        expected = accuracy_interval(share, error_of(share, 372), num_classes=10, label_noise=noise)
        assert found is not None
        assert expected is not None
        assert found.held_out == 372
        assert (found.estimate, found.low, found.high) == pytest.approx(astuple(expected))

    def test_the_figure_that_stood_on_a_page_is_not_shown_any_more(self) -> None:
        """-49.9 % +- 46.9 %, of about 54 labels."""
        found = of_earlier_version(-0.499, 0.469, num_classes=10, config=CONFIG)

        assert found is not None
        assert (found.estimate, found.held_out, found.missing) == (None, 54, 2920)

    @pytest.mark.parametrize(
        ("estimate", "error"), [(None, None), (0.9, None), (0.9, 0.0), (math.nan, 0.1), (0.9, math.inf)]
    )
    def test_what_tells_nothing_is_not_shown(self, estimate: float | None, error: float | None) -> None:
        assert of_earlier_version(estimate, error, num_classes=10, config=CONFIG) is None
        assert of_earlier_version(0.9, 0.1, num_classes=10, config=CONFIG | {"label_noise": 0.1}) is None

    def test_figures_in_a_file_are_read_under_todays_name(self) -> None:
        old = {"epochs": 3, "source_accuracy_estimate": 0.979, "source_accuracy_error": 0.00847}

        found = upgraded_figures(old, num_classes=10, config=CONFIG)

        estimate = of_earlier_version(0.979, 0.00847, num_classes=10, config=CONFIG)
        assert estimate is not None
        assert found == {"epochs": 3, "source_estimate": estimate.to_dict()}
        assert upgraded_figures(found, num_classes=10, config=CONFIG) == found
        assert upgraded_figures(old, num_classes=None, config=CONFIG)["source_estimate"] is None


def test_the_least_number_leaves_a_quarter_open_and_half_of_it_a_half() -> None:
    """The reason that stands beside it."""
    widths = []
    for count in (NEEDED, NEEDED / 2):
        hits = share_interval(0.05 / 9, error_of(0.05 / 9, count))
        widths.append(9 * (hits.high - hits.low))

    assert widths[0] == pytest.approx(0.25, abs=0.03)
    assert widths[1] == pytest.approx(0.45, abs=0.06)
    assert source_accuracy.NEEDED == 200
