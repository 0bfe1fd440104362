"""JSON that may come from anywhere, with one kind of error."""

import json
from typing import Any


def json_of(text: str | bytes) -> Any:
    """What a text says in JSON.

    Raises:
        ValueError: it is no JSON, not in UTF-8, nested more deeply than Python reads, or has a number of more
            digits than that.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error
