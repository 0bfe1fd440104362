"""Addresses of the pictures that somebody is asked about."""

from collections.abc import Callable

from fastapi import Request

from app.accounts.models import User
from app.annotation.locking import LockedCampaign
from app.annotation.public_ids import PublicIds
from app.campaigns.models import Campaign
from app.datasets.pictures import image_addresses
from app.pages import path_pattern


def picture_addresses(
    request: Request, campaign: Campaign | LockedCampaign, ids: PublicIds, user: User
) -> Callable[[int], str]:
    """The address of each picture of a campaign, by its example's id, as this person may know it.

    Who may know numbers gets the dataset's own addresses: admins, reviewers, and programs that say they are
    ones, whose labels their admin looks up by number. All others get names.
    """
    if user.may_review or user.is_simulated:
        return image_addresses(request, campaign.dataset_id)
    pattern = path_pattern(request, "campaign_picture", "campaign_id", "picture")
    before, after = pattern.replace("{campaign_id}", str(campaign.id)).split("{picture}")
    return lambda example_id: f"{before}{ids.picture(example_id)}{after}"
