"""Evaluations: people judge a random sample of a model's predictions on the target."""

from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import JSON, CheckConstraint, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, BigId


class Evaluation(Base):
    """A random sample of the target's images, and what a model takes them for."""

    __tablename__ = "evaluation"
    __table_args__ = (
        CheckConstraint("half_width > 0 AND half_width < 1", name="half_width_in_range"),
        CheckConstraint("sample_size BETWEEN 1 AND population", name="sample_in_range"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    run_id: Mapped[UUID] = mapped_column(ForeignKey("run.id", ondelete="RESTRICT"), index=True)
    model_id: Mapped[UUID] = mapped_column(ForeignKey("model.id", ondelete="RESTRICT"), index=True)
    # Where people are asked; None: every answer was known already.
    campaign_id: Mapped[UUID | None] = mapped_column(
        ForeignKey("campaign.id", ondelete="CASCADE"), unique=True
    )
    dataset_id: Mapped[UUID] = mapped_column(ForeignKey("dataset.id", ondelete="RESTRICT"), index=True)
    dataset_version: Mapped[int]
    class_names: Mapped[list[str]]
    predictions_digest: Mapped[str] = mapped_column(String(64))  # SHA-256 of the file of predictions
    half_width: Mapped[float]  # of the interval that was asked for, as a fraction
    population: Mapped[int]  # images that the model predicted
    # The first evaluation over a dataset chooses it, later ones share it: the same images come first.
    sample_seed: Mapped[str] = mapped_column(String(64))
    sample_size: Mapped[int]
    # Where each predicted class was drawn from by itself: see `sampling.Stratum`, one for each; None: each
    # picture had the same chance.
    strata: Mapped[list[list[int]] | None] = mapped_column(JSON(none_as_null=True))
    known_count: Mapped[int]  # of these, for which earlier evaluations have the answer
    drawn_count: Mapped[int]  # questions about a class drawn at random, among those about predictions
    created_by_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="RESTRICT"))
    created_at: Mapped[datetime]

    @property
    def asked_count(self) -> int:
        """Predictions about which people are asked."""
        return self.sample_size - self.known_count

    @property
    def is_whole(self) -> bool:
        """Whether every image of the target is judged: then nothing is sampled."""
        return self.sample_size == self.population


class EvaluatedImage(Base):
    """An image of the sample, and the question whose answers say whether its prediction is right."""

    __tablename__ = "evaluated_image"

    evaluation_id: Mapped[UUID] = mapped_column(
        ForeignKey("evaluation.id", ondelete="CASCADE"), primary_key=True
    )
    example_id: Mapped[int] = mapped_column(
        BigId,
        ForeignKey("example.id", ondelete="RESTRICT"),
        primary_key=True,
        autoincrement=False,
        index=True,
    )
    class_: Mapped[int]  # that the model predicts, as a place among the evaluation's classes
    # Of this evaluation's campaign once it is opened, or of an earlier one.
    question_id: Mapped[int | None] = mapped_column(
        BigId, ForeignKey("question.id", ondelete="SET NULL"), index=True
    )
    is_known: Mapped[bool]  # an earlier evaluation's question
