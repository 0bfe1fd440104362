"""HTML routes."""

from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from app.access import admin_only
from app.campaigns import service as campaigns
from app.datasets import service as datasets
from app.deps import CurrentUser, SessionDep
from app.pages import render, see_other, without_none
from app.registry import service
from app.runs import configs
from app.runs import service as runs

router = APIRouter(include_in_schema=False)

ROWS = 50


@router.get("/models")
@admin_only
def list_models(
    *,
    request: Request,
    session: SessionDep,
    user: CurrentUser,
    run_id: UUID | None = None,
    campaign_id: UUID | None = None,
    dataset_id: UUID | None = None,
    after: UUID | None = None,
) -> Response:
    """Published models, newest first: all, those of a run or a campaign, or of a source or target dataset."""
    models, following = service.list_models(
        session,
        by=user,
        run_id=run_id,
        campaign_id=campaign_id,
        dataset_id=dataset_id,
        after=after,
        limit=ROWS,
    )
    trained = service.runs_of(session, models)
    return render(
        request,
        "registry/list.html",
        models=models,
        runs=trained,
        names=runs.names_of(session, list(trained.values())),
        only=without_none(run_id=run_id, campaign_id=campaign_id, dataset_id=dataset_id),
        run=runs.get_run(session, run_id, by=user) if run_id else None,
        campaign=campaigns.find_campaign(session, campaign_id, by=user) if campaign_id else None,
        dataset=datasets.get_dataset(session, dataset_id, by=user) if dataset_id else None,
        next_after=following,
        is_first=after is None,
    )


@router.get("/models/{model_id}")
@admin_only
def show_model(request: Request, model_id: UUID, session: SessionDep, user: CurrentUser) -> Response:
    """A model's card."""
    model = service.get_model(session, model_id, by=user)
    run = service.runs_of(session, [model])[model.run_id]
    return render(
        request,
        "registry/show.html",
        model=model,
        run=run,
        names=runs.names_of(session, [run]),
        config=configs.in_groups(model.card["config"]),
    )


@router.get("/trials/{trial_id}/model")
@admin_only
def show_model_of_trial(
    request: Request, trial_id: UUID, session: SessionDep, user: CurrentUser
) -> RedirectResponse:
    """The model that a trial published."""
    model = service.model_of_trial(session, trial_id, by=user)
    return see_other(request, "show_model", model_id=model.id)
