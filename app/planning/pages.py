"""HTML routes of the planner: a form that a GET sends, and the figures under it."""

from fastapi import APIRouter, Request, status
from fastapi.responses import Response
from sqlalchemy.orm import Session
from starlette.datastructures import FormData

from app.access import admin_only
from app.accounts.models import User
from app.campaigns.deps import CampaignDep
from app.campaigns.models import Campaign
from app.clock import utc_now
from app.deps import CurrentUser, SessionDep
from app.pages import read_form, render
from app.planning import service as plans
from app.planning.minutes import drawing_of
from app.planning.schemas import PlanForm
from app.planning.service import Plan, Wishes
from app.spelling import query_of

router = APIRouter(include_in_schema=False)
ASKED = query_of(*PlanForm.model_fields)


@router.get("/plan", openapi_extra=ASKED)
@admin_only
def show_plan(request: Request, user: CurrentUser, session: SessionDep) -> Response:
    """What a budget buys."""
    return _page(request, session, user, campaign=None)


@router.get("/campaigns/{campaign_id}/plan", openapi_extra=ASKED)
@admin_only
def show_campaign_plan(
    request: Request, campaign: CampaignDep, user: CurrentUser, session: SessionDep
) -> Response:
    """The same, from a campaign's own figures."""
    return _page(request, session, user, campaign=campaign)


def _page(request: Request, session: Session, user: User, *, campaign: Campaign | None) -> Response:
    known = {name: value for name, value in request.query_params.items() if name in PlanForm.model_fields}
    typed = FormData(known)
    form, errors = read_form(typed, PlanForm)
    asked = (form or PlanForm()).asked()
    plan = plans.make_plan(session, Wishes(**asked.model_dump()), campaign=campaign, by=user, now=utc_now())
    return render(
        request,
        "planning/show.html",
        status=status.HTTP_422_UNPROCESSABLE_CONTENT if errors else status.HTTP_200_OK,
        campaign=campaign,
        plan=None if errors else plan,
        drawings=[] if errors else [(item, drawing_of(item)) for item in plan.minutes],
        values=_values(plan) | {name: str(value) for name, value in typed.items()},
        errors=errors,
    )


def _values(plan: Plan) -> dict[str, str]:
    return {
        "budget": f"{plan.budget:g}",
        "price": f"{plan.price.value:g}",
        "seconds": f"{plan.seconds.value:.2f}",
        "error_percent": f"{100 * plan.error.value:.1f}",
        "classes": f"{plan.classes.value:.0f}",
        "overlap": f"{plan.overlap.value:.0f}",
        "kway_seconds": f"{plan.kway_seconds:g}",
        "page_seconds": f"{plan.page_seconds.value:.2f}" if plan.page_seconds else "",
    }
