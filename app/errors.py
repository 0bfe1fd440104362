"""Typed failures that the user caused and can understand. They know nothing of HTTP, nor of the database.

Processes that read files of strangers load this: whatever it imports, each of them pays for.
"""

from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Use:
    """One thing that uses another: a kind ("dataset", "campaign", "run"), its id, and what people call it."""

    kind: str
    id: UUID
    name: str


@dataclass(frozen=True, slots=True)
class Uses:
    """Everything that uses a thing; of many of one kind the first are named, and all are counted."""

    named: tuple[Use, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.named)

    @property
    def in_words(self) -> str:
        """ "2 campaigns and 1 run"; nothing where nothing uses it."""
        return " and ".join(f"{count} {kind}{'s' * (count != 1)}" for kind, count in self.counts.items())

    @property
    def left_out(self) -> int:
        """How many are counted and not named."""
        return sum(self.counts.values()) - len(self.named)


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
