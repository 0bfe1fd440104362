"""The details of a line in the words that pages have for them; programs read them as they are. Pure."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from clarinet.recipes.methods import DESCRIPTIONS

DIGITS = 12  # of a digest
# As the forms call what was chosen there.
NAMES: Mapping[str, str] = MappingProxyType(
    {
        "admits": "who may answer",
        "asks_again": "ask others again what a paused person said alone",
        "asks_which": "after a no, ask what the picture shows",
        "by_class": "drawn from each predicted class by itself",
        "class_language": "language of the classes",
        "confirm_yes": "a second person confirms each yes",
        "consensus": "weight of a label",
        "gold_bound": "pause whoever is right less often than",
        "gold_right": "right about known pictures",
        "gold_share": "share of known pictures",
        "gold_wrong": "wrong about known pictures",
        "half_width": "accuracy wanted within",
        "least_card_ms": "shortest look at one picture",
        "least_page_ms": "shortest look at a page",
        "least_picture_ms": "and for each picture on it",
        "modes": "how the pictures are shown",
        "overlap": "people asked about each question, at least",
        "price_per": "paid by",
        "rounds": "questions per picture",
        "setting": "learns from",
        "skip_twins": "ask about the same picture only once",
        "snapshot": "labels",
        "tells_others": "tell annotators what others said",
    }
)
_ANSWERS = {"unsure": "can't tell", "unusable": "cannot be used"}
VALUES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "admits": {"everybody": "everybody with an account", "invited": "members and groups"},
        "answer": _ANSWERS,
        "consensus": {"dawid-skene": "how right it probably is", "majority": "every label the same"},
        "decision": _ANSWERS,
        "method": {method: title for method, (title, _) in DESCRIPTIONS.items()},
        "modes": {"both": "as each person likes", "card": "one at a time", "grid": "in pages"},
        "price_per": {"answer": "the answer", "hour": "the hour"},
        "setting": {"cc": "“no” answers alone", "pc": "“no” and “yes” answers"},
    }
)
_SHARES = {"gold_share", "gold_bound"}


def in_words(details: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Name, words of it and words of its value, of each detail."""
    return [
        (name, NAMES.get(name, name.replace("_", " ")), _value(name, told)) for name, told in details.items()
    ]


def _value(name: str, told: Any) -> str:  # Any: as JSON has it
    if isinstance(told, list):
        return ", ".join(_value(name, one) for one in told)
    if told is None or told == "":
        return "none"
    if isinstance(told, bool):
        return "yes" if told else "no"
    if isinstance(told, int | float):
        return _number(name, told)
    words = str(told)
    return words[:DIGITS] if name == "snapshot" else VALUES.get(name, {}).get(words, words)


def _number(name: str, told: float) -> str:
    if name in _SHARES:
        return f"{100 * told:g} %"
    if name == "half_width":
        return f"{100 * told:g} points"
    return f"{told} ms" if name.endswith("_ms") else str(told)
