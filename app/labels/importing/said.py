"""What a file of labels says of one picture and one class, and the values that it says it with. Pure."""

import enum
from dataclasses import dataclass
from datetime import UTC, datetime

from app.annotation.models import AnswerValue, Purpose
from clarinet.files import yes_no

MAX_ANNOTATOR = 120
MAX_INT = 2**63 - 1
MAX_CELL = 1_000
NOT_LABELS = {Purpose.GOLD.value, Purpose.EVALUATION.value}  # questions whose answers make no labels
UNUSABLE = "unusable"
_VALUES = {
    yes_no.YES: AnswerValue.YES,
    yes_no.NO: AnswerValue.NO,
    yes_no.UNSURE: AnswerValue.UNSURE,
}


class Reading(enum.Enum):
    """What a file's classes are, by the name of their column."""

    NAMES = "class_name"
    PLACES = "class_index"
    EITHER = "class"


class BadLine(Exception):
    """A line, or task, of a file that cannot be taken; `why` continues a sentence about it."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(why)
        self.number = number
        self.why = why


@dataclass(frozen=True, slots=True)
class Also:
    """A class in a further column, which must be the same."""

    column: str
    text: str
    reading: Reading


@dataclass(frozen=True, slots=True)
class AnswerInFile:
    """What a file says about one picture and one class."""

    number: int  # of the line or task
    filename: str  # of the picture, "" where the file does not say it
    position: int | None  # of the picture in its dataset
    example_id: int | None  # its id here, which counts where the others tell no picture; one of them is known
    class_name: str  # or its place, as the file's reading says
    value: AnswerValue
    annotator: str
    answered_at: datetime | None
    also: tuple[Also, ...] = ()


def answer_of(text: str, number: int) -> AnswerValue:
    """What a word answers, in the languages that the product speaks."""
    if text.lower() == UNUSABLE:
        return AnswerValue.UNUSABLE
    found = yes_no.meaning(text)
    if found is None:
        raise BadLine(number, f"answers {text[:40].lower()!r} instead of yes, no, unsure or unusable")
    return _VALUES[found]


def cell(text: str, number: int) -> str:
    if len(text) > MAX_CELL:
        raise BadLine(number, f"has a value of more than {MAX_CELL} characters")
    return text


def person(given: str) -> str:
    return "".join(filter(str.isprintable, given))[:MAX_ANNOTATOR]


def whole(given: object, number: int) -> int | None:
    if given is None or given == "":
        return None
    text = str(given)
    if isinstance(given, bool) or not (text.isascii() and text.isdigit()) or len(text) > len(str(MAX_INT)):
        raise BadLine(number, f"names the picture {text[:40]!r}, which is no whole number")
    return min(int(text), MAX_INT)


def whole_if_any(given: object) -> int | None:
    """A number that tells nothing new; another program may write something else there."""
    try:
        return whole(given, 0)
    except BadLine:
        return None


def time_of(given: object, number: int) -> datetime | None:
    if not given:
        return None
    try:
        at = datetime.fromisoformat(str(given))
    except ValueError as error:
        raise BadLine(
            number, f"has the time {str(given)[:40]!r}, which is not like 2026-11-21T12:00Z"
        ) from error
    try:
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError as error:
        raise BadLine(number, f"has the time {str(given)[:40]!r}, which no calendar has") from error
