"""The demo's campaign over photographs: real pictures in two looks, added and answered through the API."""

import io
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from clarinet.files.looks import looks_of
from clarinet_client import Client
from clarinet_client.shapes.runs import RunChoices
from tests.live import Live, installation
from worker.demo import photographs, pictures
from worker.demo.annotators import Plan
from worker.demo.photographs import SIDE, demo_photographs
from worker.demo.running import PICTURE_RUNS

pytestmark = pytest.mark.long
SHOWN = {"astronaut", "cat", "cup", "flower", "pagoda", "rocket"}


@pytest.fixture
def few_views(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which are made in a second."""
    monkeypatch.setattr(photographs, "SOURCE_VIEWS", 16)
    monkeypatch.setattr(photographs, "TARGET_VIEWS", 4)


def read(file: io.BytesIO) -> tuple[list[str], np.ndarray]:
    """The class of each picture of a zip, and the pictures."""
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        images = [np.asarray(Image.open(io.BytesIO(archive.read(name)))) for name in names]
    return [name.partition("/")[0] for name in names], np.stack(images)


@pytest.mark.usefixtures("few_views")
def test_they_are_photographs_in_two_looks_and_the_same_every_time() -> None:
    (source, target), again = demo_photographs(), demo_photographs()

    assert [file.getvalue() for file in again] == [source.getvalue(), target.getvalue()]
    for file, views in ((source, 16), (target, 4)):
        classes, images = read(file)
        assert set(classes) == SHOWN
        assert images.shape == (len(SHOWN) * views, SIDE, SIDE, 3)
        assert looks_of(images) == "photographs"
        assert len({image.tobytes() for image in images}) == len(images)
    # A canvas is warm and has no black: the shift is there to see.
    (_, seen), (_, painted) = read(source), read(target)
    red, _, blue = painted.reshape(-1, 3).mean(0) - seen.reshape(-1, 3).mean(0)
    assert red - blue > 20
    assert np.percentile(painted, 1) > np.percentile(seen, 1) + 20


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with installation(tmp_path / "data", tmp_path / "log") as live:
        yield live


@pytest.mark.usefixtures("few_views")
def test_the_campaign_is_added_once_and_answered_and_its_run_ends(live: Live) -> None:
    ended = threading.Event()
    with Client(live.url, live.token) as client:
        first = pictures.add_pictures(client, ended)
        plan = Plan(annotators=3, seed=2, leave=10)
        pictures.answer_pictures(client, first, ended, plan)
        again = pictures.add_pictures(client, ended)
        short = {"epochs": 1, "steps_per_epoch": 1, "batch_size": 4, "image_size": 32}
        [wanted] = PICTURE_RUNS
        asked: RunChoices = {**wanted, "config": {**wanted["config"], **short}}
        run = client.runs.launch(first.campaign["id"], first.target_id, **asked)
        told = client.runs.wait(run["id"], timeout_s=240)

    assert (first.campaign["state"], first.campaign["question_count"]) == ("open", 16 * len(SHOWN))
    assert first.campaign["class_language"] == "en", "so that it asks: is this a cup?"
    assert again.campaign["id"] == first.campaign["id"]
    assert again.target_id == first.target_id
    assert {row["name"] for row in live.api("GET", "/datasets")["items"]} == {"Photographs", "Paintings"}
    progress = live.api("GET", f"/campaigns/{first.campaign['id']}/progress")
    assert 0 < progress["fresh"] <= 10 <= progress["waiting"]
    assert (told["state"], told["trials"][0]["failure"]) == ("succeeded", None)
    assert told["looks"] == "photographs"
    assert told["recipe_warning"] == ""
    assert (told["scored_on"], told["scored_split"]) == (4 * len(SHOWN), "train")
