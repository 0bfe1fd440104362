"""Whom a campaign admits: everybody, or its members by name and by group."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import CursorResult, Executable, delete, func, select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.annotation import service as annotation
from app.campaigns import service as campaigns
from app.campaigns.models import Admits, Campaign, CampaignGroup, CampaignMember, GroupPerson, PersonGroup
from app.campaigns.noting import note
from app.journal.models import Action
from app.journal.service import naming
from app.members.errors import GroupNotFound, NoMember


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """A group of people."""

    id: UUID
    name: str
    people: int


@dataclass(frozen=True, slots=True)
class Members:
    """Who is a member of a campaign; outside workers are listed with their links."""

    admits: Admits
    people: Sequence[User]
    groups: Sequence[ShownGroup]


def members(session: Session, campaign: Campaign, *, by: User) -> Members:
    """Who is a member.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    people = (
        select(User)
        .join(CampaignMember, CampaignMember.user_id == User.id)
        .where(CampaignMember.campaign_id == campaign.id, ~User.is_outside)
        .order_by(User.name, User.id)
    )
    here = select(CampaignGroup.group_id).where(CampaignGroup.campaign_id == campaign.id)
    return Members(
        campaign.admits, session.scalars(people).all(), shown_groups(session, PersonGroup.id.in_(here))
    )


def shown_groups(session: Session, *which: object) -> list[ShownGroup]:
    """Groups with the number of their people, by name."""
    count = select(func.count()).where(GroupPerson.group_id == PersonGroup.id).scalar_subquery()
    query = select(PersonGroup.id, PersonGroup.name, count).where(*which).order_by(PersonGroup.name)  # type: ignore[arg-type]
    return [ShownGroup(*row) for row in session.execute(query)]


def set_admission(session: Session, campaign: Campaign, admits: Admits, *, by: User, now: datetime) -> None:
    """Say whom the campaign admits. Who is no member then loses at once what they hold of it.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    campaigns.lock_state(session, campaign)
    if campaign.admits is admits:
        return
    campaign.admits = admits
    session.flush()
    annotation.end_leases_of_strangers(session, campaign.id, now=now)
    note(session, Action.ADMISSION_CHANGED, campaign, by=by, details={"admits": admits})


def add_member(session: Session, campaign: Campaign, user_id: UUID, *, by: User) -> None:
    """Make somebody a member. Twice is once.

    Raises:
        NotAllowed: `by` is no admin.
        UserNotFound, NoMember: it is nobody who could be one.
    """
    person = candidate(session, user_id, by=by)
    if session.get(CampaignMember, (campaign.id, user_id)) is None:
        session.merge(CampaignMember(campaign_id=campaign.id, user_id=user_id))
        session.flush()
        note(session, Action.MEMBER_ADDED, campaign, by=by, details=naming(person))


def candidate(session: Session, user_id: UUID, *, by: User) -> User:
    """Somebody who can become a member of campaigns and groups.

    Raises:
        NotAllowed: `by` is no admin.
        UserNotFound, NoMember: it is nobody who could.
    """
    person = accounts.get_person(session, user_id, by=by)
    if person.is_outside or person.disabled_at is not None:
        raise NoMember
    return person


def remove_member(session: Session, campaign: Campaign, user_id: UUID, *, by: User, now: datetime) -> None:
    """Let somebody be no member any more, outside workers too; what they hold of the campaign ends at once.

    Raises:
        NotAllowed: `by` is no admin.
        UserNotFound: no such person.
    """
    person = accounts.get_person(session, user_id, by=by)
    campaigns.lock_state(session, campaign)
    gone = delete(CampaignMember).where(
        CampaignMember.campaign_id == campaign.id, CampaignMember.user_id == user_id
    )
    if changed(session, gone):
        annotation.end_leases_of_strangers(session, campaign.id, now=now)
        note(session, Action.MEMBER_REMOVED, campaign, by=by, details=naming(person))


def add_group(session: Session, campaign: Campaign, group_id: UUID, *, by: User) -> None:
    """Make all people of a group members, as long as they are in it. Twice is once.

    Raises:
        NotAllowed: `by` is no admin.
        GroupNotFound: there is none.
    """
    group = find_group(session, group_id, by=by)
    if session.get(CampaignGroup, (campaign.id, group_id)) is None:
        session.merge(CampaignGroup(campaign_id=campaign.id, group_id=group_id))
        session.flush()
        note(session, Action.MEMBER_ADDED, campaign, by=by, details={"group": group.name})


def remove_group(session: Session, campaign: Campaign, group_id: UUID, *, by: User, now: datetime) -> None:
    """Let the people of a group be no members any more, but for those who are by name or by another group.

    Raises:
        NotAllowed: `by` is no admin.
        GroupNotFound: there is none.
    """
    group = find_group(session, group_id, by=by)
    campaigns.lock_state(session, campaign)
    gone = delete(CampaignGroup).where(
        CampaignGroup.campaign_id == campaign.id, CampaignGroup.group_id == group_id
    )
    if changed(session, gone):
        annotation.end_leases_of_strangers(session, campaign.id, now=now)
        note(session, Action.MEMBER_REMOVED, campaign, by=by, details={"group": group.name})


def find_group(session: Session, group_id: UUID, *, by: User) -> PersonGroup:
    """One group.

    Raises:
        NotAllowed: `by` is no admin.
        GroupNotFound: there is none.
    """
    accounts.require_admin(by)
    group = session.get(PersonGroup, group_id)
    if group is None:
        raise GroupNotFound
    return group


def changed(session: Session, statement: Executable) -> bool:
    """Run a statement; whether it changed a row."""
    result = session.execute(statement, execution_options={"synchronize_session": False})
    assert isinstance(result, CursorResult)
    return bool(result.rowcount)
