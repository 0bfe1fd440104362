"""A model's predictions, given to people to judge."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.campaigns import service as campaigns
from app.campaigns.classes import ClassDetails
from app.evaluations import service as evaluations
from app.evaluations.models import Evaluation
from app.registry.models import Model
from app.registry.target_predictions import predictions_digest, target_predictions
from app.runs.models import Run, Trial
from app.storage import Storage


def judged(session: Session, storage: Storage, model: Model, *, by: User) -> evaluations.Judged:
    """What an evaluation needs of a model. Reads a file: give a session that only looks.

    Raises:
        NotAllowed: `by` is no admin.
        ModelWithoutPredictions: the model is older than the file of its predictions.
        StoredFileMissing, StoredFileDamaged: the server has lost that file.
    """
    accounts.require_admin(by)
    run = session.get_one(Run, model.run_id)
    campaign = campaigns.any_campaign(session, run.campaign_id)
    told = {item.name: item.description for item in campaign.classes}
    predicted = target_predictions(storage, model)
    return evaluations.Judged(
        name=model_name(model),
        run_id=run.id,
        model_id=model.id,
        dataset_id=run.target_dataset_id,
        dataset_version=run.target_version,
        classes=tuple(ClassDetails(name, told.get(name, "")) for name in run.snapshot_facts["classes"]),
        class_language=campaign.class_language,
        instructions=campaign.instructions,
        digest=predictions_digest(model),
        predicted=dict(zip(predicted.example_ids.tolist(), predicted.classes.tolist(), strict=True)),
    )


def model_name(model: Model) -> str:
    """What people call it."""
    return f"run {model.card['run']}, seed {model.card['seed']}"


def models_of_run(session: Session, run: Run) -> list[Model]:
    """The models of a run, by seed."""
    query = select(Model).join(Trial, Trial.id == Model.trial_id).where(Trial.run_id == run.id)
    return list(session.scalars(query.order_by(Trial.seed)))


def models_of(session: Session, found: Sequence[Evaluation]) -> Mapping[UUID, Model]:
    """The models that evaluations judge, by id."""
    ids = {evaluation.model_id for evaluation in found}
    return {model.id: model for model in session.scalars(select(Model).where(Model.id.in_(ids)))}
