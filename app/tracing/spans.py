"""What requests, statements and jobs took, told to OpenTelemetry. Off unless CLARINET_TRACES is set.

Whoever tells something calls these functions. Off, none of them does more than find that out, and nothing of
OpenTelemetry is imported: `exporting` knows its packages.
"""

import os
from collections.abc import MutableMapping
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from app.errors import AppError
from app.settings import Settings

if TYPE_CHECKING:
    from app.tracing.exporting import Part, Traces

PACKAGES = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter")
HEADER = "traceparent"  # of a request and of a message
VARIABLE = "TRACEPARENT"  # of a child process, by which its spans belong to ours

NOTHING = nullcontext()
END_S = 1.0  # for what waits at the end of a process: Ctrl-C ends within 3 s

_traces: "Traces | None" = None


class TracesNotInstalled(AppError):
    """The extra is missing that speaks to collectors."""

    def __init__(self) -> None:
        super().__init__(
            "CLARINET_TRACES is set, but OpenTelemetry is missing: pip install 'clarinet[traces]'"
        )


def require(settings: Settings) -> None:
    """Refuse to start where this process, or one that it starts, is to tell what it does and cannot.

    Raises:
        TracesNotInstalled: it is so.
    """
    if settings.traces:
        try:
            is_there = all(map(find_spec, PACKAGES))
        except ModuleNotFoundError:
            is_there = False
        if not is_there:
            raise TracesNotInstalled


def begin(settings: Settings, part: str) -> None:
    """Have this process tell what it does, if the settings say so; `part` names what it is: web, worker.

    In a forked child again: what sends is a thread, and that stays behind.

    Raises:
        TracesNotInstalled: it is to tell, and cannot.
    """
    global _traces  # noqa: PLW0603 - one process tells to one place
    if not settings.traces:
        return
    if _traces is not None and _traces.process_id == os.getpid():
        return
    require(settings)
    from app.tracing.exporting import Traces  # noqa: PLC0415 - an extra, and slow to load

    _traces = Traces(part)


def end(within_s: float = END_S) -> None:
    """Send what waits, for so long at most, and tell nothing more."""
    global _traces
    if _traces is not None:
        ending, _traces = _traces, None
        ending.end(within_s)


def span(
    name: str,
    *,
    asked_by: str | None = None,
    kind: str = "internal",
    statements: bool | None = None,
    **facts: str | int | None,
) -> AbstractContextManager["Part | None"]:
    """Tell what the block takes, as a part of what goes on around it; None: nobody is told.

    Args:
        name: of few values, so that they can be compared.
        asked_by: the `traceparent` of what asked for it, perhaps in another process and long ago. Where what
            goes on here belongs to the same trace, the block stays a part of that.
        kind: server, consumer or internal.
        statements: whether statements of the database within are told, too; None: as around it.
        facts: nothing about people, no text that people wrote.
    """
    if _traces is None:
        return NOTHING
    return _traces.part(name, asked_by=asked_by, kind=kind, statements=statements, facts=facts)


def statement(text: str, system: str) -> AbstractContextManager[None]:
    """Tell what a statement takes that runs past SQLAlchemy; never its values."""
    return NOTHING if _traces is None else _traces.statement(text, system)


def traceparent() -> str | None:
    """By which what is asked for here belongs to what goes on; None where nothing is told."""
    return None if _traces is None else _traces.traceparent()


def for_child() -> dict[str, str]:
    """Variables for a process that does a part of what goes on."""
    return {} if _traces is None else {VARIABLE: _traces.traceparent() or ""}


def of_parent() -> str | None:
    """What the process that started this one gave it."""
    return os.environ.get(VARIABLE) or None


def add_ids(_logger: object, _method: str, found: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """For a line of the log: in which trace and span it was written."""
    if _traces is not None:
        found.update(_traces.ids())
    return found
