"""What migrations make of campaigns that people are answering."""

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import MetaData, insert, select, text

from app.annotation.models import Question, Tally
from app.campaigns.models import Campaign
from app.db import Database
from app.migrate import upgrade
from tests.test_migrated_rows import AT, FIRST_ROWS, ID

pytestmark = pytest.mark.dialects

OTHER = UUID(int=2).hex
DRAWING = {"id": ID, "campaign_id": ID, "number": 2, "seed": "s", "commitment": "c", "dataset_version": 1} | {
    "dataset_digest": "d",
    "first_position": 0,
    "end_position": 4,
    "first_rank": 4,
    "question_count": 2,
    "requested_at": AT,
    "requested_by_id": ID,
    "drawn_at": AT,
    "model_id": ID,
    "floor_percent": 20,
    "round": 1,
    "claim_number": 0,
    "attempts": 0,
}


def put(database: Database, rows: dict[str, list[dict[str, Any]]]) -> None:
    """Rows of tables as they are at the migration before; columns that are gone are left out."""
    with database.engine.begin() as connection:
        schema = MetaData()
        schema.reflect(connection)
        for name in ("user", "dataset"):
            columns = schema.tables[name].c
            row = {column: value for column, value in FIRST_ROWS[name].items() if column in columns}
            connection.execute(insert(schema.tables[name]), row)
        for name, some in rows.items():
            for row in some:
                columns = schema.tables[name].c
                known = {column: value for column, value in row.items() if column in columns}
                connection.execute(insert(schema.tables[name]), known)


def question(id_: int, **values: object) -> dict[str, object]:
    """One of the campaign about the picture of its number."""
    common = FIRST_ROWS["question"] | {"id": id_, "example_id": id_, "rank": id_, "is_waiting": True}
    return common | values


def pictures(*digests: str) -> list[dict[str, object]]:
    """Numbered from 1."""
    return [
        FIRST_ROWS["example"] | {"id": place + 1, "position": place, "digest": digest}
        for place, digest in enumerate(digests)
    ]


def test_a_round_by_belief_expects_as_many_yes_as_its_questions_say(empty: Database) -> None:
    upgrade(empty.engine, "0071")
    others = FIRST_ROWS["campaign"] | {"id": OTHER, "name": "uniform"}
    by_belief = {"drawing": 2, "round": 1}
    put(
        empty,
        {
            "example": pictures("a", "b"),
            "campaign": [FIRST_ROWS["campaign"], others],
            "question": [
                question(1, probability=0.25),
                question(2, probability=0.25),
                question(3, example_id=1, probability=0.75, **by_belief),
                question(4, example_id=2, probability=0.5, **by_belief),
                question(5, example_id=2, probability=0.5, purpose="gold", **by_belief | {"round": -1}),
            ],
            "campaign_drawing": [DRAWING],
        },
    )

    upgrade(empty.engine, "0073")

    with empty.read() as session:
        rows = session.execute(text("SELECT name, believed_count, believed_yes FROM campaign ORDER BY name"))
        assert [tuple(row) for row in rows] == [("C", 2, 1.25), ("uniform", 0, 0.0)]


def test_pictures_beside_a_class_are_asked_of_nobody_unless_somebody_answered(empty: Database) -> None:
    """Two others have the bytes of what stands there, one of them with an answer; one is another picture."""
    upgrade(empty.engine, "0073")
    closed = FIRST_ROWS["campaign"] | {"id": OTHER, "name": "closed", "state": "closed"}
    shown = FIRST_ROWS["campaign_class"] | {"example_ids": [1]}
    put(
        empty,
        {
            "example": pictures("cat", "cat", "cat", "dog"),
            "campaign": [FIRST_ROWS["campaign"], closed],
            "campaign_class": [shown, shown | {"campaign_id": OTHER}],
            "question": [
                question(1),
                question(2),
                question(3, is_waiting=False),
                question(4),
                question(5, example_id=2, purpose="gold", round=-1, is_waiting=False),
                question(6, example_id=1, campaign_id=OTHER),
            ],
            "answer": [FIRST_ROWS["answer"] | {"question_id": 3}],
        },
    )

    upgrade(empty.engine)

    with empty.read() as session:
        rows = session.scalars(select(Question).order_by(Question.id)).all()
        assert [row.id for row in rows if row.is_set_aside] == [1, 2, 5]
        assert [row.id for row in rows if row.is_waiting] == [4, 6]
        [tally] = session.scalars(select(Tally)).all()
        assert (tally.campaign_id, tally.finished, tally.yes) == (UUID(ID), 2, 0)
        assert session.get_one(Campaign, UUID(ID)).question_count == 1


def test_answers_to_a_first_yes_are_counted_of_old_campaigns(empty: Database) -> None:
    """One is confirmed; one was answered by a no, one too fast, one taken back; one began with a no."""
    upgrade(empty.engine, "0074")
    said = {1: ("yes", "yes"), 2: ("yes", "no"), 3: ("yes", "yes"), 4: ("yes", "no"), 5: ("no", "no")}
    unlike: dict[tuple[int, int], dict[str, object]] = {
        (3, 1): {"is_hasty": True},
        (4, 0): {"superseded_at": AT},
    }
    answers: list[dict[str, object]] = []
    leases: list[dict[str, object]] = []
    for id_, values in said.items():
        for slot, value in enumerate(values):
            place = {"id": 2 * id_ + slot, "question_id": id_, "user_id": (ID, OTHER)[slot]}
            key = UUID(int=100 + 2 * id_ + slot).hex
            row = FIRST_ROWS["answer"] | place | {"value": value, "key": key, "is_hasty": False}
            answers.append(row | unlike.get((id_, slot), {}))
            leases.append(FIRST_ROWS["lease"] | place | {"slot": slot, "expires_at": None})
    zeros = dict.fromkeys(
        ("yes", "no", "unsure", "first_yes", "first_no", "finished", "timed", "active_ms"), 0
    )
    tally = {"campaign_id": ID, "candidate_class": FIRST_ROWS["question"]["candidate_class"], "last_at": AT}
    put(
        empty,
        {
            "user": [FIRST_ROWS["user"] | {"id": OTHER, "email": "other@example.org", "name": "Other"}],
            "example": pictures("a", "b", "c", "d", "e"),
            "campaign": [FIRST_ROWS["campaign"]],
            "question": [question(id_, slots=2, is_waiting=False) for id_ in said],
            "lease": leases,
            "answer": answers,
            "tally": [tally | zeros | {"user_id": person} for person in (ID, OTHER)],
        },
    )

    upgrade(empty.engine)

    with empty.read() as session:
        rows = {row.user_id: (row.confirmed, row.denied) for row in session.scalars(select(Tally))}
        assert rows == {UUID(ID): (0, 0), UUID(OTHER): (1, 1)}
