"""Publishing a model: once, by the holder of the claim, and never unpublished by accident."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import onnxruntime
import pytest
import torch
from sqlalchemy import select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from app.campaigns.models import Campaign
from app.claims import Claim, ClaimLost
from app.clock import utc_now
from app.datasets.intake.shards import shard_key
from app.datasets.models import Dataset
from app.datasets.service import prefix_of
from app.db import Database
from app.registry import kept_pictures, target_predictions
from app.registry import service as registry
from app.registry.models import Model
from app.runs import trials
from app.runs.labels import key_of
from app.runs.models import Metric, Run, Trial, TrialState
from app.storage import StoredFileDamaged, StoredFileMissing
from clarinet.export.cards import card_digest
from clarinet.export.models import load_card, load_model
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import CheckpointError, CheckpointNotWritten
from clarinet.recipes.methods import config_for
from clarinet.recipes.presets import METHODS
from clarinet.run.evaluation import predict
from clarinet.run.tensor_files import tensors_digest
from clarinet.run.training import TrainResult, train
from clarinet.run.turns import Run as Steps
from clarinet.run.turns import finished
from tests.clarinet.factories import in_memory
from tests.factories import make_run
from tests.worker.conftest import folder_of, trial_of
from worker.context import Context
from worker.mirror import Mirror
from worker.trainer.exits import Exit
from worker.trainer.faults import trouble_in
from worker.trainer.training import ClaimedTrial, from_checkpoint_or_anew, training_in_steps
from worker.trainer.trial_data import TrialData

pytestmark = pytest.mark.long


class LosesConfirmations:
    """Sessions whose first commit reaches the database while its confirmation does not reach us."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.lost = False

    @contextmanager
    def begin(self) -> Iterator[Session]:
        """A transaction that commits, and says that it did not, once."""
        with self.database.write.begin() as session:
            yield session
        if not self.lost:
            self.lost = True
            raise OperationalError("COMMIT", None, Exception("connection lost"))


@pytest.fixture
def result(loaded: tuple[Run, TrialData]) -> TrainResult:
    """A training of two steps."""
    run, trial_data = loaded
    config = TrainConfig.from_dict(run.config | {"seed": 0, "epochs": 1, "steps_per_epoch": 2})
    return train(config, trial_data.data)


def claimed(context: Context, run: Run, database: Any = None) -> ClaimedTrial:
    with context.unit_of_work() as session:
        claim = trials.claim_trial(session, run.trials[0].id, by="worker", now=utc_now())
    assert claim is not None
    storage = folder_of(context)
    checkpoint = Mirror(storage, storage, trials.checkpoint_key(claim.id), every_s=1)
    return ClaimedTrial(database or context.database, storage, checkpoint, claim, run.trials[0], run)


@pytest.mark.long
@pytest.mark.usefixtures("without_onnx")
def test_a_lost_confirmation_does_not_unpublish_the_model(
    context: Context, loaded: tuple[Run, TrialData], result: TrainResult
) -> None:
    run, trial_data = loaded
    flaky = Database(
        read=context.database.read,
        write=cast("Any", LosesConfirmations(context.database)),  # stands in for a session maker
        engine=context.database.engine,
    )

    claimed(context, run, flaky).publish(result, trial_data)

    with context.reading() as session:
        [model] = session.scalars(select(Model)).all()
    assert folder_of(context).path(f"{model.key}/{registry.WEIGHTS}").exists()
    assert trial_of(context, run.trials[0].id).state is TrialState.SUCCEEDED


@pytest.mark.long
def test_who_lost_the_claim_publishes_nothing_and_leaves_no_files(
    context: Context, loaded: tuple[Run, TrialData], result: TrainResult
) -> None:
    run, trial_data = loaded
    current = claimed(context, run)
    late = replace(current, claim=Claim(Trial, current.claim.id, 99))

    with pytest.raises(ClaimLost):
        late.publish(result, trial_data)

    assert not folder_of(context).path(registry.key_of(current.claim.id, 99)).exists()
    with context.reading() as session:
        assert session.scalars(select(Model)).all() == []


