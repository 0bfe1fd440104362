"""The process that predicts: `python -m app.registry.inference`. Nothing else loads onnxruntime.

It decodes strangers' pictures, so that it has bounds on memory and time (`app/apart.py`). It reads requests
from its standard input and answers each on its standard output, until its input ends.
"""

import hashlib
import io
import os
import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from PIL import Image

from app.apart import allow, bound_memory
from app.datasets.intake.pictures import opened_upload
from app.registry.inference.frames import read_frame, write_frame
from app.registry.inference.limits import (
    ADDRESS_SPACE,
    BASE_S,
    BATCH_PIXELS,
    MODELS_KEPT,
    PICTURE_S,
    THREADS,
    THUMBNAIL,
)
from clarinet.files.arrays import RGB
from clarinet.files.pictures import drafted, pixels_of
from clarinet.files.refusal import Refused

SILENT = 4  # of onnxruntime's levels: what it would say is in its exceptions
PROVIDERS = ["CPUExecutionProvider"]


class CannotServe(Exception):
    """A model that cannot be used here; continues a sentence."""


class Damaged(Exception):
    """The file of a model is not what was written."""


class Missing(Exception):
    """The file of a model is no longer there."""


@dataclass(frozen=True, slots=True)
class Network:
    """A model that was loaded, and what it takes."""

    session: Any  # an onnxruntime.InferenceSession, which ships no types
    size: tuple[int, int]  # height, width
    in_colour: bool

    def pixels(self, data: bytes, name: str) -> NDArray[np.uint8]:
        """(H, W, C) of a picture, decoded as the library does; raises Refused."""
        try:
            with opened_upload(data, name) as image:
                picture = drafted(image, side=max(self.size))
            del image  # a large one takes as much memory as what was made of it
            pixels = pixels_of(picture, self.size, colour=self.in_colour)
        except MemoryError as error:
            raise Refused(name, "needs more memory than predicting may use") from error
        return pixels.reshape(*self.size, RGB if self.in_colour else 1)

    def probabilities(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """(N, K) of N images, at least one."""
        at_once = max(1, BATCH_PIXELS // (self.size[0] * self.size[1]))
        parts = [np.stack(images[start : start + at_once]) for start in range(0, len(images), at_once)]
        [taken] = self.session.get_inputs()
        return np.concatenate([self.session.run(None, {taken.name: part})[0] for part in parts])


class Networks:
    """The models that were used last."""

    def __init__(self) -> None:
        self._loaded: OrderedDict[str, Network] = OrderedDict()

    def get(self, about: dict[str, Any]) -> Network:
        """The model of a request.

        Raises:
            Missing, Damaged: its file is gone, or not what was written.
            CannotServe: it cannot be loaded.
        """
        digest = about["sha256"]
        if digest not in self._loaded:
            while len(self._loaded) >= MODELS_KEPT:
                self._loaded.popitem(last=False)
            try:
                self._loaded[digest] = _load(about)
            except MemoryError:
                self._loaded.clear()  # the others' room may be what it needs
                self._loaded[digest] = _load(about)
        self._loaded.move_to_end(digest)
        return self._loaded[digest]


def _load(about: dict[str, Any]) -> Network:
    try:
        data = Path(about["path"]).read_bytes()
    except FileNotFoundError as error:
        raise Missing from error
    except OSError as error:
        raise Damaged from error
    if hashlib.sha256(data).hexdigest() != about["sha256"]:
        raise Damaged
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.inter_op_num_threads = 1
    options.log_severity_level = SILENT
    # Threads that spin between two batches would take the processor from everybody else.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        # From bytes: a file that refers to others finds none.
        session = onnxruntime.InferenceSession(data, options, providers=PROVIDERS)
    except Exception as error:  # onnxruntime raises types of its own that share no base
        raise CannotServe(f"its ONNX file cannot be loaded ({type(error).__name__})") from error
    return Network(session, *_taken(session, about["side"]))


def _taken(session: Any, side: int | None) -> tuple[tuple[int, int], bool]:
    """Height and width of the images that are given to it, and whether they are in colour."""
    shapes = [item.shape for item in session.get_inputs()]
    match shapes:
        case [[_, height, width, (1 | 3) as channels]]:
            fixed = height if isinstance(height, int) else side, width if isinstance(width, int) else side
            if fixed[0] and fixed[1]:
                return (fixed[0], fixed[1]), channels == RGB
    raise CannotServe(f"its ONNX file takes no images that can be made of pictures ({shapes})")


def answer(
    networks: Networks, about: dict[str, Any], pieces: Sequence[bytes]
) -> tuple[dict[str, Any], list[bytes]]:
    """What is said of some pictures, each by itself: refusals by place, and of the others probabilities."""
    network = networks.get(about["model"])
    refused: dict[int, str] = {}
    images: list[NDArray[np.uint8]] = []
    for place, (name, data) in enumerate(zip(about["names"], pieces, strict=True)):
        try:
            images.append(network.pixels(data, name))
        except Refused as refusal:
            refused[place] = str(refusal)
    found = [] if not images else [network.probabilities(images).astype("<f4").tobytes()]
    seen = [_thumbnail(image) for image in images] if about["seen"] else []
    return {"refused": refused}, found + seen


def _thumbnail(pixels: NDArray[np.uint8]) -> bytes:
    """A picture as the network sees it, as a PNG."""
    picture = Image.fromarray(pixels if pixels.shape[2] == RGB else pixels[:, :, 0])
    picture.thumbnail((THUMBNAIL, THUMBNAIL))
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def _serve(source: IO[bytes], to: IO[bytes]) -> None:
    networks = Networks()
    while (frame := read_frame(source)) is not None:
        about, pieces = frame
        allow(2 * (BASE_S + PICTURE_S * len(pieces)))  # two threads compute
        try:
            said, found = answer(networks, about, pieces)
        except Missing:
            said, found = {"missing": True}, []
        except Damaged:
            said, found = {"damaged": True}, []
        except CannotServe as reason:
            said, found = {"cannot": str(reason)}, []
        write_frame(to, said, found)


def main() -> None:
    """Answer until nobody asks any more."""
    # Whatever a library prints must not come between two messages.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    bound_memory(ADDRESS_SPACE)
    _serve(sys.stdin.buffer, out)


if __name__ == "__main__":
    main()
