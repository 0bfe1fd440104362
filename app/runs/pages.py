"""HTML routes."""

import enum
from collections.abc import Callable
from contextlib import suppress
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from sqlalchemy.orm import Session
from starlette.datastructures import FormData

from app.access import admin_only
from app.accounts.models import User
from app.campaigns import service as campaigns
from app.campaigns.by_belief import by_belief_numbers
from app.clock import utc_now
from app.datasets import service as datasets
from app.datasets.models import DatasetState
from app.deps import CurrentUser, FormDep, ReadingDep, SessionDep, SettingsDep, StorageDep
from app.errors import Conflict, Unprocessable
from app.evaluations import service as evaluations
from app.evaluations.estimating import questions_needed
from app.labels import service as labelling
from app.pages import read_form, render, see_other
from app.runs import configs, forms, logs, service, words
from app.runs.advice import next_steps
from app.runs.beside import beside
from app.runs.describing import describe
from app.runs.errors import (
    BadConfig,
    BadSeeds,
    NoSharedClass,
    TargetIsSource,
    TargetNotReady,
    TargetWithoutImages,
    WeightsFolderUnusable,
)
from app.runs.expecting import Expected, expected
from app.runs.faults import MAX_SETBACKS
from app.runs.labels import Readiness
from app.runs.models import NOTE, Run
from app.runs.pairs import look_at_pair
from app.runs.schemas import MOST_PROCESSES, NoteForm
from app.runs.summary import curve
from app.runs.targets import unscored_of
from app.runs.training_curves import training_curves
from app.runs.view import details_of, silent_workers_since
from app.runs.weights import ENDINGS, file_for, weights_asked_for, weights_files, weights_names
from app.runs.workers import weights_of_workers
from app.spelling import query_of
from app.storage import Storage
from clarinet.files.looks import looks_of_pair

router = APIRouter(include_in_schema=False)


class Part(enum.StrEnum):
    """What the page of a run shows below its head."""

    RESULT = "result"
    TRAINING = "training"
    LOG = "log"


MOST_TARGETS = 200
UNPROCESSABLE = 422
MOST_EVALUATIONS = 50
WITHIN = 0.05  # of the accuracy that people are offered to measure


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
def show_run(
    *,
    request: Request,
    run_id: UUID,
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
    part: Part = Part.RESULT,
) -> Response:
    """One run, live: what it reached, how it trained, or what its processes wrote."""
    return _page(request, session, storage, service.get_run(session, run_id, by=user), by=user, part=part)


