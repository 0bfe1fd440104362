"""Typed failures that the user caused and can understand. They know nothing of HTTP."""

from typing import ClassVar

from app.uses import Uses


class AppError(Exception):
    """A failure the user caused and can understand; `used_by` is what stands in the way, with links."""

    title: ClassVar[str] = "Request refused"

    def __init__(self, detail: str, *, used_by: Uses | None = None, **facts: str | int | float) -> None:
        super().__init__(detail)
        self.detail = detail
        self.used_by = used_by or Uses()
        self.facts = facts


class Unauthenticated(AppError):
    """Nobody is signed in, or the credentials are wrong."""


class NotFound(AppError):
    """There is no such thing, or none that this person may know of."""


class Forbidden(AppError):
    """This person may not do that."""


class Conflict(AppError):
    """The thing is not in a state that allows this."""


class Unprocessable(AppError):
    """The input is understood and refused."""


class Unavailable(AppError):
    """Something that the server needs is away; what is served from it comes back with it."""


class TooMany(AppError):
    """Asked too often; try again later."""
