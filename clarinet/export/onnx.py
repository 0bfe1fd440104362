"""A trained model as files: weights, card, and an ONNX graph from the bytes of images to probabilities."""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import torch
from torch import Tensor, nn

from clarinet.data.images import greyed, normalised, whole_levels
from clarinet.data.training_data import TrainData
from clarinet.export.card_text import card_markdown
from clarinet.export.cards import card_digest, model_card
from clarinet.export.models import require_known_network, save_model
from clarinet.files.arrays import RGB
from clarinet.networks.classifier import TARGET, Classifier
from clarinet.recipes.counting import many
from clarinet.recipes.errors import CheckpointNotWritten, DataError, ExportError
from clarinet.run.results import TrainResult
from clarinet.run.tensor_files import replacing

if TYPE_CHECKING:
    import onnx

WEIGHTS, CARD, ONNX = "model.safetensors", "MODEL_CARD.md", "model.onnx"
INPUT, OUTPUT = "images", "probabilities"
OPSET = 18  # the oldest the exporter writes without converting, so the one most runtimes read
EXAMPLE_SIZE = (
    37,
    41,
)  # which no other length in a network is, so that the exporter takes it for no constant
LARGEST_BYTES = 2**31 - 1  # of one protobuf message


def export_model(
    folder: str | Path,
    result: TrainResult,
    data: TrainData | None = None,
    *,
    class_names: Sequence[str] | None = None,
    simulated: Mapping[str, Any] | None = None,
    made: Mapping[str, str] | None = None,
    origin: Mapping[str, Any] | None = None,
) -> None:
    """Write all that a model needs to be used: weights, card and ONNX, each replaced in one step.

    `model.safetensors` (for `load_model`), `MODEL_CARD.md` and, last because it may fail, `model.onnx` for
    images in the channels of the target's and of any size. A model that is in the folder stays as it is until
    the new weights are there.
    The names of the classes are in all three.

    Args:
        folder: where the files go; it is made.
        result: the finished run.
        data: what it was trained on. None leaves it out of the card, and ONNX takes images in the network's
            own channels.
        class_names, simulated, made, origin: see `model_card`.

    Raises:
        ExportError: there is no ONNX file; the others are there. Of a backbone of one's own there is nothing.
        CheckpointNotWritten: the disk refuses a file. If it is the weights, the model of before is still
            there; if another one, the new weights are.
        DataError: another number of names than classes; nothing is written.
    """
    folder = Path(folder)
    require_known_network(result.model)
    card = model_card(result, data, class_names=class_names, simulated=simulated, made=made, origin=origin)
    with _onnx_aside(folder):
        save_model(folder / WEIGHTS, result, card=card)
    with replacing(folder / CARD) as temporary:
        temporary.write_text(card_markdown(card), encoding="utf-8")
    shape = None if data is None else data.target_images.shape[1:]
    export_onnx(folder / ONNX, result.model, image_shape=shape, card=card)


@contextmanager
def _onnx_aside(folder: Path) -> Iterator[None]:
    """Another model's ONNX must not stay beside new weights; where those are refused it is back."""
    onnx, aside = folder / ONNX, folder / f".{ONNX}.{uuid4().hex}.tmp"
    with suppress(OSError):  # what refuses this refuses the weights, in words
        if onnx.is_file():
            onnx.rename(aside)
    try:
        yield
    except CheckpointNotWritten:
        with suppress(OSError):
            aside.rename(onnx)
        raise
    finally:
        with suppress(OSError):
            aside.unlink()


def export_onnx(
    path: str | Path,
    model: Classifier,
    *,
    image_shape: Sequence[int] | None = None,
    card: Mapping[str, Any] | None = None,
) -> None:
    """Write one ONNX file with all preprocessing inside: uint8 (N, H, W, C) to float32 (N, K).

    N, H and W may be any; the images of one call are of one size.

    Its probabilities are those of `predict` up to the rounding of float32: resizing gives the same bytes.
    The batch statistics are the target's. The metadata has the class names as JSON under "classes", and under
    "card" the card's digest (`card_digest`).

    Args:
        path: file to write, replaced in one step.
        model: on any device; it is left as it is.
        image_shape: (H, W) of grey images or (H, W, 3) of colour ones, of which the channels count; None
            takes the network's own. Grey images have C = 1 in the file; a network for grey images sees those
            in colour as its spec's `greying` says.
        card: from `model_card`; without one, classes are named by number.

    Raises:
        ExportError: a package is missing, the graph cannot be written, or it has over 2 GB.
        CheckpointNotWritten: the disk refuses the file.
        DataError: the card of a model with other classes, or an impossible shape.
    """
    path, spec = Path(path), model.spec
    names = [str(k) for k in range(spec.num_classes)] if card is None else card["classes"]
    if len(names) != spec.num_classes:
        raise DataError(
            f"the card names {many(len(names), 'class', 'classes')}, but the model has {spec.num_classes}"
        )
    channels = _channels(image_shape, spec.channels)
    proto = _graph(FromImages(copy.deepcopy(model).cpu(), channels), channels)
    facts = {"classes": json.dumps(names)} | ({} if card is None else {"card": card_digest(card)})
    _describe(proto, facts)
    if proto.ByteSize() > LARGEST_BYTES:
        raise ExportError("the model has more than 2 GB, which one ONNX file cannot hold")
    with replacing(path) as temporary:
        temporary.write_bytes(proto.SerializeToString())


