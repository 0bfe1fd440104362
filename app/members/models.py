"""Links by which outside workers come to a campaign, who came, and by which link when."""

from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base

MAX_WORKER_ID = 100


class WorkerLink(Base):
    """A link to a campaign for people of a crowd-working platform. Of its secret only the SHA-256 is kept."""

    __tablename__ = "worker_link"
    __table_args__ = (
        CheckConstraint("answers_needed >= 1", name="answers_needed_positive"),
        CheckConstraint("max_workers >= 1", name="max_workers_positive"),
        CheckConstraint("workers <= max_workers", name="workers_in_range"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    campaign_id: Mapped[UUID] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"), index=True)
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    note: Mapped[str] = mapped_column(String(120), default="")  # which study it is for
    answers_needed: Mapped[int]  # until the completion code is shown
    code: Mapped[str] = mapped_column(String(40))  # the same for everybody who comes by it
    max_workers: Mapped[int]
    workers: Mapped[int] = mapped_column(default=0)  # who came by it, whether or not by another as well
    created_by_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="RESTRICT"))
    created_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]


class OutsideWorker(Base):
    """What is known of an outside worker: the platform's id. Erasing the person deletes the row."""

    __tablename__ = "outside_worker"
    __table_args__ = (UniqueConstraint("campaign_id", "worker_id"),)

    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="CASCADE"), primary_key=True)
    campaign_id: Mapped[UUID] = mapped_column(ForeignKey("campaign.id", ondelete="CASCADE"))
    # By which they came last.
    link_id: Mapped[UUID] = mapped_column(ForeignKey("worker_link.id", ondelete="CASCADE"), index=True)
    worker_id: Mapped[str] = mapped_column(String(MAX_WORKER_ID))


class WorkerVisit(Base):
    """A time in which an outside worker answers for one link: until they come by another one.

    A question counts for the link for which they answered it first, whatever becomes of that answer.
    """

    __tablename__ = "worker_visit"
    __table_args__ = (
        Index(
            "uq_worker_visit_now",
            "user_id",
            unique=True,
            sqlite_where=text("ended_at IS NULL"),
            postgresql_where=text("ended_at IS NULL"),
        ),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="CASCADE"), index=True)
    link_id: Mapped[UUID] = mapped_column(ForeignKey("worker_link.id", ondelete="CASCADE"), index=True)
    began_at: Mapped[datetime | None]  # None: their first one
    ended_at: Mapped[datetime | None]  # None: it goes on
