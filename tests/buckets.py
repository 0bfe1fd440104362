"""A real S3 server in a process of its own, and a proxy before it that breaks what is asked."""

import http.client
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

from app.settings import Settings
from app.stores.bucket import BucketStorage
from app.stores.chosen import storage_of
from tests.live import free_port
from worker.bench.faults.services import SIGNED

MOTO = Path(sys.executable).parent / "moto_server"
START_S = 300
HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "date", "server"}


@contextmanager
def s3_server() -> Iterator[int]:
    """The port of an S3 server, which forgets everything at its end."""
    port = free_port()
    process = subprocess.Popen(
        [MOTO, "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield port
    finally:
        process.kill()
        process.wait()


def new_bucket(port: int) -> str:
    """An empty bucket of the server."""
    name = f"clarinet-{uuid4().hex[:12]}"
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("PUT", f"/{name}", headers={"Authorization": SIGNED})
    assert connection.getresponse().status == 200
    connection.close()
    return name


def bucket_settings(data_dir: Path, port: int, bucket: str, **others: Any) -> Settings:
    """Settings with such a bucket, below a prefix."""
    return Settings(
        environment="test",
        data_dir=data_dir,
        s3_bucket=bucket,
        s3_prefix="some/where",
        s3_endpoint=f"http://127.0.0.1:{port}",
        s3_access_key_id="key",
        s3_secret_access_key="secret",
        _env_file=None,
        **others,
    )


def bucket_of(settings: Settings, *, patience_s: float = 4.0) -> BucketStorage:
    """The bucket of the settings."""
    storage = storage_of(settings)
    assert isinstance(storage, BucketStorage)
    return storage.patiently(patience_s)


def headers_of(port: int, bucket: str, key: str) -> dict[str, str]:
    """What the server says of an object."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("HEAD", f"/{bucket}/some/where/{key}", headers={"Authorization": SIGNED})
    answer = connection.getresponse()
    connection.close()
    assert answer.status == 200
    return {name.lower(): value for name, value in answer.getheaders()}


def put_bare(port: int, bucket: str, key: str, data: bytes) -> None:
    """Write an object as tools that copy buckets may: without what we note beside it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("PUT", f"/{bucket}/some/where/{key}", data, {"Authorization": SIGNED})
    assert connection.getresponse().status == 200
    connection.close()


# What happens to a request (method, path, how many came before): "" it is passed on, "403", "500", "slow"
# (0.3 s late), "cut" (half of the answer's body), "lost" (done, but the answer never comes).
Fault = Callable[[str, str, int], str]


class FaultyS3:
    """A proxy on a port of its own; `fault` may be changed at any time."""

    def __init__(self, server_port: int) -> None:
        self.fault: Fault = lambda _method, _path, _number: ""
        self.asked: list[tuple[str, str, str]] = []  # method, path, what happened
        faulty = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _any(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                with faulty._lock:
                    what = faulty.fault(self.command, self.path, len(faulty.asked))
                    faulty.asked.append((self.command, self.path, what))
                if what in {"403", "500"}:
                    self.send_response(int(what))
                    self.send_header("content-length", "0")
                    self.end_headers()
                    return
                if what == "slow":
                    time.sleep(0.3)
                connection = http.client.HTTPConnection("127.0.0.1", server_port, timeout=30)
                connection.request(self.command, self.path, body, dict(self.headers.items()))
                answer = connection.getresponse()
                data = answer.read()
                connection.close()
                if what == "lost":
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in HOP_BY_HOP:
                        self.send_header(name, value)
                length = answer.getheader("content-length") if self.command == "HEAD" else len(data)
                self.send_header("content-length", str(length))
                self.end_headers()
                if what == "cut":
                    data = data[: len(data) // 2]
                    self.close_connection = True
                self.wfile.write(data)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _any  # noqa: N815 - the server's names

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """Who asked has gone: their pipe is broken."""

        self._lock = threading.Lock()
        self._server = Server(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Let go of the port."""
        self._server.shutdown()
        self._server.server_close()
