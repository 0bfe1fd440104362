"""Predictions of whole datasets: once, whatever dies on the way, with a table at the end."""

import csv
import hashlib
import io
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app import claims, jobs
from app.campaigns.models import Campaign
from app.claims import MAX_ATTEMPTS
from app.clock import utc_now
from app.datasets import service as datasets
from app.datasets.intake.shards import shard_key
from app.datasets.models import Dataset, Example
from app.db import Database
from app.jobs import Job
from app.journal.models import Action, Entry
from app.registry import predictions
from app.registry.inference.limits import MOST_PICTURES
from app.registry.models import Model
from app.registry.prediction_models import Prediction, PredictionState
from app.settings import Settings
from app.storage import Storage
from app.stores.folder import FolderStorage
from tests.factories import make_dataset, make_user
from tests.onnx_models import make_model
from tests.worker.conftest import folder_of
from tests.worker.refusing import SENTENCE, refused
from worker.context import Context
from worker.predicting import predict_dataset
from worker.upkeep import Upkeep

HTML = {"accept": "text/html"}
IMAGES = MOST_PICTURES + 3  # more than one batch


@pytest.fixture
def context(settings: Settings, database: Database, storage: FolderStorage, published: list[Job]) -> Context:
    return Context(settings, database, storage, published.append)


@pytest.fixture
def model(session: Session, storage: FolderStorage) -> Model:
    return make_model(session, storage, classes=("dark", "=light"))


@pytest.fixture
def dataset(session: Session, storage: FolderStorage) -> Dataset:
    """Dark and light images in turns."""
    made = make_dataset(session, storage, name="Shop, spring", train=IMAGES - 2, test=2)
    first = session.scalars(select(Example).where(Example.dataset_id == made.id, Example.position == 0)).one()
    first.filename = "=cmd.png"
    session.commit()
    return made


def asked(client: TestClient, model: Model, dataset: Dataset, key: str = "") -> dict[str, str]:
    headers = {"Idempotency-Key": key} if key else {}
    answer = client.post(
        f"/api/v1/models/{model.id}/predictions", json={"dataset_id": str(dataset.id)}, headers=headers
    )
    assert answer.status_code == 202, answer.text
    made: dict[str, str] = answer.json()
    return made


def test_a_dataset_is_predicted_in_the_background_and_handed_out_as_a_table(
    client: TestClient, session: Session, context: Context, model: Model, dataset: Dataset
) -> None:
    made = asked(client, model, dataset, "k")
    here = f"/api/v1/models/{model.id}/predictions/{made['id']}"
    early = client.get(f"{here}/file")
    waiting = client.get(f"/models/{model.id}/predictions", headers=HTML).text

    predict_dataset(context, UUID(made["id"]))
    session.expire_all()

    told = client.get(here).json()
    file = client.get(f"{here}/file")
    rows = list(csv.reader(io.StringIO(file.text)))
    page = client.get(f"/models/{model.id}/predictions", headers=HTML).text
    assert asked(client, model, dataset, "k")["id"] == made["id"]  # sent again, nothing more is made
    assert (early.status_code, early.json()["type"]) == (409, "/problems/prediction-not-ready")
    assert (told["state"], told["progress"], told["progress_total"]) == ("ready", IMAGES, IMAGES)
    assert file.headers["content-disposition"] == f'attachment; filename="predictions-{made["id"]}.csv"'
    assert told["size_bytes"] == len(file.content)
    assert rows[0] == ["file", "position", "class", "probability_dark", "probability_=light", "refused"]
    assert rows[1][:3] == ["'=cmd.png", "0", "dark"]
    assert [row[1] for row in rows[1:]] == [str(position) for position in range(IMAGES)]
    assert all(float(row[3]) + float(row[4]) == pytest.approx(1, abs=2e-6) for row in rows[1:])
    assert 'hx-trigger="every 1s"' in waiting
    assert f"{here}/file" in page
    assert 'hx-trigger="every 1s"' not in page
    assert client.get(f"/api/v1/models/{model.id}/predictions").json()["items"] == [told]
    assert Action.DATASET_PREDICTED in session.scalars(select(Entry.action)).all()


