"""HTML routes: runs that are launched beside one, the paper's methods or a sweep."""

from collections.abc import Mapping
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from sqlalchemy.orm import Session

from app.access import admin_only
from app.clock import utc_now
from app.deps import CurrentUser, FormDep, ReadingDep, SessionDep, StorageDep
from app.errors import Conflict, Unprocessable
from app.idempotency import FormOnceDep
from app.pages import read_form, render, with_query
from app.runs import configs, service
from app.runs.compare_schemas import SweepForm
from app.runs.expecting import Expected, expected
from app.runs.launching import PAPER, launch, prepare, runs_of
from app.runs.models import Run
from clarinet.recipes.choices import Looks
from clarinet.recipes.presets import METHODS

router = APIRouter(include_in_schema=False)


@router.get("/runs/{run_id}/sweep")
@admin_only
def new_sweep(request: Request, run_id: UUID, session: SessionDep, user: CurrentUser) -> Response:
    """The form; as it comes, it launches the paper's methods on the labels and seeds of the run."""
    run = service.get_run(session, run_id, by=user)
    seeds = ", ".join(str(trial.seed) for trial in run.trials)
    return _form(request, session, run, {"methods": list(PAPER), "seeds": seeds, "labels": "", "preset": ""})


@router.post("/runs/{run_id}/sweep")
@admin_only
def launch_sweep_from_page(
    *,
    request: Request,
    run_id: UUID,
    form: FormDep,
    once: FormOnceDep,
    session: SessionDep,
    reading: ReadingDep,
    storage: StorageDep,
    user: CurrentUser,
) -> Response:
    """Launch them and compare them with the run, or show the form with what is wrong."""
    run = service.get_run(session, run_id, by=user)
    given, errors = read_form(form, SweepForm)
    if given is not None:
        try:
            with reading.begin() as looking:
                sweep = given.beside(run)
                prepared = prepare(looking, storage, run, sweep, by=user)
            with session.begin_nested():  # all of them or none
                if made := once.begin(session, now=utc_now()):
                    runs = runs_of(session, UUID(made), by=user)
                else:
                    runs = launch(session, run, sweep, prepared, by=user, now=utc_now())
                    once.end(session, runs[0].sweep_id or run.id)
        except (Conflict, Unprocessable) as error:
            session.info.pop("jobs", None)  # those of runs that are not there
            errors = {"": error.detail}
        else:
            ids = [str(run.id), *(str(each.id) for each in runs)][:20]
            return RedirectResponse(str(with_query(request, "compare_runs", run=ids)), 303)
    typed = {
        "methods": [str(value) for value in form.getlist("methods")],
        **{name: str(form.get(name, "")) for name in ("seeds", "labels", "preset", "download_weights")},
    }
    return _form(request, session, run, typed, errors, status=422)


def _form(
    request: Request,
    session: Session,
    run: Run,
    typed: Mapping[str, object],
    errors: dict[str, str] | None = None,
    *,
    status: int = 200,
) -> Response:
    presets = dict.fromkeys(preset for table in METHODS.values() for preset in table)
    recipe = service.recipe_of(session, run)
    return render(
        request,
        "runs/sweep.html",
        status=status,
        run=run,
        names=service.names_of(session, [run]),
        methods=[(name, title) for name, (title, _) in configs.methods().items()],
        presets=[("", "What fits the images"), *((name, name) for name in presets)],
        typed=typed,
        labels=sum(run.snapshot_facts["complementary"]) + sum(run.snapshot_facts["true"]),
        expectations=_expectations(session, run, recipe.looks if recipe else None),
        errors=errors or {},
    )


def _expectations(session: Session, run: Run, looks: Looks | None) -> list[tuple[str, Expected]]:
    """What a seed of each of the paper's methods took on these images, where such a training has ended."""
    found = []
    for method in PAPER if looks else ():
        try:
            config = configs.config_for(method, run.setting, None, {}, looks=looks or "digits")
        except configs.ConfigRefused:  # a method that cannot use the labels of this setting
            continue
        known = expected(
            session,
            source_id=run.source_dataset_id,
            target_id=run.target_dataset_id,
            config=config,
            now=utc_now(),
        )
        found += [(method, each) for each in known if each.trainings]
    return found
