"""A pipe on which a process says that it gets on, and, at its end, what stood in its way.

A process that trains several trials has a pipe for each, on which it also says how that one ended.

A pipe, because neither a full disk nor a database, broker or bucket that is away can keep anything from it.
"""

import os
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

BEAT = b"\0"
LEFT = b"\1"  # before the exit code of a trial; nothing but beats comes after it
EVERY_S = 0.5
BEATS_TO = "CLARINET_BEATS_TO"  # names the pipe's end to a part of `clarinet up`
MOST_WORDS = 3000  # bytes: fewer than a pipe takes in one piece


def silently() -> None:
    """The beat of who is not watched."""


class Listener:
    """The end of who watches."""

    def __init__(self) -> None:
        self._read, self.write_end = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self.write_end, False)
        self._said = b""
        self.left: int | None = None  # the exit code of what has ended while its process goes on

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close both ends."""
        for end in (self._read, self.write_end):
            os.close(end)

    def heard(self) -> bool:
        """Whether anything came since the last time."""
        came = False
        with suppress(BlockingIOError):
            while part := os.read(self._read, 65536):
                came = True
                words, _, code = part.replace(BEAT, b"").partition(LEFT)
                self._said = (self._said + words)[-MOST_WORDS:]
                if code.isdigit():
                    self.left = int(code)
        return came

    @property
    def words(self) -> str:
        """What was said besides beats, so far as it was heard."""
        return self._said.decode(errors="replace").strip()


class Teller:
    """The end of who is watched; it waits for nobody, and nobody's absence hurts it."""

    def __init__(self, write_end: int) -> None:
        self.write_end = write_end
        self._next = 0.0

    @classmethod
    def of_environment(cls) -> Self | None:
        """To who started this process and listens; None: nobody does."""
        write_end = os.environ.pop(BEATS_TO, None)  # which no process that we start has
        return None if write_end is None else cls(int(write_end))

    def beat(self) -> None:
        """Say that it gets on: cheap enough for every step."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + EVERY_S
            self._write(BEAT)

    def beat_on(self) -> None:
        """Beat from a thread of its own until the process ends or hangs."""

        def beat() -> None:
            while True:
                self.beat()
                time.sleep(2 * EVERY_S)

        threading.Thread(target=beat, name="beats", daemon=True).start()

    def say(self, words: str) -> None:
        """Say what stood in the way."""
        self._write(words.encode()[:MOST_WORDS])

    def leave(self, code: int) -> None:
        """Say that what is watched has ended, with an exit code, while its process may go on."""
        self._write(LEFT + str(code).encode())

    def _write(self, data: bytes) -> None:
        with suppress(OSError):
            os.write(self.write_end, data)