def test_it_says_of_each_image_what_the_api_says(
    client: TestClient, context: Context, session: Session, model: Model, dataset: Dataset
) -> None:
    made = asked(client, model, dataset)
    predict_dataset(context, UUID(made["id"]))
    session.expire_all()
    example = session.scalars(select(Example).where(Example.dataset_id == dataset.id)).first()
    assert example is not None
    picture = client.get(f"/api/v1/datasets/{dataset.id}/examples/{example.id}/image").content

    answer = client.post(
        f"/api/v1/models/{model.id}/predict",
        content=picture,
        headers={"content-type": "application/octet-stream"},
    )

    file = client.get(f"/api/v1/models/{model.id}/predictions/{made['id']}/file").text
    row = list(csv.reader(io.StringIO(file)))[1 + example.position]
    assert [float(cell) for cell in row[3:-1]] == answer.json()["pictures"][0]["probabilities"]


def test_an_image_that_is_refused_has_its_reason_in_the_table_and_is_counted(
    client: TestClient, session: Session, context: Context, model: Model, dataset: Dataset
) -> None:
    """Here one that was damaged before anybody kept its digest."""
    bad = session.scalars(
        select(Example).where(Example.dataset_id == dataset.id, Example.position == 1)
    ).one()
    path = folder_of(context).path(shard_key(datasets.prefix_of(dataset), bad.shard))
    data = bytearray(path.read_bytes())
    data[bad.byte_offset : bad.byte_offset + bad.byte_length] = bytes(bad.byte_length)
    path.write_bytes(data)
    bad.digest = hashlib.sha256(bytes(bad.byte_length)).hexdigest()
    row = prediction(session, context.storage, model, dataset)

    predict_dataset(context, row.id)
    session.expire_all()

    here = f"/api/v1/models/{model.id}/predictions/{row.id}"
    table = list(csv.reader(io.StringIO(client.get(f"{here}/file").text)))[1:]
    page = client.get(f"/models/{model.id}/predictions", headers=HTML).text
    assert table[1][:5] == ["", "1", "", "", ""]
    assert table[1][5].startswith('"image 1" is not a PNG, JPEG')
    assert [line[5] for line in table[:1] + table[2:]] == [""] * (IMAGES - 1)
    assert client.get(here).json()["refused"] == 1
    assert "1 refused" in page


def test_an_attempt_that_was_lost_leaves_no_table_beside_that_of_the_next(
    session: Session, context: Context, model: Model, dataset: Dataset
) -> None:
    row = prediction(session, context.storage, model, dataset)
    looks = 0

    def taken_by_another() -> bool:
        """Between two beats, so that the whole table is written before this side hears of it."""
        nonlocal looks
        looks += 1
        if looks == 2:
            with context.unit_of_work() as writing:
                taken = update(Prediction).where(Prediction.id == row.id)
                writing.execute(taken.values(claim_number=Prediction.claim_number + 1))
        return False

    lost = Context(context.settings, context.database, context.storage, context.publish, taken_by_another)
    predict_dataset(lost, row.id)

    session.expire_all()
    assert row.state is PredictionState.RUNNING
    prefix = folder_of(context).path(predictions.prefix_of(model.key, row.id))
    assert list(prefix.rglob("*.csv")) == []


def test_an_attempt_that_was_held_up_deletes_what_died_before_it_and_not_the_table_of_the_next(
    session: Session, context: Context, model: Model, dataset: Dataset
) -> None:
    row = prediction(session, context.storage, model, dataset)
    prefix = predictions.prefix_of(model.key, row.id)
    context.storage.put(f"{prefix}/0/predictions.csv", b"of one that died")

    folder = context.storage
    assert isinstance(folder, FolderStorage)

    class HeldUp(FolderStorage):
        """While it looks for the model's file, another attempt takes the prediction and writes its table."""

        def file(self, key: str) -> Path:
            if key.endswith(".onnx"):
                with context.unit_of_work() as writing:
                    taken = update(Prediction).where(Prediction.id == row.id)
                    writing.execute(taken.values(claim_number=2))
                context.storage.put(f"{prefix}/2/predictions.csv", b"of the next")
            return super().file(key)

    storage = HeldUp(folder.root)
    predict_dataset(Context(context.settings, context.database, storage, context.publish), row.id)

    left = list(folder.path(prefix).rglob("*.csv"))
    assert [file.read_bytes() for file in left] == [b"of the next"]


def prediction(session: Session, storage: Storage, model: Model, dataset: Dataset) -> Prediction:
    by = make_user(session, role="admin")
    made = predictions.predict_dataset(session, storage, model, dataset.id, by=by, now=utc_now())
    session.commit()
    return made


