"""Datasets: making, finding, deleting, and their examples."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, Select, and_, delete, event, func, insert, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app import jobs
from app.accounts import service as accounts
from app.accounts.models import User
from app.claims import Claim
from app.datasets import versions
from app.datasets.errors import (
    DatasetInUse,
    DatasetNameTaken,
    DatasetNotFound,
    DatasetNotReady,
    SizesDiffer,
)
from app.datasets.intake.shards import Record, shard_prefix
from app.datasets.looks import looks_of_dataset
from app.datasets.models import Dataset, DatasetState, Example, Holding, Split
from app.datasets.pixels import Place, StoredImages
from app.datasets.uploads import Upload, store_upload, upload_prefix
from app.journal import service as journal
from app.journal.models import Action
from app.storage import Storage
from app.uses import named, uses_of
from clarinet.recipes.choices import Looks


def create_dataset(
    session: Session,
    storage: Storage,
    upload: Upload,
    *,
    name: str,
    description: str = "",
    by: User,
    now: datetime,
) -> Dataset:
    """Keep the files and ask for their import.

    Raises:
        NotAllowed: `by` is no admin.
        BadUpload: this is no zip or npz.
        DatasetNameTaken: nothing was kept.
    """
    accounts.require_admin(by)
    dataset = Dataset(id=uuid4(), name=name.strip(), description=description.strip(), created_by_id=by.id)
    try:
        # Before the first statement: on SQLite a transaction keeps every other writer waiting, and this may
        # take seconds.
        dataset.upload = store_upload(storage, dataset.id, upload)
        dataset.created_at = now
        with session.begin_nested():
            session.add(dataset)
    except IntegrityError as error:
        storage.delete_tree(upload_prefix(dataset.id))
        raise DatasetNameTaken(dataset.name, named(session, Dataset, dataset.name)) from error
    except BaseException:
        storage.delete_tree(upload_prefix(dataset.id))
        raise
    jobs.enqueue(session, jobs.IMPORT_DATASET, dataset.id)
    journal.write(session, Action.DATASET_MADE, by=by, details={"dataset": dataset.name})
    return dataset


def get_dataset(session: Session, dataset_id: UUID, *, by: User) -> Dataset:
    """One dataset.

    Raises:
        NotAllowed: `by` is no admin.
        DatasetNotFound: there is none.
    """
    accounts.require_admin(by)
    return any_dataset(session, dataset_id)


def any_dataset(session: Session, dataset_id: UUID) -> Dataset:
    """One dataset, whoever asks: what a campaign's page says of its pictures.

    Raises:
        DatasetNotFound: there is none.
    """
    dataset = session.get(Dataset, dataset_id)
    if dataset is None:
        raise DatasetNotFound
    return dataset


def list_datasets(
    session: Session, *, by: User, archived: bool = False, after: UUID | None = None, limit: int = 50
) -> Sequence[Dataset]:
    """Datasets, newest first, that follow the dataset `after`; those archived, or those that are not.

    Raises:
        NotAllowed: `by` is no admin.
        DatasetNotFound: `after` is none.
    """
    query = select(Dataset).order_by(Dataset.created_at.desc(), Dataset.id.desc()).limit(limit)
    accounts.require_admin(by)
    query = query.where(Dataset.archived_at.is_not(None) if archived else Dataset.archived_at.is_(None))
    if after is not None:
        last = get_dataset(session, after, by=by)
        same_time = and_(Dataset.created_at == last.created_at, Dataset.id < last.id)
        query = query.where(or_(Dataset.created_at < last.created_at, same_time))
    return session.scalars(query).all()


def archive_dataset(session: Session, dataset: Dataset, *, by: User, now: datetime | None) -> None:
    """Hide a dataset from lists and from what forms offer; None shows it again. All else about it stays.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    if (dataset.archived_at is None) == (now is None):
        return
    dataset.archived_at = now
    action = Action.DATASET_RESTORED if now is None else Action.DATASET_ARCHIVED
    journal.write(session, action, by=by, details={"dataset": dataset.name})
    session.flush()


def delete_dataset(session: Session, storage: Storage, dataset: Dataset, *, by: User) -> None:
    """Delete a dataset with its examples; the files go once the transaction has committed.

    Raises:
        NotAllowed: `by` is no admin.
        DatasetInUse: a campaign or a run needs it.
    """
    accounts.require_admin(by)
    dataset_id, name = dataset.id, dataset.name
    additions = [addition.id for addition in versions.additions_of(session, dataset_id)]
    try:
        with session.begin_nested():
            session.execute(delete(Dataset).where(Dataset.id == dataset_id))
    except IntegrityError as error:
        raise DatasetInUse(name, uses_of(dataset)) from error
    journal.write(session, Action.DATASET_DELETED, by=by, details={"dataset": name})

    @event.listens_for(session, "after_commit", once=True)
    def delete_files(_session: Session) -> None:
        for row_id in (dataset_id, *additions):
            delete_files_of(storage, row_id)


def delete_files_of(storage: Storage, dataset_id: UUID) -> None:
    """Delete what came and what was made of it; of a dataset, or of an addition by its own id."""
    storage.delete_tree(upload_prefix(dataset_id))
    storage.delete_tree(f"datasets/{dataset_id}")


