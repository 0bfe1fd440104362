"""Pictures in class folders, as other tools read them: a zip that is sent while it is made."""

import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import PurePosixPath

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.campaigns.models import Campaign
from app.datasets import service as datasets
from app.datasets.intake.shards import shard_key
from app.datasets.models import Dataset, Example
from app.datasets.versions import train_rows
from app.labels.exports.formats import Pieces
from app.storage import Storage
from clarinet.files.label_table import LabelKind, LabelRow
from clarinet.files.names import same_path

AT_ONCE = 200  # pictures whose places are looked up together
ENDINGS = {"image/png": "png", "image/jpeg": "jpg"}
# What some system does not take in a name, and what some shell takes for more.
_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]')
_RESERVED = re.compile(r"(?i)^(con|prn|aux|nul|com\d|lpt\d)$")
LONGEST_NAME = 80  # characters


def folder_pieces(
    session: Session, storage: Storage, campaign: Campaign, rows: Iterable[LabelRow]
) -> Iterator[bytes]:
    """A zip with each picture of a true label in its class's folder, piece by piece.

    A picture keeps its file's name behind its position among the training images, as label files have it, so
    that no two are one; it is as the import stored it.

    Args:
        session: open until the last piece was taken.
        storage: where pictures lie.
        campaign: with its classes.
        rows: its labels.

    Raises:
        StoredFileMissing, StoredFileDamaged: the server has lost a picture.
    """
    folders = folder_names(campaign.class_names)
    prefix = datasets.prefix_of(session.get_one(Dataset, campaign.dataset_id))
    places = train_rows(session, campaign.dataset_id)
    true = (row for row in rows if row.kind == LabelKind.TRUE)
    pieces = Pieces()
    with zipfile.ZipFile(pieces, "w", zipfile.ZIP_STORED) as archive:
        while some := list(islice(true, AT_ONCE)):
            query = select(Example).where(Example.id.in_([row.example_id for row in some]))
            found = {example.id: example for example in session.scalars(query)}
            for row in some:
                example = found[row.example_id]
                data = storage.read_as_written(
                    shard_key(prefix, example.shard),
                    example.digest,
                    offset=example.byte_offset,
                    length=example.byte_length,
                )
                archive.writestr(
                    f"{folders[row.class_]}/{_file_name(example, places.row(example.position))}", data
                )
                yield pieces.take()
    yield pieces.take()


def folder_names(class_names: Sequence[str]) -> list[str]:
    """A folder for each class, which every system can make, and no two of which are one."""
    names: list[str] = []
    for number, class_name in enumerate(class_names):
        name = _safe(class_name) or f"class {number}"
        taken = {same_path(other) for other in names}
        names.append(f"{name} ({number})" if same_path(name) in taken else name)
    return names


def _file_name(example: Example, place: int) -> str:
    stem = _safe(PurePosixPath(example.filename or "").stem)
    parts = [f"{place:06d}", stem] if stem else [f"{place:06d}"]
    return f"{'-'.join(parts)}.{ENDINGS[example.media_type]}"


def _safe(name: str) -> str:
    """A name without what some system does not take."""
    clean = _UNSAFE.sub("_", name).strip(" .")[:LONGEST_NAME].strip(" .")
    return f"{clean}_" if _RESERVED.match(clean) else clean
