"""Runs beside each other: differences with their intervals, settings, labels, curves, files."""

from base64 import b64encode
from statistics import fmean, stdev

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.runs.differences import (
    between_hits,
    between_samples,
    between_seeds,
    labels_that_differ,
    settings_that_differ,
    t_quantile,
)
from app.runs.labels import freeze
from app.runs.models import Metric, Run, TrialState
from app.stores.folder import FolderStorage
from clarinet.files.label_table import LabelRow, Labels
from clarinet.recipes.scoring import ScoredOn
from tests.factories import NOW, make_dataset, make_run

HTML = {"accept": "text/html"}
MANY = ScoredOn(split="test", images=1000, of=1000)


def label(example_id: int, kind: str, class_: int, weight: float = 1.0) -> LabelRow:
    return LabelRow(example_id, kind, class_, weight, example_id=example_id)


class TestDifferences:
    @pytest.mark.parametrize(("freedom", "known"), [(1, 12.706), (4, 2.776), (10, 2.228), (1000, 1.962)])
    def test_the_quantile_of_t_is_that_of_the_tables(self, freedom: int, known: float) -> None:
        assert t_quantile(freedom) == pytest.approx(known, abs=6e-4)

    def test_seeds_are_compared_by_welch(self) -> None:
        mine, others = [0.9, 0.92, 0.94], [0.8, 0.8, 0.86]

        found = between_seeds(mine, others)

        assert found is not None
        assert found.value == pytest.approx(fmean(mine) - fmean(others))
        error = ((stdev(mine) ** 2 + stdev(others) ** 2) / 3) ** 0.5
        # Of the 3.2 degrees of freedom by Welch and Satterthwaite.
        assert found.high - found.value == pytest.approx(t_quantile(3.2) * error, rel=1e-2)
        assert "n = 3 and 3" in found.basis
        assert between_seeds([0.9], others) is None

    def test_the_interval_over_images_covers_the_truth(self) -> None:
        """By simulation: of two samples with known shares it misses the difference in at most 5 of 100."""
        noise = np.random.default_rng(0)
        few = ScoredOn(split="test", images=200, of=200)
        hits = noise.binomial(200, (0.9, 0.8), (500, 2)) / 200

        found = [between_samples(mine, others, few, few) for mine, others in hits.tolist()]

        assert sum(each.low <= 0.1 <= each.high for each in found) >= 0.95 * 500

    def test_the_same_images_tell_a_difference_more_finely(self) -> None:
        """By simulation: it covers as well, and is shorter where both runs fail on the same images."""
        noise = np.random.default_rng(0)
        few = ScoredOn(split="test", images=200, of=200)
        covered, shorter = 0, 0
        for _ in range(500):
            hard = noise.random(200)
            mine, others = (
                (hard < 0.9).astype(int),
                ((hard < 0.85) & (noise.random(200) < 0.8 / 0.85)).astype(int),
            )
            paired = between_hits([mine], [others])
            apart = between_samples(float(mine.mean()), float(others.mean()), few, few)
            covered += paired.low <= 0.1 <= paired.high
            shorter += paired.high - paired.low < apart.high - apart.low

        assert covered >= 0.93 * 500
        assert shorter > 0.99 * 500

    def test_labels_are_compared_by_image_kind_and_class(self) -> None:
        mine = Labels.of(
            [label(1, "complementary", 0), label(2, "true", 1), label(3, "complementary", 1, 0.5)],
            num_classes=3,
        )
        others = Labels.of(
            [label(1, "complementary", 2), label(3, "complementary", 1), label(4, "true", 1)], num_classes=3
        )

        found = labels_that_differ(mine, others)

        assert found.mine == {"complementary": 1, "true": 1}
        assert found.others == {"complementary": 1, "true": 1}
        assert (found.shared, found.reweighted, found.examples) == (1, 1, 4)

    def test_settings_tell_what_is_missing_from_what_is_the_same(self) -> None:
        assert settings_that_differ([{"a": 1, "b": 2}, {"a": 1, "b": 3, "c": 0}]) == [
            ("b", [2, 3]),
            ("c", [None, 0]),
        ]


@pytest.fixture
def pair(session: Session, storage: FolderStorage) -> list[Run]:
    """Two that ended, of two seeds, on one target; the second has another rate and one label less."""
    target = make_dataset(session, storage, train=10, test=40)
    runs = [
        make_run(
            session,
            storage,
            seeds=(0, 1),
            state="succeeded",
            train=20,
            target=target,
            config={"learning_rate": rate},
        )
        for rate in (0.001, 0.002)
    ]
    runs[1].campaign_id = runs[0].campaign_id
    rows = [label(example_id, "complementary", 1) for example_id in range(5)]
    runs[0].snapshot_digest = freeze(storage, Labels.of(rows, num_classes=2))
    runs[1].snapshot_digest = freeze(storage, Labels.of(rows[1:], num_classes=2))
    for place, run in enumerate(runs):
        for seed, trial in enumerate(run.trials):
            trial.target_accuracy = 0.5 + 0.3 * place + 0.05 * seed
            for epoch in (1, 2):
                session.add(
                    Metric(
                        trial_id=trial.id,
                        epoch=epoch,
                        epochs=2,
                        step=epoch,
                        seconds=1.0,
                        losses={},
                        target_accuracy=trial.target_accuracy / (3 - epoch),
                        recorded_at=NOW,
                    )
                )
    session.commit()
    return runs


