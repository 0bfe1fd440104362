"""Files of labels from elsewhere, CSV or Label Studio JSON, as what they say. Pure.

All that is hostile stops here.
"""

import csv
import enum
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any

from app.annotation.models import AnswerValue, Purpose
from app.labels.errors import BadImport
from app.labels.exports import label_studio
from app.labels.exports.answers import ARROW as ANSWERS_OUT
from app.labels.exports.labels import ARROW as LABELS_OUT
from clarinet.files.label_table import LabelKind
from clarinet.files.refusal import MOST_NAMED
from clarinet.files.tables import csv_rows, separator_of, unguarded

MAX_BYTES = 16 * 1024 * 1024
MAX_ROWS = 200_000
MAX_ANNOTATOR = 120
MAX_INT = 2**63 - 1
MAX_CELL = 1_000
NOT_LABELS = {Purpose.GOLD.value, Purpose.EVALUATION.value}  # questions whose answers make no labels
VALUES = {
    "yes": AnswerValue.YES,
    "true": AnswerValue.YES,
    "1": AnswerValue.YES,
    "no": AnswerValue.NO,
    "false": AnswerValue.NO,
    "0": AnswerValue.NO,
    "unsure": AnswerValue.UNSURE,
    "can't tell": AnswerValue.UNSURE,
    "unusable": AnswerValue.UNUSABLE,
}
OF_KIND = {LabelKind.TRUE: AnswerValue.YES, LabelKind.COMPLEMENTARY: AnswerValue.NO}
PICTURE = {"filename", "file_name", "file", "position", "example_id"}  # columns; one is needed of each
LABEL = "label"  # what others call the column of classes
CLASS = {"class", "class_name", "class_index", LABEL}
ANSWER = {"answer", "value", "kind"}
KNOWN = {
    *PICTURE,
    *CLASS,
    *ANSWER,
    "annotator",
    "answered_at",
    "created_at",
    "purpose",
    *ANSWERS_OUT,
    *LABELS_OUT,
}
LIKENESS = 0.8  # of a column's name to one that is known, from which on it is taken for a misspelling
WORDS = {value for value in VALUES if not value.isdigit()}  # by which a column of another name shows itself
_NO_JSON = "The file begins like JSON and is none. Nothing was stored."
_SPACE = re.compile(r"[ \t\r\n]*")
_IMAGE = re.compile(r"/examples/(\d{1,18})/image$")


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
class FileOfLabels:
    """What a file says, in its order, and how it calls classes."""

    noun: str  # what it consists of: "line" or "task"
    answers: "list[AnswerInFile]"
    bad: list[BadLine]  # of many the first MOST_NAMED and one
    reading: Reading


@dataclass(frozen=True, slots=True)
class AnswerInFile:
    """What a file says about one picture and one class."""

    number: int  # of the line or task
    filename: str  # of the picture, "" where the file does not say it
    position: int | None  # of the picture in its dataset
    example_id: int | None  # its id; one of the three is known
    class_name: str  # or its place, as `reading` says
    value: AnswerValue
    annotator: str
    answered_at: datetime | None


def read_answers(data: bytes) -> FileOfLabels:
    """What a file says, in its order, and every line of it that is not understood.

    Raises:
        BadImport: too large, neither CSV nor JSON, or nothing is in it.
    """
    if len(data) > MAX_BYTES:
        raise too_large()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadImport("The file is not in UTF-8. Nothing was stored.") from error
    said: list[AnswerInFile] = []
    bad: list[BadLine] = []
    is_json = text.lstrip()[:1] in {"[", "{"}
    for item in _tasks(text) if is_json else _lines(text):
        if isinstance(item, BadLine):
            bad.append(item)
        else:
            said.append(item)
        if len(bad) > MOST_NAMED:
            break
        if len(said) > MAX_ROWS:
            raise BadImport(
                f"The file says more than {MAX_ROWS} things. Cut it in parts; nothing was stored."
            )
    if not said and not bad:
        raise BadImport("The file has no labels. Nothing was stored.")
    return FileOfLabels(
        "task" if is_json else "line", said, bad, Reading.EITHER if is_json else _reading(text)
    )


