"""How many requests are served at once: the others wait, in order, or are told to come again."""

import random

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.hardening import Arrival, BodyTooSlow
from app.languages import gettext
from app.problems import on_http_error

BUSY = 503
PLACES = 32  # anyio has 40 threads; the rest serve files and spool uploads
PATIENCE_S = 4.0
# Not all of them at the same moment, or the same crowd is there again.
COME_AGAIN_S = (1, 2, 3)
# They need no database, or have threads of their own.
UNGATED_PATHS = ("/static/", "/healthz", "/readyz", "/metrics")


class Gate:
    """Let in fewer requests at once than there are threads to serve them; the others wait, in order.

    A request keeps its database connection from one step in a thread to the next. Were all threads taken by
    requests that wait for a connection, those that hold one would never get a thread to finish in.

    Who waits for the network needs no thread and no place: a body is awaited outside, and once an answer of
    known length or an event stream begins, its database session is over. (A download written row by row has
    neither and keeps its place.)
    """

    def __init__(self, app: ASGIApp, *, places: int = PLACES, patience_s: float = PATIENCE_S) -> None:
        self.app = app
        self.places = anyio.Semaphore(places, fast_acquire=True)
        self.patience_s = patience_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer that there is too much to do."""
        if scope["type"] != "http" or scope["path"].startswith(UNGATED_PATHS):
            await self.app(scope, receive, send)
            return
        try:
            arrival = Arrival()
            first = await arrival.next(receive)
        except BodyTooSlow as error:
            await on_http_error(Request(scope), error)(scope, receive, send)
            return
        if not await self._has_place():
            await on_http_error(Request(scope), Busy())(scope, receive, send)
            return
        visit = _Visit(self.places, first, arrival, receive, send)
        try:
            await self.app(scope, visit.receive, visit.send)
        finally:
            visit.leave()

    async def _has_place(self) -> bool:
        """Take a place, waiting for it if need be."""
        try:
            self.places.acquire_nowait()
        except anyio.WouldBlock:
            with anyio.move_on_after(self.patience_s):
                await self.places.acquire()
                return True
            return False
        return True


class Busy(HTTPException):
    """There is no place among those that are served at once, and there will be none for a while."""

    def __init__(self) -> None:
        detail = gettext(
            "The server has more to do than it can at this moment; nothing was changed. Try again soon."
        )
        super().__init__(BUSY, detail, headers={"Retry-After": str(random.choice(COME_AGAIN_S))})


class _Visit:
    """One request, which is inside with a place of its own, or waits outside for its network."""

    def __init__(
        self, places: anyio.Semaphore, first: Message, arrival: Arrival, receive: Receive, send: Send
    ) -> None:
        self._places = places
        self._first: Message | None = first
        self._has_more: bool = first.get("more_body", False)
        self._arrival = arrival
        self._receive = receive
        self._send = send
        self._is_inside = True

    def leave(self) -> None:
        if self._is_inside:
            self._is_inside = False
            self._places.release()

    async def receive(self) -> Message:
        if self._first is not None:
            message, self._first = self._first, None
            return message
        if not self._has_more:
            return await self._receive()  # waits for the client to go away
        self.leave()
        message = await self._arrival.next(self._receive)
        self._has_more = message.get("more_body", False)
        if not self._has_more:
            await self._places.acquire()  # without a limit: what was sent, perhaps for minutes, is served
            self._is_inside = True
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = Headers(scope=message)
            if "content-length" in headers or headers.get("content-type", "").startswith("text/event-stream"):
                self.leave()
        await self._send(message)
