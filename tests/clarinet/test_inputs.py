"""The files of `clarinet train`: classes that one of them counts in another order keep their meaning."""

import shutil
import zipfile
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from clarinet.commands.inputs import Inputs, read_inputs
from clarinet.commands.opening import Pair
from clarinet.recipes.errors import ConfigError, DataError
from tests.clarinet.factories import in_memory, make_images

NAMES = ["a", "b", "c"]
CAMPAIGN = ["c", "a", "b"]  # the same classes in another order


def read(arguments: Namespace) -> Inputs:
    """The files that the arguments name, in 28 pixels."""
    return read_inputs(arguments, Pair.of(arguments), side=28)


@pytest.fixture
def arguments(tmp_path: Path) -> Namespace:
    """Class folders of a source, and a target that has them in its test set alone."""
    labels = torch.arange(32) % 3
    for index, (image, label) in enumerate(zip(make_images(labels), labels.tolist(), strict=True)):
        for folder in (f"source/{NAMES[label]}", "target/train", f"target/test/{NAMES[label]}"):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
            pixels = image.numpy() // (1 + folder.startswith("target"))  # in other light
            Image.fromarray(pixels).save(tmp_path / folder / f"{index:02}.png")
    return Namespace(
        source=tmp_path / "source",
        target=tmp_path / "target",
        labels=None,
        first_class=None,
        ignore_columns="",
        classes=None,
        skip_bad=False,
    )


@pytest.fixture
def campaign(arguments: Namespace, tmp_path: Path) -> Namespace:
    """The same with what people said of the source's images."""
    truth = read(arguments).source["y_train"].tolist()
    rows = [f"{place},true,{CAMPAIGN.index(NAMES[k])},{NAMES[k]},1,3" for place, k in enumerate(truth)]
    path = tmp_path / "l.csv"
    path.write_text("\n".join(["position,kind,class,class_name,weight,num_classes", *rows]))
    return Namespace(**vars(arguments) | {"labels": path})


def test_a_label_file_has_the_classes_and_the_target_follows_by_name(
    arguments: Namespace, campaign: Namespace
) -> None:
    folders, asked = read(arguments), read(campaign)

    assert (folders.class_names, asked.class_names) == (NAMES, CAMPAIGN)
    assert (folders.num_classes, asked.num_classes) == (3, 3)
    told = [NAMES[k] for k in folders.target["y_test"].tolist()]
    assert [CAMPAIGN[k] for k in asked.target["y_test"].tolist()] == told
    assert asked.labels is not None
    assert [CAMPAIGN[k] for k in asked.labels.true.tolist()] == [
        NAMES[k] for k in folders.source["y_train"].tolist()
    ]


def test_images_of_classes_that_nobody_was_asked_about_are_not_scored(
    campaign: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line for line in campaign.labels.read_text().splitlines() if ",c," not in line]
    told = "\n".join(line.replace("1,a", "0,a").replace("2,b", "1,b") for line in lines)
    campaign.labels.write_text(told.replace(",1,3", ",1,2"))

    inputs = read(campaign)

    assert inputs.class_names == ["a", "b"]
    assert torch.bincount(inputs.target["y_test"]).tolist() == [11, 11]
    assert len(inputs.target["x_test"]) == 22
    assert "10 of 32 test images" in capsys.readouterr().err


