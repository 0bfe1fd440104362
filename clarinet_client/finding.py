"""Finding a thing by what people call it."""

from collections.abc import Iterable
from typing import Any, TypeVar

from clarinet_client.errors import NotFound

T = TypeVar("T")


def named(kind: str, wanted: str, *lists: Iterable[T]) -> T:
    """The one of these rows with that id, name or number; of several lists the first that has it.

    Raises:
        NotFound: there is none.
    """
    for rows in lists:
        every: list[Any] = list(rows)  # TypedDicts, of which some have a name and some a number
        for key in ("id", "number", "name"):  # a run may be called by another's number
            for row in every:
                if key in row and str(row[key]) == wanted:
                    found: T = row
                    return found
    detail = f"There is no {kind} called {wanted!r}."
    raise NotFound(404, {"type": "about:blank", "title": "Not Found", "status": 404, "detail": detail})
