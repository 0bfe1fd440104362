"""Predictions of whole datasets: asked for, waiting, tried again, given up, handed out, deleted."""

from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

from sqlalchemy import and_, delete, event, or_, select
from sqlalchemy.orm import Session

from app import claims, jobs
from app.accounts import service as accounts
from app.accounts.models import User
from app.claims import MAX_ATTEMPTS
from app.datasets import service as datasets
from app.datasets import versions
from app.datasets.errors import DatasetNotFound
from app.datasets.models import Dataset
from app.journal import service as journal
from app.journal.models import Action
from app.registry.errors import ModelNotFound
from app.registry.models import Model
from app.registry.predict_errors import PredictionNotFound, PredictionNotReady
from app.registry.predicting import served
from app.registry.prediction_models import Prediction, PredictionState
from app.storage import Storage, StoredFileDamaged, StoredFileMissing

PIECE = 1 << 20
FOLDER = "predictions"  # among a model's files
WAITS = Prediction.state.in_([PredictionState.QUEUED, PredictionState.RUNNING])


def prefix_of(model_key: str, prediction_id: UUID) -> str:
    """Storage prefix of what attempts at it write: among the model's files, which are deleted with it."""
    return f"{model_key}/{FOLDER}/{prediction_id}"


def predict_dataset(
    session: Session, storage: Storage, model: Model, dataset_id: UUID, *, by: User, now: datetime
) -> Prediction:
    """Ask what a model says of each image that a dataset has now.

    Raises:
        NotAllowed: `by` is no admin.
        ModelNotFound, ModelWithoutOnnx, StoredFileMissing: it cannot predict.
        DatasetNotFound, DatasetNotReady: there are no images.
    """
    accounts.require_admin(by)
    served(storage, model)  # which refuses what cannot be
    dataset = datasets.get_dataset(session, dataset_id, by=by)
    _hold(session, model, dataset)
    newest = versions.newest(session, dataset)
    assert newest.number is not None  # it is published
    prediction = Prediction(
        model_id=model.id,
        dataset_id=dataset.id,
        dataset_name=dataset.name,
        dataset_version=newest.number,
        progress_total=newest.image_count,
        created_by_id=by.id,
        created_at=now,
    )
    session.add(prediction)
    session.flush()  # the job needs its id
    _note(session, Action.DATASET_PREDICTED, model, prediction, by=by)
    jobs.enqueue(session, jobs.PREDICT_DATASET, prediction.id)
    return prediction


def _hold(session: Session, model: Model, dataset: Dataset) -> None:
    """Keep both from being deleted until the transaction ends; somebody may have deleted one by now."""
    for of, row_id, gone in (
        (Model, model.id, ModelNotFound()),
        (Dataset, dataset.id, DatasetNotFound()),
    ):
        held = select(of.id).where(of.id == row_id).with_for_update(read=True, key_share=True)
        if session.scalar(held) is None:
            raise gone


def _note(session: Session, action: Action, model: Model, prediction: Prediction, *, by: User) -> None:
    details = {name: model.card[name] for name in ("run", "seed") if name in model.card}
    journal.write(session, action, by=by, details=details | {"dataset": prediction.dataset_name})


def list_predictions(
    session: Session, model: Model, *, by: User, after: UUID | None = None, limit: int
) -> tuple[list[Prediction], UUID | None]:
    """Those of a model, newest first, and the id to give as `after` for the next page.

    Raises:
        NotAllowed: `by` is no admin.
        PredictionNotFound: `after` is none of this model's.
    """
    accounts.require_admin(by)
    query = (
        select(Prediction)
        .where(Prediction.model_id == model.id)
        .order_by(Prediction.created_at.desc(), Prediction.id.desc())
    )
    if after is not None:
        last = get_prediction(session, model, after, by=by)
        same_time = and_(Prediction.created_at == last.created_at, Prediction.id < last.id)
        query = query.where(or_(Prediction.created_at < last.created_at, same_time))
    found = list(session.scalars(query.limit(limit + 1)))
    return found[:limit], found[limit - 1].id if len(found) > limit else None


def get_prediction(session: Session, model: Model, prediction_id: UUID, *, by: User) -> Prediction:
    """One of a model.

    Raises:
        NotAllowed: `by` is no admin.
        PredictionNotFound: the model has none of this id.
    """
    accounts.require_admin(by)
    found = session.get(Prediction, prediction_id)
    if found is None or found.model_id != model.id:
        raise PredictionNotFound
    return found


def file_pieces(storage: Storage, prediction: Prediction) -> Iterator[bytes]:
    """The table of a prediction, as CSV, some of it at once.

    Raises:
        PredictionNotReady: it is not there yet, or failed.
        StoredFileMissing, StoredFileDamaged: the server has lost it.
    """
    if prediction.state is not PredictionState.READY or prediction.key is None:
        raise PredictionNotReady(prediction.state)
    about = storage.about(prediction.key)
    if about is None:
        raise StoredFileMissing
    if about.size != prediction.size_bytes:
        raise StoredFileDamaged
    return _pieces(storage, prediction.key)


def _pieces(storage: Storage, key: str) -> Iterator[bytes]:
    with storage.open(key) as file:
        while piece := file.read(PIECE):
            yield piece


def delete_prediction(
    session: Session, storage: Storage, model: Model, prediction: Prediction, *, by: User
) -> None:
    """Delete one; its file goes once the transaction has committed, and who works at it stops.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    prefix = prefix_of(model.key, prediction.id)
    _note(session, Action.PREDICTION_DELETED, model, prediction, by=by)
    session.execute(delete(Prediction).where(Prediction.id == prediction.id))

    @event.listens_for(session, "after_commit", once=True)
    def delete_file(_session: Session) -> None:
        storage.delete_tree(prefix)


def forget_lost(session: Session, storage: Storage, model_key: str, there: set[str]) -> int:
    """Delete files of a model's predictions that no row knows: who wrote them died after they were deleted.

    Gives how many folders went.

    Args:
        session: begun after one has looked what is there. A row is there before its first file.
        storage: where the files are.
        model_key: of the model.
        there: the names of folders of its predictions.
    """
    known = session.scalars(select(Prediction.id).join(Model).where(Model.key == model_key))
    lost = there - {str(row_id) for row_id in known}
    for name in lost:
        storage.delete_tree(f"{model_key}/{FOLDER}/{name}")
    return len(lost)


def waiting_predictions(session: Session, now: datetime) -> list[UUID]:
    """Those that nobody works on, oldest first."""
    return claims.waiting_ids(session, Prediction, WAITS, order=Prediction.created_at, now=now)


def give_up_predictions(session: Session, now: datetime) -> None:
    """Fail those whose worker died MAX_ATTEMPTS times."""
    claims.give_up(
        session,
        Prediction,
        WAITS,
        now=now,
        state=PredictionState.FAILED,
        failure=f"The prediction was started {MAX_ATTEMPTS} times and its worker died each time. Look at "
        "the worker's log, then ask for it again.",
        finished_at=now,
    )
