"""As few classes as there can be, and more than a batch or the labels name."""

import math

import pytest
import torch
from torch import Tensor

from clarinet import EpochReport, TrainData, predict, train
from clarinet.data.seeding import generator
from tests.clarinet.factories import make_config, make_data

METHODS = ["clarinet", "clarinet-plus", "gac+cdan_e"]
COUNT = 96


def make_squares(classes: Tensor, *, seed: int) -> Tensor:
    """uint8 (N, 28, 28): a square whose place on an 8x8 board says the class, on a noisy ground."""
    images = torch.randint(0, 40, (len(classes), 28, 28), generator=generator(seed, "images")).byte()
    for image, place in zip(images, classes.tolist(), strict=True):
        row, column = 2 + 3 * (place // 8), 2 + 3 * (place % 8)
        image[row : row + 3, column : column + 3] = 200
    return images


def make_classes(num_classes: int) -> TrainData:
    """Two domains of K classes, with one uniform complementary label for each image of the source."""
    draws = generator(num_classes, "classes")
    source = torch.randint(num_classes, (COUNT,), generator=draws)
    target = torch.randint(num_classes, (COUNT,), generator=draws)
    wrong = (source + torch.randint(1, num_classes, (COUNT,), generator=draws)) % num_classes
    images = make_squares(target, seed=1)
    return make_data(
        COUNT,
        source_images=make_squares(source, seed=0),
        complementary=wrong,
        target_images=images,
        target_test_images=images,
        target_test_labels=target,
        num_classes=num_classes,
    )


@pytest.mark.long(but=["clarinet-2"])
@pytest.mark.parametrize("num_classes", [2, 60])
@pytest.mark.parametrize("method", METHODS)
def test_training_and_scoring_are_finite_with_few_and_with_many_classes(
    method: str, num_classes: int
) -> None:
    data = make_classes(num_classes)
    reports: list[EpochReport] = []

    result = train(make_config(method, epochs=4, steps_per_epoch=2), data, on_epoch=reports.append)
    probabilities = predict(result, data.target_images)

    assert all(math.isfinite(loss) for report in reports for loss in report.losses.values())
    assert all(bool(value.isfinite().all()) for value in result.model.state_dict().values())
    assert probabilities.shape == (COUNT, num_classes)
    torch.testing.assert_close(probabilities.sum(1), torch.ones(COUNT))
    assert data.target_test_labels is not None
    right = probabilities.argmax(1) == data.target_test_labels
    assert result.target_accuracy == pytest.approx(int(right.sum()) / COUNT)
    assert [len(row) for row in result.confusion or []] == [num_classes] * num_classes


def test_sixty_classes_are_more_than_the_labels_name() -> None:
    assert len(set(make_classes(60).complementary.tolist())) < 60
