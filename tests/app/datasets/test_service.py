"""Rules of datasets: who may, what is kept, in which order."""

import io
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from sqlalchemy import true, update
from sqlalchemy.orm import Session

from app import jobs
from app.accounts.errors import NotAllowed
from app.accounts.models import User
from app.campaigns.models import Campaign
from app.claims import MAX_ATTEMPTS
from app.datasets import importing, service
from app.datasets.errors import (
    BadUpload,
    DatasetInUse,
    DatasetNameTaken,
    DatasetNotFound,
    DatasetNotReady,
    ExampleNotFound,
    PathNotAllowed,
    SizesDiffer,
)
from app.datasets.images import example_bytes
from app.datasets.intake.pictures import picture_of_pixels
from app.datasets.intake.shards import Incoming, ShardWriter, read_records
from app.datasets.models import Dataset, DatasetState, Example, Split
from app.datasets.uploads import Upload, open_server_file
from app.jobs import Job
from app.stores.folder import FolderStorage
from tests.app.datasets.files import images, picture, zip_of
from tests.factories import NOW, make_dataset

ZIP = zip_of({"cat/1.png": picture()})


def stored_files(storage: FolderStorage) -> list[Path]:
    """Every file that is stored."""
    return [path for path in storage.root.rglob("*") if path.is_file()]


def upload(data: bytes = ZIP, filename: str = "pets.zip") -> Upload:
    """A file as somebody sends it."""
    return Upload(io.BytesIO(data), filename)


class TestCreateDataset:
    def test_the_file_is_kept_and_its_import_asked_for(
        self, session: Session, storage: FolderStorage, admin: User
    ) -> None:
        dataset = service.create_dataset(session, storage, upload(), name=" Pets ", by=admin, now=NOW)

        assert dataset.name == "Pets"
        assert dataset.state is DatasetState.IMPORTING
        assert session.info["jobs"] == [Job(jobs.IMPORT_DATASET, (str(dataset.id),))]
        assert dataset.upload == {
            "kind": "auto",
            "name": "pets.zip",
            "data": f"uploads/{dataset.id}/data",
            "classes": "",
            "first_class": "",
            "no_label": "",
            "skip_bad": False,
            "encoding": "",
        }
        assert storage.read(f"uploads/{dataset.id}/data") == ZIP

    @pytest.mark.parametrize("filename", ["../../etc/pets.zip", "C:\\fakepath\\pets.zip", "/pets.zip"])
    def test_only_the_last_part_of_a_file_name_is_kept(
        self, session: Session, storage: FolderStorage, admin: User, filename: str
    ) -> None:
        dataset = service.create_dataset(
            session, storage, upload(filename=filename), name="Pets", by=admin, now=NOW
        )

        assert (dataset.upload or {})["name"] == "pets.zip"

    def test_a_name_is_given_once_and_the_second_file_goes(
        self, session: Session, storage: FolderStorage, admin: User
    ) -> None:
        service.create_dataset(session, storage, upload(), name="Pets", by=admin, now=NOW)

        with pytest.raises(DatasetNameTaken):
            service.create_dataset(session, storage, upload(), name="Pets", by=admin, now=NOW)

        assert len(stored_files(storage)) == 1

    @pytest.mark.parametrize("data", [b"", b"PK", b"\x89PNG\r\n\x1a\n", b"<svg/>"])
    def test_what_is_no_zip_is_refused_at_once(
        self, session: Session, storage: FolderStorage, admin: User, data: bytes
    ) -> None:
        with pytest.raises(BadUpload):
            service.create_dataset(session, storage, upload(data), name="Pets", by=admin, now=NOW)

        assert stored_files(storage) == []

    def test_annotators_add_none(self, session: Session, storage: FolderStorage, annotator: User) -> None:
        with pytest.raises(NotAllowed):
            service.create_dataset(session, storage, upload(), name="Pets", by=annotator, now=NOW)

        assert stored_files(storage) == []


class TestOpenServerFile:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        """A folder that may be imported from, and a secret beside it."""
        (tmp_path / "data" / "inner").mkdir(parents=True)
        (tmp_path / "data-private").mkdir()
        (tmp_path / "data-private" / "secret.zip").write_bytes(b"secret")
        (tmp_path / "data" / "inner" / "a.zip").write_bytes(b"open")
        return tmp_path / "data"

    def test_a_file_below_a_root(self, root: Path) -> None:
        (root / "b.zip").symlink_to(root / "inner" / "a.zip")

        for path in ("inner/a.zip", "inner/../inner/a.zip", "b.zip"):
            with open_server_file(str(root / path), [root]) as file:
                assert file.read() == b"open"

    @pytest.mark.parametrize(
        "path",
        [
            "../data-private/secret.zip",
            "link.zip",
            "folder/secret.zip",
            "inner",
            "pipe",
            "missing.zip",
            "a\0b",
            "",
        ],
    )
    def test_anything_else_is_refused_in_the_same_words(self, root: Path, path: str) -> None:
        secret = root.parent / "data-private"
        (root / "link.zip").symlink_to(secret / "secret.zip")
        (root / "folder").symlink_to(secret)
        os.mkfifo(root / "pipe")

        with (
            pytest.raises(PathNotAllowed, match="not a file in one of the folders"),
            open_server_file(f"{root}/{path}", [root]),
        ):
            pytest.fail("it was opened")

    def test_without_roots_nothing_is_opened(self, root: Path) -> None:
        with pytest.raises(PathNotAllowed), open_server_file(str(root / "inner" / "a.zip"), []):
            pytest.fail("it was opened")


