"""What stands beside the accuracy of a run, and what it advises."""

from dataclasses import replace

import pytest
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.runs import service
from app.runs.advice import next_steps
from app.runs.beside import Beside, Other, beside
from app.runs.models import Metric, Run, Trial, TrialState
from app.runs.training_curves import training_curves
from app.stores.folder import FolderStorage
from clarinet.recipes.binomial import clopper_pearson, trials_needed
from tests.factories import NOW, make_dataset, make_run


def like(session: Session, run: Run, *accuracies: float | None, **differs: object) -> Run:
    """Another run on the same pair, with a seed of each accuracy; None: it failed."""
    names = (
        "campaign_id",
        "target_dataset_id",
        "config",
        "snapshot_digest",
        "snapshot_facts",
        "created_by_id",
    )
    kept = {name: getattr(run, name) for name in (*names, "method", "setting", "preset", "target_version")}
    trials = [
        Trial(
            seed=seed,
            queued_at=NOW,
            target_accuracy=accuracy,
            state=TrialState.FAILED if accuracy is None else TrialState.SUCCEEDED,
        )
        for seed, accuracy in enumerate(accuracies)
    ]
    made = Run(**{**kept, **differs}, created_at=NOW, trials=trials)
    session.add(made)
    session.flush()
    return made


@pytest.fixture
def run(session: Session, storage: FolderStorage) -> Run:
    """Number 100, without an accuracy."""
    run = make_run(session, storage, train=4)
    run.number = 100
    session.flush()
    return run


def test_only_runs_on_the_same_images_that_ended_well_stand_beside_it(
    session: Session, storage: FolderStorage, run: Run
) -> None:
    best = like(session, run, 0.7, 0.8, number=3)
    like(session, run, 0.6, number=4)
    like(session, run, 0.9, None, number=5)
    like(session, run, 0.9, number=6, setting="pc")
    like(session, run, 0.9, number=7, target_dataset_id=make_dataset(session, storage).id)
    like(session, run, 0.9, number=8, target_version=2)
    like(session, run, 0.9, number=101)
    like(session, run, 0.3, number=9, method="gac")
    alone = like(session, run, 0.4, number=102, method="gac")

    found = beside(session, run)

    assert found.chance == 1 / 2
    assert found.best_earlier is not None
    assert found.best_earlier.mean == pytest.approx(0.75)
    assert replace(found.best_earlier, mean=0.75) == Other(best.id, 3, "clarinet-plus", 0.75, 2)
    assert found.source_alone == Other(alone.id, 102, "gac", 0.4, 1)
    assert beside(session, alone).source_alone is None


def test_a_run_without_company_has_chance_alone(session: Session, run: Run) -> None:
    found = beside(session, run)

    assert (found.source_alone, found.best_earlier) == (None, None)
    assert found.lines == [{"name": "chance", "value": 0.5}]


def test_lines_that_would_cover_each_other_are_left_out(run: Run) -> None:
    other = Other(run.id, 1, "gac", 0.52, 1)

    found = Beside(0.5, other, replace(other, mean=0.9)).lines

    assert [line["name"] for line in found] == ["chance", "best earlier run"]


