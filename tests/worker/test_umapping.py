"""A map by UMAP: asked for on the page, computed in a process of its own, handed out like the other."""

import csv
import importlib.util
import io
import re
from datetime import timedelta
from html import unescape
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from fastapi.testclient import TestClient
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sqlalchemy import select
from sqlalchemy.orm import Session

from app import claims, jobs
from app.claims import MAX_ATTEMPTS
from app.clock import utc_now
from app.datasets.models import Dataset, Split
from app.db import Database
from app.jobs import Job
from app.mistakes import umaps
from app.mistakes.models import Umap, UmapState
from app.registry import service as registry
from app.registry.kept_pictures import FACTS, Among, keep_pictures
from app.registry.models import Model
from app.runs.models import Run
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.app.mistakes.kept import CLASSES, examples_of, kept_of, make_finished, publish
from tests.app.mistakes.looked_at import HTML, page, words_of
from tests.factories import NOW, make_dataset, make_run
from tests.worker.refusing import SENTENCE, refused
from worker.context import Context
from worker.umapping import make_umap
from worker.upkeep import Upkeep

needs_umap = pytest.mark.skipif(
    importlib.util.find_spec("umap") is None,
    reason="umap-learn is not installed: pip install 'clarinet[umap]'",
)


@pytest.fixture
def context(settings: Settings, database: Database, storage: FolderStorage, published: list[Job]) -> Context:
    return Context(settings, database, storage, published.append)


@pytest.fixture(scope="module")
def digits() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Principal components of 120 handwritten digits of three kinds, and which each is."""
    pixels, kinds = load_digits(n_class=3, return_X_y=True)
    centred = pixels[:120] - pixels[:120].mean(0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    return (centred @ directions[:32].T).astype(np.float32), kinds[:120].astype(np.int64)


@pytest.fixture
def run(
    session: Session, storage: FolderStorage, digits: tuple[NDArray[np.float32], NDArray[np.int64]]
) -> Run:
    """A run whose model places 60 pictures of each domain where the digits lie, and knows all of them."""
    places, kinds = digits
    target = make_dataset(session, storage, class_names=CLASSES, train=60, test=1)
    run = make_run(session, storage, train=60, target=target, state="succeeded", classes=CLASSES)
    source = session.get_one(Dataset, run.source_dataset_id)
    certain = (np.eye(3) * 0.9 + 0.03)[kinds].tolist()
    kept = kept_of(
        {
            Among.TRAIN: (
                [one.id for one in examples_of(session, None, Split.TRAIN, run)],
                [-1] * 60,
                certain[:60],
            ),
            Among.SOURCE: (
                [one.id for one in examples_of(session, source, Split.TRAIN, run)],
                [-1] * 60,
                certain[60:],
            ),
        },
        map_rows=range(120),
        map_places=places.tolist(),
    )
    key = registry.key_of(run.trials[0].id, 1)
    card = {"run": run.number, "seed": 0, "classes": list(CLASSES), FACTS: keep_pictures(storage, key, kept)}
    registry.publish_model(
        session, trial_id=run.trials[0].id, key=key, digest="d" * 64, size_bytes=1, card=card, now=NOW
    )
    session.commit()
    return run


def share_beside_their_kind(places: NDArray[np.float32], kinds: NDArray[np.int64]) -> float:
    """How many of the five nearest neighbours are of a point's own kind."""
    apart = ((places[:, None] - places[None]) ** 2).sum(-1)
    np.fill_diagonal(apart, np.inf)
    nearest = np.argsort(apart, axis=1)[:, :5]
    return float((kinds[nearest] == kinds[:, None]).mean())


@needs_umap
@pytest.mark.long
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # its process takes 20 s of a processor
def test_a_umap_is_computed_on_request_and_opens_pictures(
    *,
    client: TestClient,
    session: Session,
    context: Context,
    published: list[Job],
    digits: tuple[NDArray[np.float32], NDArray[np.int64]],
    run: Run,
) -> None:
    trial_id = run.trials[0].id
    here, api = f"/trials/{trial_id}/map", f"/api/v1/trials/{trial_id}/map"

    before = page(client, f"{here}?layout=umap")
    early = client.get(f"{api}?layout=umap")
    for _ in range(2):
        assert client.post(f"{here}/umap", headers=HTML).headers["location"] == f"{here}?layout=umap"
    row = session.scalars(select(Umap)).one()
    waiting = page(client, f"{here}?layout=umap")
    make_umap(context, row.id)
    make_umap(context, row.id)  # a message that was sent twice
    session.expire_all()
    ready = page(client, f"{here}?layout=umap&by=class")
    found = client.get(f"{api}?layout=umap").json()

    assert "Compute the UMAP" in before
    assert (early.status_code, early.json()["type"].rpartition("/")[2]) == (409, "umap-not-made")
    assert published.count(Job(jobs.MAKE_UMAP, (str(row.id),))) == 1
    assert "Queued The UMAP waits for a worker." in words_of(waiting)
    assert (row.state, row.claim_number, row.failure) == (UmapState.READY, 1, None)
    points = re.findall(rf'<a href="(/trials/{trial_id}/pictures/\d+\?[^"]*)" tabindex="-1">', ready)
    assert len(points) == 120
    opened = page(client, unescape(points[0]))
    back = re.search(r'href="([^"]*)" data-key="Escape"', opened)
    assert back
    assert "where UMAP places it" in words_of(page(client, unescape(back[1])))
    places = np.array([point["place"] for point in found["points"]], np.float32)
    assert (places.shape, found["shares"], found["layout"]) == ((120, 2), [], "umap")
    assert share_beside_their_kind(places, digits[1]) > 0.95
    rows = list(csv.reader(io.StringIO(client.get(f"{here}.csv?layout=umap").text)))
    assert (rows[0][-2:], len(rows)) == (["umap_1", "umap_2"], 121)
    assert np.allclose(np.array([row[-2:] for row in rows[1:]], float), places, rtol=1e-3)
    drawn = client.get(f"{here}.svg?layout=umap")
    assert drawn.headers["content-disposition"] == 'attachment; filename="map-umap.svg"'
    assert len(ET.fromstring(drawn.text).findall(".//{*}use")) == 120 + 2
    assert client.get(api).json()["layout"] == "pca"


