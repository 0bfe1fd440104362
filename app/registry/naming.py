"""What models are called: a name, under which each of them is a version."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime
from uuid import UUID

from sqlalchemy import exists, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.campaigns.models import Campaign
from app.journal import service as journal
from app.journal.models import Action
from app.registry.errors import ModelHasAliases
from app.registry.models import Model, ModelAlias, ModelName, ModelVersion
from app.runs.models import Run, Trial


def default_name(session: Session, trial_id: UUID) -> str:
    """What a trial's model is called until somebody says otherwise: as its campaign."""
    query = (
        select(Campaign.name).join(Run, Run.campaign_id == Campaign.id).join(Trial, Trial.run_id == Run.id)
    )
    return session.scalars(query.where(Trial.id == trial_id)).one()


def give_version(session: Session, model_id: UUID, name: str, *, now: datetime) -> ModelVersion:
    """Make a stored model the next version of a name, in place of what it was.

    The name is made with its first version. Numbers rise by one and none is given twice: the name's row is
    held until the transaction ends.
    """
    name_id = _name_id(session, name, now=now)
    number = session.scalars(
        update(ModelName)
        .where(ModelName.id == name_id)
        .values(last_version=ModelName.last_version + 1)
        .returning(ModelName.last_version)
    ).one()
    version = session.get(ModelVersion, model_id) or ModelVersion(model_id=model_id)
    version.name_id, version.number = name_id, number
    session.add(version)
    session.flush()  # so that whoever reads the model sees it
    return version


def name_the_nameless(session: Session, *, now: datetime) -> None:
    """Make versions of models that a worker of an earlier version has published beside this one."""
    nameless = select(Model.id, Model.trial_id).where(~exists().where(ModelVersion.model_id == Model.id))
    for model_id, trial_id in session.execute(nameless.order_by(Model.created_at)).all():
        with suppress(IntegrityError), session.begin_nested():  # another upkeep was faster
            give_version(session, model_id, default_name(session, trial_id), now=now)


def held_version(session: Session, model: Model) -> ModelVersion:
    """Which version a model is, held against other changes of its name and aliases."""
    query = select(ModelVersion).where(ModelVersion.model_id == model.id)
    return session.scalars(query.with_for_update().execution_options(populate_existing=True)).one()


def describe(
    session: Session,
    model: Model,
    *,
    name: str | None = None,
    notes: str | None = None,
    by: User,
    now: datetime,
) -> None:
    """Register a model under another name, as its next version; or write notes. None leaves as it is.

    Raises:
        NotAllowed: `by` is no admin.
        ModelHasAliases: it stands for its name under an alias, which would be left without a model.
    """
    accounts.require_admin(by)
    facts: dict[str, object] = {}
    held_version(session, model)
    if name is not None and name != model.name:
        before, aliases = model.title, aliases_of(session, [model])[model.id]
        if aliases:
            raise ModelHasAliases(model.title, aliases, "renamed")
        give_version(session, model.id, name, now=now)
        facts |= {"before": before}
    if notes is not None and notes != model.notes:
        model.notes = notes
        facts |= {"notes": notes}
    if facts:
        session.flush()  # a refresh would undo what is not written yet
        session.refresh(model)
        journal.write(session, Action.MODEL_CHANGED, by=by, details={"model": model.title} | facts)


def aliases_of(session: Session, models: Sequence[Model]) -> dict[UUID, list[str]]:
    """The aliases that stand for each of these models, by its id."""
    found: dict[UUID, list[str]] = {model.id: [] for model in models}
    query = select(ModelAlias.model_id, ModelAlias.alias).where(ModelAlias.model_id.in_(found))
    for model_id, alias in session.execute(query.order_by(ModelAlias.alias)):
        found[model_id].append(alias)
    return found


def aliases_by_name(session: Session, name_ids: Collection[UUID]) -> dict[UUID, dict[str, UUID]]:
    """The model for which each alias stands, by name."""
    found: dict[UUID, dict[str, UUID]] = {name_id: {} for name_id in name_ids}
    query = select(ModelAlias).where(ModelAlias.name_id.in_(found)).order_by(ModelAlias.alias)
    for row in session.scalars(query):
        found[row.name_id][row.alias] = row.model_id
    return found


def names(session: Session, *, by: User, after: str | None = None, limit: int) -> list[tuple[ModelName, int]]:
    """Names that models bear, with how many versions each has, in their order, that follow `after`.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    query = (
        select(ModelName, func.count(ModelVersion.model_id))
        .join(ModelVersion, ModelVersion.name_id == ModelName.id)
        .group_by(ModelName.id)
        .order_by(ModelName.name)
        .limit(limit)
    )
    if after is not None:
        query = query.where(ModelName.name > after)
    return [(name, count) for name, count in session.execute(query)]


def _name_id(session: Session, name: str, *, now: datetime) -> UUID:
    found = session.scalar(select(ModelName.id).where(ModelName.name == name))
    if found is not None:
        return found
    try:
        with session.begin_nested():
            made = ModelName(name=name, created_at=now)
            session.add(made)
    except IntegrityError:  # somebody else has made it meanwhile
        return session.scalars(select(ModelName.id).where(ModelName.name == name)).one()
    return made.id
