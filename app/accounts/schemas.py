"""What accounts accept and show."""

import enum
from datetime import datetime, timedelta
from typing import Annotated, Self
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from app.accounts.models import Role, Scope
from app.accounts.service import LONGEST_TOKEN_LIFE, MIN_PASSWORD_LENGTH, TOKEN_LIFE, is_address
from app.languages import gettext as _
from app.schemas import Input, Name, Output, printable

MOST_LETTERS = 400  # of a name and an address
MAX_PASSWORD_LENGTH = 1024  # hashing time must not grow with what a stranger sends


def _address(text: str) -> str:
    if not is_address(text):
        raise ValueError(_("This does not look like an e-mail address"))
    return text


def _long_enough(text: str) -> str:
    if len(text) < MIN_PASSWORD_LENGTH:
        raise ValueError(_("A password needs at least {need} characters.").format(need=MIN_PASSWORD_LENGTH))
    return text


Line = Annotated[str, StringConstraints(max_length=254), AfterValidator(printable)]
Email = Annotated[Line, AfterValidator(_address)]
Note = Annotated[str, StringConstraints(max_length=120), AfterValidator(printable)]
# Kept as typed: spaces at either end are part of a password.
Password = Annotated[str, StringConstraints(max_length=MAX_PASSWORD_LENGTH, strip_whitespace=False)]
NewPassword = Annotated[Password, AfterValidator(_long_enough)]
Code = Annotated[str, StringConstraints(max_length=20)]


class SignIn(Input):
    """The sign-in form."""

    email: Line
    password: Password
    next: str = ""


class SecondStep(Input):
    """The code after the password; `ticket` shows that the password was given."""

    ticket: Annotated[str, StringConstraints(max_length=200)]
    code: Code
    next: str = ""


class Forgotten(Input):
    """Whose password is forgotten."""

    email: Email


class NewPasswordOnly(Input):
    """Another password, by a link."""

    password: NewPassword


class Proof(Input):
    """The password once more, before what is delicate."""

    password: Password


class FirstCode(Input):
    """What the authenticator shows."""

    code: Code


class InvitationAccept(Input):
    """Who the invited person is."""

    email: Email
    name: Name
    password: NewPassword


class PasswordChange(Input):
    """A new password, and the old one as proof."""

    current: Password
    password: NewPassword


class InvitationCreate(Input):
    """For whom a one-time link is."""

    role: Role = Role.ANNOTATOR
    note: Note = ""
    email: Annotated[
        Email | None, Field(description="The only address that the link makes an account for.")
    ] = None


class InvitationForm(InvitationCreate):
    """The same in a form, which has one's own password as well where that is wanted."""

    current: Password = ""


class InvitationsCreate(Input):
    """For whom several one-time links are."""

    role: Role = Role.ANNOTATOR
    addresses: Annotated[
        list[Annotated[str, StringConstraints(max_length=MOST_LETTERS)]],
        Field(
            min_length=1,
            max_length=1000,
            description="each an e-mail address, or a name with an address in angle brackets; at most 200",
            examples=[["anna@example.org", "Bo Lind <bo@example.org>"]],
        ),
    ]


class InvitationsForm(Input):
    """The same in a form: an address in each line, and one's own password where that is wanted."""

    role: Role = Role.ANNOTATOR
    addresses: Annotated[str, StringConstraints(max_length=MOST_LETTERS * 200)] = ""
    current: Password = ""


class InvitationCreated(Output):
    """The link, which is shown this once."""

    id: UUID
    role: Role
    note: str
    email: str | None
    expires_at: datetime
    url: str


class InvitationsCreated(Output):
    """A link for each address, in their order."""

    items: list[InvitationCreated]


class PasswordLinkCreated(Output):
    """A link by which a person chooses another password, which is shown this once."""

    expires_at: datetime
    url: str


