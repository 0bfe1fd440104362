"""HTML routes."""

from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from sqlalchemy.orm import Session
from starlette.datastructures import FormData

from app.access import admin_only
from app.accounts.models import User
from app.campaigns import service as campaigns
from app.clock import utc_now
from app.datasets import service as datasets
from app.datasets.models import DatasetState
from app.deps import CurrentUser, FormDep, ReadingDep, SessionDep, SettingsDep, StorageDep
from app.errors import Conflict, Unprocessable
from app.evaluations import service as evaluations
from app.evaluations.estimating import questions_needed
from app.labels import service as labelling
from app.pages import read_form, render, see_other, without_none
from app.runs import configs, forms, service
from app.runs.errors import (
    BadConfig,
    BadSeeds,
    NoSharedClass,
    TargetIsSource,
    TargetNotReady,
    TargetWithoutImages,
    WeightsFolderUnusable,
)
from app.runs.labels import Readiness
from app.runs.models import NOTE, Run
from app.runs.pairs import look_at_pair
from app.runs.schemas import NoteForm, RunNumber
from app.runs.summary import curve
from app.runs.targets import unscored_of
from app.runs.view import details_of, silent_workers_since
from app.runs.weights import ENDINGS, weights_asked_for, weights_files, weights_names
from app.spelling import query_of
from clarinet.files.looks import looks_of_pair

router = APIRouter(include_in_schema=False)

ROWS = 50
MOST_TARGETS = 200
UNPROCESSABLE = 422
WITHIN = 0.05  # of the accuracy that people are offered to measure


@router.get("/runs")
@admin_only
def list_runs(
    *,
    request: Request,
    session: SessionDep,
    user: CurrentUser,
    campaign_id: UUID | None = None,
    dataset_id: UUID | None = None,
    after: RunNumber | None = None,
) -> Response:
    """Runs, newest first: all, those of a campaign, or those whose source or target a dataset is."""
    runs, following = service.list_runs(
        session, by=user, campaign_id=campaign_id, dataset_id=dataset_id, before=after, limit=ROWS
    )
    return render(
        request,
        "runs/list.html",
        runs=runs,
        summaries=service.summaries(session, runs, now=utc_now()),
        names=service.names_of(session, runs),
        only=without_none(campaign_id=campaign_id, dataset_id=dataset_id),
        campaign=campaigns.find_campaign(session, campaign_id, by=user) if campaign_id else None,
        dataset=datasets.get_dataset(session, dataset_id, by=user) if dataset_id else None,
        next_after=following,
        is_first=after is None,
    )


@router.get("/weights")
@admin_only
def list_weights(request: Request, settings: SettingsDep, user: CurrentUser) -> Response:
    """Files of trained weights on the server, and how to add one."""
    folder, files, fault = settings.weights_dir, [], ""
    if folder is not None:
        try:
            files = weights_files(folder, by=user)
        except WeightsFolderUnusable as error:
            fault = error.detail
    return render(request, "runs/weights.html", folder=folder, files=files, fault=fault, endings=ENDINGS)


@router.get("/runs/{run_id}")
@admin_only
def show_run(request: Request, run_id: UUID, session: SessionDep, user: CurrentUser) -> Response:
    """One run, live."""
    return _page(request, session, service.get_run(session, run_id, by=user), by=user)


@router.post("/runs/{run_id}/note")
@admin_only
def write_note_from_page(
    request: Request, run_id: UUID, form: FormDep, session: SessionDep, user: CurrentUser
) -> Response:
    """Write the note, or show the page with what is wrong."""
    run = service.get_run(session, run_id, by=user)
    given, errors = read_form(form, NoteForm)
    if given is None:
        typed = str(form.get("note", ""))
        return _page(request, session, run, by=user, typed=typed, errors=errors, status=UNPROCESSABLE)
    service.write_note(session, run, given.note, by=user)
    return see_other(request, "show_run", run_id=run_id)


