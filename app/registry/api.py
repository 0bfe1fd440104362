"""JSON routes."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response

from app.access import admin_only
from app.deps import CurrentUser, SessionDep, StorageDep, UnitOfWorkDep
from app.registry import service
from app.registry.models import Model
from app.registry.schemas import ModelList, ModelRead

router = APIRouter(tags=["registry"])
BINARY = {"type": "string", "format": "binary"}


@router.get("/models")
@admin_only
def read_models(
    *,
    run_id: UUID | None = None,
    campaign_id: UUID | None = None,
    dataset_id: UUID | None = None,
    after: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    session: SessionDep,
    user: CurrentUser,
) -> ModelList:
    """Published models, newest first: all, those of a run or a campaign, or of a source or target dataset."""
    models, following = service.list_models(
        session,
        by=user,
        run_id=run_id,
        campaign_id=campaign_id,
        dataset_id=dataset_id,
        after=after,
        limit=limit,
    )
    runs = service.runs_of(session, models)
    return ModelList(items=[ModelRead.of(model, runs[model.run_id]) for model in models], next=following)


@router.get("/models/{model_id}")
@admin_only
def read_model(model_id: UUID, session: SessionDep, user: CurrentUser) -> ModelRead:
    """One model with its card."""
    model = service.get_model(session, model_id, by=user)
    return ModelRead.of(model, service.runs_of(session, [model])[model.run_id])


@router.get(
    "/models/{model_id}/download",
    response_class=Response,
    responses={
        200: {
            "content": {"application/zip": {"schema": BINARY}},
            "description": "weights, cards and, mostly, ONNX",
        }
    },
)
@admin_only
def download_model(
    model_id: UUID, session: SessionDep, storage: StorageDep, user: CurrentUser, work: UnitOfWorkDep
) -> Response:
    """A zip of the weights (safetensors), the card (JSON, Markdown) and the ONNX file, if there is one."""
    model = service.get_model(session, model_id, by=user)
    with work() as writing:
        service.note_download(writing, model, by=user, file="zip")
    return _attachment(model, service.archive(storage, model), "zip", "application/zip")


@router.get(
    "/models/{model_id}/onnx",
    response_class=Response,
    responses={
        200: {"content": {"application/octet-stream": {"schema": BINARY}}, "description": "model.onnx"}
    },
)
@admin_only
def download_onnx(
    model_id: UUID, session: SessionDep, storage: StorageDep, user: CurrentUser, work: UnitOfWorkDep
) -> Response:
    """The model as ONNX: images as uint8 (N, H, W, C) in, probabilities (N, K) out."""
    model = service.get_model(session, model_id, by=user)
    file = service.onnx_file(storage, model)
    with work() as writing:
        service.note_download(writing, model, by=user, file="onnx")
    return _attachment(model, file, "onnx", "application/octet-stream")


def _attachment(model: Model, content: bytes, extension: str, media_type: str) -> Response:
    name = f"clarinet-run{model.card['run']}-seed{model.card['seed']}.{extension}"
    return Response(
        content,
        media_type=media_type,
        headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"},
    )
