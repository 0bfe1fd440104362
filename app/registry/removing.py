"""Models and runs that go: hidden from lists, or deleted with their files."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import delete, event, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.campaigns import noting
from app.campaigns.models import Campaign
from app.errors import Use, Uses
from app.evaluations.models import Evaluation
from app.journal import service as journal
from app.journal.models import Action
from app.registry.errors import ModelHasAliases, ModelInUse
from app.registry.models import Model, ModelAlias
from app.registry.naming import aliases_of
from app.registry.service import models_prefix
from app.runs.errors import RunInUse, RunNotOver
from app.runs.models import DeletedRun, Run, Trial
from app.runs.service import lock_run
from app.runs.trials import trial_prefix
from app.storage import Storage
from app.uses import MOST_NAMED, uses_of


def archive_model(session: Session, model: Model, *, by: User, now: datetime | None) -> None:
    """Hide a model from lists; None shows it again. All else about it stays.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    if (model.archived_at is None) == (now is None):
        return
    model.archived_at = now
    action = Action.MODEL_RESTORED if now is None else Action.MODEL_ARCHIVED
    journal.write(session, action, by=by, details={"model": model.title})
    session.flush()


def delete_model(session: Session, storage: Storage, model: Model, *, by: User) -> None:
    """Delete a model; its files go once the transaction has committed. Its run stays, with its figures.

    Raises:
        NotAllowed: `by` is no admin.
        ModelHasAliases: an alias stands for it.
        ModelInUse: something else needs it.
    """
    accounts.require_admin(by)
    if aliases := aliases_of(session, [model])[model.id]:
        raise ModelHasAliases(model.title, aliases, "deleted")
    title, key = model.title, model.key
    facts = {"model": title, "weights": model.digest}
    try:
        with session.begin_nested():
            # Of known answers alone, it has no campaign that could be deleted before.
            session.execute(
                delete(Evaluation).where(Evaluation.model_id == model.id, Evaluation.campaign_id.is_(None))
            )
            session.execute(delete(Model).where(Model.id == model.id))
    except IntegrityError as error:
        raise ModelInUse(title, uses_of(model)) from error
    journal.write(session, Action.MODEL_DELETED, by=by, details=facts)
    _delete_files(session, storage, key)


def standing_in_the_way(session: Session, run: Run) -> Uses:
    """What keeps a run from being deleted: models of it for which an alias stands, and what else needs it."""
    query = select(Model).join(Trial, Trial.id == Model.trial_id).where(Trial.run_id == run.id)
    aliased = query.where(Model.id.in_(select(ModelAlias.model_id))).order_by(Model.created_at)
    models = list(session.scalars(aliased))
    words = aliases_of(session, models)
    named = [Use("model", model.id, f"{model.title}: {', '.join(words[model.id])}") for model in models]
    others = uses_of(run)
    # Evaluations of known answers alone go with the run: they have no campaign that could be deleted before.
    alone = select(Evaluation.id).where(Evaluation.run_id == run.id, Evaluation.campaign_id.is_(None))
    going = set(session.scalars(alone))
    counts = dict(others.counts) | ({"model": len(models)} if models else {})
    if going:
        counts["evaluation"] -= len(going)
    kept = (use for use in others.named if use.id not in going)
    return Uses((*kept, *named[:MOST_NAMED]), {kind: count for kind, count in counts.items() if count})


def models_of(session: Session, run: Run) -> list[UUID]:
    """The models that go with a run."""
    query = select(Model.id).join(Trial, Trial.id == Model.trial_id).where(Trial.run_id == run.id)
    return list(session.scalars(query))


def delete_run(session: Session, storage: Storage, run: Run, *, by: User, now: datetime) -> None:
    """Delete a run that is over with its trials, their figures and logs, and their models.

    Its frozen labels stay until upkeep finds that no other run uses them. Its number is not given again.

    Raises:
        NotAllowed: `by` is no admin.
        RunNotFound: somebody has deleted it meanwhile.
        RunNotOver: something of it waits or trains.
        RunInUse: an alias stands for one of its models, or something else needs it.
    """
    accounts.require_admin(by)
    lock_run(session, run)  # somebody may let it try again at this moment
    if not run.is_finished:
        raise RunNotOver(run.number)
    if found := standing_in_the_way(session, run):
        raise RunInUse(run.number, found)
    trial_ids = [trial.id for trial in run.trials]
    facts = {"run": run.number, "models": len(models_of(session, run)), "snapshot": run.snapshot_digest}
    campaign = session.get_one(Campaign, run.campaign_id)
    try:
        with session.begin_nested():
            session.execute(
                delete(Evaluation).where(Evaluation.run_id == run.id, Evaluation.campaign_id.is_(None))
            )
            session.execute(delete(Run).where(Run.id == run.id))
            session.add(DeletedRun(number=run.number, deleted_at=now, snapshot_digest=run.snapshot_digest))
    except IntegrityError as error:
        raise RunInUse(run.number, standing_in_the_way(session, run)) from error
    noting.note(session, Action.RUN_DELETED, campaign, by=by, details=facts)
    places = (place for id_ in trial_ids for place in (models_prefix(id_), trial_prefix(id_)))
    _delete_files(session, storage, *places)


def _delete_files(session: Session, storage: Storage, *prefixes: str) -> None:
    @event.listens_for(session, "after_commit", once=True)
    def delete_files(_session: Session) -> None:
        for prefix in prefixes:
            storage.delete_tree(prefix)
