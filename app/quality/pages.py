"""HTML routes of the audit, of people and known pictures, and of the review."""

from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Request, status
from fastapi.responses import Response
from sqlalchemy.orm import Session

from app.access import admin_only, reviewers_too, signed_in
from app.annotation import service as annotation
from app.annotation.errors import CampaignNotOpen, NothingKnown
from app.annotation.texts import english_question
from app.campaigns import service as campaigns
from app.campaigns.deps import CampaignDep
from app.campaigns.models import Campaign
from app.clock import utc_now
from app.deps import CurrentUser, FormDep, ReadingDep, SessionDep, UnitOfWorkDep
from app.pages import read_form, render, see_other
from app.quality import service
from app.quality.deps import StartedDep, ask_about_doubtful
from app.quality.schemas import AskAgain, DecisionForm, GoldForm, PictureReviewForm

router = APIRouter(include_in_schema=False)

SHOWN = 24  # questions on the page
SHOWN_DECISIONS = 12
ExampleId = Annotated[int, Path(ge=1, le=2**63 - 1)]
DecisionId = Annotated[int, Path(ge=1, le=2**63 - 1)]


@router.get("/campaigns/{campaign_id}/audit")
@signed_in
def show_audit(
    request: Request, campaign: StartedDep, user: CurrentUser, session: SessionDep, recompute: bool = False
) -> Response:
    """How the classes were drawn, and what anybody can check of it; for a reviewer also checked anew."""
    audit = service.audit(
        session,
        campaign,
        now=utc_now(),
        has_seed=user.may_review,
        recompute=recompute and user.may_review,
    )
    return render(
        request,
        "quality/audit.html",
        campaign=campaign,
        audit=audit,
        alarm=service.ALARM,
        is_large=service.is_large(campaign),
    )


@router.get("/campaigns/{campaign_id}/quality")
@admin_only
def show_quality(request: Request, campaign: CampaignDep, session: SessionDep) -> Response:
    """How reliable each person is, and what to do about it."""
    return _people_page(request, session, campaign, {})


@router.post("/campaigns/{campaign_id}/gold")
@admin_only
def mark_known_from_page(
    request: Request,
    *,
    form: FormDep,
    campaign_id: UUID,
    user: CurrentUser,
    reading: ReadingDep,
    work: UnitOfWorkDep,
) -> Response:
    """Put random known pictures of each class between the questions."""
    read, errors = read_form(form, GoldForm)
    if read is not None:
        try:
            with work() as session:
                campaign = campaigns.find_campaign(session, campaign_id, by=user)
                known = annotation.some_known(session, campaign, per_class=read.per_class)
                annotation.mark_known(session, campaign, known, by=user)
        except (NothingKnown, CampaignNotOpen) as error:
            errors = {"per_class": error.detail}
        else:
            return _to_people(request, campaign)
    with reading.begin() as looking:  # the page takes long, and nobody else could write meanwhile
        return _people_page(request, looking, campaigns.find_campaign(looking, campaign_id, by=user), errors)


@router.post("/campaigns/{campaign_id}/people/{user_id}/pause")
@admin_only
def pause_person_from_page(
    request: Request, campaign: CampaignDep, user_id: UUID, user: CurrentUser, session: SessionDep
) -> Response:
    """Pause somebody."""
    annotation.pause_person(session, campaign, user_id, by=user, now=utc_now())
    return _to_people(request, campaign)


@router.post("/campaigns/{campaign_id}/people/{user_id}/resume")
@admin_only
def resume_person_from_page(
    request: Request, campaign: CampaignDep, user_id: UUID, user: CurrentUser, session: SessionDep
) -> Response:
    """Let somebody go on."""
    annotation.resume_person(session, campaign, user_id, by=user)
    return _to_people(request, campaign)


@router.post("/campaigns/{campaign_id}/people/{user_id}/leave-out")
@admin_only
def leave_out_from_page(
    request: Request, campaign: CampaignDep, user_id: UUID, user: CurrentUser, session: SessionDep
) -> Response:
    """Make no labels of somebody's answers."""
    annotation.leave_out(session, campaign, user_id, by=user, left_out=True)
    return _to_people(request, campaign)


@router.post("/campaigns/{campaign_id}/people/{user_id}/count")
@admin_only
def count_again_from_page(
    request: Request, campaign: CampaignDep, user_id: UUID, user: CurrentUser, session: SessionDep
) -> Response:
    """Make labels of them again."""
    annotation.leave_out(session, campaign, user_id, by=user, left_out=False)
    return _to_people(request, campaign)


def _to_people(request: Request, campaign: Campaign) -> Response:
    return see_other(request, "show_quality", campaign_id=str(campaign.id))


def _people_page(request: Request, session: Session, campaign: Campaign, errors: dict[str, str]) -> Response:
    people, claims = service.people_and_claims(session, campaign)
    known = annotation.gold_count(session, campaign.id)
    return render(
        request,
        "quality/people.html",
        status=status.HTTP_422_UNPROCESSABLE_CONTENT if errors else status.HTTP_200_OK,
        campaign=campaign,
        gold_pictures=known,
        gold_lasts=annotation.gold_lasts(campaign, known),
        people=people,
        claims=claims,
        is_large=service.is_large(campaign),
        computed_at=service.figures_at(session, campaign, now=utc_now()),
        errors=errors,
    )


