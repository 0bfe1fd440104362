"""Labels from elsewhere."""

from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.annotation.models import AnswerValue
from app.db import Base, BigId, enum_column


class LabelImport(Base):
    """A file of labels from elsewhere. They stay apart: no question was drawn for them."""

    __tablename__ = "label_import"
    __table_args__ = (UniqueConstraint("campaign_id", "digest"),)  # so a file sent twice counts once

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    campaign_id: Mapped[UUID] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"))
    filename: Mapped[str] = mapped_column(String(200))
    digest: Mapped[str] = mapped_column(String(64))  # SHA-256 of the file
    yes: Mapped[int]
    no: Mapped[int]
    unsure: Mapped[int]
    unusable: Mapped[int] = mapped_column(default=0, server_default="0")
    created_by_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="RESTRICT"))
    created_at: Mapped[datetime]


class ImportedAnswer(Base):
    """What a file says about one example and one class; a class label is a yes about its class."""

    __tablename__ = "imported_answer"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    import_id: Mapped[UUID] = mapped_column(ForeignKey("label_import.id", ondelete="CASCADE"), index=True)
    example_id: Mapped[int] = mapped_column(ForeignKey("example.id", ondelete="RESTRICT"), index=True)
    candidate_class: Mapped[int]  # position of the campaign's class
    value: Mapped[AnswerValue] = mapped_column(enum_column(AnswerValue))
    annotator: Mapped[str] = mapped_column(String(120), default="")  # as the file calls them
    answered_at: Mapped[datetime | None]  # as the file says
