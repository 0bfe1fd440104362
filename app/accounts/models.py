"""People, how they prove who they are, and how they come in."""

import enum
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import ForeignKey, String, false, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, enum_column


class Role(enum.StrEnum):
    """What a person may do: admins everything, reviewers settle what annotators answer."""

    ADMIN = "admin"
    REVIEWER = "reviewer"  # sees every campaign, its review and its labels; no people, no runs, no datasets
    ANNOTATOR = "annotator"


class Scope(enum.StrEnum):
    """What a token may do of what its owner may."""

    READ = "read"  # look
    ANNOTATE = "annotate"  # lease and answer questions, and look at what every annotator may look at
    MANAGE = "manage"  # all but tokens, passwords and making admins


class Purpose(enum.StrEnum):
    """What a one-time link is for."""

    ACCOUNT = "account"  # makes one
    FIRST_ADMIN = "first-admin"  # makes the first admin; whoever sees the start of the server has it
    PASSWORD = "password"  # lets somebody who has an account choose another password


class User(Base):
    """A person (or a program) with an account."""

    __tablename__ = "user"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    email: Mapped[str] = mapped_column(String(254), unique=True)  # kept in lower case
    name: Mapped[str] = mapped_column(String(120))
    role: Mapped[Role] = mapped_column(enum_column(Role))
    password_hash: Mapped[str | None] = mapped_column(String(255))
    is_simulated: Mapped[bool] = mapped_column(default=False)  # pages must say so wherever its answers count
    # Comes by the link of one campaign, without address or password, and is a member of that campaign alone.
    is_outside: Mapped[bool] = mapped_column(default=False, server_default=false())
    created_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]
    erased_at: Mapped[datetime | None]  # nothing that identifies them is kept; the name is a pseudonym
    totp_secret: Mapped[str | None] = mapped_column(String(64))  # of the second factor, in base 32
    totp_since: Mapped[datetime | None]  # None: off, or not confirmed by a first code
    totp_step: Mapped[int | None]  # of the last code that was used: no code works twice

    @property
    def has_second_factor(self) -> bool:
        """Whether signing in asks for a code, too."""
        return self.totp_since is not None

    @property
    def is_admin(self) -> bool:
        """Whether this is an admin."""
        return self.role is Role.ADMIN

    @property
    def may_review(self) -> bool:
        """Whether this is a reviewer or an admin."""
        return self.role in (Role.REVIEWER, Role.ADMIN)


class LoginSession(Base):
    """A browser that is signed in. The cookie holds a random id; only its SHA-256 is kept here."""

    __tablename__ = "session"

    id_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    seen_at: Mapped[datetime | None]  # last use, to a minute or so; None: not since it began
    proved_at: Mapped[datetime | None]  # when its password was last given; None: by an earlier version
    address: Mapped[str] = mapped_column(String(64), default="", server_default="")  # where it began
    browser: Mapped[str] = mapped_column(String(200), default="", server_default="")  # as it calls itself


class ApiToken(Base):
    """A bearer token of a program. Shown once; only its SHA-256 is kept."""

    __tablename__ = "api_token"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    user_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(120))
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    scope: Mapped[Scope] = mapped_column(enum_column(Scope), default=Scope.MANAGE, server_default="manage")
    created_at: Mapped[datetime]
    # What a server of an earlier version makes during an upgrade is over at once.
    expires_at: Mapped[datetime] = mapped_column(server_default=text("'1970-01-01 00:00:00'"))
    seen_at: Mapped[datetime | None]  # last use, to a minute or so
    revoked_at: Mapped[datetime | None]
    # Of a simulated annotator: the admin whose end is its end, and the token by which it was made.
    made_by_id: Mapped[UUID | None] = mapped_column(ForeignKey("user.id"), index=True)
    made_with_id: Mapped[UUID | None] = mapped_column(ForeignKey("api_token.id"))


class Invitation(Base):
    """A one-time link: it makes an account, or lets somebody who has one choose another password."""

    __tablename__ = "invitation"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    purpose: Mapped[Purpose] = mapped_column(
        enum_column(Purpose), default=Purpose.ACCOUNT, server_default="account"
    )
    role: Mapped[Role] = mapped_column(enum_column(Role))
    note: Mapped[str] = mapped_column(String(120), default="")  # for whom it is meant
    email: Mapped[str | None] = mapped_column(String(254))  # the only address that it makes an account for
    # Of a link to another password: whose; of a used one for an account: whose that account is.
    for_id: Mapped[UUID | None] = mapped_column(ForeignKey("user.id"), index=True)
    invited_by_id: Mapped[UUID | None] = mapped_column(ForeignKey("user.id", ondelete="CASCADE"))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    accepted_at: Mapped[datetime | None]
