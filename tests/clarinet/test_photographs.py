"""Distortions of photographs: each part against what it says it does."""

from typing import Any

import torch
from torch import Tensor

from clarinet.data.photographs import PhotoDistortion
from clarinet.data.seeding import generator
from clarinet.recipes.config import TrainConfig
from clarinet.run.evaluation import predict
from clarinet.run.training import train
from tests.clarinet.factories import in_memory, make_config, make_data, noise


def distorted(pixels: Tensor, *, seed: int = 0, **changes: float) -> Tensor:
    """All rows, with only the named parts switched on."""
    nothing = {"crop": 1.0, "shift": 0.0, "flip": 0.0, "colour_jitter": 0.0}
    everyone = torch.ones(len(pixels), dtype=torch.bool)
    return PhotoDistortion(**nothing | changes)(pixels, everyone, generator(seed, "draws"))


def test_with_every_part_off_it_is_the_identity() -> None:
    pixels = noise(6, 3, 17, 17)

    torch.testing.assert_close(distorted(pixels), pixels, atol=1e-5, rtol=0)


def test_only_chosen_rows_change() -> None:
    pixels = noise(6, 3, 32, 32)
    chosen = torch.tensor([True, False, True, False, False, True])

    out = PhotoDistortion(0.3, 2, 0.5, 0.4)(pixels, chosen, generator(0, "draws"))

    assert torch.equal(out[~chosen], pixels[~chosen])
    assert bool((out[chosen] != pixels[chosen]).flatten(1).any(1).all())
    assert torch.equal(PhotoDistortion(0.3, 2, 0.5, 0.4)(pixels, ~chosen & chosen, generator(0, "x")), pixels)


def test_a_flip_is_the_mirror_image_of_its_share_of_rows() -> None:
    pixels = noise(200, 3, 8, 8)

    out = distorted(pixels, flip=0.3)

    mirrored = torch.isclose(out, pixels.flip(3), atol=1e-5).flatten(1).all(1)
    kept = torch.isclose(out, pixels, atol=1e-5).flatten(1).all(1)
    assert bool((mirrored ^ kept).all())
    assert 0.2 < float(mirrored.float().mean()) < 0.4


def crops_of(crop: float, *, count: int = 300, **changes: float) -> tuple[Tensor, Tensor]:
    """Sides and centres of crops, (R, 2) each as x, y in shares of the image, read off a ramp."""
    out = PhotoDistortion(crop, changes.get("shift", 0.0), 0.0, 0.0)._crops(count, 32, generator(0, "draws"))
    return torch.stack([out[:, 0, 0], out[:, 1, 1]], dim=1), out[:, :, 2]


def test_a_crop_keeps_its_share_of_the_area_and_stays_inside() -> None:
    sides, centre = crops_of(0.3)

    area = sides.prod(1)
    assert 0.3 <= float(area.min()) < 0.35
    assert 0.95 < float(area.max()) <= 1 + 1e-6
    aspect = sides[:, 0] / sides[:, 1]
    assert float(aspect.max()) <= 4 / 3 + 1e-5
    assert float(aspect.min()) >= 3 / 4 - 1e-5
    assert bool((centre.abs() + sides <= 1 + 1e-6).all())


def test_pixels_come_from_where_the_crop_lies() -> None:
    """Each channel says a coordinate, which bilinear sampling keeps exact up to the outermost half pixel."""
    side = 32
    line = (2 * torch.arange(side) + 1) / side - 1  # (S,) centres of pixels in -1..1
    x, y = line.expand(side, side), line[:, None].expand(side, side)
    pixels = ((torch.stack([x, y, 0 * x]) + 1) / 2).expand(50, 3, side, side)

    out = 2 * distorted(pixels, crop=0.3, flip=0.5) - 1

    theta = PhotoDistortion(0.3, 0, 0.5, 0)._crops(50, side, generator(0, "draws"))
    expected = torch.einsum("rij,jhw->rihw", theta, torch.stack([x, y, torch.ones(side, side)]))
    inside = expected.abs() < 1 - 1 / side
    assert bool((theta[:, 0, 0] < 0).any())
    torch.testing.assert_close(out[:, :2][inside], expected[inside], atol=1e-4, rtol=0)


