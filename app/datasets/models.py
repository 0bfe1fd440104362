"""Datasets, their versions and their examples."""

import enum
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import JSON, CheckConstraint, ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.claims import Claimable
from app.datasets.intake.limits import MAX_NAME_LENGTH
from app.db import Base, BigId, enum_column
from clarinet.files.arrays import MAX_MADE, RGB
from clarinet.recipes.choices import Looks


class DatasetState(enum.StrEnum):
    """Where the intake stands. Only a ready dataset has examples."""

    IMPORTING = "importing"
    READY = "ready"
    FAILED = "failed"


class Split(enum.StrEnum):
    """What an example is for."""

    TRAIN = "train"
    TEST = "test"


class Importable(Claimable):
    """Columns of an import: where it stands, what it reads, and what it has to say."""

    state: Mapped[DatasetState] = mapped_column(enum_column(DatasetState), default=DatasetState.IMPORTING)
    failure: Mapped[str | None] = mapped_column(Text)  # a sentence: which file and why
    upload: Mapped[
        dict[str, Any] | None
    ]  # what the intake reads: {"kind": ..., "path": ..., ...}; None once done
    progress: Mapped[int] = mapped_column(default=0)  # images taken in so far
    progress_total: Mapped[int | None]  # images expected, once known
    # What an admin should know of the import, in sentences: what became of pictures, which folder is what.
    notes: Mapped[list[str]] = mapped_column(default=list, server_default="[]")
    # Files that could not be taken in, with why: {"file": ..., "why": ...}; of many the first.
    faults: Mapped[list[dict[str, str]]] = mapped_column(JSON, default=list, server_default="[]")
    # Images about which something else says another class, or that are called like others; as the faults.
    contradictions: Mapped[list[dict[str, str]]] = mapped_column(JSON, default=list, server_default="[]")
    # How, where these are not the published images, as the file itself says.
    made: Mapped[str | None] = mapped_column(String(MAX_MADE))

    @property
    def mend(self) -> str | None:
        """By what choice a failed import may still succeed, whose file is kept: SKIP_BAD or SAY_ENCODING."""
        is_kept = self.state is DatasetState.FAILED and self.upload is not None
        return self.upload.get("mend") if is_kept and self.upload else None


class Holding:
    """Columns that say what images there are: of a dataset now, or of it in one version."""

    # In label order; None where no true classes came with the data. Further images may add names at the end.
    class_names: Mapped[list[str] | None]
    channels: Mapped[int | None]  # 1 grey, 3 RGB
    looks: Mapped[Looks | None] = mapped_column(String(20))  # None: nobody has looked yet
    train_count: Mapped[int] = mapped_column(default=0)
    test_count: Mapped[int] = mapped_column(default=0)
    # How many have each true class, in label order; None until it is ready.
    train_per_class: Mapped[list[int] | None]
    test_per_class: Mapped[list[int] | None]
    digest: Mapped[str | None] = mapped_column(
        String(64)
    )  # SHA-256 over the examples' digests, in position order
    size_bytes: Mapped[int] = mapped_column(BigId, default=0)

    @property
    def in_colour(self) -> bool:
        """Whether its images are; those of a dataset that is not ready are taken for grey."""
        return self.channels == RGB

    @property
    def image_count(self) -> int:
        """Training and test images; their positions are 0 to one less."""
        return self.train_count + self.test_count


class Dataset(Importable, Holding, Base):
    """A named set of images of one domain, as it is in its newest version."""

    __tablename__ = "dataset"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    name: Mapped[str] = mapped_column(String(120), unique=True)
    description: Mapped[str] = mapped_column(Text, default="")
    created_by_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="RESTRICT"))
    created_at: Mapped[datetime]
    archived_at: Mapped[datetime | None]  # hidden from lists since then
    # The highest number of a shard that was promised to images on their way, whether they came or not.
    shards_taken: Mapped[int] = mapped_column(default=0, server_default="0")


class DatasetVersion(Importable, Holding, Base):
    """Images that joined a dataset together: what was imported first is version 1, further images follow.

    It has its number, and says what the dataset holds with it, from the moment when its images are there.
    """

    __tablename__ = "dataset_version"
    __table_args__ = (
        UniqueConstraint("dataset_id", "number"),
        CheckConstraint("(number IS NULL) = (published_at IS NULL)", name="number_once_published"),
        CheckConstraint("number IS NULL OR state = 'ready'", name="ready_once_published"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)  # the first has its dataset's
    dataset_id: Mapped[UUID] = mapped_column(ForeignKey("dataset.id", ondelete="CASCADE"))
    number: Mapped[int | None]  # 1, 2, ...; None while it is imported, and where that failed
    first_position: Mapped[int | None]  # of its own images, which lie behind all others
    created_by_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="RESTRICT"))
    created_at: Mapped[datetime]
    published_at: Mapped[datetime | None]


class Example(Base):
    """One image: where its bytes lie in a shard, and what is known of it."""

    __tablename__ = "example"
    __table_args__ = (
        Index("uq_example_dataset_id_position", "dataset_id", "position", unique=True),
        CheckConstraint("position >= 0", name="position_not_negative"),
        CheckConstraint("byte_length > 0", name="not_empty"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    dataset_id: Mapped[UUID] = mapped_column(ForeignKey("dataset.id", ondelete="CASCADE"))
    position: Mapped[int]  # 0 .. count - 1 in the dataset; within a version the train split comes first
    split: Mapped[Split] = mapped_column(enum_column(Split))
    true_class: Mapped[
        int | None
    ]  # index into the dataset's class_names; to score, never to train on the target
    shard: Mapped[int]
    byte_offset: Mapped[int] = mapped_column(BigId)
    byte_length: Mapped[int]
    digest: Mapped[str] = mapped_column(String(64))  # SHA-256 of the stored bytes
    # Its path in the archive. For admins and reviewers: it can give the class away. None: an array has none.
    filename: Mapped[str | None] = mapped_column(String(MAX_NAME_LENGTH))
    media_type: Mapped[str] = mapped_column(String(32))  # image/png or image/jpeg: what we encoded
    width: Mapped[int]  # pixels
    height: Mapped[int]  # pixels
