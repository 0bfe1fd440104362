"""JSON routes of the audit, of people and known pictures, and of the review."""

from collections.abc import Callable
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request, status

from app.access import admin_only, reviewers_too, signed_in
from app.annotation import service as annotation
from app.campaigns.deps import CampaignDep
from app.clock import utc_now
from app.datasets.pictures import image_addresses
from app.deps import CurrentUser, ReadingDep, SessionDep, UnitOfWorkDep
from app.idempotency import OnceDep
from app.quality import schemas, service
from app.quality.deps import StartedDep, ask_about_doubtful
from app.quality.unusable import UnusablePicture

router = APIRouter(tags=["annotation"])

Limit = Annotated[int, Query(ge=1, le=1000)]
ExampleId = Annotated[int, Path(ge=1, le=2**63 - 1)]
DecisionId = Annotated[int, Path(ge=1, le=2**63 - 1)]


@router.get("/campaigns/{campaign_id}/audit")
@signed_in
def read_audit(
    campaign: StartedDep, user: CurrentUser, session: SessionDep, recompute: bool = False
) -> schemas.AuditRead:
    """Whether the classes were drawn as promised, as the last check found: told once the seed is public.

    A reviewer is told earlier as well, though not the seed, and can have all draws recomputed at once.
    """
    return schemas.AuditRead.of(
        service.audit(
            session,
            campaign,
            now=utc_now(),
            has_seed=user.may_review,
            recompute=recompute and user.may_review,
        )
    )


@router.get("/campaigns/{campaign_id}/quality")
@admin_only
def read_quality(campaign: CampaignDep, session: SessionDep) -> schemas.QualityRead:
    """How reliable each person is: on known pictures, and by the model of Dawid and Skene."""
    pictures = annotation.gold_count(session, campaign.id)
    computed_at = service.figures_at(session, campaign, now=utc_now())
    people, claims = service.people_and_claims(session, campaign)
    return schemas.QualityRead.of(pictures, people, claims, computed_at=computed_at)


@router.post("/campaigns/{campaign_id}/gold")
@admin_only
def mark_known(
    *,
    campaign: CampaignDep,
    body: schemas.GoldInput,
    once: OnceDep,
    user: CurrentUser,
    session: SessionDep,
) -> schemas.GoldRead:
    """Put pictures whose class is known between the questions. Marking one twice is marking it once."""
    if made := once.begin(session, now=utc_now()):
        return schemas.GoldRead(marked=int(made), pictures=annotation.gold_count(session, campaign.id))
    known = [picture.known() for picture in body.pictures]
    if body.per_class is not None:
        known = annotation.some_known(session, campaign, per_class=body.per_class)
    marked = annotation.mark_known(session, campaign, known, by=user)
    once.end(session, marked)
    return schemas.GoldRead(marked=marked, pictures=annotation.gold_count(session, campaign.id))


