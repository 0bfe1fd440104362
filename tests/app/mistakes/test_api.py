"""The JSON API of a trial's pictures."""

from typing import Any
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.datasets.models import Split
from app.registry.kept_pictures import FILE
from app.runs.models import Run, Trial
from app.stores.folder import FolderStorage
from tests.app.mistakes.kept import examples_of, make_finished, publish


@pytest.fixture
def run(session: Session, storage: FolderStorage) -> Run:
    """A run of one seed, with its model."""
    run = make_finished(session, storage)
    publish(session, storage, run)
    session.commit()
    return run


def listed(client: TestClient, run: Run, query: str = "") -> Any:
    answer = client.get(f"/api/v1/trials/{run.trials[0].id}/predictions?{query}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_program_reads_mistakes_page_by_page(client: TestClient, session: Session, run: Run) -> None:
    ids = [example.id for example in examples_of(session, None, Split.TEST, run)]

    everything = listed(client, run)
    first = listed(client, run, "only=mistakes&order=sure&limit=2")
    second = listed(client, run, f"only=mistakes&order=sure&limit=2&after={first['next']}")

    assert everything["classes"] == ["cat", "dog", "owl"]
    assert everything["prediction_id"] is None
    assert [item["example_id"] for item in everything["items"]] == ids
    assert (first["count"], second["count"]) == (3, 3)
    assert [item["example_id"] for item in first["items"] + second["items"]] == [ids[3], ids[1], ids[2]]
    assert second["next"] is None
    item = first["items"][0]
    assert (item["true_class"], item["predicted_class"], item["position"]) == (1, 0, 7)
    assert item["filename"] == "=cmd/a, b.png"
    assert item["margin"] == pytest.approx(0.84)
    assert [one["class"] for one in item["likeliest"]] == [0, 1, 2]
    assert [one["probability"] for one in item["likeliest"]] == pytest.approx([0.9, 0.06, 0.04])
    assert item["people"] is None
    assert client.get(item["image_url"]).headers["content-type"] == "image/png"
    source = listed(client, run, "among=source")["items"][0]
    assert source["dataset_id"] == str(run.source_dataset_id)
    assert client.get(source["image_url"]).status_code == 200


def test_a_cell_of_the_confusion_has_its_pictures(client: TestClient, run: Run) -> None:
    confusion = client.get(f"/api/v1/trials/{run.trials[0].id}/confusion").json()

    assert confusion["counts"] == [[0, 0, 1], [1, 1, 0], [1, 0, 0]]
    assert (confusion["among"], confusion["images"], confusion["predicted"]) == ("test", 4, [2, 1, 1])
    for true, row in enumerate(confusion["counts"]):
        for predicted, count in enumerate(row):
            assert listed(client, run, f"true_class={true}&predicted_class={predicted}")["count"] == count
    unlabelled = client.get(f"/api/v1/trials/{run.trials[0].id}/confusion?among=train").json()
    assert (unlabelled["counts"], unlabelled["predicted"]) == (None, [1, 1, 2])


def test_a_program_reads_the_map(client: TestClient, run: Run) -> None:
    found = client.get(f"/api/v1/trials/{run.trials[0].id}/map").json()

    assert found["shares"] == [0.6, 0.3]
    assert [point["among"] for point in found["points"]] == ["train"] * 4 + ["source"] * 2
    assert found["points"][1]["place"] == [1, 0, 9]


def test_what_is_not_there_is_said(
    client: TestClient, session: Session, storage: FolderStorage, run: Run
) -> None:
    trial, unpublished = run.trials[0], make_finished(session, storage).trials[0]
    older = make_finished(session, storage)
    publish(session, storage, older, older=True)
    session.commit()

    def problem(trial: Trial | None, rest: str = "predictions") -> tuple[int, str]:
        answer = client.get(f"/api/v1/trials/{trial.id if trial else uuid4()}/{rest}")
        return answer.status_code, answer.json()["type"].rpartition("/")[2]

    assert problem(None) == (404, "trial-not-found")
    assert problem(trial, f"predictions?after={10**12}") == (404, "picture-not-found")
    assert problem(trial, "predictions?true_class=3") == (404, "class-not-found")
    assert problem(trial, "predictions?order=loud")[0] == 422
    assert problem(trial, f"predictions?after={2**63}")[0] == 422
    assert problem(unpublished) == (409, "pictures-not-kept")
    assert problem(older.trials[0], "map") == (409, "pictures-not-kept")
    [path] = storage.path(f"models/{trial.id}").rglob(FILE)
    path.write_bytes(b"other")
    assert problem(trial) == (409, "stored-file-damaged")
    path.unlink()
    assert problem(trial) == (409, "stored-file-missing")


@pytest.mark.parametrize(
    "path",
    ["/api/v1/trials/{}/predictions", "/api/v1/trials/{}/confusion", "/api/v1/trials/{}/map"]
    + [f"/trials/{{}}/{page}" for page in ("pictures", "pictures/1", "map", "pictures.csv", "map.svg")],
)
def test_nothing_of_it_is_shown_to_annotators(annotator_client: TestClient, run: Run, path: str) -> None:
    assert annotator_client.get(path.format(run.trials[0].id)).status_code == 403
