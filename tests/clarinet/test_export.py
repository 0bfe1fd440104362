"""An ONNX file predicts what PyTorch predicts, from bytes as they come."""

import copy
import json
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn
from torchvision.models.convnext import CNBlock

from clarinet.data.images import normalised, resized
from clarinet.data.npz import load_npz
from clarinet.export.cards import card_digest
from clarinet.export.models import load_model
from clarinet.export.onnx import FromImages, export_model, export_onnx, resize_matrix
from clarinet.networks.classifier import TARGET, Classifier, ModelSpec
from clarinet.networks.layers import DomainBatchNorm
from clarinet.recipes.choices import Architecture, Greying
from clarinet.recipes.errors import CheckpointNotWritten, DataError, ExportError
from clarinet.run.evaluation import predict
from clarinet.run.training import train
from tests.clarinet.exported import COLOUR, DARK_INK, GREY, PHOTO, assert_equal_predictions, make_model, noise
from tests.clarinet.factories import equal_weights, in_memory, make_config, make_data

SHARED_DATA = Path(os.environ.get("CLARINET_DATA", Path(__file__).parents[3] / "shared" / "data"))

CLASSES = ["cat", "dog", "Bär", "cow"]


def settled(model: Classifier, images: Tensor) -> Classifier:
    """With batch statistics of these images and logits that differ between them, as after a training.

    Without, a deep network says the same of every image.
    """
    pixels = normalised(resized(images, model.spec).float() / 255, model.spec.input_normalisation)
    for module in model.modules():
        if isinstance(module, DomainBatchNorm):
            module.momentum = 1.0
    with torch.random.fork_rng(), torch.no_grad():
        model.train()(pixels, TARGET)
        logits = model.eval()(pixels, TARGET)[1]
        model.predictor.weight /= logits.std(0).mean()
    return model


def shorten(model: Classifier) -> None:
    """Leave one block of each stage of a ConvNeXt."""
    stages = [
        module
        for module in model.modules()
        if isinstance(module, nn.Sequential) and all(isinstance(block, CNBlock) for block in module)
    ]
    assert len(stages) == 4
    for stage in stages:
        del stage[1:]


SHAPES: dict[str, tuple[ModelSpec, tuple[int, ...]]] = {
    "grey as it is": (GREY, (28, 28)),
    "grey, shrunk and not square": (GREY, (35, 61)),
    "grey, enlarged": (GREY, (16, 16)),
    "colour as it is": (COLOUR, (28, 28, 3)),
    "colour, shrunk": (COLOUR, (32, 32, 3)),
    "colour images for a grey network": (GREY, (32, 40, 3)),
    "colour images as dark ink": (DARK_INK, (32, 40, 3)),
    "colour images of its size as dark ink": (DARK_INK, (28, 28, 3)),
    "colour images of its size for a grey network": (GREY, (28, 28, 3)),
    "grey images for a colour network": (COLOUR, (20, 28)),
    "photographs": (PHOTO, (48, 64, 3)),
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[ModelSpec, tuple[int, ...]], Path]:
    """The file of a model: one for images of every size, as of a shape the channels alone count."""
    folder = tmp_path_factory.mktemp("exported")

    @cache
    def export(spec: ModelSpec, *planes: int) -> Path:
        path = folder / str(uuid4()) / "model.onnx"
        card = {"classes": CLASSES if spec.num_classes == len(CLASSES) else list("0123456789")}
        export_onnx(path, make_model(spec), image_shape=(40, 36, *planes), card=card)
        return path

    return lambda spec, shape: export(spec, *shape[2:])


