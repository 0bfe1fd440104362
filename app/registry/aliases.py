"""Aliases: words that stand for one version of a name, and are moved from one to the next at once."""

from datetime import datetime
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.journal import service as journal
from app.journal.models import Action
from app.registry.errors import AliasNotFound
from app.registry.models import Model, ModelAlias, ModelName, ModelVersion
from app.registry.naming import held_version

# Both say what to do where there is one already, by methods of the same names.
_INSERT: dict[str, Any] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}


def set_alias(session: Session, model: Model, alias: str, *, by: User, now: datetime) -> None:
    """Let a word stand for this version of its name, in place of the one for which it stood.

    One statement moves it, so that whoever asks meanwhile gets the one or the other. Said twice it is said
    once.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    name_id = held_version(session, model).name_id
    where = ModelAlias.name_id == name_id, ModelAlias.alias == alias
    # Held until the transaction ends, so that the journal tells moves in the order in which they happened.
    session.execute(select(ModelName.id).where(ModelName.id == name_id).with_for_update())
    before = session.execute(
        select(ModelAlias.model_id, ModelVersion.number)
        .join(ModelVersion, ModelVersion.model_id == ModelAlias.model_id)
        .where(*where)
    ).one_or_none()
    if before is not None and before.model_id == model.id:
        return
    row = _INSERT[session.get_bind().dialect.name](ModelAlias).values(
        name_id=name_id, alias=alias, model_id=model.id, moved_at=now
    )
    moved = {"model_id": row.excluded.model_id, "moved_at": row.excluded.moved_at}
    session.execute(row.on_conflict_do_update(index_elements=["name_id", "alias"], set_=moved))
    facts = {"model": model.name, "alias": alias, "version": model.version}
    facts |= {} if before is None else {"before": f"version {before.number}"}
    journal.write(session, Action.ALIAS_MOVED, by=by, details=facts)


def remove_alias(session: Session, model: Model, alias: str, *, by: User) -> None:
    """Let a word stand for nothing any more.

    Raises:
        NotAllowed: `by` is no admin.
        AliasNotFound: it does not stand for this model.
    """
    accounts.require_admin(by)
    found = delete(ModelAlias).where(ModelAlias.model_id == model.id, ModelAlias.alias == alias)
    if session.scalar(found.returning(ModelAlias.alias)) is None:
        raise AliasNotFound(model.title, alias)
    facts = {"model": model.name, "alias": alias, "version": model.version}
    journal.write(session, Action.ALIAS_REMOVED, by=by, details=facts)


def model_under(session: Session, name: str, alias: str, *, by: User) -> Model:
    """The model for which an alias of a name stands at this moment; one statement finds it.

    Raises:
        NotAllowed: `by` is no admin.
        AliasNotFound: the alias stands for no version of the name.
    """
    accounts.require_admin(by)
    found = session.scalar(
        select(Model)
        .join(ModelAlias, ModelAlias.model_id == Model.id)
        .join(ModelName, ModelName.id == ModelAlias.name_id)
        .where(ModelName.name == name, ModelAlias.alias == alias)
    )
    if found is None:
        raise AliasNotFound(name, alias)
    return found
