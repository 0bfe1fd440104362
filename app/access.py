"""Who may call a route. A route that says nothing is closed to everybody."""

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
MARK = "__access__"


class Access(Enum):
    """What a caller must be."""

    PUBLIC = "anybody"
    SIGNED_IN = "anybody signed in"
    ADMIN = "an admin"


def public(endpoint: Endpoint) -> Endpoint:
    """Open a route to everybody."""
    setattr(endpoint, MARK, Access.PUBLIC)
    return endpoint


def signed_in(endpoint: Endpoint) -> Endpoint:
    """Open a route to every account, annotators included."""
    setattr(endpoint, MARK, Access.SIGNED_IN)
    return endpoint


def admin_only(endpoint: Endpoint) -> Endpoint:
    """Open a route to admins."""
    setattr(endpoint, MARK, Access.ADMIN)
    return endpoint


def access_of(endpoint: object) -> Access | None:
    """What the route declared; None means closed."""
    mark = getattr(endpoint, MARK, None)
    return mark if isinstance(mark, Access) else None
