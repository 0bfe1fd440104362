"""Where the reports of a run may go besides a callback: TensorBoard, MLflow, Weights and Biases.

Each package is imported when the first report comes.
"""

from pathlib import Path
from typing import Any, Protocol

from clarinet.recipes.errors import ConfigError
from clarinet.run.results import EpochReport


class Logger(Protocol):
    """What is told of each epoch; whoever has this method is one."""

    def log(self, report: EpochReport) -> None:
        """Take an epoch's report; what it raises ends the training."""


def figures_of(report: EpochReport) -> dict[str, float]:
    """Every figure of a report that has a curve, by name: losses below "loss/", the estimate below "source/".

    The counts of epochs, steps and labels are none.
    """
    figures = report.to_dict()
    losses = {f"loss/{name}": value for name, value in figures.pop("losses").items()}
    found = figures.pop("source_estimate") or {}
    source = {f"source/{name}": value for name, value in found.items()}
    return {name: value for name, value in (figures | losses | source).items() if isinstance(value, float)}


class TensorBoardLogger:
    """Writes event files, a scalar for each figure over the optimiser's steps.

    A run that is over closes its file. A copy, or one that was pickled, begins a file of its own.

    Args:
        folder: where they go; it is made.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = folder
        self._writer: Any = None  # torch's SummaryWriter, which has no types

    def log(self, report: EpochReport) -> None:
        """Write an epoch.

        Raises:
            ConfigError: the package is missing, or there is a file in the folder's place.
        """
        self.open()
        for name, value in figures_of(report).items():
            self._writer.add_scalar(name, value, report.step)
        self._writer.flush()  # a killed run leaves what it had reported
        if report.epoch == report.epochs:
            self.close()

    def open(self) -> None:
        """Begin a file, which the first report does otherwise; raises as `log` does."""
        if self._writer is not None:
            return
        try:
            from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415
        except ImportError as error:
            raise ConfigError(
                "TensorBoard's events need the package tensorboard: pip install 'clarinet[tensorboard]'"
            ) from error
        try:
            Path(self.folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"{self.folder} cannot be a folder of TensorBoard's events: {error.strerror}"
            ) from error
        self._writer = SummaryWriter(self.folder)

    def close(self) -> None:
        """End the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "_writer": None}


class MLflowLogger:
    """Gives the figures of each epoch to MLflow.

    Args:
        run_id: of the run that takes them; None takes the one that is active, or begins one.
    """

    def __init__(self, run_id: str | None = None) -> None:
        self.run_id = run_id

    def log(self, report: EpochReport) -> None:
        """Log an epoch; raises ConfigError where the package is missing."""
        try:
            import mlflow  # noqa: PLC0415
        except ImportError as error:
            raise ConfigError("MLflow is not installed: pip install 'clarinet[mlflow]'") from error
        mlflow.log_metrics(figures_of(report), step=report.step, run_id=self.run_id)


class WandbLogger:
    """Gives the figures of each epoch to the run of Weights and Biases that `wandb.init` began."""

    def log(self, report: EpochReport) -> None:
        """Log an epoch; raises ConfigError where the package is missing, or no run has begun."""
        try:
            import wandb  # noqa: PLC0415
        except ImportError as error:
            raise ConfigError("Weights and Biases is not installed: pip install 'clarinet[wandb]'") from error
        if wandb.run is None:
            raise ConfigError("Weights and Biases has no run yet; call wandb.init before fit")
        wandb.log(figures_of(report), step=report.step, commit=True)
