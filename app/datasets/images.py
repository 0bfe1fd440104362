"""Single images, as browsers get them."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from app.datasets.errors import ExampleNotFound
from app.datasets.intake.shards import shard_key, shard_prefix
from app.datasets.models import Dataset, DatasetState, Example
from app.storage import Storage


@dataclass(frozen=True, slots=True)
class StoredImage:
    """The bytes of an example and what a browser needs to keep them."""

    data: bytes
    media_type: str
    digest: str


def example_bytes(
    session: Session,
    storage: Storage,
    dataset_id: UUID,
    example_id: int,
    is_visible: ColumnElement[bool],
) -> StoredImage:
    """The encoded picture of an example.

    `is_visible`: whether who asks may see the image of rows of `example` and `dataset`.

    Raises:
        ExampleNotFound: no such example in this dataset, none for this person, or the dataset is not ready.
        StoredFileMissing, StoredFileDamaged: the server has lost it.
    """
    example, claim_number = _ready_example(session, dataset_id, example_id, is_visible)
    key = shard_key(shard_prefix(dataset_id, claim_number), example.shard)
    data = storage.read_as_written(
        key, example.digest, offset=example.byte_offset, length=example.byte_length
    )
    return StoredImage(data, example.media_type, example.digest)


def example_digest(
    session: Session, dataset_id: UUID, example_id: int, is_visible: ColumnElement[bool]
) -> str:
    """The digest of an example's bytes, without reading them; raises ExampleNotFound like `example_bytes`."""
    return _ready_example(session, dataset_id, example_id, is_visible)[0].digest


def _ready_example(
    session: Session, dataset_id: UUID, example_id: int, is_visible: ColumnElement[bool]
) -> tuple[Example, int]:
    found = session.execute(
        select(Example, Dataset.claim_number)
        .join(Dataset, Dataset.id == Example.dataset_id)
        .where(
            Example.id == example_id,
            Dataset.id == dataset_id,
            Dataset.state == DatasetState.READY,
            is_visible,
        )
    ).one_or_none()
    if found is None:
        raise ExampleNotFound
    return found[0], found[1]
