"""JSON routes."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, status
from sqlalchemy.orm import Session

from app.access import admin_only
from app.clock import utc_now
from app.deps import CurrentUser, SessionDep, StorageDep
from app.registry import aliases, naming, removing, service
from app.registry.lineage import lineages
from app.registry.models import Model
from app.registry.schemas import Alias, ModelList, ModelNameList, ModelNameRead, ModelRead, ModelUpdate
from app.runs import service as runs
from app.schemas import Searched

router = APIRouter(tags=["registry"])


@router.get("/models")
@admin_only
def read_models(
    *,
    run_id: UUID | None = None,
    campaign_id: UUID | None = None,
    dataset_id: UUID | None = None,
    name: Annotated[Searched | None, Query(description="only versions of this name")] = None,
    alias: Annotated[Searched | None, Query(description="only those for which this word stands")] = None,
    archived: Annotated[bool, Query(description="those that are archived, in place of the others")] = False,
    after: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    session: SessionDep,
    user: CurrentUser,
) -> ModelList:
    """Published models, newest first: all, those of a run or a campaign, or of a source or target dataset.

    With a name they are its versions; with a name and an alias, the one for which the alias stands.
    """
    models, following = service.list_models(
        session,
        by=user,
        run_id=run_id,
        campaign_id=campaign_id,
        dataset_id=dataset_id,
        name=name,
        alias=alias,
        archived=archived,
        after=after,
        limit=limit,
    )
    return ModelList(items=_read(session, models), next=following)


@router.get("/models/{model_id}")
@admin_only
def read_model(model_id: UUID, session: SessionDep, user: CurrentUser) -> ModelRead:
    """One model with its card."""
    return _read(session, [service.get_model(session, model_id, by=user)])[0]


@router.patch("/models/{model_id}")
@admin_only
def edit_model(model_id: UUID, body: ModelUpdate, session: SessionDep, user: CurrentUser) -> ModelRead:
    """Register a model under another name, as its next version; or write notes."""
    model = service.get_model(session, model_id, by=user)
    naming.describe(session, model, name=body.name, notes=body.notes, by=user, now=utc_now())
    return _read(session, [model])[0]


@router.put("/models/{model_id}/aliases/{alias}")
@admin_only
def set_alias(model_id: UUID, alias: Alias, session: SessionDep, user: CurrentUser) -> ModelRead:
    """Let a word stand for this version of its name, in place of the one for which it stood."""
    model = service.get_model(session, model_id, by=user)
    aliases.set_alias(session, model, alias, by=user, now=utc_now())
    return _read(session, [model])[0]


@router.delete("/models/{model_id}/aliases/{alias}", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def remove_alias(model_id: UUID, alias: Alias, session: SessionDep, user: CurrentUser) -> None:
    """Let a word stand for nothing any more."""
    aliases.remove_alias(session, service.get_model(session, model_id, by=user), alias, by=user)


@router.put("/models/{model_id}/archived")
@admin_only
def archive_model(model_id: UUID, session: SessionDep, user: CurrentUser) -> ModelRead:
    """Hide a model from lists. All else about it stays."""
    model = service.get_model(session, model_id, by=user)
    removing.archive_model(session, model, by=user, now=utc_now())
    return _read(session, [model])[0]


@router.delete("/models/{model_id}/archived")
@admin_only
def restore_model(model_id: UUID, session: SessionDep, user: CurrentUser) -> ModelRead:
    """Show an archived model in lists again."""
    model = service.get_model(session, model_id, by=user)
    removing.archive_model(session, model, by=user, now=None)
    return _read(session, [model])[0]


@router.delete("/models/{model_id}", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def delete_model(model_id: UUID, session: SessionDep, storage: StorageDep, user: CurrentUser) -> None:
    """Delete a model that no alias stands for, with its files. Its run stays, with its figures."""
    removing.delete_model(session, storage, service.get_model(session, model_id, by=user), by=user)


@router.delete("/runs/{run_id}", tags=["runs"], status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def delete_run(run_id: UUID, session: SessionDep, storage: StorageDep, user: CurrentUser) -> None:
    """Delete a run that is over, with its models. Where an alias stands for one of them, it stays."""
    run = runs.get_run(session, run_id, by=user)
    removing.delete_run(session, storage, run, by=user, now=utc_now())


@router.get("/model-names")
@admin_only
def read_model_names(
    *,
    after: Searched | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    session: SessionDep,
    user: CurrentUser,
) -> ModelNameList:
    """The names of models, with their aliases."""
    found = naming.names(session, by=user, after=after, limit=limit + 1)
    stand = naming.aliases_by_name(session, [name.id for name, _ in found[:limit]])
    return ModelNameList(
        items=[
            ModelNameRead(
                name=name.name, versions=count, last_version=name.last_version, aliases=stand[name.id]
            )
            for name, count in found[:limit]
        ],
        next=found[limit - 1][0].name if len(found) > limit else None,
    )


def _read(session: Session, models: Sequence[Model]) -> list[ModelRead]:
    runs = service.runs_of(session, models)
    origins = lineages(session, list(runs.values()))
    words = naming.aliases_of(session, models)
    return [
        ModelRead.of(model, runs[model.run_id], origins[model.run_id], words[model.id]) for model in models
    ]
