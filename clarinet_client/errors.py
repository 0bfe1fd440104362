"""What goes wrong, in the server's words. Programs tell errors apart by class, or by a problem's `type`."""

from collections.abc import Mapping
from typing import Any


class ClientError(Exception):
    """What was asked for did not happen; `detail` says why and what to do."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class CannotBe(ClientError):
    """What a client is made with is no address or no token; no server was asked."""


class ServerAway(ClientError):
    """Nobody answers at the server's address, or at the bucket's to which it leads."""

    def __init__(self, base_url: str, what: str = "Clarinet server") -> None:
        super().__init__(f"No {what} answers at {base_url}.")


class TookTooLong(ClientError):
    """What was waited for has not happened in time; it goes on at the server."""


class Failed(ClientError):
    """What the server worked on has failed; `row` is how it stands there."""

    def __init__(self, detail: str, row: Mapping[str, Any]) -> None:
        super().__init__(detail)
        self.row = row


class Refused(ClientError):
    """The server answered with a problem (RFC 9457)."""

    def __init__(
        self, status: int, problem: Mapping[str, Any], *, retry_after_s: float | None = None
    ) -> None:
        super().__init__(str(problem.get("detail") or f"The server answered {status}."))
        self.status = status
        self.problem = problem
        self.type = str(problem.get("type", "about:blank"))
        self.title = str(problem.get("title", ""))
        self.errors: list[Mapping[str, str]] = list(problem.get("errors", ()))  # `pointer` and `detail`
        self.used_by: list[Mapping[str, str]] = list(problem.get("used_by", ()))  # what stands in the way
        self.retry_after_s = retry_after_s


class NotSignedIn(Refused):
    """The token is unknown, or has ended."""


class NotAllowed(Refused):
    """The token's owner may not do that, or the token's scope does not reach so far."""


class NotFound(Refused):
    """There is no such thing, or none that this person may know of."""


class Conflict(Refused):
    """The thing is not in a state that allows this."""


class Malformed(Refused):
    """What was sent is missing something, misspelt or refused; `errors` says where."""


class TooMany(Refused):
    """Asked too often; `retry_after_s` says when to try again."""


class Unavailable(Refused):
    """The server is restarting or has more to do than it can."""


OF_STATUS = {
    401: NotSignedIn,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    422: Malformed,
    429: TooMany,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


def refused(status: int, problem: Mapping[str, Any], *, retry_after_s: float | None = None) -> Refused:
    """The error of a status."""
    return OF_STATUS.get(status, Refused)(status, problem, retry_after_s=retry_after_s)
