"""HTML routes of annotation: what to answer, the screen for it; campaigns with their progress."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.access import admin_only, signed_in
from app.annotation import service
from app.annotation.deps import ScreenDep
from app.annotation.texts import screen_texts
from app.campaigns import drawings
from app.campaigns import service as campaigns
from app.campaigns.deps import CampaignDep
from app.campaigns.models import CampaignState, Modes
from app.clock import utc_now
from app.datasets import naming
from app.datasets import service as datasets
from app.datasets.pictures import image_addresses
from app.deps import CurrentUser, SessionDep
from app.pages import render
from clarinet.files.names import are_numbers

router = APIRouter(include_in_schema=False)

CAMPAIGNS = 50  # on one page
MAX_OPEN = 200  # campaigns offered to annotators


@dataclass(frozen=True, slots=True)
class OfferedCampaign:
    """A campaign that asks for answers."""

    id: UUID
    name: str
    instructions: str
    state: str
    class_count: int
    question_count: int
    answered_by_me: int
    waiting: int


@dataclass(frozen=True, slots=True)
class ShownClass:
    """A class beside the questions about it."""

    position: int
    name: str
    description: str
    example_urls: list[str]


@dataclass(frozen=True, slots=True)
class ShownCampaign:
    """What the screen says about a campaign."""

    id: UUID
    name: str
    instructions: str
    modes: Modes
    classes: list[ShownClass]

    @property
    def is_guided(self) -> bool:
        """Whether any class has something to show beside its questions."""
        return any(item.description or item.example_urls for item in self.classes)


@router.get("/annotate")
@signed_in
def list_annotation(request: Request, user: CurrentUser, session: SessionDep) -> Response:
    """Campaigns that ask for answers."""
    offered = []
    for campaign in campaigns.list_campaigns(session, by=user, limit=MAX_OPEN):
        if campaign.state is not CampaignState.OPEN:
            continue
        standing = service.standing(session, campaign, by=user)
        offered.append(
            OfferedCampaign(
                id=campaign.id,
                name=campaign.name,
                instructions=campaign.instructions,
                state=campaign.state,
                class_count=campaign.num_classes,
                question_count=campaign.question_count,
                answered_by_me=standing.answered_by_me,
                waiting=standing.waiting,
            )
        )
    return render(request, "annotation/index.html", campaigns=offered)


@router.get("/annotate/{campaign_id}")
@signed_in
def annotate(request: Request, campaign: ScreenDep, mode: Literal["card", "grid", ""] = "") -> Response:
    """The screen; the questions come through the API. `mode` counts where the campaign leaves the choice."""
    address_of = image_addresses(request, campaign.dataset_id)
    classes = [
        ShownClass(
            position=item.position,
            name=item.name,
            description=item.description,
            example_urls=[address_of(example_id) for example_id in item.example_ids],
        )
        for item in campaign.classes
    ]
    begins_with = mode or Modes.CARD if campaign.modes is Modes.BOTH else campaign.modes
    shown = ShownCampaign(campaign.id, campaign.name, campaign.instructions, campaign.modes, classes)
    return render(request, "annotation/screen.html", campaign=shown, mode=begins_with, texts=screen_texts())


@router.get("/campaigns")
@admin_only
def list_campaigns(
    request: Request, user: CurrentUser, session: SessionDep, after: UUID | None = None
) -> Response:
    """Campaigns, newest first."""
    found = campaigns.list_campaigns(session, by=user, after=after, limit=CAMPAIGNS + 1)
    shown = found[:CAMPAIGNS]
    return render(
        request,
        "campaigns/index.html",
        campaigns=shown,
        finished=service.finished_questions(session, [campaign.id for campaign in shown]),
        next_after=shown[-1].id if len(found) > CAMPAIGNS else None,
        is_first=after is None,
    )


@router.get("/campaigns/{campaign_id}")
@admin_only
def show_campaign(
    request: Request, campaign: CampaignDep, user: CurrentUser, session: SessionDep
) -> Response:
    """How far a campaign is; asks for its own progress while something moves."""
    whole = request.headers.get("hx-target") == "main"  # it has just opened: buttons and all are new
    drawn = drawings.drawings_of(session, campaign)
    dataset = datasets.get_dataset(session, campaign.dataset_id, by=user)
    return render(
        request,
        "campaigns/show.html",
        fragment="campaigns/_contents.html" if whole else "campaigns/_progress.html",
        campaign=campaign,
        paused_people=service.paused_count(session, campaign.id),
        dataset=dataset,
        drawings=drawn,
        pending=drawings.pending_drawing(session, campaign),
        further_images=drawings.further_images(session, campaign),
        names_for_numbers=naming.has_numbered_classes(dataset) and not are_numbers(campaign.class_names),
        progress=service.progress(session, campaign, now=utc_now()),
    )
