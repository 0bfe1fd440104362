"""What makes somebody an admin or a reviewer, or could: only a person with a fresh password does it."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from fastapi import Request
from sqlalchemy.orm import Session, sessionmaker

from app.accounts import service
from app.accounts.errors import InPersonOnly, ProofNeeded
from app.accounts.models import Invitation, Role, User
from app.accounts.signing import prove_again
from app.idempotency import Once


class Granting:
    """Acts of one admin in one request; `password` is theirs, "" if the request has none."""

    def __init__(
        self,
        request: Request,
        session: Session,
        reading: sessionmaker[Session],
        *,
        by: User,
        now: datetime,
        password: str = "",
    ) -> None:
        self.session, self.reading, self.by, self.now = session, reading, by, now
        self._request, self._password = request, password
        self._is_proved = False

    def invite(
        self, *, role: Role, note: str, email: str | None, once: Once | None = None
    ) -> tuple[Invitation, str]:
        """As `service.invite`; `once`: of a page's form."""
        if role is not Role.ANNOTATOR:
            self._prove()
        if once is not None:
            once.begin_form(self.session)
        return service.invite(self.session, role=role, note=note, email=email, by=self.by, now=self.now)

    def invite_several(
        self, lines: Sequence[str], *, role: Role, once: Once | None = None
    ) -> list[tuple[Invitation, str]]:
        """As `service.invite_several`; `once`: of a page's form."""
        if role is not Role.ANNOTATOR:
            self._prove()
        if once is not None:
            once.begin_form(self.session)
        return service.invite_several(self.session, lines, role=role, by=self.by, now=self.now)

    def set_role(self, user_id: UUID, role: Role) -> User:
        """As `service.set_role`."""
        if role is not Role.ANNOTATOR:
            self._prove()
        return service.set_role(self.session, user_id, role, by=self.by, now=self.now)

    def rename(self, user_id: UUID, name: str) -> User:
        """As `service.rename`."""
        return service.rename(self.session, user_id, name, by=self.by)

    def prove_for(self, user_id: UUID) -> User:
        """The person, with one's own password if they are more than an annotator."""
        return self._prove_for(user_id)

    def set_disabled(self, user_id: UUID, *, disabled: bool) -> User:
        """As `service.set_disabled`; letting an admin in again makes an admin."""
        if not disabled:
            self._prove_for(user_id)
        return service.set_disabled(self.session, user_id, disabled=disabled, by=self.by, now=self.now)

    def make_password_link(self, user_id: UUID, *, once: Once | None = None) -> tuple[Invitation, str]:
        """As `service.make_password_link`: whoever has somebody's link becomes them, so no token does."""
        self._require_in_person()
        user = self._prove_for(user_id)
        if once is not None:
            once.begin_form(self.session)
        return service.make_password_link(self.session, user, by=self.by, now=self.now)

    def turn_off_second_factor(self, user_id: UUID) -> User:
        """As `service.turn_off_second_factor`; not by a token, either."""
        self._require_in_person()
        self._prove_for(user_id)
        return service.turn_off_second_factor(self.session, user_id, by=self.by)

    def end_sessions(self, user_id: UUID) -> None:
        """As `service.end_sessions`."""
        service.end_sessions(self.session, user_id, by=self.by)

    def _require_in_person(self) -> None:
        if self._request.state.by_token:
            raise InPersonOnly

    def _prove(self) -> None:
        prove_again(self._request, self.session, self.reading, self.by, self._password)
        self._is_proved = True

    def _prove_for(self, user_id: UUID) -> User:
        """The person, with one's own password if they are more than an annotator."""
        # Not in the session that writes: others would wait while the password is looked at.
        with self.reading.begin() as looking:
            may_review = service.get_person(looking, user_id, by=self.by).may_review
        if may_review:
            self._prove()
        user = service.get_person(self.session, user_id, by=self.by)
        if user.may_review and not self._is_proved:  # became one meanwhile
            raise ProofNeeded
        return user
