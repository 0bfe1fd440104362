"""Many at once, on real connections: versions without gaps, and an alias that moves step by step."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from uuid import UUID

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.db import Database
from app.journal.models import Action, Entry
from app.registry import aliases, naming, predictions, service
from app.registry.errors import ModelNotFound
from app.registry.models import Model, ModelName
from app.stores.folder import FolderStorage
from tests.app.accounts.conftest import committed, committing_app  # noqa: F401  # fixtures
from tests.app.accounts.test_races import at_once
from tests.factories import NOW, make_dataset, make_run, make_token, make_user
from tests.onnx_models import bright_onnx, make_model
from tests.pictures import grey_png

pytestmark = [pytest.mark.long, pytest.mark.dialects]

MANY = 6
ASKED = 12


def publish(session: Session, *, trial_id: UUID) -> None:
    """Publish a model, as a trainer does in the transaction that ends its trial."""
    service.publish_model(session, trial_id=trial_id, key="k", digest="d", size_bytes=1, card={}, now=NOW)


def move(session: Session, *, model_id: UUID, by: User) -> None:
    """Let the alias stand for a model."""
    aliases.set_alias(session, session.get_one(Model, model_id), "production", by=by, now=NOW)


def test_versions_have_no_gaps_and_each_move_of_an_alias_begins_where_the_last_ended(
    committed: Database,  # noqa: F811
    storage: FolderStorage,
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
        stands = aliases.model_under(session, name, "production", by=admin).id
    versions = [line.details["version"] for line in lines]
    assert [line.details.get("before") for line in lines] == [None, *(f"version {v}" for v in versions[:-1])]
    assert stands == models[versions[-1]]


def test_no_answer_by_an_alias_mixes_two_models_while_it_moves(
    committed: Database,  # noqa: F811
    committing_app: FastAPI,  # noqa: F811
    storage: FolderStorage,
) -> None:
    """Of every picture the second version says the opposite, in other words."""
    with committed.write() as session:
        plain = make_model(session, storage)
        opposite = make_model(session, storage, classes=("hell", "dunkel"), onnx_file=bright_onnx([0, 255]))
        admin = make_user(session, role="admin")
        headers = {"Authorization": f"Bearer {make_token(session, admin)}"}
        for model in (plain, opposite):
            naming.describe(session, model, name="Shades", by=admin, now=NOW)
        aliases.set_alias(session, plain, "production", by=admin, now=NOW)
        session.commit()
        words = {1: (plain.digest, "light"), 2: (opposite.digest, "dunkel")}
        turns = [opposite.id, plain.id]
    pictures = [("pictures", (f"{place}.png", grey_png(250))) for place in range(5)]
    is_over = threading.Event()

    def keep_moving() -> int:
        moves = 0
        while not is_over.is_set():
            with committed.write.begin() as session:
                move(session, model_id=turns[moves % 2], by=admin)
            moves += 1
        return moves

    with TestClient(committing_app, headers=headers) as client, ThreadPoolExecutor(5) as pool:
        here = "/api/v1/model-names/Shades/aliases/production/predict"
        moving = pool.submit(keep_moving)
        try:
            asked = [pool.submit(client.post, here, files=pictures) for _ in range(ASKED)]
            answers = [future.result(60).json() for future in asked]
        finally:
            is_over.set()
        moves = moving.result(60)

    assert moves > ASKED / 4
    for said in answers:
        digest, word = words[said["version"]]
        assert said["digest"] == digest
        assert [one["predicted_class"] for one in said["pictures"]] == [word] * 5
    assert {said["version"] for said in answers} == {1, 2}


def test_a_dataset_is_not_predicted_by_a_model_that_is_being_deleted(
    committed: Database,  # noqa: F811
    storage: FolderStorage,
) -> None:
    with committed.write() as session:
        model = make_model(session, storage)
        dataset = make_dataset(session, storage)
        admin = make_user(session, role="admin")
        session.commit()
        session.refresh(model)
    has_begun = threading.Event()

    def ask() -> None:
        has_begun.set()
        with committed.write.begin() as session:
            predictions.predict_dataset(session, storage, model, dataset.id, by=admin, now=NOW)

    with ThreadPoolExecutor(1) as pool:
        with committed.write.begin() as session:
            session.execute(delete(Model).where(Model.id == model.id))
            asked = pool.submit(ask)
            has_begun.wait()
            time.sleep(0.2)  # it waits for us
        with pytest.raises(ModelNotFound):
            asked.result(60)
