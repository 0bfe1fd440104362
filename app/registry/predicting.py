"""Predictions of pictures: which model is served, and what it says of some pictures."""

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.registry.errors import ModelNotFound, ModelWithoutOnnx
from app.registry.models import Model
from app.registry.predictor import Said, Served
from app.registry.service import ONNX, get_model
from app.runs import configs
from app.storage import Storage

MOST_KEPT = 100  # models whose cards are kept
_asked = select(Model.name.label("name"), Model.version.label("version")).where(
    Model.id == bindparam("model_id")
)
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
    key = f"{model.key}/{ONNX}"
    network = configs.readable(model.card["config"]).get("network", {})
    side = network.get("image_size")
    return Served(
        id=model.id,
        name=model.name,
        version=model.version,
        digest=model.digest,
        classes=tuple(model.card["classes"]),
        path=str(storage.file(key)),
        sha256=digest,
        side=side,
        again=lambda: str(storage.file(key)),
    )


class Recent:
    """Models that were asked for lately. Of each what its card says is kept, for that never changes."""

    def __init__(self) -> None:
        self._kept: OrderedDict[UUID, Served] = OrderedDict()
        self._lock = threading.Lock()

    def served(self, session: Session, storage: Storage, model_id: UUID, *, by: User) -> Served:
        """As `served`, of the model with this id; whether it is still there, and its name, are read anew.

        Raises:
            NotAllowed: `by` is no admin.
            ModelNotFound: there is none.
            ModelWithoutOnnx, StoredFileMissing: as `served`.
        """
        accounts.require_admin(by)
        row = session.connection().execute(_asked, {"model_id": model_id}).one_or_none()
        if row is None:
            raise ModelNotFound
        with self._lock:
            kept = self._kept.get(model_id)
        if kept is None or not os.path.isfile(kept.path):  # noqa: PTH113 - pathlib takes twice as long
            kept = served(storage, get_model(session, model_id, by=by))
            with self._lock:
                self._kept[model_id] = kept
                while len(self._kept) > MOST_KEPT:
                    self._kept.popitem(last=False)
        return replace(kept, name=row.name, version=row.version)


def predicted(served: Served, names: list[str], said: list[Said]) -> list[Predicted]:
    """What was said, beside the names of the pictures."""
    return [Predicted(name, served.classes, one) for name, one in zip(names, said, strict=True)]
