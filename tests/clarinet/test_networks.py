"""The paper's architectures and torchvision's: sizes counted by hand, domains kept apart."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from clarinet.networks.classifier import SOURCE, Classifier, ModelSpec, discriminator, spec_for
from clarinet.networks.layers import DomainBatchNorm, HalfDropout
from clarinet.recipes.choices import BACKBONES, Architecture, Precision
from clarinet.recipes.errors import ConfigError
from clarinet.recipes.methods import config_for
from clarinet.run.training import train
from tests.clarinet.factories import make_config, make_data, make_network, noise

PAPERS: tuple[Architecture, ...] = ("lenet", "dann", "dtn", "conv-large")
SMALL: tuple[Architecture, ...] = (*PAPERS, "resnet18")  # those that a test may train within seconds


def convolution(inputs: int, outputs: int, side: int) -> int:
    """Weights and biases."""
    return outputs * inputs * side * side + outputs


# Scale and offset of a batch normalisation count two per channel; its statistics are no parameters.
COUNTS = {
    ("lenet", 28, 1): 520 + convolution(20, 50, 5) + (50 * 4 * 4 * 500 + 500) + (500 * 9 + 9),
    ("dann", 28, 3): 2432 + 2 * 32 + convolution(32, 48, 5) + 2 * 48 + 76_900 + 10_100 + (100 * 9 + 9),
    ("dtn", 32, 3): 4864
    + convolution(64, 128, 5)
    + convolution(128, 256, 5)
    + 2 * (64 + 128 + 256 + 512)
    + (256 * 4 * 4 * 512 + 512)
    + (512 * 9 + 9),
    ("conv-large", 32, 3): 3584
    + 2 * convolution(128, 128, 3)
    + convolution(128, 256, 3)
    + 2 * convolution(256, 256, 3)
    + convolution(256, 512, 3)
    + convolution(512, 256, 1)
    + convolution(256, 128, 1)
    + 2 * (3 * 128 + 3 * 256 + 512 + 256 + 128)
    + (128 * 9 + 9),
    # Torchvision's own counts, with nine classes for its thousand.
    ("resnet18", 224, 3): 11_689_512 - 991 * 513,
    ("resnet34", 224, 3): 21_797_672 - 991 * 513,
    ("resnet50", 224, 3): 25_557_032 - 991 * 2049,
    ("resnet101", 224, 3): 44_549_160 - 991 * 2049,
    ("convnext_tiny", 224, 3): 28_589_128 - 991 * 769,
    ("efficientnet_b0", 224, 3): 5_288_548 - 991 * 1281,
    # The small stem has 3x3 weights where the usual one has 7x7.
    ("resnet18", 32, 3): 11_689_512 - 991 * 513 - 64 * 3 * (49 - 9),
}


@pytest.mark.parametrize(("case", "expected"), COUNTS.items())
def test_parameters_are_as_many_as_counted_by_hand(
    case: tuple[Architecture, int, int], expected: int
) -> None:
    architecture, size, channels = case

    model = make_network(architecture, size=size, colour=channels == 3)

    assert sum(parameter.numel() for parameter in model.parameters()) == expected


@pytest.mark.parametrize(
    ("architecture", "features"),
    [("lenet", 500), ("dann", 100), ("dtn", 512), ("conv-large", 128), ("resnet18", 512)],
)
@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("size", [16, 28, 33, 64])
def test_any_size_and_colour_gives_features_and_logits(
    architecture: Architecture, features: int, colour: bool, size: int
) -> None:
    model = make_network(architecture, size=size, colour=colour, classes=4).eval()

    extracted, logits = model(torch.zeros(2, model.spec.channels, size, size))

    assert extracted.shape == (2, features)
    assert logits.shape == (2, 4)


def plain_lenet() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 20, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(20, 50, 5),
        nn.Dropout2d(0.5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(50 * 4 * 4, 500),
        nn.ReLU(),
        HalfDropout(),
    )


def plain_dann(*, normalised: bool) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 32, 5),
        nn.BatchNorm2d(32) if normalised else nn.Identity(),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 48, 5),
        nn.BatchNorm2d(48) if normalised else nn.Identity(),
        nn.ReLU(),
        nn.Dropout2d(0.5),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(48 * 4 * 4, 100),
        nn.ReLU(),
        nn.Linear(100, 100),
        nn.ReLU(),
    )


def plain_dtn() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 64, 5, stride=2, padding=2),
        nn.BatchNorm2d(64),
        nn.Dropout2d(0.1),
        nn.ReLU(),
        nn.Conv2d(64, 128, 5, stride=2, padding=2),
        nn.BatchNorm2d(128),
        nn.Dropout2d(0.3),
        nn.ReLU(),
        nn.Conv2d(128, 256, 5, stride=2, padding=2),
        nn.BatchNorm2d(256),
        nn.Dropout2d(0.5),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256 * 4 * 4, 512),
        nn.BatchNorm1d(512),
        nn.ReLU(),
        HalfDropout(),
    )


def plain_conv_large() -> nn.Sequential:
    def block(inputs: int, outputs: int, side: int, padding: int) -> list[nn.Module]:
        return [
            nn.Conv2d(inputs, outputs, side, padding=padding),
            nn.BatchNorm2d(outputs),
            nn.LeakyReLU(0.1),
        ]

    return nn.Sequential(
        *block(3, 128, 3, 1),
        *block(128, 128, 3, 1),
        *block(128, 128, 3, 1),
        nn.MaxPool2d(2),
        HalfDropout(),
        *block(128, 256, 3, 1),
        *block(256, 256, 3, 1),
        *block(256, 256, 3, 1),
        nn.MaxPool2d(2),
        HalfDropout(),
        *block(256, 512, 3, 0),
        *block(512, 256, 1, 0),
        *block(256, 128, 1, 0),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


def plain_discriminator() -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(12, 500),
        nn.ReLU(),
        HalfDropout(),
        nn.Linear(500, 500),
        nn.ReLU(),
        HalfDropout(),
        nn.Linear(500, 1),
    )


def share_weights(network: nn.Module, reference: nn.Module) -> None:
    """Convolutions, full layers and normalisations, each kind in its order."""
    normalisations = (nn.BatchNorm1d, nn.BatchNorm2d, DomainBatchNorm)
    for kind in (nn.Conv2d, nn.Linear, normalisations):
        given, taking = (
            [layer for layer in part.modules() if isinstance(layer, kind)] for part in (network, reference)
        )
        for one, other in zip(given, taking, strict=True):
            other.weight, other.bias = one.weight, one.bias


# The network, its definition layer by layer, and the shape of a batch.
DEFINITIONS: dict[str, tuple[Callable[[], nn.Module], Callable[[], nn.Module], tuple[int, ...]]] = {
    "lenet": (
        lambda: make_network("lenet", size=28, colour=False).extractor,
        plain_lenet,
        (4, 1, 28, 28),
    ),
    "dann": (
        lambda: make_network("dann", size=28, batch_norm=False).extractor,
        lambda: plain_dann(normalised=False),
        (4, 3, 28, 28),
    ),
    "normalised dann": (
        lambda: make_network("dann", size=28).extractor,
        lambda: plain_dann(normalised=True),
        (4, 3, 28, 28),
    ),
    "dtn": (lambda: make_network("dtn").extractor, plain_dtn, (4, 3, 32, 32)),
    "conv-large": (lambda: make_network("conv-large").extractor, plain_conv_large, (2, 3, 32, 32)),
    "discriminator": (lambda: discriminator(12), plain_discriminator, (8, 12)),
}


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("training", [False, True])
def test_each_layer_is_the_one_of_its_definition(name: str, training: bool) -> None:
    """In training as well: with one seed, dropout of one rate at one place drops the same values."""
    make_network, make_reference, shape = DEFINITIONS[name]
    network, reference = make_network().train(training), make_reference().train(training)
    share_weights(network, reference)
    outputs: list[Tensor] = []

    for module in (reference, network):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            outputs.append(module(noise(*shape)))

    expected, found = outputs
    assert expected.std() > 1e-3
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


# In bfloat16, which a processor without it takes its time for, one of each kind of layers.
IN_BFLOAT16 = ("resnet18", "resnext50_32x4d", "mobilenet_v3_small", "convnext_tiny", "efficientnet_b0")


@pytest.mark.long(but=["float32-resnet18"])
@pytest.mark.parametrize(
    ("precision", "architecture"),
    [("float32", name) for name in sorted(BACKBONES)] + [("bfloat16", name) for name in IN_BFLOAT16],
)
def test_backbones_give_float32_and_a_gradient_everywhere(
    precision: Precision, architecture: Architecture
) -> None:
    model = make_network(architecture, size=65).to(memory_format=torch.channels_last).train()

    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bfloat16"):
        features, logits = model(noise(2, 3, 65, 65), SOURCE)
    torch.autograd.backward(logits.square().sum())

    assert features.dtype == logits.dtype == torch.float32
    assert features.shape == (2, model.extractor.features)
    missing = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert not missing


def test_conv_large_sees_the_whole_image_through_six_pixels() -> None:
    """32 pixels halve twice to 8; the 3x3 without padding leaves 6, which are averaged."""
    sides: list[int] = []
    model = make_network("conv-large").eval()
    pool = next(layer for layer in model.extractor.modules() if isinstance(layer, nn.AdaptiveAvgPool2d))
    pool.register_forward_hook(lambda _, inputs, __: sides.append(inputs[0].shape[-1]))

    model(noise(2, 3, 32, 32))

    assert sides == [6]


def test_a_small_resnet_keeps_its_pixels_longer() -> None:
    assert isinstance(make_network("resnet18", size=64).extractor.body.maxpool, nn.Identity)  # type: ignore[union-attr]
    assert isinstance(make_network("resnet18", size=65).extractor.body.maxpool, nn.MaxPool2d)  # type: ignore[union-attr]


class TestSpec:
    @pytest.mark.parametrize(("colour", "name", "channels"), [(False, "lenet", 1), (True, "dann", 3)])
    def test_auto_follows_from_the_images(self, colour: bool, name: str, channels: int) -> None:
        spec = spec_for(config_for("clarinet", norm_per_domain=True), colour=colour, num_classes=5)

        assert (spec.architecture, spec.channels, spec.num_classes) == (name, channels, 5)
        assert spec.norm_per_domain is colour

    @pytest.mark.parametrize("architecture", sorted(BACKBONES))
    def test_backbones_take_grey_images_as_colour(self, architecture: Architecture) -> None:
        config = config_for("clarinet", architecture=architecture, image_size=32)

        assert spec_for(config, colour=False, num_classes=2).channels == 3

    def test_images_too_small_for_the_network_are_refused(self) -> None:
        with pytest.raises(ConfigError, match="image_size is 31, but convnext_tiny needs 32"):
            config_for("clarinet", architecture="convnext_tiny", image_size=31)

    def test_the_least_size_of_all_is_enough_for_efficientnet(self) -> None:
        assert make_network("efficientnet_b0", size=16)(noise(1, 3, 16, 16))[1].shape == (1, 9)

    def test_a_spec_names_its_network(self) -> None:
        spec = ModelSpec(
            architecture="auto",
            channels=1,
            image_size=28,
            input_normalisation="range",
            norm_per_domain=False,
            num_classes=2,
        )

        with pytest.raises(ConfigError, match="auto"):
            Classifier(spec)


@pytest.mark.long(but=["clarinet-plus-float32-lenet"])
@pytest.mark.parametrize("architecture", SMALL)
@pytest.mark.parametrize(("method", "precision"), [("clarinet", "bfloat16"), ("clarinet-plus", "float32")])
def test_every_architecture_trains(architecture: Architecture, method: str, precision: Precision) -> None:
    config = make_config(
        method, architecture=architecture, precision=precision, steps_per_epoch=1, batch_size=4, image_size=16
    )

    result = train(config, make_data(24, colour_target=True))

    assert all(torch.isfinite(value).all() for value in result.model.state_dict().values())
    assert result.model.spec.architecture == architecture


@pytest.mark.long
def test_grey_domains_train_a_backbone_that_takes_colour() -> None:
    config = make_config(architecture="resnet18", epochs=1, steps_per_epoch=2, batch_size=4, image_size=16)

    assert train(config, make_data(24)).model.spec.channels == 3


def test_a_target_of_one_image_trains_through_batch_norm() -> None:
    data = make_data(5, target_images=torch.zeros(1, 28, 28, dtype=torch.uint8))

    assert train(make_config(architecture="dtn", epochs=1), data).steps == 4
