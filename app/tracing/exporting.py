"""Tells an OpenTelemetry collector, by OTLP over HTTP, as the standard variables OTEL_* say.

A collector that is away, slow or hangs holds up nobody: spans wait in a bounded queue and go from a thread of
their own. What has no room is dropped, and the log says so now and then.
"""

import logging
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import structlog
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from sqlalchemy import Engine, event

DELAY_MS = 1000  # between two sendings, unless OTEL_BSP_SCHEDULE_DELAY says more; a kill loses as much
DELAY_VARIABLE = "OTEL_BSP_SCHEDULE_DELAY"
ANSWER_S = 2.0  # of a collector, to `clarinet doctor`
TELL_EVERY_S = 60.0  # that spans are lost
MOST_STATEMENTS = 500  # told of one request or job
MOST_CHARACTERS = 2000  # of a statement
KINDS = {"server": SpanKind.SERVER, "consumer": SpanKind.CONSUMER, "internal": SpanKind.INTERNAL}
# What stands in a statement as it is, between quotes: values are bound, but nobody has to rely on that here.
QUOTED = re.compile(r"'(?:[^']|'')*'")
TABLE = re.compile(r"\b(?:FROM|INTO|UPDATE)\s+\"?(\w+)", re.IGNORECASE)
STATEMENTS = contexts.create_key("clarinet-statements")
RUNNING = "_clarinet_span"  # of an execution context

log = structlog.get_logger()
_propagator = TraceContextTextMapPropagator()


class Part:
    """What is told while it goes on."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def call(self, name: str) -> None:
        """Give it the name that is known only now."""
        self._span.update_name(name)

    def note(self, **facts: str | int | None) -> None:
        """Facts that are known only now."""
        self._span.set_attributes(_attributes(facts))

    def fail(self, kind: str) -> None:
        """It went wrong; of an error only its kind is told, since words may name people."""
        self._span.set_attribute("error.type", kind)
        self._span.set_status(Status(StatusCode.ERROR))


class _Left:
    """How many statements may still be told; shared by all that happens in one request or job."""

    def __init__(self) -> None:
        self.count = MOST_STATEMENTS


class _Said(logging.Handler):
    """Keeps what OpenTelemetry said last."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.last = record.getMessage()


class _Telling(SpanExporter):
    """Says in the log that spans were lost, once in a while and in one line."""

    def __init__(self, beneath: SpanExporter, said: _Said) -> None:
        self._beneath = beneath
        self._said = said
        self._lost = 0
        self._told = -TELL_EVERY_S

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send them."""
        result = self._beneath.export(spans)
        if result is not SpanExportResult.SUCCESS:
            self._lost += len(spans)
            if time.monotonic() - self._told >= TELL_EVERY_S:
                log.warning("traces.not_sent", lost=self._lost, why=self._said.last)
                self._told, self._lost = time.monotonic(), 0
        return result

    def shutdown(self) -> None:
        """End."""
        self._beneath.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Send what waits."""
        return self._beneath.force_flush(timeout_millis)


