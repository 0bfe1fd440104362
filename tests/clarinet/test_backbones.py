"""Pretrained weights: from torchvision's own files, for every domain, or refused in a sentence."""

from pathlib import Path
from urllib.error import URLError

import pytest
import torch
import torchvision
from safetensors.torch import save_file
from torch import Tensor, nn

from clarinet.data.domains import prepare
from clarinet.data.seeding import generator
from clarinet.networks.backbones import Backbone
from clarinet.networks.classifier import SOURCE, TARGET, Classifier, Domain, spec_for
from clarinet.networks.weights import load_pretrained
from clarinet.recipes.choices import Architecture
from clarinet.recipes.errors import ConfigError
from clarinet.recipes.methods import config_for
from clarinet.run.building import build_networks
from tests.clarinet.factories import make_config, make_data

pytestmark = pytest.mark.long

DOMAINS: tuple[Domain, ...] = (SOURCE, TARGET)


def make_backbone(architecture: Architecture, size: int = 80) -> Classifier:
    config = config_for("clarinet", architecture=architecture, image_size=size, norm_per_domain=True)
    return Classifier(spec_for(config, colour=True, num_classes=3)).eval()


def trained(architecture: str) -> nn.Module:
    """Torchvision's network with statistics that are not those of a fresh one."""
    network: nn.Module = torchvision.models.get_model(architecture, weights=None)
    draws = generator(0, "weights")
    for name, value in network.state_dict().items():
        if "running" in name:
            value.copy_(torch.rand(value.shape, generator=draws) + 0.5)
    return network.eval()


def without_last_layer(network: nn.Module, images: Tensor) -> Tensor:
    caught: list[Tensor] = []
    last = [module for module in network.modules() if isinstance(module, nn.Linear)][-1]
    last.register_forward_pre_hook(lambda _, inputs: caught.append(inputs[0]))
    with torch.no_grad():
        network(images)
    return caught[0]


def save(network: nn.Module, path: Path) -> str:
    if path.suffix == ".safetensors":
        save_file(network.state_dict(), path)
    else:
        torch.save(network.state_dict(), path)
    return str(path)


def backbone_of(model: Classifier) -> Backbone:
    assert isinstance(model.extractor, Backbone)
    return model.extractor


@pytest.mark.long(but=["resnet18-safetensors"])
@pytest.mark.parametrize(
    ("architecture", "suffix"),
    [
        ("resnet18", "safetensors"),
        ("resnet18", "pth"),
        ("resnet50", "pth"),
        ("convnext_tiny", "safetensors"),
        ("efficientnet_b0", "safetensors"),
    ],
)
def test_loaded_features_are_torchvisions_in_both_domains(
    tmp_path: Path, architecture: Architecture, suffix: str
) -> None:
    reference, model = trained(architecture), make_backbone(architecture)
    images = torch.rand(2, 3, 80, 80, generator=generator(0, "images"))

    load_pretrained(backbone_of(model), save(reference, tmp_path / f"weights.{suffix}"))

    expected = without_last_layer(reference, images)
    for domain in DOMAINS:
        torch.testing.assert_close(model(images, domain)[0], expected, atol=1e-4, rtol=1e-4)


def test_a_run_starts_from_the_file_and_draws_its_predictor(tmp_path: Path) -> None:
    reference = trained("resnet18")
    origin = save(reference, tmp_path / "weights.safetensors")
    config = make_config(architecture="resnet18", image_size=72, pretrained=origin)
    domains = prepare(make_data(), config, torch.device("cpu"))

    networks = build_networks(config, domains, torch.device("cpu"))

    for network in (networks.classifier, networks.averaged):
        body = backbone_of(network).body
        assert torch.equal(body.conv1.weight, reference.get_parameter("conv1.weight"))
        assert torch.equal(body.bn1.mean, reference.get_buffer("bn1.running_mean").expand(2, -1))
    assert networks.classifier.predictor.weight.shape == (3, 512)


@pytest.mark.long
@pytest.mark.parametrize("origin", ["hub", "torchvision"])  # as earlier versions called it
def test_a_download_is_of_the_best_weights_and_arrives_once(
    origin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference, model = trained("resnet50"), make_backbone("resnet50")
    images = torch.rand(2, 3, 80, 80, generator=generator(0, "images"))
    asked: list[tuple[str, str | None]] = []

    def download(url: str, path: str, digest: str | None, **_: object) -> None:
        asked.append((url, digest))
        torch.save(reference.state_dict(), path)

    monkeypatch.setattr("torch.hub.download_url_to_file", download)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))

    first = load_pretrained(backbone_of(model), origin)
    again = load_pretrained(backbone_of(make_backbone("resnet50")), origin)

    expected = without_last_layer(reference, images)
    for domain in DOMAINS:
        torch.testing.assert_close(model(images, domain)[0], expected, atol=1e-4, rtol=1e-4)
    assert asked == [(torchvision.models.ResNet50_Weights.IMAGENET1K_V2.url, "11ad3fa6")]
    assert again == first
    assert first.name == "resnet50-11ad3fa6.pth"


