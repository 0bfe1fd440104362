"""Further images join a dataset: all at once or not at all, behind those that are there."""

import hashlib
import io
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event
from sqlalchemy.orm import Session

from app import claims, jobs
from app.accounts.errors import NotAllowed
from app.accounts.models import User
from app.claims import MAX_ATTEMPTS
from app.clock import utc_now
from app.datasets import growing, importing, naming, service, versions
from app.datasets.errors import DatasetNotReady, VersionPublished
from app.datasets.models import Dataset, DatasetState, DatasetVersion, Split
from app.datasets.uploads import Upload
from app.jobs import Job
from app.storage import Storage
from app.stores.folder import FolderStorage
from tests.app.datasets.files import images, npz_of, picture, zip_of
from tests.factories import NOW, make_user
from tests.worker.intake.conftest import PETS, Grow, Ready, examples_of, files_in, pets
from worker import intake
from worker.context import Context

MORE = {"train/dog/4.png": 4, "train/owl/5.png": 5, "test/owl/6.png": 6}


def shades(session: Session, storage: Storage, dataset: Dataset) -> list[int]:
    """Of the images, in order: what their pixels are."""
    pixels = service.stored_images(session, storage, dataset.id).load()
    return [int(image.flat[0]) for image in pixels]


def shards_in(storage: Storage) -> list[str]:
    return [name for name in files_in(storage) if "shard-" in name]


def test_further_images_join_behind_the_others_as_a_version(
    session: Session, storage: FolderStorage, ready: Ready, grow: Grow
) -> None:
    dataset = ready(pets(PETS))
    before = [(row.id, row.digest, row.true_class) for row in examples_of(session, dataset)]
    first_digest = dataset.digest

    added = grow(dataset, pets({path.replace("dog", "Dog"): shade for path, shade in MORE.items()}))

    assert (added.failure, added.state, added.number, added.first_position) == (None, "ready", 2, 3)
    found = examples_of(session, dataset)
    assert [(row.id, row.digest, row.true_class) for row in found[:3]] == before
    assert [(row.position, row.split.value, row.true_class) for row in found[3:]] == [
        (3, "train", 1),
        (4, "train", 2),
        (5, "test", 2),
    ]
    assert dataset.class_names == ["cat", "dog", "owl"]
    assert (dataset.train_count, dataset.test_count) == (4, 2)
    assert (dataset.train_per_class, dataset.test_per_class) == ([1, 2, 1], [1, 0, 1])
    assert len(set(shades(session, storage, dataset))) == 6
    assert any("new class: owl" in note for note in added.notes)
    first, second = versions.versions_of(session, dataset.id)
    assert (first.number, first.digest, first.class_names) == (1, first_digest, ["cat", "dog"])
    assert (second.digest, second.train_count) == (dataset.digest, 4)
    # What has joined lies in the dataset's folder, and nothing else is left.
    assert all(name.startswith(f"datasets/{dataset.id}/") for name in files_in(storage))
    old = service.stored_images(session, storage, dataset.id, Split.TRAIN, version=1)
    assert old.ids == [before[0][0], before[1][0]]


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_dataset_in_two_steps_is_the_dataset_in_one(
    session: Session,
    storage: FolderStorage,
    ready: Ready,
    grow: Grow,
    data: st.DataObject,
) -> None:
    # Without test images the order is that of the file, so both ways give the same positions.
    count = data.draw(st.integers(2, 6))
    cut = data.draw(st.integers(1, count - 1))
    pixels, labels = images(count, 5, 5, seed=count), np.arange(count) % 3
    whole = ready(npz_of(x_train=pixels, y_train=labels))

    parts = ready(npz_of(x_train=pixels[:cut], y_train=labels[:cut]))
    grow(parts, npz_of(x_train=pixels[cut:], y_train=labels[cut:]))

    both = [
        [(row.position, row.split, row.true_class, row.digest) for row in examples_of(session, dataset)]
        for dataset in (whole, parts)
    ]
    assert both[0] == both[1]
    assert whole.digest == parts.digest
    assert (whole.train_per_class, whole.size_bytes) == (parts.train_per_class, parts.size_bytes)
    assert whole.class_names == parts.class_names
    digests = b"".join(bytes.fromhex(row.digest) for row in examples_of(session, parts))
    assert parts.digest == hashlib.sha256(digests).hexdigest()
    assert shades(session, storage, whole) == shades(session, storage, parts)


def test_images_that_are_there_are_left_out_or_told_of(ready: Ready, grow: Grow) -> None:
    dataset = ready(pets(PETS))

    left = grow(dataset, pets(PETS | MORE))
    same = grow(dataset, pets({"train/cat/9.png": 1, "train/dog/8.png": 8}), skip_known=False)
    nothing = grow(dataset, pets(PETS))

    assert (left.number, left.progress) == (2, 3)
    assert any("3 images are in the dataset already and left out" in note for note in left.notes)
    assert (same.number, same.progress) == (3, 2)
    assert any("1 image is the same as one that was there before" in note for note in same.notes)
    assert (nothing.state, nothing.number) == ("failed", None)
    assert "has all of these images already" in (nothing.failure or "")
    assert dataset.train_count + dataset.test_count == 8


