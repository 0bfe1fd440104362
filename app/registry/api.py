"""JSON routes."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response

from app.access import admin_only
from app.deps import CurrentUser, SessionDep, StorageDep
from app.registry import service
from app.registry.models import Model
from app.registry.schemas import ModelList, ModelRead

router = APIRouter(tags=["registry"])


@router.get("/models")
@admin_only
def read_models(
    *,
    after: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    session: SessionDep,
    user: CurrentUser,
) -> ModelList:
    """Published models, newest first."""
    models, following = service.list_models(session, by=user, after=after, limit=limit)
    return ModelList(items=[ModelRead.model_validate(model) for model in models], next=following)


@router.get("/models/{model_id}", response_model=ModelRead)
@admin_only
def read_model(model_id: UUID, session: SessionDep, user: CurrentUser) -> Model:
    """One model with its card."""
    return service.get_model(session, model_id, by=user)


@router.get(
    "/models/{model_id}/download",
    response_class=Response,
    responses={200: {"content": {"application/zip": {}}, "description": "model.safetensors and model.json"}},
)
@admin_only
def download_model(model_id: UUID, session: SessionDep, storage: StorageDep, user: CurrentUser) -> Response:
    """A zip of the weights (safetensors) and the card (JSON)."""
    model = service.get_model(session, model_id, by=user)
    name = f"clarinet-run{model.card['run']}-seed{model.card['seed']}.zip"
    return Response(
        service.archive(storage, model),
        media_type="application/zip",
        headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"},
    )
