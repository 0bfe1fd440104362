"""A further round of a model's campaign whose classes are drawn by what the model believes.

`docs/results/active.md` has what it was measured to bring: nothing, so that nobody is recommended to ask so.
"""

from datetime import datetime

from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.campaigns import service as campaigns
from app.campaigns.by_belief import ask_by_belief
from app.campaigns.models import Campaign, FurtherDrawing
from app.registry.evaluating import model_name
from app.registry.models import Model
from app.registry.predicting import served
from app.runs.models import Run
from app.storage import Storage


def campaign_of(session: Session, model: Model, *, by: User) -> Campaign:
    """The campaign whose labels a model learned from, with its classes."""
    run = session.get_one(Run, model.run_id)
    return campaigns.find_campaign(session, run.campaign_id, by=by)


def ask_round(
    session: Session, storage: Storage, model: Model, *, floor_percent: int, by: User, now: datetime
) -> FurtherDrawing:
    """Ask once more about images of which no answer was yes; a worker draws the questions.

    `floor_percent`: of each question's probability, shared by all classes that are possible; 1 to 100.

    Raises:
        NotAllowed: `by` is no admin.
        ModelWithoutOnnx, StoredFileMissing: it cannot predict.
        WrongCampaignState: its campaign is neither open nor paused.
        AnotherDrawingWaits: other questions than these are being drawn.
        NotByBelief: the campaign's answers cannot be used so.
    """
    accounts.require_admin(by)
    served(storage, model)
    campaign = campaign_of(session, model, by=by)
    return ask_by_belief(
        session,
        campaign,
        model_id=model.id,
        model_name=model_name(model),
        floor_percent=floor_percent,
        by=by,
        now=now,
    )
