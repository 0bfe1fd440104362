"""A training says that it gets on in all that takes long beside its steps, however many its images are."""

from dataclasses import replace

import pytest
import torch

from app.runs.models import Run
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.methods import config_for
from clarinet.run.training import train
from clarinet.run.turns import finished
from tests.worker.test_training import claimed
from worker.context import Context
from worker.trainer.exits import Exit
from worker.trainer.training import training_in_steps
from worker.trainer.trial_data import TrialData, load

pytestmark = pytest.mark.usefixtures("without_onnx")
BATCH = 10
IMAGES = {"source": 120, "target": 120, "test": 40}


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the images were so large that few are taken at once."""
    monkeypatch.setattr("clarinet.run.evaluation.BATCH", BATCH)
    monkeypatch.setattr("app.datasets.pixels.BATCH", BATCH)


def short(run: Run) -> TrainConfig:
    """One epoch of one step."""
    return TrainConfig.from_dict(run.config | {"seed": 0, "epochs": 1, "steps_per_epoch": 1})


@pytest.mark.usefixtures("small_batches")
def test_each_batch_of_images_that_is_loaded_is_told(context: Context, loaded: tuple[Run, TrialData]) -> None:
    run, _ = loaded
    told: list[None] = []

    with context.reading() as session:
        load(session, context.storage, run, config_for("clarinet"), beat=lambda: told.append(None))

    assert len(told) == sum(IMAGES.values()) // BATCH


@pytest.mark.usefixtures("small_batches")
def test_each_batch_that_is_predicted_for_a_published_model_is_told(
    context: Context, loaded: tuple[Run, TrialData]
) -> None:
    run, data = loaded
    told: list[None] = []
    result = train(short(run), data.data)
    work = replace(claimed(context, run), beat=lambda: told.append(None))

    work.publish(result, data)

    # Classes of all, and features of both domains for the map.
    assert len(told) >= (sum(IMAGES.values()) + IMAGES["source"] + IMAGES["target"]) // BATCH


@pytest.mark.usefixtures("small_batches")
def test_each_batch_that_scores_an_epoch_or_a_run_is_told(loaded: tuple[Run, TrialData]) -> None:
    run, data = loaded
    told: list[None] = []

    train(short(run), data.data, on_part=lambda: told.append(None))

    assert len(told) >= (2 * IMAGES["test"] + IMAGES["target"]) // BATCH


def test_images_brought_to_another_size_are_told_as_they_come(loaded: tuple[Run, TrialData]) -> None:
    run, data = loaded
    told: list[None] = []
    grown = replace(short(run), network=replace(short(run).network, image_size=32))

    train(grown, data.data, on_part=lambda: told.append(None))
    whole = len(told)
    told.clear()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("clarinet.data.images.CHUNK_PIXELS", 32**2 * BATCH)
        train(grown, data.data, on_part=lambda: told.append(None))

    assert len(told) >= whole + sum(IMAGES.values()) // BATCH - 3


def test_a_claimed_training_tells_it_to_who_watches_it(
    context: Context, loaded: tuple[Run, TrialData], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, data = loaded
    heard: list[None] = []
    work = replace(claimed(context, run), beat=lambda: heard.append(None), read={run.id: data})
    monkeypatch.setattr("worker.trainer.training.ClaimedTrial.record_epoch", lambda *_: heard.clear())
    monkeypatch.setattr("worker.trainer.training.ClaimedTrial.publish", lambda *_, **__: None)
    monkeypatch.setattr("clarinet.run.evaluation.BATCH", 1)

    assert finished(training_in_steps(work, torch.device("cpu"), lambda: False)) is Exit.ENDED

    assert len(heard) >= IMAGES["test"]  # the score of the whole run, after its last epoch
