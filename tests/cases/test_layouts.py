"""Data as the world publishes them: what an import takes of each, or how it says what to do."""

import bz2
import gzip
import io
import lzma
import struct
import tarfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.app.datasets.files import npy, npz_of, picture, zip_of
from tests.cases.taking import places, taken

A, B, C, D = (picture(mode="L", shade=shade) for shade in range(4))
JPEG = picture("JPEG", mode="L")
Expected = dict[str, tuple[str, str | None]]


def idx(array: np.ndarray) -> bytes:
    """An array as MNIST has it."""
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def tar(files: Mapping[str, bytes], mode: str = "w") -> bytes:
    """A tar archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]  # of a plain text
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def saved(mode: str, format_: str, *, size: tuple[int, int] = (8, 8), **options: object) -> bytes:
    """A red picture as a file."""
    out = io.BytesIO()
    Image.new("RGB", size, (200, 30, 30)).convert(mode).save(out, format_, **options)
    return out.getvalue()


def flat(*names: str, split: str = "train") -> Expected:
    """Images without a class."""
    return dict.fromkeys(names, (split, None))


def of_class(name: str, *paths: str) -> Expected:
    """Training images of one class."""
    return dict.fromkeys(paths, ("train", name))


def no_class(path: str) -> str:
    """What is said of a file that may tell classes."""
    return (
        f'No image has a class; if "{path}" tells classes, write them as a table: a .csv with the first line '
        "filename,class."
    )


IF_CLASSES = (
    "if they are classes, list them in a classes.txt beside them, a name a line; or give the folders other "
    "names, or the classes in a table (filename,class)."
)
TAKEN: dict[str, tuple[dict[str, bytes], Expected, str]] = {  # and one thing that is said, if any
    "COCO": (
        {"train2017/1.jpg": JPEG, "val2017/2.jpg": JPEG, "annotations/instances_val2017.json": b"{}"},
        flat("train2017/1.jpg") | flat("val2017/2.jpg", split="test"),
        no_class("annotations/instances_val2017.json"),
    ),
    "JSON lines of another name": (
        {"1.jpg": JPEG, "2.jpg": JPEG, "labels.jsonl": b"{}"},
        flat("1.jpg", "2.jpg"),
        no_class("labels.jsonl"),
    ),
    "COCO in a folder": (
        {"images/train2017/1.jpg": JPEG, "images/val2017/2.jpg": JPEG, "annotations/a.json": b"{}"},
        flat("images/train2017/1.jpg") | flat("images/val2017/2.jpg", split="test"),
        no_class("annotations/a.json"),
    ),
    "YOLO": (
        {
            "images/train/1.jpg": JPEG,
            "images/val/2.jpg": JPEG,
            "labels/train/1.txt": b"0 .5 .5 .1 .1",
            "data.yaml": b"names: [cat]",
        },
        flat("images/train/1.jpg") | flat("images/val/2.jpg", split="test"),
        no_class("labels/train/1.txt"),
    ),
    "YOLO of Roboflow": (
        {"train/images/1.jpg": JPEG, "train/labels/1.txt": b"0", "valid/images/2.jpg": JPEG},
        flat("train/images/1.jpg") | flat("valid/images/2.jpg", split="test"),
        '"images" holds all images and is taken for the folder around them, not for a class.',
    ),
    "Pascal VOC": (
        {
            "VOCdevkit/VOC2012/JPEGImages/1.jpg": JPEG,
            "VOCdevkit/VOC2012/JPEGImages/2.jpg": JPEG,
            "VOCdevkit/VOC2012/Annotations/1.xml": b"<a/>",
            "VOCdevkit/VOC2012/SegmentationClass/1.png": A,
            "VOCdevkit/VOC2012/SegmentationObject/1.png": A,
        },
        flat("VOCdevkit/VOC2012/JPEGImages/1.jpg", "VOCdevkit/VOC2012/JPEGImages/2.jpg"),
        no_class("VOCdevkit/VOC2012/Annotations/1.xml"),
    ),
    "ImageNet": (
        {"train/n01/1.JPEG": JPEG, "train/n02/2.JPEG": JPEG, "val/n01/3.JPEG": JPEG},
        {
            "train/n01/1.JPEG": ("train", "n01"),
            "train/n02/2.JPEG": ("train", "n02"),
            "val/n01/3.JPEG": ("test", "n01"),
        },
        '"val" is taken for the test split.',
    ),
    "ImageNet's validation images, flat": (
        {"val/a_1.JPEG": JPEG, "val/a_2.JPEG": JPEG, "ILSVRC2012_ground_truth.txt": b"490\n361\n"},
        flat("val/a_1.JPEG", "val/a_2.JPEG", split="test"),
        no_class("ILSVRC2012_ground_truth.txt"),
    ),
    "Tiny ImageNet": (
        {"train/n01/images/1.JPEG": JPEG, "train/n02/images/2.JPEG": JPEG, "test/images/3.JPEG": JPEG},
        {
            "train/n01/images/1.JPEG": ("train", "n01"),
            "train/n02/images/2.JPEG": ("train", "n02"),
            "test/images/3.JPEG": ("test", None),
        },
        '"images" holds all images and is taken for the folder around them, not for a class.',
    ),
    "nnU-Net": (
        {
            "imagesTr/a_0000.png": A,
            "imagesTr/b_0000.png": B,
            "labelsTr/a.png": C,
            "labelsTr/b.png": C,
            "imagesTs/c_0000.png": D,
            "dataset.json": b"{}",
        },
        flat("imagesTr/a_0000.png", "imagesTr/b_0000.png") | flat("imagesTs/c_0000.png", split="test"),
        '"labelsTr" has pictures of the same names as "imagesTr", which say where things lie in those and '
        f"are no class: 2 files left out; {IF_CLASSES}",
    ),
    "Kaggle: ids beside the training images": (
        {
            "train/1.png": A,
            "train/2.png": B,
            "test/1.png": C,
            "trainLabels.csv": b"id,label\n1,frog\n2,truck\n",
            "sampleSubmission.csv": b"id,label\n1,frog\n",
        },
        of_class("frog", "train/1.png") | of_class("truck", "train/2.png") | flat("test/1.png", split="test"),
        "trainLabels.csv names images by their ids, which are their names without the ending.",
    ),
    "birds with their outlines": (
        {
            "CUB/images/1.Auk/a.jpg": JPEG,
            "CUB/images/2.Owl/b.jpg": JPEG,
            "CUB/segmentations/1.Auk/a.png": A,
        },
        {"CUB/images/1.Auk/a.jpg": ("train", "1.Auk"), "CUB/images/2.Owl/b.jpg": ("train", "2.Owl")},
        '"CUB/segmentations" has pictures of the same names as "CUB/images", which say where things lie in '
        f"those and are no class: 1 file left out; {IF_CLASSES}",
    ),
    "Kaggle: a table of the training images": (
        {
            "train/1.jpg": JPEG,
            "train/2.jpg": JPEG,
            "train.csv": b"filename,label\n1.jpg,cat\n2.jpg,dog\n",
            "sample_submission.csv": b"filename,label\n3.jpg,cat\n",
        },
        {"train/1.jpg": ("train", "cat"), "train/2.jpg": ("train", "dog")},
        '"sample_submission.csv" shows what answers look like, and was left out.',
    ),
    "Kaggle: classes in the names of files": (
        {"train/cat.0.jpg": JPEG, "train/dog.0.jpg": JPEG, "test1/1.jpg": JPEG},
        flat("train/cat.0.jpg", "train/dog.0.jpg") | flat("test1/1.jpg", split="test"),
        '"test1" is taken for the test split; if it is a class, put it into train/test1.',
    ),
    "labels as JSON": (
        {"1.jpg": JPEG, "2.jpg": JPEG, "labels.json": b'{"1.jpg": "cat"}', "README.md": b"x"},
        flat("1.jpg", "2.jpg"),
        no_class("labels.json"),
    ),
    "labels of MATLAB": (
        {"jpg/1.jpg": JPEG, "jpg/2.jpg": JPEG, "imagelabels.mat": b"MATLAB 5.0"},
        flat("jpg/1.jpg", "jpg/2.jpg"),
        no_class("imagelabels.mat"),
    ),
    "a read-me tells no classes": (
        {"a/1.png": A, "a/2.png": B, "README.txt": b"x"},
        flat("a/1.png", "a/2.png"),
        "",
    ),
    "names with accents apart, and emoji": (
        {"cafe\u0301/1.png": A, "\U0001f431/2.png": B},
        {"cafe\u0301/1.png": ("train", "caf\u00e9"), "\U0001f431/2.png": ("train", "\U0001f431")},
        "",
    ),
    "animations": (
        {f"a/{kind}": picture(kind, mode="RGB") for kind in ("WEBP", "GIF", "TIFF")},
        flat("a/WEBP", "a/GIF", "a/TIFF"),
        "",
    ),
    "every mode": (
        {
            "a/1.png": saved("P", "PNG", transparency=0),
            "a/2.png": saved("LA", "PNG"),
            "a/3.png": saved("1", "PNG"),
            "b/1.tif": saved("1", "TIFF", compression="group4"),
            "b/2.tif": saved("LAB", "TIFF"),
            "b/3.tif": saved("CMYK", "TIFF"),
            "b/4.jpg": saved("CMYK", "JPEG"),
        },
        of_class("a", "a/1.png", "a/2.png", "a/3.png")
        | of_class("b", "b/1.tif", "b/2.tif", "b/3.tif", "b/4.jpg"),
        "2 pictures were brought from the colours of print (CMYK) to RGB.",
    ),
}


@pytest.mark.parametrize(("files", "expected", "told"), TAKEN.values(), ids=TAKEN.keys())
def test_what_the_world_publishes_is_taken_rightly(
    files: dict[str, bytes], expected: Expected, told: str, tmp_path: Path
) -> None:
    result = taken(tmp_path, zip_of(files))

    assert places(result) == expected
    if told:
        assert told in result["notes"]
    else:
        assert not any("No image has a class" in note for note in result["notes"])


ARRAYS = "and no zip file at all; save its images and labels with numpy.savez as x_train and y_train"
UNPACK = "and no zip file at all; unpack it, and pack its files as a zip"
NO_IMAGES = "expected pictures such as PNG and JPEG, or the arrays x_train and y_train"
IMAGES = np.zeros((2, 28, 28), np.uint8)
REFUSED: dict[str, tuple[bytes, str]] = {
    "MNIST's images": (idx(IMAGES), f"is a file of images as MNIST has them (idx) {ARRAYS}"),
    "MNIST's labels": (idx(np.zeros(2, np.uint8)), f"is a file of labels as MNIST has them (idx) {ARRAYS}"),
    "MNIST as it is published": (gzip.compress(idx(IMAGES)), f"is a gzip file {UNPACK}"),
    "MNIST in a zip": (zip_of({"train-images-idx3-ubyte": idx(IMAGES)}), NO_IMAGES),
    "MNIST in a zip, pressed": (
        zip_of({"train-images-idx3-ubyte.gz": gzip.compress(idx(IMAGES))}),
        "is a gzip file; archives inside archives are not opened: unpack it first",
    ),
    "CIFAR, binary": (zip_of({"data_batch_1.bin": b"\1" * 3073}), NO_IMAGES),
    "CIFAR for Python": (tar({"data_batch_1": b"\x80\x02}"}, "w:gz"), f"is a gzip file {UNPACK}"),
    "a pickle": (b"\x80\x04}\x94.", "is a pickle and no zip file at all; pickles are never opened: save its"),
    "weights": (zip_of({"archive/data.pkl": b"\x80\x02"}), NO_IMAGES),
    "MATLAB": (b"MATLAB 5.0 MAT-file" + bytes(200), f"is a file of MATLAB {ARRAYS}"),
    "MATLAB in a zip": (zip_of({"svhn.mat": b"MATLAB 5.0"}), NO_IMAGES),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(30), f"is an HDF5 file {ARRAYS}"),
    "Parquet": (b"PAR1" + bytes(50), "is a Parquet table and no zip file at all; save its images as files"),
    "Parquet in a zip": (zip_of({"data/train-0.parquet": b"PAR1"}), NO_IMAGES),
    "a tar": (tar({"cat/1.png": A}), f"is a tar archive {UNPACK}"),
    "7z": (b"7z\xbc\xaf\x27\x1c" + bytes(40), f"is a 7z archive {UNPACK}"),
    "RAR": (b"Rar!\x1a\x07\x01\0" + bytes(40), f"is a RAR archive {UNPACK}"),
    "bzip2": (bz2.compress(b"x"), f"is a bzip2 file {UNPACK}"),
    "xz": (lzma.compress(b"x"), f"is an xz file {UNPACK}"),
    "zstd": (b"\x28\xb5\x2f\xfd" + bytes(30), f"is a zstd file {UNPACK}"),
    "a part of a zip": (
        b"PK\x07\x08" + bytes(40),
        "is a part of a zip in several parts and no zip file at all",
    ),
    "a zip cut short": (zip_of({"cat/1.png": A})[:-30], "is cut short or no zip file at all"),
    "a picture alone": (A, "is a picture and no zip file at all; pack pictures as a zip"),
    "a table alone": (
        b"filename,class\n1.png,cat\n",
        "is text and no zip file at all; a table of classes goes",
    ),
    "a PDF": (b"%PDF-1.7\n%\xe2\xe3", "is a PDF and no zip file at all; save its pictures as files"),
    "nothing": (b"", "is empty, and no zip file at all"),
    "an array alone": (npy(IMAGES), f"is a single array {ARRAYS}"),
    "a zip of zips": (zip_of({"train.zip": zip_of({"1.png": A})}), "are not opened: unpack it first"),
    "shards of WebDataset": (zip_of({"0.tar": tar({"1.png": A})}), "is a tar archive; archives inside"),
    "MedMNIST": (
        npz_of(train_images=IMAGES),
        "is called nearly like x_train, which the file lacks; call it x_train",
    ),
    "labels in a column": (
        npz_of(x_train=IMAGES, y_train=np.zeros((2, 1), int)),
        "has the shape (2, 1), but there are 2 images in x_train; expected (2,)",
    ),
    "labels as words": (npz_of(x_train=IMAGES, y_train=np.array(["a", "b"])), "labels must be whole numbers"),
    "floats": (npz_of(x_train=IMAGES.astype(np.float32)), "images must be uint8, 0 to 255"),
    "Kaggle: test images that no table names": (
        zip_of({"train/1.jpg": JPEG, "test/2.jpg": JPEG, "train.csv": b"filename,label\n1.jpg,cat\n"}),
        '"test/2.jpg" is in upload.zip but not in train.csv; add it there, its class empty where nobody',
    ),
    "Kaggle: ids beside what nobody knows for a class": (
        zip_of({"train/1.jpg": JPEG, "labels.csv": b"id,breed\n1,pug\n"}),
        "must begin with the line filename,class,split",
    ),
    "objects, several a picture": (
        zip_of({"1.jpg": JPEG, "l.csv": b"filename,class,xmin\n1.jpg,cat,0\n1.jpg,dog,1\n"}),
        "is named twice in l.csv",
    ),
    "classes of classes": (zip_of({"animal/cat/1.png": A, "plant/rose/2.png": B}), "lies too deep"),
    "a picture of no bytes": (zip_of({"cat/1.png": b"", "dog/2.png": B}), '"cat/1.png" is empty'),
    "a JPEG cut short": (zip_of({"cat/1.jpg": JPEG[:-40], "dog/2.png": B}), "is cut short or damaged"),
    "a page in a picture's place": (zip_of({"cat/1.jpg": b"<html>404</html>"}), '"cat/1.jpg" is not a PNG'),
    "a bomb": (zip_of({"cat/1.png": saved("L", "PNG", size=(8000, 8000))}), "at most 40 million are taken"),
    "drawings": (zip_of({"cat/1.svg": b"<svg/>", "dog/2.png": B}), '"cat/1.svg" is not a PNG'),
    "medicine": (zip_of({"cat/1.dcm": bytes(128) + b"DICM"}), NO_IMAGES),
    "volumes": (zip_of({"a/1.nii.gz": gzip.compress(bytes(400))}), "is a gzip file; archives inside"),
    "one class to people": (
        zip_of({"cafe\u0301/1.png": A, "caf\u00e9/2.png": B}),
        "is the same class name as",
    ),
}


@pytest.mark.parametrize(("data", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_read_is_refused_in_words_that_say_what_to_do(
    data: bytes, words: str, tmp_path: Path
) -> None:
    assert words in taken(tmp_path, data)["refused"]
