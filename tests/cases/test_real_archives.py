"""Archives as systems, cameras and tools make them: the right result, or a sentence that says what to do."""

import io
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from clarinet import load_folder
from tests.app.datasets.files import heic, picture, zip_of
from tests.cases.taking import packed_as, places, taken
from tests.clarinet.factories import in_memory

A, B, C, D = (picture(mode="L", shade=shade) for shade in range(4))
JPEG = picture("JPEG")
Expected = dict[str, tuple[str, str | None]]


def saved(format_: str, mode: str = "RGB") -> bytes:
    """A small picture as a file of some format."""
    out = io.BytesIO()
    Image.new(mode, (8, 8)).save(out, format_)
    return out.getvalue()


def flat(*names: str, split: str = "train") -> Expected:
    """Images without a class."""
    return dict.fromkeys(names, (split, None))


CAMERA = "The folders of a camera (DCIM) were taken for no classes."
ZIPS: dict[str, tuple[dict[str, bytes], Expected, list[str]]] = {
    "macOS: icons of folders and forks": (
        {
            "pets/cat/1.png": A,
            "pets/dog/2.png": B,
            "pets/Icon\r": b"",
            "pets/cat/Icon\r": b"",
            "__MACOSX/pets/._Icon\r": b"x",
            "__MACOSX/pets/cat/._1.png": b"x",
            "pets/.DS_Store": b"x",
        },
        {"pets/cat/1.png": ("train", "cat"), "pets/dog/2.png": ("train", "dog")},
        [],
    ),
    "a folder alone": (
        {"clarinet/1.png": A, "clarinet/2.png": B},
        flat("clarinet/1.png", "clarinet/2.png"),
        [
            '"clarinet" holds all images and is taken for the folder around them, not for a class; '
            "if it is one, put it into a folder train: train/clarinet."
        ],
    ),
    "a camera: raw data beside pictures, a film and its stamp": (
        {
            "DCIM/100CANON/IMG_1.JPG": JPEG,
            "DCIM/100CANON/IMG_1.CR2": b"II*\0raw",
            "DCIM/101CANON/IMG_2.JPG": JPEG,
            "DCIM/101CANON/MVI_3.THM": JPEG,
            "DCIM/101CANON/MVI_3.MP4": b"film",
        },
        flat("DCIM/100CANON/IMG_1.JPG", "DCIM/101CANON/IMG_2.JPG"),
        [
            CAMERA,
            "2 files of a camera were left out (1 .cr2, 1 .thm): raw data beside a picture of the same "
            "name, or the stamp of a film.",
            "1 file is no picture and was left out: 1 .mp4.",
        ],
    ),
    "a telephone": (
        {"DCIM/100APPLE/IMG_1.HEIC": heic(Image.new("RGB", (8, 8))), "DCIM/100APPLE/IMG_1.MOV": b"film"},
        flat("DCIM/100APPLE/IMG_1.HEIC"),
        [CAMERA, "1 file is no picture and was left out: 1 .mov."],
    ),
    "Google Takeout": (
        {
            "Takeout/Google Photos/Cats/1.jpg": JPEG,
            "Takeout/Google Photos/Cats/1.jpg.json": b"{}",
            "Takeout/Google Photos/Dogs/2.jpg": JPEG,
            "Takeout/archive_browser.html": b"<html>",
        },
        {
            "Takeout/Google Photos/Cats/1.jpg": ("train", "Cats"),
            "Takeout/Google Photos/Dogs/2.jpg": ("train", "Dogs"),
        },
        ["2 files are no pictures and were left out: 1 .html, 1 .json."],
    ),
    "other files, by their kinds": (
        {"cat/1.png": A, "dog/2.png": B}
        | {f"cat/{n}.mp4": b"x" for n in range(8)}
        | {f"{n}.pdf": b"x" for n in range(3)}
        | {"labels.xlsx": zip_of({"x": b"1"})},
        {"cat/1.png": ("train", "cat"), "dog/2.png": ("train", "dog")},
        ["12 files are no pictures and were left out: 8 .mp4, 3 .pdf, 1 .xlsx."],
    ),
    "Kaggle: sets in sets of the same name": (
        {
            "archive/training_set/training_set/cats/1.jpg": JPEG,
            "archive/training_set/training_set/dogs/2.jpg": JPEG,
            "archive/test_set/test_set/cats/3.jpg": JPEG,
        },
        {
            "archive/training_set/training_set/cats/1.jpg": ("train", "cats"),
            "archive/training_set/training_set/dogs/2.jpg": ("train", "dogs"),
            "archive/test_set/test_set/cats/3.jpg": ("test", "cats"),
        },
        ['"test_set" is taken for the test split.', '"training_set" is taken for the training split.'],
    ),
    "Kaggle: a word before the split": (
        {"seg_train/seg_train/sea/1.jpg": JPEG, "seg_test/seg_test/sea/2.jpg": JPEG},
        {"seg_train/seg_train/sea/1.jpg": ("train", "sea"), "seg_test/seg_test/sea/2.jpg": ("test", "sea")},
        ['"seg_test" is taken for the test split.', '"seg_train" is taken for the training split.'],
    ),
    "Training, Testing and dev": (
        {"Training/a/1.png": A, "Testing/a/2.png": B, "dev/a/3.png": C},
        {"Training/a/1.png": ("train", "a"), "Testing/a/2.png": ("test", "a"), "dev/a/3.png": ("train", "a")},
        [
            '"Testing" is taken for the test split.',
            '"Training" is taken for the training split.',
            '"dev" joins the training images, because there is a test split, too.',
        ],
    ),
    "train_images and eval, flat": (
        {"train_images/1.png": A, "eval/2.png": B},
        flat("train_images/1.png") | flat("eval/2.png", split="test"),
        [
            '"eval" is taken for the test split; if it is a class, put it into train/eval.',
            '"train_images" is taken for the training split; if it is a class, put it into '
            "train/train_images.",
        ],
    ),
    "classes called dev and testing": (
        {"dev/1.png": A, "testing/2.png": B, "ops/3.png": C},
        {"dev/1.png": ("train", "dev"), "testing/2.png": ("train", "testing"), "ops/3.png": ("train", "ops")},
        [],
    ),
    "classes with such a word in their names": (
        {"train station/1.png": A, "test tube/2.png": B},
        {"train station/1.png": ("train", "train station"), "test tube/2.png": ("train", "test tube")},
        [],
    ),
    "Hugging Face: lines of JSON": (
        {
            "train/1.png": A,
            "train/2.png": B,
            "train/metadata.jsonl": b'{"file_name": "1.png", "label": "cat", "w": [1]}\n'
            b'{"file_name": "2.png", "label": 7}\n',
        },
        {"train/1.png": ("train", "cat"), "train/2.png": ("train", "7")},
        ["Of train/metadata.jsonl the columns w were left out."],
    ),
    "Roboflow: a column for each class": (
        {
            "train/1.jpg": JPEG,
            "train/2.jpg": JPEG,
            "train/_classes.csv": b"filename, cat, dog\n1.jpg, 1, 0\n2.jpg, 0, 1\n",
        },
        {"train/1.jpg": ("train", "cat"), "train/2.jpg": ("train", "dog")},
        ["In train/_classes.csv a column for each class tells the classes: cat and dog."],
    ),
    "a table against the folders": (
        {"cat/1.png": A, "dog/2.png": B, "t.csv": b"file name,Label\ncat/1.png,dog\ndog/2.png,cat\n"},
        {"cat/1.png": ("train", "dog"), "dog/2.png": ("train", "cat")},
        ["2 images are given another class by t.csv than by the folder (cat/1.png); the table counts."],
    ),
    "a folder beside the splits": (
        {"train/cat/1.png": A, "test/cat/2.png": B, "extra/3.png": C},
        {
            "train/cat/1.png": ("train", "cat"),
            "test/cat/2.png": ("test", "cat"),
            "extra/3.png": ("train", "extra"),
        },
        ['"extra" lies beside the splits and is a class of the training images.'],
    ),
    "CVAT: what nobody labelled": (
        {"cat/1.jpg": JPEG, "no_label/2.jpg": JPEG},
        {"cat/1.jpg": ("train", "cat"), "no_label/2.jpg": ("train", "no_label")},
        [
            '"no_label" counts as a class; where it means that nobody knows the class, leave the cell of the '
            "table empty, or say no_label=no_label."
        ],
    ),
    "a table that answers, with paths of another disk": (
        {"x/1.png": A, "t.csv": b"filename,label,antwort\nC:\\me\\x\\1.png,cat,nein\n"},
        {"x/1.png": ("train", "cat")},
        [
            "Of t.csv the columns antwort were left out.",
            "The column antwort of t.csv says yes or no; the class counts as it stands, whatever that says.",
        ],
    ),
    "formats by their endings": (
        {
            "a/1.dds": saved("DDS"),
            "a/2.ppm": saved("PPM"),
            "a/3.tga": saved("TGA"),
            "b/4.jp2": saved("JPEG2000"),
        },
        {
            "a/1.dds": ("train", "a"),
            "a/2.ppm": ("train", "a"),
            "a/3.tga": ("train", "a"),
            "b/4.jp2": ("train", "b"),
        },
        [],
    ),
    "print": (
        {"a/1.tif": saved("TIFF", "CMYK"), "b/2.png": A},
        {"a/1.tif": ("train", "a"), "b/2.png": ("train", "b")},
        ["1 picture was brought from the colours of print (CMYK) to RGB."],
    ),
}


