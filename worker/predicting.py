"""Task: let a model say what each image of a dataset is, once, whatever dies on the way.

The images are decoded and predicted by a process of its own, as those that are sent to the server
(`app/registry/predictor.py`). This side holds the claim, reads the images and writes the table.
"""

import hashlib
import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import structlog
from sqlalchemy.orm import Session

from app import claims
from app.claims import Claim, ClaimLost
from app.clock import utc_now
from app.datasets import service as datasets
from app.datasets import versions
from app.datasets.models import Dataset, Example
from app.errors import AppError
from app.labels.exports.formats import csv_pieces
from app.registry import predictions
from app.registry.inference.limits import MOST_PICTURES
from app.registry.models import Model
from app.registry.predicting import DIGITS, Predicted, served
from app.registry.prediction_models import Prediction, PredictionState
from app.registry.predictor import Predictor, Sent, Served, awaited
from app.registry.service import ONNX
from app.storage import StorageAway, StorageRefused, StoredFileMissing
from clarinet.files.tables import guarded
from worker.beating import Stopped, beating, renewing
from worker.believing import file_of
from worker.context import Context

SHOW_PROGRESS_S = 1.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Work:
    """A claimed prediction: which images, by which model, and where the table goes."""

    claim: Claim
    served: Served
    dataset_id: UUID
    dataset_name: str
    shards: str  # where they lie
    images: int
    prefix: str  # storage prefix of the prediction's files

    @property
    def key(self) -> str:
        """Of the table that this attempt writes."""
        return f"{self.prefix}/{self.claim.number}/predictions.csv"


@dataclass(frozen=True, slots=True)
class Table:
    """What was written."""

    digest: str  # SHA-256
    size: int  # bytes
    refused: int  # images of which nothing is said


class DatasetGone(AppError):
    """The dataset was deleted before its images were predicted."""

    def __init__(self, name: str) -> None:
        super().__init__(f'The dataset "{name}" was deleted before all of its images were predicted.')


def predict_dataset(context: Context, prediction_id: UUID) -> None:
    """Predict a dataset, or do nothing if somebody else is at it."""
    claim = _claim(context, prediction_id)
    if claim is None:
        return
    about = {"prediction_id": str(prediction_id), "attempt": claim.number}
    log.info("prediction.claimed", **about)
    prefix = None
    try:
        with ExitStack() as stack:
            work = _prepared(context, claim, stack)
            prefix = work.prefix
            table = _predict(context, work)
        with context.unit_of_work() as session:
            claims.release(
                session,
                claim,
                state=PredictionState.READY,
                progress=work.images,
                key=work.key,
                digest=table.digest,
                size_bytes=table.size,
                refused=table.refused,
                finished_at=utc_now(),
            )
    except ClaimLost:
        log.warning("prediction.lost", **about)
        if prefix is not None:
            _sweep(context, claim, prefix)
    except StorageRefused as refusal:  # another worker's store may not; the last one says why
        with suppress(ClaimLost), context.unit_of_work() as session:
            if claims.is_last_attempt(session, claim):
                _fail(session, claim, refusal.sentence)
            else:
                claims.release(session, claim, state=PredictionState.QUEUED)
        log.warning("prediction.refused", **about, reason=str(refusal))
    except (Stopped, StorageAway) as reason:
        with suppress(ClaimLost), context.unit_of_work() as session:
            claims.hand_back(session, claim, state=PredictionState.QUEUED)
        log.warning("prediction.handed_back", **about, reason=str(reason))
    except AppError as refusal:
        with suppress(ClaimLost), context.unit_of_work() as session:
            _fail(session, claim, refusal.detail)
        log.info("prediction.failed", **about, reason=refusal.detail)
    else:
        log.info("prediction.ended", **about, images=work.images)


def _fail(session: Session, claim: Claim, failure: str) -> None:
    claims.release(session, claim, state=PredictionState.FAILED, failure=failure, finished_at=utc_now())


def _claim(context: Context, prediction_id: UUID) -> Claim | None:
    with context.unit_of_work() as session:
        return claims.claim(
            session,
            Prediction,
            prediction_id,
            predictions.WAITS,
            by=f"{os.uname().nodename}:{os.getpid()}",
            now=utc_now(),
            state=PredictionState.RUNNING,
            progress=0,
        )


