"""JSON route of a further round by a model's belief."""

from uuid import UUID

from fastapi import APIRouter, status

from app.access import admin_only
from app.campaigns import drawings
from app.campaigns.schemas import DrawingList
from app.clock import utc_now
from app.deps import CurrentUser, SessionDep, StorageDep
from app.idempotency import OnceDep
from app.registry import belief_rounds, service
from app.registry.schemas import RoundCreate

router = APIRouter(tags=["registry"])


@router.post("/models/{model_id}/rounds", status_code=status.HTTP_202_ACCEPTED)
@admin_only
def ask_round(
    *,
    model_id: UUID,
    body: RoundCreate,
    once: OnceDep,
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> DrawingList:
    """Ask once more about each image of the campaign without a yes, by what the model believes.

    The questions are drawn in the background, each with a probability that is kept; the drawings of the
    campaign tell when they are there. Our measurements do not recommend such rounds.
    """
    now = utc_now()
    model = service.get_model(session, model_id, by=user)
    if not once.begin(session, now=now):
        drawing = belief_rounds.ask_round(
            session, storage, model, floor_percent=body.floor_percent, by=user, now=now
        )
        once.end(session, drawing.id)
    campaign = belief_rounds.campaign_of(session, model, by=user)
    return DrawingList.of(
        campaign,
        drawings.drawings_of(session, campaign),
        drawings.pending_drawing(session, campaign),
        further_images=drawings.further_images(session, campaign),
    )
