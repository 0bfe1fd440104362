"""Who may call a route. A route that says nothing is closed to everybody."""

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
MARK = "__access__"
IN_PERSON = "__in_person__"
ONLY_ANSWERS = "__only_answers__"


class Access(Enum):
    """What a caller must be."""

    PUBLIC = "anybody"
    SIGNED_IN = "anybody signed in"
    REVIEWER = "a reviewer or an admin"
    ADMIN = "an admin"

    @property
    def is_for_annotators(self) -> bool:
        """Whether annotators may call it, too."""
        return self in (Access.PUBLIC, Access.SIGNED_IN)


def public(endpoint: Endpoint) -> Endpoint:
    """Open a route to everybody."""
    setattr(endpoint, MARK, Access.PUBLIC)
    return endpoint


def signed_in(endpoint: Endpoint) -> Endpoint:
    """Open a route to every account, annotators included."""
    setattr(endpoint, MARK, Access.SIGNED_IN)
    return endpoint


def reviewers_too(endpoint: Endpoint) -> Endpoint:
    """Open a route to reviewers and admins."""
    setattr(endpoint, MARK, Access.REVIEWER)
    return endpoint


def admin_only(endpoint: Endpoint) -> Endpoint:
    """Open a route to admins."""
    setattr(endpoint, MARK, Access.ADMIN)
    return endpoint


def in_person(endpoint: Endpoint) -> Endpoint:
    """Close a route to tokens, which must not outlive themselves or let their holder in for good."""
    setattr(endpoint, IN_PERSON, True)
    return endpoint


def only_answers(endpoint: Endpoint) -> Endpoint:
    """Open a route that is a POST for its body's sake, and changes nothing, to tokens that may only read."""
    setattr(endpoint, ONLY_ANSWERS, True)
    return endpoint


def changes_nothing(endpoint: object) -> bool:
    """Whether the route is one of those."""
    return bool(getattr(endpoint, ONLY_ANSWERS, False))


def is_in_person(endpoint: object) -> bool:
    """Whether the route takes no token."""
    return bool(getattr(endpoint, IN_PERSON, False))


def access_of(endpoint: object) -> Access | None:
    """What the route declared; None means closed."""
    mark = getattr(endpoint, MARK, None)
    return mark if isinstance(mark, Access) else None
