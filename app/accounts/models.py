"""People, how they prove who they are, and how they come in."""

import enum
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.db import Base, enum_column


class Role(enum.StrEnum):
    """What a person may do: admins everything, annotators answer questions."""

    ADMIN = "admin"
    ANNOTATOR = "annotator"


class User(Base):
    """A person (or a program) with an account."""

    __tablename__ = "user"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    email: Mapped[str] = mapped_column(String(254), unique=True)  # kept in lower case
    name: Mapped[str] = mapped_column(String(120))
    role: Mapped[Role] = mapped_column(enum_column(Role))
    password_hash: Mapped[str | None] = mapped_column(String(255))
    is_simulated: Mapped[bool] = mapped_column(default=False)  # pages must say so wherever its answers count
    created_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]

    @property
    def is_admin(self) -> bool:
        """Whether this is an admin."""
        return self.role is Role.ADMIN


class LoginSession(Base):
    """A browser that is signed in. The cookie holds a random id; only its SHA-256 is kept here."""

    __tablename__ = "session"

    id_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]

    user: Mapped[User] = relationship(lazy="raise")


class ApiToken(Base):
    """A bearer token of a program. Shown once; only its SHA-256 is kept."""

    __tablename__ = "api_token"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(120))
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]

    user: Mapped[User] = relationship(lazy="raise")


class Invitation(Base):
    """A one-time link that makes an account; the first admin comes in through one too."""

    __tablename__ = "invitation"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    role: Mapped[Role] = mapped_column(enum_column(Role))
    note: Mapped[str] = mapped_column(String(120), default="")  # for whom it is meant
    invited_by_id: Mapped[UUID | None] = mapped_column(ForeignKey("user.id", ondelete="CASCADE"))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    accepted_at: Mapped[datetime | None]
