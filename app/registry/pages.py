"""HTML routes."""

from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from app.access import admin_only
from app.deps import CurrentUser, SessionDep
from app.pages import render, see_other
from app.registry import service
from app.runs import configs

router = APIRouter(include_in_schema=False)

ROWS = 50


@router.get("/models")
@admin_only
def list_models(
    request: Request, session: SessionDep, user: CurrentUser, after: UUID | None = None
) -> Response:
    """Published models, newest first."""
    models, following = service.list_models(session, by=user, after=after, limit=ROWS)
    return render(request, "registry/list.html", models=models, next_after=following, is_first=after is None)


@router.get("/models/{model_id}")
@admin_only
def show_model(request: Request, model_id: UUID, session: SessionDep, user: CurrentUser) -> Response:
    """A model's card."""
    model = service.get_model(session, model_id, by=user)
    return render(request, "registry/show.html", model=model, config=configs.in_groups(model.card["config"]))


@router.get("/trials/{trial_id}/model")
@admin_only
def show_model_of_trial(
    request: Request, trial_id: UUID, session: SessionDep, user: CurrentUser
) -> RedirectResponse:
    """The model that a trial published."""
    model = service.model_of_trial(session, trial_id, by=user)
    return see_other(request, "show_model", model_id=model.id)
