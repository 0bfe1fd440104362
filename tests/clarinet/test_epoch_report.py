"""What the report of an epoch says, against the same worked out from the predictions."""

from dataclasses import replace

import pytest
import torch

from clarinet.data.domains import prepare
from clarinet.data.seeding import generator
from clarinet.data.training_data import TrainData
from clarinet.networks.classifier import SOURCE
from clarinet.plus.self_training import CONFIDENCE
from clarinet.plus.votes import NeighbourLabels
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import Diverged
from clarinet.recipes.source_accuracy import SourceEstimate
from clarinet.run import reporting
from clarinet.run.building import build_networks, build_optimizer
from clarinet.run.evaluation import agreement, information, predict
from clarinet.run.relabelling import with_pseudo_labels
from clarinet.run.reporting import epoch_report, run_result
from clarinet.run.results import EpochReport
from clarinet.run.resuming import RunState
from clarinet.run.stages import Stage
from tests.clarinet.factories import NUM_CLASSES, in_memory, make_config, make_data

CPU = torch.device("cpu")


def make_state(config: TrainConfig, data: TrainData) -> tuple[RunState, Stage]:
    """A run at the end of its first epoch, its networks as if no step had changed them."""
    stage = Stage(config=config, domains=prepare(data, config, CPU))
    networks = build_networks(config, stage.domains, CPU)
    state = RunState(networks=networks, optimizer=build_optimizer(config, networks), step=stage.epoch_steps)
    return state, stage


def estimate_of(report: EpochReport) -> SourceEstimate:
    """With a figure."""
    assert report.source_estimate is not None
    assert report.source_estimate.estimate is not None
    return report.source_estimate


def accuracy_of(report: EpochReport) -> float:
    found = estimate_of(report).estimate
    assert found is not None
    return found


@pytest.mark.usefixtures("few_are_enough")
def test_the_source_estimate_weighs_each_label_by_one_over_its_questions_probability() -> None:
    held_out, weights = torch.arange(96) < 50, torch.arange(96) % 3 / 2 + 0.5
    draws = generator(0, "probabilities")
    probabilities = torch.tensor([0.7, 0.2, 0.1])[torch.randint(3, (96,), generator=draws)]
    data = make_data(held_out=held_out, weights=weights, probabilities=probabilities)
    config = make_config("clarinet")
    state, stage = make_state(config, data)
    predicted = predict(state.networks.averaged, in_memory(data.source_images), domain=SOURCE).argmax(1)
    hits = predicted == data.complementary

    def expected(trust: torch.Tensor) -> float:
        share = trust[held_out & hits].sum() / trust[held_out].sum()
        return 1 - (NUM_CLASSES - 1) * float(share)

    found = accuracy_of(epoch_report(config, state, stage))

    assert found == pytest.approx(expected(weights / probabilities), abs=1e-5)
    assert found != pytest.approx(expected(weights), abs=1e-2)


@pytest.mark.usefixtures("few_are_enough")
def test_the_source_estimate_allows_for_wrong_labels_that_it_is_told_of_and_for_no_others() -> None:
    """The neighbours' errors are a part of their rate: a network that had learnt two merged classes from them
    was told as right on all images."""
    data = make_data(held_out=torch.arange(96) < 50)
    estimates = []
    for noise in (0.0, 0.05):
        config = make_config("clarinet", label_noise=noise)
        state, stage = make_state(config, data)
        state.neighbours = NeighbourLabels(torch.full((96, NUM_CLASSES), 1 / NUM_CLASSES), 0.1)
        found = estimate_of(epoch_report(config, state, stage))
        estimates.append([found.estimate, found.low, found.high])

    plain, allowed = estimates
    for told, is_allowed in zip(plain, allowed, strict=True):
        assert told is not None
        assert is_allowed == pytest.approx((told - 0.05) / (1 - NUM_CLASSES * 0.05))


