"""Answers a request that hangs, as one does whose database has stopped without a word."""

import asyncio
import re

import structlog
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.outages import SLOW
from app.problems import on_outage

LATE_S = 60.0  # statements have a limit of their own

log = structlog.get_logger()


class Lateness:
    """Say in time that nothing came, and drop what comes later.

    A thread that waits for a socket cannot be stopped. So the request keeps its place among those that are
    served at once, and when all places are taken the gate tells others at once to come again.
    """

    def __init__(self, app: ASGIApp, *, unhurried: re.Pattern[str], late_s: float = LATE_S) -> None:
        self.app = app
        self.unhurried = unhurried  # paths whose requests may copy files of any size
        self.late_s = late_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and count from where all of it has arrived."""
        if scope["type"] != "http" or self.unhurried.fullmatch(scope["path"]):
            await self.app(scope, receive, send)
            return
        waiting = _Waiting(scope, receive, send, self.late_s)
        try:
            await self.app(scope, waiting.receive, waiting.send)
        except Exception as error:
            if not waiting.is_late:
                raise
            log.warning("request.failed_late", error=type(error).__name__)
        finally:
            waiting.stop()
            await waiting.told()


class _Waiting:
    """One request, until its answer begins or it is late."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, late_s: float) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._late_s = late_s
        self._answering: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._has_begun = False

    @property
    def is_late(self) -> bool:
        """Whether it was told that nothing came."""
        return self._answering is not None

    async def told(self) -> None:
        """Wait for an answer that is being sent."""
        if self._answering:
            await self._answering

    def stop(self) -> None:
        """Count no more."""
        if self._timer:
            self._timer.cancel()

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body") and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._late_s, self._begin_to_tell)
        return message

    async def send(self, message: Message) -> None:
        if self.is_late:
            return
        self._has_begun = True
        self.stop()
        await self._send(message)

    def _begin_to_tell(self) -> None:
        if not self._has_begun:
            self._answering = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        answer = on_outage(Request(self._scope), SLOW, TimeoutError())
        await answer(self._scope, self._receive, self._send)
