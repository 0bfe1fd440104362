"""Maps that are computed on request: a row says where one stands, its file lies beside the model's."""

import enum
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.claims import Claimable
from app.db import Base, enum_column


class UmapState(enum.StrEnum):
    """Where a UMAP stands."""

    QUEUED = "queued"
    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"


class Umap(Claimable, Base):
    """Where UMAP places the pictures that a model's map shows; there is one of a model."""

    __tablename__ = "umap"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    model_id: Mapped[UUID] = mapped_column(ForeignKey("model.id", ondelete="CASCADE"), unique=True)
    state: Mapped[UmapState] = mapped_column(enum_column(UmapState), default=UmapState.QUEUED)
    failure: Mapped[str | None] = mapped_column(Text)  # a sentence
    key: Mapped[str | None] = mapped_column(String(300))  # in storage: the file, once it is ready
    digest: Mapped[str | None] = mapped_column(String(64))  # SHA-256 of the file
    asked_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
