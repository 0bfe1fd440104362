"""Published models."""

from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import ForeignKey, String, select
from sqlalchemy.orm import Mapped, column_property, mapped_column

from app.db import Base, BigId
from app.runs.models import Trial
from app.runs.targets import scored_of
from clarinet.recipes.scoring import ScoredOn
from clarinet.recipes.upgrade import upgraded_preset


class Model(Base):
    """A trial that ended well: its weights and its card."""

    __tablename__ = "model"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    trial_id: Mapped[UUID] = mapped_column(ForeignKey("trial.id", ondelete="CASCADE"), unique=True)
    run_id: Mapped[UUID] = column_property(
        select(Trial.run_id).where(Trial.id == trial_id).correlate_except(Trial).scalar_subquery()
    )
    key: Mapped[str] = mapped_column(String(200))  # in storage: the folder of its files, see the service
    digest: Mapped[str] = mapped_column(String(64))  # SHA-256 of the weights file
    size_bytes: Mapped[int] = mapped_column(BigId)
    card: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]

    @property
    def preset(self) -> str:
        """What the preset on the card is called today."""
        return upgraded_preset(self.card["method"], self.card["preset"])

    @property
    def scored(self) -> ScoredOn | None:
        """The images that its accuracy was measured on."""
        return scored_of(self.card)
