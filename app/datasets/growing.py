"""A dataset grows: further images join it behind those it has, as one new version or not at all."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import event, func, select
from sqlalchemy.orm import Session

from app import claims, jobs
from app.accounts import service as accounts
from app.accounts.models import User
from app.claims import Claim, ClaimLost
from app.datasets import service, versions
from app.datasets.contradictions import Contradiction
from app.datasets.errors import DatasetNotReady, VersionPublished
from app.datasets.intake.limits import MAX_CLASSES, MAX_EXAMPLES
from app.datasets.intake.shards import Record, shard_key
from app.datasets.models import Dataset, DatasetState, DatasetVersion, Example
from app.datasets.there import There
from app.datasets.uploads import Upload, store_upload, upload_prefix
from app.journal import service as journal
from app.journal.models import Action
from app.storage import Storage
from clarinet.files.looks import looks_of_pair
from clarinet.files.names import NO_LABEL, are_numbers, in_a_row, numbers_among
from clarinet.files.refusal import MOST_NAMED, shown
from clarinet.recipes.choices import Looks
from clarinet.recipes.counting import is_or_are, many


class CannotJoin(Exception):
    """The images cannot join the dataset; a sentence for the admin. Trying again would not help."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Images that an import has packed, and what it says of them.

    Args:
        first_shard: the number in the dataset of the first shard that they fill.
        chunks: their records in order, some at a time; shards are counted from 0.
        there: what the dataset has of them, looked at before.
        class_names: in the order of the records' classes; None without classes.
        channels: 1 grey, 3 RGB.
        looks: what they look like.
        said: what else becomes of the version's row: made, notes, faults.
    """

    first_shard: int
    chunks: Iterator[list[Record]]
    there: There
    class_names: list[str] | None
    channels: int
    looks: Looks
    said: Mapping[str, Any]


def add_images(
    session: Session,
    storage: Storage,
    dataset: Dataset,
    upload: Upload,
    *,
    skip_known: bool = True,
    by: User,
    now: datetime,
) -> DatasetVersion:
    """Keep the files and ask for their import as a new version; until that is there, nothing changes.

    `skip_known`: leave out images that the dataset has already, pixel by pixel.

    Raises:
        NotAllowed: `by` is no admin.
        BadUpload: this is no zip or npz.
        DatasetNotReady: it has no images yet to which others could be added.
    """
    accounts.require_admin(by)
    if dataset.state is not DatasetState.READY:
        raise DatasetNotReady(dataset.name)
    addition = DatasetVersion(id=uuid4(), dataset_id=dataset.id, created_by_id=by.id, created_at=now)
    try:
        kept = store_upload(storage, addition.id, upload)
        addition.upload = kept | {"skip_known": skip_known}
        session.add(addition)
        session.flush()  # a failure must find the files
    except BaseException:
        storage.delete_tree(upload_prefix(addition.id))
        raise
    jobs.enqueue(session, jobs.ADD_IMAGES, addition.id)
    journal.write(session, Action.IMAGES_ADDED, by=by, details={"dataset": dataset.name})
    return addition


def drop_addition(session: Session, storage: Storage, addition: DatasetVersion, *, by: User) -> None:
    """Stop further images on their way, or forget that they failed; their files go after the commit.

    Raises:
        NotAllowed: `by` is no admin.
        VersionPublished: they have joined.
    """
    accounts.require_admin(by)
    session.refresh(addition, with_for_update=True)  # a worker may be about to publish them
    if addition.number is not None:
        raise VersionPublished(addition.number)
    addition_id, left = addition.id, promised(session, addition)
    session.delete(addition)
    dataset = session.get_one(Dataset, addition.dataset_id)
    journal.write(session, Action.IMAGES_DROPPED, by=by, details={"dataset": dataset.name})

    @event.listens_for(session, "after_commit", once=True)
    def delete_files(_session: Session) -> None:
        service.delete_files_of(storage, addition_id)
        for key in left:  # of a worker that died; one that lives deletes them as well
            storage.delete(key)


def take_shards(session: Session, claim: Claim, shards: int, *, now: datetime) -> tuple[int, list[str]]:
    """Number of the first shard of images that are to join, and keys of all, which no other attempt gets.

    Files are copied there before `publish`, which then is a short transaction. What did not join in the end
    is deleted by who copied it, or, if they died, by `promised`.

    Raises:
        ClaimLost: as `publish` does.
    """
    dataset = _held(session, claim, now=now)
    first = max(dataset.shards_taken, _last_shard(session, dataset)) + 1
    dataset.shards_taken = first + shards - 1
    addition = session.get_one(DatasetVersion, claim.id, populate_existing=True)
    addition.upload = (addition.upload or {}) | {"shards": [first, shards]}
    return first, promised(session, addition)


def left_behind(session: Session, claim: Claim, *, now: datetime) -> list[str]:
    """Keys of the shards that the attempt before this one was to copy; that one is dead, so they may go.

    Asked before `take_shards`, so none of them is this attempt's or a later one's, however late they go.

    Raises:
        ClaimLost: as `publish` does.
    """
    _held(session, claim, now=now)
    return promised(session, session.get_one(DatasetVersion, claim.id, populate_existing=True))


def promised(session: Session, addition: DatasetVersion) -> list[str]:
    """Keys of the shards that the last attempt at an addition was to copy, if it came so far.

    Until the images have joined nothing names them, and nobody else is promised them. So once that attempt is
    dead they may go.
    """
    if addition.number is not None or not addition.upload or "shards" not in addition.upload:
        return []
    first, shards = addition.upload["shards"]
    prefix = service.prefix_of(session.get_one(Dataset, addition.dataset_id))
    return [shard_key(prefix, number) for number in range(first, first + shards)]


def publish(session: Session, claim: Claim, packed: Packed, *, now: datetime) -> int:
    """Let images whose shards are there join their dataset, all in this transaction; gives how many did.

    Raises:
        ClaimLost: somebody else imports them, or they were dropped; nothing was changed.
        CannotJoin: roll the transaction back.
    """
    dataset = _held(session, claim, now=now)
    addition = session.get_one(DatasetVersion, claim.id, populate_existing=True)
    joined = _joined(dataset, packed.class_names)
    skip_known = bool((addition.upload or {}).get("skip_known"))
    packed.there.look(session, dataset.id)  # what has joined since it was looked at before
    added = _insert(session, dataset, packed, joined, skip_known=skip_known)
    twins = packed.there.twins(session, dataset.id, joined.names or [])
    alike = packed.there.namesakes(session, dataset.id)
    _count(dataset, joined, packed, added)
    number = versions.newest(session, dataset).number
    assert number is not None  # it is published
    addition.state, addition.number, addition.published_at = DatasetState.READY, number + 1, now
    addition.first_position = dataset.image_count - added.images
    for name in versions.HELD:
        setattr(addition, name, getattr(dataset, name))
    session.flush()
    said = dict(packed.said)
    said["notes"] = [*said["notes"], *_told(added, joined, dataset), *twins.notes, *alike.notes]
    named = [*said["contradictions"], *added.named, *twins.named, *alike.named]
    said["contradictions"] = named[:MOST_NAMED]
    claims.release(
        session,
        claim,
        state=DatasetState.READY,
        progress=added.images,
        progress_total=added.images,
        upload=None,
        **said,
    )
    return added.images


def _held(session: Session, claim: Claim, *, now: datetime) -> Dataset:
    """The dataset of a claimed addition; both rows are this transaction's until its end."""
    dataset_id = session.scalar(select(DatasetVersion.dataset_id).where(DatasetVersion.id == claim.id))
    if dataset_id is None:
        raise ClaimLost
    # The dataset before the addition, as a deletion has them; so one addition at a time joins.
    dataset = session.get(Dataset, dataset_id, populate_existing=True, with_for_update={"key_share": True})
    claims.renew(session, claim, now=now)  # holds the row, so that nobody else can publish or drop it
    if dataset is None:
        raise ClaimLost
    return dataset


