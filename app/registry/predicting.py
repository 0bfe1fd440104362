"""Predictions of pictures: which model is served, and what it says of some pictures."""

from dataclasses import dataclass

from app.registry.errors import ModelWithoutOnnx
from app.registry.models import Model
from app.registry.predictor import Said, Served
from app.registry.service import ONNX
from app.runs import configs
from app.storage import Storage, StoredFileMissing

DIGITS = 6  # of a probability, as `clarinet predict` writes it


@dataclass(frozen=True, slots=True)
class Predicted:
    """What a model says of one picture."""

    name: str
    classes: tuple[str, ...]
    said: Said

    @property
    def probabilities(self) -> list[float] | None:
        """Of each class in their order, rounded; None where the picture was refused."""
        given = self.said.probabilities
        return None if given is None else [round(share, DIGITS) for share in given]

    @property
    def predicted_class(self) -> str | None:
        """The likeliest class; of several the first."""
        given = self.said.probabilities
        return None if given is None else self.classes[given.index(max(given))]

    @property
    def refused(self) -> str | None:
        """Why nothing can be said of the picture, as a sentence."""
        return self.said.refused or None

    def likeliest(self, count: int) -> list[tuple[str, float]]:
        """The likeliest classes with their probabilities, in falling order."""
        pairs = zip(self.classes, self.said.probabilities or (), strict=False)
        return sorted(pairs, key=lambda pair: -pair[1])[:count]


def served(storage: Storage, model: Model) -> Served:
    """A model as it is at this moment, to predict by.

    Who asks by a name that may come to mean another model resolves it once, before this. All pictures of the
    request are then answered by what this gives.

    Raises:
        ModelWithoutOnnx: it has no ONNX file.
        StoredFileMissing: the server has lost it.
    """
    digest = model.card.get("onnx", {}).get("sha256")
    if digest is None:
        raise ModelWithoutOnnx
    path = storage.path(f"{model.key}/{ONNX}")
    if not path.is_file():
        raise StoredFileMissing
    network = configs.readable(model.card["config"]).get("network", {})
    side = network.get("image_size")
    return Served(
        id=model.id,
        name=model.name,
        version=model.version,
        digest=model.digest,
        classes=tuple(model.card["classes"]),
        path=str(path),
        sha256=digest,
        side=side,
    )


def predicted(served: Served, names: list[str], said: list[Said]) -> list[Predicted]:
    """What was said, beside the names of the pictures."""
    return [Predicted(name, served.classes, one) for name, one in zip(names, said, strict=True)]
