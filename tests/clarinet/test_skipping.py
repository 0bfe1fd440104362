"""Image files that cannot be read: all are named, and the others can go on without them."""

from pathlib import Path

import pytest
from PIL import Image

from clarinet import load_folder
from clarinet.recipes.errors import DataError, FilesLeftOut
from tests.clarinet.factories import in_memory


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes with two images each, and three files that are none."""
    for name in ("cat/1", "cat/2", "dog/1", "dog/2"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("L", (16, 16), 90).save(tmp_path / f"{name}.png")
    (tmp_path / "cat" / "3.png").write_bytes(b"broken")
    (tmp_path / "dog" / "3.png").write_bytes((tmp_path / "dog" / "1.png").read_bytes()[:50])
    (tmp_path / "stray.png").write_bytes((tmp_path / "dog" / "1.png").read_bytes())
    return tmp_path


def test_all_are_named(folder: Path) -> None:
    with pytest.raises(DataError, match=r"stray\.png"):
        load_folder(folder, side=28)
    (folder / "stray.png").unlink()

    with pytest.raises(DataError, match=r"2 files are not taken:\n.*cat/3.png.*\n.*dog/3.png"):
        load_folder(folder, side=None)


def test_the_others_go_on_without_them(folder: Path) -> None:
    with pytest.warns(FilesLeftOut, match=r"3 files left out\..*stray.*cat/3.png.*dog/3.png"):
        arrays, classes = load_folder(folder, side=28, skip_bad=True)

    assert classes == ["cat", "dog"]
    assert in_memory(arrays["x_train"]).shape == (4, 28, 28)
    assert arrays["y_train"].tolist() == [0, 0, 1, 1]


def test_a_list_of_classes_gives_their_order(folder: Path) -> None:
    (folder / "classes.txt").write_text("dog\nowl\ncat\n")
    (folder / "stray.png").unlink()
    for name in ("cat", "dog"):
        (folder / name / "3.png").unlink()

    arrays, classes = load_folder(folder, side=28)

    assert classes == ["dog", "owl", "cat"]
    assert arrays["y_train"].tolist() == [2, 2, 0, 0]