@router.post("/runs/{run_id}/note")
@admin_only
def write_note_from_page(
    *,
    request: Request,
    run_id: UUID,
    form: FormDep,
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> Response:
    """Write the note, or show the page with what is wrong."""
    run = service.get_run(session, run_id, by=user)
    given, errors = read_form(form, NoteForm)
    if given is None:
        typed = str(form.get("note", ""))
        return _page(
            request, session, storage, run, by=user, typed=typed, errors=errors, status=UNPROCESSABLE
        )
    describe(session, run, note=given.note, by=user)
    return see_other(request, "show_run", run_id=run_id)


def _page(
    request: Request,
    session: Session,
    storage: Storage,
    run: Run,
    *,
    by: User,
    part: Part = Part.RESULT,
    typed: str | None = None,
    errors: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    now = utc_now()
    latest = service.latest_metrics([run])
    summary = service.summaries(session, [run], now=now)[run.id]
    compared = beside(session, run)
    metrics = [] if part is Part.LOG else service.metrics_of(session, run)
    target = service.versions_used(session, run)[1]
    names = service.names_of(session, [run])
    judged = list(evaluations.list_evaluations(session, by=by, run_id=run.id, limit=MOST_EVALUATIONS)[0])
    return render(
        request,
        "runs/show.html",
        fragment="runs/_state.html",
        status=status,
        run=run,
        names=names,
        made=service.made_of(session, run),
        summary=summary,
        part=part,
        parts=list(Part),
        method=words.method_of(run),
        preset=words.preset_of(run),
        setting=words.setting_of(run),
        beside=compared,
        steps=next_steps(run, summary, compared, images=target.image_count),
        curve_data=curve(run, metrics, on_target=summary.scored.images > 0, lines=compared.lines),
        training=training_curves(run, metrics) if part is Part.TRAINING else [],
        logs=logs.tails(storage, run) if part is Part.LOG else [],
        latest=latest,
        details=details_of(run, latest, target=names[run.target_dataset_id]),
        most_setbacks=MAX_SETBACKS,
        cell_address=_cell_addresses(request, run),
        recipe=service.recipe_of(session, run),
        config=configs.in_groups(run.config),
        silence=silent_workers_since(session, run, now=now),
        evaluations=judged,
        by_people=evaluations.trials_by_people(session, [trial.id for trial in run.trials]) if judged else {},
        questions_needed=questions_needed(WITHIN),
        within=WITHIN,
        note=run.note if typed is None else typed,
        most=NOTE,
        errors=errors or {},
    )


def _cell_addresses(request: Request, run: Run) -> Callable[[int, int], str | None]:
    """Where the pictures in a cell [true][predicted] of the confusion are: of the first seed with any."""
    counted = [
        (str(request.app.url_path_for("show_pictures", trial_id=str(trial.id))), trial.result["confusion"])
        for trial in run.trials
        if trial.result and trial.result.get("confusion")
    ]

    def address(true: int, predicted: int) -> str | None:
        query = f"true_class={true}&predicted_class={predicted}"
        return next((f"{path}?{query}" for path, counts in counted if counts[true][predicted]), None)

    return address


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
    setting: str = "",
    target_dataset_id: str = "",
    like: UUID | None = None,
) -> Response:
    """The form; with another recipe or target, the same form with the values of the recipe that fits them.

    `like`: filled as a run was started, to start it again with changes.
    """
    weights = weights_names(settings.weights_dir, by=user)
    typed = FormData({"recipe": recipe, "setting": setting, "target_dataset_id": target_dataset_id})
    if like is not None:
        typed = forms.typed_like(service.get_run(session, like, by=user))
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
                    uniform_only=asked.uniform_only,
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
                processes=asked.processes,
                download_weights=asked.download_weights,
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
    method, _, preset = loaded.partition(forms.SEPARATOR)
    took: list[Expected] = []
    reported = weights_of_workers(session, now=utc_now())
    readiness = Readiness.about(session, campaign, now=utc_now())
    setting = str(typed.get("setting", ""))
    if setting not in configs.settings():
        setting = readiness.setting
    if target is not None:
        with suppress(configs.ConfigRefused):  # a method that cannot use such labels
            config = configs.config_for(method, setting, preset, {}, looks=looks)
            took = expected(session, source_id=source.id, target_id=target.id, config=config, now=utc_now())
    return render(
        request,
        "runs/new.html",
        fragment="runs/_settings.html",
        status=status,
        campaign=campaign,
        readiness=readiness,
        setting=setting,
        recipe=recipe,
        loaded=loaded,
        offered=forms.offered_weights(loaded, weights),
        trains=forms.trained(loaded, looks, both, weights=weights),
        at_hand=file_for(forms.architecture_of(loaded), reported or ()) or "",
        is_reported=reported is not None,
        without_weights=forms.without_weights(loaded),
        took=took,
        unscored="" if target is None else unscored_of(target, campaign.class_names),
        recipes=forms.recipe_groups(),
        about=configs.methods()[method][1],
        may_start=bool(targets) and (not readiness.missing or labelling.has_imports(session, campaign)),
        methods=configs.methods().values(),
        settings=forms.settings(),
        targets=[(key, dataset.name) for key, dataset in targets.items()],
        has_imports=labelling.has_imports(session, campaign),
        has_by_belief=bool(by_belief_numbers(session, campaign.id)),
        groups=forms.input_groups(loaded, typed, weights=weights),
        typed=typed,
        most=NOTE,
        errors=errors or {},
        unfolded=any(name == "processes" or name.startswith(forms.PREFIX) for name in errors or {}),
        most_processes=MOST_PROCESSES,
    )
