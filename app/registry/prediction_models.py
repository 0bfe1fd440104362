"""Predictions of whole datasets: a row says where one stands, its file lies beside the model's."""

import enum
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.claims import Claimable
from app.db import Base, BigId, enum_column


class PredictionState(enum.StrEnum):
    """Where a prediction of a dataset stands."""

    QUEUED = "queued"
    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        """Whether nobody will work on it any more."""
        return self in {PredictionState.READY, PredictionState.FAILED}


class Prediction(Claimable, Base):
    """What a model says of each image of a dataset, in one version. It outlives the dataset."""

    __tablename__ = "prediction"
    __table_args__ = (Index("ix_prediction_model_id_created_at", "model_id", "created_at"),)

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    model_id: Mapped[UUID] = mapped_column(ForeignKey("model.id", ondelete="CASCADE"))
    dataset_id: Mapped[UUID | None] = mapped_column(ForeignKey("dataset.id", ondelete="SET NULL"), index=True)
    dataset_name: Mapped[str] = mapped_column(String(120))  # as it was
    dataset_version: Mapped[int]
    state: Mapped[PredictionState] = mapped_column(
        enum_column(PredictionState), default=PredictionState.QUEUED
    )
    progress: Mapped[int] = mapped_column(default=0)  # images that were predicted so far
    progress_total: Mapped[int]
    refused: Mapped[int | None]  # of which nothing is said; None: not known yet, or of an older one
    failure: Mapped[str | None] = mapped_column(Text)  # a sentence
    key: Mapped[str | None] = mapped_column(String(300))  # in storage: the file, once it is ready
    digest: Mapped[str | None] = mapped_column(String(64))  # SHA-256 of the file
    size_bytes: Mapped[int | None] = mapped_column(BigId)
    created_by_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="RESTRICT"))
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
