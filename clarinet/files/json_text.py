"""JSON that may come from anywhere, with one kind of error."""

import json
from collections import Counter
from typing import Any


class KeyTwice(ValueError):
    """An object has a key twice, of which one would be lost."""

    def __init__(self, key: str) -> None:
        super().__init__(f"its JSON has the key {key!r:.80} twice in an object")
        self.key = key


def json_of(text: str | bytes, *, keys_once: bool = False) -> Any:
    """What a text says in JSON.

    Args:
        text: to be read.
        keys_once: whether a key that an object has twice is an error; else the last one counts.

    Raises:
        KeyTwice: with `keys_once`.
        ValueError: it is no JSON, not in UTF-8, nested more deeply than Python reads, or has a number of more
            digits than that.
    """
    try:
        return json.loads(text, object_pairs_hook=once if keys_once else None)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are all there once, for `object_pairs_hook`; raises KeyTwice."""
    made = dict(pairs)
    if len(made) < len(pairs):
        ((key, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise KeyTwice(key)
    return made
