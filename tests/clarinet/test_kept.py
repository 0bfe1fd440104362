"""Runs on kept features: a backbone that stays as it is, and a head in a space common to both domains."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import timm
import torch
import torch.nn.functional as F
import torchvision
from safetensors.torch import save_file
from torch import Tensor

from clarinet import TrainData, config_for, export_model, load_model, predict, simulate_labels, train
from clarinet.data.seeding import generator
from clarinet.export.models import save_model
from clarinet.networks.classifier import SOURCE, TARGET
from clarinet.networks.heads import CommonSpaceHead
from clarinet.networks.layers import DomainInForce
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.doing import Doing
from clarinet.recipes.errors import CheckpointMismatch, ConfigError, Interrupted
from clarinet.run.training import EpochReport, TrainResult

pytestmark = pytest.mark.long
COLOURS = torch.tensor([[220, 30, 30], [30, 200, 40], [40, 60, 220]])


def pictures(count: int, seed: int, dark: float) -> tuple[Tensor, Tensor]:
    """Coloured noise, a colour for each of three classes, in a domain that is darker by a factor."""
    draws = generator(seed, "pictures")
    classes = torch.arange(count) % 3
    noise = torch.randint(-25, 26, (count, 40, 40, 3), generator=draws)
    return ((COLOURS[classes][:, None, None] + noise).clamp(0, 255) * dark).to(torch.uint8), classes


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that stands for trained weights: a small network's first ones."""
    path = tmp_path_factory.mktemp("weights") / "net.pth"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        torch.save(torchvision.models.get_model("mobilenet_v3_small", weights=None).state_dict(), path)
    return path


@pytest.fixture(scope="module")
def config(weights: Path) -> TrainConfig:
    return config_for(
        "clarinet-plus",
        "photographs",
        architecture="mobilenet_v3_small",
        pretrained=str(weights),
        image_size=32,
        fine_tuning_turns=0,
        epochs=4,
    )


@pytest.fixture(scope="module")
def data() -> TrainData:
    source, classes = pictures(90, 1, 1.0)
    target, others = pictures(75, 2, 0.6)
    labels = simulate_labels(classes, num_classes=3, seed=0, setting="cc")
    return TrainData.of(labels, source, target_images=target, test=(target.clone(), others))


@pytest.fixture(scope="module")
def whole(config: TrainConfig, data: TrainData) -> TrainResult:
    """A run that nothing disturbed."""
    return train(config, data)


def test_a_run_learns_both_domains_and_its_model_says_what_it_reported(
    config: TrainConfig, data: TrainData, tmp_path: Path
) -> None:
    reports: list[EpochReport] = []

    result = train(config, data, on_epoch=reports.append)

    assert [report.epoch for report in reports] == [1, 2, 3, 4]
    assert set(reports[0].losses) == {"contradiction"}
    assert result.computed_in == "float32"
    assert result.target_accuracy is not None
    assert result.target_accuracy > 0.95
    assert data.target_test_images is not None
    assert data.target_test_labels is not None
    assert isinstance(data.target_test_images, Tensor)
    classes = predict(result, data.target_test_images).argmax(1)
    assert float((classes == data.target_test_labels).float().mean()) == result.target_accuracy

    save_model(tmp_path / "model.safetensors", result)
    again = predict(load_model(tmp_path / "model.safetensors"), data.target_test_images)
    assert torch.equal(again.argmax(1), classes)


