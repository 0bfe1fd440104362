"""What the provider told, kept for a while: one thread asks, and others use what is there meanwhile."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import Generic, TypeVar

from app.accounts.organisation.errors import OrganisationAway, OrganisationSetUpWrong
from app.clock import utc_now

KEPT = timedelta(hours=1)
KEPT_AT_MOST = timedelta(hours=24)  # where the provider does not answer any more
FAILURE_KEPT = timedelta(seconds=30)  # where there is something to go on with meanwhile
FAILURE_KEPT_AT_FIRST = timedelta(seconds=3)  # where nobody can sign in before it is told
WAIT_S = 3.0  # for whoever asks already, where there is nothing to go on with: each who waits holds a thread

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class _Found(Generic[Kind]):
    it: Kind
    at: datetime


class Kept(Generic[Kind]):
    """One thing that the provider tells.

    Args:
        ask: asks the provider for it at a moment; raises OrganisationAway or OrganisationSetUpWrong.
        name: what people call the provider.
    """

    def __init__(self, ask: Callable[[datetime], Kind], name: str) -> None:
        self._ask, self._name = ask, name
        self._asking = Lock()  # held by the one thread that asks
        self._found: _Found[Kind] | None = None
        self._failed: _Found[OrganisationAway | OrganisationSetUpWrong] | None = None

    def get(self, now: datetime, *, at_most_old: timedelta | None = None) -> Kind:
        """It, as it was told within KEPT, or within KEPT_AT_MOST where the provider is away.

        Args:
            at_most_old: what is older is of no use, whether the provider is away or not.

        Raises:
            OrganisationAway, OrganisationSetUpWrong: as `ask`, or as it did just now.
        """
        if (ready := self._ready(now, at_most_old)) is not None:
            return ready.it
        spare = self._spare(now, at_most_old)
        if not self._asking.acquire(timeout=0 if spare else WAIT_S):
            if spare is not None:
                return spare.it
            raise OrganisationAway(self._name)
        try:
            if (ready := self._ready(now, at_most_old)) is not None:  # told while we waited
                return ready.it
            return self._asked(now, at_most_old)
        finally:
            self._asking.release()

    def _ready(self, now: datetime, at_most_old: timedelta | None) -> _Found[Kind] | None:
        """What serves without asking; raises what went wrong just now."""
        found, failed = self._found, self._failed
        if found is not None and now - found.at < (KEPT if at_most_old is None else at_most_old):
            return found
        if failed is None:
            return None
        spare = self._spare(now, at_most_old) if isinstance(failed.it, OrganisationAway) else None
        if now - failed.at >= (FAILURE_KEPT if spare else FAILURE_KEPT_AT_FIRST):
            return None
        if spare is None:
            raise failed.it.with_traceback(None)
        return spare

    def _spare(self, now: datetime, at_most_old: timedelta | None) -> _Found[Kind] | None:
        """What serves where the provider is away."""
        found = self._found
        return found if found and at_most_old is None and now - found.at < KEPT_AT_MOST else None

    def _asked(self, now: datetime, at_most_old: timedelta | None) -> Kind:
        try:
            found = _Found(self._ask(now), now)
        except (OrganisationAway, OrganisationSetUpWrong) as error:
            self._failed = _Found(error, utc_now())  # it took a while to fail
            spare = self._spare(now, at_most_old) if isinstance(error, OrganisationAway) else None
            if spare is None:
                raise
            return spare.it
        self._found, self._failed = found, None
        return found.it
