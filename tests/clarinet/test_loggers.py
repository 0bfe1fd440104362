"""Reports of a run in TensorBoard, MLflow, and Weights and Biases."""

import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from clarinet import train
from clarinet.recipes.errors import ConfigError
from clarinet.recipes.source_accuracy import SourceEstimate
from clarinet.run.loggers import Logger, MLflowLogger, TensorBoardLogger, WandbLogger, figures_of
from clarinet.run.results import EpochReport
from tests.clarinet.factories import make_config, make_data


def make_report(epoch: int, *, epochs: int = 2) -> EpochReport:
    return EpochReport(
        epoch=epoch,
        epochs=epochs,
        step=10 * epoch,
        steps=20,
        seconds=1.5,
        losses={"complementary": 0.5 / epoch},
        target_accuracy=None,
        source_estimate=SourceEstimate(held_out=300, needed=200, missing=0, estimate=0.9, low=0.8, high=0.95),
        smallest_predicted_share=0.1,
        target_information=0.2,
        student_agreement=None,
    )


def test_figures_are_the_numbers_that_have_a_curve() -> None:
    assert figures_of(make_report(2)) == {
        "seconds": 1.5,
        "loss/complementary": 0.25,
        "source/estimate": 0.9,
        "source/low": 0.8,
        "source/high": 0.95,
        "smallest_predicted_share": 0.1,
        "target_information": 0.2,
    }


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {
        name: [(event.step, event.value) for event in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


def test_tensorboard_has_a_curve_of_each_figure(tmp_path: Path) -> None:
    logger: Logger = TensorBoardLogger(tmp_path / "log")

    for epoch in (1, 2):
        logger.log(make_report(epoch))

    found = curves(tmp_path / "log")
    assert found["loss/complementary"] == [(10, 0.5), (20, 0.25)]
    assert set(found) == set(figures_of(make_report(1)))
    assert len(list((tmp_path / "log").iterdir())) == 1


def test_tensorboard_takes_a_whole_run_and_is_pickled_in_the_middle(tmp_path: Path) -> None:
    logger = TensorBoardLogger(tmp_path)

    result = train(make_config(), make_data(), on_epoch=logger.log)

    assert [step for step, _ in curves(tmp_path)["seconds"]] == [report.step for report in result.reports]
    logger.log(make_report(1))
    assert pickle.loads(pickle.dumps(logger)).folder == tmp_path
    logger.close()


def test_a_file_in_the_place_of_the_folder_is_refused_in_words() -> None:
    with pytest.raises(ConfigError, match="cannot be a folder of TensorBoard's events"):
        TensorBoardLogger(__file__).log(make_report(1))


@pytest.mark.parametrize(
    ("logger", "module", "extra"),
    [
        (TensorBoardLogger("log"), "torch.utils.tensorboard", "tensorboard"),
        (MLflowLogger(), "mlflow", "mlflow"),
        (WandbLogger(), "wandb", "wandb"),
    ],
)
def test_a_missing_package_says_what_to_install(
    logger: Logger, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(ConfigError, match=rf"pip install 'clarinet\[{extra}\]'"):
        logger.log(make_report(1))


@pytest.mark.long
def test_mlflow_has_the_figures_of_each_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a folder is all that a test needs
    mlflow: Any = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(f"file:{tmp_path}/runs")

    with mlflow.start_run() as run:
        for epoch in (1, 2):
            MLflowLogger().log(make_report(epoch))

    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "loss/complementary")
    assert [(one.step, one.value) for one in history] == [(10, 0.5), (20, 0.25)]


@pytest.mark.long
def test_wandb_has_the_figures_of_each_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wandb: Any = pytest.importorskip("wandb")
    with pytest.raises(ConfigError, match=r"call wandb\.init before fit"):
        WandbLogger().log(make_report(1))

    with wandb.init(mode="offline", dir=str(tmp_path)) as run:
        for epoch in (1, 2):
            WandbLogger().log(make_report(epoch))
        last = run.summary["loss/complementary"]

    assert last == 0.25
