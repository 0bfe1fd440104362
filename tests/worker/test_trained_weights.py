"""Trials that begin with trained weights: the file, what the card says of it, and kept features."""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
import timm
import torch
from safetensors.torch import save_file
from sqlalchemy import select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from app.claims import Claim, ClaimLost
from app.db import Database
from app.registry.models import Model
from app.runs.faults import Fault
from app.runs.models import Metric, Trial, TrialState
from clarinet.recipes.doing import Doing
from clarinet.recipes.errors import ConfigError
from clarinet.run.turns import finished
from tests.factories import make_run
from tests.worker.conftest import both_databases, folder_of, trial_of
from tests.worker.test_training import claimed
from worker.context import Context
from worker.trainer.exits import Exit
from worker.trainer.faults import WorkerUnfit, trouble_in
from worker.trainer.training import ClaimedTrial, training_in_steps

pytestmark = pytest.mark.long


class Watched:
    """Sessions after whose commits the row of the one trial is read: what it said that it was doing."""

    def __init__(self, database: Database, *, away: int = 0) -> None:
        self.database = database
        self.away = away  # times that the database does not answer at first
        self.seen: list[Doing | None] = []

    @contextmanager
    def begin(self) -> Iterator[Session]:
        """A transaction, and a look."""
        if self.away > 0:
            self.away -= 1
            raise OperationalError("BEGIN", None, Exception("connection refused"))
        with self.database.write.begin() as session:
            yield session
        with self.database.read.begin() as session:
            self.seen.append(session.scalars(select(Trial)).one().doing_now)

    def for_a_trial(self) -> Database:
        """The database as a training process has it."""
        write = cast("Any", self)  # stands in for a session maker
        return Database(read=self.database.read, write=write, engine=self.database.engine)


