"""The files of a model as they leave: checked against what was written, and never held in memory whole."""

import enum
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass

from app.labels.exports.formats import Pieces
from app.registry.errors import ModelFileMissing, ModelWithoutOnnx
from app.registry.models import Model
from app.registry.service import CARD, ONNX, PAGE, WEIGHTS
from app.storage import Storage, StoredFileDamaged

PIECE = 2**20  # bytes that are read and sent at once


class ModelFile(enum.StrEnum):
    """A file of a model that can be downloaded alone."""

    WEIGHTS = WEIGHTS
    ONNX = ONNX
    PAGE = PAGE

    @property
    def media_type(self) -> str:
        """What it is."""
        return "text/markdown; charset=utf-8" if self is ModelFile.PAGE else "application/octet-stream"


@dataclass(frozen=True, slots=True)
class StoredModelFile:
    """A file of a model that is there, and is what was written."""

    storage: Storage
    key: str
    size: int
    digest: str  # SHA-256

    def pieces(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Its bytes from `start` to before `stop`, some at once."""
        left = (self.size if stop is None else stop) - start
        with self.storage.open(self.key) as file:
            file.seek(start)
            while left > 0 and (piece := file.read(min(PIECE, left))):
                left -= len(piece)
                yield piece


def stored_file(storage: Storage, model: Model, which: ModelFile) -> StoredModelFile:
    """One file of a model.

    Raises:
        ModelWithoutOnnx: it could not be written, or the model is older than that file.
        ModelFileMissing: the model is older than this file.
        StoredFileMissing, StoredFileDamaged: the server has lost it.
    """
    key = f"{model.key}/{which}"
    written = _written(model).get(which)
    if which is ModelFile.ONNX and written is None:
        raise ModelWithoutOnnx
    if which is ModelFile.PAGE and storage.about(key) is None:
        raise ModelFileMissing(PAGE)
    size, digest = storage.size_and_digest(key)
    if written not in {None, digest}:
        raise StoredFileDamaged
    return StoredModelFile(storage, key, size, digest)


def link_to(storage: Storage, model: Model, which: ModelFile) -> str | None:
    """An address at which the file can be fetched without us for some minutes; None: it comes from here.

    Raises:
        StoredFileMissing, StoredFileDamaged: the server has lost it.
    """
    digest = _written(model).get(which)
    return None if digest is None else storage.link(f"{model.key}/{which}", digest)


def _written(model: Model) -> dict[ModelFile, str | None]:
    """The SHA-256 of the files whose bytes were noted when they were written."""
    return {ModelFile.WEIGHTS: model.digest, ModelFile.ONNX: model.card.get("onnx", {}).get("sha256")}


def zip_pieces(storage: Storage, model: Model) -> Iterator[bytes]:
    """A zip of weights, card (JSON and Markdown) and, where there is one, the ONNX file, while it is made.

    Raises, before the first piece is asked for:
        StoredFileMissing, StoredFileDamaged: the server has lost one of them.
    """
    files = {ModelFile.WEIGHTS: stored_file(storage, model, ModelFile.WEIGHTS)}
    for which, lacks in ((ModelFile.PAGE, ModelFileMissing), (ModelFile.ONNX, ModelWithoutOnnx)):
        try:
            files[which] = stored_file(storage, model, which)
        except lacks:
            continue
    return _zipped(files, json.dumps(model.card, indent=2) + "\n")


def _zipped(files: dict[ModelFile, StoredModelFile], card: str) -> Iterator[bytes]:
    pieces = Pieces()
    # Weights are noise to a compressor; storing them is faster and no larger.
    with zipfile.ZipFile(pieces, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(CARD), card)
        for which, stored in files.items():
            info = zipfile.ZipInfo(which)
            info.file_size = stored.size  # so that what is larger than 2 GB gets the longer fields
            with archive.open(info, "w") as member:
                for piece in stored.pieces():
                    member.write(piece)
                    yield pieces.take()
    yield pieces.take()
