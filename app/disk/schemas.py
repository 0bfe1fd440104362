"""What the JSON API says of the disk."""

from datetime import datetime

from pydantic import Field

from app.disk.models import DiskKind
from app.schemas import Output


class DiskUseRead(Output):
    """What one kind of files takes."""

    kind: DiskKind
    size_bytes: int
    files: int = Field(description="0 for the database of a server")


class DiskRead(Output):
    """What uses the disk."""

    items: list[DiskUseRead] = Field(description="largest first; none before upkeep has looked once")
    measured_at: datetime | None
    free_bytes: int | None = Field(description="at this moment, where images and models lie; null: a bucket")
    keep_logs_days: int
    keep_checkpoints_days: int
