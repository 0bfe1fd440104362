"""What migrations make of what people asked for, and of how files call people."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from alembic import command
from sqlalchemy import MetaData, insert, select
from sqlalchemy.orm import selectinload

from app.campaigns.models import Campaign
from app.db import Database
from app.labels.importing.statements import imported_labels
from app.labels.models import ImportedAnswer, LabelImport
from app.migrate import alembic_config
from app.notices.models import Subscription
from tests.test_migrated_rows import FIRST_ROWS, ID

pytestmark = pytest.mark.dialects

AT = datetime(2026, 11, 21, tzinfo=UTC)


def test_subscriptions_of_who_is_no_admin_end(empty: Database) -> None:
    config = alembic_config()
    people: dict[str, dict[str, object]] = {
        "admin": {},
        "reviewer": {"role": "reviewer"},
        "disabled": {"disabled_at": AT},
        "both": {"disabled_at": AT, "role": "annotator"},
    }
    with empty.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0078")
        schema = MetaData()
        schema.reflect(connection)
        for number, (name, changed) in enumerate(people.items(), 1):
            id_ = UUID(int=number).hex
            person = FIRST_ROWS["user"] | {"id": id_, "email": name} | changed
            connection.execute(insert(schema.tables["user"]), person)
            row: dict[str, object] = {"id": id_, "url": f"https://{name}.example.org/", "secret": "whsec_"}
            row |= {"events": ["run-ended"], "created_by_id": id_, "created_at": AT}
            connection.execute(insert(schema.tables["subscription"]), row)
        connection.commit()

        command.upgrade(config, "head")

    with empty.read() as session:
        found = {
            (one.url or "")[8:-13]: (one.ended_because, one.ended_at is not None)
            for one in session.scalars(select(Subscription))
        }
    assert found == {
        "admin": (None, False),
        "reviewer": ("role-changed", True),
        "disabled": ("account-disabled", True),
        "both": ("account-disabled", True),
    }


def test_people_of_imports_who_are_written_in_two_ways_are_one(empty: Database) -> None:
    config = alembic_config()
    said = {  # by import: position, class, value, person
        1: [(1, 0, "yes", "Jose\u0301"), (2, 0, "yes", "Jose\u0301"), (3, 1, "no", "Ada"), (1, 0, "no", "")],
        2: [(1, 0, "yes", "Jos\u00e9"), (2, 0, "no", "JOSE\u0301"), (3, 1, "yes", "Eve")],
        3: [(1, 0, "yes", "jos\u00e9")],  # of another campaign
    }
    with empty.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0078")
        schema = MetaData()
        schema.reflect(connection)
        fill = schema.tables
        for name in ("user", "dataset"):
            known = {column: value for column, value in FIRST_ROWS[name].items() if column in fill[name].c}
            connection.execute(insert(fill[name]), known)
        for position in (1, 2, 3):
            row = FIRST_ROWS["example"] | {"id": position, "position": position}
            connection.execute(insert(fill["example"]), row)
        for number in (1, 2):
            row = FIRST_ROWS["campaign"] | {"id": UUID(int=number).hex, "name": f"C{number}"}
            connection.execute(
                insert(fill["campaign"]), {name: row[name] for name in row if name in fill["campaign"].c}
            )
            for position in (0, 1):
                row = FIRST_ROWS["campaign_class"] | {"campaign_id": UUID(int=number).hex}
                row |= {"position": position, "name": f"c{position}"}
                connection.execute(insert(fill["campaign_class"]), row)
        for number, rows in said.items():
            made: dict[str, object] = {"id": UUID(int=number).hex, "filename": "l.csv", "state": "ready"}
            made |= {"campaign_id": UUID(int=1 + number // 3).hex, "digest": str(number), "created_by_id": ID}
            made |= {"yes": 0, "no": 0, "unsure": 0, "claim_number": 0, "attempts": 0, "notes": ["Read."]}
            made["created_at"] = AT
            connection.execute(insert(fill["label_import"]), made)
            for example, class_, value, who in rows:
                answer = {"import_id": made["id"], "example_id": example, "candidate_class": class_}
                connection.execute(
                    insert(fill["imported_answer"]), answer | {"value": value, "annotator": who}
                )
        connection.commit()

        command.upgrade(config, "head")

    with empty.read() as session:
        rows_now = session.scalars(select(ImportedAnswer).order_by(ImportedAnswer.id)).all()
        notes = {one.digest: one.notes for one in session.scalars(select(LabelImport))}
        campaign = session.get_one(Campaign, UUID(int=1), options=[selectinload(Campaign.classes)])
        labels = list(imported_labels(session, campaign))
    first, other, capital = "Jose\u0301", "Jos\u00e9", "JOSE\u0301"
    assert [one.annotator for one in rows_now] == [first, first, "Ada", "", first, first, "Eve", "jos\u00e9"]
    assert notes["1"] == ["Read."]
    assert notes["3"] == ["Read."]
    assert notes["2"] == [
        "Read.",
        f"{first!r} is the person who was called {other!r} and {capital!r}, too, and counts once. "
        "They contradict themselves about 1 picture, and nothing that they say of these counts.",
    ]
    assert labels == []  # one yes against one no, a contradiction, and one against one
