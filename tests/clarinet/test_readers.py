"""Every form in which a data set is published, as tiny files written byte by byte."""

import bz2
import pickle
import struct
from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path
from typing import Any, cast
from zipfile import ZipFile

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from clarinet.files.names import NO_LABEL
from clarinet.recipes.errors import DataError, DataNotFound
from clarinet.reproduction.cameras import second_camera
from clarinet.reproduction.readers import DATA_SETS, PACS_CLASSES, read_domain
from clarinet.reproduction.synthetic import write_synthetic_digits
from clarinet.reproduction.tasks import TASKS, labelled, load_task, task_called

COUNTS = {"train": 6, "test": 4}


def pixels(count: int, *shape: int) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (count, *shape), dtype=np.uint8)


def write_npz(path: Path, *shape: int, **more: Any) -> None:
    np.savez(
        path,
        x_train=pixels(6, *shape),
        y_train=np.arange(6, dtype=np.uint8),
        x_test=pixels(4, *shape),
        y_test=np.arange(4, dtype=np.uint8),
        **more,
    )


def write_pacs(path: Path, classes: Iterable[str], brightness: int) -> None:
    """A zip of class folders with one PNG each."""
    with ZipFile(path, "w") as archive:
        for name in classes:
            picture = BytesIO()
            Image.new("RGB", (8, 8), (brightness, brightness, 0)).save(picture, "PNG")
            archive.writestr(f"{name}/1.png", picture.getvalue())


def check(name: str, folder: Path, *shape: int) -> str:
    """The domain holds the images and labels that were written; returns its name."""
    domain = read_domain(name, folder)
    assert domain.x_test is not None
    assert domain.y_test is not None
    assert domain.x_train.dtype == domain.x_test.dtype == torch.uint8
    assert np.array_equal(domain.x_train.numpy(), pixels(6, *shape))
    assert np.array_equal(domain.x_test.numpy(), pixels(4, *shape))
    assert domain.y_train.tolist() == [0, 1, 2, 3, 4, 5]
    assert domain.y_test.tolist() == [0, 1, 2, 3]
    assert domain.y_train.dtype == torch.int64
    return domain.name


