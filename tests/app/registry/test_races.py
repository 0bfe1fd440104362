"""Many at once, on real connections: versions without gaps, and an alias that moves step by step."""

from functools import partial
from uuid import UUID

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.db import Database
from app.journal.models import Action, Entry
from app.registry import aliases, service
from app.registry.models import Model, ModelName
from app.storage import Storage
from tests.app.accounts.conftest import committed  # noqa: F401  # a fixture
from tests.app.accounts.test_races import at_once
from tests.factories import NOW, make_run, make_user

pytestmark = [pytest.mark.long, pytest.mark.dialects]

MANY = 6


def publish(session: Session, *, trial_id: UUID) -> None:
    """Publish a model, as a trainer does in the transaction that ends its trial."""
    service.publish_model(session, trial_id=trial_id, key="k", digest="d", size_bytes=1, card={}, now=NOW)


def move(session: Session, *, model_id: UUID, by: User) -> None:
    """Let the alias stand for a model."""
    aliases.set_alias(session, session.get_one(Model, model_id), "production", by=by, now=NOW)


def test_versions_have_no_gaps_and_each_move_of_an_alias_begins_where_the_last_ended(
    committed: Database,  # noqa: F811
    storage: Storage,
) -> None:
    with committed.write.begin() as session:
        run = make_run(session, storage, train=2, seeds=range(MANY), state="succeeded")
        admin = make_user(session, role="admin")
        trial_ids = [trial.id for trial in run.trials]

    published = at_once(committed, [partial(publish, trial_id=trial_id) for trial_id in trial_ids])
    with committed.read() as session:
        models = {model.version: model.id for model in session.scalars(select(Model))}
    moved = at_once(committed, [partial(move, model_id=model_id, by=admin) for model_id in models.values()])

    assert published == moved == [True] * MANY
    assert sorted(models) == list(range(1, MANY + 1))
    with committed.read() as session:
        [name] = session.scalars(select(ModelName.name))
        lines = session.scalars(
            select(Entry).where(Entry.action == Action.ALIAS_MOVED).order_by(Entry.id)
        ).all()
        stands = aliases.model_of(session, name, "production")
    versions = [line.details["version"] for line in lines]
    assert [line.details.get("before") for line in lines] == [None, *(f"version {v}" for v in versions[:-1])]
    assert stands == models[versions[-1]]
