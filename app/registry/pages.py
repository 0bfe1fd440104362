"""HTML routes."""

from collections.abc import Mapping
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from sqlalchemy.orm import Session

from app.access import admin_only
from app.campaigns import service as campaigns
from app.campaigns.models import Campaign
from app.clock import utc_now
from app.datasets import service as datasets
from app.deps import CurrentUser, FormDep, SessionDep, StorageDep
from app.evaluations import service as evaluations
from app.pages import read_form, render, see_other, without_none
from app.registry import aliases, naming, removing, service
from app.registry.errors import ModelHasAliases
from app.registry.lineage import lineages
from app.registry.models import Model
from app.registry.schemas import Alias, AliasForm, ModelForm
from app.runs import configs, words
from app.runs import service as runs
from app.runs.scoring import has_small_source
from app.runs.shares import odd_shares
from app.runs.summary import is_guessing
from app.schemas import Searched

router = APIRouter(include_in_schema=False)

ROWS = 50
UNPROCESSABLE = 422


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
    name: Searched | None = None,
    alias: Searched | None = None,
    archived: bool = False,
    after: UUID | None = None,
) -> Response:
    """Published models, newest first: all, those of a run or a campaign, or of a source or target dataset."""
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
        limit=ROWS,
    )
    trained = service.runs_of(session, models)
    judged = evaluations.models_by_people(session, [model.id for model in models if not model.is_tested])
    return render(
        request,
        "registry/list.html",
        models=models,
        runs=trained,
        in_words=words.in_table,
        preset_called=words.preset_called,
        names=runs.names_of(session, list(trained.values())),
        aliases=naming.aliases_of(session, models),
        by_people=judged,
        guessing={model.id for model in models if _is_guessing(model, judged.get(model.id))},
        only=without_none(
            run_id=run_id,
            campaign_id=campaign_id,
            dataset_id=dataset_id,
            name=name,
            alias=alias,
            archived=archived or None,
        ),
        name=name,
        alias=alias,
        archived=archived,
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
    return model_page(request, session, service.get_model(session, model_id, by=user))


@router.post("/models/{model_id}/description")
@admin_only
def describe_model_from_page(
    request: Request, model_id: UUID, form: FormDep, session: SessionDep, user: CurrentUser
) -> Response:
    """Name a model and write notes, or show the page with what is wrong."""
    model = service.get_model(session, model_id, by=user)
    given, errors = read_form(form, ModelForm)
    if given is not None:
        try:
            naming.describe(session, model, name=given.name, notes=given.notes, by=user, now=utc_now())
        except ModelHasAliases as error:
            errors = {"name": error.detail}
        else:
            return see_other(request, "show_model", model_id=model_id)
    typed = {name: str(form.get(name, "")) for name in ("name", "notes")}
    return model_page(request, session, model, typed=typed, errors=errors)


@router.post("/models/{model_id}/aliases")
@admin_only
def set_alias_from_page(
    request: Request, model_id: UUID, form: FormDep, session: SessionDep, user: CurrentUser
) -> Response:
    """Let a word stand for this version, or show the page with what is wrong."""
    model = service.get_model(session, model_id, by=user)
    given, errors = read_form(form, AliasForm)
    if given is None:
        return model_page(request, session, model, typed={"alias": str(form.get("alias", ""))}, errors=errors)
    aliases.set_alias(session, model, given.alias, by=user, now=utc_now())
    return see_other(request, "show_model", model_id=model_id)


@router.post("/models/{model_id}/aliases/{alias}/remove")
@admin_only
def remove_alias_from_page(
    request: Request, model_id: UUID, alias: Alias, session: SessionDep, user: CurrentUser
) -> Response:
    """Let a word stand for nothing any more."""
    aliases.remove_alias(session, service.get_model(session, model_id, by=user), alias, by=user)
    return see_other(request, "show_model", model_id=model_id)


@router.post("/models/{model_id}/archive")
@admin_only
def archive_model_from_page(
    request: Request, model_id: UUID, session: SessionDep, user: CurrentUser
) -> Response:
    """Hide a model from lists."""
    model = service.get_model(session, model_id, by=user)
    removing.archive_model(session, model, by=user, now=utc_now())
    return see_other(request, "show_model", model_id=model_id)


@router.post("/models/{model_id}/restore")
@admin_only
def restore_model_from_page(
    request: Request, model_id: UUID, session: SessionDep, user: CurrentUser
) -> Response:
    """Show an archived model in lists again."""
    model = service.get_model(session, model_id, by=user)
    removing.archive_model(session, model, by=user, now=None)
    return see_other(request, "show_model", model_id=model_id)


@router.post("/models/{model_id}/delete")
@admin_only
def delete_model_from_page(
    request: Request, model_id: UUID, session: SessionDep, storage: StorageDep, user: CurrentUser
) -> Response:
    """Delete a model with its files."""
    removing.delete_model(session, storage, service.get_model(session, model_id, by=user), by=user)
    return see_other(request, "list_models")


@router.get("/runs/{run_id}/delete")
@admin_only
def confirm_run_deletion(request: Request, run_id: UUID, session: SessionDep, user: CurrentUser) -> Response:
    """What goes with a run, or what stands in the way."""
    run = runs.get_run(session, run_id, by=user)
    return render(
        request,
        "registry/delete_run.html",
        run=run,
        names=runs.names_of(session, [run]),
        uses=removing.standing_in_the_way(session, run),
        models=len(removing.models_of(session, run)),
    )


@router.post("/runs/{run_id}/delete")
@admin_only
def delete_run_from_page(
    request: Request, run_id: UUID, session: SessionDep, storage: StorageDep, user: CurrentUser
) -> Response:
    """Delete a run with its models."""
    run = runs.get_run(session, run_id, by=user)
    removing.delete_run(session, storage, run, by=user, now=utc_now())
    return see_other(request, "list_runs")


@router.get("/trials/{trial_id}/model")
@admin_only
def show_model_of_trial(
    request: Request, trial_id: UUID, session: SessionDep, user: CurrentUser
) -> RedirectResponse:
    """The model that a trial published."""
    model = service.model_of_trial(session, trial_id, by=user)
    return see_other(request, "show_model", model_id=model.id)


def model_page(
    request: Request,
    session: Session,
    model: Model,
    *,
    typed: Mapping[str, str] | None = None,
    errors: dict[str, str] | None = None,
) -> Response:
    """A model's card, with what somebody typed and what is wrong with it."""
    run = service.runs_of(session, [model])[model.run_id]
    lineage = lineages(session, [run])[run.id]
    by_people = evaluations.models_by_people(session, [model.id]).get(model.id)
    return render(
        request,
        "registry/show.html",
        status=UNPROCESSABLE if errors else 200,
        model=model,
        method=words.method_of(run),
        preset=words.preset_called(model.preset),
        setting=words.setting_of(run),
        run=run,
        lineage=lineage,
        odd=odd_shares(model.card, model.card["classes"], lineage.target.name),
        aliases=naming.aliases_of(session, [model])[model.id],
        twins=service.same_weights(session, model),
        by_people=by_people,
        is_guessing=_is_guessing(model, by_people),
        source_is_small=has_small_source(session, run, model.card.get("source_estimate")),
        campaign=session.get_one(Campaign, run.campaign_id),
        config=configs.in_groups(model.card["config"]),
        typed={"name": model.name, "notes": model.notes, "alias": ""} | dict(typed or {}),
        errors=errors or {},
    )


def _is_guessing(model: Model, by_people: evaluations.Measured | None) -> bool:
    """Whether the accuracy that stands for a model, which is whole, cannot be told from guessing."""
    if by_people is not None and not model.is_tested:
        return by_people.is_over and is_guessing(by_people.interval.low, model.chance)
    return model.interval is not None and is_guessing(model.interval[0], model.chance)
