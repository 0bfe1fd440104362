"""Pages of a trial's pictures, and their files."""

import csv
import io
import re
from html import unescape
from xml.etree import ElementTree as ET

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.clock import utc_now
from app.datasets.models import Dataset, Split
from app.db import Database
from app.evaluations.service import Wishes
from app.registry.prediction_models import Prediction, PredictionState
from app.runs.models import Run
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.app.evaluations import laid_out
from tests.app.mistakes.kept import examples_of, make_finished, publish
from tests.app.mistakes.looked_at import HTML, page, words_of
from worker import predicting


@pytest.fixture
def run(session: Session, storage: FolderStorage) -> Run:
    """A run of two seeds, with the model of the first."""
    run = make_finished(session, storage, seeds=(0, 1))
    publish(session, storage, run)
    session.commit()
    return run


def test_a_cell_of_a_runs_confusion_opens_its_pictures_and_one_opens_large(
    client: TestClient, session: Session, run: Run
) -> None:
    last = examples_of(session, None, Split.TEST, run)[3]
    trial = run.trials[0]
    shown = page(client, f"/runs/{run.id}")
    found = re.search(r'<a href="([^"]*)" aria-label="2: dog, taken for cat">', shown)
    assert found  # summed over two seeds

    cell = page(client, unescape(found[1]))
    opened = re.search(rf'href="([^"]*/pictures/{last.id}[^"]*)"', cell)
    assert opened
    large = page(client, unescape(opened[1]))

    assert unescape(found[1]).startswith(f"/trials/{trial.id}/pictures?")
    assert "1 picture of “dog” taken for “cat”" in words_of(cell)
    assert cell.count("/image") == 1
    assert "cat (90 %), is dog" in words_of(cell)
    assert "True class dog" in words_of(large)
    assert "cat 90.0 % dog 6.0 % owl 4.0 %" in words_of(large)
    assert "=cmd/a, b.png" in large
    back = re.search(r'href="([^"]*)" data-key="Escape"', large)
    assert back
    assert "1 picture of “dog” taken for “cat”" in words_of(page(client, unescape(back[1])))
    assert 'rel="next"' not in large
    mistakes = page(client, f"/trials/{trial.id}/pictures/{last.id}?only=mistakes")
    following = re.search(r'rel="next" href="([^"]*)"', mistakes)
    assert following
    assert words_of(page(client, unescape(following[1]))).startswith("Image 5, cat (60 %), is owl")


def test_lists_say_what_they_lack(client: TestClient, run: Run) -> None:
    trial = run.trials[0]

    assert "By predicted class" in page(client, f"/trials/{trial.id}/pictures?among=train")
    assert "so no mistake is known" in page(client, f"/trials/{trial.id}/pictures?among=train&only=mistakes")
    assert "Nobody has judged" in page(client, f"/trials/{trial.id}/pictures?only=disputed")
    assert "None." in page(client, f"/trials/{trial.id}/pictures?true_class=2&predicted_class=2")
    lost = client.get(f"/trials/{trial.id}/pictures?true_class=9", headers=HTML)
    assert (lost.status_code, "There is no class 9" in lost.text) == (404, True)
    assert "The model of this trial was deleted" in page(client, f"/trials/{run.trials[1].id}/map")


def test_many_classes_are_a_list_and_no_matrix(client: TestClient, session: Session, run: Run) -> None:
    address = f"/trials/{run.trials[0].id}/pictures"
    few = page(client, address)
    birds = [f"bird {number}" for number in range(48)]
    run.snapshot_facts = {**run.snapshot_facts, "classes": ["cat", "dog", "owl", *birds]}
    session.commit()

    many = page(client, address)

    assert "confusion-table" in few
    assert "By predicted class" not in few
    assert "confusion-table" not in many
    assert "A table of 51 classes by 51 is too large for a page." in many
    assert "confusion.csv" in many
    assert re.search(r'predicted_class=0">cat</a>', many)


