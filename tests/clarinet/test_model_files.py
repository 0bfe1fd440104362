"""A saved model: loaded it predicts the same, and another file in its place is refused in words."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from clarinet.export import models
from clarinet.export.onnx import export_model, export_onnx
from clarinet.recipes.errors import CheckpointError, Interrupted
from clarinet.run import tensor_files
from clarinet.run.evaluation import predict
from clarinet.run.training import TrainResult, train
from tests.clarinet.factories import make_config, make_data


@pytest.fixture
def result() -> TrainResult:
    return train(make_config(epochs=1), make_data(colour_target=True))


def test_a_saved_model_predicts_identically(result: TrainResult, tmp_path: Path) -> None:
    images = make_data(colour_target=True).target_images

    models.save_model(tmp_path / "model.safetensors", result)
    loaded = models.load_model(tmp_path / "model.safetensors")

    assert torch.equal(predict(loaded, images), predict(result, images))


@pytest.mark.long
def test_paths_may_be_text(tmp_path: Path) -> None:
    checkpoint, model, data = str(tmp_path / "c"), str(tmp_path / "m"), make_data()

    with pytest.raises(Interrupted) as caught:
        train(make_config(), data, checkpoint=checkpoint, should_stop=lambda: True)
    result = train(make_config(epochs=1), data)
    models.save_model(model, result)
    export_model(str(tmp_path / "folder"), result, data)
    export_onnx(str(tmp_path / "m.onnx"), result.model)

    assert caught.value.checkpoint == Path(checkpoint)
    assert Path(checkpoint).exists()
    assert models.load_card(model)["seed"] == 0
    assert models.load_model(str(tmp_path / "folder" / "model.safetensors")).spec == result.model.spec
    assert (tmp_path / "m.onnx").exists()


def test_a_checkpoint_is_no_model(tmp_path: Path) -> None:
    train(make_config(epochs=1), make_data(), checkpoint=tmp_path / "c.safetensors")

    with pytest.raises(CheckpointError, match="does not hold a model"):
        models.load_model(tmp_path / "c.safetensors")


def test_a_header_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    header = {tensor_files.HEADER_KEY: "[" * 100_000}
    save_file({"a": torch.ones(1)}, tmp_path / "m.safetensors", metadata=header)

    with pytest.raises(CheckpointError, match="cannot be read: its JSON is nested too deeply"):
        models.load_model(tmp_path / "m.safetensors")


def test_another_format_version_is_refused(
    result: TrainResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensor_files, "FORMAT_VERSION", 2)
    models.save_model(tmp_path / "m.safetensors", result)
    monkeypatch.undo()

    with pytest.raises(CheckpointError, match="format version 2, not 1"):
        models.load_model(tmp_path / "m.safetensors")


def test_weights_that_do_not_fit_are_refused(result: TrainResult, tmp_path: Path) -> None:
    header = {"spec": result.model.spec.to_dict() | {"num_classes": 7}}
    tensor_files.write_tensors(tmp_path / "m.safetensors", result.model.state_dict(), header, kind="model")

    with pytest.raises(CheckpointError, match="does not fit"):
        models.load_model(tmp_path / "m.safetensors")


def test_weights_that_are_damaged_are_refused_with_their_card(result: TrainResult, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    models.save_model(path, result)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)

    for read in (models.load_model, models.load_card):
        with pytest.raises(CheckpointError, match="is damaged"):
            read(path)


def test_a_card_that_is_damaged_is_refused_with_its_weights(result: TrainResult, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    models.save_model(path, result)
    content = path.read_bytes()
    card = content.index(b"card")
    seed = card + content[card:].index(b"seed")
    path.write_bytes(content[:seed] + b"sead" + content[seed + 4 :])

    for read in (models.load_model, models.load_card):
        with pytest.raises(CheckpointError, match="header says other things"):
            read(path)
