"""What admins settle."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from app.annotation.models import AnswerValue
from app.db import Base, BigId, enum_column


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