def test_where_people_said_no_is_listed(
    *,
    client: TestClient,
    session: Session,
    settings: Settings,
    database: Database,
    storage: FolderStorage,
    admin: User,
    annotator: User,
) -> None:
    run = make_finished(session, storage)
    model = publish(session, storage, run)
    trial_id = run.trials[0].id
    found = laid_out.make_evaluation(session, storage, model, Wishes(half_width=0.2), by=admin)
    session.commit()
    campaign = laid_out.opened(session, settings, database, storage, found, by=admin)
    laid_out.answer_all(session, campaign, by=annotator)
    session.commit()
    # True classes are cat, dog, owl, cat; the model says cat, owl, owl, dog.
    first, second, third, fourth = [
        example.id for example in examples_of(session, None, Split.TRAIN, session.get_one(Run, model.run_id))
    ]

    disputed = client.get(f"/api/v1/trials/{trial_id}/predictions?among=train&only=disputed").json()
    everything = client.get(f"/api/v1/trials/{trial_id}/predictions?among=train").json()

    assert [item["example_id"] for item in disputed["items"]] == [second, fourth]
    assert {item["example_id"]: item["people"]["is_right"] for item in everything["items"]} == {
        first: True,
        second: False,
        third: True,
        fourth: False,
    }
    html = page(client, f"/trials/{trial_id}/pictures?among=train&only=disputed")
    assert re.findall(r"<small data-wrong>([^<]*)</small>", html) == [
        "dog (85 %), 1 said no",
        "owl (40 %), 1 said no",
    ]
    large = page(client, f"/trials/{trial_id}/pictures/{second}")
    assert "People 0 said yes, 1 said no" in words_of(large)
    assert "People see" not in large
    campaign.asks_which = True
    laid_out.name_all(session, campaign, by=annotator)
    session.commit()
    assert "People see dog" in words_of(page(client, f"/trials/{trial_id}/pictures/{second}"))
    table = client.get(f"/evaluations/{found.id}/named.csv")
    assert table.text.splitlines() == ["shows,cat,dog,owl", "cat,1,1,0", "dog,0,0,1", "owl,0,0,1"]


def test_an_older_trial_predicts_its_target_and_has_the_lists_then(
    client: TestClient, session: Session, storage: FolderStorage, database: Database
) -> None:
    run = make_finished(session, storage)
    model = publish(session, storage, run, older=True)
    session.commit()
    address = f"/trials/{run.trials[0].id}/pictures"

    before = page(client, address)
    for _ in range(2):
        assert client.post(address, headers=HTML).status_code == 303
    [prediction] = session.scalars(select(Prediction)).all()
    waiting = page(client, address)
    lines = [",".join(predicting.columns_of(["cat", "dog", "owl"]))]
    lines += ['"a ""b"", c\nd.png",0,dog,0.200000,0.700000,0.100000,']
    lines += [f",{position},dog,0.200000,0.700000,0.100000," for position in range(1, 7)]
    lines += [",7,,,,,It cannot be decoded."]
    prediction.key = f"{model.key}/predictions/{prediction.id}/1/predictions.csv"
    prediction.digest = storage.put(prediction.key, "\r\n".join(lines).encode())
    prediction.state, prediction.progress, prediction.finished_at = PredictionState.READY, 8, utc_now()
    session.commit()
    ready = page(client, address)

    asked: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *about: asked.append(about[2]))
    following = page(client, f"{address}?among=train")

    assert "4 pictures" in words_of(following)
    assert not any("true_class" in statement for statement in asked)  # all images were read once
    assert "Predict the target" in before
    assert "Queued The target is being predicted: 0 of 8 pictures" in words_of(waiting)
    assert "Predict the target" not in waiting
    assert "3 pictures" in words_of(ready)
    assert "The lists are made of the prediction of" in words_of(ready)
    counts = client.get(f"/api/v1/trials/{run.trials[0].id}/confusion").json()["counts"]
    assert counts == [[0, 1, 0]] * 3  # test images: dog, owl, cat, and a dog that was refused
    assert "there is no map of it" in words_of(page(client, f"/trials/{run.trials[0].id}/map"))


