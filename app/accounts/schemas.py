"""What accounts accept and show."""

import re
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints

from app.accounts.models import Role
from app.accounts.service import MIN_PASSWORD_LENGTH
from app.languages import gettext as _
from app.schemas import Input, Name, Output, printable

MAX_PASSWORD_LENGTH = 1024  # hashing time must not grow with what a stranger sends


def _address(text: str) -> str:
    if not re.fullmatch(r"[^@\s]+@[^@\s]+", text):
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


class SignIn(Input):
    """The sign-in form."""

    email: Line
    password: Password
    next: str = ""


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


class InvitationCreated(Output):
    """The link, which is shown this once."""

    id: UUID
    role: Role
    note: str
    expires_at: datetime
    url: str


class TokenCreate(Input):
    """What a bearer token is for."""

    name: Name


class TokenRead(Output):
    """A bearer token without its secret."""

    id: UUID
    name: str
    created_at: datetime


class TokenCreated(TokenRead):
    """A bearer token with its secret, which is shown this once."""

    token: str


class TokenPage(Output):
    """One's own tokens."""

    items: list[TokenRead]
    next: None = None


class UserRead(Output):
    """A person or program with an account."""

    id: UUID
    email: str
    name: str
    role: Role
    is_simulated: bool
    created_at: datetime
    disabled_at: datetime | None


class UserUpdate(Input):
    """Lock somebody out, or let them in again."""

    disabled: bool


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
