"""What is sent and what comes back about people.

As the OpenAPI document has it; a test compares them field by field.
"""

from typing import Literal, NotRequired, TypedDict

Role = Literal["annotator", "reviewer", "admin"]


class NewInvitations(TypedDict):
    """For whom links are: addresses, or names with an address in angle brackets."""

    role: NotRequired[Role]
    addresses: list[str]


class Invitation(TypedDict):
    """A link that makes one account, shown this once."""

    id: str
    role: Role
    note: str
    email: str | None
    expires_at: str
    url: str


class Invitations(TypedDict):
    """One for each address, in their order."""

    items: list[Invitation]
