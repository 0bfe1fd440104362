"""Task: take the pictures of an uploaded file in, once, whatever dies on the way.

The file is read by a process of its own (`python -m app.datasets.intake`), because it comes from a stranger.
This side holds the claim, shows the progress and turns the records it gets back into rows.
"""

import os
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import UUID

import structlog

from app import claims
from app.claims import Claim, ClaimLost
from app.clock import utc_now
from app.datasets import growing, versions
from app.datasets import service as datasets
from app.datasets.growing import Packed
from app.datasets.importing import Imported, import_of
from app.datasets.intake.shards import delete_index, read_records
from app.datasets.looks import Stored, looks_of_stored, positions_to_look_at
from app.datasets.models import Dataset, DatasetState, DatasetVersion
from app.datasets.uploads import upload_prefix
from clarinet.recipes.choices import Looks
from clarinet.recipes.counting import many
from worker.apart import ImportFailed, ImportInterrupted, read_apart
from worker.context import Context

ROWS_AT_ONCE = 5000  # per transaction: about 0.2 s during which SQLite's other writers wait
SHOW_PROGRESS_S = 1.0

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
        (_import if work.is_whole else _join)(context, work)
    except ClaimLost:
        context.storage.delete_tree(work.prefix)
        log.warning("dataset.import_lost", **about, attempt=work.claim.number)
    except ImportInterrupted as reason:
        _hand_back(context, work, is_stopping=context.is_stopping())
        log.warning("dataset.import_interrupted", **about, reason=str(reason))
    except ImportFailed as failure:
        _fail(context, work, failure)
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
        work = Work(claim, datasets.import_prefix(claim), row.upload or {})
    _keep_only(context, work)
    return work


def _import(context: Context, work: Work) -> None:
    result = _read_file(context, work)
    position = 0
    counts: Counter[tuple[str, int | None]] = Counter()
    for records in read_records(context.storage, work.prefix, chunk=ROWS_AT_ONCE):
        with context.unit_of_work() as session:
            claims.renew(session, work.claim, now=utc_now())
            datasets.insert_examples(session, work.claim.id, records, first_position=position)
        position += len(records)
        counts.update((record.split, record.true_class) for record in records)
    looks = _looks(context, work, result["counts"])  # two seconds for the largest pictures
    delete_index(context.storage, work.prefix)
    notes = [*result["notes"], *_told_of_twins(context, work)]
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
    _keep_only(context, work)
    log.info("dataset.import_ended", dataset_id=str(work.claim.id), images=position)


def _join(context: Context, work: Work) -> None:
    result = _read_file(context, work)
    packed = Packed(
        prefix=work.prefix,
        chunks=read_records(context.storage, work.prefix, chunk=ROWS_AT_ONCE),
        shards=result["shards"],
        class_names=result["class_names"],
        channels=result["channels"],
        looks=_looks(context, work, result["counts"]),
        said={name: result[name] for name in ("made", "notes", "faults")},
    )
    try:
        with context.unit_of_work() as session:
            images = growing.publish(session, context.storage, work.claim, packed, now=utc_now())
    except growing.CannotJoin as refusal:
        raise ImportFailed(str(refusal)) from refusal
    datasets.delete_files_of(context.storage, work.claim.id)
    log.info("dataset.images_added", version_id=str(work.claim.id), images=images)


def _looks(context: Context, work: Work, counts: Mapping[str, int]) -> Looks:
    """What the packed pictures look like, by those that tell."""
    telling = set(positions_to_look_at(counts["train"], counts["test"]))
    records = chain.from_iterable(read_records(context.storage, work.prefix, chunk=ROWS_AT_ONCE))
    seen = [
        Stored(record.shard, record.byte_offset, record.byte_length)
        for place, record in enumerate(records)
        if place in telling
    ]
    return looks_of_stored(context.storage, work.prefix, seen)


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


def _read_file(context: Context, work: Work) -> dict[str, Any]:
    """Let the reader do its work while the claim is renewed; gives its result.

    Raises:
        ImportFailed, ImportInterrupted, ClaimLost: the reader is dead.
    """
    request = {
        "root": str(context.storage.root.resolve()),
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


def _hand_back(context: Context, work: Work, *, is_stopping: bool) -> None:
    """Let another worker have it; a shutdown is nobody's failed attempt."""
    values = {"attempts": work.claim.model.attempts - 1} if is_stopping else {}
    try:
        with context.unit_of_work() as session:
            claims.release(session, work.claim, **values)
    except ClaimLost:
        pass  # somebody has it already
    context.storage.delete_tree(work.prefix)


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
    own = context.storage.path(work.prefix)
    for folder in own.parent.glob("*"):
        if folder != own:
            context.storage.delete_tree(f"{Path(work.prefix).parent.as_posix()}/{folder.name}")


def _sweep(context: Context, model: Imported, row_id: UUID) -> None:
    """Delete files that no row needs any more."""
    with context.reading() as session:
        row = import_of(session, model, row_id)
        state = None if row is None else row.state
        is_kept = row is not None and row.mend is not None
        # The first version of a dataset has its id, and its shards are the dataset's.
        has_joined = isinstance(row, DatasetVersion) and row.id != row.dataset_id
    if is_kept:
        return
    if state is DatasetState.READY and not has_joined:
        context.storage.delete_tree(upload_prefix(row_id))
    elif state is not DatasetState.IMPORTING:
        datasets.delete_files_of(context.storage, row_id)
