"""Whose account at the provider is whose account here."""

from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base


class OrganisationIdentity(Base):
    """One account at the provider, known by issuer and subject alone: addresses change and are given on."""

    __tablename__ = "organisation_identity"
    __table_args__ = (UniqueConstraint("issuer", "subject"), UniqueConstraint("user_id", "issuer"))

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="CASCADE"))
    issuer: Mapped[str] = mapped_column(String(500))
    subject: Mapped[str] = mapped_column(String(255))
    called: Mapped[str] = mapped_column(String(254))  # there, when it was linked: for people to see which
    linked_at: Mapped[datetime]
    seen_at: Mapped[datetime | None]  # they last came by it, let in or turned away


class UsedSignIn(Base):
    """The state of an answer that came back from the provider: none counts twice."""

    __tablename__ = "organisation_used"

    state_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    expires_at: Mapped[datetime] = mapped_column(index=True)
