"""Mean, spread, time left and curve."""

from datetime import timedelta
from uuid import uuid4

import pytest

from app.runs.models import Metric, Run, Trial, TrialState
from app.runs.summary import MOST_POINTS, curve, summarise
from tests.factories import NOW


def make(states: str, accuracies: list[float | None]) -> Run:
    kinds = {
        "q": TrialState.QUEUED,
        "r": TrialState.RUNNING,
        "s": TrialState.SUCCEEDED,
        "f": TrialState.FAILED,
    }
    return Run(
        config={"epochs": 10},
        trials=[
            Trial(id=uuid4(), seed=seed, state=kinds[letter], target_accuracy=accuracy)
            for seed, (letter, accuracy) in enumerate(zip(states, accuracies, strict=True))
        ],
    )


def metric(trial: Trial, epoch: int, *, seconds: float = 0, accuracy: float | None = None) -> Metric:
    return Metric(
        trial_id=trial.id,
        epoch=epoch,
        epochs=10,
        seconds=seconds,
        target_accuracy=accuracy,
        source_accuracy_estimate=0.25,
        recorded_at=NOW,
    )


def test_mean_and_sample_deviation_are_over_the_seeds_that_have_a_value() -> None:
    summary = summarise(make("ssr", [0.9, 0.7, None]), {}, now=NOW)

    assert summary.mean == pytest.approx(0.8)
    assert summary.spread == pytest.approx(0.02**0.5)
    assert (summary.seeds, summary.is_final) == (2, False)


def test_a_failed_seed_does_not_count() -> None:
    summary = summarise(make("sf", [0.9, 0.1]), {}, now=NOW)

    assert (summary.mean, summary.seeds, summary.is_final) == (0.9, 1, False)


def test_one_seed_has_no_spread() -> None:
    summary = summarise(make("s", [0.9]), {}, now=NOW)

    assert (summary.spread, summary.is_final, summary.time_left_s) == (None, True, None)


def test_time_left_is_the_rest_at_the_present_pace_less_what_has_passed() -> None:
    run = make("r", [None])
    latest = {run.trials[0].id: metric(run.trials[0], 4, seconds=8)}

    assert summarise(run, latest, now=NOW + timedelta(seconds=3)).time_left_s == pytest.approx(6 * 2 - 3)


def test_queued_seeds_wait_for_the_one_that_trains() -> None:
    run = make("rqq", [None, None, None])
    latest = {run.trials[0].id: metric(run.trials[0], 5, seconds=10)}

    assert summarise(run, latest, now=NOW).time_left_s == pytest.approx(10 + 2 * 20)


def test_before_the_first_epoch_nobody_knows_the_time_left() -> None:
    assert summarise(make("r", [None]), {}, now=NOW).time_left_s is None


def test_a_curve_has_a_gap_where_a_seed_is_behind() -> None:
    run = make("rr", [None, None])
    first, second = run.trials

    drawn = curve(
        run, [metric(first, 1, accuracy=0.1), metric(first, 2, accuracy=0.2), metric(second, 1, accuracy=0.3)]
    )

    assert drawn["x"] == [1, 2]
    assert [line["values"] for line in drawn["series"]] == [[0.1, 0.2], [0.3, None]]


def test_without_target_labels_the_curve_is_the_estimate_on_the_source() -> None:
    run = make("r", [None])

    assert curve(run, [metric(run.trials[0], 1)])["series"][0]["values"] == [0.25]


def test_a_long_curve_is_thinned_and_keeps_its_last_epoch() -> None:
    run = make("r", [None])

    drawn = curve(run, [metric(run.trials[0], epoch, accuracy=0.5) for epoch in range(1, 5001)])

    assert len(drawn["x"]) <= MOST_POINTS
    assert drawn["x"][-1] == 5000
