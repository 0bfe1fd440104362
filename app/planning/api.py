"""JSON routes of the planner."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.access import admin_only
from app.campaigns.deps import CampaignDep
from app.clock import utc_now
from app.deps import CurrentUser, SessionDep
from app.planning import service as plans
from app.planning.schemas import PlanInput, PlanRead
from app.planning.service import Wishes

router = APIRouter(tags=["plan"])
Asked = Annotated[PlanInput, Query()]


@router.get("/plan")
@admin_only
def read_plan(asked: Asked, user: CurrentUser, session: SessionDep) -> PlanRead:
    """What a budget buys: labels and their noise, of yes/no questions and of ordinary labelling."""
    wishes = Wishes(**asked.model_dump())
    return PlanRead.model_validate(plans.make_plan(session, wishes, campaign=None, by=user, now=utc_now()))


@router.get("/campaigns/{campaign_id}/plan")
@admin_only
def read_campaign_plan(
    campaign: CampaignDep, asked: Asked, user: CurrentUser, session: SessionDep
) -> PlanRead:
    """The same from a campaign's own figures, with what its runs reached by number of answers."""
    wishes = Wishes(**asked.model_dump())
    return PlanRead.model_validate(
        plans.make_plan(session, wishes, campaign=campaign, by=user, now=utc_now())
    )
