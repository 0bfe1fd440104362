"""HTML routes: members of a campaign and its outside workers, groups of people, erasing a person."""

from uuid import UUID

from fastapi import APIRouter, Request, status
from fastapi.responses import HTMLResponse, Response
from sqlalchemy.orm import Session

from app.access import admin_only
from app.accounts import service as accounts
from app.accounts.errors import (
    AccountErased,
    LastAdmin,
    NameDiffers,
    NotAllowed,
    ProofNeeded,
    WrongCredentials,
)
from app.accounts.granting import Granting
from app.accounts.models import User
from app.accounts.own_pages import proof_error
from app.accounts.people_pages import person_page
from app.campaigns.deps import CampaignDep
from app.campaigns.models import Admits, Campaign
from app.clock import utc_now
from app.deps import CurrentUser, FormDep, ReadingDep, SessionDep, SettingsDep, reached_at
from app.idempotency import FormOnceDep
from app.members import schemas, service
from app.members.errors import GroupNameTaken, NoMember
from app.pages import read_form, render, see_other

router = APIRouter(include_in_schema=False)

ADMITS = [
    (Admits.EVERYBODY, "Everybody with an account"),
    (Admits.INVITED, "Members: people and groups below"),
]


@router.get("/campaigns/{campaign_id}/members")
@admin_only
def show_members(request: Request, campaign: CampaignDep, user: CurrentUser, session: SessionDep) -> Response:
    """Whom the campaign admits, its members, and links for outside workers."""
    return _members_page(request, session, campaign, user)


@router.post("/campaigns/{campaign_id}/members")
@admin_only
def change_members(
    request: Request, form: FormDep, campaign: CampaignDep, user: CurrentUser, session: SessionDep
) -> Response:
    """What the buttons of the page do; `act` says which."""
    given, errors = read_form(form, schemas.MembersForm)
    if given is not None:
        try:
            _change(session, campaign, given, user)
        except NoMember as error:
            errors = {"": error.detail}
    if errors:
        return _members_page(request, session, campaign, user, errors=errors)
    return see_other(request, "show_members", campaign_id=str(campaign.id))


def _change(session: Session, campaign: Campaign, given: schemas.MembersForm, user: User) -> None:
    now = utc_now()
    match given.act, given.id:
        case schemas.MembersAct.ADMIT, None if given.admits is not None:
            service.set_admission(session, campaign, given.admits, by=user, now=now)
        case schemas.MembersAct.ADD_PERSON, UUID() as person:
            service.add_member(session, campaign, person, by=user)
        case schemas.MembersAct.REMOVE_PERSON, UUID() as person:
            service.remove_member(session, campaign, person, by=user, now=now)
        case schemas.MembersAct.ADD_GROUP, UUID() as group:
            service.add_group(session, campaign, group, by=user)
        case schemas.MembersAct.REMOVE_GROUP, UUID() as group:
            service.remove_group(session, campaign, group, by=user, now=now)
        case schemas.MembersAct.END_LINK, UUID() as link:
            service.end_link(session, campaign, link, by=user, now=now)


@router.post("/campaigns/{campaign_id}/members/links")
@admin_only
def make_worker_link_from_page(
    *,
    request: Request,
    form: FormDep,
    once: FormOnceDep,
    campaign: CampaignDep,
    user: CurrentUser,
    session: SessionDep,
    settings: SettingsDep,
) -> Response:
    """Make a link for outside workers; the answer shows it, because nothing but its digest is kept."""
    given, errors = read_form(form, schemas.WorkerLinkCreate)
    if given is None:
        return _members_page(request, session, campaign, user, link_form=form, link_errors=errors)
    once.begin_form(session)
    _, secret = service.make_link(
        session,
        campaign,
        answers_needed=given.answers_needed,
        max_workers=given.max_workers,
        code=given.code,
        note_=given.note,
        by=user,
        now=utc_now(),
    )
    url = service.join_url(reached_at(request, settings), secret)
    return _members_page(request, session, campaign, user, url=url)


def _members_page(
    request: Request,
    session: Session,
    campaign: Campaign,
    user: User,
    *,
    url: str = "",
    errors: dict[str, str] | None = None,
    link_form: object = None,
    link_errors: dict[str, str] | None = None,
) -> HTMLResponse:
    found = service.members(session, campaign, by=user)
    ok = status.HTTP_201_CREATED if url else status.HTTP_200_OK
    links = service.links_of(session, campaign, by=user)
    workers = service.workers_of(session, campaign, by=user)
    people, groups = {person.id for person in found.people}, {group.id for group in found.groups}
    return render(
        request,
        "members/members.html",
        status=status.HTTP_422_UNPROCESSABLE_CONTENT if errors or link_errors else ok,
        campaign=campaign,
        admits=ADMITS,
        members=found,
        others=[person for person in _candidates(session) if person.id not in people],
        other_groups=[group for group in service.list_groups(session, by=user) if group.id not in groups],
        links=links,
        workers=workers,
        shortages=service.shortages(session, campaign, links, workers, now=utc_now()),
        early_code=service.early_code,
        without_more=service.without_more(session, campaign, workers),
        url=url,
        errors=errors or {},
        link_form=link_form or {},
        link_errors=link_errors or {},
    )