class TestListDatasets:
    def test_newest_first_page_by_page(self, session: Session, storage: FolderStorage, admin: User) -> None:
        made = [make_dataset(session, storage, train=1, test=0, by=admin) for _ in range(5)]
        for age, dataset in enumerate(made):
            dataset.created_at = NOW - timedelta(days=age // 2)  # some share their time
        session.flush()

        first = service.list_datasets(session, by=admin, limit=3)
        second = service.list_datasets(session, by=admin, limit=3, after=first[-1].id)

        assert {d.id for d in [*first, *second]} == {d.id for d in made}
        assert [d.created_at for d in [*first, *second]] == [d.created_at for d in made]

    def test_after_an_unknown_one(self, session: Session, admin: User) -> None:
        with pytest.raises(DatasetNotFound):
            service.list_datasets(session, by=admin, after=uuid4())

    def test_annotators_see_none(self, session: Session, annotator: User) -> None:
        with pytest.raises(NotAllowed):
            service.list_datasets(session, by=annotator)


class TestDeleteDataset:
    def test_the_files_go_with_the_commit(
        self, session: Session, storage: FolderStorage, admin: User
    ) -> None:
        dataset = make_dataset(session, storage, by=admin)
        kept = make_dataset(session, storage, by=admin)
        session.commit()

        service.delete_dataset(session, storage, dataset, by=admin)

        assert storage.path(f"datasets/{dataset.id}").exists()
        session.commit()
        assert not storage.path(f"datasets/{dataset.id}").exists()
        assert storage.path(f"datasets/{kept.id}").exists()
        assert session.get(Dataset, dataset.id, populate_existing=True) is None

    def test_one_that_a_campaign_uses_stays(
        self, session: Session, storage: FolderStorage, admin: User
    ) -> None:
        dataset = make_dataset(session, storage, by=admin)
        session.add(
            Campaign(name="C", dataset_id=dataset.id, seed="0" * 64, created_by_id=admin.id, created_at=NOW)
        )
        session.commit()

        with pytest.raises(DatasetInUse):
            service.delete_dataset(session, storage, dataset, by=admin)

        session.commit()
        assert len(session.scalars(service.examples_of(dataset.id)).all()) == 8
        assert storage.path(f"datasets/{dataset.id}").exists()


class TestExamples:
    def test_by_key_split_and_class(self, session: Session, storage: FolderStorage) -> None:
        dataset = make_dataset(session, storage, train=6, test=4, class_names=["a", "b"])

        def positions(**chosen: object) -> list[int]:
            found = session.scalars(service.examples_of(dataset.id, **chosen))  # type: ignore[arg-type]
            return [example.position for example in found]

        assert positions(limit=3) == [0, 1, 2]
        assert positions(after=2, limit=3) == [3, 4, 5]
        assert positions(split=Split.TEST) == [6, 7, 8, 9]
        assert positions(true_class=1, split=Split.TRAIN) == [1, 3, 5]
        assert positions(true_class=7) == []

    def test_counts_by_split_and_class(self, session: Session, storage: FolderStorage) -> None:
        dataset = make_dataset(session, storage, train=5, test=2, class_names=["a", "b"])
        unknown = make_dataset(session, storage, train=3, test=0, class_names=None)

        assert (dataset.train_per_class, dataset.test_per_class) == ([3, 2], [1, 1])
        assert (unknown.train_per_class, unknown.test_per_class) == ([], [])
        assert service.per_class({("test", 1): 4, ("train", None): 9}, ["a", "b"]) == {
            "train_per_class": [0, 0],
            "test_per_class": [0, 4],
        }

    def test_samples_are_spread(self, session: Session, storage: FolderStorage) -> None:
        dataset = make_dataset(session, storage, train=90, test=10)

        assert [e.position for e in service.samples_of(session, dataset, 4)] == [0, 25, 50, 75]
        assert len(service.samples_of(session, make_dataset(session, storage, train=2, test=0), 12)) == 2

    def test_bytes_only_of_a_ready_dataset_of_one_s_own(
        self, session: Session, storage: FolderStorage
    ) -> None:
        dataset, other = make_dataset(session, storage), make_dataset(session, storage)
        example = session.scalars(service.examples_of(dataset.id)).first()
        assert example

        assert example_bytes(session, storage, dataset.id, example.id, true()).data.startswith(b"\x89PNG")
        with pytest.raises(ExampleNotFound):
            example_bytes(session, storage, other.id, example.id, true())
        dataset.state = DatasetState.IMPORTING
        session.flush()
        with pytest.raises(ExampleNotFound):
            example_bytes(session, storage, dataset.id, example.id, true())


class TestStoredImages:
    @pytest.fixture
    def make(self, session: Session, storage: FolderStorage) -> Callable[..., Dataset]:
        """Datasets of given arrays, in several shards."""

        def make(*arrays: np.ndarray) -> Dataset:
            dataset = make_dataset(session, storage, train=0, test=0)
            with ShardWriter(storage, service.prefix_of(dataset), shard_bytes=1000) as shards:
                for array in arrays:
                    shards.add(Incoming("train", None, picture_of_pixels(array)))
            for records in read_records(storage, service.prefix_of(dataset), chunk=100):
                service.insert_examples(session, dataset.id, records, first_position=0)
            dataset.channels = shards.channels
            session.flush()
            return dataset

        return make

    def test_many_shards(
        self, session: Session, storage: FolderStorage, make: Callable[..., Dataset]
    ) -> None:
        arrays = images(50, 6, 7)
        dataset = make(*arrays)
        shards = {e.shard for e in session.scalars(service.examples_of(dataset.id))}

        loaded = service.stored_images(session, storage, dataset.id).load()

        assert len(shards) > 3
        np.testing.assert_array_equal(loaded, arrays)

    def test_grey_among_colours_becomes_rgb(
        self, session: Session, storage: FolderStorage, make: Callable[..., Dataset]
    ) -> None:
        grey, colour = images(1, 4, 4)[0], images(1, 4, 4, 3)[0]

        loaded = service.stored_images(session, storage, make(grey, colour).id).load()

        np.testing.assert_array_equal(loaded[0], np.stack([grey] * 3, axis=-1))
        np.testing.assert_array_equal(loaded[1], colour)

    def test_several_sizes_need_one_that_was_chosen(
        self, session: Session, storage: FolderStorage, make: Callable[..., Dataset]
    ) -> None:
        dataset = make(np.full((4, 8), 90, np.uint8), np.full((16, 4), 200, np.uint8))

        with pytest.raises(SizesDiffer):
            service.stored_images(session, storage, dataset.id)
        loaded = service.stored_images(session, storage, dataset.id, size=(5, 6)).load()

        assert loaded.shape == (2, 5, 6)
        assert [set(array.flat) for array in loaded] == [{90}, {200}]

    def test_shrinking_averages(
        self, session: Session, storage: FolderStorage, make: Callable[..., Dataset]
    ) -> None:
        board = (np.indices((16, 16)).sum(0) % 2 * 255).astype(np.uint8)

        loaded = service.stored_images(session, storage, make(board).id, size=(2, 2)).load()

        assert abs(loaded.astype(int) - 127).max() <= 12

    def test_an_empty_split(self, session: Session, storage: FolderStorage) -> None:
        dataset = make_dataset(session, storage, test=0)

        assert len(service.stored_images(session, storage, dataset.id, Split.TEST).load()) == 0

    def test_only_of_a_ready_dataset(self, session: Session, storage: FolderStorage) -> None:
        dataset = make_dataset(session, storage)
        dataset.state = DatasetState.FAILED
        session.flush()

        with pytest.raises(DatasetNotReady):
            service.stored_images(session, storage, dataset.id)
        with pytest.raises(DatasetNotFound):
            service.stored_images(session, storage, uuid4())


class TestWaitingImports:
    def test_neither_held_nor_given_up_nor_ended(
        self, session: Session, storage: FolderStorage, admin: User
    ) -> None:
        states: dict[str, dict[str, Any]] = {
            "waiting": {},
            "lapsed": {"claimed_until": NOW - timedelta(seconds=1)},
            "held": {"claimed_until": NOW + timedelta(seconds=1)},
            "given up": {"attempts": MAX_ATTEMPTS},
            "ready": {"state": DatasetState.READY},
        }
        for name, values in states.items():
            dataset = service.create_dataset(session, storage, upload(), name=name, by=admin, now=NOW)
            if values:
                session.execute(update(Dataset).where(Dataset.id == dataset.id).values(values))

        found = importing.waiting_imports(session, Dataset, NOW)

        assert {session.get_one(Dataset, dataset_id).name for dataset_id in found} == {"waiting", "lapsed"}
        given_up = importing.give_up_imports(session, Dataset, NOW)
        assert [session.get_one(Dataset, dataset_id).name for dataset_id in given_up] == ["given up"]
        assert session.query(Example).count() == 0
