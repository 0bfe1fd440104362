"""What the journal says about campaigns."""

from collections.abc import Mapping

from sqlalchemy.orm import Session

from app.accounts.models import User
from app.campaigns.models import POLICY, Campaign
from app.journal import service as journal
from app.journal.models import Action

MAX_NAMED = 30  # classes that the journal names


def policy_facts(campaign: Campaign) -> dict[str, object]:
    """What a campaign asks how often."""
    return {name: getattr(campaign, name) for name in POLICY}


def draft_facts(campaign: Campaign) -> dict[str, object]:
    """The same with its classes, which are loaded."""
    return policy_facts(campaign) | {"classes": ", ".join(campaign.class_names[:MAX_NAMED])}


def note(
    session: Session,
    action: Action,
    campaign: Campaign,
    *,
    by: User | None,
    details: Mapping[str, object] | None = None,
) -> None:
    """Write down what is being done in a campaign; `by` is None where a rule of the program did it."""
    facts = {"campaign": campaign.name} | dict(details or {})
    journal.write(session, action, by=by, campaign_id=campaign.id, details=facts)
