"""HTML routes of annotation: what to answer, the screen for it; campaigns with their progress."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID, uuid4

from fastapi import APIRouter, Request, status
from fastapi.responses import Response
from sqlalchemy.orm import Session

from app.access import reviewers_too, signed_in
from app.accounts.models import User
from app.annotation import service
from app.annotation.deps import ScreenDep
from app.annotation.models import AnswerValue
from app.annotation.pictures import picture_addresses
from app.annotation.public_ids import public_ids_of
from app.annotation.schemas import ChangeInput
from app.annotation.texts import answer_words, screen_texts, yes_key
from app.campaigns import drawings
from app.campaigns import service as campaigns
from app.campaigns.deps import CampaignDep
from app.campaigns.models import Campaign, CampaignState, Modes
from app.clock import utc_now
from app.datasets import naming
from app.datasets import service as datasets
from app.deps import CurrentUser, FormDep, SessionDep
from app.errors import Uses
from app.pages import read_form, render, see_other
from app.uses import uses_of
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
class ShownAnswer:
    """An answer of one's own, with a key for a change of it."""

    question_id: int
    image_url: str
    class_name: str
    value: AnswerValue
    created_at: datetime
    others: AnswerValue | None
    key: UUID


@dataclass(frozen=True, slots=True)
class ShownCampaign:
    """What the screen says about a campaign."""

    id: UUID
    name: str
    instructions: str
    modes: Modes
    class_language: str
    asks_which: bool
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
                answered_by_me=standing.answered_by_me,
                waiting=standing.waiting,
            )
        )
    return render(request, "annotation/index.html", campaigns=offered)


@router.get("/annotate/{campaign_id}")
@signed_in
def annotate(
    request: Request,
    campaign: ScreenDep,
    user: CurrentUser,
    session: SessionDep,
    mode: Literal["card", "grid", ""] = "",
) -> Response:
    """The screen; the questions come through the API. `mode` counts where the campaign leaves the choice."""
    ids = public_ids_of(session, campaign.id)
    address_of = picture_addresses(request, campaign, ids, user)
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
    shown = ShownCampaign(
        id=campaign.id,
        name=campaign.name,
        instructions=campaign.instructions,
        modes=campaign.modes,
        class_language=campaign.class_language,
        asks_which=campaign.asks_which,
        classes=classes,
    )
    practice = [
        {
            "image_url": address_of(card.example_id),
            "candidate_class": card.asked_class,
            "class_name": campaign.class_names[card.asked_class],
            "right": "yes" if card.is_match else "no",
            "shows": campaign.class_names[card.shown_class],
        }
        for card in service.practice_cards(session, campaign, by=user)
    ]
    return render(
        request,
        "annotation/screen.html",
        campaign=shown,
        mode=begins_with,
        texts=screen_texts(campaign.class_language),
        yes_key=yes_key(),
        practice=practice,
    )


@router.get("/annotate/{campaign_id}/answers")
@signed_in
def list_own_answers(
    request: Request, campaign: ScreenDep, user: CurrentUser, session: SessionDep
) -> Response:
    """One's own last answers, which may be changed while the campaign is open."""
    return _own_answers(request, campaign, user, session)


@router.post("/annotate/{campaign_id}/answers")
@signed_in
def change_answer_from_page(
    request: Request, *, form: FormDep, campaign: ScreenDep, user: CurrentUser, session: SessionDep
) -> Response:
    """Let one of them be another."""
    read, errors = read_form(form, ChangeInput)
    if read is None:
        return _own_answers(request, campaign, user, session, refused=" ".join(errors.values()))
    service.change_shown_answer(
        session, campaign.id, read.question_id, read.value, key=read.key, by=user, now=utc_now()
    )
    place = f"answer-{read.question_id}"
    return see_other(request, "list_own_answers", place=place, campaign_id=str(campaign.id))


def _own_answers(
    request: Request, campaign: Campaign, user: User, session: Session, *, refused: str = ""
) -> Response:
    ids = public_ids_of(session, campaign.id)
    address_of = picture_addresses(request, campaign, ids, user)
    return render(
        request,
        "annotation/answers.html",
        status=status.HTTP_422_UNPROCESSABLE_CONTENT if refused else status.HTTP_200_OK,
        campaign=campaign,
        figures=service.own_figures(session, campaign, by=user),
        answers=[
            ShownAnswer(
                question_id=ids.of(item.question_id),
                image_url=address_of(item.example_id),
                class_name=campaign.class_names[item.candidate_class],
                value=item.value,
                created_at=item.created_at,
                others=item.others,
                key=uuid4(),
            )
            for item in service.last_answers(session, campaign, by=user)
        ],
        tells_others=service.tells_others(campaign),
        words=answer_words(),
        refused=refused,
    )


@router.get("/campaigns")
@reviewers_too
def list_campaigns(
    *,
    request: Request,
    user: CurrentUser,
    session: SessionDep,
    archived: bool = False,
    after: UUID | None = None,
) -> Response:
    """Campaigns, newest first: those that are archived, or the others."""
    found = campaigns.list_campaigns(session, by=user, archived=archived, after=after, limit=CAMPAIGNS + 1)
    shown = found[:CAMPAIGNS]
    ids = [campaign.id for campaign in shown]
    beside = service.questions_beside_classes(session, ids)
    finished = service.finished_questions(session, ids)
    return render(
        request,
        "campaigns/index.html",
        campaigns=shown,
        archived=archived,
        asked={item.id: item.question_count - beside.get(item.id, 0) for item in shown},
        finished={id_: finished.get(id_, 0) - beside.get(id_, 0) for id_ in ids},
        next_after=shown[-1].id if len(found) > CAMPAIGNS else None,
        is_first=after is None,
    )


@router.get("/campaigns/{campaign_id}")
@reviewers_too
def show_campaign(request: Request, campaign: CampaignDep, session: SessionDep) -> Response:
    """How far a campaign is; asks for its own progress while something moves."""
    whole = request.headers.get("hx-target") == "main"  # it has just opened: buttons and all are new
    drawn = drawings.drawings_of(session, campaign)
    dataset = datasets.any_dataset(session, campaign.dataset_id)
    further = drawings.further_images(session, campaign)
    return render(
        request,
        "campaigns/show.html",
        fragment="campaigns/_contents.html" if whole else "campaigns/_progress.html",
        campaign=campaign,
        paused_people=service.paused_count(session, campaign.id),
        dataset=dataset,
        drawings=drawn,
        pending=drawings.pending_drawing(session, campaign),
        further_images=further,
        further_strangers=drawings.further_strangers(session, campaign) if further else "",
        uses=uses_of(campaign) if campaign.state is CampaignState.CLOSED else Uses(),
        names_for_numbers=naming.has_numbered_classes(dataset) and not are_numbers(campaign.class_names),
        progress=service.progress(session, campaign, now=utc_now()),
    )
