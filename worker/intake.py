"""Task: take the pictures of an uploaded file in, once, whatever dies on the way.

The file is read by a process of its own (`python -m app.datasets.intake`), because it comes from a stranger.
This side holds the claim, shows the progress and turns the records it gets back into rows.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any
from uuid import UUID

import structlog

import app
from app import claims
from app.claims import BEAT_S, Claim, ClaimLost
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
from worker.context import Context

ROWS_AT_ONCE = 5000  # per transaction: about 0.2 s during which SQLite's other writers wait
SHOW_PROGRESS_S = 1.0
LOG_BYTES = 4000

log = structlog.get_logger()


class ImportFailed(Exception):
    """The file is at fault, or we are; a sentence for the admin. Trying again would not help.

    Args:
        sentence: what is wrong.
        faults: single files that are.
        mend: by what choice of the admin it may succeed; None: by none.
    """

    def __init__(
        self, sentence: str, *, faults: Sequence[dict[str, str]] = (), mend: str | None = None
    ) -> None:
        super().__init__(sentence)
        self.faults = list(faults)
        self.mend = mend


class ImportInterrupted(Exception):
    """Something from outside ended the work; another attempt may succeed."""


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
    with tempfile.TemporaryFile() as errors, _reader(request, errors) as (process, messages):
        while True:
            message: dict[str, Any] = {}
            try:
                line = messages.get(timeout=BEAT_S / 2)
            except queue.Empty:
                line = ""
            if line is None:
                raise _ending(process, work, errors)
            if line:
                message = json.loads(line)
            if "result" in message:
                result: dict[str, Any] = message["result"]
                return result
            if "refused" in message:
                raise ImportFailed(
                    message["refused"], faults=message.get("faults", ()), mend=message.get("mend")
                )
            if context.is_stopping():
                raise ImportInterrupted("the worker is shutting down")
            if time.monotonic() - shown >= SHOW_PROGRESS_S:
                shown = time.monotonic()
                known = {"progress": message["done"], "progress_total": message["total"]} if message else {}
                with context.unit_of_work() as session:
                    claims.renew(session, work.claim, now=utc_now(), **known)


@contextmanager
def _reader(
    request: dict[str, Any], errors: IO[bytes]
) -> Iterator[tuple[subprocess.Popen[str], "queue.Queue[str | None]"]]:
    """The reading process and the lines it writes, None after the last; it is dead when the block ends."""
    messages: queue.Queue[str | None] = queue.Queue()
    process = subprocess.Popen(
        [sys.executable, "-m", "app.datasets.intake"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        # Our own environment holds secrets. One thread for each library: their stacks count as memory.
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "PYTHONPATH": str(Path(next(iter(app.__path__))).parent),
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "MALLOC_ARENA_MAX": "2",
        },
    )
    assert process.stdin is not None  # both are pipes, as asked for
    assert process.stdout is not None
    lines = process.stdout

    def listen() -> None:
        for line in lines:
            messages.put(line)
        messages.put(None)

    listener = threading.Thread(target=listen, daemon=True)
    try:
        with process.stdin, process.stdout:
            try:
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.flush()
                listener.start()
                yield process, messages
            finally:
                process.kill()
                process.wait()
                if listener.is_alive():
                    listener.join()
    except BrokenPipeError as error:
        raise ImportInterrupted("the reader died before it had begun") from error


def _ending(process: subprocess.Popen[str], work: Work, errors: IO[bytes]) -> Exception:
    """Why a reader ended without a result."""
    code = process.wait()
    if code == -signal.SIGKILL:
        return ImportInterrupted("the reader was killed")
    name = work.upload.get("name", "The file")
    if code == -signal.SIGXCPU:
        return ImportFailed(f'"{name}" took more computing time than an import may use.')
    errors.seek(0, os.SEEK_END)
    errors.seek(max(0, errors.tell() - LOG_BYTES))
    log.error(
        "dataset.reader_failed",
        dataset_id=str(work.claim.id),
        code=code,
        errors=errors.read().decode(errors="replace"),
    )
    return ImportFailed(f'"{name}" could not be read because of a fault on our side; the log says more.')


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