def _prepared(context: Context, claim: Claim, stack: ExitStack) -> Work:
    """What is to be done; `stack` holds the model's file for as long as it is needed."""
    with context.reading() as session:
        row = session.get(Prediction, claim.id)
        if row is None:
            raise ClaimLost
        model = session.get(Model, row.model_id)
        if model is None:  # deleted a moment ago, and this with it
            raise ClaimLost
        dataset = session.get(Dataset, row.dataset_id) if row.dataset_id else None
        if dataset is None:
            raise DatasetGone(row.dataset_name)
        held = versions.version(session, dataset.id, row.dataset_version)
        dataset_id, dataset_name, shards = dataset.id, dataset.name, datasets.prefix_of(dataset)
        prefix = predictions.prefix_of(model.key, row.id)
    beat = renewing(context, claim)
    onnx = f"{model.key}/{ONNX}"
    folder = beating(lambda: stack.enter_context(context.patient.local(onnx)), beat)

    def sweep() -> None:
        for earlier in range(claim.number):  # died; a later one may be at work if this one was held up
            context.storage.delete_tree(f"{prefix}/{earlier}")

    beating(sweep, beat)
    return Work(
        claim=claim,
        served=served(folder, model),
        dataset_id=dataset_id,
        dataset_name=dataset_name,
        shards=shards,
        images=held.image_count,
        prefix=prefix,
    )


def _predict(context: Context, work: Work) -> Table:
    """Write the table."""
    digest, size, refused = hashlib.sha256(), 0, 0

    def counted() -> Iterator[tuple[object, ...]]:
        nonlocal refused
        for row in _rows(context, work):
            refused += row[-1] is not None
            yield row

    with context.storage.local() as folder:
        with folder.create(work.key) as file:
            for piece in csv_pieces(columns_of(work.served.classes), counted()):
                file.write(piece)
                digest.update(piece)
                size += len(piece)
        beating(lambda: context.patient.keep(folder, work.key), lambda: _renew(context, work))
    return Table(digest.hexdigest(), size, refused)


def columns_of(classes: Sequence[str]) -> list[str]:
    """The header of a table."""
    shares = (f"probability_{name}" for name in classes)
    return [guarded(column) for column in ("file", "position", "class", *shares, "refused")]


def _rows(context: Context, work: Work) -> Iterator[tuple[object, ...]]:
    shown = -math.inf

    def beat(done: int) -> None:
        nonlocal shown
        if context.is_stopping():
            raise Stopped
        if time.monotonic() - shown >= SHOW_PROGRESS_S:
            with context.unit_of_work() as session:
                claims.renew(session, work.claim, now=utc_now(), progress=done)
            shown = time.monotonic()

    # Nobody waits for an answer: pictures that take long keep no others out of the table.
    with Predictor(longest_s=math.inf) as predictor:
        for start in range(0, work.images, MOST_PICTURES):
            examples = _examples(context, work, start)
            pictures = beating(partial(_read, context, work, examples), partial(beat, start))
            asked = predictor.ask(work.served, pictures)
            said = awaited(asked, partial(beat, start))
            for example, one in zip(examples, said, strict=True):
                told = Predicted("", work.served.classes, one)
                shares = [f"{share:.{DIGITS}f}" for share in told.probabilities or ()]
                blanks = [None] * (len(work.served.classes) - len(shares))
                yield (
                    guarded(example.filename or ""),
                    example.position,
                    guarded(told.predicted_class or ""),
                    *shares,
                    *blanks,
                    guarded(told.refused) if told.refused else None,
                )


def _renew(context: Context, work: Work) -> None:
    if context.is_stopping():
        raise Stopped
    renewing(context, work.claim)()


def _examples(context: Context, work: Work, start: int) -> Sequence[Example]:
    limit = min(MOST_PICTURES, work.images - start)
    with context.reading() as session:
        found = session.scalars(datasets.examples_of(work.dataset_id, after=start - 1, limit=limit)).all()
    if len(found) != limit:
        raise DatasetGone(work.dataset_name)
    return found


def _read(context: Context, work: Work, examples: Sequence[Example]) -> list[Sent]:
    storage = context.patient
    try:
        return [
            Sent(f"image {example.position}", file_of(storage, work.shards, example)) for example in examples
        ]
    except StoredFileMissing:
        with context.reading() as session:  # its files go a moment after its rows
            if session.get(Dataset, work.dataset_id) is None:
                raise DatasetGone(work.dataset_name) from None
        raise


def _sweep(context: Context, claim: Claim, prefix: str) -> None:
    """Delete what a lost attempt wrote; of a prediction that was deleted meanwhile, all."""
    with context.reading() as session:
        is_gone = session.get(Prediction, claim.id) is None
    context.storage.delete_tree(prefix if is_gone else f"{prefix}/{claim.number}")
