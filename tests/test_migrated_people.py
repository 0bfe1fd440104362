"""What migrations make of what people asked for."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from alembic import command
from sqlalchemy import MetaData, insert, select

from app.db import Database
from app.migrate import alembic_config
from app.notices.models import Subscription
from tests.test_migrated_rows import FIRST_ROWS

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
            row = {
                "id": id_,
                "url": f"https://{name}.example.org/",
                "secret": "whsec_",
                "events": ["run-ended"],
            }
            row |= {"created_by_id": id_, "created_at": AT}
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
