"""What is stored of passwords, so that a stolen database lets nobody in."""

import threading
from collections.abc import Callable

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError

# Argon2id, behind a gate: each hash takes 19 MiB, so only two run at a time.
_hasher = PasswordHasher(memory_cost=19 * 1024, time_cost=2, parallelism=1)
_gate = threading.BoundedSemaphore(2)
# Checked when the account does not exist, so that its absence takes as long to find out.
_decoy = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$2QHXwwJKOLZf1zY7cOSJ1vVgQ5tAv4Cm3Xgzgd8Lz4I"


def hash_password(password: str) -> str:
    """The text to store for a password."""
    with _gate:
        return _hasher.hash(password)


def password_matches(stored: str | None, password: str, *, before: Callable[[], None] = lambda: None) -> bool:
    """Whether the password is the stored one; takes as long when nothing is stored.

    `before` is called when it is this password's turn, and may refuse it: what was allowed when the wait
    began need not be so any more.
    """
    with _gate:
        before()
        try:
            _hasher.verify(stored or _decoy, password)
        except (VerifyMismatchError, InvalidHashError):
            return False
    return stored is not None