class TestPublishedForms:
    def test_mnist_as_idx(self, tmp_path: Path) -> None:
        raw = tmp_path / "MNIST" / "raw"
        raw.mkdir(parents=True)
        for part, stem in (("train", "train"), ("test", "t10k")):
            count = COUNTS[part]
            header = struct.pack(">IIII", 0x803, count, 28, 28)
            (raw / f"{stem}-images-idx3-ubyte").write_bytes(header + pixels(count, 28, 28).tobytes())
            (raw / f"{stem}-labels-idx1-ubyte").write_bytes(
                struct.pack(">II", 0x801, count) + bytes(range(count))
            )

        assert check("mnist", tmp_path, 28, 28).endswith("6 + 4 images)")

    def test_usps_as_libsvm(self, tmp_path: Path) -> None:
        for file, count in (("usps.bz2", 6), ("usps.t.bz2", 4)):
            levels = pixels(count, 256) / 255 * 2 - 1
            lines = [
                f"{label + 1} " + " ".join(f"{i + 1}:{v:.6f}" for i, v in enumerate(row))
                for label, row in enumerate(levels)
            ]
            (tmp_path / file).write_bytes(bz2.compress("\n".join(lines).encode()))

        domain = read_domain("usps", tmp_path)

        assert domain.y_train.tolist() == [0, 1, 2, 3, 4, 5]
        assert domain.x_train.shape == (6, 16, 16)
        difference = domain.x_train.int() - torch.from_numpy(pixels(6, 256)).reshape(6, 16, 16)
        assert int(difference.abs().max()) <= 1  # torchvision rounds down
        assert "usps.bz2" in domain.name

    def test_svhn_as_mat(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from scipy.io import savemat
        from torchvision.datasets import SVHN

        for part, count in COUNTS.items():
            savemat(
                tmp_path / f"{part}_32x32.mat",
                {
                    "X": np.transpose(pixels(count, 32, 32, 3), (1, 2, 3, 0)),
                    "y": np.array([[10], [1], [2], [3], [4], [5]], np.uint8)[:count],  # 10 stands for 0
                },
            )
        sums = {part: [*entry[:2], None] for part, entry in SVHN.split_list.items()}
        monkeypatch.setattr(SVHN, "split_list", sums)  # the digests of the real files

        check("svhn", tmp_path, 32, 32, 3)

    @pytest.mark.parametrize("zero", [0, 10])
    def test_syn_digits_as_mat(self, zero: int, tmp_path: Path) -> None:
        from scipy.io import savemat

        for part, count in COUNTS.items():
            savemat(
                tmp_path / f"synth_{part}_32x32.mat",
                {
                    "X": np.transpose(pixels(count, 32, 32, 3), (1, 2, 3, 0)),
                    "y": np.array([[zero], [1], [2], [3], [4], [5]], np.uint8)[:count],
                },
            )

        assert "synth_train_32x32.mat" in check("syn_digits", tmp_path, 32, 32, 3)

    def test_cifar_as_batches(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from torchvision.datasets import CIFAR10

        folder = tmp_path / "cifar-10-batches-py"
        folder.mkdir()
        for file, count in (("data_batch_1", 6), ("test_batch", 4)):
            planes = np.transpose(pixels(count, 32, 32, 3), (0, 3, 1, 2)).reshape(count, -1)
            content = pickle.dumps({"data": planes, "labels": list(range(count))})
            (folder / file).write_bytes(content)
        (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": ["airplane"]}))
        monkeypatch.setattr(CIFAR10, "train_list", [["data_batch_1", None]])
        monkeypatch.setattr(CIFAR10, "test_list", [["test_batch", None]])
        monkeypatch.setattr(CIFAR10, "meta", CIFAR10.meta | {"md5": None})

        check("cifar10", tmp_path, 32, 32, 3)

    def test_stl_as_binary(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from torchvision.datasets import STL10

        folder = tmp_path / "stl10_binary"
        folder.mkdir()
        for part, count in COUNTS.items():
            columns = np.transpose(pixels(count, 96, 96, 3), (0, 3, 2, 1))
            (folder / f"{part}_X.bin").write_bytes(columns.tobytes())
            (folder / f"{part}_y.bin").write_bytes(bytes(range(1, count + 1)))
        for name in ("train_list", "test_list"):
            files = [[file, None] for file, _ in getattr(STL10, name) if (folder / file).exists()]
            monkeypatch.setattr(STL10, name, files)
        (folder / "class_names.txt").write_text("airplane\nbird\n")

        check("stl10", tmp_path, 96, 96, 3)

    @pytest.mark.parametrize("name", ["mnist_m", "syn_digits"])
    def test_digits_in_class_folders(self, name: str, tmp_path: Path) -> None:
        for part, count in COUNTS.items():
            for index, image in enumerate(pixels(count, 32, 32, 3)):
                folder = tmp_path / name / part / f"{index}"
                folder.mkdir(parents=True)
                Image.fromarray(image).save(folder / "a.png")

        check(name, tmp_path, 32, 32, 3)
        (tmp_path / name / "train" / "0").rename(tmp_path / name / "train" / "zero")
        with pytest.raises(DataError, match="needs a folder for each digit"):
            read_domain(name, tmp_path)

    def test_mnist_m_as_png(self, tmp_path: Path) -> None:
        for part, count in COUNTS.items():
            folder = tmp_path / "mnist_m" / f"mnist_m_{part}"
            folder.mkdir(parents=True)
            for index, image in enumerate(pixels(count, 32, 32, 3)):
                Image.fromarray(image).save(folder / f"{index:08}.png")
            lines = [f"{index:08}.png {index}" for index in range(count)]
            (tmp_path / "mnist_m" / f"mnist_m_{part}_labels.txt").write_text("\n".join(lines) + "\n")

        check("mnist_m", tmp_path, 32, 32, 3)

    @pytest.mark.parametrize("name", ["mnist", "svhn", "syn_digits", "cifar10", "stl10"])
    def test_npz(self, name: str, tmp_path: Path) -> None:
        write_npz(tmp_path / f"{name}.npz", 32, 32, 3)

        assert f"{name}.npz" in check(name, tmp_path, 32, 32, 3)

    def test_both_parts_of_mnist_m_come_in_the_order_of_the_release(self, tmp_path: Path) -> None:
        whole, order = pixels(6, 32, 32, 3), np.array([3, 0, 5, 1, 4, 2], np.int32)
        first, rest = order[:4], order[4:]
        tests = {"x_test": pixels(4, 32, 32, 3), "y_test": np.arange(4, dtype=np.uint8)}
        write = cast("Callable[..., None]", np.savez)  # its stub takes dictionaries of arrays for its flag
        write(tmp_path / "mnist_m.npz", x_train=whole[first], y_train=first, idx_train=first, **tests)
        write(tmp_path / "mnist_m_train_rest.npz", x_train=whole[rest], y_train=rest, idx_train=rest)

        assert "mnist_m_train_rest.npz" in check("mnist_m", tmp_path, 32, 32, 3)


class TestRefusals:
    @pytest.mark.parametrize("name", list(DATA_SETS))
    def test_what_is_missing_is_named_with_its_place(self, name: str, tmp_path: Path) -> None:
        with pytest.raises(DataNotFound, match=rf"no .* in {tmp_path}: put there \S+") as caught:
            read_domain(name, tmp_path)

        fetched = name not in {"mnist_m", "syn_digits", "photo", "art_painting", "sketch"}
        assert ("--download" in str(caught.value)) == fetched
        assert ("make-syn-digits" in str(caught.value)) == (name == "syn_digits")

    def test_a_damaged_file_is_a_sentence(self, tmp_path: Path) -> None:
        (tmp_path / "usps.bz2").write_bytes(b"no archive")
        (tmp_path / "usps.t.bz2").write_bytes(b"no archive")

        with pytest.raises(DataError, match=r"USPS in .* cannot be read"):
            read_domain("usps", tmp_path)

    @pytest.mark.parametrize("damage", ["empty", "flipped"])
    def test_a_damaged_mat_file_is_a_sentence(self, damage: str, tmp_path: Path) -> None:
        from scipy.io import savemat

        for part in ("train", "test"):
            path = tmp_path / f"synth_{part}_32x32.mat"
            values = {"X": pixels(32, 32, 3, 4), "y": np.zeros((4, 1), np.uint8)}
            savemat(path, values, do_compression=True)
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 0xFF
            path.write_bytes(b"" if damage == "empty" else content)

        with pytest.raises(DataError, match=r"synth_train_32x32\.mat is damaged"):
            read_domain("syn_digits", tmp_path)

    def test_a_wrong_digest_is_a_sentence(self, tmp_path: Path) -> None:
        for part in ("train", "test"):
            (tmp_path / f"{part}_32x32.mat").write_bytes(b"not the published file")

        with pytest.raises(DataError, match=r"SVHN in .* cannot be read"):
            read_domain("svhn", tmp_path)

    def test_an_npz_without_labels_is_a_sentence(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "mnist.npz", x_train=pixels(3, 28, 28))

        with pytest.raises(DataError, match=r"mnist\.npz lacks x_train or y_train"):
            read_domain("mnist", tmp_path)


class TestTasks:
    def test_names_need_no_quotes(self) -> None:
        assert task_called("M-m") is task_called("M->m") is TASKS["M->m"]
        with pytest.raises(ValueError, match="no task 'X-Y'"):
            task_called("X-Y")

    def test_the_nine_shared_classes_agree(self, tmp_path: Path) -> None:
        """Each image's level is its class's number in its own data set."""
        own = np.arange(10, dtype=np.uint8)
        for name, side in (("cifar10", 32), ("stl10", 96)):
            images = np.broadcast_to(own[:, None, None, None], (10, side, side, 3)).copy()
            np.savez(tmp_path / f"{name}.npz", x_train=images, y_train=own, x_test=images, y_test=own)

        data = load_task(TASKS["C->T"], tmp_path)

        cifar = data.source.x_train[data.source.y_train.argsort(), 0, 0, 0].tolist()
        stl = data.target.x_train[data.target.y_train.argsort(), 0, 0, 0].tolist()
        assert cifar == [0, 1, 2, 3, 4, 5, 7, 8, 9]  # without frog, 6
        assert stl == [0, 2, 1, 3, 4, 5, 6, 8, 9]  # without monkey, 7; car is 2 there
        assert data.target.x_train.shape == (9, 32, 32, 3)
        assert "shared classes" in data.target.name

    @pytest.mark.parametrize(
        ("labels", "side", "words"),
        [
            ([*range(9), -1], (32, 32, 3), "labels outside 0..9"),
            ([*range(9), 10], (32, 32, 3), "labels outside 0..9"),
            (range(9), (32, 32, 3), "but there are 10 images in x_train"),
            (range(10), (32, 32), "expected colour images"),
        ],
    )
    def test_a_label_that_is_no_class_is_refused(
        self, labels: list[int], side: tuple[int, ...], words: str, tmp_path: Path
    ) -> None:
        images, own = np.zeros((10, *side), np.uint8), np.array(labels)
        for name in ("cifar10", "stl10"):
            np.savez(tmp_path / f"{name}.npz", x_train=images, y_train=own, x_test=images, y_test=own)

        with pytest.raises(DataError, match=words):
            load_task(TASKS["C->T"], tmp_path)

    def test_two_cameras_share_no_photograph(self, tmp_path: Path) -> None:
        own = np.arange(12, dtype=np.uint8)
        images = np.broadcast_to(20 * own[:, None, None, None], (12, 32, 32, 3)).copy()
        np.savez(tmp_path / "cifar10.npz", x_train=images, y_train=own % 10, x_test=images, y_test=own % 10)

        data = load_task(task_called("P-p"), tmp_path)

        assert data.source.y_train.tolist() == [0, 2, 4, 6, 8, 0]
        assert data.target.y_train.tolist() == [1, 3, 5, 7, 9, 1]
        assert set(data.source.x_train[1].flatten().tolist()) == {40}
        assert data.target.x_train[1, 0, 0].tolist() == [69, 57, 42]  # 60 in a warm light
        assert data.target.x_test is not None
        assert data.target.x_test.shape == (12, 32, 32, 3)
        assert "second camera" in data.target.name

    def test_a_zip_of_class_folders_is_a_domain_whose_images_all_score(self, tmp_path: Path) -> None:
        for look, brightness in (("photo", 200), ("sketch", 40)):
            write_pacs(tmp_path / f"pacs_{look}.zip", PACS_CLASSES, brightness)

        data = load_task(task_called("photo-sketch"), tmp_path)

        assert data.source.y_train.tolist() == data.target.y_train.tolist() == [*range(7)]
        assert data.target.y_test is not None
        assert data.target.y_test.tolist() == [*range(7)]
        assert (int(data.source.x_train.max()), int(data.target.x_train.max())) == (200, 40)
        assert "all of which score (pacs_sketch.zip, 7 + 7 images)" in data.target.name

    def test_few_answers_are_not_all_about_the_first_folder(self, tmp_path: Path) -> None:
        for look in ("photo", "sketch"):
            write_pacs(tmp_path / f"pacs_{look}.zip", PACS_CLASSES, 100)
        data = load_task(task_called("photo-sketch"), tmp_path)

        answered = [
            labelled(data, seed=seed, setting="cc", answers=3).complementary != NO_LABEL for seed in range(9)
        ]

        assert {int(rows.sum()) for rows in answered} == {3}
        assert all(any(rows[i] for rows in answered) for i in range(7))

    def test_a_zip_of_other_classes_or_a_damaged_one_is_refused(self, tmp_path: Path) -> None:
        write_pacs(tmp_path / "pacs_photo.zip", ("cat", "dog"), 200)
        with pytest.raises(DataError, match=r"needs the classes dog, elephant.* it has .'cat', 'dog'"):
            read_domain("photo", tmp_path)
        (tmp_path / "pacs_photo.zip").write_bytes(b"no zip")
        with pytest.raises(DataError, match="damaged"):
            read_domain("photo", tmp_path)

    def test_the_second_camera_sees_less(self) -> None:
        lines = torch.zeros(1, 32, 32, 3, dtype=torch.uint8)
        lines[:, ::2] = 200

        seen = second_camera(lines).float()

        assert float(seen[0, 4:-4].std(dim=0).max()) < 5  # lines of one pixel are gone
        assert seen[..., 0].mean() > seen[..., 1].mean() > seen[..., 2].mean()

    @pytest.mark.long
    def test_made_images_are_named_so(self, tmp_path: Path) -> None:
        from clarinet.reproduction.glyphs import glyphs

        write_synthetic_digits(tmp_path / "syn_digits.npz", 20, glyphs(), seed=3)
        write_npz(tmp_path / "mnist.npz", 28, 28)

        data = load_task(TASKS["Y->M"], tmp_path)

        assert data.source.name.startswith("SYN-DIGITS (regenerated, seed 3")

    def test_the_digest_tells_data_apart(self, tmp_path: Path) -> None:
        digests = []
        for label in (0, 0, 1):
            write_npz(tmp_path / "mnist.npz", 28, 28)
            np.savez(
                tmp_path / "usps_28x28.npz",
                x_train=pixels(3, 28, 28),
                y_train=np.array([0, 1, label], np.uint8),
                x_test=pixels(2, 28, 28),
                y_test=np.zeros(2, np.uint8),
            )
            digests.append(load_task(TASKS["U->M"], tmp_path).digest)

        assert digests[0] == digests[1] != digests[2]

    def test_only_the_first_answers_count(self, tmp_path: Path) -> None:
        write_npz(tmp_path / "mnist.npz", 28, 28)
        write_npz(tmp_path / "usps_28x28.npz", 28, 28)
        data = load_task(TASKS["U->M"], tmp_path)

        few = labelled(data, seed=0, setting="cc", answers=2)
        some = labelled(data, seed=0, setting="pc", true_count=1, answers=3)

        assert (few.complementary >= 0).tolist() == [True, True, False, False, False, False]
        assert len(few.source_images) == 6
        assert int((some.true >= 0).sum()) == 1
        assert int(((some.true >= 0) | (some.complementary >= 0)).sum()) == 3
        with pytest.raises(DataError, match="7 answers"):
            labelled(data, seed=0, setting="cc", answers=7)