@pytest.mark.dialects
def test_the_api_tells_what_the_page_shows(client: TestClient, pair: list[Run]) -> None:
    asked = {"run": [str(run.id) for run in pair]}

    found = client.get("/api/v1/runs/compare", params=asked).json()

    first, second = found["items"]
    assert (first["by_images"], first["by_seeds"], first["labels"]["are_equal"]) == (None, None, True)
    assert second["by_images"]["value"] == pytest.approx(0.3)
    assert second["by_images"]["low"] < 0.3 < second["by_images"]["high"]
    assert second["by_seeds"]["value"] == pytest.approx(0.3)
    assert second["labels"]["others"] == {"complementary": 1, "true": 0}
    assert (second["labels"]["shared"], second["labels"]["examples"]) == (4, 1)
    assert [(point["epoch"], point["seeds"]) for point in second["points"]] == [(1, 2), (2, 2)]
    assert second["points"][1]["mean"] == pytest.approx(0.825)
    assert found["settings"] == [{"name": "learning_rate", "values": [0.001, 0.002]}]


def test_runs_that_keep_their_hits_are_compared_image_by_image(
    client: TestClient, session: Session, pair: list[Run]
) -> None:
    for place, run in enumerate(pair):
        for trial in run.trials:
            found = np.arange(40) >= 20 - 12 * place
            trial.target_accuracy = float(found.mean())
            trial.result = {"hits": b64encode(np.packbits(found).tobytes()).decode()}
    session.commit()

    asked = {"run": [str(run.id) for run in pair]}
    found = client.get("/api/v1/runs/compare", params=asked).json()["items"][1]["by_images"]

    assert found["value"] == pytest.approx(0.3)
    assert found["basis"] == "40 images, the same ones, one by one"
    assert 0.1 < found["low"] < 0.3 < found["high"] < 0.5


def test_the_page_its_chart_and_its_tables(client: TestClient, pair: list[Run]) -> None:
    asked = {"run": [str(run.id) for run in pair]}

    page = client.get("/runs/compare", params=asked, headers=HTML)
    chart = client.get("/runs/compare/curves.svg", params=asked)
    tables = {
        name: client.get(f"/runs/compare/{name}.csv", params=asked).text.splitlines()
        for name in ("results", "curves", "settings", "labels")
    }

    assert page.status_code == 200
    assert "+30.0 (" in page.text
    assert page.text.count("<polygon") == 2
    assert "Accuracy on the target</text>" in page.text
    assert chart.headers["content-type"].startswith("image/svg+xml")
    assert ">100 %</text>" in chart.text
    assert {name: len(rows) for name, rows in tables.items()} == {
        "results": 3,
        "curves": 5,
        "settings": 2,
        "labels": 3,
    }
    assert tables["settings"][1] == "learning_rate,0.001,0.002"


def test_runs_that_nothing_measures_have_no_empty_chart_but_a_reason_and_a_way(
    client: TestClient, session: Session, storage: FolderStorage
) -> None:
    target = make_dataset(session, storage, train=4, class_names=None)
    runs = [make_run(session, storage, train=4, target=target, state="succeeded", seeds=(0, 1))]
    runs.append(make_run(session, storage, train=4, target=target, state="running"))
    session.commit()

    page = client.get("/runs/compare", params={"run": [str(run.id) for run in runs]}, headers=HTML).text

    assert "<svg" not in page.split("<h2>On the target</h2>")[1].split("<h2>Results</h2>")[0]
    assert "There is no curve" in page
    for run in runs:
        assert f"Run {run.number} has no curve: its images came without classes" in page
    assert page.count("/evaluations/new") == 1  # of the one that ended
    assert "0 of 2" not in page
    assert "2 of 2<br><small>ended well</small>" in page


def test_what_cannot_be_compared_is_said(
    client: TestClient, session: Session, storage: FolderStorage, pair: list[Run]
) -> None:
    other = make_run(session, storage, train=2)
    other.trials[0].state = TrialState.FAILED
    session.commit()
    one, two = str(pair[0].id), str(other.id)
    nobody = "00000000-0000-4000-8000-000000000000"

    alone = client.get("/runs/compare", params={"run": [one, one]}, headers=HTML)
    gone = client.get("/runs/compare", params={"run": [one, nobody]}, headers=HTML)
    apart = client.get("/api/v1/runs/compare", params={"run": [one, two]}).json()["items"][1]

    assert (alone.status_code, gone.status_code) == (422, 422)
    assert "Mark at least two runs" in alone.text
    assert "not there any more" in gone.text
    assert client.get("/runs/compare", headers=HTML).status_code == 200
    assert client.get("/api/v1/runs/compare", params={"run": [one, nobody]}).status_code == 404
    assert client.get("/api/v1/runs/compare", params={"run": [one] * 21}).status_code == 422
    assert (apart["by_images"], apart["by_seeds"], apart["labels"], apart["points"]) == (None, None, None, [])