def prefix_of(dataset: Dataset) -> str:
    """Storage prefix of a dataset's shards.

    It holds the number of the claim that imported it, which never changes once the dataset is ready. So an
    import that was believed dead cannot touch the shards of the one that took over.
    """
    return shard_prefix(dataset.id, dataset.claim_number)


def import_prefix(claim: Claim) -> str:
    """Storage prefix of what an import packs; what is added to a dataset joins that one's shards later."""
    return shard_prefix(claim.id, claim.number)


def insert_examples(
    session: Session, dataset_id: UUID, records: Sequence[Record], *, first_position: int
) -> None:
    """Add a row for each packed picture; the first one gets `first_position`."""
    session.execute(
        insert(Example),
        [
            {"dataset_id": dataset_id, "position": position, **record._asdict(), "split": Split(record.split)}
            for position, record in enumerate(records, first_position)
        ],
    )


def twins_in(session: Session, dataset_id: UUID) -> int:
    """How many images of a dataset are the same, pixel by pixel, as one before them."""
    images, different = session.execute(
        select(func.count(), func.count(Example.digest.distinct())).where(Example.dataset_id == dataset_id)
    ).one()
    return int(images) - int(different)


def delete_examples(session: Session, dataset_id: UUID) -> None:
    """Delete the rows of an import that did not end well."""
    session.execute(delete(Example).where(Example.dataset_id == dataset_id))


def _about(dataset_id: UUID, split: Split | None, true_class: int | None) -> list[ColumnElement[bool]]:
    conditions = [Example.dataset_id == dataset_id]
    if split is not None:
        conditions.append(Example.split == split)
    if true_class is not None:
        conditions.append(Example.true_class == true_class)
    return conditions


def examples_of(
    dataset_id: UUID,
    *,
    after: int = -1,
    limit: int = 100,
    split: Split | None = None,
    true_class: int | None = None,
) -> Select[Example]:
    """Examples in position order whose position is greater than `after`."""
    return (
        select(Example)
        .where(*_about(dataset_id, split, true_class), Example.position > after)
        .order_by(Example.position)
        .limit(limit)
    )


def beside(
    session: Session, example: Example, *, split: Split | None = None, true_class: int | None = None
) -> tuple[int | None, int | None]:
    """Ids of the examples before and behind this one by position, among a split and class if given."""
    among = select(Example.id).where(*_about(example.dataset_id, split, true_class))
    before = among.where(Example.position < example.position).order_by(Example.position.desc()).limit(1)
    behind = among.where(Example.position > example.position).order_by(Example.position).limit(1)
    return session.scalar(before), session.scalar(behind)


def per_class(
    counts: Mapping[tuple[str, int | None], int], class_names: Sequence[str] | None
) -> dict[str, list[int]]:
    """Counts by split and true class as columns of a dataset."""
    labels = range(len(class_names or ()))
    return {f"{split}_per_class": [counts.get((split, label), 0) for label in labels] for split in Split}


def samples_of(session: Session, dataset: Dataset, count: int) -> Sequence[Example]:
    """About `count` examples, evenly spread over a ready dataset, so that most classes are among them."""
    total = dataset.train_count + dataset.test_count
    if dataset.state is not DatasetState.READY:
        return []
    positions = {total * step // count for step in range(count)}
    return session.scalars(
        select(Example)
        .where(Example.dataset_id == dataset.id, Example.position.in_(positions))
        .order_by(Example.position)
    ).all()


def stored_images(
    session: Session,
    storage: Storage,
    dataset_id: UUID,
    split: Split | None = None,
    *,
    size: tuple[int, int] | None = None,
    version: int | None = None,
) -> StoredImages:
    """The pictures of a dataset, or of one split, in position order; all, or those of a version.

    Args:
        size: (height, width) to which every image is scaled, without keeping its proportions (bilinear,
            averaging when it shrinks); None takes the images' own size.
        version: number of one; the images that joined later stay away, and grey stays grey.

    Raises:
        DatasetNotFound, DatasetNotReady: nothing to read.
        VersionNotFound: the dataset has no such version.
        SizesDiffer: no `size` was given and the images have several.
    """
    dataset = session.get(Dataset, dataset_id)
    if dataset is None:
        raise DatasetNotFound
    if dataset.state is not DatasetState.READY or dataset.channels is None:
        raise DatasetNotReady(dataset.name)
    held: Holding = dataset if version is None else versions.version(session, dataset_id, version)
    inside = () if version is None else (Example.position < held.image_count,)
    rows = session.execute(
        select(
            Example.id,
            Example.true_class,
            Example.shard,
            Example.byte_offset,
            Example.byte_length,
            Example.height,
            Example.width,
        )
        .where(*_about(dataset_id, split, None), *inside)
        .order_by(Example.position)
    ).all()
    sizes = {(row.height, row.width) for row in rows}
    if size is None and len(sizes) > 1:
        raise SizesDiffer(dataset.name)
    return StoredImages(
        storage=storage,
        prefix=prefix_of(dataset),
        places=[Place(*row[:5]) for row in rows],
        size=size or next(iter(sizes), (1, 1)),
        channels=held.channels or dataset.channels,
    )


def looks_of(session: Session, storage: Storage, dataset: Dataset) -> Looks:
    """What a ready dataset looks like; see `looks.looks_of_dataset`."""
    return looks_of_dataset(session, storage, dataset, prefix=prefix_of(dataset))
