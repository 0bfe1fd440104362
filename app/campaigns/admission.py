"""Who may know of a campaign, its questions and its images: one rule, as a condition on rows."""

from uuid import UUID

from sqlalchemy import ColumnElement, and_, exists, false, literal, not_, or_, true
from sqlalchemy.orm import InstrumentedAttribute

from app.accounts.models import User
from app.campaigns.models import (
    Admits,
    Campaign,
    CampaignGroup,
    CampaignMember,
    CampaignState,
    GroupPerson,
)
from app.datasets.models import Dataset


def admitted(
    me: ColumnElement[UUID] | InstrumentedAttribute[UUID],
    is_outside: ColumnElement[bool] | InstrumentedAttribute[bool],
) -> ColumnElement[bool]:
    """Whether a person may know of the campaign as far as being a member goes.

    What costs nothing comes first: where everybody is admitted, nothing is looked up.

    Args:
        me: id of the person, as a value, a parameter or a column.
        is_outside: whether they are an outside worker, for whom only being a member counts.
    """
    by_name = exists().where(CampaignMember.campaign_id == Campaign.id, CampaignMember.user_id == me)
    by_group = exists().where(
        CampaignGroup.campaign_id == Campaign.id,
        GroupPerson.group_id == CampaignGroup.group_id,
        GroupPerson.user_id == me,
    )
    return or_(
        and_(Campaign.admits == Admits.EVERYBODY, not_(is_outside)),
        by_name.correlate_except(CampaignMember),
        by_group.correlate_except(CampaignGroup, GroupPerson),
    )


def visible_to(user: User) -> ColumnElement[bool]:
    """The same for one person; reviewers and admins know of every campaign."""
    if user.may_review:
        return true()
    return admitted(literal(user.id), literal(user.is_outside))


def image_visible_to(user: User) -> ColumnElement[bool]:
    """Whether a person may see the images of a row of `dataset` by their numbers.

    Admins may always, reviewers once a campaign over it was opened, and programs that say they are ones while
    one is open. To all others a campaign names its pictures: numbers follow the order of import, and that can
    give the class away.
    """
    if user.is_admin:
        return true()
    is_over = Campaign.dataset_id == Dataset.id
    if user.may_review:
        return exists().where(is_over, Campaign.state != CampaignState.DRAFT).correlate(Dataset)
    if not user.is_simulated:
        return false()
    is_open = Campaign.state == CampaignState.OPEN
    return exists().where(is_over, is_open, visible_to(user)).correlate(Dataset)