def _last_shard(session: Session, dataset: Dataset) -> int:
    found = session.scalar(select(func.max(Example.shard)).where(Example.dataset_id == dataset.id))
    return found or 0


@dataclass(frozen=True, slots=True)
class _Joined:
    """The dataset's classes with those that come along, and the number there of each that came."""

    names: list[str] | None
    numbers: list[int]
    new: list[str]

    def number(self, own: int | None) -> int | None:
        return None if own is None else self.numbers[own]


@dataclass(slots=True)
class _Added:
    """What became of the images that came."""

    counts: Counter[tuple[str, int | None]] = field(default_factory=Counter)  # those that joined
    images: int = 0
    left_out: int = 0  # known before
    same: int = 0  # joined although they are the same as one that is there
    twins: int = 0  # joined although they are the same as one that came with them
    otherwise: int = 0  # of those left out: came under another class
    named: list[Contradiction] = field(default_factory=list)  # the first of these
    size_bytes: int = 0
    digest: str = ""  # of the dataset with them


def _joined(dataset: Dataset, given: Sequence[str] | None) -> _Joined:
    """By the one rule of sameness. Numbers and names do not mix: nobody could tell which is which."""
    own = list(dataset.class_names or ())
    if not given:
        return _Joined(dataset.class_names, [], [])
    numbers = numbers_among(own, given)
    new = [name for name, number in zip(given, numbers, strict=True) if number == NO_LABEL]
    if own and new and are_numbers(given) and not are_numbers(own):
        raise CannotJoin(
            f"The classes of these images are numbers, and those of the dataset are names: {in_a_row(own)}. "
            "Add them again, and name the classes in the order of the numbers."
        )
    if own and new and are_numbers(own) and not are_numbers(given):
        raise CannotJoin(
            f"The classes of these images are names ({in_a_row(given)}), and those of the dataset are "
            "numbers. Give these names on the dataset's page first, then add the images again."
        )
    names = own + new
    if len(names) > MAX_CLASSES:
        raise CannotJoin(f"Together there would be {len(names)} classes; at most {MAX_CLASSES} are taken.")
    return _Joined(names, numbers_among(names, given), new)