@router.get("/campaigns/{campaign_id}/review")
@reviewers_too
def show_review(
    request: Request, campaign: CampaignDep, session: SessionDep, recompute: bool = False
) -> Response:
    """Questions without a label or with one in doubt, for a reviewer to settle."""
    return _review_page(request, session, campaign, recompute=recompute)


@router.get("/campaigns/{campaign_id}/examples/{example_id}")
@reviewers_too
def show_history(
    request: Request, campaign: CampaignDep, example_id: ExampleId, user: CurrentUser, session: SessionDep
) -> Response:
    """What happened to one example."""
    return render(
        request,
        "quality/history.html",
        campaign=campaign,
        history=service.history(session, campaign, example_id, by=user),
    )


@router.post("/campaigns/{campaign_id}/review/ask-again")
@reviewers_too
def ask_again_from_page(
    request: Request,
    *,
    form: FormDep,
    campaign_id: UUID,
    user: CurrentUser,
    reading: ReadingDep,
    work: UnitOfWorkDep,
) -> Response:
    """Ask one more person about the most doubtful questions."""
    read, errors = read_form(form, AskAgain)
    if read is None:
        with reading.begin() as looking:
            campaign = campaigns.find_campaign(looking, campaign_id, by=user)
            refused = " ".join(told for name, told in errors.items() if name not in AskAgain.model_fields)
            return _review_page(request, looking, campaign, errors, refused=refused)
    ask_about_doubtful(campaign_id, read, user, reading, work)
    return see_other(request, "show_review", campaign_id=str(campaign_id))


@router.post("/campaigns/{campaign_id}/decisions")
@reviewers_too
def decide_from_page(
    request: Request,
    *,
    form: FormDep,
    campaign_id: UUID,
    user: CurrentUser,
    reading: ReadingDep,
    work: UnitOfWorkDep,
) -> Response:
    """Settle one question."""
    read, errors = read_form(form, DecisionForm)
    if read is None:
        with reading.begin() as looking:
            campaign = campaigns.find_campaign(looking, campaign_id, by=user)
            return _review_page(request, looking, campaign, refused=" ".join(errors.values()))
    with work() as session:
        campaign = campaigns.find_campaign(session, campaign_id, by=user)
        service.decide(session, campaign, read.question_id, read.value, by=user, now=utc_now())
    return _to_review(request, campaign, "question", read.behind)


@router.post("/campaigns/{campaign_id}/decisions/{decision_id}/undo")
@reviewers_too
def take_back_decision_from_page(
    request: Request, campaign: CampaignDep, decision_id: DecisionId, user: CurrentUser, session: SessionDep
) -> Response:
    """Take a decision back."""
    service.take_back_decision(session, campaign, decision_id, by=user, now=utc_now())
    return _to_review(request, campaign)


@router.post("/campaigns/{campaign_id}/unusable-pictures/{example_id}")
@reviewers_too
def review_picture_from_page(
    request: Request,
    *,
    form: FormDep,
    campaign_id: UUID,
    example_id: ExampleId,
    user: CurrentUser,
    reading: ReadingDep,
    work: UnitOfWorkDep,
) -> Response:
    """Keep a picture or leave it out."""
    read, errors = read_form(form, PictureReviewForm)
    if read is None:
        with reading.begin() as looking:
            campaign = campaigns.find_campaign(looking, campaign_id, by=user)
            return _review_page(request, looking, campaign, refused=" ".join(errors.values()))
    with work() as session:
        campaign = campaigns.find_campaign(session, campaign_id, by=user)
        service.review_picture(session, campaign, example_id, kept=read.kept, by=user, now=utc_now())
    return _to_review(request, campaign, "picture", read.behind)


def _to_review(request: Request, campaign: Campaign, kind: str = "", behind: int | None = None) -> Response:
    place = f"{kind}-{behind}" if behind is not None else ""
    return see_other(request, "show_review", place=place, campaign_id=str(campaign.id))


def _review_page(
    request: Request,
    session: Session,
    campaign: Campaign,
    errors: dict[str, str] | None = None,
    *,
    refused: str = "",
    recompute: bool = False,
) -> Response:
    found = service.doubts(session, campaign, limit=SHOWN, now=utc_now(), recompute=recompute)
    decided, decisions = service.standing_decisions(session, campaign.id, limit=SHOWN_DECISIONS)
    return render(
        request,
        "quality/review.html",
        status=status.HTTP_422_UNPROCESSABLE_CONTENT if errors or refused else status.HTTP_200_OK,
        campaign=campaign,
        is_large=service.is_large(campaign),
        computed_at=found.computed_at,
        open_count=found.count,
        askable_count=found.askable,
        questions=found.questions,
        decided=decided,
        decisions=decisions,
        unusable=service.pictures_to_review(session, campaign, limit=SHOWN),
        reviewed=service.reviewed_pictures(session, campaign, limit=SHOWN_DECISIONS),
        errors=errors or {},
        refused=refused,
        question_about=partial(english_question, class_language=campaign.class_language),
    )
