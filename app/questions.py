"""Asking what may hang, such as a database that has stopped without a word."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

Told = TypeVar("Told")


class Question(Generic[Told]):
    """Something that may hang when it is asked; while it does, it is not asked again."""

    def __init__(self, ask: Callable[[], Told]) -> None:
        self._ask = ask
        self._asked: Future[Told | Exception] | None = None

    def asked(self) -> "Future[Told | Exception]":
        """The answer that is being waited for, or will be from now on; what was raised is an answer, too."""
        if self._asked is None or self._asked.done():
            answer: Future[Told | Exception] = Future()
            self._asked = answer
            # A thread of its own that ends with the process: a pool would wait for it.
            threading.Thread(target=self._answer, args=(answer,), name="question", daemon=True).start()
        return self._asked

    def _answer(self, answer: "Future[Told | Exception]") -> None:
        try:
            answer.set_result(self._ask())
        except Exception as error:
            # The edge of the process: whatever a driver raises means that there is no answer.
            answer.set_result(error)
