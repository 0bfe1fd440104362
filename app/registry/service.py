"""Published models: one for each trial that ended well."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.journal import service as journal
from app.journal.models import Action
from app.registry.errors import ModelNotFound
from app.registry.models import Model, ModelAlias, ModelName, ModelVersion
from app.registry.naming import default_name, give_version
from app.runs.models import Run

WEIGHTS, CARD, ONNX, PAGE = "model.safetensors", "model.json", "model.onnx", "MODEL_CARD.md"
FOLDER = "models"  # in storage
MOST_TWINS = 10  # that a page names


def key_of(trial_id: UUID, claim_number: int) -> str:
    """The storage folder of what a claim publishes: its own, so that a late loser overwrites nothing."""
    return f"{models_prefix(trial_id)}/{claim_number}"


def models_prefix(trial_id: UUID) -> str:
    """The storage folder of all that claims of a trial publish."""
    return f"{FOLDER}/{trial_id}"


def publish_model(
    session: Session,
    *,
    trial_id: UUID,
    key: str,
    digest: str,
    tensors_digest: str | None = None,
    size_bytes: int,
    card: dict[str, Any],
    now: datetime,
) -> Model:
    """Add the row of a model whose files lie under `key`; in the transaction that ends its trial.

    It is the next version of the name of its campaign.
    """
    model = Model(
        trial_id=trial_id,
        key=key,
        digest=digest,
        tensors_digest=tensors_digest,
        size_bytes=size_bytes,
        card=card,
        created_at=now,
    )
    session.add(model)
    session.flush()  # its version points to it
    give_version(session, model.id, default_name(session, trial_id), now=now)
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
    name: str | None = None,
    alias: str | None = None,
    archived: bool = False,
    after: UUID | None = None,
    limit: int,
) -> tuple[list[Model], UUID | None]:
    """Models, newest first, and the id to give as `after` for the next page.

    Args:
        name, alias: only versions of this name, or only those for which this word stands.
        archived: those that are archived, in place of those that are not; an alias finds its model anyway.
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
    if name is not None:
        named = select(ModelVersion.model_id).join(ModelName, ModelName.id == ModelVersion.name_id)
        query = query.where(Model.id.in_(named.where(ModelName.name == name)))
    if alias is not None:
        query = query.where(Model.id.in_(select(ModelAlias.model_id).where(ModelAlias.alias == alias)))
    else:
        query = query.where(Model.archived_at.is_not(None) if archived else Model.archived_at.is_(None))
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


def same_weights(session: Session, model: Model) -> list[Model]:
    """Other models with the very same weights, oldest first; of many the first."""
    if model.tensors_digest is None:
        return []
    query = select(Model).where(Model.tensors_digest == model.tensors_digest, Model.id != model.id)
    return list(session.scalars(query.order_by(Model.created_at, Model.id).limit(MOST_TWINS)))