def too_large() -> BadImport:
    """Why a file is not even looked into."""
    return BadImport(
        f"The file has more than {MAX_BYTES // 1024**2} MB. Cut it in parts; nothing was stored."
    )


def _header(text: str) -> set[str]:
    """The columns of a table."""
    return set(csv_rows(io.StringIO(text, newline=""), separator=separator_of(text)).fieldnames or ())


def _reading(text: str) -> Reading:
    """What the classes of a table are: a column of names goes before one of places."""
    header = _header(text)
    return next((reading for reading in Reading if reading.value in header), Reading.EITHER)


def _lines(text: str) -> Iterator[AnswerInFile | BadLine]:
    reader = None
    try:
        header = _header(text)
        if not PICTURE & header or not CLASS & header:
            raise BadImport(
                "The first line must name the columns: filename, position or example_id; class (or label), "
                "class_name or class_index; and, if you have them, answer (yes, no, unsure, unusable), "
                "annotator, answered_at. Nothing was stored."
            )
        _refuse_misspelt(header)
        column = _reading(text).value
        column = column if column in header else LABEL
        reader = csv_rows(io.StringIO(text, newline=""), separator=separator_of(text))
        for row in reader:
            if (row.get("purpose") or "").strip() in NOT_LABELS:
                continue
            try:
                yield _of_line(row, reader.line_num, column)
            except BadLine as bad:
                yield bad
    except csv.Error as error:
        line = reader.line_num if reader else 0
        raise BadImport(f"What follows line {line} is no CSV. Nothing was stored.") from error


def _refuse_misspelt(header: set[str]) -> None:
    """Raise BadImport of a column that is called nearly as one that we know: what it says would be lost."""
    for name in sorted(header - KNOWN):
        near = get_close_matches(name.strip().lower(), KNOWN, n=1, cutoff=LIKENESS)
        if near:
            raise BadImport(
                f"There is no column {name[:40]!r} here. Did you mean {near[0]!r}? Else give it "
                "another name, or take it out. Nothing was stored."
            )


def _of_line(row: Mapping[Any, Any], number: int, column: str) -> AnswerInFile:
    if None in row or None in row.values():
        raise BadLine(number, "has more or fewer values than the first line names")
    given = {name: _cell(cell, number).strip() for name, cell in row.items()}
    answer = (given.get("answer") or given.get("value") or "").lower()
    kind = given.get("kind", "").lower()
    if answer and answer not in VALUES:
        raise BadLine(number, f"answers {answer[:40]!r} instead of yes, no, unsure or unusable")
    if not answer and kind and kind not in set(OF_KIND):
        raise BadLine(number, f"is of the kind {kind[:40]!r} instead of true or complementary")
    if not answer and not kind:
        _refuse_untold_answer(given, number)
    of_kind = OF_KIND[LabelKind(kind)] if kind and not answer else AnswerValue.YES  # a class label
    return AnswerInFile(
        number,
        position=_whole(given.get("position", ""), number),
        example_id=_whole(given.get("example_id", ""), number),
        filename=unguarded(given.get("filename") or given.get("file_name") or given.get("file") or ""),
        class_name=unguarded(given[column]),
        value=VALUES[answer] if answer else of_kind,
        annotator=_name(unguarded(given.get("annotator", ""))),
        answered_at=_time(given.get("answered_at") or given.get("created_at") or "", number),
    )


def _refuse_untold_answer(given: Mapping[str, str], number: int) -> None:
    """Raise BadLine where a column that we do not know answers: without it every line would be a yes."""
    for name in given.keys() - KNOWN:
        if given[name].lower() in WORDS:
            why = f"says {given[name]!r} in the column {name[:40]!r}; call it answer, or take it out"
            raise BadLine(number, why)


