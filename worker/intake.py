"""Task: take the pictures of an uploaded file in, once, whatever dies on the way.

The file is read by a process of its own (`python -m app.datasets.intake`), because it comes from a stranger.
This side holds the claim, shows the progress and turns the records it gets back into rows.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar
from uuid import UUID

import structlog
from sqlalchemy.orm import Session

from app import claims
from app.claims import Claim, ClaimLost
from app.clock import utc_now
from app.datasets import contradictions, growing, versions
from app.datasets import service as datasets
from app.datasets.growing import Packed
from app.datasets.importing import Imported, import_of
from app.datasets.intake.shards import delete_index, read_records, shard_key
from app.datasets.looks import Stored, looks_of_stored, positions_to_look_at
from app.datasets.models import Dataset, DatasetState, DatasetVersion
from app.datasets.there import There
from app.datasets.uploads import upload_prefix
from app.storage import StorageAway, StorageRefused, StoredFileMissing
from app.stores.folder import FolderStorage
from clarinet.files.refusal import MOST_NAMED
from clarinet.recipes.choices import Looks
from clarinet.recipes.counting import many
from worker.apart import ImportFailed, ImportInterrupted, read_apart
from worker.beating import beating, renewing
from worker.context import Context

ROWS_AT_ONCE = 5000  # per transaction: about 0.2 s during which SQLite's other writers wait
SHOW_PROGRESS_S = 1.0
FILES = ("data", "table")  # of an upload, what names a file in storage

Result = TypeVar("Result")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Work:
    """A claimed import, of a dataset or of further images."""

    claim: Claim
    prefix: str  # storage prefix of this attempt alone
    upload: dict[str, Any]

    @property
    def is_whole(self) -> bool:
        """Whether it makes a dataset; else images join one."""
        return self.claim.model is Dataset


def import_dataset(context: Context, dataset_id: UUID) -> None:
    """Import a dataset, or do nothing if somebody else is at it; sweep after a failed or deleted one."""
    _import_once(context, Dataset, dataset_id)


def add_images(context: Context, version_id: UUID) -> None:
    """Let further images join their dataset, as `import_dataset` imports one."""
    _import_once(context, DatasetVersion, version_id)


def _import_once(context: Context, model: Imported, row_id: UUID) -> None:
    work = _claim(context, model, row_id)
    if work is None:
        _sweep(context, model, row_id)
        return
    about = {"import_of": model.__tablename__, "id": str(row_id)}
    log.info("dataset.import_claimed", **about, attempt=work.claim.number)
    try:
        _beating(context, work, lambda: _keep_only(context, work))
        with ExitStack() as stack:
            needed = [work.upload[name] for name in FILES if name in work.upload]
            folder = _beating(context, work, lambda: stack.enter_context(context.patient.local(*needed)))
            (_import if work.is_whole else _join)(context, work, folder)
    except ClaimLost:
        context.storage.delete_tree(work.prefix)
        log.warning("dataset.import_lost", **about, attempt=work.claim.number)
    except ImportInterrupted as reason:
        _hand_back(context, work, counts=not context.is_stopping())
        log.warning("dataset.import_interrupted", **about, reason=str(reason))
    except StorageRefused as refusal:
        _refuse(context, work, refusal)
        log.warning("dataset.import_refused", **about, reason=str(refusal))
    except StorageAway as reason:
        _hand_back(context, work, counts=False)
        log.warning("dataset.import_interrupted", **about, reason=str(reason))
    except (ImportFailed, StoredFileMissing) as failure:
        _fail(context, work, failure if isinstance(failure, ImportFailed) else ImportFailed(str(failure)))
        log.info("dataset.import_failed", **about, reason=str(failure))


def _claim(context: Context, model: Imported, row_id: UUID) -> Work | None:
    waiting = model.state == DatasetState.IMPORTING
    with context.unit_of_work() as session:
        name = f"{os.uname().nodename}:{os.getpid()}"
        claim = claims.claim(session, model, row_id, waiting, by=name, now=utc_now(), progress=0)
        if claim is None:
            return None
        if model is Dataset:
            datasets.delete_examples(session, row_id)  # of an attempt that died
        row = import_of(session, model, row_id)
        assert row is not None  # it was claimed a statement ago
        return Work(claim, datasets.import_prefix(claim), (row.upload or {}) | _known(session, row))


def _known(session: Session, row: Dataset | DatasetVersion) -> dict[str, Any]:
    """The classes that images join: by them a folder is told from what lies around all images."""
    if isinstance(row, Dataset):
        return {}
    return {"class_names": session.get_one(Dataset, row.dataset_id, populate_existing=True).class_names}


def _import(context: Context, work: Work, folder: FolderStorage) -> None:
    result = _read_file(context, work, folder)
    position = 0
    counts: Counter[tuple[str, int | None]] = Counter()
    for records in read_records(folder, work.prefix, chunk=ROWS_AT_ONCE):
        with context.unit_of_work() as session:
            claims.renew(session, work.claim, now=utc_now())
            datasets.insert_examples(session, work.claim.id, records, first_position=position)
        position += len(records)
        counts.update((record.split, record.true_class) for record in records)
    looks = _looks(folder, work, result["counts"])  # two seconds for the largest pictures
    delete_index(folder, work.prefix)
    _beating(context, work, lambda: context.patient.keep(folder, work.prefix))
    with context.reading() as session:
        twins = contradictions.twins_of_other_classes(session, work.claim.id, result["class_names"] or ())
    notes = [*result["notes"], *_told_of_twins(context, work), *twins.notes]
    with context.unit_of_work() as session:
        claims.release(
            session,
            work.claim,
            state=DatasetState.READY,
            progress=position,
            progress_total=position,
            made=result["made"],
            notes=notes,
            faults=result["faults"],
            contradictions=[*result["contradictions"], *twins.named][:MOST_NAMED],
            class_names=result["class_names"],
            channels=result["channels"],
            looks=looks,
            train_count=result["counts"]["train"],
            test_count=result["counts"]["test"],
            **datasets.per_class(counts, result["class_names"]),
            digest=result["digest"],
            size_bytes=result["size_bytes"],
            upload=None,
        )
        dataset = session.get_one(Dataset, work.claim.id, populate_existing=True)
        session.add(versions.first_version(dataset, now=utc_now()))
    context.storage.delete_tree(upload_prefix(work.claim.id))
    try:
        _keep_only(context, work)
    except StorageAway:  # the dataset is there: nobody may take this for an import that failed
        log.warning("storage.not_deleted", prefix=work.prefix)  # upkeep will
    log.info("dataset.import_ended", dataset_id=str(work.claim.id), images=position)


def _join(context: Context, work: Work, folder: FolderStorage) -> None:
    result = _read_file(context, work, folder)
    there = _beating(context, work, lambda: _there(context, work, folder))
    with context.unit_of_work() as session:
        first_shard, keys = growing.take_shards(session, work.claim, result["shards"], now=utc_now())
    packed = Packed(
        first_shard=first_shard,
        chunks=read_records(folder, work.prefix, chunk=ROWS_AT_ONCE),
        there=there,
        class_names=result["class_names"],
        channels=result["channels"],
        looks=_looks(folder, work, result["counts"]),
        said={name: result[name] for name in ("made", "notes", "faults", "contradictions")},
    )

    def copy() -> None:
        for shard, key in enumerate(keys):
            folder.move(shard_key(work.prefix, shard), key)
            context.patient.keep(folder, key)

    try:
        _beating(context, work, copy)
        with context.unit_of_work() as session:
            images = growing.publish(session, work.claim, packed, now=utc_now())
    except (growing.CannotJoin, ClaimLost, StorageAway) as reason:
        # Nothing was published. Of a commit whose confirmation got lost nobody knows: then the files stay.
        with suppress(StorageAway):
            for key in keys:
                context.storage.delete(key)
        if isinstance(reason, growing.CannotJoin):
            raise ImportFailed(str(reason)) from reason
        raise
    datasets.delete_files_of(context.storage, work.claim.id)
    log.info("dataset.images_added", version_id=str(work.claim.id), images=images)


def _there(context: Context, work: Work, folder: FolderStorage) -> There:
    """What the dataset has of the images that are to join; deletes what an attempt that died has copied."""
    there = There(read_records(folder, work.prefix, chunk=ROWS_AT_ONCE))
    with context.reading() as session:
        addition = session.get(DatasetVersion, work.claim.id)
        if addition is None:
            raise ClaimLost
        there.look(session, addition.dataset_id)
    with context.unit_of_work() as session:
        left = growing.left_behind(session, work.claim, now=utc_now())
    for key in left:
        context.storage.delete(key)
    return there


def _looks(folder: FolderStorage, work: Work, counts: Mapping[str, int]) -> Looks:
    """What the packed pictures look like, by those that tell."""
    telling = set(positions_to_look_at(counts["train"], counts["test"]))
    records = chain.from_iterable(read_records(folder, work.prefix, chunk=ROWS_AT_ONCE))
    seen = [
        Stored(record.shard, record.byte_offset, record.byte_length)
        for place, record in enumerate(records)
        if place in telling
    ]
    return looks_of_stored(folder, work.prefix, seen)


def _told_of_twins(context: Context, work: Work) -> list[str]:
    """That some images are the same as another, if so: each of them would be asked about."""
    with context.reading() as session:
        twins = datasets.twins_in(session, work.claim.id)
    if not twins:
        return []
    is_ = "is" if twins == 1 else "are"
    return [
        f"{many(twins, 'image')} {is_} the same as an earlier one; a campaign may ask about each only once."
    ]


def _beating(context: Context, work: Work, step: Callable[[], Result]) -> Result:
    """What copying files gives, while the claim is held."""
    return beating(step, renewing(context, work.claim))


def _read_file(context: Context, work: Work, folder: FolderStorage) -> dict[str, Any]:
    """Let the reader do its work while the claim is renewed; gives its result.

    Raises:
        ImportFailed, ImportInterrupted, ClaimLost: the reader is dead.
    """
    request = {
        "root": str(folder.root.resolve()),
        "prefix": work.prefix,
        "upload": work.upload,
    }
    shown = time.monotonic()

    def beat(message: Mapping[str, Any]) -> None:
        nonlocal shown
        if context.is_stopping():
            raise ImportInterrupted("the worker is shutting down")
        if time.monotonic() - shown >= SHOW_PROGRESS_S:
            shown = time.monotonic()
            known = {"progress": message["done"], "progress_total": message["total"]} if message else {}
            with context.unit_of_work() as session:
                claims.renew(session, work.claim, now=utc_now(), **known)

    name = work.upload.get("name", "The file")
    return read_apart("app.datasets.intake", request, name=name, beat=beat)


def _hand_back(context: Context, work: Work, *, counts: bool) -> None:
    """Let another worker have it; a shutdown, or storage that is away, is nobody's failed attempt."""
    give_back = claims.release if counts else claims.hand_back
    try:
        with context.unit_of_work() as session:
            give_back(session, work.claim)
    except ClaimLost:
        pass  # somebody has it already
    context.storage.delete_tree(work.prefix)


