"""Labels from elsewhere."""

import enum
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import JSON, ForeignKey, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.annotation.models import AnswerValue
from app.claims import Claimable
from app.db import Base, BigId, enum_column


class ImportState(enum.StrEnum):
    """Where the import of a file of labels stands. Only what is ready counts."""

    IMPORTING = "importing"
    READY = "ready"
    FAILED = "failed"


class LabelImport(Claimable, Base):
    """A file of labels from elsewhere. They stay apart: no question was drawn for them."""

    __tablename__ = "label_import"
    __table_args__ = (UniqueConstraint("campaign_id", "digest"),)  # so a file sent twice counts once

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    campaign_id: Mapped[UUID] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"))
    filename: Mapped[str] = mapped_column(String(200))
    digest: Mapped[str] = mapped_column(String(64))  # SHA-256 of the file
    state: Mapped[ImportState] = mapped_column(
        enum_column(ImportState), default=ImportState.IMPORTING, server_default=ImportState.READY.value
    )
    failure: Mapped[str | None] = mapped_column(Text)  # a sentence: what is wrong with the file
    noun: Mapped[str] = mapped_column(String(8), default="line", server_default="line")  # or "task"
    # Lines that could not be taken, or were left out: {"where": "line 7", "why": ...}; of many the first.
    faults: Mapped[list[dict[str, str]]] = mapped_column(JSON, default=list, server_default="[]")
    # What its admin should know of one that went well, in sentences: columns that were not read.
    notes: Mapped[list[str]] = mapped_column(JSON, default=list, server_default="[]")
    upload: Mapped[dict[str, Any] | None]  # what the import reads, and for what campaign; None once done
    yes: Mapped[int] = mapped_column(default=0)
    no: Mapped[int] = mapped_column(default=0)
    unsure: Mapped[int] = mapped_column(default=0)
    unusable: Mapped[int] = mapped_column(default=0, server_default="0")
    known: Mapped[int] = mapped_column(default=0, server_default="0")  # of these, what was here already
    left_out: Mapped[int] = mapped_column(default=0, server_default="0")  # beside these: contradictions
    created_by_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="RESTRICT"))
    created_at: Mapped[datetime]


class ImportedAnswer(Base):
    """What a file says about one example and one class; a class label is a yes about its class.

    Its content tells it: who says what of which example and class. An import has each once, but for
    those of earlier versions; however often it is there, it counts once.
    """

    __tablename__ = "imported_answer"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    import_id: Mapped[UUID] = mapped_column(ForeignKey("label_import.id", ondelete="CASCADE"), index=True)
    example_id: Mapped[int] = mapped_column(ForeignKey("example.id", ondelete="RESTRICT"), index=True)
    candidate_class: Mapped[int]  # position of the campaign's class
    value: Mapped[AnswerValue] = mapped_column(enum_column(AnswerValue))
    annotator: Mapped[str] = mapped_column(String(120), default="")  # as the file calls them
    answered_at: Mapped[datetime | None]  # as the file says
    line: Mapped[int | None]  # or task, where the file says it first; None: of an earlier version
