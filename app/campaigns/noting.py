"""What the journal says about campaigns."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

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


def edited_facts(campaign: Campaign) -> dict[str, object]:
    """The same with all that an edit may change, of which each part is told that differs."""
    described = [item.name for item in campaign.classes if item.description]
    shown = [f"{item.name} {len(item.example_ids)}" for item in campaign.classes if item.example_ids]
    return draft_facts(campaign) | {
        "name": campaign.name,
        "dataset": str(campaign.dataset_id),
        "descriptions": Told([item.description for item in campaign.classes], _some(described)),
        "example_pictures": Told([item.example_ids for item in campaign.classes], _some(shown)),
    }


class Told(NamedTuple):
    """What is compared, and what the journal says where it differs."""

    value: object
    words: str


def changed_facts(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, object]:
    """Of `edited_facts` those that differ, as the journal keeps them."""
    changed = {name: value for name, value in after.items() if value != before[name]}
    return {name: value.words if isinstance(value, Told) else value for name, value in changed.items()}


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_NAMED]) or "none"


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