def _candidates(session: Session) -> list[User]:
    return [
        person
        for person in session.scalars(accounts.people())
        if person.disabled_at is None and not person.is_outside
    ]


@router.get("/groups")
@admin_only
def show_groups(request: Request, user: CurrentUser, session: SessionDep) -> Response:
    """Groups of people."""
    return _groups_page(request, session, user)


@router.post("/groups")
@admin_only
def make_group_from_page(request: Request, form: FormDep, user: CurrentUser, session: SessionDep) -> Response:
    """Make a group."""
    given, errors = read_form(form, schemas.GroupCreate)
    if given is not None:
        try:
            group = service.make_group(session, given.name, by=user, now=utc_now())
        except GroupNameTaken as error:
            errors = {"name": error.detail}
        else:
            return see_other(request, "show_group", group_id=str(group.id))
    return _groups_page(request, session, user, name=str(form.get("name", "")), errors=errors)


def _groups_page(
    request: Request, session: Session, user: User, *, name: str = "", errors: dict[str, str] | None = None
) -> HTMLResponse:
    return render(
        request,
        "members/groups.html",
        status=status.HTTP_422_UNPROCESSABLE_CONTENT if errors else status.HTTP_200_OK,
        groups=service.list_groups(session, by=user),
        name=name,
        errors=errors or {},
    )


@router.get("/groups/{group_id}")
@admin_only
def show_group(request: Request, group_id: UUID, user: CurrentUser, session: SessionDep) -> Response:
    """One group and its people."""
    return _group_page(request, session, group_id, user)


@router.post("/groups/{group_id}")
@admin_only
def change_group(
    request: Request, form: FormDep, group_id: UUID, user: CurrentUser, session: SessionDep
) -> Response:
    """What the buttons of the page do; `act` says which."""
    given, errors = read_form(form, schemas.GroupForm)
    if given is not None:
        try:
            match given.act, given.id:
                case schemas.GroupAct.ADD, UUID() as person:
                    service.add_person(session, group_id, person, by=user)
                case schemas.GroupAct.REMOVE, UUID() as person:
                    service.remove_person(session, group_id, person, by=user, now=utc_now())
                case schemas.GroupAct.DELETE, _:
                    service.delete_group(session, group_id, by=user, now=utc_now())
                    return see_other(request, "show_groups")
        except NoMember as error:
            errors = {"": error.detail}
    if errors:
        return _group_page(request, session, group_id, user, errors=errors)
    return see_other(request, "show_group", group_id=str(group_id))


def _group_page(
    request: Request, session: Session, group_id: UUID, user: User, *, errors: dict[str, str] | None = None
) -> HTMLResponse:
    group = service.find_group(session, group_id, by=user)
    people = service.people_of(session, group)
    inside = {person.id for person in people}
    return render(
        request,
        "members/group.html",
        status=status.HTTP_422_UNPROCESSABLE_CONTENT if errors else status.HTTP_200_OK,
        group=group,
        people=people,
        others=[person for person in _candidates(session) if person.id not in inside],
        campaigns=service.campaigns_of(session, group),
        errors=errors or {},
    )


@router.post("/people/{user_id}/erase")
@admin_only
def erase_person_from_page(
    *,
    request: Request,
    user_id: UUID,
    form: FormDep,
    user: CurrentUser,
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
) -> Response:
    """Erase somebody whose name was typed."""
    given, errors = read_form(form, schemas.EraseForm)
    if given is not None:
        granting = Granting(request, session, reading, by=user, now=utc_now(), password=given.current)
        try:
            granting.prove_for(user_id)
            service.erase_person(session, user_id, name=given.name, by=user, now=utc_now())
        except NameDiffers as error:
            errors = {"name": error.detail}
        except (ProofNeeded, WrongCredentials) as error:
            errors = proof_error(error, user)
        except (NotAllowed, LastAdmin, AccountErased) as error:
            errors = {"": error.detail}
        else:
            return see_other(request, "show_person", user_id=str(user_id))
    person = accounts.get_person(session, user_id, by=user)
    return person_page(request, session, settings, person, status=422, erase_errors=errors)