def _insert(
    session: Session, dataset: Dataset, packed: Packed, joined: _Joined, *, skip_known: bool
) -> _Added:
    """Rows for the images that join, behind those that are there."""
    there, added = packed.there, _Added()
    for records in packed.chunks:
        rows = []
        for record in records:
            true_class, was_there = joined.number(record.true_class), there.has(record.digest)
            if was_there and skip_known:
                added.left_out += 1
                _note_otherwise(added, record, true_class, there.class_of(record.digest), joined)
                continue
            added.same += was_there
            added.twins += there.has_joined(record.digest) and not was_there
            joining = record._replace(true_class=true_class, shard=record.shard + packed.first_shard)
            there.add(joining)
            rows.append(joining)
            added.counts[record.split, true_class] += 1
            added.size_bytes += record.byte_length
        if rows:
            first = dataset.image_count + added.images
            service.insert_examples(session, dataset.id, rows, first_position=first)
        added.images += len(rows)
    if not added.images:
        raise CannotJoin("The dataset has all of these images already; nothing was added.")
    if dataset.image_count + added.images > MAX_EXAMPLES:
        raise CannotJoin(f"Together there would be more than {MAX_EXAMPLES} images.")
    added.digest = there.sum.hexdigest()
    return added


def _note_otherwise(
    added: _Added, record: Record, true_class: int | None, theirs: int | None, joined: _Joined
) -> None:
    """Keep that an image that is left out came under another class than it has in the dataset."""
    if joined.names is None or true_class is None or theirs in (None, true_class):
        return
    added.otherwise += 1
    if len(added.named) == MOST_NAMED:
        return
    has, came = joined.names[theirs or 0], joined.names[true_class]
    why = f"came as {came!r:.80} and is in the dataset as {has!r:.80}, which counts"
    added.named.append({"file": shown(record.filename or "an image without a name"), "why": why})


def _count(dataset: Dataset, joined: _Joined, packed: Packed, added: _Added) -> None:
    """Let the dataset's own row say what it holds now."""
    more = service.per_class(added.counts, joined.names)
    for column, counts in more.items():
        before = list(getattr(dataset, column) or ())
        before += [0] * (len(counts) - len(before))
        setattr(dataset, column, [one + other for one, other in zip(before, counts, strict=True)])
    for split, column in (("train", "train_count"), ("test", "test_count")):
        joining = sum(count for (of, _), count in added.counts.items() if of == split)
        setattr(dataset, column, getattr(dataset, column) + joining)
    dataset.class_names = joined.names
    dataset.channels = max(dataset.channels or 1, packed.channels)
    dataset.looks = packed.looks if dataset.looks is None else looks_of_pair(dataset.looks, packed.looks)
    dataset.size_bytes += added.size_bytes
    dataset.digest = added.digest
    dataset.made = dataset.made or packed.said["made"]


def _told(added: _Added, joined: _Joined, dataset: Dataset) -> list[str]:
    told = []
    if added.left_out:
        are = is_or_are(added.left_out)
        told.append(f"{many(added.left_out, 'image')} {are} in the dataset already and left out.")
    if added.same:
        told.append(
            f"{many(added.same, 'image')} {is_or_are(added.same)} the same as one that was there before; "
            "a campaign may ask about each only once."
        )
    if added.twins:
        told.append(
            f"{many(added.twins, 'image')} {is_or_are(added.twins)} the same as another one that came along; "
            "a campaign may ask about each only once."
        )
    if added.otherwise:
        told.append(
            f"{many(added.otherwise, 'image')} of these came under another class; the dataset's counts."
        )
    unknown = sum(count for (_, of), count in added.counts.items() if of is None)
    if joined.names and unknown:
        told.append(f"{many(unknown, 'image')} came without a class, so it is not known for scoring.")
    if joined.new:
        what = "a new class" if len(joined.new) == 1 else "new classes"
        had_some = len(joined.new) < len(joined.names or ())
        first = "" if had_some else " Of the images before nobody knows the class."
        told.append(f"{dataset.name} has {what}: {in_a_row(joined.new)}.{first}")
        told.append(
            "Campaigns keep the classes with which they were opened: one that lacks what is new may be let "
            "ask about its images, too, and every such question deserves a no. A new campaign can ask about "
            f"{in_a_row(joined.new)}."
        )
    return told
