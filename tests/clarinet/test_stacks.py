"""Arrays as callers have them: where the channels are, and what their numbers mean."""

from typing import Any

import numpy as np
import pytest
import torch

from clarinet.data.stacks import stack_of
from clarinet.recipes.errors import DataError
from tests.clarinet.factories import noisy_levels


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((2, 5, 7), (2, 5, 7)),
        ((2, 5, 7, 3), (2, 5, 7, 3)),
        ((2, 3, 5, 7), (2, 5, 7, 3)),
        ((2, 5, 7, 1), (2, 5, 7)),
        ((2, 1, 5, 7), (2, 5, 7)),
        ((0, 3, 5, 7), (0, 5, 7, 3)),
    ],
)
def test_the_axis_of_one_or_three_has_the_channels(shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    images = noisy_levels(*shape)

    found = stack_of(images, "X")

    assert found.shape == wanted
    assert torch.equal(torch.from_numpy(np.sort(found.numpy(), None)), torch.sort(images.flatten()).values)


def test_channels_first_and_last_are_the_same_pixels() -> None:
    last = noisy_levels(2, 5, 7, 3)

    assert torch.equal(stack_of(last.movedim(3, 1), "X"), stack_of(last, "X"))
    assert torch.equal(stack_of(last.movedim(3, 1).numpy(), "X"), last)


def test_floats_from_0_to_1_become_the_nearest_level() -> None:
    levels = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)
    halves = np.array([[[0.0, 0.4 / 255, 0.6 / 255, 1.0]]])

    for kind in (np.float16, np.float32, np.float64):
        assert np.array_equal(stack_of((levels / 255).astype(kind), "X").numpy(), levels)
    assert stack_of(halves, "X").tolist() == [[[0, 0, 1, 255]]]
    assert stack_of(torch.from_numpy(halves), "X").tolist() == [[[0, 0, 1, 255]]]


def test_arrays_that_torch_does_not_take_as_they_are() -> None:
    levels = np.arange(32, dtype=np.uint8).reshape(2, 4, 4)
    levels.setflags(write=False)

    assert np.array_equal(stack_of(levels[:, ::-1], "X").numpy(), levels[:, ::-1])
    assert np.array_equal(stack_of((levels / 255).astype(">f4"), "X").numpy(), levels)


@pytest.mark.parametrize(
    ("images", "told"),
    [
        (np.zeros((1, 3, 9, 3), np.uint8), r"X have shape \(1, 3, 9, 3\).*second or last.*at least 4 pixels"),
        (np.zeros((1, 1, 1, 1), np.uint8), "second or last"),
        (np.zeros((1, 4, 9, 9), np.uint8), "one or three channels"),
        (np.zeros((9, 9), np.uint8), r"for a single image X\[None\]"),
        (np.zeros((2, 9, 9), np.int64), "X are int64; images must be uint8 in 0..255, or floats in 0..1"),
        (torch.zeros(2, 9, 9, dtype=torch.int64), "X are torch.int64; images must be uint8"),
        (np.full((2, 9, 9), 255.0), "floats from 255 to 255; only 0 to 1 is taken"),
        (np.full((2, 9, 9), -0.1), "only 0 to 1 is taken"),
        (np.full((2, 9, 9), np.nan), "floats from nan to nan"),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused_in_words(images: Any, told: str) -> None:
    with pytest.raises(DataError, match=told):
        stack_of(images, "X")
