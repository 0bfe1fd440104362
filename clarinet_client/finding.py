"""Finding a thing by what people call it."""

from collections.abc import Iterable
from typing import Any, TypeVar

from clarinet_client.errors import NotFound

T = TypeVar("T")


def named(kind: str, wanted: str, rows: Iterable[T]) -> T:
    """The one of these rows with that id, name or number.

    Raises:
        NotFound: there is none.
    """
    for row in rows:
        known: Any = row  # a TypedDict, of which some have a name and some a number
        if wanted in {str(known[name]) for name in ("id", "name", "number") if name in known}:
            return row
    detail = f"There is no {kind} called {wanted!r}."
    raise NotFound(404, {"type": "about:blank", "title": "Not Found", "status": 404, "detail": detail})
