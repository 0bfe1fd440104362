"""Asking for further questions, and checking them."""

from sqlalchemy.orm import Session

from app.accounts.models import User
from app.campaigns import drawings
from app.campaigns import service as campaigns
from app.campaigns.models import Campaign
from app.quality import service as quality
from app.quality.auditing import Audit
from tests.factories import NOW
from worker import drawing
from worker.context import Context


def ask(session: Session, campaign: Campaign, admin: User, context: Context) -> None:
    """An admin asks for further questions, and a worker draws them."""
    drawings.ask_further(session, campaign, by=admin, now=NOW)
    session.commit()
    drawing.draw_further(context, campaign.id)
    session.expire_all()
    session.refresh(campaign, ["classes"])


def audited(session: Session, campaign: Campaign) -> Audit:
    """Everything drawn anew."""
    campaign = campaigns.any_campaign(session, campaign.id)
    return quality.audit(session, campaign, now=NOW, has_seed=True, recompute=True)
