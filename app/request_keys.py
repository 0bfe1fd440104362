"""Keys of requests, as `app/idempotency.py` keeps them: the rows alone, which know no HTTP."""

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import ForeignKey, String, delete
from sqlalchemy.orm import Mapped, Session, mapped_column

from app.db import Base

LIFE = timedelta(days=1)
MAX_KEY = 128


class IdempotencyKey(Base):
    """A request that made something, by the key that its sender gave."""

    __tablename__ = "idempotency_key"

    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="CASCADE"), primary_key=True)
    key: Mapped[str] = mapped_column(String(MAX_KEY), primary_key=True)
    request: Mapped[str] = mapped_column(String(64))  # SHA-256 of what was asked for
    made: Mapped[str] = mapped_column(String(64), default="")  # id of what was made
    created_at: Mapped[datetime]


def forget_keys(session: Session, *, now: datetime) -> None:
    """Forget everybody's keys that are older than a day."""
    session.execute(delete(IdempotencyKey).where(IdempotencyKey.created_at < now - LIFE))
