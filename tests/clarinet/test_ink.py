"""Digits in colour where the target is grey: what the network sees of them is their ink."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from clarinet.data.digits import drawn_factors, recoloured
from clarinet.data.domains import Domains, prepare
from clarinet.data.feeding import taken
from clarinet.data.images import background, greyed, resized
from clarinet.data.seeding import generator
from clarinet.data.training_data import TrainData
from clarinet.export.models import load_model, save_model
from clarinet.recipes.errors import Interrupted
from clarinet.recipes.methods import config_for
from clarinet.run.evaluation import predict
from clarinet.run.relabelling import pseudo_labels
from clarinet.run.tensor_files import read_tensors, write_tensors
from clarinet.run.training import train
from tests.clarinet.factories import Recorded, equal_weights, in_memory, make_config, make_data

pytestmark = pytest.mark.long

CPU = torch.device("cpu")
GROUND, INK = (10, 200, 30), (110, 200, 30)


def painted(shades: Tensor, ground: tuple[int, ...] = GROUND, ink: tuple[int, ...] = INK) -> Tensor:
    """(N, H, W) shades in 0..1 to (N, 3, H, W) float64: 0 is the ground's colour, 1 the ink's."""
    low, high = (torch.tensor(colour).double()[:, None, None] for colour in (ground, ink))
    return low + shades[:, None].double() * (high - low)


def stroke(side: int = 8) -> Tensor:
    """(1, S, S): a full stroke with a half shade beside it, which touches the border."""
    shades = torch.zeros(1, side, side)
    shades[:, :5, 3] = 1
    shades[:, 2:5, 4] = 0.5
    return shades


def coloured(images: Tensor) -> Tensor:
    """(N, H, W) uint8 to (N, H, W, 3): 0 and 255 become two colours at random, of each image its own."""
    draws = generator(0, "colours")
    ground, ink = torch.randint(256, (2, len(images), 1, 1, 3), generator=draws)
    ink = torch.where((ground - ink).abs().amax(-1, keepdim=True) < 60, 255 - ground, ink)
    return torch.where(images[..., None] > 0, ink, ground).to(torch.uint8)


def two_levels(**changes: Any) -> TrainData:
    """`make_data` with a source of black and white alone."""
    data = make_data(**changes)
    return replace(data, source_images=(in_memory(data.source_images) > 100).to(torch.uint8) * 255)


def in_colour(data: TrainData) -> TrainData:
    return replace(data, source_images=coloured(in_memory(data.source_images)))


def source_of(domains: Domains) -> Tensor:
    return taken(domains.source, torch.arange(len(domains.source)))


class TestGreyed:
    def test_ink_is_the_distance_from_the_ground_as_a_share_of_the_largest(self) -> None:
        out = greyed(painted(stroke()), "ink")

        torch.testing.assert_close(out, 255 * stroke().double()[:, None])

    def test_dark_ink_is_its_negative(self) -> None:
        out = greyed(painted(stroke()), "dark-ink")

        torch.testing.assert_close(out, 255 - 255 * stroke().double()[:, None])

    @pytest.mark.parametrize(
        ("ground", "ink"),
        [
            ((0, 0, 0), (255, 255, 255)),
            ((255, 255, 255), (0, 0, 0)),
            ((0, 0, 255), (255, 0, 0)),
            ((76, 76, 76), (255, 0, 0)),  # equal luminance, within a level
        ],
    )
    def test_the_colours_do_not_matter(self, ground: tuple[int, ...], ink: tuple[int, ...]) -> None:
        out = greyed(painted(stroke(), ground, ink), "ink")

        torch.testing.assert_close(out, 255 * stroke().double()[:, None])

    def test_colours_that_recolouring_changes_leave_the_ink(self) -> None:
        pixels = (painted(stroke()) / 255).expand(50, -1, -1, -1)
        every = torch.ones(50, dtype=torch.bool)

        out = greyed(recoloured(pixels, drawn_factors(every, 3, generator(0, "draws"))) * 255, "ink")

        torch.testing.assert_close(out, 255 * stroke().double()[:, None].expand(50, -1, -1, -1))

    def test_ink_may_fill_all_but_the_border(self) -> None:
        shades = torch.zeros(1, 8, 8)
        shades[:, 1:7, 1:7] = 1

        torch.testing.assert_close(greyed(painted(shades), "ink"), 255 * shades.double()[:, None])

    def test_the_ground_is_the_background_even_where_the_border_is_half_ink(self) -> None:
        shades = torch.zeros(1, 8, 8)
        shades[:, :4] = 1
        pixels = painted(shades)

        light = greyed(pixels, "ink") == 0

        assert torch.equal(light[:, 0], (pixels == background(pixels)).all(1))

    def test_small_differences_on_a_plain_image_stay_fainter(self) -> None:
        plain = torch.full((1, 3, 8, 8), 120.0, dtype=torch.float64)
        speck = plain.clone()
        speck[0, 0, 4, 4] += 5.1  # a fifth of what is full ink

        assert float(greyed(plain, "ink").max()) == 0
        assert float(greyed(speck, "ink").max()) == pytest.approx(255 / 5)

    def test_luminance_is_as_ever(self) -> None:
        out = greyed(painted(stroke()), "luminance")

        assert float(out.min()) == pytest.approx(0.299 * 10 + 0.587 * 200 + 0.114 * 30)


class TestPrepare:
    def test_a_source_in_colour_becomes_the_grey_one_it_was_painted_from(self) -> None:
        data = two_levels()

        grey, colour = (prepare(given, make_config(), CPU) for given in (data, in_colour(data)))

        assert (colour.spec.channels, colour.spec.greying) == (1, "ink")
        assert colour.source_is_grey
        assert torch.equal(source_of(colour), source_of(grey))

    def test_the_ink_is_dark_where_the_targets_is(self) -> None:
        data = two_levels()
        light = replace(data, target_images=255 - in_memory(data.target_images))

        grey, colour = (prepare(given, make_config(), CPU) for given in (data, in_colour(light)))

        assert colour.spec.greying == "dark-ink"
        assert torch.equal(source_of(colour), 255 - source_of(grey))

    @pytest.mark.parametrize(("light", "greying"), [(45, "ink"), (51, "dark-ink")])
    def test_most_targets_decide_and_not_how_light_they_are(self, light: int, greying: str) -> None:
        data = two_levels(count=96)
        target = in_memory(data.target_images) // 4  # all below the middle of the range
        target[:light] = 60 - target[:light]

        domains = prepare(replace(in_colour(data), target_images=target), make_config(), CPU)

        assert domains.spec.greying == greying

    def test_a_stream_gives_what_a_tensor_gives(self) -> None:
        data = in_colour(two_levels())
        assert isinstance(data.target_images, Tensor)
        stream = replace(
            data,
            source_images=Recorded(in_memory(data.source_images)),
            target_images=Recorded(255 - data.target_images),
        )
        tensor = replace(data, target_images=255 - data.target_images)

        streamed, whole = (prepare(given, make_config(), CPU) for given in (stream, tensor))

        assert streamed.spec == whole.spec
        assert whole.spec.greying == "dark-ink"
        assert torch.equal(source_of(streamed), source_of(whole))

    @pytest.mark.parametrize(
        ("target_in_colour", "changes"),
        [
            (True, {}),
            (False, {"ink_of_colours": False}),
            (False, {"distortion_kind": "photographs"}),
            (False, {"architecture": "resnet18"}),
        ],
        ids=["target in colour", "switched off", "photographs", "backbone"],
    )
    def test_colours_stay_otherwise(self, target_in_colour: bool, changes: dict[str, Any]) -> None:
        data = in_colour(two_levels(colour_target=target_in_colour))

        domains = prepare(data, make_config(**changes), CPU)

        assert (domains.spec.channels, domains.spec.greying) == (3, "luminance")
        assert not domains.source_is_grey
        assert torch.equal(source_of(domains), resized(in_memory(data.source_images), domains.spec))

    def test_a_grey_source_is_as_ever(self) -> None:
        assert prepare(make_data(), make_config(), CPU).spec.greying == "luminance"


class TestTraining:
    def test_colours_change_no_bit_but_for_extra_strokes_which_ink_never_gets(self) -> None:
        data = two_levels()
        plain, stroked = make_config(extra_stroke=0.0), make_config(extra_stroke=1.0)

        grey, colour = train(plain, data), train(stroked, in_colour(data))

        assert colour.target_accuracy == grey.target_accuracy
        assert [report.losses for report in colour.reports] == [report.losses for report in grey.reports]
        assert equal_weights(colour.model, grey.model)
        assert not equal_weights(train(stroked, data).model, grey.model)

    @pytest.mark.parametrize("method", ["gac", "gac+dan"])
    def test_nor_with_another_method_that_is_told_to_look_at_ink(self, method: str) -> None:
        data = two_levels()
        short: dict[str, Any] = {"epochs": 4, "steps_per_epoch": 2, "batch_size": 16}
        config = config_for(method, "short", ink_of_colours=True, adaptation_start_epoch=0, **short)

        grey, colour = (train(config, given) for given in (data, in_colour(data)))

        assert equal_weights(colour.model, grey.model)

    def test_a_run_from_a_stream_resumes(self, tmp_path: Path) -> None:
        data = in_colour(two_levels())
        stream = replace(data, source_images=Recorded(in_memory(data.source_images)))
        path = tmp_path / "c.safetensors"
        steps = iter([False] * 9 + [True])

        with pytest.raises(Interrupted):
            train(make_config(), stream, checkpoint=path, should_stop=lambda: next(steps))
        resumed = train(make_config(), stream, checkpoint=path)

        assert equal_weights(resumed.model, train(make_config(), data).model)

    def test_the_model_takes_pictures_of_the_source_by_their_ink(self, tmp_path: Path) -> None:
        data = two_levels()
        grey, colour = in_memory(data.source_images), in_memory(in_colour(data).source_images)
        result = train(make_config(), in_colour(data))

        save_model(tmp_path / "m.safetensors", result)
        loaded = load_model(tmp_path / "m.safetensors")

        torch.testing.assert_close(predict(loaded, colour), predict(result, grey))
        assert torch.equal(pseudo_labels(loaded, colour), pseudo_labels(result, grey))

    def test_a_model_saved_before_there_was_ink_sees_luminance(self, tmp_path: Path) -> None:
        path = tmp_path / "m.safetensors"
        save_model(path, train(make_config(epochs=1), make_data()))
        tensors, header = read_tensors(path, kind="model")
        del header["spec"]["greying"]
        write_tensors(path, tensors, header, kind="model")

        assert load_model(path).spec.greying == "luminance"