class TokenCreate(Input):
    """What a bearer token is for, what it may do, and for how long."""

    name: Name
    scope: Annotated[
        Scope,
        Field(
            description="read: look; annotate: answer questions, and look at what annotators look at; "
            "manage: all that its owner may but tokens, passwords and making admins."
        ),
    ] = Scope.MANAGE
    days: Annotated[int, Field(ge=1, le=LONGEST_TOKEN_LIFE.days)] = TOKEN_LIFE.days

    @property
    def life(self) -> timedelta:
        """For how long it works."""
        return timedelta(days=self.days)


class TokenForm(TokenCreate):
    """The same in a form, which has one's own password as well where that is wanted."""

    current: Password = ""


class TokenRead(Output):
    """A bearer token without its secret; `seen_at` is its last use, to a minute or so."""

    id: UUID
    name: str
    scope: Scope
    created_at: datetime
    expires_at: datetime
    seen_at: datetime | None


class TokenCreated(TokenRead):
    """A bearer token with its secret, which is shown this once."""

    token: str


class TokenPage(Output):
    """Somebody's tokens that work."""

    items: list[TokenRead]
    next: str | None = Field(default=None, description="null: the list is whole")


class SessionRead(Output):
    """A browser in which one is signed in; `seen_at` is its last use, to a minute or so."""

    id: str
    created_at: datetime
    expires_at: datetime
    seen_at: datetime | None
    address: str
    browser: str
    is_this: bool


class SessionPage(Output):
    """Where one is signed in."""

    items: list[SessionRead]
    next: str | None = Field(default=None, description="null: the list is whole")


class UserRead(Output):
    """A person or program with an account."""

    id: UUID
    email: str
    name: str
    role: Role
    is_simulated: bool
    is_outside: bool
    created_at: datetime
    disabled_at: datetime | None
    erased_at: datetime | None


class MadeThing(Output):
    """A dataset, campaign or run that somebody made."""

    kind: str = Field(examples=["campaign"])
    id: UUID
    name: str
    url: str = Field(description="of its JSON", examples=["/api/v1/campaigns/0"])


class MadeRead(Output):
    """What somebody made, all of which stays when they are erased but tokens and open invitations."""

    counts: dict[str, int] = Field(examples=[{"campaign": 2, "run": 5, "invitation": 1}])
    named: list[MadeThing] = Field(description="of many the newest of each kind")
    left_out: int = Field(description="how many datasets, campaigns and runs more there are")


class UserUpdate(Input):
    """Lock somebody out or let them in again, give them another role, or another name."""

    disabled: bool | None = None
    role: Role | None = None
    name: Name | None = None

    @model_validator(mode="after")
    def has_something(self) -> Self:
        """Silence is no answer to an empty change."""
        if self.disabled is None and self.role is None and self.name is None:
            raise ValueError("Give disabled, role or name")
        return self


class PersonAct(enum.StrEnum):
    """What the buttons of a person's page do."""

    ADMIN = "admin"
    REVIEWER = "reviewer"
    ANNOTATOR = "annotator"
    RENAME = "rename"
    DISABLE = "disable"
    ENABLE = "enable"
    PASSWORD_LINK = "password-link"
    NO_SECOND_FACTOR = "no-second-factor"
    SIGN_OUT = "sign-out"


class PersonForm(Input):
    """One of those buttons, and one's own password where that is wanted."""

    act: PersonAct
    name: Name | None = None
    current: Password = ""


class ProofForm(Input):
    """One's own password where that is wanted, for a form that has nothing else."""

    current: Password = ""


class UserPage(Output):
    """Part of the list of people; `next` is the `after` of the following part."""

    items: list[UserRead]
    next: UUID | None


class SimulatedAnnotatorCreate(Input):
    """A program that answers in a person's place."""

    name: Annotated[Name, Field(description="The same name gives the same account.")]


class SimulatedAnnotatorCreated(Output):
    """The account and its token, which is shown this once."""

    user: UserRead
    token_id: UUID
    token: str
