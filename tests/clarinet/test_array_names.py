"""The arrays of an npz: each is understood, or left out by name, or refused with the name that was meant."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clarinet import load_npz
from clarinet.commands.opening import Opened
from clarinet.files.array_names import arrays_by_name
from clarinet.files.label_files import load_labels
from clarinet.files.refusal import Refused
from clarinet.recipes.errors import ColumnsLeftOut, DataError, FilesLeftOut
from tests.app.datasets.files import npz_of
from tests.cases.taking import taken

SIZE = (4, 5)


def shades(*levels: int) -> np.ndarray:
    """Grey images, each of one level."""
    return np.stack([np.full(SIZE, level, np.uint8) for level in levels])


def both(tmp_path: Path, **arrays: np.ndarray) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the application's import and the library make of one npz."""
    (tmp_path / "a.npz").write_bytes(npz_of(**arrays))
    return taken(tmp_path, npz_of(**arrays)), dict(load_npz(tmp_path / "a.npz"))


@pytest.mark.parametrize("word", ["val", "valid", "validation", "dev"])
def test_a_third_split_is_the_test_split_where_there_is_none(word: str, tmp_path: Path) -> None:
    arrays = {"x_train": shades(1, 2), "y_train": np.array([0, 1])}
    third = {f"x_{word}": shades(3), f"y_{word}": np.array([1])}

    with pytest.warns(FilesLeftOut, match=f'"x_{word}" is taken for the test split'):
        result, read = both(tmp_path, **arrays, **third)

    assert (result["counts"], result["class_names"]) == ({"train": 2, "test": 1}, ["0", "1"])
    assert f'"x_{word}" is taken for the test split.' in result["notes"]
    assert (read["x_test"][:, 0, 0].tolist(), read["y_test"].tolist()) == ([3], [1])


def test_beside_a_test_split_it_joins_the_training_images(tmp_path: Path) -> None:
    with pytest.warns(FilesLeftOut, match='"x_val" joins the training images'):
        result, read = both(
            tmp_path,
            x_val=shades(7),
            y_val=np.array([1]),
            x_train=shades(1, 2),
            x_test=shades(9),
            y_test=np.array([0]),
        )

    assert result["counts"] == {"train": 3, "test": 1}
    assert '"x_val" joins the training images, because there is a test split, too.' in result["notes"]
    assert read["x_train"][:, 0, 0].tolist() == [1, 2, 7]
    assert (read["y_train"].tolist(), read["y_test"].tolist()) == ([-1, -1, 1], [0])


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("classnames", "class_names"),
        ("labels_names", "class_names"),
        ("classes", "class_names"),
        ("X_train", "x_train"),
        ("train_images", "x_train"),
        ("test_labels", "y_test"),
        ("val_labels", "y_val"),
        ("ytrain", "y_train"),
        ("labels", "y_train"),
        ("images", "x_train"),
    ],
)
def test_an_array_of_nearly_the_right_name_is_refused_with_that_name(
    name: str, meant: str, tmp_path: Path
) -> None:
    there = {} if meant == "x_train" else {"x_train": shades(1, 2)}
    file = npz_of(**there, **{name: shades(1, 2) if meant[0] == "x" else np.array([0, 1])})
    (tmp_path / "a.npz").write_bytes(file)
    words = (
        f'{name}.npy" is called nearly like {meant}, which the file lacks; call it {meant}, or take it out'
    )

    assert words in taken(tmp_path, file)["refused"]
    with pytest.raises(Refused, match=words):
        load_npz(tmp_path / "a.npz")


def test_other_arrays_are_left_out_by_name(tmp_path: Path) -> None:
    arrays = {"x_train": shades(1), "y_train": np.array([0]), "labels": np.array([5]), "ids": np.array([7])}
    words = (
        '"labels" and "ids" are no such arrays and were left out; expected x_train, y_train, x_test, y_test'
    )

    with pytest.warns(FilesLeftOut, match=words):
        result, read = both(tmp_path, **arrays)

    assert f"{words}." in result["notes"]
    assert set(read) == {"x_train", "y_train"}


def test_arrays_that_numpy_named_are_told_what_they_lack(tmp_path: Path) -> None:
    file = npz_of(arr_0=shades(1), arr_1=np.array([0]))
    (tmp_path / "a.npz").write_bytes(file)
    words = 'neither an array x_train nor an array x_test; it has "arr_0" and "arr_1": name them so'

    assert words in taken(tmp_path, file)["refused"]
    with pytest.raises(DataError, match=words):
        load_npz(tmp_path / "a.npz")


def test_images_that_join_a_split_have_its_shape(tmp_path: Path) -> None:
    file = npz_of(x_train=shades(1), x_val=np.zeros((1, 8, 8), np.uint8), x_test=shades(1))
    (tmp_path / "a.npz").write_bytes(file)

    assert 'x_val.npy" has the shape (1, 8, 8), but x_train.npy (1, 4, 5)' in taken(tmp_path, file)["refused"]
    with pytest.raises(DataError, match="both belong to one split"):
        load_npz(tmp_path / "a.npz")


def test_the_command_line_says_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.npz").write_bytes(npz_of(x_train=shades(1), y_train=np.array([0]), x_val=shades(2)))

    Opened.at(tmp_path / "a.npz")

    assert '"x_val" is taken for the test split' in capsys.readouterr().err


def test_a_label_file_names_the_arrays_that_nobody_reads(tmp_path: Path) -> None:
    columns = {"positions": [0, 1], "kinds": [0, 1], "classes": [0, 1], "weights": [1.0, 1.0]}
    arrays = {name: np.array(values) for name, values in columns.items()}
    (tmp_path / "a.npz").write_bytes(npz_of(**arrays, probability=np.array([0.5, 0.5])))

    with pytest.warns(ColumnsLeftOut, match=r"the column is not read: probability\.npy"):
        load_labels(tmp_path / "a.npz", images=2, num_classes=2)


def test_of_a_split_what_is_called_so_comes_first() -> None:
    named = arrays_by_name(["x_validation", "x_test", "x_dev", "x_train", "y_test", "class_names"])

    assert [part.word for part in named.parts] == ["train", "dev", "validation", "test"]
    assert named.near is None
