"""What can go wrong, as types. Imports nothing, so that a caller can catch these without loading torch."""

from pathlib import Path


class ClarinetError(Exception):
    """Base of every error the library raises on purpose; its message is a sentence for a person."""


class ConfigError(ClarinetError, ValueError):
    """A hyper-parameter has an unknown name, a value outside its bounds, or one that does not go with others.

    `field` names the hyper-parameter to change, where there is one.
    """

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class WeightsNotDownloaded(ConfigError):
    """Trained weights cannot be fetched: no network, or what lies at the `address` is not what it was.

    `network` is whose weights they are.
    """

    def __init__(self, message: str, *, network: str, address: str) -> None:
        super().__init__(message, "pretrained")
        self.network = network
        self.address = address


class DataError(ClarinetError, ValueError):
    """Images or labels that cannot be trained on: wrong shape, length, range, or too few of them."""


class ClassesNotCounted(DataError):
    """A label file that does not say how many classes there are, and nobody else did."""


class NonUniformLabels(UserWarning):
    """Complementary labels that cannot be uniform are about to train a loss that takes them for uniform."""


class OtherClasses(UserWarning):
    """Test images whose class is none of those that are told apart were left out."""


class FilesLeftOut(UserWarning):
    """Files of a folder were left out as asked, or taken in a way that should be known."""


class ColumnsLeftOut(UserWarning):
    """Columns of a label file that the library does not read, or lines that answer nothing, were left out;
    or it lacks a column without which its labels may mislead."""


class DataNotFound(DataError):
    """A known data set is not where it was looked for; the message says what to put there."""


class Diverged(ClarinetError):
    """The loss of an epoch, or a prediction after it, is not finite: the network is of no more use."""

    def __init__(self, epoch: int, losses: dict[str, float]) -> None:
        self.epoch = epoch
        self.losses = losses
        shown = ", ".join(f"{name} {value:g}" for name, value in losses.items())
        super().__init__(
            f"the loss is no longer a finite number in epoch {epoch} ({shown}); try a smaller learning_rate"
        )


class NotFitted(ClarinetError, ValueError, AttributeError):
    """An estimator was asked before it was fitted; where scikit-learn is installed, its own error comes."""


class Interrupted(ClarinetError):
    """Training stopped because it was asked to; the checkpoint (if one was wanted) is on disk."""

    def __init__(self, step: int, checkpoint: Path | None) -> None:
        self.step = step
        self.checkpoint = checkpoint
        kept = f"; resume from {checkpoint}" if checkpoint else "; there is no checkpoint, so nothing is kept"
        super().__init__(f"stopped after step {step} as asked{kept}")


class CheckpointError(ClarinetError):
    """A checkpoint or model file that is missing, damaged or of an unknown format."""


class CheckpointNotWritten(CheckpointError):
    """The disk refused a checkpoint or model file; the file before it, if any, is as good as it was."""


class CheckpointMismatch(CheckpointError):
    """A checkpoint that belongs to another config or to other data; resuming from it would mix two runs."""


class ExportError(ClarinetError):
    """A model that cannot be written as ONNX: a package is missing, or the format cannot hold it."""
