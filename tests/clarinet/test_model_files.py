"""A saved model: loaded it predicts the same, and another file in its place is refused in words."""

from pathlib import Path

import pytest
import torch

from clarinet import checkpoints
from clarinet.errors import CheckpointError
from clarinet.evaluation import predict
from clarinet.training import TrainResult, train
from tests.clarinet.factories import make_config, make_data


@pytest.fixture
def result() -> TrainResult:
    return train(make_config(epochs=1), make_data(colour_target=True))


def test_a_saved_model_predicts_identically(result: TrainResult, tmp_path: Path) -> None:
    images = make_data(colour_target=True).target_images

    checkpoints.save_model(tmp_path / "model.safetensors", result)
    loaded = checkpoints.load_model(tmp_path / "model.safetensors")

    assert torch.equal(predict(loaded, images), predict(result, images))


def test_a_checkpoint_is_no_model(tmp_path: Path) -> None:
    train(make_config(epochs=1), make_data(), checkpoint=tmp_path / "c.safetensors")

    with pytest.raises(CheckpointError, match="does not hold a model"):
        checkpoints.load_model(tmp_path / "c.safetensors")


def test_another_format_version_is_refused(
    result: TrainResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "FORMAT_VERSION", 2)
    checkpoints.save_model(tmp_path / "m.safetensors", result)
    monkeypatch.undo()

    with pytest.raises(CheckpointError, match="format version 2, not 1"):
        checkpoints.load_model(tmp_path / "m.safetensors")


def test_weights_that_do_not_fit_are_refused(result: TrainResult, tmp_path: Path) -> None:
    header = {"spec": result.model.spec.to_dict() | {"num_classes": 7}}
    checkpoints.write_tensors(tmp_path / "m.safetensors", result.model.state_dict(), header, kind="model")

    with pytest.raises(CheckpointError, match="does not fit"):
        checkpoints.load_model(tmp_path / "m.safetensors")
