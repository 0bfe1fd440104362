"""What uses the disk, as upkeep last found it."""

import enum
from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, BigId, enum_column


class DiskKind(enum.StrEnum):
    """What a file is for."""

    DATASETS = "datasets"
    UPLOADS = "uploads"
    SNAPSHOTS = "snapshots"
    MODELS = "models"
    CHECKPOINTS = "checkpoints"
    LOGS = "logs"
    DATABASE = "database"
    OTHER = "other"


class DiskUse(Base):
    """How much one kind of files takes."""

    __tablename__ = "disk_use"

    kind: Mapped[DiskKind] = mapped_column(enum_column(DiskKind), primary_key=True)
    size_bytes: Mapped[int] = mapped_column(BigId)
    files: Mapped[int]
    measured_at: Mapped[datetime]