class FromImages(nn.Module):
    """A classifier behind its preprocessing: uint8 (N, H, W, C) to probabilities (N, K).

    The antialiased bilinear resize is linear and separable, so it is two products with matrices that follow
    from the size. Those every runtime can compute; their Resize operators differ from torch's.
    """

    def __init__(self, classifier: Classifier, channels: int) -> None:
        super().__init__()
        # In float32 and one memory layout, as the graph's constants should be.
        self.classifier = classifier.eval().to(memory_format=torch.contiguous_format)
        self.channels = channels

    def forward(self, images: Tensor) -> Tensor:
        """Probabilities (N, K) float32 of images uint8 (N, H, W, C), in the target's statistics."""
        spec = self.classifier.spec
        pixels = images.permute(0, 3, 1, 2).double()  # (N, C, H, W)
        if self.channels > spec.channels:
            pixels = greyed(pixels, spec.greying)
        levels = whole_levels(self._resized(pixels)).float().expand(-1, spec.channels, -1, -1)
        logits: Tensor = self.classifier(normalised(levels / 255, spec.input_normalisation), TARGET)[1]
        return logits.softmax(1)

    def _resized(self, pixels: Tensor) -> Tensor:
        # Products of plain matrices: a batched one fails in onnxruntime where N is 0.
        size, channels = self.classifier.spec.image_size, min(self.channels, self.classifier.spec.channels)
        height, width = pixels.shape[2:]
        rows = pixels.reshape(-1, width) @ resize_matrix(width, size).T  # (N C H, S)
        turned = rows.reshape(-1, channels, height, size).transpose(2, 3)  # (N, C, S, H)
        columns = turned.reshape(-1, height) @ resize_matrix(height, size).T  # (N C S, S)
        return columns.reshape(-1, channels, size, size).transpose(2, 3)  # (N, C, S, S)


def resize_matrix(length: int, size: int) -> Tensor:
    """The matrix (size, length), float64, that resizes one axis as torch's antialiased bilinear does.

    Each of the new pixels is a mean of the old ones about its place, by a triangle that reaches one pixel to
    both sides, old or new ones, whichever are larger. By operators that take a length known late.
    """
    scale = torch.ones((), dtype=torch.float64) * length / size
    centres = (torch.arange(size, dtype=torch.float64) + 0.5) * scale  # (S,)
    places = torch.arange(length, dtype=torch.float64) + 0.5  # (L,)
    weights = (1 - (places - centres[:, None]).abs() / scale.clamp(min=1)).clamp(min=0)  # (S, L)
    return weights / weights.sum(1, keepdim=True)


def _channels(given: Sequence[int] | None, channels: int) -> int:
    match given if given is None else tuple(given):
        case None:
            return channels
        case (int(height), int(width)) if height > 0 < width:
            return 1
        case (int(height), int(width), (1 | 3) as planes) if height > 0 < width:
            return planes
    raise DataError(f"image_shape is {given}; expected (H, W) or (H, W, {RGB})")


def _graph(module: FromImages, channels: int) -> "onnx.ModelProto":
    missing = [name for name in ("onnx", "onnxscript") if find_spec(name) is None]
    if missing:
        raise ExportError(f"ONNX export needs the package {missing[0]}: pip install 'clarinet[train]'")
    example = torch.zeros(2, *EXAMPLE_SIZE, channels, dtype=torch.uint8)
    with torch.no_grad():
        module(example)  # what is computed once and kept must not be computed with the exporter's stand-ins
    try:
        program = torch.onnx.export(
            module.eval(),
            (example,),
            dynamo=True,
            verbose=False,
            opset_version=OPSET,
            input_names=[INPUT],
            output_names=[OUTPUT],
            dynamic_shapes={"images": {axis: torch.export.Dim(name) for axis, name in enumerate("NHW")}},
        )
    except Exception as error:  # the exporter and its passes raise whatever they meet
        why = (str(error) or type(error).__name__).splitlines()[0]
        raise ExportError(f"the network cannot be written as ONNX: {why}") from error
    if program is None:
        raise ExportError("the network cannot be written as ONNX: the exporter gave no program")
    return program.model_proto


def _describe(proto: "onnx.ModelProto", facts: Mapping[str, str]) -> None:
    import onnx  # noqa: PLC0415 - half a second that only an export should pay

    proto.producer_name = "clarinet"
    onnx.helper.set_model_props(proto, dict(facts))
    onnx.checker.check_model(proto)
