"""Published models, the names that group them as versions, and the aliases of versions."""

from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import ForeignKey, String, Text, UniqueConstraint, select
from sqlalchemy.orm import Mapped, column_property, mapped_column

from app.db import Base, BigId
from app.runs.models import Trial
from app.runs.targets import scored_of
from clarinet.recipes.scoring import ScoredOn
from clarinet.recipes.upgrade import upgraded_preset

MAX_ALIAS = 40  # characters


class ModelName(Base):
    """What people call models that stand for one another: each of them is a version of it."""

    __tablename__ = "model_name"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    name: Mapped[str] = mapped_column(String(120), unique=True)
    last_version: Mapped[int] = mapped_column(default=0)  # given so far; none is given twice
    created_at: Mapped[datetime]


class ModelVersion(Base):
    """Which version of which name a model is."""

    __tablename__ = "model_version"
    __table_args__ = (UniqueConstraint("name_id", "number"),)

    model_id: Mapped[UUID] = mapped_column(ForeignKey("model.id", ondelete="CASCADE"), primary_key=True)
    name_id: Mapped[UUID] = mapped_column(ForeignKey("model_name.id", ondelete="RESTRICT"))
    number: Mapped[int]  # 1, 2, ...


class ModelAlias(Base):
    """A word, such as "production", that stands for one version of a name, and keeps it from deletion."""

    __tablename__ = "model_alias"

    name_id: Mapped[UUID] = mapped_column(ForeignKey("model_name.id", ondelete="CASCADE"), primary_key=True)
    alias: Mapped[str] = mapped_column(String(MAX_ALIAS), primary_key=True)
    model_id: Mapped[UUID] = mapped_column(ForeignKey("model.id", ondelete="RESTRICT"), index=True)
    moved_at: Mapped[datetime]


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
    # SHA-256 over the tensors, whatever else their file says; None: published before there was one.
    tensors_digest: Mapped[str | None] = mapped_column(String(64), index=True)
    size_bytes: Mapped[int] = mapped_column(BigId)
    card: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    notes: Mapped[str] = mapped_column(Text, default="", server_default="")
    archived_at: Mapped[datetime | None]
    name: Mapped[str] = column_property(
        select(ModelName.name)
        .join(ModelVersion, ModelVersion.name_id == ModelName.id)
        .where(ModelVersion.model_id == id)
        .correlate_except(ModelName, ModelVersion)
        .scalar_subquery()
    )
    version: Mapped[int] = column_property(
        select(ModelVersion.number)
        .where(ModelVersion.model_id == id)
        .correlate_except(ModelVersion)
        .scalar_subquery()
    )

    @property
    def title(self) -> str:
        """The one line that tells it from every other."""
        return f"{self.name}, version {self.version}"

    @property
    def preset(self) -> str:
        """What the preset on the card is called today."""
        return upgraded_preset(self.card["method"], self.card["preset"])

    @property
    def scored(self) -> ScoredOn | None:
        """The images that its accuracy was measured on."""
        return scored_of(self.card)

    @property
    def chance(self) -> float:
        """The accuracy of guessing among its classes."""
        return 1 / len(self.card["classes"])

    @property
    def interval(self) -> tuple[float, float] | None:
        """The sampling interval of its accuracy; None where no image of the target measured it."""
        accuracy, scored = self.card.get("target_accuracy"), self.scored
        return None if accuracy is None or not scored or not scored.images else scored.interval(accuracy)

    @property
    def is_tested(self) -> bool:
        """Whether labelled test images of its target measured it: then these come before what people say."""
        scored = self.scored
        return bool(scored and scored.split == "test" and scored.images) and (
            self.card.get("target_accuracy") is not None
        )
