"""The form of a further round by a model's belief, which stands on the model's page."""

from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.access import admin_only
from app.clock import utc_now
from app.deps import CurrentUser, FormDep, SessionDep, StorageDep
from app.pages import read_form, see_other
from app.registry import belief_rounds, service
from app.registry.pages import model_page
from app.registry.schemas import RoundCreate

router = APIRouter(include_in_schema=False)


@router.post("/models/{model_id}/rounds")
@admin_only
def ask_round_from_page(
    *,
    request: Request,
    model_id: UUID,
    form: FormDep,
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> Response:
    """Ask for the round and go to the campaign, or show the form with what is wrong."""
    model = service.get_model(session, model_id, by=user)
    given, errors = read_form(form, RoundCreate)
    if given is None:
        typed = {"floor_percent": str(form.get("floor_percent", ""))}
        return model_page(request, session, model, typed=typed, errors=errors)
    drawing = belief_rounds.ask_round(
        session, storage, model, floor_percent=given.floor_percent, by=user, now=utc_now()
    )
    return see_other(request, "show_campaign", campaign_id=drawing.campaign_id)
