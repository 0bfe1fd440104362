"""`clarinet predict` and `clarinet evaluate`, on a trained model and image files."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from clarinet import TrainResult, load_model, model_card, predict, save_model, train
from clarinet.commands.cli import main
from clarinet.recipes.binomial import clopper_pearson
from tests.clarinet.factories import in_memory, make_config, make_data

DATA = make_data(40)
IMAGES = in_memory(DATA.target_images)
NAMES = ["low", "middle", "=top"]


@pytest.fixture(scope="module")
def result() -> TrainResult:
    return train(make_config(), DATA)


@pytest.fixture
def model(result: TrainResult, tmp_path: Path) -> Path:
    """The folder of a model whose classes have names."""
    save_model(tmp_path / "m" / "model.safetensors", result, card=model_card(result, class_names=NAMES))
    return tmp_path / "m"


@pytest.fixture
def numbered(result: TrainResult, tmp_path: Path) -> Path:
    """The folder of one without names."""
    save_model(tmp_path / "n" / "model.safetensors", result)
    return tmp_path / "n"


def write(folder: Path, names: list[str]) -> None:
    """An image of bars for each name, in its order."""
    for name, image in zip(names, IMAGES, strict=False):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image.numpy()).save(folder / name)


def table(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_the_table_has_a_row_for_each_image_and_a_column_for_each_class(model: Path, tmp_path: Path) -> None:
    write(tmp_path / "i", ["b.png", "a/deep/down/c.png", "a, b.png"])
    (tmp_path / "i" / "notes.txt").write_text("no image")

    words = ["predict", "--model", str(model), "--images", str(tmp_path / "i"), "--device", "cpu"]
    status = main([*words, "--out", str(tmp_path / "out.csv")])

    head, *rows = table(tmp_path / "out.csv")
    assert status == 0
    assert head == ["file", "class", "probability_low", "probability_middle", "probability_=top"]
    assert [row[0] for row in rows] == ["a, b.png", "a/deep/down/c.png", "b.png"]
    wanted = predict(load_model(model / "model.safetensors"), IMAGES[[2, 1, 0]])
    assert np.allclose([[float(cell) for cell in row[2:]] for row in rows], wanted, atol=1e-6)
    assert [row[1] for row in rows] == [NAMES[k] for k in wanted.argmax(1)]


def test_a_single_file_and_a_model_without_names(
    numbered: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, ["one.png"])
    words = ["predict", "--model", str(numbered / "model.safetensors"), "--images", str(tmp_path / "one.png")]

    assert main([*words, "--out", str(tmp_path / "out.csv")]) == 0

    head, row = table(tmp_path / "out.csv")
    assert head[2:] == ["probability_0", "probability_1", "probability_2"]
    assert row[0] == "one.png"
    assert "knows its 3 classes by numbers alone" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("images", "told"),
    [("nowhere", "neither a folder of images nor a file"), ("m", "holds no images"), ("bad.png", "bad.png")],
)
def test_what_cannot_be_predicted_is_refused_and_nothing_written(
    model: Path, tmp_path: Path, images: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.png").write_bytes(b"no png")
    words = ["predict", "--model", str(model), "--images", str(tmp_path / images)]

    assert main([*words, "--out", str(tmp_path / "out.csv")]) == 1

    assert told in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


def test_a_folder_without_a_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--images", str(tmp_path), "--model", str(tmp_path)]

    assert main(["predict", *words, "--out", str(tmp_path / "out.csv")]) == 1
    assert main(["evaluate", *words]) == 1

    assert capsys.readouterr().err.count("model.safetensors cannot be read") == 2


def evaluated(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["evaluate", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def labelled(model: Path) -> list[int]:
    """What the model takes the images for."""
    return predict(load_model(model / "model.safetensors"), IMAGES).argmax(1).tolist()


def test_accuracy_interval_classes_and_confusion(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twenty images in the class that the model takes them for, and five in the next one."""
    classes = [(k + (i < 5)) % 3 for i, k in enumerate(labelled(model)[:25])]
    folders = ["Low ", "MIDDLE", "=top"]  # as people may spell them
    write(tmp_path / "i" / "test", [f"{folders[k].strip()}/{i:02}.png" for i, k in enumerate(classes)])

    found = evaluated(capsys, "--model", str(model), "--images", str(tmp_path / "i"))

    assert found["images"] == 25
    assert found["accuracy"] == pytest.approx(20 / 25)
    assert (found["low"], found["high"]) == clopper_pearson(20, 25)
    assert found["classes"] == NAMES
    predicted = labelled(model)[:25]
    pairs = list(zip(classes, predicted, strict=True))
    assert found["confusion"] == [[pairs.count((i, j)) for j in range(3)] for i in range(3)]
    assert found["left_out"] == {}


def test_the_tables_say_the_same(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "i", [f"{NAMES[k]}/{i}.png" for i, k in enumerate(labelled(model)[:4])])

    assert main(["evaluate", "--model", str(model), "--images", str(tmp_path / "i")]) == 0

    out = capsys.readouterr().out
    assert "accuracy 100.00 % on 4 images, 95 % interval 39.76 to 100.00 %" in out
    assert "images of each class (rows)" in out
    assert any(line.split()[:1] == ["low"] for line in out.splitlines())


def test_classes_that_do_not_match_are_said_and_left_out(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "i", ["low/1.png", "horse/1.png", "horse/2.png", "dog/1.png"])
    words = ["--model", str(model), "--images", str(tmp_path / "i")]

    found = evaluated(capsys, *words)
    main(["evaluate", *words])

    assert found["images"] == 1
    assert found["left_out"] == {"dog": 1, "horse": 2}
    assert found["without_images"] == ["middle", "=top"]
    told = capsys.readouterr().err
    assert "3 images of dog, horse left out: the model knows low, middle, =top" in told
    assert "there is no image of middle, =top" in told


def test_folders_of_numbers_are_the_classes_of_a_model_without_names(
    numbered: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "i", [f"{k:02}/{i}.png" for i, k in enumerate(labelled(numbered)[:6])])

    assert evaluated(capsys, "--model", str(numbered), "--images", str(tmp_path / "i"))["accuracy"] == 1


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["dog/1.png", "cow/1.png"], "none in common; name the folders as the model's classes are called"),
        (["1.png"], "lie in no class folders"),
        (["owl/1.png"], "and a single class as"),
    ],
)
def test_a_folder_that_says_nothing_is_refused(
    model: Path, tmp_path: Path, names: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "i", names)

    assert main(["evaluate", "--model", str(model), "--images", str(tmp_path / "i")]) == 1
    assert told in capsys.readouterr().err
