"""Masks beside images are no classes, to the application's import and to the library; real classes stay."""

from pathlib import Path

import pytest

from clarinet.data.folders import files_of
from clarinet.files.folders import place
from clarinet.files.pairs import IMAGES, MARKS
from tests.app.datasets.files import picture, zip_of
from tests.cases.taking import places, taken


def placed(*paths: str, class_names: tuple[str, ...] = ()) -> dict[str, tuple[str, str | None]]:
    """The split and the class of each path that counts; raises what is refused."""
    placement = place(paths, "a", class_names=class_names)
    return {one.path: (one.split, one.class_name) for one in placement.require_all()}


NO_CLASS = ("train", None)


@pytest.mark.parametrize(
    ("images", "marks"),
    [
        (("images/1.jpg", "images/2.jpg"), ("masks/1.png", "masks/2.png")),
        (("d/Images/1.jpg", "d/Images/2.jpg"), ("d/Ground_Truth/1_gt.png", "d/Ground_Truth/2_gt.png")),
        (("JPEGImages/1.jpg", "JPEGImages/2.jpg"), ("SegmentationClass/1.png", "SegmentationObject/1.png")),
        (("jpg/1.jpg", "jpg/2.jpg", "jpg/3.jpg"), ("seg/1.png", "seg/3.png", "seg/9.png")),
        (("images/1.jpg", "images/2.jpg"), ("annotations/trimaps/1.png", "annotations/trimaps/2.png")),
        (("train/1.jpg", "train/2.jpg"), ("train_masks/1_mask.gif", "train_masks/2_mask.gif")),
        (("images/1.jpg", "images/2.jpg"), ("labels/seg 1.png", "labels/seg 2.png")),
        (("imagesTr/a_1_0000.png", "imagesTr/b_0000.png"), ("labelsTr/a_1.png", "labelsTr/b.png")),
    ],
)  # fmt: skip
def test_masks_are_left_out_and_their_images_have_no_class(
    images: tuple[str, ...], marks: tuple[str, ...]
) -> None:
    assert placed(*images, *marks) == dict.fromkeys(images, NO_CLASS)
    [told] = [one for one in place([*images, *marks], "a").remarks if "which say where things lie" in one]
    assert f"{len(marks)} files left out" in told


def test_splits_and_classes_below_the_images_count() -> None:
    splits = placed("train/images/1.png", "train/masks/1.png", "test/images/1.png", "test/masks/1.png")
    inside = placed("images/train/1.jpg", "images/val/2.jpg", "labels/train/1.png", "labels/val/2.png")
    classes = placed("images/cat/1.jpg", "images/dog/1.jpg", "masks/cat/1.png", "masks/dog/1.png")
    of_nnu_net = placed(
        *("D1/imagesTr/a_0000.png", "D1/labelsTr/a.png", "D1/imagesTs/b_0000.png", "D1/labelsTs/b.png")
    )

    named = placed("train_images/1.png", "train_masks/1.png", "test_images/2.png")

    assert named == {"train_images/1.png": NO_CLASS, "test_images/2.png": ("test", None)}
    assert of_nnu_net == {"D1/imagesTr/a_0000.png": NO_CLASS, "D1/imagesTs/b_0000.png": ("test", None)}
    assert splits == {"train/images/1.png": NO_CLASS, "test/images/1.png": ("test", None)}
    assert inside == {"images/train/1.jpg": NO_CLASS, "images/val/2.jpg": ("test", None)}
    assert classes == {"images/cat/1.jpg": ("train", "cat"), "images/dog/1.jpg": ("train", "dog")}


@pytest.mark.parametrize(
    "paths",
    [
        ("cat/1.png", "dog/1.png"),  # numbered alike, as classes often are
        ("images/1.png", "masks/7.png", "masks/8.png"),  # no mask of any image
        ("images/1.png", "masks/1.png", "gloves/1.png"),  # a class beside them: masks are worn
        ("masks/1.png", "gloves/1.png"),
        ("images/1.png", "photos/1.png", "masks/1.png"),  # of which images?
        ("seg/1.png", "depth/1.png"),
        ("with_mask/1.png", "without_mask/1.png"),
        ("cat/1.png", "cat_mask/1.png"),
        ("cat/1.png", "cat/1_mask.png", "cat/2.png", "dog/3.png"),  # one of three: it may wear a mask
        ("images/1.png", "text/1.png"),
    ],
)
def test_folders_of_classes_stay_classes(paths: tuple[str, ...]) -> None:
    assert placed(*paths) == {path: ("train", path.split("/")[0]) for path in paths}