def test_what_lies_far_out_presses_no_other_point_of_the_map_together(
    client: TestClient, session: Session, storage: FolderStorage
) -> None:
    run = make_finished(session, storage)
    publish(session, storage, run, last=900)
    session.commit()

    shown = page(client, f"/trials/{run.trials[0].id}/map")

    across = sorted(float(x) for x in re.findall(r'<use href="#sign-[a-z]+" x="([\d.]+)"', shown))
    assert across[0] == 14  # the margin
    assert across[-2] > 600
    assert across[-1] == 633  # at the edge
    assert "1 picture lies so far from the others that the map would show nothing else: it is" in words_of(
        shown
    )


def test_the_map_opens_pictures_and_has_the_same_as_a_list(
    client: TestClient, session: Session, run: Run
) -> None:
    trial = run.trials[0]
    ids = [example.id for example in examples_of(session, None, Split.TRAIN, run)]

    shown = page(client, f"/trials/{trial.id}/map")
    owls = page(client, f"/trials/{trial.id}/map?by=class&predicted_class=2")

    points = re.findall(rf'<a href="(/trials/{trial.id}/pictures/\d+\?by=domain)" tabindex="-1">', shown)
    listed = re.findall(rf'<li><a href="(/trials/{trial.id}/pictures/\d+\?by=domain)">', shown)
    assert len(points) == 6
    assert sorted(points) == sorted(listed)
    assert all(client.get(point, headers=HTML).status_code == 200 for point in points)
    assert "2 pictures on the map taken for “owl”" in words_of(owls)
    opened = page(client, f"/trials/{trial.id}/pictures/{ids[1]}?by=class&predicted_class=2")
    following = re.search(r'rel="next" href="([^"]*)"', opened)
    assert following
    assert f"/pictures/{ids[2]}?" in following[1]
    assert "Back to the map" in opened


def test_a_umap_that_is_not_there_shows_no_map_and_comes_by_itself(client: TestClient, run: Run) -> None:
    path = f"/trials/{run.trials[0].id}/map"

    before = page(client, f"{path}?layout=umap")
    client.post(f"{path}/umap", headers=HTML)
    waiting = page(client, f"{path}?layout=umap")
    drawn = client.get(path, headers=HTML | {"hx-request": "true"})

    for shown in (before, waiting):
        assert "js/map.js" not in shown
        assert "on the map" not in words_of(shown)
    assert f'hx-get="{path}?layout=umap"' in waiting
    assert drawn.headers["HX-Refresh"] == "true", "with the scripts of a map"


def test_everything_is_there_as_a_file(client: TestClient, session: Session, run: Run) -> None:
    trial = run.trials[0]
    session.get_one(Dataset, run.target_dataset_id).name = "Photos"
    base = f"/trials/{trial.id}"

    def table(name: str) -> list[list[str]]:
        answer = client.get(f"{base}/{name}")
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        return list(csv.reader(io.StringIO(answer.text)))

    pictures, confusion, points = (
        table(name) for name in ("pictures.csv?only=mistakes", "confusion.csv", "map.csv")
    )

    assert pictures[0][:5] == ["example", "among", "position", "file", "true_class"]
    assert pictures[1][1:] == [
        *("test", "7", "'=cmd/a, b.png", "dog", "0.840000", "", ""),
        *("cat", "0.900000", "dog", "0.060000", "owl", "0.040000"),
    ]
    assert [row[2] for row in pictures[1:]] == ["7", "5", "6"]
    assert confusion == [
        ["true_class", "cat", "dog", "owl"],
        ["cat", "0", "0", "1"],
        ["dog", "1", "1", "0"],
        ["owl", "1", "0", "0"],
    ]
    assert points[0][-3:] == ["component_1", "component_2", "component_3"]
    assert points[2][-4:] == ["0.400000", "1", "0", "9"]
    for name, signs in (("map.svg?by=class", 6 + 3), ("map.svg", 6 + 2), ("confusion.svg", 0)):
        answer = client.get(f"{base}/{name}")
        assert answer.headers["content-type"] == "image/svg+xml"
        drawn = ET.fromstring(answer.text)
        assert len(drawn.findall(".//{*}use")) == signs
    assert len(drawn.findall(".//{*}rect")) == 1 + 4
    assert client.get(f"{base}/map.svg?predicted_class=2").status_code == 200
    for unknown in ("map.svg", "map"):
        assert client.get(f"{base}/{unknown}?predicted_class=3", headers=HTML).status_code == 404
