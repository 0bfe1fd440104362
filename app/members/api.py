"""JSON routes: members of campaigns, groups of people, links for outside workers, erasing a person."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Request, status
from sqlalchemy.orm import Session

from app.access import admin_only
from app.accounts.granting import Granting
from app.accounts.models import User
from app.campaigns.deps import CampaignDep
from app.campaigns.models import Campaign
from app.clock import utc_now
from app.deps import CurrentUser, ReadingDep, SessionDep, SettingsDep, reached_at
from app.idempotency import OnceDep
from app.members import schemas, service

router = APIRouter(tags=["members"])


@router.get("/campaigns/{campaign_id}/members")
@admin_only
def read_members(campaign: CampaignDep, user: CurrentUser, session: SessionDep) -> schemas.MembersRead:
    """Whom the campaign admits, and its members by name and by group."""
    return _members(session, campaign, user)


def _members(session: Session, campaign: Campaign, user: User) -> schemas.MembersRead:
    return schemas.MembersRead.model_validate(service.members(session, campaign, by=user))


@router.put("/campaigns/{campaign_id}/members")
@admin_only
def set_admission(
    campaign: CampaignDep, body: schemas.Admission, user: CurrentUser, session: SessionDep
) -> schemas.MembersRead:
    """Say whom the campaign admits, at any time. What others hold of it then ends at once."""
    service.set_admission(session, campaign, body.admits, by=user, now=utc_now())
    return _members(session, campaign, user)


@router.put("/campaigns/{campaign_id}/members/people/{user_id}", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def add_member(campaign: CampaignDep, user_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Make somebody a member."""
    service.add_member(session, campaign, user_id, by=user)


@router.delete("/campaigns/{campaign_id}/members/people/{user_id}", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def remove_member(campaign: CampaignDep, user_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Let somebody be no member any more. Their answers stay."""
    service.remove_member(session, campaign, user_id, by=user, now=utc_now())


@router.put("/campaigns/{campaign_id}/members/groups/{group_id}", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def add_group(campaign: CampaignDep, group_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Make the people of a group members."""
    service.add_group(session, campaign, group_id, by=user)


@router.delete("/campaigns/{campaign_id}/members/groups/{group_id}", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def remove_group(campaign: CampaignDep, group_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Let the people of a group be no members any more."""
    service.remove_group(session, campaign, group_id, by=user, now=utc_now())


@router.get("/campaigns/{campaign_id}/workers")
@admin_only
def read_workers(campaign: CampaignDep, user: CurrentUser, session: SessionDep) -> schemas.WorkersRead:
    """Links for outside workers, and who came by them: whom to pay."""
    links = service.links_of(session, campaign, by=user)
    workers = service.workers_of(session, campaign, by=user)
    return schemas.WorkersRead(
        links=[schemas.WorkerLinkRead.of(link) for link in links],
        workers=[schemas.WorkerRead.model_validate(worker) for worker in workers],
    )


@router.post("/campaigns/{campaign_id}/workers", status_code=status.HTTP_201_CREATED)
@admin_only
def make_worker_link(
    *,
    request: Request,
    campaign: CampaignDep,
    body: schemas.WorkerLinkCreate,
    once: OnceDep,
    user: CurrentUser,
    session: SessionDep,
    settings: SettingsDep,
) -> schemas.WorkerLinkCreated:
    """Make a link by which outside workers come to this campaign alone. Its address is shown this once."""
    once.begin_secret(session)
    link, secret = service.make_link(
        session,
        campaign,
        answers_needed=body.answers_needed,
        max_workers=body.max_workers,
        code=body.code,
        note_=body.note,
        by=user,
        now=utc_now(),
    )
    once.end(session, link.id)
    read = schemas.WorkerLinkRead.of(link)
    url = service.join_url(reached_at(request, settings), secret)
    return schemas.WorkerLinkCreated(**read.model_dump(), url=url)


@router.delete("/campaigns/{campaign_id}/workers/{link_id}", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def end_worker_link(campaign: CampaignDep, link_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Let nobody come by a link any more."""
    service.end_link(session, campaign, link_id, by=user, now=utc_now())


@router.get("/groups")
@admin_only
def list_groups(user: CurrentUser, session: SessionDep) -> schemas.GroupPage:
    """Groups of people, by name."""
    found = service.list_groups(session, by=user)
    return schemas.GroupPage(items=[schemas.GroupRead.model_validate(group) for group in found])


@router.post("/groups", status_code=status.HTTP_201_CREATED)
@admin_only
def make_group(
    body: schemas.GroupCreate, once: OnceDep, user: CurrentUser, session: SessionDep
) -> schemas.GroupPeopleRead:
    """Make a group without people."""
    now = utc_now()
    if made := once.begin(session, now=now):
        return _group(session, UUID(made), user)
    group = service.make_group(session, body.name, by=user, now=now)
    once.end(session, group.id)
    return schemas.GroupPeopleRead(id=group.id, name=group.name, people=[], campaigns=[])


@router.get("/groups/{group_id}")
@admin_only
def read_group(group_id: UUID, user: CurrentUser, session: SessionDep) -> schemas.GroupPeopleRead:
    """A group with its people."""
    return _group(session, group_id, user)


def _group(session: Session, group_id: UUID, user: User) -> schemas.GroupPeopleRead:
    group = service.find_group(session, group_id, by=user)
    people = [schemas.MemberRead.model_validate(person) for person in service.people_of(session, group)]
    campaigns = [schemas.GroupCampaignRead.model_validate(it) for it in service.campaigns_of(session, group)]
    return schemas.GroupPeopleRead(id=group.id, name=group.name, people=people, campaigns=campaigns)


@router.delete("/groups/{group_id}", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def delete_group(group_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Delete a group. Its people stay, and are no members of its campaigns any more."""
    service.delete_group(session, group_id, by=user, now=utc_now())


@router.put("/groups/{group_id}/people/{user_id}", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def add_person(group_id: UUID, user_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Put somebody into a group."""
    service.add_person(session, group_id, user_id, by=user)


@router.delete("/groups/{group_id}/people/{user_id}", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def remove_person(group_id: UUID, user_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Take somebody out of a group."""
    service.remove_person(session, group_id, user_id, by=user, now=utc_now())


async def _granting(
    request: Request, session: SessionDep, reading: ReadingDep, user: CurrentUser
) -> Granting:
    return Granting(request, session, reading, by=user, now=utc_now())


@router.post("/users/{user_id}/erase", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def erase_person(
    user_id: UUID, body: schemas.EraseInput, granting: Annotated[Granting, Depends(_granting)]
) -> None:
    """Erase what identifies somebody; their answers stay under a pseudonym. It cannot be undone.

    `name` is theirs, as a check against a slip. Not an admin or a reviewer by a token.
    """
    granting.prove_for(user_id)
    service.erase_person(granting.session, user_id, name=body.name, by=granting.by, now=granting.now)