def _tasks(text: str) -> Iterator[AnswerInFile | BadLine]:
    for number, task in enumerate(_items(text), 1):
        try:
            yield from _of_task(task, number)
        except BadLine as bad:
            yield bad
        except (KeyError, TypeError, AttributeError, IndexError, RecursionError):
            yield BadLine(number, "is not what Label Studio exports (its JSON, not JSON-MIN)")


def _items(text: str) -> Iterator[Any]:
    """The items of a JSON array one by one: a large file as objects takes thirty times its size."""
    place = _past_space(text, 0)
    if text[place] != "[":
        raise BadImport("The file is no list of Label Studio tasks. Nothing was stored.")
    decoder = json.JSONDecoder()
    place = _past_space(text, place + 1)
    try:
        while text[place] != "]":
            item, place = decoder.raw_decode(text, place)
            yield item
            place = _past_space(text, place)
            if text[place] == ",":
                place = _past_space(text, place + 1)
            elif text[place] != "]":
                raise BadImport(_NO_JSON)
        if _past_space(text, place + 1) != len(text):
            raise BadImport(_NO_JSON)
    except (ValueError, RecursionError, IndexError) as error:
        raise BadImport(_NO_JSON) from error


def _past_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    assert found is not None  # it matches nothing, too
    return found.end()


def _of_task(task: dict[str, Any], number: int) -> Iterator[AnswerInFile]:
    data = task["data"]
    if data.get("purpose") in NOT_LABELS:
        return
    position, example_id = data.get("position"), data.get("example_id")
    if position is None and example_id is None:
        found = _IMAGE.search(str(data.get("image", "")))
        example_id = found[1] if found else None
    for annotation in task.get("annotations", ()):
        if annotation.get("was_cancelled"):
            continue
        for region in annotation["result"]:
            if region.get("type") != "choices":
                continue
            note = (region.get("meta") or {}).get("text") or [""]
            by = annotation.get("completed_by", note[0])
            who = by.get("email", by.get("id", "")) if isinstance(by, dict) else by
            for class_name, value in _chosen(region, data, number):
                yield AnswerInFile(
                    number,
                    filename=_cell(str(data.get("filename") or ""), number),
                    position=_whole(position, number),
                    example_id=_whole(example_id, number),
                    class_name=class_name,
                    value=value,
                    annotator=_name(str("" if who is None else who)),
                    answered_at=_time(annotation.get("created_at") or "", number),
                )


def _chosen(region: dict[str, Any], data: dict[str, Any], number: int) -> Iterator[tuple[str, AnswerValue]]:
    """Class and value of each choice: an answer to the task's class, or classes that it is or is not."""
    choices = [_cell(str(choice), number) for choice in region["value"]["choices"]]
    control = region["from_name"]
    if control == label_studio.ANSWER:
        for choice in choices:
            if choice.lower() not in VALUES:
                raise BadLine(number, f"answers {choice[:40]!r} instead of yes, no, unsure or unusable")
            yield _cell(str(data["class_name"]), number), VALUES[choice.lower()]
    elif control == label_studio.IS_NOT:
        for choice in choices:
            yield choice, AnswerValue.NO
    else:
        if len(choices) > 1:
            raise BadLine(number, f"chooses {len(choices)} classes at once")
        for choice in choices:
            yield choice, AnswerValue.YES


def _cell(text: str, number: int) -> str:
    if len(text) > MAX_CELL:
        raise BadLine(number, f"has a value of more than {MAX_CELL} characters")
    return text


def _name(given: str) -> str:
    return "".join(filter(str.isprintable, given))[:MAX_ANNOTATOR]


def _whole(given: object, number: int) -> int | None:
    if given is None or given == "":
        return None
    text = str(given)
    if isinstance(given, bool) or not (text.isascii() and text.isdigit()) or len(text) > len(str(MAX_INT)):
        raise BadLine(number, f"names the picture {text[:40]!r}, which is no whole number")
    return min(int(text), MAX_INT)


def _time(given: object, number: int) -> datetime | None:
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