@pytest.mark.parametrize("pretraining", [0.0, 0.5])
def test_too_few_held_out_labels_are_said_to_be_too_few_and_estimate_nothing(pretraining: float) -> None:
    """Nothing else is waited for: what is missing is known before the classifier learns."""
    config = make_config("clarinet-plus", held_out_share=0.5, epochs=3, pretraining_share=pretraining)
    state, stage = make_state(config, make_data())

    found = epoch_report(config, state, stage).source_estimate

    assert found == SourceEstimate(
        estimate=None, low=None, high=None, held_out=48, needed=200, missing=2 * (200 - 48)
    )


@pytest.mark.parametrize(("share", "missing"), [(0.004, 50_000), (0.0, None)])
def test_where_none_are_held_out_the_share_tells_how_many_are_missing(
    share: float, missing: int | None
) -> None:
    config = make_config("clarinet", held_out_share=share)
    state, stage = make_state(config, make_data())

    found = epoch_report(config, state, stage).source_estimate

    assert (found and found.missing) == missing


def test_labels_of_which_one_in_k_is_wrong_say_nothing_however_many_there_are() -> None:
    config = make_config("clarinet", held_out_share=0.5, label_noise=0.34)
    state, stage = make_state(config, make_data())

    assert epoch_report(config, state, stage).source_estimate is None


@pytest.mark.parametrize(("other", "is_known"), [(1 / 3, True), (1 / 4, False)])
def test_wrong_answers_to_questions_that_preferred_classes_leave_no_estimate(
    other: float, is_known: bool
) -> None:
    """By weights 1/q another share is wrong than the one that is told: 0.80 was told as 0.29 +- 0.01."""
    probabilities = torch.where(torch.arange(96) % 2 == 0, 1 / 3, other)
    config = make_config("clarinet", label_noise=0.05, held_out_share=0.5)
    state, stage = make_state(config, make_data(probabilities=probabilities))

    assert (epoch_report(config, state, stage).source_estimate is not None) == is_known


@pytest.mark.filterwarnings("ignore::clarinet.recipes.errors.NonUniformLabels")
def test_labels_that_cannot_be_uniform_give_no_estimate_unless_their_probabilities_are_known() -> None:
    """Else an accuracy of 0.91 was told as 0.55 +- 0.01."""
    preferred = (torch.arange(96) % 16 == 0).long()  # 90 of 96 are about class 0
    config = make_config("clarinet", held_out_share=0.5)

    for probabilities, is_known in ((None, False), (torch.full((96,), 0.5), True)):
        state, stage = make_state(config, make_data(complementary=preferred, probabilities=probabilities))
        assert (epoch_report(config, state, stage).source_estimate is not None) == is_known


@pytest.mark.parametrize("by_hand", [False, True])
def test_labels_that_train_nothing_are_not_taken_for_uniform_either(by_hand: bool) -> None:
    preferred = (torch.arange(96) % 16 == 0).long().masked_fill(torch.arange(96) < 9, -1)
    config = make_config("dann", setting="pc", held_out_share=0.5)

    for probabilities, is_known in ((None, False), (torch.full((96,), 0.5), True)):
        data = make_data(true_rows=9, complementary=preferred, probabilities=probabilities)
        if by_hand:
            data = with_pseudo_labels(data, torch.arange(96) % NUM_CLASSES, setting="pc")
        state, stage = make_state(config, data)
        assert (epoch_report(config, state, stage).source_estimate is not None) == is_known


def test_pseudo_labels_that_are_wrong_do_not_make_uniform_labels_look_otherwise() -> None:
    """As true ones of a random part of the images they would: all of them say class 0."""
    data = with_pseudo_labels(make_data(), torch.zeros(96, dtype=torch.int64), setting="cc")
    config = make_config("dann", setting="pc", held_out_share=0.5)

    state, stage = make_state(config, data)

    assert epoch_report(config, state, stage).source_estimate is not None