class TestLooks:
    """Edges alone, and images without colours."""

    def test_lines_are_dark_where_the_image_changes(self) -> None:
        pixels = torch.zeros(1, 3, 16, 16)
        pixels[:, 0, :, 8:] = 1.0  # red begins in the middle

        out = distorted(pixels, lines=1.0)

        assert bool((out[..., :6] == 1).all())
        assert bool((out[..., 10:] == 1).all())
        assert bool((out[..., 7:9] < 0.01).all())
        assert bool((out == out[:, :1]).all())

    def test_what_has_no_edges_is_white(self) -> None:
        assert bool((distorted(torch.full((1, 3, 16, 16), 0.4), lines=1.0) > 0.99).all())

    def test_each_look_has_its_share_of_rows_and_no_row_two(self) -> None:
        pixels = noise(400, 3, 8, 8)

        out = distorted(pixels, grey=0.2, lines=0.3)

        colourless = (out - out[:, :1]).abs().flatten(1).amax(1) < 1e-6
        same_light = (_light(out) - _light(pixels)).abs().flatten(1).amax(1) < 1e-4
        assert 0.4 < float(colourless.float().mean()) < 0.6
        assert 0.13 < float((colourless & same_light).float().mean()) < 0.27
        assert bool(same_light[~colourless].all())

    def test_a_grey_image_stays_one(self) -> None:
        assert distorted(noise(3, 1, 8, 8), grey=0.5, lines=0.5).shape == (3, 1, 8, 8)


def _light(pixels: Tensor) -> Tensor:
    return (pixels * torch.tensor([0.299, 0.587, 0.114])[:, None, None]).sum(1)


def test_a_crop_is_turned_about_its_centre_by_at_most_so_much() -> None:
    side = 33
    pixels = torch.zeros(40, 3, side, side)
    pixels[:, :, 16, 20:] = 1.0  # a ray from near the middle to the right

    out = distorted(pixels, turn=30.0)

    rows, columns = torch.meshgrid(torch.arange(side) - 16.0, torch.arange(side) - 16.0, indexing="ij")
    mass = out.mean(1)
    angle = torch.atan2((mass * rows).sum((1, 2)), (mass * columns).sum((1, 2))).rad2deg()  # (R,)
    assert float(angle.abs().max()) < 31
    assert float(angle.min()) < -20
    assert float(angle.max()) > 20


def test_a_shift_reaches_so_many_pixels_beyond_the_edge_and_mirrors_there() -> None:
    sides, centre = crops_of(1.0, shift=4)

    assert torch.equal(sides, torch.ones(300, 2))
    assert 3.5 < float(centre.abs().max() * 16) <= 4

    pixels = noise(1, 1, 8, 8)
    moved = distorted(pixels, shift=3, seed=3)
    assert float(moved.min()) >= float(pixels.min()) - 1e-6  # nothing black comes in


class TestColours:
    def test_brightness_contrast_and_saturation_by_hand(self) -> None:
        pixels = 0.2 + 0.3 * noise(4, 3, 6, 6)

        out = distorted(pixels, colour_jitter=0.2)

        draws = generator(0, "draws")
        torch.rand(4, 5, generator=draws)
        b, c, s = (1 + 0.2 * (2 * torch.rand(4, 3, generator=draws) - 1))[:, :, None, None, None].unbind(1)
        weights = torch.tensor([0.299, 0.587, 0.114])[:, None, None]
        bright = pixels * b
        mean = (bright * weights).sum(1, keepdim=True).mean((2, 3), keepdim=True)
        contrasted = mean + (bright - mean) * c
        grey = (contrasted * weights).sum(1, keepdim=True)
        torch.testing.assert_close(out, grey + (contrasted - grey) * s, atol=1e-5, rtol=0)

    def test_a_grey_image_stays_grey_and_every_value_possible(self) -> None:
        pixels = noise(50, 1, 9, 9).expand(-1, 3, -1, -1)

        out = distorted(pixels, colour_jitter=1.0)

        torch.testing.assert_close(out[:, 0], out[:, 2], atol=1e-5, rtol=0)
        assert 0 <= float(out.min()) < float(out.max()) <= 1
        assert distorted(pixels[:, :1], colour_jitter=1.0).shape == (50, 1, 9, 9)


def photo_config(**changes: Any) -> TrainConfig:
    return make_config(distortion_kind="photographs", image_size=16, **changes)


def test_a_run_on_photographs_is_a_function_of_its_seed_and_its_distortion() -> None:
    data = make_data(24, colour_target=True)

    def prediction(**changes: Any) -> Tensor:
        return predict(train(photo_config(**changes), data), in_memory(data.target_images))

    usual = prediction()
    assert not torch.equal(usual, prediction(distorted_share=0.4))
    # Neither strokes nor grounds are for photographs.
    assert torch.equal(
        usual, prediction(changed_stroke=0.0, extra_stroke=1.0, background_blending=False, moment_match=False)
    )
