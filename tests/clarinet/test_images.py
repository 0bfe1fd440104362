"""Preparation and distortion of images."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data import images
from clarinet.data.digits import (
    STROKE_LENGTH,
    STROKE_WIDTH,
    Distortion,
    _with_extra_stroke,
    blended,
    distortion_of,
    drawn_factors,
    drawn_grounds,
    ink_spread,
    moment_match,
    recoloured,
)
from clarinet.data.images import background, normalised, resized
from clarinet.data.seeding import generator
from clarinet.networks.classifier import ModelSpec
from clarinet.recipes.choices import InputNormalisation
from clarinet.recipes.methods import config_for


def make_spec(channels: int, size: int = 28, how: InputNormalisation = "instance") -> ModelSpec:
    return ModelSpec(
        architecture="dann" if channels == 3 else "lenet",
        channels=channels,
        image_size=size,
        input_normalisation=how,
        norm_per_domain=channels == 3,
        num_classes=4,
    )


def noise(*shape: int) -> Tensor:
    return torch.randint(256, shape, generator=generator(0, "noise"), dtype=torch.uint8)


def disc(radius_y: float, radius_x: float, *, ground: int = 0, ink: int = 255) -> Tensor:
    """One uint8 image (1, 1, 28, 28) of a filled ellipse."""
    y, x = torch.meshgrid(torch.arange(28) - 13.5, torch.arange(28) - 13.5, indexing="ij")
    inside = (y / radius_y) ** 2 + (x / radius_x) ** 2 <= 1
    return torch.where(inside, ink, ground).to(torch.uint8)[None, None]


class TestResized:
    def test_the_networks_own_size_passes_unchanged(self) -> None:
        images = noise(3, 28, 28)

        assert torch.equal(resized(images, make_spec(1)), images[:, None])

    def test_grey_is_replicated_for_a_colour_network(self) -> None:
        images = noise(3, 28, 28)

        assert torch.equal(resized(images, make_spec(3)), images[:, None].expand(-1, 3, -1, -1))

    @pytest.mark.parametrize("shape", [(2, 8, 8), (2, 16, 20), (2, 64, 32, 3), (2, 1, 1)])
    def test_any_size_becomes_the_networks(self, shape: tuple[int, ...]) -> None:
        assert resized(noise(*shape), make_spec(3, 32)).shape == (2, 3, 32, 32)
        assert resized(noise(*shape), make_spec(1)).shape == (2, 1, 28, 28)

    @pytest.mark.parametrize("shape", [(5, 40, 60), (5, 40, 60, 3), (5, 20, 20)])
    @pytest.mark.parametrize("channels", [1, 3])
    def test_in_parts_it_is_the_same(
        self, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], channels: int
    ) -> None:
        whole = resized(noise(*shape), make_spec(channels))
        monkeypatch.setattr(images, "CHUNK_PIXELS", 2 * 40 * 60)

        assert torch.equal(resized(noise(*shape), make_spec(channels)), whole)

    def test_a_photograph_shrinks_smoothly_and_becomes_square(self) -> None:
        stripes = (torch.arange(448) % 2 * 254).to(torch.uint8).expand(1, 112, 448)

        out = resized(stripes, make_spec(1))

        assert out.shape == (1, 1, 28, 28)
        assert bool(((out.float() - 127).abs() < 4).all())  # without smoothing, all black or all white

    def test_white_stays_white_as_luminance(self) -> None:
        white = torch.full((1, 40, 40, 3), 255, dtype=torch.uint8)

        assert int(resized(white, make_spec(1)).min()) == 255

    def test_a_tie_rounds_up_whatever_order_a_sum_takes(self) -> None:
        colours = torch.cartesian_prod(*[torch.arange(0, 256, 5)] * 3)  # (M, 3)
        thousandths = (colours * torch.tensor([299, 587, 114])).sum(1)  # (M,) luminance, exactly
        tied = thousandths % 1000 == 500
        assert int(tied.sum()) > 100
        images = colours.to(torch.uint8)[tied][:, None, None].expand(-1, 28, 28, -1)

        grey = resized(images, make_spec(1))

        assert torch.equal(grey[:, 0, 0, 0].long(), (thousandths[tied] + 500) // 1000)

    def test_it_is_the_antialiased_bilinear_resize_of_torch(self) -> None:
        images = noise(5, 40, 33)

        ours = resized(images, make_spec(1))

        torchs = F.interpolate(images[:, None].double(), (28, 28), mode="bilinear", antialias=True)
        assert float((ours - torchs).abs().max()) <= 0.5 + 1e-6


class TestNormalised:
    def test_instance_gives_mean_zero_and_a_spread_near_one(self) -> None:
        pixels = noise(4, 3, 28, 28).float() / 255

        out = normalised(pixels, "instance")

        torch.testing.assert_close(out.mean((2, 3)), torch.zeros(4, 3), atol=1e-5, rtol=0)
        spread = pixels.std((2, 3), correction=0)
        torch.testing.assert_close(out.std((2, 3), correction=0), spread / (spread + 0.1))

    def test_a_flat_image_gives_zeros_not_nan(self) -> None:
        assert bool((normalised(torch.full((1, 1, 28, 28), 0.5), "instance") == 0).all())

    def test_range_maps_to_minus_one_and_one(self) -> None:
        assert normalised(torch.tensor([0.0, 0.5, 1.0]).reshape(1, 1, 1, 3), "range").flatten().tolist() == [
            -1,
            0,
            1,
        ]

    @pytest.mark.parametrize("channels", [1, 3])
    def test_imagenet_takes_off_its_mean_and_divides_by_its_spread(self, channels: int) -> None:
        mean, spread = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
        if channels == 1:
            mean, spread = mean.mean(0, keepdim=True), spread.mean(0, keepdim=True)
        pixels = torch.stack([mean, mean + spread, mean - 2 * spread])[:, :, None, None]

        out = normalised(pixels, "imagenet")

        expected = torch.tensor([0.0, 1.0, -2.0])[:, None].expand(3, channels)
        torch.testing.assert_close(out[:, :, 0, 0], expected, atol=1e-6, rtol=0)


class TestDistortion:
    def test_only_chosen_rows_change(self) -> None:
        pixels = noise(6, 1, 28, 28).float() / 255
        chosen = torch.tensor([True, False, True, False, False, True])

        out = Distortion(10, 0.15, 2, 0.5)(pixels, chosen, generator(0, "draws"))

        assert torch.equal(out[~chosen], pixels[~chosen])
        assert bool((out[chosen] != pixels[chosen]).flatten(1).any(1).all())

    def test_no_row_chosen_is_the_identity(self) -> None:
        pixels = noise(2, 1, 28, 28).float() / 255

        out = Distortion(10, 0.15, 2, 0.5)(pixels, torch.zeros(2, dtype=torch.bool), generator(0, "draws"))

        assert torch.equal(out, pixels)

    def test_zero_ranges_are_the_identity(self) -> None:
        pixels = noise(4, 3, 28, 28).float() / 255

        out = Distortion(0, 0, 0, 0)(pixels, torch.ones(4, dtype=torch.bool), generator(0, "draws"))

        torch.testing.assert_close(out, pixels, atol=1e-4, rtol=0)

    @pytest.mark.parametrize(("ground", "ink"), [(0, 255), (230, 20)])
    def test_the_centre_scales_the_ink_by_as_much_and_the_ground_stays(self, ground: int, ink: int) -> None:
        image = disc(10, 6, ground=ground, ink=ink)

        out = Distortion(0, 0, 0, 0, centre=(0.5, 1.5))(
            image.float() / 255, torch.ones(1, dtype=torch.bool), generator(0, "draws")
        )

        (y, x), (new_y, new_x) = ink_spread(image), ink_spread((out * 255).round().to(torch.uint8))
        assert new_y / y == pytest.approx(0.5, abs=0.06)
        assert new_x / x == pytest.approx(1.5, abs=0.06)
        assert float(out[0, 0, 0, 0]) == pytest.approx(ground / 255, abs=1e-5)

    def test_strokes_become_at_most_as_thick_as_their_dilation(self) -> None:
        pixels = disc(8, 4).float().repeat(32, 1, 1, 1) / 255

        out = Distortion(0, 0, 0, 1)(pixels, torch.ones(32, dtype=torch.bool), generator(0, "draws"))

        grown, shrunk = F.max_pool2d(pixels, 3, 1, 1), -F.max_pool2d(-pixels, 3, 1, 1)
        assert bool((out <= grown + 1e-4).all())
        assert bool((out >= shrunk - 1e-4).all())
        ink = out.sum((1, 2, 3))
        assert float(ink.min()) < float(pixels[0].sum()) < float(ink.max())

    @pytest.mark.parametrize(("ground", "ink"), [(0, 255), (230, 20)])
    def test_an_extra_stroke_is_short_thin_and_in_the_images_ink(self, ground: int, ink: int) -> None:
        pixels = disc(6, 6, ground=ground, ink=ink).float().repeat(64, 1, 1, 1) / 255

        out = Distortion(0, 0, 0, 0, extra_stroke=1)(
            pixels, torch.ones(64, dtype=torch.bool), generator(0, "draws")
        )

        # 1 where the ground of before is ink now, 0 where all is as it was
        added = (out - pixels) * 255 / (ink - ground)
        torch.testing.assert_close(added, added.clamp(0, 1), atol=1e-4, rtol=0)
        beyond = added.sum((1, 2, 3))  # (64,) pixels of ink; some strokes lie wholly on the disc
        assert float(beyond.max()) <= (STROKE_LENGTH[1] + STROKE_WIDTH[1]) * STROKE_WIDTH[1] * 28**2 * 1.2
        assert float(beyond.median()) > STROKE_LENGTH[0] * STROKE_WIDTH[0] * 28**2 / 2
        # anywhere across them: 64 strokes reach more than half of the pixels near the middle
        ever = added.amax((0, 1)) > 1 / 2
        assert float(ever[6:22, 6:22].float().mean()) > 1 / 2

    def test_a_stroke_of_known_draws_covers_the_pixels_worked_out_by_hand(self) -> None:
        images = torch.zeros(2, 1, 20, 20)
        images[:, :, 0, 0] = 0.6
        middle = (0.5, 0.5, 0.0, 0.0, 1.0)  # level, 0.15 sides long and 0.115 wide: 3 and 2.3 pixels
        draws = torch.tensor([[*middle, 0.4], [*middle, 0.6]])

        out = _with_extra_stroke(images, torch.zeros(2, 1, 1, 1), draws, 0.5)

        assert torch.equal(out[1], images[1])  # the share is a half
        # The middle is the corner of four pixels, whose centres are half a pixel from the line.
        rows = out[0, 0, :, 10] / 0.6
        torch.testing.assert_close(rows[7:13], torch.tensor([0, 0.15, 1, 1, 0.15, 0]), atol=1e-5, rtol=0)
        columns = out[0, 0, 10] / 0.6
        ends = math.hypot(1, 0.5), math.hypot(2, 0.5)  # of the centres beyond the line's end, in pixels
        expected = torch.tensor([max(min(1.15 - end + 0.5, 1), 0) for end in ends])
        torch.testing.assert_close(columns[12:14], expected, atol=1e-5, rtol=0)

    def test_a_long_thin_stroke_covers_half_of_the_two_rows_beside_it(self) -> None:
        images = torch.zeros(1, 1, 20, 20)
        images[:, :, 0, 0] = 1
        draws = torch.tensor([[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]])  # 0.4 sides long and 0.05 wide: 8 pixels and 1

        out = _with_extra_stroke(images, torch.zeros(1, 1, 1, 1), draws, 0.5)

        beyond = 1 - math.hypot(0.5, 0.5)  # of the pixels at either end, half a pixel off in both directions
        row = torch.tensor([0.0] * 5 + [beyond] + [0.5] * 8 + [beyond] + [0.0] * 5)
        torch.testing.assert_close(out[0, 0, 9:11], torch.stack([row, row]), atol=1e-5, rtol=0)

    def test_the_angle_of_a_stroke_turns_it_from_level_over_upright(self) -> None:
        images = torch.zeros(3, 1, 20, 20)
        images[:, :, 0, 0] = 1
        level, upright = [0.7, 0.6, 0.0, 1.0, 0.5, 0.0], [0.6, 0.7, 0.5, 1.0, 0.5, 0.0]
        draws = torch.tensor([level, upright, [0.5, 0.5, 0.75, 1.0, 0.5, 0.0]])

        out = _with_extra_stroke(images, torch.zeros(3, 1, 1, 1), draws, 0.5)[:, 0]

        torch.testing.assert_close(out[0], out[1].T, atol=1e-5, rtol=0)
        assert float(out[0].sum()) > 8  # pixels; and the one in the corner
        middle = (
            float(out[0][7:17].sum(1).argmax()) + 7.5
        )  # its row, 0.12 sides below the middle of the image
        assert middle == pytest.approx(10 + 20 * 0.3 * (2 * 0.7 - 1), abs=1)
        falling, rising = out[2].diagonal(), out[2].flip(1).diagonal()
        assert float(rising[8:12].min()) == 1
        assert float(falling[5:8].max()) == 0

    def test_a_stroke_has_each_images_own_ink_in_all_its_colours(self) -> None:
        grounds = torch.tensor([[0.1, 0.5, 0.9], [0.8, 0.2, 0.4]])[..., None, None]  # (2, 3, 1, 1)
        inks = torch.tensor([[0.1, 0.9, 0.2], [0.3, 0.3, 0.4]])[..., None, None]
        images = grounds.repeat(1, 1, 20, 20)
        images[:, :, :2, :2] = inks
        images[:, 0, 19, 19] += 0.15  # something fainter that is no ink, in the first colour
        draws = torch.tensor([[0.5, 0.5, 0.0, 1.0, 1.0, 0.0]]).expand(2, -1)

        out = _with_extra_stroke(images, grounds, draws, 0.5)

        torch.testing.assert_close(out[:, :, 10:11, 10:11], inks)
        torch.testing.assert_close(out[:, :, 15:, :15], images[:, :, 15:, :15])

    @pytest.mark.parametrize(("extra_stroke", "more"), [(0.0, 0), (0.5, 6)])
    def test_only_with_extra_strokes_are_more_numbers_drawn(self, extra_stroke: float, more: int) -> None:
        draws, expected = generator(0, "draws"), generator(0, "draws")
        for shape in ((4, 6), (4,), (4,), (4, more)):
            torch.rand(shape, generator=expected)

        distortion = Distortion(10, 0.15, 2, 0.5, extra_stroke)
        distortion(torch.zeros(4, 1, 28, 28), torch.ones(4, dtype=torch.bool), draws)

        assert torch.equal(draws.get_state(), expected.get_state())

    @pytest.mark.parametrize(("preset", "share"), [("digits", 0.1), ("digits-quick", 0.0)])
    def test_as_many_images_as_the_config_says_get_one(self, preset: str, share: float) -> None:
        config = config_for("clarinet-plus", preset, changed_stroke=0)
        pixels = disc(4, 4).float().repeat(2000, 1, 1, 1) / 255

        distortion = distortion_of(config)
        assert isinstance(distortion, Distortion)
        still = replace(distortion, rotation=0.0, scale=0.0, shift=0.0)
        out = still(pixels, torch.ones(2000, dtype=torch.bool), generator(0, "draws"))

        changed = (out - pixels).abs().amax((1, 2, 3)) > 0.1
        assert float(changed.float().mean()) == pytest.approx(share, abs=0.02)


def test_moment_match_is_the_ratio_of_the_inks_extents() -> None:
    y, x = moment_match(disc(8, 8), disc(6, 10, ground=255, ink=0))

    assert y == pytest.approx(6 / 8, abs=0.05)
    assert x == pytest.approx(10 / 8, abs=0.05)


def test_background_ignores_a_few_border_pixels_of_ink() -> None:
    image = disc(16, 3)  # touches the border

    assert background(image.float()).item() == 0


def test_blending_is_the_distance_from_a_ground_of_the_target() -> None:
    pixels = disc(8, 8).float().expand(4, 3, 28, 28) / 255
    target = torch.full((5, 3, 28, 28), 51, dtype=torch.uint8)

    chosen = torch.tensor([True, True, True, False])
    out = blended(pixels, drawn_grounds(chosen, target, 28, generator(0, "draws")))

    torch.testing.assert_close(out[:3], (0.2 - pixels[:3]).abs())
    assert torch.equal(out[3], pixels[3])


def test_digits_of_the_target_stay_out_of_the_middle_of_blended_grounds() -> None:
    target = torch.zeros(8, 3, 28, 28, dtype=torch.uint8)
    target[:, :, 9:19, 9:19] = 255  # a digit
    for seed in range(20):
        drawn = drawn_grounds(torch.ones(6, dtype=torch.bool), target, 28, generator(seed, "g"))
        out = blended(torch.zeros(6, 3, 28, 28), drawn)

        assert float(out[:, :, 10:18, 10:18].max()) == 0


def test_recolouring_scales_channels_of_either_sign_and_leaves_other_rows() -> None:
    pixels = torch.rand(400, 3, 4, 4, generator=generator(0, "pixels"))
    chosen = torch.arange(400) < 300

    out = recoloured(pixels, drawn_factors(chosen, 3, generator(0, "draws")))

    factors = (out - 0.5) / (pixels - 0.5)  # (N, 3, 4, 4)
    of_channel = factors.median(3).values.median(2).values  # (N, 3)
    assert torch.equal(out[300:], pixels[300:])
    torch.testing.assert_close(out, 0.5 + (pixels - 0.5) * of_channel[:, :, None, None], atol=1e-4, rtol=0)
    assert 0.29 < float(of_channel.abs().min()) < float(of_channel.abs().max()) < 1.01
    assert 0.4 < float((of_channel[:300] < 0).float().mean()) < 0.6
    alike = (of_channel[:300].amax(1) - of_channel[:300].amin(1)) < 1e-3
    assert 0.4 < float(alike.float().mean()) < 0.6
    assert 0 <= float(out.min()) <= float(out.max()) <= 1
