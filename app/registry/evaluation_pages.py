"""HTML routes of evaluations: laying one out, and what people's answers say."""

from dataclasses import replace
from uuid import UUID

from fastapi import APIRouter, Request, status
from fastapi.responses import RedirectResponse, Response
from sqlalchemy.orm import Session
from starlette.datastructures import FormData

from app.access import admin_only
from app.accounts.models import User
from app.campaigns.models import Campaign
from app.campaigns.sampling import LEAST_OF_CLASS
from app.clock import utc_now
from app.deps import CurrentUser, FormDep, ReadingDep, SessionDep, StorageDep
from app.errors import Conflict, Unprocessable
from app.evaluations import service as evaluations
from app.evaluations.service import Plan, Wishes
from app.idempotency import FormOnceDep
from app.pages import read_form, render, see_other
from app.registry import evaluating, service
from app.registry.evaluation_schemas import EvaluationForm
from app.runs import service as runs
from app.runs.files import csv_file
from app.runs.models import Run
from app.runs.summary import is_guessing
from app.spelling import query_of
from app.storage import Storage
from clarinet.files.tables import guarded

router = APIRouter(include_in_schema=False)

OFFERED = (0.1, 0.05, 0.03, 0.02, 0.01)  # half-widths
EXPECTED = (0.95, 0.9, 0.8, 0.7)
COUNTED = (
    "asks_which",
    "by_class",
    "expected",
    "half_width",
    "model_id",
)  # what numbers of questions follow from


@router.get("/runs/{run_id}/evaluations/new", openapi_extra=query_of(*COUNTED))
@admin_only
def new_evaluation(
    *,
    request: Request,
    run_id: UUID,
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
    expected: str = "",
    asks_which: str = "",
    by_class: str = "",
    half_width: str = "",
    model_id: str = "",
) -> Response:
    """The form, which says how many questions each width of the interval takes."""
    run = runs.get_run(session, run_id, by=user)
    typed = FormData(
        {
            "asks_which": asks_which,
            "by_class": by_class,
            "expected": expected,
            "half_width": half_width or "0.05",
            "model_id": model_id,
        }
    )
    return _form(request, session, storage, run, by=user, typed=typed)


