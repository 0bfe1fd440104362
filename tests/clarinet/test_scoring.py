"""What scores a run: the target's test images, else those it trains on; training never sees their classes."""

from dataclasses import replace

import pytest
import torch

from clarinet import predict, train
from clarinet.data.training_data import TrainData
from clarinet.export.card_text import card_markdown
from clarinet.export.cards import model_card
from clarinet.recipes.errors import DataError
from clarinet.recipes.scoring import ScoredOn
from tests.clarinet.factories import NUM_CLASSES, equal_weights, make_config, make_data


@pytest.fixture
def data() -> TrainData:
    """A target whose images come with their classes, but for the first ten, and without a test split."""
    data = make_data(target_test_images=None, target_test_labels=None)
    classes = make_data().target_test_labels
    assert classes is not None
    return replace(data, target_labels=classes.masked_fill(torch.arange(len(classes)) < 10, -1))


@pytest.mark.parametrize(
    ("method", "setting"),
    [
        ("clarinet-plus", "cc"),
        pytest.param("clarinet-plus", "pc", marks=pytest.mark.long),
        pytest.param("clarinet", "cc", marks=pytest.mark.long),
        pytest.param("mcc", "pc", marks=pytest.mark.long),
    ],
)
def test_the_targets_classes_score_and_change_no_bit_of_what_is_trained(
    method: str, setting: str, data: TrainData
) -> None:
    config = make_config(method, setting=setting)
    if config.setting == "pc":
        with_true = make_data(true_rows=40)
        data = replace(data, true=with_true.true, complementary=with_true.complementary)
    assert data.target_labels is not None

    known = train(config, data)
    unknown = train(config, replace(data, target_labels=None))
    wrong = train(config, replace(data, target_labels=(data.target_labels + 1).clamp(min=0) % NUM_CLASSES))

    assert equal_weights(known.model, unknown.model)
    assert equal_weights(known.model, wrong.model)
    assert (unknown.target_accuracy, unknown.scored_on.images) == (None, 0)
    assert known.scored_on == ScoredOn(split="train", images=86, of=96)
    hits = predict(known, data.target_images).argmax(1)[10:] == data.target_labels[10:]
    assert known.target_accuracy == pytest.approx(float(hits.float().mean()))
    assert known.reports[-1].target_accuracy == known.target_accuracy
    assert known.confusion is not None
    assert sum(map(sum, known.confusion)) == 86


def test_test_images_go_first(data: TrainData) -> None:
    config, images = make_config(epochs=1), make_data()
    tested = replace(
        data,
        target_test_images=images.target_test_images,
        target_test_labels=images.target_test_labels,
    )

    result, alone = train(config, tested), train(config, images)

    assert result.scored_on == alone.scored_on == ScoredOn(split="test", images=96, of=96)
    assert result.target_accuracy == alone.target_accuracy


def test_a_card_says_on_which_images_it_was_measured(data: TrainData) -> None:
    result = train(make_config(epochs=1), data)

    card = model_card(result, data)

    told = "86 of its 96 training images, those of a known class that is one of these"
    assert f"on {told}; training saw the images without classes" in (text := card_markdown(card))
    assert result.target_accuracy is not None
    low, high = result.scored_on.interval(result.target_accuracy)
    assert f"({100 * low:.1f} to {100 * high:.1f} %)" in text
    assert card["data"]["target_test"] is None
    assert "labels_digest" in card["data"]["target"]


@pytest.mark.parametrize("classes", [torch.full((96,), 3), torch.zeros(95, dtype=torch.int64)])
def test_classes_that_are_none_of_the_images_are_refused(classes: torch.Tensor, data: TrainData) -> None:
    with pytest.raises(DataError, match="target_labels"):
        replace(data, target_labels=classes)


@pytest.mark.parametrize(
    ("scored", "words"),
    [
        (ScoredOn(split="test", images=10_000, of=10_000), "10,000 test images"),
        (
            ScoredOn(split="test", images=9, of=12),
            "9 of 12 test images, those of a known class that is one of these",
        ),
        (
            ScoredOn(split="train", images=1670, of=1670),
            "its 1,670 training images, whose classes are known; training saw the images without classes",
        ),
    ],
)
def test_what_scores_is_told_in_words(scored: ScoredOn, words: str) -> None:
    assert scored.in_words() == words
    assert ScoredOn.from_dict(scored.to_dict()) == scored


def test_the_interval_is_the_exact_one_of_the_images_looked_at() -> None:
    """Ends for 9 hits of 10 from tables of Clopper and Pearson's intervals."""
    scored = ScoredOn(split="train", images=10, of=40)

    assert scored.interval(0.9) == pytest.approx((0.5550, 0.9975), abs=5e-5)
    assert scored.interval(1.0, most=5)[0] == pytest.approx(0.025 ** (1 / 5))