def test_a_file_that_changed_since_it_was_chosen_is_refused(tmp_path: Path) -> None:
    save(trained("resnet18"), tmp_path / "weights.pth")
    found = load_pretrained(backbone_of(make_backbone("resnet18")), "weights.pth", folder=tmp_path)
    save(trained("resnet34"), tmp_path / "weights.pth")

    with pytest.raises(ConfigError, match=rf"weights\.pth is another file than was meant.*{found.digest}"):
        load_pretrained(
            backbone_of(make_backbone("resnet34")), "weights.pth", folder=tmp_path, digest=found.digest
        )


@pytest.mark.parametrize("origin", ["../weights.pth", "/etc/passwd", "a/b", "."])
def test_in_a_folder_of_weights_a_file_has_a_bare_name(origin: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no bare name"):
        load_pretrained(backbone_of(make_backbone("resnet18")), origin, folder=tmp_path / "weights")


class TestRefusals:
    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="cannot be read"):
            load_pretrained(backbone_of(make_backbone("resnet18")), str(tmp_path / "none.safetensors"))

    @pytest.mark.parametrize("suffix", ["safetensors", "pth"])
    @pytest.mark.parametrize(
        "content",
        [b"", b"no weights", b"\x80\x02.", b"\x80\x02Q", b"PK\x03\x04nonsense", b"\xff\xd8\xff\xe0JFIF"],
    )
    def test_a_file_of_something_else(self, tmp_path: Path, suffix: str, content: bytes) -> None:
        path = tmp_path / f"weights.{suffix}"
        path.write_bytes(content)

        with pytest.raises(ConfigError, match=r"cannot be read as trained weights; .* no whole model$"):
            load_pretrained(backbone_of(make_backbone("resnet18")), str(path))

    def test_a_whole_model_is_no_state_dict(self, tmp_path: Path) -> None:
        torch.save(trained("resnet18"), tmp_path / "model.pth")

        with pytest.raises(ConfigError, match=r"tensors by name and no whole model$"):
            load_pretrained(backbone_of(make_backbone("resnet18")), str(tmp_path / "model.pth"))

    def test_a_pickle_that_would_run_code(self, tmp_path: Path) -> None:
        class Harmful:
            def __reduce__(self) -> tuple[object, tuple[str]]:
                return Path.touch, (tmp_path / "ran",)  # type: ignore[return-value] # a path is what touch takes

        torch.save({"conv1.weight": Harmful()}, tmp_path / "weights.pth")

        with pytest.raises(ConfigError, match="cannot be read"):
            load_pretrained(backbone_of(make_backbone("resnet18")), str(tmp_path / "weights.pth"))
        assert not (tmp_path / "ran").exists()

    def test_a_file_that_wraps_the_weights(self, tmp_path: Path) -> None:
        torch.save({"state_dict": trained("resnet18").state_dict()}, tmp_path / "weights.pth")

        with pytest.raises(ConfigError, match="does not hold tensors by name"):
            load_pretrained(backbone_of(make_backbone("resnet18")), str(tmp_path / "weights.pth"))

    @pytest.mark.parametrize(
        ("given", "wanted", "match"),
        [
            ("resnet34", "resnet18", "layer1.2.*resnet18 has not"),
            ("resnet18", "resnet34", "lacks layer1.2"),
            ("resnet50", "resnet18", "has shape"),
            ("resnet18", "efficientnet_b0", "lacks features"),
        ],
    )
    def test_weights_of_another_network(
        self, tmp_path: Path, given: str, wanted: Architecture, match: str
    ) -> None:
        origin = save(trained(given), tmp_path / "weights.safetensors")

        with pytest.raises(ConfigError, match=match):
            load_pretrained(backbone_of(make_backbone(wanted)), origin)

    def test_the_usual_first_layer_for_small_images(self, tmp_path: Path) -> None:
        origin = save(trained("resnet18"), tmp_path / "weights.safetensors")

        with pytest.raises(ConfigError, match="image_size above 64"):
            load_pretrained(backbone_of(make_backbone("resnet18", size=64)), origin)

    def test_a_download_that_fails(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def unreachable(*_: object, **__: object) -> None:
            raise URLError("no network")

        monkeypatch.setattr("torch.hub.download_url_to_file", unreachable)
        monkeypatch.setenv("TORCH_HOME", str(tmp_path))

        with pytest.raises(ConfigError, match=r"resnet18.*no network.*give a file"):
            load_pretrained(backbone_of(make_backbone("resnet18")), "torchvision")