@router.post("/campaigns/{campaign_id}/people/{user_id}/pause", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def pause_person(campaign: CampaignDep, user_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Give this person no more questions of the campaign."""
    annotation.pause_person(session, campaign, user_id, by=user, now=utc_now())


@router.post("/campaigns/{campaign_id}/people/{user_id}/resume", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def resume_person(campaign: CampaignDep, user_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Let this person go on; known pictures are counted anew."""
    annotation.resume_person(session, campaign, user_id, by=user)


@router.post("/campaigns/{campaign_id}/people/{user_id}/leave-out", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def leave_out(campaign: CampaignDep, user_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Make no labels of this person's answers: in downloads, and in runs launched from now on."""
    annotation.leave_out(session, campaign, user_id, by=user, left_out=True)


@router.post("/campaigns/{campaign_id}/people/{user_id}/count", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def count_again(campaign: CampaignDep, user_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Make labels of this person's answers again."""
    annotation.leave_out(session, campaign, user_id, by=user, left_out=False)


@router.get("/campaigns/{campaign_id}/review")
@reviewers_too
def read_review(
    request: Request, campaign: CampaignDep, session: SessionDep, limit: Limit = 50, recompute: bool = False
) -> schemas.ReviewRead:
    """Finished questions without a label, or with one in doubt; most doubtful first.

    A large campaign's are those that a job last found, unless all answers are to be looked at (`recompute`).
    """
    found = service.doubts(session, campaign, limit=limit, now=utc_now(), recompute=recompute)
    decided, decisions = service.standing_decisions(session, campaign.id, limit=limit)
    names = campaign.class_names
    address_of = image_addresses(request, campaign.dataset_id)
    return schemas.ReviewRead(
        computed_at=found.computed_at,
        open=found.count,
        askable=found.askable,
        questions=[
            schemas.OpenQuestionRead(
                id=item.id,
                example_id=item.example_id,
                image_url=address_of(item.example_id),
                candidate_class=item.candidate_class,
                class_name=names[item.candidate_class],
                yes=item.yes,
                no=item.no,
                unsure=item.unsure,
                unusable=item.unusable,
                uncounted=item.uncounted,
                kind=item.kind,
                weight=item.weight,
            )
            for item in found.questions
        ],
        decided=decided,
        decisions=[schemas.DecisionRead.model_validate(item) for item in decisions],
    )


@router.get("/campaigns/{campaign_id}/examples/{example_id}/history")
@reviewers_too
def read_history(
    campaign: CampaignDep, example_id: ExampleId, user: CurrentUser, session: SessionDep
) -> schemas.HistoryRead:
    """Who was asked what about one example, who answered what, and what was settled."""
    return schemas.HistoryRead.model_validate(service.history(session, campaign, example_id, by=user))


@router.post("/campaigns/{campaign_id}/review/ask-again")
@reviewers_too
def ask_again(
    *,
    campaign_id: UUID,
    body: schemas.AskAgain,
    once: OnceDep,
    user: CurrentUser,
    reading: ReadingDep,
    work: UnitOfWorkDep,
) -> schemas.AskedAgain:
    """Ask one more person about each of the most doubtful questions."""
    return schemas.AskedAgain(asked=ask_about_doubtful(campaign_id, body, user, reading, work, once=once))


@router.get("/campaigns/{campaign_id}/unusable-pictures")
@reviewers_too
def list_unusable_pictures(
    request: Request,
    *,
    campaign: CampaignDep,
    user: CurrentUser,
    session: SessionDep,
    after: Annotated[int, Query(ge=0, le=2**63 - 1)] = 0,
    limit: Limit = 50,
) -> schemas.UnusablePicturesRead:
    """Pictures of which people said that they cannot be used, and those that were reviewed."""
    found = service.unusable_pictures(session, campaign, by=user, after=after, limit=limit + 1)
    address_of = image_addresses(request, campaign.dataset_id)
    return schemas.UnusablePicturesRead(
        items=[_unusable(item, address_of) for item in found[:limit]],
        next=found[limit - 1].example_id if len(found) > limit else None,
    )


@router.put("/campaigns/{campaign_id}/unusable-pictures/{example_id}")
@reviewers_too
def review_picture(
    request: Request,
    *,
    campaign: CampaignDep,
    example_id: ExampleId,
    body: schemas.PictureReviewInput,
    user: CurrentUser,
    session: SessionDep,
) -> schemas.UnusablePictureRead:
    """Keep a picture, which is asked about on, or leave it out, so that it gives no label."""
    made = service.review_picture(session, campaign, example_id, kept=body.kept, by=user, now=utc_now())
    return _unusable(made, image_addresses(request, campaign.dataset_id))


def _unusable(item: UnusablePicture, address_of: Callable[[int], str]) -> schemas.UnusablePictureRead:
    return schemas.UnusablePictureRead(
        example_id=item.example_id,
        image_url=address_of(item.example_id),
        said_by=list(item.said_by),
        set_aside=item.set_aside,
        kept=item.kept,
        reviewed_by=item.reviewed_by,
        reviewed_at=item.reviewed_at,
    )


@router.post("/campaigns/{campaign_id}/decisions", status_code=status.HTTP_201_CREATED)
@reviewers_too
def decide(
    *,
    campaign: CampaignDep,
    body: schemas.DecisionInput,
    once: OnceDep,
    user: CurrentUser,
    session: SessionDep,
) -> schemas.DecisionRead:
    """Settle a question in everybody's place. It stands above people's answers until it is taken back."""
    now = utc_now()
    if before := once.begin(session, now=now):
        made = service.get_decision(session, campaign, int(before), by=user)
    else:
        made = service.decide(session, campaign, body.question_id, body.value, by=user, now=now)
        once.end(session, made.id)
    return schemas.DecisionRead(
        id=made.id,
        question_id=made.question_id,
        value=made.value,
        by_name=user.name,
        created_at=made.created_at,
    )


@router.post("/campaigns/{campaign_id}/decisions/{decision_id}/undo", status_code=status.HTTP_204_NO_CONTENT)
@reviewers_too
def take_back_decision(
    campaign: CampaignDep, decision_id: DecisionId, user: CurrentUser, session: SessionDep
) -> None:
    """Let people's answers count again."""
    service.take_back_decision(session, campaign, decision_id, by=user, now=utc_now())
