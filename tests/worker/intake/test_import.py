"""What becomes of an upload: rows, classes, splits, stored bytes and their digests."""

import hashlib
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import true
from sqlalchemy.orm import Session

from app.datasets import service
from app.datasets.images import example_bytes
from app.datasets.models import Dataset, DatasetState, Split
from app.stores.folder import FolderStorage
from clarinet import load_folder
from tests.app.datasets.files import images, npz_of, picture, zip_of
from tests.app.datasets.refused import NAME
from tests.clarinet.drawn import scenes, signs
from tests.clarinet.factories import in_memory
from tests.clarinet.looks import Stack
from tests.worker.intake.conftest import examples_of, files_in
from worker import intake
from worker.context import Context
from worker.intake import import_dataset


class TestImport:
    def test_class_folders(
        self, context: Context, session: Session, storage: FolderStorage, upload: Callable[..., Dataset]
    ) -> None:
        # A wrapping folder, what systems leave in it, and remarks do not count; 10 comes after 9.
        files = {
            "pets/README.md": b"hello",
            "pets/.DS_Store": b"?",
            "__MACOSX/pets/._x.png": b"?",
            "pets/test/10/a.png": picture(shade=1),
            "pets/train/9/b.jpg": picture("JPEG", shade=2),
            "pets/train/10/c.webp": picture("WEBP", shade=3, lossless=True),
            "pets/train/9/a.gif": picture("GIF", shade=4),
        }
        dataset = upload(zip_of(files))

        import_dataset(context, dataset.id)

        session.refresh(dataset)
        assert dataset.failure is None
        assert dataset.state is DatasetState.READY
        assert dataset.class_names == ["9", "10"]
        assert (dataset.train_count, dataset.test_count, dataset.channels) == (3, 1, 3)
        assert (dataset.train_per_class, dataset.test_per_class) == ([2, 1], [0, 1])
        found = [(e.position, e.split.value, e.true_class) for e in examples_of(session, dataset)]
        assert found == [(0, "train", 1), (1, "train", 0), (2, "train", 0), (3, "test", 1)]
        assert (dataset.upload, dataset.claimed_until, dataset.progress) == (None, None, 4)
        assert files_in(storage) == [f"datasets/{dataset.id}/1/shard-00000.bin"]

    def test_a_flat_zip_has_no_classes(
        self, context: Context, session: Session, upload: Callable[..., Dataset]
    ) -> None:
        dataset = upload(
            zip_of({"holiday/1.png": picture(mode="L"), "holiday/2.png": picture(mode="L", shade=1)})
        )

        import_dataset(context, dataset.id)

        session.refresh(dataset)
        assert (dataset.state, dataset.class_names, dataset.channels) == (DatasetState.READY, None, 1)
        assert [e.true_class for e in examples_of(session, dataset)] == [None, None]

    @pytest.mark.parametrize("beside", [True, False])
    def test_a_table_names_classes_and_splits(
        self, context: Context, session: Session, upload: Callable[..., Dataset], *, beside: bool
    ) -> None:
        table = "\ufefffilename,split,class\r\nb.png,test,dog\r\na.png,,cat\r\nc.png,train,\r\n".encode()
        files = {f"images/{name}.png": picture(shade=shade) for shade, name in enumerate("abc")}
        dataset = upload(
            zip_of(files if beside else {**files, "images/labels.csv": table}),
            table=table if beside else None,
        )

        import_dataset(context, dataset.id)

        session.refresh(dataset)
        assert dataset.failure is None
        assert dataset.class_names == ["cat", "dog"]
        found = [(e.split.value, e.true_class) for e in examples_of(session, dataset)]
        assert found == [("train", 0), ("train", None), ("test", 1)]

    def test_arrays_come_back_as_they_were(
        self, context: Context, session: Session, storage: FolderStorage, upload: Callable[..., Dataset]
    ) -> None:
        train, test = images(30, 7, 5, 3), images(10, 7, 5, 3, seed=1)
        labels = np.arange(30) % 3 * 2
        dataset = upload(npz_of(zipfile.ZIP_LZMA, x_train=train, y_train=labels, x_test=test, idx=labels))

        import_dataset(context, dataset.id)

        session.refresh(dataset)
        assert dataset.failure is None
        # 1 and 3 have no image, and keep their places.
        assert dataset.class_names == ["0", "1", "2", "3", "4"]
        loaded = service.stored_images(session, storage, dataset.id, Split.TRAIN)
        np.testing.assert_array_equal(loaded.load(), train)
        np.testing.assert_array_equal(loaded.true_classes, labels)
        loaded = service.stored_images(session, storage, dataset.id)
        np.testing.assert_array_equal(loaded.load(), np.concatenate([train, test]))
        assert set(loaded.true_classes[30:]) == {-1}
        assert loaded.ids == [example.id for example in examples_of(session, dataset)]

    @pytest.mark.parametrize(
        ("comment", "made"),
        [
            (b'{"made": "regenerated, seed 0, 63 fonts"}', "regenerated, seed 0, 63 fonts"),
            (b"made by hand", None),
            (b'["made"]', None),
            (b'{"made": "two\\nlines"}', None),
            (b'{"made": "' + 201 * b"x" + b'"}', None),
            (60_000 * b"[", None),
            (b"", None),
        ],
    )
    def test_images_that_were_made_anew_keep_saying_so(
        self,
        comment: bytes,
        made: str | None,
        context: Context,
        session: Session,
        upload: Callable[..., Dataset],
    ) -> None:
        file = io.BytesIO(npz_of(x_train=images(3, 8, 8)))
        with zipfile.ZipFile(file, "a") as archive:
            archive.comment = comment
        dataset = upload(file.getvalue())

        import_dataset(context, dataset.id)

        session.refresh(dataset)
        assert (dataset.state, dataset.made) == (DatasetState.READY, made)

    @pytest.mark.parametrize(
        ("train", "test", "looks"),
        [
            (signs(), scenes(28, colour=False), "digits"),
            (scenes(60), [], "photographs"),
            ([], signs(), "digits"),
        ],
        ids=["digits", "photographs", "without training images"],
    )
    def test_what_images_look_like_is_kept_and_seen_again_where_it_was_not(
        self,
        *,
        train: Stack,
        test: Stack,
        looks: str,
        context: Context,
        session: Session,
        storage: FolderStorage,
        upload: Callable[..., Dataset],
    ) -> None:
        """Training images tell, where there are some; imports of earlier versions did not look."""
        arrays = {name: np.stack(part) for name, part in (("x_train", train), ("x_test", test)) if part}
        dataset = upload(npz_of(**arrays))

        import_dataset(context, dataset.id)

        session.refresh(dataset)
        assert (dataset.state, dataset.looks) == (DatasetState.READY, looks)
        dataset.looks = None
        assert service.looks_of(session, storage, dataset) == looks
        assert dataset.looks is None

    def test_a_folder_read_by_the_library_is_in_the_same_order(
        self,
        context: Context,
        session: Session,
        storage: FolderStorage,
        upload: Callable[..., Dataset],
        tmp_path: Path,
    ) -> None:
        """So that a campaign's label file fits the folder of photographs on somebody's own disk."""
        folder = tmp_path / "photographs"
        names = ["10", "9", "dog", "dog house", "Zebra", "dog-sled", "äpfel"]
        files = {
            f"pets/Train/{name}/{n}{suffix}": picture(
                "BMP" if suffix == ".dib" else "PNG", size=(8, 8), shade=7 * place + n
            )
            for place, name in enumerate(names)
            for n, suffix in ((10, ".png"), (9, ""), (8, ".jfif"), (7, ".dib"))
        }
        for path, content in {**files, "pets/Train/dog/._10.png": b"what a Mac adds"}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        dataset = upload(zip_of(files))

        import_dataset(context, dataset.id)
        arrays, classes = load_folder(folder, side=8)

        session.refresh(dataset)
        assert dataset.class_names == classes == ["9", "10", "Zebra", "dog", "dog house", "dog-sled", "äpfel"]
        found = examples_of(session, dataset)
        assert [example.true_class for example in found] == arrays["y_train"].tolist()
        stored = service.stored_images(session, storage, dataset.id)
        np.testing.assert_array_equal(stored.load(), in_memory(arrays["x_train"]).numpy())

    @pytest.mark.long
    def test_many_images_are_rows_in_order(
        self, context: Context, session: Session, storage: FolderStorage, upload: Callable[..., Dataset]
    ) -> None:
        count = intake.ROWS_AT_ONCE + 7
        train = images(count, 2, 2)
        dataset = upload(npz_of(x_train=train))

        import_dataset(context, dataset.id)

        session.refresh(dataset)
        found = examples_of(session, dataset)
        assert [example.position for example in found] == list(range(count))
        np.testing.assert_array_equal(service.stored_images(session, storage, dataset.id).load(), train)

    def test_the_same_images_in_another_zip_are_the_same_dataset(
        self, context: Context, session: Session, upload: Callable[..., Dataset]
    ) -> None:
        files = {f"{name}/{n}.png": picture(shade=n) for n in range(6) for name in ("cat", "dog")}
        shuffled = dict(sorted(files.items(), key=lambda item: item[1]))
        other = {**files, "dog/5.png": picture(shade=77)}
        digests = []
        for data in (zip_of(files), zip_of(shuffled, zipfile.ZIP_STORED), zip_of(other)):
            dataset = upload(data)
            import_dataset(context, dataset.id)
            session.refresh(dataset)
            digests.append(dataset.digest)

        assert digests[0] == digests[1] != digests[2]

    def test_the_digest_is_over_the_digests_of_the_stored_bytes(
        self, context: Context, session: Session, storage: FolderStorage, upload: Callable[..., Dataset]
    ) -> None:
        dataset = upload(npz_of(x_train=images(5, 4, 4)))

        import_dataset(context, dataset.id)

        session.refresh(dataset)
        whole = hashlib.sha256()
        for example in examples_of(session, dataset):
            stored = example_bytes(session, storage, dataset.id, example.id, true())
            assert hashlib.sha256(stored.data).hexdigest() == example.digest == stored.digest
            whole.update(bytes.fromhex(example.digest))
        assert dataset.digest == whole.hexdigest()

    def test_an_npz_that_was_announced_must_be_one(
        self, context: Context, session: Session, upload: Callable[..., Dataset]
    ) -> None:
        dataset = upload(zip_of({"cat/1.png": picture()}), kind="npz")

        import_dataset(context, dataset.id)

        session.refresh(dataset)
        assert dataset.failure == f'"{NAME}" has neither an array x_train nor an array x_test.'
