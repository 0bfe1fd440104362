"""JSON to the last line: what packages log, warn, print and raise comes as our own lines do."""

import atexit
import io
import logging
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from app.sink import Sink

BEGINNING = "Traceback (most recent call last):"
LONGEST = 256 * 1024  # characters of a line that does not end, such as a bar that is drawn again and again

log = structlog.get_logger()


class Tracebacks:
    """Puts together what belongs together: the lines of a traceback are one text, each other line its own."""

    def __init__(self) -> None:
        self._begun: list[str] = []
        self._is_open = False  # the last line of a traceback, which is not indented, is still to come

    def given(self, text: str) -> Iterator[str]:
        """What is whole with this line, or with these that were written at once."""
        self._begun.append(text)
        for line in text.split("\n"):
            if line.startswith(BEGINNING):
                self._is_open = True
            elif line and not line.startswith(" "):
                self._is_open = False
        if not self._is_open:
            yield from self.rest()

    def rest(self) -> Iterator[str]:
        """What was begun."""
        if self._begun:
            yield "\n".join(self._begun)
        self._begun, self._is_open = [], False


class Lines(io.TextIOBase):
    """A stream that logs what is printed to it; files below it stay what they are."""

    def __init__(self, beneath: TextIO, name: str) -> None:
        self.beneath = beneath
        self._name = name
        self._begun = ""
        self._tracebacks = Tracebacks()
        self._lock = threading.RLock()
        atexit.register(self.end)

    @property
    def buffer(self) -> Any:  # of bytes, for children
        """Of the stream beneath."""
        return self.beneath.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]  # typeshed has an attribute
        """Of the stream beneath."""
        return self.beneath.encoding

    def fileno(self) -> int:
        """Of the stream beneath."""
        return self.beneath.fileno()

    def isatty(self) -> bool:
        """No: nobody wants colours in JSON."""
        return False

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, text: str) -> int:
        """Log what ends with its line; what was written together stays together."""
        with self._lock:
            self._begun += text
            if self._begun.endswith("\n") or len(self._begun) > LONGEST:
                said, self._begun = self._begun.strip("\n"), ""
                for whole in self._tracebacks.given(said):
                    self._tell(whole)
        return len(text)

    def flush(self) -> None:
        """Nothing waits here but lines that are not whole."""

    def end(self) -> None:
        """Log what never became whole."""
        with self._lock:
            self._begun += "" if self._begun.endswith("\n") or not self._begun else "\n"
            self.write("")
            for whole in self._tracebacks.rest():
                self._tell(whole)

    def _tell(self, said: str) -> None:
        if said.strip():
            log.info(said, printed_to=self._name)


def beneath(stream: TextIO) -> TextIO:
    """The stream that takes lines as they are."""
    return stream.beneath if isinstance(stream, Lines) else stream


def print_lines() -> None:
    """From now on what this process prints is logged. For processes that stay and are read by a machine."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, Lines):
            setattr(sys, name, Lines(stream, name))


def end_lines() -> None:
    """Log what never became whole, where the process is about to end without a word to anybody."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, Lines):
            stream.end()


class _OfPackages(logging.StreamHandler[Sink]):
    """Takes the records of the standard library's loggers."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the base class's name
        """A record that cannot be written is told as that, in one line as well."""
        log.error("log.not_written", logger=record.name, exc_info=True)


def _logger_of(_logger: WrappedLogger, _method: str, found: EventDict) -> EventDict:
    found["logger"] = found["_record"].name
    return found


def take_in(sink: Sink, before: Sequence[Processor], at_the_end: Sequence[Processor]) -> None:
    """Have what packages log and warn, and what nobody catches, written as our own lines are."""
    leave_out()
    handler = _OfPackages(sink)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*before, _logger_of],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *at_the_end],
        )
    )
    logging.getLogger().addHandler(handler)
    logging.captureWarnings(True)
    sys.excepthook = _on_error
    sys.unraisablehook = _on_unraisable
    threading.excepthook = _on_thread_error


def leave_out() -> None:
    """End what `take_in` began."""
    root = logging.getLogger()
    found = [handler for handler in root.handlers if isinstance(handler, _OfPackages)]
    for handler in found:
        root.removeHandler(handler)
    if found:
        logging.captureWarnings(False)
        sys.excepthook, sys.unraisablehook = sys.__excepthook__, sys.__unraisablehook__
        threading.excepthook = threading.__excepthook__


def _on_error(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    log.critical("process.failed", exc_info=(kind, error, trace))


def _on_unraisable(given: "sys.UnraisableHookArgs") -> None:
    error = given.exc_value or given.exc_type()
    log.error(
        "error.not_raised", of=repr(given.object), exc_info=(given.exc_type, error, given.exc_traceback)
    )


def _on_thread_error(given: threading.ExceptHookArgs) -> None:
    error = given.exc_value or given.exc_type()
    name = given.thread.name if given.thread else ""
    log.error("thread.failed", thread=name, exc_info=(given.exc_type, error, given.exc_traceback))