class TestTrainedWeights:
    NETWORK: ClassVar[dict[str, Any]] = {
        "architecture": "timm/test_resnet",
        "image_size": 32,
        "pretrained": "net.safetensors",
    }

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """The operator's, with a file."""
        folder = tmp_path / "weights"
        folder.mkdir()
        save_file(timm.create_model("test_resnet").state_dict(), folder / "net.safetensors")
        return folder

    def trained(self, context: Context, folder: Path | None, digest: str, **details: Any) -> Trial:
        """A trial of a run that was started with a file of this digest, after its training process."""
        with context.unit_of_work() as session:
            weights = {"net.safetensors": digest}
            details = {"config": self.NETWORK} | details
            run = make_run(session, context.storage, weights=weights, **details)
        work = replace(claimed(context, run), weights_dir=folder)
        assert finished(training_in_steps(work, torch.device("cpu"), lambda: False)) is Exit.ENDED
        return trial_of(context, run.trials[0].id)

    def claimed_on_kept(self, context: Context, folder: Path, database: Any = None) -> ClaimedTrial:
        """A trial on kept features of 120 images of the source, 120 of the target and 40 to test it."""
        digest = hashlib.sha256((folder / "net.safetensors").read_bytes()).hexdigest()
        with context.unit_of_work() as session:
            run = make_run(
                session,
                context.storage,
                weights={"net.safetensors": digest},
                method="clarinet-plus",
                preset="photographs-quick",
                config=self.NETWORK | {"epochs": 3},
            )
        return replace(claimed(context, run, database), weights_dir=folder)

    @pytest.mark.usefixtures("without_onnx")
    def test_the_card_has_the_name_and_digest_of_the_file(self, context: Context, folder: Path) -> None:
        digest = hashlib.sha256((folder / "net.safetensors").read_bytes()).hexdigest()

        trial = self.trained(context, folder, digest)

        assert (trial.state, trial.failure) == (TrialState.SUCCEEDED, None)
        with context.reading() as session:
            [model] = session.scalars(select(Model)).all()
        assert model.card["pretrained"] == {"name": "net.safetensors", "digest": digest}
        assert model.card["config"]["network"]["pretrained"] == "net.safetensors"
        assert str(folder) not in json.dumps(model.card)

    def test_a_run_on_kept_features_publishes_a_model(self, context: Context, folder: Path) -> None:
        work = self.claimed_on_kept(context, folder)

        assert finished(training_in_steps(work, torch.device("cpu"), lambda: False)) is Exit.ENDED

        trial = trial_of(context, work.claim.id)
        assert (trial.state, trial.failure) == (TrialState.SUCCEEDED, None)
        with context.reading() as session:
            [model] = session.scalars(select(Model)).all()
            metrics = session.scalars(select(Metric).order_by(Metric.epoch)).all()
        assert [(metric.epoch, set(metric.losses)) for metric in metrics] == [
            (number, {"contradiction"}) for number in (1, 2, 3)
        ]
        assert model.card["onnx"].keys() == {"sha256", "size_bytes", "takes"}

    @pytest.mark.usefixtures("without_onnx")
    def test_the_papers_losses_on_kept_features_publish_a_model_that_says_so(
        self, context: Context, folder: Path
    ) -> None:
        digest = hashlib.sha256((folder / "net.safetensors").read_bytes()).hexdigest()
        few = {"epochs": 4, "steps_per_epoch": 2, "batch_size": 16, "adaptation_start_epoch": 0}

        trial = self.trained(
            context,
            folder,
            digest,
            method="gac+dan",
            preset="photographs-quick",
            config=self.NETWORK | few,
        )

        assert (trial.state, trial.failure) == (TrialState.SUCCEEDED, None)
        with context.reading() as session:
            [model] = session.scalars(select(Model)).all()
            metrics = session.scalars(select(Metric).order_by(Metric.epoch)).all()
        assert model.card["recipe"].endswith(
            "; the paper's losses on kept features of a frozen backbone; not the paper's network"
        )
        assert [(metric.epoch, metric.step) for metric in metrics] == [(1, 2), (2, 4), (3, 6), (4, 8)]

    @pytest.mark.usefixtures("without_onnx")
    @both_databases
    def test_a_run_on_kept_features_says_what_it_is_doing_until_its_first_epoch(
        self, context: Context, folder: Path
    ) -> None:
        watched = Watched(context.database)
        work = self.claimed_on_kept(context, folder, watched.for_a_trial())

        assert finished(training_in_steps(work, torch.device("cpu"), lambda: False)) is Exit.ENDED

        first_epoch = watched.seen.index(None)
        counts = [doing.done for doing in watched.seen[:first_epoch] if doing is not None]
        assert watched.seen[0] == Doing("features", 0, 280)
        assert watched.seen[first_epoch - 1] == Doing("features", 280, 280)
        assert counts == sorted(counts)
        assert watched.seen[first_epoch:] == [None] * 4  # of three epochs and the end
        assert trial_of(context, work.claim.id).state is TrialState.SUCCEEDED

    @pytest.mark.usefixtures("without_onnx")
    def test_a_database_that_is_away_does_not_end_a_training_that_says_what_it_is_doing(
        self, context: Context, folder: Path
    ) -> None:
        watched = Watched(context.database, away=1)
        work = self.claimed_on_kept(context, folder, watched.for_a_trial())

        assert finished(training_in_steps(work, torch.device("cpu"), lambda: False)) is Exit.ENDED

        assert watched.seen[0] != Doing("features", 0, 280)  # which could not be written
        assert Doing("features", 280, 280) in watched.seen
        assert trial_of(context, work.claim.id).state is TrialState.SUCCEEDED

    def test_who_lost_the_claim_ends_before_the_features_are_there(
        self, context: Context, folder: Path
    ) -> None:
        current = self.claimed_on_kept(context, folder)
        late = replace(current, claim=Claim(Trial, current.claim.id, 99))

        with pytest.raises(ClaimLost):
            finished(training_in_steps(late, torch.device("cpu"), lambda: False))

        assert not folder_of(context).path(f"trials/{current.claim.id}/checkpoint.safetensors").exists()
        assert trial_of(context, current.claim.id).doing_now is None

    def test_a_file_that_is_not_the_one_of_the_start_fails_the_trial_in_words(
        self, context: Context, folder: Path
    ) -> None:
        digest = hashlib.sha256((folder / "net.safetensors").read_bytes()).hexdigest()
        save_file(timm.create_model("test_resnet").state_dict(), folder / "net.safetensors")

        trial = self.trained(context, folder, digest)

        assert (trial.state, trial.fault) == (TrialState.FAILED, Fault.RUN)
        told = r"Pretrained: net\.safetensors is another file than was meant: its SHA-256 is "
        assert re.search(told, trial.failure or "")

    @pytest.mark.parametrize(
        ("happened", "told"),
        [
            ("gone", r"net\.safetensors cannot be read: .*No such file"),
            ("no folder", r"The worker that took this trial has no folder of trained weights.*_WEIGHTS_DIR"),
        ],
    )
    def test_a_file_that_this_worker_lacks_is_its_own_fault(
        self, happened: str, told: str, context: Context, folder: Path
    ) -> None:
        digest = hashlib.sha256((folder / "net.safetensors").read_bytes()).hexdigest()
        (folder / "net.safetensors").unlink()

        with pytest.raises((WorkerUnfit, ConfigError)) as refused:
            self.trained(context, None if happened == "no folder" else folder, digest)

        assert re.search(told, trouble_in(refused.value) or "")