class TestPredictions:
    @pytest.mark.long(but=["grey as it is"])
    @pytest.mark.parametrize("case", SHAPES)
    def test_they_are_pytorchs_for_every_batch_size(
        self, case: str, exported: Callable[[ModelSpec, tuple[int, ...]], Path]
    ) -> None:
        spec, shape = SHAPES[case]
        path, model = exported(spec, shape), make_model(spec)

        for count in (0, 1, 7, 513 if spec is not PHOTO else 33):
            assert_equal_predictions(path, model, noise(count, *shape))
        height, width, *planes = shape
        for size in ((height + 9, width - 5), (3, 90)):  # as its card says: any
            assert_equal_predictions(path, model, noise(7, *size, *planes))

    @pytest.mark.parametrize("greying", ["luminance", "ink", "dark-ink"])
    def test_what_is_exported_greys_as_the_model_does(self, greying: Greying) -> None:
        model, images = make_model(replace(GREY, greying=greying)), noise(7, 32, 40, 3)

        with torch.no_grad():
            theirs = FromImages(copy.deepcopy(model), channels=3)(images)

        torch.testing.assert_close(theirs, predict(model, images), atol=1e-4, rtol=0)

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("architecture", "whole"),
        [
            ("dtn", True),
            ("conv-large", True),
            ("convnext_tiny", False),  # of its eighteen blocks, which are alike, one of each width
            # Their export takes over ten seconds each.
            pytest.param("convnext_tiny", True, marks=pytest.mark.slow),
            pytest.param("mobilenet_v3_small", True, marks=pytest.mark.slow),
            pytest.param("efficientnet_b0", True, marks=pytest.mark.slow),
        ],
    )
    def test_those_of_every_other_family_are_too(
        self, architecture: Architecture, whole: bool, tmp_path: Path
    ) -> None:
        images = noise(33, 40, 36, 3)
        norm = architecture != "convnext_tiny"  # which has none
        model = make_model(replace(PHOTO, architecture=architecture, norm_per_domain=norm))
        if not whole:
            shorten(model)
        model = settled(model, images)

        export_onnx(tmp_path / "model.onnx", model, image_shape=(40, 36, 3))

        for count in (1, 7):
            assert_equal_predictions(tmp_path / "model.onnx", model, images[-count:])

    @pytest.mark.long
    def test_a_trained_models_are_too(self, written: Path) -> None:
        model = load_model(written / "model.safetensors")

        assert_equal_predictions(written / "model.onnx", model, in_memory(make_data().target_images))

    @pytest.mark.long
    def test_a_trained_models_of_colour_are_too_and_it_is_left_as_it_is(self, tmp_path: Path) -> None:
        data = make_data(colour_target=True)
        model = train(make_config(average_decay=0.9), data).model.train()
        before = {name: value.clone() for name, value in model.state_dict().items()}

        export_onnx(tmp_path / "model.onnx", model, image_shape=data.target_images.shape[1:])

        assert model.training
        assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
        assert_equal_predictions(tmp_path / "model.onnx", model.eval(), in_memory(data.target_images))

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("name", "spec"), [("mnist", GREY), ("usps_28x28", GREY), ("usps_16x16", GREY), ("mnist_m", COLOUR)]
    )
    @pytest.mark.filterwarnings("ignore::clarinet.recipes.errors.FilesLeftOut")  # of where rows came from
    def test_on_real_digits_too(
        self, name: str, spec: ModelSpec, exported: Callable[[ModelSpec, tuple[int, ...]], Path]
    ) -> None:
        if not (SHARED_DATA / f"{name}.npz").exists():
            pytest.skip(f"no {name}.npz in CLARINET_DATA ({SHARED_DATA})")
        images = load_npz(SHARED_DATA / f"{name}.npz")["x_test"][:400]

        assert_equal_predictions(exported(spec, images.shape[1:]), make_model(spec), images)


@pytest.mark.parametrize(("length", "size"), [(32, 28), (16, 28), (28, 28), (61, 28), (1, 28)])
def test_a_resize_matrix_resizes_as_torch_does(length: int, size: int) -> None:
    pixels = noise(2, 3, length, 5).double()

    ours = resize_matrix(length, size) @ pixels

    torchs = torch.nn.functional.interpolate(pixels, size=(size, 5), mode="bilinear", antialias=True)
    torch.testing.assert_close(ours, torchs, atol=1e-9, rtol=0)


@pytest.fixture(scope="module")
def path(exported: Callable[[ModelSpec, tuple[int, ...]], Path]) -> Path:
    """A model of four named classes, for images of another size."""
    return exported(COLOUR, (40, 36, 3))


class TestFile:
    @pytest.mark.long
    def test_it_takes_bytes_in_any_number_and_size_and_gives_probabilities_alone(self, path: Path) -> None:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

        [taken], [given] = session.get_inputs(), session.get_outputs()
        assert (taken.name, taken.type, taken.shape) == ("images", "tensor(uint8)", ["N", "H", "W", 3])
        assert (given.name, given.type, given.shape) == ("probabilities", "tensor(float)", ["N", 4])

    @pytest.mark.long
    def test_its_metadata_names_classes_and_card(self, path: Path) -> None:
        properties = (
            onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
            .get_modelmeta()
            .custom_metadata_map
        )

        assert json.loads(properties["classes"]) == CLASSES
        assert properties["card"] == card_digest({"classes": CLASSES})

    @pytest.mark.long
    def test_it_is_one_file_of_standard_operators(self, path: Path) -> None:
        assert [item.name for item in path.parent.iterdir()] == ["model.onnx"]
        model = onnx.load(path)
        assert [(item.domain, item.version) for item in model.opset_import] == [("", 18)]