@pytest.mark.parametrize(("files", "expected", "notes"), ZIPS.values(), ids=ZIPS.keys())
def test_the_right_result(
    files: dict[str, bytes], expected: Expected, notes: list[str], tmp_path: Path
) -> None:
    result = taken(tmp_path, zip_of(files))

    assert result.get("refused") is None
    assert places(result) == expected
    assert result["notes"] == notes


def pairs(*named: tuple[str, bytes]) -> bytes:
    """A zip with names as they are, doubled ones, too."""
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w") as archive:
        warnings.simplefilter("ignore")
        for name, data in named:
            info = zipfile.ZipInfo("x")
            info.filename = info.orig_filename = name
            archive.writestr(info, data)
    return out.getvalue()


def test_all_bad_entries_are_named_at_once_and_the_others_can_go_on(tmp_path: Path) -> None:
    bad = [
        "/etc/a.png",
        "C:/b.png",
        "../c.png",
        "cat/a\nb.png",
        "cat//d.png",
        "cat/1.png",
        "CAT/2.PNG",
        "more.zip",
    ]
    contents = [zip_of({"a.png": A}) if name == "more.zip" else A for name in bad]
    data = pairs(("cat/1.png", A), ("cat/2.png", B), ("dog/3.png", C), *zip(bad, contents, strict=True))

    refused = taken(tmp_path / "a", data)["refused"]
    went_on: dict[str, Any] = taken(tmp_path / "b", data, skip_bad=True)

    assert refused.startswith("8 files cannot be taken in. The first: ")
    assert {fault["file"] for fault in went_on["faults"]} == {name.replace("\n", "\ufffd") for name in bad}
    assert places(went_on) == {
        "cat/1.png": ("train", "cat"),
        "cat/2.png": ("train", "cat"),
        "dog/3.png": ("train", "dog"),
    }
    assert went_on["notes"][-1] == "8 files were left out."