@router.post("/runs/{run_id}/evaluations/new")
@admin_only
def create_evaluation_from_form(
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
    """Lay it out, or show the form with what is wrong, or with other numbers of questions."""
    if "count" in form:
        run = runs.get_run(session, run_id, by=user)
        return _form(request, session, storage, run, by=user, typed=form)
    read, errors = read_form(form, EvaluationForm)
    if read is not None:
        try:
            with reading.begin() as looking:
                model = service.get_model(looking, read.model_id, by=user)
                judged = evaluating.judged(looking, storage, model, by=user)
            if made := once.begin(session, now=utc_now()):
                evaluations.get_evaluation(session, UUID(made), by=user)  # unless it was deleted since
            else:
                evaluation = evaluations.create_evaluation(
                    session, judged, read.wishes(), by=user, now=utc_now()
                )
                made = str(evaluation.id)
                once.end(session, evaluation.id)
        except (Conflict, Unprocessable) as error:
            errors = {"": error.detail}
        else:
            return see_other(request, "show_evaluation", evaluation_id=made)
    run = runs.get_run(session, run_id, by=user)
    return _form(request, session, storage, run, by=user, typed=form, errors=errors)


def _form(
    request: Request,
    session: Session,
    storage: Storage,
    run: Run,
    *,
    by: User,
    typed: FormData,
    errors: dict[str, str] | None = None,
) -> Response:
    models = {str(model.id): model for model in evaluating.models_of_run(session, run)}
    model = models.get(str(typed.get("model_id", "")), next(iter(models.values()), None))
    expected = next((share for share in EXPECTED if str(share) == typed.get("expected")), None)
    by_class, asks_which = (typed.get(name) == "true" for name in ("by_class", "asks_which"))
    plans: list[Plan] = []
    fault = ""
    if model is not None:
        try:
            judged = evaluating.judged(session, storage, model, by=by)
            alike = Wishes(expected=expected, by_class=by_class, asks_which=asks_which)
            wished = [replace(alike, half_width=width) for width in OFFERED]
            plans = _apart(evaluations.plans(session, judged, wished, by=by))
        except (Conflict, Unprocessable) as error:
            fault = error.detail
    return render(
        request,
        "registry/evaluate.html",
        status=status.HTTP_422_UNPROCESSABLE_CONTENT if errors else status.HTTP_200_OK,
        run=run,
        names=runs.names_of(session, [run]),
        models=[(key, evaluating.model_name(item)) for key, item in models.items()],
        model=model,
        expected=expected,
        by_class=by_class,
        asks_which=asks_which,
        least_of_class=LEAST_OF_CLASS,
        choices=EXPECTED,
        plans=plans,
        half_width=_chosen(plans, str(typed.get("half_width", ""))),
        fault=fault,
        typed=typed,
        errors=errors or {},
    )


def _apart(found: list[Plan]) -> list[Plan]:
    """Plans from the widest interval on; of those that ask about every picture, the first."""
    whole = [plan for plan in found if plan.is_whole]
    return [plan for plan in found if not plan.is_whole] + whole[:1]


def _chosen(plans: list[Plan], typed: str) -> float | None:
    """The half-width that was typed; where it is not offered, the narrowest, of all pictures."""
    offered = [plan.wishes.half_width for plan in plans]
    return next((width for width in offered if str(width) == typed), offered[-1] if offered else None)


@router.get("/evaluations/{evaluation_id}")
@admin_only
def show_evaluation(
    request: Request, evaluation_id: UUID, session: SessionDep, user: CurrentUser
) -> Response:
    """What people's answers say of a model; asks for itself while people answer."""
    evaluation = evaluations.get_evaluation(session, evaluation_id, by=user)
    comparisons = evaluations.comparisons_of(session, evaluation)
    models = evaluating.models_of(session, [evaluation, *(item.other for item in comparisons)])
    run = session.get_one(Run, evaluation.run_id)
    result = evaluations.result_of(session, evaluation)
    low = result.shown.low if result.shown and result.is_over else None
    return render(
        request,
        "registry/evaluation.html",
        fragment="registry/_evaluation.html",
        evaluation=evaluation,
        campaign=session.get(Campaign, evaluation.campaign_id) if evaluation.campaign_id else None,
        run=run,
        names=runs.names_of(session, [run]),
        models={model_id: evaluating.model_name(model) for model_id, model in models.items()},
        result=result,
        is_guessing=is_guessing(low, 1 / len(evaluation.class_names)),
        confusion=evaluations.confusion_of(session, evaluation),
        comparisons=comparisons,
    )


@router.get("/evaluations/{evaluation_id}/named.csv")
@admin_only
def download_named(evaluation_id: UUID, session: SessionDep, user: CurrentUser) -> Response:
    """What people named that pictures show, in rows, and what the model takes them for, in columns."""
    evaluation = evaluations.get_evaluation(session, evaluation_id, by=user)
    found = evaluations.confusion_of(session, evaluation)
    names = [guarded(name) for name in evaluation.class_names]
    rows = found.rows if found else ()
    return csv_file(
        "named.csv",
        [["shows", *names], *([name, *map(str, row)] for name, row in zip(names, rows, strict=False))],
    )


@router.get("/campaigns/{campaign_id}/evaluation")
@admin_only
def show_evaluation_of_campaign(
    request: Request, campaign_id: UUID, session: SessionDep, user: CurrentUser
) -> RedirectResponse:
    """The evaluation for which a campaign asks people."""
    evaluation = evaluations.evaluation_of(session, campaign_id, by=user)
    return see_other(request, "show_evaluation", evaluation_id=str(evaluation.id))
