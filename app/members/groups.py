"""Groups of people."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.annotation import service as annotation
from app.campaigns import service as campaigns
from app.campaigns.models import Campaign, CampaignGroup, GroupPerson, PersonGroup
from app.journal import service as journal
from app.journal.models import Action
from app.members.admitting import ShownGroup, candidate, changed, find_group, shown_groups
from app.members.errors import GroupNameTaken
from clarinet.files.names import sameness


def list_groups(session: Session, *, by: User) -> list[ShownGroup]:
    """All groups, by name.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    return shown_groups(session)


def make_group(session: Session, name: str, *, by: User, now: datetime) -> PersonGroup:
    """A group without people.

    Raises:
        NotAllowed: `by` is no admin.
        GroupNameTaken: nothing was made.
    """
    accounts.require_admin(by)
    names = {sameness(taken): taken for taken in session.scalars(select(PersonGroup.name))}
    if sameness(name) in names:
        raise GroupNameTaken(names[sameness(name)])
    group = PersonGroup(name=name, created_at=now)
    try:
        with session.begin_nested():
            session.add(group)
    except IntegrityError as error:
        raise GroupNameTaken(name) from error
    journal.write(session, Action.GROUP_MADE, by=by, details={"group": name})
    return group


def people_of(session: Session, group: PersonGroup) -> Sequence[User]:
    """Who is in a group, by name."""
    query = select(User).join(GroupPerson, GroupPerson.user_id == User.id)
    return session.scalars(query.where(GroupPerson.group_id == group.id).order_by(User.name, User.id)).all()


def campaigns_of(session: Session, group: PersonGroup) -> Sequence[Campaign]:
    """The campaigns that have a group as a member, by name: what its people lose with it."""
    query = select(Campaign).join(CampaignGroup, CampaignGroup.campaign_id == Campaign.id)
    return session.scalars(query.where(CampaignGroup.group_id == group.id).order_by(Campaign.name)).all()


def add_person(session: Session, group_id: UUID, user_id: UUID, *, by: User) -> None:
    """Put somebody into a group: from now on a member of its campaigns. Twice is once.

    Raises:
        NotAllowed: `by` is no admin.
        GroupNotFound, UserNotFound, NoMember: nothing was changed.
    """
    group = find_group(session, group_id, by=by)
    person = candidate(session, user_id, by=by)
    if session.get(GroupPerson, (group_id, user_id)) is None:
        session.merge(GroupPerson(group_id=group_id, user_id=user_id))
        session.flush()
        _note_change(session, group, person, "added", by=by)


def remove_person(session: Session, group_id: UUID, user_id: UUID, *, by: User, now: datetime) -> None:
    """Take somebody out of a group; what they hold of its campaigns ends, unless they are members otherwise.

    Raises:
        NotAllowed: `by` is no admin.
        GroupNotFound, UserNotFound: nothing was changed.
    """
    group = find_group(session, group_id, by=by)
    person = accounts.get_person(session, user_id, by=by)
    held = _locked_campaigns(session, group_id)
    gone = delete(GroupPerson).where(GroupPerson.group_id == group_id, GroupPerson.user_id == user_id)
    if changed(session, gone):
        _end_leases(session, held, now=now)
        _note_change(session, group, person, "removed", by=by)


def delete_group(session: Session, group_id: UUID, *, by: User, now: datetime) -> None:
    """Delete a group: its people are no members of its campaigns any more, unless they are otherwise.

    Raises:
        NotAllowed: `by` is no admin.
        GroupNotFound: there is none.
    """
    group = find_group(session, group_id, by=by)
    held = _locked_campaigns(session, group_id)
    name = group.name
    session.execute(delete(PersonGroup).where(PersonGroup.id == group_id))
    session.expunge(group)
    _end_leases(session, held, now=now)
    lost = ", ".join(campaign.name for campaign in held)
    journal.write(session, Action.GROUP_DELETED, by=by, details={"group": name, "campaigns": lost})


def _locked_campaigns(session: Session, group_id: UUID) -> Sequence[Campaign]:
    """The campaigns of a group, in one order, so that two requests cannot wait for each other."""
    query = select(Campaign).join(CampaignGroup, CampaignGroup.campaign_id == Campaign.id)
    found = session.scalars(query.where(CampaignGroup.group_id == group_id).order_by(Campaign.id)).all()
    for campaign in found:
        campaigns.lock_state(session, campaign)
    return found


def _end_leases(session: Session, held: Sequence[Campaign], *, now: datetime) -> None:
    for campaign in held:
        annotation.end_leases_of_strangers(session, campaign.id, now=now)


def _note_change(session: Session, group: PersonGroup, person: User, what: str, *, by: User) -> None:
    facts = {"group": group.name, "what": what, **journal.naming(person)}
    journal.write(session, Action.GROUP_CHANGED, by=by, details=facts)
