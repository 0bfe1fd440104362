"""A real HTTP server on this machine that answers as it is told and remembers what it was asked."""

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Reply = tuple[int, Any, dict[str, str]]  # status, body as JSON or bytes, further headers
LOST: Reply = (0, b"", {})  # the connection ends without an answer


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    headers: dict[str, str]  # names in small letters
    body: bytes


class Receiver:
    """Answers in turn with what `will` said; the last answer stays."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.replies: list[Reply] = [(200, {}, {})]
        self.asked: list[Asked] = []
        told = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                length = int(self.headers.get("content-length", 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                told.asked.append(Asked(self.command, self.path, headers, self.rfile.read(length)))
                status, body, more = told.replies.pop(0) if len(told.replies) > 1 else told.replies[0]
                if status == 0:
                    self.close_connection = True
                    return
                sent = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                kinds = {"Content-Type": "application/json", "Content-Length": str(len(sent))} | more
                for name, value in kinds.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(sent)

            do_GET = do_POST = do_DELETE = answer  # noqa: N815  # the base class's names

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls:
            self.http.socket = tls.wrap_socket(self.http.socket, server_side=True)
        self.port = self.http.server_port
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def will(self, *replies: Reply) -> None:
        """Answer so, one after the other."""
        self.replies = list(replies)

    def close(self) -> None:
        """End the server."""
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()
