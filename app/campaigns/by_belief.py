"""A further round of a campaign whose classes are drawn by what a model believes of each image.

Our measurements do not recommend it (docs/results/active.md). What it draws can be checked as any other draw.
"""

from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.campaigns.believed import KeptBeliefs, digest_of
from app.campaigns.drawings import asked_until, further_rows, pending_to_draw, request_drawing
from app.campaigns.draws import new_seed
from app.campaigns.errors import EvaluationIsFixed, NotByBelief
from app.campaigns.models import Campaign, DrawingBeliefs, FurtherDrawing


def ask_by_belief(
    session: Session,
    campaign: Campaign,
    *,
    model_id: UUID,
    model_name: str,
    floor_percent: int,
    by: User,
    now: datetime,
) -> FurtherDrawing:
    """Ask once more about images of which no answer was yes, about classes drawn by what a model believes.

    Asking while this very drawing waits is asking for it again. `floor_percent`: 1 to 100.

    Raises:
        NotAllowed: `by` is no admin.
        EvaluationIsFixed: it is an evaluation.
        WrongCampaignState: it is neither open nor paused.
        AnotherDrawingWaits: another model, floor or kind of questions was asked for and is not drawn yet.
        NotByBelief: it has too few classes.
    """
    accounts.require_admin(by)
    if campaign.is_evaluation:
        raise EvaluationIsFixed
    pending = pending_to_draw(session, campaign, by_belief=(model_id, floor_percent), now=now)
    if pending is not None:
        return pending
    rows = further_rows(session, campaign)
    round_ = campaign.rounds + sum(row.model_id is not None for row in rows)
    if campaign.num_classes - round_ < 2:  # noqa: PLR2004 - with one class left there is nothing to draw
        raise NotByBelief("After the questions so far an image has no two classes left to draw from.")
    session.refresh(campaign, ["question_count"])
    until = asked_until(session, campaign)
    drawing = FurtherDrawing(
        campaign_id=campaign.id,
        number=len(rows) + 2,
        seed=new_seed(),
        dataset_version=until.number,
        dataset_digest=until.digest or "",
        first_position=0,
        end_position=until.image_count,
        first_rank=campaign.question_count,
        requested_at=now,
        requested_by_id=by.id,
        model_id=model_id,
        model_name=model_name,
        floor_percent=floor_percent,
        round=round_,
    )
    request_drawing(session, campaign, drawing, by=by, facts={"by_belief_of": model_name})
    return drawing


def kept_beliefs(session: Session, drawing_id: UUID) -> tuple[KeptBeliefs, str] | None:
    """What a drawing was drawn from, and its digest; None where it is lost."""
    row = session.get(DrawingBeliefs, drawing_id)
    return None if row is None else (KeptBeliefs.from_bytes(row.data), digest_of(row.data))


def most_ruled_out(session: Session, campaign_id: UUID) -> int:
    """How many classes earlier answers had ruled out of a question by belief, at most; 0 without any."""
    query = select(func.max(FurtherDrawing.round)).where(
        FurtherDrawing.campaign_id == campaign_id, FurtherDrawing.drawn_at.is_not(None)
    )
    return session.scalar(query) or 0


def by_belief_numbers(session: Session, campaign_id: UUID) -> list[int]:
    """The drawings of a campaign that followed a model's belief and are there."""
    query = select(FurtherDrawing.number).where(
        FurtherDrawing.campaign_id == campaign_id,
        FurtherDrawing.drawn_at.is_not(None),
        FurtherDrawing.model_id.is_not(None),
    )
    return list(session.scalars(query))
