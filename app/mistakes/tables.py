"""A prediction of a whole dataset, read in the place of what a trial did not keep."""

import csv
import io
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.datasets import versions
from app.datasets.models import Example, Split
from app.registry.kept_pictures import Among, KeptPictures, likeliest
from app.registry.prediction_models import Prediction
from app.storage import Storage, StoredFileDamaged
from clarinet.files.names import numbers_among

SHARES_FROM = 3  # columns: file, position, class, a probability of each class, and why a picture was refused
PIECE = 5_000  # lines whose numbers are kept as text at once
READ_LATELY = 4  # tables that are kept, because lists are paged

Table = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]


def pictures_of_table(
    session: Session, storage: Storage, prediction: Prediction, class_names: list[str]
) -> KeptPictures:
    """What a prediction that is ready says of each picture; true classes are as they are known now.

    Raises:
        StoredFileMissing, StoredFileDamaged: the server has lost its file.
    """
    assert prediction.key is not None and prediction.dataset_id is not None  # noqa: PT018 - it is ready
    size, digest = storage.size_and_digest(prediction.key)
    if digest != prediction.digest:
        raise StoredFileDamaged
    positions, classes, probabilities = _read(storage.path(prediction.key), digest, size, len(class_names))
    held = versions.version(session, prediction.dataset_id, prediction.dataset_version)
    # The last entry is what an unknown class (-1) finds.
    numbers = np.array([*numbers_among(class_names, held.class_names or []), -1], np.int32)
    rows = session.execute(
        select(Example.id, Example.split, Example.true_class)
        .where(Example.dataset_id == prediction.dataset_id, Example.position < held.image_count)
        .order_by(Example.position)
    ).all()
    codes = np.array(
        [(Among.TEST if row.split is Split.TEST else Among.TRAIN).code for row in rows], np.uint8
    )
    known = np.array([-1 if row.true_class is None else row.true_class for row in rows], np.int64)
    ids = np.array([row.id for row in rows], np.int64)
    among = codes[positions]
    order = np.argsort(among, kind="stable")
    return KeptPictures.without_map(
        example_ids=ids[positions][order],
        among=among[order],
        true_classes=numbers[known[positions]][order],
        classes=classes[order],
        probabilities=probabilities[order],
    )


@lru_cache(maxsize=READ_LATELY)
def _read(path: Path, _digest: str, size: int, num_classes: int) -> Table:
    """Positions, likeliest classes and their probabilities; pictures that were refused are left out."""
    positions: list[int] = []
    parts: list[tuple[NDArray[np.int32], NDArray[np.float32]]] = []
    waiting: list[list[str]] = []
    # So many lines at most: "0" and a line end for each number.
    pictures = size // (2 * num_classes)

    def take() -> None:
        shares = np.array(waiting, np.float32).reshape(len(waiting), num_classes)
        parts.append(likeliest(shares, pictures=pictures))
        waiting.clear()

    with io.TextIOWrapper(path.open("rb"), encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        next(lines)
        for line in lines:
            if not line[SHARES_FROM]:
                continue
            positions.append(int(line[1]))
            waiting.append(line[SHARES_FROM : SHARES_FROM + num_classes])
            if len(waiting) == PIECE:
                take()
    take()
    return (
        np.array(positions, np.int64),
        np.concatenate([classes for classes, _ in parts]),
        np.concatenate([shares for _, shares in parts]),
    )