def test_classes_that_are_known_go_before_the_rule() -> None:
    paths = ("images/1.png", "masks/1.png")

    assert placed(*paths, class_names=("images", "masks", "text")) == {
        path: ("train", path.split("/")[0]) for path in paths
    }


@pytest.mark.parametrize(
    "classes", [("rgb", "depth"), ("photos", "labels"), ("images", "edges"), ("Images", "Edges")]
)
@pytest.mark.parametrize("within", ["", "train/"])
def test_a_list_of_classes_goes_before_the_rule(
    classes: tuple[str, str], within: str, tmp_path: Path
) -> None:
    paths = [f"{within}{name}/{n}.png" for name in classes for n in (1, 2)]
    files = {path: picture(shade=shade) for shade, path in enumerate(paths)}
    listed = {"classes.txt": "\n".join(one.lower() for one in classes).encode()}

    alone = taken(tmp_path / "a", zip_of(files))
    named = taken(tmp_path / "b", zip_of(files | listed))

    assert {class_ for _, class_ in places(alone).values()} == {None}
    [told] = [note for note in alone["notes"] if "which say where things lie" in note]
    assert "if they are classes, list them in a classes.txt beside them, a name a line; or give the" in told
    assert "(filename,class)" in told
    assert places(named) == {path: ("train", path.split("/")[-2].lower()) for path in paths}


def test_a_list_of_classes_goes_before_the_rule_in_the_library(tmp_path: Path) -> None:
    for path in ("rgb/1.png", "rgb/2.png", "depth/1.png", "depth/2.png"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(picture())

    without = files_of(tmp_path)
    (tmp_path / "classes.txt").write_text("rgb\ndepth\n", encoding="utf-8")
    found = files_of(tmp_path)

    assert {one.class_name for one in without.placed} == {None}
    assert {one.class_name for one in found.placed} == {"rgb", "depth"}
    assert found.listed == ["rgb", "depth"]


def test_a_list_of_other_classes_leaves_the_rule_as_it_is(tmp_path: Path) -> None:
    files = {f"{name}/1.png": picture(shade=shade) for shade, name in enumerate(("images", "masks"))}

    result = taken(tmp_path, zip_of(files | {"classes.txt": b"cat\ndog\n"}))

    assert places(result) == {"images/1.png": NO_CLASS}


def test_a_folder_of_images_in_each_split_is_no_class() -> None:
    found = placed("train/images/1.jpg", "valid/images/2.jpg", "test/images/3.jpg")

    assert {class_name for _, class_name in found.values()} == {None}
    assert placed("train/images/1.jpg", "train/text/1.jpg")["train/images/1.jpg"] == ("train", "images")


def test_masks_beside_their_images_in_a_class_are_left_out() -> None:
    images = ("benign/b (1).png", "normal/n (1).png")
    placement = place(
        [*images, "benign/b (1)_mask.png", "benign/b (1)_mask_1.png", "normal/n (1)_mask.png"], "a"
    )

    assert [one.path for one in placement.placed] == list(images)
    assert placement.remarks == [
        '3 pictures have the names of others and a word more ("benign/b (1)_mask.png"), which say where '
        "things lie in those: left out"
    ]


def test_a_folder_of_images_in_each_class_is_only_around_them() -> None:
    assert placed("train/a/images/1.jpg", "train/b/images/2.jpg", "val/images/3.jpg") == {
        "train/a/images/1.jpg": ("train", "a"),
        "train/b/images/2.jpg": ("train", "b"),
        "val/images/3.jpg": ("test", None),
    }


def test_no_word_stands_for_both() -> None:
    assert not IMAGES & MARKS


def test_the_import_says_it_and_a_table_finds_the_images(tmp_path: Path) -> None:
    files = {f"images/{n}.png": picture(shade=n) for n in (1, 2)}
    masks = {f"masks/{n}.png": picture(mode="1") for n in (1, 2)}
    table = b"filename,class\n1.png,cat\n2.png,dog\n"

    alone = taken(tmp_path / "a", zip_of(files | masks))
    named = taken(tmp_path / "b", zip_of(files | masks), table=table)

    assert places(alone) == dict.fromkeys(files, NO_CLASS)
    assert any("and are no class: 2 files left out" in note for note in alone["notes"])
    assert places(named) == {"images/1.png": ("train", "cat"), "images/2.png": ("train", "dog")}


def test_images_that_join_a_dataset_in_a_folder_of_that_name_have_no_class(tmp_path: Path) -> None:
    files = {"images/1.png": picture(shade=1), "images/2.png": picture(shade=2)}

    result = taken(tmp_path, zip_of(files), class_names=["cat", "dog"])

    assert places(result) == dict.fromkeys(files, NO_CLASS)
