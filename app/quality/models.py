"""What admins settle, what a check of the draws found, and what a job worked out of large campaigns."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from app.annotation.models import AnswerValue
from app.db import Base, BigId, enum_column
from app.quality.chi_square import ChiSquare
from clarinet.files.label_table import LabelKind


class Decision(Base):
    """What an admin settled about a question that people's answers left open; it stands above them.

    Append-only like answers: taking it back supersedes it.
    """

    __tablename__ = "decision"
    __table_args__ = (
        Index(
            "uq_decision_live",
            "question_id",
            unique=True,
            sqlite_where=text("superseded_at IS NULL"),
            postgresql_where=text("superseded_at IS NULL"),
        ),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    question_id: Mapped[int] = mapped_column(ForeignKey("question.id", ondelete="CASCADE"), index=True)
    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="RESTRICT"))
    value: Mapped[AnswerValue] = mapped_column(enum_column(AnswerValue))  # unsure: nobody can tell
    created_at: Mapped[datetime]
    superseded_at: Mapped[datetime | None]


class DrawCheck(Base):
    """What came out when the server last drew a campaign's questions anew and compared.

    A million questions take some seconds, so a job does it: at opening, at closing and once a day.
    """

    __tablename__ = "draw_check"

    campaign_id: Mapped[UUID] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"), primary_key=True)
    checked_at: Mapped[datetime]
    draws_match: Mapped[bool]  # every class and its place in the queue follow from the seed
    commitment_matches: Mapped[bool]
    # The same of each drawing: {"number": ..., "draws_match": ..., "commitment_matches": ...,
    # "drawn_per_class": [...]}; of the first with the test of its classes, "uniformity": [...], as below.
    drawings: Mapped[list[dict[str, Any]]] = mapped_column(JSON, default=list, server_default="[]")
    drawn_per_class: Mapped[list[int]]
    # Chi-square of the drawn classes; over all rounds the one that looks worst.
    statistic: Mapped[float]
    degrees: Mapped[int]
    p_value: Mapped[float]

    @property
    def uniformity(self) -> ChiSquare:
        """The test of the drawn classes."""
        return ChiSquare(self.statistic, self.degrees, self.p_value)

    def first(self) -> tuple[tuple[int, ...] | None, ChiSquare | None]:
        """Of the first drawing alone: the questions per class, and the test of them.

        None where an older check kept of several drawings only the sums.
        """
        if len(self.drawings) < 2:  # noqa: PLR2004 - then the sums are the first one's
            return tuple(self.drawn_per_class), self.uniformity
        kept = self.drawings[0]
        if "uniformity" not in kept:
            return None, None
        return tuple(kept["drawn_per_class"]), ChiSquare(*kept["uniformity"])


class KeptFigures(Base):
    """What a large campaign's answers told when a job last read them all."""

    __tablename__ = "kept_figures"

    campaign_id: Mapped[UUID] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"), primary_key=True)
    computed_at: Mapped[datetime]  # what came later is not in them
    took_s: Mapped[float]
    # See seen_classes; None where the dataset came without true classes.
    yes_by_true_class: Mapped[list[list[float | None]] | None] = mapped_column(JSON(none_as_null=True))
    rates: Mapped[dict[str, list[float]]] = mapped_column(JSON)  # by user id, see Reliability.rates
    claims: Mapped[dict[str, float] | None] = mapped_column(JSON(none_as_null=True))  # see claims.Claims
    unlisted_count: Mapped[int]  # questions in doubt beside those listed as DoubtfulQuestion


class DoubtfulQuestion(Base):
    """A question that was in doubt when its campaign's figures were worked out, and what it had then."""

    __tablename__ = "doubtful_question"
    __table_args__ = (
        Index("ix_doubtful_question_campaign_id_weight_position", "campaign_id", "weight", "position"),
    )

    question_id: Mapped[int] = mapped_column(
        BigId, ForeignKey("question.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    campaign_id: Mapped[UUID] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"))
    position: Mapped[int]  # of its example
    yes: Mapped[int]
    no: Mapped[int]
    kind: Mapped[LabelKind | None] = mapped_column(enum_column(LabelKind))
    weight: Mapped[float]