def test_its_graph_predicts_as_the_model_does(data: TrainData, tmp_path: Path) -> None:
    """Of a network whose export takes a fifth of the time."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        save_file(timm.create_model("test_resnet").state_dict(), tmp_path / "net.safetensors")
    result = train(
        config_for(
            "clarinet-plus",
            "photographs",
            architecture="timm/test_resnet",
            pretrained=str(tmp_path / "net.safetensors"),
            image_size=32,
            fine_tuning_turns=0,
            epochs=4,
        ),
        data,
    )

    export_model(tmp_path, result, data)

    assert isinstance(result.model.predictor, CommonSpaceHead)
    assert isinstance(data.target_images, Tensor)
    ours = predict(result, data.target_images)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (found,) = session.run(None, {"images": data.target_images.numpy()})
    assert float(ours.std(0).max()) > 0.01
    assert np.allclose(found, ours.numpy(), atol=1e-3)


def test_the_targets_own_images_score_by_features_that_are_there(
    config: TrainConfig, data: TrainData, whole: TrainResult
) -> None:
    assert isinstance(data.target_test_labels, Tensor)
    unscored = replace(data, target_test_images=None, target_test_labels=None)
    told: list[Doing] = []

    known = train(config, replace(unscored, target_labels=data.target_test_labels), on_doing=told.append)
    unknown = train(config, unscored)

    assert {doing.total for doing in told} == {90 + 75}
    assert known.target_accuracy == whole.target_accuracy
    assert unknown.target_accuracy is None
    for name, values in known.model.state_dict().items():
        assert torch.equal(values, unknown.model.state_dict()[name])


def test_a_run_goes_on_from_its_features_to_the_same_bits(
    config: TrainConfig, data: TrainData, whole: TrainResult, tmp_path: Path
) -> None:
    asked: list[EpochReport] = []
    with pytest.raises(Interrupted):
        train(
            config,
            data,
            checkpoint=tmp_path / "run",
            on_epoch=asked.append,
            should_stop=lambda: len(asked) == 2,
        )

    result = train(config, data, checkpoint=tmp_path / "run")

    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, result.model.state_dict()[name]), name


def test_a_run_says_how_far_it_is_with_its_features_and_nothing_when_they_are_kept(
    config: TrainConfig, data: TrainData, tmp_path: Path
) -> None:
    told: list[Doing | int] = []
    again: list[Doing] = []
    fewer = config.changed(epochs=1)

    train(
        fewer,
        data,
        checkpoint=tmp_path / "run",
        on_doing=told.append,
        on_epoch=lambda report: told.append(report.epoch),
    )
    train(fewer, data, checkpoint=tmp_path / "run", on_doing=again.append)

    # 90 images of the source, 75 of the target and 75 to test it, each domain by 64
    dones = [0, 64, 90, 154, 165, 229, 240]
    assert told == [*(Doing("features", done, 240) for done in dones), 1]
    assert again == []


def test_images_that_train_and_score_are_seen_once(
    config: TrainConfig, data: TrainData, whole: TrainResult, tmp_path: Path
) -> None:
    same = replace(data, target_test_images=data.target_images)
    told: list[Doing] = []

    once = train(config, same, checkpoint=tmp_path / "run", on_doing=told.append)

    assert told[-1] == Doing("features", 165, 165)
    assert [one.target_accuracy for one in once.reports] == [one.target_accuracy for one in whole.reports]
    again = train(config, same, checkpoint=tmp_path / "run")
    assert again.target_accuracy == once.target_accuracy


def test_a_run_that_is_interrupted_in_its_features_begins_them_anew(
    config: TrainConfig, data: TrainData, tmp_path: Path
) -> None:
    told: list[int] = []

    def asks(stop_after: int) -> TrainResult:
        told.clear()
        return train(
            config.changed(epochs=1),
            data,
            checkpoint=tmp_path / "run",
            on_doing=lambda doing: told.append(doing.done),
            should_stop=lambda: len(told) >= stop_after,
        )

    with pytest.raises(Interrupted):
        asks(stop_after=3)
    assert told == [0, 64, 90]
    assert not (tmp_path / "run").exists()

    asks(stop_after=100)
    assert told == [0, 64, 90, 154, 165, 229, 240]


def test_what_is_raised_while_features_are_told_ends_the_run(
    config: TrainConfig, data: TrainData, tmp_path: Path
) -> None:
    def lose(doing: Doing) -> None:
        if doing.done:
            raise ConnectionError(doing.done)

    with pytest.raises(ConnectionError, match="64"):
        train(config, data, checkpoint=tmp_path / "run", on_doing=lose)
    assert not (tmp_path / "run").exists()


@pytest.fixture(scope="module")
def tuned(config: TrainConfig) -> TrainConfig:
    """Five rounds: one, one and three, with two turns of three steps between them."""
    return config.changed(
        epochs=5,
        fine_tuning_turns=2,
        fine_tuning_steps=3,
        fine_tuning_size=32,
        image_size=40,
        batch_size=8,
        learning_rate=1e-3,
        average_decay=0.5,
    )


@pytest.fixture(scope="module")
def whole_tuned(tuned: TrainConfig, data: TrainData) -> TrainResult:
    """A tuned run that nothing disturbed."""
    return train(tuned, data)


class TestFineTuning:
    def test_it_moves_the_network_and_leaves_its_statistics(
        self, tuned: TrainConfig, data: TrainData
    ) -> None:
        before = train(tuned.changed(fine_tuning_turns=0), data).model.extractor.state_dict()
        told: list[Doing] = []

        result = train(tuned, data, on_doing=told.append)

        after = result.model.extractor.state_dict()
        moved = {name for name, values in after.items() if not torch.equal(values, before[name])}
        assert {name for name, _ in result.model.extractor.named_parameters()} <= moved
        assert not {name for name in moved if name.endswith((".mean", ".variance"))}
        assert [sorted(report.losses) for report in result.reports] == [
            ["contradiction"],
            ["contradiction", "fine_tuning"],
            ["contradiction", "fine_tuning"],
            ["contradiction"],
            ["contradiction"],
        ]
        assert [report.epoch for report in result.reports] == [1, 2, 3, 4, 5]
        steps = [doing.done for doing in told if doing.kind == "fine-tuning"]
        assert steps == [0, 1, 2, 3, 0, 1, 2, 3]

    def test_its_model_says_what_it_reported(self, whole_tuned: TrainResult, data: TrainData) -> None:
        result = whole_tuned

        assert isinstance(data.target_test_images, Tensor)
        assert data.target_test_labels is not None
        classes = predict(result, data.target_test_images).argmax(1)
        assert float((classes == data.target_test_labels).float().mean()) == result.target_accuracy

    @pytest.mark.parametrize("rounds", [1, 2])
    def test_an_interrupted_run_ends_with_the_same_bits(
        self, tuned: TrainConfig, data: TrainData, whole_tuned: TrainResult, tmp_path: Path, rounds: int
    ) -> None:
        whole, asked = whole_tuned, list[EpochReport]()
        stop = {"on_epoch": asked.append, "should_stop": lambda: len(asked) == rounds}
        with pytest.raises(Interrupted):
            train(tuned, data, checkpoint=tmp_path / "run", **stop)  # type: ignore[arg-type]  # of two kinds

        result = train(tuned, data, checkpoint=tmp_path / "run")

        for name, value in whole.model.state_dict().items():
            assert torch.equal(value, result.model.state_dict()[name]), name
        assert [report.losses for report in result.reports] == [report.losses for report in whole.reports]

    def test_a_step_brings_the_network_to_the_classes(self, tuned: TrainConfig, data: TrainData) -> None:
        longer = tuned.changed(epochs=2, fine_tuning_turns=1, fine_tuning_steps=30, warmup=0.1)
        losses = [train(longer, data).reports[1].losses["fine_tuning"]]
        losses.append(train(longer.changed(learning_rate=0.0), data).reports[1].losses["fine_tuning"])

        assert losses[0] < 0.85 * losses[1]

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"kept_features": False}, "only a network of kept features"),
            ({"epochs": 2}, "2 turns of fine-tuning need 3 rounds"),
            ({"fine_tuning_size": 15}, "needs 16 or more"),
        ],
    )
    def test_what_it_needs_is_said(self, tuned: TrainConfig, changes: dict[str, int], words: str) -> None:
        with pytest.raises(ConfigError, match=words):
            tuned.changed(**changes)


def test_weights_that_give_no_numbers_are_refused(
    config: TrainConfig, data: TrainData, weights: Path, tmp_path: Path
) -> None:
    tensors = torch.load(weights, weights_only=True)
    tensors["features.12.1.bias"].fill_(torch.nan)
    torch.save(tensors, tmp_path / "net.pth")

    with pytest.raises(ConfigError, match="its trained weights are damaged"):
        train(config.changed(pretrained=str(tmp_path / "net.pth")), data)


def test_the_head_has_a_slope_where_a_feature_is_zero() -> None:
    head = CommonSpaceHead(4, 2, DomainInForce())
    features = torch.tensor([[0.0, 1.0, 0.0, -4.0]], requires_grad=True)

    head(features).sum().backward()

    assert features.grad is not None
    assert bool(features.grad.isfinite().all())
    assert head.placed(features).tolist()[0] == pytest.approx([0.0, 5**-0.5, 0.0, -2 * 5**-0.5])


def test_features_of_other_weights_are_refused(
    config: TrainConfig, data: TrainData, weights: Path, tmp_path: Path
) -> None:
    train(config, data, checkpoint=tmp_path / "run")
    tensors = torch.load(weights, weights_only=True)
    tensors["features.0.0.weight"] += 1
    torch.save(tensors, tmp_path / "net.pth")

    other = config.changed(pretrained=str(tmp_path / "net.pth"))
    with pytest.raises(CheckpointMismatch):
        train(other, data, checkpoint=tmp_path / "run")
    Path(config.network.pretrained).replace(tmp_path / "aside.pth")
    try:
        torch.save(tensors, config.network.pretrained)
        with pytest.raises(CheckpointMismatch, match="other trained weights"):
            train(config, data, checkpoint=tmp_path / "run")
    finally:
        (tmp_path / "aside.pth").replace(config.network.pretrained)


def test_kept_features_needs_a_network_for_photographs_with_trained_weights(config: TrainConfig) -> None:
    with pytest.raises(ConfigError, match="needs a network for photographs"):
        replace(config, network=replace(config.network, architecture="lenet", pretrained=""))
    for other in (
        {"complementary_loss": "forward"},
        {"pretraining_share": 0.2},
    ):
        with pytest.raises(ConfigError):
            config.changed(**other)
    with pytest.raises(ConfigError, match="finds classes without the losses of clarinet"):
        config_for(
            "clarinet",
            "photographs",
            pretrained=config.network.pretrained,
            kept_features=True,
        )
    with pytest.raises(ConfigError, match="there are none"):
        replace(config, network=replace(config.network, pretrained=""))


def test_a_common_space_takes_off_what_all_images_of_a_domain_share() -> None:
    draws = generator(0, "features")
    features = torch.rand(50, 12, generator=draws)
    head = CommonSpaceHead(12, 3, DomainInForce())
    # Roots that are stretched and moved come to the same places.
    moved = (features.sqrt() * 3 + 2).square()

    places, others = head.fit_space(features, moved)

    assert torch.allclose(places, others, atol=1e-4)
    assert torch.allclose(places.norm(dim=1), torch.ones(50), atol=1e-5)
    for domain, given in ((SOURCE, features), (TARGET, moved)):
        head.domain.number = domain
        assert torch.allclose(head.placed(given), places, atol=1e-4)
        assert torch.allclose(head(given), F.linear(places, head.weight, head.bias), atol=1e-4)