def test_a_killed_import_leaves_the_old_version_and_starts_again(
    context: Context,
    session: Session,
    ready: Ready,
    grow: Grow,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    storage = context.storage

    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    dataset = ready(pets(PETS))
    before = dataset.digest
    addition = grow(dataset, pets(MORE), work=False)
    with monkeypatch.context() as patch:
        patch.setattr(growing, "_count", die)  # rows are written and shards moved, and nothing is committed
        with pytest.raises(Killed):
            intake.add_images(context, addition.id)

    session.expire_all()
    assert (dataset.digest, len(examples_of(session, dataset))) == (before, 3)
    assert [version.number for version in versions.versions_of(session, dataset.id)] == [1]

    addition.claimed_until = utc_now() - timedelta(seconds=1)  # its lease has run out
    session.commit()
    assert importing.waiting_imports(session, DatasetVersion, utc_now()) == [addition.id]
    intake.add_images(context, addition.id)

    session.expire_all()
    assert (addition.number, len(examples_of(session, dataset))) == (2, 6)
    assert len(set(shades(session, storage, dataset))) == 6
    assert len(shards_in(storage)) == 2, "what the killed one had copied is gone"


@pytest.mark.parametrize("end", ["dropped", "given up"])
def test_nothing_is_left_of_a_killed_import_that_is_not_tried_again(
    *,
    context: Context,
    session: Session,
    ready: Ready,
    grow: Grow,
    admin: User,
    monkeypatch: pytest.MonkeyPatch,
    end: str,
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    dataset = ready(pets(PETS))
    addition = grow(dataset, pets(MORE), work=False)
    with monkeypatch.context() as patch:
        patch.setattr(growing, "_count", die)
        with pytest.raises(Killed):
            intake.add_images(context, addition.id)
    assert len(shards_in(context.storage)) == 2
    session.expire_all()

    if end == "dropped":
        growing.drop_addition(session, context.storage, addition, by=admin)
    else:
        addition.attempts, addition.claimed_until = MAX_ATTEMPTS, NOW - timedelta(seconds=1)
        session.flush()
        assert importing.give_up_imports(session, DatasetVersion, NOW) == [addition.id]
    session.commit()
    intake.add_images(context, addition.id)  # which sweeps

    assert len(shards_in(context.storage)) == 1
    assert all(name.startswith(f"datasets/{dataset.id}/") for name in files_in(context.storage))


def test_joining_reads_nothing_of_the_images_that_were_there(
    context: Context, session: Session, ready: Ready, grow: Grow
) -> None:
    """On SQLite nobody answers meanwhile: it may not take longer the larger a dataset is."""
    dataset = ready(pets(PETS))
    came = {"train/cat/9.png": 8, "train/dog/9.png": 8, "train/dog/1.png": 1, "train/dog/2.png": 7}
    addition = grow(dataset, pets(came), skip_known=False, work=False)
    real = growing.publish
    said: list[tuple[str, Any]] = []

    def listened_to(own: Session, *details: Any, **further: Any) -> int:
        engine = own.connection().engine

        def note(*args: Any) -> None:
            said.append((str(args[2]), args[3]))

        event.listen(engine, "before_cursor_execute", note)
        try:
            return real(own, *details, **further)
        finally:
            event.remove(engine, "before_cursor_execute", note)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growing, "publish", listened_to)
        intake.add_images(context, addition.id)

    session.expire_all()
    assert (addition.failure, addition.number) == (None, 2)
    reads = [one for one in said if "FROM example" in one[0]]
    assert len(reads) == 3, "what came since, twins and namesakes"
    for sql, values in reads:
        assert "example.position >= " in sql
        assert 3 in (values.values() if isinstance(values, dict) else values)


def test_two_who_add_at_once_get_a_version_each(
    context: Context, session: Session, storage: FolderStorage, ready: Ready, grow: Grow
) -> None:
    dataset = ready(pets(PETS))
    one = grow(dataset, pets({"train/cat/a.png": 11, "train/dog/b.png": 12}), work=False)
    other = grow(dataset, pets({"train/cat/c.png": 13, "train/dog/d.png": 14}), work=False)
    real = growing.publish

    def after_the_other(*details: Any, **further: Any) -> int:
        if growing.publish is after_the_other:
            growing.publish = real
            intake.add_images(context, other.id)  # the other is packed and published in between
        return real(*details, **further)

    growing.publish = after_the_other
    try:
        intake.add_images(context, one.id)
    finally:
        growing.publish = real

    session.expire_all()
    assert sorted([one.number or 0, other.number or 0]) == [2, 3]
    assert [row.position for row in examples_of(session, dataset)] == list(range(7))
    assert sorted(shades(session, storage, dataset)) == sorted(set(shades(session, storage, dataset)))


def test_numbers_of_shards_are_promised_once_also_where_nothing_came_of_it(
    session: Session, storage: FolderStorage, ready: Ready, grow: Grow, admin: User
) -> None:
    dataset = ready(pets(PETS))
    taken: list[str] = []
    for shade in (11, 12, 13):
        addition = grow(dataset, pets({"train/cat/a.png": shade}), work=False)
        claim = claims.claim(session, DatasetVersion, addition.id, by="here", now=NOW)
        assert claim is not None
        taken += growing.take_shards(session, claim, 2, now=NOW)[1]  # and copies for a long time
        growing.drop_addition(session, storage, addition, by=admin)
        session.commit()

    assert len(set(taken)) == 6
    assert not [key for key in taken if storage.about(key)]


def test_a_worker_that_lost_its_claim_publishes_nothing(
    context: Context, session: Session, ready: Ready, grow: Grow, admin: User
) -> None:
    dataset = ready(pets(PETS))
    addition, storage = grow(dataset, pets(MORE), work=False), context.storage
    real = growing.publish

    def dropped_before(*details: Any, **further: Any) -> int:
        growing.publish = real
        growing.drop_addition(session, storage, addition, by=admin)
        session.commit()
        return real(*details, **further)

    growing.publish = dropped_before
    try:
        intake.add_images(context, addition.id)
    finally:
        growing.publish = real

    session.expire_all()
    assert (len(examples_of(session, dataset)), versions.additions_of(session, dataset.id)) == (3, [])
    assert all(name.startswith(f"datasets/{dataset.id}/") for name in files_in(storage))
    assert len([name for name in files_in(storage) if "shard-" in name]) == 1  # what was copied is gone


def test_what_was_tried_too_often_is_given_up(session: Session, ready: Ready, grow: Grow) -> None:
    dataset = ready(pets(PETS))
    addition = grow(dataset, pets(MORE), work=False)
    addition.attempts = MAX_ATTEMPTS
    session.commit()

    assert importing.give_up_imports(session, DatasetVersion, NOW) == [addition.id]
    session.commit()

    session.refresh(addition)
    assert (addition.state, dataset.state) == ("failed", "ready")
    assert "worker died each time" in (addition.failure or "")


def test_a_stopping_worker_hands_further_images_back_without_a_lost_attempt(
    context: Context, session: Session, ready: Ready, grow: Grow
) -> None:
    dataset = ready(pets(PETS))
    dataset.attempts = 7  # of its own import
    addition = grow(dataset, pets(MORE), work=False)

    intake.add_images(replace(context, is_stopping=lambda: True), addition.id)

    session.expire_all()
    assert (addition.state, addition.attempts, addition.claimed_until) == (DatasetState.IMPORTING, 0, None)


def test_a_bad_file_can_be_left_out_afterwards(
    context: Context, session: Session, admin: User, ready: Ready, grow: Grow
) -> None:
    dataset = ready(pets(PETS))
    good = picture(mode="L", shade=9)
    addition = grow(dataset, zip_of({"train/cat/9.png": good, "train/dog/x.png": good[:40]}))
    assert (addition.state, addition.mend, dataset.train_count) == ("failed", "skip_bad", 2)

    importing.import_again(session, addition, skip_bad=True, by=admin)
    session.commit()
    intake.add_images(context, addition.id)

    session.expire_all()
    assert (addition.number, dataset.train_count) == (2, 3)
    assert [fault["file"] for fault in addition.faults] == ["train/dog/x.png"]


def test_who_may_add_and_drop(
    session: Session, storage: FolderStorage, admin: User, ready: Ready, grow: Grow
) -> None:
    dataset = ready(pets(PETS))
    joined = grow(dataset, pets(MORE))
    annotator = make_user(session)
    sent = Upload(io.BytesIO(pets(MORE)), "more.zip")

    with pytest.raises(NotAllowed):
        growing.add_images(session, storage, dataset, sent, by=annotator, now=NOW)
    with pytest.raises(NotAllowed):
        growing.drop_addition(session, storage, joined, by=annotator)
    with pytest.raises(NotAllowed):
        naming.name_classes(session, dataset, ["a", "b", "c"], by=annotator)
    with pytest.raises(VersionPublished):
        growing.drop_addition(session, storage, joined, by=admin)
    dataset.state = DatasetState.FAILED
    with pytest.raises(DatasetNotReady):
        growing.add_images(session, storage, dataset, sent, by=admin, now=NOW)
    session.rollback()


def test_a_deleted_dataset_takes_what_is_on_its_way_along(
    context: Context, session: Session, ready: Ready, grow: Grow, admin: User
) -> None:
    dataset = ready(pets(PETS))
    grow(dataset, pets(MORE))
    addition = grow(dataset, pets(MORE), work=False).id

    service.delete_dataset(session, context.storage, dataset, by=admin)
    session.commit()
    intake.add_images(context, addition)

    assert files_in(context.storage) == []
    assert session.query(DatasetVersion).count() == 0


def test_jobs_are_asked_for(session: Session, ready: Ready, grow: Grow) -> None:
    addition = grow(ready(pets(PETS)), pets(MORE), work=False)

    assert Job(jobs.ADD_IMAGES, (str(addition.id),)) in session.info["jobs"]
