"""Mean, spread, time left and curve."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from app.runs.models import Metric, Run, Trial, TrialState
from app.runs.summary import MOST_POINTS, curve, summarise
from clarinet.recipes.scoring import ScoredOn
from tests.app.runs.conftest import ESTIMATE, TOO_FEW
from tests.factories import NOW

SCORED = ScoredOn(split="test", images=9, of=9)
NOTHING = ScoredOn(split="train", images=0, of=9)


def make(states: str, accuracies: list[float | None]) -> Run:
    kinds = {
        "q": TrialState.QUEUED,
        "r": TrialState.RUNNING,
        "s": TrialState.SUCCEEDED,
        "f": TrialState.FAILED,
    }
    return Run(
        config={"epochs": 10, "held_out_share": 0.05},
        snapshot_facts={"classes": ["a", "b", "c"]},
        trials=[
            Trial(id=uuid4(), seed=seed, state=kinds[letter], target_accuracy=accuracy)
            for seed, (letter, accuracy) in enumerate(zip(states, accuracies, strict=True))
        ],
    )


def metric(
    trial: Trial,
    epoch: int,
    *,
    seconds: float = 0,
    accuracy: float | None = None,
    estimate: dict[str, Any] | None = None,
) -> Metric:
    return Metric(
        trial_id=trial.id,
        epoch=epoch,
        epochs=10,
        seconds=seconds,
        target_accuracy=accuracy,
        source_estimate=estimate,
        recorded_at=NOW,
    )


def test_mean_and_sample_deviation_are_over_the_seeds_that_have_a_value() -> None:
    summary = summarise(make("ssr", [0.9, 0.7, None]), {}, scored=SCORED, now=NOW)

    assert summary.mean == pytest.approx(0.8)
    assert summary.spread == pytest.approx(0.02**0.5)
    assert (summary.seeds, summary.is_final) == (2, False)


@pytest.mark.parametrize(("states", "looked_at"), [("ss", 8000), ("rs", 2000), ("sf", 8000)])
def test_the_interval_is_of_the_images_that_were_looked_at(states: str, looked_at: int) -> None:
    """Of Clopper and Pearson, which for so many images is nearly that of a standard error."""
    many = ScoredOn(split="train", images=8000, of=8000)

    summary = summarise(make(states, [0.9, 0.9]), {}, scored=many, now=NOW)

    assert summary.low is not None
    assert summary.high is not None
    assert summary.high - summary.low == pytest.approx(2 * 1.96 * (0.09 / looked_at) ** 0.5, rel=0.03)
    assert summary.low < 0.9 < summary.high
    assert summarise(make("r", [None]), {}, scored=many, now=NOW).low is None


def test_what_is_shown_of_several_seeds_lies_in_0_to_1_as_mean_and_deviation_need_not() -> None:
    summary = summarise(make("sss", [0.99, 0.99, 0.8]), {}, scored=SCORED, now=NOW)

    assert summary.mean is not None
    assert summary.spread is not None
    assert summary.mean + summary.spread > 1
    assert (summary.lowest, summary.highest) == (0.8, 0.99)


def test_a_failed_seed_does_not_count() -> None:
    summary = summarise(make("sf", [0.9, 0.1]), {}, scored=SCORED, now=NOW)

    assert (summary.mean, summary.seeds, summary.is_final) == (0.9, 1, False)


def test_one_seed_has_no_spread() -> None:
    summary = summarise(make("s", [0.9]), {}, scored=SCORED, now=NOW)

    assert (summary.spread, summary.is_final, summary.time_left_s) == (None, True, None)
    assert (summary.lowest, summary.highest) == (None, None)


class TestSource:
    def test_estimates_and_their_ends_are_averaged_over_the_seeds(self) -> None:
        run = make("ss", [None, None])
        first, second = run.trials
        other = ESTIMATE | {"estimate": 0.7, "low": 0.5, "high": 0.75, "held_out": 299}
        latest = {first.id: metric(first, 3, estimate=ESTIMATE), second.id: metric(second, 3, estimate=other)}

        summary = summarise(run, latest, scored=NOTHING, now=NOW)

        found = summary.source
        assert found is not None
        assert (found.estimate, found.low, found.high) == pytest.approx((0.8, 0.65, 0.85))
        assert (found.held_out, found.missing) == (299, 0)
        assert summary.source_by_trial[second.id].estimate == 0.7

    def test_one_seed_that_has_an_estimate_is_enough(self) -> None:
        run = make("rr", [None, None])
        first, second = run.trials
        latest = {first.id: metric(first, 3, estimate=ESTIMATE), second.id: metric(second, 1)}

        found = summarise(run, latest, scored=NOTHING, now=NOW).source

        assert found is not None
        assert found.estimate == 0.9

    def test_a_seed_that_failed_does_not_count(self) -> None:
        run = make("fs", [None, None])
        latest = {trial.id: metric(trial, 3, estimate=ESTIMATE) for trial in run.trials[:1]}

        assert summarise(run, latest, scored=NOTHING, now=NOW).source is None

    def test_too_few_held_out_labels_say_how_many_answers_are_missing(self) -> None:
        run = make("s", [None])
        trial = run.trials[0]

        found = summarise(run, {trial.id: metric(trial, 3, estimate=TOO_FEW)}, scored=NOTHING, now=NOW).source

        assert found is not None
        assert (found.estimate, found.held_out, found.needed, found.missing) == (None, 96, 200, 2080)

    @pytest.mark.parametrize(
        ("estimate", "error", "shown"), [(-0.499, 0.469, None), (0.99, 0.0075, pytest.approx(0.99))]
    )
    def test_a_row_of_an_earlier_version_follows_the_same_rule(
        self, estimate: float, error: float, shown: object
    ) -> None:
        run = make("s", [None])
        row = metric(run.trials[0], 3)
        row.source_accuracy_estimate, row.source_accuracy_error = estimate, error

        found = summarise(run, {run.trials[0].id: row}, scored=NOTHING, now=NOW).source

        assert found is not None
        assert found.estimate == shown
        assert (found.missing > 0) == (shown is None)


def test_time_left_is_the_rest_at_the_present_pace_less_what_has_passed() -> None:
    run = make("r", [None])
    latest = {run.trials[0].id: metric(run.trials[0], 4, seconds=8)}

    assert summarise(run, latest, scored=SCORED, now=NOW + timedelta(seconds=3)).time_left_s == pytest.approx(
        6 * 2 - 3
    )


@pytest.mark.parametrize(
    ("epoch", "later_s", "is_ending", "is_late"),
    [(4, 3, False, False), (4, 60, False, True), (10, 0, True, False), (10, 60, True, False)],
)
def test_what_takes_longer_than_the_pace_told_is_no_time_left_of_none(
    epoch: int, later_s: int, is_ending: bool, is_late: bool
) -> None:
    run = make("r", [None])
    latest = {run.trials[0].id: metric(run.trials[0], epoch, seconds=8)}

    found = summarise(run, latest, scored=SCORED, now=NOW + timedelta(seconds=later_s))

    assert (found.is_ending, found.is_late) == (is_ending, is_late)


@pytest.mark.parametrize(("images", "is_small"), [(None, False), (108, True), (1949, True), (1950, False)])
def test_answers_that_the_pictures_cannot_give_are_not_asked_for(images: int | None, is_small: bool) -> None:
    run = make("s", [None])
    run.snapshot_facts = {"classes": ["a", "b", "c"], "complementary": [100, 60, 40]}
    lacking = {"estimate": None, "low": None, "high": None, "held_out": 15, "needed": 200, "missing": 3700}
    latest = {run.trials[0].id: metric(run.trials[0], 10, estimate=lacking)}

    found = summarise(run, latest, scored=NOTHING, source_images=images, now=NOW)

    # Of three classes a picture has two that it is not: 1,950 have 3,900 answers, of which 200 are there.
    assert found.source_is_small is is_small


def test_queued_seeds_wait_for_the_one_that_trains() -> None:
    run = make("rqq", [None, None, None])
    latest = {run.trials[0].id: metric(run.trials[0], 5, seconds=10)}

    assert summarise(run, latest, scored=SCORED, now=NOW).time_left_s == pytest.approx(10 + 2 * 20)


def test_before_the_first_epoch_nobody_knows_the_time_left() -> None:
    assert summarise(make("r", [None]), {}, scored=SCORED, now=NOW).time_left_s is None


def test_a_curve_has_a_gap_where_a_seed_is_behind() -> None:
    run = make("rr", [None, None])
    first, second = run.trials

    drawn = curve(
        run,
        [metric(first, 1, accuracy=0.1), metric(first, 2, accuracy=0.2), metric(second, 1, accuracy=0.3)],
        on_target=True,
    )

    assert drawn["x"] == [1, 2]
    assert [line["values"] for line in drawn["series"]] == [[0.1, 0.2], [0.3, None]]
    assert all(set(line) == {"name", "values"} for line in drawn["series"])


def test_without_target_labels_the_curve_is_the_estimate_on_the_source() -> None:
    run = make("r", [None])

    drawn = curve(run, [metric(run.trials[0], 2, estimate=ESTIMATE)], on_target=False)["series"][0]

    assert (drawn["values"], drawn["low"], drawn["high"]) == ([0.9], [0.8], [0.95])
    assert curve(run, [], on_target=False)["y_name"] == "estimated on the source"


def test_a_long_curve_is_thinned_and_keeps_its_last_epoch() -> None:
    run = make("r", [None])

    drawn = curve(
        run, [metric(run.trials[0], epoch, accuracy=0.5) for epoch in range(1, 5001)], on_target=True
    )

    assert len(drawn["x"]) <= MOST_POINTS
    assert drawn["x"][-1] == 5000
