"""As `app.annotation.locking`, with whatever else can run in the same round trip."""

from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.locking import LockedCampaign, lock_keys, require_may_know
from app.campaigns.errors import CampaignNotFound
from app.fast import statements
from app.fast.prepared import Bound, Results, run_all


def lock_campaign(
    session: Session, campaign_id: UUID, *then: Bound[Any], by: User
) -> tuple[LockedCampaign, Results]:
    """Let one request of this person in this campaign run at a time, and then run further statements.

    Raises:
        CampaignNotFound: as for the plain one.
    """
    locks = []
    if session.get_bind().dialect.name == "postgresql":  # SQLite has one writer anyway
        person, state = lock_keys(campaign_id, by)
        locks = [statements.TAKE_LOCKS.bind(person=person, state=state)]
    # In a statement of its own: one that waits for a lock still sees what was before.
    find = statements.CAMPAIGN.bind(campaign=campaign_id, me=by.id)
    results = run_all(session, *locks, find, *then)
    campaign = next(iter(results.of(find)), None)
    if campaign is None:
        raise CampaignNotFound
    require_may_know(session, campaign.id, campaign.state, by)
    return campaign, results
