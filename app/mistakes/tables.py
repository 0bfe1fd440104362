"""A prediction of a whole dataset, read in the place of what a trial did not keep."""

import threading
from collections import OrderedDict
from functools import lru_cache
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from app.datasets import versions
from app.datasets.models import Example, Split
from app.registry.kept_pictures import Among, KeptPictures, likeliest
from app.registry.prediction_models import Prediction
from app.storage import Storage, StoredFileDamaged
from clarinet.files.names import NO_LABEL, numbers_among

SHARES_FROM = 3  # columns: file, position, class, a probability of each class, and why a picture was refused
PIECE = 5_000  # rows that are read at once
READ_LATELY = 4  # tables, and datasets, that are kept, because lists are paged

Examples = tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]
Table = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]

_read_lately: OrderedDict[tuple[UUID, int], Examples] = OrderedDict()
_lock = threading.Lock()


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
    positions, classes, probabilities = _read(storage, prediction.key, digest, size, len(class_names))
    held = versions.version(session, prediction.dataset_id, prediction.dataset_version)
    # The last entry is what an unknown class (-1) finds.
    numbers = np.array([*numbers_among(class_names, held.class_names or []), -1], np.int32)
    ids, codes, known = _examples(session, prediction.dataset_id, held.image_count)
    among = codes[positions]
    order = np.argsort(among, kind="stable")
    return KeptPictures.without_map(
        example_ids=ids[positions][order],
        among=among[order],
        true_classes=numbers[known[positions]][order],
        classes=classes[order],
        probabilities=probabilities[order],
    )


def _examples(session: Session, dataset_id: UUID, count: int) -> Examples:
    """The first images of a dataset: ids, codes of Among and numbers of true classes, by position.

    Such images never change, and later ones come behind them. So what was read once serves all pages of a
    list.
    """
    with _lock:
        found = _read_lately.pop((dataset_id, count), None)
    if found is None:
        found = np.empty(count, np.int64), np.empty(count, np.uint8), np.empty(count, np.int64)
        ids, codes, known = found
        # Whole numbers alone, told by the database: what a row becomes on its way takes most of the time.
        code = case((Example.split == Split.TEST, Among.TEST.code), else_=Among.TRAIN.code)
        query = select(Example.position, Example.id, code, func.coalesce(Example.true_class, NO_LABEL)).where(
            Example.dataset_id == dataset_id, Example.position < count
        )
        found_rows = session.connection().execute(query, execution_options={"yield_per": PIECE})
        for rows in found_rows.partitions():
            numbers = np.array([tuple(row) for row in rows], np.int64)  # (R, 4)
            positions = numbers[:, 0]
            ids[positions], codes[positions], known[positions] = numbers[:, 1:].T
    with _lock:
        _read_lately[dataset_id, count] = found
        while len(_read_lately) > READ_LATELY:
            _read_lately.popitem(last=False)
    return found


@lru_cache(maxsize=READ_LATELY)
def _read(storage: Storage, key: str, _digest: str, size: int, num_classes: int) -> Table:
    """Positions, likeliest classes and their probabilities; pictures that were refused are left out."""
    from pyarrow import csv, float32, int64, string  # noqa: PLC0415 - few pages need it

    last = SHARES_FROM + num_classes
    names = [str(place) for place in range(last + 1)]
    types = {name: string() for name in names} | {names[1]: int64()}
    shares = names[SHARES_FROM:last]
    # So many lines at most: "0" and a line end for each number.
    pictures = size // (2 * num_classes)
    parts: list[Table] = []
    with storage.open(key) as file:
        pieces = csv.open_csv(
            file,
            read_options=csv.ReadOptions(use_threads=False, column_names=names, skip_rows=1),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=types | dict.fromkeys(shares, float32()),
                include_columns=[names[1], *shares],
                null_values=[""],
            ),
        )
        for piece in pieces:
            columns = [column.to_numpy(zero_copy_only=False) for column in piece.columns]
            is_said = ~np.isnan(columns[1])
            said = np.stack(columns[1:], axis=1)[is_said]
            parts.append((columns[0][is_said], *likeliest(said, pictures=pictures)))
    positions, classes, probabilities = (np.concatenate(each) for each in zip(*parts, strict=True))
    return positions, classes, probabilities