class Traces:
    """What this process tells, and to whom."""

    def __init__(self, part: str) -> None:
        self.process_id = os.getpid()
        said = _Said()
        logger = logging.getLogger("opentelemetry")
        logger.handlers, logger.propagate = [said], False  # a line for each try; ours says it once in a while
        facts = {"service.name": f"clarinet-{part}", "service.version": _version()}
        if name := os.environ.get("OTEL_SERVICE_NAME"):
            facts["service.name"] = name
        self._provider = TracerProvider(resource=Resource.create(facts), shutdown_on_exit=False)
        delay_ms = None if os.environ.get(DELAY_VARIABLE) else DELAY_MS
        self._provider.add_span_processor(
            BatchSpanProcessor(_Telling(OTLPSpanExporter(), said), schedule_delay_millis=delay_ms)
        )
        self._tracer = self._provider.get_tracer("clarinet")
        event.listen(Engine, "before_cursor_execute", self._before)
        event.listen(Engine, "after_cursor_execute", self._after)
        event.listen(Engine, "handle_error", self._failed)

    def end(self, within_s: float) -> None:
        """Send what waits, for so long at most."""
        event.remove(Engine, "before_cursor_execute", self._before)
        event.remove(Engine, "after_cursor_execute", self._after)
        event.remove(Engine, "handle_error", self._failed)
        ending = threading.Thread(target=self._provider.shutdown, name="traces-end", daemon=True)
        ending.start()
        ending.join(within_s)

    @contextmanager
    def part(
        self,
        name: str,
        *,
        asked_by: str | None,
        kind: str,
        statements: bool | None,
        facts: Mapping[str, str | int | None],
    ) -> Iterator[Part]:
        """See `spans.span`."""
        parent, links = _place(asked_by)
        span = self._tracer.start_span(
            name, parent, kind=KINDS[kind], attributes=_attributes(facts), links=links
        )
        # From where we are, and not from a remote parent: what was set around the block stays.
        inside = trace.set_span_in_context(span)
        if statements is not None:
            inside = contexts.set_value(STATEMENTS, _Left() if statements else None, inside)
        token = contexts.attach(inside)
        part = Part(span)
        try:
            yield part
        except BaseException as error:
            part.fail(type(error).__name__)
            raise
        finally:
            contexts.detach(token)
            span.end()

    @contextmanager
    def statement(self, text: str, system: str) -> Iterator[None]:
        """See `spans.statement`."""
        span = self._begun(text, system)
        try:
            yield
        except BaseException as error:
            if span:
                Part(span).fail(type(error).__name__)
            raise
        finally:
            if span:
                span.end()

    def traceparent(self) -> str | None:
        """Of what goes on here."""
        carrier: dict[str, str] = {}
        _propagator.inject(carrier)
        return carrier.get("traceparent")

    def ids(self) -> dict[str, str]:
        """Of what goes on here, as logs name them."""
        here = trace.get_current_span().get_span_context()
        if not here.is_valid:
            return {}
        return {"trace_id": f"{here.trace_id:032x}", "span_id": f"{here.span_id:016x}"}

    def _begun(self, text: str, system: str) -> Span | None:
        left = contexts.get_value(STATEMENTS)
        if not isinstance(left, _Left) or not trace.get_current_span().is_recording():
            return None
        left.count -= 1
        if left.count < 0:
            trace.get_current_span().set_attribute("clarinet.statements_left_out", -left.count)
            return None
        name, shown = _told(text)
        attributes = {"db.system.name": system, "db.query.text": shown}
        return self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes)

    def _before(
        self, connection: Any, _cursor: Any, text: str, _values: Any, context: Any, _many: bool
    ) -> None:
        if context is not None and (span := self._begun(text, connection.dialect.name)):
            setattr(context, RUNNING, span)

    def _after(
        self, _connection: Any, _cursor: Any, _text: str, _values: Any, context: Any, _many: bool
    ) -> None:
        if span := getattr(context, RUNNING, None):
            span.end()

    def _failed(self, failure: Any) -> None:
        if span := getattr(failure.execution_context, RUNNING, None):
            Part(span).fail(type(failure.original_exception).__name__)
            span.end()


def endpoint() -> str:
    """Where spans are sent, as the standard variables say."""
    return str(OTLPSpanExporter()._endpoint)


def takes_spans() -> bool:
    """Whether the collector takes what it is sent, a message without a span; waits ANSWER_S for it."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    return OTLPSpanExporter(timeout=ANSWER_S).export([]) is SpanExportResult.SUCCESS


def _place(asked_by: str | None) -> tuple[Context | None, list[Link]]:
    """The parent of a new span, None for what goes on here, and what else led to it."""
    if asked_by is None:
        return None, []
    asked = _propagator.extract({"traceparent": asked_by}, Context())
    there = trace.get_current_span(asked).get_span_context()
    here = trace.get_current_span().get_span_context()
    if not there.is_valid or there.trace_id == here.trace_id:
        return None, []
    return asked, [Link(here)] if here.is_valid else []


def _version() -> str:
    try:
        return version("clarinet")
    except PackageNotFoundError:  # it runs from its sources
        return ""


def _attributes(facts: Mapping[str, str | int | None]) -> dict[str, str | int]:
    """With OpenTelemetry's names where it has some, and as ours elsewhere."""
    return {NAMES.get(name, f"clarinet.{name}"): value for name, value in facts.items() if value is not None}


NAMES = {"method": "http.request.method", "route": "http.route", "status": "http.response.status_code"}


@lru_cache(maxsize=2048)
def _told(text: str) -> tuple[str, str]:
    """A statement's name, and what is shown of it."""
    shown = QUOTED.sub("?", text)[:MOST_CHARACTERS]
    verb = shown.split(maxsplit=1)[0].upper() if shown.strip() else "?"
    table = TABLE.search(shown)
    return (f"{verb} {table[1]}" if table else verb), shown
