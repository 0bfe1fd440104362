"""A model on disk, as `clarinet predict` and `clarinet evaluate` open it."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clarinet.recipes.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor

    from clarinet.data.streams import ImageStream
    from clarinet.networks.classifier import Classifier

IN_COLOUR = 3  # lengths of the shape (H, W, 3)


@dataclass(frozen=True, slots=True, eq=False)
class OpenedModel:
    """A classifier on its device, and what its card says.

    Args:
        network: the classifier.
        names: K, of its classes; numbers from "0" where it has no names.
        colour: whether its target's images are RGB, or else grey. Image files become so, whatever lies beside
            them. None: the card does not say it.
    """

    network: "Classifier"
    names: list[str]
    colour: bool | None

    @property
    def has_names(self) -> bool:
        """Whether its classes have names, and are no mere numbers."""
        return self.names != [str(number) for number in range(len(self.names))]

    def read(self, files: "Sequence[Path]") -> "Tensor | ImageStream":
        """Image files, at least one, as `probabilities` takes them; see `images_of`."""
        from clarinet.data.folders import images_of

        return images_of(files, self.network.spec.image_size, colour=self.colour)

    def probabilities(self, images: "Tensor | ImageStream") -> "Tensor":
        """(N, K) float32 of uint8 images, by the statistics of the target."""
        from clarinet.run.evaluation import predict

        return predict(self.network, images)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Describe `--model` and `--device`, which `opened_model` reads."""
    parser.add_argument(
        "--model",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder that clarinet train --out or export_model wrote, or its file of weights",
    )
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")


def opened_model(arguments: argparse.Namespace) -> OpenedModel:
    """The model that the arguments name.

    Raises:
        CheckpointError: there is none, or it cannot be read.
        ConfigError: there is no such device.
    """
    from clarinet.commands.options import named_device
    from clarinet.export.models import load_card, load_model
    from clarinet.export.onnx import WEIGHTS

    device = named_device(arguments.device)
    path = arguments.model / WEIGHTS if arguments.model.is_dir() else arguments.model
    card = load_card(path)
    model = OpenedModel(load_model(path).to(device), list(card["classes"]), _is_in_colour(card))
    if not model.has_names:
        told = f"{path} knows its {len(model.names)} classes by numbers alone"
        print(f"clarinet: {told}, counted from 0 as in its training", file=sys.stderr)
    if len(model.names) != model.network.spec.num_classes:
        raise DataError(
            f"the card in {path} names {len(model.names)} classes, but the model has "
            f"{model.network.spec.num_classes}"
        )
    return model


def _is_in_colour(card: Mapping[str, Any]) -> bool | None:
    """Whether the target's images were, which the network adapted to; None where the card has no data."""
    data = card.get("data")
    return None if data is None else len(data["target"]["shape"]) == IN_COLOUR
