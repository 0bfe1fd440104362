"""Task: take the pictures of an uploaded file in, once, whatever dies on the way.

The file is read by a process of its own (`python -m app.datasets.intake`), because it comes from a stranger.
This side holds the claim, shows the progress and turns the records it gets back into rows.
"""

import os
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import structlog

from app import claims
from app.claims import Claim, ClaimLost
from app.clock import utc_now
from app.datasets import service as datasets
from app.datasets.intake.shards import delete_index, read_records
from app.datasets.looks import Stored, looks_of_stored, positions_to_look_at
from app.datasets.models import Dataset, DatasetState
from app.datasets.uploads import upload_prefix
from clarinet.recipes.counting import many
from worker.apart import ImportFailed, ImportInterrupted, read_apart
from worker.context import Context

ROWS_AT_ONCE = 5000  # per transaction: about 0.2 s during which SQLite's other writers wait
SHOW_PROGRESS_S = 1.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Work:
    """A claimed import."""

    claim: Claim
    prefix: str  # storage prefix of this attempt alone
    upload: dict[str, Any]


def import_dataset(context: Context, dataset_id: UUID) -> None:
    """Import a dataset, or do nothing if somebody else is at it; sweep after a failed or deleted one."""
    work = _claim(context, dataset_id)
    if work is None:
        _sweep(context, dataset_id)
        return
    log.info("dataset.import_claimed", dataset_id=str(dataset_id), attempt=work.claim.number)
    try:
        _import(context, work)
    except ClaimLost:
        context.storage.delete_tree(work.prefix)
        log.warning("dataset.import_lost", dataset_id=str(dataset_id), attempt=work.claim.number)
    except ImportInterrupted as reason:
        _hand_back(context, work, is_stopping=context.is_stopping())
        log.warning("dataset.import_interrupted", dataset_id=str(dataset_id), reason=str(reason))
    except ImportFailed as failure:
        _fail(context, work, failure)
        log.info("dataset.import_failed", dataset_id=str(dataset_id), reason=str(failure))


def _claim(context: Context, dataset_id: UUID) -> Work | None:
    waiting = Dataset.state == DatasetState.IMPORTING
    with context.unit_of_work() as session:
        name = f"{os.uname().nodename}:{os.getpid()}"
        claim = claims.claim(session, Dataset, dataset_id, waiting, by=name, now=utc_now(), progress=0)
        if claim is None:
            return None
        datasets.delete_examples(session, dataset_id)  # of an attempt that died
        dataset = session.get_one(Dataset, dataset_id, populate_existing=True)
        work = Work(claim, datasets.prefix_of(dataset), dataset.upload or {})
    _keep_only(context, work)
    return work


def _import(context: Context, work: Work) -> None:
    result = _read_file(context, work)
    position = 0
    counts: Counter[tuple[str, int | None]] = Counter()
    telling = set(positions_to_look_at(result["counts"]["train"], result["counts"]["test"]))
    seen: list[Stored] = []
    for records in read_records(context.storage, work.prefix, chunk=ROWS_AT_ONCE):
        with context.unit_of_work() as session:
            claims.renew(session, work.claim, now=utc_now())
            datasets.insert_examples(session, work.claim.id, records, first_position=position)
        seen += [
            Stored(record.shard, record.byte_offset, record.byte_length)
            for place, record in enumerate(records, position)
            if place in telling
        ]
        position += len(records)
        counts.update((record.split, record.true_class) for record in records)
    delete_index(context.storage, work.prefix)
    notes = [*result["notes"], *_told_of_twins(context, work)]
    looks = looks_of_stored(context.storage, work.prefix, seen)  # two seconds for the largest pictures
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
    context.storage.delete_tree(upload_prefix(work.claim.id))
    _keep_only(context, work)
    log.info("dataset.import_ended", dataset_id=str(work.claim.id), images=position)


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
    values = {"attempts": Dataset.attempts - 1} if is_stopping else {}
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
            datasets.delete_examples(session, work.claim.id)
    except ClaimLost:
        context.storage.delete_tree(work.prefix)
        return
    context.storage.delete_tree(work.prefix)
    if kept is None:
        datasets.delete_files_of(context.storage, work.claim.id)


def _keep_only(context: Context, work: Work) -> None:
    """Delete the shards of attempts that died."""
    own = context.storage.path(work.prefix)
    for folder in own.parent.glob("*"):
        if folder != own:
            context.storage.delete_tree(f"{Path(work.prefix).parent.as_posix()}/{folder.name}")


def _sweep(context: Context, dataset_id: UUID) -> None:
    """Delete files that no row needs any more."""
    with context.reading() as session:
        dataset = session.get(Dataset, dataset_id)
        state = None if dataset is None else dataset.state
        is_kept = dataset is not None and dataset.mend is not None
    if is_kept:
        return
    if state is DatasetState.READY:
        context.storage.delete_tree(upload_prefix(dataset_id))
    elif state is not DatasetState.IMPORTING:
        datasets.delete_files_of(context.storage, dataset_id)