def _page(
    request: Request,
    session: Session,
    run: Run,
    *,
    by: User,
    typed: str | None = None,
    errors: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    now = utc_now()
    latest = service.latest_metrics(session, [run])
    summary = service.summaries(session, [run], now=now)[run.id]
    return render(
        request,
        "runs/show.html",
        fragment="runs/_state.html",
        status=status,
        run=run,
        names=service.names_of(session, [run]),
        made=service.made_of(session, run),
        summary=summary,
        curve_data=curve(run, service.metrics_of(session, run), on_target=summary.scored.images > 0),
        latest=latest,
        details=details_of(run, latest),
        recipe=service.recipe_of(session, run),
        config=configs.in_groups(run.config),
        silence=silent_workers_since(session, run, now=now),
        evaluations=evaluations.list_evaluations(session, by=by, run_id=run.id, limit=ROWS)[0],
        questions_needed=questions_needed(WITHIN),
        within=WITHIN,
        note=run.note if typed is None else typed,
        most=NOTE,
        errors=errors or {},
    )


@router.post("/runs/{run_id}/cancel")
@admin_only
def cancel_run_from_page(
    request: Request, run_id: UUID, session: SessionDep, user: CurrentUser
) -> RedirectResponse:
    """Ask for the end of a run."""
    service.cancel_run(session, service.get_run(session, run_id, by=user), by=user, now=utc_now())
    return see_other(request, "show_run", run_id=run_id)


@router.get("/campaigns/{campaign_id}/runs/new", openapi_extra=query_of(*forms.fields()))
@admin_only
def new_run(
    *,
    request: Request,
    campaign_id: UUID,
    session: SessionDep,
    storage: StorageDep,
    settings: SettingsDep,
    user: CurrentUser,
    recipe: str = "",
    target_dataset_id: str = "",
) -> Response:
    """The form; with another recipe or target, the same form with the values of the recipe that fits them."""
    weights = weights_names(settings.weights_dir, by=user)
    typed = FormData({"recipe": recipe, "target_dataset_id": target_dataset_id})
    return _form(request, campaign_id, session, storage, user, weights=weights, typed=typed)


@router.post("/campaigns/{campaign_id}/runs/new")
@admin_only
def start_run_from_form(
    *,
    request: Request,
    campaign_id: UUID,
    form: FormDep,
    session: SessionDep,
    reading: ReadingDep,
    storage: StorageDep,
    settings: SettingsDep,
    user: CurrentUser,
) -> Response:
    """Start the run, or show the form with what is wrong."""
    asked, errors = forms.read_run_form(form)
    if asked is not None:
        try:
            with reading.begin() as looking:
                campaign = campaigns.find_campaign(looking, campaign_id, by=user)
                labels = service.freeze_labels(
                    looking,
                    campaign,
                    setting=asked.setting,
                    imported=asked.imported_labels,
                    by=user,
                    storage=storage,
                )
                pair = look_at_pair(looking, storage, campaign, asked.target_dataset_id, by=user)
                config = asked.config_on(pair.looks)
                weights = weights_asked_for(settings.weights_dir, config, by=user)
            run = service.start_run(
                session,
                labels,
                pair,
                method=asked.method,
                setting=asked.setting,
                preset=asked.preset,
                seeds=asked.seeds,
                config=config,
                weights=weights,
                note=asked.note,
                by=user,
                now=utc_now(),
            )
        except BadConfig as error:
            errors[forms.place_of(error.field)] = error.detail
        except BadSeeds as error:
            errors["seeds"] = error.detail
        except (TargetNotReady, TargetWithoutImages, TargetIsSource, NoSharedClass) as error:
            errors["target_dataset_id"] = error.detail
        except (Conflict, Unprocessable) as error:
            errors[""] = error.detail
        else:
            return see_other(request, "show_run", run_id=run.id)
    files = weights_names(settings.weights_dir, by=user)
    return _form(
        request,
        campaign_id,
        session,
        storage,
        user,
        weights=files,
        typed=form,
        errors=errors,
        status=UNPROCESSABLE,
    )


def _form(
    request: Request,
    campaign_id: UUID,
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
    *,
    weights: list[str],
    typed: FormData,
    errors: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    campaign = campaigns.find_campaign(session, campaign_id, by=user)
    labelling.require_labels(campaign)
    recipe = forms.known_recipe(str(typed.get("recipe", "")))
    found = datasets.list_datasets(session, by=user, limit=MOST_TARGETS)
    targets = {
        str(dataset.id): dataset
        for dataset in found
        if dataset.state is DatasetState.READY and dataset.train_count and dataset.id != campaign.dataset_id
    }
    # Without a choice a browser takes the first.
    target = targets.get(str(typed.get("target_dataset_id", "")), next(iter(targets.values()), None))
    source = datasets.get_dataset(session, campaign.dataset_id, by=user)
    both = [source] if target is None else [source, target]
    looks = looks_of_pair(*(datasets.looks_of(session, storage, dataset) for dataset in both))
    loaded = forms.resolved(recipe, looks)
    return render(
        request,
        "runs/new.html",
        fragment="runs/_settings.html",
        status=status,
        campaign=campaign,
        readiness=Readiness.about(session, campaign, now=utc_now()),
        recipe=recipe,
        loaded=loaded,
        offered=forms.offered_weights(loaded, weights),
        trains=forms.trained(loaded, looks, both, weights=weights),
        unscored="" if target is None else unscored_of(target, campaign.class_names),
        recipes=forms.recipes(),
        methods=configs.methods().values(),
        settings=forms.settings(),
        targets=[(key, dataset.name) for key, dataset in targets.items()],
        has_imports=labelling.has_imports(session, campaign),
        groups=forms.input_groups(loaded, typed, weights=weights),
        typed=typed,
        most=NOTE,
        errors=errors or {},
        unfolded=any(name.startswith(forms.PREFIX) for name in errors or {}),
    )