def contents(folder: Path) -> dict[str, bytes]:
    """All files, hidden ones too."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """The system refuses larger files meanwhile, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a model, to be copied to where another one is to take their place."""
    folder, data = tmp_path_factory.mktemp("written"), make_data()
    export_model(folder, train(make_config(average_decay=0.9), data), data)
    return folder


class TestRefusals:
    @pytest.mark.parametrize("shape", [(28,), (28, 28, 2), (0, 28), (28, 28, 3, 1)])
    def test_impossible_shapes(self, shape: tuple[int, ...], tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="image_shape"):
            export_onnx(tmp_path / "model.onnx", make_model(GREY), image_shape=shape)

    def test_a_card_of_another_model(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="names 4 classes, but the model has 10"):
            export_onnx(tmp_path / "model.onnx", make_model(GREY), card={"classes": CLASSES})

    def test_a_missing_package_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("clarinet.export.onnx.find_spec", {"onnx": True}.get)

        with pytest.raises(ExportError, match="onnxscript"):
            export_onnx(tmp_path / "model.onnx", make_model(GREY))

    def test_no_older_model_stays_beside_new_weights(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("clarinet.export.onnx.find_spec", {"onnx": True}.get)
        (tmp_path / "model.onnx").write_bytes(b"an older model")
        data = make_data()

        with pytest.raises(ExportError):
            export_model(tmp_path, train(make_config(epochs=1), data), data)

        assert sorted(path.name for path in tmp_path.iterdir()) == ["MODEL_CARD.md", "model.safetensors"]

    @pytest.mark.long
    def test_a_disk_that_refuses_the_weights_leaves_the_model_of_before(
        self, written: Path, tmp_path: Path
    ) -> None:
        data = make_data()
        shutil.copytree(written, tmp_path, dirs_exist_ok=True)
        before = contents(tmp_path)

        with (
            files_of_at_most(len(before["model.safetensors"]) // 2),
            pytest.raises(CheckpointNotWritten, match="cannot be written"),
        ):
            export_model(tmp_path, train(make_config(epochs=1, seed=1), data), data)

        assert contents(tmp_path) == before

    @pytest.mark.long
    @pytest.mark.parametrize("failure", [CheckpointNotWritten("full"), KeyboardInterrupt(), MemoryError()])
    def test_new_weights_are_kept_whatever_becomes_of_their_onnx(
        self, failure: BaseException, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        data = make_data()
        shutil.copytree(written, tmp_path, dirs_exist_ok=True)
        result = train(make_config(epochs=1, seed=1), data)

        def fail(*_: Any, **__: Any) -> None:
            raise failure

        monkeypatch.setattr("clarinet.export.onnx.export_onnx", fail)
        with pytest.raises(type(failure)):
            export_model(tmp_path, result, data)

        assert sorted(path.name for path in tmp_path.iterdir()) == ["MODEL_CARD.md", "model.safetensors"]
        assert equal_weights(load_model(tmp_path / "model.safetensors"), result.model)

    def test_a_folder_in_a_files_place_leaves_the_onnx_of_before(self, tmp_path: Path) -> None:
        data = make_data()
        (tmp_path / "model.onnx").write_bytes(b"an older model")
        (tmp_path / "model.safetensors").mkdir()

        with pytest.raises(CheckpointNotWritten):
            export_model(tmp_path, train(make_config(epochs=1), data), data)

        assert (tmp_path / "model.onnx").read_bytes() == b"an older model"
        assert not list(tmp_path.glob(".*"))

    @pytest.mark.long
    def test_a_disk_that_refuses_the_onnx_of_a_first_model_has_its_weights(
        self, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "model.onnx").mkdir()
        data = make_data()
        # A graph that is there already: to make one takes two seconds, and the disk refuses it all the same.
        monkeypatch.setattr("clarinet.export.onnx._graph", lambda *_: onnx.load(written / "model.onnx"))

        with pytest.raises(CheckpointNotWritten):
            export_model(tmp_path, train(make_config(epochs=1), data), data)

        assert load_model(tmp_path / "model.safetensors").spec.num_classes == 3

    @pytest.mark.long
    def test_another_model_takes_all_places(self, written: Path, tmp_path: Path) -> None:
        data = make_data()
        shutil.copytree(written, tmp_path, dirs_exist_ok=True)
        before, result = contents(tmp_path), train(make_config(epochs=1, seed=1), data)

        export_model(tmp_path, result, data)

        assert contents(tmp_path).keys() == before.keys()
        assert all(content != before[name] for name, content in contents(tmp_path).items())
        assert_equal_predictions(tmp_path / "model.onnx", result.model, in_memory(data.target_images))

    def test_a_file_in_the_folders_place_is_a_sentence(self, tmp_path: Path) -> None:
        (tmp_path / "model").write_text("a file")
        data = make_data()

        with pytest.raises(CheckpointNotWritten):
            export_model(tmp_path / "model", train(make_config(epochs=1), data), data)

    @pytest.mark.long
    def test_what_the_exporter_cannot_write_is_a_sentence(self, tmp_path: Path) -> None:
        def unwritable(input: Tensor) -> Tensor:
            return torch.from_numpy(np.linalg.pinv(input.numpy()))

        model = make_model(GREY)
        model.predictor.forward = unwritable  # type: ignore[method-assign]

        with pytest.raises(ExportError, match="cannot be written as ONNX"):
            export_onnx(tmp_path / "model.onnx", model)

        assert list(tmp_path.iterdir()) == []
