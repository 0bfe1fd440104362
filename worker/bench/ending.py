"""Benchmarks that start processes end them, too, however they are asked to end."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ending_in_order() -> Iterator[None]:
    """End on SIGTERM and on Ctrl-C by an exception, so that processes and folders go as well.

    A shell that starts it in the background has Ctrl-C ignored; it is not ignored in here.
    """

    def end(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    handlers = {signal.SIGTERM: end, signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