@needs_umap
@pytest.mark.slow  # a compiler at work twice, in processes of their own
@pytest.mark.long
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_the_same_map_gives_the_same_places_to_the_last_bit(
    client: TestClient, session: Session, context: Context, run: Run
) -> None:
    client.post(f"/api/v1/trials/{run.trials[0].id}/map/umap")
    row = session.scalars(select(Umap)).one()
    digests = []

    for _ in range(2):
        make_umap(context, row.id)
        session.expire_all()
        digests.append(row.digest)
        row.state = UmapState.QUEUED
        session.commit()

    assert row.claim_number == 2
    assert digests[0] == digests[1] is not None


def test_without_the_package_the_page_says_what_to_install(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setattr(umaps, "find_spec", lambda _name: None)
    trial_id = run.trials[0].id

    shown = page(client, f"/trials/{trial_id}/map?layout=umap")
    asked = client.post(f"/api/v1/trials/{trial_id}/map/umap")

    assert "pip install 'clarinet[umap]'" in words_of(shown)
    assert "Compute the UMAP" not in shown
    assert (asked.status_code, asked.json()["type"].rpartition("/")[2]) == (409, "umap-not-installed")
    assert client.get(f"/api/v1/trials/{trial_id}/map/umap").json()["is_installed"] is False


@needs_umap
def test_a_umap_that_takes_too_long_fails_in_words_and_is_asked_for_anew(
    client: TestClient, session: Session, context: Context, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    here = f"/api/v1/trials/{run.trials[0].id}/map/umap"
    assert client.post(here).json()["state"] == "queued"
    row = session.scalars(select(Umap)).one()
    monkeypatch.setattr(umaps, "LONGEST_S", 0.0)

    make_umap(context, row.id)
    failed = client.get(here).json()
    again = client.post(here).json()

    assert (failed["state"], "took longer than 0 s" in failed["words"]) == ("failed", True)
    assert (again["state"], again["finished_at"]) == ("queued", None)


def test_too_few_pictures_have_no_umap(
    client: TestClient, session: Session, storage: FolderStorage, context: Context
) -> None:
    run = make_finished(session, storage)
    model = publish(session, storage, run)
    row = Umap(model_id=model.id, asked_at=utc_now())
    session.add(row)
    session.commit()

    make_umap(context, row.id)

    words = client.get(f"/api/v1/trials/{run.trials[0].id}/map/umap").json()["words"]
    assert words == "The map shows 6 pictures, and UMAP needs at least 10."


def test_a_worker_that_died_is_followed_by_another_until_there_were_enough(
    session: Session, context: Context, published: list[Job], run: Run
) -> None:
    model = session.scalars(select(Model).where(Model.trial_id == run.trials[0].id)).one()
    row = Umap(model_id=model.id, asked_at=utc_now())
    session.add(row)
    session.commit()
    with context.unit_of_work() as writing:
        long_ago = utc_now() - timedelta(minutes=5)
        assert claims.claim(writing, Umap, row.id, umaps.WAITS, by="a worker", now=long_ago)

    Upkeep(context).once()
    session.expire_all()
    row.attempts = MAX_ATTEMPTS
    session.commit()
    Upkeep(context).once()

    session.expire_all()
    assert Job(jobs.MAKE_UMAP, (str(row.id),)) in published
    assert (row.state, row.failure) == (UmapState.FAILED, umaps.DIED)


def test_a_store_that_refuses_fails_it_after_three_attempts_in_words(
    client: TestClient, session: Session, context: Context, run: Run
) -> None:
    client.post(f"/trials/{run.trials[0].id}/map/umap", headers=HTML)
    row = session.scalars(select(Umap)).one()
    make_umap(refused(context), row.id)
    session.refresh(row)
    assert (row.state, row.attempts) == (UmapState.QUEUED, 1)

    for _ in range(MAX_ATTEMPTS - 1):
        make_umap(refused(context), row.id)

    session.refresh(row)
    assert (row.state, row.failure) == (UmapState.FAILED, SENTENCE)
