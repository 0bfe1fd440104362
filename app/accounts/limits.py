"""How often one may fail to sign in: guessing passwords must cost more than it brings."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from limits.errors import StorageError
from limits.storage import MemoryStorage, Storage, storage_from_string

from app.accounts.callers import digest
from app.accounts.errors import TooManyJoins, TooManyMails, TooManySignIns
from app.addresses import network_of


@dataclass(frozen=True, slots=True)
class Limit:
    """So many failures in so long."""

    amount: int
    window_s: int


# A school shares one address. Whoever knows an e-mail can use up its few failures from where they are, but
# does not lock out its owner elsewhere. The limits by e-mail and by address stop those who come from many
# addresses, and those who try one password on many people. Neither holds for an e-mail from where it signed
# in before: a class stays in, whatever somebody in the room does.
PER_EMAIL_AND_ADDRESS = Limit(10, 15 * 60)
PER_EMAIL = Limit(100, 60 * 60)
PER_ADDRESS = Limit(500, 15 * 60)
PER_CODE = Limit(10, 15 * 60)  # of an e-mail whose password was right
MAILS_PER_EMAIL = Limit(3, 60 * 60)
MAILS_PER_ADDRESS = Limit(60, 60 * 60)  # a class that forgot them all
JOINS_PER_ADDRESS = Limit(60, 15 * 60)  # a room full of outside workers
TRIPS_PER_ADDRESS = Limit(600, 15 * 60)  # to the organisation's provider and back, for a school's one address
KNOWN_S = 30 * 24 * 3600

log = structlog.get_logger()


class SignInLimit:
    """Counts failures: in Redis where the queue is there too, so that web processes count together."""

    def __init__(self, broker_url: str) -> None:
        self._own: Storage = MemoryStorage()
        self._shared: Storage = (
            storage_from_string(broker_url, wrap_exceptions=True)  # type: ignore[assignment]  # not "async+"
            if broker_url.startswith(("redis://", "rediss://"))
            else self._own
        )

    def check(self, *, address: str, email: str) -> None:
        """Let an attempt go on. Ask last, right before the password is looked at.

        Raises:
            TooManySignIns: the e-mail from there, the e-mail, or the address has failed too often.
        """
        self._with_storage(lambda storage: _check(storage, address, email))

    def note_failure(self, *, address: str, email: str) -> None:
        """The password was wrong."""

        def count(storage: Storage) -> None:
            for limit, name in _counters(address, email):
                storage.incr(_key(name), limit.window_s)

        self._with_storage(count)

    def note_success(self, *, address: str, email: str) -> None:
        """The password was right: its failures from there count no more, and the e-mail is known there."""
        self._with_storage(lambda storage: _forget(storage, address, email))

    def count_code(self, *, email: str) -> None:
        """Count a code of the second factor as wrong, from anywhere, until `forgive_code` says otherwise.

        Raises:
            TooManySignIns: too many were wrong.
        """
        self._count(PER_CODE, f"code/{_named(email)}", TooManySignIns)

    def forgive_code(self, *, email: str) -> None:
        """The code was right."""
        self._with_storage(lambda storage: storage.clear(_key(f"code/{_named(email)}")))

    def count_mail(self, *, address: str, email: str) -> None:
        """Count a mail that somebody who is not signed in wants sent.

        Raises:
            TooManyMails: to this address, or from this place.
        """
        self._count(MAILS_PER_EMAIL, f"mail/{_named(email)}", TooManyMails)
        self._count(MAILS_PER_ADDRESS, f"mails/{network_of(address)}", TooManyMails)

    def count_join(self, *, address: str) -> None:
        """Count somebody who comes by a link for outside workers.

        Raises:
            TooManyJoins: too many came from this place.
        """
        self._count(JOINS_PER_ADDRESS, f"joins/{network_of(address)}", TooManyJoins)

    def count_trip(self, *, address: str) -> None:
        """Count somebody who goes to the organisation's provider, or comes back.

        Raises:
            TooManySignIns: too many did from this place.
        """
        self._count(TRIPS_PER_ADDRESS, f"trips/{network_of(address)}", TooManySignIns)

    def _count(
        self, limit: Limit, name: str, refusal: type[TooManyJoins | TooManyMails | TooManySignIns]
    ) -> None:
        """Count one more of them, and refuse it beyond the limit."""

        def count(storage: Storage) -> None:
            if storage.incr(_key(name), limit.window_s) > limit.amount:
                raise refusal(wait_s=_wait_s(storage, name))

        self._with_storage(count)

    def _with_storage(self, act: Callable[[Storage], None]) -> None:
        """In this process alone while the shared place does not answer."""
        try:
            act(self._shared)
        except StorageError:
            log.warning("sign_in.limit_not_shared", exc_info=True)
            act(self._own)


def _counters(address: str, email: str) -> tuple[tuple[Limit, str], ...]:
    """The limits of an attempt; the first one holds for known e-mails, too."""
    return (
        (PER_EMAIL_AND_ADDRESS, _from_there(address, email)),
        (PER_EMAIL, f"email/{_named(email)}"),
        (PER_ADDRESS, f"address/{network_of(address)}"),
    )


def _check(storage: Storage, address: str, email: str) -> None:
    counters = _counters(address, email)
    is_known = storage.get(_key("known", _from_there(address, email))) > 0
    for limit, name in counters[:1] if is_known else counters:
        if storage.get(_key(name)) >= limit.amount:
            raise TooManySignIns(wait_s=_wait_s(storage, name))


def _forget(storage: Storage, address: str, email: str) -> None:
    (_, pair), *others = _counters(address, email)
    failed = storage.get(_key(pair))
    storage.clear(_key(pair))
    for limit, name in others:
        back = min(failed, storage.get(_key(name)))
        if back > 0:
            storage.incr(_key(name), limit.window_s, amount=-back)
    storage.clear(_key("known", pair))
    storage.incr(_key("known", pair), KNOWN_S)


def _wait_s(storage: Storage, name: str) -> int:
    return max(1, round(storage.get_expiry(_key(name)) - time.time()))


def _key(*parts: str) -> str:
    return "/".join(("clarinet/sign-in", *parts))


def _from_there(address: str, email: str) -> str:
    return f"from/{network_of(address)}/{_named(email)}"


def _named(email: str) -> str:
    return digest(email.strip().lower())
