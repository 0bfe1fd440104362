"""Artefacts of a bucket of which many parts are read are fetched whole, in the background, one at a time."""

import threading
from collections import Counter
from collections.abc import Callable

import structlog

from app.storage import StorageAway, StoredFileDamaged, StoredFileMissing

# Parts of one artefact after which the whole is fetched: a request takes about as long as a MiB of it.
PARTS_BEFORE_WHOLE = 32

log = structlog.get_logger()


class Ahead:
    """Counts the parts that are read.

    Args:
        fetch: brings a whole artefact to this machine.
    """

    def __init__(self, fetch: Callable[[str], object]) -> None:
        self._fetch = fetch
        self._parts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._fetching = threading.Semaphore()

    def note(self, key: str) -> None:
        """A part of an artefact is about to be read."""
        with self._lock:
            self._parts[key] += 1
            if self._parts[key] < PARTS_BEFORE_WHOLE:
                return
            if not self._fetching.acquire(blocking=False):
                return
            del self._parts[key]
        # A thread that ends with the process: a pool would wait for it.
        threading.Thread(target=self._fetch_ahead, args=(key,), name="fetch", daemon=True).start()

    def _fetch_ahead(self, key: str) -> None:
        try:
            self._fetch(key)
        except (StorageAway, StoredFileMissing, StoredFileDamaged, OSError) as error:
            # Parts are read one by one, as before.
            log.warning("storage.not_fetched", key=key, error=type(error).__name__)
        finally:
            self._fetching.release()
