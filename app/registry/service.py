"""Published models: one for each trial that ended well."""

import io
import json
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.journal import service as journal
from app.journal.models import Action
from app.registry.errors import ModelNotFound, ModelWithoutOnnx
from app.registry.models import Model
from app.runs.models import Run
from app.storage import Storage

WEIGHTS, CARD, ONNX, PAGE = "model.safetensors", "model.json", "model.onnx", "MODEL_CARD.md"


def key_of(trial_id: UUID, claim_number: int) -> str:
    """The storage folder of what a claim publishes: its own, so that a late loser overwrites nothing."""
    return f"models/{trial_id}/{claim_number}"


def publish_model(
    session: Session,
    *,
    trial_id: UUID,
    key: str,
    digest: str,
    size_bytes: int,
    card: dict[str, Any],
    now: datetime,
) -> Model:
    """Add the row of a model whose files lie under `key`; in the transaction that ends its trial."""
    model = Model(trial_id=trial_id, key=key, digest=digest, size_bytes=size_bytes, card=card, created_at=now)
    session.add(model)
    journal.write(session, Action.MODEL_MADE, by=None, details=_named(model))
    return model


def is_published(session: Session, key: str) -> bool:
    """Whether a model with files under this key has a row."""
    return session.scalar(select(Model.id).where(Model.key == key)) is not None


def list_models(
    session: Session,
    *,
    by: User,
    run_id: UUID | None = None,
    campaign_id: UUID | None = None,
    dataset_id: UUID | None = None,
    after: UUID | None = None,
    limit: int,
) -> tuple[list[Model], UUID | None]:
    """Models, newest first, and the id to give as `after` for the next page.

    Args:
        run_id, campaign_id: only those of this run, or of this campaign's runs.
        dataset_id: only those whose source or target it is.

    Raises:
        NotAllowed: `by` is no admin.
        ModelNotFound: `after` is none.
    """
    accounts.require_admin(by)
    query = select(Model).order_by(Model.created_at.desc(), Model.id.desc())
    if run_id is not None:
        query = query.where(Model.run_id == run_id)
    if campaign_id is not None:
        query = query.where(Model.run_id.in_(select(Run.id).where(Run.campaign_id == campaign_id)))
    if dataset_id is not None:
        either = or_(Run.source_dataset_id == dataset_id, Run.target_dataset_id == dataset_id)
        query = query.where(Model.run_id.in_(select(Run.id).where(either)))
    if after is not None:
        last = get_model(session, after, by=by)
        older = Model.created_at < last.created_at
        query = query.where(older | ((Model.created_at == last.created_at) & (Model.id < last.id)))
    found = list(session.scalars(query.limit(limit + 1)))
    return found[:limit], found[limit - 1].id if len(found) > limit else None


def get_model(session: Session, model_id: UUID, *, by: User) -> Model:
    """One model.

    Raises:
        NotAllowed: `by` is no admin.
        ModelNotFound: there is none.
    """
    accounts.require_admin(by)
    model = session.get(Model, model_id)
    if model is None:
        raise ModelNotFound
    return model


def runs_of(session: Session, models: Sequence[Model]) -> dict[UUID, Run]:
    """The runs that trained these models, by id."""
    ids = {model.run_id for model in models}
    return {run.id: run for run in session.scalars(select(Run).where(Run.id.in_(ids)))}


def model_of_trial(session: Session, trial_id: UUID, *, by: User) -> Model:
    """The model that a trial published.

    Raises:
        NotAllowed: `by` is no admin.
        ModelNotFound: it has published none.
    """
    accounts.require_admin(by)
    model = session.scalar(select(Model).where(Model.trial_id == trial_id))
    if model is None:
        raise ModelNotFound
    return model


def note_download(session: Session, model: Model, *, by: User, file: str) -> None:
    """Write into the journal who took a model away."""
    journal.write(session, Action.MODEL_DOWNLOADED, by=by, details=_named(model) | {"file": file})


def _named(model: Model) -> dict[str, object]:
    """How people call it."""
    return {name: model.card[name] for name in ("run", "seed") if name in model.card}


def archive(storage: Storage, model: Model) -> bytes:
    """A zip of weights, card (JSON and Markdown) and, where there is one, the ONNX file: a few megabytes.

    Raises:
        StoredFileMissing, StoredFileDamaged: the server has lost one of them.
    """
    buffer = io.BytesIO()
    # Weights are noise to a compressor; storing them is faster and no larger.
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        weights = storage.read_as_written(f"{model.key}/{WEIGHTS}", model.digest)
        file.writestr(zipfile.ZipInfo(WEIGHTS), weights)
        file.writestr(zipfile.ZipInfo(CARD), json.dumps(model.card, indent=2) + "\n")
        if storage.path(f"{model.key}/{PAGE}").exists():
            file.writestr(zipfile.ZipInfo(PAGE), storage.read(f"{model.key}/{PAGE}"))
        with suppress(ModelWithoutOnnx):
            file.writestr(zipfile.ZipInfo(ONNX), onnx_file(storage, model))
    return buffer.getvalue()


def onnx_file(storage: Storage, model: Model) -> bytes:
    """The model as ONNX, from bytes of images to probabilities.

    Raises:
        ModelWithoutOnnx: it could not be written, or the model is older than that file.
        StoredFileMissing, StoredFileDamaged: the server has lost it.
    """
    digest = model.card.get("onnx", {}).get("sha256")
    if digest is None:
        raise ModelWithoutOnnx
    return storage.read_as_written(f"{model.key}/{ONNX}", digest)
