"""Questions by a model's belief: their law, and what a study of them asks."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from clarinet.commands.cli import main
from clarinet.data.domains import prepare
from clarinet.data.fingerprint import fingerprint
from clarinet.data.seeding import generator
from clarinet.data.training_data import TrainData
from clarinet.files.beliefs import (
    UNIT,
    beliefs_of,
    question_probabilities,
    question_weights,
)
from clarinet.files.label_table import COMPLEMENTARY, TRUE, LabelKind, LabelRow, Labels
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import DataError
from clarinet.recipes.methods import config_for
from clarinet.reproduction import active
from clarinet.reproduction.active_report import charts, table
from clarinet.reproduction.readers import Domain
from clarinet.reproduction.tasks import Task, TaskData
from clarinet.run.relabelling import with_pseudo_labels
from clarinet.run.training import train
from tests.clarinet.factories import NUM_CLASSES, make_config, make_images

CPU = torch.device("cpu")


class TestLaw:
    @pytest.mark.parametrize("floor_percent", [1, 20, 100])
    def test_is_belief_among_what_is_possible_over_a_floor(self, floor_percent: int) -> None:
        draws = np.random.default_rng(0)
        believed = draws.dirichlet(np.full(7, 0.2), 50)
        possible = draws.random((50, 7)) < 0.6
        possible[:, :2] = True

        q = question_probabilities(
            question_weights(beliefs_of(believed), possible, floor_percent=floor_percent)
        )

        e = floor_percent / 100
        kept = np.where(possible, beliefs_of(believed) / UNIT, 0)
        kept = np.where(kept.sum(1, keepdims=True) == 0, possible, kept)
        expected = (1 - e) * kept / kept.sum(1, keepdims=True) + e / possible.sum(1, keepdims=True)
        np.testing.assert_allclose(q, np.where(possible, expected, 0), rtol=1e-12)
        assert (q[possible] >= (e / possible.sum(1, keepdims=True) * np.ones_like(q))[possible] - 1e-15).all()

    def test_a_model_that_believes_in_nothing_possible_asks_about_all_alike(self) -> None:
        beliefs = np.array([[UNIT, 0, 0, 0]], np.uint16)

        weights = question_weights(beliefs, np.array([[False, True, True, True]]))

        assert question_probabilities(weights)[0].tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])

    @pytest.mark.parametrize(("floor_percent", "possible"), [(0, 2), (101, 2), (20, 1)])
    def test_refuses_what_is_no_question(self, floor_percent: int, possible: int) -> None:
        beliefs = np.full((1, 3), 9, np.uint16)

        with pytest.raises(ValueError, match=r"floor_percent|two classes"):
            question_weights(beliefs, np.arange(3)[None] < possible, floor_percent=floor_percent)


def make_task(count: int = 90) -> TaskData:
    """Bars in both domains."""
    classes = torch.randint(NUM_CLASSES, (count,), generator=generator(0, "truth"))
    images = make_images(classes)
    dark = make_images(classes, seed=1, brightness=150)
    return TaskData(
        task=Task(name="U->M", source="usps", target="mnist", classes=("a", "b", "c")),
        source=Domain(name="light", x_train=images, y_train=classes, x_test=None, y_test=None),
        target=Domain(name="dark", x_train=dark, y_train=classes, x_test=dark, y_test=classes),
        digest="0",
    )


def inverse(seed: int, **changes: Any) -> TrainConfig:
    """A run that weighs answers by 1/q, of a few steps."""
    values = {"epochs": 1, "steps_per_epoch": 3, "batch_size": 16, "held_out_share": 0.2}
    return config_for("gac", setting="pc", complementary_loss="inverse", seed=seed, **values | changes)


def twice_asked(count: int = 60) -> tuple[TrainData, active.Asked]:
    """A uniform question about each image, and one by belief about those with a no."""
    task = make_task(count)
    truth = task.source.y_train
    first = active.uniform_questions(truth, torch.arange(count), NUM_CLASSES, seed=0)
    beliefs = torch.rand(count, NUM_CLASSES, generator=generator(0, "beliefs"))
    again = first.images[~first.is_yes][::2]
    then = active.believed_questions(truth, again, beliefs, first, floor_percent=20, seed=0)
    both = first.and_(then)
    data = TrainData.of(both.labels(NUM_CLASSES), task.source.x_train, target_images=task.target.x_train)
    return data, both


class TestFurtherQuestions:
    def test_never_ask_what_was_denied_and_carry_the_probability_of_the_law(self) -> None:
        task = make_task(200)
        truth, rows = task.source.y_train, torch.arange(200)
        first = active.uniform_questions(truth, rows, NUM_CLASSES, seed=0)
        beliefs = torch.rand(200, NUM_CLASSES, generator=generator(0, "beliefs"))
        images = first.images[~first.is_yes]

        then = active.believed_questions(truth, images, beliefs, first, floor_percent=10, seed=0)

        denied = first.classes[images]
        assert (then.excluded == denied).all()
        assert (then.classes != denied).all()
        assert ((truth.numpy()[images] == then.classes) == then.is_yes).all()
        kept = beliefs[images].numpy().copy()
        kept[np.arange(len(images)), denied] = 0
        q = 0.9 * kept / kept.sum(1, keepdims=True) + 0.1 / 2
        np.testing.assert_allclose(then.probabilities, q[np.arange(len(images)), then.classes], rtol=1e-3)

    def test_an_image_has_one_true_label_or_all_its_complementary_ones(self) -> None:
        _, asked = twice_asked()

        labels = asked.labels(NUM_CLASSES)

        assert labels.positions is not None
        assert labels.excluded is not None
        for image in range(60):
            mine = labels.positions == image
            if (labels.kinds[mine] == TRUE).any():
                assert mine.sum() == 1
            else:
                assert (labels.kinds[mine] == COMPLEMENTARY).all()
                assert mine.sum() == (asked.images == image).sum()


class TestTraining:
    def test_images_asked_by_belief_are_never_held_out(self) -> None:
        data, asked = twice_asked()
        config = inverse(0, held_out_share=0.5)

        domains = prepare(data, config, CPU)

        again = set(asked.images[asked.excluded >= 0].tolist())
        held_out = set(domains.example[domains.held_out_rows].tolist())
        assert held_out
        assert not held_out & again
        assert again & set(domains.example[domains.complementary_rows].tolist())

    def test_what_was_excluded_is_part_of_the_data(self) -> None:
        data, _ = twice_asked()
        assert data.excluded is not None
        other = replace(data, excluded=torch.full_like(data.excluded, -1))

        assert fingerprint(other) != fingerprint(data)
        result = train(inverse(0), data)
        plain = train(inverse(0), other)
        assert result.reports[-1].losses["complementary"] != plain.reports[-1].losses["complementary"]

    def test_pseudo_labels_keep_no_such_label_to_estimate_by(self) -> None:
        data, asked = twice_asked()

        found = with_pseudo_labels(data, torch.zeros(60, dtype=torch.int64), setting="cc")

        assert found.excluded is None
        assert found.example is not None
        rest = set(found.example[60:].tolist())
        assert rest
        assert not rest & set(asked.images[asked.excluded >= 0].tolist())

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            (lambda excluded: excluded.float(), "expected torch.int64"),
            (lambda excluded: excluded[:3], "3 rows for"),
            (lambda excluded: excluded.fill_(9), "outside"),
            (lambda excluded: torch.tensor([[0, 1]]).expand(len(excluded), 2), "leaves no question"),
        ],
    )
    def test_what_cannot_be_is_refused(self, change: Any, told: str) -> None:
        data, _ = twice_asked()
        assert data.excluded is not None

        with pytest.raises(DataError, match=told):
            replace(data, excluded=change(data.excluded.clone()))

    def test_a_table_of_rows_has_what_was_excluded_of_each(self) -> None:
        rows = [
            LabelRow(0, LabelKind.COMPLEMENTARY, 1, 1.0, 1 / 3),
            LabelRow(0, LabelKind.COMPLEMENTARY, 2, 1.0, 0.4, excluded=(1,)),
        ]

        found = Labels.of(rows, num_classes=4)

        assert found.excluded is not None
        assert found.excluded.tolist() == [[-1], [1]]
        assert Labels.of(rows[:1], num_classes=4).excluded is None

    def test_yes_and_no_by_belief_are_no_reason_to_warn_of_the_likelihood(self) -> None:
        data, _ = twice_asked(240)

        prepare(data, make_config("clarinet-plus", setting="pc"), CPU)  # warnings are errors here


class TestStudy:
    def test_asks_in_each_way_as_it_says_and_trains_nothing_twice(self) -> None:
        task = make_task()
        finished: dict[tuple[Any, ...], dict[str, Any]] = {}

        def key(about: dict[str, Any]) -> tuple[Any, ...]:
            return about["way"], about["answers"]

        def run() -> list[dict[str, Any]]:
            found = active.run_seed(
                task,
                inverse,
                seed=3,
                answers=[60],
                ways=active.WAYS,
                floor_percent=20,
                done=lambda about: finished.get(key(about)),
            )
            return list(found)

        records = run()
        finished = {key(record): record for record in records}

        by_way = {(item["way"], item["answers"]): item for item in records}
        assert set(by_way) == {
            ("uniform", 60),
            ("uniform", 30),
            ("again", 60),
            ("others", 60),
            ("ordinary", 60),
        }
        half = by_way["uniform", 30]
        assert by_way["again", 60]["active_questions"] == 30 - half["yes"]
        assert by_way["again", 60]["questions"] == 60 - half["yes"]
        assert by_way["others", 60]["questions"] == 60
        assert sum(by_way["ordinary", 60]["true"]) == 15
        assert sum(by_way["ordinary", 60]["complementary"]) == NUM_CLASSES
        assert run() == []
        assert "| U->M | 60 | uniform | 60 |" in table(records)
        assert set(charts(records)) == {"active-U-M.svg"}
        json.dumps(records)

    def test_the_command_refuses_what_cannot_be(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["bench", "active", "U-M", "--floor", "0"]) == 1
        assert "1..100" in capsys.readouterr().err
