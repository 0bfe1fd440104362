"""How often one may try to sign in: guessing passwords must cost more than it brings."""

import ipaddress
import time

import structlog
from limits import RateLimitItemPerMinute
from limits.errors import StorageError
from limits.storage import MemoryStorage, storage_from_string
from limits.strategies import MovingWindowRateLimiter

from app.accounts.callers import digest
from app.accounts.errors import TooManySignIns

# An office shares one address. Whoever knows an e-mail can use up its few attempts from where they are, but
# does not lock out its owner elsewhere. The last limit stops those who come from many addresses.
PER_ADDRESS = RateLimitItemPerMinute(100, 15)
PER_EMAIL_AND_ADDRESS = RateLimitItemPerMinute(10, 15)
PER_EMAIL = RateLimitItemPerMinute(200, 15)

log = structlog.get_logger()


class SignInLimit:
    """Counts attempts: in Redis where the queue is there too, so that web processes count together."""

    def __init__(self, broker_url: str) -> None:
        self._own = MovingWindowRateLimiter(MemoryStorage())
        self._shared = (
            MovingWindowRateLimiter(storage_from_string(broker_url, wrap_exceptions=True))
            if broker_url.startswith(("redis://", "rediss://"))
            else self._own
        )

    def count(self, *, address: str, email: str) -> None:
        """Count an attempt before the password is looked at.

        Raises:
            TooManySignIns: the address, the e-mail from there, or the e-mail has used its attempts up.
        """
        try:
            self._count(self._shared, address, email)
        except StorageError:
            log.warning("sign_in.limit_not_shared", exc_info=True)
            self._count(self._own, address, email)

    def forgive(self, *, address: str, email: str) -> None:
        """Forget the attempts with this e-mail from this address: the password was right."""
        key = _from_there(address, email)
        try:
            self._shared.clear(PER_EMAIL_AND_ADDRESS, *key)
        except StorageError:
            log.warning("sign_in.limit_not_shared", exc_info=True)
        self._own.clear(PER_EMAIL_AND_ADDRESS, *key)

    def _count(self, limiter: MovingWindowRateLimiter, address: str, email: str) -> None:
        for limit, key in (
            (PER_ADDRESS, ("sign-in", "address", _network(address))),
            (PER_EMAIL_AND_ADDRESS, _from_there(address, email)),
            (PER_EMAIL, ("sign-in", "email", _named(email))),
        ):
            if not limiter.hit(limit, *key):
                wait_s = limiter.get_window_stats(limit, *key).reset_time - time.time()
                raise TooManySignIns(wait_s=max(1, round(wait_s)))


def _from_there(address: str, email: str) -> tuple[str, str, str, str]:
    return "sign-in", "from", _network(address), _named(email)


def _named(email: str) -> str:
    return digest(email.strip().lower())


def _network(address: str) -> str:
    """An IPv4 address, or the /64 of an IPv6 one: a household has 2^64 of those."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(ipaddress.ip_network((parsed, 64), strict=False))
