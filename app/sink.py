"""Where log lines go. A place that is full or gone is no reason to fail: what it did not take is counted."""

import threading
from typing import TextIO

import structlog

log = structlog.get_logger()


class Sink:
    """Writes lines to a stream, for structlog as a logger and for the standard library as a stream.

    The first line that can be written again is followed by one that says how many were lost.
    """

    def __init__(self, stream: TextIO | None) -> None:  # None: the process began with its stderr closed
        self._stream = stream
        self._lost = 0
        self._lock = threading.Lock()

    def write(self, text: str) -> int:
        """Write a line with its end at once: threads and processes write to the same place."""
        with self._lock:
            if not self._is_taken(text):
                self._lost += 1
                return len(text)
            lost, self._lost = self._lost, 0
        if lost:
            log.warning("log.lines_lost", lines=lost)
        return len(text)

    def flush(self) -> None:
        """Nothing waits here."""

    def _is_taken(self, text: str) -> bool:
        if self._stream is None:
            return False
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # no space, nobody who reads, a limit on files; a closed stream
            return False
        return True

    def msg(self, line: str) -> None:
        """Write what structlog made of an event."""
        self.write(f"{line}\n")

    log = debug = info = warn = warning = msg
    fatal = failure = err = error = critical = exception = msg