def test_backslashes_of_windows_part_folders(tmp_path: Path) -> None:
    result = taken(tmp_path / "a", pairs(("pets\\cat\\1.png", A), ("pets\\dog\\2.png", B)))
    mixed = taken(tmp_path / "b", pairs(("cat/1.png", A), ("dog/AC\\DC.png", B)))

    assert places(result) == {"pets/cat/1.png": ("train", "cat"), "pets/dog/2.png": ("train", "dog")}
    assert result["notes"] == [
        "The names in upload.zip part folders by backslashes, as some Windows programs do."
    ]
    assert "has a backslash in its name" in mixed["refused"]


def test_names_in_the_encoding_of_explorer(tmp_path: Path) -> None:
    same = taken(tmp_path / "a", packed_as("cp850", {"K\u00e4se/1.png": A, "Caf\u00e9/2.png": B}))
    other = packed_as("cp850", {"S\u00e3o/1.png": A, "Rio/2.png": B})

    assert same["class_names"] == ["Caf\u00e9", "K\u00e4se"]
    assert "Say which" in taken(tmp_path / "b", other)["refused"]
    assert taken(tmp_path / "c", other, encoding="cp850")["class_names"] == ["Rio", "S\u00e3o"]


REFUSED = {
    "an image of two classes": (
        {"1.jpg": JPEG, "c.csv": b"filename,cat,dog\n1.jpg,1,1\n2.jpg,1,0\n2.jpg,0,1\n"},
        "has an image of the classes cat and dog at once in line 2",
    ),
    "a name in two folders": (
        {"a/1.png": A, "b/1.png": B, "t.csv": b"filename,label\n1.png,cat\n"},
        '"1.png" is named in line 2 of t.csv but could be several files in upload.zip; write its folders',
    ),
    "no picture at all": (
        {"a.pdf": b"%PDF", "b.mp4": b"x"},
        '"upload.zip" holds no images: 2 files are no pictures and were left out: 1 .mp4, 1 .pdf; '
        "expected pictures such as PNG and JPEG, or the arrays x_train and y_train as numpy.savez saves "
        "them.",
    ),
    "raw data alone": ({"a/1.nef": b"II*\0"}, "a camera's raw data"),
    "an empty file": ({"a/1.png": b"", "b/2.png": A}, '"a/1.png" is empty.'),
    "a key twice": (
        {"1.png": A, "metadata.jsonl": b'{"file_name": "1.png", "File Name": "x"}\n'},
        "the same key twice",
    ),
    "a list for a class": (
        {"1.png": A, "metadata.jsonl": b'{"file_name": "1.png", "label": ["a"]}\n'},
        "expected a text",
    ),
    "a column twice": ({"1.png": A, "t.csv": b"filename,label,Label\n1.png,a,b\n"}, "the same column twice"),
    "two columns of classes": (
        {"1.png": A, "t.csv": b"filename,label,class\n1.png,a,b\n"},
        "the columns label and class",
    ),
}


@pytest.mark.parametrize(("files", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_a_sentence_says_what_to_do(files: dict[str, bytes], words: str, tmp_path: Path) -> None:
    assert words in taken(tmp_path, zip_of(files))["refused"]


def test_the_library_knows_a_folder_alone_by_the_classes_that_are_named(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "1.png").write_bytes(A)

    known, _ = load_folder(tmp_path, side=None, class_names=["dog", "Cat"])
    with pytest.warns(UserWarning, match='"cat" holds all images and is taken for the folder around them'):
        alone, classes = load_folder(tmp_path, side=None)

    assert known["y_train"].tolist() == [1]
    assert len(in_memory(alone["x_train"])) == 1
    assert ("y_train" in alone, classes) == (False, [])
