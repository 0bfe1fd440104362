"""Asking the provider over HTTP: within a time, up to a size, and not by all threads at once."""

import json
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, NoReturn
from urllib.parse import urlencode

import httpx2
import structlog

DEADLINE_S = 10.0  # of one question, looking its host up included
QUIET_S = 5.0  # between two pieces of an answer
MOST_BYTES = 512 * 1024
PLACE_S = 1.0  # to wait for a place among the questions: whoever waits holds a thread of the server
AT_ONCE = 8  # questions: a provider that hangs must not take every thread of the server
SUCCESS = 200

log = structlog.get_logger()


class Unreachable(Exception):
    """No answer, or none that can be read."""


class Fetcher:
    """Asks one provider. It is the session of authlib's client, too, which asks for tokens."""

    def __init__(self) -> None:
        self._places = threading.BoundedSemaphore(AT_ONCE)
        # No connection is kept: nobody closes one that the provider has left.
        self._client = httpx2.Client(
            follow_redirects=False, timeout=QUIET_S, limits=httpx2.Limits(max_keepalive_connections=0)
        )

    def json_of(self, url: str, *, bearer: str = "") -> dict[str, Any]:
        """The JSON object at an address.

        Raises:
            Unreachable: it does not answer with one.
        """
        headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {bearer}"} if bearer else {})
        answer = self._ask("GET", url, headers, None)
        if answer.status_code != SUCCESS:
            self._fail(url, f"status {answer.status_code}")
        try:
            found = answer.json()
        except (ValueError, RecursionError) as error:
            self._fail(url, f"no JSON ({type(error).__name__})")
        if not isinstance(found, dict):
            self._fail(url, "no JSON object")
        return found

    def post(
        self, url: str, *, data: Mapping[str, str], headers: Mapping[str, str], auth: Any
    ) -> httpx2.Response:
        """Send a form, as authlib's client asks its session to; `auth` adds the client's own proof."""
        url, headers, body = auth.prepare("POST", url, dict(headers), urlencode(data))
        answer = self._ask("POST", url, headers, body.encode())
        try:
            json.loads(answer.content)
        except (ValueError, RecursionError):
            self._fail(url, f"status {answer.status_code}, no JSON")
        return answer

    def _ask(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> httpx2.Response:
        """In a thread of its own, for which nobody waits beyond the deadline: a name's look-up has none."""
        if not self._places.acquire(timeout=PLACE_S):
            self._fail(url, "too many questions at once")
        found: Future[httpx2.Response] = Future()

        def ask() -> None:
            try:
                found.set_result(self._answer(method, url, headers, body))
            except Exception as error:  # handed to whoever waits
                with suppress(InvalidStateError):
                    found.set_exception(error)
            finally:
                self._places.release()

        threading.Thread(target=ask, name="provider", daemon=True).start()
        try:
            return found.result(timeout=DEADLINE_S)
        except (
            httpx2.HTTPError,
            httpx2.InvalidURL,
            OSError,
            ValueError,
        ) as error:  # TimeoutError is an OSError
            return self._fail(url, type(error).__name__)

    def _fail(self, url: str, why: str) -> NoReturn:
        log.warning("organisation.no_answer", url=url, why=why)
        raise Unreachable(why)

    def _answer(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> httpx2.Response:
        ends_at = time.monotonic() + DEADLINE_S
        with self._client.stream(method, url, headers=dict(headers), content=body) as coming:
            content = b""
            for piece in coming.iter_bytes():
                content += piece
                if len(content) > MOST_BYTES or time.monotonic() > ends_at:
                    raise ValueError("too long")
            return httpx2.Response(coming.status_code, content=content, request=coming.request)
