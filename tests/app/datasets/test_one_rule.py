"""The same files given to the application's intake and to the library: one rule decides on both sides."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from app.datasets.intake.arrays import read_arrays
from app.datasets.intake.folders import read_folders
from app.datasets.intake.pictures import picture_of_file
from app.datasets.intake.zips import open_archive
from clarinet import load_folder, load_npz
from clarinet.files.pictures import decoded
from clarinet.files.refusal import Refused
from tests.app.datasets.files import animation, npy, npz_of, picture, profile, zip_of
from tests.app.datasets.files import images as pixels
from tests.clarinet.factories import in_memory

Found = dict[str, list[tuple[str | None, int]]]  # by split: class and first pixel of each image


def by_the_application(files: Mapping[str, bytes], folder: Path) -> Found:
    """What the import of a zip of these files makes of them."""
    (folder / "upload.zip").write_bytes(zip_of(files))
    found: Found = {}
    with open_archive(folder / "upload.zip", "upload.zip") as archive:
        reading = read_folders(archive)
        for incoming in (*reading.refused, *reading.pictures):
            if isinstance(incoming, Refused):
                raise incoming
            names = reading.class_names or []
            class_name = None if incoming.true_class is None else names[incoming.true_class]
            pixels = np.asarray(Image.open(io.BytesIO(incoming.picture.data)))
            found.setdefault(incoming.split, []).append((class_name, int(pixels.flat[0])))
    return found


def by_the_library(files: Mapping[str, bytes], folder: Path) -> Found:
    """What `load_folder` makes of a folder with these files."""
    for path, data in files.items():
        (folder / "unpacked" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "unpacked" / path).write_bytes(data)
    arrays, classes = load_folder(folder / "unpacked", side=None)
    found: Found = {}
    for split in ("train", "test"):
        if f"x_{split}" not in arrays:
            continue
        images = in_memory(arrays[f"x_{split}"])
        labels = arrays[f"y_{split}"].tolist() if f"y_{split}" in arrays else [None] * len(images)
        names = [None if label is None else classes[label] for label in labels]
        found[split] = [(name, int(image.flatten()[0])) for name, image in zip(names, images, strict=True)]
    return found


def images(*paths: str) -> dict[str, bytes]:
    """Grey images of one size under these paths, each with a first pixel of its own, from 10 on."""
    return {path: picture(mode="L", shade=10 + place) for place, path in enumerate(paths)}


CAT, DOG = ("cat", 10), ("dog", 11)
TAKEN: dict[str, tuple[dict[str, bytes], Found]] = {
    "notes beside images": (
        {**images("cat/1.png", "dog/1.png"), "classes.txt": b"cat\ndog\n", "cat/info.json": b"{}"},
        {"train": [CAT, DOG]},
    ),
    "hidden files and folders": (
        {
            **images("cat/1.png", "dog/1.png", ".ipynb_checkpoints/1-checkpoint.png", "cat/.1.png.swp"),
            "cat/@eaDir/1.png/thumb.jpg": picture("JPEG"),
            "cat/.gitkeep": b"",
            "dog/Thumbs.db": b"x",
            "__MACOSX/cat/._1.png": b"x",
        },
        {"train": [CAT, DOG]},
    ),
    "a target without classes and a test set with them": (
        images("train/1.png", "train/2.png", "test/cat/3.png", "test/dog/4.png"),
        {"train": [(None, 10), (None, 11)], "test": [("cat", 12), ("dog", 13)]},
    ),
    "wrapped, with capitals, without endings": (
        images("pets/Train/cat/1", "pets/Train/dog/1.PNG", "pets/TEST/dog/10.png", "pets/TEST/dog/9.png"),
        {"train": [CAT, DOG], "test": [("dog", 12), ("dog", 13)]},
    ),
    "numbers and words": (
        images("10/1.png", "9/1.png", "dog/1.png", "dog house/1.png", "äpfel/1.png"),
        {"train": [("10", 10), ("9", 11), ("dog house", 13), ("dog", 12), ("äpfel", 14)]},
    ),
}
REFUSED = {
    "alike but for case": (
        images("Cat/1.png", "cat/2.png"),
        '"cat" is the same class name as "Cat" but for upper and lower case',
    ),
    "alike but for a space": (
        images("cat/1.png", "cat /2.png"),
        '"cat " is the same class name as "cat" but',
    ),
    "alike but for what nobody sees": (
        images("cat/1.png", "cat\u200b/2.png"),
        'is the same class name as "cat" but for',
    ),
    "one file on other systems": (
        images("cat/A.png", "cat/a.png"),
        '"cat/a.png" has the same name as "cat/A.png" but for upper and lower case or accents.',
    ),
    "too deep": (images("cat/1.png", "dog/old/2.png"), '"dog/old/2.png" lies too deep in'),
    "no image by its name": ({**images("cat/1.png"), "cat/drawing.svg": b"<svg/>"}, 'drawing.svg" is not '),
    "beside the class folders": (
        images("cat/1.png", "2.png", "dog/1.png"),
        '"2.png" lies outside the class folders; put every image into one, or none.',
    ),
}


@pytest.mark.parametrize(("files", "expected"), TAKEN.values(), ids=TAKEN.keys())
def test_both_sides_find_the_same_images_in_a_folder(
    files: dict[str, bytes], expected: Found, tmp_path: Path
) -> None:
    assert by_the_application(files, tmp_path) == expected
    assert by_the_library(files, tmp_path) == expected


@pytest.mark.parametrize(("files", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_both_sides_refuse_the_same_folder_in_the_same_words(
    files: dict[str, bytes], words: str, tmp_path: Path
) -> None:
    for read in (by_the_application, by_the_library):
        with pytest.raises(Refused) as refusal:
            read(files, tmp_path)
        assert words in str(refusal.value)


def saved(image: Image.Image, format_: str, **options: Any) -> bytes:
    """An image as a file."""
    out = io.BytesIO()
    image.save(out, format_, **options)
    return out.getvalue()


RED, SEEN = (200, 30, 30), (30, 200, 30)  # what a file stores, and what its profile makes people see
GREY = 118
UPSIDE = Image.Exif()
UPSIDE[0x0112] = 3


def two_halves() -> Image.Image:
    """Red above blue, as it is stored."""
    picture_ = Image.new("RGB", (8, 8), RED)
    picture_.paste((0, 0, 200), (0, 4, 8, 8))
    return picture_


PICTURES: dict[str, tuple[bytes, tuple[int, ...] | int]] = {  # and the colour at its upper left corner
    "a profile": (saved(Image.new("RGB", (8, 8), RED), "PNG", icc_profile=profile(swapped=True)), SEEN),
    "a profile of a JPEG": (
        saved(Image.new("RGB", (8, 8), RED), "JPEG", quality=100, icc_profile=profile(swapped=True)),
        SEEN,
    ),
    "a profile and a palette": (
        saved(Image.new("RGB", (8, 8), RED).quantize(2), "PNG", icc_profile=profile(swapped=True)),
        SEEN,
    ),
    "a profile and nothing on it": (
        saved(Image.new("RGBA", (8, 8), (*RED, 0)), "PNG", icc_profile=profile(swapped=True)),
        (255, 255, 255),
    ),
    "the profile of a screen": (
        saved(Image.new("RGB", (8, 8), RED), "PNG", icc_profile=profile(swapped=False)),
        RED,
    ),
    "a broken profile": (saved(Image.new("RGB", (8, 8), RED), "PNG", icc_profile=b"no profile" * 20), RED),
    "a profile of other colours": (
        saved(Image.new("L", (8, 8), GREY), "PNG", icc_profile=profile(swapped=True)),
        GREY,
    ),
    "an animation": (animation("GIF"), (255, 0, 0)),
    "turned": (saved(two_halves(), "PNG", exif=UPSIDE), (0, 0, 200)),
    "turned, with a palette": (saved(two_halves().quantize(4), "PNG", exif=UPSIDE), (0, 0, 200)),
    "16 bits": (saved(Image.fromarray(np.full((8, 8), 257 * GREY + 128, np.uint16)), "PNG"), GREY),
    "16 bits above a half": (
        saved(Image.fromarray(np.full((8, 8), 257 * GREY + 129, np.uint16)), "PNG"),
        119,
    ),
    "grey with transparency": (saved(Image.new("LA", (8, 8), (0, 0)), "PNG"), 255),
    "inks": (saved(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG", quality=100), (255, 0, 0)),
}


@pytest.mark.parametrize(("data", "expected"), PICTURES.values(), ids=PICTURES.keys())
def test_both_sides_see_the_same_picture(
    data: bytes, expected: tuple[int, ...] | int, tmp_path: Path
) -> None:
    (tmp_path / "picture").write_bytes(data)

    stored = np.asarray(Image.open(io.BytesIO(picture_of_file(data, "picture").data)))
    read = decoded(tmp_path / "picture", side=None)

    np.testing.assert_array_equal(stored, read)
    np.testing.assert_allclose(read[0, 0], expected, atol=2)


BROKEN = {
    "no image": (b"hello", "is not "),
    "cut short": (picture(size=(64, 64))[:200], "is cut short or damaged and cannot be decoded."),
}


@pytest.mark.parametrize(("data", "words"), BROKEN.values(), ids=BROKEN.keys())
def test_both_sides_refuse_a_picture_in_the_same_words(data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(data)

    with pytest.raises(Refused, match=f'picture" {words}'):
        picture_of_file(data, "picture")
    with pytest.raises(Refused, match=f'picture" {words}'):
        decoded(tmp_path / "picture", side=None)


X = pixels(3, 4, 5)
HUGE = np.array([0, 1, 2**64 - 1], np.uint64)  # which a cast to int64 makes -1, for unknown
ARRAYS: dict[str, tuple[dict[str, np.ndarray | bytes], str]] = {
    "labels beyond all integers": ({"x_train": X, "y_train": HUGE}, "has labels outside 0 to "),
    "labels of other images": (
        {"x_train": X, "y_train": np.zeros(2, int)},
        r"has the shape \(2,\), but there are 3 images in x_train",
    ),
    "labels of no images": (
        {"x_train": X, "y_test": np.zeros(2, int)},
        r"has the shape \(2,\), but there are 0 images in x_test",
    ),
    "four colours": ({"x_train": pixels(3, 4, 5, 4)}, r"has the shape \(3, 4, 5, 4\); images must be "),
    "bytes behind the array": (
        {"x_train": npy(X) + b"x"},
        r"claims the shape \(3, 4, 5\) but holds another number of bytes",
    ),
    "objects": ({"x_train": np.array([{}, 1])}, "holds Python objects; only numbers are taken"),
}


@pytest.mark.parametrize(("arrays", "words"), ARRAYS.values(), ids=ARRAYS.keys())
def test_both_sides_refuse_an_npz_in_the_same_words(
    arrays: dict[str, np.ndarray | bytes], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(npz_of(**arrays))

    with open_archive(path, "a.npz") as archive, pytest.raises(Refused, match=f'npy" {words}'):
        read_arrays(archive)
    with pytest.raises(Refused, match=f'npy" {words}'):
        load_npz(path)