@pytest.mark.parametrize(("most", "per_class", "count"), [(80, 20, 80), (50, 20, 60), (2000, 20, 96)])
def test_what_needs_no_labels_is_of_all_target_images_or_of_as_many_as_are_looked_at(
    most: int, per_class: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "LOOKED_AT_PER_EPOCH", most)
    monkeypatch.setattr(reporting, "LEAST_PER_CLASS", per_class)
    config, data = make_config(), make_data()
    state, stage = make_state(config, data)
    with torch.no_grad():
        for parameter in state.networks.classifier.parameters():
            parameter.mul_(-1)  # a student of other opinions
    rows = reporting._looked_at(96, count, config, "report/target")
    seen = in_memory(data.target_images)[rows]
    teacher, student = (predict(each, seen) for each in (state.networks.averaged, state.networks.classifier))

    report = epoch_report(config, state, stage)

    assert len(set(rows.tolist())) == len(rows) == count
    assert torch.equal(rows, reporting._looked_at(96, count, config, "report/target"))
    assert report.target_information == pytest.approx(information(teacher))
    assert report.target_information > 0  # as it is not for one image
    assert report.student_agreement == pytest.approx(agreement(teacher, student))
    counts = torch.bincount(teacher.argmax(1), minlength=NUM_CLASSES)
    assert report.smallest_predicted_share == pytest.approx(float(counts.min()) / len(rows))
    assert counts[report.least_predicted_class] == counts.min()


@pytest.mark.parametrize("start", [0.0, 0.5, 1.0])
def test_a_report_tells_the_step_size_and_how_many_predictions_are_learned(start: float) -> None:
    config = make_config(
        "clarinet-plus",
        pretraining_share=0.0,
        warmup=0.0,
        final_learning_rate=1.0,
        target_self_training_start=start,
    )
    state, stage = make_state(config, make_data())
    sure = predict(state.networks.averaged, in_memory(make_data().target_images)).max(1).values > CONFIDENCE

    report = epoch_report(config, state, stage)

    assert report.learning_rate == config.optimisation.learning_rate
    expected = {0.0: float(sure.double().mean()), 0.5: 0.0, 1.0: None}[start]
    assert report.pseudo_label_share == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(("per_class", "named"), [(32, True), (33, False)])
def test_no_class_is_named_where_a_small_target_may_miss_one_by_chance(
    per_class: int, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "LEAST_PER_CLASS", per_class)  # of 96 images in three classes
    config = make_config()
    state, stage = make_state(config, make_data())

    assert (epoch_report(config, state, stage).least_predicted_class is not None) == named


@pytest.mark.parametrize(("of_an_equal_share", "told"), [(0.26, None), (0.24, 1), (0.0, 1)])
def test_a_class_for_which_hardly_any_target_image_is_taken_is_told(
    of_an_equal_share: float, told: int | None
) -> None:
    config = make_config()
    state, stage = make_state(config, make_data())
    report = replace(
        epoch_report(config, state, stage),
        smallest_predicted_share=of_an_equal_share / NUM_CLASSES,
        least_predicted_class=1,
    )
    state.reports = [replace(report, smallest_predicted_share=0.0, least_predicted_class=2), report]

    assert run_result(config, state, stage).merged_class == told


def test_a_report_of_a_version_that_did_not_name_the_class_is_read() -> None:
    config = make_config()
    state, stage = make_state(config, make_data())
    values = epoch_report(config, state, stage).to_dict()
    del values["least_predicted_class"]

    assert EpochReport.from_dict(values).least_predicted_class is None


def test_a_last_step_that_breaks_the_network_is_no_result() -> None:
    """Its loss was still a number."""
    config = make_config("gac")
    state, stage = make_state(config, make_data())
    state.totals = {"complementary": torch.tensor(1.0)}
    with torch.no_grad():
        for parameter in state.networks.averaged.parameters():
            parameter.mul_(1e30)

    with pytest.raises(Diverged):
        epoch_report(config, state, stage)


def test_a_report_of_an_earlier_version_is_read_without_the_estimate_that_it_told() -> None:
    """As in a checkpoint: how many labels told it is not known there, nor of how many classes."""
    config = make_config("clarinet", held_out_share=0.5)
    state, stage = make_state(config, make_data())
    report = epoch_report(config, state, stage)
    old = report.to_dict() | {"source_accuracy_estimate": -0.499, "source_accuracy_error": 0.469}
    del old["source_estimate"]

    assert EpochReport.from_dict(old) == replace(report, source_estimate=None)
    assert EpochReport.from_dict(report.to_dict()) == report