class TestNamesInAnNpz:
    @pytest.fixture
    def files(self, tmp_path: Path) -> Namespace:
        """Two npz files of the same classes in another order; `save` writes one anew with other names."""
        labels = torch.arange(30) % 3
        images = make_images(labels).numpy()
        for name, classes, light in (("source", NAMES, 1), ("target", CAMPAIGN, 2)):
            self.save(tmp_path / f"{name}.npz", images // light, labels.numpy(), classes)
        where = {"source": tmp_path / "source.npz", "target": tmp_path / "target.npz"}
        return Namespace(**where, labels=None, classes=None, skip_bad=False)

    def save(self, path: Path, images: np.ndarray, labels: np.ndarray, names: list[str] | None) -> None:
        named = {} if names is None else {"class_names": np.array(names)}
        arrays = {"x_train": images, "y_train": labels, "x_test": images, "y_test": labels} | named
        np.savez(path, **arrays)  # type: ignore[arg-type]  # its stub

    def test_are_its_classes_and_the_target_follows_by_name(self, files: Namespace) -> None:
        found = read(files)

        assert (found.class_names, found.num_classes) == (NAMES, 3)
        told = [NAMES[k] for k in found.target["y_test"].tolist()]
        assert told == [CAMPAIGN[k] for k in (torch.arange(30) % 3).tolist()]

    def test_may_lie_beside_the_arrays(self, files: Namespace) -> None:
        labels = np.arange(30) % 3
        self.save(files.source, make_images(torch.from_numpy(labels)).numpy(), labels, None)
        with zipfile.ZipFile(files.source, "a") as archive:
            archive.writestr("classes.txt", "a\nb\nc\n")

        assert read(files).class_names == NAMES

    @pytest.mark.parametrize(
        ("names", "words"),
        [
            (["a", "b"], "numbers its classes up to 2, and its array class_names are only 2 of them"),
            (["a", "b", "b"], "two classes of the same name"),
        ],
    )
    def test_that_do_not_fit_are_refused(self, files: Namespace, names: list[str], words: str) -> None:
        labels = np.arange(30) % 3
        self.save(files.source, make_images(torch.from_numpy(labels)).numpy(), labels, names)

        with pytest.raises(DataError, match=words):
            read(files)


class TestWithoutTestImages:
    """The training images of the target score, as far as their classes are told apart."""

    @pytest.fixture(autouse=True)
    def only_train(self, arguments: Namespace) -> None:
        shutil.rmtree(arguments.target / "train")
        (arguments.target / "test").rename(arguments.target / "train")

    def test_they_score_by_name(self, arguments: Namespace, campaign: Namespace) -> None:
        folders, asked = read(arguments).target, read(campaign).target

        assert set(folders) == {"x_train", "y_train"}
        assert torch.bincount(folders["y_train"]).tolist() == [11, 11, 10]
        assert [CAMPAIGN[k] for k in asked["y_train"]] == [NAMES[k] for k in folders["y_train"]]

    def test_others_than_are_told_apart_stay_and_do_not_score(
        self, arguments: Namespace, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (arguments.target / "train" / "b").rename(arguments.target / "train" / "owl")

        target = read(arguments).target

        assert len(target["x_train"]) == 32
        assert torch.bincount(target["y_train"] + 1).tolist() == [11, 11, 0, 10]
        told = (
            f"of {arguments.target}, 11 of 32 training images are of owl, which is no class of this training"
        )
        assert told in capsys.readouterr().err

    def test_classes_that_cannot_be_compared_are_told_and_nothing_scores(
        self, arguments: Namespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        images = np.zeros((4, 28, 28), np.uint8)
        np.savez(tmp_path / "b.npz", x_train=images, y_train=np.array([2, -1, 0, 1]))
        beside = Namespace(**vars(arguments) | {"target": tmp_path / "b.npz"})

        assert set(read(beside).target) == {"x_train"}
        assert "say --classes 3 if they count the classes in this order. So" in capsys.readouterr().err
        beside.classes = 3
        assert read(beside).target["y_train"].tolist() == [2, -1, 0, 1]
        assert "1 of 4 training images" in capsys.readouterr().err

    def test_they_score_too_where_no_test_image_does(self, arguments: Namespace, tmp_path: Path) -> None:
        inputs = read(arguments)
        images, classes = in_memory(inputs.source["x_train"]), inputs.source["y_train"].numpy()
        np.savez(tmp_path / "a.npz", x_train=images.numpy(), y_train=classes)
        dark = images.numpy() // 2
        np.savez(tmp_path / "b.npz", x_train=dark, y_train=classes, x_test=dark[:3], y_test=np.full(3, -1))
        files = {"source": tmp_path / "a.npz", "target": tmp_path / "b.npz"}

        target = read(Namespace(**vars(arguments) | files)).target

        assert set(target) == {"x_train", "y_train"}
        assert torch.equal(target["y_train"], inputs.source["y_train"])


@pytest.mark.filterwarnings("ignore::clarinet.recipes.errors.ColumnsLeftOut")
def test_labels_without_names_are_never_taken_for_the_folders(campaign: Namespace) -> None:
    """The campaign counts in its own order, of which such a file tells nothing."""
    campaign.labels.write_text(campaign.labels.read_text().replace("class_name", "remark"))

    with pytest.raises(DataError, match=r"classes a, b, c, but those of .*l\.csv are numbers"):
        read(campaign)
    shutil.rmtree(campaign.target / "test")
    inputs = read(campaign)
    assert (inputs.class_names, inputs.num_classes) == (None, 3)


@pytest.mark.filterwarnings("ignore::clarinet.recipes.errors.ColumnsLeftOut")
def test_labels_that_do_not_count_the_classes_need_the_number(campaign: Namespace) -> None:
    campaign.labels.write_text(campaign.labels.read_text().replace("num_classes", "remark"))

    with pytest.raises(ConfigError, match="does not say how many classes there are; say it: --classes K"):
        read(campaign)
    campaign.classes = 3
    assert read(campaign).class_names == CAMPAIGN


@pytest.mark.parametrize("unnamed", CAMPAIGN)
def test_labels_that_name_a_part_of_the_classes_are_refused(unnamed: str, campaign: Namespace) -> None:
    """Where nothing is known of a class yet: its images in the target could not be told."""
    lines = campaign.labels.read_text().splitlines()
    campaign.labels.write_text("\n".join(line for line in lines if f",{unnamed},1" not in line))

    with pytest.raises(DataError, match=r"names only ., . of its 3 classes.*the npz of the same labels"):
        read(campaign)


def test_a_list_of_classes_of_another_length_is_refused(campaign: Namespace, tmp_path: Path) -> None:
    ones = np.ones(2, np.int64)
    np.savez(tmp_path / "l.npz", positions=ones, kinds=ones, classes=ones, weights=ones, class_names=CAMPAIGN)
    campaign.labels, campaign.classes = tmp_path / "l.npz", 4

    with pytest.raises(DataError, match="is about 3 classes, but there should be 4"):
        read(campaign)


@pytest.mark.parametrize("place", ["table.csv", "LABELS.CSV", "a/table.csv"])
def test_a_folder_with_a_table_has_the_order_of_the_table_and_is_refused(
    place: str, campaign: Namespace
) -> None:
    """Wherever the import of a zip of it would find the table."""
    (campaign.source / place).write_text("filename,class")

    with pytest.raises(DataError, match=rf"holds {place}; .* have its order"):
        read(campaign)


def test_labels_beside_the_images_are_no_table_of_them(campaign: Namespace) -> None:
    campaign.labels = campaign.labels.rename(campaign.source / "l.csv")
    assert read(campaign).class_names == CAMPAIGN
    campaign.labels = campaign.source / "none.csv"
    with pytest.raises(DataError, match=r"holds l\.csv"):
        read(campaign)


def test_a_name_is_the_same_with_its_accent_apart(arguments: Namespace) -> None:
    """As some systems write the names of folders."""
    (arguments.source / "a").rename(arguments.source / "\u00e4pfel")
    (arguments.target / "test" / "a").rename(arguments.target / "test" / "a\u0308pfel")

    inputs = read(arguments)

    assert inputs.class_names == ["b", "c", "\u00e4pfel"]
    assert torch.bincount(inputs.target["y_test"]).tolist() == [11, 10, 11]


class TestNumbers:
    @pytest.fixture
    def counted(self, arguments: Namespace, tmp_path: Path) -> Namespace:
        """A source whose classes are numbers."""
        inputs = read(arguments)
        images, classes = in_memory(inputs.source["x_train"]), inputs.source["y_train"]
        np.savez(tmp_path / "a.npz", x_train=images.numpy(), y_train=classes.numpy())
        return Namespace(**vars(arguments) | {"source": tmp_path / "a.npz"})

    def test_folders_named_by_numbers_mean_those_numbers(self, counted: Namespace) -> None:
        test = counted.target / "test"
        (test / "a").rename(test / "00")
        (test / "c").rename(test / "2")
        shutil.rmtree(test / "b")  # no image of 1

        assert torch.bincount(read(counted).target["y_test"]).tolist() == [11, 0, 10]

    def test_two_folders_of_one_number_are_refused(self, counted: Namespace) -> None:
        for name, number in zip(NAMES, ("1", "01", "2"), strict=True):
            (counted.target / "test" / name).rename(counted.target / "test" / number)

        with pytest.raises(DataError, match="classes 1, 1, 2, of which two are the same"):
            read(counted)

    def test_other_folders_are_refused(self, counted: Namespace) -> None:
        with pytest.raises(DataError, match=r"classes a, b, c, but those of .*a\.npz are numbers"):
            read(counted)

    def test_numbers_are_names_where_the_folders_are_called_so(
        self, arguments: Namespace, tmp_path: Path
    ) -> None:
        for name, number in zip(NAMES, ("3", "5", "10"), strict=True):
            (arguments.source / name).rename(arguments.source / number)
        images = np.zeros((4, 28, 28), np.uint8)
        np.savez(tmp_path / "b.npz", x_train=images, x_test=images, y_test=np.array([5, 10, 3, 5]))

        inputs = read(Namespace(**vars(arguments) | {"target": tmp_path / "b.npz"}))

        assert inputs.class_names == ["3", "5", "10"]
        assert inputs.target["y_test"].tolist() == [1, 2, 0, 1]

    @pytest.mark.parametrize("classes", [None, 3])
    def test_numbers_stay_names_where_the_classes_are_counted_too(
        self, arguments: Namespace, tmp_path: Path, classes: int | None
    ) -> None:
        for name, number in zip(NAMES, ("2", "0", "1"), strict=True):
            (arguments.source / name).rename(arguments.source / f"x{number}")
        for number in "012":
            (arguments.source / f"x{number}").rename(arguments.source / str(int(number) + 3))
        images = np.zeros((3, 28, 28), np.uint8)
        np.savez(tmp_path / "b.npz", x_train=images, x_test=images, y_test=np.array([5, 3, 4]))
        changes = {"target": tmp_path / "b.npz", "classes": classes}

        inputs = read(Namespace(**vars(arguments) | changes))

        assert inputs.target["y_test"].tolist() == [2, 0, 1]

    def test_other_names_are_counted_when_asked_to(self, arguments: Namespace, tmp_path: Path) -> None:
        images = np.zeros((3, 28, 28), np.uint8)
        np.savez(tmp_path / "b.npz", x_train=images, x_test=images, y_test=np.array([2, 0, 1]))
        beside = Namespace(**vars(arguments) | {"target": tmp_path / "b.npz"})

        with pytest.raises(DataError, match="say --classes 3 if they count the classes in this order"):
            read(beside)
        beside.classes = 3
        assert read(beside).target["y_test"].tolist() == [2, 0, 1]

    def test_test_images_without_a_class_are_not_scored(
        self, counted: Namespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        images = np.zeros((4, 28, 28), np.uint8)
        np.savez(tmp_path / "b.npz", x_train=images, x_test=images, y_test=np.array([2, -1, 0, -1]))

        inputs = read(Namespace(**vars(counted) | {"target": tmp_path / "b.npz"}))

        assert inputs.target["y_test"].tolist() == [2, 0]
        assert "2 of 4 test images" in capsys.readouterr().err