class TestAdvice:
    def words(self, session: Session, run: Run, *, images: int = 10_000) -> list[str]:
        session.expire_all()
        run = service.get_run(session, run.id, by=session.get_one(User, run.created_by_id))
        summary = service.summaries(session, [run], now=NOW)[run.id]
        return [step.words for step in next_steps(run, summary, beside(session, run), images=images)]

    def test_a_run_that_has_not_ended_or_ended_badly_advises_nothing(
        self, session: Session, run: Run
    ) -> None:
        assert self.words(session, run) == []
        assert self.words(session, like(session, run, None, number=3)) == []

    def test_few_images_that_score_ask_for_people(self, session: Session, run: Run) -> None:
        asked, alone, seeds, model = self.words(session, like(session, run, 0.95, number=3))

        low, high = clopper_pearson(0.95 * 40, 40)
        assert f"about {trials_needed(0.02, 0.95)} pictures to know the accuracy within 2 points" in asked
        assert f"the 40 that score now tell it within {100 * max(0.95 - low, high - 0.95):.0f}" in asked
        assert alone.startswith("Train from the source alone")
        assert seeds.startswith("Train 3 seeds")
        assert model.startswith("Try the model")

    def test_what_is_there_already_is_not_advised(self, session: Session, run: Run) -> None:
        like(session, run, 0.5, number=2, method="gac")

        found = self.words(session, like(session, run, 0.95, 0.95, 0.95, number=3), images=100)

        assert [words.split(".")[0] for words in found] == [
            "Try the model on pictures of your own, or download it"
        ]

    @pytest.mark.parametrize(
        ("images", "told"),
        [
            (10_000, "402 pictures tell it within 5 points; 2 449 pictures tell it within 2 points"),
            (1000, "402 pictures tell it within 5 points"),
            (300, "the target has 300 pictures"),
        ],
    )
    def test_nothing_measured_asks_for_people_first(
        self, session: Session, storage: FolderStorage, images: int, told: str
    ) -> None:
        target = make_dataset(session, storage, train=4, class_names=None)
        run = make_run(session, storage, train=4, target=target)
        run.trials[0].state = TrialState.SUCCEEDED
        session.flush()

        found = self.words(session, run, images=images)

        assert found[0] == f"Ask people whether its predictions are right: {told}."

    def test_what_is_no_better_than_guessing_is_not_offered_for_use(self, session: Session, run: Run) -> None:
        guesses = like(session, run, 0.5, number=3)
        guesses.trials[0].result = {"predicted_counts": [78, 2]}
        session.flush()

        found = self.words(session, guesses, images=40)

        assert found[0].startswith("It may have collapsed: it takes nearly every picture for one class")
        assert found[1].startswith("It may have too few labels: it learnt from ")
        assert found[2].startswith("The domains may lie too far apart")
        assert found[3].startswith("Train from the source alone")
        assert not [words for words in found if "download" in words or "seeds or more" in words]

    def test_too_few_pictures_that_score_are_said_before_what_may_be_wrong(
        self, session: Session, run: Run
    ) -> None:
        found = self.words(session, like(session, run, 0.6, number=3))

        assert found[0].startswith("Ask people about")
        assert found[1].startswith("It may have too few labels")


def test_curves_have_the_seeds_and_leave_out_what_nobody_told(run: Run) -> None:
    figures = [(1, 10, 5.0), (2, 20, 7.0), (4, 40, 9.0)]  # epoch, step, seconds; the third epoch got lost
    metrics = [
        Metric(trial_id=run.trials[0].id, epoch=epoch, step=step, seconds=seconds, losses={"a_b": 1 / epoch})
        for epoch, step, seconds in figures
    ]
    metrics[1].learning_rate = 0.1

    found = {each["title"]: each["plot"] for each in training_curves(run, metrics)}

    assert list(found) == ["Loss: a b", "Learning rate", "Steps a second"]
    assert found["Loss: a b"]["x"] == [1, 2, 4]
    assert found["Loss: a b"]["series"] == [{"name": "seed 0", "values": [1, 0.5, 0.25]}]
    assert (found["Learning rate"]["x"], found["Learning rate"]["unit"]) == ([2], "number")
    assert found["Steps a second"]["series"][0]["values"] == [2, 5]
    assert {plot["x_min"] for plot in found.values()} == {1}
    assert training_curves(run, []) == []


def test_only_steps_have_a_pace(run: Run) -> None:
    """Rounds on kept features are no steps, and what a bottleneck takes behind them are."""
    metrics = [
        Metric(trial_id=run.trials[0].id, epoch=epoch, step=10 * epoch, seconds=epoch, losses={"a": 1.0})
        for epoch in (1, 2)
    ]
    found = []

    for width in (0, 512):
        run.config = {**run.config, "network": {"kept_features": True, "bottleneck": width}}
        found.append([each["title"] for each in training_curves(run, metrics)])

    assert found == [["Loss: a"], ["Loss: a", "Steps a second"]]


def test_a_loss_is_explained_and_one_that_is_always_0_has_no_chart(run: Run) -> None:
    losses = {"neighbours": 0.0, "contrast": 0.5, "new_one": 1.0}
    metric = Metric(trial_id=run.trials[0].id, epoch=3, step=30, seconds=9.0, losses=losses)

    neighbours, contrast, unknown, *_ = training_curves(run, [metric])

    assert neighbours["plot"] is None
    assert "look most like it" in neighbours["about"]
    assert contrast["plot"]["x"] == [3]
    assert contrast["plot"]["y_name"] == "value"
    assert "two views of an image" in contrast["about"]
    assert unknown["about"] == ""