def test_what_is_lost_is_handed_on_and_given_up_after_some_attempts(
    session: Session, context: Context, model: Model, dataset: Dataset, published: list[Job]
) -> None:
    row = prediction(session, context.storage, model, dataset)
    published.clear()
    long_ago = utc_now() - timedelta(minutes=5)
    with context.unit_of_work() as writing:
        lost = claims.claim(writing, Prediction, row.id, predictions.WAITS, by="a worker", now=long_ago)
    assert lost is not None

    Upkeep(context).once()
    predict_dataset(context, row.id)
    session.expire_all()
    state = row.state
    row.state, row.attempts = PredictionState.RUNNING, MAX_ATTEMPTS
    session.commit()
    Upkeep(context).once()

    session.expire_all()
    assert Job(jobs.PREDICT_DATASET, (str(row.id),)) in published
    assert state is PredictionState.READY
    assert row.state is PredictionState.FAILED
    assert "its worker died each time" in (row.failure or "")


def test_a_worker_that_is_shut_down_hands_it_back(
    session: Session, context: Context, model: Model, dataset: Dataset
) -> None:
    row = prediction(session, context.storage, model, dataset)
    stopping = Context(context.settings, context.database, context.storage, context.publish, lambda: True)

    predict_dataset(stopping, row.id)

    session.expire_all()
    assert (row.state, row.attempts, row.claimed_until) == (PredictionState.QUEUED, 0, None)
    assert predictions.waiting_predictions(session, utc_now()) == [row.id]


def test_a_dataset_that_was_deleted_meanwhile_is_said_and_a_table_outlives_its_dataset(
    client: TestClient, session: Session, context: Context, model: Model, dataset: Dataset
) -> None:
    by = make_user(session, role="admin")
    ready, waiting = (prediction(session, context.storage, model, dataset) for _ in range(2))
    predict_dataset(context, ready.id)
    datasets.delete_dataset(session, context.storage, session.get_one(Dataset, dataset.id), by=by)
    session.commit()

    predict_dataset(context, waiting.id)

    session.expire_all()
    file = f"/api/v1/models/{model.id}/predictions/{ready.id}/file"
    assert (waiting.state, waiting.failure) == (
        PredictionState.FAILED,
        'The dataset "Shop, spring" was deleted before all of its images were predicted.',
    )
    assert client.get(file).status_code == 200
    assert "was deleted before" in client.get(f"/models/{model.id}/predictions", headers=HTML).text


def test_one_that_is_deleted_leaves_no_file(
    client: TestClient, session: Session, context: Context, model: Model, dataset: Dataset
) -> None:
    row = prediction(session, context.storage, model, dataset)
    predict_dataset(context, row.id)
    here = f"/api/v1/models/{model.id}/predictions/{row.id}"
    prefix = folder_of(context).path(predictions.prefix_of(model.key, row.id))
    had_files = any(prefix.rglob("*.csv"))

    deleted = client.delete(here)

    assert had_files
    assert deleted.status_code == 204
    assert not prefix.exists()
    assert client.get(here).status_code == 404
    predict_dataset(context, row.id)  # a message that comes late does nothing


def test_what_cannot_be_predicted_is_refused_beside_the_field(
    client: TestClient, session: Session, model: Model, dataset: Dataset
) -> None:
    campaigns = session.scalars(select(Campaign)).all()
    empty = Dataset(name="Nothing yet", created_by_id=campaigns[0].created_by_id, created_at=utc_now())
    session.add(empty)
    session.commit()
    page = f"/models/{model.id}/predictions"

    program = client.post(f"/api/v1{page}", json={"dataset_id": str(empty.id)})
    form = client.post(page, data={"dataset_id": str(empty.id)}, headers=HTML)
    sent = client.post(page, data={"dataset_id": str(dataset.id)}, headers=HTML)

    assert (program.status_code, program.json()["type"]) == (409, "/problems/dataset-not-ready")
    assert form.status_code == 422
    assert "has no images yet" in form.text
    assert sent.status_code == 303


def test_a_store_that_refuses_fails_it_after_three_attempts_in_words(
    session: Session, context: Context, model: Model, dataset: Dataset
) -> None:
    row = prediction(session, context.storage, model, dataset)
    predict_dataset(refused(context), row.id)
    session.refresh(row)
    assert (row.state, row.attempts) == (PredictionState.QUEUED, 1)

    for _ in range(MAX_ATTEMPTS - 1):
        predict_dataset(refused(context), row.id)

    session.refresh(row)
    assert (row.state, row.failure) == (PredictionState.FAILED, SENTENCE)
