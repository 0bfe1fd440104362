"""An OpenTelemetry collector: a real HTTP server that takes OTLP, or does what one in trouble does."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True)
class Told:
    """A span as it arrived."""

    name: str
    trace: str
    id: str
    parent: str  # "": none
    kind: int
    is_error: bool
    facts: dict[str, Any]
    links: list[str]  # traces
    service: str
    event_count: int


@dataclass
class Collector:
    """What came, and how this one behaves."""

    url: str
    spans: list[Told] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    status: int = 200
    hangs: threading.Event = field(default_factory=threading.Event)  # set: it answers nobody
    ended: threading.Event = field(default_factory=threading.Event)

    def named(self, name: str) -> list[Told]:
        """Those of a name."""
        return [span for span in list(self.spans) if span.name == name]

    def wait_for(self, name: str, *, count: int = 1, timeout_s: float = 300) -> list[Told]:
        """Those of a name, once there are so many."""
        deadline = time.monotonic() + timeout_s
        while len(found := self.named(name)) < count:
            assert time.monotonic() < deadline, f"no span {name!r}: {sorted({s.name for s in self.spans})}"
            time.sleep(0.05)
        return found


def _value(given: Any) -> Any:  # of a message, by the field that is set
    return getattr(given, given.WhichOneof("value"))


def spans_of(body: bytes) -> Iterator[Told]:
    """What an OTLP request holds."""
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        facts = {each.key: _value(each.value) for each in resource.resource.attributes}
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Told(
                    name=span.name,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    kind=span.kind,
                    is_error=span.status.code == span.status.STATUS_CODE_ERROR,
                    facts={each.key: _value(each.value) for each in span.attributes},
                    links=[link.trace_id.hex() for link in span.links],
                    service=facts["service.name"],
                    event_count=len(span.events),
                )


@contextmanager
def collector() -> Iterator[Collector]:
    """One on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if found.hangs.is_set():
                found.ended.wait()
                return
            if found.status == 200:
                found.bodies.append(body)
                found.spans.extend(spans_of(body))
            self.send_response(found.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found = Collector(url=f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield found
    found.ended.set()
    server.shutdown()
    thread.join()
    server.server_close()
