"""What the JSON API and the forms of members, groups and outside workers accept and return."""

import enum
from datetime import datetime
from typing import Annotated, Self
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints

from app.campaigns.models import Admits
from app.members.models import WorkerLink
from app.members.workers import early_code
from app.schemas import Input, Name, Output, printable

Code = Annotated[str, StringConstraints(max_length=40), AfterValidator(printable)]
Note = Annotated[str, StringConstraints(max_length=120), AfterValidator(printable)]


class Admission(Input):
    """Whom a campaign admits."""

    admits: Annotated[
        Admits, Field(description="everybody: all with an account; invited: members and people of its groups")
    ]


class MemberRead(Output):
    """Somebody who is a member by name, or in a group."""

    id: UUID
    email: str
    name: str


class GroupRead(Output):
    """A group of people."""

    id: UUID
    name: str
    people: int


class MembersRead(Output):
    """Who is a member of a campaign. Outside workers stand under `workers`."""

    admits: Admits
    people: list[MemberRead]
    groups: list[GroupRead]


class GroupPage(Output):
    """All groups."""

    items: list[GroupRead]
    next: str | None = Field(default=None, description="null: the list is whole")


class GroupCreate(Input):
    """A group to make."""

    name: Name


class GroupCampaignRead(Output):
    """A campaign that has a group as a member."""

    id: UUID
    name: str


class GroupPeopleRead(Output):
    """A group with its people, and the campaigns to which it lets them in."""

    id: UUID
    name: str
    people: list[MemberRead]
    campaigns: list[GroupCampaignRead]


class WorkerLinkCreate(Input):
    """A link for outside workers."""

    answers_needed: Annotated[
        int, Field(ge=1, le=100_000, description="Answers until the completion code is shown.")
    ] = 50
    max_workers: Annotated[int, Field(ge=1, le=10_000, description="Accounts that it makes at most.")] = 100
    code: Annotated[Code, Field(description="That your platform expects; none: one is drawn.")] = ""
    note: Annotated[Note, Field(description="Which study it is for.")] = ""


class WorkerLinkRead(Output):
    """A link for outside workers, without its secret."""

    id: UUID
    note: str
    answers_needed: int
    code: str
    early_code: str = Field(
        description="shown in its place to whom nothing is left to ask before they have answered enough"
    )
    max_workers: int
    workers: int
    created_at: datetime
    ended_at: datetime | None

    @classmethod
    def of(cls, link: WorkerLink) -> Self:
        """With the code that follows from the link."""
        read = {name: getattr(link, name) for name in cls.model_fields if name != "early_code"}
        return cls(**read, early_code=early_code(link))


class WorkerLinkCreated(WorkerLinkRead):
    """The same with its address, which is shown this once."""

    url: str


class WorkerRead(Output):
    """An outside worker, by the id of their platform: one for each link by which they came."""

    user_id: UUID
    name: str
    worker_id: str
    link_id: UUID
    answers: int = Field(description="that count for the code of this link")
    is_complete: bool


class WorkersRead(Output):
    """Links of a campaign, and who came by them."""

    links: list[WorkerLinkRead]
    workers: list[WorkerRead]


class EraseInput(Input):
    """The name of the person to erase, as a check against a slip."""

    name: Name


class EraseForm(EraseInput):
    """The same in a form, which has one's own password as well where that is wanted."""

    current: Annotated[str, Field(max_length=1000)] = ""


class MembersAct(enum.StrEnum):
    """What the buttons of a campaign's page of members do."""

    ADMIT = "admit"
    ADD_PERSON = "add-person"
    REMOVE_PERSON = "remove-person"
    ADD_GROUP = "add-group"
    REMOVE_GROUP = "remove-group"
    END_LINK = "end-link"


class MembersForm(Input):
    """One of those buttons, and what it is about."""

    act: MembersAct
    admits: Admits | None = None
    id: UUID | None = None


class GroupAct(enum.StrEnum):
    """What the buttons of a group's page do."""

    ADD = "add"
    REMOVE = "remove"
    DELETE = "delete"


class GroupForm(Input):
    """One of those buttons, and whom it is about."""

    act: GroupAct
    id: UUID | None = None


class JoinForm(Input):
    """The id with which an outside worker begins."""

    worker: Annotated[str, StringConstraints(max_length=200)] = ""
