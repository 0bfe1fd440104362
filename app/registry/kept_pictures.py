"""What a model says of each picture of its run, and where it places some: a file beside its weights.

The worker writes it when the trial ends, and its digest stands on the card. So it goes with the model, and
never changes: true classes are in it as they were known then.
"""

import enum
import io
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from app.registry.models import Model
from app.storage import Storage

FILE = "pictures.npz"
FACTS = "pictures"  # on the card
MOST_CLASSES = 10  # of a picture that are kept, the likeliest first
MOST_KEPT = 5_000_000  # of all pictures; a file has at most 40 MB of them, and two classes of each picture
MOST_ON_MAP = 1000  # pictures of each domain
COMPONENTS = 32  # of a place on the map; the first two are drawn
CHUNK = 10_000  # pictures that are sorted at once


class Among(enum.StrEnum):
    """Which pictures: of the target, or of the source those that the map shows."""

    TEST = "test"
    TRAIN = "train"
    SOURCE = "source"

    @property
    def code(self) -> int:
        """In the file."""
        return list(Among).index(self)


@dataclass(frozen=True, slots=True, eq=False)
class KeptPictures:
    """One row per picture: test images that score, all training images of the target, some of the source.

    Args:
        example_ids: (N,), in position order among those of a kind.
        among: (N,) codes of Among, in rising order.
        true_classes: (N,) places among the run's classes, -1 where none was known; training saw none of them.
        classes: (N, L) the L likeliest classes, in falling order.
        probabilities: (N, L) of these.
        map_rows: (P,) rows that the map shows.
        map_places: (P, C) their principal components; the first two are drawn.
        map_shares: (C,) of the variance that each has.
    """

    example_ids: NDArray[np.int64]
    among: NDArray[np.uint8]
    true_classes: NDArray[np.int32]
    classes: NDArray[np.int32]
    probabilities: NDArray[np.float32]
    map_rows: NDArray[np.int64]
    map_places: NDArray[np.float32]
    map_shares: NDArray[np.float64]

    @classmethod
    def without_map(
        cls,
        *,
        example_ids: NDArray[np.int64],
        among: NDArray[np.uint8],
        true_classes: NDArray[np.int32],
        classes: NDArray[np.int32],
        probabilities: NDArray[np.float32],
    ) -> Self:
        """Of a model that says what it takes pictures for and nothing else."""
        return cls(
            example_ids,
            among,
            true_classes,
            classes,
            probabilities,
            map_rows=np.empty(0, np.int64),
            map_places=np.empty((0, 2), np.float32),
            map_shares=np.zeros(2),
        )

    def __len__(self) -> int:
        return len(self.example_ids)


def likeliest(
    probabilities: NDArray[np.float32], *, pictures: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Of each row (N, K) the classes (N, L) in falling order of their probability, and these.

    Of equal ones the class that is named first comes first. L is K, or less where there are many of either.

    Args:
        probabilities: of some pictures.
        pictures: how many will be kept in all.
    """
    width = probabilities.shape[1]
    kept = max(2, min(width, MOST_CLASSES, MOST_KEPT // max(1, pictures)))
    classes = np.empty((len(probabilities), kept), np.int32)
    for start in range(0, len(probabilities), CHUNK):
        some = probabilities[start : start + CHUNK]
        classes[start : start + CHUNK] = np.argsort(-some, axis=1, kind="stable")[:, :kept]
    return classes, np.take_along_axis(probabilities, classes, axis=1).astype(np.float32)


def keep_pictures(storage: Storage, key: str, made: KeptPictures) -> dict[str, Any]:
    """Write the file of a model whose files lie under `key`; gives what its card says of it.

    Equal pictures give equal bytes.
    """
    buffer = io.BytesIO()
    np.savez(buffer, **asdict(made))  # pressed, it would be hardly smaller and read ten times slower
    data = buffer.getvalue()
    digest = storage.put(f"{key}/{FILE}", data)
    return {"sha256": digest, "size_bytes": len(data), "images": len(made), "on_map": len(made.map_rows)}


def kept_pictures(storage: Storage, model: Model) -> KeptPictures | None:
    """Read them back; None where the model is older than that file.

    Raises:
        StoredFileMissing, StoredFileDamaged: the server has lost it.
    """
    facts = model.card.get(FACTS)
    if facts is None:
        return None
    data = storage.read_as_written(f"{model.key}/{FILE}", facts["sha256"])
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return KeptPictures(**arrays)
