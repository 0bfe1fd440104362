"""A campaign's raw answers as files: what, when, how fast and under which key; by whom only if asked."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import String, select, type_coerce
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.models import Answer, AnswerValue, Purpose, Question
from app.campaigns.models import Campaign
from app.datasets.models import Example
from app.datasets.versions import train_rows
from app.labels.exports import formats, label_studio
from app.labels.exports.formats import ExportFormat

FETCHED = 5_000  # rows at a time
PSEUDONYM_BYTES = 8
# In an npz their number says the value.
VALUES = (AnswerValue.NO, AnswerValue.YES, AnswerValue.UNSURE, AnswerValue.UNUSABLE)
PURPOSES = tuple(Purpose)  # likewise


ARROW = {
    "answer_id": "int64",
    "question_id": "int64",
    "example_id": "int64",
    "position": "int64",
    "filename": "string",
    "drawing": "int64",
    "round": "int64",
    "class": "int64",
    "class_name": "string",
    "probability": "float64",
    "purpose": "string",
    "value": "string",
    "annotator": "string",
    "annotator_name": "string",
    "simulated": "bool",
    "response_ms": "int64",
    "key": "string",
    "created_at": "timestamp",
}
PLACES = {name: place for place, name in enumerate(ARROW)}
NUMPY = {
    "answer_ids": "<i8",
    "question_ids": "<i8",
    "example_ids": "<i8",
    "positions": "<i8",
    "filenames": "",  # bytes in UTF-8, as many as the longest needs
    "drawings": "<i4",
    "rounds": "<i4",
    "classes": "<i4",
    "probabilities": "<f8",
    "purposes": "|u1",
    "values": "|u1",
    "annotators": "<i4",
    "simulated": "|b1",
    "response_ms": "<i8",
    "keys": "|S36",
    "created_at": "<M8[us]",
}


@dataclass(frozen=True, slots=True)
class Annotator:
    """How an export calls somebody."""

    id: str
    name: str
    simulated: bool


@dataclass(frozen=True, slots=True)
class People:
    """Who answered: by pseudonym, or by id and name.

    A pseudonym stands for one person in one campaign and is the same in each export of it. Nobody without
    the server's secret can tell whose it is, or whether two campaigns' pseudonyms are one person.
    """

    session: Session
    campaign_id: UUID
    secret: bytes | None  # None: ids and names

    def annotator(self, user_id: UUID, text: Callable[[str], str] = str) -> Annotator:
        """How this person is called; `text` is applied to a name."""
        user = self.session.get_one(User, user_id)
        if self.secret is None:
            return Annotator(str(user_id), text(user.name), user.is_simulated)
        key = blake2b(self.secret).digest()
        about = self.campaign_id.bytes + user_id.bytes
        pseudonym = blake2b(about, key=key, digest_size=PSEUDONYM_BYTES).hexdigest()
        return Annotator(pseudonym, "", user.is_simulated)


def answer_rows(
    session: Session, campaign: Campaign, people: People, *, text: Callable[[str], str] = str
) -> Iterator[formats.Row]:
    """Every answer that stands, by picture, round and time; columns as in ARROW, times as ISO text.

    Args:
        session: open until the last row was taken.
        campaign: with its classes.
        people: how annotators are called.
        text: what is done to text that users wrote, `guarded` for one.
    """
    names = [text(name) for name in campaign.class_names]
    # Taken as the driver gives them: objects made of ids, keys and times would cost more than the query.
    as_text = [
        type_coerce(column, String)
        for column in (Question.purpose, Answer.value, Answer.user_id, Answer.key, Answer.created_at)
    ]
    # In the order of the index on questions, so that nothing needs to be sorted as a whole.
    query = (
        select(
            Answer.id,
            Question.id,
            Question.example_id,
            Example.position,
            Example.filename,
            Question.drawing,
            Question.round,
            Question.candidate_class,
            Question.probability,
            Answer.response_ms,
            *as_text,
        )
        .join(Question, Question.id == Answer.question_id)
        .join(Example, Example.id == Question.example_id)
        .where(Question.campaign_id == campaign.id, Answer.superseded_at.is_(None))
        .order_by(Question.example_id, Question.round, Answer.id)
    )
    known: dict[object, Annotator] = {}
    places = train_rows(session, campaign.dataset_id)
    found = session.connection().execute(query, execution_options={"yield_per": FETCHED})
    for id_, question, example, position, filename, *rest in found:
        drawing, round_, class_, chance, ms, purpose, value, by, key, at = rest
        who = known.get(by)
        if who is None:
            who = known[by] = people.annotator(UUID(str(by)), text)
        yield (
            id_,
            question,
            example,
            places.row(position),
            None if filename is None else text(filename),
            drawing,
            round_,
            class_,
            names[class_],
            chance,
            purpose,
            value,
            who.id,
            who.name,
            who.simulated,
            ms,
            _key_text(key),
            _time_text(at),
        )


def _key_text(key: object) -> str:
    """The usual form, from a UUID (PostgreSQL) or 32 digits (SQLite)."""
    if isinstance(key, str):
        return f"{key[:8]}-{key[8:12]}-{key[12:16]}-{key[16:20]}-{key[20:]}"
    return str(key)


def _time_text(at: object) -> str:
    """ISO with microseconds and Z, from a time (PostgreSQL) or text without zone, which is UTC (SQLite)."""
    if isinstance(at, datetime):
        return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    return f"{at}Z".replace(" ", "T")


def pieces(
    rows: Iterable[formats.Row],
    kind: ExportFormat,
    *,
    class_names: Sequence[str],
    image_url: str,
    longest_filename: int = 1,
) -> Iterator[bytes]:
    """An answer file, piece by piece; `image_url` has {example_id} in it. Text in CSV and TSV is safe."""
    match kind:
        case ExportFormat.CSV:
            return formats.csv_pieces(list(ARROW), rows)
        case ExportFormat.TSV:
            return formats.tsv_pieces(list(ARROW), rows)
        case ExportFormat.JSONL:
            return formats.json_pieces(dict(zip(ARROW, row, strict=True)) for row in rows)
        case ExportFormat.PARQUET:
            return formats.parquet_pieces(ARROW, rows)
        case ExportFormat.NPZ:
            people: dict[str, int] = {}
            return formats.npz_pieces(
                NUMPY | {"filenames": f"|S{longest_filename}"},
                _numbers(rows, people),
                names=lambda: {
                    "class_names": np.array(class_names),
                    "annotator_names": np.array(list(people), dtype=np.str_),
                    "value_names": np.array(VALUES),
                    "purpose_names": np.array(PURPOSES),
                },
            )
        case ExportFormat.LABEL_STUDIO:
            return formats.json_array_pieces(_tasks(rows, image_url))


def _numbers(rows: Iterable[formats.Row], people: dict[str, int]) -> Iterator[formats.Row]:
    """Rows as in NUMPY; `people` gets the number of each annotator."""
    purpose_number = {purpose: number for number, purpose in enumerate(PURPOSES)}
    value_number = {value: number for number, value in enumerate(VALUES)}
    picked: Callable[[formats.Row], formats.Row] = itemgetter(
        *map(PLACES.__getitem__, ("answer_id", "question_id", "example_id", "position"))
    )
    drawn: Callable[[formats.Row], formats.Row] = itemgetter(
        *map(PLACES.__getitem__, ("drawing", "round", "class"))
    )
    for row in rows:
        ms = row[PLACES["response_ms"]]
        yield (
            *picked(row),
            (row[PLACES["filename"]] or "").encode(),
            *drawn(row),
            row[PLACES["probability"]],
            purpose_number[row[PLACES["purpose"]]],
            value_number[row[PLACES["value"]]],
            people.setdefault(row[PLACES["annotator"]], len(people)),
            row[PLACES["simulated"]],
            -1 if ms is None else ms,
            row[PLACES["key"]],
            row[PLACES["created_at"]].removesuffix("Z"),
        )


def _tasks(rows: Iterable[formats.Row], image_url: str) -> Iterator[dict[str, Any]]:
    """A task per question with an annotation per answer."""
    about: Callable[[formats.Row], formats.Row] = itemgetter(
        *map(
            PLACES.__getitem__,
            ("example_id", "position", "filename", "class", "class_name", "question_id", "purpose"),
        )
    )
    for _, group in groupby(rows, key=itemgetter(PLACES["question_id"])):
        found = list(group)
        example_id, position, filename, class_, class_name, question_id, purpose = about(found[0])
        yield {
            "data": {
                **label_studio.data_of(example_id, position, filename, image_url),
                "class": class_,
                "class_name": class_name,
                "question_id": question_id,
                "purpose": purpose,
            },
            "annotations": [_annotation(*_said(row)) for row in found],
        }


_said: Callable[[formats.Row], formats.Row] = itemgetter(
    *map(PLACES.__getitem__, ("value", "annotator", "annotator_name", "response_ms", "created_at"))
)


def _annotation(value: str, annotator: str, name: str, ms: int | None, created_at: str) -> dict[str, Any]:
    region = label_studio.choice(label_studio.ANSWER, [value])
    # The people of a Label Studio installation are its own; a region's note may name anybody.
    region["meta"] = {"text": [name or annotator]}
    return {
        "result": [region],
        "created_at": created_at,
        "lead_time": None if ms is None else ms / 1000,
    }
