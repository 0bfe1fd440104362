"""HTML routes: the table of runs, what is done with marked ones, and what people write beside one."""

from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from sqlalchemy.orm import Session
from starlette.datastructures import FormData, UploadFile

from app.access import admin_only
from app.accounts.models import User
from app.campaigns import service as campaigns
from app.clock import utc_now
from app.datasets import service as datasets
from app.deps import CurrentUser, FormDep, SessionDep
from app.pages import read_form, render, see_other, with_query
from app.runs import configs, forms, service, words
from app.runs.describing import describe, put_away
from app.runs.files import csv_file
from app.runs.finding import Sort, find_runs, known_tags
from app.runs.list_schemas import AboutForm, MarkedForm, RunsForm
from app.runs.models import MOST_TAGS, NAME, NOTE, TAG, Run, TrialState
from app.runs.table import COLUMNS, as_rows, columns_of, hyper_parameters
from app.spelling import query_of

router = APIRouter(include_in_schema=False)

UNPROCESSABLE = 422
ROWS = 50
MOST_IN_A_FILE = 10_000
SORTS = [
    (Sort.NEWEST, "Newest first"),
    (Sort.OLDEST, "Oldest first"),
    (Sort.HIGHEST, "Highest accuracy first"),
    (Sort.LOWEST, "Lowest accuracy first"),
    (Sort.NAME, "By name"),
    (Sort.METHOD, "By method"),
]
ASKED = query_of(*RunsForm.model_fields)


def _asked(request: Request) -> tuple[RunsForm, dict[str, str]]:
    """What the address asks for, and what is wrong with it; a form sends what is empty as well."""
    known: list[tuple[str, str | UploadFile]] = [
        (key, value) for key, value in request.query_params.multi_items() if key in RunsForm.model_fields
    ]
    asked, errors = read_form(FormData(known), RunsForm)
    return asked or RunsForm(), errors


@router.get("/runs", openapi_extra=ASKED)
@admin_only
def list_runs(request: Request, session: SessionDep, user: CurrentUser) -> Response:
    """Runs, newest first, or as the address asks for them."""
    asked, errors = _asked(request)
    return _list(request, session, user, asked, errors, status=UNPROCESSABLE if errors else 200)


@router.get("/runs/table.csv", openapi_extra=ASKED)
@admin_only
def download_runs(request: Request, session: SessionDep, user: CurrentUser) -> Response:
    """The same table as a file, whole."""
    asked, _ = _asked(request)
    runs, _ = find_runs(session, asked.wanted, by=user, sort=asked.sort, limit=MOST_IN_A_FILE)
    summaries = service.summaries(session, runs, now=utc_now())
    rows = as_rows(runs, summaries, service.names_of(session, runs), columns_of(asked.columns))
    return csv_file("runs.csv", rows)


@router.post("/runs/marked")
@admin_only
def act_on_marked(request: Request, form: FormDep, session: SessionDep, user: CurrentUser) -> Response:
    """Compare the marked runs, put them away or take them out again, or give them a tag."""
    given, errors = read_form(form, MarkedForm)
    if given is not None and not given.run:
        errors = {"": "Mark some runs first."}
    if given is not None and given.act == "tag" and not given.new_tag:
        errors = {"": "Type the tag to give to the marked runs."}
    if given is None or errors:
        return _list(request, session, user, RunsForm(), errors, status=UNPROCESSABLE)
    if given.act == "compare":
        address = with_query(request, "compare_runs", run=[str(id_) for id_ in given.run])
        return RedirectResponse(str(address), 303)
    for run in (service.get_run(session, run_id, by=user) for run_id in given.run):
        if given.act == "tag" and given.new_tag:
            describe(session, run, tags=[*run.tags, given.new_tag][-MOST_TAGS:], by=user)
        else:
            put_away(session, run, away=given.act == "archive", by=user, now=utc_now())
    return see_other(request, "list_runs")


@router.get("/runs/{run_id}/about")
@admin_only
def edit_about(request: Request, run_id: UUID, session: SessionDep, user: CurrentUser) -> Response:
    """The form of name, tags and note of a run."""
    run = service.get_run(session, run_id, by=user)
    return _about(request, run, {"name": run.name, "note": run.note, "tags": ", ".join(run.tags)})


@router.post("/runs/{run_id}/about")
@admin_only
def write_about(
    request: Request, run_id: UUID, form: FormDep, session: SessionDep, user: CurrentUser
) -> Response:
    """Keep them, or show the form with what is wrong."""
    run = service.get_run(session, run_id, by=user)
    given, errors = read_form(form, AboutForm)
    if given is None:
        typed = {name: str(form.get(name, "")) for name in AboutForm.model_fields}
        return _about(request, run, typed, errors, status=UNPROCESSABLE)
    describe(session, run, name=given.name, note=given.note, tags=given.listed, by=user)
    return see_other(request, "show_run", run_id=run_id)


@router.post("/runs/{run_id}/archive")
@admin_only
def archive_run(request: Request, run_id: UUID, session: SessionDep, user: CurrentUser) -> RedirectResponse:
    """Put a run away, or take it out again where it was put away."""
    run = service.get_run(session, run_id, by=user)
    put_away(session, run, away=run.archived_at is None, by=user, now=utc_now())
    return see_other(request, "edit_about", run_id=run_id)


def _about(
    request: Request,
    run: Run,
    typed: dict[str, str],
    errors: dict[str, str] | None = None,
    *,
    status: int = 200,
) -> Response:
    return render(
        request,
        "runs/about.html",
        status=status,
        run=run,
        typed=typed,
        most={"name": NAME, "note": NOTE, "tags": MOST_TAGS * (TAG + 2)},
        errors=errors or {},
    )


def _list(
    request: Request,
    session: Session,
    user: User,
    asked: RunsForm,
    errors: dict[str, str],
    *,
    status: int,
) -> Response:
    runs, following = find_runs(
        session, asked.wanted, by=user, sort=asked.sort, after=asked.after, limit=ROWS
    )
    given = asked.model_dump(mode="json", exclude={"after"}, exclude_defaults=True, exclude_none=True)
    campaign_id, dataset_id = asked.campaign_id, asked.dataset_id
    columns = columns_of(asked.columns)
    return render(
        request,
        "runs/list.html",
        status=status,
        runs=runs,
        summaries=service.summaries(session, runs, now=utc_now()),
        names=service.names_of(session, runs),
        asked=asked,
        here=with_query(request, "list_runs", **given),
        file=with_query(request, "download_runs", **given),
        only=given,
        is_filtered=bool(given.keys() - {"sort", "columns", "limit", "campaign_id", "dataset_id"}),
        columns=columns,
        in_words=words.in_table,
        shown={column.key for column in columns},
        offered=[(column.key, column.title) for column in COLUMNS],
        hyper_parameters=hyper_parameters(),
        methods=[("", "Any method"), *((name, name) for name in configs.methods())],
        states=[("", "Any state"), *((state.value, state.value.capitalize()) for state in TrialState)],
        settings=[("", "Any labels"), *forms.settings()],
        tags=[("", "Any tag"), *((tag, tag) for tag in known_tags(session, by=user))],
        sorts=SORTS,
        campaign=campaigns.find_campaign(session, campaign_id, by=user) if campaign_id else None,
        dataset=datasets.get_dataset(session, dataset_id, by=user) if dataset_id else None,
        next_after=following,
        is_first=asked.after is None,
        errors=errors,
        tag_length=TAG,
    )
