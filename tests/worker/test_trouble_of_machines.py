"""What a machine can lack, and that its worker beats on whatever goes wrong."""

import os
import shutil
from pathlib import Path

import pytest

from app.clock import utc_now
from app.datasets.intake.shards import shard_key
from app.datasets.models import Dataset
from app.datasets.service import prefix_of
from app.runs import trials
from app.runs.models import Run, TrialState
from app.runs.workers import process_name
from tests.worker.conftest import folder_of, trial_of, wait_until
from tests.worker.test_faults_of_machines import see_worker, seen_at, trouble_told, with_settings
from tests.worker.test_supervisor import make_trial
from worker.context import Context
from worker.device import Device, look_at_device
from worker.fitness import trouble_of
from worker.heartbeat import Heartbeat
from worker.supervisor import train_trial


class TestTroubleOf:
    """Each thing that a worker can lack, one by one."""

    def test_a_worker_that_lacks_nothing(self, context: Context) -> None:
        make_trial(context, train=2)
        assert trouble_of(context.settings, context.database, context.storage) is None

    @pytest.mark.parametrize(
        ("changed", "told"),
        [
            ({"min_free_mb": 10**9}, "Make room"),
            ({"device": "cuda"}, "nvidia-smi finds no GPU"),
            ({"weights_dir": Path("/nowhere")}, "there is no such folder"),
            ({"data_dir": Path("/dev/null/x")}, "cannot be written"),
        ],
    )
    def test_what_is_missing_is_said(self, context: Context, changed: dict[str, object], told: str) -> None:
        if changed.get("device") and shutil.which("nvidia-smi"):
            pytest.skip("this machine has a GPU")
        other = with_settings(context, **changed)
        assert told in (trouble_of(other.settings, other.database, other.storage) or "")

    def test_one_of_many_data_sets_that_is_gone_is_not_the_worker(self, context: Context) -> None:
        trial = make_trial(context, train=2)
        with context.reading() as session:
            target = session.get_one(Dataset, session.get_one(Run, trial.run_id).target_dataset_id)
        folder_of(context).path(shard_key(prefix_of(target), 0)).unlink()
        assert trouble_of(context.settings, context.database, context.storage) is None


@pytest.mark.long
def test_the_log_of_an_unwritable_folder_sets_back_at_once(context: Context) -> None:
    trial = make_trial(context, train=2)
    folder = folder_of(context).path(trials.trial_prefix(trial.id))
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("a file where the folder should be")

    train_trial(context, trial.id)

    waits = trial_of(context, trial.id)
    assert (waits.state, waits.claimed_until, waits.attempts) == (TrialState.QUEUED, None, 0)
    assert (waits.setback or "").startswith("The training could not be started: ")


def test_a_folder_of_weights_that_cannot_be_looked_into_is_told_and_the_worker_beats_on(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As below a folder that is closed to us, but for root too.
    closed = with_settings(context, weights_dir=Path("/", "x" * 300))
    assert "cannot be looked into" in (trouble_of(closed.settings, closed.database, closed.storage) or "")
    here = process_name(os.getpid())
    see_worker(context, here)
    monkeypatch.setattr("worker.heartbeat.BEAT_S", 0.05)
    began = utc_now()

    heartbeat = Heartbeat(closed, here, ["gpu"])
    heartbeat.start()

    wait_until(lambda: seen_at(context, here) > began)
    first = seen_at(context, here)
    wait_until(lambda: seen_at(context, here) > first)
    heartbeat.stop()
    assert "cannot be looked into" in (trouble_told(context, here) or "")


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), RuntimeError("No home."), ValueError("No number.")]
)
def test_a_look_that_the_system_refuses_is_told_and_ends_no_beats(
    context: Context, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    here = process_name(os.getpid())
    see_worker(context, here)

    def refuse(_settings: object) -> None:
        raise error

    monkeypatch.setattr("worker.heartbeat.trouble_here", refuse)
    began = utc_now()

    heartbeat = Heartbeat(context, here, ["gpu"])
    heartbeat.start()

    wait_until(lambda: seen_at(context, here) > began)
    heartbeat.stop()
    assert trouble_told(context, here) == f"This machine could not be looked at: {error}."


def test_what_goes_wrong_with_one_beat_ends_no_other(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = process_name(os.getpid())
    failures = iter([ValueError("unforeseen")])
    monkeypatch.setattr("worker.heartbeat.BEAT_S", 0.05)

    def note(*_: object) -> None:
        for error in failures:
            raise error

    monkeypatch.setattr("worker.heartbeat.note_trouble", note)
    see_worker(context, here)
    began = utc_now()

    heartbeat = Heartbeat(context, here, ["gpu"])
    heartbeat.start()

    wait_until(lambda: seen_at(context, here) > began)
    heartbeat.stop()


def test_a_device_that_could_not_be_looked_at_is_looked_at_again(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []

    def look(wanted: str) -> Device:
        looks.append(wanted)
        if len(looks) == 1:
            raise ValueError("The driver's tool says what nobody can read.")
        return look_at_device(wanted)

    monkeypatch.setattr("worker.heartbeat.look_at_device", look)
    monkeypatch.setattr("worker.heartbeat.BEAT_S", 0.05)
    here = process_name(os.getpid())
    see_worker(context, here)
    began = utc_now()

    heartbeat = Heartbeat(context, here, ["gpu"])
    heartbeat.start()

    wait_until(lambda: seen_at(context, here) > began)
    heartbeat.stop()
    assert len(looks) == 2