@pytest.mark.long
def test_a_published_model_has_its_card_and_an_onnx_file_that_predicts_alike(
    context: Context, loaded: tuple[Run, TrialData], result: TrainResult
) -> None:
    run, trial_data = loaded

    claimed(context, run).publish(result, trial_data)

    with context.reading() as session:
        [model] = session.scalars(select(Model)).all()
    folder = folder_of(context).path(model.key)
    card = load_card(folder / registry.WEIGHTS)
    assert card["classes"] == model.card["classes"] == trial_data.class_names
    assert card["recipe"] == model.card["recipe"] == "digits: LeNet at 28 pixels"
    assert sum(card["labels"]["complementary"]) == sum(model.card["labels"]["complementary"])
    assert card_digest(card) in (folder / registry.PAGE).read_text()
    graph = (folder / registry.ONNX).read_bytes()
    planes = 3 if len(trial_data.data.target_images.shape) == 4 else 1
    assert model.card["onnx"] == {
        "sha256": hashlib.sha256(graph).hexdigest(),
        "size_bytes": len(graph),
        "takes": ["N", "H", "W", planes],
    }
    # The digests on the card are those of the application, as the pages of dataset and run have them.
    assert card["tensors_digest"] == model.tensors_digest == tensors_digest(result.model.state_dict())
    with context.reading() as session:
        row = session.get_one(Run, run.id)
        kept = {
            domain: session.get_one(Dataset, id_).digest
            for domain, id_ in (("source", row.source_dataset_id), ("target", row.target_dataset_id))
        }
        campaign = session.get_one(Campaign, row.campaign_id).name
    page = (folder / registry.PAGE).read_text()
    assert {domain: item["digest"] for domain, item in card["origin"]["datasets"].items()} == kept
    assert all(f"`{digest}`" in page for digest in (*kept.values(), run.snapshot_digest))
    assert (model.name, model.version, model.card["campaign"]) == (campaign, 1, campaign)
    assert card["data"]["target"]["made"] == model.card["made"]["target"] == "regenerated, seed 0"
    assert card["data"]["source"]["made"] == "regenerated, seed 1"
    images = in_memory(trial_data.data.target_images)
    onnx = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    pixels = images if images.ndim == 4 else images[..., None]
    [probabilities] = onnx.run(None, {"images": pixels.numpy()})
    ours = predict(load_model(folder / registry.WEIGHTS), images)
    torch.testing.assert_close(torch.from_numpy(probabilities), ours, atol=1e-4, rtol=0)


@pytest.mark.usefixtures("without_onnx")
def test_a_model_that_cannot_be_exported_is_published_without_onnx(
    context: Context, loaded: tuple[Run, TrialData], result: TrainResult
) -> None:
    run, trial_data = loaded

    claimed(context, run).publish(result, trial_data)

    with context.reading() as session:
        [model] = session.scalars(select(Model)).all()
    folder = folder_of(context).path(model.key)
    assert {item.name for item in folder.iterdir()} == {
        registry.WEIGHTS,
        registry.CARD,
        registry.PAGE,
        target_predictions.FILE,
        kept_pictures.FILE,
    }
    assert "needs the package onnx" in model.card["onnx"]["missing"]
    assert trial_of(context, run.trials[0].id).state is TrialState.SUCCEEDED


@pytest.mark.parametrize(
    ("error", "kept"), [(CheckpointNotWritten("disk full"), True), (CheckpointError("damaged"), False)]
)
def test_only_a_checkpoint_that_cannot_be_read_is_dropped(
    error: CheckpointError, kept: bool, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint.safetensors"
    checkpoint.touch()

    def fail() -> Steps[TrainResult]:
        raise error

    with pytest.raises(CheckpointError):
        finished(from_checkpoint_or_anew(fail, checkpoint))
    assert checkpoint.exists() is kept


@pytest.mark.parametrize("happened", ["damaged", "missing"])
@pytest.mark.parametrize("kept", ["shard", "snapshot"])
def test_files_that_this_machine_lacks_are_its_own_fault_in_words(
    happened: str, kept: str, context: Context
) -> None:
    with context.unit_of_work() as session:
        run = make_run(session, context.storage, train=2)
        target = session.get_one(Dataset, run.target_dataset_id)
        key = shard_key(prefix_of(target), 0) if kept == "shard" else key_of(run.snapshot_digest)
    folder_of(context).path(key).unlink()
    if happened == "damaged":
        context.storage.put(key, b"something else")

    with pytest.raises((StoredFileMissing, StoredFileDamaged)) as refused:
        finished(training_in_steps(claimed(context, run), torch.device("cpu"), lambda: False))

    told = {"damaged": "it is damaged or cannot be read", "missing": "is no longer in the server's folder"}
    assert told[happened] in (trouble_in(refused.value) or "")


@pytest.mark.long(but=["sqlite-clarinet-plus"])
@pytest.mark.parametrize("method", METHODS)
def test_a_trial_of_each_method_trains_to_a_published_model(
    method: str, context: Context, request: pytest.FixtureRequest
) -> None:
    if method != "clarinet-plus":  # the file depends on the network alone
        request.getfixturevalue("without_onnx")
    preset = next(iter(METHODS[method]))
    setting = config_for(method).setting
    with context.unit_of_work() as session:
        run = make_run(
            session,
            context.storage,
            method=method,
            preset=preset,
            setting=setting,
            config={"adaptation_start_epoch": 0},
        )

    ended = finished(training_in_steps(claimed(context, run), torch.device("cpu"), lambda: False))

    assert ended is Exit.ENDED
    with context.reading() as session:
        [model] = session.scalars(select(Model)).all()
        epochs = [metric.epoch for metric in session.scalars(select(Metric).order_by(Metric.epoch))]
    trial = trial_of(context, run.trials[0].id)
    assert (trial.state, trial.failure) == (TrialState.SUCCEEDED, None)
    assert epochs == [1, 2]
    assert (model.card["method"], model.card["setting"], model.card["epochs"]) == (method, setting, 2)
    assert ("missing" in model.card["onnx"]) is (method != "clarinet-plus")
