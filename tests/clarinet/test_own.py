"""What callers bring: a module as backbone, a function as distortion."""

import copy
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from clarinet import TrainData, TrainResult, export_model, export_onnx, predict, save_model, train
from clarinet.networks.layers import DomainBatchNorm
from clarinet.networks.own import Own, OwnBackbone
from clarinet.recipes.errors import ConfigError, ExportError
from tests.clarinet.factories import equal_weights, in_memory, make_config, make_data

TORCHS_GENERATOR = 7


class Features(nn.Module):
    """Twelve maps, with batch normalisation and a count of its own."""

    def __init__(self, channels: int = 3) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, 12, 5, stride=3)
        self.norm = nn.BatchNorm2d(12)
        self.order: Tensor
        self.register_buffer("order", torch.arange(12))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.norm(self.first(x)).relu()[:, self.order]
        return out


class Gives(nn.Module):
    """Something that is no features."""

    def forward(self, x: Tensor) -> Tensor:
        return x[0, 0]


def module() -> Features:
    torch.manual_seed(TORCHS_GENERATOR)
    return Features()


def trained(own: Own, *, method: str = "clarinet-plus", data: TrainData | None = None) -> TrainResult:
    return train(make_config(method), data or make_data(), own=own)


@pytest.mark.long(but=["clarinet"])
@pytest.mark.parametrize("method", ["clarinet-plus", "clarinet"])
def test_a_module_learns_and_the_one_that_was_given_stays(method: str) -> None:
    given = module()
    before = copy.deepcopy(given.state_dict())

    result = trained(Own(backbone=given), method=method)

    body: Any = result.model.extractor.body  # the network's own parts, which no type here knows
    assert result.model.spec.architecture == "own"
    assert result.model.spec.channels == 3
    assert result.model.extractor.features == 12
    assert isinstance(body.norm, DomainBatchNorm)
    assert not torch.equal(body.first.weight, given.first.weight)
    assert all(torch.equal(value, before[name]) for name, value in given.state_dict().items())
    assert isinstance(given.norm, nn.BatchNorm2d)
    assert given.training


def test_maps_are_pooled_to_their_mean() -> None:
    given = module().eval()
    model = trained(Own(backbone=given)).model.extractor
    assert isinstance(model, OwnBackbone)
    pixels = torch.rand(4, 3, 28, 28)

    with torch.inference_mode():
        assert torch.allclose(model(pixels), model.body(pixels).mean((2, 3)))
        assert model(pixels).shape == (4, 12)


def test_equal_modules_give_equal_bits() -> None:
    first, again = (trained(Own(backbone=module())) for _ in range(2))

    assert equal_weights(first.model, again.model)


def test_a_module_that_does_not_fit_is_refused_in_words() -> None:
    with pytest.raises(ConfigError, match=r"Features does not take images \(2, 3, 28, 28\).*colour images"):
        trained(Own(backbone=Features(channels=1)))
    with pytest.raises(ConfigError, match=r"Gives gives \(28, 28\) for two images; expected features"):
        trained(Own(backbone=Gives()))


def test_what_cannot_be_done_with_a_module_is_said_in_words(tmp_path: Path) -> None:
    result, data = trained(Own(backbone=module())), make_data()

    for write in (save_model, export_model):
        with pytest.raises(ExportError, match="a file of weights cannot rebuild; pickle the estimator"):
            write(tmp_path / "m", result)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError, match="keeps no checkpoint"):
        train(make_config(), data, own=Own(backbone=module()), checkpoint=tmp_path / "c")
    weights = {"pretrained": "hub", "architecture": "resnet18"}
    with pytest.raises(ConfigError, match="leave one out"):
        train(make_config(**weights), data, own=Own(backbone=module()))


@pytest.mark.long
def test_a_module_is_written_as_onnx(tmp_path: Path) -> None:
    result, data = trained(Own(backbone=module())), make_data()
    images = in_memory(data.target_images)[:5]

    export_onnx(tmp_path / "m.onnx", result.model, image_shape=(28, 28))

    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    (found,) = session.run(None, {"images": images[..., None].numpy()})
    assert torch.allclose(torch.from_numpy(found), predict(result, images), atol=1e-5)


def test_a_transform_takes_the_place_of_the_distortion() -> None:
    seen: list[Tensor] = []

    def mirrored(pixels: Tensor) -> Tensor:
        seen.append(pixels)
        return pixels.flip(3)

    trained(Own(transform=mirrored))

    assert seen
    assert all(pixels.dtype == torch.float32 and pixels.shape[1:] == (1, 28, 28) for pixels in seen)
    assert all(float(pixels.min()) >= 0 and float(pixels.max()) <= 1 for pixels in seen)
    levels = torch.cat([pixels.flatten() for pixels in seen]) * 255
    assert torch.allclose(levels, levels.round(), atol=1e-4)  # untouched by ours, which smooths


@pytest.mark.long
def test_a_transform_may_draw_from_torch_and_is_repeated() -> None:
    def noisy(pixels: Tensor) -> Tensor:
        return (pixels + 0.1 * torch.randn_like(pixels)).clamp(0, 1)

    torch.manual_seed(1)
    first = trained(Own(transform=noisy))
    torch.manual_seed(2)
    again = trained(Own(transform=noisy))
    without = trained(Own())

    assert equal_weights(first.model, again.model)
    assert not equal_weights(first.model, without.model)


def test_a_transform_that_changes_the_shape_is_refused_in_words() -> None:
    with pytest.raises(ConfigError, match=r"transform gives torch.float32 .* it must keep type and shape"):
        trained(Own(transform=lambda pixels: pixels[..., :14]))
