"""A pipe to another process that nobody waits for longer than was said."""

import io
import math
import os
import select
import time
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer


class TooLate(OSError):
    """The other side read, or wrote, nothing more within the time."""


class PatientPipe(io.RawIOBase):
    """An end of a pipe whose reads and writes raise TooLate from `until` on, in time.monotonic()'s seconds.

    A thread that would end the process then costs as much to start as a small prediction.
    """

    def __init__(self, pipe: IO[bytes]) -> None:
        """`pipe`: unbuffered; it is closed with this."""
        super().__init__()
        self._pipe = pipe
        self._fd = pipe.fileno()
        os.set_blocking(self._fd, False)
        self.until = math.inf

    def readable(self) -> bool:
        """Whether it is the end to read from."""
        return self._pipe.readable()

    def writable(self) -> bool:
        """Whether it is the end to write to."""
        return self._pipe.writable()

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Read what is there, once anything is; 0 where the other side has closed."""
        while True:
            self._wait(select.POLLIN)
            try:
                return os.readv(self._fd, [buffer])
            except BlockingIOError:
                continue

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write as much as fits, once anything does."""
        while True:
            self._wait(select.POLLOUT)
            try:
                return os.write(self._fd, data)
            except BlockingIOError:
                continue

    def close(self) -> None:
        """Close the pipe."""
        if not self.closed:
            self._pipe.close()
        super().close()

    def _wait(self, event: int) -> None:
        poll = select.poll()
        poll.register(self._fd, event)
        left = self.until - time.monotonic()
        if not poll.poll(None if left == math.inf else max(0.0, 1000 * left)):
            raise TooLate
