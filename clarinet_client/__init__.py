"""A typed client of Clarinet's REST API. It needs httpx2 and nothing else of Clarinet.

    with Client("http://127.0.0.1:8000", token) as clarinet:
        photos = clarinet.datasets.add("photos.zip", name="Photos")

What goes wrong is a `ClientError`, whose words say what to do.
"""

from typing import TYPE_CHECKING, Any

from clarinet_client.errors import (
    CannotBe,
    ClientError,
    Conflict,
    Failed,
    Malformed,
    NotAllowed,
    NotFound,
    NotSignedIn,
    Refused,
    ServerAway,
    TookTooLong,
    TooMany,
    Unavailable,
)

if TYPE_CHECKING:
    from clarinet_client.client import Client

__all__ = [
    "CannotBe",
    "Client",
    "ClientError",
    "Conflict",
    "Failed",
    "Malformed",
    "NotAllowed",
    "NotFound",
    "NotSignedIn",
    "Refused",
    "ServerAway",
    "TooMany",
    "TookTooLong",
    "Unavailable",
]


def __getattr__(name: str) -> Any:
    """`Client` brings httpx2, which whoever only catches errors need not have."""
    if name != "Client":
        raise AttributeError(f"module 'clarinet_client' has no attribute {name!r}")
    from clarinet_client.client import Client  # noqa: PLC0415

    return Client