def _refuse(context: Context, work: Work, refusal: StorageRefused) -> None:
    """Let another worker try it whose store may not refuse it; the last one says why."""
    with context.reading() as session:
        is_last = claims.is_last_attempt(session, work.claim)
    with suppress(StorageAway):  # which may refuse to delete, too: upkeep will
        if is_last:
            _fail(context, work, ImportFailed(refusal.sentence))
        else:
            _hand_back(context, work, counts=True)


def _fail(context: Context, work: Work, failure: ImportFailed) -> None:
    """Say why; what came is kept where a choice may mend it."""
    kept = None if failure.mend is None else work.upload | {"mend": failure.mend}
    try:
        with context.unit_of_work() as session:
            claims.release(
                session,
                work.claim,
                state=DatasetState.FAILED,
                failure=str(failure),
                faults=failure.faults,
                upload=kept,
            )
            if work.is_whole:
                datasets.delete_examples(session, work.claim.id)
    except ClaimLost:
        context.storage.delete_tree(work.prefix)
        return
    context.storage.delete_tree(work.prefix)
    if kept is None:
        datasets.delete_files_of(context.storage, work.claim.id)


def _keep_only(context: Context, work: Work) -> None:
    """Delete the shards of attempts that died; those of a dataset's own claim are all it has."""
    parent, _, own = work.prefix.rpartition("/")
    for name in context.storage.names(parent) - {own}:
        context.storage.delete_tree(f"{parent}/{name}")


def _sweep(context: Context, model: Imported, row_id: UUID) -> None:
    """Delete files that no row needs any more."""
    with context.reading() as session:
        row = import_of(session, model, row_id)
        state = None if row is None else row.state
        is_kept = row is not None and row.mend is not None
        is_over = isinstance(row, DatasetVersion) and row.state is DatasetState.FAILED
        promised = growing.promised(session, row) if is_over and isinstance(row, DatasetVersion) else []
        # The first version of a dataset has its id, and its shards are the dataset's.
        has_joined = isinstance(row, DatasetVersion) and row.id != row.dataset_id
    if is_kept:
        return
    for key in promised:
        context.storage.delete(key)
    if state is DatasetState.READY and not has_joined:
        context.storage.delete_tree(upload_prefix(row_id))
    elif state is not DatasetState.IMPORTING:
        datasets.delete_files_of(context.storage, row_id)
